//! The installer of schemes written in Python.

use std::sync::{Arc, Mutex, PoisonError};

use lasthop_base::Duration;
use lasthop_proto::Dscp;
use lasthop_proto::fec::Covers;
use lasthop_proto::scheme::{ArqUse, Installer, LinkEnd, QueueUse, Site};
use lasthop_proto::tcp::Flags;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::agent::{self, Agent, AgentPart, Kind};
use super::part::Part;
use super::receiver::{self, PythonReceiverReaction};
use super::sender::{self, SenderReaction};

/// A scheme's installed components, for the installer of each combination.
pub(super) enum Installed {
    Arq(ArqUse),
    Queue(QueueUse),
    Protect(Covers),
    Agent(LinkEnd, Arc<AgentPart>),
    Sender(Arc<Part>),
    Receiver(Arc<Part>),
    Flags(Flags),
    Signal(Duration),
    Copies,
}

impl Installed {
    pub(super) fn install(&self, installer: &mut Installer<'_>) {
        match self {
            Installed::Arq(arq) => installer.arq(*arq),
            Installed::Queue(queue) => installer.queue(*queue),
            Installed::Protect(covers) => installer.protect(*covers),
            Installed::Agent(end, part) => {
                let part = Arc::clone(part);
                let make = move |site: &Site<'_>| Agent::new(&part, site);
                match end {
                    LinkEnd::BaseStation => installer.at_base_station(make),
                    LinkEnd::MobileHost => installer.at_mobile_host(make),
                }
            }
            Installed::Sender(part) => {
                let part = Arc::clone(part);
                installer.at_sender(&[], move || SenderReaction::new(&part));
            }
            Installed::Receiver(part) => {
                let part = Arc::clone(part);
                installer.at_receiver(&[], move || PythonReceiverReaction::new(&part));
            }
            Installed::Flags(flags) => installer.use_flags(*flags),
            Installed::Signal(lead) => installer.watch_signal(*lead),
            Installed::Copies => installer.copy_to_base_stations(),
        }
    }
}

/// Registers the agents and reactions of a scheme, and its use of the link. Given to `PythonScheme.install`.
#[pyclass(frozen, name = "Installer", module = "lasthop._lasthop")]
pub(crate) struct PyInstaller {
    scheme: &'static str,
    /// `None` once the scheme is installed.
    installed: Mutex<Option<Vec<Installed>>>,
    counters: Arc<Mutex<Vec<(&'static str, Kind)>>>,
}

impl PyInstaller {
    pub(super) fn new(scheme: &'static str) -> PyInstaller {
        PyInstaller { scheme, installed: Mutex::new(Some(Vec::new())), counters: Arc::default() }
    }

    pub(super) fn finish(&self) -> Vec<Installed> {
        self.installed.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default()
    }

    fn push(&self, installed: Installed) -> PyResult<()> {
        let mut all = self.installed.lock().unwrap_or_else(PoisonError::into_inner);
        let open =
            all.as_mut().ok_or_else(|| PyRuntimeError::new_err("the installer is used after install"))?;
        open.push(installed);
        Ok(())
    }

    fn part(
        &self,
        factory: Bound<'_, PyAny>,
        base: &'static str,
        hooks: &'static [&'static str],
    ) -> PyResult<Part> {
        if !factory.is_callable() {
            let found = factory.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "found an object of class {found}, expected a subclass of lasthop.{base}, or a function that makes objects \
                 of one"
            )));
        }
        Ok(Part::new(self.scheme, factory.unbind(), base, hooks))
    }

    fn agent(&self, end: LinkEnd, agent: Bound<'_, PyAny>) -> PyResult<()> {
        let part = self.part(agent, "Agent", agent::HOOKS)?;
        self.push(Installed::Agent(end, Arc::new(AgentPart::new(part, Arc::clone(&self.counters)))))
    }
}

#[pymethods]
impl PyInstaller {
    /// Install an agent at the base station of each wireless link.
    ///
    /// Parameters
    /// ----------
    /// agent : Callable[[Site], Agent]
    ///     Makes an `Agent`, given its `Site`: a class, or a function. It is called for each run and link.
    fn at_base_station(&self, agent: Bound<'_, PyAny>) -> PyResult<()> {
        self.agent(LinkEnd::BaseStation, agent)
    }

    /// Install an agent at the mobile host of each wireless link, between the host and the link.
    ///
    /// Parameters
    /// ----------
    /// agent : Callable[[Site], Agent]
    ///     As in `at_base_station`.
    fn at_mobile_host(&self, agent: Bound<'_, PyAny>) -> PyResult<()> {
        self.agent(LinkEnd::MobileHost, agent)
    }

