//! One run of a scenario.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use lasthop_base::{Streams, Time};
use lasthop_proto::tcp::Flavour;
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
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Scenario(error) => error.fmt(f),
            RunError::Capture(path, error) => write!(f, "cannot write {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for RunError {}

/// Why an observed run ended, what it is measured by and what was recorded of it.
type Observed = (Ended, Metrics, Option<Events>, Option<Series>);

impl Scenario {
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
        let refuse = |message| {
            let place = Place::File { name: &self.file, text: "", span: None };
            RunError::Scenario(ScenarioError::new(message, place))
        };
        if let Some(fault) = self.faults().first() {
            return Err(refuse(rephrase::at(&fault.path, &fault.problem)));
        }
        let scheme = self.workable(scheme).map_err(|problem| refuse(format!("scheme: {problem}")))?;
        let world = world::last_hop(self, scheme, Streams::new(seed, run));
        let (ended, metrics, events, series) = if observe == Observe::default() {
            let (ended, counts, drops) = self.play(world, Drops::default());
            (ended, self.measure(&counts, &drops), None, None)
        } else {
            self.play_observed(world, observe)?
        };
        Ok(Run { scheme: scheme.name().to_owned(), seed, run, ended, metrics, events, series })
    }

    /// Plays the world before `tap`, and hands it back with why it ended and what its parts counted.
    fn play<T: Tap>(&self, world: World, tap: T) -> (Ended, Counts, T) {
        let World { builder, flows, radios } = world;
        let mut engine = builder.build(tap);
        let ended = engine.run(flows.len(), Time::ZERO + self.limit);
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
            sender: *sender.stats(),
            receiver: *receiver.stats(),
            radios: radios.collect(),
        };
        (ended, counts, engine.into_tap())
    }

    fn play_observed(&self, world: World, observe: Observe<'_>) -> Result<Observed, RunError> {
        let flow = world.flows[0];
        let tracer = observe.trace.then(|| Tracer::new(flow, &self.tcp));
        let recorder = observe.series.then(|| Recorder::new(flow.sender));
        let failed = |error| RunError::Capture(observe.pcap.unwrap_or(Path::new("")).to_owned(), error);
        let capture = observe.pcap.map(|path| self.capture(flow, path)).transpose().map_err(failed)?;
        let tap = (Drops::default(), (tracer, (recorder, capture)));
        let (ended, counts, (drops, (tracer, (recorder, capture)))) = self.play(world, tap);
        capture.map(Pcapng::finish).transpose().map_err(failed)?;
        let metrics = self.measure(&counts, &drops);
        Ok((ended, metrics, tracer.map(Tracer::into_events), recorder.map(Recorder::into_series)))
    }

    fn measure(&self, counts: &Counts, drops: &Drops) -> Metrics {
        Metrics::new(counts, drops, self.transfer.size, Time::ZERO + self.transfer.start)
    }

    fn capture(&self, flow: Flow, path: &Path) -> io::Result<Pcapng<BufWriter<File>>> {
        let capture = Capture {
            name: String::from("sender"),
            description: format!("The source of the data in {}", self.title),
            wires: vec![flow.sent, flow.returned],
            losses: true,
            // A segment fits an IP packet: the settings have no faults.
            mss: u16::try_from(self.tcp.mss()).unwrap_or(u16::MAX),
            largest_window: self.tcp.window_payload(),
            sack_permitted: self.tcp.flavour == Flavour::Sack,
        };
        Pcapng::new(BufWriter::new(File::create(path)?), capture)
    }
}
