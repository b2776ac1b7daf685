//! Schemes written in Python.
//!
//! The core calls Python for each hook that a class defines, and takes the interpreter's lock for each call. Senders and
//! receivers are lent to a hook by value, since Python objects hold no references. An exception ends the run.
//!
//! ```text
//! PythonScheme ──install──> Installed ──for each combination──> Agent, SenderReaction, PythonReceiverReaction
//!                                                                   └──for each event──> hooks
//! ```

mod agent;
mod failure;
mod installer;
mod part;
mod receiver;
mod sender;
mod values;

use std::any::Any;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lasthop_proto::scheme::Installer;
use lasthop_scenario::{ExternalSchemes, Scheme, SchemeFailure, Schemes};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;

pub(crate) use agent::{PyOut, PySite, PyStream, PyTally};
pub(crate) use installer::PyInstaller;
pub(crate) use receiver::PyReceiver;
pub(crate) use sender::{PyHole, PySenderState};
pub(crate) use values::{PyNotice, PyPacket, PyPort, PySegment, PySeqNum, PySignal};

use installer::Installed;

/// Interns a name for the rest of the process: names of schemes and counters are constants in the core.
fn intern(name: &str) -> &'static str {
    static NAMES: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.into());
    names.insert(name);
    name
}

/// A scheme written in Python, as the core has it.
pub(crate) struct PythonScheme {
    name: &'static str,
    summary: &'static str,
    fingerprint: String,
    /// The object of class `lasthop.PythonScheme`.
    object: Py<PyAny>,
    installed: Vec<Installed>,
}

impl PythonScheme {
    /// Installs a scheme, given as an object of class `lasthop.PythonScheme`.
    fn new(object: &Bound<'_, PyAny>) -> PyResult<PythonScheme> {
        let py = object.py();
        let text = |attribute: &str| -> PyResult<&'static str> {
            let found = object.getattr(attribute)?;
            let text: String = found.extract().map_err(|_| {
                let class = object.get_type();
                PyTypeError::new_err(format!("{class}.{attribute}: found {found:?}, expected a string"))
            })?;
            Ok(intern(&text))
        };
        let (name, summary) = (text("name")?, text("summary")?);
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        if !name.split('-').all(is_word) {
            return Err(PyValueError::new_err(format!(
                "name: found {name:?}, expected lower-case words joined by hyphens, such as \"my-snoop\""
            )));
        }
        if Schemes::default().get(name).is_some() {
            return Err(PyValueError::new_err(format!(
                "name: found {name:?}, which is the name of a scheme of Lasthop; expected another"
            )));
        }
        let installer = Bound::new(py, PyInstaller::new(name))?;
        object.call_method1("install", (&installer,))?;
        let installed = installer.get().finish();
        let fingerprint: Option<String> = object.call_method0("fingerprint")?.extract()?;
        let fingerprint = fingerprint.unwrap_or_default();
        Ok(PythonScheme { name, summary, fingerprint, object: object.clone().unbind(), installed })
    }

    /// The scheme of an object of class `lasthop.PythonScheme`; `None` if it is a name.
    pub(crate) fn from_object(object: &Bound<'_, PyAny>) -> PyResult<NameOrScheme> {
        if let Ok(name) = object.extract::<String>() {
            return Ok(NameOrScheme::Name(name));
        }
        let base = object.py().import("lasthop.python_scheme")?.getattr("PythonScheme")?;
        if object.is_instance(&base)? {
            return Ok(NameOrScheme::Scheme(Arc::new(PythonScheme::new(object)?)));
        }
        let found = object.repr()?;
        let hint = match object.cast::<pyo3::types::PyType>() {
            Ok(class) if class.is_subclass(&base)? => {
                format!("; write {}() for a scheme of this class", class.name()?)
            }
            _ => String::new(),
        };
        Err(PyTypeError::new_err(format!(
            "scheme: found {found}, expected a name or an object of a subclass of lasthop.PythonScheme{hint}"
        )))
    }
}

/// A scheme as functions in Python take it.
pub(crate) enum NameOrScheme {
    Name(String),
    Scheme(Arc<PythonScheme>),
}

impl Scheme for PythonScheme {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn source(&self) -> &'static str {
        "Python"
    }

    /// Its code may do anything to any packet.
    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        self.installed.iter().for_each(|each| each.install(installer));
    }

    fn take_failure(&self) -> Option<SchemeFailure> {
        failure::take()
    }

    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The objects of the schemes written in Python.
pub(crate) fn objects(py: Python<'_>, schemes: &ExternalSchemes) -> Vec<Py<PyAny>> {
    let object = |scheme: &dyn Scheme| {
        let python = scheme.as_any()?.downcast_ref::<PythonScheme>()?;
        Some(python.object.clone_ref(py))
    };
    schemes.all().filter_map(object).collect()
}

/// The schemes of objects of class `lasthop.PythonScheme`.
pub(crate) fn shared(objects: &[Bound<'_, PyAny>]) -> PyResult<Vec<Arc<dyn Scheme + Send + Sync>>> {
    let scheme = |object| match PythonScheme::from_object(object)? {
        NameOrScheme::Scheme(scheme) => Ok(scheme as Arc<dyn Scheme + Send + Sync>),
        NameOrScheme::Name(name) => Err(PyTypeError::new_err(format!(
            "python_schemes: found {name:?}, expected objects of subclasses of lasthop.PythonScheme"
        ))),
    };
    objects.iter().map(scheme).collect()
}

/// The same, for a scenario that may name them.
pub(crate) fn external(objects: &[Bound<'_, PyAny>]) -> PyResult<ExternalSchemes> {
    let mut schemes = Schemes::default();
    for scheme in shared(objects)? {
        if let Err(scheme) = schemes.add(scheme) {
            unreachable!("new() has refused the name {}", scheme.name());
        }
    }
    Ok(schemes.external)
}

pyo3::create_exception!(
    lasthop._lasthop,
    PythonSchemeError,
    pyo3::exceptions::PyRuntimeError,
    "A callback of a scheme written in Python has raised an exception, which is the cause of this one."
);

/// The exception for a failed scheme in a run that `context` names; that of a signal or `sys.exit` itself.
pub(crate) fn scheme_error(py: Python<'_>, failure: &SchemeFailure, context: &str) -> PyErr {
    let text = format!("{failure}{context}");
    let raised = PythonSchemeError::new_err(text);
    if let Some(cause) = failure.cause.downcast_ref::<PyErr>() {
        if !cause.is_instance_of::<PyException>(py) {
            return cause.clone_ref(py);
        }
        raised.set_cause(py, Some(cause.clone_ref(py)));
    }
    raised
}
