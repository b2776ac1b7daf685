//! Look-ahead: a packet passes through several links in one step.
//!
//! Without look-ahead, a packet on a path of four links costs eight events: it enters and leaves each link.
//! But links with a drop-tail queue and without ARQ, wired or wireless, determine the fate of a packet when
//! it enters. They are called lines here. If all packets that enter a line come out of another line, no other
//! event can influence what the line does with them. So a packet that enters the first line can enter the
//! second at once, with its later arrival time, and so on. The last line that it enters stores it:
//!
//! ```text
//! sender ──> line ──> line ──> line ──> receiver
//!       now     t1       t2       t3       the only deadline is t3
//! ```
//!
//! A packet passes from a line to another ahead of time if
//!
//! - all packets that enter the second line come out of the first, directly or through a router with static
//!   routes;
//! - neither line watches another component, whose signals could influence it later;
//! - no tap [sees](Tap::sees_wire) the wires between them, nor the lines or the router
//!   [themselves](Tap::sees_component).
//!
//! # Why results are the same, bit for bit
//!
//! The first line is the only one that feeds the second, and keeps packets in order. So the second line sees
//! the same packets at the same times in either mode, and its queue and random numbers are the same. Every
//! packet takes at least a nanosecond, so the second line's next deadline is always set before it is due:
//! components that are due at the same instant are woken in the same order. A lost packet is stored in the
//! line that loses it, and a packet that finds the next queue full in the line before it; both are dropped
//! when they would have been without look-ahead. Whenever a run stops, counters are settled: they include
//! exactly the events up to that time.

use std::collections::BTreeMap;

use lasthop_base::Time;
use lasthop_proto::{ComponentId, DropReason, Outcomes, Packet, Port};

use super::{Components, Engine, Row};
use crate::link::line::{Arrival, End, Fate};
use crate::node::Node;
use crate::tap::{Tap, Wire};

/// The role of a component in look-ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// A line that the engine serves itself, since no tap sees it.
    pub(super) is_served: bool,
    /// The line out of which all packets come that enter this line.
    pub(super) feeder: Option<ComponentId>,
    onward: Onward,
    /// Link events of this component that neither its watchers nor the tap need.
    pub(super) unneeded: Outcomes,
}

/// The receiving end of the wire out of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Onward {
    /// A component that packets reach when their arrival is due.
    Component,
    /// A line that is fed by this one.
    Line(ComponentId),
    /// A router, which leads to components, some of which may be lines fed by this one.
    Router(ComponentId),
}

impl Place {
    /// A component without look-ahead.
    pub(super) fn plain() -> Place {
        Place { is_served: false, feeder: None, onward: Onward::Component, unneeded: Outcomes::default() }
    }

    /// Sets the place of each component, given all wires of the network, pairs of a watched component and its
    /// watcher, and pairs of links of which the first [feeds](crate::Builder::feed) the second.
    ///
    /// # Panics
    /// If two links feed the same link.
    pub(super) fn assign(
        rows: &mut [Row],
        wires: &[Wire],
        watches: &[(ComponentId, ComponentId)],
        feeds: &[(ComponentId, ComponentId)],
        tap: &impl Tap,
    ) {
        let index = |id: ComponentId| id.index();
        for (index, row) in rows.iter_mut().enumerate() {
            row.place.is_served = matches!(&row.node, Node::Link(link) if link.is_line())
                && !tap.sees_component(ComponentId(index as u32));
        }
        for &(_, watcher) in watches {
            rows[index(watcher)].place.is_served = false;
        }
        let mut inputs = vec![0u32; rows.len()];
        for wire in wires {
            inputs[index(wire.to.0)] += 1;
        }
        for wire in wires.iter().filter(|wire| !tap.sees_wire(wire)) {
            let (from, to) = (index(wire.from.0), index(wire.to.0));
            if !rows[from].place.is_served {
                continue;
            }
            if rows[to].place.is_served && inputs[to] == 1 {
                rows[to].place.feeder = Some(wire.from.0);
                rows[from].place.onward = Onward::Line(wire.to.0);
            } else if matches!(rows[to].node, Node::Router(_)) && !tap.sees_component(wire.to.0) {
                rows[from].place.onward = Onward::Router(wire.to.0);
            }
        }
        let of_routers = wires.iter().filter(|wire| matches!(rows[index(wire.from.0)].node, Node::Router(_)));
        let unseen = of_routers.filter(|wire| !tap.sees_wire(wire));
        let behind: BTreeMap<ComponentId, ComponentId> =
            unseen.map(|wire| (wire.to.0, wire.from.0)).collect();
        for &(feeder, line) in feeds {
            let Some(&router) = behind.get(&line) else { continue };
            let leads_there = rows[index(feeder)].place.onward == Onward::Router(router);
            let place = &mut rows[index(line)].place;
            if place.is_served && leads_there {
                let before = place.feeder.replace(feeder);
                assert!(before.is_none_or(|before| before == feeder), "{line:?} has two feeders");
            }
        }
    }

    /// Whether packets may leave this line ahead of time.
    pub(super) fn looks_ahead(&self) -> bool {
        self.onward != Onward::Component
    }
}

impl Components {
    /// Whether packets reach component `id` by its entrance as a line, ahead of which no line looks.
    ///
    /// # Panics
    /// If it is a line that another one feeds.
    #[inline(always)]
    pub(super) fn begins_line(&self, id: ComponentId) -> bool {
        let place = &self.rows[id.index()].place;
        if place.is_served {
            assert!(place.feeder.is_none(), "{id:?} gets packets from another component than its feeder");
        }
        place.is_served
    }

