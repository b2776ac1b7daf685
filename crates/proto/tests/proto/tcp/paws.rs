//! Protection against wrapped sequence numbers: segments with older timestamps are rejected (RFC 7323 section
//! 5).

use lasthop_proto::tcp::{Flags, Flavour, Segment, Settings, Timestamps};

use crate::tcp::dialogue::{Client, MSS, Server, Steps, settings};

fn stamped(flavour: Flavour) -> Settings {
    Settings { timestamps: true, ack_every: 1, ..settings(flavour, 4) }.with_mss(MSS)
}

/// Half the span of the clock, which counts microseconds, in milliseconds, rounded down.
const HALF_SPAN_MS: u64 = (1 << 31) / 1_000;

trait Stamps: Steps {
    /// An acknowledgement with this timestamp.
    fn ack_ts(&mut self, offset: u32, value: u32) -> &mut Client {
        let ack = self.client().bare_ack(offset);
        self.client().receives(with_timestamp(ack, value))
    }
}

impl Stamps for Client {}

fn with_timestamp(segment: Segment, value: u32) -> Segment {
    Segment { timestamps: Some(Timestamps { value, echo: 0 }), ..segment }
}

/// Data with an older timestamp are discarded and answered; with an equal one they are accepted (section 5.3,
/// R1). Also across the wrap of the clock.
// Rule: Older segments are rejected before the window check, except RST; the receiver answers them, and
// reports duplicates. [7323 5.2, 5.3; paws.rs receiver.rs sender.rs]
#[test]
fn old_data_are_rejected() {
    for base in [1_000, u32::MAX, 2] {
        let mut tcp = Server::start(&stamped(Flavour::NewReno));
        tcp.data_ts(0..1000, base).acks(1000);
        for age in [1, 1_000, (1 << 31) - 1] {
            tcp.data_ts(1000..2000, base.wrapping_sub(age)).acks_with_echo(1000, base).delivered(1000);
            // A segment without data is not answered.
            tcp.data_ts(1000..1000, base.wrapping_sub(age)).is_silent();
        }
        tcp.data_ts(1000..2000, base).acks(2000).delivered(2000);
        tcp.data_ts(2000..3000, base.wrapping_add(1 << 30)).acks(3000).delivered(3000);
    }
}

/// Old data are not buffered out of order, and an old FIN is ignored.
// Rule: as old_data_are_rejected
#[test]
fn old_data_out_of_order_are_rejected() {
    let mut tcp = Server::start(&Settings { close: true, ..stamped(Flavour::Sack) });
    tcp.data_ts(0..1000, 50).acks(1000).data_ts(2000..3000, 49).reports(1000, &[]);
    let end = Segment { flags: Flags::ACK | Flags::FIN, ..tcp.segment(1000..2000) };
    tcp.receives(with_timestamp(end, 49)).acks(1000);
    tcp.data_ts(1000..2000, 51).acks(2000).delivered(2000);
    assert!(!tcp.receiver.has_ended());
}

/// The reply reports the duplicate, which is counted as such (RFC 2883; as in Linux).
// Rule: as old_data_are_rejected
#[test]
fn an_old_duplicate_is_reported() {
    let mut tcp = Server::start(&Settings { dsack: true, ..stamped(Flavour::Sack) });
    tcp.data_ts(0..1000, 50).acks(1000).data_ts(0..1000, 40).reports(1000, &[0..1000]);
    let stats = tcp.receiver.stats();
    assert_eq!((stats.segments, stats.duplicate_segments, stats.outdated_segments), (2, 1, 1));
}

/// After a duplicate, old or not, the next segments are acknowledged at once (as in Linux). Old data above the left edge
/// have no such effect.
// Rule: as old_data_are_rejected
#[test]
fn quick_acknowledgements_follow_an_old_duplicate() {
    let quick = Settings { quick_acks: 2, ack_every: 2, ..stamped(Flavour::Sack) };
    for (old, again) in [(0..1000, true), (5000..6000, false)] {
        let mut tcp = Server::start(&quick);
        tcp.data_ts(0..1000, 50).acks(1000).data_ts(1000..2000, 50).acks(2000);
        tcp.data_ts(2000..3000, 50).is_silent();
        tcp.data_ts(old, 49).acks(3000);
        tcp.data_ts(3000..4000, 50);
        if again {
            tcp.acks(4000).data_ts(4000..5000, 50).acks(5000).data_ts(5000..6000, 50);
        }
        tcp.is_silent();
    }
}

/// The window is checked before the timestamp is recorded (section 5.3, R2 and R3): a segment far outside the
/// window does not make later ones look old.
// Rule: A segment outside the window does not set the timestamp. [7323 5.3; receiver.rs]
#[test]
fn data_outside_the_window_do_not_set_the_timestamp() {
    let mut tcp = Server::start(&stamped(Flavour::NewReno));
    tcp.data_ts(0..1000, 50).acks(1000);
    let far = tcp.segment(0..1000);
    let far = Segment { seq: far.seq + (1 << 31), ..far };
    tcp.receives(with_timestamp(far, 1 << 20)).acks_with_echo(1000, 50);
    tcp.data_ts(1000..2000, 60).acks_with_echo(2000, 60);
}

