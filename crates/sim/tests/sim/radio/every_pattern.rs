//! All loss patterns over the first attempts, against a reference implementation.

use lasthop_base::{Duration, Time};
use lasthop_proto::arq::{Backoff, Config, Retransmissions};
use lasthop_proto::{DropReason, LinkOutcome};
use lasthop_sim::{QueueLimit, RadioConfig};

use crate::radio::harness::{Bench, Did, ms, mtu, packet, plain, scripted, selective_repeat, stop_and_wait};

const ATTEMPTS: u32 = 12;
/// Numbers of 4-byte fragments: one, three and two.
const SIZES: [u64; 3] = [4, 9, 8];

fn losses(pattern: u32) -> impl Iterator<Item = bool> + Send {
    (0..ATTEMPTS).map(move |attempt| pattern & (1 << attempt) == 0)
}

/// Whether each packet arrives, and the total number of attempts, without an ARQ.
fn fate_without_arq(pattern: u32) -> (Vec<bool>, u64) {
    let mut fares = losses(pattern).chain(std::iter::repeat(true));
    let fate = |&size: &u64| (0..size.div_ceil(4)).fold(true, |whole, _| fares.next().unwrap() && whole);
    (SIZES.iter().map(fate).collect(), 6)
}

/// The same with at most `limit` attempts per fragment.
fn fate_with_attempts(pattern: u32, limit: usize) -> (Vec<bool>, u64) {
    let (mut fares, mut used) = (losses(pattern).chain(std::iter::repeat(true)), 0);
    let mut fragment_arrives = || {
        fares.by_ref().take(limit).any(|survives| {
            used += 1;
            survives
        })
    };
    let fates = SIZES.iter().map(|size| (0..size.div_ceil(4)).all(|_| fragment_arrives())).collect();
    (fates, used)
}

/// Sends three packets at time zero, checks the invariants of every link, and returns the outcome of each.
fn run(config: RadioConfig, pattern: u32) -> (Vec<bool>, u64, Vec<(Time, Did)>) {
    let mut bench = Bench::new(config, scripted(losses(pattern)));
    for (id, &size) in SIZES.iter().enumerate() {
        bench.send(Time::ZERO, packet(id as u32, size));
    }
    let log = bench.finish().to_vec();
    let ends = log.iter().filter_map(|&(_, did)| match did {
        Did::Deliver(id) => Some((id, true)),
        Did::Drop(id, _) => Some((id, false)),
        Did::Signal(..) => None,
    });
    let ends: Vec<_> = ends.collect();
    // Each packet leaves or is dropped once. The order of losses among deliveries depends on the link.
    let mut sorted = ends.clone();
    sorted.sort_unstable();
    assert_eq!(sorted.iter().map(|&(id, _)| id).collect::<Vec<_>>(), [0, 1, 2], "pattern {pattern:b}");
    let delivered = ends.iter().filter(|(_, whole)| *whole);
    assert!(delivered.is_sorted(), "pattern {pattern:b}: out of order");
    let stats = bench.link.stats();
    assert_eq!(stats.delivered + stats.corrupted + stats.discarded, 3);
    (sorted.into_iter().map(|(_, whole)| whole).collect(), stats.attempts, log)
}

#[test]
fn no_arq() {
    for delay in [0, 3, 50] {
        let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(delay), ..plain() };
        for pattern in 0..1 << ATTEMPTS {
            let (fates, attempts, log) = run(config, pattern);
            assert_eq!((fates, attempts), fate_without_arq(pattern), "pattern {pattern:b}");
            // The remaining fragments are sent all the same: losses do not affect timing.
            let instants: Vec<_> = log.iter().map(|&(at, _)| at).collect();
            assert_eq!(instants, [ms(4 + delay), ms(13 + delay), ms(21 + delay)]);
            let known = |did: &Did| !matches!(did, Did::Deliver(_) | Did::Drop(_, DropReason::Corrupted));
            assert!(!log.iter().any(|(_, did)| known(did)));
        }
    }
}

