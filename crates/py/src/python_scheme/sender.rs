//! Reactions of senders written in Python.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lasthop_proto::tcp::{Evidence, Hole, Reaction, Response, Segment, SenderState, SeqNum};
use lasthop_proto::{Dscp, Notice, Reach};
use lasthop_scenario::Time;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::part::{Object, Part};
use super::values::{PyNotice, PySegment, PySeqNum, Sequence, code_point, reach_name};

/// The hooks of a reaction; `next_wakeup` is the first of each list.
pub(super) const HOOKS: &[&str] = &[
    "next_wakeup",
    "on_start",
    "on_notice",
    "on_reach",
    "on_segment",
    "dscp",
    "on_sent",
    "dupthresh",
    "extension",
    "judge",
    "is_corruption",
    "takes",
];
const ON_START: usize = 1;
const ON_NOTICE: usize = 2;
const ON_REACH: usize = 3;
const ON_SEGMENT: usize = 4;
const DSCP: usize = 5;
const ON_SENT: usize = 6;
const DUPTHRESH: usize = 7;
const EXTENSION: usize = 8;
const JUDGE: usize = 9;
const IS_CORRUPTION: usize = 10;
const TAKES: usize = 11;

/// A hole in the data at a sender.
///
/// Attributes
/// ----------
/// seq : SeqNum
///     The first missing sequence number.
/// evidence : str
///     How the loss was detected: ``"duplicates"``, ``"partial"``, ``"sack"``, ``"mark"``, ``"probe"`` or ``"timeout"``.
#[pyclass(frozen, name = "Hole", module = "lasthop._lasthop")]
pub(crate) struct PyHole(Hole);

#[pymethods]
impl PyHole {
    #[getter]
    fn seq(&self) -> PySeqNum {
        PySeqNum(self.0.seq)
    }

    #[getter]
    fn evidence(&self) -> &'static str {
        match self.0.evidence {
            Evidence::Duplicates => "duplicates",
            Evidence::Partial => "partial",
            Evidence::Sack => "sack",
            Evidence::Mark => "mark",
            Evidence::Probe => "probe",
            Evidence::Timeout => "timeout",
        }
    }

    fn __repr__(&self) -> String {
        format!("<Hole at {}, by {}>", self.0.seq, self.evidence())
    }
}

/// A snapshot of the sender's state.
#[derive(Clone, Copy, Debug)]
struct View {
    snd_una: SeqNum,
    snd_nxt: SeqNum,
    snd_max: SeqNum,
    mss: u32,
    cwnd: f64,
    ssthresh: f64,
    dupacks: u32,
}

impl From<&SenderState> for View {
    fn from(sender: &SenderState) -> View {
        View {
            snd_una: sender.snd_una(),
            snd_nxt: sender.snd_nxt(),
            snd_max: sender.snd_max(),
            mss: sender.mss(),
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            dupacks: sender.dupacks(),
        }
    }
}

/// The sender, lent while a hook runs.
#[derive(Debug, Default)]
enum Lent {
    /// No hook runs.
    #[default]
    Nothing,
    /// The sender itself.
    Whole(Box<SenderState>),
    /// A read-only view, in hooks that may not change it.
    View(View),
}

/// The state of a sending TCP, and what a reaction may do with it. It is valid during a callback only.
///
/// Attributes
/// ----------
/// snd_una : SeqNum
///     The first sequence number not acknowledged.
/// snd_nxt : SeqNum
///     The next one to send; a timeout moves it back.
/// snd_max : SeqNum
///     One past the highest ever sent.
/// mss : int
///     Payload of a full segment, in bytes.
/// cwnd, ssthresh : float
///     Congestion window and slow-start threshold, in bytes.
/// dupacks : int
///     Duplicate acknowledgements in a row.
#[pyclass(frozen, name = "SenderState", module = "lasthop._lasthop")]
#[derive(Debug, Default)]
pub(crate) struct PySenderState(Mutex<Lent>);

impl PySenderState {
    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> PyResult<View> {
        match &*self.lent() {
            Lent::Whole(sender) => Ok(View::from(&**sender)),
            Lent::View(view) => Ok(*view),
            Lent::Nothing => Err(PyRuntimeError::new_err("the sender is used after its callback")),
        }
    }

