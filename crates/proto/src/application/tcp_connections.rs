//! An application's exchange over TCP.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Time};

use super::duplex::{ConnectionEnd, Duplex};
use super::{Answer, Exchange, SERVER_FLIGHT, connection_of, requests, responses};
use crate::component::{Component, Out, Port, Request, Signal};
use crate::packet::Packet;
use crate::report::EndReport;
use crate::tcp::{Receiver, Sender};

/// Length of the ClientHello of a TLS 1.3 handshake (RFC 8446 section 2), padded as in current browsers (RFC 7685). Our
/// choice.
const CLIENT_HELLO: Bytes = Bytes(517);

/// The client's ends of an application's TCP connections. Connection `c` has the ports [`requests(c)`](requests) and
/// [`responses(c)`](responses), and opens with its first request.
///
/// [Closed](Exchange::close), the client closes the request connections and the server the response connections, if the
/// settings close connections at all.
#[derive(Debug)]
pub struct TcpConnections {
    connections: Vec<ClientConnection>,
    /// Whether connections begin with a TLS handshake.
    tls: bool,
}

/// The client's end of a connection.
#[derive(Debug)]
pub struct ClientConnection {
    duplex: Duplex,
    /// Total size of all requested responses, in bytes.
    expected: u64,
    pending: VecDeque<Pending>,
    /// Requests that wait for the end of the TLS handshake, with the time at which they were made.
    held: Vec<(Time, Request)>,
}

/// A request whose response is not complete.
#[derive(Debug)]
struct Pending {
    /// Time of the request; `None` for the TLS handshake.
    since: Option<Time>,
    /// Bytes delivered on the connection at which the response is complete.
    until_delivered: u64,
}

impl ClientConnection {
    /// The sender of the requests.
    pub fn sender(&self) -> &Sender {
        &self.duplex.sender
    }

    /// The receiver of the responses.
    pub fn receiver(&self) -> &Receiver {
        &self.duplex.receiver
    }

    /// Takes the oldest outstanding request if its response is complete.
    fn take_response(&mut self) -> Option<Pending> {
        let delivered = self.duplex.delivered();
        self.pending.pop_front_if(|first| first.until_delivered <= delivered)
    }

    fn is_used(&self) -> bool {
        self.expected > 0
    }

    fn has_closed(&self) -> bool {
        let Duplex { sender, receiver, closes, .. } = &self.duplex;
        sender.stats().completed.is_some() && (!closes || receiver.has_ended())
    }

    /// Sends a request that was made at `since`.
    fn send(&mut self, now: Time, since: Option<Time>, asked: Request, out: &mut Out) {
        self.expected += asked.response.0;
        self.pending.push_back(Pending { since, until_delivered: self.expected });
        out.signal(Signal::Request(asked));
        self.duplex.drive_sender(out, |sender, out| sender.supply(now, asked.size.0, out));
    }

    /// Sends a request, after a TLS handshake if it is the first.
    fn send_encrypted(&mut self, now: Time, asked: Request, out: &mut Out) {
        if !self.is_used() {
            let hello = Request { size: CLIENT_HELLO, response: SERVER_FLIGHT, ..asked };
            self.send(now, None, hello, out);
        }
        let in_handshake = self.pending.front().is_some_and(|first| first.since.is_none());
        match in_handshake {
            true => self.held.push((now, asked)),
            false => self.send(now, Some(now), asked, out),
        }
    }
}

impl TcpConnections {
    /// The client's ends of the connections, each of which begins with a TLS handshake if `tls`.
    pub fn new<'a>(connections: impl IntoIterator<Item = ConnectionEnd<'a>>, tls: bool) -> TcpConnections {
        let connections = (0..).zip(connections).map(|(number, ends)| ClientConnection {
            duplex: ends.client(requests(number), responses(number)),
            expected: 0,
            pending: VecDeque::new(),
            held: Vec::new(),
        });
        TcpConnections { connections: connections.collect(), tls }
    }

    /// The connections, in order.
    pub fn connections(&self) -> &[ClientConnection] {
        &self.connections
    }
}

impl Exchange for TcpConnections {
    fn ask(&mut self, now: Time, requests: &[Request], out: &mut Out) {
        for request in requests {
            let connection = &mut self.connections[usize::from(request.connection)];
            match self.tls {
                true => connection.send_encrypted(now, *request, out),
                false => connection.send(now, Some(now), *request, out),
            }
        }
    }

    fn answer(&mut self, now: Time, out: &mut Out) -> Option<Answer> {
        for (number, connection) in (0..).zip(&mut self.connections) {
            while let Some(Pending { since, .. }) = connection.take_response() {
                if let Some(since) = since {
                    return Some(Answer { connection: number, since });
                }
                for (since, held) in core::mem::take(&mut connection.held) {
                    connection.send(now, Some(since), held, out);
                }
            }
        }
        None
    }

    fn is_waiting(&self) -> bool {
        self.connections.iter().any(|connection| !connection.pending.is_empty())
    }

    fn close(&mut self, now: Time, out: &mut Out) {
        for connection in self.connections.iter_mut().filter(|connection| connection.is_used()) {
            connection.duplex.drive_sender(out, |sender, out| sender.close(now, out));
        }
    }

    fn has_closed(&self) -> bool {
        let mut used = self.connections.iter().filter(|connection| connection.is_used());
        used.all(ClientConnection::has_closed)
    }

    fn is_lost(&self) -> bool {
        self.connections.iter().any(|connection| connection.duplex.is_lost())
    }

    fn abort(&mut self, now: Time, out: &mut Out) {
        self.connections.iter_mut().for_each(|connection| connection.duplex.abort_both(now, out));
    }
}

impl Component for TcpConnections {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.connections[connection_of(port)].duplex.receive(now, packet, port, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        for connection in &mut self.connections {
            connection.duplex.wake(now, out);
        }
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        for connection in &mut self.connections {
            connection.duplex.on_signal(now, signal, out);
        }
    }

    fn next_wakeup(&self) -> Time {
        let ends = self.connections.iter().map(|connection| connection.duplex.next_wakeup());
        ends.fold(Time::NEVER, Time::min)
    }

    fn report(&self) -> Option<EndReport> {
        Some(Duplex::report(self.connections.iter().map(|connection| &connection.duplex)))
    }
}
