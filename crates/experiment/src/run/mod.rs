//! Single runs of a scenario: set-up, the loop and its limits, recordings. [`results`] are their results.

use std::fs::File;
use std::io::{self, BufWriter};
use std::iter;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use lasthop_base::{Bytes, Streams, Time};
use lasthop_capture::{CapturePoint, CapturedPart, MAX_FURTHER_PARTS, RunCapture};
use lasthop_link::queue::Waits;
use lasthop_proto::scheme::{Combination, LinkEnd};
use lasthop_proto::{ComponentId, FlowId, HostId};
use lasthop_scenario::network::Workload;
use lasthop_scenario::{ErrorKind, Scenario, ScenarioError};
use lasthop_sim::{Contents, Custody, Ended, Engine, NoTap, Node, Tap};

use crate::assemble::{ConnectionComponents, ConnectionPart, Layout, World};
use crate::measure::{
    ActivityMetrics, AgentCounters, ApplicationCounters, BssCounters, Counters, DelayRecorder, Delays,
    DropTap, EndpointCounters, Events, Measured, MetricNames, Metrics, RadioUse, Recorder, RelayCounters,
    Series, Tracer, TrafficCounters, by_scheme,
};

pub mod report;
mod results;

pub use results::{AgentRun, ConnectionRun, PartRun, Run, RunError, RunSummary};

/// Limit of packets in queues and in flight: about half a gigabyte of memory.
const MAX_PACKETS_HELD: usize = 4_000_000;

/// Limit of rows in traces and series: about half a gigabyte of memory.
const MAX_ROWS_RECORDED: usize = 4_000_000;

/// Text of a qlog that takes the memory of a row.
const BYTES_OF_A_ROW: usize = 100;

/// Recordings to make besides the metrics. Disabled recordings cost nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observe<'a> {
    /// Packet traces.
    pub trace: bool,
    /// Time series of each sender's state.
    pub series: bool,
    /// Delays of packets.
    pub delays: bool,
    /// Path of a pcapng file to write: a capture at the first connection's source, at the base stations that split it,
    /// and on both sides of agents at base stations, with all losses on a separate interface. With TLS, a key log beside it.
    pub pcap: Option<&'a Path>,
    /// The qlogs of connections and applications over QUIC.
    pub qlog: bool,
}

/// The recordings of one part of a connection.
type PartRecording = (Option<Events>, Option<Series>);

/// The recordings of a run.
#[derive(Default)]
struct Recordings {
    /// Parts of all connections, in order.
    parts: Vec<PartRecording>,
    /// The agents of the schemes, in order.
    agents: Vec<Series>,
    delays: Option<Delays>,
    qlogs: Vec<(FlowId, String)>,
}

/// A scenario with one of its combinations of schemes: common to all runs of a study.
#[derive(Debug)]
pub struct Setup<'a> {
    scenario: &'a Scenario,
    combination: Combination<'a>,
    layout: Arc<Layout>,
}

/// A [`Setup`] that owns its scenario, to be kept and shared by threads.
#[derive(Clone, Debug)]
pub struct SharedSetup {
    scenario: Arc<Scenario>,
    /// The name of a combination of the scenario's schemes.
    scheme: String,
    layout: Arc<Layout>,
}

impl SharedSetup {
    /// As [`Experiment::set_up`].
    ///
    /// # Errors
    /// As [`Experiment::set_up`].
    pub fn new(scenario: Arc<Scenario>, scheme: &str) -> Result<SharedSetup, ScenarioError> {
        let layout = scenario.set_up(scheme)?.layout;
        Ok(SharedSetup { scenario, scheme: scheme.to_owned(), layout })
    }

    /// The set-up; takes time independent of the size of the network.
    pub fn get(&self) -> Setup<'_> {
        let combination = self.scenario.scheme.combination(&self.scheme).expect("new() has checked it");
        Setup { scenario: &self.scenario, combination, layout: Arc::clone(&self.layout) }
    }
}

