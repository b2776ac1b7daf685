//! A scheme from outside the workspace: a base station that drops every hundredth packet to the mobile host, beside
//! a scenario that is otherwise the same.
//!
//! `cargo run -p lasthop-experiment --example scheme`

use std::sync::Arc;

use lasthop_base::Time;
use lasthop_experiment::{Experiment, Observe, RunError};
use lasthop_proto::scheme::{Installer, Scheme};
use lasthop_proto::{Component, DropReason, Out, Packet, Port, Tally};
use lasthop_scenario::Scenario;

const SCENARIO: &str = r#"
    transfer.size = "1 MB"
    wired = { rate = "10 Mbps", delay = "20 ms" }
    radio = { rate = "2 Mbps", delay = "5 ms" }
"#;

struct Lossy;

impl Scheme for Lossy {
    fn name(&self) -> &'static str {
        "lossy"
    }

    fn summary(&self) -> &'static str {
        "a base station that drops every hundredth packet"
    }

    fn source(&self) -> &'static str {
        "an example"
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.at_base_station(|_site| Agent::default());
    }
}

#[derive(Default)]
struct Agent {
    seen: u64,
    dropped: u64,
}

impl Component for Agent {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        if port == Port::WIRED {
            self.seen += 1;
            if self.seen.is_multiple_of(100) {
                self.dropped += 1;
                return out.drop(*packet, DropReason::Scripted);
            }
        }
        out.send(port.across(), *packet);
    }

    fn count(&self, tally: &mut dyn Tally) {
        tally.total("dropped_packets", self.dropped);
    }
}

fn main() -> Result<(), RunError> {
    let scenario = Scenario::parse::<&str>(SCENARIO, "example", &[]).map_err(RunError::Scenario)?;
    let schemes = ["basic", "lossy"].map(str::to_owned).to_vec();
    let scenario = scenario.with_schemes(schemes, [Arc::new(Lossy) as _]).map_err(RunError::Scenario)?;
    let mut throughputs = Vec::new();
    for scheme in ["basic", "lossy"] {
        // The same seed and run number: both meet the same fades.
        let run = scenario.run(scheme, 1, 0, Observe::default())?;
        println!("{scheme}: {:.0} bps", run.metrics.connections.throughput_bps);
        throughputs.push(run.metrics.connections.throughput_bps);
    }
    assert!(throughputs[1] < throughputs[0]);
    Ok(())
}
