//! The registered congestion controls.

use lasthop_proto::tcp::{Congestion, Profile};
use pyo3::prelude::*;

/// A congestion control of TCP.
///
/// Attributes
/// ----------
/// name : str
///     The value of `congestion` in scenarios.
/// title : str
///     The name in reports.
/// summary : str
///     A one-line description with its source.
/// sender : str
///     The sender of a scenario that is Linux with this control, such as `linux-reno`.
/// linux : str or None
///     The name in released Linux kernels, by which a sysctl selects it.
/// origin : str or None
///     Where else servers get it.
/// cost : str or None
///     The drawback of its deployment.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub(crate) struct CongestionControl {
    name: &'static str,
    title: &'static str,
    summary: &'static str,
    sender: String,
    linux: Option<&'static str>,
    origin: Option<&'static str>,
    cost: Option<&'static str>,
}

#[pymethods]
impl CongestionControl {
    fn __repr__(&self) -> String {
        format!("CongestionControl(name={:?}, summary={:?})", self.name, self.summary)
    }
}

/// Return all congestion controls.
///
/// Returns
/// -------
/// list of CongestionControl
///     In the order of registration.
///
/// Examples
/// --------
/// >>> from lasthop import _lasthop
/// >>> [(control.title, control.sender) for control in _lasthop.congestion_controls()][2:4]
/// [('Reno', 'linux-reno'), ('CUBIC', 'linux')]
#[pyfunction]
pub(crate) fn congestion_controls() -> Vec<CongestionControl> {
    let linux = Profile::Linux.settings().congestion;
    let describe = |congestion: &Congestion| {
        let control = congestion.control();
        let profile = Profile::Linux.name();
        let is_default = *congestion == linux;
        CongestionControl {
            name: control.name,
            title: control.title,
            summary: control.summary,
            sender: if is_default { profile.into() } else { format!("{profile}-{}", control.name) },
            linux: control.linux,
            origin: control.origin,
            cost: control.cost,
        }
    };
    Congestion::ALL.iter().map(describe).collect()
}
