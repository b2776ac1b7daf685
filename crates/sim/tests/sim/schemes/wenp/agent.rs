//! The base station's agent, by hand.

use std::collections::BTreeMap;

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::scheme::Schemes;
use lasthop_proto::tcp::{Flags, SackBlock, Segment, SeqNum};
use lasthop_proto::{
    Body, Component, Datagram, Dscp, Ecn, Effect, FlowId, Handle, HostId, Notice, NoticeCode, Out, Packet,
    Port, Probe,
};
use lasthop_testing::schemes::agent;

/// The bit next to CWR, 0x80.
const RNF: Flags = Flags(0x100);

/// Source, destination and flow of data.
type Key = (u32, u32, u32);

const ONE: Key = (3, 5, 7);

fn packet((src, dst, flow): Key, body: Body) -> Packet {
    let (src, dst, flow) = (HostId(src), HostId(dst), FlowId(flow));
    Packet {
        src,
        dst,
        flow,
        size: Bytes(540),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    }
}

fn data(seq: u32, len: u32) -> Segment {
    Segment { seq: SeqNum(seq), len, wnd: 9999, flags: Flags::ACK, ..Segment::default() }
}

fn ack(number: u32) -> Segment {
    Segment { seq: SeqNum(77), ack: SeqNum(number), wnd: 8000, flags: Flags::ACK, ..Segment::default() }
}

/// A base station, with the test as its neighbours.
struct Station {
    agent: Box<dyn Component>,
    now: Time,
    bit: Flags,
}

struct Shown(BTreeMap<&'static str, f64>);

impl Probe for Shown {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.insert(name, value);
    }
}

impl Station {
    fn new() -> Station {
        Station::of(&Schemes::default())
    }

    fn of(schemes: &Schemes) -> Station {
        assert!(schemes.wenp_faults().is_empty());
        let agent = agent(schemes, "wenp");
        Station { agent, now: Time::ZERO, bit: Flags(1 << schemes.wenp.bit) }
    }

    fn after(&mut self, seconds: u64) -> &mut Station {
        self.now += Duration::from_secs(seconds);
        self
    }

    /// Asserts that a packet is forwarded, unchanged but for the mark. Returns whether it was marked.
    fn passes(&mut self, port: Port, packet: Packet) -> bool {
        let mut out = Out::default();
        self.agent.receive(self.now, &packet, port, &mut out);
        assert_eq!(self.agent.next_wakeup(), Time::NEVER, "no timers");
        let effects: Vec<Effect> = std::iter::from_fn(|| out.take()).map(|(_, effect)| effect).collect();
        let marked = packet.segment().map(|segment| Packet {
            body: Body::Tcp(Segment { flags: segment.flags | self.bit, ..*segment }),
            ..packet
        });
        match effects.as_slice() {
            [Effect::Send(to, found)] if *to == port.across() && *found == packet => false,
            [Effect::Send(to, found)] if *to == port.across() && Some(*found) == marked => true,
            other => panic!("{packet:?} through {port:?}: {other:?}"),
        }
    }

    /// A segment from the source arrives from the wired network.
    fn source_sends(&mut self, key: Key, segment: Segment) -> &mut Station {
        assert!(
            !self.passes(Port::WIRED, packet(key, Body::Tcp(segment))),
            "only acknowledgements are marked"
        );
        self
    }

    /// Segments of 1000 bytes of the first connection, by number.
    fn sends(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut Station {
        for number in numbers {
            self.source_sends(ONE, data(number * 1000, 1000));
        }
        self
    }

    /// A segment from the destination arrives over the air. Returns whether it was marked.
    fn returns(&mut self, (src, dst, flow): Key, segment: Segment) -> bool {
        self.passes(Port::RADIO, packet((dst, src, flow), Body::Tcp(segment)))
    }

    /// Asserts that an acknowledgement of the first connection is forwarded unmarked.
    fn leaves(&mut self, number: u32) -> &mut Station {
        assert!(!self.returns(ONE, ack(number)), "{number} is marked");
        self
    }

    /// Asserts that an acknowledgement of the first connection is forwarded marked.
    fn marks(&mut self, number: u32) -> &mut Station {
        assert!(self.returns(ONE, ack(number)), "{number} is not marked");
        self
    }

    fn shows(&self) -> BTreeMap<&'static str, f64> {
        let mut shown = Shown(BTreeMap::new());
        self.agent.show(&mut shown);
        shown.0
    }

