//! What Python is served with while a run goes on.

use std::time::{Duration, Instant};

use lasthop_scenario::Time;
use pyo3::prelude::*;

/// Handling of Python signals and calls of the progress function while Rust code runs.
pub(super) struct Watch {
    served: Instant,
    progress: Option<Py<PyAny>>,
    /// The exception raised by a signal handler (`KeyboardInterrupt` for Ctrl-C) or the progress function.
    pub(super) raised: Option<PyErr>,
}

impl Watch {
    pub(super) fn new(progress: Option<Py<PyAny>>) -> Watch {
        Watch { served: Instant::now(), progress, raised: None }
    }

    /// Ten times a second, lets Python handle signals and reports the simulated time. Returns false once either
    /// has raised an exception.
    pub(super) fn keeps_going(&mut self, now: Time) -> bool {
        if self.served.elapsed() >= Duration::from_millis(100) {
            self.raised = Python::attach(|py| self.serve(py, now)).err();
            self.served = Instant::now();
        }
        self.raised.is_none()
    }

    fn serve(&self, py: Python<'_>, now: Time) -> PyResult<()> {
        py.check_signals()?;
        if let Some(progress) = &self.progress {
            progress.call1(py, (now.as_secs_f64(),))?;
        }
        Ok(())
    }
}
