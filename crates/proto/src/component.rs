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

    /// A watched component emitted a signal.
    fn on_signal(&mut self, _now: Time, _signal: &Signal, _out: &mut Out) {}

    /// Shows the quantities that a curious reader would plot over time.
    fn show(&self, _probe: &mut dyn Probe) {}
}

/// Receives the quantities that a component shows.
pub trait Probe {
    /// The quantity `name` has this value now. Units are in the name or in the component's docs.
    fn value(&mut self, name: &'static str, value: f64);
}

/// What a component signals to its watchers.
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
    /// Delivered to every watcher of this component.
    Signal(Signal),
}

/// The effects that components want, in the order in which they were emitted, each with its emitter.
#[derive(Debug, Default)]
pub struct Out {
    effects: Vec<(ComponentId, Effect)>,
    /// Effects at the head of `effects` that were taken; all of them are forgotten at once.
    taken: usize,
    emitter: ComponentId,
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

    /// Signals to the watchers of this component.
    pub fn signal(&mut self, signal: Signal) {
        self.push(Effect::Signal(signal));
    }

    /// For a component that embeds others and is their only neighbour: lets one of them `emit` effects, and
    /// replaces each by what `rewrite` makes of it; none drops it. So the owner sends the packets out of ports of
    /// its own, and passes the signals on as its own or keeps them.
    pub fn redirect(
        &mut self,
        emit: impl FnOnce(&mut Out),
        mut rewrite: impl FnMut(Effect) -> Option<Effect>,
    ) {
        let first = self.effects.len();
        emit(self);
        let mut end = first;
        for index in first..self.effects.len() {
            let (emitter, effect) = self.effects[index];
            if let Some(effect) = rewrite(effect) {
                self.effects[end] = (emitter, effect);
                end += 1;
            }
        }
        self.effects.truncate(end);
    }

    fn push(&mut self, effect: Effect) {
        self.effects.push((self.emitter, effect));
    }

    /// For the driver of components: attributes the effects that follow to `emitter`.
    pub fn attributed_to(&mut self, emitter: ComponentId) -> &mut Out {
        self.emitter = emitter;
        self
    }

    /// For the driver of components: effect number `index` since the last [`clear`](Out::clear), and its
    /// emitter.
    pub fn get(&self, index: usize) -> Option<&(ComponentId, Effect)> {
        self.effects.get(index)
    }

    /// For the driver of components: forgets all effects, once they were carried out.
    pub fn clear(&mut self) {
        self.effects.clear();
        self.taken = 0;
    }

    /// For the driver of components: takes the earliest effect, and its emitter.
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
    use crate::packet::{Body, Datagram, Dscp, Ecn, FlowId, HostId};
    use lasthop_base::Bytes;

    fn packet(seq: u64) -> Packet {
        let body = Body::Datagram(Datagram { seq, sent: Time::ZERO });
        let (src, dst, flow) = (HostId(0), HostId(1), FlowId(0));
        Packet { src, dst, flow, size: Bytes(40), dscp: Dscp::DEFAULT, ecn: Ecn::NotEct, body }
    }

    /// The effects of an embedded component are rewritten in their order: sent by another port, or dropped. The
    /// owner's own effects stand.
    #[test]
    fn an_owner_rewrites_the_effects_of_an_embedded_component() {
        let mut out = Out::default();
        out.attributed_to(ComponentId(7)).send(Port::RADIO, packet(0));
        let mut seen = Vec::new();
        let emit = |out: &mut Out| {
            out.signal(Signal::Finished);
            out.send(Port::ONLY, packet(1));
            out.drop(packet(2), DropReason::QueueFull);
            out.send(Port::ONLY, packet(3));
        };
        out.redirect(emit, |effect| {
            seen.push(effect);
            match effect {
                Effect::Send(Port::ONLY, packet) => Some(Effect::Send(Port::RADIO, packet)),
                Effect::Drop(..) => Some(effect),
                _ => None,
            }
        });
        let first = [Effect::Signal(Signal::Finished), Effect::Send(Port::ONLY, packet(1))];
        assert_eq!(seen[..2], first);
        assert_eq!(seen.len(), 4);
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