    /// Asserts the number of recorded segments and connections.
    fn notes(&mut self, segments: usize, connections: usize) -> &mut Station {
        let shown = self.shows();
        let found = (shown["cached_segments"] as usize, shown["connections"] as usize);
        assert_eq!(found, (segments, connections), "segments and connections");
        self
    }
}

/// The faults of the scheme's parameters.
trait Faults {
    fn wenp_faults(&self) -> Vec<(String, String)>;
}

impl Faults for Schemes {
    fn wenp_faults(&self) -> Vec<(String, String)> {
        self.get("wenp").expect("it is there").faults(&Default::default())
    }
}

/// The schemes with changed parameters.
fn with(change: impl FnOnce(&mut Schemes)) -> Schemes {
    let mut schemes = Schemes::default();
    change(&mut schemes);
    schemes
}

/// Section V-A: every duplicate that requests a forwarded segment is marked, and nothing else.
#[test]
fn duplicates_for_forwarded_segments_are_marked() {
    let mut station = Station::new();
    station.sends(0..5).leaves(1000).marks(1000).marks(1000).marks(1000);
    station.leaves(3000).leaves(4000).marks(4000).leaves(5000).leaves(5000).leaves(5000).notes(0, 1);
}

/// Segments that never reached the base station were lost before it.
#[test]
fn losses_upstream_are_not_marked() {
    let mut station = Station::new();
    station.sends([0, 2, 3, 4]).leaves(1000).leaves(1000).leaves(1000).leaves(1000);
    // Late segments and retransmissions count as forwarded from then on.
    station.sends([1]).marks(1000).leaves(5000);
}

/// The first acknowledgement that the base station sees is a duplicate if it acknowledges no forwarded data.
#[test]
fn the_first_acknowledgement_may_be_a_duplicate() {
    Station::new().sends(0..3).marks(0).marks(0).leaves(3000);
    Station::new().sends(1..3).leaves(0).leaves(0).leaves(1000).marks(1000);
    Station::new().sends(0..3).leaves(2000).marks(2000);
    let mut joined = Station::new();
    joined.leaves(5000).leaves(5000).notes(0, 0).sends([5]).marks(5000);
}

/// RFC 5681 section 2: no data, neither SYN nor FIN, unchanged window, and data outstanding.
#[test]
fn other_acknowledgements_are_not_marked() {
    let mut station = Station::new();
    station.leaves(0).sends(0..5).leaves(1000);
    let others = [
        Segment { len: 10, ..ack(1000) },
        Segment { flags: Flags::ACK | Flags::SYN, ..ack(1000) },
        Segment { flags: Flags::ACK | Flags::FIN, ..ack(1000) },
        Segment { flags: Flags::default(), ..ack(1000) },
    ];
    for other in others {
        assert!(!station.returns(ONE, other), "{other:?}");
    }
    station.marks(1000);
    // Each change of the window is an update; the next acknowledgement with that window is a duplicate again.
    let wider = Segment { wnd: 8001, ..ack(1000) };
    assert!(!station.returns(ONE, wider) && station.returns(ONE, wider));
    station.leaves(1000).marks(1000);
    let shut = Segment { wnd: 0, ..ack(1000) };
    assert!(
        !station.returns(ONE, shut) && !station.returns(ONE, shut),
        "a receiver without a window refuses"
    );
    station.leaves(1000).marks(1000);
    // An old acknowledgement was reordered, and changes nothing.
    station.leaves(2000).leaves(1000).leaves(1000).marks(2000);
}

