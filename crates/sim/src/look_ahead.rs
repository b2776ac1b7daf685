//! Look-ahead: a packet passes through several links in one step.
//!
//! Without it, a packet on a path of four links costs eight events: it enters each link, waits until its arrival is
//! due, and leaves. But some links, called lines here, decide what becomes of a packet when it enters: those without
//! an ARQ and with a drop-tail queue, wired or wireless. If all packets that enter a line come out of another line,
//! nothing that happens elsewhere matters to what it will do with them. So the engine lets a packet that enters the
//! first line enter the second at once, with the time at which it will arrive there, and so on. It is stored where its
//! way through lines ends:
//!
//! ```text
//! sender ──> line ──> line ──> line ──> receiver
//!       now     t1       t2       t3       the only deadline is t3
//! ```
//!
//! A packet passes from a line to another ahead of time if
//!
//! - all packets that enter the second line come out of the first, directly or through a router;
//! - no tap [sees](Tap::sees_wire) the wires between them, nor any of these [components](Tap::sees_component).
//!
//! Results are the same bit for bit. Packets enter every line in the same order and at the same times, so queues and
//! random numbers are the same. A packet that is lost, or that the next line has no room for, is stored in the line
//! that it has reached and dropped when that is due, in the turn of the same component. Counters of lines are settled
//! whenever a run ends: they include what would have happened by then, and no more.

use std::collections::BTreeMap;

use lasthop_proto::{ComponentId, DropReason, Outcomes, Packet, Port};

use crate::engine::Engine;
use crate::line::{End, Fate};
use crate::node::Node;
use crate::tap::{Tap, Wire};

/// How the engine treats a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A line that the engine serves itself, since no tap sees it.
    pub(crate) is_line: bool,
    /// All packets that enter this line come out of one other line.
    pub(crate) is_fed: bool,
    onward: Onward,
    /// Link events of this component that neither its watchers nor the tap need.
    pub(crate) unheard: Outcomes,
}

/// Where the wire out of a line leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Onward {
    /// To a component that packets reach when their arrival is due.
    Component,
    /// To a line that is fed by this one.
    Line(ComponentId),
    /// To a router, and from there to components, some of which may be lines fed by this one.
    Router(ComponentId),
}

impl Place {
    /// A component without look-ahead.
    pub(crate) fn plain() -> Place {
        Place { is_line: false, is_fed: false, onward: Onward::Component, unheard: Outcomes::default() }
    }

    /// The place of each component, given all wires of the network, and pairs of links of which the first
    /// [feeds](crate::Builder::feed) the second.
    pub(crate) fn all(
        nodes: &[Node],
        wires: &[Wire],
        feeds: &[(ComponentId, ComponentId)],
        tap: &impl Tap,
    ) -> Vec<Place> {
        let index = |id: ComponentId| usize::from(id.0);
        let ids = (0..nodes.len()).map(|index| ComponentId(index as u16));
        let lines = ids.zip(nodes).map(|(id, node)| node.is_line() && !tap.sees_component(id));
        let mut places: Vec<Place> = lines.map(|is_line| Place { is_line, ..Place::plain() }).collect();
        let mut inputs = vec![0u32; nodes.len()];
        for wire in wires {
            inputs[index(wire.to.0)] += 1;
        }
        for wire in wires.iter().filter(|wire| !tap.sees_wire(wire)) {
            let (from, to) = (index(wire.from.0), index(wire.to.0));
            if !places[from].is_line {
                continue;
            }
            if places[to].is_line && inputs[to] == 1 {
                places[to].is_fed = true;
                places[from].onward = Onward::Line(wire.to.0);
            } else if matches!(nodes[to], Node::Router(_)) && !tap.sees_component(wire.to.0) {
                places[from].onward = Onward::Router(wire.to.0);
            }
        }
        // A line behind a router has one input, the wire out of the router.
        let of_routers = wires.iter().filter(|wire| matches!(nodes[index(wire.from.0)], Node::Router(_)));
        let unseen = of_routers.filter(|wire| inputs[index(wire.to.0)] == 1 && !tap.sees_wire(wire));
        let behind: BTreeMap<ComponentId, ComponentId> =
            unseen.map(|wire| (wire.to.0, wire.from.0)).collect();
        for &(feeder, line) in feeds {
            let Some(&router) = behind.get(&line) else { continue };
            places[index(line)].is_fed =
                places[index(line)].is_line && places[index(feeder)].onward == Onward::Router(router);
        }
        places
    }

