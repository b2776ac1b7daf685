//! The base station's agent, by hand: each branch of the flowcharts (MobiCom 1995, figures 1 and 2), the timers,
//! and hostile input.

use std::collections::BTreeMap;
use std::ops::Range;

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::scheme::Scheme;
use lasthop_proto::tcp::{Flags, SackBlock, Segment, SeqNum, Settings, Timestamps};
use lasthop_proto::{
    Body, Component, Datagram, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, Notice, NoticeCode,
    Out, Packet, Port, Probe, Signal,
};
use lasthop_testing::schemes::{agent, agent_of_station, schemes_of};

/// Source, destination and flow of data.
pub(super) type Key = (u32, u32, u32);

pub(super) const ONE: Key = (3, 5, 7);

/// The length of each segment, unless a test says otherwise.
pub(super) const LEN: u32 = 1000;

pub(super) fn packet((src, dst, flow): Key, body: Body) -> Packet {
    let (src, dst, flow) = (HostId(src), HostId(dst), FlowId(flow));
    Packet {
        src,
        dst,
        flow,
        size: Bytes(1040),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    }
}

pub(super) fn data(range: Range<u32>) -> Segment {
    let Range { start, end } = range;
    let flags = Flags::ACK;
    Segment { seq: SeqNum(start), len: end.wrapping_sub(start), wnd: 9999, flags, ..Segment::default() }
}

pub(super) fn ack(number: u32) -> Segment {
    Segment { seq: SeqNum(77), ack: SeqNum(number), wnd: 8000, flags: Flags::ACK, ..Segment::default() }
}

/// A local retransmission.
pub(super) fn copy(segment: Segment) -> Packet {
    Packet { dscp: Dscp::EXPEDITED, ..packet(ONE, Body::Tcp(segment)) }
}

/// Segment `number` of the stream.
pub(super) fn nth(number: u32) -> Segment {
    data(number * LEN..(number + 1) * LEN)
}

/// A base station, with the test as its neighbours.
pub(super) struct Station {
    pub(super) agent: Box<dyn Component>,
    now: Time,
}

struct Shown(BTreeMap<&'static str, f64>);

impl Probe for Shown {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.insert(name, value);
    }
}