/// SACK blocks, timestamps and other bits change nothing, and are kept.
#[test]
fn options_do_not_affect_marking() {
    let mut station = Station::new();
    station.sends(0..5).leaves(1000);
    let mut reporting = Segment { flags: Flags::ACK | Flags(0x48), ..ack(1000) };
    reporting.sack.push(SackBlock { start: SeqNum(2000), end: SeqNum(3000) });
    assert!(station.returns(ONE, reporting));
    let told = Segment { flags: Flags::ACK | RNF, ..ack(2000) };
    assert!(!station.returns(ONE, told), "the bit is kept");
}

/// A segment is recorded once, however often it arrives, and afterwards only its unacknowledged part.
#[test]
fn a_segment_is_recorded_once() {
    let mut station = Station::new();
    station.sends([0, 1, 2, 1, 0, 2]).notes(3, 1).leaves(2000).notes(1, 1).sends([0, 1]).notes(1, 1);
    station.marks(2000).sends([2]).notes(1, 1).leaves(3000).notes(0, 1);
    let shown = station.shows();
    assert_eq!((shown["cached_segments_peak"], shown["marked_acks"]), (3.0, 1.0));
}

/// Resegmented data: a request for any forwarded byte is marked, and acknowledgements remove all of it.
#[test]
fn resegmented_data_are_recognised() {
    let mut station = Station::new();
    station.sends([0, 1, 3]).source_sends(ONE, data(500, 1000)).notes(4, 1);
    station.leaves(500).notes(3, 1).marks(500).leaves(700).marks(700).leaves(1500).marks(1500).notes(2, 1);
    // The end of the second segment to the start of the fourth.
    station.source_sends(ONE, data(1800, 1700)).notes(3, 1);
    station.leaves(1799).marks(1799).leaves(1800).marks(1800).leaves(3499).marks(3499);
    station.leaves(3500).marks(3500).leaves(3999).marks(3999).leaves(4000).leaves(4000).notes(0, 1);
    // A segment that covers several replaces them; one within another is merged.
    station
        .sends([4, 5, 6])
        .source_sends(ONE, data(4000, 2500))
        .notes(2, 1)
        .source_sends(ONE, data(4100, 100))
        .notes(2, 1);
    station.source_sends(ONE, data(4000, 100)).notes(2, 1);
    station.leaves(6400).marks(6400).leaves(6600).marks(6600).leaves(7000).notes(0, 1);
}

/// A full cache keeps the lowest sequence numbers, whatever the order of arrival.
#[test]
fn the_cache_is_bounded() {
    let schemes = with(|schemes| schemes.wenp.cache = 3);
    let mut station = Station::of(&schemes);
    station.sends([1, 3, 5, 7]).notes(3, 1).sends([0]).notes(3, 1).sends([2, 9]).notes(3, 1);
    station.marks(0).leaves(1000).marks(1000).leaves(2000).marks(2000).notes(1, 1);
    station.leaves(3000).leaves(3000).sends([3]).marks(3000).leaves(5000).leaves(5000).notes(0, 1);
    // The bound is per connection.
    station
        .sends(10..20)
        .source_sends((3, 5, 8), data(0, 10))
        .source_sends((3, 5, 8), data(10, 10))
        .notes(5, 2);
    assert_eq!(station.shows()["cached_segments_peak"], 5.0);
}

/// Connections are distinguished by both addresses and the flow; their sequence numbers are independent.
#[test]
fn connections_are_distinguished_by_addresses_and_flow() {
    let keys = [ONE, (4, 5, 7), (3, 6, 7), (3, 5, 8)];
    let mut station = Station::new();
    for (number, &key) in keys.iter().enumerate() {
        station.source_sends(key, data(1000 * number as u32, 1000));
    }
    station.notes(4, 4);
    for (number, &key) in keys.iter().enumerate() {
        for other in 0..keys.len() {
            let asks = ack(1000 * other as u32);
            let lost = [station.returns(key, asks), station.returns(key, asks)][1];
            assert_eq!(lost, other == number, "{key:?} at {}", asks.ack);
        }
    }
}

