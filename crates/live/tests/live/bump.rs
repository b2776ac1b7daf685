//! A bump by hand: frames of one connection, and what leaves.

use std::net::SocketAddr;

use lasthop_base::{BitRate, Duration, Streams, Time};
use lasthop_live::bump::{Admission, Admitted, Bump, Direction, FirstPacket, RadioFlow};
use lasthop_proto::scheme::{LinkEnd, Schemes, Site};
use lasthop_proto::tcp::{Flags, Segment, SeqNum, Timestamps};
use lasthop_proto::{Component, Dscp, Ecn};
use lasthop_wire::{Checksum, Ip, IpPacket, TcpHeader, write};

pub(crate) const ETHERNET: usize = 14;

/// Hardware addresses: of the radio's interface, and of the host behind it.
pub(crate) const RADIO: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const HOST: [u8; 6] = [2, 0, 0, 0, 0, 2];

const ACK: Flags = Flags::ACK;
const SYN: Flags = Flags::SYN;
const SYN_ACK: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);
const FIN: Flags = Flags(Flags::FIN.0 | Flags::ACK.0);
const RST: Flags = Flags::RST;

fn flow() -> RadioFlow {
    let end = |host: u8, port: u16| SocketAddr::from(([10, 0, 0, host], port));
    RadioFlow { mobile: end(2, 4000), fixed: end(1, 80) }
}

/// The agent of a scheme.
pub(crate) fn agent_of(schemes: &Schemes, scheme: &str) -> Box<dyn Component> {
    let combination = schemes.combination(scheme).expect("a scheme");
    let rate = BitRate::from_bps(1_000_000_000).expect("a rate");
    let site = Site {
        end: LinkEnd::BaseStation,
        is_router: false,
        node: "gateway",
        station: None,
        link: "radio0",
        rate,
        delay: Duration::ZERO,
        arriving_rate: rate,
        hosts: None,
        peers: &[],
        streams: Streams::new(0, 0),
    };
    combination.agent(0, &site)
}

/// Who admits flows that are opened by the number 100 at the mobile host.
#[derive(Debug, Default)]
struct Admitting {
    schemes: Schemes,
    scheme: &'static str,
    settled: Vec<u32>,
    dismissed: Vec<RadioFlow>,
}

impl Admission for Admitting {
    fn admit(&mut self, packet: &FirstPacket) -> Option<Admitted> {
        if packet.opened_by != SeqNum(100) {
            return None;
        }
        let [source, destination] = packet.ends;
        let (mobile, fixed) = if packet.is_opening { (source, destination) } else { (destination, source) };
        let agents = vec![agent_of(&self.schemes, self.scheme)];
        let flow = RadioFlow { mobile, fixed };
        Some(Admitted { flow, scheme: self.scheme, agents, mobile_opens: true, scale: Some(7) })
    }

    fn settle(&mut self, opened_by: SeqNum) {
        self.settled.push(opened_by.0);
    }

    fn dismiss(&mut self, flows: &[RadioFlow]) {
        self.dismissed.extend(flows);
    }
}

/// A bump, its clock, and what has left since it was last looked at.
struct Bench {
    bump: Bump,
    admitting: Admitting,
    now: Time,
    left: Vec<(Direction, Vec<u8>)>,
}

impl Bench {
    fn new(scheme: &'static str) -> Bench {
        let admitting = Admitting { scheme, ..Admitting::default() };
        Bench { bump: Bump::new(RADIO), admitting, now: Time::ZERO, left: Vec::new() }
    }

    fn after(&mut self, ms: u64) -> &mut Bench {
        self.now += Duration::from_millis(ms);
        let left = &mut self.left;
        self.bump.wake(self.now, &mut |direction, frame| left.push((direction, frame.to_vec())));
        self
    }

    /// Lets a segment enter; returns the segments that leave at once, each with its direction.
    fn enter(
        &mut self,
        direction: Direction,
        flags: Flags,
        seq: u32,
        ack: u32,
        len: usize,
    ) -> Vec<(Direction, Segment)> {
        let bytes = frame(direction, flags, seq, ack, len);
        self.enter_frame(&bytes)
    }

    fn enter_frame(&mut self, bytes: &[u8]) -> Vec<(Direction, Segment)> {
        let left = &mut self.left;
        self.bump.receive(self.now, bytes, &mut self.admitting, &mut |direction, frame| {
            left.push((direction, frame.to_vec()));
        });
        self.take()
    }

