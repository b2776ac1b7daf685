//! The rate limit of ACKs that answer unacceptable segments.

use lasthop_base::{Duration, Time};

/// The limit that RFC 5961 section 7 suggests, here for each connection: a limit that connections share tells an attacker
/// whether a guess met one of them.
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
