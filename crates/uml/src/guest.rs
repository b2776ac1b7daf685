//! A guest as the calendar knows it: its sockets, and what it asked for.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use lasthop_base::Time;

use crate::patient;
use crate::time::Message;

/// A guest's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It has not begun.
    Absent,
    /// It runs, and may go on before this time.
    Runs(Time),
    /// It waits.
    Waits,
}

/// One guest.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) listeners: [UnixListener; 2],
    pub(crate) time: Option<UnixStream>,
    pub(crate) card: Option<UnixStream>,
    pub(crate) state: State,
    /// When it began: its clock showed zero.
    pub(crate) origin: Time,
    /// When it wants to run.
    pub(crate) request: Time,
    /// Whether it uses the shared memory, which is known once it has said something.
    pub(crate) shares_time: bool,
    pub(crate) is_known: bool,
    /// Numbers of the last message to it, and of the last that it confirmed.
    pub(crate) sent: u32,
    pub(crate) confirmed: u32,
    pub(crate) has_ended: bool,
}

impl Guest {
    pub(crate) fn new(directory: &Path) -> io::Result<Guest> {
        let listen = |name| UnixListener::bind(directory.join(name));
        Ok(Guest {
            listeners: [listen("time")?, listen("net")?],
            time: None,
            card: None,
            state: State::Absent,
            origin: Time::ZERO,
            request: Time::NEVER,
            shares_time: false,
            is_known: false,
            sent: 0,
            confirmed: 0,
            has_ended: false,
        })
    }

    /// A time on its clock.
    pub(crate) fn local(&self, time: Time) -> u64 {
        time.since(self.origin).as_nanos()
    }

    /// A time of its clock; those that Linux means as never are that.
    pub(crate) fn global(&self, local_ns: u64) -> Time {
        let time = local_ns.saturating_add(self.origin.as_nanos());
        if time >= i64::MAX as u64 { Time::NEVER } else { Time::from_nanos(time) }
    }

    /// The socket of its time.
    pub(crate) fn stream(&self) -> io::Result<&UnixStream> {
        self.time.as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Reads a message.
    pub(crate) fn read(&self) -> io::Result<Message> {
        let mut bytes = [0; Message::LEN];
        self.stream()?.read_exact(&mut bytes)?;
        Ok(Message::parse(&bytes))
    }

    /// Sends a message.
    pub(crate) fn write(&self, operation: u32, sequence: u32, time_ns: u64) -> io::Result<()> {
        self.stream()?.write_all(&Message { operation, sequence, time_ns }.bytes())
    }

    /// Sends a message with a number of its own.
    pub(crate) fn tell(&mut self, operation: u32, time: Time) -> io::Result<()> {
        self.sent = self.sent.wrapping_add(1);
        self.write(operation, self.sent, self.local(time))
    }
}

/// Accepts the connection that waits.
pub(crate) fn accept(listener: &UnixListener) -> io::Result<UnixStream> {
    patient(listener.accept()?.0)
}
