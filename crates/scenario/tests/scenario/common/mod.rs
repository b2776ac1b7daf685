//! A base scenario.

use lasthop_proto::scheme::Schemes;
use lasthop_scenario::Run;

/// Every table, with few optional keys.
pub(crate) const SCENARIO: &str = r#"title = "a test"
schemes = ["basic", "ebsn"]

[transfer]
size = "100 KB"

[tcp]
profile = "ebsn"

[wired]
rate = "56 kbps"
delay = "0 s"

[radio]
rate = "19.2 kbps"
expansion = 1.5
mtu = "128 B"

[radio.channel.two-state]
good = "10 s"
bad = "4 s"

[radio.arq.stop-and-wait]
retransmissions = "unlimited"
backoff.uniform = "100 ms"
"#;

/// The scenario with `from` replaced by `to`.
pub(crate) fn with(from: &str, to: &str) -> String {
    assert!(SCENARIO.contains(from), "the scenario has no {from:?}");
    SCENARIO.replacen(from, to, 1)
}

/// A message or canonical form independent of the set of registered schemes.
pub(crate) fn whatever_schemes(text: &str) -> String {
    let schemes = Schemes::default();
    let names: Vec<_> = schemes.all().map(|scheme| format!("\"{}\"", scheme.name())).collect();
    let (last, others) = names.split_last().expect("there are schemes");
    let text = text.replace(&format!("{} or {last}", others.join(", ")), "<a scheme>");
    text.split("\n[scheme.").next().unwrap_or_default().to_owned()
}

/// A graph with two base stations, two connections and other traffic.
pub(crate) const NETWORK: &str = r#"schemes = ["basic"]
limit = "20 s"

[topology.graph]
wired = ["server-R1", "R1-R2", "R2-base1", "R1-R3", "R3-base2"]
radio = ["base1-phone", "base2-laptop"]

[transfer]
size = "100 KB"
from = "server"
to = "phone"

[connection.first]
start = "1 s"

[connection.second]
to = "laptop"
via = ["R1", "R3", "base2"]

[traffic.cross]
from = "R1"
to = "R2"
packet_size = "500 B"
start = "2 s"
stop = "3 s"
law.poisson.rate = "400 kbps"

[wired]
rate = "1 Mbps"
delay = "30 ms"

[radio]
rate = "2 Mbps"

[link.R1-R2]
queue = "10 packets"

[link.base2-laptop]
channel.iid.ber = 1e-6
"#;

/// The counters called `name` of all agents together.
pub(crate) fn counter(run: &Run, name: &str) -> u64 {
    let counters = run.agents.iter().flat_map(|agent| &agent.counters);
    counters.filter(|(other, _)| *other == name).map(|(_, value)| value).sum()
}
