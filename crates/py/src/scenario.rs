//! Scenarios.

mod point;
mod set_ups;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use lasthop_experiment::{Experiment, Metrics, Observe, SharedSetup, report};
use lasthop_live::Emulation;
use lasthop_predict::{ChannelBursts, LinkAsked};
use lasthop_scenario::{Bytes, Scheme};
use numpy::PyArray1;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyDict, PyMapping, PyString, PyTuple};

use crate::error::{run_error, scenario_error};
use crate::metric::{UnknownMetric, metric_name};
use crate::python_scheme::{self, NameOrScheme, PythonScheme};
use crate::run::Run;
use crate::value;

pub(crate) use self::point::Point;
use self::set_ups::SetUps;
use self::watch::Watch;

/// A simulation scenario: for example a transfer over a wired link and a wireless last hop.
///
/// Created by `Scenario.load` from a file or by `Scenario.parse` from text; immutable.
///
/// Attributes
/// ----------
/// title : str
///     A one-line description.
/// file : str
///     The name of the file.
/// sender : str or None
///     The name of the TCP sender, if the scenario states one.
/// schemes : list of str
///     The schemes to compare.
/// python_schemes : tuple of PythonScheme
///     The schemes written in Python that it knows.
/// metrics : tuple of str
///     The names of the metrics of its runs: `METRICS`, and the counters of its schemes' agents, ``SCHEME.COUNTER``.
/// part_metrics : tuple of str
///     The names of the metrics of the parts of its runs: ``connection.NAME.METRIC``, ``traffic.NAME.METRIC``,
///     ``application.NAME.METRIC`` and ``agent.NAME.COUNTER``.
/// sweep : dict of str to list of str
///     The varied parameters in order, each with its path and its values in the syntax of an
///     override.
/// hash : str
///     Identifies everything that determines the result of a run except scheme, seed and run number:
///     16 hexadecimal digits. Formatting, title, schemes and sweep do not affect it, so a point of a
///     sweep has the same hash in every study.
///
/// Examples
/// --------
/// >>> from lasthop import Scenario
/// >>> scenario = Scenario.parse('''
/// ...     [transfer]
/// ...     size = "100 KB"
/// ...     [wired]
/// ...     rate = "10 Mbps"
/// ...     [radio]
/// ...     rate = "2 Mbps"
/// ... ''')
/// >>> scenario.run("basic").metrics["finished"]
/// True
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Scenario(Arc<lasthop_scenario::Scenario>, SetUps);

impl Scenario {
    fn new(scenario: Arc<lasthop_scenario::Scenario>) -> Scenario {
        Scenario(scenario, SetUps::default())
    }

    pub(crate) fn inner(&self) -> &Arc<lasthop_scenario::Scenario> {
        &self.0
    }
}

/// A size passed from Python.
#[derive(FromPyObject)]
enum Size {
    Number(u64),
    Text(String),
}

impl Size {
    fn bytes(self) -> PyResult<Bytes> {
        match self {
            Size::Number(bytes) => Ok(Bytes(bytes)),
            Size::Text(text) => match text.parse() {
                Ok(size) => Ok(size),
                Err(error) => Err(PyValueError::new_err(error.to_string())),
            },
        }
    }
}

#[pymethods]
impl Scenario {
    /// Return the JSON Schema of scenario files.
    ///
    /// Returns
    /// -------
    /// str
    ///     A document of draft 7, from which editors complete and check TOML: every key with its type, its default and its
    ///     meaning.
    ///
    /// Examples
    /// --------
    /// >>> import json
    /// >>> schema = json.loads(lasthop.Scenario.json_schema())
    /// >>> schema["properties"]["limit"]["default"]
    /// '600 s'
    #[staticmethod]
    fn json_schema() -> String {
        lasthop_scenario::Scenario::json_schema()
    }

    /// Return the JSON Schema of the results of :meth:`report`.
    ///
    /// Returns
    /// -------
    /// str
    ///     A document of draft 7: every key with its meaning, and every metric with its definition.
    ///
    /// Examples
    /// --------
    /// >>> import json
    /// >>> json.loads(lasthop.Scenario.report_schema())["properties"]["run"]["description"]
    /// "The run's number."
    #[staticmethod]
    fn report_schema() -> String {
        report::json_schema()
    }

