//! The host behind the table of functions that packetdrill calls.
//!
//! packetdrill has two threads: the main one, which injects and expects packets and lets time pass, and one for system calls
//! that block. The latter waits until what the former does lets it go on.

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

/// How much time passes with each look at the clock: packetdrill waits for an instant by looking.
const LOOK: Duration = Duration::from_micros(1);

/// How long packetdrill waits for a packet, or a call on the main thread for what it needs.
const LONGEST_WAIT: Duration = Duration::from_secs(86_400);

/// How long the main thread waits for a call that can go on: longer only if that thread was ended.
const LONGEST_TURN: Real = Real::from_secs(1);

/// A host for two threads.
#[derive(Debug)]
pub struct Interface {
    state: Mutex<State>,
    /// Notified when the other thread has something to do.
    turn: Condvar,
    main: ThreadId,
}

#[derive(Debug)]
struct State {
    host: Host,
    /// What a call on the other thread waits for.
    blocked: Option<Wait>,
    /// Whether a call on the other thread goes on, and has not yet looked at the clock at its end.
    is_returning: bool,
    is_closed: bool,
}

impl Interface {
    /// An interface whose main thread is the caller's.
    pub fn new(flags: &Flags) -> Interface {
        let state = State { host: Host::new(flags), blocked: None, is_returning: false, is_closed: false };
        Interface { state: Mutex::new(state), turn: Condvar::new(), main: thread::current().id() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A call that panicked has said so, and the script ends.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_main(&self) -> bool {
        thread::current().id() == self.main
    }

    /// Performs a system call that does not block.
    ///
    /// # Errors
    /// Those of `act`.
    pub fn call<T>(&self, act: impl FnOnce(&mut Host) -> Result<T, Errno>) -> Result<T, Errno> {
        let mut state = self.lock();
        let result = act(&mut state.host);
        drop(self.let_go_on(state));
        result
    }

    /// Performs a system call that is repeated while it returns `EAGAIN`, as soon as what it waits for has come.
    ///
    /// # Errors
    /// Those of `act`; `EDEADLK` on the main thread if nothing can come, and `EINTR` at the end of the script.
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
                    drop(self.let_go_on(state));
                    return result;
                }
            }
        }
    }

    /// Lets a blocked call go on if it can, and waits until it has ended or blocks again.
    fn let_go_on<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
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

    /// The time; a look takes a moment.
    pub fn look(&self) -> Time {
        let mut state = self.lock();
        if state.is_returning && !self.is_main() {
            // The end of a call that has blocked. Before a call, its thread waits for the time of the call.
            state.is_returning = false;
            self.turn.notify_all();
            return state.host.now();
        }
        let to = state.host.after(LOOK);
        while !state.host.advance(to) {}
        self.let_go_on(state).host.now()
    }

    /// Lets time pass.
    pub fn sleep(&self, span: Duration) {
        let mut state = self.lock();
        let end = state.host.after(span);
        loop {
            let deadline = state.blocked.as_ref().map_or(Time::NEVER, Wait::deadline);
            let is_there = state.host.advance(end.min(deadline));
            state = self.let_go_on(state);
            if is_there && deadline >= end {
                return;
            }
        }
    }

    /// Processes a packet.
    pub fn inject(&self, bytes: &[u8]) {
        let mut state = self.lock();
        state.host.receive(bytes);
        drop(self.let_go_on(state));
    }

    /// The next packet that the host sends, and when; lets time pass until then. `None` if it sends none.
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
            state = self.let_go_on(state);
        }
    }

    /// Whether the descriptor is one of the host's.
    pub fn owns(&self, fd: Fd) -> bool {
        self.lock().host.owns(fd)
    }

    /// Whether calls of the socket block.
    pub fn blocks(&self, fd: Fd) -> bool {
        self.lock().host.blocks(fd)
    }

    /// Ends a call that is blocked.
    pub fn shut(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.blocked = None;
        self.turn.notify_all();
    }
}
