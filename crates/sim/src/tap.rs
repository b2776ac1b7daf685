//! Observation of a run. Components contain no logging; the engine reports to a tap instead.

use lasthop_base::Time;
use lasthop_proto::{ComponentId, DropReason, Packet, Port, Signal};

use crate::node::Node;

/// Index of a wire in the engine, in the order of connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireId(pub u32);

/// A one-way connection between two ports, crossed in zero time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Index of the wire.
    pub id: WireId,
    /// The port at which packets enter.
    pub from: (ComponentId, Port),
    /// The port at which packets leave.
    pub to: (ComponentId, Port),
}

/// An observer. The engine is generic over it, so [`NoTap`] costs nothing.
pub trait Tap {
    /// A packet crosses a wire: it leaves `wire.from` and enters `wire.to`.
    fn cross(&mut self, _now: Time, _wire: Wire, _packet: &Packet) {}

    /// A component drops a packet.
    fn drop(&mut self, _now: Time, _at: ComponentId, _packet: &Packet, _reason: DropReason) {}

    /// A component sends a signal to its watchers.
    fn signal(&mut self, _now: Time, _from: ComponentId, _signal: &Signal) {}

    /// A component has just handled a packet, a wake-up or a signal.
    fn handled(&mut self, _now: Time, _id: ComponentId, _component: &Node) {}

    /// Whether the tap needs [`cross`](Tap::cross) for this wire. Called once, before the run. Crossings of other wires
    /// may be reported or not: between links, [look-ahead](crate::look_ahead) leaves them out.
    fn sees_wire(&self, _wire: &Wire) -> bool {
        true
    }

    /// Whether the tap needs [`signal`](Tap::signal). Called once, before the run. Without it, link events that no
    /// component needs are not signalled.
    fn sees_signals(&self) -> bool {
        true
    }

    /// Whether the tap needs [`handled`](Tap::handled) for this component. Called once, before the run. Calls for other
    /// components may be left out.
    fn sees_component(&self, _id: ComponentId) -> bool {
        true
    }
}

/// A tap that observes nothing, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTap;

impl Tap for NoTap {
    fn sees_wire(&self, _wire: &Wire) -> bool {
        false
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, _id: ComponentId) -> bool {
        false
    }
}

/// Two taps side by side.
impl<A: Tap, B: Tap> Tap for (A, B) {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        self.0.cross(now, wire, packet);
        self.1.cross(now, wire, packet);
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        self.0.drop(now, at, packet, reason);
        self.1.drop(now, at, packet, reason);
    }

    fn signal(&mut self, now: Time, from: ComponentId, signal: &Signal) {
        self.0.signal(now, from, signal);
        self.1.signal(now, from, signal);
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        self.0.handled(now, id, component);
        self.1.handled(now, id, component);
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        self.0.sees_wire(wire) || self.1.sees_wire(wire)
    }

    fn sees_signals(&self) -> bool {
        self.0.sees_signals() || self.1.sees_signals()
    }

    fn sees_component(&self, id: ComponentId) -> bool {
        self.0.sees_component(id) || self.1.sees_component(id)
    }
}

/// An optional tap.
impl<T: Tap> Tap for Option<T> {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        if let Some(tap) = self {
            tap.cross(now, wire, packet);
        }
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        if let Some(tap) = self {
            tap.drop(now, at, packet, reason);
        }
    }

    fn signal(&mut self, now: Time, from: ComponentId, signal: &Signal) {
        if let Some(tap) = self {
            tap.signal(now, from, signal);
        }
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        if let Some(tap) = self {
            tap.handled(now, id, component);
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        self.as_ref().is_some_and(|tap| tap.sees_wire(wire))
    }

    fn sees_signals(&self) -> bool {
        self.as_ref().is_some_and(Tap::sees_signals)
    }

    fn sees_component(&self, id: ComponentId) -> bool {
        self.as_ref().is_some_and(|tap| tap.sees_component(id))
    }
}

/// Any number of taps.
impl<T: Tap> Tap for Vec<T> {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        self.iter_mut().for_each(|tap| tap.cross(now, wire, packet));
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        self.iter_mut().for_each(|tap| tap.drop(now, at, packet, reason));
    }

    fn signal(&mut self, now: Time, from: ComponentId, signal: &Signal) {
        self.iter_mut().for_each(|tap| tap.signal(now, from, signal));
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        self.iter_mut().for_each(|tap| tap.handled(now, id, component));
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        self.iter().any(|tap| tap.sees_wire(wire))
    }

    fn sees_signals(&self) -> bool {
        self.iter().any(Tap::sees_signals)
    }

    fn sees_component(&self, id: ComponentId) -> bool {
        self.iter().any(|tap| tap.sees_component(id))
    }
}
