//! The one abstraction: a component, and the effects it asks for.

use alloc::vec::Vec;

use lasthop_base::Time;

use crate::packet::{DropReason, Packet};

/// A component's place in the engine; earlier places go first at the same instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u16);

/// One of a component's places to plug in a wire. What each port means is the component's affair;
/// one with two sides calls them [`Port::WIRED`] and [`Port::RADIO`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

impl Port {
    /// The only port of a component that has one, or the entrance of a one-way one.
    pub const ONLY: Port = Port(0);
    /// A base station's side towards the fixed network.
    pub const WIRED: Port = Port(0);
    /// A base station's side towards the mobile host.
    pub const RADIO: Port = Port(1);

    /// The other of two sides.
    pub const fn across(self) -> Port {
        Port(self.0 ^ 1)
    }
}

/// Something that lives in time.
///
/// Promises: `next_wakeup` is a pure function of the state; a `wake` that sends nothing moves
/// `next_wakeup` past `now`; nothing is remembered of `out` between calls.
pub trait Component: Send {
    /// A packet arrived through `port`.
    fn receive(&mut self, now: Time, packet: Packet, port: Port, out: &mut Out);

    /// The instant that [`next_wakeup`](Component::next_wakeup) named has come.
    fn wake(&mut self, _now: Time, _out: &mut Out) {}

    /// When this component next wants to be woken; [`Time::NEVER`] if it waits for nothing.
    fn next_wakeup(&self) -> Time {
        Time::NEVER
    }

    /// Something happened at a component that this one watches.
    fn hear(&mut self, _now: Time, _signal: &Signal, _out: &mut Out) {}

    /// Shows the quantities that a curious reader would plot over time.
    fn show(&self, _probe: &mut dyn Probe) {}
}

/// Receives the quantities that a component shows.
pub trait Probe {
    /// The quantity `name` has this value now. Units are in the name or in the component's docs.
    fn value(&mut self, name: &'static str, value: f64);
}

/// What a component tells those that watch it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// A link dealt with a unit on the air.
    Link(LinkEvent),
    /// A transfer is over: everything was sent and acknowledged, or it was given up or reset. A run ends when
    /// all those have said so that it waits for.
    Finished,
}

/// What became of one unit (a packet or a fragment of it) that a link put on the air.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkEvent {
    /// What happened.
    pub outcome: LinkOutcome,
    /// The packet that the unit belongs to.
    pub packet: Packet,
    /// How many times the unit has been sent now, from 1.
    pub attempt: u32,
}

/// The ways an attempt can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkOutcome {
    /// The attempt failed; there will be another, or the packet is discarded.
    AttemptFailed,
    /// The unit arrived.
    Delivered,
    /// The last permitted attempt failed: the whole packet is given up.
    Discarded,
}

/// One thing that a component wants done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// A packet leaves through a port.
    Send(Port, Packet),
    /// A packet is gone.
    Drop(Packet, DropReason),
    /// Those who watch shall know.
    Signal(Signal),
}

/// What components want done, in the order in which they said so, each with who said it.
#[derive(Debug, Default)]
pub struct Out {
    effects: Vec<(ComponentId, Effect)>,
    /// How many at the head of `effects` were taken; all of them are let go at once.
    taken: usize,
    speaker: ComponentId,
}

impl Out {
    /// Sends `packet` out of `port`; it reaches the other end of the wire at this same instant.
    pub fn send(&mut self, port: Port, packet: Packet) {
        self.push(Effect::Send(port, packet));
    }

    /// Says that `packet` is lost here, and why.
    pub fn drop(&mut self, packet: Packet, reason: DropReason) {
        self.push(Effect::Drop(packet, reason));
    }

    /// Tells those who watch this component.
    pub fn signal(&mut self, signal: Signal) {
        self.push(Effect::Signal(signal));
    }

