//! Emulation of scenarios in real time.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use lasthop_live::{Emulation, Interface, Report, Settings};
use lasthop_scenario::Duration;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::columns;
use crate::error::scenario_error;
use crate::scenario::Scenario;

/// A report as JSON, named traces, and the record of lateness.
pub(crate) type Recorded<'py> = (String, Vec<(String, Bound<'py, PyDict>)>, Option<Bound<'py, PyDict>>);

/// The network of a scenario in real time, between two network interfaces. Linux only.
///
/// The interfaces stand for the two ends of the scenario's first connection. All their frames are read; packets
/// that leave the network are written to them, for the peer of each, such as the other end of a veth pair.
///
/// Parameters
/// ----------
/// scenario : Scenario
///     The scenario.
/// scheme : str
///     A scheme that only uses the link.
/// interfaces : (str, str)
///     The interfaces at the source and at the destination of the data. Needs ``CAP_NET_RAW``.
/// seed : int, default 1
///     The seed; random processes are those of a simulation with the same seed and run number.
/// run : int, default 0
///     The run number.
/// mtu : int
///     Packets above this size do not enter.
/// longest_wait : float
///     Packets that waited longer to be read, in seconds, are dropped.
/// pcap : pair of str or os.PathLike, optional
///     Two pcapng files to write: of the source, with losses, and of the destination.
/// wire : bool, default False
///     Whether frames of all protocols are carried, as by a wire; otherwise IP packets between the two ends.
/// trace : bool, default False
///     Whether to record the trace of each TCP connection.
/// lateness : bool, default False
///     Whether to record how late each packet is.
/// virtual_time : bool, default False
///     Whether the clock of this kernel stands still while a thread runs.
///
/// Raises
/// ------
/// ScenarioError
///     If the scenario cannot be emulated with this scheme.
/// OSError
///     If an interface cannot be opened, or the file cannot be written.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Emulator(Mutex<Option<lasthop_live::Emulator>>);

#[pymethods]
impl Emulator {
    #[new]
    #[pyo3(signature = (
        scenario, scheme, interfaces, *, seed=1, run=0, mtu, longest_wait, pcap=None, wire=false, trace=false,
        lateness=false, virtual_time=false,
    ))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        scheme: &str,
        interfaces: (String, String),
        seed: u64,
        run: u64,
        mtu: usize,
        longest_wait: f64,
        pcap: Option<(PathBuf, PathBuf)>,
        wire: bool,
        trace: bool,
        lateness: bool,
        virtual_time: bool,
    ) -> PyResult<Emulator> {
        if !(longest_wait > 0.0 && longest_wait < 3600.0) {
            return Err(PyValueError::new_err(format!(
                "longest_wait: found {longest_wait}, expected seconds, such as 0.05"
            )));
        }
        let emulation = Emulation::new(scenario.inner(), scheme, seed, run);
        let emulation = emulation.map_err(|error| scenario_error(py, &error))?;
        let open = |name: &str| {
            let opened = match wire {
                true => Interface::open_port(name),
                false => Interface::open(name).map(Interface::with_ring),
            };
            opened.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
        };
        let interfaces = [open(&interfaces.0)?, open(&interfaces.1)?];
        let longest_wait = Duration::from_secs_f64(longest_wait);
        let capture = pcap.map(|(source, destination)| [source, destination]);
        let settings = Settings {
            mtu,
            longest_wait,
            capture,
            whole_frames: wire,
            trace,
            record_lateness: lateness,
            virtual_time,
        };
        let emulator = lasthop_live::Emulator::new(emulation, interfaces, settings)?;
        Ok(Emulator(Mutex::new(Some(emulator))))
    }

    /// Give up all capabilities of this thread, for good.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     If the kernel refuses.
    #[staticmethod]
    fn drop_privileges() -> PyResult<()> {
        Ok(lasthop_live::drop_privileges()?)
    }

    /// Carry packets until told to stop. Can be called once.
    ///
    /// Parameters
    /// ----------
    /// keep_going : Callable[[], bool]
    ///     Called without arguments fifty times a second; the emulation ends once it returns False.
    ///
    /// Returns
    /// -------
    /// tuple[str, list[tuple[str, dict[str, Any]]], dict[str, Any] | None]
    ///     The report as JSON, by docs/reference/json.md; the traces of TCP connections with their names, those with most
    ///     data first, in the columns of `Run.events`; and the record of lateness.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     If an interface fails, or the file cannot be written.
    fn run<'py>(&self, py: Python<'py>, keep_going: Py<PyAny>) -> PyResult<Recorded<'py>> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut emulator = taken.ok_or_else(|| PyRuntimeError::new_err("an emulation can run once"))?;
        let mut watch = Watch::new(keep_going);
        let ended = py.detach(|| {
            emulator.run(|| watch.look())?;
            emulator.finish()
        });
        recorded(py, watch, ended)
    }
}

/// Asks a function of Python whether to go on.
pub(crate) struct Watch {
    keep_going: Py<PyAny>,
    raised: Option<PyErr>,
}

impl Watch {
    pub(crate) fn new(keep_going: Py<PyAny>) -> Watch {
        Watch { keep_going, raised: None }
    }

    pub(crate) fn look(&mut self) -> bool {
        let go = Python::attach(|py| {
            py.check_signals()?;
            self.keep_going.call0(py)?.extract::<bool>(py)
        });
        go.unwrap_or_else(|error| {
            self.raised = Some(error);
            false
        })
    }
}

/// What Python gets of an emulation that has ended.
pub(crate) fn recorded(py: Python<'_>, watch: Watch, ended: io::Result<Report>) -> PyResult<Recorded<'_>> {
    if let Some(error) = watch.raised {
        return Err(error);
    }
    let report = ended?;
    let json = serde_json::to_string(&report).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let traces =
        report.traces.iter().map(|trace| Ok((trace.name.clone(), columns::events(py, &trace.events)?)));
    let hosts = report.ends.each_ref().map(|end| end.host.as_str());
    let lateness = report.packets.as_ref().map(|packets| columns::lateness(py, packets, hosts));
    Ok((json, traces.collect::<PyResult<_>>()?, lateness.transpose()?))
}
