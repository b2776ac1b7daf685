//! The latest timestamp of the peer (RFC 7323: TS.Recent), for the echo and for the detection of old segments
//! (section 5: protection against wrapped sequence numbers).

use lasthop_base::{Duration, Time};

/// TS.Recent and when it was set; `None` before the first timestamp. The peer's clock ticks every `TICK_US`
/// microseconds: one in simulations, about a thousand on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentTimestamp<const TICK_US: u64 = 1>(Option<(u32, Time)>);

impl<const TICK_US: u64> RecentTimestamp<TICK_US> {
    /// How long a timestamp remains comparable: half the span of the clock (RFC 7323 section 5.5: 24 days for a clock
    /// of 1 ms).
    const VALID_FOR: Duration = Duration::from_micros(TICK_US << 31);

    /// The timestamp of a SYN that arrived at `now`, if it carried one.
    pub fn of_syn(now: Time, value: Option<u32>) -> RecentTimestamp<TICK_US> {
        RecentTimestamp(value.map(|value| (value, now)))
    }

    /// The timestamp to echo; zero before the first timestamp (RFC 7323 section 3.2).
    #[inline]
    pub fn echo(&self) -> u32 {
        self.0.map_or(0, |(recent, _)| recent)
    }

    /// Stores `value`, unless it is older: packets may be reordered (RFC 7323 section 4.3).
    #[inline]
    pub fn note(&mut self, now: Time, value: u32) {
        if self.lead(now, value).is_none() {
            self.0 = Some((value, now));
        }
    }

    /// By how much `value` is older than TS.Recent; `None` if it is not older, or if TS.Recent is too old to
    /// compare.
    #[inline]
    pub fn lead(&self, now: Time, value: u32) -> Option<Duration> {
        let (recent, at) = self.0?;
        let lead = recent.wrapping_sub(value) as i32;
        (lead > 0 && now.since(at) < Self::VALID_FOR).then(|| Duration::from_micros(lead as u64 * TICK_US))
    }
}

/// The timestamp clock: microseconds, modulo 2³² (RFC 7323 section 5.4 asks for 1 ms to 1 s; a finer clock
/// wraps after 71 minutes, far beyond the lifetime of a segment).
pub(super) fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000) as u32
}

/// Whether a timestamp is from before a segment was sent at `sent_at`, so that an echo of it is not the segment's.
pub(super) fn is_before(echo: u32, sent_at: Time) -> bool {
    (echo.wrapping_sub(timestamp(sent_at)) as i32) < 0
}
