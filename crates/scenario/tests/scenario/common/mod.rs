//! What messages have in common.

use lasthop_proto::scheme::Schemes;

/// A message or canonical form independent of the set of registered schemes.
pub(crate) fn whatever_schemes(text: &str) -> String {
    let schemes = Schemes::default();
    let names: Vec<_> = schemes.all().map(|scheme| format!("\"{}\"", scheme.name())).collect();
    let (last, others) = names.split_last().expect("there are schemes");
    let text = text.replace(&format!("{} or {last}", others.join(", ")), "<a scheme>");
    text.split("\n[scheme.").next().unwrap_or_default().to_owned()
}