/// Runs of a scenario.
pub trait Experiment {
    /// Runs the scenario with the scheme `scheme`, until all finite transfers have finished or the time limit
    /// is reached. `run` is the run number within a study with seed `seed`.
    ///
    /// A pure function of its arguments: all random streams are derived from `seed`, `run` and the name of
    /// their component. Channel states are the same for every scheme, so runs of different schemes with the
    /// same `seed` and `run` are paired.
    ///
    /// # Errors
    /// If the scheme is unknown or does not support these links, if a scenario made in code has
    /// [faults](Scenario::faults), if packets in flight, recordings or the capture exceed their limits, or if the
    /// pcapng file cannot be written.
    fn run(&self, scheme: &str, seed: u64, run: u64, observe: Observe<'_>) -> Result<Run, RunError> {
        self.run_while(scheme, seed, run, observe, |_| true)
    }

    /// Like [`run`](Experiment::run), but calls `keep_going` with the simulated time every few milliseconds and stops
    /// once it returns false.
    ///
    /// # Errors
    /// Also if the run was stopped.
    fn run_while(
        &self,
        scheme: &str,
        seed: u64,
        run: u64,
        observe: Observe<'_>,
        mut keep_going: impl FnMut(Time) -> bool,
    ) -> Result<Run, RunError> {
        self.set_up(scheme).map_err(RunError::Scenario)?.run_recorded(seed, run, observe, &mut keep_going)
    }

    /// Prepares the scenario with the scheme `scheme` for many runs.
    ///
    /// # Errors
    /// If the scheme is unknown or does not support these links, or if a scenario made in code has
    /// [faults](Scenario::faults).
    fn set_up(&self, scheme: &str) -> Result<Setup<'_>, ScenarioError>;

    /// The names of the metrics of the agents of its schemes, `SCHEME.COUNTER`, in the order of the schemes.
    ///
    /// # Errors
    /// As [`set_up`](Experiment::set_up).
    fn counters(&self) -> Result<Vec<String>, ScenarioError>;

    /// The names of all metrics of its runs with any of its schemes.
    ///
    /// # Errors
    /// As [`set_up`](Experiment::set_up).
    fn metric_names(&self) -> Result<MetricNames, ScenarioError>;
}

impl Experiment for Scenario {
    fn set_up(&self, scheme: &str) -> Result<Setup<'_>, ScenarioError> {
        let network = self.network()?;
        let combination = self.combination_on(scheme, &network)?;
        let layout = Arc::new(Layout::new(network, &combination));
        Ok(Setup { scenario: self, combination, layout })
    }

    fn counters(&self) -> Result<Vec<String>, ScenarioError> {
        let mut names = MetricNames::default();
        for scheme in self.schemes.iter().filter(|scheme| has_agents(self, scheme)) {
            names.extend(self.set_up(scheme)?.metric_names());
        }
        Ok(names.of_the_run().skip(Metrics::names().count()).collect())
    }

    fn metric_names(&self) -> Result<MetricNames, ScenarioError> {
        let mut names = MetricNames::default();
        // The parts are those of every scheme, but for agents.
        for (index, scheme) in self.schemes.iter().enumerate() {
            if index == 0 || has_agents(self, scheme) {
                names.extend(self.set_up(scheme)?.metric_names());
            }
        }
        Ok(names)
    }
}

/// Whether the scheme `scheme` installs agents. An unknown one might.
fn has_agents(scenario: &Scenario, scheme: &str) -> bool {
    let ends = [LinkEnd::BaseStation, LinkEnd::MobileHost];
    let combination = scenario.scheme.combination(scheme);
    combination.map_or(true, |each| ends.into_iter().flat_map(|end| each.agents(end)).count() > 0)
}

/// Asked with the simulated time whether a run goes on. Not a type parameter, by which each caller would compile an engine of its
/// own.
pub type KeepGoing<'a> = &'a mut dyn FnMut(Time) -> bool;

/// An error if `keep_going` returns false.
fn check_progress(keep_going: KeepGoing<'_>, now: Time) -> Result<(), RunError> {
    keep_going(now).then_some(()).ok_or(RunError::Stopped)
}

impl<'a> Setup<'a> {
    /// The components of its runs.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The combination of schemes.
    pub fn combination(&self) -> &Combination<'a> {
        &self.combination
    }
}

