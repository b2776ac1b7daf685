//! The token-bucket shaper against the arithmetic of token buckets.

use super::*;

fn us(us: u64) -> Time {
    Time::ZERO + Duration::from_micros(us)
}

const TEXT: &str = "rate.token-bucket = { rate = \"8 Mbps\", burst = \"3 kB\", peak = \"80 Mbps\" }";

/// A byte of tokens per microsecond, of which 3,000 are there at the start. A packet of 1,000 takes 100 us.
#[test]
fn packets_wait_for_tokens() {
    let link = stated(TEXT, &[]);
    assert_eq!(link.0.nominal().as_bps(), 8_000_000);
    let mut arrivals = vec![(us(0), 1_000); 5];
    // After 5 ms of silence the bucket is full again, and no fuller.
    arrivals.extend([(us(7_000), 1_000); 4]);
    // A packet above the burst waits until all its tokens have arrived: 4 ms after the last one, which left none.
    arrivals.push((us(10_000), 4_000));
    // In a longer silence they have.
    arrivals.push((us(20_000), 4_000));
    let expected =
        [100, 200, 300, 1_100, 2_100, 7_100, 7_200, 7_300, 8_100, 12_400, 20_400].map(|at| Some(us(at)));
    let wired = &mut Link::wired_varying(timing(&link, 0), tail(QueueLimit::Unlimited));
    assert_eq!(drive(wired, &arrivals, true), expected);
    let radio = &mut radio(&link, Config::None, Model::default());
    assert_eq!(drive(radio, &arrivals, true), expected);
    // Waiting for tokens takes no air time.
    assert_eq!(radio.stats().air_time, Duration::from_micros(100 * 9 + 800));
}

/// As the generic cell rate algorithm, the other form of a token bucket: the theoretical arrival time instead of tokens
/// (ITU-T I.371).
#[test]
fn it_is_the_generic_cell_rate_algorithm() {
    let link = stated(TEXT, &[]);
    for seed in 0..50 {
        let mut random = Streams::new(17, seed).stream("arrivals");
        let mut now = 0;
        let arrivals: Vec<_> = (0..500)
            .map(|_| {
                now += random.below(1_600);
                (us(now), 40 + random.below(1_461))
            })
            .collect();
        let (mut theoretical, mut free) = (0, 0);
        let expected: Vec<_> = arrivals
            .iter()
            .map(|(at, size)| {
                let (at, cost) = (at.as_nanos(), size * 1_000);
                let begin = at.max(free).max((theoretical + cost).saturating_sub(3_000_000));
                theoretical = theoretical.max(begin) + cost;
                free = begin + size * 100;
                Some(Time::from_nanos(free))
            })
            .collect();
        let mut wired = Link::wired_varying(timing(&link, 0), tail(QueueLimit::Unlimited));
        assert_eq!(drive(&mut wired, &arrivals, true), expected, "seed {seed}");
    }
}

/// Packets of 1,000 B with an overhead of 250 B have four fifths of the rate.
#[test]
fn the_overhead_costs_rate() {
    let link = stated(&TEXT.replace("peak", "overhead = \"250 B\", peak"), &[]);
    let arrivals: Vec<_> = (0..20_000).map(|n| (us(500 * n), 1_000)).collect();
    let mut wired = Link::wired_varying(timing(&link, 0), tail(QueueLimit::Packets(10)));
    let found = drive(&mut wired, &arrivals, true);
    let passed = found.iter().flatten().filter(|at| **at <= us(10_000_000)).count();
    assert!((8_000..=8_003).contains(&passed), "{passed} packets in 10 s");
}

/// A queue that stays full gives the rate and, once, the burst.
#[test]
fn in_the_long_run_it_is_the_rate() {
    let link = stated(TEXT, &[]);
    let arrivals: Vec<_> = (0..20_000).map(|n| (us(500 * n), 1_000)).collect();
    let mut wired = Link::wired_varying(timing(&link, 0), tail(QueueLimit::Packets(10)));
    let found = drive(&mut wired, &arrivals, true);
    let passed = found.iter().flatten().filter(|at| **at <= us(10_000_000)).count();
    assert!((10_001..=10_003).contains(&passed), "{passed} packets in 10 s");
    assert_eq!(wired.stats().overflowed as usize, found.iter().filter(|fate| fate.is_none()).count());
}
