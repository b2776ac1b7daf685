//! Explicit Loss Notification: the marker and the source by hand, and a path with corruption and congestion.

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_proto::scheme::{LinkEnd, Schemes, Site};
use lasthop_proto::tcp::{EcnMode, Flags, Flavour, Segment, SeqNum, Settings};
use lasthop_proto::{Body, Component, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, Signal};
use lasthop_testing::dialogue::{Client, MSS, settings};
use lasthop_testing::schemes::{installed, schemes_of, site};

/// The bit for "the requested segment arrived with errors".
const ELN: Flags = Flags(0x200);

fn schemes(early: bool) -> Schemes {
    schemes_of(&format!("[eln]\nearly = {early}"))
}

/// A marker at an end of the link.
struct Marker {
    agent: Box<dyn Component>,
    now: Time,
}

impl Marker {
    fn at(end: LinkEnd) -> Marker {
        let schemes = Schemes::default();
        let eln = installed(&schemes, "eln");
        assert_eq!(eln.agents(end).collect::<Vec<_>>(), ["eln"]);
        Marker { agent: eln.agent(0, &Site { end, ..site() }), now: Time::ZERO }
    }

    fn segment(&mut self, segment: Segment, to_host: bool, port: Port) -> Packet {
        let (src, dst) = if to_host { (HostId(0), HostId(1)) } else { (HostId(1), HostId(0)) };
        let (flow, size) = (FlowId(3), Bytes(u64::from(segment.len) + 40));
        let packet = Packet {
            src,
            dst,
            flow,
            size,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body: Body::Tcp(segment),
        };
        let mut out = Out::default();
        self.agent.receive(self.now, &packet, port, &mut out);
        match (out.take(), out.take()) {
            (Some((_, Effect::Send(leaves, sent))), None) => {
                assert_eq!(leaves, port.across());
                sent
            }
            other => panic!("{other:?} instead of one packet"),
        }
    }

    /// Data segment number `number` of the host's peer arrives with errors.
    fn corrupts(&mut self, number: u32) -> &mut Marker {
        let segment =
            Segment { seq: SeqNum(number * MSS), len: MSS, flags: Flags::ACK, ..Segment::default() };
        self.corrupts_segment(segment)
    }

    fn corrupts_segment(&mut self, segment: Segment) -> &mut Marker {
        let (src, dst, flow, size) = (HostId(0), HostId(1), FlowId(3), Bytes(1040));
        let packet = Packet {
            src,
            dst,
            flow,
            size,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body: Body::Tcp(segment),
        };
        let mut out = Out::default();
        self.agent.on_signal(self.now, &Signal::Corrupted(packet), &mut out);
        assert!(out.is_empty());
        self
    }

    /// The host requests segment number `number`; asserts whether the link gets the request marked.
    fn acks(&mut self, number: u32, marked: bool) -> &mut Marker {
        let flags = Flags::ACK;
        let sent = self.segment(
            Segment { ack: SeqNum(number * MSS), flags, ..Segment::default() },
            false,
            Port::WIRED,
        );
        let expected = if marked { flags | ELN } else { flags };
        assert_eq!(sent.segment().map(|segment| segment.flags), Some(expected), "ACK {number}");
        self
    }
}

/// Section 3.1: acknowledgements that request a segment that arrived with errors are marked until it is acknowledged.
// Rule: ACKs that request a segment that arrived corrupted are marked. [3.1; ../scheme/eln.rs]
#[test]
fn requests_of_corrupted_segments_are_marked() {
    for end in [LinkEnd::MobileHost, LinkEnd::BaseStation] {
        let mut marker = Marker::at(end);
        marker.acks(2, false).corrupts(2).acks(1, false).acks(2, true).acks(2, true).acks(3, false);
        // Several in one window, in any order; a copy of one changes nothing.
        marker.corrupts(7).corrupts(5).corrupts(5).acks(4, false).acks(5, true).acks(6, false).acks(7, true);
        marker.acks(8, false).acks(7, false);
    }
}

