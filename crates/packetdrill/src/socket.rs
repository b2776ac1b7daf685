//! A socket, and the conditions for which calls block.

use std::net::SocketAddr;
use std::os::fd::RawFd;

use lasthop_base::Time;
use lasthop_endpoint::{Config, End, Endpoint, Listener, StateName};
use libc::{POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDHUP, c_short};
use nix::errno::Errno;

/// A file descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fd(pub RawFd);

/// The condition for which a call blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wait {
    /// A connection to accept.
    Accept(Fd),
    /// The end of the handshake.
    Connect(Fd),
    /// Data to read, or the end of the stream.
    Read(Fd),
    /// Space in the send buffer, or the end of the connection.
    Write(Fd),
    /// Events on descriptors, or a timeout.
    Poll(Vec<(Fd, c_short)>, Time),
}

impl Wait {
    /// The time at which the call returns even if the condition does not hold.
    pub(crate) fn deadline(&self) -> Time {
        if let Wait::Poll(_, until) = self { *until } else { Time::NEVER }
    }
}

/// The role of a socket.
#[derive(Debug)]
pub(crate) enum Kind {
    Fresh,
    Listening(Box<Listener>),
    Stream(Box<Endpoint>),
}

/// A socket of the host.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) kind: Kind,
    /// Settings of future connections.
    pub(crate) config: Config,
    pub(crate) bound: Option<SocketAddr>,
    pub(crate) is_nonblocking: bool,
    pub(crate) is_read_closed: bool,
    pub(crate) is_write_closed: bool,
    /// SO_LINGER with a timeout of zero: closing resets the connection.
    pub(crate) resets_on_close: bool,
    /// Whether SO_KEEPALIVE is set; `config` has the probe settings in any case.
    pub(crate) probes: lasthop_endpoint::KeepAlive,
    /// Whether a call has returned the success of the handshake.
    pub(crate) has_connected: bool,
    /// Whether a call has returned the error of the connection.
    has_told_error: bool,
}

impl Socket {
    pub(crate) fn new(kind: Kind, config: Config, is_nonblocking: bool) -> Socket {
        Socket {
            kind,
            config,
            bound: None,
            is_nonblocking,
            is_read_closed: false,
            is_write_closed: false,
            resets_on_close: false,
            probes: lasthop_endpoint::KeepAlive::default(),
            has_connected: false,
            has_told_error: false,
        }
    }

    /// The endpoint of a connecting, connected or closed socket.
    pub(crate) fn endpoint(&self) -> Option<&Endpoint> {
        if let Kind::Stream(endpoint) = &self.kind { Some(endpoint) } else { None }
    }

    pub(crate) fn endpoint_mut(&mut self) -> Option<&mut Endpoint> {
        if let Kind::Stream(endpoint) = &mut self.kind { Some(endpoint) } else { None }
    }

    /// The endpoint, once the handshake is complete.
    pub(crate) fn connected(&mut self) -> Result<&mut Endpoint, Errno> {
        match &mut self.kind {
            Kind::Stream(endpoint) => match endpoint.state() {
                StateName::SynSent | StateName::SynReceived => Err(Errno::EAGAIN),
                _ => Ok(endpoint),
            },
            _ => Err(Errno::ENOTCONN),
        }
    }

    /// The pending error of the connection, if any.
    pub(crate) fn error(&self) -> Option<Errno> {
        let errno = match self.endpoint()?.end()? {
            End::Closed | End::Aborted => return None,
            End::Refused => Errno::ECONNREFUSED,
            // A reset may follow the peer's FIN.
            End::Reset => Errno::ECONNRESET,
            End::TimedOut => Errno::ETIMEDOUT,
            End::Unreachable => Errno::ECONNREFUSED,
        };
        (!self.has_told_error).then_some(errno)
    }

    /// Returns and clears the pending [error](Socket::error).
    pub(crate) fn take_error(&mut self) -> Option<Errno> {
        let error = self.error()?;
        self.has_told_error = true;
        Some(error)
    }

    /// The pending `poll` events.
    pub(crate) fn events(&self) -> c_short {
        let endpoint = match &self.kind {
            Kind::Fresh => return POLLOUT | POLLHUP,
            Kind::Listening(listener) => return if listener.waiting() > 0 { POLLIN } else { 0 },
            Kind::Stream(endpoint) => endpoint,
        };
        let state = endpoint.state();
        if matches!(state, StateName::SynSent | StateName::SynReceived) {
            return 0;
        }
        let has_ended = state == StateName::Closed;
        let no_more = endpoint.has_ended() || self.is_read_closed;
        let mut events = 0;
        let mut add = |holds: bool, bits: c_short| events |= if holds { bits } else { 0 };
        add(endpoint.readable() > 0 || no_more, POLLIN);
        add(endpoint.writable() > 0 || self.is_write_closed || has_ended, POLLOUT);
        add(no_more, POLLRDHUP);
        add(has_ended || (no_more && self.is_write_closed), POLLHUP);
        add(self.error().is_some(), POLLERR);
        events
    }
}
