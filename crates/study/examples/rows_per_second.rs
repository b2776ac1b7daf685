//! Throughput of the pool in runs per second: transfers of ten segments with set-up and tear-down, on one
//! thread and on all cores.
//!
//! `cargo run --release -p lasthop-study --example rows_per_second`

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use lasthop_scenario::Scenario;
use lasthop_study::{Batch, Chunk, Pool};

const RUNS: u64 = 400_000;

const LINKS: &str = r#"
    limit = "10000 s"
    [transfer]
    size = "5360 B"
    [tcp]
    packet_size = "576 B"
    [wired]
    rate = "10 Mbps"
    delay = "30 ms"
    [radio]
    rate = "2 Mbps"
"#;

const CASES: [(&str, &str, &str); 3] = [
    ("a perfect last hop", "basic", ""),
    ("1 % of frames lost", "basic", "[radio.channel.frame-loss]\nloss = 0.01"),
    (
        "fragments, fades, ARQ and notices",
        "ebsn",
        "mtu = \"128 B\"\nchannel.two-state = { good = \"500 ms\", bad = \"50 ms\" }\n\
         arq.stop-and-wait = { retransmissions = 13, backoff = { uniform = \"10 ms\" } }",
    ),
];

fn main() {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    for (what, scheme, channel) in CASES {
        let text = format!("{LINKS}\n{channel}");
        let scenario = Arc::new(Scenario::parse::<&str>(&text, what, &[]).unwrap_or_else(|e| panic!("{e}")));
        for jobs in [1, cores] {
            let pool = Pool::new(NonZeroUsize::new(jobs));
            let begun = Instant::now();
            let (scenario, scheme) = (Arc::clone(&scenario), scheme.to_owned());
            let batch = Batch { key: 0, scenario, scheme, seed: 1, runs: 0..RUNS };
            pool.submit(batch).expect("the scheme works with the link");
            let mut packing = Duration::ZERO;
            while pool.pending() > 0 {
                let rows = pool.collect(Duration::from_secs(1)).expect("no run fails");
                let begun = Instant::now();
                drop(Chunk::pack(&rows));
                packing += begun.elapsed();
            }
            let time = begun.elapsed().as_secs_f64();
            let packed = packing.as_secs_f64() / RUNS as f64 * 1e6;
            let each = time / RUNS as f64 * jobs as f64 * 1e6;
            let rate = RUNS as f64 / time;
            println!(
                "{what}, {jobs} threads: {rate:.0} rows/s, {each:.2} us of a thread per row, {packed:.2} us to \
                 pack it"
            );
        }
    }
}
