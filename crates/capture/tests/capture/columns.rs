//! The columns of a capture.

use lasthop_capture::Packets;

/// Every column has a row for each packet, and SACK blocks are within their columns.
pub(crate) fn examine(packets: &Packets) {
    let rows = packets.time_ns.len();
    assert!(rows > 0);
    for len in [
        packets.interface.len(),
        packets.protocol.len(),
        packets.source.len(),
        packets.target.len(),
        packets.host.len(),
        packets.source_port.len(),
        packets.target_port.len(),
        packets.size.len(),
        packets.payload.len(),
        packets.identification.len(),
        packets.seq.len(),
        packets.ack.len(),
        packets.flags.len(),
        packets.window.len(),
        packets.mss.len(),
        packets.sack_permitted.len(),
        packets.timestamp.len(),
        packets.echo.len(),
        packets.sacks.len(),
        packets.sack_at.len(),
        packets.rtp_version.len(),
        packets.rtp_type.len(),
        packets.rtp_seq.len(),
        packets.rtp_source.len(),
    ] {
        assert_eq!(len, rows);
    }
    assert!(packets.size.iter().chain(&packets.payload).all(|&len| (0..1 << 20).contains(&len)));
    let blocks: i64 = packets.sacks.iter().sum();
    assert_eq!((packets.sack_start.len() as i64, packets.sack_end.len() as i64), (blocks, blocks));
    assert!(packets.time_ns.iter().all(|&time_ns| time_ns >= 0));
}
