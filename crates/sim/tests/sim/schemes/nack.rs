//! Negative acknowledgements to the mobile host: the base station and the sender by hand.

use std::ops::Range;
use std::slice;

use lasthop_base::{BitRate, Bytes, Duration, Streams, Time};
use lasthop_proto::scheme::{Schemes, Site};
use lasthop_proto::tcp::{Flags, Flavour, SackBlock, SackBlocks, Segment, SeqNum, Settings, Timestamps};
use lasthop_proto::{Body, Component, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, Signal};
use lasthop_testing::dialogue::{Client, MSS, ms, settings};
use lasthop_testing::schemes::{Counters, installed, schemes_of, site};

/// The bit for "the blocks are missing at the base station".
const NACK: Flags = Flags(0x400);

fn schemes(keys: &str) -> Schemes {
    schemes_of(&format!("[nack]\n{keys}"))
}

/// A base station; the mobile host is host 1, its peer host 0.
struct Station {
    agent: Box<dyn Component>,
    now: Time,
    nacks: Vec<Packet>,
    timestamps: Option<Timestamps>,
}

impl Station {
    fn new(keys: &str) -> Station {
        Station::at(&site(), keys)
    }

    fn at(site: &Site<'_>, keys: &str) -> Station {
        let agent = installed(&schemes(keys), "nack").agent(0, site);
        Station { agent, now: Time::ZERO, nacks: Vec::new(), timestamps: None }
    }

    fn at_ms(&mut self, milliseconds: u64) -> &mut Station {
        self.now = ms(milliseconds);
        assert!(self.agent.next_wakeup() >= self.now, "it should have been woken before");
        self
    }

    /// Wakes the base station, which asks for it at this time.
    fn wakes_at(&mut self, milliseconds: u64) -> &mut Station {
        assert_eq!(self.agent.next_wakeup(), ms(milliseconds));
        self.now = ms(milliseconds);
        let mut out = Out::default();
        self.agent.wake(self.now, &mut out);
        self.collect(&mut out);
        assert!(self.agent.next_wakeup() > self.now);
        self
    }

    fn collect(&mut self, out: &mut Out) {
        while let Some((_, effect)) = out.take() {
            match effect {
                Effect::Send(Port::RADIO, packet) => self.nacks.push(packet),
                other => panic!("{other:?} instead of a NACK"),
            }
        }
    }

    /// A segment passes in either direction, unchanged and before the NACKs that it causes.
    fn passes(&mut self, segment: Segment, port: Port) -> &mut Station {
        let (src, dst) = if port == Port::RADIO { (HostId(1), HostId(0)) } else { (HostId(0), HostId(1)) };
        let options = if segment.timestamps.is_some() { 12 } else { 0 };
        let packet = Packet {
            src,
            dst,
            flow: FlowId(3),
            size: Bytes(u64::from(segment.len) + 40 + options),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle(7),
            body: Body::Tcp(segment),
        };
        let mut out = Out::default();
        self.agent.receive(self.now, &packet, port, &mut out);
        let first = out.take().map(|(_, effect)| effect);
        assert!(
            matches!(first, Some(Effect::Send(leaves, sent)) if leaves == port.across() && sent == packet)
        );
        self.collect(&mut out);
        self
    }

    fn arrives(&mut self, seq: u32, len: u32) -> &mut Station {
        let (flags, timestamps) = (Flags::ACK, self.timestamps);
        self.passes(Segment { seq: SeqNum(seq), len, flags, timestamps, ..Segment::default() }, Port::RADIO)
    }

    /// Segments of these numbers arrive over the link.
    fn gets(&mut self, numbers: impl IntoIterator<Item = u32>) -> &mut Station {
        numbers.into_iter().for_each(|number| {
            self.arrives(number * MSS, MSS);
        });
        self
    }

    /// The peer requests segment number `number`.
    fn acks(&mut self, number: u32) -> &mut Station {
        let (ack, wnd) = (SeqNum(number * MSS), 8000 + number);
        let (flags, timestamps) = (Flags::ACK, self.timestamps);
        self.passes(Segment { ack, wnd, flags, timestamps, ..Segment::default() }, Port::WIRED)
    }

    /// Asserts the blocks of the NACKs since the last call, in numbers of segments.
    fn requests(&mut self, nacks: &[&[(u32, u32)]]) -> &mut Station {
        let sent: Vec<Vec<(u32, u32)>> = self.nacks.drain(..).map(|nack| numbers(&nack)).collect();
        assert_eq!(sent, nacks);
        self
    }

    fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        self.agent.count(&mut counters);
        counters
    }
}

/// The missing segments of a NACK, by number.
fn numbers(nack: &Packet) -> Vec<(u32, u32)> {
    let segment = nack.segment().expect("a NACK is a segment");
    segment.sack.iter().map(|block| (block.start.0 / MSS, block.end.0 / MSS)).collect()
}

