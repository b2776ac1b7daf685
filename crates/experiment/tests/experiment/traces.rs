//! Packet traces of connections.

use lasthop_experiment::{Experiment, Observe};
use lasthop_scenario::Scenario;

/// Segments of 1000, 1000 and 500 bytes over two links at 8 Mb/s without delay: on each link, a byte takes a microsecond.
const THREE: &str = r#"
    [transfer]
    size = "2500 B"
    [tcp]
    profile = "rfc"
    packet_size = "1040 B"
    ack_every = 1
    [wired]
    rate = "8 Mbps"
    [radio]
    rate = "8 Mbps"
"#;

/// Packets are numbered from 0. An acknowledgement has the number of the next packet, and a packet without data -1.
#[test]
fn packets_acknowledgements_and_sizes_by_hand() {
    let scenario = Scenario::parse::<&str>(THREE, "test.toml", &[]).unwrap();
    let observe = Observe { trace: true, ..Observe::default() };
    let run = scenario.run("basic", 1, 0, observe).unwrap();
    let events = run.connections[0].parts[0].events.as_ref().expect("it was traced");
    let row = |index: usize| {
        let us = (events.time_s[index] * 1e6).round() as u64;
        (us, events.event[index], events.packet[index], events.transmission[index], events.size_bytes[index])
    };
    let rows: Vec<_> = (0..events.time_s.len()).map(row).collect();
    let (syn, first, sent) = (88, 176, 176 + 2 * 1040);
    let expected = [
        (0, "sent", -1, 1, 44),
        (syn, "delivered", -1, 1, 44),
        (syn, "ack-sent", 0, 0, 44),
        (first, "ack-received", 0, 0, 44),
        (first, "sent", 0, 1, 1040),
        (first, "sent", 1, 1, 1040),
        // With FIN.
        (first, "sent", 2, 1, 540),
        (sent, "delivered", 0, 1, 1040),
        (sent, "ack-sent", 1, 0, 40),
        (sent + 80, "ack-received", 1, 0, 40),
        (sent + 1040, "delivered", 1, 1, 1040),
        (sent + 1040, "ack-sent", 2, 0, 40),
        (sent + 1120, "ack-received", 2, 0, 40),
        (sent + 1580, "delivered", 2, 1, 540),
        (sent + 1580, "ack-sent", 3, 0, 40),
        (sent + 1660, "ack-received", 3, 0, 40),
        (sent + 1660, "sent", -1, 2, 40),
    ];
    assert_eq!(rows, expected);
}