#[test]
fn stop_and_wait_up_to_a_limit() {
    for (limit, delay) in [(0, 0), (1, 3), (2, 0), (2, 50)] {
        let arq = stop_and_wait(Retransmissions::AtMost(limit), Backoff::Uniform(Duration::from_millis(7)));
        let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(delay), arq, ..plain() };
        for pattern in 0..1 << ATTEMPTS {
            let (fates, attempts, log) = run(config, pattern);
            let expected = fate_with_attempts(pattern, limit as usize + 1);
            assert_eq!((&fates, attempts), (&expected.0, expected.1), "pattern {pattern:b}, limit {limit}");
            signals_add_up(&log, &fates, attempts);
        }
    }
}

#[test]
fn stop_and_wait_without_a_limit() {
    for backoff in [Backoff::Fixed(Duration::ZERO), Backoff::Exponential(Duration::from_millis(2))] {
        let arq = stop_and_wait(Retransmissions::Unlimited, backoff);
        for pattern in 0..1 << ATTEMPTS {
            let (fates, attempts, log) = run(RadioConfig { mtu: mtu(4), arq, ..plain() }, pattern);
            assert_eq!((&fates[..], attempts), (&[true; 3][..], 6 + u64::from(lost_before_end(pattern))));
            signals_add_up(&log, &fates, attempts);
        }
    }
}

/// With instant feedback selective repeat behaves as stop-and-wait without backoff.
#[test]
fn selective_repeat_with_instant_feedback_equals_stop_and_wait() {
    for (retransmissions, delay) in
        [(Retransmissions::AtMost(0), 3), (Retransmissions::AtMost(2), 50), (Retransmissions::Unlimited, 0)]
    {
        let at_once = stop_and_wait(retransmissions, Backoff::Fixed(Duration::ZERO));
        let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(delay), ..plain() };
        for pattern in 0..1 << ATTEMPTS {
            let selective = RadioConfig { arq: selective_repeat(retransmissions, 0, 0), ..config };
            assert_eq!(run(selective, pattern), run(RadioConfig { arq: at_once, ..config }, pattern));
        }
    }
}

#[test]
fn selective_repeat_with_and_without_a_limit() {
    let limits = [Some(0), Some(1), Some(2), None];
    for (limit, (feedback, slot)) in limits
        .into_iter()
        .flat_map(|limit| [(2, 0), (9, 0), (9, 5), (0, 3), (60, 10)].map(|times| (limit, times)))
    {
        let retransmissions = limit.map_or(Retransmissions::Unlimited, Retransmissions::AtMost);
        let arq = selective_repeat(retransmissions, feedback, slot);
        for delay in [0, 50] {
            let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(delay), arq, ..plain() };
            for pattern in 0..1 << ATTEMPTS {
                let (fates, attempts, log) = run(config, pattern);
                signals_add_up(&log, &fates, attempts);
                follows_the_pattern(&log, pattern);
                let ends = ends_by_the_log(&log, limit, delay);
                assert_eq!(fates, ends.map(|end| end.is_some()), "pattern {pattern:b}, {arq:?}");
                for (id, end) in ends.into_iter().enumerate() {
                    let delivery = log.iter().find(|(_, did)| *did == Did::Deliver(id as u32));
                    assert_eq!(delivery.map(|&(at, _)| at), end, "pattern {pattern:b}, {arq:?}");
                }
            }
        }
    }
}

/// Attempts have the outcomes of the pattern, in order of their ends.
fn follows_the_pattern(log: &[(Time, Did)], pattern: u32) {
    let fares = log.iter().filter_map(|(_, did)| match did {
        Did::Signal(_, LinkOutcome::Delivered, _) => Some(true),
        Did::Signal(_, LinkOutcome::AttemptFailed, _) => Some(false),
        _ => None,
    });
    let expected = losses(pattern).chain(std::iter::repeat(true));
    assert!(fares.zip(expected).all(|(found, expected)| found == expected));
}

