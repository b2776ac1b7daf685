//! The host behind the function table of packetdrill.
//!
//! packetdrill has two threads: the main thread injects and expects packets and advances time, a second
//! thread makes the blocking system calls. A blocked call waits until an action of the main thread unblocks
//! it.

mod pointers;
mod table;
mod transfer;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration as Real;

use lasthop_base::{Duration, Time};
use nix::errno::Errno;

use crate::flags::Flags;
use crate::host::Host;
use crate::socket::{Fd, Wait};

pub use table::packetdrill_interface_init;

/// Time advance per reading of the clock, since packetdrill busy-waits on the clock.
const CLOCK_STEP: Duration = Duration::from_micros(1);

/// Limit of virtual time for a packet, or for a blocking call on the main thread.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// Limit of real time for an unblocked call to finish; exceeded only if its thread was killed.
const LONGEST_TURN: Real = Real::from_secs(1);

/// A host shared by two threads.
#[derive(Debug)]
pub struct Interface {
    state: Mutex<State>,
    /// Signals the other thread.
    turn: Condvar,
    main: ThreadId,
}

#[derive(Debug)]
struct State {
    host: Host,
    /// The condition for which a call on the other thread blocks.
    blocked: Option<Wait>,
    /// Whether a call on the other thread was unblocked and has not yet read the clock after its return.
    is_returning: bool,
    is_closed: bool,
}

impl Interface {
    /// An interface with the current thread as the main thread.
    pub fn new(flags: &Flags) -> Interface {
        let state = State { host: Host::new(flags), blocked: None, is_returning: false, is_closed: false };
        Interface { state: Mutex::new(state), turn: Condvar::new(), main: thread::current().id() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic the message is printed and the script ends, so poisoning is ignored.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_main(&self) -> bool {
        thread::current().id() == self.main
    }

    /// Performs a system call that does not block.
    ///
    /// # Errors
    /// The errors of `act`.
    pub fn call<T>(&self, act: impl FnOnce(&mut Host) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut state = self.lock();
        let result = act(&mut state.host);
        drop(self.unblock(state));
        result
    }

    /// Performs a blocking system call: repeats `act` while it returns `EAGAIN`, whenever its condition
    /// holds.
    ///
    /// # Errors The errors of `act`; `EDEADLK` on the main thread if nothing can unblock the call; `EINTR` at
    /// the end of the script.
    pub fn call_blocking<T>(
        &self,
        wait: &Wait,
        mut act: impl FnMut(&mut Host) -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        let mut state = self.lock();
        loop {
            match act(&mut state.host) {
                Err(Errno::EAGAIN) if self.is_main() => {
                    let until = state.host.after(LONGEST_WAIT).min(wait.deadline());
                    while !state.host.is_ready(wait) {
                        if state.host.next_wakeup() == Time::NEVER && until != wait.deadline() {
                            return Err(Errno::EDEADLK);
                        }
                        let is_late = state.host.advance(until);
                        if is_late && !state.host.is_ready(wait) {
                            return Err(Errno::EDEADLK);
                        }
                    }
                }
                Err(Errno::EAGAIN) => {
                    state.blocked = Some(wait.clone());
                    state.is_returning = false;
                    self.turn.notify_all();
                    while state.blocked.is_some() {
                        state = self.turn.wait(state).unwrap_or_else(PoisonError::into_inner);
                    }
                    if state.is_closed {
                        return Err(Errno::EINTR);
                    }
                }
                result => {
                    drop(self.unblock(state));
                    return result;
                }
            }
        }
    }

    /// Unblocks a call whose condition holds, and waits until it returns or blocks again.
    fn unblock<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let is_ready = state.blocked.as_ref().is_some_and(|wait| state.host.is_ready(wait));
        if !is_ready || !self.is_main() {
            return state;
        }
        state.blocked = None;
        state.is_returning = true;
        self.turn.notify_all();
        let waited = self.turn.wait_timeout_while(state, LONGEST_TURN, |state| state.is_returning);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Reads the clock, which advances by a small step.
    pub fn read_clock(&self) -> Time {
        let mut state = self.lock();
        if state.is_returning && !self.is_main() {
            // A reading on the other thread follows the return of a blocking call.
            state.is_returning = false;
            self.turn.notify_all();
            return state.host.now();
        }
        let to = state.host.after(CLOCK_STEP);
        while !state.host.advance(to) {}
        self.unblock(state).host.now()
    }

    /// Advances time by `span`.
    pub fn sleep(&self, span: Duration) {
        let mut state = self.lock();
        let end = state.host.after(span);
        loop {
            let deadline = state.blocked.as_ref().map_or(Time::NEVER, Wait::deadline);
            let is_there = state.host.advance(end.min(deadline));
            state = self.unblock(state);
            if is_there && deadline >= end {
                return;
            }
        }
    }

    /// Processes a packet.
    pub fn inject(&self, bytes: &[u8]) {
        let mut state = self.lock();
        state.host.receive(bytes);
        drop(self.unblock(state));
    }

    /// Advances time to the next packet sent by the host; returns the packet and its time. `None` if there is
    /// none.
    pub fn sniff(&self) -> Option<(Time, Vec<u8>)> {
        let mut state = self.lock();
        let longest = state.host.after(LONGEST_WAIT);
        loop {
            if let Some(sent) = state.host.take_sent() {
                return Some(sent);
            }
            let next = state.host.next_wakeup();
            if next > longest {
                return None;
            }
            state.host.advance(next);
            state = self.unblock(state);
        }
    }

    /// Whether the descriptor is a socket of the host.
    pub fn owns(&self, fd: Fd) -> bool {
        self.lock().host.owns(fd)
    }

    /// Whether system calls on the socket block.
    pub fn blocks(&self, fd: Fd) -> bool {
        self.lock().host.blocks(fd)
    }

    /// Interrupts a blocked call.
    pub fn shut(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.blocked = None;
        self.turn.notify_all();
    }
}
