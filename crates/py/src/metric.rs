//! Metrics by name, and their definitions.

use lasthop_experiment::{Better, DEFINITIONS, MetricName, Metrics, Misnamed, Unit, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The definition of a metric.
///
/// Attributes
/// ----------
/// set : str
///     The set of metrics that it belongs to, such as ``"ConnectionMetrics"``.
/// name : str
///     The name; it means the same in all sets that have it.
/// unit : {"bps", "B", "bit", "s", "J", "count", "truth", "share", "index", "number"}
///     The unit, as `unit` returns it.
/// optional : bool
///     Whether runs may lack it.
/// better : {"higher", "lower"} or None
///     Which values are better, ``"higher"`` or ``"lower"``; None if it depends on the question.
/// doc : str
///     The definition in words.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub(crate) struct MetricDefinition {
    set: &'static str,
    name: &'static str,
    unit: &'static str,
    optional: bool,
    better: Option<&'static str>,
    doc: &'static str,
}

#[pymethods]
impl MetricDefinition {
    fn __repr__(&self) -> String {
        format!("MetricDefinition(set={:?}, name={:?}, unit={:?})", self.set, self.name, self.unit)
    }
}

/// Return the definitions of all metrics.
///
/// Returns
/// -------
/// list of MetricDefinition
///     In the order of results.
///
/// Examples
/// --------
/// >>> from lasthop._lasthop import metric_definitions
/// >>> goodput = metric_definitions()[1]
/// >>> goodput.name, goodput.unit, goodput.optional, goodput.better
/// ('goodput', 'share', True, 'higher')
#[pyfunction]
pub(crate) fn metric_definitions() -> Vec<MetricDefinition> {
    let define = |metric: &lasthop_experiment::Definition| MetricDefinition {
        set: metric.set,
        name: metric.name,
        unit: metric.unit.name(),
        optional: metric.optional,
        better: word(metric.better),
        doc: metric.doc,
    };
    DEFINITIONS.iter().map(define).collect()
}

/// The names of the metrics of a run, in the order of a row's values.
pub(crate) fn metrics(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
    PyTuple::new(py, Metrics::names().collect::<Vec<_>>())
}

/// Return which values of a metric are better.
///
/// Parameters
/// ----------
/// name : str
///     The metric, of whatever it is.
///
/// Returns
/// -------
/// {"higher", "lower"} or None
///     None if it depends on the question, as for counters of schemes.
///
/// Raises
/// ------
/// ValueError
///     If the name is quoted wrongly.
///
/// Examples
/// --------
/// >>> from lasthop._lasthop import better
/// >>> better("throughput_bps"), better("application.web.mean_response_time_s"), better("notices")
/// ('higher', 'lower', None)
#[pyfunction]
pub(crate) fn better(name: &str) -> PyResult<Option<&'static str>> {
    Ok(word(metric_name(name)?.better()))
}

/// Return the unit of a metric or counter.
///
/// Parameters
/// ----------
/// name : str
///     Its name, without what it is of.
///
/// Returns
/// -------
/// {"bps", "B", "bit", "s", "J", "count", "truth", "share", "index", "number"}
///     ``"count"`` for numbers of things, ``"truth"`` for truth values,
///     ``"share"`` for shares of a whole, ``"index"`` for other numbers from 0 to 1, or ``"number"``.
///
/// Examples
/// --------
/// >>> from lasthop._lasthop import unit
/// >>> unit("throughput_bps"), unit("mos"), unit("finished"), unit("held_bytes"), unit("notices_sent")
/// ('bps', 'number', 'truth', 'B', 'count')
#[pyfunction]
pub(crate) fn unit(name: &str) -> &'static str {
    Unit::of(name).name()
}

/// Reads the name of a metric.
pub(crate) fn metric_name(name: &str) -> PyResult<MetricName> {
    name.parse().map_err(|error: Misnamed| PyValueError::new_err(error.to_string()))
}

fn word(better: Better) -> Option<&'static str> {
    match better {
        Better::Higher => Some("higher"),
        Better::Lower => Some("lower"),
        Better::Depends => None,
    }
}

/// A metric value as a Python object.
pub(crate) struct Plain(pub(crate) Value);

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

/// A metric that does not exist. Returned by `Scenario.find_metric`.
///
/// Attributes
/// ----------
/// what : str
///     The kind of thing that does not exist: ``"metric"``, ``"connection"``, ``"connection metric"`` ...
/// name : str
///     Its name.
/// known : list of str
///     The names that exist.
/// listed : int
///     How many of `known` a message lists: not the metrics of parts, which may be thousands.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct UnknownMetric(pub(crate) lasthop_experiment::UnknownMetric);

#[pymethods]
impl UnknownMetric {
    #[getter]
    fn what(&self) -> &'static str {
        self.0.what
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn known(&self) -> Vec<String> {
        self.0.known.clone()
    }

    #[getter]
    fn listed(&self) -> usize {
        self.0.listed
    }
}