/// A connection is forgotten once everything including FIN is acknowledged, wherever FIN was sent.
#[test]
fn a_closed_connection_is_forgotten() {
    let fin = Flags::ACK | Flags::FIN;
    let mut station = Station::new();
    station.sends(0..3).source_sends(ONE, Segment { flags: fin, ..data(3000, 500) }).notes(4, 1);
    station.leaves(3000).marks(3000).leaves(3500).notes(0, 1).leaves(3501).notes(0, 0).leaves(3501);
    // FIN arrives alone, and the data before it are retransmitted.
    station.sends(0..3).source_sends(ONE, Segment { flags: fin, ..data(3000, 0) }).leaves(2000).marks(2000);
    station.leaves(3000).notes(0, 1);
    assert!(!station.returns(ONE, Segment { flags: fin, ..ack(3001) }));
    station.notes(0, 0).source_sends(ONE, Segment { flags: fin, ..data(3000, 0) }).notes(0, 0);
    // The destination closes its half; the source continues.
    station.sends(0..2);
    assert!(!station.returns(ONE, Segment { flags: fin, ..ack(1000) }));
    station.notes(1, 1).marks(1000);
}

/// A reset from either end and a new SYN discard the state.
#[test]
fn a_reset_connection_is_forgotten() {
    let rst = Flags(0x04);
    for flags in [rst, rst | Flags::ACK, Flags::SYN] {
        let mut station = Station::new();
        station.sends(0..3).leaves(1000).marks(1000).source_sends((3, 5, 8), data(0, 10));
        station.source_sends(ONE, Segment { flags, ..data(999, 0) }).notes(1, 1).leaves(1000).leaves(1000);
    }
    for flags in [rst, rst | Flags::ACK] {
        let mut station = Station::new();
        station.sends(0..3).leaves(1000).source_sends((3, 5, 8), data(0, 10));
        assert!(!station.returns(ONE, Segment { flags, ..ack(1000) }));
        station.notes(1, 1).leaves(1000).leaves(1000);
    }
}

/// A connection without data or acknowledgements for the idle timeout is forgotten.
#[test]
fn a_silent_connection_is_forgotten() {
    let mut station = Station::new();
    station.sends(0..3).leaves(1000).after(120).marks(1000).after(120).sends([3]).after(120).marks(1000);
    station.after(121).leaves(1000).notes(0, 0).leaves(1000);
    // It is unknown when its data resume.
    station
        .sends(0..3)
        .leaves(1000)
        .after(121)
        .sends([3])
        .notes(1, 1)
        .leaves(2000)
        .leaves(2000)
        .leaves(3000)
        .marks(3000);
    // The same when another connection appears.
    station.after(121).source_sends((3, 5, 8), data(0, 10)).notes(1, 1);
    let mut hasty = Station::of(&with(|schemes| schemes.wenp.idle = Duration::from_secs(1)));
    hasty.sends(0..3).leaves(1000).after(1).marks(1000).after(2).leaves(1000);
}

/// In a full table a new connection replaces the one idle for longest.
#[test]
fn the_table_of_connections_is_bounded() {
    let schemes = with(|schemes| schemes.wenp.connections = 2);
    let mut station = Station::of(&schemes);
    station.sends(0..3).after(1).source_sends((3, 5, 8), data(0, 10)).after(1).leaves(1000).notes(3, 2);
    station.after(1).source_sends((3, 5, 9), data(0, 10)).source_sends((3, 5, 9), data(10, 10)).notes(4, 2);
    assert!(!station.returns((3, 5, 8), ack(0)) && station.returns((3, 5, 9), ack(0)));
    station.marks(1000);
}

