//! Runs on many threads.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lasthop_scenario::report::ended_key;
use lasthop_scenario::{Metrics, Value};
use lasthop_study::{Batch, Row};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::scenario_error;
use crate::scenario::Scenario;

/// Worker threads that carry out runs while Python does something else.
///
/// Rows come in no particular order, but each is what `Scenario.run` gives, however many threads
/// there are. As a context manager it cancels what is left at the end, and waits for its threads.
///
/// Parameters
/// ----------
/// jobs : int, optional
///     The number of threads. By default as many as there are cores.
///
/// Attributes
/// ----------
/// pending : int
///     How many runs were submitted and are not yet collected.
///
/// Examples
/// --------
/// >>> from lasthop._lasthop import METRICS, Pool, Scenario
/// >>> scenario = Scenario.parse('''
/// ...     [transfer]
/// ...     size = "100 KB"
/// ...     [wired]
/// ...     rate = "10 Mbps"
/// ...     [radio]
/// ...     rate = "2 Mbps"
/// ... ''')
/// >>> rows = []
/// >>> with Pool(jobs=2) as pool:
/// ...     pool.submit(7, scenario, "basic", 1, 0, 10)
/// ...     while pool.pending:
/// ...         rows += pool.collect(0.2)
/// >>> key, run, ended, values = min(rows)
/// >>> key, run, ended, dict(zip(METRICS, values))["delivered_bytes"]
/// (7, 0, 'finished', 100000)
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Pool(Mutex<Option<Arc<lasthop_study::Pool>>>);

impl Pool {
    /// The pool, unless it was closed.
    fn open(&self) -> Option<Arc<lasthop_study::Pool>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(signature = (jobs = None))]
    fn new(jobs: Option<usize>) -> PyResult<Pool> {
        let none = || PyValueError::new_err("jobs: found 0, expected at least 1");
        let jobs = jobs.map(|jobs| NonZeroUsize::new(jobs).ok_or_else(none)).transpose()?;
        Ok(Pool(Mutex::new(Some(Arc::new(lasthop_study::Pool::new(jobs))))))
    }

    /// Enqueue runs, behind those before them.
    ///
    /// Parameters
    /// ----------
    /// key : int
    ///     What their rows are to be called by: a whole number of 64 bits.
    /// scenario : Scenario
    ///     What is run.
    /// scheme : str
    ///     The scheme's name.
    /// seed : int
    ///     The study's seed.
    /// first_run : int
    ///     The number of the first run in the study.
    /// runs : int
    ///     How many runs, with the numbers from there on.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the scheme is unknown, or cannot work with this scenario's link.
    /// RuntimeError
    ///     If the pool is closed.
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn submit(
        &self,
        py: Python<'_>,
        key: i64,
        scenario: &Scenario,
        scheme: String,
        seed: u64,
        first_run: u64,
        runs: u64,
    ) -> PyResult<()> {
        let pool = self.open().ok_or_else(|| PyRuntimeError::new_err("the pool is closed"))?;
        let too_many = || PyOverflowError::new_err("the number of a run has at most 64 bits");
        let end = first_run.checked_add(runs).ok_or_else(too_many)?;
        let batch = Batch { key, scenario: scenario.inner().clone(), scheme, seed, runs: first_run..end };
        pool.submit(batch).map_err(|error| scenario_error(py, &error))
    }

    /// Wait for rows and take all that there are.
    ///
    /// Other threads of Python go on meanwhile. Signals are heard when it returns.
    ///
    /// Parameters
    /// ----------
    /// timeout_s : float
    ///     How long to wait for at least one row, if any is to come.
    ///
    /// Returns
    /// -------
    /// list of tuple
    ///     For each finished run that was not collected before: its key, its number, why it ended
    ///     (``"finished"``, ``"time-limit"`` or ``"idle"``) and a tuple with the values of `METRICS`.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     If a run failed, which is a fault of Lasthop's; it says how to replay it. All other runs
    ///     were dropped, and those that had finished collected before.
    fn collect<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let patience = Duration::try_from_secs_f64(timeout_s)
            .map_err(|_| PyValueError::new_err("timeout_s: expected a number of seconds from 0"))?;
        let Some(pool) = self.open() else { return Ok(Vec::new()) };
        match py.detach(|| pool.collect(patience)) {
            Ok(rows) => rows.iter().map(|row| tuple(py, row)).collect(),
            Err(failure) => Err(PyRuntimeError::new_err(failure.to_string())),
        }
    }

    #[getter]
    fn pending(&self) -> u64 {
        self.open().map_or(0, |pool| pool.pending())
    }

    /// Drop every run that is not collected: at once what has not begun, soon what is running.
    fn cancel(&self) {
        if let Some(pool) = self.open() {
            pool.cancel();
        }
    }

    fn __enter__(this: Bound<'_, Pool>) -> Bound<'_, Pool> {
        this
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _error: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) {
        let pool = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(pool) = pool {
            pool.cancel();
            py.detach(|| drop(pool));
        }
    }
}

/// The names of the metrics, in the order of a row's values.
pub(crate) fn metrics(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, Metrics::names().collect::<Vec<_>>())
}

fn tuple<'py>(py: Python<'py>, row: &Row) -> PyResult<Bound<'py, PyTuple>> {
    let values: Vec<Plain> = row.metrics.values().map(Plain).collect();
    (row.key, row.run, ended_key(row.ended), PyTuple::new(py, values)?).into_pyobject(py)
}

/// A value as Python has it.
struct Plain(Value);

impl<'py> IntoPyObject<'py> for Plain {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self.0 {
            Value::Real(value) => value.into_pyobject(py)?,
            Value::Count(value) => value.into_pyobject(py)?.into_any(),
            Value::Truth(value) => value.into_pyobject(py)?.to_owned().into_any(),
        })
    }
}
