//! One run of a scenario.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use lasthop_base::{Duration, Streams, Time};
use lasthop_proto::scheme::Scheme;
use lasthop_sim::{Capture, Ended, Node, Pcapng, Tap};

use crate::error::{Place, ScenarioError};
use crate::metrics::{Counts, Drops, Metrics};
use crate::rephrase;
use crate::scenario::Scenario;
use crate::series::{Recorder, Series};
use crate::trace::{Events, Tracer};
use crate::world::{self, Flow, World};

/// What to record of a run beside its metrics. What is not asked for costs nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observe<'a> {
    /// What happened to each packet.
    pub trace: bool,
    /// What the sender's state was over time.
    pub series: bool,
    /// A pcapng file to write, as a capture at the source would show the run; losses anywhere are
    /// recorded on an interface of their own.
    pub pcap: Option<&'a Path>,
}

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The scheme that was run.
    pub scheme: String,
    /// The study's seed.
    pub seed: u64,
    /// The number of the run in the study.
    pub run: u64,
    /// Why it ended.
    pub ended: Ended,
    /// What it is measured by.
    pub metrics: Metrics,
    /// How often a component dealt with a wake-up, a packet or a signal: how much work it was.
    pub handled: u64,
    /// What happened to each packet, if that was asked for.
    pub events: Option<Events>,
    /// The sender's state over time, if that was asked for.
    pub series: Option<Series>,
}

/// Why there was no run.
#[derive(Debug)]
pub enum RunError {
    /// The scenario cannot be run with this scheme, or at all.
    Scenario(ScenarioError),
    /// The pcapng file could not be written.
    Capture(PathBuf, io::Error),
    /// The run was told to stop before its end.
    Stopped,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Scenario(error) => error.fmt(f),
            RunError::Capture(path, error) => write!(f, "cannot write {}: {error}", path.display()),
            RunError::Stopped => f.write_str("the run was stopped before its end"),
        }
    }
}

impl std::error::Error for RunError {}

/// Why a run ended, what it is measured by and what was recorded of it.
type Observed = (Outcome, Option<Events>, Option<Series>);

/// Why a run ended, what it is measured by and how much work it was.
pub(crate) struct Outcome {
    pub(crate) ended: Ended,
    pub(crate) metrics: Metrics,
    handled: u64,
}

/// A scenario and one of the schemes that can work with it: what all runs of a study share.
#[derive(Clone, Copy)]
pub(crate) struct Setup<'a> {
    scenario: &'a Scenario,
    pub(crate) scheme: &'a dyn Scheme,
}

impl Scenario {
    /// When the channel of run number `run` of a study seeded with `seed` is bad, in seconds: the spans
    /// that begin before `until_s` and within the scenario's limit. Every scheme meets the same ones.
    /// None on a channel without states.
    pub fn bad_periods(&self, seed: u64, run: u64, until_s: f64) -> Vec<(f64, f64)> {
        let until = Time::ZERO + self.limit.min(Duration::from_secs_f64(until_s));
        let periods = world::bad_periods(self, Streams::new(seed, run), until);
        periods.iter().map(|(start, end)| (start.as_secs_f64(), end.as_secs_f64())).collect()
    }

    /// Run number `run` of a study seeded with `seed`, with the scheme called `scheme`, until the
    /// transfer is finished or the limit is reached.
    ///
    /// A pure function of its arguments: whatever is random comes from streams derived from `seed`,
    /// `run` and the part that draws. The air is drawn alike for every scheme, so that runs of
    /// different schemes with the same `seed` and `run` are a pair.
    ///
    /// # Errors
    /// If the scheme is unknown or cannot work with this link, if a scenario made in code has
    /// [faults](Scenario::faults), or if the pcapng file cannot be written.
    pub fn run(&self, scheme: &str, seed: u64, run: u64, observe: Observe<'_>) -> Result<Run, RunError> {
        self.run_while(scheme, seed, run, observe, || true)
    }

    /// As [`run`](Scenario::run), but asks `keep_going` every few milliseconds, and stops as soon as
    /// it says no.
    ///
    /// # Errors
    /// Also if it was stopped.
    pub fn run_while(
        &self,
        scheme: &str,
        seed: u64,
        run: u64,
        observe: Observe<'_>,
        keep_going: impl FnMut() -> bool,
    ) -> Result<Run, RunError> {
        let setup = self.set_up(scheme).map_err(RunError::Scenario)?;
        let (outcome, events, series) = if observe == Observe::default() {
            (setup.run(seed, run, keep_going).ok_or(RunError::Stopped)?, None, None)
        } else {
            setup.run_observed(seed, run, observe, keep_going)?
        };
        let Outcome { ended, metrics, handled } = outcome;
        Ok(Run { scheme: setup.scheme.name().to_owned(), seed, run, ended, metrics, handled, events, series })
    }

