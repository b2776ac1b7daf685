//! The monotonic clock, the time of network timestamps, and waiting.

use std::io;
use std::os::fd::BorrowedFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::sys::time::TimeSpec;
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

/// Waits until a socket has something to read, or for the time `until_ns` of the monotonic clock; returns whether one has.
pub(crate) fn wait<const N: usize>(sockets: [BorrowedFd<'_>; N], until_ns: u64) -> io::Result<bool> {
    let left_ns = until_ns.saturating_sub(monotonic_ns());
    let timeout = TimeSpec::new((left_ns / 1_000_000_000) as i64, (left_ns % 1_000_000_000) as i64);
    let mut polled = sockets.map(|socket| PollFd::new(socket, PollFlags::POLLIN));
    match ppoll(&mut polled, Some(timeout), None) {
        Ok(_) => {}
        Err(Errno::EINTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let found = polled.map(|polled| polled.revents().unwrap_or(PollFlags::empty()));
    for (socket, _) in sockets.iter().zip(found).filter(|(_, found)| found.contains(PollFlags::POLLERR)) {
        // Reads a pending error of the socket; otherwise `poll` returns at once.
        let _ = getsockopt(socket, sockopt::SocketError);
    }
    Ok(found.iter().any(|found| found.contains(PollFlags::POLLIN)))
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}
