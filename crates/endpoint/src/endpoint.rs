//! One end of a connection: the state machine, driven by segments, application calls and time (RFC 9293
//! section 3.10).

use std::mem;
use std::net::SocketAddr;

use lasthop_base::{Duration, Time};
use lasthop_proto::tcp::{Flags, Reactions, Receiver, ReceiverReactions, Segment, Sender};
use lasthop_proto::{Notice, Reach};
use lasthop_wire::Icmp;

use crate::buffers::{ReceiveBuffer, SendBuffer};
use crate::config::Config;
use crate::connection::{Connection, Io, Verdict};
use crate::handshake::{Handshake, Opened, PeerSyn};
use crate::packet::{Incoming, Outgoing, OutgoingQueue};
use crate::path_errors::{self, PathError};
use crate::secret::Secret;
use crate::state::{State, StateName};

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Both ends have closed, or this end has closed before the connection was established.
    Closed,
    /// The peer does not accept connections.
    Refused,
    /// The peer has reset the connection.
    Reset,
    /// The application has [aborted](Endpoint::abort), or has [closed](Endpoint::close) with unread data.
    Aborted,
    /// The user timeout, the SYN timeout or keep-alive has expired.
    TimedOut,
    /// An ICMP error has reported the port or protocol as unreachable.
    Unreachable,
}

/// One end of a TCP connection.
///
/// The caller passes in packets for its addresses with [`receive`](Endpoint::receive), calls
/// [`wake`](Endpoint::wake) at [`next_wakeup`](Endpoint::next_wakeup), and after each call sends the packets
/// that [`poll`](Endpoint::poll) returns. `now` must never decrease.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    secret: Secret,
    state: State,
    io: Io,
    /// The reactions of a connection that is not synchronised yet.
    reactions: (Reactions, ReceiverReactions),
    /// Whether the application has closed its direction.
    is_closing: bool,
    end: Option<End>,
}

impl Endpoint {
    /// An endpoint in LISTEN on `local`, for a single connection. A [`Listener`](crate::Listener) accepts
    /// many.
    ///
    /// # Panics
    /// If the settings are invalid, or for simulations only.
    pub fn listen(config: Config, local: SocketAddr, secret: Secret) -> Endpoint {
        // The remote address is that of the first SYN.
        Endpoint::new(config, local, local, secret, State::Listen)
    }

    /// An endpoint that opens a connection from `local` to `remote`.
    ///
    /// # Panics If the settings are invalid, or for simulations only, or if the addresses are of different IP
    /// versions.
    pub fn connect(
        now: Time,
        config: Config,
        local: SocketAddr,
        remote: SocketAddr,
        secret: Secret,
    ) -> Endpoint {
        assert_eq!(local.is_ipv4(), remote.is_ipv4(), "the addresses are of different IP versions");
        let mut endpoint = Endpoint::new(config, local, remote, secret, State::Closed);
        let mut handshake = endpoint.handshake(now, Opened::Actively);
        handshake.send(now, None, &mut endpoint.io.outgoing);
        endpoint.state = State::SynSent(handshake);
        endpoint
    }

    fn new(config: Config, local: SocketAddr, remote: SocketAddr, secret: Secret, state: State) -> Endpoint {
        config.check();
        let io = Io {
            send_buffer: SendBuffer::new(config.send_buffer),
            receive_buffer: ReceiveBuffer::default(),
            outgoing: OutgoingQueue::new(local, remote),
        };
        let reactions = Default::default();
        Endpoint { config, secret, state, io, reactions, is_closing: false, end: None }
    }

    /// Adds the reactions of schemes to both halves of the connection that will be established next.
    pub fn with_reactions(self, reactions: (Reactions, ReceiverReactions)) -> Endpoint {
        Endpoint { reactions, ..self }
    }

    fn handshake(&self, now: Time, opened: Opened) -> Handshake {
        let outgoing = &self.io.outgoing;
        let (local, remote) = (outgoing.local, outgoing.remote);
        let numbers = (self.secret.iss(now, local, remote), self.secret.timestamp_offset(local, remote));
        Handshake::new(now, &self.config, outgoing, numbers, opened)
    }

    // ---- application: state --------------------------------------------------------------------------

    /// The current state.
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// Why the connection ended; `None` before the end. A connection in TIME-WAIT has not ended.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Address and port of this end.
    pub fn local(&self) -> SocketAddr {
        self.io.outgoing.local
    }

    /// Address and port of the peer; `None` in LISTEN.
    pub fn remote(&self) -> Option<SocketAddr> {
        (self.state() != StateName::Listen).then_some(self.io.outgoing.remote)
    }

