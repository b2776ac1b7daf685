//! CAKE against its description and the rules of Linux.

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_link::queue::cake::{AckFilter, Isolation, Params, Tins};
use lasthop_link::queue::{Cake, Discipline};
use lasthop_proto::tcp::{Flags, SackBlock, Segment, SeqNum};
use lasthop_proto::{Body, DropReason, Dscp, Ecn, HostId, Packet};
use lasthop_sim::QueueLimit;

use crate::disciplines::bench::{Bench, packet, us};

/// The link takes a millisecond for a packet of full size.
const MTU_TIME: Duration = Duration::from_millis(1);

fn bench(params: Params) -> Bench<Cake> {
    Bench::new(Cake::new(params, MTU_TIME, Streams::new(1, 0).stream("cake")))
}

/// CAKE with a delay that no packet exceeds.
fn scheduler() -> Params {
    Params { limit: QueueLimit::Unlimited, rtt: Duration::from_secs(100_000), ..Params::default() }
}

/// Bytes that each flow gets in `seconds` of a busy link. Flow `f` goes from `ends(f).0` to `ends(f).1`.
fn shares(
    params: Params,
    seconds: u64,
    flows: u32,
    ends: impl Fn(u32) -> (u32, u32),
    dscp: impl Fn(u32) -> u8,
) -> Vec<u64> {
    let mut bench = bench(params);
    let arrive = |bench: &mut Bench<Cake>, now: Time, flow: u32| {
        let (src, dst) = ends(flow);
        let dscp = Dscp::new(dscp(flow));
        let packet = packet(flow, 0, 1514, Ecn::NotEct);
        bench.arrive(now, Packet { src: HostId(src), dst: HostId(dst), dscp, ..packet });
    };
    (0..flows).for_each(|flow| (0..20).for_each(|_| arrive(&mut bench, us(0), flow)));
    let mut sent = vec![0; flows as usize];
    for step in 0..seconds * 1_000 {
        let packet = bench.go(us(1_000 * step)).expect("all have a backlog");
        sent[packet.flow.index()] += packet.size.0;
        arrive(&mut bench, us(1_000 * step), packet.flow.0);
    }
    sent
}

/// Which shares of the link flows have, in percent.
fn percent(sent: &[u64]) -> Vec<u64> {
    let total: u64 = sent.iter().sum();
    sent.iter().map(|bytes| (100 * bytes + total / 2) / total).collect()
}

/// One host has four flows, the other one: half of the link each, and a quarter of its half for each of the four.
#[test]
fn hosts_share_the_link_and_then_their_flows() {
    let by = |isolation, ends: fn(u32) -> (u32, u32)| {
        percent(&shares(Params { isolation, ..scheduler() }, 20, 5, ends, |_| 0))
    };
    let received = |flow: u32| (0, 1 + u32::from(flow == 4));
    let sent = |flow: u32| (1 + u32::from(flow == 4), 0);
    let (by_hosts, by_flows) = ([13, 13, 13, 13, 50], [20; 5]);
    assert_eq!(by(Isolation::DualDsthost, received), by_hosts);
    assert_eq!(by(Isolation::DualSrchost, sent), by_hosts);
    // The server that sends all has five flows, which is more than either host has.
    assert_eq!(by(Isolation::TripleIsolate, received), by_flows);
    // With a server for each flow, the hosts count.
    assert_eq!(by(Isolation::TripleIsolate, |flow| (2 + flow, u32::from(flow == 4))), by_hosts);
    // The other end's hosts, or none.
    assert_eq!(by(Isolation::DualSrchost, received), by_flows);
    assert_eq!(by(Isolation::DualDsthost, sent), by_flows);
    assert_eq!(by(Isolation::Flows, received), by_flows);
}

