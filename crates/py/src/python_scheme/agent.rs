//! Agents written in Python.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lasthop_base::{Duration, Stream};
use lasthop_proto::scheme::{LinkEnd, Site};
use lasthop_proto::{Component, DropReason, Effect, LinkOutcome, Out, Packet, Port, Signal, Tally};
use lasthop_scenario::Time;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::intern;
use super::part::{Object, Part};
use super::values::{PyPacket, PyPort, PySignal, outcome_name};

/// The hooks of an agent; `next_wakeup` is the first of each list.
pub(super) const HOOKS: &[&str] =
    &["next_wakeup", "receive", "on_signal", "count", "needs_outcome", "needs_corrupted"];
const RECEIVE: usize = 1;
const ON_SIGNAL: usize = 2;
const COUNT: usize = 3;
const NEEDS_OUTCOME: usize = 4;
const NEEDS_CORRUPTED: usize = 5;

/// The site of an agent: an end of a wireless link, or of a wired one that leads from a router to mobile hosts.
///
/// Attributes
/// ----------
/// end : str
///     ``"base-station"`` or ``"mobile-host"``. An agent at a router is at the end of the base station.
/// is_router : bool
///     Whether the agent is at a router, in front of the wireless link.
/// node : str
///     Name of the base station, the mobile host or the router.
/// station : int or None
///     If the mobile host moves: the number of the base station among those of the host.
/// link : str
///     Name of the link.
/// rate_bps, arriving_rate_bps : int
///     Gross bit rates of the direction in which the agent sends, and of the opposite one.
/// delay_ns : int
///     Propagation delay of the direction in which the agent sends, in nanoseconds.
/// hosts : tuple of int or None
///     At a mobile host: the hosts that are reached over the link.
#[pyclass(frozen, name = "Site", module = "lasthop._lasthop")]
pub(crate) struct PySite {
    #[pyo3(get)]
    end: &'static str,
    #[pyo3(get)]
    is_router: bool,
    #[pyo3(get)]
    node: String,
    #[pyo3(get)]
    station: Option<u16>,
    #[pyo3(get)]
    link: String,
    #[pyo3(get)]
    rate_bps: u64,
    #[pyo3(get)]
    arriving_rate_bps: u64,
    #[pyo3(get)]
    delay_ns: u64,
    hosts: Option<Vec<u32>>,
    /// Site and scheme are in the names of its streams.
    streams: lasthop_base::Streams,
    scheme: &'static str,
}

impl PySite {
    fn of(site: &Site<'_>, scheme: &'static str) -> PySite {
        PySite {
            end: match site.end {
                LinkEnd::BaseStation => "base-station",
                LinkEnd::MobileHost => "mobile-host",
            },
            is_router: site.is_router,
            node: site.node.to_owned(),
            station: site.station,
            link: site.link.to_owned(),
            rate_bps: site.rate.as_bps(),
            arriving_rate_bps: site.arriving_rate.as_bps(),
            delay_ns: site.delay.as_nanos(),
            hosts: site.hosts.map(|hosts| hosts.iter().map(|host| host.0).collect()),
            streams: site.streams,
            scheme,
        }
    }
}

#[pymethods]
impl PySite {
    #[getter]
    fn hosts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.hosts.as_ref().map(|hosts| PyTuple::new(py, hosts)).transpose()
    }

    /// Return a random stream of this scheme at this site, at its start.
    ///
    /// Its draws depend on the seed, the run number, the site, the scheme and the name only. It is the one source of
    /// randomness with which a run can be repeated.
    ///
    /// Parameters
    /// ----------
    /// name : str, default ""
    ///     Different names give independent streams.
    ///
    /// Returns
    /// -------
    /// Stream
    ///     The stream.
    #[pyo3(signature = (name = ""))]
    fn stream(&self, name: &str) -> PyStream {
        let name = match name {
            "" => format!("{}:{}:{}", self.scheme, self.link, self.node),
            name => format!("{}:{}:{}:{name}", self.scheme, self.link, self.node),
        };
        PyStream(Mutex::new(self.streams.stream(&name)))
    }

    fn __repr__(&self) -> String {
        format!("<Site {} {:?} of link {:?}>", self.end, self.node, self.link)
    }
}