    /// What has left: every packet is well-formed, and has the addresses of its flow.
    fn take(&mut self) -> Vec<(Direction, Segment)> {
        let each = self.left.drain(..).map(|(direction, bytes)| {
            let packet = IpPacket::parse(&bytes[ETHERNET..]).expect("a packet");
            assert_eq!(packet.transport_checksum(), Checksum::Correct);
            let tcp = packet.tcp().expect("a segment");
            let to_radio = tcp.header.src_port == flow().fixed.port();
            assert_eq!(to_radio, direction == Direction::ToRadio);
            (direction, tcp.header.segment)
        });
        each.collect()
    }

    /// Opens the flow from the mobile host; its first packet does not pass here.
    fn open(&mut self) {
        assert_eq!(self.enter(Direction::ToRadio, SYN_ACK, 500, 101, 0).len(), 1);
        assert_eq!(self.enter(Direction::FromRadio, ACK, 101, 501, 0).len(), 1);
    }
}

fn frame(direction: Direction, flags: Flags, seq: u32, ack: u32, len: usize) -> Vec<u8> {
    let RadioFlow { mobile, fixed } = flow();
    let (src, dst) = if direction == Direction::ToRadio { (fixed, mobile) } else { (mobile, fixed) };
    let ip = Ip {
        src: src.ip(),
        dst: dst.ip(),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        hop_limit: 64,
        identification: 0,
        dont_fragment: true,
    };
    let segment = Segment {
        seq: SeqNum(seq),
        ack: SeqNum(ack),
        wnd: 500,
        flags,
        timestamps: Some(Timestamps { value: seq, echo: ack }),
        ..Segment::default()
    };
    let window_scale = flags.has(SYN).then_some(7);
    let (src_port, dst_port) = (src.port(), dst.port());
    let header = TcpHeader { src_port, dst_port, segment, window_scale, ..TcpHeader::default() };
    let ends = if direction == Direction::ToRadio { [HOST, RADIO] } else { [RADIO, HOST] };
    let mut bytes = [&ends.concat()[..], &[8, 0]].concat();
    bytes.extend(write::tcp(&ip, &header, &vec![7; len]).expect("short enough"));
    bytes
}

#[test]
fn a_lost_segment_is_repaired_and_its_duplicates_stay() {
    let mut bench = Bench::new("snoop");
    bench.open();
    assert_eq!(bench.admitting.settled, [100], "both ends have met");
    for number in 0..5 {
        let left = bench.enter(Direction::ToRadio, ACK, 501 + 1000 * number, 101, 1000);
        assert_eq!(left.len(), 1);
    }
    // The mobile host sends data, which the other acknowledges; then the segment at 1501 turns out to be lost.
    bench.after(5).enter(Direction::FromRadio, ACK, 101, 1501, 400);
    assert_eq!(bench.enter(Direction::ToRadio, ACK, 5501, 501, 0).len(), 1);
    let left = bench.after(5).enter(Direction::FromRadio, ACK, 501, 1501, 0);
    let [(Direction::ToRadio, copy)] = left[..] else { panic!("{left:?}") };
    assert_eq!((copy.seq, copy.len), (SeqNum(1501), 1000));
    assert_eq!(copy.ack, SeqNum(501), "the latest one, since hosts discard data with old ones");
    assert_eq!(bench.enter(Direction::FromRadio, ACK, 501, 1501, 0).len(), 0);
    assert_eq!(bench.enter(Direction::FromRadio, ACK, 501, 5501, 0).len(), 1);
    let counters = bench.bump.counters();
    assert_eq!((counters.flows, counters.suppressed, counters.strays), (1, 2, 0));
    assert_eq!(counters.schemes["snoop.local_retransmissions"], 1);
    assert!(bench.admitting.dismissed.is_empty());
}

#[test]
fn a_flow_ends_and_its_ports_are_used_again() {
    let mut bench = Bench::new("snoop");
    for round in 1..=3 {
        bench.open();
        bench.enter(Direction::ToRadio, ACK, 501, 101, 1000);
        bench.enter(Direction::FromRadio, FIN, 101, 1501, 0);
        bench.enter(Direction::ToRadio, FIN, 1501, 102, 0);
        assert_eq!(bench.enter(Direction::FromRadio, ACK, 102, 1502, 0).len(), 1);
        let maintain = |bench: &mut Bench| bench.bump.maintain(bench.now, &mut bench.admitting);
        maintain(&mut bench);
        assert_eq!(bench.bump.flows().count(), 1, "packets may be under way");
        bench.after(3000);
        maintain(&mut bench);
        assert_eq!((bench.bump.flows().count(), bench.admitting.dismissed.len()), (0, round));
        // What is under way still passes.
        assert_eq!(bench.enter(Direction::FromRadio, ACK, 102, 1502, 0).len(), 1);
        if round == 2 {
            maintain(&mut bench);
            assert_eq!(bench.enter(Direction::FromRadio, ACK, 102, 1502, 0).len(), 1, "a stray");
        }
    }
    assert_eq!(bench.bump.counters().strays, 1);
}

