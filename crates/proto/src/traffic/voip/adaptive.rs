//! Adaptive playout delays.

use lasthop_base::{Duration, Time};

use super::{LONGEST_BUFFER, PACKET_INTERVAL};

/// The change of delay from one packet to the next that begins a spike, beyond twice the mean deviation: 800 samples.
const SPIKE: i64 = Duration::from_millis(100).as_nanos() as i64;

/// The smoothed slope at which a spike is over: 63 samples of 125 us.
const FLAT: i64 = Duration::from_micros(7_875).as_nanos() as i64;

/// Longer delays count as this one, so that their multiples can be represented.
const LONGEST_DELAY: Duration = Duration::from_secs(3_600);

/// Mean deviation before anything is known, by which the first talk spurt is delayed as by the default fixed buffer.
const INITIAL_DEVIATION: i64 = Duration::from_millis(15).as_nanos() as i64;

/// A playout delay that changes from one talk spurt to the next: algorithm 4 of Ramjee, Kurose, Towsley and Schulzrinne,
/// "Adaptive Playout Mechanisms for Packetized Audio Applications in Wide-Area Networks" (INFOCOM 1994).
///
/// A talk spurt is played at the smoothed delay plus four mean deviations, as estimated at its first packet. In a spike,
/// a sudden rise of the delay that falls slowly, the estimate follows each packet.
///
/// Not in the paper: the initial deviation, and bounds of the delay, which is at least the least so far and at most a
/// second above it.
#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    estimate: Option<Estimate>,
    spurt: Option<Spurt>,
}

/// The estimates of the delay, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    /// Eight times the smoothed delay, so that rounding does not add up.
    delay: i64,
    /// Eight times the mean deviation.
    deviation: i64,
    /// The delays of the last packet and of the one before.
    last: [i64; 2],
    /// The smoothed slope within a spike; `None` otherwise.
    slope: Option<i64>,
}

/// A talk spurt, all of whose packets have the same playout delay.
#[derive(Clone, Copy, Debug)]
struct Spurt {
    /// The number of its first packet that arrived.
    first: u64,
    /// When packet 0 would have been sent without pauses, in nanoseconds; of this, only equality matters.
    origin: u64,
    playout: Duration,
}

impl Adaptive {
    pub(super) fn new() -> Adaptive {
        Adaptive { estimate: None, spurt: None }
    }

    /// Takes packet number `seq` and returns the playout delay of its talk spurt. `least` is the least delay so far.
    pub(super) fn playout(&mut self, seq: u64, sent: Time, delay: Duration, least: Duration) -> Duration {
        let delay = delay.min(LONGEST_DELAY).as_nanos() as i64;
        let estimate = self.estimate.get_or_insert_with(|| Estimate::new(delay));
        estimate.update(delay);
        let origin = sent.as_nanos().wrapping_sub(PACKET_INTERVAL.as_nanos().wrapping_mul(seq));
        match &self.spurt {
            // A packet that is older than the spurt was overtaken by it, which hardly happens across a pause.
            Some(spurt) if spurt.origin == origin || seq < spurt.first => spurt.playout,
            _ => {
                let playout = estimate.playout().clamp(least, least + LONGEST_BUFFER);
                self.spurt = Some(Spurt { first: seq, origin, playout });
                playout
            }
        }
    }
}

impl Estimate {
    fn new(delay: i64) -> Estimate {
        Estimate { delay: 8 * delay, deviation: 8 * INITIAL_DEVIATION, last: [delay; 2], slope: None }
    }

    fn update(&mut self, delay: i64) {
        let [last, before] = self.last;
        self.last = [delay, last];
        match self.slope {
            None if (delay - last).abs() > self.deviation / 4 + SPIKE => self.slope = Some(0),
            None => {}
            Some(slope) => {
                let slope = slope / 2 + (2 * delay - last - before).abs() / 8;
                self.slope = (slope > FLAT).then_some(slope);
                if self.slope.is_none() {
                    return;
                }
            }
        }
        match self.slope {
            Some(_) => self.delay += 8 * (delay - last),
            None => self.delay += delay - rounded_eighth(self.delay),
        }
        self.deviation += (delay - rounded_eighth(self.delay)).abs() - rounded_eighth(self.deviation);
    }

    fn playout(&self) -> Duration {
        let playout = rounded_eighth(self.delay) + self.deviation / 2;
        Duration::from_nanos(playout.max(0) as u64)
    }
}