    fn with<T>(&self, action: impl FnOnce(&mut SenderState) -> T) -> PyResult<T> {
        match &mut *self.lent() {
            Lent::Whole(sender) => Ok(action(sender)),
            Lent::View(_) => Err(PyRuntimeError::new_err(
                "the sender cannot be changed in this callback, only in those about what happened",
            )),
            Lent::Nothing => Err(PyRuntimeError::new_err("the sender is used after its callback")),
        }
    }
}

#[pymethods]
impl PySenderState {
    #[getter]
    fn snd_una(&self) -> PyResult<PySeqNum> {
        Ok(PySeqNum(self.view()?.snd_una))
    }

    #[getter]
    fn snd_nxt(&self) -> PyResult<PySeqNum> {
        Ok(PySeqNum(self.view()?.snd_nxt))
    }

    #[getter]
    fn snd_max(&self) -> PyResult<PySeqNum> {
        Ok(PySeqNum(self.view()?.snd_max))
    }

    #[getter]
    fn mss(&self) -> PyResult<u32> {
        Ok(self.view()?.mss)
    }

    #[getter]
    fn cwnd(&self) -> PyResult<f64> {
        Ok(self.view()?.cwnd)
    }

    #[getter]
    fn ssthresh(&self) -> PyResult<f64> {
        Ok(self.view()?.ssthresh)
    }

    #[getter]
    fn dupacks(&self) -> PyResult<u32> {
        Ok(self.view()?.dupacks)
    }

    /// Return whether a segment that is not processed yet is a duplicate ACK.
    ///
    /// Parameters
    /// ----------
    /// segment : Segment
    ///     The segment that `on_segment` has got.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether it is.
    fn is_duplicate(&self, segment: PySegment) -> PyResult<bool> {
        self.with(|sender| sender.is_duplicate(&segment.0))
    }

    /// Return whether duplicate ACKs for a segment could cause a fast retransmit.
    ///
    /// Parameters
    /// ----------
    /// seq : SeqNum or int
    ///     Its first sequence number.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether its loss would be new, and not a consequence of the last one.
    fn loss_is_new(&self, seq: Sequence) -> PyResult<bool> {
        let seq = seq.number();
        self.with(|sender| sender.loss_is_new(seq))
    }

    /// Restart the retransmission timer with its current value; without outstanding data, do nothing.
    ///
    /// Parameters
    /// ----------
    /// now : int
    ///     The time of the callback.
    fn restart_timer(&self, now: u64) -> PyResult<()> {
        self.with(|sender| sender.restart_timer(Time::from_nanos(now)))
    }

    /// Reduce the congestion window to one segment, from which slow start reopens it.
    fn shrink_window_to_one_segment(&self) -> PyResult<()> {
        self.with(SenderState::shrink_window_to_one_segment)
    }

    /// Set the congestion window.
    ///
    /// Parameters
    /// ----------
    /// size : int
    ///     The window in bytes.
    fn set_window(&self, size: u32) -> PyResult<()> {
        self.with(|sender| sender.set_window(size))
    }

    /// Pace segments from now on, instead of by the congestion control. Only flavours of today are paced, such as ``prr``.
    ///
    /// Parameters
    /// ----------
    /// rate : float
    ///     In bytes of payload per second, more than 0.
    fn set_pacing_rate(&self, rate: f64) -> PyResult<()> {
        match rate > 0.0 && rate.is_finite() {
            true => self.with(|sender| sender.set_pacing_rate(rate)),
            false => Err(PyValueError::new_err(format!(
                "rate: found {rate}, expected more than 0 bytes per second"
            ))),
        }
    }

    /// Set the maximum payload of all later segments.
    ///
    /// Parameters
    /// ----------
    /// mss : int
    ///     In bytes, at least 1.
    fn set_mss(&self, mss: u32) -> PyResult<()> {
        match mss {
            0 => Err(PyValueError::new_err("mss: found 0, expected at least 1 byte")),
            mss => self.with(|sender| sender.set_mss(mss)),
        }
    }

