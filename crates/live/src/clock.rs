//! The monotonic clock, and the time of network timestamps.

use nix::time::{ClockId, clock_gettime};

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Processor time of this thread in nanoseconds.
pub(crate) fn thread_cpu_ns() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// The age of a packet timestamp, which is on the real-time clock; 0 if that clock was set meanwhile.
pub(crate) fn age_of_timestamp(timestamp_ns: u64) -> u64 {
    /// Upper bound of the time in a socket's buffer.
    const LONGEST: u64 = 10_000_000_000;
    let age = read(ClockId::CLOCK_REALTIME).saturating_sub(timestamp_ns);
    if age < LONGEST { age } else { 0 }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
