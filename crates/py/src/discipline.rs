//! The registered queue disciplines.

use lasthop_link::queue::{About, Management};
use pyo3::prelude::*;

/// A queue discipline.
///
/// Attributes
/// ----------
/// name : str
///     The name of its table in scenarios.
/// title : str
///     The name in reports.
/// summary : str
///     A one-line description of what it does, with its source.
/// deployment : str or None
///     How the ends of a link get it; None for a discipline that advice does not try.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub(crate) struct QueueDiscipline {
    name: String,
    title: &'static str,
    summary: &'static str,
    deployment: Option<&'static str>,
}

#[pymethods]
impl QueueDiscipline {
    fn __repr__(&self) -> String {
        format!("QueueDiscipline(name={:?}, summary={:?})", self.name, self.summary)
    }
}

/// Return all queue disciplines but drop-tail.
///
/// Returns
/// -------
/// list of QueueDiscipline
///     In the order of registration.
///
/// Examples
/// --------
/// >>> from lasthop import _lasthop
/// >>> [discipline.title for discipline in _lasthop.queue_disciplines()][:2]
/// ['CoDel', 'FQ-CoDel']
#[pyfunction]
pub(crate) fn queue_disciplines() -> Vec<QueueDiscipline> {
    let describe = |(name, management): (String, Management)| {
        let About { title, summary, deployment, .. } = management.about();
        QueueDiscipline { name, title, summary, deployment }
    };
    Management::all().map(describe).collect()
}
