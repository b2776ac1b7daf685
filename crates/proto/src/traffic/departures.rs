//! The instants at which packets leave, to the nanosecond.

use lasthop_base::{BitRate, Bytes, Duration, Stream, Time};

use super::law::{Law, Periods, at_one_bps};

/// A law's departures, one after the other. Each is the exact instant rounded down: what a division by
/// the rate leaves is added to the next gap, so that nothing adds up over millions of packets.
#[derive(Clone, Debug)]
pub(super) struct Departures {
    law: Law,
    /// What a packet takes at one bit per second.
    at_one_bps: Duration,
    stream: Stream,
    due: Time,
    /// The part of a nanosecond by which the next departure is later than `due`, times the rate.
    rest: u64,
    /// When the burst under way ends.
    burst_end: Time,
}

impl Departures {
    /// The law's, for packets of this size, which suits it; `due` is the first.
    pub(super) fn new(law: Law, size: Bytes, start: Time, stream: Stream) -> Departures {
        let at_one_bps = at_one_bps(size);
        let mut departures =
            Departures { law, at_one_bps, stream, due: start, rest: 0, burst_end: Time::NEVER };
        match law {
            Law::Constant { .. } => {}
            Law::Poisson { .. } => departures.advance(),
            Law::OnOff { on, off, periods, .. } => {
                departures.begin_burst(start, on, periods);
                departures.skip_silence(on, off, periods);
            }
        }
        departures
    }

    /// The next departure; [`Time::NEVER`] if it lies beyond the last instant.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// The packet that was due has left.
    pub(super) fn advance(&mut self) {
        match self.law {
            Law::Constant { rate } => self.move_by(self.at_one_bps, rate),
            Law::Poisson { rate } => {
                let gap = self.stream.exponential(self.at_one_bps);
                self.move_by(gap, rate);
            }
            Law::OnOff { rate, on, off, periods } => {
                self.move_by(self.at_one_bps, rate);
                self.skip_silence(on, off, periods);
            }
        }
    }

    /// Later by what takes `at_one_bps` at one bit per second. No sum is too large: a packet of 64 KiB
    /// takes 2⁴⁹ ns there, a random gap is 37 times its mean at most, and `rest` is below the rate,
    /// which is no more than one packet each nanosecond.
    fn move_by(&mut self, at_one_bps: Duration, rate: BitRate) {
        let total = self.rest + at_one_bps.as_nanos();
        self.due += Duration::from_nanos(total / rate.as_bps());
        self.rest = total % rate.as_bps();
    }

    fn begin_burst(&mut self, at: Time, on: Duration, periods: Periods) {
        (self.due, self.rest) = (at, 0);
        self.burst_end = at + periods.draw(on, &mut self.stream);
    }

    /// A departure that would come after its burst is the first of the next one. A random burst may be
    /// shorter than a nanosecond, and then it has none.
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

    /// At 3 Mb/s it takes 333,333⅓ ns.
    const SIZE: Bytes = Bytes(125);

    fn departures(law: Law, start: Time) -> Departures {
        Departures::new(law, SIZE, start, Streams::new(1, 0).stream("traffic"))
    }

    /// The first `n` instants, in nanoseconds.
    fn instants(law: Law, start: u64, n: usize) -> Vec<u64> {
        let mut departures = departures(law, Time::from_nanos(start));
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

    fn on_off(on: u64, off: u64, periods: Periods) -> Law {
        let ns = Duration::from_nanos;
        Law::OnOff { rate: rate(), on: ns(on), off: ns(off), periods }
    }

    #[test]
    fn a_gap_that_is_no_whole_number_of_nanoseconds_does_not_drift() {
        let found = instants(Law::Constant { rate: rate() }, 7, 1_000_001);
        assert!(found.iter().zip(0..).all(|(&at, k): (&u64, u64)| at == 7 + k * 1_000_000 / 3));
    }

    #[test]
    fn the_first_leaves_at_the_start_unless_it_is_random() {
        for (law, at_once) in [
            (Law::Constant { rate: rate() }, true),
            (on_off(1_000, 1, Periods::Fixed), true),
            (on_off(1_000, 1, Periods::Exponential), true),
            (Law::Poisson { rate: rate() }, false),
        ] {
            assert_eq!(instants(law, 5, 1) == [5], at_once, "{law:?}");
        }
    }

    /// Bursts of three gaps and a nanosecond, of three gaps, and of less than one.
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

    /// Many of these bursts and silences are of no length, and yet no instant has two packets.
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
        for law in [Law::Poisson { rate: rate() }, on_off(1_000_000, 1_000_000, Periods::Exponential)] {
            assert_eq!(instants(law, 0, 1_000), instants(law, 0, 1_000));
            let mut other = Departures::new(law, SIZE, Time::ZERO, Streams::new(2, 0).stream("traffic"));
            other.advance();
            other.advance();
            assert_ne!(other.due().as_nanos(), instants(law, 0, 3)[2]);
        }
    }
}