/// With a memory of one loss, the other corrupted segments are not marked.
// Rule: With `memory = "first"` or `"last"`, one of several corrupted segments is marked. [4.3; ../scheme/eln.rs]
#[test]
fn one_of_several_losses_may_be_remembered() {
    let site = Site { end: LinkEnd::MobileHost, ..site() };
    for (memory, marked) in [("all", [true, true]), ("first", [true, false]), ("last", [false, true])] {
        let schemes = schemes_of(&format!("[eln]\nmemory = \"{memory}\""));
        let mut marker = Marker { agent: installed(&schemes, "eln").agent(0, &site), now: Time::ZERO };
        marker.corrupts(2).corrupts(5).acks(2, marked[0]).acks(5, marked[1]).acks(6, false);
        marker.corrupts(7).acks(7, true);
    }
}

/// An acknowledgement of a part of the segment requests the rest.
// Rule: as requests_of_corrupted_segments_are_marked
#[test]
fn a_request_within_a_corrupted_segment_is_marked() {
    let mut marker = Marker::at(LinkEnd::MobileHost);
    let long = Segment { seq: SeqNum(1000), len: 3 * MSS, flags: Flags::ACK, ..Segment::default() };
    marker.corrupts_segment(long).acks(0, false).acks(2, true).acks(3, true).acks(4, false);
}

/// Packets towards the host pass unchanged, and so do acknowledgements without data before them.
// Rule: as requests_of_corrupted_segments_are_marked
#[test]
fn everything_else_passes_unchanged() {
    let mut marker = Marker::at(LinkEnd::MobileHost);
    marker
        .corrupts_segment(Segment { seq: SeqNum(0), flags: Flags::ACK, ..Segment::default() })
        .acks(0, false);
    let data = Segment { seq: SeqNum(0), len: MSS, flags: Flags::ACK, ..Segment::default() };
    marker.corrupts(0);
    assert_eq!(marker.segment(data, true, Port::RADIO).segment(), Some(&data));
    // A new connection on the same flow.
    let syn = Segment { ack: SeqNum(0), flags: Flags::SYN | Flags::ACK, ..Segment::default() };
    assert_eq!(marker.segment(syn, false, Port::WIRED).segment(), Some(&syn));
    marker.acks(0, false);
    // An acknowledgement in another window.
    marker.corrupts(0);
    let far = Segment { ack: SeqNum(1 << 31), flags: Flags::ACK, ..Segment::default() };
    assert_eq!(marker.segment(far, false, Port::WIRED).segment(), Some(&far));
    marker.acks(0, false);
}

/// A base station that learns of losses from gaps in the data from the mobile host.
fn by_holes() -> Marker {
    let schemes = schemes_of("[eln]\nholes = true");
    let end = LinkEnd::BaseStation;
    Marker { agent: installed(&schemes, "eln").agent(0, &Site { end, ..site() }), now: Time::ZERO }
}

impl Marker {
    /// `len` bytes from `seq` on arrive over the link.
    fn arrives(&mut self, seq: u32, len: u32) -> &mut Marker {
        let segment = Segment { seq: SeqNum(seq), len, flags: Flags::ACK, ..Segment::default() };
        assert_eq!(self.segment(segment, true, Port::RADIO).segment(), Some(&segment));
        self
    }

    /// Segment number `number` arrives over the link.
    fn gets(&mut self, number: u32) -> &mut Marker {
        self.arrives(number * MSS, MSS)
    }
}

/// Requests of a byte in a gap are marked until a copy has passed, wherever that is lost later.
// Rule: By holes: ACKs that request what is missing in the data from the mobile host are marked, from its SYN
// on. [../scheme/eln.rs]
#[test]
fn requests_of_holes_are_marked() {
    let mut marker = by_holes();
    marker.gets(0).gets(1).acks(1, false).gets(4).acks(2, true).acks(2, true);
    // A second gap, and copies that fill the first from its end.
    marker.gets(6).gets(3).acks(2, true).gets(2).acks(2, false).acks(3, false).acks(5, true);
    marker.acks(6, false).acks(5, false);
    // What is lost beyond the base station left no gap.
    marker.gets(7).gets(8).acks(7, false).acks(7, false);
}

/// A copy that fills the middle of a gap, or several gaps, leaves the rest.
// Rule: as requests_of_holes_are_marked
#[test]
fn a_hole_is_filled_in_parts() {
    let mut marker = by_holes();
    marker.gets(0).gets(9).gets(4).acks(1, true).gets(1).acks(2, true);
    marker.gets(2).gets(3).acks(2, false).acks(4, false).acks(5, true);
    marker.gets(11).arrives(6 * MSS, 5 * MSS).acks(5, true).gets(5).acks(5, false).acks(10, false);
    // Half of a segment.
    let mut marker = by_holes();
    marker.gets(0).gets(2).arrives(MSS, MSS / 2).acks(1, false);
    let rest = Segment { ack: SeqNum(MSS + MSS / 2), flags: Flags::ACK, ..Segment::default() };
    let sent = marker.segment(rest, false, Port::WIRED);
    assert_eq!(sent.segment().map(|segment| segment.flags), Some(Flags::ACK | ELN));
}

