//! Every pattern of losses over the first attempts, against an account of what it must lead to.

use lasthop_base::{Duration, Time};
use lasthop_proto::arq::{Backoff, Config, Retransmissions};
use lasthop_proto::{DropReason, LinkOutcome};
use lasthop_sim::{QueueLimit, RadioConfig};

use crate::harness::{Bench, Did, ms, mtu, packet, plain, scripted, stop_and_wait};

const ATTEMPTS: u32 = 12;
/// In fragments of 4 bytes: one, three and two.
const SIZES: [u64; 3] = [4, 9, 8];

fn losses(pattern: u32) -> impl Iterator<Item = bool> + Send {
    (0..ATTEMPTS).map(move |attempt| pattern & (1 << attempt) == 0)
}

/// Whether each packet arrives, and how many attempts that takes in all, without an ARQ.
fn fate_without_arq(pattern: u32) -> (Vec<bool>, u64) {
    let mut fares = losses(pattern).chain(std::iter::repeat(true));
    let fate = |&size: &u64| (0..size.div_ceil(4)).fold(true, |whole, _| fares.next().unwrap() && whole);
    (SIZES.iter().map(fate).collect(), 6)
}

/// The same with at most `most` attempts for each fragment.
fn fate_with_attempts(pattern: u32, most: usize) -> (Vec<bool>, u64) {
    let (mut fares, mut used) = (losses(pattern).chain(std::iter::repeat(true)), 0);
    let mut fragment_arrives = || {
        fares.by_ref().take(most).any(|survives| {
            used += 1;
            survives
        })
    };
    let fates = SIZES.iter().map(|size| (0..size.div_ceil(4)).all(|_| fragment_arrives())).collect();
    (fates, used)
}

/// All three packets at once; checks what holds for every link, and tells what became of each.
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
    // Each packet leaves or is dropped, once. The order of losses among deliveries is the link's.
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
            // The remaining fragments use the air all the same: losses change no instant.
            let instants: Vec<_> = log.iter().map(|&(at, _)| at).collect();
            assert_eq!(instants, [ms(4 + delay), ms(13 + delay), ms(21 + delay)]);
            let known = |did: &Did| !matches!(did, Did::Deliver(_) | Did::Drop(_, DropReason::Corrupted));
            assert!(!log.iter().any(|(_, did)| known(did)));
        }
    }
}

#[test]
fn stop_and_wait_up_to_a_limit() {
    for (most, delay) in [(0, 0), (1, 3), (2, 0), (2, 50)] {
        let arq = stop_and_wait(Retransmissions::AtMost(most), Backoff::Uniform(Duration::from_millis(7)));
        let config = RadioConfig { mtu: mtu(4), delay: Duration::from_millis(delay), arq, ..plain() };
        for pattern in 0..1 << ATTEMPTS {
            let (fates, attempts, log) = run(config, pattern);
            let expected = fate_with_attempts(pattern, most as usize + 1);
            assert_eq!((&fates, attempts), (&expected.0, expected.1), "pattern {pattern:b}, limit {most}");
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

/// How many losses six units meet: those before the sixth survival.
fn lost_before_end(pattern: u32) -> u32 {
    let (mut survived, mut lost) = (0, 0);
    for survives in losses(pattern) {
        if survived < 6 {
            (survived, lost) = if survives { (survived + 1, lost) } else { (survived, lost + 1) };
        }
    }
    lost
}

/// Every attempt is told of once; every packet given up, once more and with its drop.
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

/// A stream of packets into a short queue: everything that entered came out or was dropped, and
/// until then nothing did twice.
#[test]
fn an_overflowing_queue_conserves_packets() {
    let arqs = [
        Config::None,
        stop_and_wait(Retransmissions::AtMost(1), Backoff::Uniform(Duration::from_millis(9))),
        stop_and_wait(Retransmissions::Unlimited, Backoff::Fixed(Duration::from_millis(1))),
    ];
    for arq in arqs {
        for pattern in 0..1 << ATTEMPTS {
            let queue = QueueLimit::Packets(pattern % 3);
            let config = RadioConfig { queue, mtu: mtu(4), delay: Duration::from_millis(6), arq, ..plain() };
            let mut bench = Bench::new(config, scripted(losses(pattern)));
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