    /// For a component that has others inside, and is their only neighbour: lets one of them `speak`, and
    /// gives each thing that it wants done to `hear`, which says what is to be done instead, if anything is.
    /// So the owner sends the packets out of ports of its own, and makes the signals its own or keeps them.
    pub fn redirect(&mut self, speak: impl FnOnce(&mut Out), mut hear: impl FnMut(Effect) -> Option<Effect>) {
        let first = self.effects.len();
        speak(self);
        let mut end = first;
        for index in first..self.effects.len() {
            let (speaker, effect) = self.effects[index];
            if let Some(effect) = hear(effect) {
                self.effects[end] = (speaker, effect);
                end += 1;
            }
        }
        self.effects.truncate(end);
    }

    fn push(&mut self, effect: Effect) {
        self.effects.push((self.speaker, effect));
    }

    /// For the one who drives components: what is said from now on is said by `speaker`.
    pub fn speaking(&mut self, speaker: ComponentId) -> &mut Out {
        self.speaker = speaker;
        self
    }

    /// For the one who drives components: the effect said as number `index` since the last
    /// [`clear`](Out::clear), and who wanted it.
    pub fn get(&self, index: usize) -> Option<&(ComponentId, Effect)> {
        self.effects.get(index)
    }

    /// For the one who drives components: lets go of all effects, once they were carried out.
    pub fn clear(&mut self) {
        self.effects.clear();
        self.taken = 0;
    }

    /// For the one who drives components: the earliest effect not yet taken, and who wanted it.
    pub fn take(&mut self) -> Option<(ComponentId, Effect)> {
        match self.effects.get(self.taken) {
            Some(&effect) => {
                self.taken += 1;
                Some(effect)
            }
            None => {
                self.clear();
                None
            }
        }
    }

    /// Whether all effects were taken.
    pub fn is_empty(&self) -> bool {
        self.taken == self.effects.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Body, Datagram, Dscp, FlowId, HostId};
    use lasthop_base::Bytes;

    fn packet(seq: u64) -> Packet {
        let body = Body::Datagram(Datagram { seq, sent: Time::ZERO });
        let (src, dst, flow) = (HostId(0), HostId(1), FlowId(0));
        Packet { src, dst, flow, size: Bytes(40), dscp: Dscp::DEFAULT, body }
    }

    /// What a component inside another says is heard in its order, and done as its owner has it: at another
    /// port or not at all. What the owner itself said stands.
    #[test]
    fn an_owner_says_what_becomes_of_what_it_hears() {
        let mut out = Out::default();
        out.speaking(ComponentId(7)).send(Port::RADIO, packet(0));
        let mut heard = Vec::new();
        let speak = |out: &mut Out| {
            out.signal(Signal::Finished);
            out.send(Port::ONLY, packet(1));
            out.drop(packet(2), DropReason::QueueFull);
            out.send(Port::ONLY, packet(3));
        };
        out.redirect(speak, |effect| {
            heard.push(effect);
            match effect {
                Effect::Send(Port::ONLY, packet) => Some(Effect::Send(Port::RADIO, packet)),
                Effect::Drop(..) => Some(effect),
                _ => None,
            }
        });
        let first = [Effect::Signal(Signal::Finished), Effect::Send(Port::ONLY, packet(1))];
        assert_eq!(heard[..2], first);
        assert_eq!(heard.len(), 4);
        out.send(Port::WIRED, packet(4));
        let owner = |effect| (ComponentId(7), effect);
        let mut left = Vec::new();
        while let Some(effect) = out.take() {
            left.push(effect);
        }
        let done = [
            Effect::Send(Port::RADIO, packet(0)),
            Effect::Send(Port::RADIO, packet(1)),
            Effect::Drop(packet(2), DropReason::QueueFull),
            Effect::Send(Port::RADIO, packet(3)),
            Effect::Send(Port::WIRED, packet(4)),
        ];
        assert_eq!(left, done.map(owner));
    }
}