/// Of a busy link, voice has a quarter, what is of less than best effort a sixteenth, and the rest has the rest. One that
/// sends little has all that it sends, at once.
#[test]
fn tins_have_their_shares() {
    let dscp = |flow: u32| [0, 8, 46][flow as usize];
    let sent = shares(scheduler(), 64, 3, |_| (0, 1), dscp);
    assert_eq!(percent(&sent), [69, 6, 25]);
    let sent = shares(Params { tins: Tins::Besteffort, ..scheduler() }, 64, 3, |_| (0, 1), dscp);
    assert_eq!(percent(&sent), [33; 3]);
    // Without a rate, as in Wi-Fi, whose categories are sorted before, there is one tin.
    let random = Streams::new(1, 0).stream("cake");
    let mut without_rate = Bench::new(Cake::new(scheduler(), Duration::ZERO, random));
    for (flow, dscp) in [(0, Dscp::DEFAULT), (1, Dscp::EXPEDITED)] {
        without_rate.arrive(us(0), Packet { dscp, ..packet(flow, 0, 1514, Ecn::NotEct) });
    }
    assert_eq!(without_rate.go(us(0)).map(|packet| packet.flow.0), Some(0));
    let mut bench = bench(scheduler());
    (0..50).for_each(|_| bench.come(us(0), 0, 1514, Ecn::NotEct));
    for step in 1..40 {
        bench.arrive(us(1_000 * step), Packet { dscp: Dscp::EXPEDITED, ..packet(1, step, 200, Ecn::NotEct) });
        assert_eq!(bench.go(us(1_000 * step)).map(|packet| packet.flow.0), Some(1));
    }
}

/// A flow whose queue was empty is served before backlogged flows, for one turn.
#[test]
fn a_sparse_flow_is_served_first() {
    let mut bench = bench(scheduler());
    (0..20).for_each(|_| bench.come(us(0), 0, 1500, Ecn::NotEct));
    (0..20).for_each(|_| bench.come(us(0), 1, 1500, Ecn::NotEct));
    let next = |bench: &mut Bench<Cake>, step: u64| bench.go(us(1_000 * step)).expect("one waits").flow.0;
    (0..4).for_each(|step| _ = next(&mut bench, step));
    bench.come(us(4_500), 2, 100, Ecn::NotEct);
    assert_eq!(next(&mut bench, 5), 2);
}

/// A source that is too fast for the link and does not respond, after a burst: the milliseconds of its drops or marks.
fn signals(params: Params, ecn: Ecn, until_ms: u64) -> Vec<u64> {
    let mut bench = bench(params);
    (0..50).for_each(|_| bench.come(us(0), 0, 1514, ecn));
    let mut found = Vec::new();
    for ms in 0..until_ms {
        bench.come(us(1_000 * ms), 0, 1514, ecn);
        if ms % 5 == 0 {
            bench.come(us(1_000 * ms), 0, 1514, ecn);
        }
        let before = (bench.queue.stats().early_drops, bench.queue.stats().marked);
        bench.go(us(1_000 * ms + 500));
        let after = (bench.queue.stats().early_drops, bench.queue.stats().marked);
        found.extend((before != after).then_some(ms));
    }
    found
}

/// The first signal comes at once when the delay exceeds the target, as in Linux, and others as CoDel's law says: the n-th
/// follows the one before by the interval over the square root of n.
#[test]
fn signals_follow_the_control_law() {
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let found = signals(Params::default(), ecn, 600);
        // What leaves at 5.5 ms has waited for too long, and so has what leaves next.
        assert_eq!(found[0], 6, "{found:?}");
        let mut due = 5.5;
        for (place, &at) in found.iter().enumerate().skip(1) {
            due += 100.0 / ((place + 1) as f64).sqrt();
            assert!((at as f64 - due).abs() <= 1.0, "signal {place} at {at} ms, due at {due}: {found:?}");
        }
        assert!(found.len() > 10, "{found:?}");
    }
}

