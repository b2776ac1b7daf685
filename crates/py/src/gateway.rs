//! The gateway on real links.

use std::path::PathBuf;

use lasthop_gateway::cli;
use lasthop_gateway::config::{Config, TABLE};
use lasthop_gateway::report::{self, Report};
use lasthop_scenario::TomlFile;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::error::scenario_error;

/// Run a command of the gateway in this process, as `lasthop-gateway` does. Linux only.
///
/// Parameters
/// ----------
/// arguments : list of str
///     The command and its arguments, such as ``["run", "gateway.toml"]``.
///
/// Returns
/// -------
/// str
///     What is printed.
///
/// Raises
/// ------
/// OSError
///     What is wrong, with the remedy.
#[pyfunction]
pub(crate) fn gateway(py: Python<'_>, arguments: Vec<String>) -> PyResult<String> {
    py.detach(|| cli::run(&arguments)).map_err(PyOSError::new_err)
}

/// Return a report of the gateway as text.
///
/// Parameters
/// ----------
/// report : str
///     What ``gateway(["report", "--json"])`` has returned.
///
/// Returns
/// -------
/// str
///     The text that ``gateway(["report"])`` returns of the same flows.
///
/// Raises
/// ------
/// ValueError
///     If it is no report.
#[pyfunction]
pub(crate) fn gateway_report(report: &str) -> PyResult<String> {
    let report: Report = serde_json::from_str(report)
        .map_err(|error| PyValueError::new_err(format!("not a report of the gateway: {error}")))?;
    Ok(report::summary(&report))
}

/// Return the settings in a gateway's file, with every default.
///
/// Parameters
/// ----------
/// path : str or os.PathLike
///     The file.
///
/// Returns
/// -------
/// str or None
///     The settings as TOML; None if it is no gateway's file.
///
/// Raises
/// ------
/// ScenarioError
///     If they are invalid.
#[pyfunction]
pub(crate) fn gateway_settings(py: Python<'_>, path: PathBuf) -> PyResult<Option<String>> {
    // What cannot be read is no file of the gateway.
    let Some(file) = TomlFile::load(&path).ok().filter(|file| file.has(TABLE)) else { return Ok(None) };
    Config::of(&file).map(|config| Some(config.to_toml())).map_err(|error| scenario_error(py, &error))
}

/// Return the JSON Schema of gateways' files.
///
/// Returns
/// -------
/// str
///     The schema, of draft 7.
#[pyfunction]
pub(crate) fn gateway_schema() -> String {
    Config::json_schema()
}
