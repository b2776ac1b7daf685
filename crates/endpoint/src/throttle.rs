//! Rate limit of challenge ACKs and other ACKs in response to unacceptable segments.

use lasthop_base::{Duration, Time};

/// The limit of RFC 5961 section 7, per connection. A shared limit would be a side channel that shows an
/// attacker whether a guess hit another connection.
const LIMIT: u32 = 10;
const INTERVAL: Duration = Duration::from_secs(5);

/// Permits [`LIMIT`] events per [`INTERVAL`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Throttle {
    since: Time,
    count: u32,
}

impl Throttle {
    /// Counts an event; returns whether it is permitted.
    pub(crate) fn permits(&mut self, now: Time) -> bool {
        if now >= self.since + INTERVAL {
            *self = Throttle { since: now, count: 0 };
        }
        self.count += 1;
        self.count <= LIMIT
    }
}
