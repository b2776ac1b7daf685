//! The timestamps of a connection (RFC 7323).

use lasthop_base::Time;
use lasthop_proto::tcp::{RecentTimestamp, Segment, SeqNum, Timestamps};

/// The tick of both clocks on the wire in microseconds (RFC 7323 section 5.4: 1 ms to 1 s).
const TICK_US: u64 = 1_000;

/// Our timestamp clock, and the latest timestamp of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    offset: u32,
    /// Start of the connection, the lower bound of valid echoes.
    began: Time,
    recent: RecentTimestamp<TICK_US>,
}

fn ticks(now: Time) -> u64 {
    now.as_nanos() / (TICK_US * 1_000)
}

impl Clock {
    /// A clock with a secret `offset`, for a connection that begins `now`.
    pub(crate) fn new(now: Time, offset: u32) -> Clock {
        Clock { offset, began: now, recent: RecentTimestamp::default() }
    }

    /// Stores the timestamp of the peer's SYN.
    pub(crate) fn note_syn(&mut self, now: Time, syn: &Segment) {
        self.recent = RecentTimestamp::of_syn(now, syn.timestamps.map(|timestamps| timestamps.value));
    }

    /// The timestamps option of a segment sent `now`.
    pub(crate) fn stamp(&self, now: Time) -> Timestamps {
        Timestamps { value: (ticks(now) as u32).wrapping_add(self.offset), echo: self.recent.echo() }
    }

    /// Whether the segment is older than one that has moved the left edge (RFC 7323 section 5.3, R1).
    pub(crate) fn is_outdated(&self, now: Time, segment: &Segment) -> bool {
        segment.timestamps.is_some_and(|timestamps| self.recent.lead(now, timestamps.value).is_some())
    }

    /// Stores the timestamp of an acceptable segment that begins at or before `last_ack_sent` (RFC 7323 section 4.3).
    pub(crate) fn note(&mut self, now: Time, segment: &Segment, last_ack_sent: SeqNum) {
        if let Some(timestamps) = segment.timestamps.filter(|_| segment.seq <= last_ack_sent) {
            self.recent.note(now, timestamps.value);
        }
    }

    /// Whether `syn` was sent after every segment of this connection (RFC 6191).
    pub(crate) fn is_older_than(&self, now: Time, syn: &Segment) -> bool {
        let Some(timestamps) = syn.timestamps else { return false };
        timestamps.value != self.recent.echo() && self.recent.lead(now, timestamps.value).is_none()
    }

    /// The timestamps of an arriving segment on the clock of the [`Sender`](lasthop_proto::tcp::Sender), which counts
    /// microseconds; `None` if this connection never sent the echoed value. The result is the end of the echoed tick, or
    /// `now` if earlier, so that a retransmission within the tick of its original is not mistaken for the original.
    pub(crate) fn translate(&self, now: Time, segment: &Segment) -> Option<Timestamps> {
        let echo = segment.timestamps?.echo;
        let age = u64::from((ticks(now) as u32).wrapping_add(self.offset).wrapping_sub(echo));
        let tick = ticks(now).checked_sub(age).filter(|&tick| tick >= ticks(self.began))?;
        let end_us = ((tick + 1) * TICK_US - 1).min(now.as_nanos() / 1_000);
        Some(Timestamps { value: 0, echo: end_us as u32 })
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::Duration;

    use super::*;

    fn echo_of(value: u32) -> Segment {
        Segment { timestamps: Some(Timestamps { value: 1, echo: value }), ..Segment::default() }
    }

    #[test]
    fn echoes_are_translated_to_the_end_of_their_tick() {
        // The clock wraps within the connection.
        let began = Time::from_nanos(5_300_000);
        let clock = Clock::new(began, u32::MAX - 5);
        let sent = clock.stamp(began).value;
        let translated = |now| clock.translate(now, &echo_of(sent)).map(|timestamps| timestamps.echo);
        assert_eq!(translated(began + Duration::from_millis(40)), Some(5_999));
        assert_eq!(translated(began + Duration::from_micros(100)), Some(5_400), "not in the future");
        for bogus in [sent.wrapping_sub(1), sent.wrapping_add(41), sent.wrapping_add(1 << 31)] {
            assert_eq!(clock.translate(began + Duration::from_millis(40), &echo_of(bogus)), None);
        }
    }
}