/// MobiCom 1995, section 3.2: after a threshold of segments. The NACK acknowledges nothing new.
// Rule: A gap in the data from the mobile host is requested after enough later segments; a NACK acknowledges
// nothing new. [3.2; ../scheme/nack.rs]
#[test]
fn a_gap_is_requested_after_three_segments() {
    let mut station = Station::new("");
    station.gets([0]).acks(1).gets([1, 4, 5]).requests(&[]);
    station.at_ms(7).gets([6]);
    let nack = station.nacks.pop().expect("a NACK");
    let mut sack = SackBlocks::default();
    sack.push(SackBlock { start: SeqNum(2 * MSS), end: SeqNum(4 * MSS) });
    let segment =
        Segment { ack: SeqNum(MSS), wnd: 8001, flags: Flags::ACK | NACK, sack, ..Segment::default() };
    let expected = Packet {
        src: HostId(0),
        dst: HostId(1),
        flow: FlowId(3),
        size: Bytes(52),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Tcp(segment),
    };
    assert_eq!(nack, expected);
    // Once, however many segments follow.
    station.gets(7..20).requests(&[]);
    // Less than three segments after it: reordering.
    station.gets([22, 23, 20, 21, 24]).requests(&[]);
    Station::new("segments = 1").gets([0]).acks(1).gets([2]).requests(&[&[(1, 2)]]);
}

/// A SACK option holds four blocks, three beside timestamps; those of the latest acknowledgement are repeated.
// Rule: A NACK names up to four gaps, three with timestamps; further gaps take further NACKs. [3.2;
// ../scheme/nack.rs]
#[test]
fn many_gaps_take_several_nacks() {
    let mut station = Station::new("");
    station.gets([0]).acks(1).gets([2, 4, 6, 8, 10, 11]);
    station.requests(&[&[(1, 2)], &[(3, 4)], &[(5, 6)], &[(7, 8)]]);
    station.wakes_at(200).requests(&[&[(1, 2), (3, 4), (5, 6), (7, 8)], &[(9, 10)]]);
    let Counters(counters) = station.counters();
    let found = ["holes", "open_holes", "nacks_sent", "requested_holes", "repeated_requests", "silences"]
        .map(|name| counters[name]);
    assert_eq!(found, [5, 5, 6, 9, 4, 1]);

    let mut station = Station::new("");
    station.timestamps = Some(Timestamps { value: 5, echo: 6 });
    station.gets([0]).acks(1).gets([2, 4, 6, 8]).nacks.clear();
    station.wakes_at(200);
    assert_eq!(station.nacks[0].size, Bytes(40 + 12 + 4 + 24));
    assert_eq!(station.nacks[0].segment().and_then(|nack| nack.timestamps), station.timestamps);
    station.requests(&[&[(1, 2), (3, 4), (5, 6)], &[(7, 8)]]);
}

