//! The server of an application.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Time};

use super::duplex::{ConnectionEnd, Duplex};
use super::{connection_of, requests, responses};
use crate::component::{Component, Out, Port, Signal};
use crate::packet::Packet;
use crate::report::EndReport;
use crate::tcp::{Receiver, Sender};

/// The server over TCP: responds to each request as soon as all of it has arrived, in the order of the requests of a connection. Uses
/// the ports of the [`Client`](super::Client).
///
/// Opens the response connection when the first packet of the client arrives, so that both directions open together.
/// Closes it when the client has closed the request connection, and aborts it when that one is lost.
#[derive(Debug)]
pub struct Server {
    connections: Vec<ServerConnection>,
}

/// The server's end of a connection.
#[derive(Debug)]
pub struct ServerConnection {
    duplex: Duplex,
    /// Total size of all requests, in bytes.
    asked: u64,
    /// Unanswered requests: the bytes delivered at which each is complete, and the size of its response.
    pending: VecDeque<(u64, Bytes)>,
    closed: bool,
}

impl ServerConnection {
    /// The sender of the responses.
    pub fn sender(&self) -> &Sender {
        &self.duplex.sender
    }

    /// The receiver of the requests.
    pub fn receiver(&self) -> &Receiver {
        &self.duplex.receiver
    }

    /// Called after every event: responds to complete requests.
    fn update(&mut self, now: Time, out: &mut Out) {
        if self.duplex.is_lost() {
            if !self.closed {
                self.closed = true;
                self.duplex.abort_both(now, out);
            }
            return;
        }
        let delivered = self.duplex.delivered();
        while let Some((_, response)) = self.pending.pop_front_if(|(until, _)| *until <= delivered) {
            self.duplex.drive_sender(out, |sender, out| sender.supply(now, response.0, out));
        }
        if self.duplex.receiver.has_ended() && !self.closed {
            self.closed = true;
            self.duplex.drive_sender(out, |sender, out| sender.close(now, out));
        }
    }
}

impl Server {
    /// A server with the server's ends of the client's connections.
    pub fn new<'a>(connections: impl IntoIterator<Item = ConnectionEnd<'a>>) -> Server {
        let connections = (0..).zip(connections).map(|(number, ends)| ServerConnection {
            duplex: ends.server(requests(number), responses(number)),
            asked: 0,
            pending: VecDeque::new(),
            closed: false,
        });
        Server { connections: connections.collect() }
    }

    /// The server's ends of the connections.
    pub fn connections(&self) -> &[ServerConnection] {
        &self.connections
    }
}

impl Component for Server {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let number = connection_of(port);
        let connection = &mut self.connections[number];
        connection.duplex.receive(now, packet, port, out);
        if port == requests(number as u8) {
            connection.duplex.drive_sender(out, |sender, out| sender.open(now, out));
        }
        connection.update(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        for connection in &mut self.connections {
            if connection.duplex.next_wakeup() <= now {
                connection.duplex.wake(now, out);
                connection.update(now, out);
            }
        }
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        if let Signal::Request(asked) = signal {
            let connection = &mut self.connections[usize::from(asked.connection)];
            connection.asked += asked.size.0;
            connection.pending.push_back((connection.asked, asked.response));
            return;
        }
        for connection in &mut self.connections {
            connection.duplex.on_signal(now, signal, out);
            connection.update(now, out);
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
