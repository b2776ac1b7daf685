//! The common part of agents and reactions: their factory, and the hooks that they define.

use lasthop_scenario::Time;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyType};

use super::failure;

/// The module of the base classes.
const MODULE: &str = "lasthop.python_scheme";

/// An agent or a reaction that a scheme installs.
#[derive(Debug)]
pub(super) struct Part {
    /// The scheme.
    pub(super) scheme: &'static str,
    /// The factory of its instances, usually the class.
    factory: Py<PyAny>,
    /// Name of the base class.
    base: &'static str,
    /// Names of the hooks.
    hooks: &'static [&'static str],
}

impl Part {
    pub(super) fn new(
        scheme: &'static str,
        factory: Py<PyAny>,
        base: &'static str,
        hooks: &'static [&'static str],
    ) -> Part {
        Part { scheme, factory, base, hooks }
    }

    /// Makes one; a failed one if that raises an exception.
    pub(super) fn make(
        &self,
        arguments: impl for<'py> FnOnce(Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyTuple>>,
    ) -> Object {
        let made = failure::guarded(self.scheme, None, |py| {
            let object = self.factory.bind(py).call1(arguments(py)?)?;
            let base = py.import(MODULE)?.getattr(self.base)?;
            if !object.is_instance(&base)? {
                return Err(PyTypeError::new_err(format!(
                    "{}: found an object of class {}, expected one of a subclass of lasthop.{}",
                    self.scheme,
                    object.get_type().name()?,
                    self.base
                )));
            }
            let defined = overridden(&object.get_type(), base.cast::<PyType>()?, self.hooks)?;
            Ok((object.unbind(), defined))
        });
        let (object, defined) = made.map_or((None, 0), |(object, defined)| (Some(object), defined));
        let mut made = Object { scheme: self.scheme, object, defined, now: Time::ZERO, next: Time::NEVER };
        failure::guarded(self.scheme, None, |py| made.refresh(py));
        made
    }
}

/// The set of hooks that a class defines anew, a bit for each.
fn overridden(class: &Bound<'_, PyType>, base: &Bound<'_, PyType>, hooks: &[&str]) -> PyResult<u32> {
    let mut set = 0;
    for (index, hook) in hooks.iter().enumerate() {
        if !class.getattr(*hook)?.is(&base.getattr(*hook)?) {
            set |= 1 << index;
        }
    }
    Ok(set)
}

/// The object behind an agent or a reaction.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) scheme: &'static str,
    /// `None` if it could not be made.
    object: Option<Py<PyAny>>,
    /// The hooks that it defines.
    defined: u32,
    /// The time of the last call.
    now: Time,
    /// Its next wake-up, as of the last call.
    next: Time,
}

/// Number of the hook `next_wakeup` in each list of hooks.
const NEXT_WAKEUP: usize = 0;

impl Object {
    /// Whether it defines the hook number `hook`.
    pub(super) fn defines(&self, hook: usize) -> bool {
        self.defined & 1 << hook != 0
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.next
    }

    /// A hook would be called at `now`. A deadline from before the connection is due at once.
    pub(super) fn note(&mut self, now: Time) {
        self.now = now;
        self.next = self.next.max(now);
    }

    /// The object, to call hooks that change nothing.
    pub(super) fn ask<T>(
        &self,
        call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let object = self.object.as_ref()?;
        failure::guarded(self.scheme, Some(self.now), |py| call(py, object.bind(py)))
    }

    /// Calls a hook that may change the state, and asks for the next wake-up.
    pub(super) fn tell<T>(
        &mut self,
        now: Time,
        call: impl for<'py> FnOnce(Python<'py>, &Bound<'py, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        self.now = now;
        let result = failure::guarded(self.scheme, Some(now), |py| {
            let Some(object) = &self.object else { return Ok(None) };
            let result = call(py, object.bind(py))?;
            self.refresh(py)?;
            if self.next < now {
                return Err(PyValueError::new_err(format!(
                    "next_wakeup returned {} at {}, expected a time that is not over, or None",
                    self.next.as_nanos(),
                    now.as_nanos()
                )));
            }
            Ok(Some(result))
        });
        if result.is_none() {
            self.next = Time::NEVER;
        }
        result.flatten()
    }

    fn refresh(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.defines(NEXT_WAKEUP)
            && let Some(object) = &self.object
        {
            let next = object.bind(py).call_method0(PyString::intern(py, "next_wakeup"))?;
            self.next = next.extract::<Option<u64>>()?.map_or(Time::NEVER, Time::from_nanos);
        }
        Ok(())
    }

    /// Fails if the next wake-up is not later than `now` after a wake-up without effects: simulated time would stop.
    pub(super) fn check_progress(&mut self, now: Time, hook: &str) {
        if self.next <= now {
            let next = self.next.as_nanos();
            let problem = format!(
                "next_wakeup returned {next} after {hook} at {}, expected a later time or None: the timer has to be set \
                 anew or stopped",
                now.as_nanos()
            );
            failure::fail(self.scheme, Some(now), PyValueError::new_err(problem));
            self.next = Time::NEVER;
        }
    }
}