/// A full queue makes BLUE drop at random, packets that could be marked as well. When the source has calmed down, its drops
/// become rarer each time that its queue is found empty, and end.
#[test]
fn a_source_that_does_not_respond_meets_blue() {
    let mut bench = bench(Params { limit: QueueLimit::Packets(30), ..Params::default() });
    for ms in 0..500 {
        (0..2).for_each(|_| bench.come(us(1_000 * ms), 0, 1514, Ecn::Ect0));
        bench.go(us(1_000 * ms + 500));
    }
    let flood = *bench.queue.stats();
    assert!(flood.early_drops > 50 && flood.overflowed > 100, "{flood:?}");
    while bench.go(us(500_000)).is_some() {}
    // Pairs, of which the first may be dropped and the last never.
    let drops_of_pairs = |bench: &mut Bench<Cake>, from_ms: u64| {
        let before = bench.queue.stats().early_drops;
        for ms in (from_ms..from_ms + 1_000).step_by(10) {
            (0..2).for_each(|_| bench.come(us(1_000 * ms), 0, 1514, Ecn::Ect0));
            while bench.go(us(1_000 * ms)).is_some() {}
        }
        bench.queue.stats().early_drops - before
    };
    let soon = drops_of_pairs(&mut bench, 1_000);
    assert!(soon > 10, "{soon}");
    // A queue is found empty when another one is served.
    for ms in (2_000..62_000).step_by(10) {
        bench.come(us(1_000 * ms), 1, 1514, Ecn::Ect0);
        assert!(bench.go(us(1_000 * ms)).is_some());
    }
    assert_eq!(drops_of_pairs(&mut bench, 62_000), 0);
}

/// Each packet has one fate, whatever its tin, its hosts, and whichever acknowledgements are superseded.
#[test]
fn packets_of_any_kind_are_conserved() {
    let mut superseded = 0;
    for number in 0..300 {
        let mut random = Streams::new(3, number).stream("cake");
        let params = Params {
            limit: QueueLimit::Packets(1 + random.below(60) as u32),
            rtt: Duration::from_millis(1 + random.below(200)),
            isolation: [
                Isolation::Flows,
                Isolation::DualSrchost,
                Isolation::DualDsthost,
                Isolation::TripleIsolate,
            ][random.below(4) as usize],
            tins: [Tins::Besteffort, Tins::Diffserv3][random.below(2) as usize],
            ack_filter: [AckFilter::Off, AckFilter::On, AckFilter::Aggressive][random.below(3) as usize],
        };
        let mut bench = bench(params);
        let (mut sent, mut acked) = (0, 0);
        for step in 0..2_000 {
            let now = us(500 * step);
            let flow = random.below(6) as u32;
            acked += random.below(2) as u32;
            let is_ack = random.bernoulli(0.5);
            let body = if is_ack { Body::Tcp(ack(acked)) } else { packet(0, 0, 0, Ecn::NotEct).body };
            let ends = (HostId(random.below(3) as u32), HostId(3 + flow % 3));
            let dscp = Dscp::new([0, 4, 8, 46][random.below(4) as usize]);
            if random.bernoulli(0.6) {
                let arriving = packet(flow, 0, 40 + random.below(1_400), Ecn::Ect0);
                bench.arrive(now, Packet { src: ends.0, dst: ends.1, dscp, body, ..arriving });
            }
            let waited = bench.queue.queued().0 > 0;
            if random.bernoulli(0.5) {
                let went = bench.go(now).is_some();
                assert_eq!(went, waited, "world {number}: a packet goes if one waits");
                sent += u64::from(went);
            }
        }
        let because = |why| bench.drops.iter().filter(|drop| drop.2 == why).count() as u64;
        let stats = bench.queue.stats();
        assert_eq!(because(DropReason::ActiveQueue), stats.early_drops);
        assert_eq!(because(DropReason::QueueFull), stats.overflowed);
        let filtered = because(DropReason::Suppressed);
        assert!(filtered == 0 || params.ack_filter != AckFilter::Off, "world {number}");
        superseded += filtered;
        let left = std::iter::from_fn(|| bench.go(us(2_000_000))).count() as u64;
        assert_eq!(bench.came, sent + left + bench.drops.len() as u64, "world {number}");
        assert_eq!(bench.queue.queued(), (0, Bytes(0)));
    }
    assert!(superseded > 10_000, "{superseded}");
}

/// Drops hit the flow with the most bytes, at its head.
#[test]
fn the_longest_queue_loses_its_head() {
    let mut bench = bench(Params { limit: QueueLimit::Packets(4), ..scheduler() });
    for (flow, size) in [(0, 200), (1, 1500), (0, 200), (1, 1500), (0, 200)] {
        bench.come(us(0), flow, size, Ecn::NotEct);
    }
    assert_eq!(bench.dropped(), [1]);
    assert_eq!(bench.queue.queued(), (4, Bytes(2_100)));
}

