//! Recognition of a classic queue with ECN by the round-trip times of an L4S sender.
//!
//! **What it does.** A shallow L4S queue varies by fractions of a millisecond, a classic one by milliseconds. At the end of each round
//! a score rises by lg(v / 750 µs) / 2, where v is the mean deviation of the round-trip time, and by lg(d / 2 ms) / 2 if that is above
//! zero, where d is the excess of the smoothed round-trip time over the minimum. From a score of 8 on, a mark is answered as if the share of
//! marks were at least 0.625 (c - 8), up to 0.625 at 9: nearly as by a classic control.
//!
//! **Source.** Briscoe and Ahmed, "TCP Prague Fall-back on Detection of a Classic ECN AQM", 2019 (arXiv:1911.00710), with the
//! constants of `prague_ecn_fallback` in the kernel of Prague's authors (`net/ipv4/tcp_prague.c`, 0.6; 0.7 has removed it).
//! **Difference.** Logarithms are exact, where the kernel carries the remainders of integer ones. **Limit.** Whatever makes
//! round-trip times vary by milliseconds counts as a classic queue: jitter, and an ARQ.

use lasthop_base::{Duration, Time};

use crate::tcp::filter::Minimum;

/// The deviation and the depth that are typical of neither queue, in microseconds.
const DEVIATION_US: f64 = 750.0;
const DEPTH_US: f64 = 2000.0;
/// The score above which the queue may be classic, and that from which it is.
const DOUBTFUL: f64 = 8.0;
const CLASSIC: f64 = 9.0;
const MOST: f64 = CLASSIC + DOUBTFUL;
/// The share of marks that a classic queue stands for.
const CLASSIC_SHARE: f64 = 0.625;
/// The largest exponent of the gain of the averages, 2⁻ⁿ, and the first.
const FINEST: u32 = 18;
/// Length of the window of the minimum round-trip time, nanoseconds.
const WINDOW: u64 = 300_000_000_000;

/// Evidence of a classic queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassicQueue {
    least: Option<Minimum<u64>>,
    /// Smoothed round-trip time and mean deviation, in microseconds.
    srtt: f64,
    deviation: f64,
    gain_bits: u32,
    score: f64,
}

impl ClassicQueue {
    pub(super) fn new() -> ClassicQueue {
        ClassicQueue { least: None, srtt: 0.0, deviation: 1.0, gain_bits: FINEST, score: 0.0 }
    }

    /// Sets the gain of the averages by the slow-start threshold: 2⁻ⁿ with n = 1 + 1.5 lg, so that they cover some round trips.
    pub(super) fn set_gain(&mut self, segments: f64) {
        let lg = (segments.clamp(1.0, f64::from(u32::MAX)) as u32).ilog2();
        self.gain_bits = (lg + lg / 2 + 1).min(FINEST);
    }

    /// Adds a round-trip time.
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration) {
        let (time, rtt) = (now.as_nanos(), rtt.as_nanos());
        let us = rtt as f64 / 1e3;
        if let Some(least) = &mut self.least {
            least.update(WINDOW, time, rtt);
            let gain = libm::ldexp(1.0, -(self.gain_bits as i32));
            let error = us - self.srtt;
            self.srtt += gain * error;
            self.deviation += gain / 2.0 * (error.abs() - self.deviation);
        } else {
            (self.least, self.srtt) = (Some(Minimum::new(time, rtt)), us);
        }
    }

    /// Ends a round.
    pub(super) fn on_round(&mut self) {
        let Some(least) = self.least else { return };
        let excess = |us: f64, usual: f64| libm::log2(us.max(1.0) / usual) / 2.0;
        let depth = self.srtt - least.get() as f64 / 1e3;
        let rise = excess(self.deviation, DEVIATION_US) + excess(depth, DEPTH_US).max(0.0);
        self.score = (self.score + rise).clamp(0.0, MOST);
    }

    /// The least share of marks with which a mark is answered.
    pub(super) fn least_share(&self) -> f64 {
        CLASSIC_SHARE * (self.score.min(CLASSIC) - DOUBTFUL).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After round-trip times that alternate between `low` and `high`, in microseconds.
    fn after(low: u64, high: u64) -> ClassicQueue {
        let mut queue = ClassicQueue::new();
        queue.set_gain(40.0);
        for n in 0..20_000 {
            let us = if n % 2 == 0 { low } else { high };
            queue.on_rtt(Time::from_nanos(n * 1_000_000), Duration::from_micros(us));
        }
        queue
    }

    /// A deviation of 6 ms and a depth of 6 ms add lg 8 / 2 + lg 3 / 2 = 2.29 a round: the queue is doubtful after four rounds, and
    /// classic then. It takes as long to forget as the score is above the doubt.
    #[test]
    fn a_deep_queue_is_classic_after_four_rounds() {
        let mut queue = after(20_000, 32_000);
        let mut scores = alloc::vec::Vec::new();
        for _ in 0..20 {
            queue.on_round();
            scores.push(queue.score);
        }
        let rise = 1.5 + libm::log2(3.0) / 2.0;
        for (round, score) in (1..).zip(&scores) {
            let expected = (f64::from(round) * rise).min(17.0);
            assert!((score - expected).abs() < 0.05, "round {round}: {score}, not {expected}");
        }
        assert_eq!(queue.least_share(), 0.625);
        queue.score = 8.4;
        assert!((queue.least_share() - 0.25).abs() < 1e-9);
    }

    /// A deviation of 250 µs subtracts lg 3 / 2 a round, whatever the score was.
    #[test]
    fn a_shallow_queue_is_not() {
        let mut queue = after(20_000, 20_500);
        queue.on_round();
        assert_eq!((queue.score, queue.least_share()), (0.0, 0.0));
        queue.score = 17.0;
        queue.on_round();
        assert!((queue.score - 17.0 + libm::log2(3.0) / 2.0).abs() < 0.05, "{}", queue.score);
    }

    /// 1 + 1.5 lg of the threshold: 2⁻⁸ of 40 segments, and 2⁻¹⁸ of an unlimited one.
    #[test]
    fn the_gain_follows_the_threshold() {
        let mut queue = ClassicQueue::new();
        for (segments, bits) in [(40.0, 8), (1.0, 1), (0.2, 1), (100.0, 10), (f64::INFINITY, 18)] {
            queue.set_gain(segments);
            assert_eq!(queue.gain_bits, bits, "{segments} segments");
        }
    }
}