#[test]
fn what_agents_must_not_see_passes_as_it_is() {
    let mut bench = Bench::new("wtcp-timestamps");
    // One direction alone, since routes are asymmetric.
    bench.enter(Direction::ToRadio, SYN_ACK, 500, 101, 0);
    for number in 0..3 {
        assert_eq!(bench.enter(Direction::ToRadio, ACK, 501 + 1000 * number, 101, 1000).len(), 1);
    }
    assert_eq!((bench.bump.next_wakeup(), bench.bump.counters().packets), (Time::NEVER, 0));
    bench.enter(Direction::FromRadio, ACK, 101, 3501, 0);
    // A damaged one.
    let mut damaged = frame(Direction::ToRadio, ACK, 3501, 101, 1000);
    *damaged.last_mut().expect("bytes") ^= 1;
    let before = bench.bump.counters().packets;
    let left = &mut bench.left;
    bench.bump.receive(bench.now, &damaged, &mut bench.admitting, &mut |direction, frame| {
        left.push((direction, frame.to_vec()));
    });
    assert!(bench.left.drain(..).eq([(Direction::ToRadio, damaged.clone())]));
    assert_eq!(bench.bump.counters().packets, before);
    // Other protocols and cut frames are nobody's, and no flow is added that is not admitted.
    for other in [&damaged[..20], &damaged[..60], &[0; 80][..], &[][..]] {
        assert!(bench.enter_frame(other).is_empty());
    }
}

#[test]
fn flows_that_are_not_known_go_on_as_they_are() {
    let mut bench = Bench::new("snoop");
    for direction in [Direction::ToRadio, Direction::FromRadio] {
        for (flags, ack) in [(SYN_ACK, 999), (ACK, 999), (RST, 0)] {
            let bytes = frame(direction, flags, 500, ack, 0);
            bench.bump.receive(bench.now, &bytes, &mut bench.admitting, &mut |direction, frame| {
                bench.left.push((direction, frame.to_vec()));
            });
            assert!(bench.left.drain(..).eq([(direction, bytes)]), "{direction:?} {flags:?}");
        }
    }
    // What the kernel sends by itself between the two ends has other addresses.
    let mut other = frame(Direction::ToRadio, ACK, 500, 999, 0);
    other[6..12].copy_from_slice(&HOST);
    assert!(bench.enter_frame(&other).is_empty());
    bench.bump.set_radio(HOST);
    assert_eq!(bench.enter_frame(&other)[0].0, Direction::ToRadio);
    assert_eq!((bench.bump.flows().count(), bench.bump.counters().strays), (0, 8));
}

/// A damaged segment passes, and neither opens, scales, ends nor meets a flow.
#[test]
fn damaged_segments_tell_nothing() {
    let mut bench = Bench::new("snoop");
    let damaged = |bench: &mut Bench, direction, flags, seq, ack| {
        let mut bytes = frame(direction, flags, seq, ack, 10);
        *bytes.last_mut().expect("bytes") ^= 1;
        bench.bump.receive(bench.now, &bytes, &mut bench.admitting, &mut |direction, frame| {
            bench.left.push((direction, frame.to_vec()));
        });
        assert!(bench.left.drain(..).eq([(direction, bytes)]));
    };
    damaged(&mut bench, Direction::ToRadio, SYN_ACK, 500, 101);
    assert_eq!(bench.bump.flows().count(), 0);
    bench.open();
    damaged(&mut bench, Direction::ToRadio, RST, 501, 101);
    damaged(&mut bench, Direction::FromRadio, FIN, 101, 501);
    damaged(&mut bench, Direction::ToRadio, FIN, 501, 101);
    bench.after(3000);
    bench.bump.maintain(bench.now, &mut bench.admitting);
    assert_eq!(bench.bump.flows().count(), 1, "it goes on");
}

/// The segments that leave when the host behind the radio asks for the one at `seq` again.
fn copy_of(bench: &mut Bench, seq: u32, ack: u32) -> Segment {
    let left = bench.after(5).enter(Direction::FromRadio, ACK, ack, seq, 0);
    let [(Direction::ToRadio, copy)] = left[..] else { panic!("{left:?}") };
    assert_eq!(copy.seq, SeqNum(seq));
    copy
}

