//! Pauses between wake-ups, as the interrupt moderation of a network card.

use std::time::Duration;

/// The mean time between events below which the thread pauses.
const DENSE_NS: u64 = 25_000;

/// The length of a pause.
const PAUSE: Duration = Duration::from_micros(100);

/// Upper bound of one sample of the time between events, so that a silence is forgotten soon.
const SPARSE_NS: u64 = 100_000;

/// Chooses when the thread pauses before it handles all that is due together: a wake-up costs more than a packet, for
/// the programs at both ends as well. Slow links have no pauses.
#[derive(Debug)]
pub(crate) struct Moderation {
    /// Moving mean of the time between events, over about four wake-ups, in nanoseconds.
    spacing_ns: u64,
    /// Start of the counting window, and its events.
    since_ns: u64,
    events: u64,
}

impl Moderation {
    pub(crate) fn new() -> Moderation {
        Moderation { spacing_ns: SPARSE_NS, since_ns: 0, events: 0 }
    }

    /// Counts an event: a packet that was read or written.
    pub(crate) fn count(&mut self) {
        self.events += 1;
    }

    /// Takes note of the events up to `now_ns`, for which the thread has woken up once.
    pub(crate) fn wake(&mut self, now_ns: u64) {
        let spacing_ns = (now_ns - self.since_ns) / self.events.max(1);
        self.spacing_ns = (3 * self.spacing_ns + spacing_ns.min(SPARSE_NS)) / 4;
        (self.since_ns, self.events) = (now_ns, 0);
    }

    /// The pause to be made now; `None` while events are sparse.
    pub(crate) fn pause(&self) -> Option<Duration> {
        (self.spacing_ns < DENSE_NS).then_some(PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wakes up `times` times, each time for `events`, every `period_ns`.
    fn after(moderation: &mut Moderation, times: u64, events: u64, period_ns: u64) -> Option<Duration> {
        for _ in 0..times {
            (0..events).for_each(|_| moderation.count());
            moderation.wake(moderation.since_ns + period_ns);
        }
        moderation.pause()
    }

    #[test]
    fn dense_events_have_pauses_between() {
        let mut moderation = Moderation::new();
        assert_eq!(moderation.pause(), None);
        // 84,000 packets a second, each of which is read and written.
        assert_eq!(after(&mut moderation, 20, 17, 100_000), Some(PAUSE));
        // TCP at 100 Mb/s: a segment each 120 us, and half an acknowledgement, all read and written.
        assert_eq!(after(&mut moderation, 20, 3, 120_000), None);
    }

    #[test]
    fn neither_a_burst_nor_a_silence_counts_for_long() {
        let mut moderation = Moderation::new();
        after(&mut moderation, 20, 2, 1_000_000);
        // Ten packets at once, on a link of 10 Mb/s.
        assert_eq!(after(&mut moderation, 1, 10, 20_000), None);
        // An hour, and then many packets.
        after(&mut moderation, 1, 1, 3_600_000_000_000);
        assert_eq!(after(&mut moderation, 20, 10, 50_000), Some(PAUSE));
        // They have ended: nothing happens.
        assert_eq!(after(&mut moderation, 8, 0, 100_000), None);
    }
}
