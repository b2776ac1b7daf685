//! A host with sockets, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::IntoRawFd;

use lasthop_base::{Duration, Streams, Time};
use lasthop_endpoint::{Config, Endpoint, Incoming, Listener, Outgoing, Secret, StateName, refuse};
use lasthop_wire::{Checksum, IpPacket, Transport};
use libc::{POLLERR, POLLHUP, c_int, c_short};
use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd;

use crate::flags::Flags;
use crate::socket::{Fd, Kind, Socket, Wait};

/// Initial value of the virtual clock. Not zero, since the clock is also the date.
const BEGIN: Time = Time::from_nanos(1_000_000_000_000_000);

/// First ephemeral port.
const FIRST_PORT: u16 = 49_152;

/// Maximum length of the accept queue (`somaxconn`).
const LONGEST_BACKLOG: usize = 4096;

/// A host with its sockets and the packets that it has sent.
#[derive(Debug)]
pub struct Host {
    now: Time,
    local: std::net::IpAddr,
    config: Config,
    secret: Secret,
    sockets: BTreeMap<Fd, Socket>,
    /// Connections of closed sockets.
    orphans: Vec<Endpoint>,
    sent: VecDeque<(Time, Vec<u8>)>,
    next_port: u16,
}

impl Host {
    /// A host without sockets.
    pub fn new(flags: &Flags) -> Host {
        Host {
            now: BEGIN,
            local: flags.local,
            config: flags.config(),
            secret: Secret::draw(&mut Streams::new(1, 0).stream("secret")),
            sockets: BTreeMap::new(),
            orphans: Vec::new(),
            sent: VecDeque::new(),
            next_port: FIRST_PORT,
        }
    }

