//! A listening socket: many connections to one address.

use std::collections::VecDeque;
use std::net::SocketAddr;

use lasthop_base::Time;
use lasthop_proto::tcp::Flags;
use lasthop_wire::Icmp;

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::packet::{Incoming, Outgoing, refuse};
use crate::secret::Secret;
use crate::state::StateName;

/// Listens on an address (RFC 9293 section 3.10.1): creates an [`Endpoint`] for each SYN, which the caller
/// [accepts](Listener::accept) after the handshake.
///
/// The caller passes in the segments for the address that belong to no accepted endpoint, and calls `wake`
/// and `poll` as for an endpoint.
#[derive(Debug)]
pub struct Listener {
    config: Config,
    local: SocketAddr,
    backlog: usize,
    secret: Secret,
    /// Connections in SYN-RECEIVED, then the accept queue in the order of establishment.
    opening: Vec<Endpoint>,
    waiting: VecDeque<Endpoint>,
    packets: VecDeque<Outgoing>,
}

impl Listener {
    /// A listener at `local`; an unspecified address stands for all addresses of the host. A SYN is dropped
    /// while `backlog` connections (at least one) are in SYN-RECEIVED or in the accept queue; the peer will
    /// retransmit it.
    pub fn new(config: Config, local: SocketAddr, backlog: usize, secret: Secret) -> Listener {
        let (opening, waiting, packets) = Default::default();
        Listener { config, local, backlog: backlog.max(1), secret, opening, waiting, packets }
    }

    /// Address and port.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// The settings of future connections.
    pub fn config_mut(&mut self) -> &mut Config {
        &mut self.config
    }

    /// Sets the limit of connections in SYN-RECEIVED and the accept queue, at least one.
    pub fn set_backlog(&mut self, backlog: usize) {
        self.backlog = backlog.max(1);
    }

    /// Number of connections in SYN-RECEIVED.
    pub fn opening(&self) -> usize {
        self.opening.len()
    }

    /// Length of the accept queue.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Removes the first connection from the accept queue; it may have ended already.
    pub fn accept(&mut self) -> Option<Endpoint> {
        self.waiting.pop_front()
    }

    /// Resets all connections that were not accepted; [`poll`](Listener::poll) returns the packets.
    pub fn close(&mut self, now: Time) {
        let children = self.opening.drain(..).chain(self.waiting.drain(..));
        for mut child in children {
            child.abort(now);
            self.packets.extend(std::iter::from_fn(|| child.poll()));
        }
    }

    /// The next packet to send; `None` if there is none.
    pub fn poll(&mut self) -> Option<Outgoing> {
        self.packets.pop_front()
    }

    /// The earliest timer, at which [`wake`](Listener::wake) is due; [`Time::NEVER`] if no timer runs.
    pub fn next_wakeup(&self) -> Time {
        let children = self.opening.iter().chain(&self.waiting);
        children.map(Endpoint::next_wakeup).min().unwrap_or(Time::NEVER)
    }

    /// Processes expired timers.
    pub fn wake(&mut self, now: Time) {
        for child in self.opening.iter_mut().chain(&mut self.waiting) {
            child.wake(now);
        }
        self.settle();
    }

    /// Whether a segment is for the address.
    pub fn is_for(&self, packet: &Incoming<'_>) -> bool {
        let (own, local) = (self.local, packet.local);
        let is_any = own.ip().is_unspecified() && own.is_ipv4() == local.is_ipv4();
        own.port() == local.port() && (own.ip() == local.ip() || is_any)
    }

    /// Processes a segment (RFC 9293 section 3.10.7.2). Segments for other addresses are ignored.
    pub fn receive(&mut self, now: Time, packet: &Incoming<'_>) {
        if !self.is_for(packet) {
            return;
        }
        let mut children = self.opening.iter_mut().chain(&mut self.waiting);
        let flags = packet.header.segment.flags;
        let is_open = |child: &Endpoint| child.state() != StateName::Closed;
        if let Some(child) = children.find(|child| child.is_for(packet) && is_open(child)) {
            child.receive(now, packet);
        } else if flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN {
            if self.opening.len() + self.waiting.len() < self.backlog {
                let mut child = Endpoint::listen(self.config.clone(), packet.local, self.secret.clone());
                child.receive(now, packet);
                self.opening.push(child);
            }
        } else if flags.has(Flags::ACK) {
            self.packets.extend(refuse(packet));
        }
        self.settle();
    }

    /// Processes an ICMP message about one of the connections.
    pub fn receive_icmp(&mut self, now: Time, icmp: &Icmp<'_>) {
        for child in self.opening.iter_mut().chain(&mut self.waiting) {
            child.receive_icmp(now, icmp);
        }
        self.settle();
    }

    /// Collects the packets of the connections, moves established ones to the accept queue, and drops failed
    /// ones.
    fn settle(&mut self) {
        let mut opening = Vec::with_capacity(self.opening.len());
        for mut child in self.opening.drain(..) {
            self.packets.extend(std::iter::from_fn(|| child.poll()));
            match child.state() {
                StateName::SynReceived => opening.push(child),
                StateName::Listen | StateName::Closed => {}
                _ => self.waiting.push_back(child),
            }
        }
        self.opening = opening;
        for child in &mut self.waiting {
            self.packets.extend(std::iter::from_fn(|| child.poll()));
        }
    }
}
