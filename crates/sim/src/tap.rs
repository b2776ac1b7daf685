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
}

/// A tap that observes nothing, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTap;

impl Tap for NoTap {}

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
}
