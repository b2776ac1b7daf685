//! One end of a connection: its state, and what segments, the application and time do to it (RFC 9293 section 3.10).

use std::mem;
use std::net::SocketAddr;

use lasthop_base::Time;
use lasthop_proto::tcp::{Flags, Receiver, Segment, Sender};
use lasthop_wire::Icmp;

use crate::buffers::{Inbox, Outbox};
use crate::config::Config;
use crate::connection::{Connection, Surroundings, Verdict};
use crate::handshake::{Handshake, Opened, PeerSyn};
use crate::packet::{Incoming, Outgoing, Outlet};
use crate::path_errors::{self, PathError};
use crate::secret::Secret;
use crate::state::{State, StateName};

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum End {
    /// Both ends have closed, or this one before a connection was open.
    Closed,
    /// The peer does not accept connections.
    Refused,
    /// The peer has reset the connection.
    Reset,
    /// The application has [aborted](Endpoint::abort), or has [closed](Endpoint::close) before all was read.
    Aborted,
    /// The peer has been silent for too long.
    TimedOut,
    /// The network or the peer's host says that there is no such port or protocol.
    Unreachable,
}

/// One end of a TCP connection.
///
/// The owner gives it the packets for its addresses with [`receive`](Endpoint::receive), calls [`wake`](Endpoint::wake) at
/// [`next_wakeup`](Endpoint::next_wakeup), and after each call sends what [`poll`](Endpoint::poll) returns. Times never
/// decrease.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    secret: Secret,
    state: State,
    around: Surroundings,
    /// Whether the application has closed its direction.
    is_closing: bool,
    end: Option<End>,
}

impl Endpoint {
    /// An endpoint that waits for a connection to `local`. It takes the first that comes.
    ///
    /// # Panics
    /// If the settings are invalid or not for real packets.
    pub fn listen(config: Config, local: SocketAddr, secret: Secret) -> Endpoint {
        // The remote address is that of the first SYN.
        Endpoint::new(config, local, local, secret, State::Listen)
    }

    /// An endpoint that opens a connection from `local` to `remote`.
    ///
    /// # Panics
    /// If the settings are invalid or not for real packets, or the addresses are of different versions.
    pub fn connect(
        now: Time,
        config: Config,
        local: SocketAddr,
        remote: SocketAddr,
        secret: Secret,
    ) -> Endpoint {
        assert_eq!(local.is_ipv4(), remote.is_ipv4(), "the addresses are of different versions");
        let mut endpoint = Endpoint::new(config, local, remote, secret, State::Closed);
        let mut handshake = endpoint.handshake(now, Opened::Actively);
        handshake.send(now, None, &mut endpoint.around.outlet);
        endpoint.state = State::SynSent(handshake);
        endpoint
    }

    fn new(config: Config, local: SocketAddr, remote: SocketAddr, secret: Secret, state: State) -> Endpoint {
        config.check();
        let around = Surroundings {
            outbox: Outbox::new(config.send_buffer),
            inbox: Inbox::default(),
            outlet: Outlet::new(local, remote),
        };
        Endpoint { config, secret, state, around, is_closing: false, end: None }
    }

    fn handshake(&self, now: Time, opened: Opened) -> Handshake {
        let outlet = &self.around.outlet;
        let (local, remote) = (outlet.local, outlet.remote);
        let numbers = (self.secret.iss(now, local, remote), self.secret.timestamp_offset(local, remote));
        Handshake::new(now, &self.config, outlet, numbers, opened)
    }

    // ---- what the application sees -------------------------------------------------------------------

    /// The state.
    pub fn state(&self) -> StateName {
        self.state.name()
    }

    /// Why the connection ended; `None` before. TIME-WAIT is no end.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// Address and port of this end.
    pub fn local(&self) -> SocketAddr {
        self.around.outlet.local
    }

    /// Address and port of the peer; `None` in LISTEN.
    pub fn remote(&self) -> Option<SocketAddr> {
        (self.state() != StateName::Listen).then_some(self.around.outlet.remote)
    }

    /// The sending half of a synchronised connection, with its counters.
    pub fn sender(&self) -> Option<&Sender> {
        self.state.connection().map(Connection::sender)
    }