/// A copy of data that were acknowledged, and after which more was, is not acceptable, so that its timestamp is not echoed
/// (section 5.3, R2 and R3; as in Linux). Of the segment acknowledged last, it is.
// Rule: as data_outside_the_window_do_not_set_the_timestamp
#[test]
fn the_timestamp_of_an_acknowledged_copy_is_not_echoed() {
    for (copy, echo) in [(0..1000, 50), (0..1999, 50), (1000..2000, 60)] {
        let mut tcp = Server::start(&stamped(Flavour::Sack));
        tcp.data_ts(0..1000, 50).acks(1000).data_ts(1000..2000, 50).acks(2000);
        tcp.data_ts(copy, 60).acks_with_echo(2000, echo);
    }
}

/// RST is accepted whatever its timestamp (section 5.2).
// Rule: as old_data_are_rejected
#[test]
fn an_old_reset_is_accepted() {
    let mut tcp = Server::start(&stamped(Flavour::NewReno));
    tcp.data_ts(0..1000, 50).acks(1000);
    let reset = Segment { flags: Flags::RST, ..tcp.segment(1000..1000) };
    tcp.receives(with_timestamp(reset, 40)).is_reset(true);

    let mut tcp = Client::start(&stamped(Flavour::NewReno));
    tcp.sends_full(0..4).at(100).ack_ts(1000, 50).sent();
    let seq = tcp.bare_ack(0).ack;
    let reset = Segment { flags: Flags::RST, seq, ..Segment::default() };
    tcp.receives(with_timestamp(reset, 40)).is_aborted_at(100);
}

/// After half the span of the clock the order is undefined, and the next timestamp is accepted (section 5.5).
// Rule: After half the span of the clock, 36 minutes, the timestamp expires. [7323 5.5; paws.rs]
#[test]
fn the_timestamp_of_an_idle_connection_expires() {
    for (milliseconds, taken) in [(HALF_SPAN_MS, false), (HALF_SPAN_MS + 1, true)] {
        let mut tcp = Server::start(&stamped(Flavour::NewReno));
        tcp.data_ts(0..1000, 5_000).acks(1000).at(milliseconds).data_ts(1000..2000, 4_000);
        if taken {
            tcp.acks_with_echo(2000, 4_000).data_ts(2000..3000, 3_999).acks(2000);
        } else {
            tcp.acks_with_echo(1000, 5_000);
        }
        let mut tcp = Client::supplied(&stamped(Flavour::NewReno));
        tcp.supply(1000).sends_full(0..1).at(100).ack_ts(1000, 5_000).at(milliseconds + 100);
        tcp.supply(1000).sends_full(1..2).ack_ts(2000, 4_000).has(if taken { 2000 } else { 1000 }, 0);
    }
}

/// An acknowledgement with an older timestamp is discarded and not answered.
// Rule: as old_data_are_rejected
#[test]
fn old_acknowledgements_are_rejected() {
    for flavour in [Flavour::NewReno, Flavour::Sack, Flavour::Prr] {
        let mut tcp = Client::start(&stamped(flavour));
        tcp.sends_full(0..4).at(100).ack_ts(1000, 5_000).sent();
        tcp.ack_ts(3000, 4_999).sends_nothing().has(1000, u64::MAX - 6000);
        tcp.ack_ts(3000, 5_000).sent();
        assert_eq!(tcp.sender.acknowledged(), 3000, "{flavour:?}");
    }
}

/// A reordered duplicate is processed for one RTO, since it may carry SACK blocks (as in Linux).
// Rule: SACK blocks of a duplicate reordered by less than an RTO are processed; timestamps that number
// transmissions are not compared. [sender.rs]
#[test]
fn sack_blocks_of_a_reordered_duplicate_count() {
    let mut tcp = Client::start(&stamped(Flavour::Sack));
    tcp.sends_full(0..4).at(100).ack_ts(1000, 5_000_000).sent();
    let report = tcp.report(1000, &[2000..3000]);
    let rto = tcp.sender.rtt().rto().as_nanos() / 1_000;
    tcp.receives(with_timestamp(report, 5_000_000 - rto as u32 - 1)).dupacks(0);
    tcp.receives(with_timestamp(report, 5_000_000 - rto as u32)).dupacks(1).sent();
}

/// Flavours that identify copies use timestamps as transmission numbers, which are not ordered by age.
// Rule: as sack_blocks_of_a_reordered_duplicate_count
#[test]
fn transmission_ids_are_not_compared() {
    let mut tcp = Server::start(&stamped(Flavour::SelectiveRepeat));
    tcp.data_ts(1000..2000, 20).reports(0, &[1000..2000]).data_ts(0..1000, 10).acks(2000).delivered(2000);
}
