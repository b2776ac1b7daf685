//! Invalid segments: they are answered or ignored without side effects.

use lasthop_base::Duration;
use lasthop_proto::tcp::{Flags, Flavour, SackBlock, SackBlocks, Segment, Settings, Timestamps};

use crate::tcp::dialogue::{Client, MSS, Server, settings};

const FLAVOURS: [Flavour; 4] = [Flavour::NewReno, Flavour::Sack, Flavour::SelectiveRepeat, Flavour::Prr];

/// A timestamp echo never sent, or older than the connection, yields no sample (RFC 7323 section 4.2).
// Rule: A timestamp echo never sent is not a sample. [7323 4.2; state.rs]
#[test]
fn an_invalid_timestamp_echo_is_no_sample() {
    for flavour in FLAVOURS {
        for echo in [0, 1, u32::MAX, 1 << 31, (1 << 31) + 1, 99_999, 100_001] {
            let mut tcp = Client::start(&Settings { timestamps: true, ..settings(flavour, 4) }.with_mss(MSS));
            tcp.sends_full(0..4).at(100);
            let timestamps = Some(Timestamps { value: 7, echo });
            let ack = Segment { timestamps, ..tcp.bare_ack(1000) };
            tcp.receives(ack).sent();
            assert!(tcp.sender.rtt().rto() <= Duration::from_secs(3), "{flavour:?}, {echo}");
        }
    }
}

/// SACK blocks of data never sent, or half the sequence space away, are ignored.
// Rule: SACK blocks of data not outstanding are ignored. [2018 5; state/loss.rs recovery/prr/mod.rs]
#[test]
fn invalid_sack_blocks_are_ignored() {
    for flavour in [Flavour::Sack, Flavour::SelectiveRepeat, Flavour::Prr] {
        let mut tcp = Client::start(&settings(flavour, 10));
        tcp.sends_full(0..10).at(100);
        let before = tcp.sender.pipe();
        let far = 1_u32 << 31;
        for (start, end) in [
            (11_000, 12_000),
            (9000, 11_000),
            (far, far + 1000),
            (far - 1, 5000),
            (2000, 1000),
            (3000, 3000),
            (1_900_000_000, far.wrapping_add(1_800_000_000)),
            (5000, far),
        ] {
            let edge = |offset: u32| tcp.bare_ack(0).ack + offset;
            let mut sack = SackBlocks::default();
            sack.push(SackBlock { start: edge(start), end: edge(end) });
            let report = Segment { sack, ..tcp.bare_ack(0) };
            tcp.receives(report);
            assert_eq!(tcp.sender.pipe(), before, "{flavour:?}: {start}..{end}");
        }
        tcp.sends_nothing();
    }
}

/// Data half the sequence space away, in either direction, are discarded and answered with an ACK of the
/// expected sequence number.
// Rule: Segments outside the window are discarded and answered. [9293 3.10.7.4; receiver.rs]
#[test]
fn data_far_outside_the_window_are_discarded() {
    for far in [1_u32 << 31, (1 << 31) - 1, (1 << 31) + 1, 3_000_000_000, 1_500_000_000] {
        let mut tcp = Server::start(&Settings { ack_every: 1, ..settings(Flavour::Sack, 4) });
        tcp.data(0..1000).acks(1000);
        for len in [1, 1000, 100_000] {
            let segment = Segment { seq: tcp.segment(0..1).seq + far, len, ..tcp.segment(0..1) };
            tcp.receives(segment).acks(1000).delivered(1000);
        }
        tcp.data(1000..2000).acks(2000).delivered(2000);
    }
}

/// The stream ends at the first FIN: later data and other FINs are ignored.
// Rule: Data after FIN are ignored, and so is a FIN within received data. [9293 3.10.7.4; receiver.rs]
#[test]
fn data_after_fin_are_ignored() {
    let mut tcp = Server::start(&Settings { close: true, ack_every: 1, ..settings(Flavour::NewReno, 4) });
    tcp.data_fin(1000..2000).acks(0).data(2000..3000).acks(0).data(1500..2500).acks(0);
    let other = Segment { flags: Flags::ACK | Flags::FIN, ..tcp.segment(2500..3000) };
    tcp.receives(other).acks(0).data(0..1000).acks(2001).delivered(2000);
    tcp.data(2001..3000).acks(2001).delivered(2000);
    assert!(tcp.receiver.has_ended());
}

/// A FIN within received data is ignored.
// Rule: as data_after_fin_are_ignored
#[test]
fn a_fin_within_received_data_is_ignored() {
    let mut tcp = Server::start(&Settings { close: true, ack_every: 1, ..settings(Flavour::NewReno, 4) });
    tcp.data(2000..3000).acks(0).data_fin(0..1000).acks(1000).data(1000..2000).acks(3000).delivered(3000);
    assert!(!tcp.receiver.has_ended());
}
