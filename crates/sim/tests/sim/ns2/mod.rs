//! Comparison of TCP with ns-2, event by event.
//!
//! Every case in `index.csv` is simulated and compared row by row: the same events in the same order, times
//! within a microsecond, the same window, duplicate count and RTT estimator. By default the traces in
//! `tests/ns2` are used; `LASTHOP_NS2_TRACES` names another directory in the same format.

mod case;
mod recorder;
mod trace;

use std::env;
use std::path::{Path, PathBuf};

use case::Case;

fn directory() -> PathBuf {
    match env::var_os("LASTHOP_NS2_TRACES") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/ns2"),
    }
}

/// The first difference of a case, as an error.
fn difference(case: &Case, directory: &Path) -> Result<(), String> {
    let expected = trace::read(&directory.join(format!("{}.csv.gz", case.name)))?;
    let found = case.simulate()?;
    trace::compare(&expected, &found)
}

// Rule: With the profile ns2, the same events and state as ns-2.35. []
#[test]
fn traces_are_equal() {
    let directory = directory();
    let cases = case::read_index(&directory.join("index.csv")).expect("a readable index.csv");
    let mut different = 0;
    for case in &cases {
        if let Err(reason) = difference(case, &directory) {
            different += 1;
            println!("{}: {reason}", case.name);
        }
    }
    println!("{} of {} ns-2 traces are equal", cases.len() - different, cases.len());
    assert!(!cases.is_empty(), "no cases in {}", directory.display());
    assert_eq!(different, 0, "traces differ");
}