/// MobiCom 1995, section 3.2: after a time without new packets from the mobile host; not before the first
/// acknowledgement, which a NACK repeats.
// Rule: Silence of the mobile host makes every gap due; slow links are silent for longer. [3.2;
// ../scheme/nack.rs]
#[test]
fn silence_makes_every_gap_due() {
    let mut station = Station::new("");
    station.at_ms(10).gets([0, 2]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
    station.at_ms(30).acks(1).wakes_at(210).requests(&[&[(1, 2)]]);
    // Again and again, ten times in all.
    for time in 2..11 {
        station.wakes_at(10 + 200 * time).requests(&[&[(1, 2)]]);
    }
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
    // Without a gap there is no deadline.
    let mut station = Station::new("");
    station.gets([0, 1]).acks(1);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

/// On a slow link, 200 ms without a segment are normal: a NACK of 52 B and an answer of 1040 B take 52 ms and 1040 ms
/// at 8 kb/s, and 2 ms for propagation.
// Rule: as silence_makes_every_gap_due
#[test]
fn a_slow_link_is_silent_for_longer() {
    let rate = BitRate::from_bps(8_000).expect("not zero");
    let mut station = Station::at(&Site { rate, arriving_rate: rate, ..site() }, "");
    station.gets([0]).acks(1).gets([2]).wakes_at(2 * (52 + 1040 + 2)).requests(&[&[(1, 2)]]);
}

/// A NACK without an answer is repeated after twice the smoothed time to an answer, but at least 40 ms; then the time
/// doubles.
// Rule: A NACK without an answer is repeated after two round trips, a limited number of times.
// [../scheme/nack.rs]
#[test]
fn unanswered_requests_are_repeated() {
    let mut station = Station::new("silence = \"10 s\"\nattempts = 4");
    station.gets([0]).acks(1).gets([2, 3, 4]).requests(&[&[(1, 2)]]);
    station.at_ms(30).gets([1, 6, 7, 8]).requests(&[&[(5, 6)]]);
    station.wakes_at(30 + 60).requests(&[&[(5, 6)]]);
    station.wakes_at(90 + 120).requests(&[&[(5, 6)]]).wakes_at(210 + 240).requests(&[&[(5, 6)]]);
    // Four in all. The answer to one of several is no sample; that to the next is: 3/4 of 30 ms and 1/4 of 50 ms.
    station.at_ms(460).gets([5, 10, 11, 12]).requests(&[&[(9, 10)]]);
    station.at_ms(510).gets([9, 14, 15, 16]).requests(&[&[(13, 14)]]);
    // The deadline of the gap that is gone passes.
    station.wakes_at(460 + 60).requests(&[]).wakes_at(510 + 70).requests(&[&[(13, 14)]]);
    // The lower bound.
    let mut station = Station::new("silence = \"10 s\"");
    station.gets([0]).acks(1).gets([2, 3, 4]).at_ms(3).gets([1, 6, 7, 8]).wakes_at(3 + 40);
    // Acknowledged data are not requested, whichever way they took.
    station.at_ms(50).acks(6).requests(&[&[(1, 2)], &[(5, 6)], &[(5, 6)]]).wakes_at(123).requests(&[]);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
}

/// Segments in any order: what is requested has not arrived, and every gap is requested once, as soon as three
/// segments above it have arrived.
// Rule: Only what has not arrived is requested; a hand-off, a reset and idle time end the state.
// [../scheme/nack.rs ../scheme/holes.rs]
#[test]
fn requests_are_what_has_not_arrived() {
    let mut random = Streams::new(1, 0).stream("nacks");
    let mut total = 0;
    for _ in 0..200 {
        let mut station = Station::new("silence = \"100 s\"\nattempts = 1");
        station.gets([0]).acks(0);
        // For each segment below the highest: whether it has arrived, and the number of arrivals above it since.
        let (mut arrived, mut above) = (vec![true], vec![0]);
        let mut requested = vec![false; 512];
        for _ in 0..120 {
            let top = arrived.len();
            let number = match random.below(5) {
                0 => random.below(top as u64) as usize,
                1 => top + random.below(4) as usize,
                _ => top,
            };
            arrived.resize(top.max(number + 1), false);
            above.resize(arrived.len(), 0);
            arrived[number] = true;
            above[..number].iter_mut().for_each(|count| *count += 1);
            station.gets([number as u32]);
            for (start, end) in station.nacks.drain(..).flat_map(|nack| numbers(&nack)) {
                for number in start as usize..end as usize {
                    assert!(!arrived[number] && !requested[number]);
                    requested[number] = true;
                    total += 1;
                }
            }
            for number in (0..arrived.len()).filter(|&number| !arrived[number]) {
                assert_eq!(requested[number], above[number] >= 3, "{number}");
            }
        }
    }
    assert!(total > 1000);
}

/// What a host sends over another base station is not missing here, and a reset ends a connection.
// Rule: as requests_are_what_has_not_arrived
#[test]
fn gaps_are_forgotten_at_a_hand_off_and_a_reset() {
    let mut station = Station::at(&Site { station: Some(0), ..site() }, "");
    let mut out = Out::default();
    let mut moves = |station: &mut Station, number| {
        let signal = Signal::Attached { host: HostId(1), station: number };
        station.agent.on_signal(station.now, &signal, &mut out);
    };
    moves(&mut station, 0);
    station.gets([0]).acks(1).gets([2]);
    moves(&mut station, 1);
    assert_eq!(station.agent.next_wakeup(), Time::NEVER);
    station.gets([5, 6, 7]).requests(&[]);
    moves(&mut station, 0);
    station.gets([9]).acks(1).gets([10, 11, 12]).requests(&[]);
    station.gets([14]);
    assert_ne!(station.agent.next_wakeup(), Time::NEVER);
    let reset = Segment { ack: SeqNum(MSS), flags: Flags::RST | Flags::ACK, ..Segment::default() };
    station.passes(reset, Port::WIRED).gets([15, 16, 17]).requests(&[]);
    assert_eq!(station.counters().0["open_holes"], 0);
}

/// Eight segments in flight.
fn sender(flavour: Flavour, keys: &str) -> Client {
    let schemes = schemes(keys);
    let mut tcp =
        Client::installed(&settings(flavour, 8).with_mss(MSS), None, installed(&schemes, "nack").reactions());
    tcp.sends_full(0..8).at(100);
    tcp
}

/// A NACK of these ranges arrives.
fn nacked<'a>(tcp: &'a mut Client, offset: u32, missing: &[Range<u32>]) -> &'a mut Client {
    let segment = tcp.report(offset, missing);
    tcp.receives(Segment { flags: segment.flags | NACK, ..segment })
}