    /// Request a retransmission after the callback, regardless of the window.
    ///
    /// Parameters
    /// ----------
    /// seq : SeqNum or int
    ///     First sequence number of the segment.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether it is accepted: not for data that are acknowledged, reported by SACK or yet to be sent, nor for SYN.
    fn resend(&self, seq: Sequence) -> PyResult<bool> {
        let seq = seq.number();
        self.with(|sender| sender.resend(seq))
    }
}

/// A reaction of a sender written in Python.
#[derive(Debug)]
pub(super) struct SenderReaction {
    object: Object,
    handle: Option<Py<PySenderState>>,
    /// Stands in for the sender while it is lent.
    stand_in: Option<Box<SenderState>>,
}

impl SenderReaction {
    pub(super) fn new(part: &Arc<Part>) -> SenderReaction {
        let object = part.make(|py| Ok(PyTuple::empty(py)));
        let handle = Python::attach(|py| Py::new(py, PySenderState::default())).ok();
        SenderReaction { object, handle, stand_in: None }
    }

    /// Calls a hook, to which the sender is lent.
    fn call<T>(
        &mut self,
        hook: usize,
        now: Time,
        sender: &mut SenderState,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, PySenderState>) -> PyResult<T>,
    ) -> Option<T> {
        self.object.note(now);
        if !self.object.defines(hook) && hook != NO_HOOK {
            return None;
        }
        let SenderReaction { object, handle, stand_in } = self;
        let handle = handle.as_ref()?;
        let mut whole = stand_in.take().unwrap_or_else(|| Box::new(SenderState::stand_in(sender.settings())));
        mem::swap(sender, &mut *whole);
        // It returns even if the hook is not called, since another has failed.
        *handle.get().lent() = Lent::Whole(whole);
        let result = object.tell(now, |py, object| call(object, handle.bind(py)));
        if let Lent::Whole(mut whole) = mem::take(&mut *handle.get().lent()) {
            mem::swap(sender, &mut *whole);
            *stand_in = Some(whole);
        }
        result
    }

    /// Calls a hook that may not change the sender.
    fn ask<T>(
        &self,
        hook: usize,
        sender: &SenderState,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, PySenderState>) -> PyResult<T>,
    ) -> Option<T> {
        let handle = self.handle.as_ref().filter(|_| self.object.defines(hook))?;
        *handle.get().lent() = Lent::View(View::from(sender));
        let result = self.object.ask(|py, object| call(object, handle.bind(py)));
        *handle.get().lent() = Lent::Nothing;
        result
    }
}

/// For `on_timer`, which is called for every reaction with a timer.
const NO_HOOK: usize = HOOKS.len();

/// A scheme's verdict on a loss.
fn response(found: &Bound<'_, PyAny>) -> PyResult<Response> {
    let wrong = || {
        let expected = "expected \"congestion\", \"corruption\" or a fraction of the window in (0, 1]";
        PyValueError::new_err(format!("judge: found {found:?}, {expected}"))
    };
    if found.is_none() {
        return Ok(Response::Congestion);
    }
    if let Ok(share) = found.extract::<f64>() {
        return if share > 0.0 && share <= 1.0 { Ok(Response::Reduce(share)) } else { Err(wrong()) };
    }
    match found.extract::<String>().as_deref() {
        Ok("congestion") => Ok(Response::Congestion),
        Ok("corruption") => Ok(Response::Corruption),
        Ok(_) => Err(wrong()),
        Err(_) => Err(PyTypeError::new_err(wrong().value(found.py()).to_string())),
    }
}

impl Reaction for SenderReaction {
    fn on_start(&mut self, now: Time, sender: &mut SenderState) {
        self.call(ON_START, now, sender, |object, sender| {
            object.call_method1(pyo3::intern!(object.py(), "on_start"), (now.as_nanos(), sender)).map(drop)
        });
    }

