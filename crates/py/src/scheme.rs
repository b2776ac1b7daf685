//! The registered schemes.

use lasthop_scenario::Schemes;
use pyo3::prelude::*;

/// A remedy for losses on the last hop.
///
/// Attributes
/// ----------
/// name : str
///     The name in scenarios and on the command line.
/// summary : str
///     A one-line description.
/// source : str
///     The paper and section that proposed it.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub(crate) struct Scheme {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
}

#[pymethods]
impl Scheme {
    fn __repr__(&self) -> String {
        format!("Scheme(name={:?}, summary={:?}, source={:?})", self.name, self.summary, self.source)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop.notebook")?.call_method1("scheme_html", (slf,))
    }
}

/// Return all schemes.
///
/// Returns
/// -------
/// list of Scheme
///     In the order of registration.
///
/// Examples
/// --------
/// >>> import lasthop
/// >>> [scheme.name for scheme in lasthop.schemes()][0]
/// 'basic'
#[pyfunction]
pub(crate) fn schemes() -> Vec<Scheme> {
    let all = Schemes::default();
    let describe = |scheme: &dyn lasthop_scenario::Scheme| Scheme {
        name: scheme.name(),
        summary: scheme.summary(),
        source: scheme.source(),
    };
    all.all().map(describe).collect()
}