/// Random packets of many connections: the table holds those of a reference implementation, which scans a
/// list.
#[test]
fn the_table_agrees_with_a_reference_implementation() {
    const MOST: usize = 5;
    let idle = Duration::from_secs(8);
    let schemes = with(|schemes| (schemes.wenp.connections, schemes.wenp.idle) = (MOST as u32, idle));
    for run in 0..300 {
        let random = &mut Streams::new(run, 0).stream("table");
        let mut station = Station::of(&schemes);
        let mut known: Vec<(u32, Time)> = Vec::new();
        for _ in 0..200 {
            station.now += Duration::from_millis(1 + random.below(4_000));
            let flow = random.below(9) as u32;
            let key = (3, 5, flow);
            known.retain(|&(it, since)| it != flow || station.now.since(since) <= idle);
            let place = known.iter().position(|&(it, _)| it == flow);
            match random.below(8) {
                0 => {
                    station.source_sends(key, Segment { flags: Flags::RST, ..data(0, 0) });
                    place.map(|place| known.remove(place));
                }
                1..4 => {
                    // Only a known connection has a first acknowledgement that is a duplicate.
                    assert_eq!(station.returns(key, ack(0)), place.is_some(), "run {run}, flow {flow}");
                    place.into_iter().for_each(|place| known[place].1 = station.now);
                }
                _ => {
                    station.source_sends(key, data(0, 1000));
                    if let Some(place) = place {
                        known[place].1 = station.now;
                        continue;
                    }
                    known.retain(|&(_, since)| station.now.since(since) <= idle);
                    if known.len() == MOST {
                        let oldest = (0..MOST).min_by_key(|&place| known[place].1);
                        known.remove(oldest.expect("the table is full"));
                    }
                    known.push((flow, station.now));
                    station.notes(known.len(), known.len());
                }
            }
        }
    }
}

/// At any position of the sequence wrap, and after a full cycle.
#[test]
fn sequence_numbers_wrap() {
    for base in (0..8000u32).step_by(500).map(|before| 0u32.wrapping_sub(before)).chain([1 << 31, 1]) {
        let at = |offset: u32| base.wrapping_add(offset);
        let mut station = Station::new();
        for offset in [0, 2000, 3000, 5000, 1000] {
            station.source_sends(ONE, data(at(offset), 1000));
        }
        station.marks(at(0)).leaves(at(2000)).marks(at(2000)).notes(3, 1).leaves(at(4000)).leaves(at(4000));
        station.leaves(at(5000)).marks(at(5000)).leaves(at(6000)).notes(0, 1);
    }
    let mut station = Station::new();
    for step in 0..3u32 << 6 {
        let base = step << 26;
        station.source_sends(ONE, data(base, 1000)).source_sends(ONE, data(base + 1000, 1000));
        station.leaves(base + 1000).marks(base + 1000).leaves(base + 2000).notes(0, 1);
    }
    // Numbers too far away, in either direction, belong to another window.
    for far in [1 << 31, (1 << 30) + 3001, 0u32.wrapping_sub((1 << 30) + 1)] {
        let mut station = Station::new();
        station.sends(0..3).leaves(1000).source_sends(ONE, data(far, 1000)).notes(1, 1).marks(far);
        let mut unneeded = Station::new();
        unneeded.sends(0..3).source_sends(ONE, data(far, 1000)).notes(1, 1).marks(far);
    }
}

/// Numbers up to 2^30 apart are comparable; one more is not.
#[test]
fn sequence_comparison_covers_a_quarter_of_the_space() {
    let far = 1u32 << 30;
    for (beyond, segments) in [(0, 3), (1, 1)] {
        let mut station = Station::new();
        station
            .sends(0..3)
            .leaves(1000)
            .source_sends(ONE, data(1000 + far + beyond, 1000))
            .notes(segments, 1);
    }
    for (beyond, segments) in [(0, 4), (1, 1)] {
        let mut station = Station::new();
        station
            .sends(0..3)
            .source_sends(ONE, data(2000u32.wrapping_sub(far + beyond), 1000))
            .notes(segments, 1);
    }
}