    /// Whether some packets pass on ahead of time.
    pub(crate) fn looks_ahead(&self) -> bool {
        self.onward != Onward::Component
    }
}

impl<T: Tap> Engine<T> {
    /// Hands a packet to the line `first`, and from there to further lines as far as it can go ahead of time.
    #[inline(never)]
    pub(crate) fn enter(&mut self, first: ComponentId, packet: &Packet) {
        let (mut id, mut at) = (first, self.now);
        let mut feeder = None;
        loop {
            self.handled += 1;
            let index = usize::from(id.0);
            let onward = self.places[index].onward;
            let line = &mut self.nodes[index];
            let (arrival, end) = match line.pass(self.now, at, packet) {
                Fate::Arrives(arrival) => {
                    let next = match onward {
                        Onward::Component => None,
                        Onward::Line(next) => Some(next),
                        Onward::Router(router) => self.behind(router, packet),
                    };
                    if let Some(next) = next {
                        feeder = Some(id);
                        (id, at) = (next, arrival);
                        continue;
                    }
                    (arrival, End::Intact)
                }
                Fate::Lost(arrival) => (arrival, End::Lost),
                Fate::Refused => match feeder {
                    Some(feeder) => {
                        id = feeder;
                        (at, End::Refused)
                    }
                    None => return self.refuse(first, packet),
                },
            };
            let index = usize::from(id.0);
            let was_empty = self.nodes[index].exit_mut().push(arrival, end, packet);
            if was_empty {
                self.wakeups.advance(index, arrival);
            }
            return;
        }
    }

    /// The line behind a router that a packet enters ahead of time; `None` if it has to wait for its arrival.
    fn behind(&self, router: ComponentId, packet: &Packet) -> Option<ComponentId> {
        let Node::Router(table) = &self.nodes[usize::from(router.0)] else {
            unreachable!("the component is a router")
        };
        let (next, _) = self.wire(router, table.port(packet)).to;
        self.places[usize::from(next.0)].is_fed.then_some(next)
    }

    fn refuse(&mut self, line: ComponentId, packet: &Packet) {
        self.nodes[usize::from(line.0)].count_refused();
        self.out.attributed_to(line).drop(*packet, DropReason::QueueFull);
    }

    /// Takes out of a line the packets that have arrived by now.
    #[inline(never)]
    pub(crate) fn leave(&mut self, line: ComponentId) {
        self.handled += 1;
        let index = usize::from(line.0);
        let wire = *self.wire(line, Port::ONLY);
        let mut more = true;
        while more {
            let exit = self.nodes[index].exit_mut();
            let (end, packet) = exit.take();
            let next = exit.next();
            self.wakeups.set(index, next);
            more = next <= self.now;
            match end {
                End::Intact => self.hand_over(wire, &packet),
                End::Lost => self.tap.drop(self.now, line, &packet, DropReason::Corrupted),
                End::Refused => {
                    let next = match self.places[index].onward {
                        Onward::Component => None,
                        Onward::Line(next) => Some(next),
                        Onward::Router(router) => self.behind(router, &packet),
                    };
                    self.refuse(next.expect("the next line refused it"), &packet);
                }
            }
        }
    }

    /// Settles the counters of the lines that the engine serves. Of the components with a deadline at this instant,
    /// those up to `last` have been woken.
    pub(crate) fn settle(&mut self, last: usize) {
        let places = self.nodes.iter_mut().zip(&self.places).enumerate();
        for (index, (line, _)) in places.filter(|(_, (_, place))| place.is_line) {
            line.settle(self.now, index <= last);
        }
    }
}