fn rounded_eighth(value: i64) -> i64 {
    (value + 4) >> 3
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use lasthop_base::Streams;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The playout delays of packets with these delays, in talk spurts of `packets` with pauses of a second between them.
    fn played(delays: impl IntoIterator<Item = Duration>, packets: u64) -> Vec<Duration> {
        let (mut adaptive, mut least) = (Adaptive::new(), Duration::MAX);
        let delays = delays.into_iter().zip(0..);
        delays
            .map(|(delay, seq)| {
                least = least.min(delay);
                let sent = Time::ZERO + PACKET_INTERVAL * seq + ms(1_000) * (seq / packets);
                adaptive.playout(seq, sent, delay, least)
            })
            .collect()
    }

    /// The deviation falls by an eighth with each packet, from 15 ms on: packet n begins a spurt that is played at the delay
    /// plus 60 ms (7/8)^(n + 1), within the rounding of a nanosecond each.
    #[test]
    fn a_constant_delay_is_the_playout_delay() {
        let found = played([ms(40); 300], 10);
        for (n, found) in found.into_iter().enumerate() {
            let first = n - n % 10;
            let expected = 0.040 + 0.060 * libm::pow(0.875, (first + 1) as f64);
            assert!((found.as_secs_f64() - expected).abs() < 2e-8, "packet {n}: {found}");
            assert!(found >= ms(40), "packet {n} is late");
        }
    }

    /// The listing of the paper in its own unit, samples of 125 us, with real numbers and no bounds.
    #[test]
    fn estimates_are_those_of_the_listing() {
        let mut stream = Streams::new(1, 0).stream("delays");
        let (mut spikes, mut queue) = (0, 0.0);
        let delays: Vec<f64> = (0..5_000)
            .map(|_| {
                // Rises about as large as those that begin a spike.
                let rise = if stream.bernoulli(0.02) { 3_000.0 * stream.uniform() } else { 0.0 };
                queue = f64::max(queue - 160.0, 0.0) + rise;
                800.0 + queue + 200.0 * stream.uniform()
            })
            .collect();
        let mut estimate = Estimate::new((125e3 * delays[0]) as i64);
        let (mut d, mut v, mut impulse, mut var) = (delays[0], 120.0, false, 0.0);
        let (mut n1, mut n2) = (delays[0], delays[0]);
        for (packet, n) in delays.into_iter().enumerate() {
            estimate.update((125e3 * n) as i64);
            let mut settled = false;
            if !impulse {
                if f64::abs(n - n1) > f64::abs(v) * 2.0 + 800.0 {
                    (var, impulse) = (0.0, true);
                    spikes += 1;
                }
            } else {
                var = var / 2.0 + f64::abs((2.0 * n - n1 - n2) / 8.0);
                if var <= 63.0 {
                    (impulse, settled) = (false, true);
                }
            }
            if !settled {
                d = if impulse { d + n - n1 } else { 0.125 * n + 0.875 * d };
                v = 0.125 * f64::abs(n - d) + 0.875 * v;
            }
            (n2, n1) = (n1, n);
            let (found, expected) = (estimate.playout().as_secs_f64(), 125e-6 * (d + 4.0 * v));
            assert!((found - expected.max(0.0)).abs() < 1e-6, "packet {packet}: {found} for {expected}");
        }
        assert!(spikes > 10, "{spikes}");
    }

    /// A queue fills at once, as a talk spurt begins, and drains by 10 ms a packet. No packet is late. The playout delays are
    /// those of the listing in floating point: the height of the spike, and 1.5 ms above the least 55 packets after its end.
    #[test]
    fn a_spike_delays_its_talk_spurts_only() {
        let steady = core::iter::repeat_n(ms(50), 100);
        let spike = (0..45).map(|k| ms(500 - 10 * k));
        let delays: Vec<Duration> = steady.clone().chain(spike).chain(steady).collect();
        let found = played(delays.iter().copied(), 20);
        assert!(delays.iter().zip(&found).all(|(delay, playout)| delay <= playout), "a packet is late");
        let expected = [50.0, 500.0, 509.0, 431.9, 166.2, 64.5, 51.5];
        for (packet, expected) in (80..).step_by(20).zip(expected) {
            let milliseconds = 1e3 * found[packet].as_secs_f64();
            assert!((milliseconds - expected).abs() < 0.1, "packet {packet}: {milliseconds}");
        }
    }

    /// Between pauses, the delay stays although those of the packets change. A lost first packet does not matter, nor one of the
    /// spurt before that was overtaken.
    #[test]
    fn the_delay_changes_in_pauses_only() {
        let mut adaptive = Adaptive::new();
        let mut play = |seq, pauses, delay| {
            let sent = Time::ZERO + PACKET_INTERVAL * seq + ms(900) * pauses;
            adaptive.playout(seq, sent, ms(delay), ms(10)).as_nanos()
        };
        let first = play(0, 0, 10);
        assert_eq!([play(1, 0, 60), play(5, 0, 90)], [first; 2]);
        let second = play(8, 1, 30);
        assert_ne!(second, first);
        assert_eq!([play(9, 1, 10), play(7, 1, 90), play(6, 0, 95), play(10, 1, 10)], [second; 4]);
    }

    #[test]
    fn the_delay_is_bounded_by_the_least_and_a_second_above() {
        let found = played([ms(10), ms(5_000), ms(10), ms(10)], 1);
        assert_eq!(found[1], ms(1_010));
        assert!(found.iter().all(|&delay| delay >= ms(10)));
    }
}
