//! The monotonic clock, the time of network timestamps, and waiting.

use std::cell::Cell;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// What the monotonic clock shows until the thread waits, once it has been read.
#[derive(Clone, Copy)]
struct Held {
    monotonic_ns: Option<u64>,
    /// How far the real-time clock is ahead: in virtual time, nobody sets it.
    ahead_ns: u64,
}

thread_local! {
    /// `None` if clocks are read whenever they are asked for.
    static HELD: Cell<Option<Held>> = const { Cell::new(None) };
}

/// Reads the clock at most once between two waits of this thread. In virtual time, it stands still while a thread runs,
/// and reading it is a system call that costs more than a packet.
pub(crate) fn read_once_per_wait() {
    let realtime_ns = read_now(ClockId::CLOCK_REALTIME);
    let ahead_ns = realtime_ns - read_now(ClockId::CLOCK_MONOTONIC);
    HELD.set(Some(Held { monotonic_ns: None, ahead_ns }));
}

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
    let waited = ppoll(&mut polled, Some(timeout), None);
    time_has_passed();
    match waited {
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

/// Sleeps.
pub(crate) fn pause(duration: Duration) {
    std::thread::sleep(duration);
    time_has_passed();
}

fn time_has_passed() {
    HELD.set(HELD.get().map(|held| Held { monotonic_ns: None, ..held }));
}

fn read(clock: ClockId) -> u64 {
    let Some(mut held) = HELD.get() else { return read_now(clock) };
    let ahead_ns = match clock {
        ClockId::CLOCK_MONOTONIC => 0,
        ClockId::CLOCK_REALTIME => held.ahead_ns,
        _ => return read_now(clock),
    };
    let monotonic_ns = *held.monotonic_ns.get_or_insert_with(|| read_now(ClockId::CLOCK_MONOTONIC));
    HELD.set(Some(held));
    monotonic_ns + ahead_ns
}

fn read_now(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("Linux has this clock");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the monotonic clock of this thread advances without a wait.
    fn runs() -> bool {
        let before_ns = monotonic_ns();
        std::thread::sleep(Duration::from_micros(10));
        monotonic_ns() > before_ns
    }

    #[test]
    fn a_held_clock_advances_with_each_wait() {
        assert!(runs());
        read_once_per_wait();
        assert!(!runs());
        let before_ns = monotonic_ns();
        let written_ns = read(ClockId::CLOCK_REALTIME);
        wait([], before_ns + 20_000).unwrap();
        assert!(monotonic_ns() >= before_ns + 20_000);
        assert!(age_of_timestamp(written_ns) >= 20_000);
        assert!(!runs());
        let before_ns = monotonic_ns();
        pause(Duration::from_micros(20));
        assert!(monotonic_ns() >= before_ns + 20_000);
    }
}
