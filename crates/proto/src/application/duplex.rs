//! One end of an application's connection, at the client or at the server: a sending and a receiving half.

use lasthop_base::Time;

use crate::component::{Component, Effect, Out, Port, Signal};
use crate::packet::Packet;
use crate::report::{EndCounters, EndReport};
use crate::tcp::{Connection, EcnMode, Reactions, Receiver, ReceiverReactions, Sender, Settings};

/// The sender of one TCP connection, and the receiver of the one in the opposite direction.
#[derive(Debug)]
pub(super) struct Duplex {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// Port of the sender's packets.
    sender_port: Port,
    /// Port of the receiver's packets.
    receiver_port: Port,
    /// Whether connections are closed with FIN.
    pub(super) closes: bool,
}

/// One end of an application's connection, which is a pair of TCP connections, one for each direction.
#[derive(Debug)]
pub struct ConnectionEnd<'a> {
    /// The connection of the requests.
    pub requests: Connection,
    /// The connection of the responses.
    pub responses: Connection,
    /// Settings of what this end sends.
    pub sending: &'a Settings,
    /// Settings of what this end receives.
    pub receiving: &'a Settings,
    /// The feedback of ECN marks that this end supports; `None` if that of the settings.
    pub ecn: Option<EcnMode>,
    /// Reactions of the schemes at this end's sender.
    pub reactions: Reactions,
    /// Reactions of the schemes at this end's receiver.
    pub receiver_reactions: ReceiverReactions,
}

impl ConnectionEnd<'_> {
    /// The client's end.
    pub(super) fn client(self, requests: Port, responses: Port) -> Duplex {
        let (sends, receives) = (self.requests, self.responses);
        self.end((sends, requests), (receives, responses))
    }

    /// The server's end.
    pub(super) fn server(self, requests: Port, responses: Port) -> Duplex {
        let (sends, receives) = (self.responses, self.requests);
        self.end((sends, responses), (receives, requests))
    }

    fn end(
        self,
        (sends, sender_port): (Connection, Port),
        (receives, receiver_port): (Connection, Port),
    ) -> Duplex {
        let sender = Sender::supplied(sends, self.sending, self.reactions).without_nagle();
        let mut receiver = Receiver::new(receives, self.receiving).with_reactions(self.receiver_reactions);
        if let Some(mode) = self.ecn {
            receiver = receiver.with_ecn(mode);
        }
        Duplex { sender, receiver, sender_port, receiver_port, closes: self.sending.close }
    }
}

impl Duplex {
    /// Bytes delivered in order.
    pub(super) fn delivered(&self) -> u64 {
        self.receiver.stats().delivered.0
    }

    /// Whether either connection was aborted or reset.
    pub(super) fn is_lost(&self) -> bool {
        self.sender.is_aborted() || self.receiver.is_reset()
    }

    /// Aborts both directions after one was lost.
    pub(super) fn abort_both(&mut self, now: Time, out: &mut Out) {
        through(out, self.sender_port, |out| self.sender.abort(now, out));
        if !self.receiver.is_reset() && !self.receiver.has_ended() {
            through(out, self.receiver_port, |out| self.receiver.abort(now, out));
        }
    }

    /// Calls `act` on the sender.
    pub(super) fn drive_sender(&mut self, out: &mut Out, act: impl FnOnce(&mut Sender, &mut Out)) {
        through(out, self.sender_port, |out| act(&mut self.sender, out));
    }

    /// The report on all connections at an end.
    pub(super) fn report<'a>(all: impl Iterator<Item = &'a Duplex>) -> EndReport {
        let halves = all.flat_map(|duplex| [duplex.sender.report(), duplex.receiver.report()]);
        let counters = halves.flatten().map(|report| report.counters);
        let counters = counters.fold(EndCounters::default(), |sum, each| sum.plus(&each));
        EndReport { counters, ..EndReport::default() }
    }

    /// Dispatches a packet by its port.
    pub(super) fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        if port == self.sender_port {
            through(out, port, |out| self.sender.receive(now, packet, Port::ONLY, out));
        } else {
            through(out, self.receiver_port, |out| self.receiver.receive(now, packet, Port::ONLY, out));
        }
    }

    /// Wakes each half whose deadline is due.
    pub(super) fn wake(&mut self, now: Time, out: &mut Out) {
        if self.receiver.next_wakeup() <= now {
            through(out, self.receiver_port, |out| self.receiver.wake(now, out));
        }
        if self.sender.next_wakeup() <= now {
            through(out, self.sender_port, |out| self.sender.wake(now, out));
        }
    }

    /// Forwards a signal to both duplex.
    pub(super) fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        through(out, self.receiver_port, |out| self.receiver.on_signal(now, signal, out));
        through(out, self.sender_port, |out| self.sender.on_signal(now, signal, out));
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.receiver.next_wakeup().min(self.sender.next_wakeup())
    }
}

/// Collects the effects of one half; its packets leave through `port`.
fn through(out: &mut Out, port: Port, emit: impl FnOnce(&mut Out)) {
    out.redirect(emit, |effect| match effect {
        Effect::Send(_, packet) => Some(Effect::Send(port, packet)),
        // The client signals when both connections are finished.
        Effect::Signal(_) => None,
        drop => Some(drop),
    });
}