/// A random stream. Created by `Site.stream`.
#[pyclass(frozen, name = "Stream", module = "lasthop._lasthop")]
pub(crate) struct PyStream(Mutex<Stream>);

impl PyStream {
    fn draw<T>(&self, draw: impl FnOnce(&mut Stream) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[pymethods]
impl PyStream {
    /// Return a number that is uniformly distributed in [0, 1).
    ///
    /// Returns
    /// -------
    /// float
    ///     The number.
    fn uniform(&self) -> f64 {
        self.draw(Stream::uniform)
    }

    /// Return an integer that is uniformly distributed from 0 to below `n`.
    ///
    /// Parameters
    /// ----------
    /// n : int
    ///     At least 1.
    ///
    /// Returns
    /// -------
    /// int
    ///     The integer.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If `n` is 0.
    fn below(&self, n: u64) -> PyResult<u64> {
        match n {
            0 => Err(PyValueError::new_err("n: found 0, expected at least 1")),
            n => Ok(self.draw(|stream| stream.below(n))),
        }
    }

    /// Return whether an event of some probability occurs.
    ///
    /// Parameters
    /// ----------
    /// p : float
    ///     The probability.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether it does.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If `p` is not in [0, 1].
    fn bernoulli(&self, p: f64) -> PyResult<bool> {
        if !(0.0..=1.0).contains(&p) {
            return Err(PyValueError::new_err(format!("p: found {p}, expected a probability from 0 to 1")));
        }
        Ok(self.draw(|stream| stream.bernoulli(p)))
    }

    /// Return a time that is exponentially distributed.
    ///
    /// Parameters
    /// ----------
    /// mean_ns : int
    ///     Its mean in nanoseconds.
    ///
    /// Returns
    /// -------
    /// int
    ///     Nanoseconds.
    fn exponential(&self, mean_ns: u64) -> u64 {
        self.draw(|stream| stream.exponential(Duration::from_nanos(mean_ns))).as_nanos()
    }

    /// Return a number of the standard normal distribution.
    ///
    /// Returns
    /// -------
    /// float
    ///     The number.
    fn normal(&self) -> f64 {
        self.draw(Stream::normal)
    }
}

/// The output of an agent during a callback.
#[pyclass(frozen, name = "Out", module = "lasthop._lasthop")]
#[derive(Debug, Default)]
pub(crate) struct PyOut(Mutex<Option<Vec<Effect>>>);

impl PyOut {
    fn effects(&self) -> std::sync::MutexGuard<'_, Option<Vec<Effect>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, effect: Effect) -> PyResult<()> {
        let mut effects = self.effects();
        let open = effects.as_mut().ok_or_else(|| {
            PyRuntimeError::new_err("out is used after its callback: keep the packet, and send it in wake")
        })?;
        open.push(effect);
        Ok(())
    }
}

#[pymethods]
impl PyOut {
    /// Send a packet; it reaches the neighbour at the same instant.
    ///
    /// Parameters
    /// ----------
    /// port : Port
    ///     The side to which it goes. On the side of the link it joins the queue.
    /// packet : Packet
    ///     The packet: the one received, a changed or held one, a copy, or a new one.
    fn send(&self, port: PyPort, packet: PyPacket) -> PyResult<()> {
        self.push(Effect::Send(port.port(), packet.0))
    }

    /// Drop a packet, which traces record as suppressed by the agent.
    ///
    /// Parameters
    /// ----------
    /// packet : Packet
    ///     The packet.
    fn drop(&self, packet: PyPacket) -> PyResult<()> {
        self.push(Effect::Drop(packet.0, DropReason::Suppressed))
    }
}

/// The kind of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Total,
    Level,
    Peak,
}

