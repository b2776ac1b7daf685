//! Conversion of real TCP segments for agents, and of agents' changes into the bytes.
//!
//! Sequence numbers are those of the packet; agents compare them modulo 2^32. Windows are scaled as
//! negotiated by the two ends. Timestamps are in microseconds, for clocks that tick once a millisecond as in
//! Linux and most other systems (RFC 7323 section 5.4 permits 1 ms to 1 s).

use lasthop_proto::tcp::{Segment, Timestamps};
use lasthop_wire::{Error, TcpHeader, edit};

/// The length of a tick of the timestamp clock in microseconds.
const TICK: u32 = 1_000;

/// The segment of a header, with its window scaled.
pub(crate) fn read(header: &TcpHeader, scale: u8) -> Segment {
    let timestamps = header.segment.timestamps.map(|Timestamps { value, echo }| Timestamps {
        value: value.wrapping_mul(TICK),
        echo: echo.wrapping_mul(TICK),
    });
    Segment { wnd: header.segment.wnd << scale, timestamps, ..header.segment }
}

/// Writes the changes from `before` to `after` into the packet's bytes and updates the checksum. The payload
/// is unchanged, and no option is added.
///
/// # Errors
/// If the packet cannot be read.
pub(crate) fn write(bytes: &mut [u8], before: &Segment, after: &Segment, scale: u8) -> Result<(), Error> {
    if (after.seq, after.ack) != (before.seq, before.ack) {
        edit::set_tcp_numbers(bytes, after.seq, after.ack)?;
    }
    if after.flags != before.flags {
        edit::set_tcp_flags(bytes, after.flags)?;
    }
    if after.wnd != before.wnd {
        edit::set_tcp_window(bytes, (after.wnd >> scale).try_into().unwrap_or(u16::MAX))?;
    }
    if after.sack != before.sack {
        edit::set_tcp_sack(bytes, &after.sack)?;
    }
    if let (Some(was), Some(is)) = (before.timestamps, after.timestamps)
        && was != is
    {
        let packet = lasthop_wire::IpPacket::parse(bytes)?;
        let Some(raw) = packet.tcp().and_then(|tcp| tcp.header.segment.timestamps) else { return Ok(()) };
        let (value, echo) = (moved(raw.value, was.value, is.value), moved(raw.echo, was.echo, is.echo));
        edit::set_tcp_timestamps(bytes, Timestamps { value, echo })?;
    }
    Ok(())
}

/// A timestamp of `raw` ticks, after an agent moved it from `was` to `is`. Rounded down, so that successive
/// timestamps keep their order.
fn moved(raw: u32, was: u32, is: u32) -> u32 {
    let by = is.wrapping_sub(was) as i32;
    raw.wrapping_add_signed(by.div_euclid(TICK as i32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::tcp::{Flags, SackBlock, SackBlocks, SeqNum};
    use lasthop_proto::{Dscp, Ecn};
    use lasthop_wire::{Checksum, Ip, IpPacket, write};
    use std::net::IpAddr;

    fn ip(is_v4: bool) -> Ip {
        let address = |host: u8| match is_v4 {
            true => IpAddr::from([10, 0, 0, host]),
            false => IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, host.into()]),
        };
        Ip {
            src: address(1),
            dst: address(2),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            hop_limit: 64,
            identification: 0,
            dont_fragment: true,
        }
    }

    fn blocks(starts: &[u32]) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        for &start in starts {
            blocks.push(SackBlock { start: SeqNum(start), end: SeqNum(start + 1000) });
        }
        blocks
    }

    /// The segment that the other end reads after a change; asserts that its checksum is correct.
    fn changed(is_v4: bool, header: &TcpHeader, scale: u8, change: impl FnOnce(&mut Segment)) -> Segment {
        let mut bytes = write::tcp(&ip(is_v4), header, b"data").expect("short enough");
        let header = IpPacket::parse(&bytes).expect("well-formed").tcp().expect("a segment").header;
        let before = read(&header, scale);
        let mut after = before;
        change(&mut after);
        write(&mut bytes, &before, &after, scale).expect("well-formed");
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        assert_eq!(packet.transport_checksum(), Checksum::Correct);
        let tcp = packet.tcp().expect("a segment");
        assert_eq!(tcp.payload, b"data");
        read(&tcp.header, scale)
    }

    fn header(timestamps: Option<Timestamps>, sack: &[u32]) -> TcpHeader {
        let segment = Segment {
            seq: SeqNum(u32::MAX - 1),
            ack: SeqNum(7),
            wnd: 1000,
            flags: Flags::ACK,
            sack: blocks(sack),
            timestamps,
            len: 4,
            has_unknown_options: false,
        };
        TcpHeader { src_port: 1, dst_port: 2, segment, ..TcpHeader::default() }
    }

    #[test]
    fn what_an_agent_changes_is_in_the_bytes() {
        for is_v4 in [true, false] {
            for timestamps in [None, Some(Timestamps { value: u32::MAX, echo: 3 })] {
                let header = header(timestamps, &[5000, 9000]);
                let plain = changed(is_v4, &header, 7, |_| {});
                assert_eq!(plain.wnd, 1000 << 7);
                let edited = changed(is_v4, &header, 7, |segment| {
                    (segment.wnd, segment.flags) = (0, Flags(segment.flags.0 | 1 << 9));
                    (segment.seq, segment.ack) = (SeqNum(3), SeqNum(4));
                    segment.sack = SackBlocks::default();
                });
                let expected = Segment {
                    wnd: 0,
                    flags: Flags(Flags::ACK.0 | 1 << 9),
                    seq: SeqNum(3),
                    ack: SeqNum(4),
                    sack: SackBlocks::default(),
                    ..plain
                };
                assert_eq!(edited, expected);
                // A missing option is not added.
                let added = changed(is_v4, &super::tests::header(timestamps, &[]), 0, |segment| {
                    segment.sack = blocks(&[5000]);
                    segment.timestamps.get_or_insert_default();
                });
                assert_eq!((added.sack.len(), added.timestamps.is_some()), (0, timestamps.is_some()));
            }
        }
    }

    #[test]
    fn timestamps_are_moved_by_whole_ticks_also_over_the_wrap() {
        for (raw, micros, expected) in [
            (100, 0, 100),
            (100, 999, 100),
            (100, 1_000, 101),
            (100, 25_700, 125),
            (u32::MAX, 3_000, 2),
            (5_000_000, 2_000, 5_000_002),
        ] {
            let header = header(Some(Timestamps { value: raw, echo: 9 }), &[]);
            let moved = changed(true, &header, 0, |segment| {
                let timestamps = segment.timestamps.as_mut().expect("they are there");
                timestamps.value = timestamps.value.wrapping_add(micros);
            });
            let expected = Timestamps { value: u32::wrapping_mul(expected, TICK), echo: 9 * TICK };
            assert_eq!(moved.timestamps, Some(expected));
        }
    }

    #[test]
    fn a_window_is_not_larger_than_its_field() {
        let widened = changed(true, &header(None, &[]), 2, |segment| segment.wnd = u32::MAX);
        assert_eq!(widened.wnd, u32::from(u16::MAX) << 2);
    }
}
