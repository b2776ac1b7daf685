//! Departure times of packets, in nanoseconds.

use lasthop_base::{BitRate, Bytes, Duration, Stream, Time};

use super::pattern::{Pattern, Periods, at_one_bps};

/// The departure times of a traffic source. Each is the exact instant rounded down: the remainder of the
/// division by the rate is carried over to the next gap, so rounding errors do not accumulate over millions
/// of packets.
#[derive(Clone, Debug)]
pub(super) struct Departures {
    pattern: Pattern,
    /// Transmission time of a packet at one bit per second.
    at_one_bps: Duration,
    stream: Stream,
    due: Time,
    /// Fraction of a nanosecond by which the exact departure is after `due`, times the rate.
    rest: u64,
    /// End of the current burst.
    burst_end: Time,
}

impl Departures {
    /// Departures of packets of `size`, for which `pattern` is valid; `due` is the first.
    pub(super) fn new(pattern: Pattern, size: Bytes, start: Time, stream: Stream) -> Departures {
        let at_one_bps = at_one_bps(size);
        let mut departures =
            Departures { pattern, at_one_bps, stream, due: start, rest: 0, burst_end: Time::NEVER };
        match pattern {
            Pattern::Constant { .. } => {}
            Pattern::Poisson { .. } => departures.advance(),
            Pattern::OnOff { on, off, periods, .. } => {
                departures.begin_burst(start, on, periods);
                departures.skip_silence(on, off, periods);
            }
        }
        departures
    }

    /// The next departure; [`Time::NEVER`] if it is beyond the range of [`Time`].
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Moves on to the next departure.
    pub(super) fn advance(&mut self) {
        match self.pattern {
            Pattern::Constant { rate } => self.move_by(self.at_one_bps, rate),
            Pattern::Poisson { rate } => {
                let gap = self.stream.exponential(self.at_one_bps);
                self.move_by(gap, rate);
            }
            Pattern::OnOff { rate, on, off, periods } => {
                self.move_by(self.at_one_bps, rate);
                self.skip_silence(on, off, periods);
            }
        }
    }

    /// Postpones the departure by `at_one_bps` divided by the rate. The sum does not overflow: a packet of 64
    /// KiB takes 2⁴⁹ ns at one bit per second, a random gap is at most 37 times its mean, and `rest` is below
    /// the rate, which is at most one packet per nanosecond.
    fn move_by(&mut self, at_one_bps: Duration, rate: BitRate) {
        let total = self.rest + at_one_bps.as_nanos();
        self.due += Duration::from_nanos(total / rate.as_bps());
        self.rest = total % rate.as_bps();
    }

    fn begin_burst(&mut self, at: Time, on: Duration, periods: Periods) {
        (self.due, self.rest) = (at, 0);
        self.burst_end = at + periods.draw(on, &mut self.stream);
    }

    /// Moves a departure after the end of its burst to the start of the next one. A random burst may be
    /// shorter than a nanosecond; it then has no packet.
    fn skip_silence(&mut self, on: Duration, off: Duration, periods: Periods) {
        while self.due >= self.burst_end && self.due < Time::NEVER {
            let silence = periods.draw(off, &mut self.stream);
            self.begin_burst(self.burst_end + silence, on, periods);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lasthop_base::Streams;

    /// Takes 333,333⅓ ns at 3 Mb/s.
    const SIZE: Bytes = Bytes(125);

    fn departures(pattern: Pattern, start: Time) -> Departures {
        Departures::new(pattern, SIZE, start, Streams::new(1, 0).stream("traffic"))
    }

    /// The first `n` departures in nanoseconds.
    fn instants(pattern: Pattern, start: u64, n: usize) -> Vec<u64> {
        let mut departures = departures(pattern, Time::from_nanos(start));
        let mut next = || {
            let due = departures.due();
            departures.advance();
            due.as_nanos()
        };
        (0..n).map(|_| next()).collect()
    }

    fn rate() -> BitRate {
        BitRate::from_bps(3_000_000).unwrap()
    }

    fn on_off(on: u64, off: u64, periods: Periods) -> Pattern {
        let ns = Duration::from_nanos;
        Pattern::OnOff { rate: rate(), on: ns(on), off: ns(off), periods }
    }

    #[test]
    fn a_gap_that_is_no_whole_number_of_nanoseconds_does_not_drift() {
        let found = instants(Pattern::Constant { rate: rate() }, 7, 1_000_001);
        assert!(found.iter().zip(0..).all(|(&at, k): (&u64, u64)| at == 7 + k * 1_000_000 / 3));
    }

    #[test]
    fn the_first_leaves_at_the_start_unless_it_is_random() {
        for (pattern, at_once) in [
            (Pattern::Constant { rate: rate() }, true),
            (on_off(1_000, 1, Periods::Fixed), true),
            (on_off(1_000, 1, Periods::Exponential), true),
            (Pattern::Poisson { rate: rate() }, false),
        ] {
            assert_eq!(instants(pattern, 5, 1) == [5], at_once, "{pattern:?}");
        }
    }

    /// Bursts of three gaps and a nanosecond, of exactly three gaps, and of less than one.
    #[test]
    fn a_burst_begins_with_a_packet_and_none_leaves_at_its_end() {
        let gaps = [0, 333_333, 666_666, 1_000_000];
        for (on, in_a_burst) in [(1_000_001, 4), (1_000_000, 3), (1, 1)] {
            let period = on + 5_000_000;
            let expected: Vec<_> = (0..3)
                .flat_map(|burst| gaps[..in_a_burst].iter().map(move |gap| burst * period + gap))
                .collect();
            assert_eq!(instants(on_off(on, 5_000_000, Periods::Fixed), 0, 3 * in_a_burst), expected);
        }
    }

    /// Many of these bursts and silences have length zero, but no two packets depart at the same instant.
    #[test]
    fn bursts_shorter_than_a_nanosecond_have_no_packet() {
        let found = instants(on_off(1, 1, Periods::Exponential), 0, 10_000);
        assert!(found.is_sorted_by(|earlier, later| earlier < later));
    }

    #[test]
    fn what_never_comes_is_not_waited_for() {
        for periods in [Periods::Fixed, Periods::Exponential] {
            assert_eq!(instants(on_off(1, u64::MAX, periods), 1, 3)[1..], [u64::MAX; 2]);
            let last = Time::from_nanos(u64::MAX - 1);
            let mut departures = departures(on_off(u64::MAX, 1, periods), last);
            departures.advance();
            departures.advance();
            assert_eq!(departures.due(), Time::NEVER);
        }
    }

    #[test]
    fn the_same_stream_gives_the_same_instants() {
        for pattern in [Pattern::Poisson { rate: rate() }, on_off(1_000_000, 1_000_000, Periods::Exponential)]
        {
            assert_eq!(instants(pattern, 0, 1_000), instants(pattern, 0, 1_000));
            let mut other = Departures::new(pattern, SIZE, Time::ZERO, Streams::new(2, 0).stream("traffic"));
            other.advance();
            other.advance();
            assert_ne!(other.due().as_nanos(), instants(pattern, 0, 3)[2]);
        }
    }
}
