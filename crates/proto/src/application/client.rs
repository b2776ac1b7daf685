//! The client of an application.

use alloc::boxed::Box;
use alloc::vec::Vec;

use lasthop_base::{Streams, Time};

use super::activity::Behaviour;
use super::{Answer, Config, Exchange, TcpConnections};
use crate::component::{Component, Out, Port, Request, Signal, Tally};
use crate::packet::Packet;
use crate::report::{EndReport, Experience, Usage, Wait};

/// The client: makes the requests of an [`Activity`](super::Activity) over an [`Exchange`] and measures their response
/// times.
///
/// After the last response, it closes the exchange, and then emits [`Signal::Finished`]. If a connection is lost, it
/// aborts the others and finishes too.
#[derive(Debug)]
pub struct Client<E = TcpConnections> {
    exchange: E,
    behaviour: Box<dyn Behaviour>,
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

impl<E: Exchange> Client<E> {
    /// The client of the application called `name`. Its exchange has the activity's
    /// [number](super::Activity::connections) of connections.
    ///
    /// # Panics
    /// If the parameters are not [valid](Config::validate).
    pub fn new(config: &Config, exchange: E, streams: Streams, name: &str) -> Client<E> {
        if let Err((key, invalid)) = config.validate() {
            panic!("{key}.{invalid}");
        }
        Client {
            exchange,
            behaviour: config.activity.behaviour(config.start, config.stop, streams, name),
            requests: 0,
            waits: Vec::new(),
            phase: Phase::Active,
        }
    }

    /// As [`Usage::requests`].
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// As [`Usage::waits`].
    pub fn waits(&self) -> &[Wait] {
        &self.waits
    }

    /// The user's experience until `now`.
    pub fn experience(&self, now: Time) -> Experience {
        self.behaviour.experience(now)
    }

    /// The client's end of the transport.
    pub fn exchange(&self) -> &E {
        &self.exchange
    }

    fn ask(&mut self, now: Time, asked: &mut Vec<Request>, out: &mut Out) {
        if !asked.is_empty() {
            self.requests += asked.len() as u64;
            self.exchange.ask(now, asked, out);
            asked.clear();
        }
    }

    /// Called after every event: processes complete responses, and finishes the application.
    fn update(&mut self, now: Time, out: &mut Out) {
        if self.phase == Phase::Finished {
            return;
        }
        if self.exchange.is_lost() {
            self.exchange.abort(now, out);
            self.finish(out);
            return;
        }
        let mut asked = Vec::new();
        while let Some(Answer { connection, since }) = self.exchange.answer(now, out) {
            self.waits.push(Wait { since, length: now.since(since) });
            self.behaviour.on_response(now, connection, since, &mut asked);
            self.ask(now, &mut asked, out);
        }
        if self.phase == Phase::Active && self.behaviour.is_over() && !self.exchange.is_waiting() {
            self.phase = Phase::Closing;
            self.exchange.close(now, out);
        }
        if self.phase == Phase::Closing && self.exchange.has_closed() {
            self.finish(out);
        }
    }

    fn finish(&mut self, out: &mut Out) {
        self.phase = Phase::Finished;
        out.signal(Signal::Finished);
    }
}

impl<E: Exchange> Component for Client<E> {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.exchange.receive(now, packet, port, out);
        self.update(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.exchange.wake(now, out);
        if self.behaviour.next_wakeup() <= now && self.phase != Phase::Finished {
            let mut asked = Vec::new();
            self.behaviour.wake(now, &mut asked);
            self.ask(now, &mut asked, out);
        }
        self.update(now, out);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        self.exchange.on_signal(now, signal, out);
        self.update(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let own = match self.phase {
            Phase::Finished => Time::NEVER,
            Phase::Active | Phase::Closing => self.behaviour.next_wakeup(),
        };
        self.exchange.next_wakeup().min(own)
    }

    fn report(&self) -> Option<EndReport> {
        self.exchange.report()
    }

    fn count(&self, tally: &mut dyn Tally) {
        self.exchange.count(tally);
    }

    fn usage(&self, now: Time) -> Option<Usage> {
        let experience = self.experience(now);
        Some(Usage { requests: self.requests, waits: self.waits.clone(), experience })
    }
}
