//! WTCP of Ratnam and Matta: the base station by hand.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{
    EcnCounters, FieldOrder, Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps,
};
use lasthop_proto::{
    Body, Component, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, Signal,
};
use lasthop_testing::schemes::{agent, agent_of_station, schemes_of};

const LEN: u32 = 1_000;

/// The output of the base station: segments to the mobile host by number and timestamp in ms,
/// acknowledgements to the source by number, and drops with the reason.
#[derive(Debug, PartialEq, Eq)]
enum Act {
    Sends(u32, u32),
    Tells(u32),
    Drops(DropReason),
}
use Act::{Drops, Sends, Tells};

struct Station {
    agent: Box<dyn Component>,
    now: Time,
}

impl Station {
    fn with(parameters: &str) -> Station {
        let schemes = schemes_of(&format!("[wtcp-timestamps]\n{parameters}"));
        Station { agent: agent(&schemes, "wtcp-timestamps"), now: Time::ZERO }
    }

    /// Advances the clock; returns the output of expired timers.
    fn at(&mut self, ms: u64) -> &mut Station {
        self.now = Time::ZERO + Duration::from_millis(ms);
        assert!(self.agent.next_wakeup() > self.now, "a timer at {}", self.agent.next_wakeup());
        self
    }

    fn wakes_at(&mut self, ms: u64) -> Vec<Act> {
        self.now = Time::ZERO + Duration::from_millis(ms);
        assert_eq!(self.agent.next_wakeup(), self.now);
        let mut out = Out::default();
        self.agent.wake(self.now, &mut out);
        acts(&mut out)
    }

    fn receive(&mut self, port: Port, packet: Packet) -> Vec<Act> {
        let mut out = Out::default();
        self.agent.receive(self.now, &packet, port, &mut out);
        acts(&mut out)
    }

    /// Segment `number` of the source, stamped with this time in ms.
    fn data(&mut self, number: u32, stamp: u32) -> Vec<Act> {
        self.receive(Port::WIRED, data(number, stamp))
    }

    /// An acknowledgement of the mobile host that expects segment `number`.
    fn ack(&mut self, number: u32) -> Vec<Act> {
        self.ack_with(number, 100 * LEN, SackBlocks::default())
    }

    fn ack_with(&mut self, number: u32, wnd: u32, sack: SackBlocks) -> Vec<Act> {
        self.receive(Port::RADIO, acknowledgement(number, wnd, sack))
    }
}

fn acknowledgement(number: u32, wnd: u32, sack: SackBlocks) -> Packet {
    let ack = SeqNum(number * LEN);
    let segment = Segment { ack, wnd, flags: Flags::ACK, sack, ..Segment::default() };
    let (src, dst) = (HostId(1), HostId(0));
    Packet { src, dst, body: Body::Tcp(segment), ..data(0, 0) }
}

fn data(number: u32, stamp: u32) -> Packet {
    let timestamps = Some(Timestamps { value: stamp * 1_000, echo: 0 });
    let (seq, flags) = (SeqNum(number * LEN), Flags::ACK);
    let segment = Segment { seq, len: LEN, flags, timestamps, ..Segment::default() };
    let (src, dst, flow, size) = (HostId(0), HostId(1), FlowId(0), Bytes(1_052));
    let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE);
    Packet { src, dst, flow, size, dscp, ecn, handle, body: Body::Tcp(segment) }
}

fn acts(out: &mut Out) -> Vec<Act> {
    let effects = std::iter::from_fn(|| out.take()).map(|(_, effect)| effect);
    effects
        .map(|effect| match effect {
            Effect::Send(Port::RADIO, packet) => {
                let segment = packet.segment().expect("TCP");
                Sends(segment.seq.0 / LEN, segment.timestamps.expect("it has timestamps").value / 1_000)
            }
            Effect::Send(_, packet) => {
                let segment = packet.segment().expect("TCP");
                assert!(segment.sack.is_empty(), "a gap that is repaired here");
                Tells(segment.ack.0 / LEN)
            }
            Effect::Drop(_, reason) => Drops(reason),
            other => panic!("{other:?}"),
        })
        .collect()
}

