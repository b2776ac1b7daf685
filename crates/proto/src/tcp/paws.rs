//! The latest timestamp of the peer (RFC 7323: TS.Recent), for the echo and for the detection of old segments
//! (section 5: protection against wrapped sequence numbers).

use lasthop_base::{Duration, Time};

/// How long a timestamp remains comparable: half the span of the clock (RFC 7323 section 5.5: 24 days for a
/// clock of 1 ms; this one counts microseconds).
const VALID_FOR: Duration = Duration::from_micros(1 << 31);

/// TS.Recent and when it was set; `None` before the first timestamp.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecentTimestamp(Option<(u32, Time)>);

impl RecentTimestamp {
    /// The timestamp of a SYN that arrived at `now`, if it carried one.
    pub(super) fn of_syn(now: Time, value: Option<u32>) -> RecentTimestamp {
        RecentTimestamp(value.map(|value| (value, now)))
    }

    /// The timestamp to echo; zero before the first timestamp (RFC 7323 section 3.2).
    #[inline]
    pub(super) fn echo(&self) -> u32 {
        self.0.map_or(0, |(recent, _)| recent)
    }

    /// Stores `value`, unless it is older: packets may be reordered (RFC 7323 section 4.3).
    #[inline]
    pub(super) fn note(&mut self, now: Time, value: u32) {
        if self.lead(now, value).is_none() {
            self.0 = Some((value, now));
        }
    }

    /// By how much `value` is older than TS.Recent; `None` if it is not older, or if TS.Recent is too old to
    /// compare.
    #[inline]
    pub(super) fn lead(&self, now: Time, value: u32) -> Option<Duration> {
        let (recent, at) = self.0?;
        let lead = recent.wrapping_sub(value) as i32;
        (lead > 0 && now.since(at) < VALID_FOR).then(|| Duration::from_micros(lead as u64))
    }
}