impl Setup<'_> {
    /// The names of the metrics of its runs.
    pub fn metric_names(&self) -> MetricNames {
        let agents = self.layout.agent_components(&self.combination);
        let agents: Vec<_> = agents.map(|agent| AgentCounters::of(&agent)).collect();
        let mut counted = AgentCounters::default();
        if self.layout.readers(&self.combination).next().is_some()
            && let Some((_, sidecar)) = self.combination.sidecar()
        {
            sidecar().count(0, &mut counted);
        }
        let counters = by_scheme(self.counting_schemes().zip(agents.iter().chain([&counted])));
        let mut names = MetricNames::new(counters.iter());
        for flow in &self.layout.network().flows {
            match &flow.workload {
                Workload::Transfer { .. } => names.connection(&flow.name),
                Workload::Traffic { .. } => names.traffic(&flow.name),
                Workload::Application(config) => {
                    names.application(&flow.name, ActivityMetrics::names(&config.activity).iter().copied());
                }
                // Measured together with the first.
                Workload::Joined(_) => {}
            }
        }
        for (name, counters) in self.layout.agent_names().iter().zip(&agents) {
            names.agent(name, counters.names().collect());
        }
        names
    }

    /// A run with recordings, as defined by [`Experiment::run_while`].
    ///
    /// # Errors
    /// As [`Experiment::run_while`].
    pub fn run_recorded(
        &self,
        seed: u64,
        run: u64,
        observe: Observe<'_>,
        keep_going: KeepGoing<'_>,
    ) -> Result<Run, RunError> {
        let (outcome, records) = if observe == Observe::default() {
            (self.run(seed, run, keep_going)?, Recordings::default())
        } else {
            self.run_observed(seed, run, observe, keep_going)?
        };
        let RunSummary { ended, metrics, counters, agents, connections, traffic, applications, handled } =
            outcome;
        let network = self.layout.network();
        let (transfers, others) = network.flows.split_at(connections.len());
        let (others, dialogues) = others.split_at(traffic.len());
        let dialogues = dialogues.iter().filter(|flow| matches!(flow.workload, Workload::Application(_)));
        let Recordings { parts: records, agents: series, delays, qlogs } = records;
        let qlogs = qlogs.into_iter().map(|(id, text)| (network.flows[id.index()].name.clone(), text));
        let qlogs = qlogs.collect();
        let series = series.into_iter().map(Some).chain(iter::repeat(None));
        let agents = self.layout.agent_names().into_iter().zip(&agents).zip(series);
        let agents = agents.map(|((name, counters), series)| AgentRun {
            name,
            counters: counters.values().collect(),
            series,
        });
        let shows = |agent: &AgentRun| agent.series.as_ref().is_some_and(|series| !series.columns.is_empty());
        let agents = agents.filter(|agent| !agent.counters.is_empty() || shows(agent));
        let mut records = records.into_iter().chain(iter::repeat_with(PartRecording::default));
        let name = |node: HostId| network.names[node.index()].clone();
        let connections = transfers.iter().zip(connections).zip(self.layout.parts());
        let connections = connections.map(|((flow, metrics), parts)| {
            let parts = parts.iter().zip(&mut records);
            let parts = parts.map(|(part, (events, series))| {
                let [from, to] = part.nodes.map(name);
                PartRun { from, to, events, series }
            });
            ConnectionRun { name: flow.name.clone(), metrics, parts: parts.collect() }
        });
        let traffic = others.iter().map(|flow| flow.name.clone()).zip(traffic);
        let applications = dialogues.map(|flow| flow.name.clone()).zip(applications);
        let acted = metrics.connections.reactions > 0;
        let without_effect = if acted { Vec::new() } else { network.reacting(&self.combination) };
        Ok(Run {
            sender: self.scenario.sender.clone(),
            scheme: self.combination.name().to_owned(),
            seed,
            run,
            ended,
            metrics,
            counters,
            stacks: network.stacks(),
            without_effect,
            connections: connections.collect(),
            traffic: traffic.collect(),
            applications: applications.collect(),
            agents: agents.collect(),
            delays,
            qlogs,
            handled,
        })
    }

    /// A run without recording, as defined by [`Experiment::run_while`].
    ///
    /// # Errors
    /// If the run was stopped, or too many packets are in flight.
    pub fn run(&self, seed: u64, run: u64, keep_going: KeepGoing<'_>) -> Result<RunSummary, RunError> {
        let world = self.world(seed, run, false);
        // Most runs have no contents, and their engine none of what accounts for them.
        match self.custody(&world) {
            Some(custody) => self.play(world, custody, |now, _| check_progress(keep_going, now)).0,
            None => self.play(world, NoTap, |now, _| check_progress(keep_going, now)).0,
        }
    }

    fn run_observed(
        &self,
        seed: u64,
        run: u64,
        observe: Observe<'_>,
        keep_going: KeepGoing<'_>,
    ) -> Result<(RunSummary, Recordings), RunError> {
        let mut world = self.world(seed, run, observe.qlog);
        let logs = std::mem::take(&mut world.logs);
        let connections = &world.connections;
        let failed = |error| RunError::Capture(observe.pcap.unwrap_or(Path::new("")).to_owned(), error);
        let capture = match (observe.pcap, connections.first()) {
            (Some(_), None) => return Err(self.nothing_to_capture()),
            (Some(path), Some(flow)) => {
                Some(self.capture(*flow, path, world.contents.clone()).map_err(failed)?)
            }
            (None, _) => None,
        };
        let contents = &world.contents;
        let parts = self.layout.parts();
        let schemes: Rc<[_]> = self.layout.agents().map(|agent| (agent.id, agent.scheme)).collect();
        let tunnels: Rc<[_]> = self.layout.tunnels(&self.combination).concat().into();
        let recorders = connections.iter().zip(parts).enumerate().flat_map(|(index, (flow, parts))| {
            let (schemes, tunnels) = (Rc::clone(&schemes), Rc::clone(&tunnels));
            parts.iter().map(move |part| {
                let whole = parts.len() == 1;
                let settings = self.layout.settings(index, part);
                let tracer = observe.trace.then(|| {
                    let tracer =
                        Tracer::new(*flow, part.clone(), whole, settings, Rc::clone(&schemes), &tunnels);
                    let stack = self.layout.network().flows[index].stack.as_ref();
                    match contents.clone().zip(stack) {
                        Some((contents, stack)) => tracer.with_numbers(contents, stack.stack),
                        None => tracer,
                    }
                });
                (tracer, observe.series.then(|| Recorder::new(part.sender.id, flow.id)))
            })
        });
        let recorders: Vec<_> = recorders.collect();
        let agents = self.layout.agents().filter(|_| observe.series);
        let agents: Vec<_> = agents.map(|agent| Recorder::new(agent.id, FlowId(0))).collect();
        let rows = |recorder: &Option<Recorder>| recorder.as_ref().map_or(0, Recorder::rows);
        let delays = observe.delays.then(|| DelayRecorder::new(&self.layout));
        type Recorders = (Vec<(Option<Tracer>, Option<Recorder>)>, (Vec<Recorder>, Option<DelayRecorder>));
        type Taps<C> = (Recorders, (Option<RunCapture<C>>, Option<Custody>));
        let custody = self.custody(&world);
        let check = |now, ((recorders, (agents, delays)), (capture, _)): &Taps<_>| {
            let of_parts = recorders.iter().map(|(tracer, recorder): &(Option<Tracer>, _)| {
                tracer.as_ref().map_or(0, Tracer::rows) + rows(recorder)
            });
            let recorded = of_parts.chain(agents.iter().map(Recorder::rows)).sum::<usize>()
                + delays.as_ref().map_or(0, DelayRecorder::rows)
                + logs.iter().map(|(_, log)| log.size() / BYTES_OF_A_ROW).sum::<usize>();
            if recorded > MAX_ROWS_RECORDED {
                return Err(self.overrecorded(now));
            }
            if let Some(capture) = capture {
                if capture.has_failed() {
                    // `finish` returns the reason.
                    return Err(RunError::Stopped);
                } else if let Some(limit) = capture.limit() {
                    return Err(self.overcaptured(now, &limit));
                }
            }
            check_progress(keep_going, now)
        };
        let (outcome, ((recorders, (agents, delays)), (capture, _))) =
            self.play(world, ((recorders, (agents, delays)), (capture, custody)), check);
        capture.map(RunCapture::finish).transpose().map_err(failed)?;
        let parts = recorders
            .into_iter()
            .map(|(tracer, recorder)| (tracer.map(Tracer::into_events), recorder.map(Recorder::into_series)));
        let agents = agents.into_iter().map(Recorder::into_series);
        let delays = delays.map(DelayRecorder::into_delays);
        let qlogs = logs.iter().map(|(flow, log)| (*flow, log.take())).collect();
        let records = Recordings { parts: parts.collect(), agents: agents.collect(), delays, qlogs };
        Ok((outcome?, records))
    }

    fn world(&self, seed: u64, run: u64, is_logged: bool) -> World {
        // Of an earlier run, or of agents that were made for their counters.
        let _outdated = self.combination.take_failure();
        let streams = Streams::new(seed, run);
        match is_logged {
            true => self.layout.logged_world(&self.combination, streams),
            false => self.layout.world(&self.combination, streams),
        }
    }

    /// What accounts for the contents of packets, if the world has some.
    fn custody(&self, world: &World) -> Option<Custody> {
        let contents = world.contents.clone()?;
        Some(Custody::new(contents, world.builder.len(), self.layout.keepers()))
    }

    /// Runs the world with `tap` as observer, and returns the tap with the result. Calls `check` with the
    /// simulated time every few milliseconds; an error ends the run.
    fn play<T: Tap>(
        &self,
        world: World,
        tap: T,
        mut check: impl FnMut(Time, &T) -> Result<(), RunError>,
    ) -> (Result<RunSummary, RunError>, T) {
        let World {
            builder,
            connections,
            traffic,
            applications,
            radios,
            wired,
            shared,
            bsses,
            contents,
            logs: _,
        } = world;
        let awaited = self.layout.awaited();
        let counted = CountedComponents {
            layout: &self.layout,
            connections,
            traffic,
            applications,
            radios,
            wired,
            shared,
            bsses,
            readers: self.layout.readers(&self.combination).collect(),
        };
        let begin = Time::ZERO + self.scenario.warmup;
        let limit = Time::ZERO + self.scenario.limit;
        let drops = DropTap::new(self.layout.network().flows.len());
        let mut engine = builder.build((drops, tap));
        let started = Counters { at: begin, agents: counted.agents(&engine), ..Counters::default() };
        // Called from a single place, so that the engine's loop is inlined.
        let mut run_until = |engine: &mut Engine<(DropTap, T)>, limit| loop {
            let ended = engine.run_while(&awaited, limit, || false);
            self.check_schemes()?;
            if let Some(ended) = ended {
                return Ok(ended);
            } else if engine.packets_held() > MAX_PACKETS_HELD {
                return Err(self.overfull(engine.now()));
            }
            if let Some(contents) = &contents {
                self.release(contents, engine);
            }
            check(engine.now(), &engine.tap().1)?;
        };
        let warmup = match begin > Time::ZERO {
            true => match run_until(&mut engine, begin) {
                Ok(_) => {
                    let counts = counted.counts(&engine);
                    if let Err(error) = self.check_schemes() {
                        return (Err(error), engine.into_tap().1);
                    }
                    counts.agents.iter().zip(&started.agents).for_each(|(now, then)| now.check(then));
                    counts
                }
                Err(error) => return (Err(error), engine.into_tap().1),
            },
            false => started,
        };
        let ended = run_until(&mut engine, limit);
        let ended = match contents.is_some_and(|contents| contents.is_overfull()) {
            true => Err(self.overfull(engine.now())),
            false => ended,
        };
        let (end, handled) = (counted.counts(&engine), engine.handled());
        let ended = ended.and_then(|ended| self.check_schemes().map(|()| ended));
        let (_, tap) = engine.into_tap();
        let measured = Measured { warmup: &warmup, end: &end };
        (ended.map(|ended| self.measure(ended, &measured, handled)), tap)
    }

    /// Forgets contents that neither the network nor an agent has.
    fn release<T: Tap>(&self, contents: &Contents, engine: &Engine<T>) {
        if contents.is_worth_a_pass() {
            let mut kept = Vec::new();
            for agent in self.layout.keepers() {
                engine.node(agent).kept(&mut |packet| kept.push(packet.handle));
            }
            contents.sweep(&kept);
        }
    }

    /// An error if an external scheme has failed.
    fn check_schemes(&self) -> Result<(), RunError> {
        self.combination.take_failure().map_or(Ok(()), |failure| Err(RunError::Scheme(failure)))
    }

    /// The error for a capture of a run without connections.
    fn nothing_to_capture(&self) -> RunError {
        let message = "pcap: found no connection, expected one, at whose source packets are captured; \
                       add a table [transfer]";
        RunError::Scenario(self.scenario.error(ErrorKind::Request, String::from(message)))
    }

    /// The error for a run whose packets exceed the memory limit at `now`.
    fn overfull(&self, now: Time) -> RunError {
        let message = format!(
            "after {now} more than {MAX_PACKETS_HELD} packets wait before links or are on their way; \
             give queues a limit, such as queue = \"100 packets\", or make rates or delays lower"
        );
        RunError::Scenario(self.scenario.error(ErrorKind::Limit, message))
    }

    /// The error for a run whose recordings exceed the memory limit at `now`.
    fn overrecorded(&self, now: Time) -> RunError {
        let message = format!(
            "after {now} the traces, series and qlogs of this run have more than {MAX_ROWS_RECORDED} rows; lower the \
             limit or the size of transfers, or run without them"
        );
        RunError::Scenario(self.scenario.error(ErrorKind::Limit, message))
    }

    /// The error for a run whose capture has reached its `limit` at `now`.
    fn overcaptured(&self, now: Time, limit: &str) -> RunError {
        let message = format!(
            "after {now} the capture of this run has reached its limit of {limit}; lower the limit \
             or the size of transfers, or run without a capture"
        );
        RunError::Scenario(self.scenario.error(ErrorKind::Limit, message))
    }

    fn measure(&self, ended: Ended, measured: &Measured<'_>, handled: u64) -> RunSummary {
        let (mut connections, mut traffic, mut applications) = (Vec::new(), Vec::new(), Vec::new());
        let flows = &self.layout.network().flows;
        for (index, flow) in flows.iter().enumerate() {
            match &flow.workload {
                Workload::Transfer { transfer, .. } => {
                    let size = transfer.bytes.map(Bytes);
                    connections.push(measured.connection(connections.len(), size, transfer.start));
                }
                Workload::Traffic { config, voip } => {
                    traffic.push(measured.traffic(traffic.len(), config, voip.as_ref()));
                }
                Workload::Application(config) => {
                    let flows = index..index + 2 * usize::from(config.activity.connections());
                    applications.push(measured.application(applications.len(), flows));
                }
                // Measured together with the first.
                Workload::Joined(_) => {}
            }
        }
        let delivered = connections.iter().map(|each| each.metrics.delivered_bytes);
        let dialogues =
            applications.iter().map(|each| each.metrics.request_bytes + each.metrics.response_bytes);
        let delivered = Bytes(delivered.chain(dialogues).sum()) + measured.delivered_by_datagrams();
        let radios = self.layout.radio_directions();
        let radios = RadioUse::new(self.layout.network(), radios, measured, delivered);
        let metrics = measured.total(&connections, radios);
        let agents = measured.agents();
        let counters = by_scheme(self.counting_schemes().zip(&agents));
        let connections = connections.into_iter().map(|each| each.metrics).collect();
        RunSummary { ended, metrics, counters, agents, connections, traffic, applications, handled }
    }

    /// The schemes whose counters are those of agents, and then of readers.
    fn counting_schemes(&self) -> impl Iterator<Item = &'static str> {
        let readers = self.combination.reporter().into_iter().flat_map(iter::repeat);
        self.layout.agents().map(|agent| agent.scheme).chain(readers)
    }

    /// The captures of the further parts of connection number `index`, and of both sides of the agents at base stations
    /// and routers.
    fn captured_parts(&self, index: usize) -> Vec<CapturedPart> {
        let parts = &self.layout.parts()[index];
        let capture = |name: String, description, wires, part: &ConnectionPart, links: &[ComponentId]| {
            let tcp = self.layout.settings(index, part);
            CapturedPart {
                name,
                description,
                flow: FlowId(index as u32),
                wires,
                links: links.to_vec(),
                mss: tcp.announced_mss(),
                largest_window: tcp.window_payload(),
                sack_permitted: tcp.sack(),
            }
        };
        let further = parts.iter().skip(1).map(|part| {
            let [begin, end] = part.nodes.map(|node| &self.layout.network().names[node.index()]);
            let wires = self.layout.wires_at(|place| part.sender.is(place));
            capture(begin.clone(), format!("Where {begin} sends on to {end}"), wires, part, &part.links)
        });
        let sides = self.layout.stations(index).into_iter().flat_map(|(name, sides)| {
            ["wired", "wireless"].into_iter().zip(sides).map(move |(side, places)| {
                let is_of = |part: &&ConnectionPart| places.iter().any(|place| part.includes(*place));
                let part = parts.iter().find(is_of).unwrap_or(&parts[0]);
                let description = format!("The {side} side of the agents at {name}");
                // What is lost there belongs to the parts.
                let wires = self.layout.wires_at(|other| places.contains(&other));
                capture(format!("{name}-{side}"), description, wires, part, &[])
            })
        });
        further.chain(sides).take(MAX_FURTHER_PARTS).collect()
    }

    fn capture(
        &self,
        flow: ConnectionComponents,
        path: &Path,
        contents: Option<Contents>,
    ) -> io::Result<RunCapture<BufWriter<File>>> {
        let index = flow.id.index();
        let tcp = self.layout.settings(index, &self.layout.parts()[index][0]);
        let point = CapturePoint {
            name: String::from("sender"),
            description: format!("The source of the data in {}", self.scenario.title),
            wires: self.layout.wires_at(|place| self.layout.parts()[index][0].sender.is(place)),
            losses: true,
            mss: tcp.announced_mss(),
            largest_window: tcp.window_payload(),
            sack_permitted: tcp.sack(),
            parts: self.captured_parts(index),
        };
        RunCapture::create(path, point, contents)
    }
}

