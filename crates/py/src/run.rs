//! Results of runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use lasthop_experiment::report::{self, ended_key};
use lasthop_experiment::{ApplicationRun, ConnectionRun, PartRun};
use pyo3::exceptions::{PyIndexError, PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict};
use serde::Serialize;

use crate::columns;
use crate::metric::Plain;
use crate::metric::metric_name;

/// The result of a run. Created by `Scenario.run`.
///
/// Attributes
/// ----------
/// title : str
///     The title of its scenario.
/// sender : str or None
///     The sender, if the scenario names one.
/// label : str
///     The name of the run in tables and figures: the scheme, prefixed by the sender if there is one.
/// scheme : str
///     The scheme that was run.
/// seed : int
///     The seed of the study.
/// run : int
///     The number of the run in the study.
/// ended : str
///     Why it ended: ``"finished"``, ``"time-limit"`` or ``"idle"``.
/// metrics : dict of str to Any
///     Metrics over all connections together, in the order of docs/reference/metrics.md; None for metrics that do
///     not apply to the run; and each counter of the scheme's agents, as ``SCHEME.COUNTER``.
/// connections : dict of str to dict of str to Any
///     Metrics of each connection, by name.
/// traffic : dict of str to dict of str to Any
///     Metrics of each source of other traffic, by name.
/// applications : dict of str to dict of str to Any
///     Metrics of each application, by name.
/// counters : dict of str to dict of str to int
///     The counters of each agent that has some, by the name that `agents` uses.
/// qlogs : dict of str to str
///     The qlog of the sender of each connection and of the server of each application over QUIC, by name: a JSON text sequence, as its
///     library writes it. Empty if the run was made without ``qlog=True``.
/// recorded_rows : int
///     Number of rows in its traces, series and qlogs, each about 100 bytes in memory.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Run {
    scenario: Arc<lasthop_scenario::Scenario>,
    run: lasthop_experiment::Run,
}

impl Run {
    pub(crate) fn new(scenario: Arc<lasthop_scenario::Scenario>, run: lasthop_experiment::Run) -> Run {
        Run { scenario, run }
    }

    pub(crate) fn inner(&self) -> &lasthop_experiment::Run {
        &self.run
    }

    /// The connection called `name`, or the first.
    fn connection(&self, name: Option<&str>) -> PyResult<&ConnectionRun> {
        named("connection", &self.run.connections, |each| &each.name, name)
    }

    /// The application with this name; by default the first.
    fn application(&self, name: Option<&str>) -> PyResult<&ApplicationRun> {
        named("application", &self.run.applications, |(name, _)| name, name).map(|(_, each)| each)
    }

    /// A part of that connection.
    fn part(&self, name: Option<&str>, part: usize) -> PyResult<&PartRun> {
        let connection = self.connection(name)?;
        connection.parts.get(part).ok_or_else(|| {
            let (count, name) = (connection.parts.len(), &connection.name);
            PyIndexError::new_err(format!(
                "connection {name:?} has {count} part(s), counted from 0, not {part}"
            ))
        })
    }
}

/// Metrics as Python objects.
fn plain<'py, M: Serialize>(py: Python<'py>, metrics: &M) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::to_string(metrics);
    let json = json.map_err(|error| PyValueError::new_err(error.to_string()))?;
    // JSON supports all kinds of values that metrics have, and preserves their order and precision.
    py.import("json")?.call_method1("loads", (json,))
}

#[pymethods]
impl Run {
    #[getter]
    fn sender(&self) -> Option<&str> {
        self.run.sender.as_deref()
    }

    #[getter]
    fn label(&self) -> String {
        let lasthop_experiment::Run { sender, scheme, .. } = &self.run;
        sender.as_ref().map_or_else(|| scheme.clone(), |sender| format!("{sender} {scheme}"))
    }

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
    fn qlogs(&self) -> BTreeMap<&str, &str> {
        self.run.qlogs.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect()
    }

