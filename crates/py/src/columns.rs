//! Columns as NumPy arrays.

use lasthop_experiment::{Delays, Events, Series, Wait, Way};
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
    if let Some(numbers) = &events.packet_number {
        columns.set_item("packet_number", PyArray1::from_slice(py, numbers))?;
    }
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

pub(crate) fn delays<'py>(py: Python<'py>, delays: &Delays) -> PyResult<Bound<'py, PyDict>> {
    let numpy = py.import("numpy")?;
    let named = |names: Vec<&str>, index: Bound<'py, PyAny>| {
        let names = numpy.call_method1("array", (names, "str"))?;
        names.call_method1("take", (index,))
    };
    let way = || PyArray1::from_slice(py, &delays.way).into_any();
    let ways = |name: fn(&Way) -> &str| named(delays.ways.iter().map(name).collect(), way());
    let columns = PyDict::new(py);
    columns.set_item("time_s", PyArray1::from_slice(py, &delays.time_s))?;
    let flows = delays.flows.iter().map(String::as_str).collect();
    columns.set_item("flow", named(flows, PyArray1::from_slice(py, &delays.flow).into_any())?)?;
    columns.set_item("from", ways(|way| &way.from)?)?;
    columns.set_item("to", ways(|way| &way.to)?)?;
    let is_link = delays.way.iter().map(|&way| delays.ways[way as usize].is_link);
    columns.set_item("link", PyArray1::from_iter(py, is_link))?;
    columns.set_item("size_bytes", PyArray1::from_slice(py, &delays.size_bytes))?;
    columns.set_item("delay_s", PyArray1::from_slice(py, &delays.delay_s))?;
    columns.set_item("queueing_s", PyArray1::from_slice(py, &delays.queueing_s))?;
    Ok(columns)
}

/// When packets entered and left an emulated network between two `hosts`, and how late.
#[cfg(target_os = "linux")]
pub(crate) fn lateness<'py>(
    py: Python<'py>,
    packets: &lasthop_live::LatenessRecord,
    hosts: [&str; 2],
) -> PyResult<Bound<'py, PyDict>> {
    let numpy = py.import("numpy")?;
    let names = numpy.call_method1("array", (hosts.to_vec(), "str"))?;
    let columns = PyDict::new(py);
    columns.set_item("entered_s", PyArray1::from_slice(py, &packets.entered_s))?;
    columns.set_item("time_s", PyArray1::from_slice(py, &packets.time_s))?;
    columns.set_item("to", names.call_method1("take", (PyArray1::from_slice(py, &packets.end),))?)?;
    columns.set_item("size_bytes", PyArray1::from_slice(py, &packets.size_bytes))?;
    columns.set_item("late_s", PyArray1::from_slice(py, &packets.late_s))?;
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