/// Expected departure of each packet, computed from the outcomes of its attempts: all of its units have
/// arrived, none has failed for the last time (no signals follow in that case), and all earlier packets have
/// left.
fn ends_by_the_log(log: &[(Time, Did)], limit: Option<u32>, delay: u64) -> [Option<Time>; 3] {
    let mut over_before = Time::ZERO;
    [0, 1, 2].map(|id| {
        let (mut missing, mut waiting) = (SIZES[id as usize].div_ceil(4), Vec::new());
        let (mut over, mut given_up) = (Time::ZERO, false);
        for &(at, did) in log {
            let Did::Signal(of, outcome, number) = did else { continue };
            if of != id || outcome == LinkOutcome::Discarded {
                continue;
            }
            assert!(missing > 0 && !given_up, "an attempt of packet {id} after it was over");
            // An attempt of a unit follows its previous one.
            if number > 1 {
                let before = waiting.iter().position(|&failed| failed == number - 1);
                waiting.swap_remove(before.expect("a unit that failed so often"));
            }
            over = at;
            match outcome {
                LinkOutcome::Delivered => missing -= 1,
                _ if limit.is_some_and(|limit| number > limit) => given_up = true,
                _ => waiting.push(number),
            }
        }
        assert!(missing == 0 || given_up, "packet {id} is forgotten");
        over_before = over_before.max(over);
        (!given_up).then(|| over_before + Duration::from_millis(delay))
    })
}

/// Number of losses among the attempts of six units: those before the sixth survival.
fn lost_before_end(pattern: u32) -> u32 {
    let (mut survived, mut lost) = (0, 0);
    for survives in losses(pattern) {
        if survived < 6 {
            (survived, lost) = if survives { (survived + 1, lost) } else { (survived, lost + 1) };
        }
    }
    lost
}

/// One signal per attempt, and one more with a drop for each discarded packet.
fn signals_add_up(log: &[(Time, Did)], fates: &[bool], attempts: u64) {
    let told = |wanted: LinkOutcome| {
        log.iter().filter(|(_, did)| matches!(did, Did::Signal(_, outcome, _) if *outcome == wanted)).count()
    };
    let ended = told(LinkOutcome::AttemptFailed) + told(LinkOutcome::Delivered);
    assert_eq!(ended as u64, attempts);
    let given_up = fates.iter().filter(|arrives| !**arrives).count();
    assert_eq!(told(LinkOutcome::Discarded), given_up);
    let dropped = |did: &Did| matches!(did, Did::Drop(_, DropReason::AttemptsExhausted));
    assert_eq!(log.iter().filter(|(_, did)| dropped(did)).count(), given_up);
}

/// A stream of packets into a short queue: each leaves or is dropped, exactly once.
#[test]
fn an_overflowing_queue_conserves_packets() {
    let arqs = [
        Config::None,
        stop_and_wait(Retransmissions::AtMost(1), Backoff::Uniform(Duration::from_millis(9))),
        stop_and_wait(Retransmissions::Unlimited, Backoff::Fixed(Duration::from_millis(1))),
        selective_repeat(Retransmissions::AtMost(1), 9, 0),
        selective_repeat(Retransmissions::Unlimited, 9, 5),
    ];
    for arq in arqs {
        for pattern in 0..1 << ATTEMPTS {
            let queue = QueueLimit::Packets(pattern % 3);
            let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(6), arq, ..plain() };
            let mut bench = Bench::queued(config, queue, scripted(losses(pattern)));
            (0..8).for_each(|id| bench.send(ms(u64::from(id) * 5), packet(id, SIZES[id as usize % 3])));
            let mut over = [0; 8];
            for &(_, did) in bench.finish() {
                if let Did::Deliver(id) | Did::Drop(id, _) = did {
                    over[id as usize] += 1;
                }
            }
            assert_eq!(over, [1; 8], "pattern {pattern:b}, {arq:?}");
        }
    }
}
