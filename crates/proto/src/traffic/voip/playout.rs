//! The playout buffer of a receiver of voice.

use lasthop_base::{Duration, Time};

use super::Playout;
use super::adaptive::Adaptive;

/// Counters of a playout buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlayoutStats {
    /// Packets played.
    pub played: u64,
    /// Packets that arrived after their time.
    pub late: u64,
    /// Sum over the packets played of the time from their sending until they were played.
    pub total_delay: Duration,
    /// Packets not played, because lost or late, with lower numbers than the highest one received.
    pub missing: u64,
    /// Runs of consecutive [missing](PlayoutStats::missing) packets.
    pub missing_runs: u64,
}

impl PlayoutStats {
    /// The difference to `earlier` counters. Packets that were missing then may have been played since.
    pub fn since(&self, earlier: &PlayoutStats) -> PlayoutStats {
        PlayoutStats {
            played: self.played - earlier.played,
            late: self.late - earlier.late,
            total_delay: self.total_delay - earlier.total_delay,
            missing: self.missing.saturating_sub(earlier.missing),
            missing_runs: self.missing_runs.saturating_sub(earlier.missing_runs),
        }
    }

    /// The burst ratio of ITU-T G.107: the mean length of a run of missing packets over 1/(1 - p), that of independent
    /// losses with the same share p. `None` without losses, or if all are lost.
    pub fn burst_ratio(&self) -> Option<f64> {
        let positions = (self.played + self.missing) as f64;
        let mean_run = self.missing as f64 / self.missing_runs as f64;
        (self.missing_runs > 0 && self.played > 0).then(|| mean_run * self.played as f64 / positions)
    }
}

/// A playout buffer (ITU-T G.1020, section 7.2). A packet that arrives after its playout delay is late, and its speech is
/// missing.
///
/// The playout delay of a fixed buffer is the least network delay so far plus its depth. A slow first packet therefore does
/// not delay the rest of the call.
#[derive(Clone, Debug)]
pub struct PlayoutBuffer {
    delay: PlayoutDelay,
    least: Duration,
    /// One more than the highest packet number received.
    next: u64,
    /// Whether each of the 64 packets before `next` was played, the newest in bit 0. Longer than the buffer: a packet that
    /// leaves the window can no longer be played.
    window: u64,
    /// Whether the packet before the window was played.
    before: bool,
    /// The counters of the packets before the window.
    settled: PlayoutStats,
}

#[derive(Clone, Debug)]
enum PlayoutDelay {
    Fixed { depth: Duration },
    Adaptive(Adaptive),
}

impl PlayoutBuffer {
    /// An empty buffer.
    pub fn new(playout: Playout) -> PlayoutBuffer {
        // Packets before the first count as played.
        let (window, before) = (u64::MAX, true);
        PlayoutBuffer {
            delay: match playout {
                Playout::Fixed(depth) => PlayoutDelay::Fixed { depth },
                Playout::Adaptive => PlayoutDelay::Adaptive(Adaptive::new()),
            },
            least: Duration::MAX,
            next: 0,
            window,
            before,
            settled: PlayoutStats::default(),
        }
    }

    /// The counters. Packets that may still arrive count as missing.
    pub fn stats(&self) -> PlayoutStats {
        let mut all = self.clone();
        (0..u64::BITS).for_each(|_| all.shift(true));
        all.settled
    }

    /// Processes packet number `seq`, which was sent at `sent` and took `delay`.
    pub fn receive(&mut self, seq: u64, sent: Time, delay: Duration) {
        self.least = self.least.min(delay);
        let playout = match &mut self.delay {
            PlayoutDelay::Fixed { depth } => self.least + *depth,
            PlayoutDelay::Adaptive(adaptive) => adaptive.playout(seq, sent, delay, self.least),
        };
        let ahead = (seq + 1).saturating_sub(self.next);
        let within = ahead.min(u64::from(u64::BITS));
        (0..within).for_each(|_| self.shift(false));
        if ahead > within {
            // The packets between the old window and the new one.
            self.settled.missing += ahead - within;
            self.settled.missing_runs += u64::from(self.before);
            self.before = false;
        }
        self.next += ahead;
        let age = self.next - 1 - seq;
        let bit = if age < u64::from(u64::BITS) { 1 << age } else { 0 };
        if self.window & bit != 0 {
            // A copy of a packet that was played.
        } else if delay > playout || bit == 0 {
            self.settled.late += 1;
        } else {
            self.window |= bit;
            self.settled.played += 1;
            self.settled.total_delay += playout;
        }
    }

