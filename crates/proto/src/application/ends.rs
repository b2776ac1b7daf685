//! What a client and a server have in common: the ends of two connections.

use alloc::boxed::Box;

use lasthop_base::Time;

use crate::component::{Component, Effect, Out, Port};
use crate::packet::Packet;
use crate::tcp::{Connection, Reaction, Receiver, Sender, Settings};

/// The sending end of one connection, and the receiving end of another.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// The port of the packets of `sender`.
    sender_port: Port,
    /// The port of the packets of `receiver`.
    receiver_port: Port,
    /// Whether connections say where they end.
    pub(super) closes: bool,
}

impl Ends {
    /// The sending end of one connection and the receiving end of another, each with its port.
    pub(super) fn new(
        (sends, sender_port): (Connection, Port),
        (receives, receiver_port): (Connection, Port),
        (sending, receiving): (&Settings, &Settings),
        reaction: Option<Box<dyn Reaction>>,
    ) -> Ends {
        let sender = Sender::supplied(sends, sending, reaction).without_nagle();
        let receiver = Receiver::new(receives, receiving);
        Ends { sender, receiver, sender_port, receiver_port, closes: sending.close }
    }

    /// Bytes that have arrived in order.
    pub(super) fn delivered(&self) -> u64 {
        self.receiver.stats().delivered.0
    }

    /// Whether one of the connections was given up or reset.
    pub(super) fn is_lost(&self) -> bool {
        self.sender.is_aborted() || self.receiver.is_reset()
    }

    /// One connection is lost, and so is the other.
    pub(super) fn give_up(&mut self, now: Time, out: &mut Out) {
        through(out, self.sender_port, |out| self.sender.abort(now, out));
        if !self.receiver.is_reset() && !self.receiver.has_ended() {
            through(out, self.receiver_port, |out| self.receiver.abort(now, out));
        }
    }

    /// Lets the sender act.
    pub(super) fn drive_sender(&mut self, out: &mut Out, act: impl FnOnce(&mut Sender, &mut Out)) {
        through(out, self.sender_port, |out| act(&mut self.sender, out));
    }

    /// A packet arrived.
    pub(super) fn receive(&mut self, now: Time, packet: Packet, port: Port, out: &mut Out) {
        if port == self.sender_port {
            through(out, port, |out| self.sender.receive(now, packet, Port::ONLY, out));
        } else {
            through(out, self.receiver_port, |out| self.receiver.receive(now, packet, Port::ONLY, out));
        }
    }

    /// An instant has come, which one of them may have asked for.
    pub(super) fn wake(&mut self, now: Time, out: &mut Out) {
        if self.receiver.next_wakeup() <= now {
            through(out, self.receiver_port, |out| self.receiver.wake(now, out));
        }
        if self.sender.next_wakeup() <= now {
            through(out, self.sender_port, |out| self.sender.wake(now, out));
        }
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.receiver.next_wakeup().min(self.sender.next_wakeup())
    }
}

/// Lets one end emit effects; its packets leave by `port`.
fn through(out: &mut Out, port: Port, emit: impl FnOnce(&mut Out)) {
    out.redirect(emit, |effect| match effect {
        Effect::Send(_, packet) => Some(Effect::Send(port, packet)),
        // The client signals when both connections are over.
        Effect::Signal(_) => None,
        drop => Some(drop),
    });
}