    /// The sending half of a synchronised connection, with its counters.
    pub fn sender(&self) -> Option<&Sender> {
        self.state.connection().map(Connection::sender)
    }

    /// The receiving half of a synchronised connection, with its counters.
    pub fn receiver(&self) -> Option<&Receiver> {
        self.state.connection().map(Connection::receiver)
    }

    /// Free space in the send buffer, in bytes; 0 once the application has closed or the connection has
    /// ended.
    pub fn writable(&self) -> usize {
        if self.is_closing || self.state() == StateName::Closed { 0 } else { self.io.send_buffer.room() }
    }

    /// Number of bytes written that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.io.send_buffer.len()
    }

    /// Maximum payload of a segment, without the options that every segment carries; `None` before the
    /// connection is synchronised.
    pub fn mss(&self) -> Option<u32> {
        self.state.connection().map(Connection::mss)
    }

    /// The shift of the windows that a synchronised connection sends (RFC 7323 section 2.2).
    pub fn window_scale(&self) -> u8 {
        self.state.connection().map_or(0, Connection::window_scale)
    }

    /// Whether the peer's FIN has arrived, and its acknowledgement [waits](Config::withholds).
    pub(crate) fn withholds_fin(&self) -> bool {
        self.state.connection().is_some_and(Connection::withholds_fin)
    }

    /// Number of in-order bytes available to read.
    pub fn readable(&self) -> usize {
        self.io.receive_buffer.ready()
    }

    /// Whether no more bytes will become readable: the peer has closed, or the connection has ended.
    pub fn has_ended(&self) -> bool {
        let peer_has_closed = self.state.connection().is_some_and(Connection::fin_is_received);
        peer_has_closed || self.state() == StateName::Closed
    }

    // ---- application: calls ----------------------------------------------------------------------------

    /// Writes bytes to the send buffer; returns the number that [fit](Endpoint::writable).
    pub fn send(&mut self, now: Time, bytes: &[u8]) -> usize {
        let room = self.writable();
        let len = self.io.send_buffer.push(&bytes[..bytes.len().min(room)]);
        if let Some(connection) = self.state.connection_mut().filter(|_| len > 0) {
            connection.supply(now, len as u64, &mut self.io);
        }
        len
    }

    /// Reads in-order bytes into `buffer`; returns their number. Bytes received before the end of the
    /// connection remain readable.
    pub fn read(&mut self, now: Time, buffer: &mut [u8]) -> usize {
        let len = self.io.receive_buffer.read(buffer);
        if let Some(connection) = self.state.connection_mut().filter(|_| len > 0) {
            connection.on_read(now, len as u64, &mut self.io);
        }
        len
    }

    /// Reads in-order bytes into `buffer` without opening the window, for a reader that passes them on; returns
    /// their number. [`open_window`](Endpoint::open_window) opens the window later.
    pub fn take(&mut self, buffer: &mut [u8]) -> usize {
        self.io.receive_buffer.read(buffer)
    }

    /// Opens the window by at most `bytes` that were [taken](Endpoint::take).
    pub fn open_window(&mut self, now: Time, bytes: u64) {
        if let Some(connection) = self.state.connection_mut().filter(|_| bytes > 0) {
            connection.on_read(now, bytes, &mut self.io);
        }
    }

    /// Permits acknowledgements of `bytes` of the peer's stream in total, and of its FIN if `is_finished`. Without
    /// [`withholds`](Config::withholds), acknowledgements need no permission.
    pub fn release(&mut self, now: Time, bytes: u64, is_finished: bool) {
        if let Some(connection) = self.state.connection_mut() {
            connection.release(now, bytes, is_finished, &mut self.io);
            self.advance(now);
        }
    }

    /// Enables or disables Nagle's algorithm (RFC 9293 section 3.7.4). Disabling it sends segments held back.
    pub fn set_nagle(&mut self, now: Time, nagle: bool) {
        self.config.nagle = nagle;
        if let Some(connection) = self.state.connection_mut() {
            connection.set_nagle(now, nagle, &mut self.io);
        }
    }

    /// Sets the user timeout: how long outstanding data may remain unacknowledged before the connection is
    /// aborted; `None` for no limit.
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.config.settings.user_timeout = timeout;
        if let Some(connection) = self.state.connection_mut() {
            connection.set_user_timeout(timeout);
        }
    }

    /// Sets the size of the send buffer. Bytes already in it are kept.
    pub fn set_send_buffer(&mut self, bytes: usize) {
        self.config.send_buffer = bytes;
        self.io.send_buffer.set_capacity(bytes);
    }

    /// Closes the sending direction: FIN follows the last byte (RFC 9293 section 3.10.4). The peer may
    /// continue to send.
    pub fn shutdown(&mut self, now: Time) {
        if mem::replace(&mut self.is_closing, true) {
            return;
        }
        match self.state {
            State::Listen | State::SynSent(_) => self.finish(End::Closed),
            // `send_pending_fin` sends FIN after the handshake.
            State::SynReceived(..) => {}
            _ => self.send_fin(now),
        }
    }

    /// Closes both directions. Unread bytes, or bytes that arrive later, cause a reset, which informs the
    /// peer of the lost data (RFC 9293 section 3.6.1).
    pub fn close(&mut self, now: Time) {
        if self.readable() > 0 && self.state() != StateName::TimeWait {
            return self.abort(now);
        }
        self.io.receive_buffer.close();
        self.shutdown(now);
        if let State::FinWait2(_, until) = &mut self.state {
            *until = (*until).min(now + self.config.fin_wait);
        }
    }

    /// Ends the connection immediately, with RST in states that require one (RFC 9293 section 3.10.5).
    /// Discards unread bytes.
    pub fn abort(&mut self, now: Time) {
        match &self.state {
            State::SynReceived(handshake, syn) => handshake.reset(now, syn, &mut self.io.outgoing),
            State::Established(connection)
            | State::FinWait1(connection)
            | State::FinWait2(connection, _)
            | State::CloseWait(connection) => connection.reset(now, &mut self.io.outgoing),
            _ => {}
        }
        if self.state() != StateName::Closed {
            self.finish(End::Aborted);
        }
        self.io.receive_buffer.close();
    }

    // ---- network and timers ------------------------------------------------------------------------------

    /// The next packet to send; `None` if there is none.
    pub fn poll(&mut self) -> Option<Outgoing> {
        self.io.outgoing.take()
    }

    /// The earliest timer, at which [`wake`](Endpoint::wake) is due; [`Time::NEVER`] if no timer runs.
    pub fn next_wakeup(&self) -> Time {
        let until = match &self.state {
            State::SynSent(handshake) | State::SynReceived(handshake, _) => handshake.deadline(),
            State::FinWait2(_, until) | State::TimeWait(_, until) => *until,
            _ => Time::NEVER,
        };
        self.state.connection().map_or(Time::NEVER, Connection::next_wakeup).min(until)
    }

    /// Processes expired timers. Does nothing before [`next_wakeup`](Endpoint::next_wakeup).
    pub fn wake(&mut self, now: Time) {
        if self.next_wakeup() > now {
            return;
        }
        let outgoing = &mut self.io.outgoing;
        match &mut self.state {
            State::SynSent(handshake) => {
                if !handshake.retransmit(now, &self.config, None, outgoing) {
                    self.finish(End::TimedOut);
                }
            }
            State::SynReceived(handshake, syn) => {
                if !handshake.retransmit(now, &self.config, Some(syn), outgoing) {
                    self.leave_syn_received(End::TimedOut);
                }
            }
            State::FinWait2(_, until) | State::TimeWait(_, until) if *until <= now => {
                self.finish(End::Closed)
            }
            state => {
                if let Some(connection) = state.connection_mut() {
                    connection.wake(now, &mut self.io);
                    self.advance(now);
                }
            }
        }
    }

    /// Whether the addresses of a segment are those of this endpoint.
    pub fn is_for(&self, packet: &Incoming<'_>) -> bool {
        packet.local == self.local() && self.remote().is_none_or(|remote| packet.remote == remote)
    }

    /// Processes a TCP segment (RFC 9293 section 3.10.7). Segments for other addresses are ignored.
    pub fn receive(&mut self, now: Time, packet: &Incoming<'_>) {
        if !self.is_for(packet) {
            return;
        }
        match &self.state {
            State::Closed => self.io.outgoing.refuse(packet),
            State::Listen => self.in_listen(now, packet),
            State::SynSent(_) => self.in_syn_sent(now, packet),
            State::SynReceived(..) => self.in_syn_received(now, packet),
            _ => self.in_synchronised(now, packet),
        }
    }

    /// Processes an ICMP message. Ignores errors unless they quote a segment in flight (RFC 5927 section
    /// 4.1).
    pub fn receive_icmp(&mut self, now: Time, icmp: &Icmp<'_>) {
        let outgoing = &self.io.outgoing;
        let Some((error, seq)) = path_errors::of(icmp, outgoing.local, outgoing.remote) else { return };
        match (&mut self.state, error) {
            (State::SynSent(handshake), PathError::Unreachable) if seq == handshake.iss => {
                self.finish(End::Unreachable);
            }
            (state, PathError::TooBig { mtu }) => {
                if let Some(connection) = state.connection_mut().filter(|each| each.is_in_flight(seq)) {
                    connection.reduce_mtu(now, mtu, seq, &mut self.io);
                }
            }
            // An established connection survives errors that may be transient (RFC 5461 section 4.1).
            _ => {}
        }
    }

    /// Passes a scheme's control message to the reactions of a synchronised connection.
    pub fn on_notice(&mut self, now: Time, notice: &Notice) {
        if let Some(connection) = self.state.connection_mut() {
            connection.on_notice(now, notice, &mut self.io);
        }
    }

    /// Notifies the reactions of a synchronised connection of a change of the peer's radio signal.
    pub fn on_reach(&mut self, now: Time, reach: Reach) {
        if let Some(connection) = self.state.connection_mut() {
            connection.on_reach(now, reach, &mut self.io);
        }
    }

    /// The radio signal of the host for which acknowledgements [wait](Config::withholds) has changed. While it is lost,
    /// the window is zero.
    pub fn on_far_reach(&mut self, now: Time, reach: Reach) {
        if let Some(connection) = self.state.connection_mut() {
            connection.on_far_reach(now, reach, &mut self.io);
        }
    }

    /// Whether this endpoint is in TIME-WAIT and a segment may start a new incarnation of its connection (RFC
    /// 9293 section 3.10.7.4, RFC 6191). The caller may then replace the endpoint by a listening one.
    pub fn may_be_succeeded_by(&self, now: Time, packet: &Incoming<'_>) -> bool {
        let syn = packet.header.segment;
        let is_syn = syn.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN;
        matches!(&self.state, State::TimeWait(connection, _) if is_syn && connection.is_older_than(now, &syn))
    }

    // ---- states ----------------------------------------------------------------------------------------

    /// RFC 9293 section 3.10.7.2.
    fn in_listen(&mut self, now: Time, packet: &Incoming<'_>) {
        let flags = packet.header.segment.flags;
        if flags.has(Flags::RST) {
            return;
        }
        if flags.has(Flags::ACK) {
            return self.io.outgoing.refuse(packet);
        }
        if flags.has(Flags::SYN) {
            self.io.outgoing.remote = packet.remote;
            let mut handshake = self.handshake(now, Opened::Passively);
            let syn = PeerSyn::of(packet);
            handshake.clock.note_syn(now, &packet.header.segment);
            handshake.send(now, Some(&syn), &mut self.io.outgoing);
            self.state.change(|_| State::SynReceived(handshake, syn));
        }
    }

    /// RFC 9293 section 3.10.7.3.
    fn in_syn_sent(&mut self, now: Time, packet: &Incoming<'_>) {
        let State::SynSent(handshake) = &self.state else { return };
        let Segment { ack, flags, .. } = packet.header.segment;
        if flags.has(Flags::ACK) && ack != handshake.snd_nxt() {
            return self.io.outgoing.refuse(packet);
        }
        if flags.has(Flags::RST) {
            if flags.has(Flags::ACK) {
                self.finish(End::Refused);
            }
            return;
        }
        if !flags.has(Flags::SYN) {
            return;
        }
        let syn = PeerSyn::of(packet);
        let (config, io, reactions) = (&self.config, &mut self.io, &mut self.reactions);
        self.state.change(|state| match state {
            State::SynSent(mut handshake) => {
                handshake.clock.note_syn(now, &packet.header.segment);
                if flags.has(Flags::ACK) {
                    let reactions = mem::take(reactions);
                    let opened = Connection::new(now, config, &handshake, &syn, true, reactions, io);
                    State::Established(Box::new(opened))
                } else {
                    // Simultaneous open.
                    handshake.send(now, Some(&syn), &mut io.outgoing);
                    State::SynReceived(handshake, syn)
                }
            }
            other => other,
        });
        self.send_pending_fin(now);
    }

    /// RFC 9293 section 3.10.7.4, for SYN-RECEIVED.
    fn in_syn_received(&mut self, now: Time, packet: &Incoming<'_>) {
        let State::SynReceived(handshake, syn) = &mut self.state else { return };
        let outgoing = &mut self.io.outgoing;
        let segment = packet.segment();
        let flags = segment.flags;
        if flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN && segment.seq == syn.irs {
            let later = PeerSyn::of(packet);
            if handshake.is_contradicted(syn, &later) {
                // RFC 9768 section 3.1.5.
                handshake.reset(now, syn, outgoing);
                return self.leave_syn_received(End::Reset);
            }
            return handshake.on_duplicate_syn(now, syn, &later, outgoing);
        }
        let is_acceptable = handshake.is_acceptable(now, syn, &segment);
        if flags.has(Flags::RST) && segment.seq == syn.rcv_nxt() {
            return self.leave_syn_received(End::Refused);
        }
        if flags.has(Flags::RST) || !is_acceptable {
            // Challenge ACK: to RST inside the window (RFC 5961 section 3.2), to other segments outside of
            // it.
            if flags.has(Flags::RST) == is_acceptable {
                handshake.challenge(now, syn, outgoing);
            }
            return;
        }
        if flags.has(Flags::SYN) {
            if handshake.opened == Opened::Passively {
                return self.leave_syn_received(End::Reset);
            }
            return handshake.challenge(now, syn, outgoing);
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        if segment.ack != handshake.snd_nxt() {
            return outgoing.refuse(packet);
        }
        let mut first = *packet;
        first.header.segment.flags = handshake.on_first_ack(syn, &segment);
        let (config, io, reactions) = (&self.config, &mut self.io, mem::take(&mut self.reactions));
        self.state.change(|state| match state {
            State::SynReceived(handshake, syn) => {
                let opened = Connection::new(now, config, &handshake, &syn, false, reactions, io);
                State::Established(Box::new(opened))
            }
            other => other,
        });
        self.send_pending_fin(now);
        self.in_synchronised(now, &first);
    }

    /// Ends a failed handshake: a passive open returns to LISTEN (RFC 9293 section 3.10.7.4).
    fn leave_syn_received(&mut self, end: End) {
        let returns_to_listen =
            |handshake: &Handshake| handshake.opened == Opened::Passively && !self.is_closing;
        if matches!(&self.state, State::SynReceived(handshake, _) if returns_to_listen(handshake)) {
            self.state.change(|_| State::Listen);
        } else {
            self.finish(end);
        }
    }

    /// RFC 9293 section 3.10.7.4, for the synchronised states.
    fn in_synchronised(&mut self, now: Time, packet: &Incoming<'_>) {
        let Some(connection) = self.state.connection_mut() else { return };
        match connection.receive(now, packet, &mut self.io) {
            Verdict::Dropped => {}
            // All data were delivered before TIME-WAIT.
            Verdict::Reset if self.state() == StateName::TimeWait => self.finish(End::Closed),
            Verdict::Reset => self.finish(End::Reset),
            Verdict::Unwanted => self.abort(now),
            Verdict::Accepted => {
                if let State::TimeWait(_, until) = &mut self.state
                    && packet.header.segment.flags.has(Flags::FIN)
                {
                    *until = now + self.config.time_wait;
                }
                self.advance(now);
            }
        }
    }

    /// Sends FIN if the application closed during the handshake.
    fn send_pending_fin(&mut self, now: Time) {
        if self.is_closing && self.state() == StateName::Established {
            self.send_fin(now);
        }
    }

    /// Sends FIN after the last byte.
    fn send_fin(&mut self, now: Time) {
        let Some(connection) = self.state.connection_mut() else { return };
        connection.close(now, &mut self.io);
        self.state.change(|state| match state {
            State::Established(connection) => State::FinWait1(connection),
            State::CloseWait(connection) => State::LastAck(connection),
            other => other,
        });
    }

    /// Takes the state transitions that are due (RFC 9293 figure 5).
    fn advance(&mut self, now: Time) {
        let Some(connection) = self.state.connection() else { return };
        let (acknowledged, received) = (connection.fin_is_acknowledged(), connection.fin_is_received());
        if connection.is_given_up() {
            return self.finish(End::TimedOut);
        }
        if acknowledged && self.state() == StateName::LastAck && !connection.withholds_fin() {
            return self.finish(End::Closed);
        }
        let reads = !self.io.receive_buffer.is_closed();
        let fin_wait = if reads { Time::NEVER } else { now + self.config.fin_wait };
        let time_wait = now + self.config.time_wait;
        let before = self.state();
        self.state.change(|state| match state {
            State::Established(connection) if received => State::CloseWait(connection),
            State::FinWait1(connection) if acknowledged => State::FinWait2(connection, fin_wait),
            State::FinWait1(connection) if received => State::Closing(connection),
            State::FinWait2(connection, _) if received => State::TimeWait(connection, time_wait),
            State::Closing(connection) if acknowledged => State::TimeWait(connection, time_wait),
            other => other,
        });
        if self.state() != before {
            self.advance(now);
        }
    }

    /// Enters CLOSED.
    fn finish(&mut self, end: End) {
        self.state.change(|_| State::Closed);
        self.end = Some(end);
    }
}
