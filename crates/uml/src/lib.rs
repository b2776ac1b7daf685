//! Linux kernels in virtual time, one for each host: their common [`Calendar`], and their network cards.
//!
//! A kernel is User Mode Linux with `time-travel=ext`, a process. It asks the calendar for the times at which it wants to run,
//! and one kernel runs at a time. Its network card is a device of vhost-user, whose other end is here:
//!
//! ```text
//! guest 0 ── DIR/time ── Calendar ── DIR/time ── guest 1
//!         ── DIR/net ─── card  │ card ─ DIR/net ──
//!                           Network: the frames in between, and its own events
//! ```
//!
//! A guest is not trusted: its memory, which is a file, is read and written by system calls at places that are checked, and
//! what it may not say ends the run with an error. There is no unsafe code. Linux only.

#![cfg(target_os = "linux")]

mod calendar;
mod device;
mod guest;
mod memory;
mod queue;
mod request;
mod time;

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

pub use calendar::{Calendar, Cards, Network, Outcome, Settings};

/// The error of a guest that does not keep to a protocol.
fn broken(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// How long a guest may take to send the rest of a message, or to read one, in real time.
const PATIENCE: Duration = Duration::from_secs(20);

/// A socket that does not wait for ever for a guest that stops within a message.
fn patient(socket: UnixStream) -> io::Result<UnixStream> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    Ok(socket)
}
