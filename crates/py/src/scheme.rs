//! The schemes that exist.

use lasthop_scenario::Schemes;
use pyo3::prelude::*;

/// Something that may be done about a bad last hop.
///
/// Attributes
/// ----------
/// name : str
///     Its name in scenarios and on the command line.
/// summary : str
///     One line: what it does.
/// source : str
///     Where it was proposed: paper and section.
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
}

/// Return every scheme that exists.
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
