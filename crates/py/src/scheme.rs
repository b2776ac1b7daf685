//! The registered schemes.

use std::collections::BTreeMap;

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
/// place, products, cost : str or None
///     Where it is installed, products that have it (None if only research code does), and what it costs. None for
///     schemes that the owner of a link cannot use: baselines, variants of other schemes, schemes that need an ARQ or a
///     historical sender, and schemes for hosts that move.
/// owner, note : str or None
///     Whose box the usual product is on, and what `commands` do not say; None if no product has the scheme.
/// commands : list of str
///     Lines for a shell by root that install that product. ``{k}`` stands for a setting of the variant, ``{n-k}`` for the
///     difference of two.
/// reads_tcp : bool
///     Whether all that it does depends on segments of TCP, which it reads or changes: not inside a VPN, nor for QUIC.
/// needs_quic : bool
///     Whether it acts on connections of QUIC only.
/// variants : list of dict
///     For each way to set the scheme up that advice tries: keys and values of its table in which it differs from the
///     defaults.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub(crate) struct Scheme {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    place: Option<&'static str>,
    products: Option<&'static str>,
    owner: Option<&'static str>,
    commands: Vec<&'static str>,
    note: Option<&'static str>,
    cost: Option<&'static str>,
    reads_tcp: bool,
    needs_quic: bool,
    variants: Vec<BTreeMap<&'static str, &'static str>>,
}

#[pymethods]
impl Scheme {
    fn __repr__(&self) -> String {
        format!("Scheme(name={:?}, summary={:?}, source={:?})", self.name, self.summary, self.source)
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("lasthop.core.display")?.call_method1("html", (slf,))
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
    let describe = |scheme: &dyn lasthop_scenario::Scheme| {
        let deployment = scheme.deployment();
        let products = deployment.and_then(|deployment| deployment.products);
        Scheme {
            name: scheme.name(),
            summary: scheme.summary(),
            source: scheme.source(),
            place: deployment.map(|deployment| deployment.place),
            products: products.map(|products| products.names),
            owner: products.map(|products| products.owner),
            commands: products.map_or(Vec::new(), |products| products.commands.to_vec()),
            note: products.map(|products| products.note),
            cost: deployment.map(|deployment| deployment.cost),
            reads_tcp: scheme.reads_tcp(),
            needs_quic: scheme.needs_quic(),
            variants: deployment
                .map_or([].as_slice(), |deployment| deployment.variants)
                .iter()
                .map(|settings| settings.iter().copied().collect())
                .collect(),
        }
    };
    all.all().map(describe).collect()
}