    #[getter]
    fn ended(&self) -> &'static str {
        ended_key(self.run.ended)
    }

    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.run.all_metrics(&[]))
    }

    /// Return a metric of the run, or of one of its parts.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     Such as ``"throughput_bps"``, ``"snoop.connections"`` or ``"connection.NAME.throughput_bps"``;
    ///     `Scenario.metrics` and `Scenario.part_metrics` list them.
    ///
    /// Returns
    /// -------
    /// float or int or bool or None
    ///     Its value; None if it does not apply to the run.
    ///
    /// Raises
    /// ------
    /// KeyError
    ///     If the run has no such metric.
    /// ValueError
    ///     If the name is quoted wrongly.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> run = lasthop.load("ebsn-example").run("basic")
    /// >>> run.value("connection.transfer.timeouts") == run.connections["transfer"]["timeouts"]
    /// True
    fn value<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let name = metric_name(name)?;
        match self.run.value(&name) {
            Ok(value) => Plain(value).into_pyobject(py),
            Err(_) => Err(PyKeyError::new_err(format!("this run has no metric {name}"))),
        }
    }

    /// Why schemes had no effect, by scheme: those that act by reactions of TCP, whose reactions changed nothing.
    #[getter]
    fn without_effect(&self) -> BTreeMap<&'static str, &'static str> {
        self.run.without_effect.iter().copied().collect()
    }

    #[getter]
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        plain(py, &self.run.agent_counters())
    }

    #[getter]
    fn connections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let each = |each: &ConnectionRun| Ok((each.name.clone(), plain(py, &each.metrics)?));
        self.run.connections.iter().map(each).collect::<PyResult<Vec<_>>>()?.into_py_dict(py)
    }

    #[getter]
    fn traffic<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let each = |(name, metrics): &(String, _)| Ok((name.clone(), plain(py, metrics)?));
        self.run.traffic.iter().map(each).collect::<PyResult<Vec<_>>>()?.into_py_dict(py)
    }

    #[getter]
    fn applications<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let each = |(name, each): &(String, _)| Ok((name.clone(), plain(py, each)?));
        self.run.applications.iter().map(each).collect::<PyResult<Vec<_>>>()?.into_py_dict(py)
    }

    /// Return the parts of a connection, which are several if base stations split it.
    ///
    /// Parameters
    /// ----------
    /// connection : str, optional
    ///     Its name. By default the first.
    ///
    /// Returns
    /// -------
    /// list of (str, str)
    ///     The first and last node of each part, in path order.
    ///
    /// Raises
    /// ------
    /// KeyError
    ///     If there is no such connection.
    #[pyo3(signature = (connection = None))]
    fn parts(&self, connection: Option<&str>) -> PyResult<Vec<(String, String)>> {
        let parts = &self.connection(connection)?.parts;
        Ok(parts.iter().map(|part| (part.from.clone(), part.to.clone())).collect())
    }

    /// Return the time of each response to an application that arrived after the warm-up.
    ///
    /// Parameters
    /// ----------
    /// application : str, optional
    ///     Its name. By default the first.
    ///
    /// Returns
    /// -------
    /// dict of str to numpy.ndarray
    ///     ``since_s``, when each request was made, and ``time_s``, how long its whole response took, in order of
    ///     arrival.
    ///
    /// Raises
    /// ------
    /// KeyError
    ///     If there is no such application.
    #[pyo3(signature = (application = None))]
    fn response_times<'py>(
        &self,
        py: Python<'py>,
        application: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        columns::waits(py, &self.application(application)?.responses)
    }

    /// Return the time of each page that an application loaded after the warm-up.
    ///
    /// Parameters
    /// ----------
    /// application : str, optional
    ///     Its name. By default the first.
    ///
    /// Returns
    /// -------
    /// dict of str to numpy.ndarray
    ///     ``since_s``, when each page was opened, and ``time_s``, how long all of it took. Empty if the application
    ///     loads no pages.
    ///
    /// Raises
    /// ------
    /// KeyError
    ///     If there is no such application.
    #[pyo3(signature = (application = None))]
    fn page_times<'py>(&self, py: Python<'py>, application: Option<&str>) -> PyResult<Bound<'py, PyDict>> {
        columns::waits(py, &self.application(application)?.pages)
    }

    /// Return the packet trace of a connection, or of one part of a split connection.
    ///
    /// Parameters
    /// ----------
    /// connection : str, optional
    ///     Its name. By default the first.
    /// part : int, default 0
    ///     Index of the part in `parts`: 0 is the part that begins at the source.
    ///
    /// Returns
    /// -------
    /// dict of str to numpy.ndarray
    ///     The columns ``time_s``, ``event``, ``packet``, ``transmission``, ``size_bytes`` and
    ///     ``reason``, and of QUIC ``packet_number``; docs/reference/metrics.md defines them.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the run was made without ``trace=True``.
    /// KeyError
    ///     If there is no such connection.
    /// IndexError
    ///     If there is no such part.
    #[pyo3(signature = (connection = None, part = 0))]
    fn events<'py>(
        &self,
        py: Python<'py>,
        connection: Option<&str>,
        part: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let missing = || PyValueError::new_err("there is no trace: run with trace=True");
        columns::events(py, self.part(connection, part)?.events.as_ref().ok_or_else(missing)?)
    }

    /// Return the delays of packets: a row for each that arrived, at the end of its flow or of a link.
    ///
    /// Returns
    /// -------
    /// dict of str to numpy.ndarray
    ///     The columns ``time_s``, ``flow``, ``from``, ``to``, ``link`` (whether it is that of a link), ``size_bytes``,
    ///     ``delay_s`` and ``queueing_s``.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the run was made without ``delays=True``.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> delays = lasthop.load("ebsn-example").run("ebsn", delays=True).delays()
    /// >>> acknowledgements = delays["link"] & (delays["from"] == "mobile")
    /// >>> float(delays["delay_s"][acknowledgements].min().round(3))
    /// 0.025
    fn delays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let missing = || PyValueError::new_err("there are no delays: run with delays=True");
        columns::delays(py, self.run.delays.as_ref().ok_or_else(missing)?)
    }

    /// Return the time series of a connection's sender, or of the sender of one part of a split connection.
    ///
    /// Parameters
    /// ----------
    /// connection : str, optional
    ///     Its name. By default the first.
    /// part : int, default 0
    ///     Index of the part in `parts`: 0 is the part that begins at the source.
    ///
    /// Returns
    /// -------
    /// dict of str to numpy.ndarray
    ///     ``time_s`` and a column for each quantity: a row at the start and after each change.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the run was made without ``series=True``.
    /// KeyError
    ///     If there is no such connection.
    /// IndexError
    ///     If there is no such part.
    #[pyo3(signature = (connection = None, part = 0))]
    fn series<'py>(
        &self,
        py: Python<'py>,
        connection: Option<&str>,
        part: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let missing = || PyValueError::new_err("there is no series: run with series=True");
        columns::series(py, self.part(connection, part)?.series.as_ref().ok_or_else(missing)?)
    }

    /// Return the time series of the scheme's agents at base stations.
    ///
    /// Returns
    /// -------
    /// dict of str to dict of str to numpy.ndarray
    ///     For each agent that reports quantities, keyed by its link or by the access point of its cell:
    ///     `time_s` and a column for each quantity. Empty without ``series=True``.
    fn agents<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let shown = self.run.agents.iter().filter_map(|agent| {
            let series = agent.series.as_ref().filter(|series| !series.columns.is_empty())?;
            Some((agent.name.clone(), series))
        });
        let each = |(name, series)| Ok((name, columns::series(py, series)?));
        shown.map(each).collect::<PyResult<Vec<_>>>()?.into_py_dict(py)
    }

    #[getter]
    fn recorded_rows(&self) -> usize {
        self.run.recorded_rows()
    }

    /// Write the result as a JSON document.
    ///
    /// Returns
    /// -------
    /// str
    ///     The document; docs/reference/metrics.md defines its keys.
    fn to_json(&self) -> PyResult<String> {
        report::to_json(&self.scenario, &[&self.run])
            .map_err(|error| PyValueError::new_err(error.to_string()))
    }

    #[getter]
    fn title(&self) -> &str {
        &self.scenario.title
    }

    fn __repr__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop.core.display")?.call_method1("text", (slf,))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop.core.display")?.call_method1("html", (slf,))
    }
}

/// The one of several that is called `name`; by default the first.
fn named<'a, T>(
    kind: &str,
    all: &'a [T],
    name_of: impl Fn(&T) -> &String,
    name: Option<&str>,
) -> PyResult<&'a T> {
    let found = match name {
        None => all.first(),
        Some(name) => all.iter().find(|each| name_of(each) == name),
    };
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|each| name_of(each).as_str()).collect();
        PyKeyError::new_err(match (names.is_empty(), name) {
            (true, _) => format!("there is no {kind}"),
            (_, name) => {
                let name = name.unwrap_or_default();
                format!("no {kind} is called {name:?}; there are {}", names.join(", "))
            }
        })
    })
}
