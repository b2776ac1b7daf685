//! Points of a sweep.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};

use super::Scenario;

/// One combination of values of a sweep. Created by `Scenario.points`.
///
/// Attributes
/// ----------
/// parameters : dict of str to str
///     The varied parameters, in the order of the sweep, each with its path and its value in the
///     syntax of an override.
/// scenario : Scenario
///     The scenario with these values, without a sweep.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Point {
    parameters: Vec<(String, String)>,
    scenario: Arc<lasthop_scenario::Scenario>,
}

impl Point {
    pub(super) fn new(point: lasthop_scenario::Point) -> Point {
        Point { parameters: point.parameters, scenario: point.scenario }
    }
}

#[pymethods]
impl Point {
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.parameters.iter().map(|(path, value)| (path, value)).into_py_dict(py)
    }

    #[getter]
    fn scenario(&self) -> Scenario {
        Scenario::new(self.scenario.clone())
    }

    fn __repr__(&self) -> String {
        let named = |(path, value): &(String, String)| format!("{path}={value}");
        format!("<Point {}>", self.parameters.iter().map(named).collect::<Vec<_>>().join(", "))
    }
}
