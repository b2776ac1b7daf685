//! The client of an application.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Streams, Time};

use super::activity::Behaviour;
use super::duplex::{ConnectionEnd, Duplex};
use super::{Config, Experience, Wait, connection_of, requests, responses};
use crate::component::{Component, Out, Port, Request, Signal};
use crate::packet::Packet;
use crate::tcp::{Receiver, Sender};

/// Length of the ClientHello of a TLS 1.3 handshake (RFC 8446 section 2), padded as in current browsers (RFC 7685). Our
/// choice.
const CLIENT_HELLO: Bytes = Bytes(517);
/// Length of the server's part of the handshake, with a chain of two or three certificates. Our choice.
const SERVER_HELLO: Bytes = Bytes(4_000);

/// The client: makes the requests of an [`Activity`](super::Activity) and measures their response times. Connection `c`
/// has the ports [`requests(c)`](requests) and [`responses(c)`](responses), and opens with its first request.
///
/// After the last response, the client closes the request connections and the server the response connections,
/// if the settings close connections at all. Then the client emits [`Signal::Finished`]. If a
/// connection is aborted or reset, the client aborts the others and finishes too.
#[derive(Debug)]
pub struct Client {
    connections: Vec<ClientConnection>,
    behaviour: Box<dyn Behaviour>,
    /// Whether connections begin with a TLS handshake.
    tls: bool,
    requests: u64,
    waits: Vec<Wait>,
    phase: Phase,
}

/// The phase of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Requests or responses are outstanding or will follow.
    Active,
    /// All responses have arrived; the connections are being closed.
    Closing,
    /// [`Signal::Finished`] was emitted.
    Finished,
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
            let hello = Request { size: CLIENT_HELLO, response: SERVER_HELLO, ..asked };
            self.send(now, None, hello, out);
        }
        let in_handshake = self.pending.front().is_some_and(|first| first.since.is_none());
        match in_handshake {
            true => self.held.push((now, asked)),
            false => self.send(now, Some(now), asked, out),
        }
    }
}

impl Client {
    /// The client of the application called `name`, with the client's ends of the activity's
    /// [number](super::Activity::connections) of connections.
    ///
    /// # Panics
    /// If the parameters are not [valid](Config::validate).
    pub fn new<'a>(
        config: &Config,
        connections: impl IntoIterator<Item = ConnectionEnd<'a>>,
        streams: Streams,
        name: &str,
    ) -> Client {
        if let Err((key, invalid)) = config.validate() {
            panic!("{key}.{invalid}");
        }
        let connections = (0..).zip(connections).map(|(number, ends)| ClientConnection {
            duplex: ends.client(requests(number), responses(number)),
            expected: 0,
            pending: VecDeque::new(),
            held: Vec::new(),
        });
        Client {
            connections: connections.collect(),
            behaviour: config.activity.behaviour(config.start, config.stop, streams, name),
            tls: config.tls,
            requests: 0,
            waits: Vec::new(),
            phase: Phase::Active,
        }
    }

    /// Requests made. TLS handshakes do not count.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The response times, in order of arrival: from the request until the last byte of the response was delivered.
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// The user's experience until `now`.
    pub fn experience(&self, now: Time) -> Experience {
        self.behaviour.experience(now)
    }

    /// The client's ends of the connections.
    pub fn connections(&self) -> &[ClientConnection] {
        &self.connections
    }

    fn ask(&mut self, now: Time, asked: &[Request], out: &mut Out) {
        for &asked in asked {
            self.requests += 1;
            let connection = &mut self.connections[usize::from(asked.connection)];
            match self.tls {
                true => connection.send_encrypted(now, asked, out),
                false => connection.send(now, Some(now), asked, out),
            }
        }
    }

    /// Called after every event: processes complete responses, and finishes the application.
    fn update(&mut self, now: Time, out: &mut Out) {
        if self.phase == Phase::Finished {
            return;
        }
        if self.connections.iter().any(|connection| connection.duplex.is_lost()) {
            self.connections.iter_mut().for_each(|connection| connection.duplex.abort_both(now, out));
            self.finish(out);
            return;
        }
        for number in 0..self.connections.len() {
            self.take_responses(now, number, out);
        }
        let waits = |connection: &ClientConnection| !connection.pending.is_empty();
        if self.phase == Phase::Active && self.behaviour.is_over() && !self.connections.iter().any(waits) {
            self.phase = Phase::Closing;
            for connection in self.connections.iter_mut().filter(|connection| connection.is_used()) {
                connection.duplex.drive_sender(out, |sender, out| sender.close(now, out));
            }
        }
        let mut used = self.connections.iter().filter(|connection| connection.is_used());
        if self.phase == Phase::Closing && used.all(ClientConnection::has_closed) {
            self.finish(out);
        }
    }

    fn finish(&mut self, out: &mut Out) {
        self.phase = Phase::Finished;
        out.signal(Signal::Finished);
    }

    fn take_responses(&mut self, now: Time, number: usize, out: &mut Out) {
        let mut asked = Vec::new();
        loop {
            let connection = &mut self.connections[number];
            let delivered = connection.duplex.delivered();
            let Some(Pending { since, .. }) =
                connection.pending.pop_front_if(|first| first.until_delivered <= delivered)
            else {
                break;
            };
            match since {
                Some(since) => {
                    self.waits.push(Wait { since, length: now.since(since) });
                    self.behaviour.on_response(now, number as u8, since, &mut asked);
                }
                None => {
                    for (since, asked) in core::mem::take(&mut connection.held) {
                        connection.send(now, Some(since), asked, out);
                    }
                }
            }
        }
        self.ask(now, &asked, out);
    }
}

impl Component for Client {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.connections[connection_of(port)].duplex.receive(now, packet, port, out);
        self.update(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        for connection in &mut self.connections {
            connection.duplex.wake(now, out);
        }
        if self.behaviour.next_wakeup() <= now && self.phase != Phase::Finished {
            let mut asked = Vec::new();
            self.behaviour.wake(now, &mut asked);
            self.ask(now, &asked, out);
        }
        self.update(now, out);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        for connection in &mut self.connections {
            connection.duplex.on_signal(now, signal, out);
        }
        self.update(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let ends = self.connections.iter().map(|connection| connection.duplex.next_wakeup());
        let own = match self.phase {
            Phase::Finished => Time::NEVER,
            Phase::Active | Phase::Closing => self.behaviour.next_wakeup(),
        };
        ends.fold(own, Time::min)
    }
}