/// Segments in any order, against a list of those that have arrived.
// Rule: as requests_of_holes_are_marked
#[test]
fn holes_are_what_has_not_arrived() {
    let mut random = Streams::new(1, 0).stream("holes");
    for _ in 0..200 {
        let mut marker = by_holes();
        let (mut arrived, mut acked) = (vec![false; 64], 0);
        let mut marked = 0;
        for _ in 0..200 {
            let highest = arrived.iter().rposition(|has| *has);
            if highest.is_none() || random.bernoulli(0.6) {
                // Copies of what is missing, duplicates, and segments up to five above.
                let number = match highest {
                    None => 0,
                    Some(highest) => random.below((highest as u64 + 6).min(64)) as usize,
                };
                arrived[number] = true;
                marker.gets(number as u32);
            } else if let Some(highest) = highest {
                acked += random.below(2) as usize * random.below(4) as usize;
                acked = acked.min(highest + 1);
                let is_hole = acked < highest && !arrived[acked];
                marked += usize::from(is_hole);
                marker.acks(acked as u32, is_hole);
            }
        }
        assert!(marked > 0);
    }
}

/// A SYN begins a connection, whose first data segment may be lost; the answer to it ends none. A reset does.
// Rule: as requests_of_holes_are_marked
#[test]
fn holes_are_counted_from_the_syn() {
    let mut marker = by_holes();
    let syn = Segment { seq: SeqNum(MSS - 1), flags: Flags::SYN, ..Segment::default() };
    let answer = Segment { ack: SeqNum(MSS), flags: Flags::SYN | Flags::ACK, ..Segment::default() };
    let reset = Segment { ack: SeqNum(MSS), flags: Flags::RST | Flags::ACK, ..Segment::default() };
    marker.gets(20).gets(30);
    marker.segment(syn, true, Port::RADIO);
    marker.segment(answer, false, Port::WIRED);
    marker.gets(2).acks(1, true);
    marker.segment(reset, false, Port::WIRED);
    marker.acks(1, false).gets(5).acks(3, false);
    // Across the wrap of sequence numbers.
    let mut marker = by_holes();
    marker.arrives(u32::MAX - 9, 10).arrives(MSS, MSS).acks(0, true).acks(1, false);
}

/// Segments with errors are no signals for a base station that goes by holes.
// Rule: as requests_of_holes_are_marked
#[test]
fn only_base_stations_go_by_holes() {
    let schemes = schemes_of("[eln]\nholes = true");
    let eln = installed(&schemes, "eln");
    let needs = [LinkEnd::BaseStation, LinkEnd::MobileHost]
        .map(|end| eln.agent(0, &Site { end, ..site() }).needs_corrupted());
    assert_eq!(needs, [false, true]);
}

/// What a host sends over another base station is not missing here.
// Rule: as requests_of_holes_are_marked
#[test]
fn holes_are_forgotten_at_a_hand_off() {
    let schemes = schemes_of("[eln]\nholes = true");
    let eln = installed(&schemes, "eln");
    let place = Site { end: LinkEnd::BaseStation, station: Some(0), ..site() };
    let mut marker = Marker { agent: eln.agent(0, &place), now: Time::ZERO };
    let mut out = Out::default();
    let mut moves = |marker: &mut Marker, station| {
        marker.agent.on_signal(Time::ZERO, &Signal::Attached { host: HostId(0), station }, &mut out);
    };
    moves(&mut marker, 0);
    marker.gets(0).gets(2).acks(1, true);
    moves(&mut marker, 1);
    moves(&mut marker, 0);
    marker.gets(9).acks(1, false).acks(3, false);
}

/// Memory is bounded for one connection and for a long time.
// Rule: The state is bounded and soft. [../scheme/eln.rs]
#[test]
fn idle_connections_are_forgotten() {
    let mut marker = Marker::at(LinkEnd::MobileHost);
    marker.corrupts(0);
    marker.now = Time::ZERO + Duration::from_secs(121);
    marker.acks(0, false);
    for number in 0..2000 {
        marker.corrupts(number);
    }
    marker.acks(1023, true).acks(1024, false);
}