/// Ids of the components with counters.
struct CountedComponents<'a> {
    layout: &'a Layout,
    connections: Vec<ConnectionComponents>,
    traffic: Vec<(ComponentId, ComponentId)>,
    applications: Vec<(ComponentId, ComponentId)>,
    radios: Vec<ComponentId>,
    wired: Vec<ComponentId>,
    shared: Vec<ComponentId>,
    bsses: Vec<(ComponentId, usize)>,
    /// Ends at which a scheme has something that counts.
    readers: Vec<ComponentId>,
}

impl CountedComponents<'_> {
    fn counts<T: Tap>(&self, engine: &Engine<(DropTap, T)>) -> Counters {
        let connections = self.connections.iter().enumerate().map(|(index, flow)| {
            let mut relayed = RelayCounters::default();
            for proxy in self.layout.relays(index) {
                let Node::Proxy(proxy) = engine.node(proxy) else {
                    unreachable!("a connection is split by proxies")
                };
                relayed.add(proxy.relay(flow.id).expect("the proxy splits this flow"));
            }
            let report = |end| engine.node(end).report().expect("an end of a connection reports");
            EndpointCounters { sender: report(flow.sender), receiver: report(flow.receiver), relayed }
        });
        let traffic =
            self.traffic.iter().map(|&(source, sink)| match (engine.node(source), engine.node(sink)) {
                (Node::Source(source), Node::Sink(sink)) => TrafficCounters::of(source, sink),
                _ => unreachable!("traffic has a source and a sink"),
            });
        let applications = self.applications.iter().map(|&(client, server)| {
            ApplicationCounters::of(engine.node(client), engine.node(server), engine.now())
        });
        let radios = self.radios.iter().map(|&id| match engine.node(id) {
            Node::Link(link) => link.stats(),
            _ => unreachable!("the component is a wireless link"),
        });
        let shared = self.shared.iter().flat_map(|&id| match engine.node(id) {
            Node::Shared(radio) => radio.stats(),
            _ => unreachable!("the component is a shared radio"),
        });
        let wired = self.wired.iter().map(|&id| match engine.node(id) {
            Node::Link(link) => link.stats(),
            _ => unreachable!("the component is a wired link"),
        });
        let bsses = self.bsses.iter().map(|&(id, stations)| match engine.node(id) {
            Node::Bss(bss) => BssCounters::of(bss, stations),
            Node::Wifi(bss) => BssCounters::of_wifi(bss, stations),
            _ => unreachable!("the component is a BSS"),
        });
        let mut drops = engine.tap().0.clone();
        self.layout.agents().for_each(|agent| drops.add_repairs(engine.node(agent.id)));
        Counters {
            at: engine.now(),
            connections: connections.collect(),
            traffic: traffic.collect(),
            applications: applications.collect(),
            radios: radios.chain(shared).collect(),
            marked: wired.clone().map(|link| link.marked).sum(),
            waits: [0, 1]
                .map(|queue| wired.clone().map(|link| link.waits[queue]).fold(Waits::default(), Waits::and)),
            bsses: bsses.collect(),
            agents: self.agents(engine),
            drops,
        }
    }

    fn agents<T: Tap>(&self, engine: &Engine<(DropTap, T)>) -> Vec<AgentCounters> {
        let ids = self.layout.agents().map(|agent| agent.id).chain(self.readers.iter().copied());
        ids.map(|id| AgentCounters::of(engine.node(id))).collect()
    }
}
