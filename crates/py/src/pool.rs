//! A pool of threads for runs.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lasthop_study::{Batch, Cells, Chunk, Column, Failure};
use numpy::PyArray1;
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::error::scenario_error;
use crate::metric::{Plain, metric_name};
use crate::python_scheme::scheme_error;
use crate::scenario::Scenario;

/// Worker threads that execute runs in the background.
///
/// The order of rows is unspecified, but each row equals the result of `Scenario.run`, for any number of
/// threads. Leaving the context manager cancels remaining runs and waits for the threads.
///
/// Parameters
/// ----------
/// jobs : int, optional
///     The number of threads. By default as many as there are cores.
/// metrics : sequence of str, optional
///     Names of further metrics, whose values follow those of `METRICS`: None where a run does not have one.
///
/// Raises
/// ------
/// ValueError
///     If a name is quoted wrongly.
///
/// Attributes
/// ----------
/// pending : int
///     Number of submitted runs that are not collected yet.
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
/// >>> chunks = []
/// >>> with Pool(jobs=2) as pool:
/// ...     pool.submit(7, scenario, "basic", 1, 0, 10)
/// ...     while pool.pending:
/// ...         chunks += pool.collect(0.2)
/// >>> key, first, runs, ended, metrics = min(chunks)
/// >>> key, first, ended, dict(zip(METRICS, metrics))["delivered_bytes"]
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
    #[pyo3(signature = (jobs = None, metrics = None))]
    fn new(jobs: Option<usize>, metrics: Option<Vec<String>>) -> PyResult<Pool> {
        let none = || PyValueError::new_err("jobs: found 0, expected at least 1");
        let jobs = jobs.map(|jobs| NonZeroUsize::new(jobs).ok_or_else(none)).transpose()?;
        let metrics = metrics.unwrap_or_default();
        let metrics = metrics.iter().map(|name| metric_name(name)).collect::<PyResult<_>>()?;
        Ok(Pool(Mutex::new(Some(Arc::new(lasthop_study::Pool::with_metrics(jobs, metrics))))))
    }

    /// Enqueue runs.
    ///
    /// Parameters
    /// ----------
    /// key : int
    ///     A 64-bit integer that identifies their rows.
    /// scenario : Scenario
    ///     The scenario to run.
    /// scheme : str
    ///     The scheme's name.
    /// seed : int
    ///     The study's seed.
    /// first_run : int
    ///     The number of the first run in the study.
    /// runs : int
    ///     Number of runs, numbered consecutively.
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

    /// Wait for rows and return all available ones by columns, as stores keep them.
    ///
    /// Other Python threads continue meanwhile. Signals are handled after the return.
    ///
    /// Parameters
    /// ----------
    /// timeout_s : float
    ///     How long to wait for at least one row.
    ///
    /// Returns
    /// -------
    /// list[tuple[int, int, int, str | bytes, tuple[float | int | bool | bytes | None, ...]]]
    ///     For each stretch of consecutive runs of one key: the key, the number of the first run, how many there
    ///     are, why they ended (``"finished"``, ``"time-limit"`` or ``"idle"``), and a tuple with `METRICS` and
    ///     `metrics`. The last two are cells: one value for all runs, or bytes, which `decode` decodes.
    ///
    /// Raises
    /// ------
    /// RuntimeError
    ///     If a run failed because of a bug in Lasthop; the message says how to replay it. All other
    ///     runs are cancelled, after the rows of finished runs were collected.
    /// PythonSchemeError
    ///     If a callback of a scheme written in Python raised an exception; the rest is the same.
    fn collect<'py>(&self, py: Python<'py>, timeout_s: f64) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let patience = patience(timeout_s)?;
        let Some(pool) = self.open() else { return Ok(Vec::new()) };
        match py.detach(|| pool.collect(patience).map(|rows| Chunk::pack(&rows))) {
            Ok(chunks) => chunks.iter().map(|chunk| packed(py, chunk)).collect(),
            Err(failure) => Err(raised(py, &failure)),
        }
    }

    #[getter]
    fn pending(&self) -> u64 {
        self.open().map_or(0, |pool| pool.pending())
    }

    /// Cancel all runs that are not collected: pending ones immediately, running ones within milliseconds.
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

/// Decode the cells of a metric over consecutive runs.
///
/// Parameters
/// ----------
/// cells : bytes
///     Decimal numbers of equal width, padded with spaces; blank where the metric does not apply.
/// runs : int
///     How many there are.
///
/// Returns
/// -------
/// numpy.ndarray
///     Of integers if all are, otherwise of floats, with NaN for what is blank.
///
/// Raises
/// ------
/// ValueError
///     If there are not so many numbers.
///
/// Examples
/// --------
/// >>> from lasthop._lasthop import decode
/// >>> decode(b"1  12 123", 3).tolist(), decode(b"2.5     1e-7", 3).tolist()
/// ([1, 12, 123], [2.5, nan, 1e-07])
#[pyfunction]
pub(crate) fn decode<'py>(py: Python<'py>, cells: &[u8], runs: usize) -> PyResult<Bound<'py, PyAny>> {
    match Cells::decode(cells, runs).map_err(|error| PyValueError::new_err(error.to_string()))? {
        Column::Counts(counts) => Ok(PyArray1::from_vec(py, counts).into_any()),
        Column::Reals(reals) => Ok(PyArray1::from_vec(py, reals).into_any()),
    }
}

fn patience(timeout_s: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(timeout_s)
        .map_err(|_| PyValueError::new_err("timeout_s: expected a number of seconds from 0"))
}

/// The exception for a failed run.
fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    match failure.scheme() {
        Some(scheme) => scheme_error(py, scheme, &format!(" ({})", failure.run())),
        None => PyRuntimeError::new_err(failure.to_string()),
    }
}

fn packed<'py>(py: Python<'py>, chunk: &Chunk) -> PyResult<Bound<'py, PyTuple>> {
    let metrics: Vec<Packed<'_>> = chunk.metrics.iter().map(Packed).collect();
    (chunk.key, chunk.first, chunk.runs, Packed(&chunk.ended), PyTuple::new(py, metrics)?).into_pyobject(py)
}

/// Cells as a Python object.
struct Packed<'a>(&'a Cells);

impl<'py> IntoPyObject<'py> for Packed<'_> {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.0 {
            Cells::Same(value) => Plain(*value).into_pyobject(py),
            Cells::SameWord(word) => Ok(word.into_pyobject(py)?.into_any()),
            Cells::Each(cells) => Ok(PyBytes::new(py, cells).into_any()),
        }
    }
}