    /// Install a reaction at the sender of each connection.
    ///
    /// Parameters
    /// ----------
    /// reaction : Callable[[], Reaction]
    ///     Makes a `Reaction`: a class, or a function without parameters. It is called for each run and connection.
    fn at_sender(&self, reaction: Bound<'_, PyAny>) -> PyResult<()> {
        self.push(Installed::Sender(Arc::new(self.part(reaction, "Reaction", sender::HOOKS)?)))
    }

    /// Install a reaction at the receiver of each connection.
    ///
    /// Parameters
    /// ----------
    /// reaction : Callable[[], ReceiverReaction]
    ///     Makes a `ReceiverReaction`, as in `at_sender`.
    fn at_receiver(&self, reaction: Bound<'_, PyAny>) -> PyResult<()> {
        self.push(Installed::Receiver(Arc::new(self.part(reaction, "ReceiverReaction", receiver::HOOKS)?)))
    }

    /// Say how the scheme uses the link's own ARQ.
    ///
    /// Parameters
    /// ----------
    /// use : str
    ///     ``"kept"``, if there is one; ``"required"``, so that links without one are refused; or ``"off"``. A scheme does
    ///     not bring an ARQ of its own: combine it with `arq`.
    #[pyo3(signature = (r#use), text_signature = "($self, use)")]
    fn arq(&self, r#use: &str) -> PyResult<()> {
        self.push(Installed::Arq(match r#use {
            "kept" => ArqUse::Kept,
            "required" => ArqUse::Required,
            "off" => ArqUse::Off,
            found => {
                return Err(PyValueError::new_err(format!(
                    "arq: found {found:?}, expected \"kept\", \"required\" or \"off\""
                )));
            }
        }))
    }

    /// Choose the queue before the link, in both directions.
    ///
    /// Parameters
    /// ----------
    /// use : str
    ///     ``"kept"``, that of the scenario; or ``"expedited-first"``, in which packets with the DSCP 46, expedited
    ///     forwarding, go first. For FQ-CoDel, combine the scheme with `fq-codel`.
    #[pyo3(signature = (r#use), text_signature = "($self, use)")]
    fn queue(&self, r#use: &str) -> PyResult<()> {
        self.push(Installed::Queue(match r#use {
            "kept" => QueueUse::Kept,
            "expedited-first" => QueueUse::ExpeditedFirst,
            found => {
                return Err(PyValueError::new_err(format!(
                    "queue: found {found:?}, expected \"kept\" or \"expedited-first\""
                )));
            }
        }))
    }

    /// Let the link protect packets with the scenario's code, which is then required.
    ///
    /// Parameters
    /// ----------
    /// covers : str or int
    ///     ``"all"``; ``"repeats"``, for units that the link retransmits; or the DSCP of the packets, 1 to 63.
    fn protect(&self, covers: &Bound<'_, PyAny>) -> PyResult<()> {
        let covers = match covers.extract::<String>().as_deref() {
            Ok("all") => Covers::All,
            Ok("repeats") => Covers::Repeats,
            _ => match covers.extract::<u8>() {
                Ok(value @ 1..64) => Covers::Marked(Dscp::new(value)),
                _ => {
                    return Err(PyValueError::new_err(format!(
                        "protect: found {covers:?}, expected \"all\", \"repeats\" or a DSCP from 1 to 63"
                    )));
                }
            },
        };
        self.push(Installed::Protect(covers))
    }

    /// Give control bits of the TCP header a meaning. Bits that another scheme uses are refused in a combination.
    ///
    /// Parameters
    /// ----------
    /// flags : int
    ///     The bits; the reserved ones are 8 to 11.
    fn use_flags(&self, flags: u16) -> PyResult<()> {
        self.push(Installed::Flags(Flags(flags)))
    }

    /// Announce changes of the radio signal to agents at mobile hosts and to the ends of connections there.
    ///
    /// Parameters
    /// ----------
    /// lead : int, default 0
    ///     How long ahead its loss is announced, in nanoseconds; not at all if 0.
    #[pyo3(signature = (lead = 0))]
    fn watch_signal(&self, lead: u64) -> PyResult<()> {
        self.push(Installed::Signal(Duration::from_nanos(lead)))
    }

    /// Let the network send a copy of each TCP segment for a moving host to every base station of the host.
    fn copy_to_base_stations(&self) -> PyResult<()> {
        self.push(Installed::Copies)
    }
}