    /// The receiving half of a synchronised connection, with its counters.
    pub fn receiver(&self) -> Option<&Receiver> {
        self.state.connection().map(Connection::receiver)
    }

    /// Bytes that the send buffer has room for; none once the application has closed or the connection has ended.
    pub fn writable(&self) -> usize {
        if self.is_closing || self.state() == StateName::Closed { 0 } else { self.around.outbox.room() }
    }

    /// Bytes in order that were not read.
    pub fn readable(&self) -> usize {
        self.around.inbox.ready()
    }

    /// Whether nothing more will become readable: the peer has closed, or the connection has ended.
    pub fn has_ended(&self) -> bool {
        let peer_has_closed = self.state.connection().is_some_and(Connection::fin_is_received);
        peer_has_closed || self.state() == StateName::Closed
    }

    // ---- what the application does ---------------------------------------------------------------------

    /// Writes bytes to be sent; returns for how many there was [room](Endpoint::writable).
    pub fn send(&mut self, now: Time, bytes: &[u8]) -> usize {
        let room = self.writable();
        let len = self.around.outbox.push(&bytes[..bytes.len().min(room)]);
        if let Some(connection) = self.state.connection_mut().filter(|_| len > 0) {
            connection.supply(now, len as u64, &mut self.around);
        }
        len
    }

    /// Reads bytes in order into `buffer`; returns how many. Those that arrived before the connection ended remain readable.
    pub fn read(&mut self, now: Time, buffer: &mut [u8]) -> usize {
        let len = self.around.inbox.read(buffer);
        if let Some(connection) = self.state.connection_mut().filter(|_| len > 0) {
            connection.note_read(now, len as u64, &mut self.around);
        }
        len
    }

    /// Closes the sending direction: FIN follows the last byte (RFC 9293 section 3.10.4). The peer may go on sending.
    pub fn shutdown(&mut self, now: Time) {
        if mem::replace(&mut self.is_closing, true) {
            return;
        }
        match self.state {
            State::Listen | State::SynSent(_) => self.finish(End::Closed),
            // FIN follows what is written once the handshake is over.
            State::SynReceived(..) => {}
            _ => self.send_fin(now),
        }
    }

    /// Closes both directions. If bytes were not read, or arrive later, the connection is reset: the peer learns that they
    /// are lost (RFC 9293 section 3.6.1).
    pub fn close(&mut self, now: Time) {
        if self.readable() > 0 && self.state() != StateName::TimeWait {
            return self.abort();
        }
        self.around.inbox.close();
        self.shutdown(now);
        if let State::FinWait2(_, until) = &mut self.state {
            *until = (*until).min(now + self.config.fin_wait);
        }
    }

    /// Ends the connection at once, with RST if the peer knows of it (RFC 9293 section 3.10.5). What was not read is lost.
    pub fn abort(&mut self) {
        match &self.state {
            State::SynReceived(handshake, syn) => handshake.reset(syn, &mut self.around.outlet),
            State::Established(connection)
            | State::FinWait1(connection)
            | State::FinWait2(connection, _)
            | State::CloseWait(connection) => connection.reset(&mut self.around.outlet),
            _ => {}
        }
        if self.state() != StateName::Closed {
            self.finish(End::Aborted);
        }
        self.around.inbox.close();
    }

    // ---- what the network and time do --------------------------------------------------------------------

    /// The next packet to send; `None` if there is none.
    pub fn poll(&mut self) -> Option<Outgoing> {
        self.around.outlet.take()
    }

    /// When [`wake`](Endpoint::wake) is due; [`Time::NEVER`] without a timer.
    pub fn next_wakeup(&self) -> Time {
        let until = match &self.state {
            State::SynSent(handshake) | State::SynReceived(handshake, _) => handshake.deadline(),
            State::FinWait2(_, until) | State::TimeWait(_, until) => *until,
            _ => Time::NEVER,
        };
        self.state.connection().map_or(Time::NEVER, Connection::next_wakeup).min(until)
    }