    /// Read a scenario file.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///     The TOML file.
    /// overrides : sequence of str, optional
    ///     Settings that override those of the file, in order, each like ``"radio.rate=2 Mbps"``.
    /// python_schemes : sequence of PythonScheme, optional
    ///     Schemes written in Python that the scenario may name.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     The validated scenario.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the file cannot be read, or the scenario is invalid.
    #[staticmethod]
    #[pyo3(
        signature = (path, overrides = Vec::new(), python_schemes = Vec::new()),
        text_signature = "(path, overrides=(), python_schemes=())"
    )]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        overrides: Vec<String>,
        python_schemes: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Scenario> {
        let external = python_scheme::external(&python_schemes)?;
        let scenario = lasthop_scenario::Scenario::load_with(&path, &overrides, &external);
        scenario.map(|scenario| Scenario::new(Arc::new(scenario))).map_err(|error| scenario_error(py, &error))
    }

    /// Read a scenario from text.
    ///
    /// Parameters
    /// ----------
    /// text : str
    ///     The contents of a scenario file.
    /// name : str, optional
    ///     The name used in messages.
    /// overrides : sequence of str, optional
    ///     As in `load`.
    /// python_schemes : sequence of PythonScheme, optional
    ///     As in `load`.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     The validated scenario.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the scenario is invalid.
    #[staticmethod]
    #[pyo3(
        signature = (text, name = "<string>", overrides = Vec::new(), python_schemes = Vec::new()),
        text_signature = "(text, name='<string>', overrides=(), python_schemes=())"
    )]
    fn parse(
        py: Python<'_>,
        text: &str,
        name: &str,
        overrides: Vec<String>,
        python_schemes: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Scenario> {
        let external = python_scheme::external(&python_schemes)?;
        let scenario = lasthop_scenario::Scenario::parse_with(text, name, &overrides, &external);
        scenario.map(|scenario| Scenario::new(Arc::new(scenario))).map_err(|error| scenario_error(py, &error))
    }

    /// Build a scenario from nested mappings with the structure of a file.
    ///
    /// Parameters
    /// ----------
    /// tables : mapping of str to Any
    ///     The scenario: tables as mappings, and values as in `with_`.
    /// name : str, optional
    ///     The name used in messages.
    /// python_schemes : sequence of PythonScheme, optional
    ///     Schemes written in Python that the scenario may name.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     The validated scenario.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If it is not a valid scenario.
    /// TypeError
    ///     If a value is of a type that no setting has.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> scenario = Scenario.from_tables({
    /// ...     "transfer": {"size": 100_000},
    /// ...     "wired": {"rate": 10e6, "delay": 0.02},
    /// ...     "radio": {"rate": "2 Mbps", "channel": {"iid": {"ber": 1e-6}}},
    /// ... })
    /// >>> scenario.run("basic").metrics["finished"]
    /// True
    #[staticmethod]
    #[pyo3(
        signature = (tables, name = "<tables>", python_schemes = Vec::new()),
        text_signature = "(tables, name='<tables>', python_schemes=())"
    )]
    fn from_tables(
        py: Python<'_>,
        tables: &Bound<'_, PyMapping>,
        name: &str,
        python_schemes: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Scenario> {
        let external = python_scheme::external(&python_schemes)?;
        let scenario = lasthop_scenario::Scenario::from_table(value::table_of("", tables)?, name, &external);
        scenario.map(|scenario| Scenario::new(Arc::new(scenario))).map_err(|error| scenario_error(py, &error))
    }

    /// Return the scenario with changed settings.
    ///
    /// It is the scenario that its file would give with these changes: a changed preset or profile gives all settings
    /// that the file does not state.
    ///
    /// Parameters
    /// ----------
    /// *changes : str or mapping of str to Any
    ///     Mappings state values by their keys. A number is in the SI unit of its key: seconds, bytes, bits per second,
    ///     watts; a `Quantity` has a unit of its own. A string is what a file has there, such as ``"2 Mbps"``. A mapping is a
    ///     table, and None removes a key or a table. A string instead of a mapping is an assignment, as of ``--set``:
    ///     ``"radio.rate=2 Mbps"``. Later changes take precedence.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     The changed copy.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the changed scenario is invalid. `key` names the setting.
    /// TypeError
    ///     If a value is of a type that no setting has.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> scenario = lasthop.load("last-mile").with_({
    /// ...     "radio.rate": 8e6,
    /// ...     "radio.channel": {"gilbert": {"loss": 0.02, "burst": 5}},
    /// ...     "transfer.size": "100 KB",
    /// ... })
    /// >>> scenario["radio.rate"], scenario["radio.channel.gilbert.burst"], scenario["transfer.size"]
    /// (8000000, 5.0, 100000)
    #[pyo3(signature = (*changes))]
    fn with_(&self, py: Python<'_>, changes: Vec<Bound<'_, PyAny>>) -> PyResult<Scenario> {
        let changed = self.0.with(value::changes(&changes)?);
        changed.map(|scenario| Scenario::new(Arc::new(scenario))).map_err(|error| scenario_error(py, &error))
    }

    /// Return the value of a setting, or a table of settings.
    ///
    /// Parameters
    /// ----------
    /// key : str
    ///     The key, such as ``"radio.rate"``, or the path of a table.
    ///
    /// Returns
    /// -------
    /// Any
    ///     The value, with all defaults: a bool, a number, a string, a `Quantity`, a list or a dict. Quantities are numbers in SI units; numbers of packets and segments, and decibels, are
    ///     a `Quantity`.
    ///
    /// Raises
    /// ------
    /// KeyError
    ///     If the scenario has no such key, or the key has no value.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> scenario = lasthop.load("last-mile")
    /// >>> scenario["limit"], scenario["radio"]["delay"]
    /// (60.0, 0.001)
    fn __getitem__<'py>(&self, py: Python<'py>, key: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.0.values().at(key) {
            Some(value) => value::object(py, value),
            None => Err(PyKeyError::new_err(key.to_owned())),
        }
    }

    /// Return the value of a setting as a person would write it after ``--set KEY=``.
    ///
    /// Parameters
    /// ----------
    /// key : str
    ///     As for an item.
    ///
    /// Returns
    /// -------
    /// str
    ///     The text.
    ///
    /// Raises
    /// ------
    /// KeyError
    ///     As for an item.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> lasthop.load("last-mile").text("radio.rate")
    /// '10 Mbps'
    fn text(&self, key: &str) -> PyResult<String> {
        self.0.text(key).ok_or_else(|| PyKeyError::new_err(key.to_owned()))
    }

    /// Return all settings in numbers, without the sweep.
    ///
    /// Returns
    /// -------
    /// dict of str to Any
    ///     Nested dicts with the structure of a file, and values as for an item.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> lasthop.load("last-mile").values()["radio"]["rate"]
    /// 10000000
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        value::object(py, &self.0.values())
    }

    /// Return whether the scenario has a value for a key, or a table.
    ///
    /// Parameters
    /// ----------
    /// key : str
    ///     As for an item.
    fn __contains__(&self, key: &str) -> bool {
        self.0.values().at(key).is_some()
    }

    /// Return the scenario with other schemes to compare.
    ///
    /// Parameters
    /// ----------
    /// schemes : sequence of str or PythonScheme
    ///     Names of schemes and combinations such as ``"snoop + arq"``, and schemes written in Python.
    /// python_schemes : sequence of PythonScheme, optional
    ///     Schemes that names may refer to, besides those of Lasthop, those in `schemes` and those that the scenario knows
    ///     already.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     The changed copy.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If a scheme is unknown, or cannot work with this scenario's links.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> class Nothing(lasthop.PythonScheme):
    /// ...     name = "nothing"
    /// >>> scenario = lasthop.load("ebsn-example").with_schemes(["basic", Nothing(), "ebsn"])
    /// >>> scenario.schemes
    /// ['basic', 'nothing', 'ebsn']
    /// >>> basic, nothing = (scenario.run(name).metrics for name in ["basic", "nothing"])
    /// >>> basic == nothing
    /// True
    #[pyo3(
        signature = (schemes, python_schemes = Vec::new()),
        text_signature = "($self, schemes, python_schemes=())"
    )]
    fn with_schemes(
        &self,
        py: Python<'_>,
        schemes: Vec<Bound<'_, PyAny>>,
        python_schemes: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Scenario> {
        let (mut names, mut external) = (Vec::new(), python_scheme::shared(&python_schemes)?);
        for scheme in schemes {
            match PythonScheme::from_object(&scheme)? {
                NameOrScheme::Name(name) => names.push(name),
                NameOrScheme::Scheme(scheme) => {
                    names.push(scheme.name().to_owned());
                    external.push(scheme as Arc<dyn Scheme + Send + Sync>);
                }
            }
        }
        let changed = self.0.with_schemes(names, external);
        changed.map(|scenario| Scenario::new(Arc::new(scenario))).map_err(|error| scenario_error(py, &error))
    }

    #[getter]
    fn python_schemes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, python_scheme::objects(py, &self.0.scheme.external))
    }

    /// Return the canonical form, with all defaults and units written out.
    ///
    /// Returns
    /// -------
    /// str
    ///     TOML text; parsing it yields an equal scenario.
    fn to_toml(&self) -> String {
        self.0.to_toml()
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.title
    }

    #[getter]
    fn file(&self) -> &str {
        &self.0.file
    }

    #[getter]
    fn sender(&self) -> Option<&str> {
        self.0.sender.as_deref()
    }

    /// Return whether a name may be that of the sender.
    ///
    /// Parameters
    /// ----------
    /// sender : str
    ///     The name.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether it is a sender that the scenario defines, a profile, or a profile with a congestion control.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> scenario = lasthop.load("ebsn-example")
    /// >>> [scenario.knows_sender(name) for name in ("linux", "linux-hybla", "linux-hibla")]
    /// [True, True, False]
    fn knows_sender(&self, sender: &str) -> bool {
        self.0.knows_sender(sender)
    }

    #[getter]
    fn schemes(&self) -> Vec<String> {
        self.0.schemes.clone()
    }

    #[getter]
    fn metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let counters = self.0.counters().map_err(|error| scenario_error(py, &error))?;
        PyTuple::new(py, Metrics::names().map(str::to_owned).chain(counters).collect::<Vec<_>>())
    }

    #[getter]
    fn part_metrics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let names = self.0.metric_names().map_err(|error| scenario_error(py, &error))?;
        PyTuple::new(py, names.of_parts().collect::<Vec<_>>())
    }

    /// Find a metric of its runs by name.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     One of `metrics` or `part_metrics`. The name of a part may be quoted as in TOML, or not at all.
    ///
    /// Returns
    /// -------
    /// str or UnknownMetric
    ///     The name as `part_metrics` has it; or what does not exist.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the name is quoted wrongly.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> scenario = lasthop.load("ebsn-example")
    /// >>> scenario.find_metric("connection.'transfer'.goodput")
    /// 'connection.transfer.goodput'
    /// >>> missing = scenario.find_metric("connection.transfr.goodput")
    /// >>> missing.what, missing.name, missing.known
    /// ('connection', 'transfr', ['transfer'])
    fn find_metric<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let name = metric_name(name)?;
        let names = self.0.metric_names().map_err(|error| scenario_error(py, &error))?;
        match names.find(&name) {
            Ok(_) => Ok(PyString::new(py, &name.to_string()).into_any()),
            Err(unknown) => Ok(Bound::new(py, UnknownMetric(unknown))?.into_any()),
        }
    }

    /// Return whether its runs with a scheme have a metric, or null where it does not apply.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     The metric.
    /// scheme : str
    ///     The scheme.
    ///
    /// Returns
    /// -------
    /// bool
    ///     False for the counters of another scheme, and for parts that this scenario lacks.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If the name is quoted wrongly.
    fn has_metric(&self, py: Python<'_>, name: &str, scheme: &str) -> PyResult<bool> {
        let name = metric_name(name)?;
        let setup = self.0.set_up(scheme).map_err(|error| scenario_error(py, &error))?;
        Ok(setup.metric_names().find(&name).is_ok())
    }

    #[getter]
    fn sweep<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.0.sweep.axes().collect::<Vec<_>>().into_py_dict(py)
    }

    #[getter]
    fn hash(&self) -> String {
        self.0.hash()
    }

    /// Return the points of the sweep.
    ///
    /// Returns
    /// -------
    /// list of Point
    ///     One for each combination of values, in the order of the file; the last parameter varies
    ///     fastest. Without a sweep, this scenario alone.
    fn points(&self) -> Vec<Point> {
        self.0.points().into_iter().map(Point::new).collect()
    }

    /// Return the bad periods of the channel.
    ///
    /// Channel states depend on the seed and the run number only, and are the same for every scheme.
    ///
    /// Parameters
    /// ----------
    /// until : float
    ///     End of the period of interest in seconds; at most the time limit of the scenario.
    /// seed : int, default 1
    ///     The study's seed.
    /// run : int, default 0
    ///     The run number.
    ///
    /// Returns
    /// -------
    /// list of (float, float)
    ///     Start and end in seconds of each bad period that begins before `until`. Empty for a channel
    ///     without states.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> Scenario.load("scenarios/ebsn-example.toml").bad_periods(30.0)
    /// [(10.0, 14.0), (24.0, 28.0)]
    #[pyo3(signature = (until, *, seed=1, run=0))]
    fn bad_periods(&self, until: f64, seed: u64, run: u64) -> Vec<(f64, f64)> {
        lasthop_predict::bad_periods(&self.0, seed, run, until)
    }

    #[getter]
    fn varying_links(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        lasthop_predict::varying_links(&self.0).map_err(|error| scenario_error(py, &error))
    }

    /// Return the rate and the delay of a link over time.
    ///
    /// They depend on the seed and the run number only, and are the same for every scheme.
    ///
    /// Parameters
    /// ----------
    /// until : float
    ///     End of the time of interest in seconds; at most the time limit of the scenario.
    /// link : str, optional
    ///     The name of the link. By default the first whose rate or delay varies.
    /// up : bool, default False
    ///     Whether to return the direction to the base station, or to the first end of a wired link.
    /// seed : int, default 1
    ///     The study's seed.
    /// run : int, default 0
    ///     The run number.
    ///
    /// Returns
    /// -------
    /// dict of str to numpy.ndarray
    ///     `time_s`, from which on a row holds, `rate_bps` and `delay_s`. A trace of transmission
    ///     opportunities is counted in bins of 100 ms. The delay is NaN if each packet has its own.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If there is no such link, or too much of it.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> varying = ["radio.rate.lognormal={ median = '5 Mbps', sigma = 0.5 }"]
    /// >>> timing = Scenario.load("scenarios/last-mile.toml", varying).link_timing(10.0)
    /// >>> len(timing["rate_bps"])
    /// 100
    #[pyo3(signature = (until, link = None, *, up=false, seed=1, run=0))]
    fn link_timing<'py>(
        &self,
        py: Python<'py>,
        until: f64,
        link: Option<&str>,
        up: bool,
        seed: u64,
        run: u64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let asked = LinkAsked { link, up, seed, run, until_s: until };
        let rows =
            lasthop_predict::link_timing(&self.0, asked).map_err(|error| scenario_error(py, &error))?;
        let table = PyDict::new(py);
        for (index, name) in ["time_s", "rate_bps", "delay_s"].into_iter().enumerate() {
            let column: Vec<f64> = rows.iter().map(|row| row[index]).collect();
            table.set_item(name, PyArray1::from_vec(py, column))?;
        }
        Ok(table)
    }

    /// Return the transmission opportunities of a link: a trace for mahimahi, or for ``rate.mahimahi``.
    ///
    /// Parameters
    /// ----------
    /// until : float
    ///     As in `link_timing`.
    /// link : str, optional
    ///     As in `link_timing`.
    /// up : bool, default False
    ///     As in `link_timing`.
    /// seed : int, default 1
    ///     As in `link_timing`.
    /// run : int, default 0
    ///     As in `link_timing`.
    ///
    /// Returns
    /// -------
    /// list of int
    ///     The time of each in milliseconds: when another 1504 bytes could have been sent.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     As in `link_timing`.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> Scenario.load("scenarios/last-mile.toml").mahimahi(0.005, "base-mobile")
    /// [2, 3, 4, 5]
    #[pyo3(signature = (until, link = None, *, up=false, seed=1, run=0))]
    fn mahimahi(
        &self,
        py: Python<'_>,
        until: f64,
        link: Option<&str>,
        up: bool,
        seed: u64,
        run: u64,
    ) -> PyResult<Vec<u64>> {
        let asked = LinkAsked { link, up, seed, run, until_s: until };
        lasthop_predict::link_opportunities(&self.0, asked).map_err(|error| scenario_error(py, &error))
    }

    /// Return what an emulation of the scenario needs to know, and check that it can be emulated.
    ///
    /// Parameters
    /// ----------
    /// scheme : str
    ///     The scheme.
    ///
    /// Returns
    /// -------
    /// dict of str to Any
    ///     `hosts`, the names of the two ends of the first connection; `packet_size`, the size of its packets in
    ///     bytes; `slowest_rate_bps`, the lowest mean rate of a link between them, in either direction;
    ///     `simulated_flows`, the number of other flows.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the scenario cannot be emulated with this scheme.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> Scenario.load("scenarios/last-mile.toml").emulated("basic")["hosts"]
    /// ('fixed', 'mobile')
    fn emulated<'py>(&self, py: Python<'py>, scheme: &str) -> PyResult<Bound<'py, PyDict>> {
        let emulation = Emulation::new(&self.0, scheme, 0, 0).map_err(|error| scenario_error(py, &error))?;
        let facts = PyDict::new(py);
        facts.set_item("hosts", PyTuple::new(py, emulation.hosts())?)?;
        facts.set_item("packet_size", emulation.packet_size().0)?;
        facts.set_item("slowest_rate_bps", emulation.slowest_rate().as_bps())?;
        facts.set_item("simulated_flows", emulation.simulated_flows())?;
        Ok(facts)
    }

    /// Return the losses of Gilbert and Gilbert-Elliott channels, by packets and by time.
    ///
    /// The conversion is for packets of ``tcp.packet_size`` that follow each other without a gap at the
    /// rate of the link.
    ///
    /// Returns
    /// -------
    /// list of dict of str to Any
    ///     For each link with such a channel that data cross: `link`; `packet_size`, in bytes;
    ///     `packets_per_s`; `by_packets`, whether the state changes by packets instead of by time; `p` and
    ///     `r`, the probabilities of a change from good to bad and back between two packets; `loss_good`
    ///     and `loss_bad`, in the two states; `loss` in all; `burst_packets` and `gap_packets`, the mean
    ///     numbers of consecutive packets that are lost and that are not; `good_s` and `bad_s`, the mean
    ///     stays in the two states. None where there is no such number.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the scenario cannot be run.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> bursty = ["radio.channel.gilbert={ loss = 0.02, burst = 5 }"]
    /// >>> (link,) = Scenario.load("scenarios/last-mile.toml", bursty).channel_bursts()
    /// >>> link["link"], round(link["r"], 3), round(link["p"], 5)
    /// ('base-mobile', 0.2, 0.00408)
    fn channel_bursts<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let all = lasthop_predict::channel_bursts(&self.0).map_err(|error| scenario_error(py, &error))?;
        let row = |each: ChannelBursts| {
            let ChannelBursts { link, packet_size, packets_per_s, bursts } = each;
            let row = PyDict::new(py);
            row.set_item("link", link)?;
            row.set_item("packet_size", packet_size.0)?;
            row.set_item("packets_per_s", packets_per_s)?;
            row.set_item("by_packets", bursts.by_packets)?;
            for (key, value) in [
                ("p", Some(bursts.p)),
                ("r", Some(bursts.r)),
                ("loss_good", Some(bursts.loss_good)),
                ("loss_bad", Some(bursts.loss_bad)),
                ("loss", Some(bursts.loss)),
                ("burst_packets", bursts.burst_packets),
                ("gap_packets", bursts.gap_packets),
                ("good_s", bursts.good_s),
                ("bad_s", bursts.bad_s),
            ] {
                row.set_item(key, value)?;
            }
            Ok(row)
        };
        all.into_iter().map(row).collect()
    }

    /// Return the packet loss probability of a wireless link, from the closed form of its channel.
    ///
    /// The packet is sent once, uncoded, at a random instant of the stationary channel. Packets whose start
    /// depends on the channel have a different loss rate: for example those of a sender that waits for
    /// acknowledgements.
    ///
    /// Parameters
    /// ----------
    /// size : str or int
    ///     The packet size, headers included: ``"552 B"``, or a number of bytes.
    /// link : str, optional
    ///     The name of the link, such as ``"base-mobile"``. By default the first wireless link that a
    ///     connection crosses. The direction is that of the data. In a cell, a packet is lost with its
    ///     data frame, assuming no collisions, or above the MAC.
    ///
    /// Returns
    /// -------
    /// float
    ///     The probability. Overhead, fragmentation and padding of the link layer are included.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the link does not exist, or has no closed form because of its channel, outages or a code that
    ///     protects everything.
    /// ValueError
    ///     If `size` is invalid.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> scenario = Scenario.load("scenarios/split-wlan.toml")
    /// >>> round(scenario.packet_loss("552 B"), 4)
    /// 0.0478
    #[pyo3(signature = (size, link = None))]
    fn packet_loss(&self, py: Python<'_>, size: Size, link: Option<&str>) -> PyResult<f64> {
        let size = size.bytes()?;
        lasthop_predict::packet_loss(&self.0, size, link).map_err(|error| scenario_error(py, &error))
    }

    /// Return an upper bound of the data packets that a run delivers.
    ///
    /// It is what the narrowest links carry until the time limit, what windows allow, or the sizes of transfers.
    /// Retransmissions and what a queue drops come on top.
    ///
    /// Returns
    /// -------
    /// float
    ///     The number of packets.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> lasthop.load("last-mile", ["limit=12 s"]).packet_bound()  # 10 Mb/s, 1500 B
    /// 10000.0
    fn packet_bound(&self) -> f64 {
        lasthop_predict::packet_bound(&self.0)
    }

    /// Return the longest time over which a run measures throughput.
    ///
    /// It is the time from the start of the first transfer, or the end of the warm-up if later, until the limit.
    ///
    /// Returns
    /// -------
    /// float
    ///     The time in seconds.
    ///
    /// Examples
    /// --------
    /// >>> import lasthop
    /// >>> lasthop.load("last-mile", ["limit=12 s", "warmup=2 s"]).measured_time_s()
    /// 10.0
    fn measured_time_s(&self) -> f64 {
        lasthop_predict::measured_time_s(&self.0)
    }

    /// Return the capabilities of the wireless links that a scheme disables.
    ///
    /// Parameters
    /// ----------
    /// scheme : str
    ///     The scheme's name.
    ///
    /// Returns
    /// -------
    /// list of str
    ///     ``"arq"`` if the links have an ARQ that is off under this scheme, ``"fec"`` if they have a code
    ///     that is unused.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> scenario = Scenario.load("scenarios/ebsn-example.toml")
    /// >>> scenario.unused_by("basic"), scenario.unused_by("ebsn")
    /// (['arq'], [])
    fn unused_by(&self, scheme: &str) -> Vec<&'static str> {
        self.0.unused_by(scheme)
    }

    /// Return whether wireless links fragment packets of a sender that would find the MTU of its path.
    ///
    /// Returns
    /// -------
    /// (int, int, bool) or None
    ///     The size of a full packet, the smallest `mtu` on its path, less what a tunnel adds, and whether the sender uses QUIC;
    ///     None if the packets of each connection fit, their size is stated, or the profile is not that of a real system.
    fn fragmented(&self) -> Option<(u64, u64, bool)> {
        self.0.fragmented().map(|found| (found.packet.0, found.largest.0, found.is_quic))
    }

    /// Return whether full packets vanish in a path-MTU black hole.
    ///
    /// Returns
    /// -------
    /// (int, int, bool) or None
    ///     The size of a full packet, the smallest `black_hole` on its path, less what a tunnel adds, and whether the sender uses
    ///     QUIC; None if the full packets of each connection pass its path, or it has `tcp.mtu_probing` or `quic.mtu_discovery`.
    fn lost_in_black_hole(&self) -> Option<(u64, u64, bool)> {
        self.0.lost_in_black_hole().map(|found| (found.packet.0, found.largest.0, found.is_quic))
    }

    /// Return whether senders with `tcp.mtu_probing` may take outages or fades for a path-MTU black hole.
    ///
    /// Returns
    /// -------
    /// float or None
    ///     The length of outages, or the mean length of fades, in seconds, of those that may last for three seconds; None if there
    ///     are none on the path of a connection with `tcp.mtu_probing`.
    fn taken_for_black_hole(&self) -> Option<f64> {
        self.0.taken_for_black_hole().map(|lasts| lasts.as_secs_f64())
    }

    /// Return the schemes of a combination that act only by reactions of TCP.
    ///
    /// Parameters
    /// ----------
    /// scheme : str
    ///     The name of the combination.
    ///
    /// Returns
    /// -------
    /// dict of str to str
    ///     Each with the reason why it has no effect in a run in which the metric ``reactions`` is zero: what the sender
    ///     ignores, or that nothing called for it.
    ///
    /// Examples
    /// --------
    /// >>> from lasthop import Scenario
    /// >>> scenario = Scenario.load("scenarios/ebsn-example.toml")
    /// >>> scenario.reacting("ebsn"), scenario.reacting("basic")
    /// ({'ebsn': 'nothing called for it that the sender had not done already'}, {})
    fn reacting(&self, scheme: &str) -> BTreeMap<&'static str, &'static str> {
        self.0.reacting(scheme).into_iter().collect()
    }

    /// Run the scenario with one scheme.
    ///
    /// The result depends only on the arguments. Runs of different schemes with the same seed and run number
    /// meet the same fades. Other Python threads continue meanwhile, and Ctrl-C stops the run.
    ///
    /// Parameters
    /// ----------
    /// scheme : str or PythonScheme, optional
    ///     The name of the scheme, or one written in Python. By default the first scheme of the scenario.
    /// seed : int, default 1
    ///     The seed of the study.
    /// run : int, default 0
    ///     The run number within the study.
    /// trace : bool, default False
    ///     Whether to record packet traces, for `Run.events`.
    /// series : bool, default False
    ///     Whether to record time series of senders, for `Run.series`.
    /// delays : bool, default False
    ///     Whether to record the delays of packets, for `Run.delays`.
    /// pcap : str or os.PathLike, optional
    ///     Path of a pcapng file to write, captured at the source and at base stations.
    /// qlog : bool, default False
    ///     Whether to keep the qlogs of connections and applications over QUIC, for `Run.qlogs`.
    /// progress : Callable[[float], object], optional
    ///     Called with the simulated time in seconds, ten times a second during the run.
    ///
    /// Returns
    /// -------
    /// Run
    ///     The result.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the scheme is unknown or does not support the links of this scenario; or if the run exceeds the
    ///     memory limit: too many packets in flight, or more than 4,000,000 rows in trace, series and delays.
    /// OSError
    ///     If the pcapng file cannot be written.
    /// PythonSchemeError
    ///     If a callback of a scheme written in Python raised an exception, which is the cause.
    #[pyo3(signature = (
        scheme = None, *, seed = 1, run = 0, trace = false, series = false, delays = false, pcap = None, qlog = false,
        progress = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn run(
        &self,
        py: Python<'_>,
        scheme: Option<&Bound<'_, PyAny>>,
        seed: u64,
        run: u64,
        trace: bool,
        series: bool,
        delays: bool,
        pcap: Option<PathBuf>,
        qlog: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Run> {
        let (name, of_python) = match scheme.map(PythonScheme::from_object).transpose()? {
            None => (self.0.schemes[0].clone(), None),
            Some(NameOrScheme::Name(name)) => (name, None),
            Some(NameOrScheme::Scheme(scheme)) => (scheme.name().to_owned(), Some(scheme)),
        };
        let scenario = match of_python {
            None => self.0.clone(),
            Some(scheme) => {
                let known =
                    self.0.with_schemes(vec![name.clone()], [scheme as Arc<dyn Scheme + Send + Sync>]);
                Arc::new(known.map_err(|error| scenario_error(py, &error))?)
            }
        };
        let set_up = py.detach(|| match Arc::ptr_eq(&scenario, &self.0) {
            true => self.1.get(&scenario, &name),
            false => SharedSetup::new(scenario.clone(), &name),
        });
        let set_up = set_up.map_err(|error| scenario_error(py, &error))?;
        let observe = Observe { trace, series, delays, pcap: pcap.as_deref(), qlog };
        let mut watch = Watch::new(progress);
        let result =
            py.detach(|| set_up.get().run_recorded(seed, run, observe, &mut |now| watch.keeps_going(now)));
        match watch.raised {
            Some(error) => Err(error),
            None => result
                .map(|run| Run::new(scenario.clone(), run))
                .map_err(|error| run_error(py, &error, seed, run)),
        }
    }

    /// Return the results of several runs of this scenario as one JSON document.
    ///
    /// Parameters
    /// ----------
    /// runs : sequence of Run
    ///     Runs of this scenario with one seed and run number.
    ///
    /// Returns
    /// -------
    /// str
    ///     The document; docs/reference/metrics.md defines its keys.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If there are no runs, or their seeds or run numbers differ.
    fn report(&self, runs: Vec<PyRef<'_, Run>>) -> PyResult<String> {
        let runs: Vec<&lasthop_experiment::Run> = runs.iter().map(|run| run.inner()).collect();
        report::to_json(&self.0, &runs).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    fn __eq__(&self, other: &Scenario) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        u64::from_str_radix(&self.0.hash(), 16).unwrap_or_default()
    }

    fn __repr__(&self) -> String {
        format!("<Scenario {:?} from {:?}>", self.0.title, self.0.file)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop.core.display")?.call_method1("html", (slf,))
    }
}
