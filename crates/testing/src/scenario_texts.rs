//! Scenario files that several tests change.

/// Every table, with few optional keys.
pub const SCENARIO: &str = r#"title = "a test"
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

/// [`SCENARIO`] with `from` replaced by `to`.
///
/// # Panics
/// If it does not contain `from`.
pub fn with(from: &str, to: &str) -> String {
    assert!(SCENARIO.contains(from), "the scenario has no {from:?}");
    SCENARIO.replacen(from, to, 1)
}

/// A graph with two base stations, two connections and other traffic.
pub const NETWORK: &str = r#"schemes = ["basic"]
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