/// Data of a mobile source and their acknowledgements are forwarded: nothing is recorded, and no search is
/// made.
#[test]
fn data_of_a_mobile_source_are_ignored() {
    let mut station = Station::new();
    for number in 0..5 {
        assert!(!station.returns(ONE, data(number * 1000, 1000)));
    }
    (0..4).for_each(|_| _ = station.source_sends(ONE, ack(1000)));
    station.notes(0, 0);
    // With data in both directions each is handled on its own.
    station.sends(0..3);
    assert!(!station.returns(ONE, Segment { len: 100, ..ack(1000) }));
    station.source_sends(ONE, ack(5000)).source_sends(ONE, ack(5000)).marks(1000).notes(2, 1);
}

fn others() -> [Packet; 2] {
    let notice = Notice { code: NoticeCode { kind: 41, code: 0 }, seq: SeqNum(1000) };
    [Body::Notice(notice), Body::Datagram(Datagram { seq: 1, sent: Time::ZERO })]
        .map(|body| packet(ONE, body))
}

/// Packets other than TCP are forwarded unchanged, and counted.
#[test]
fn packets_other_than_tcp_are_forwarded() {
    let mut station = Station::new();
    for port in [Port::WIRED, Port::RADIO] {
        assert!(others().iter().all(|&other| !station.passes(port, other)));
    }
    let expected = [
        ("cached_segments", 0.0),
        ("cached_segments_peak", 0.0),
        ("connections", 0.0),
        ("lookups", 0.0),
        ("marked_acks", 0.0),
        ("packets", 4.0),
    ];
    assert_eq!(station.shows(), BTreeMap::from(expected));
}

/// Unreadable headers: packets are forwarded, and nothing is recorded.
#[test]
fn encrypted_packets_are_forwarded_unmarked() {
    let mut station = Station::of(&with(|schemes| schemes.wenp.encrypted = true));
    station.sends(0..3).leaves(1000).leaves(1000).leaves(1000).notes(0, 0);
    let shown = station.shows();
    assert_eq!((shown["packets"], shown["lookups"], shown["marked_acks"]), (6.0, 0.0, 0.0));
}

/// The bit is the configured one.
#[test]
fn the_bit_is_a_parameter() {
    for bit in 8..=11 {
        let mut station = Station::of(&with(|schemes| schemes.wenp.bit = bit));
        station.sends(0..3).leaves(1000).marks(1000);
        assert_eq!(station.bit, Flags(0x80 << (bit - 7)));
    }
}

/// Two searches for data and for acknowledgements of recorded data, one for other acknowledgements, none for
/// irrelevant packets.
#[test]
fn searches_are_counted() {
    let mut station = Station::new();
    let cost = |station: &Station, searches: f64| assert_eq!(station.shows()["lookups"], searches);
    station.leaves(0);
    cost(&station, 1.0);
    station.sends([0]).sends([1]).leaves(1000).marks(1000);
    cost(&station, 9.0);
    station
        .source_sends(ONE, ack(5))
        .source_sends(ONE, Segment { flags: Flags::ACK | Flags::FIN, ..data(2000, 0) });
    cost(&station, 10.0);
    station.source_sends(ONE, Segment { flags: Flags::SYN, ..data(2000, 0) });
    assert!(!station.returns(ONE, Segment { flags: Flags::RST, ..ack(0) }));
    cost(&station, 12.0);
    assert_eq!((station.shows()["packets"], station.shows()["marked_acks"]), (9.0, 1.0));
}

/// Reference implementation: a flag for each forwarded byte of one connection without sequence wrap.
#[derive(Default)]
struct Plain {
    passed: Vec<bool>,
    acked: Option<(usize, u32)>,
}

impl Plain {
    fn data(&mut self, start: usize, len: usize) {
        let end = (start + len).max(self.passed.len());
        self.passed.resize(end, false);
        self.passed[start..start + len].fill(true);
    }