#[test]
fn a_connection_with_ports_used_again_has_its_own_acknowledgements() {
    let mut bench = Bench::new("snoop");
    bench.open();
    bench.enter(Direction::ToRadio, ACK, 501, 101, 1000);
    bench.enter(Direction::FromRadio, FIN, 101, 1501, 0);
    bench.enter(Direction::ToRadio, FIN, 1501, 102, 0);
    bench.enter(Direction::FromRadio, ACK, 102, 1502, 0);
    // At once, and with numbers that are before those of the first.
    let [mobile, fixed] = [100u32.wrapping_sub(1 << 20), 500u32.wrapping_sub(1 << 20)];
    bench.enter(Direction::FromRadio, SYN, mobile, 0, 0);
    bench.enter(Direction::ToRadio, SYN_ACK, fixed, mobile + 1, 0);
    bench.enter(Direction::FromRadio, ACK, mobile + 1, fixed + 1, 0);
    for number in 0..3 {
        let seq = fixed + 1 + 1000 * number;
        let left = bench.enter(Direction::ToRadio, ACK, seq, mobile + 1, 1000);
        assert_eq!((left[0].1.seq, left[0].1.ack), (SeqNum(seq), SeqNum(mobile + 1)));
    }
    bench.after(5).enter(Direction::FromRadio, ACK, mobile + 1, fixed + 1001, 0);
    assert_eq!(copy_of(&mut bench, fixed + 1001, mobile + 1).ack, SeqNum(mobile + 1));
}

#[test]
fn acknowledgements_of_what_nobody_has_sent_are_not_taken_over() {
    let mut bench = Bench::new("snoop");
    bench.open();
    // From someone who does not know the numbers of the connection.
    assert_eq!(bench.enter(Direction::ToRadio, ACK, 501, 1_000_000, 0).len(), 1);
    for number in 0..3 {
        let left = bench.enter(Direction::ToRadio, ACK, 501 + 1000 * number, 101, 1000);
        assert_eq!(left[0].1.ack, SeqNum(101));
    }
    // Data that come late keep their own, which may be behind others.
    bench.after(5).enter(Direction::FromRadio, ACK, 101, 1501, 400);
    bench.enter(Direction::ToRadio, ACK, 3501, 501, 0);
    assert_eq!(bench.enter(Direction::ToRadio, ACK, 3501, 101, 1000)[0].1.ack, SeqNum(101));
    assert_eq!(copy_of(&mut bench, 1501, 501).ack, SeqNum(501));
}

/// A flow that goes on gives back what its largest window took.
#[test]
fn busy_flows_keep_no_more_than_they_need() {
    let mut bench = Bench::new("snoop");
    bench.open();
    let segment = |number: u32| 501 + 1000 * number;
    for number in 0..500 {
        bench.enter(Direction::ToRadio, ACK, segment(number), 101, 1000);
    }
    assert!(bench.bump.memory() > 500_000);
    for number in 500..2000 {
        bench.enter(Direction::FromRadio, ACK, 101, segment(number), 0);
        bench.enter(Direction::ToRadio, ACK, segment(number), 101, 1000);
    }
    let memory = bench.bump.memory();
    assert!(memory < 250_000, "{memory}");
}

/// Agents of idle flows leave no memory to those of others, and what is kept for reuse counts.
#[test]
fn memory_is_bounded_and_given_back() {
    let mut bench = Bench::new("snoop");
    bench.open();
    for number in 0..20 {
        bench.enter(Direction::ToRadio, ACK, 501 + 60_000 * number, 101, 60_000);
    }
    assert!(bench.bump.memory() > 1_200_000);
    bench.enter(Direction::FromRadio, ACK, 101, 501 + 60_000 * 20, 0);
    assert!(bench.bump.memory() > 1_200_000, "it is kept for further packets");
    bench.now += Duration::from_millis(1001);
    bench.bump.maintain(bench.now, &mut bench.admitting);
    assert!(bench.bump.memory() < 8000, "{}: no more than the last packet", bench.bump.memory());
}

#[test]
fn openings_that_nobody_answers_are_dismissed() {
    let mut bench = Bench::new("snoop");
    bench.enter(Direction::FromRadio, SYN, 100, 0, 0);
    bench.after(10_001);
    bench.bump.maintain(bench.now, &mut bench.admitting);
    assert_eq!(bench.admitting.dismissed, [flow()]);
    assert_eq!(bench.admitting.settled, [100]);
    bench.bump.maintain(bench.now, &mut bench.admitting);
    assert_eq!(bench.bump.counters().flows, 0);
}
