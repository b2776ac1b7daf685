//! Conversion of errors to Python exceptions.

use std::io;

use lasthop_experiment::RunError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::python_scheme::scheme_error;

pyo3::create_exception!(
    lasthop._lasthop,
    ScenarioError,
    PyValueError,
    "A scenario is wrong, or cannot be run as asked.

Attributes
----------
kind : {'unreadable', 'syntax', 'key', 'value', 'scheme', 'request', 'limit'}
    What is wrong: ``unreadable`` (a file), ``syntax``, ``key`` (unknown, missing, or of another type), ``value``,
    ``scheme`` (unknown, or it does not support the scenario), ``request`` (the scenario lacks what was asked for), or
    ``limit`` (a run takes too much memory or disk space).
message : str
    What was found and what was expected, after the key.
key : str or None
    The key that has the problem, such as ``schemes[1]``; None if it is in no single value.
problem : str
    The message without the key.
remedy : str or None
    The part of the message that states what would be right: a suggestion, or else what was expected.
file : str
    The file's name, or the override that is wrong as ``--set KEY=VALUE``.
change : str or None
    The change that is wrong: its assignment, such as ``radio.rate=fast``, or its key; None if it is none.
line : int or None
    The line in the file, from 1; None if the fault has no line.
column : int or None
    The column of that line, from 1."
);

pub(crate) fn scenario_error(py: Python<'_>, error: &lasthop_scenario::ScenarioError) -> PyErr {
    let raised = ScenarioError::new_err(error.to_string());
    let value = raised.value(py);
    let described = value
        .setattr("message", error.message())
        .and_then(|()| value.setattr("kind", error.kind().name()))
        .and_then(|()| value.setattr("key", error.key()))
        .and_then(|()| value.setattr("problem", error.problem()))
        .and_then(|()| value.setattr("remedy", error.remedy()))
        .and_then(|()| value.setattr("file", error.origin()))
        .and_then(|()| value.setattr("change", error.change()))
        .and_then(|()| value.setattr("line", error.line()))
        .and_then(|()| value.setattr("column", error.column()));
    described.err().unwrap_or(raised)
}

/// The exception for run number `run` of a study with `seed`.
pub(crate) fn run_error(py: Python<'_>, error: &RunError, seed: u64, run: u64) -> PyErr {
    match error {
        RunError::Scheme(failure) => scheme_error(py, failure, &format!(" (seed {seed}, run {run})")),
        RunError::Scenario(error) => scenario_error(py, error),
        // Python selects the subclass of `OSError` by the error kind.
        // A run is stopped by a signal only, and the exception of its handler replaces this one.
        RunError::Stopped => PyKeyboardInterrupt::new_err(error.to_string()),
        RunError::Capture(_, cause) => io::Error::new(cause.kind(), error.to_string()).into(),
    }
}