    fn on_notice(&mut self, now: Time, notice: &Notice, sender: &mut SenderState) {
        self.call(ON_NOTICE, now, sender, |object, sender| {
            let arguments = (now.as_nanos(), PyNotice(*notice), sender);
            object.call_method1(pyo3::intern!(object.py(), "on_notice"), arguments).map(drop)
        });
    }

    fn on_reach(&mut self, now: Time, reach: Reach, sender: &mut SenderState) {
        self.call(ON_REACH, now, sender, |object, sender| {
            let arguments = (now.as_nanos(), reach_name(reach), sender);
            object.call_method1(pyo3::intern!(object.py(), "on_reach"), arguments).map(drop)
        });
    }

    fn takes(&mut self, now: Time, segment: &Segment, sender: &mut SenderState) -> bool {
        let found = self.call(TAKES, now, sender, |object, sender| {
            let arguments = (now.as_nanos(), PySegment(*segment), sender);
            object.call_method1(pyo3::intern!(object.py(), "takes"), arguments)?.extract()
        });
        found.unwrap_or(false)
    }

    fn on_segment(&mut self, now: Time, segment: &Segment, sender: &mut SenderState) {
        self.call(ON_SEGMENT, now, sender, |object, sender| {
            let arguments = (now.as_nanos(), PySegment(*segment), sender);
            object.call_method1(pyo3::intern!(object.py(), "on_segment"), arguments).map(drop)
        });
    }

    fn dscp(&mut self, now: Time, segment: &Segment, again: bool, sender: &SenderState) -> Dscp {
        let handle = self.handle.as_ref().filter(|_| self.object.defines(DSCP));
        let Some(handle) = handle else { return Dscp::DEFAULT };
        *handle.get().lent() = Lent::View(View::from(sender));
        let found = self.object.tell(now, |py, object| {
            let arguments = (now.as_nanos(), PySegment(*segment), again, handle.bind(py));
            code_point(&object.call_method1(pyo3::intern!(py, "dscp"), arguments)?)
        });
        *handle.get().lent() = Lent::Nothing;
        found.unwrap_or(Dscp::DEFAULT)
    }

    fn on_sent(&mut self, now: Time, start: SeqNum, end: SeqNum, again: bool) {
        if self.object.defines(ON_SENT) {
            self.object.tell(now, |py, object| {
                let arguments = (now.as_nanos(), PySeqNum(start), PySeqNum(end), again);
                object.call_method1(pyo3::intern!(py, "on_sent"), arguments).map(drop)
            });
        }
    }

    fn dupthresh(&self, set: u32, sender: &SenderState) -> u32 {
        let found = self.ask(DUPTHRESH, sender, |object, sender| {
            object.call_method1(pyo3::intern!(object.py(), "dupthresh"), (set, sender))?.extract()
        });
        found.unwrap_or(set)
    }

    fn extension(&self, sender: &SenderState) -> Option<u32> {
        let found = self.ask(EXTENSION, sender, |object, sender| {
            object.call_method1(pyo3::intern!(object.py(), "extension"), (sender,))?.extract()
        });
        found.flatten()
    }

    fn judge(&mut self, now: Time, hole: Hole, sender: &mut SenderState) -> Response {
        let found = self.call(JUDGE, now, sender, |object, sender| {
            let arguments = (now.as_nanos(), PyHole(hole), sender);
            response(&object.call_method1(pyo3::intern!(object.py(), "judge"), arguments)?)
        });
        found.unwrap_or_default()
    }

    fn is_corruption(&self, seq: SeqNum) -> bool {
        let found = self.object.defines(IS_CORRUPTION).then(|| {
            self.object.ask(|py, object| {
                object.call_method1(pyo3::intern!(py, "is_corruption"), (PySeqNum(seq),))?.extract()
            })
        });
        found.flatten().unwrap_or(false)
    }

    fn next_wakeup(&self) -> Time {
        self.object.next_wakeup()
    }

    fn on_timer(&mut self, now: Time, sender: &mut SenderState) {
        self.call(NO_HOOK, now, sender, |object, sender| {
            object.call_method1(pyo3::intern!(object.py(), "on_timer"), (now.as_nanos(), sender)).map(drop)
        });
        self.object.check_progress(now, "on_timer");
    }
}