/// Receives the counters of an agent.
#[pyclass(frozen, name = "Tally", module = "lasthop._lasthop")]
#[derive(Default)]
pub(crate) struct PyTally(Mutex<Vec<(&'static str, Kind, u64)>>);

impl PyTally {
    fn push(&self, name: &str, kind: Kind, value: u64) -> PyResult<()> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !name.split('_').all(is_word) {
            return Err(PyValueError::new_err(format!(
                "counter: found {name:?}, expected lower-case words joined by underscores, such as \"packets_held\""
            )));
        }
        let mut counters = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counters.iter().any(|(other, ..)| *other == name) {
            return Err(PyValueError::new_err(format!(
                "counter: found {name:?} a second time, expected it once"
            )));
        }
        counters.push((intern(name), kind, value));
        Ok(())
    }
}

#[pymethods]
impl PyTally {
    /// Report a total since the start of the run. Its metric is the increase after the warm-up.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     Lower-case words joined by underscores, ending with the unit unless it is a number.
    /// value : int
    ///     The total.
    fn total(&self, name: &str, value: u64) -> PyResult<()> {
        self.push(name, Kind::Total, value)
    }

    /// Report a current value. Its metric is the value at the end of the run.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     As in `total`.
    /// value : int
    ///     The value.
    fn level(&self, name: &str, value: u64) -> PyResult<()> {
        self.push(name, Kind::Level, value)
    }

    /// Report the greatest value of a level since the start of the run.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     As in `total`.
    /// value : int
    ///     The value.
    fn peak(&self, name: &str, value: u64) -> PyResult<()> {
        self.push(name, Kind::Peak, value)
    }
}

/// The agents that a scheme installs at one end of wireless links.
pub(super) struct AgentPart {
    part: Part,
    /// The counters that the first of them has reported; the others must report the same.
    counters: OnceLock<Vec<(&'static str, Kind)>>,
    /// The counters of all agents of the scheme.
    known: Arc<Mutex<Vec<(&'static str, Kind)>>>,
}

impl AgentPart {
    pub(super) fn new(part: Part, known: Arc<Mutex<Vec<(&'static str, Kind)>>>) -> AgentPart {
        AgentPart { part, counters: OnceLock::new(), known }
    }

    /// Declares the counters of the first agent.
    fn declare(&self, found: &[(&'static str, Kind, u64)]) -> PyResult<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for &(name, kind, _) in found {
            match known.iter().find(|(other, _)| *other == name) {
                None => known.push((name, kind)),
                Some((_, other)) if *other == kind => {}
                Some(_) => {
                    return Err(PyValueError::new_err(format!(
                        "counter: {name:?} is of two kinds; expected total, level or peak from all agents of the scheme"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The values of the counters as declared.
    fn check(&self, found: &[(&'static str, Kind, u64)]) -> PyResult<()> {
        if self.counters.get().is_none() {
            self.declare(found)?;
        }
        let first =
            self.counters.get_or_init(|| found.iter().map(|(name, kind, _)| (*name, *kind)).collect());
        let same = first.iter().copied().eq(found.iter().map(|(name, kind, _)| (*name, *kind)));
        let names = |names: Vec<&str>| names.join(", ");
        match same {
            true => Ok(()),
            false => Err(PyValueError::new_err(format!(
                "count: found the counters [{}], expected the same at every call: [{}]",
                names(found.iter().map(|(name, ..)| *name).collect()),
                names(first.iter().map(|(name, _)| *name).collect()),
            ))),
        }
    }
}

/// An agent written in Python.
pub(super) struct Agent {
    part: Arc<AgentPart>,
    object: Object,
    out: Option<Py<PyOut>>,
    needs_outcome: [bool; 3],
    needs_corrupted: bool,
}

impl Agent {
    pub(super) fn new(part: &Arc<AgentPart>, site: &Site<'_>) -> Agent {
        let scheme = part.part.scheme;
        let object = part.part.make(|py| PyTuple::new(py, [Bound::new(py, PySite::of(site, scheme))?]));
        let ask = |hook, argument: Option<&'static str>| {
            object.defines(hook).then(|| {
                object.ask(|_, object| {
                    object.call_method1(HOOKS[hook], PyTuple::new(object.py(), argument)?)?.extract::<bool>()
                })
            })
        };
        // Signals without a handler need no call.
        let takes_signals = object.defines(ON_SIGNAL);
        let needs_outcome = LinkOutcome::ALL.map(|outcome| {
            takes_signals
                && ask(NEEDS_OUTCOME, Some(outcome_name(outcome)))
                    .is_none_or(|answer| answer.unwrap_or(false))
        });
        let needs_corrupted = takes_signals && ask(NEEDS_CORRUPTED, None).flatten().unwrap_or(false);
        let out = Python::attach(|py| Py::new(py, PyOut::default())).ok();
        Agent { part: Arc::clone(part), object, out, needs_outcome, needs_corrupted }
    }

    /// Calls a hook with its `out`, and emits the effects. Returns whether there were any.
    fn call(
        &mut self,
        now: Time,
        out: &mut Out,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, PyOut>) -> PyResult<()>,
    ) -> Option<bool> {
        let handle = self.out.as_ref()?;
        let effects = self.object.tell(now, |py, object| {
            let handle = handle.bind(py);
            *handle.get().effects() = Some(Vec::new());
            let result = call(object, handle);
            let effects = handle.get().effects().take().unwrap_or_default();
            result.map(|()| effects)
        })?;
        let any = !effects.is_empty();
        for effect in effects {
            match effect {
                Effect::Send(port, packet) => out.send(port, packet),
                Effect::Drop(packet, reason) => out.drop(packet, reason),
                Effect::Corrupt(port, packet) => out.corrupt(port, packet),
                Effect::Signal(signal) => out.signal(signal),
            }
        }
        Some(any)
    }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let called = self.object.defines(RECEIVE).then(|| {
            self.call(now, out, |object, handle| {
                let arguments = (now.as_nanos(), PyPacket(*packet), PyPort::of(port), handle);
                object.call_method1(pyo3::intern!(object.py(), "receive"), arguments).map(drop)
            })
        });
        // Without the hook, or once the run has failed, packets pass.
        if called.flatten().is_none() {
            out.send(port.across(), *packet);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let emitted = self.call(now, out, |object, handle| {
            object.call_method1(pyo3::intern!(object.py(), "wake"), (now.as_nanos(), handle)).map(drop)
        });
        if emitted == Some(false) {
            self.object.check_progress(now, "wake");
        }
    }

    fn next_wakeup(&self) -> Time {
        self.object.next_wakeup()
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        if self.object.defines(ON_SIGNAL) {
            self.call(now, out, |object, handle| {
                let arguments = (now.as_nanos(), PySignal::from(signal), handle);
                object.call_method1(pyo3::intern!(object.py(), "on_signal"), arguments).map(drop)
            });
        }
    }

    fn needs_outcome(&self, outcome: LinkOutcome) -> bool {
        let index = LinkOutcome::ALL.iter().position(|each| *each == outcome);
        index.is_some_and(|index| self.needs_outcome[index])
    }

    fn needs_corrupted(&self) -> bool {
        self.needs_corrupted
    }

    fn count(&self, tally: &mut dyn Tally) {
        if !self.object.defines(COUNT) {
            return;
        }
        let found = self.object.ask(|py, object| {
            let handle = Bound::new(py, PyTally::default())?;
            object.call_method1(pyo3::intern!(py, "count"), (&handle,))?;
            let found = std::mem::take(&mut *handle.get().0.lock().unwrap_or_else(PoisonError::into_inner));
            self.part.check(&found)?;
            Ok(found)
        });
        // Once the run has failed, only the names matter.
        let found = found.unwrap_or_else(|| {
            let declared = self.part.counters.get().into_iter().flatten();
            declared.map(|(name, kind)| (*name, *kind, 0)).collect()
        });
        for (name, kind, value) in found {
            match kind {
                Kind::Total => tally.total(name, value),
                Kind::Level => tally.level(name, value),
                Kind::Peak => tally.peak(name, value),
            }
        }
    }
}