pub(super) fn milliseconds(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

impl Station {
    /// A base station with these parameters.
    pub(super) fn with(parameters: &str) -> Station {
        let schemes = schemes_of(&format!("[snoop]\n{parameters}"));
        assert_eq!(schemes.snoop.faults(&Settings::default()), []);
        Station { agent: agent(&schemes, "snoop"), now: Time::ZERO }
    }

    /// Base station number 1 of a moving host that is at number 0.
    pub(super) fn of_moving_host(parameters: &str) -> Station {
        let schemes = schemes_of(&format!("[snoop]\n{parameters}"));
        let mut station = Station { agent: agent_of_station(&schemes, "snoop", 1), now: Time::ZERO };
        station.host_is_at(0);
        station
    }

    /// The moving host arrives at a base station.
    pub(super) fn host_is_at(&mut self, station: u16) -> &mut Station {
        let mut out = Out::default();
        self.agent.on_signal(self.now, &Signal::Attached { host: HostId(9), station }, &mut out);
        assert!(out.take().is_none(), "nothing is sent for that");
        self
    }

    /// A base station that has measured a round-trip time of 100 ms and forwarded segments 0 to `last`, of which
    /// the first has been acknowledged.
    pub(super) fn measured(parameters: &str, last: u32) -> Station {
        let mut station = Station::with(parameters);
        station.at(0).sends(0..=0).at(100).passes(LEN).sends(1..=last);
        station
    }

    /// Moves the clock. Nothing is retransmitted until then.
    pub(super) fn at(&mut self, ms: u64) -> &mut Station {
        let until = milliseconds(ms);
        assert!(until >= self.now);
        while self.agent.next_wakeup() < until {
            let due = self.agent.next_wakeup();
            assert_eq!(self.wake(due), [], "at {due}");
            assert!(self.agent.next_wakeup() > due, "it sleeps");
        }
        self.now = until;
        self
    }

    pub(super) fn wake(&mut self, due: Time) -> Vec<Effect> {
        self.now = self.now.max(due);
        let mut out = Out::default();
        self.agent.wake(self.now, &mut out);
        std::iter::from_fn(|| out.take()).map(|(_, effect)| effect).collect()
    }

    /// Asserts that a segment of the first connection is retransmitted at this time, and none before.
    pub(super) fn repairs_at(&mut self, ms: u64, segment: Segment) -> &mut Station {
        self.at(ms);
        assert_eq!(self.agent.next_wakeup(), self.now, "it wakes");
        let copy = copy(segment);
        assert_eq!(self.wake(self.now), [Effect::Send(Port::RADIO, copy)]);
        assert!(self.agent.next_wakeup() > self.now, "it sleeps");
        self
    }

    pub(super) fn receive(&mut self, port: Port, packet: &Packet) -> Vec<Effect> {
        let mut out = Out::default();
        self.agent.receive(self.now, packet, port, &mut out);
        std::iter::from_fn(|| out.take()).map(|(_, effect)| effect).collect()
    }

    /// Asserts that a segment from the source is forwarded, alone.
    pub(super) fn forwards(&mut self, segment: Segment) -> &mut Station {
        self.forwards_of(ONE, segment)
    }

    pub(super) fn forwards_of(&mut self, key: Key, segment: Segment) -> &mut Station {
        let packet = packet(key, Body::Tcp(segment));
        assert_eq!(self.receive(Port::WIRED, &packet), [Effect::Send(Port::RADIO, packet)]);
        self
    }

    /// Segments by number, from the source.
    pub(super) fn sends(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut Station {
        numbers.into_iter().for_each(|number| {
            self.forwards(nth(number));
        });
        self
    }

    pub(super) fn returned((src, dst, flow): Key, segment: Segment) -> Packet {
        packet((dst, src, flow), Body::Tcp(segment))
    }

    /// Asserts that an acknowledgement is forwarded, alone.
    pub(super) fn passes(&mut self, number: u32) -> &mut Station {
        self.passes_segment(ack(number))
    }

    pub(super) fn passes_segment(&mut self, segment: Segment) -> &mut Station {
        let packet = Station::returned(ONE, segment);
        assert_eq!(self.receive(Port::RADIO, &packet), [Effect::Send(Port::WIRED, packet)]);
        self
    }

    /// Asserts that an acknowledgement is suppressed, and causes nothing.
    pub(super) fn suppresses(&mut self, number: u32) -> &mut Station {
        let packet = Station::returned(ONE, ack(number));
        let expected = [Effect::Drop(packet, DropReason::Suppressed)];
        assert_eq!(self.receive(Port::RADIO, &packet), expected);
        self
    }

    /// Asserts that an acknowledgement is suppressed and a segment retransmitted.
    pub(super) fn repairs(&mut self, number: u32, segment: Segment) -> &mut Station {
        let came = Station::returned(ONE, ack(number));
        let copy = copy(segment);
        let expected = [Effect::Drop(came, DropReason::Suppressed), Effect::Send(Port::RADIO, copy)];
        assert_eq!(self.receive(Port::RADIO, &came), expected);
        self
    }

    /// Asserts that an acknowledgement is forwarded and a segment retransmitted.
    pub(super) fn passes_and_repairs(&mut self, number: u32, segment: Segment) -> &mut Station {
        let came = Station::returned(ONE, ack(number));
        let copy = copy(segment);
        let expected = [Effect::Send(Port::WIRED, came), Effect::Send(Port::RADIO, copy)];
        assert_eq!(self.receive(Port::RADIO, &came), expected);
        self
    }

    /// Asserts that a segment from the source is withheld and answered.
    pub(super) fn answers(&mut self, segment: Segment, number: u32) -> &mut Station {
        let packet = packet(ONE, Body::Tcp(segment));
        let answer = Station::returned(ONE, ack(number));
        let expected = [Effect::Drop(packet, DropReason::Suppressed), Effect::Send(Port::WIRED, answer)];
        assert_eq!(self.receive(Port::WIRED, &packet), expected);
        self
    }

    pub(super) fn shows(&self, name: &str) -> f64 {
        let mut shown = Shown(BTreeMap::new());
        self.agent.show(&mut shown);
        shown.0[name]
    }

    /// Asserts the number of cached segments and connections.
    pub(super) fn holds(&mut self, segments: usize, connections: usize) -> &mut Station {
        let found = (self.shows("cached_segments") as usize, self.shows("connections") as usize);
        assert_eq!(found, (segments, connections), "segments and connections");
        self
    }
}

/// Figure 1, common case; figure 2, common case.
// Rule: Segments in sequence are cached and forwarded; a new ACK frees them and is forwarded. [3.1.1, 3.1.2;
// ../scheme/snoop/connection.rs]
#[test]
fn segments_are_cached_until_they_are_acknowledged() {
    let mut station = Station::with("");
    station.sends(0..5).holds(5, 1).passes(2 * LEN).holds(3, 1).passes(5 * LEN).holds(0, 1);
    assert_eq!(station.shows("cached_segments_peak"), 5.0);
    station.at(100_000);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

/// The first duplicate triggers the retransmission; further duplicates by segments sent before it are suppressed.
// Rule: The first duplicate (the second in 1997) retransmits the segment; those expected are suppressed, the
// next unexpected one retransmits again. [3.1.2; 1997 4.5; ../scheme/snoop/connection.rs]
#[test]
fn a_duplicate_retransmits_and_later_ones_are_suppressed() {
    let mut station = Station::with("");
    station.sends(0..5).passes(LEN);
    station.repairs(LEN, nth(1)).suppresses(LEN).suppresses(LEN).passes(5 * LEN).holds(0, 1);
    assert_eq!(station.shows("local_retransmissions"), 1.0);
    assert_eq!(station.shows("suppressed_dupacks"), 3.0);
}

/// The first acknowledgement seen is a duplicate if it acknowledges nothing: the first segment was lost.
// Rule: as a_duplicate_retransmits_and_later_ones_are_suppressed
#[test]
fn the_first_segment_may_be_lost() {
    Station::with("").sends(0..3).repairs(0, nth(0)).suppresses(0).passes(3 * LEN);
}

/// A duplicate beyond those expected was caused by a segment sent after the copy: the copy was lost, too.
// Rule: as a_duplicate_retransmits_and_later_ones_are_suppressed
#[test]
fn a_lost_copy_is_retransmitted() {
    let mut station = Station::with("");
    station.sends(0..4).passes(LEN).repairs(LEN, nth(1)).suppresses(LEN);
    station.sends(4..7).repairs(LEN, nth(1)).suppresses(LEN).suppresses(LEN).passes(7 * LEN);
}

/// ToN 1997: the second duplicate indicates the loss. The first one is forwarded, since it may be due to
/// reordering; during a repair, all are suppressed.
// Rule: as a_duplicate_retransmits_and_later_ones_are_suppressed
#[test]
fn two_duplicates_are_awaited() {
    let mut station = Station::with("dupacks = 2");
    station.sends(0..6).passes(LEN).passes(LEN).repairs(LEN, nth(1)).suppresses(LEN).suppresses(LEN);
    station.sends(6..8).suppresses(LEN).repairs(LEN, nth(1)).passes(8 * LEN);
}

/// LL of ToN 1997 suppresses nothing.
// Rule: LL suppresses no duplicate. [1997 3.2; ../scheme/snoop/connection.rs]
#[test]
fn without_suppression_duplicates_pass() {
    let mut station = Station::with("suppress = false");
    station.sends(0..4).passes(LEN).passes_and_repairs(LEN, nth(1)).passes(LEN).passes(4 * LEN);
}

/// Figure 1, congestion loss: the source repairs segments that were lost or delayed before the base station.
// Rule: A segment out of sequence that was not cached was lost or reordered before the base station: it is
// marked, and the source repairs it. [3.1.1; ../scheme/snoop/connection.rs]
#[test]
fn losses_before_the_base_station_are_left_to_the_source() {
    let mut station = Station::with("");
    station.sends([0, 2, 3, 4]).passes(LEN).passes(LEN).passes(LEN).passes(LEN);
    // The retransmission is cached, and marked as the source's.
    station.sends([1]).holds(4, 1).passes(LEN).passes(LEN).passes(5 * LEN);
    assert_eq!(station.shows("source_retransmissions"), 1.0);
    assert_eq!(station.shows("local_retransmissions"), 0.0);
}

/// Figure 1, sender retransmission: a cached segment is forwarded, its duplicates pass from then on, and its
/// attempts begin anew.
// Rule: A segment that was cached before is forwarded, and its duplicates are the source's from then on; its
// attempts begin anew. [3.1.1; ../scheme/snoop/connection.rs]
#[test]
fn a_retransmission_by_the_source_takes_over() {
    let mut station = Station::measured("attempts = 1", 4);
    station.repairs(LEN, nth(1)).sends([1]).passes(LEN).passes(LEN).holds(4, 1);
    // No timeout; the silence is answered.
    station.repairs_at(300, nth(1)).at(10_000);
    assert_eq!(station.shows("local_timeouts"), 0.0);
}

/// The base station answers a segment that the mobile host has acknowledged: that acknowledgement was lost.
// Rule: A segment below the last ACK is answered with that ACK; not a probe of a closed window, nor with data
// in both directions. [3.1.1; ../scheme/snoop/connection.rs]
#[test]
fn acknowledged_segments_are_answered() {
    let mut station = Station::with("");
    station.sends(0..4).passes(3 * LEN).answers(nth(0), 3 * LEN).answers(nth(2), 3 * LEN);
    station.answers(data(500..2500), 3 * LEN).forwards(data(2500..3500)).holds(2, 1);
    assert_eq!(station.shows("answered_segments"), 2.0 + 1.0);
}

/// A segment below the acknowledgement may probe a closed window, or carry an acknowledgement to a mobile host
/// that sends data itself: only the mobile host can answer.
// Rule: as acknowledged_segments_are_answered
#[test]
fn probes_and_two_way_traffic_are_not_answered() {
    let mut station = Station::with("");
    station.sends(0..3).passes_segment(Segment { wnd: 0, ..ack(2 * LEN) }).forwards(nth(1));
    station.passes(2 * LEN).answers(nth(1), 2 * LEN);
    station.passes_segment(Segment { len: 100, ..ack(2 * LEN) }).forwards(nth(1));
    station.passes(3 * LEN).forwards(nth(1));
}

/// Figure 2, spurious: acknowledgements below the last one are discarded, but not with data or a FIN.
// Rule: Spurious ACKs are discarded. [3.1.2; ../scheme/snoop/connection.rs]
#[test]
fn spurious_acknowledgements_are_suppressed() {
    let mut station = Station::with("");
    station.sends(0..4).passes(3 * LEN).suppresses(LEN).suppresses(2 * LEN);
    station.passes_segment(Segment { len: 10, ..ack(LEN) });
    station.passes_segment(Segment { flags: Flags::ACK | Flags::FIN, ..ack(LEN) });
    assert_eq!(station.shows("spurious_acks"), 2.0);
    station.passes(4 * LEN);
}

/// Window updates, data and closed windows are not duplicates.
// Rule: as a_duplicate_retransmits_and_later_ones_are_suppressed
#[test]
fn what_is_no_duplicate_passes() {
    let mut station = Station::with("");
    station.sends(0..4).passes(LEN).passes_segment(Segment { wnd: 8001, ..ack(LEN) });
    station.passes_segment(Segment { len: 5, wnd: 8001, ..ack(LEN) });
    station.passes_segment(Segment { flags: Flags::ACK | Flags::FIN, wnd: 8001, ..ack(LEN) });
    let closed = Segment { wnd: 0, ..ack(2 * LEN) };
    station.passes_segment(closed).passes_segment(closed).at(60_000);
    assert_eq!(station.shows("local_retransmissions"), 0.0);
}

/// RFC 6675 section 2: with a report of later segments, also an ACK with another window is a duplicate. Linux opens its
/// window further with every segment, as long as its buffer grows. A window that was closed is news.
// Rule: With SACK, a duplicate may have another window; with timestamps as well, it reports what the ACK
// before it did not. [RFC 6675 2; ../scheme/snoop/connection.rs]
#[test]
fn a_report_with_another_window_is_a_duplicate() {
    let mut station = Station::with("");
    let report = |wnd: u32| {
        let mut segment = Segment { wnd, ..ack(LEN) };
        segment.sack.push(SackBlock { start: SeqNum(2 * LEN), end: SeqNum(3 * LEN) });
        Station::returned(ONE, segment)
    };
    station.sends(0..5).passes(LEN);
    let suppressed = |came: Packet| Effect::Drop(came, DropReason::Suppressed);
    let repaired = [suppressed(report(8003)), Effect::Send(Port::RADIO, copy(nth(1)))];
    assert_eq!(station.receive(Port::RADIO, &report(8003)), repaired);
    assert_eq!(station.receive(Port::RADIO, &report(8006)), [suppressed(report(8006))]);
    for wnd in [0, 8006] {
        assert_eq!(station.receive(Port::RADIO, &report(wnd)), [Effect::Send(Port::WIRED, report(wnd))]);
    }
    assert_eq!((station.shows("local_retransmissions"), station.shows("suppressed_dupacks")), (1.0, 2.0));
}

/// RFC 6675 section 2: with SACK and timestamps, a duplicate reports what no ACK before it did. Data that arrive again, and copies that the
/// mobile host rejects as old, cause ACKs without such a report, which show no loss: neither now nor with the next new ACK.
// Rule: as a_report_with_another_window_is_a_duplicate
#[test]
fn duplicates_without_news_show_no_loss() {
    let report = |number: u32, blocks: &[Range<u32>]| {
        let mut segment = Segment { timestamps: Some(Timestamps::default()), ..ack(number * LEN) };
        for &Range { start, end } in blocks {
            segment.sack.push(SackBlock { start: SeqNum(start * LEN), end: SeqNum(end * LEN) });
        }
        Station::returned(ONE, segment)
    };
    let suppressed = |came: Packet| Effect::Drop(came, DropReason::Suppressed);
    let mut station = Station::with("");
    station.sends(0..8).passes(LEN);
    let mut receive = |blocks: &[Range<u32>]| station.receive(Port::RADIO, &report(1, blocks));
    let repaired = [suppressed(report(1, &[2..3])), Effect::Send(Port::RADIO, copy(nth(1)))];
    assert_eq!(receive(&[2..3]), repaired);
    assert_eq!(receive(&[2..4]), [suppressed(report(1, &[2..4]))]);
    // The copy is rejected, four times; then a segment arrives again, which is reported as a duplicate.
    for _ in 0..4 {
        assert_eq!(receive(&[2..4]), [suppressed(report(1, &[2..4]))]);
    }
    assert_eq!(receive(&[3..4, 2..4]), [suppressed(report(1, &[3..4, 2..4]))]);
    // The source repairs segment 1. No segment beyond 3 has arrived.
    station.forwards(nth(1));
    for number in [4, 5] {
        let came = report(number, &[]);
        assert_eq!(station.receive(Port::RADIO, &came), [Effect::Send(Port::WIRED, came)]);
    }
    assert_eq!(station.shows("local_retransmissions"), 1.0);
}

/// A new acknowledgement after a repair that covers less than what had arrived reveals the next loss at once
/// (ToN 1997, section 4.5); one that covers it does not.
// Rule: A new ACK that covers less than what has arrived reveals the next loss. [1997 4.5;
// ../scheme/snoop/connection.rs]
#[test]
fn the_next_loss_of_a_burst_is_repaired_at_once() {
    // 1, 2 and 4 are lost; 3 and 5 arrive.
    let mut station = Station::with("dupacks = 2");
    station.sends(0..6).passes(LEN).passes(LEN).repairs(LEN, nth(1)).at(10);
    station.passes_and_repairs(2 * LEN, nth(2)).at(20).passes(4 * LEN).sends([6]).repairs(4 * LEN, nth(4));
    // The second segment is repaired by its own duplicates only.
    let mut station = Station::with("dupacks = 2\nbursts = false");
    station.sends(0..6).passes(LEN).passes(LEN).repairs(LEN, nth(1)).at(10).passes(2 * LEN);
    station.passes(2 * LEN).repairs(2 * LEN, nth(2));
    // Only 1 is lost.
    let mut station = Station::with("");
    station.sends(0..6).passes(LEN).repairs(LEN, nth(1)).at(10).suppresses(LEN);
    station.passes(4 * LEN).passes(5 * LEN);
    assert_eq!(station.shows("local_retransmissions"), 1.0);
}

/// Section 4: the next copy follows after twice the smoothed round-trip time. The first is caused by duplicates only.
// Rule: Twice that time, and at least 40 ms, after a retransmission that duplicates caused, the next. [4;
// ../scheme/snoop/connection.rs]
#[test]
fn copies_are_repeated_after_two_round_trip_times() {
    let mut station = Station::measured("persist = \"60 s\"", 3);
    station.at(140).repairs(LEN, nth(1)).repairs_at(340, nth(1)).repairs_at(540, nth(1));
    station.at(600).passes(4 * LEN).at(10_000);
    assert_eq!((station.shows("local_timeouts"), station.shows("persist_timeouts")), (2.0, 0.0));
}

/// Segments sent before a copy cause duplicates after it, also if the timeout caused that copy: these are suppressed
/// and cause no other. Those of later segments show that this copy was lost as well.
// Rule: as copies_are_repeated_after_two_round_trip_times
#[test]
fn duplicates_after_a_timeout_are_expected() {
    let mut station = Station::measured("persist = \"60 s\"", 3);
    station.at(140).repairs(LEN, nth(1)).at(330).sends([4, 5]).repairs_at(340, nth(1)).at(380);
    // Of segments 3, 4 and 5.
    station.suppresses(LEN).suppresses(LEN).suppresses(LEN);
    station.sends([6]).repairs(LEN, nth(1)).passes(7 * LEN);
    assert_eq!(station.shows("local_retransmissions"), 3.0);
}

/// The gain is a quarter, one segment is timed at a time, and retransmissions cancel the sample.
// Rule: The round-trip time is sampled once a window, not from retransmissions, and smoothed with a gain of
// 1/4. [3.1.2, 4; ../scheme/snoop/connection.rs]
#[test]
fn the_round_trip_time_is_smoothed() {
    let mut station = Station::measured("persist = \"60 s\"", 3);
    // Segment 1 was sent at 100: a sample of 60 ms. The others are not timed. 0.75 * 100 + 0.25 * 60 = 90 ms.
    station.at(160).passes(2 * LEN).passes(3 * LEN).at(200).sends(4..7).passes(4 * LEN);
    // The timed segment, 4, is repaired: no sample.
    station.at(300).repairs(4 * LEN, nth(4)).repairs_at(480, nth(4)).at(560);
    station.passes_and_repairs(5 * LEN, nth(5)).repairs_at(740, nth(5)).at(800).passes(7 * LEN);
    // The source repeats the timed segment: no sample either.
    let mut station = Station::measured("persist = \"60 s\"", 3);
    station.at(150).sends([1]).at(900).passes(2 * LEN);
    station.at(910).repairs(2 * LEN, nth(2)).repairs_at(1110, nth(2));
}

/// The timeout has a lower bound, and a default before the first sample.
// Rule: as copies_are_repeated_after_two_round_trip_times
#[test]
fn the_timeout_is_bounded() {
    let mut station = Station::with("");
    station.sends(0..1).at(5).passes(LEN).sends(1..4).at(10);
    station.repairs(LEN, nth(1)).repairs_at(50, nth(1)).repairs_at(90, nth(1));
    let mut station = Station::with("initial = \"700 ms\"");
    station.sends(0..3).at(600).repairs(0, nth(0)).repairs_at(1300, nth(0));
}

/// After 200 ms of silence from both ends the oldest segment is retransmitted, if it is cached. It is repeated
/// until its attempts are exhausted, and the duplicates of earlier segments are unexpected again.
// Rule: After 200 ms without packets the oldest segment is retransmitted. [4; ../scheme/snoop/connection.rs]
#[test]
fn silence_is_answered() {
    let mut station = Station::measured("attempts = 3", 3);
    station.at(150).suppresses(0);
    station.repairs_at(350, nth(1)).at(400).repairs(LEN, nth(1)).repairs_at(600, nth(1));
    station.at(60_000);
    let counted = ["local_retransmissions", "local_timeouts", "persist_timeouts"].map(|it| station.shows(it));
    assert_eq!(counted, [3.0, 1.0, 1.0]);
    station.passes(LEN).passes(4 * LEN).at(60_300);
}

/// On a slow link silence lasts for round-trip times.
// Rule: as silence_is_answered
#[test]
fn silence_is_relative_to_the_round_trip_time() {
    let mut station = Station::with("");
    station.sends([0]).at(900).passes(LEN).sends([1, 2]).repairs_at(900 + 1800, nth(1));
    let mut station = Station::with("");
    station.sends([0]).repairs_at(1000, nth(0));
}

/// An uncached segment is not retransmitted after silence.
// Rule: as silence_is_answered
#[test]
fn silence_after_a_loss_before_the_base_station() {
    Station::with("").sends([0, 2]).passes(LEN).at(60_000);
}

/// The source repairs a segment whose local attempts are exhausted.
// Rule: as a_duplicate_retransmits_and_later_ones_are_suppressed
#[test]
fn attempts_are_limited() {
    let mut station = Station::measured("attempts = 2", 3);
    station.at(110).repairs(LEN, nth(1)).suppresses(LEN);
    station.sends([4]).repairs(LEN, nth(1)).sends([5, 6, 7]).passes(LEN).passes(LEN).passes(LEN).at(60_000);
}

/// What arrives twice causes a duplicate, which is no reason for a copy: the copy would overtake its queued original,
/// which would cause the next duplicate, and so on for as long as data flow.
// Rule: The duplicate of a segment that arrives twice, copied or repeated by the source, causes no copy.
// [../scheme/snoop/connection.rs]
#[test]
fn needless_copies_do_not_propagate() {
    // Segment 1 is lost, and the source repeats 2 as well, which arrives twice, and the second time while 3 is queued.
    let mut station = Station::with("");
    station.sends(0..3).sends([1, 2]).sends(3..6).at(100).passes(LEN).passes(3 * LEN);
    station.suppresses(3 * LEN).passes(4 * LEN).repairs(4 * LEN, nth(4));
    assert_eq!(station.shows("local_retransmissions"), 1.0);
    // Segments 1 and 2 are late, and repeated before their acknowledgements.
    let mut station = Station::measured("", 3);
    station.at(190).sends([1, 2]).at(200).passes(2 * LEN).passes(3 * LEN).sends(4..6);
    station.suppresses(3 * LEN).suppresses(3 * LEN).repairs(3 * LEN, nth(3));
    // After a timeout: either the first copy of 1 was lost, or the second is needless.
    let mut station = Station::measured("persist = \"60 s\"", 3);
    station.at(140).repairs(LEN, nth(1)).repairs_at(340, nth(1)).at(350).passes(3 * LEN).sends([4, 5]);
    station.suppresses(3 * LEN).repairs(3 * LEN, nth(3));
    // Segment 1 is late, not lost: its acknowledgement comes sooner than any that the copy can cause.
    let mut station = Station::measured("", 1);
    station.repairs_at(300, nth(1)).at(305).passes(2 * LEN).sends(2..5).at(400).suppresses(2 * LEN);
    station.passes(3 * LEN).repairs(3 * LEN, nth(3));
    assert_eq!(station.shows("local_retransmissions"), 2.0);
}

/// What was sent after a needless transmission arrives after it: from then on duplicates show losses again. So do
/// those that report later segments, at any time.
// Rule: as needless_copies_do_not_propagate
#[test]
fn duplicates_of_needless_copies_come_before_later_segments() {
    let mut station = Station::with("");
    station.sends(0..2).sends([0, 1]).sends(2..6).passes(2 * LEN);
    station.passes(3 * LEN).repairs(3 * LEN, nth(3));
    let mut station = Station::with("");
    station.sends(0..5).sends([0, 1]).passes(2 * LEN);
    let block = SackBlock { start: SeqNum(3 * LEN), end: SeqNum(4 * LEN) };
    let mut duplicate = ack(2 * LEN);
    duplicate.sack.push(block);
    let came = Station::returned(ONE, duplicate);
    let expected = [Effect::Drop(came, DropReason::Suppressed), Effect::Send(Port::RADIO, copy(nth(2)))];
    assert_eq!(station.receive(Port::RADIO, &came), expected);
}

/// In silence everything under way has arrived or is lost: a copy after it is needed.
// Rule: as needless_copies_do_not_propagate
#[test]
fn copies_after_silence_cause_no_duplicates() {
    let mut station = Station::measured("", 4);
    station.repairs_at(300, nth(1)).at(400).passes(2 * LEN).at(401).repairs(2 * LEN, nth(2));
}

/// At the high-water mark segments in sequence are forwarded but not cached; earlier ones displace the last.
// Rule: At the high-water mark only earlier segments are cached. [4; ../scheme/snoop/connection.rs]
#[test]
fn the_cache_prefers_earlier_segments() {
    let mut station = Station::with("cache = 3");
    station.sends([0, 2, 3, 4, 5]).holds(3, 1).sends([1]).holds(3, 1);
    assert_eq!(station.shows("uncached_segments"), 2.0);
    station.passes(2 * LEN).holds(1, 1).repairs(2 * LEN, nth(2)).passes(3 * LEN).passes(3 * LEN);
}

/// The latest boundaries are cached; overlaps are allowed, containment is not.
// Rule: as a_retransmission_by_the_source_takes_over
#[test]
fn resegmented_data_are_the_source_s_retransmissions() {
    let mut station = Station::with("");
    station.sends(0..4);
    station.forwards(data(0..1500)).holds(4, 1).forwards(data(200..900)).holds(4, 1);
    station.forwards(data(1200..3800)).holds(4, 1).forwards(data(500..5000)).holds(2, 1);
    station.passes(1000).passes(1000).sends([5]).passes(5000).repairs(5000, nth(5)).passes(6000).holds(0, 1);
}

/// FIN is cached like data. Its acknowledgement ends the connection.
// Rule: FIN is repaired; SYN, RST, impossible ACKs and idle time remove the state; tables are bounded;
// sequence numbers wrap. [../scheme/snoop/agent.rs]
#[test]
fn the_fin_is_repaired() {
    let mut station = Station::measured("", 2);
    let fin = Segment { flags: Flags::ACK | Flags::FIN, ..data(3 * LEN..3 * LEN) };
    station.forwards(fin).passes(3 * LEN).holds(1, 1).repairs_at(300, fin).passes(3 * LEN + 1).holds(0, 0);
    let last = Segment { flags: Flags::ACK | Flags::FIN, ..nth(0) };
    Station::with("").forwards(last).passes(LEN).holds(1, 1).passes(LEN + 1).holds(0, 0);
}

/// SYN and RST, in either direction, remove the state and pass.
// Rule: as the_fin_is_repaired
#[test]
fn resets_and_restarts_remove_the_connection() {
    for flags in [Flags::SYN, Flags::RST, Flags::RST | Flags::ACK, Flags::SYN | Flags::ACK] {
        let segment = Segment { flags, ..data(LEN..LEN) };
        Station::with("").sends(0..3).forwards(segment).holds(0, 0).passes(LEN).passes(LEN);
        let segment = Segment { flags, ..ack(LEN) };
        Station::with("").sends(0..3).passes_segment(segment).holds(0, 0).sends([3]).holds(1, 1);
    }
}

/// An acknowledgement of data that have not passed, or from another window, shows that the state is wrong.
// Rule: as the_fin_is_repaired
#[test]
fn impossible_acknowledgements_remove_the_connection() {
    for number in [3 * LEN + 1, 1 << 30, 1 << 31, (1 << 31) + 1, u32::MAX - (1 << 30)] {
        Station::with("").sends(0..3).passes(number).holds(0, 0).sends([3]).passes(4 * LEN).holds(0, 1);
    }
    // A segment from another window starts anew.
    Station::with("").sends(0..3).forwards(data(1 << 31..(1 << 31) + LEN)).holds(1, 1);
}

/// A new connection on the same flow, whose numbers lie far from the acknowledged or cached ones, starts anew, even
/// if they are within a window of the highest one.
// Rule: as the_fin_is_repaired
#[test]
fn a_new_connection_on_the_same_flow_replaces_the_old_one() {
    const FAR: u32 = 1 << 30;
    let of = |first: u32| data(first..first + LEN);
    // Far from the cached segments.
    let mut station = Station::with("");
    station.sends(0..3).forwards(of(FAR + 2 * LEN)).holds(1, 1).repairs(FAR + 2 * LEN, of(FAR + 2 * LEN));
    // Far from the acknowledgement.
    let mut station = Station::with("");
    station.sends([0, 1]).passes(2 * LEN).forwards(of(FAR)).holds(1, 1);
    station.forwards(of(2 * FAR)).holds(1, 1).repairs(2 * FAR, of(2 * FAR)).passes(2 * FAR + LEN).holds(0, 1);
    // Within a window of all that is known, they cannot be told from those of the old connection.
    Station::with("").sends(0..3).forwards(of(FAR)).holds(4, 1);
}

/// Idle connections are removed: on their own next packet, and when another needs room. A full table loses the
/// connection that was idle longest.
// Rule: as the_fin_is_repaired
#[test]
fn the_table_is_bounded() {
    let mut station = Station::with("connections = 2\nidle = \"10 s\"\nattempts = 1");
    let key = |flow| (3, 5, flow);
    station.forwards_of(key(1), nth(0)).at(500).forwards_of(key(2), nth(0)).holds(2, 2);
    station.at(600).forwards_of(key(3), nth(0)).holds(2, 2).forwards_of(key(1), nth(1)).holds(2, 2);
    let returned = |flow| Station::returned(key(flow), ack(LEN));
    assert_eq!(station.receive(Port::RADIO, &returned(3)).len(), 1);
    station.holds(1, 2);
    assert_eq!(station.receive(Port::RADIO, &returned(2)), [Effect::Send(Port::WIRED, returned(2))]);
    station.holds(1, 2);
    let copy = Packet { dscp: Dscp::EXPEDITED, ..packet(key(1), Body::Tcp(nth(1))) };
    station.at(1600);
    assert_eq!(station.wake(milliseconds(1600)), [Effect::Send(Port::RADIO, copy)]);
    station.at(20_000).forwards_of(key(4), nth(0)).holds(1, 1);
    station.at(20_001);
}

/// Connections are told apart by addresses and flow.
// Rule: as the_fin_is_repaired
#[test]
fn connections_are_independent() {
    let mut station = Station::with("");
    station.sends(0..3).forwards_of((3, 5, 8), nth(0)).forwards_of((4, 5, 7), nth(0)).holds(5, 3);
    station.passes(LEN).repairs(LEN, nth(1)).holds(4, 3);
}

/// Sequence numbers wrap.
// Rule: as the_fin_is_repaired
#[test]
fn sequence_numbers_wrap() {
    for offset in [0, 500, 1000, 1500, 2000, 2500] {
        let first = u32::MAX - offset;
        let segment = |number: u32| {
            let start = first.wrapping_add(number * LEN);
            data(start..start.wrapping_add(LEN))
        };
        let number = |number: u32| first.wrapping_add(number * LEN);
        let mut station = Station::with("");
        (0..4).for_each(|it| {
            station.forwards(segment(it));
        });
        station.passes(number(1)).repairs(number(1), segment(1));
        station.passes(number(3)).answers(segment(2), number(3)).passes(number(4)).holds(0, 1);
    }
}

/// Packets other than TCP segments pass, as do all packets with encrypted headers.
// Rule: as the_fin_is_repaired
#[test]
fn the_rest_passes() {
    let bodies = [
        Body::Notice(Notice { code: NoticeCode { kind: 4, code: 0 }, seq: SeqNum(0) }),
        Body::Datagram(Datagram { seq: 0, sent: Time::ZERO }),
        Body::Tcp(nth(0)),
        Body::Tcp(ack(0)),
    ];
    let mut station = Station::with("encrypted = true");
    for body in bodies {
        for port in [Port::WIRED, Port::RADIO] {
            let packet = packet(ONE, body);
            assert_eq!(station.receive(port, &packet), [Effect::Send(port.across(), packet)]);
        }
    }
    station.holds(0, 0).at(60_000);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

/// Copies are expedited, unless the scheme is told otherwise or the segment has its own code point.
#[test]
fn copies_are_expedited() {
    for (parameters, original, expected) in [
        ("", Dscp::DEFAULT, Dscp::EXPEDITED),
        ("expedite = false", Dscp::DEFAULT, Dscp::DEFAULT),
        ("", Dscp::new(3), Dscp::new(3)),
    ] {
        let mut station = Station::with(parameters);
        let packet = Packet { dscp: original, ..packet(ONE, Body::Tcp(nth(0))) };
        station.receive(Port::WIRED, &packet);
        let duplicate = Station::returned(ONE, ack(0));
        let copy = Effect::Send(Port::RADIO, Packet { dscp: expected, ..packet });
        assert_eq!(station.receive(Port::RADIO, &duplicate)[1], copy);
    }
}

/// Invalid parameters are refused.
#[test]
fn zero_is_refused() {
    for key in ["dupacks", "attempts", "cache", "connections"] {
        let schemes = schemes_of(&format!("[snoop]\n{key} = 0"));
        assert_eq!(schemes.snoop.faults(&Settings::default())[0].0, key);
    }
    for key in ["min_timeout", "persist", "initial", "idle"] {
        let schemes = schemes_of(&format!("[snoop]\n{key} = \"0 s\""));
        assert_eq!(schemes.snoop.faults(&Settings::default())[0].0, key);
    }
}

fn random_segment(random: &mut Stream) -> Segment {
    let near = |random: &mut Stream| {
        let base = [0, u32::MAX - 3000, 1 << 31][random.below(3) as usize];
        SeqNum(base).0.wrapping_add(random.below(12) as u32 * 500)
    };
    let anywhere =
        |random: &mut Stream| if random.below(40) == 0 { random.below(1 << 32) as u32 } else { near(random) };
    let mut segment = Segment {
        seq: SeqNum(anywhere(random)),
        ack: SeqNum(anywhere(random)),
        len: [0, 0, 500, 1000, 1500][random.below(5) as usize],
        wnd: [8000, 8000, 8000, 0, 1][random.below(5) as usize],
        flags: if random.below(20) == 0 { Flags(random.below(1 << 12) as u16) } else { Flags::ACK },
        ..Segment::default()
    };
    if random.below(4) == 0 {
        segment.sack.push(SackBlock { start: SeqNum(near(random)), end: SeqNum(near(random)) });
    }
    segment
}

/// Any packets at any times: what arrives is forwarded unchanged or suppressed; only acknowledgements without data,
/// and data that were acknowledged, are suppressed; copies are of packets that arrived; tables are bounded; the
/// agent sleeps when nothing is due.
// Rule: as the_fin_is_repaired
#[test]
fn arbitrary_packets_do_no_harm() {
    for seed in 0..300 {
        let streams = Streams::new(seed, 0);
        let random = &mut streams.stream("packets");
        let mut station = Station::with("cache = 3\nconnections = 2\nidle = \"2 s\"\nattempts = 4");
        let (mut down, mut up) = (Vec::new(), Vec::new());
        for _ in 0..1000 {
            let now = station.now + Duration::from_millis([0, 1, 50, 300][random.below(4) as usize]);
            while station.agent.next_wakeup() <= now {
                let due = station.agent.next_wakeup();
                for effect in station.wake(due) {
                    let Effect::Send(Port::RADIO, copy) = effect else { panic!("{effect:?}") };
                    let original = Packet { dscp: Dscp::DEFAULT, ..copy };
                    assert!(down.contains(&original), "{copy:?}");
                }
                assert!(station.agent.next_wakeup() > station.now, "it sleeps");
            }
            station.now = now;
            let port = [Port::WIRED, Port::RADIO][random.below(2) as usize];
            let (key, back) = [((1, 2, 0), (2, 1, 0)), ((1, 2, 1), (2, 1, 1)), ((1, 3, 1), (3, 1, 1))]
                [random.below(3) as usize];
            let segment = random_segment(random);
            let packet = packet(if port == Port::WIRED { key } else { back }, Body::Tcp(segment));
            if port == Port::WIRED {
                down.push(packet)
            } else {
                up.push(packet)
            };
            let effects = station.receive(port, &packet);
            match effects[0] {
                Effect::Send(to, found) => assert_eq!((to, found), (port.across(), packet)),
                Effect::Drop(found, DropReason::Suppressed) => {
                    assert_eq!(found, packet);
                    assert_eq!(port == Port::RADIO, segment.seq_len() == 0, "{packet:?}");
                }
                other => panic!("{other:?}"),
            }
            for effect in &effects[1..] {
                match effect {
                    Effect::Send(Port::RADIO, copy) => {
                        let original = Packet { dscp: Dscp::DEFAULT, ..*copy };
                        assert!(down.contains(&original), "{copy:?}");
                    }
                    Effect::Send(Port::WIRED, copy) => assert!(up.contains(copy), "{copy:?}"),
                    other => panic!("{other:?}"),
                }
            }
            assert!(effects.len() <= 2, "{effects:?}");
            assert!(station.shows("connections") <= 2.0);
            assert!(station.shows("cached_segments") <= 3.0 * station.shows("connections"));
        }
        assert!(station.shows("local_retransmissions") > 0.0);
    }
}

/// While the host is elsewhere, its packets are cached and not retransmitted. When it arrives, its first
/// acknowledgement removes what it has, and losses are repaired as usual.
// Rule: Without its host a base station only caches, the latest segments if there are too many; the first ACK
// after a hand-off removes what has arrived. [WINET 5; ../scheme/snoop/agent.rs]
#[test]
fn a_base_station_without_its_host_only_caches() {
    let mut station = Station::of_moving_host("bursts = false");
    station.at(0).sends(0..=5).holds(6, 1);
    // No timer runs, and acknowledgements that still arrive have no effect.
    station.at(5_000).passes(LEN).passes(LEN).holds(6, 1).sends(6..=7);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
    station.host_is_at(1).passes(5 * LEN).holds(3, 1);
    station.repairs(5 * LEN, nth(5)).at(5_010).suppresses(5 * LEN);
    // The base station has not measured the round-trip time: the long time of the first segments says nothing.
    station.at(5_020).passes(6 * LEN).at(5_030).sends(8..=9).at(5_050).passes(10 * LEN).holds(0, 1);
    // It leaves again.
    station.host_is_at(0).sends(10..=10);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

/// The oldest segments are evicted: the host still lacks some of the latest.
// Rule: as a_base_station_without_its_host_only_caches
#[test]
fn without_its_host_a_base_station_caches_the_latest_segments() {
    let mut station = Station::of_moving_host("cache = 4");
    station.at(0).sends(0..=9).holds(4, 1);
    station.host_is_at(1).passes(7 * LEN).holds(3, 1).repairs(7 * LEN, nth(7));
}

/// A packet of 1,040 bytes takes 4.16 ms on the air and 1 ms there and back. An acknowledgement after more than that may
/// be of the copy, however long round trips were that were measured in a full queue.
// Rule: as a_base_station_without_its_host_only_caches
#[test]
fn after_a_hand_off_copies_are_acknowledged_within_any_possible_round_trip() {
    let mut station = Station::of_moving_host("bursts = false");
    station.at(0).sends(0..=3).host_is_at(1).at(10).repairs(0, nth(0));
    station.at(20).passes(LEN).repairs(LEN, nth(1)).at(30).passes(2 * LEN).repairs(2 * LEN, nth(2));
    // Sooner than a packet can be on the air: the original has arrived, and the copy will cause a duplicate.
    station.at(32).passes(3 * LEN).suppresses(3 * LEN).repairs(3 * LEN, nth(3));
}

/// The local timeout passes while the window is closed. The segment is repaired when the window opens again.
#[test]
fn a_timeout_in_a_closed_window_is_made_up_for() {
    let mut station = Station::measured("bursts = false", 4);
    station.at(110).repairs(LEN, nth(1));
    let closed = Segment { wnd: 0, ..ack(LEN) };
    station.at(120).passes_segment(closed);
    station.at(2_000).passes(LEN).repairs_at(2_000, nth(1));
}