    /// Lets timers expire that are due.
    pub fn wake(&mut self, now: Time) {
        if self.next_wakeup() > now {
            return;
        }
        let outlet = &mut self.around.outlet;
        match &mut self.state {
            State::SynSent(handshake) => {
                if !handshake.retransmit(now, &self.config, None, outlet) {
                    self.finish(End::TimedOut);
                }
            }
            State::SynReceived(handshake, syn) => {
                if !handshake.retransmit(now, &self.config, Some(syn), outlet) {
                    self.leave_syn_received(End::TimedOut);
                }
            }
            State::FinWait2(_, until) | State::TimeWait(_, until) if *until <= now => {
                self.finish(End::Closed)
            }
            state => {
                if let Some(connection) = state.connection_mut() {
                    connection.wake(now, &mut self.around);
                    self.advance(now);
                }
            }
        }
    }

    /// Whether a segment is for this endpoint by its addresses.
    pub fn is_for(&self, packet: &Incoming<'_>) -> bool {
        packet.local == self.local() && self.remote().is_none_or(|remote| packet.remote == remote)
    }

    /// Processes a TCP segment (RFC 9293 section 3.10.7). One for other addresses is ignored.
    pub fn receive(&mut self, now: Time, packet: &Incoming<'_>) {
        if !self.is_for(packet) {
            return;
        }
        match &self.state {
            State::Closed => self.around.outlet.refuse(packet),
            State::Listen => self.in_listen(now, packet),
            State::SynSent(_) => self.in_syn_sent(now, packet),
            State::SynReceived(..) => self.in_syn_received(now, packet),
            _ => self.when_synchronised(now, packet),
        }
    }

    /// Processes an ICMP message. An error counts only if the segment that it quotes is in flight (RFC 5927 section 4.1).
    pub fn receive_icmp(&mut self, now: Time, icmp: &Icmp<'_>) {
        let outlet = &self.around.outlet;
        let Some((error, seq)) = path_errors::of(icmp, outlet.local, outlet.remote) else { return };
        match (&mut self.state, error) {
            (State::SynSent(handshake), PathError::Unreachable) if seq == handshake.iss => {
                self.finish(End::Unreachable);
            }
            (state, PathError::TooBig { mtu }) => {
                if let Some(connection) = state.connection_mut().filter(|each| each.is_in_flight(seq)) {
                    connection.narrow(now, mtu, seq, &mut self.around);
                }
            }
            // No reason to give up a connection that works (RFC 5461 section 4.1).
            _ => {}
        }
    }