fn ack(ack: u32) -> Segment {
    Segment { flags: Flags::ACK, ack: SeqNum(ack), ..Segment::default() }
}

fn with_blocks(mut segment: Segment, blocks: &[(u32, u32)]) -> Segment {
    blocks
        .iter()
        .for_each(|&(start, end)| segment.sack.push(SackBlock { start: SeqNum(start), end: SeqNum(end) }));
    segment
}

/// The acknowledgement numbers that leave a queue which these segments have entered.
fn filtered(ack_filter: AckFilter, segments: &[Segment]) -> Vec<u32> {
    let mut bench = bench(Params { ack_filter, ..scheduler() });
    for segment in segments {
        bench.arrive(us(0), Packet { body: Body::Tcp(*segment), ..packet(0, 0, 52, Ecn::NotEct) });
    }
    assert!(bench.drops.iter().all(|drop| drop.2 == DropReason::Suppressed));
    assert_eq!(*bench.queue.stats(), Default::default());
    let left = std::iter::from_fn(|| bench.go(us(0)));
    left.map(|packet| if let Body::Tcp(segment) = packet.body { segment.ack.0 } else { unreachable!() })
        .collect()
}

/// Of a row of acknowledgements the filter leaves the last two, or the last one.
#[test]
fn superseded_acknowledgements_are_dropped() {
    let row: Vec<Segment> = (1..=9).map(|number| ack(1_000 * number)).collect();
    assert_eq!(filtered(AckFilter::Off, &row).len(), 9);
    assert_eq!(filtered(AckFilter::On, &row), [8_000, 9_000]);
    assert_eq!(filtered(AckFilter::Aggressive, &row), [9_000]);
    // A retransmission that overtook changes nothing: the greatest number stays.
    assert_eq!(filtered(AckFilter::Aggressive, &[ack(5_000), ack(3_000)]), [5_000, 3_000]);
}

/// What tells the sender something beside the newest acknowledgement stays.
#[test]
fn acknowledgements_that_tell_more_stay() {
    let stays = |segments: &[Segment]| {
        let sent: Vec<u32> = segments.iter().map(|segment| segment.ack.0).collect();
        assert_eq!(filtered(AckFilter::Aggressive, segments), sent, "{segments:?}");
    };
    // Duplicates, which are counted.
    stays(&[ack(1_000), ack(1_000), ack(1_000)]);
    // Data, FIN, a reserved bit, an accurate count of marks.
    stays(&[Segment { len: 100, ..ack(1_000) }, ack(2_000)]);
    stays(&[Segment { flags: Flags::ACK | Flags::FIN, ..ack(1_000) }, ack(2_000)]);
    stays(&[Segment { flags: Flags::ACK | Flags::AE, ..ack(1_000) }, ack(2_000)]);
    // A change of the echo of marks, behind which it counts anew.
    let echoing = |number: u32| Segment { flags: Flags::ACK | Flags::ECE, ..ack(number) };
    let row = [ack(1_000), echoing(2_000), echoing(3_000)];
    assert_eq!(filtered(AckFilter::On, &row), [1_000, 2_000, 3_000]);
    stays(&[ack(1_000), echoing(2_000)]);
    // A report of duplicates; blocks that the newer one lacks.
    stays(&[with_blocks(ack(5_000), &[(1_000, 2_000)]), ack(6_000)]);
    stays(&[with_blocks(ack(1_000), &[(3_000, 4_000)]), with_blocks(ack(1_000), &[(6_000, 9_000)])]);
    // The newer one has more in its blocks.
    let more = [with_blocks(ack(1_000), &[(3_000, 4_000)]), with_blocks(ack(1_000), &[(3_000, 5_000)])];
    assert_eq!(filtered(AckFilter::Aggressive, &more).len(), 1);
    // Blocks of a hostile packet end before they begin.
    filtered(
        AckFilter::Aggressive,
        &[with_blocks(ack(1_000), &[(9_000, 3_000)]), with_blocks(ack(1_000), &[(9_000, 3_000)])],
    );
}
