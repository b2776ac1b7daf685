//! Simulated time as `Instant`s.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use lasthop_base::Time;

/// The instant of time zero. Any one will do: QUIC only subtracts instants.
fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// The instant of a simulated time.
pub(crate) fn instant(time: Time) -> Instant {
    origin() + Duration::from_nanos(time.as_nanos())
}

/// The simulated time of an instant.
pub(crate) fn time(instant: Instant) -> Time {
    let since = instant.saturating_duration_since(origin());
    Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}
