//! Runs.

use std::sync::Arc;

use lasthop_study::report::ended_key;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns;

/// What came of a run. Made by `Scenario.run`.
///
/// Attributes
/// ----------
/// scheme : str
///     The scheme that was run.
/// seed : int
///     The study's seed.
/// run : int
///     The number of the run in the study.
/// ended : str
///     Why it ended: ``"finished"``, ``"time-limit"`` or ``"idle"``.
/// metrics : dict
///     What it is measured by, in the order in which docs/metrics.md defines it; None for what the
///     run does not have.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Run {
    scenario: Arc<lasthop_study::Scenario>,
    run: lasthop_study::Run,
}

impl Run {
    pub(crate) fn new(scenario: Arc<lasthop_study::Scenario>, run: lasthop_study::Run) -> Run {
        Run { scenario, run }
    }

    pub(crate) fn inner(&self) -> &lasthop_study::Run {
        &self.run
    }
}

#[pymethods]
impl Run {
    #[getter]
    fn scheme(&self) -> &str {
        &self.run.scheme
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.run.seed
    }

    #[getter]
    fn run(&self) -> u64 {
        self.run.run
    }

    #[getter]
    fn ended(&self) -> &'static str {
        ended_key(self.run.ended)
    }

    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = serde_json::to_string(&self.run.metrics);
        let json = json.map_err(|error| PyValueError::new_err(error.to_string()))?;
        // JSON has all the kinds of values that metrics have, and keeps their order and every bit.
        py.import("json")?.call_method1("loads", (json,))
    }

    /// Return what happened to each packet.
    ///
    /// Returns
    /// -------
    /// dict of str to numpy.ndarray
    ///     The columns ``time_s``, ``event``, ``packet``, ``transmission``, ``size_bytes`` and
    ///     ``reason``; docs/metrics.md defines them.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the run was made without ``trace=True``.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let missing = || PyValueError::new_err("there is no trace: run with trace=True");
        columns::events(py, self.run.events.as_ref().ok_or_else(missing)?)
    }

    /// Return the source's state over time.
    ///
    /// Returns
    /// -------
    /// dict of str to numpy.ndarray
    ///     ``time_s`` and a column for each quantity: a row at the beginning and after each change.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the run was made without ``series=True``.
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let missing = || PyValueError::new_err("there is no series: run with series=True");
        columns::series(py, self.run.series.as_ref().ok_or_else(missing)?)
    }

    /// Write the result as a JSON document.
    ///
    /// Returns
    /// -------
    /// str
    ///     The document; docs/metrics.md defines its keys.
    fn to_json(&self) -> PyResult<String> {
        self.scenario.report(&[&self.run]).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Run of {:?} with {}, seed {}, run {}: {}>",
            self.scenario.title,
            self.run.scheme,
            self.run.seed,
            self.run.run,
            self.ended()
        )
    }
}
