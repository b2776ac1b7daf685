//! The presets of links.

use lasthop_scenario::Preset;
use pyo3::prelude::*;

/// A preset of a wireless link or of Wi-Fi.
///
/// Attributes
/// ----------
/// name : str
///     The name, as in ``preset = "NAME"``.
/// summary : str
///     A one-line description.
/// source : str
///     Where its numbers come from.
/// choice : str
///     The values that its sources leave open, as Lasthop chooses them.
/// table : {"radio", "wifi"}
///     The table of a scenario that may name it.
/// toml : str
///     Its keys, as in that table.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub(crate) struct Link {
    name: String,
    summary: String,
    source: String,
    choice: String,
    table: &'static str,
    toml: String,
}

#[pymethods]
impl Link {
    fn __repr__(&self) -> String {
        format!("Link(name={:?}, summary={:?})", self.name, self.summary)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop.core.display")?.call_method1("html", (slf,))
    }
}

/// Return the presets of wireless links.
///
/// Returns
/// -------
/// list of Link
///     From the slowest generation of cellular networks on.
///
/// Examples
/// --------
/// >>> import lasthop
/// >>> [link.name for link in lasthop.links()][0]
/// '2g'
#[pyfunction]
pub(crate) fn links() -> Vec<Link> {
    let link = |Preset { name, summary, source, choice, table, toml }| {
        let table = table.name();
        Link { name, summary, source, choice, table, toml }
    };
    Preset::all().into_iter().map(link).collect()
}
