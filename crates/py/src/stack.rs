//! The senders of other stacks than TCP.

use lasthop_scenario::stacks::stacks;
use pyo3::prelude::*;

/// A sender of another stack than TCP.
///
/// Attributes
/// ----------
/// name : str
///     The value of `sender` in scenarios.
/// title : str
///     The name in reports.
/// protocol : str
///     The transport protocol: QUIC.
/// version : str
///     The library that runs, with its version.
/// how : str or None
///     How the owner of a server chooses it; None if no server has it.
#[pyclass(frozen, get_all, module = "lasthop._lasthop")]
pub(crate) struct StackSender {
    name: &'static str,
    title: &'static str,
    protocol: &'static str,
    version: &'static str,
    how: Option<&'static str>,
}

#[pymethods]
impl StackSender {
    fn __repr__(&self) -> String {
        format!("StackSender(name={:?}, version={:?})", self.name, self.version)
    }
}

/// Return the senders of other stacks than TCP.
///
/// Returns
/// -------
/// list of StackSender
///     Empty if the build has no such stack.
///
/// Examples
/// --------
/// >>> from lasthop import _lasthop
/// >>> [sender.name for sender in _lasthop.stack_senders() if sender.how]
/// ['quinn-cubic', 'quinn-newreno', 'quinn-bbr', 'noq-cubic', 'noq-newreno']
#[pyfunction]
pub(crate) fn stack_senders() -> Vec<StackSender> {
    let senders = stacks().iter().flat_map(|stack| stack.senders().iter().map(|sender| (*stack, sender)));
    let describe = senders.map(|(stack, sender)| StackSender {
        name: sender.name,
        title: sender.title,
        protocol: stack.protocol(),
        version: stack.version(),
        how: sender.how,
    });
    describe.collect()
}
