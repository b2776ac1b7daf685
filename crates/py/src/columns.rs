//! Columns as NumPy arrays.

use lasthop_scenario::{Events, Series, Wait};
use numpy::{PyArray1, PyFixedUnicode};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Length of the longest string in a column of events, `attempts-exhausted`. Names of schemes are no longer: a test
/// checks those with counters.
const WORD: usize = 18;

pub(crate) fn events<'py>(py: Python<'py>, events: &Events) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("time_s", PyArray1::from_slice(py, &events.time_s))?;
    columns.set_item("event", words(py, &events.event))?;
    columns.set_item("packet", PyArray1::from_slice(py, &events.packet))?;
    columns.set_item("transmission", PyArray1::from_slice(py, &events.transmission))?;
    columns.set_item("size_bytes", PyArray1::from_slice(py, &events.size_bytes))?;
    columns.set_item("reason", words(py, &events.reason))?;
    Ok(columns)
}

pub(crate) fn series<'py>(py: Python<'py>, series: &Series) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    columns.set_item("time_s", PyArray1::from_slice(py, &series.time_s))?;
    for (name, values) in &series.columns {
        columns.set_item(name, PyArray1::from_slice(py, values))?;
    }
    Ok(columns)
}

/// Waiting times: when each began, and its length.
pub(crate) fn waits<'py>(py: Python<'py>, waits: &[Wait]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    columns
        .set_item("since_s", PyArray1::from_iter(py, waits.iter().map(|wait| wait.since.as_secs_f64())))?;
    columns
        .set_item("time_s", PyArray1::from_iter(py, waits.iter().map(|wait| wait.length.as_secs_f64())))?;
    Ok(columns)
}

fn words<'py>(py: Python<'py>, words: &[&str]) -> Bound<'py, PyArray1<PyFixedUnicode<WORD>>> {
    let fixed = words.iter().map(|word| {
        let mut letters = [0; WORD];
        letters.iter_mut().zip(word.chars()).for_each(|(slot, letter)| *slot = u32::from(letter));
        PyFixedUnicode::from(letters)
    });
    PyArray1::from_iter(py, fixed)
}