    /// Checks that the scenario can be run with the scheme called `scheme`.
    pub(crate) fn set_up(&self, scheme: &str) -> Result<Setup<'_>, ScenarioError> {
        let refuse = |message| {
            let place = Place::File { name: &self.file, text: "", span: None };
            ScenarioError::new(message, place)
        };
        if let Some(fault) = self.faults().first() {
            return Err(refuse(rephrase::at(&fault.path, &fault.problem)));
        }
        let scheme = self.workable(scheme).map_err(|problem| refuse(format!("scheme: {problem}")))?;
        Ok(Setup { scenario: self, scheme })
    }
}

impl Setup<'_> {
    /// One run with nothing recorded, as [`Scenario::run_while`] defines it; none if it was stopped.
    pub(crate) fn run(self, seed: u64, run: u64, keep_going: impl FnMut() -> bool) -> Option<Outcome> {
        let (ended, counts, drops) = self.play(self.world(seed, run), Drops::default(), keep_going);
        Some(self.measure(ended?, &counts, &drops))
    }

    fn run_observed(
        self,
        seed: u64,
        run: u64,
        observe: Observe<'_>,
        keep_going: impl FnMut() -> bool,
    ) -> Result<Observed, RunError> {
        let world = self.world(seed, run);
        let flow = world.flows[0];
        let tracer = observe.trace.then(|| Tracer::new(flow, &self.scenario.tcp));
        let recorder = observe.series.then(|| Recorder::new(flow.sender));
        let failed = |error| RunError::Capture(observe.pcap.unwrap_or(Path::new("")).to_owned(), error);
        let capture = observe.pcap.map(|path| self.capture(flow, path)).transpose().map_err(failed)?;
        let tap = (Drops::default(), (tracer, (recorder, capture)));
        let (ended, counts, (drops, (tracer, (recorder, capture)))) = self.play(world, tap, keep_going);
        capture.map(Pcapng::finish).transpose().map_err(failed)?;
        let outcome = self.measure(ended.ok_or(RunError::Stopped)?, &counts, &drops);
        Ok((outcome, tracer.map(Tracer::into_events), recorder.map(Recorder::into_series)))
    }

    fn world(self, seed: u64, run: u64) -> World {
        world::last_hop(self.scenario, self.scheme, Streams::new(seed, run))
    }

    /// Plays the world before `tap`, and hands it back with why it ended, unless it was stopped, and
    /// what its parts counted.
    fn play<T: Tap>(
        self,
        world: World,
        tap: T,
        keep_going: impl FnMut() -> bool,
    ) -> (Option<Ended>, Counts, T) {
        let World { builder, flows, radios } = world;
        let mut engine = builder.build(tap);
        let ended = engine.run_while(flows.len(), Time::ZERO + self.scenario.limit, keep_going);
        let (Node::Sender(sender), Node::Receiver(receiver)) =
            (engine.node(flows[0].sender), engine.node(flows[0].receiver))
        else {
            unreachable!("a flow has a sender and a receiver");
        };
        let radios = radios.iter().map(|&id| match engine.node(id) {
            Node::Radio(radio) => *radio.stats(),
            _ => unreachable!("a radio link was put there"),
        });
        let counts = Counts {
            end: engine.now(),
            handled: engine.handled(),
            sender: *sender.stats(),
            receiver: *receiver.stats(),
            radios: radios.collect(),
        };
        (ended, counts, engine.into_tap())
    }

    fn measure(self, ended: Ended, counts: &Counts, drops: &Drops) -> Outcome {
        let start = Time::ZERO + self.scenario.transfer.start;
        let metrics = Metrics::new(counts, drops, self.scenario.transfer.size, start);
        Outcome { ended, metrics, handled: counts.handled }
    }

    fn capture(self, flow: Flow, path: &Path) -> io::Result<Pcapng<BufWriter<File>>> {
        let capture = Capture {
            name: String::from("sender"),
            description: format!("The source of the data in {}", self.scenario.title),
            wires: vec![flow.sent, flow.returned],
            losses: true,
            // A segment fits an IP packet: the settings have no faults.
            mss: u16::try_from(self.scenario.tcp.mss()).unwrap_or(u16::MAX),
            largest_window: self.scenario.tcp.window_payload(),
            sack_permitted: self.scenario.tcp.sack(),
        };
        Pcapng::new(BufWriter::new(File::create(path)?), capture)
    }
}
