//! The server of a request/response application.

use alloc::boxed::Box;

use lasthop_base::Time;

use super::ends::Ends;
use super::{REQUESTS, RESPONSES, Script};
use crate::component::{Component, Out, Port};
use crate::packet::Packet;
use crate::tcp::{Connection, Reaction, Receiver, Sender, Settings};

/// Answers each request as soon as it has arrived as a whole, by a [`Script`]. Its packets come and go by
/// [`REQUESTS`] and [`RESPONSES`].
///
/// It opens its connection with the first packet of the client's, so that both open at the same time, as if they
/// were one. It closes it when the client has closed its own, and gives it up when that one is lost.
#[derive(Debug)]
pub struct Server {
    ends: Ends,
    /// Its streams are large.
    script: Box<Script>,
    /// The bytes of all requests up to the one that is under way.
    expected: u64,
    closed: bool,
}

impl Server {
    /// One that is asked over the connection `requests` and answers over `responses`; `reaction` is what a
    /// scheme adds to its sender.
    pub fn new(
        requests: Connection,
        responses: Connection,
        settings: (&Settings, &Settings),
        reaction: Option<Box<dyn Reaction>>,
        mut script: Script,
    ) -> Server {
        let expected = script.request();
        let ends = Ends::new((responses, RESPONSES), (requests, REQUESTS), settings, reaction);
        Server { ends, script: Box::new(script), expected, closed: false }
    }

    /// The sending end of the connection of responses.
    pub fn sender(&self) -> &Sender {
        &self.ends.sender
    }

    /// The receiving end of the connection of requests.
    pub fn receiver(&self) -> &Receiver {
        &self.ends.receiver
    }

    /// After every event: answers what was asked as a whole.
    fn go_on(&mut self, now: Time, out: &mut Out) {
        if self.ends.is_lost() {
            if !self.closed {
                self.closed = true;
                self.ends.give_up(now, out);
            }
            return;
        }
        if self.ends.delivered() >= self.expected {
            self.expected += self.script.request();
            let response = self.script.response();
            self.ends.drive_sender(out, |sender, out| sender.supply(now, response, out));
        }
        if self.ends.receiver.has_ended() && !self.closed {
            self.closed = true;
            self.ends.drive_sender(out, |sender, out| sender.close(now, out));
        }
    }
}

impl Component for Server {
    fn receive(&mut self, now: Time, packet: Packet, port: Port, out: &mut Out) {
        self.ends.receive(now, packet, port, out);
        if port == REQUESTS {
            self.ends.drive_sender(out, |sender, out| sender.open(now, out));
        }
        self.go_on(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.ends.wake(now, out);
        self.go_on(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.ends.next_wakeup()
    }
}