/// The time in the buffer is not part of the round-trip time: it is added to the timestamp.
#[test]
fn the_time_in_the_buffer_is_hidden() {
    let mut station = Station::with("");
    assert_eq!(station.at(20).data(0, 10), [Sends(0, 10)]);
    assert_eq!(station.at(21).data(1, 11), [Sends(1, 11)]);
    assert_eq!(station.at(22).data(2, 12), [Sends(2, 12)]);
    // Segment 0 is lost; it was in the buffer for 50 ms when it is retransmitted.
    assert_eq!(station.at(70).ack(0), [Sends(0, 60), Drops(DropReason::Suppressed)]);
    assert_eq!(station.at(71).ack(0), [Drops(DropReason::Suppressed)]);
    assert_eq!(station.at(120).ack(3), [Tells(3)]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

/// Several losses are repaired one by one, each after the acknowledgement that reveals it. SACK blocks are
/// removed.
#[test]
fn each_loss_of_a_window_is_repaired() {
    let mut station = Station::with("");
    for number in 0..5 {
        station.at(u64::from(number)).data(number, number);
    }
    let mut sack = SackBlocks::default();
    sack.push(SackBlock { start: SeqNum(4 * LEN), end: SeqNum(5 * LEN) });
    let suppressed = Drops(DropReason::Suppressed);
    assert_eq!(station.at(50).ack_with(0, 100 * LEN, sack), [Sends(0, 50), suppressed]);
    assert_eq!(station.at(90).ack_with(2, 100 * LEN, sack), [Sends(2, 90), Tells(2)]);
    assert_eq!(station.at(130).ack_with(3, 100 * LEN, sack), [Sends(3, 130), Tells(3)]);
    assert_eq!(station.at(170).ack(5), [Tells(5)]);
}

/// Marks are none of its business: their counters pass without the blocks.
#[test]
fn counters_of_marks_pass() {
    let mut station = Station::with("");
    for number in 0..5 {
        station.at(u64::from(number)).data(number, number);
    }
    let mut sack = SackBlocks::default();
    sack.push(SackBlock { start: SeqNum(4 * LEN), end: SeqNum(5 * LEN) });
    let counters = Some(EcnCounters::new(FieldOrder::Ect0First, &[1, LEN]));
    sack.set_ecn_counters(counters);
    let mut out = Out::default();
    station.at(50);
    station.agent.receive(station.now, &acknowledgement(2, 100 * LEN, sack), Port::RADIO, &mut out);
    let effects = std::iter::from_fn(|| out.take()).map(|(_, effect)| effect);
    let told = effects.filter_map(|effect| match effect {
        Effect::Send(Port::WIRED, packet) => packet.segment().map(|segment| segment.sack),
        _ => None,
    });
    let told: Vec<_> = told.map(|sack| (sack.len(), sack.ecn_counters())).collect();
    assert_eq!(told, [(0, counters)]);
}

/// A timeout closes the window to one segment, and the next acknowledgement opens it.
#[test]
fn after_a_timeout_one_segment_tests_the_last_hop() {
    let mut station = Station::with("");
    // A round-trip time of 60 ms.
    assert_eq!(station.at(0).data(0, 0), [Sends(0, 0)]);
    assert_eq!(station.at(60).ack(1), [Tells(1)]);
    for number in 1..4 {
        assert_eq!(station.at(100).data(number, 90), [Sends(number, 90)]);
    }
    assert_eq!(station.wakes_at(220), [Sends(1, 210)]);
    assert_eq!(station.at(230).data(4, 220), []);
    assert_eq!(station.wakes_at(460), [Sends(1, 450)], "twice as long");
    let all = [Sends(2, 510), Sends(3, 510), Sends(4, 510), Tells(2)];
    assert_eq!(station.at(520).ack(2), all);
}

#[test]
fn the_window_of_the_mobile_host_is_respected() {
    let mut station = Station::with("");
    station.at(0).data(0, 0);
    assert_eq!(station.at(10).ack_with(1, 2 * LEN, SackBlocks::default()), [Tells(1)]);
    for (number, sent) in [(1, true), (2, true), (3, false)] {
        assert_eq!(station.at(20).data(number, 10).is_empty(), !sent, "segment {number}");
    }
    assert_eq!(station.at(50).ack_with(2, 2 * LEN, SackBlocks::default()), [Sends(3, 40), Tells(2)]);
    // With a closed window, one segment is sent as a probe.
    assert_eq!(station.at(60).ack_with(4, 0, SackBlocks::default()), [Tells(4)]);
    assert_eq!(station.at(70).data(4, 60), [Sends(4, 60)]);
    assert_eq!(station.at(71).data(5, 61), []);
}

/// The source repairs losses upstream of the base station; its other retransmissions are acknowledged again.
#[test]
fn losses_on_the_wired_network_are_the_sources() {
    let mut station = Station::with("");
    station.at(0).data(0, 0);
    station.at(10).ack(1);
    for number in 2..5 {
        station.at(20).data(number, 20);
    }
    for _ in 0..3 {
        assert_eq!(station.at(50).ack(1), [Tells(1)]);
    }
    assert_eq!(station.at(60).data(1, 50), [Sends(1, 50)]);
    // Already in the buffer.
    assert_eq!(station.at(61).data(1, 60), [Drops(DropReason::Suppressed)]);
    assert_eq!(station.at(90).ack(5), [Tells(5)]);
    // The acknowledgement was lost.
    assert_eq!(station.at(95).data(4, 85), [Sends(4, 85)]);
    assert_eq!(station.at(99).ack(5), [Tells(5)]);
}

/// Timestamps never decrease, since the mobile host would discard the segment as outdated. Here the first
/// segment had an empty queue on its way, and the second a long one.
#[test]
fn timestamps_do_not_decrease() {
    let mut station = Station::with("");
    station.at(20).data(0, 10);
    station.at(21).data(1, 0);
    assert_eq!(station.at(70).ack(0), [Sends(0, 60), Drops(DropReason::Suppressed)]);
    assert_eq!(station.at(75).data(2, 5), [Sends(2, 60)]);
    // Nor does that of an acknowledgement of the mobile host's data, which would be taken for an old one.
    let bare = |stamp: u32| {
        let mut packet = data(3, stamp);
        let Body::Tcp(segment) = &mut packet.body else { unreachable!("a segment") };
        segment.len = 0;
        packet
    };
    assert_eq!(station.at(80).receive(Port::WIRED, bare(40)), [Sends(3, 60)]);
    assert_eq!(station.at(90).receive(Port::WIRED, bare(90)), [Sends(3, 90)]);
}

/// An acknowledgement of data that have not passed: the state is not that of this connection.
#[test]
fn a_contradicted_connection_is_forgotten() {
    let mut station = Station::with("");
    station.at(0).data(0, 0);
    assert_eq!(station.at(10).ack(3), [Tells(3)]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
    assert_eq!(station.at(20).data(7, 20), [Sends(7, 20)]);
}

/// Data that the source has put into larger segments: what is acknowledged leaves the buffer, whatever order
/// it came in.
#[test]
fn segments_within_a_new_one_leave_the_buffer() {
    let mut station = Station::with("");
    station.at(0).data(1, 0);
    let mut large = data(0, 5);
    let Body::Tcp(segment) = &mut large.body else { unreachable!("a segment") };
    segment.len = 3 * LEN;
    assert_eq!(station.at(5).receive(Port::WIRED, large), [Sends(0, 5)]);
    assert_eq!(station.at(10).ack(3), [Tells(3)]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

#[test]
fn a_full_buffer_drops_what_comes() {
    let mut station = Station::with("buffer = 2");
    station.at(0).data(0, 0);
    station.at(0).data(1, 0);
    assert_eq!(station.at(0).data(2, 0), [Drops(DropReason::QueueFull)]);
}

/// If the mobile host does not respond, the base station stops repairing and sends its unsent segments.
#[test]
fn a_silent_mobile_host_is_left_to_the_source() {
    let mut station = Station::with("attempts = 2");
    station.at(0).data(0, 0);
    assert_eq!(station.wakes_at(500), [Sends(0, 500)]);
    assert_eq!(station.at(600).data(1, 600), []);
    assert_eq!(station.wakes_at(1_500), [Sends(0, 1_500)]);
    assert_eq!(station.wakes_at(3_500), [Sends(1, 3_500)]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
    // The source starts again.
    assert_eq!(station.at(5_000).data(0, 5_000), [Sends(0, 5_000)]);
}

/// When the host leaves, unsent segments are forwarded and the state is removed. Other base stations forward
/// packets unchanged.
#[test]
fn a_host_that_leaves_is_forgotten() {
    let schemes = Schemes::default();
    let mut station = Station { agent: agent_of_station(&schemes, "wtcp-timestamps", 1), now: Time::ZERO };
    let move_to = |station: &mut Station, number| {
        let mut out = Out::default();
        let signal = Signal::Attached { host: HostId(1), station: number };
        station.agent.on_signal(station.now, &signal, &mut out);
        acts(&mut out)
    };
    assert_eq!(move_to(&mut station, 1), []);
    station.at(0).data(0, 0);
    station.at(10).ack_with(1, LEN, SackBlocks::default());
    station.at(20).data(1, 20);
    assert_eq!(station.at(30).data(2, 30), []);
    station.at(40);
    assert_eq!(move_to(&mut station, 0), [Sends(2, 40)]);
    assert_eq!(station.at(50).data(3, 45), [Sends(3, 45)]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}
