//! Runs of scenarios, executed as in a study.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use lasthop_experiment::{Experiment, Metrics, Observe, Run};
use lasthop_scenario::Scenario;
use lasthop_study::{Batch, Pool};

/// The wide-area case of the EBSN paper, with the scheme that exercises most.
pub(crate) const EBSN: Case =
    Case { text: include_str!("../../scenarios/ebsn-wide-area.toml"), scheme: "ebsn" };

/// Ten segments over a clean last hop.
pub(crate) const TEN: Case = Case { text: include_str!("../ten.toml"), scheme: "basic" };

/// A connection over four routers, with cross traffic.
pub(crate) const PATH: Case = Case { text: include_str!("../path.toml"), scheme: "basic" };

/// Downloads through an 802.11 cell.
pub(crate) const CELL: Case = Case { text: include_str!("../cell.toml"), scheme: "basic" };

/// Datagrams through a cell of 802.11n.
pub(crate) const WIFI: Case = Case { text: include_str!("../wifi.toml"), scheme: "basic" };

/// Ten segments over a fading last hop, the critical ones protected by a code.
pub(crate) const FEC: Case = Case { text: include_str!("../selective-fec.toml"), scheme: "selective-fec" };

/// A network of any size, with a run of a microsecond.
pub(crate) const SETUP: Case = Case { text: include_str!("../setup.toml"), scheme: "basic" };

/// A scenario with one of its schemes.
pub(crate) struct Case {
    text: &'static str,
    scheme: &'static str,
}

/// A case that was read.
pub(crate) struct Ready {
    scenario: Scenario,
    scheme: &'static str,
}

impl Case {
    pub(crate) fn read(&self) -> Ready {
        self.read_with::<&str>(&[])
    }

    /// Also lays values over what the file says, each as `key=value`.
    pub(crate) fn read_with<S: AsRef<str>>(&self, overrides: &[S]) -> Ready {
        let scenario = Scenario::parse(self.text, "benchmark", overrides);
        Ready { scenario: scenario.expect("a sound scenario"), scheme: self.scheme }
    }
}

impl Ready {
    /// Segments delivered by `runs` runs, one after the other, each set up from the scenario, and events.
    pub(crate) fn run(&self, runs: u64) -> (u64, u64) {
        sum((0..runs).map(|number| {
            let run = self.play(number);
            (self.delivered(&run.metrics), run.handled)
        }))
    }

    /// Segments delivered by `runs` runs that share a set-up, as in a study.
    pub(crate) fn run_sharing(&self, runs: u64) -> u64 {
        let setup = self.scenario.set_up(self.scheme).expect("a scenario that can be run");
        let run = |number| setup.run(1, number, &mut |_| true).expect("a run without limits");
        (0..runs).map(|number| self.delivered(&run(number).metrics)).sum()
    }

    /// One run.
    pub(crate) fn play(&self, number: u64) -> Run {
        let run = self.scenario.run(self.scheme, 1, number, Observe::default());
        run.expect("a scenario that can be run")
    }

    /// Segments delivered by `runs` runs on `jobs` threads.
    pub(crate) fn run_on(&self, jobs: NonZeroUsize, runs: u64) -> u64 {
        let pool = Pool::new(Some(jobs));
        let (scenario, scheme) = (Arc::new(self.scenario.clone()), self.scheme.to_owned());
        let batch = Batch { key: 0, scenario, scheme, seed: 1, runs: 0..runs };
        pool.submit(batch).expect("a scenario that can be run");
        let mut delivered = 0;
        while pool.pending() > 0 {
            let rows = pool.collect(Duration::from_secs(1)).expect("no run fails");
            delivered += rows.iter().map(|row| self.delivered(&row.metrics)).sum::<u64>();
        }
        delivered
    }

    /// Segments delivered.
    pub(crate) fn delivered(&self, metrics: &Metrics) -> u64 {
        metrics.connections.delivered_bytes.div_ceil(u64::from(self.scenario.tcp.mss()))
    }
}

/// The sums of the first and of the second of each pair.
pub(crate) fn sum(pairs: impl Iterator<Item = (u64, u64)>) -> (u64, u64) {
    pairs.fold((0, 0), |(firsts, seconds), (first, second)| (firsts + first, seconds + second))
}