    /// Settles the oldest packet of the window, and appends a new one.
    fn shift(&mut self, played: bool) {
        let settled = self.window >> (u64::BITS - 1) != 0;
        self.settled.missing += u64::from(!settled);
        self.settled.missing_runs += u64::from(self.before && !settled);
        self.before = settled;
        self.window = self.window << 1 | u64::from(played);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The counters after packets with these numbers and delays in milliseconds, with a buffer of 60 ms.
    fn after(packets: impl IntoIterator<Item = (u64, u64)>) -> PlayoutStats {
        let mut buffer = PlayoutBuffer::new(Playout::Fixed(ms(60)));
        packets.into_iter().for_each(|(seq, delay)| buffer.receive(seq, Time::ZERO, ms(delay)));
        buffer.stats()
    }

    /// By hand: the playout delays are 100, 100, 90, 90 and 90 ms; the fourth and the sixth packet are late.
    #[test]
    fn packets_are_played_at_the_least_delay_and_the_depth() {
        let found = after([(0, 40), (1, 100), (2, 30), (3, 91), (4, 90), (5, 100), (6, 35)]);
        let total_delay = ms(100 + 100 + 90 + 90 + 90);
        assert_eq!(found, PlayoutStats { played: 5, late: 2, total_delay, missing: 2, missing_runs: 2 });
    }

    /// The second packet, faster than the first, sets the playout delay from then on.
    #[test]
    fn a_slow_first_packet_delays_itself_only() {
        let found = after([(0, 500), (1, 20), (2, 20)]);
        assert_eq!((found.played, found.total_delay), (3, ms(560 + 80 + 80)));
    }

    #[test]
    fn gaps_are_runs_of_missing_packets() {
        // 1, 2, 4 and 6 to 9 are missing.
        let found = after([(0, 1), (3, 1), (5, 1), (10, 1)]);
        assert_eq!((found.played, found.missing, found.missing_runs, found.late), (4, 7, 3, 0));
        // Mean run 7/3 over 11/4.
        assert_eq!(found.burst_ratio(), Some(7.0 / 3.0 * 4.0 / 11.0));
        assert_eq!(after([(0, 1), (1, 1)]).burst_ratio(), None);
        // Packets before the first arrival are missing.
        assert_eq!(after([(2, 1)]).missing_runs, 1);
    }

    #[test]
    fn long_gaps_are_one_run() {
        for gap in [62, 63, 64, 65, 66, 127, 128, 129, 5_000] {
            let found = after([(0, 1), (1, 1), (2 + gap, 1), (3 + gap, 1), (5 + gap, 1)]);
            assert_eq!((found.played, found.missing, found.missing_runs), (5, gap + 1, 2), "{gap}");
        }
    }

    #[test]
    fn reordered_packets_are_played_in_time_and_copies_once() {
        let found = after([(0, 10), (2, 10), (1, 50), (2, 20), (2, 500), (5, 10), (4, 71), (3, 70)]);
        assert_eq!((found.played, found.late, found.missing, found.missing_runs), (5, 1, 1, 1));
        // Older than the window.
        let found = after([(0, 10), (100, 10), (1, 10)]);
        assert_eq!((found.played, found.late, found.missing, found.missing_runs), (2, 1, 99, 1));
    }

    /// Independent losses have a burst ratio of one; every second packet lost has half of it.
    #[test]
    fn the_burst_ratio_of_independent_losses_is_one() {
        let mut stream = lasthop_base::Streams::new(1, 0).stream("losses");
        let kept: alloc::vec::Vec<_> =
            (0..200_000).filter(|_| stream.uniform() >= 0.1).map(|n| (n, 1)).collect();
        let ratio = after(kept).burst_ratio().unwrap();
        // 18,000 runs with a standard deviation of a third of their mean.
        assert!((ratio - 1.0).abs() < 4.0 * 0.33 / 18_000_f64.sqrt(), "{ratio}");
        let halved = after((0..1_000).map(|n| (2 * n, 1)));
        assert!((halved.burst_ratio().unwrap() - 0.5).abs() < 1e-3);
    }

    #[test]
    fn what_was_counted_before_is_left_out() {
        let of = |factor: u64| PlayoutStats {
            played: 2 * factor,
            late: 3 * factor,
            total_delay: ms(5 * factor),
            missing: 7 * factor,
            missing_runs: 11 * factor,
        };
        assert_eq!(of(10).since(&of(3)), of(7));
    }
}