    fn ack(&mut self, ack: usize, wnd: u32) -> bool {
        let outstanding = |plain: &Plain| plain.passed.get(ack).is_some_and(|&passed| passed);
        match self.acked {
            Some((acked, _)) if ack < acked => return false,
            Some(acked) if acked != (ack, wnd) => {
                self.acked = Some((ack, wnd));
                return false;
            }
            None if self.passed.is_empty() => return false,
            Some(_) => {}
            None => {
                self.acked = Some((ack, wnd));
                return wnd > 0 && self.passed.iter().position(|&passed| passed) == Some(ack);
            }
        }
        wnd > 0 && outstanding(self)
    }
}

/// Random segments and acknowledgements, compared with the reference; no more is recorded than there are
/// unacknowledged bytes.
#[test]
fn agrees_with_a_reference_implementation() {
    for run in 0..2000 {
        let random = &mut Streams::new(run, 0).stream("wenp");
        let below = |random: &mut Stream, most: u64| random.below(most) as usize;
        let (mut station, mut plain) = (Station::new(), Plain::default());
        for _ in 0..60 {
            if random.bernoulli(0.5) {
                let (start, len) = (below(random, 40), 1 + below(random, 12));
                station.source_sends(ONE, data(start as u32, len as u32));
                plain.data(start, len);
            } else {
                let near = plain.acked.map_or(0, |(acked, _)| acked);
                let ack_number = if random.bernoulli(0.5) { near } else { near.max(below(random, 50)) };
                let wnd = [0, 8000, 8000, 8000, 8001][below(random, 5)];
                let segment = Segment { wnd, ..ack(ack_number as u32) };
                assert_eq!(
                    station.returns(ONE, segment),
                    plain.ack(ack_number, wnd),
                    "run {run}: {segment:?}"
                );
            }
            let acked = plain.acked.map_or(0, |(acked, _)| acked);
            let left = plain.passed.iter().skip(acked).filter(|&&passed| passed).count();
            let noted = station.shows()["cached_segments"] as usize;
            assert!(noted <= left && (noted > 0) == (left > 0), "run {run}: {noted} of {left} bytes");
        }
    }
}

/// Invalid parameters are rejected, with the valid range.
#[test]
fn invalid_parameters_are_rejected() {
    let fault = |change: fn(&mut Schemes)| {
        let faults = with(change).wenp_faults();
        let [(key, problem)] = faults.as_slice() else { panic!("one fault: {faults:?}") };
        format!("{key}: {problem}")
    };
    assert_eq!(
        fault(|s| s.wenp.alpha = 0.49),
        "alpha: found 0.49, expected 0.5 (as for any other loss) to 1"
    );
    assert_eq!(
        fault(|s| s.wenp.alpha = 1.01),
        "alpha: found 1.01, expected 0.5 (as for any other loss) to 1"
    );
    assert_eq!(
        fault(|s| s.wenp.alpha = f64::NAN),
        "alpha: found NaN, expected 0.5 (as for any other loss) to 1"
    );
    let own = "expected 1 to 3: tcp.dupthresh, without the bit";
    assert_eq!(fault(|s| s.wenp.threshold = 0), format!("threshold: found 0, {own}"));
    assert_eq!(fault(|s| s.wenp.threshold = 4), format!("threshold: found 4, {own}"));
    let reserved = "expected 8, next to CWR, to 11: the reserved bits of the header";
    assert_eq!(fault(|s| s.wenp.bit = 7), format!("bit: found 7, {reserved}"));
    assert_eq!(fault(|s| s.wenp.bit = 12), format!("bit: found 12, {reserved}"));
    assert_eq!(fault(|s| s.wenp.cache = 0), "cache: found 0, expected at least 1");
    assert_eq!(fault(|s| s.wenp.connections = 0), "connections: found 0, expected at least 1");
    assert_eq!(fault(|s| s.wenp.idle = Duration::ZERO), "idle: found 0 s, expected more than zero");
    let bounds: [fn(&mut Schemes); 4] =
        [|s| s.wenp.alpha = 0.5, |s| s.wenp.alpha = 1.0, |s| s.wenp.bit = 11, |s| s.wenp.threshold = 3];
    assert!(bounds.iter().all(|&change| with(change).wenp_faults().is_empty()));
}
