//! Emulation of scenarios between two kernels in virtual time.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use lasthop_live::{Emulation, Guests, Outcome, Settings};
use lasthop_scenario::Duration;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::emulator::{Recorded, Watch, recorded};
use crate::error::scenario_error;
use crate::scenario::Scenario;

/// The network of a scenario between two Linux kernels in virtual time, whose calendar it is. Linux only.
///
/// The kernels are User Mode Linux with ``time-travel=ext``. Each connects to the sockets ``time`` and ``net`` in its
/// directory.
///
/// Parameters
/// ----------
/// scenario : Scenario
///     The scenario.
/// scheme : str
///     A scheme that only uses the link.
/// directories : (str, str)
///     The directories of the kernels at the source and at the destination of the data.
/// seed : int, default 1
///     The seed; random processes are those of a simulation with the same seed and run number.
/// run : int, default 0
///     The run number.
/// mtu : int
///     Packets above this size do not enter.
/// epoch_ns : int
///     The time of day when the first kernel begins, in nanoseconds since 1970.
/// phase : float
///     When the second kernel begins within a period, in seconds.
/// period : float
///     The period.
/// grace : float
///     How long the program at the source may go on after that of the destination, in seconds.
/// shared : bool, default True
///     Whether kernels that can do so read and write times in shared memory, which saves messages.
/// pcap : pair of str or os.PathLike, optional
///     Two pcapng files to write: of the source, with losses, and of the destination.
/// trace : bool, default False
///     Whether to record the trace of each TCP connection.
/// lateness : bool, default False
///     Whether to record how late each packet is.
///
/// Raises
/// ------
/// ScenarioError
///     If the scenario cannot be emulated with this scheme.
/// OSError
///     If the sockets cannot be made, or the file cannot be written.
#[pyclass(frozen, module = "lasthop._lasthop")]
pub(crate) struct Calendar(Mutex<Option<lasthop_live::Calendar>>);

#[pymethods]
impl Calendar {
    #[new]
    #[pyo3(signature = (
        scenario, scheme, directories, *, seed=1, run=0, mtu, epoch_ns, phase, period, grace, shared=true,
        pcap=None, trace=false, lateness=false,
    ))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        scheme: &str,
        directories: (PathBuf, PathBuf),
        seed: u64,
        run: u64,
        mtu: usize,
        epoch_ns: u64,
        phase: f64,
        period: f64,
        grace: f64,
        shared: bool,
        pcap: Option<(PathBuf, PathBuf)>,
        trace: bool,
        lateness: bool,
    ) -> PyResult<Calendar> {
        let emulation = Emulation::new(scenario.inner(), scheme, seed, run);
        let emulation = emulation.map_err(|error| scenario_error(py, &error))?;
        let [phase, period, grace] = [phase, period, grace].map(Duration::from_secs_f64);
        let guests = Guests { epoch_ns, phase, period, grace, shares_time: shared };
        let capture = pcap.map(|(source, destination)| [source, destination]);
        let settings = Settings { mtu, capture, trace, record_lateness: lateness, ..Settings::default() };
        let (source, destination) = &directories;
        let calendar = lasthop_live::Calendar::new(emulation, [source, destination], guests, settings)?;
        Ok(Calendar(Mutex::new(Some(calendar))))
    }

    /// Let the kernels run until the program at the destination has ended. Can be called once.
    ///
    /// Parameters
    /// ----------
    /// keep_going : Callable[[], bool]
    ///     Called without arguments at least fifty times a second; the emulation ends once it returns False.
    ///
    /// Returns
    /// -------
    /// tuple[str, int, tuple[str, list[tuple[str, dict[str, Any]]], dict[str, Any] | None]]
    ///     How it ended: ``ended``, ``server-gone``, ``client-gone``, ``asleep`` or ``stopped``; how many messages were
    ///     exchanged with the kernels; and what `Emulator.run` returns.
    ///
    /// Raises
    /// ------
    /// OSError
    ///     If a kernel does not keep to the protocols, or a file cannot be written.
    fn run<'py>(
        &self,
        py: Python<'py>,
        keep_going: Py<PyAny>,
    ) -> PyResult<(&'static str, u64, Recorded<'py>)> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut calendar = taken.ok_or_else(|| PyRuntimeError::new_err("an emulation can run once"))?;
        let mut watch = Watch::new(keep_going);
        let (mut how, mut messages) = ("", 0);
        let ended = py.detach(|| {
            how = match calendar.run(|| watch.look())? {
                Outcome::Ended => "ended",
                Outcome::Gone(0) => "server-gone",
                Outcome::Gone(_) => "client-gone",
                Outcome::Asleep => "asleep",
                Outcome::Stopped => "stopped",
            };
            messages = calendar.messages();
            calendar.finish()
        });
        Ok((how, messages, recorded(py, watch, ended)?))
    }
}