    /// Whether a segment may begin a new incarnation of this connection, which is in TIME-WAIT (RFC 9293 section 3.10.7.4,
    /// RFC 6191). Whoever listens may then replace the endpoint.
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
            return self.around.outlet.refuse(packet);
        }
        if flags.has(Flags::SYN) {
            self.around.outlet.remote = packet.remote;
            let mut handshake = self.handshake(now, Opened::Passively);
            let syn = PeerSyn::of(packet);
            handshake.clock.note_syn(now, &packet.header.segment);
            handshake.send(now, Some(&syn), &mut self.around.outlet);
            self.state.change(|_| State::SynReceived(handshake, syn));
        }
    }

    /// RFC 9293 section 3.10.7.3.
    fn in_syn_sent(&mut self, now: Time, packet: &Incoming<'_>) {
        let State::SynSent(handshake) = &self.state else { return };
        let Segment { ack, flags, .. } = packet.header.segment;
        if flags.has(Flags::ACK) && ack != handshake.snd_nxt() {
            return self.around.outlet.refuse(packet);
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
        let (config, around) = (&self.config, &mut self.around);
        self.state.change(|state| match state {
            State::SynSent(mut handshake) => {
                handshake.clock.note_syn(now, &packet.header.segment);
                if flags.has(Flags::ACK) {
                    State::Established(Box::new(Connection::new(now, config, &handshake, &syn, true, around)))
                } else {
                    // Simultaneous open.
                    handshake.send(now, Some(&syn), &mut around.outlet);
                    State::SynReceived(handshake, syn)
                }
            }
            other => other,
        });
        self.go_on_closing(now);
    }

    /// RFC 9293 section 3.10.7.4, for SYN-RECEIVED.
    fn in_syn_received(&mut self, now: Time, packet: &Incoming<'_>) {
        let State::SynReceived(handshake, syn) = &mut self.state else { return };
        let outlet = &mut self.around.outlet;
        let segment = packet.segment();
        let flags = segment.flags;
        if flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN && segment.seq == syn.irs {
            return handshake.repeat(now, syn, outlet);
        }
        let is_acceptable = handshake.is_acceptable(now, syn, &segment);
        if flags.has(Flags::RST) && segment.seq == syn.rcv_nxt() {
            return self.leave_syn_received(End::Refused);
        }
        if flags.has(Flags::RST) || !is_acceptable {
            // RST is challenged in the window (RFC 5961 section 3.2), other segments outside.
            if flags.has(Flags::RST) == is_acceptable {
                handshake.challenge(now, syn, outlet);
            }
            return;
        }
        if flags.has(Flags::SYN) {
            if handshake.opened == Opened::Passively {
                return self.leave_syn_received(End::Reset);
            }
            return handshake.challenge(now, syn, outlet);
        }
        if !flags.has(Flags::ACK) {
            return;
        }
        if segment.ack != handshake.snd_nxt() {
            return outlet.refuse(packet);
        }
        let (config, around) = (&self.config, &mut self.around);
        self.state.change(|state| match state {
            State::SynReceived(handshake, syn) => {
                State::Established(Box::new(Connection::new(now, config, &handshake, &syn, false, around)))
            }
            other => other,
        });
        self.go_on_closing(now);
        self.when_synchronised(now, packet);
    }

    /// Ends a handshake that does not succeed: a passive open goes on waiting (RFC 9293 section 3.10.7.4).
    fn leave_syn_received(&mut self, end: End) {
        let goes_on = |handshake: &Handshake| handshake.opened == Opened::Passively && !self.is_closing;
        if matches!(&self.state, State::SynReceived(handshake, _) if goes_on(handshake)) {
            self.state.change(|_| State::Listen);
        } else {
            self.finish(end);
        }
    }

    /// RFC 9293 section 3.10.7.4, for the synchronised states.
    fn when_synchronised(&mut self, now: Time, packet: &Incoming<'_>) {
        let Some(connection) = self.state.connection_mut() else { return };
        match connection.receive(now, packet, &mut self.around) {
            Verdict::Dropped => {}
            // In TIME-WAIT nothing is lost.
            Verdict::Reset if self.state() == StateName::TimeWait => self.finish(End::Closed),
            Verdict::Reset => self.finish(End::Reset),
            Verdict::Unwanted => self.abort(),
            Verdict::Taken => {
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
    fn go_on_closing(&mut self, now: Time) {
        if self.is_closing && self.state() == StateName::Established {
            self.send_fin(now);
        }
    }

    /// Sends FIN after the last byte.
    fn send_fin(&mut self, now: Time) {
        let Some(connection) = self.state.connection_mut() else { return };
        connection.close(now, &mut self.around);
        self.state.change(|state| match state {
            State::Established(connection) => State::FinWait1(connection),
            State::CloseWait(connection) => State::LastAck(connection),
            other => other,
        });
    }

    /// Follows the state diagram after something has happened to the connection.
    fn advance(&mut self, now: Time) {
        let Some(connection) = self.state.connection() else { return };
        let (sent, received) = (connection.fin_is_acknowledged(), connection.fin_is_received());
        if connection.is_given_up() {
            return self.finish(End::TimedOut);
        }
        if sent && self.state() == StateName::LastAck {
            return self.finish(End::Closed);
        }
        let reads = !self.around.inbox.is_closed();
        let fin_wait = if reads { Time::NEVER } else { now + self.config.fin_wait };
        let time_wait = now + self.config.time_wait;
        let before = self.state();
        self.state.change(|state| match state {
            State::Established(connection) if received => State::CloseWait(connection),
            State::FinWait1(connection) if sent => State::FinWait2(connection, fin_wait),
            State::FinWait1(connection) if received => State::Closing(connection),
            State::FinWait2(connection, _) if received => State::TimeWait(connection, time_wait),
            State::Closing(connection) if sent => State::TimeWait(connection, time_wait),
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