    /// Hands a packet to the line `first`, and from there to further lines as far as it can go ahead of time. Returns
    /// whether `first` has room for it.
    #[inline(never)]
    pub(super) fn carry(&mut self, first: ComponentId, packet: &Packet) -> bool {
        let (mut id, mut at) = (first, self.now);
        let mut feeder = None;
        loop {
            self.handled += 1;
            let index = id.index();
            let next = self.next_line(id, self.rows[index].place.onward, packet);
            let (fate, arrivals) = self.rows[index].node.link_mut().pass(self.now, at, packet);
            let (arrival, end) = match fate {
                Fate::Arrives(arrival) => {
                    assert!(arrival > at, "a packet passed {id:?} in no time");
                    if let Some(next) = next.filter(|_| arrival < Time::NEVER) {
                        feeder = Some(id);
                        (id, at) = (next, arrival);
                        continue;
                    }
                    (arrival, End::Intact)
                }
                Fate::Lost(arrival) => (arrival, End::Lost),
                Fate::Refused => return self.hold_back(feeder, at, packet),
            };
            if arrivals.push(arrival, end, packet) {
                self.wakeups.advance(index, arrival);
            }
            return true;
        }
    }

    /// Stores a packet that leaves the line `feeder` at `at`, and for which the next line has no room. Returns `false` without
    /// a feeder.
    #[cold]
    fn hold_back(&mut self, feeder: Option<ComponentId>, at: Time, packet: &Packet) -> bool {
        let Some(feeder) = feeder else { return false };
        let index = feeder.index();
        if self.rows[index].node.link_mut().arrivals().push(at, End::Refused, packet) {
            self.wakeups.advance(index, at);
        }
        true
    }

    /// The line that a packet out of `line`, whose wire leads `onward`, enters ahead of time; `None` if the
    /// packet has to wait for its arrival.
    #[inline(always)]
    fn next_line(&self, line: ComponentId, onward: Onward, packet: &Packet) -> Option<ComponentId> {
        match onward {
            Onward::Component => None,
            Onward::Line(next) => Some(next),
            Onward::Router(router) => self.behind(router, line, packet),
        }
    }

    /// Like [`next_line`](Components::next_line), for a line with a router behind it.
    fn behind(&self, router: ComponentId, feeder: ComponentId, packet: &Packet) -> Option<ComponentId> {
        let Node::Router(routes) = &self.rows[router.index()].node else {
            unreachable!("the component is a router")
        };
        let (next, _) = self.wire(router, routes.port(packet)).to;
        (self.rows[next.index()].place.feeder == Some(feeder)).then_some(next)
    }
}

impl<T: Tap> Engine<T> {
    pub(super) fn refuse(&mut self, line: ComponentId, packet: Packet) {
        self.components.rows[line.index()].node.link_mut().count_refused();
        self.out.attributed_to(line).drop(packet, DropReason::QueueFull);
    }

    /// Takes the packets out of a line that have arrived by now.
    #[inline(never)]
    pub(super) fn arrive(&mut self, line: ComponentId) {
        self.components.handled += 1;
        loop {
            let next = self.deliver_first(line).unwrap_or_else(|| self.remove_first(line));
            if next > self.components.now {
                break;
            }
        }
    }

    /// Lets the component behind a line receive the first packet of the line where it is stored, if the packet is intact and
    /// the component is no line. Then removes the packet, and returns when the next one arrives.
    #[inline(always)]
    fn deliver_first(&mut self, line: ComponentId) -> Option<Time> {
        let Components { rows, wires, wakeups, now, handled } = &mut self.components;
        let (index, now) = (line.index(), *now);
        let wire =
            *wires.get(rows[index].first_wire as usize).filter(|wire| wire.from == (line, Port::ONLY))?;
        let (to, port) = wire.to;
        let [from, Row { node, place, .. }] = rows.get_disjoint_mut([index, to.index()]).ok()?;
        let arrivals = from.node.link_mut().arrivals();
        let Arrival { end, packet, .. } = arrivals.first();
        if *end != End::Intact || place.is_served {
            return None;
        }
        self.tap.cross(now, wire, packet);
        let wanted = node.receive(now, packet, port, self.out.attributed_to(to).without(place.unneeded));
        wakeups.advance(to.index(), wanted);
        *handled += 1;
        self.tap.handled(now, to, node);
        arrivals.remove_first();
        let next = arrivals.next();
        wakeups.set(index, next);
        Some(next)
    }

    /// Removes the first packet of a line, and deals with it. Returns when the next one arrives.
    #[inline(never)]
    fn remove_first(&mut self, line: ComponentId) -> Time {
        let Components { rows, wakeups, .. } = &mut self.components;
        let Row { node, place, .. } = &mut rows[line.index()];
        let (onward, arrivals) = (place.onward, node.link_mut().arrivals());
        let Arrival { end, packet, .. } = *arrivals.first();
        arrivals.remove_first();
        let next = arrivals.next();
        wakeups.set(line.index(), next);
        match end {
            End::Intact => {
                let wire = *self.components.wire(line, Port::ONLY);
                self.cross(wire, &packet);
            }
            End::Lost => self.drop_corrupted((line, Port::ONLY), &packet),
            End::Refused => {
                let next = self.components.next_line(line, onward, &packet);
                self.refuse(next.expect("the next line refused it"), packet);
            }
        }
        next
    }

    /// Settles the counters of the links that look ahead. Of the components with
    /// a deadline at this instant, those up to `last` have been woken.
    pub(super) fn settle(&mut self, last: usize) {
        let Components { rows, now, .. } = &mut self.components;
        for (index, Row { node, .. }) in rows.iter_mut().enumerate() {
            if let Node::Link(link) = node {
                link.settle(*now, index <= last);
            }
        }
    }
}
