//! Benchmark cases. Each process runs and measures one case, and prints a line of JSON:
//!
//! ```text
//! lasthop-bench CASE SIZE [FILE]
//! ```
//!
//! `SIZE` is the simulated time in seconds for bulk transfers, the cells and the path, and the number of runs
//! for all others. `N` in the name of a case is a number of flows, links, pairs, stations or segments. `FILE` is the
//! output file of the case `pcapng`.

mod dumbbell;
mod meter;
mod overshoot;
mod study;

use std::env;
use std::num::NonZeroUsize;
use std::process::ExitCode;

use lasthop_base::{Duration, Time};
use lasthop_capture::{CapturePoint, RunCapture};
use lasthop_channel::Model;
use lasthop_proto::tcp::{Congestion, Settings};
use lasthop_sim::{Ended, NoTap};
use mimalloc::MiMalloc;
use serde::Serialize;

use dumbbell::Dumbbell;
use meter::{Cost, measured};

/// The allocator of the extension module.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "usage: lasthop-bench CASE SIZE [FILE]
cases: bulk-N bulk-ns2 bulk-reno bulk-cubic bulk-bbr bulk-bbr3 hops-N pcapng ten-clean ten-lossy ten-study
       ebsn path cell-N cell-idle-N wifi-N fec fec-50 setup-dumbbell-N setup-cell-N jobs-1 jobs-2
       overshoot-FLAVOUR-N with the flavours sack, ns2-sack and prr";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let result = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [case, size] => size.parse().ok().and_then(|size| run(case, size, None)),
        [case, size, file] => size.parse().ok().and_then(|size| run(case, size, Some(file))),
        _ => None,
    };
    match result {
        Some(result) => {
            println!("{}", serde_json::to_string(&result).expect("plain numbers"));
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// The result of a case.
#[derive(Serialize)]
struct Outcome {
    /// Segments delivered in order.
    delivered: u64,
    /// How often a component dealt with a wake-up, a packet or a signal; none where it is unknown.
    events: Option<u64>,
    /// Frame exchanges, collisions included; none where there is no cell.
    exchanges: Option<u64>,
    cpu_s: f64,
    wall_s: f64,
    peak_bytes: u64,
}

impl Outcome {
    fn new(delivered: u64, events: Option<u64>, cost: &Cost) -> Outcome {
        let &Cost { cpu_s, wall_s, peak_bytes } = cost;
        Outcome { delivered, events, exchanges: None, cpu_s, wall_s, peak_bytes }
    }
}

fn run(case: &str, size: u64, file: Option<&str>) -> Option<Outcome> {
    Some(match (case, file) {
        ("bulk-ns2", None) => bulk(1, dumbbell::ns2(), size),
        ("bulk-reno", None) => bulk(1, dumbbell::linux(Congestion::Reno), size),
        ("bulk-cubic", None) => bulk(1, dumbbell::linux(Congestion::Cubic), size),
        ("bulk-bbr", None) => bulk(1, dumbbell::linux(Congestion::Bbr), size),
        ("bulk-bbr3", None) => bulk(1, dumbbell::linux(Congestion::Bbr3), size),
        ("pcapng", Some(file)) => pcapng(size, file),
        ("ten-clean", None) => ten(Model::Perfect, size),
        ("ten-lossy", None) => ten(dumbbell::losing(0.05), size),
        ("ten-study", None) => ten_of_a_study(size),
        ("ebsn", None) => study(&study::EBSN, size),
        ("path", None) => path(size),
        ("fec", None) => fec(10, size),
        ("fec-50", None) => fec(50, size),
        ("jobs-1", None) => jobs(1, size),
        ("jobs-2", None) => jobs(2, size),
        (case, None) => {
            let (kind, number) = case.rsplit_once('-')?;
            if let Some(flavour) = kind.strip_prefix("overshoot-") {
                return overshoot(flavour, number.parse().ok()?, size);
            }
            let number = number.parse().ok().filter(|number| *number > 0)?;
            match kind {
                "bulk" => bulk(number, dumbbell::rfc(), size),
                "hops" => hops(number, size),
                "cell" => cell(number, false, size),
                "cell-idle" => cell(number, true, size),
                "wifi" => wifi(number, size),
                "setup-dumbbell" => setup(&format!("topology.dumbbell.pairs={number}"), size),
                "setup-cell" => setup(&format!("topology.cell.stations={number}"), size),
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn endless(flows: u32, settings: Settings) -> Dumbbell {
    Dumbbell { flows, wired: 1, settings, segments: None, channel: dumbbell::losing(0.01) }
}

fn seconds(simulated: u64) -> Time {
    Time::ZERO + Duration::from_secs(simulated)
}

fn bulk(flows: u32, settings: Settings, simulated: u64) -> Outcome {
    run_bulk(&endless(flows, settings), simulated)
}

/// One flow over so many links, the last of which is wireless.
fn hops(links: u32, simulated: u64) -> Outcome {
    run_bulk(&Dumbbell { wired: links - 1, ..endless(1, dumbbell::rfc()) }, simulated)
}

fn run_bulk(dumbbell: &Dumbbell, simulated: u64) -> Outcome {
    let (network, cost) = measured(|| {
        let mut network = dumbbell.build(0, |_| NoTap);
        network.engine.run(&[], seconds(simulated));
        network
    });
    Outcome::new(network.delivered(), Some(network.engine.handled()), &cost)
}

fn pcapng(simulated: u64, file: &str) -> Outcome {
    let dumbbell = endless(1, dumbbell::rfc());
    let point = |source: dumbbell::Source| CapturePoint {
        name: String::from("sender"),
        description: String::from("The source of the data"),
        wires: vec![source.sent, source.returned],
        losses: true,
        mss: dumbbell.settings.mss() as u16,
        largest_window: dumbbell.settings.window_payload(),
        sack_permitted: false,
        parts: Vec::new(),
    };
    let ((delivered, events, written), cost) = measured(|| {
        let tap = |source| RunCapture::create(file, point(source), None).expect("a file that can be written");
        let mut network = dumbbell.build(0, tap);
        network.engine.run(&[], seconds(simulated));
        (network.delivered(), network.engine.handled(), network.engine.into_tap().finish())
    });
    written.expect("the whole file was written");
    Outcome::new(delivered, Some(events), &cost)
}

fn ten(channel: Model, runs: u64) -> Outcome {
    let dumbbell = Dumbbell { segments: Some(10), channel, ..endless(1, dumbbell::rfc()) };
    let play = |run| {
        let mut network = dumbbell.build(run, |_| NoTap);
        let ended = network.engine.run(&network.senders, seconds(3_600));
        assert_eq!(ended, Ended::Finished, "ten segments can be delivered");
        (network.delivered(), network.engine.handled())
    };
    let ((delivered, events), cost) = measured(|| study::sum((0..runs).map(play)));
    Outcome::new(delivered, Some(events), &cost)
}

fn ten_of_a_study(runs: u64) -> Outcome {
    let case = study::TEN.read();
    let (delivered, cost) = measured(|| case.run_sharing(runs));
    Outcome::new(delivered, None, &cost)
}

fn study(case: &study::Case, runs: u64) -> Outcome {
    of_runs(&case.read(), runs)
}

/// Transfers of so many segments.
fn fec(segments: u64, runs: u64) -> Outcome {
    of_runs(&study::FEC.read_with(&[format!("transfer.size={} B", 1400 * segments)]), runs)
}

fn of_runs(case: &study::Ready, runs: u64) -> Outcome {
    let ((delivered, events), cost) = measured(|| case.run(runs));
    Outcome::new(delivered, Some(events), &cost)
}

fn overshoot(flavour: &str, window: u64, runs: u64) -> Option<Outcome> {
    let settings = overshoot::settings(flavour, window)?;
    let ((delivered, events), cost) =
        measured(|| study::sum((0..runs).map(|_| overshoot::transfer(&settings, window))));
    Some(Outcome::new(delivered, Some(events), &cost))
}

fn path(simulated: u64) -> Outcome {
    of_runs(&study::PATH.read_with(&[format!("limit={simulated}s")]), 1)
}

/// Downloads by so many stations, or by one of them only.
fn cell(stations: u32, one: bool, simulated: u64) -> Outcome {
    let mut overrides = vec![format!("limit={simulated}s"), format!("topology.cell.stations={stations}")];
    if one {
        overrides.extend(["transfer.from=server", "transfer.to=MH1"].map(String::from));
    }
    let case = study::CELL.read_with(&overrides);
    let ((delivered, events, exchanges), cost) = measured(|| {
        let run = case.play(0);
        let network = &run.metrics.network;
        // On a perfect channel all attempts fail by collisions, each of several attempts.
        let exchanges = network.link_attempts - network.link_failures + network.collisions;
        (case.delivered(&run.metrics), run.handled, exchanges)
    });
    Outcome { exchanges: Some(exchanges), ..Outcome::new(delivered, Some(events), &cost) }
}

/// Datagrams to so many stations of a saturated cell of 802.11n.
fn wifi(stations: u32, simulated: u64) -> Outcome {
    let mut overrides = vec![format!("limit={simulated}s"), format!("topology.cell.stations={stations}")];
    overrides.extend((1..=stations).map(|number| {
        let law = format!("law.poisson.rate=\"{} bps\"", 62_500_000 / stations);
        format!(
            "traffic.{number}={{ from = \"server\", to = \"MH{number}\", packet_size = \"1498 B\", {law} }}"
        )
    }));
    let case = study::WIFI.read_with(&overrides);
    let (run, cost) = measured(|| case.play(0));
    let network = &run.metrics.network;
    Outcome::new(network.link_attempts - network.link_failures, Some(run.handled), &cost)
}

/// Runs that end before anything arrives, each set up and torn down.
fn setup(topology: &str, runs: u64) -> Outcome {
    of_runs(&study::SETUP.read_with(&[topology]), runs)
}

fn jobs(jobs: usize, runs: u64) -> Outcome {
    let case = study::EBSN.read();
    let jobs = NonZeroUsize::new(jobs).expect("at least one job");
    let (delivered, cost) = measured(|| case.run_on(jobs, runs));
    Outcome::new(delivered, None, &cost)
}