/// Eight segments in flight.
fn source(flavour: Flavour, early: bool) -> Client {
    let schemes = schemes(early);
    let mut tcp = Client::installed(&settings(flavour, 8), None, installed(&schemes, "eln").reactions());
    tcp.sends_full(0..8);
    tcp
}

/// A marked acknowledgement.
fn marked<'a>(tcp: &'a mut Client, offset: u32, blocks: &[std::ops::Range<u32>]) -> &'a mut Client {
    let segment = tcp.report(offset, blocks);
    tcp.receives(Segment { flags: segment.flags | ELN, ..segment })
}

/// Without inflation, further duplicates release nothing while the corrupted segment is missing.
// Rule: With `inflate = false`, the window stands still during the repair. [figure 8; ../scheme/eln.rs]
#[test]
fn the_window_may_stand_still() {
    for (inflate, released) in [(true, 2), (false, 0)] {
        let schemes = schemes_of(&format!("[eln]\ninflate = {inflate}"));
        let reactions = installed(&schemes, "eln").reactions();
        let mut tcp = Client::installed(&settings(Flavour::Reno, 8), None, reactions);
        tcp.sends_full(0..8).at(100);
        for _ in 0..3 {
            marked(&mut tcp, 0, &[]);
        }
        tcp.sends_first("0..1000").sent();
        let sent: usize = (0..2).map(|_| marked(&mut tcp, 0, &[]).sent().len()).sum();
        assert_eq!(sent, released, "inflate = {inflate}");
        tcp.cwnd(8000.0);
    }
}

/// Section 3.1: the third marked duplicate causes the retransmission, and the window stays as it is.
// Rule: A marked loss leaves the window; others, and timeouts, are congestion. [3.1; ../scheme/eln.rs]
#[test]
fn a_marked_loss_keeps_the_window() {
    for flavour in [Flavour::Reno, Flavour::NewReno, Flavour::Sack, Flavour::Prr] {
        let mut tcp = source(flavour, false);
        tcp.at(100);
        marked(&mut tcp, 0, &[1000..2000]).losses(0).sent();
        marked(&mut tcp, 0, &[1000..3000]).losses(0).sent();
        marked(&mut tcp, 0, &[1000..4000]).sends_first("0..1000");
        marked(&mut tcp, 0, &[1000..8000]).sent();
        tcp.at(200).ack(8000).timeouts(0).losses(1).ssthresh(f64::INFINITY);
        assert!(tcp.sender.cwnd() >= 8000.0, "{flavour:?}");
    }
}

/// E2E-ELN-RXMT: the first one does.
// Rule: The first marked duplicate may cause the retransmission. [3.1; ../scheme/eln.rs]
#[test]
fn early_retransmission_needs_one_marked_duplicate() {
    let mut tcp = source(Flavour::Reno, true);
    tcp.at(100).ack(1000).sends_full(8..10);
    tcp.acks(1, 1000).sends_nothing();
    marked(&mut tcp, 1000, &[]).sends_first("1000..2000").cwnd(9000.0).losses(1);
    marked(&mut tcp, 1000, &[]).losses(1);
}

/// A loss without the mark, and a timeout with it, are congestion.
// Rule: as a_marked_loss_keeps_the_window
#[test]
fn other_losses_halve_the_window() {
    let mut tcp = source(Flavour::Reno, true);
    tcp.at(100).acks(3, 0).sends_first("0..1000").ssthresh(4000.0);
    let mut tcp = source(Flavour::Reno, false);
    marked(tcp.at(100), 0, &[]).sends_nothing();
    tcp.times_out();
    tcp.sends(&["0..1000"]).ssthresh(4000.0).cwnd(1000.0);
}

/// The echo of a congestion mark is answered even if the requested segment is corrupted.
// Rule: as a_marked_loss_keeps_the_window
#[test]
fn congestion_marks_are_answered() {
    let schemes = schemes(false);
    let settings = Settings { ecn: EcnMode::Classic, ..settings(Flavour::Reno, 8) };
    let mut tcp = Client::installed(&settings, None, installed(&schemes, "eln").reactions());
    tcp.sends_full(0..8).at(100);
    let segment = tcp.report(1000, &[]);
    tcp.receives(Segment { flags: segment.flags | ELN | Flags::ECE, ..segment }).cwnd(4000.0);
}
