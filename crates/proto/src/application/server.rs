//! The server of a request/response application.

use alloc::boxed::Box;

use lasthop_base::Time;

use super::endpoints::Endpoints;
use super::{REQUESTS, RESPONSES, Script};
use crate::component::{Component, Out, Port, Signal};
use crate::packet::Packet;
use crate::tcp::{Connection, Reactions, Receiver, ReceiverReactions, Sender, Settings};

/// Responds to each request as soon as it is complete, with sizes from a [`Script`]. Uses the ports
/// [`REQUESTS`] and [`RESPONSES`].
///
/// Opens its connection when the first packet of the client arrives, so that both connections open together.
/// Closes it when the client has closed the request connection, and aborts it when that one is lost.
#[derive(Debug)]
pub struct Server {
    endpoints: Endpoints,
    /// Boxed because its streams are large.
    script: Box<Script>,
    /// Bytes of all requests up to and including the current one.
    expected: u64,
    closed: bool,
}

impl Server {
    /// A server that receives over the connection `requests` and sends over `responses`; `reaction` is the
    /// scheme's extension of its sender.
    pub fn new(
        requests: Connection,
        responses: Connection,
        settings: (&Settings, &Settings),
        reactions: (Reactions, ReceiverReactions),
        mut script: Script,
    ) -> Server {
        let expected = script.request();
        let endpoints = Endpoints::new((responses, RESPONSES), (requests, REQUESTS), settings, reactions);
        Server { endpoints, script: Box::new(script), expected, closed: false }
    }

    /// The sender of the response connection.
    pub fn sender(&self) -> &Sender {
        &self.endpoints.sender
    }

    /// The receiver of the request connection.
    pub fn receiver(&self) -> &Receiver {
        &self.endpoints.receiver
    }

    /// Called after every event: responds to complete requests.
    fn update(&mut self, now: Time, out: &mut Out) {
        if self.endpoints.is_lost() {
            if !self.closed {
                self.closed = true;
                self.endpoints.abort_both(now, out);
            }
            return;
        }
        if self.endpoints.delivered() >= self.expected {
            self.expected += self.script.request();
            let response = self.script.response();
            self.endpoints.drive_sender(out, |sender, out| sender.supply(now, response, out));
        }
        if self.endpoints.receiver.has_ended() && !self.closed {
            self.closed = true;
            self.endpoints.drive_sender(out, |sender, out| sender.close(now, out));
        }
    }
}

impl Component for Server {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.endpoints.receive(now, packet, port, out);
        if port == REQUESTS {
            self.endpoints.drive_sender(out, |sender, out| sender.open(now, out));
        }
        self.update(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.endpoints.wake(now, out);
        self.update(now, out);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        self.endpoints.on_signal(now, signal, out);
        self.update(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.endpoints.next_wakeup()
    }
}
