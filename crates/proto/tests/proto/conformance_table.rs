//! docs/reference/tcp-conformance.md refers to existing tests and files, and covers every conversation test.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The names in backquotes in the rows of tables.
fn named(table: &str) -> BTreeSet<&str> {
    let rows = table.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|row| row.split('`').skip(1).step_by(2)).collect()
}

/// The tests of a file, as `module::name`.
fn tests_in(path: &Path, module: &str) -> BTreeSet<String> {
    let text = read(path);
    let lines: Vec<&str> = text.lines().collect();
    let marked = lines.windows(2).filter(|pair| pair[0] == "#[test]").map(|pair| pair[1]);
    let names = marked.filter_map(|line| line.strip_prefix("fn ")?.split('(').next());
    names.map(|name| format!("{module}::{name}")).collect()
}

/// The files and directories in a directory, each with its name without an extension.
fn entries(directory: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(directory).expect("a directory of tests");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let named = |path: PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("").to_owned();
        (path, stem)
    };
    paths.map(named).collect()
}

/// The files in a directory of tests, each with the name of its subject: `NAME.rs`, or all in `NAME/`.
fn files_by_subject(directory: &str) -> Vec<(PathBuf, String)> {
    let of_subject = |(path, name): (PathBuf, String)| match path.is_dir() {
        true => entries(&path).into_iter().map(|(file, _)| (file, name.clone())).collect(),
        false => vec![(path, name)],
    };
    entries(&workspace().join(directory)).into_iter().flat_map(of_subject).collect()
}

/// The tests of every file in a directory of tests.
fn tests_under(directory: &str) -> BTreeSet<String> {
    let files = files_by_subject(directory);
    files.iter().flat_map(|(path, subject)| tests_in(path, subject)).collect()
}

const SOURCES: [&str; 2] = ["crates/proto/src/tcp", "crates/endpoint/src"];

#[test]
fn the_table_tells_the_truth() {
    let table = read(&workspace().join("docs/reference/tcp-conformance.md"));
    let named = named(&table);
    let mut dialogues = tests_under("crates/proto/tests/proto/tcp");
    dialogues.extend(tests_under("crates/endpoint/tests/endpoint"));
    let mut tests = tests_under("crates/sim/tests/sim/tcp");
    tests.extend(tests_in(&workspace().join("crates/endpoint/tests/endpoint/smoltcp.rs"), "smoltcp"));
    tests.extend(tests_in(&workspace().join("crates/live/tests/live/linux/mod.rs"), "linux"));
    tests.extend(tests_in(&workspace().join("crates/live/tests/live/split.rs"), "split"));
    tests.extend(tests_in(&workspace().join("crates/sim/tests/sim/ns2/mod.rs"), "ns2"));
    for (file, scheme) in files_by_subject("crates/sim/tests/sim/schemes") {
        let is_dialogue = read(&file).contains("use lasthop_testing::dialogue");
        let found = if is_dialogue { &mut dialogues } else { &mut tests };
        found.extend(tests_in(&file, &scheme));
    }
    tests.extend(dialogues.iter().cloned());

    for name in &named {
        let there = match name.strip_suffix(".rs") {
            Some(_) => SOURCES.iter().any(|directory| workspace().join(directory).join(name).is_file()),
            None => tests.contains(*name),
        };
        assert!(there, "`{name}` is in the table and nowhere else");
    }
    for dialogue in &dialogues {
        assert!(named.contains(dialogue.as_str()), "{dialogue} is not in the table");
    }
}
