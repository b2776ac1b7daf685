//! Scenarios.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lasthop_study::Observe;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{run_error, scenario_error};
use crate::run::Run;

/// What is simulated: a transfer over a wired link and a wireless last hop.
///
/// Made by `Scenario.load` from a file or by `Scenario.parse` from text; it cannot be changed.
///
/// Attributes
/// ----------
/// title : str
///     What it is, in a line.
/// file : str
///     The name of the file that it was read from.
/// schemes : list of str
///     The schemes to compare.
/// hash : str
///     A name for what the scenario says, whatever its formatting: 16 hexadecimal digits.
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
pub(crate) struct Scenario(Arc<lasthop_study::Scenario>);

impl Scenario {
    pub(crate) fn inner(&self) -> &Arc<lasthop_study::Scenario> {
        &self.0
    }
}

/// Python's signals, heard while Rust runs.
struct Signals {
    heard: Instant,
    /// What a signal's handler raised: for Ctrl-C, `KeyboardInterrupt`.
    raised: Option<PyErr>,
}

impl Signals {
    fn new() -> Signals {
        Signals { heard: Instant::now(), raised: None }
    }

    /// Lets Python handle its signals, if it has not done so for a while, and says whether their
    /// handlers have raised nothing.
    fn quiet(&mut self) -> bool {
        if self.heard.elapsed() >= Duration::from_millis(100) {
            self.raised = Python::attach(|py| py.check_signals()).err();
            self.heard = Instant::now();
        }
        self.raised.is_none()
    }
}

#[pymethods]
impl Scenario {
    /// Read a scenario file.
    ///
    /// Parameters
    /// ----------
    /// path : str or os.PathLike
    ///     The TOML file.
    /// overrides : sequence of str, optional
    ///     Settings to lay over it in their order, each as ``"radio.rate=2 Mbps"``.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     The scenario, checked.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the file cannot be read, or is not a sound scenario.
    #[staticmethod]
    #[pyo3(signature = (path, overrides = Vec::new()), text_signature = "(path, overrides=())")]
    fn load(py: Python<'_>, path: PathBuf, overrides: Vec<String>) -> PyResult<Scenario> {
        let scenario = lasthop_study::Scenario::load(&path, &overrides);
        scenario.map(|scenario| Scenario(Arc::new(scenario))).map_err(|error| scenario_error(py, &error))
    }

    /// Read a scenario from text.
    ///
    /// Parameters
    /// ----------
    /// text : str
    ///     What a scenario file would hold.
    /// name : str, optional
    ///     What messages call it.
    /// overrides : sequence of str, optional
    ///     As in `load`.
    ///
    /// Returns
    /// -------
    /// Scenario
    ///     The scenario, checked.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If it is not a sound scenario.
    #[staticmethod]
    #[pyo3(
        signature = (text, name = "<string>", overrides = Vec::new()),
        text_signature = "(text, name='<string>', overrides=())"
    )]
    fn parse(py: Python<'_>, text: &str, name: &str, overrides: Vec<String>) -> PyResult<Scenario> {
        let scenario = lasthop_study::Scenario::parse(text, name, &overrides);
        scenario.map(|scenario| Scenario(Arc::new(scenario))).map_err(|error| scenario_error(py, &error))
    }

    /// Write the canonical form: every default and every unit spelled out.
    ///
    /// Returns
    /// -------
    /// str
    ///     TOML; reading it gives this scenario.
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
    fn schemes(&self) -> Vec<String> {
        self.0.schemes.clone()
    }

    #[getter]
    fn hash(&self) -> String {
        self.0.hash()
    }

    /// Run the scenario with one scheme.
    ///
    /// The result depends on the arguments and on nothing else. Runs of different schemes with the
    /// same seed and run number meet the same fades. Other threads of Python go on meanwhile, and
    /// Ctrl-C ends it.
    ///
    /// Parameters
    /// ----------
    /// scheme : str, optional
    ///     The scheme's name. By default the first that the scenario names.
    /// seed : int, default 1
    ///     The study's seed.
    /// run : int, default 0
    ///     The number of the run in the study.
    /// trace : bool, default False
    ///     Whether to keep what happened to each packet, for `Run.events`.
    /// series : bool, default False
    ///     Whether to keep the source's state over time, for `Run.series`.
    /// pcap : str or os.PathLike, optional
    ///     A pcapng file to write, as a capture at the source would show the run.
    ///
    /// Returns
    /// -------
    /// Run
    ///     What came of it.
    ///
    /// Raises
    /// ------
    /// ScenarioError
    ///     If the scheme is unknown, or cannot work with this scenario's link.
    /// OSError
    ///     If the pcapng file cannot be written.
    #[pyo3(signature = (scheme = None, *, seed = 1, run = 0, trace = false, series = false, pcap = None))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn run(
        &self,
        py: Python<'_>,
        scheme: Option<&str>,
        seed: u64,
        run: u64,
        trace: bool,
        series: bool,
        pcap: Option<PathBuf>,
    ) -> PyResult<Run> {
        let scenario = &self.0;
        let scheme = scheme.unwrap_or(&scenario.schemes[0]);
        let observe = Observe { trace, series, pcap: pcap.as_deref() };
        let mut signals = Signals::new();
        let result = py.detach(|| scenario.run_while(scheme, seed, run, observe, || signals.quiet()));
        match signals.raised {
            Some(error) => Err(error),
            None => result.map(|run| Run::new(scenario.clone(), run)).map_err(|error| run_error(py, &error)),
        }
    }

    /// Write the results of several runs of this scenario as one JSON document.
    ///
    /// Parameters
    /// ----------
    /// runs : sequence of Run
    ///     Runs of this scenario with one seed and run number.
    ///
    /// Returns
    /// -------
    /// str
    ///     The document; docs/metrics.md defines its keys.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If there are no runs, or their seeds or run numbers differ.
    fn report(&self, runs: Vec<PyRef<'_, Run>>) -> PyResult<String> {
        let runs: Vec<&lasthop_study::Run> = runs.iter().map(|run| run.inner()).collect();
        self.0.report(&runs).map_err(|error| PyValueError::new_err(error.to_string()))
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
}