    /// The current virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    pub(crate) fn socket_mut(&mut self, fd: Fd) -> Result<&mut Socket, Errno> {
        self.sockets.get_mut(&fd).ok_or(Errno::EBADF)
    }

    /// Whether the descriptor is a socket of this host.
    pub fn owns(&self, fd: Fd) -> bool {
        self.sockets.contains_key(&fd)
    }

    /// Whether system calls on the socket block.
    pub fn blocks(&self, fd: Fd) -> bool {
        self.sockets.get(&fd).is_some_and(|socket| !socket.is_nonblocking)
    }

    // ---- system calls ----------------------------------------------------------------------------------

    /// Creates a TCP socket over IPv4 or IPv6.
    ///
    /// # Errors
    /// For other families, types or protocols.
    pub fn socket(&mut self, family: c_int, kind: c_int, protocol: c_int) -> Result<Fd, Errno> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        if family != libc::AF_INET && family != libc::AF_INET6 {
            return Err(Errno::EAFNOSUPPORT);
        }
        if kind & !flags != libc::SOCK_STREAM {
            return Err(Errno::ESOCKTNOSUPPORT);
        }
        if protocol != 0 && protocol != libc::IPPROTO_TCP {
            return Err(Errno::EPROTONOSUPPORT);
        }
        let is_nonblocking = kind & libc::SOCK_NONBLOCK != 0;
        self.add(Socket::new(Kind::Fresh, self.config.clone(), is_nonblocking))
    }

    fn add(&mut self, socket: Socket) -> Result<Fd, Errno> {
        // A real file descriptor, since packetdrill closes the remaining descriptors at the end.
        let fd = Fd(open("/dev/null", OFlag::O_RDWR, Mode::empty())?.into_raw_fd());
        self.sockets.insert(fd, socket);
        Ok(fd)
    }

    /// Sets the local address.
    ///
    /// # Errors
    /// As `bind`.
    pub fn bind(&mut self, fd: Fd, address: SocketAddr) -> Result<(), Errno> {
        let port = if address.port() == 0 { self.free_port() } else { address.port() };
        let socket = self.socket_mut(fd)?;
        if socket.bound.is_some() || !matches!(socket.kind, Kind::Fresh) {
            return Err(Errno::EINVAL);
        }
        socket.bound = Some(SocketAddr::new(address.ip(), port));
        Ok(())
    }

    fn free_port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
        port
    }

    /// Listens for connections.
    ///
    /// # Errors
    /// As `listen`.
    pub fn listen(&mut self, fd: Fd, backlog: c_int) -> Result<(), Errno> {
        let fallback = SocketAddr::new(self.local, self.free_port());
        let secret = self.secret.clone();
        let socket = self.socket_mut(fd)?;
        // Linux accepts one connection more than the backlog.
        let backlog = usize::try_from(backlog).map_or(LONGEST_BACKLOG, |backlog| backlog + 1);
        match &mut socket.kind {
            Kind::Fresh => {
                let local = *socket.bound.get_or_insert(fallback);
                let listener = Listener::new(socket.config.clone(), local, backlog, secret);
                socket.kind = Kind::Listening(Box::new(listener));
                Ok(())
            }
            Kind::Listening(listener) => {
                listener.set_backlog(backlog);
                Ok(())
            }
            Kind::Stream(_) => Err(Errno::EINVAL),
        }
    }

    /// Accepts a connection; returns its descriptor and the address of the peer.
    ///
    /// # Errors
    /// As `accept`; `EAGAIN` if the accept queue is empty.
    pub fn accept(&mut self, fd: Fd) -> Result<(Fd, SocketAddr), Errno> {
        let socket = self.socket_mut(fd)?;
        let config = socket.config.clone();
        let Kind::Listening(listener) = &mut socket.kind else { return Err(Errno::EINVAL) };
        let endpoint = listener.accept().ok_or(Errno::EAGAIN)?;
        let remote = endpoint.remote().ok_or(Errno::ECONNABORTED)?;
        let mut accepted = Socket::new(Kind::Stream(Box::new(endpoint)), config, false);
        accepted.has_connected = true;
        Ok((self.add(accepted)?, remote))
    }

    /// Starts a connection, or returns the state of one that was started.
    ///
    /// # Errors
    /// As `connect`; `EAGAIN` if this call starts the connection, `EALREADY` if an earlier one did.
    pub fn connect(&mut self, fd: Fd, remote: SocketAddr) -> Result<(), Errno> {
        let (now, secret) = (self.now, self.secret.clone());
        let fallback = SocketAddr::new(self.local, self.free_port());
        let socket = self.socket_mut(fd)?;
        match &socket.kind {
            Kind::Fresh => {
                let local = *socket.bound.get_or_insert(fallback);
                if local.is_ipv4() != remote.is_ipv4() {
                    return Err(Errno::EAFNOSUPPORT);
                }
                let endpoint = Endpoint::connect(now, socket.config.clone(), local, remote, secret);
                socket.kind = Kind::Stream(Box::new(endpoint));
                self.collect();
                Err(Errno::EAGAIN)
            }
            Kind::Listening(_) => Err(Errno::EISCONN),
            Kind::Stream(_) => self.connected(fd),
        }
    }

    /// The result of a connection attempt.
    ///
    /// # Errors
    /// As `connect`; `EALREADY` during the handshake.
    pub fn connected(&mut self, fd: Fd) -> Result<(), Errno> {
        let socket = self.socket_mut(fd)?;
        if let Some(error) = socket.take_error() {
            return Err(error);
        }
        match socket.connected().map(|endpoint| endpoint.state()) {
            Err(Errno::EAGAIN) => Err(Errno::EALREADY),
            Err(other) => Err(other),
            Ok(StateName::Closed) => Err(Errno::ECONNABORTED),
            Ok(_) if std::mem::replace(&mut socket.has_connected, true) => Err(Errno::EISCONN),
            Ok(_) => Ok(()),
        }
    }

    /// Reads; returns the number of bytes, 0 at the end of the stream.
    ///
    /// # Errors
    /// As `read`; `EAGAIN` if no data are available.
    pub fn read(&mut self, fd: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
        let now = self.now;
        let socket = self.socket_mut(fd)?;
        let is_read_closed = socket.is_read_closed;
        let endpoint = socket.connected()?;
        if endpoint.readable() > 0 {
            let len = endpoint.read(now, buffer);
            self.collect();
            return Ok(len);
        }
        let has_ended = endpoint.has_ended() || is_read_closed;
        match socket.take_error() {
            Some(error) => Err(error),
            None if has_ended || buffer.is_empty() => Ok(0),
            None => Err(Errno::EAGAIN),
        }
    }

    /// Writes; returns the number of bytes that fit into the send buffer.
    ///
    /// # Errors
    /// As `write`; `EAGAIN` if the send buffer is full.
    pub fn write(&mut self, fd: Fd, bytes: &[u8]) -> Result<usize, Errno> {
        let now = self.now;
        let socket = self.socket_mut(fd)?;
        if let Some(error) = socket.take_error() {
            return Err(error);
        }
        if socket.is_write_closed || matches!(socket.kind, Kind::Fresh | Kind::Listening(_)) {
            return Err(Errno::EPIPE);
        }
        let endpoint = socket.connected()?;
        if endpoint.state() == StateName::Closed {
            return Err(Errno::EPIPE);
        }
        let len = endpoint.send(now, bytes);
        self.collect();
        if len == 0 && !bytes.is_empty() { Err(Errno::EAGAIN) } else { Ok(len) }
    }

    /// Shuts down one direction or both.
    ///
    /// # Errors
    /// As `shutdown`.
    pub fn shutdown(&mut self, fd: Fd, how: c_int) -> Result<(), Errno> {
        let now = self.now;
        if !matches!(how, libc::SHUT_RD | libc::SHUT_WR | libc::SHUT_RDWR) {
            return Err(Errno::EINVAL);
        }
        let socket = self.socket_mut(fd)?;
        let endpoint = socket.endpoint_mut().ok_or(Errno::ENOTCONN)?;
        if endpoint.state() == StateName::Closed {
            return Err(Errno::ENOTCONN);
        }
        if how != libc::SHUT_RD {
            endpoint.shutdown(now);
        }
        socket.is_read_closed |= how != libc::SHUT_WR;
        socket.is_write_closed |= how != libc::SHUT_RD;
        self.collect();
        Ok(())
    }

    /// Closes a socket. Its connection continues until both ends have closed.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn close(&mut self, fd: Fd) -> Result<(), Errno> {
        let socket = self.sockets.remove(&fd).ok_or(Errno::EBADF)?;
        let _ = unistd::close(fd.0);
        match socket.kind {
            Kind::Fresh => {}
            Kind::Listening(mut listener) => {
                listener.close(self.now);
                while let Some(packet) = listener.poll() {
                    self.put(&packet);
                }
            }
            Kind::Stream(mut endpoint) => {
                if socket.resets_on_close {
                    endpoint.abort(self.now);
                } else {
                    endpoint.close(self.now);
                }
                self.orphans.push(*endpoint);
            }
        }
        self.collect();
        Ok(())
    }

    /// Sets a socket option.
    ///
    /// # Errors
    /// As `setsockopt`.
    pub fn set_option(&mut self, fd: Fd, level: c_int, name: c_int, value: &[u8]) -> Result<(), Errno> {
        let now = self.now;
        self.socket_mut(fd)?.set_option(now, level, name, value)?;
        self.collect();
        Ok(())
    }

    /// The value of a socket option.
    ///
    /// # Errors
    /// As `getsockopt`.
    pub fn option(&mut self, fd: Fd, level: c_int, name: c_int) -> Result<Vec<u8>, Errno> {
        self.socket_mut(fd)?.option(level, name)
    }

    /// Makes the socket blocking or non-blocking.
    ///
    /// # Errors
    /// If there is no such socket.
    pub fn set_nonblocking(&mut self, fd: Fd, is_nonblocking: bool) -> Result<(), Errno> {
        self.socket_mut(fd)?.is_nonblocking = is_nonblocking;
        Ok(())
    }

    /// Bytes available to read, or written and not acknowledged (`SIOCINQ`, `SIOCOUTQ`).
    ///
    /// # Errors
    /// As `ioctl`.
    pub fn queued(&mut self, fd: Fd, is_input: bool) -> Result<usize, Errno> {
        let socket = self.socket_mut(fd)?;
        match &socket.kind {
            Kind::Listening(_) => Err(Errno::EINVAL),
            Kind::Fresh => Ok(0),
            Kind::Stream(endpoint) if is_input => Ok(endpoint.readable()),
            Kind::Stream(endpoint) => Ok(endpoint.unacknowledged()),
        }
    }

    /// The pending `poll` events among `wanted`.
    pub fn events(&self, fd: Fd, wanted: c_short) -> c_short {
        self.sockets.get(&fd).map_or(libc::POLLNVAL, |socket| socket.events() & (wanted | POLLERR | POLLHUP))
    }

    /// Whether a call blocked on `wait` can continue.
    pub fn is_ready(&self, wait: &Wait) -> bool {
        let socket = |fd: &Fd| self.sockets.get(fd);
        match wait {
            Wait::Accept(fd) | Wait::Read(fd) => {
                socket(fd).is_none_or(|socket| socket.events() & !libc::POLLOUT != 0)
            }
            Wait::Write(fd) => socket(fd).is_none_or(|socket| socket.events() & !libc::POLLIN != 0),
            Wait::Connect(fd) => socket(fd).and_then(Socket::endpoint).is_none_or(|endpoint| {
                !matches!(endpoint.state(), StateName::SynSent | StateName::SynReceived)
            }),
            Wait::Poll(fds, until) => {
                *until <= self.now || fds.iter().any(|&(fd, wanted)| self.events(fd, wanted) != 0)
            }
        }
    }

    // ---- the network and time --------------------------------------------------------------------------

    /// Processes a packet. Malformed packets are dropped.
    pub fn receive(&mut self, bytes: &[u8]) {
        let Ok(packet) = IpPacket::parse(bytes) else { return };
        if !matches!(packet.transport_checksum(), Checksum::Correct | Checksum::Partial) {
            return;
        }
        let now = self.now;
        if let Transport::Icmp(icmp) = &packet.transport {
            self.orphans.iter_mut().for_each(|endpoint| endpoint.receive_icmp(now, icmp));
            for socket in self.sockets.values_mut() {
                match &mut socket.kind {
                    Kind::Fresh => {}
                    Kind::Listening(listener) => listener.receive_icmp(now, icmp),
                    Kind::Stream(endpoint) => endpoint.receive_icmp(now, icmp),
                }
            }
        } else if let Some(segment) = Incoming::of(&packet) {
            self.deliver(&segment);
        }
        self.collect();
    }

    /// Delivers a segment to its connection or listener, or refuses it with RST.
    fn deliver(&mut self, segment: &Incoming<'_>) {
        let now = self.now;
        // A SYN may start a new incarnation of a connection in TIME-WAIT.
        self.orphans.retain(|old| !(old.is_for(segment) && old.may_be_succeeded_by(now, segment)));
        let is_open = |endpoint: &Endpoint| {
            endpoint.state() != StateName::Closed
                && endpoint.is_for(segment)
                && !endpoint.may_be_succeeded_by(now, segment)
        };
        let accepted = self.sockets.values_mut().filter_map(Socket::endpoint_mut);
        let mut endpoints = accepted.chain(&mut self.orphans);
        if let Some(endpoint) = endpoints.find(|endpoint| is_open(endpoint)) {
            return endpoint.receive(now, segment);
        }
        let listeners = self.sockets.values_mut().filter_map(|socket| match &mut socket.kind {
            Kind::Listening(listener) => Some(listener),
            _ => None,
        });
        if let Some(listener) = listeners.into_iter().find(|listener| listener.is_for(segment)) {
            listener.receive(now, segment);
        } else if let Some(reset) = refuse(segment) {
            self.put(&reset);
        }
    }

    /// The next packet sent by the host, and its time.
    pub fn take_sent(&mut self) -> Option<(Time, Vec<u8>)> {
        self.sent.pop_front()
    }

    /// The earliest timer; [`Time::NEVER`] if no timer runs.
    pub fn next_wakeup(&self) -> Time {
        let sockets = self.sockets.values().map(|socket| match &socket.kind {
            Kind::Fresh => Time::NEVER,
            Kind::Listening(listener) => listener.next_wakeup(),
            Kind::Stream(endpoint) => endpoint.next_wakeup(),
        });
        sockets.chain(self.orphans.iter().map(Endpoint::next_wakeup)).min().unwrap_or(Time::NEVER)
    }

    /// Advances time to `to`, or to the first timer if that is earlier. Returns whether `to` is reached.
    pub fn advance(&mut self, to: Time) -> bool {
        let next = self.next_wakeup();
        if next > to {
            self.now = self.now.max(to);
            return true;
        }
        self.now = self.now.max(next);
        let now = self.now;
        for socket in self.sockets.values_mut() {
            match &mut socket.kind {
                Kind::Fresh => {}
                Kind::Listening(listener) => listener.wake(now),
                Kind::Stream(endpoint) => endpoint.wake(now),
            }
        }
        self.orphans.iter_mut().for_each(|endpoint| endpoint.wake(now));
        self.collect();
        false
    }

    /// The time after `span` has passed.
    pub fn after(&self, span: Duration) -> Time {
        self.now + span
    }

    /// Collects the packets of all connections.
    fn collect(&mut self) {
        let mut packets = Vec::new();
        for socket in self.sockets.values_mut() {
            packets.extend(std::iter::from_fn(|| match &mut socket.kind {
                Kind::Fresh => None,
                Kind::Listening(listener) => listener.poll(),
                Kind::Stream(endpoint) => endpoint.poll(),
            }));
        }
        for endpoint in &mut self.orphans {
            packets.extend(std::iter::from_fn(|| endpoint.poll()));
        }
        self.orphans.retain(|endpoint| endpoint.state() != StateName::Closed);
        packets.iter().for_each(|packet| self.put(packet));
    }

    fn put(&mut self, packet: &Outgoing) {
        // Cannot fail: segments fit into packets, and both addresses have the same IP version.
        if let Ok(bytes) = packet.to_bytes() {
            self.sent.push_back((self.now, bytes));
        }
    }
}
