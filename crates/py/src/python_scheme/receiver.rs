//! Reactions of receivers written in Python.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lasthop_proto::tcp::{AckResponse, Connection, Receiver, ReceiverReaction, Segment};
use lasthop_proto::{Notice, Reach};
use lasthop_scenario::Time;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::part::{Object, Part};
use super::values::{PyNotice, PySegment, PySeqNum, reach_name};

/// The hooks of a reaction; `next_wakeup` is the first of each list.
pub(super) const HOOKS: &[&str] = &["next_wakeup", "on_segment", "on_notice", "on_reach", "on_ack"];
const ON_SEGMENT: usize = 1;
const ON_NOTICE: usize = 2;
const ON_REACH: usize = 3;
const ON_ACK: usize = 4;

/// The answer to `on_ack` that suppresses an acknowledgement.
const WITHHOLD: &str = "withhold";

/// The state of a receiving TCP, and what a reaction may do with it. It is valid during a callback only.
///
/// Attributes
/// ----------
/// rcv_nxt : SeqNum
///     The next sequence number expected.
/// has_gap : bool
///     Whether out-of-order data are present.
/// sack : bool
///     Whether the connection uses selective acknowledgements.
#[pyclass(frozen, name = "Receiver", module = "lasthop._lasthop")]
#[derive(Debug, Default)]
pub(crate) struct PyReceiver(Mutex<Option<Box<Receiver>>>);

impl PyReceiver {
    fn lent(&self) -> MutexGuard<'_, Option<Box<Receiver>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, action: impl FnOnce(&mut Receiver) -> T) -> PyResult<T> {
        let after = || PyRuntimeError::new_err("the receiver is used after its callback");
        self.lent().as_deref_mut().map(action).ok_or_else(after)
    }
}

#[pymethods]
impl PyReceiver {
    #[getter]
    fn rcv_nxt(&self) -> PyResult<PySeqNum> {
        self.with(|receiver| PySeqNum(receiver.rcv_nxt()))
    }

    #[getter]
    fn has_gap(&self) -> PyResult<bool> {
        self.with(|receiver| receiver.has_gap())
    }

    #[getter]
    fn sack(&self) -> PyResult<bool> {
        self.with(|receiver| receiver.settings().sack())
    }

    /// Request acknowledgements of everything received, sent after the callback. `on_ack` sees them like any others.
    ///
    /// Parameters
    /// ----------
    /// count : int, default 1
    ///     How many.
    #[pyo3(signature = (count = 1))]
    fn acknowledge_now(&self, count: u32) -> PyResult<()> {
        self.with(|receiver| receiver.acknowledge_now(count))
    }
}

/// A reaction of a receiver written in Python.
#[derive(Debug)]
pub(super) struct PythonReceiverReaction {
    object: Object,
    handle: Option<Py<PyReceiver>>,
    /// Stands in for the receiver while it is lent.
    stand_in: Option<Box<Receiver>>,
}

impl PythonReceiverReaction {
    pub(super) fn new(part: &Arc<Part>) -> PythonReceiverReaction {
        let object = part.make(|py| Ok(PyTuple::empty(py)));
        let handle = Python::attach(|py| Py::new(py, PyReceiver::default())).ok();
        PythonReceiverReaction { object, handle, stand_in: None }
    }

    fn defines(&mut self, hook: usize, now: Time) -> bool {
        self.object.note(now);
        self.object.defines(hook)
    }

    /// Calls a hook, to which the receiver is lent.
    fn call<T>(
        &mut self,
        now: Time,
        receiver: &mut Receiver,
        call: impl for<'py> FnOnce(&Bound<'py, PyAny>, &Bound<'py, PyReceiver>) -> PyResult<T>,
    ) -> Option<T> {
        let handle = self.handle.as_ref()?;
        let spare = || Box::new(Receiver::new(Connection::default(), receiver.settings()));
        let mut whole = self.stand_in.take().unwrap_or_else(spare);
        mem::swap(receiver, &mut *whole);
        *handle.get().lent() = Some(whole);
        let result = self.object.tell(now, |py, object| call(object, handle.bind(py)));
        if let Some(mut whole) = handle.get().lent().take() {
            mem::swap(receiver, &mut *whole);
            self.stand_in = Some(whole);
        }
        result
    }
}

impl ReceiverReaction for PythonReceiverReaction {
    fn on_segment(&mut self, now: Time, segment: &Segment, receiver: &mut Receiver) {
        if self.defines(ON_SEGMENT, now) {
            self.call(now, receiver, |object, receiver| {
                let arguments = (now.as_nanos(), PySegment(*segment), receiver);
                object.call_method1(pyo3::intern!(object.py(), "on_segment"), arguments).map(drop)
            });
        }
    }

    fn on_notice(&mut self, now: Time, notice: &Notice, receiver: &mut Receiver) {
        if self.defines(ON_NOTICE, now) {
            self.call(now, receiver, |object, receiver| {
                let arguments = (now.as_nanos(), PyNotice(*notice), receiver);
                object.call_method1(pyo3::intern!(object.py(), "on_notice"), arguments).map(drop)
            });
        }
    }

    fn on_reach(&mut self, now: Time, reach: Reach, receiver: &mut Receiver) {
        if self.defines(ON_REACH, now) {
            self.call(now, receiver, |object, receiver| {
                let arguments = (now.as_nanos(), reach_name(reach), receiver);
                object.call_method1(pyo3::intern!(object.py(), "on_reach"), arguments).map(drop)
            });
        }
    }

    fn on_ack(&mut self, now: Time, ack: &mut Segment, receiver: &mut Receiver) -> AckResponse {
        if !self.defines(ON_ACK, now) {
            return AckResponse::Send;
        }
        let answer = self.call(now, receiver, |object, receiver| {
            let arguments = (now.as_nanos(), PySegment(*ack), receiver);
            let found = object.call_method1(pyo3::intern!(object.py(), "on_ack"), arguments)?;
            if found.is_none() {
                return Ok(Some(*ack));
            }
            if let Ok(changed) = found.extract::<PySegment>() {
                return Ok(Some(changed.0));
            }
            match found.extract::<String>() {
                Ok(word) if word == WITHHOLD => Ok(None),
                _ => Err(PyTypeError::new_err(format!(
                    "on_ack: found {found:?}, expected None, a Segment or \"{WITHHOLD}\""
                ))),
            }
        });
        match answer {
            Some(None) => AckResponse::Withhold,
            Some(Some(changed)) => {
                *ack = changed;
                AckResponse::Send
            }
            None => AckResponse::Send,
        }
    }

    fn next_wakeup(&self) -> Time {
        self.object.next_wakeup()
    }

    fn on_timer(&mut self, now: Time, receiver: &mut Receiver) {
        self.call(now, receiver, |object, receiver| {
            object.call_method1(pyo3::intern!(object.py(), "on_timer"), (now.as_nanos(), receiver)).map(drop)
        });
        self.object.check_progress(now, "on_timer");
    }
}