const FLAVOURS: [Flavour; 6] =
    [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack, Flavour::Prr, Flavour::SelectiveRepeat];

/// All missing segments are retransmitted, whatever the sender; and a NACK is neither a duplicate ACK nor a report of
/// data that have arrived.
// Rule: The mobile host retransmits at once what is requested and not acknowledged or reported, FIN included;
// a NACK is no duplicate ACK. [3.2; ../scheme/nack.rs]
#[test]
fn missing_segments_are_retransmitted_at_once() {
    for flavour in FLAVOURS {
        let mut tcp = sender(flavour, "");
        for _ in 0..3 {
            nacked(&mut tcp, 0, &[1000..3000, 6000..7000]);
            tcp.sends(&["1000..2000", "2000..3000", "6000..7000"]);
        }
        tcp.dupacks(0).losses(0).timeouts(0);
        assert_eq!(tcp.sender.reported().count(), 0, "{flavour:?}");
        assert!(tcp.sender.cwnd() >= 8000.0, "{flavour:?}");
        // Acknowledged data are not, nor data that were never sent.
        tcp.ack(2000).sent();
        nacked(&mut tcp, 2000, &[1000..3000, 50_000..60_000]);
        tcp.sends(&["2000..3000"]);
    }
}

/// Data that the destination has reported need no retransmission.
// Rule: as missing_segments_are_retransmitted_at_once
#[test]
fn reported_data_are_not_retransmitted() {
    for flavour in [Flavour::Sack, Flavour::Prr] {
        let mut tcp = sender(flavour, "");
        tcp.sack(0, &[3000..4000]).sent();
        nacked(&mut tcp, 0, &[1000..4000]);
        tcp.sends(&["1000..2000", "2000..3000"]);
    }
}

/// The destination's duplicates request data that were lost on the air: the window stays as it is, or is halved as
/// without a NACK. Other losses halve it, and so does a timeout.
// Rule: A requested loss leaves the window, until it is acknowledged; others, and timeouts, are congestion.
// [../scheme/nack.rs]
#[test]
fn requested_losses_keep_the_window() {
    for (keys, number, ssthresh) in
        [("", 0, f64::INFINITY), ("keep_window = false", 0, 4000.0), ("", 3000, 4000.0)]
    {
        let mut tcp = sender(Flavour::Reno, keys);
        nacked(&mut tcp, 0, &[number..number + 1000]).sent();
        tcp.at(150).acks(3, 0).sends_first("0..1000").losses(1).ssthresh(ssthresh);
    }
    let mut tcp = sender(Flavour::Reno, "");
    nacked(&mut tcp, 0, slice::from_ref(&(0..1000))).sent();
    tcp.times_out();
    tcp.ssthresh(4000.0).cwnd(1000.0);
}

/// Forgotten when it is acknowledged: the same numbers may be lost again after a wrap.
// Rule: as requested_losses_keep_the_window
#[test]
fn acknowledged_requests_are_forgotten() {
    let mut tcp = sender(Flavour::Reno, "");
    nacked(&mut tcp, 0, slice::from_ref(&(0..1000))).sent();
    tcp.ack(1000).sent();
    tcp.acks(3, 1000).sends_first("1000..2000").ssthresh(4500.0);
}

/// Data of a finite transfer end with FIN, which may be missing, too.
// Rule: as missing_segments_are_retransmitted_at_once
#[test]
fn a_missing_fin_is_retransmitted() {
    let schemes = schemes("");
    let closing = Settings { close: true, ..settings(Flavour::Reno, 8) };
    let mut tcp = Client::installed(&closing, Some(2000), installed(&schemes, "nack").reactions());
    assert_eq!(tcp.at(50).sent().len(), 2);
    nacked(&mut tcp, 0, slice::from_ref(&(1000..2001)));
    let sent = tcp.sent();
    assert!(sent.len() == 1 && sent[0].len == MSS && sent[0].flags.has(Flags::FIN), "{sent:?}");
}

/// Idle connections take no memory for ever.
// Rule: as requests_are_what_has_not_arrived
#[test]
fn idle_connections_are_forgotten() {
    let mut station = Station::new("");
    station.gets([0]).acks(1).gets([2, 3]);
    for _ in 0..10 {
        let next = station.agent.next_wakeup();
        station.wakes_at(next.as_nanos() / 1_000_000);
    }
    station.nacks.clear();
    station.now = Time::ZERO + Duration::from_secs(200);
    station.acks(1).gets([4, 5, 6]).requests(&[]);
    assert_eq!(station.counters().0["holes"], 1);
}
