//! What an observer sees of a run. Components contain no logging: the engine taps their wires.

use lasthop_base::Time;
use lasthop_proto::{ComponentId, DropReason, Packet, Port, Signal};

use crate::node::Node;

/// A wire's place in the engine, in the order in which they were connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireId(pub u32);

/// A one-way connection between two components' ports; crossing it takes no time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Its place.
    pub id: WireId,
    /// Where packets enter it.
    pub from: (ComponentId, Port),
    /// Where they leave it.
    pub to: (ComponentId, Port),
}

/// An observer. The engine is generic over it, so that one that does nothing costs nothing.
pub trait Tap {
    /// A packet crosses a wire: it leaves `wire.from` and enters `wire.to`.
    fn cross(&mut self, _now: Time, _wire: Wire, _packet: &Packet) {}

    /// A packet is lost at a component.
    fn drop(&mut self, _now: Time, _at: ComponentId, _packet: &Packet, _reason: DropReason) {}

    /// A component signals to its watchers.
    fn signal(&mut self, _now: Time, _from: ComponentId, _signal: &Signal) {}

    /// A component has just dealt with a packet, a wake-up or a signal.
    fn touched(&mut self, _now: Time, _id: ComponentId, _component: &Node) {}
}

/// Observes nothing, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTap;

impl Tap for NoTap {}

/// Two observers side by side.
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

    fn touched(&mut self, now: Time, id: ComponentId, component: &Node) {
        self.0.touched(now, id, component);
        self.1.touched(now, id, component);
    }
}

/// Perhaps an observer.
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

    fn touched(&mut self, now: Time, id: ComponentId, component: &Node) {
        if let Some(tap) = self {
            tap.touched(now, id, component);
        }
    }
}

/// Any number of observers.
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

    fn touched(&mut self, now: Time, id: ComponentId, component: &Node) {
        self.iter_mut().for_each(|tap| tap.touched(now, id, component));
    }
}
