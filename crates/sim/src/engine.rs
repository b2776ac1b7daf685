//! The engine: wakes whoever is due, and carries out what components want done.

use lasthop_base::Time;
use lasthop_proto::{Component, ComponentId, Effect, Out, Port, Signal};

use crate::node::Node;
use crate::tap::{Tap, Wire, WireId};
use crate::wakeups::Wakeups;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// All transfers that were waited for are complete.
    Finished,
    /// The time limit came first.
    TimeLimit,
    /// No component waits for anything any more.
    Idle,
}

/// Collects components, and the wires and watchers between them.
#[derive(Default)]
#[allow(missing_debug_implementations)]
pub struct Builder {
    nodes: Vec<Node>,
    wires: Vec<Wire>,
    watches: Vec<(ComponentId, ComponentId)>,
}

impl Builder {
    /// Nothing yet.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Adds a component. At the same instant, components wake in the order in which they were added.
    ///
    /// # Panics
    /// If there are more than 65,535.
    pub fn add(&mut self, node: impl Into<Node>) -> ComponentId {
        let id = self.nodes.len();
        assert!(id < usize::from(u16::MAX), "at most 65,535 components");
        self.nodes.push(node.into());
        ComponentId(id as u16)
    }

    /// Connects a port, which has no wire yet, to a port, one way.
    pub fn connect(&mut self, from: (ComponentId, Port), to: (ComponentId, Port)) -> WireId {
        let id = WireId(self.wires.len() as u32);
        self.wires.push(Wire { id, from, to });
        id
    }

    /// Delivers the signals of `watched` to `watcher`.
    pub fn watch(&mut self, watched: ComponentId, watcher: ComponentId) {
        self.watches.push((watched, watcher));
    }

    /// For each component a row of its wires by port, and where the rows begin. A port without a wire
    /// has one that leads nowhere.
    fn wire_table(&self) -> (Vec<Wire>, Vec<u32>) {
        let mut ports = vec![0u32; self.nodes.len()];
        for Wire { from: (id, port), .. } in &self.wires {
            let ports = &mut ports[usize::from(id.0)];
            *ports = (*ports).max(u32::from(port.0) + 1);
        }
        let mut first_wire = vec![0];
        first_wire.extend(ports.iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        }));
        let nowhere = (ComponentId(u16::MAX), Port::ONLY);
        let none = Wire { id: WireId(u32::MAX), from: nowhere, to: nowhere };
        let mut wires = vec![none; first_wire[self.nodes.len()] as usize];
        for wire in &self.wires {
            let (id, port) = wire.from;
            let place = &mut wires[first_wire[usize::from(id.0)] as usize + usize::from(port.0)];
            assert!(place.id == none.id, "{:?} has two wires", wire.from);
            *place = *wire;
        }
        (wires, first_wire)
    }

    /// The engine, observed by `tap`, at time zero.
    ///
    /// # Panics
    /// If a port has two wires that leave it.
    pub fn build<T: Tap>(self, tap: T) -> Engine<T> {
        let (wires, first_wire) = self.wire_table();
        let mut wakeups = Wakeups::new(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            wakeups.set(index, node.next_wakeup());
        }
        Engine {
            nodes: self.nodes,
            wires,
            first_wire,
            watches: self.watches,
            wakeups,
            out: Out::default(),
            now: Time::ZERO,
            handled: 0,
            finished: Vec::new(),
            awaited: Vec::new(),
            pending: 0,
            end: Time::ZERO,
            tap,
        }
    }
}

/// Drives components through simulated time.
#[allow(missing_debug_implementations)]
pub struct Engine<T> {
    nodes: Vec<Node>,
    /// Each component's wires, by port.
    wires: Vec<Wire>,
    /// Where a component's wires begin in `wires`.
    first_wire: Vec<u32>,
    watches: Vec<(ComponentId, ComponentId)>,
    wakeups: Wakeups,
    out: Out,
    now: Time,
    handled: u64,
    /// Whether each component has said so; none behind the last that has.
    finished: Vec<bool>,
    /// Those whose ends the run waits for, as far as they had not come when it began.
    awaited: Vec<ComponentId>,
    /// How many of them are still to come.
    pending: usize,
    /// The run ends before this instant, or, once all that it waited for have come, at once.
    end: Time,
    tap: T,
}

impl<T: Tap> Engine<T> {
    /// Runs until all the components that are `awaited` have said that they are finished, nothing is left
    /// to do, or the clock would pass `limit`. If none is awaited, none ends the run. May be called again
    /// with a later limit.
    ///
    /// # Panics
    /// If a component breaks its promises: asks for an instant that is past, or wakes without
    /// sending anything and wants to be woken again at once; or sends out of a port without a wire.
    pub fn run(&mut self, awaited: &[ComponentId], limit: Time) -> Ended {
        self.run_while(awaited, limit, || true).expect("nothing stops it")
    }

    /// As [`run`](Engine::run), but asks `keep_going` after every 65,536 wake-ups, and gives `None`
    /// as soon as it says no. So a run that would take hours can be abandoned, at a cost that cannot
    /// be measured.
    pub fn run_while(
        &mut self,
        awaited: &[ComponentId],
        limit: Time,
        mut keep_going: impl FnMut() -> bool,
    ) -> Option<Ended> {
        self.wait_for(awaited, limit);
        loop {
            for _ in 0..65_536 {
                let (due, index) = self.wakeups.earliest();
                if due >= self.end {
                    return Some(self.stop(due, limit));
                }
                self.step(due, index);
            }
            if !keep_going() {
                return None;
            }
        }
    }

    fn wait_for(&mut self, awaited: &[ComponentId], limit: Time) {
        let finished = |id: &ComponentId| self.finished.get(usize::from(id.0)).is_some_and(|&ended| ended);
        self.awaited.clear();
        self.awaited.extend(awaited.iter().filter(|id| !finished(id)));
        self.pending = self.awaited.len();
        let all_came = self.pending == 0 && !awaited.is_empty();
        self.end = if all_came { Time::ZERO } else { Time::from_nanos(limit.as_nanos().saturating_add(1)) };
    }

    /// Why the run ends, whose next wake-up is due then.
    fn stop(&mut self, due: Time, limit: Time) -> Ended {
        if self.end == Time::ZERO {
            Ended::Finished
        } else if due == Time::NEVER {
            Ended::Idle
        } else {
            self.now = limit;
            Ended::TimeLimit
        }
    }

    #[cold]
    fn note_finished(&mut self, id: ComponentId) {
        let index = usize::from(id.0);
        self.finished.resize(self.finished.len().max(index + 1), false);
        let again = std::mem::replace(&mut self.finished[index], true);
        let these = self.awaited.iter().filter(|&&awaited| awaited == id).count();
        if !again && these > 0 {
            self.pending -= these;
            if self.pending == 0 {
                self.end = Time::ZERO;
            }
        }
    }

    fn step(&mut self, due: Time, index: usize) {
        if self.wakeups.may_be_early() {
            let wanted = self.nodes[index].next_wakeup();
            if wanted > due {
                return self.wakeups.set(index, wanted);
            }
        }
        assert!(due >= self.now, "component {index} asked for an instant that is past");
        self.now = due;
        let id = ComponentId(index as u16);
        let node = &mut self.nodes[index];
        node.wake(due, self.out.attributed_to(id));
        let wanted = node.next_wakeup();
        assert!(
            !self.out.is_empty() || wanted > due,
            "component {index} woke at {due}, sent nothing and wants to be woken at once"
        );
        self.wakeups.set(index, wanted);
        self.handled += 1;
        self.tap.touched(due, id, node);
        self.deliver();
    }

    /// Carries out everything wanted at this instant, first come, first served.
    fn deliver(&mut self) {
        let mut next = 0;
        while let Some((from, effect)) = self.out.get(next) {
            next += 1;
            match effect {
                Effect::Send(port, packet) => {
                    let wire = *self.wire(*from, *port);
                    self.tap.cross(self.now, wire, packet);
                    let (to, port) = wire.to;
                    // Copied as late as possible, and so once: this is the busiest place of all.
                    let packet = *packet;
                    self.nodes[usize::from(to.0)].receive(self.now, packet, port, self.out.attributed_to(to));
                    self.touched(to);
                }
                Effect::Drop(packet, reason) => self.tap.drop(self.now, *from, packet, *reason),
                Effect::Signal(signal) => {
                    let (from, signal) = (*from, *signal);
                    self.notify(from, signal);
                }
            }
        }
        self.out.clear();
    }

    fn wire(&self, from: ComponentId, port: Port) -> &Wire {
        let index = usize::from(from.0);
        let place = self.first_wire[index] as usize + usize::from(port.0);
        let wire = self.wires.get(place).filter(|wire| wire.from == (from, port));
        wire.unwrap_or_else(|| panic!("{from:?} sent out of {port:?}, which has no wire"))
    }

    fn notify(&mut self, from: ComponentId, signal: Signal) {
        self.tap.signal(self.now, from, &signal);
        if signal == Signal::Finished {
            self.note_finished(from);
        }
        for watch in 0..self.watches.len() {
            let (watched, watcher) = self.watches[watch];
            if watched == from {
                self.nodes[usize::from(watcher.0)].on_signal(
                    self.now,
                    &signal,
                    self.out.attributed_to(watcher),
                );
                self.touched(watcher);
            }
        }
    }

    fn touched(&mut self, id: ComponentId) {
        let index = usize::from(id.0);
        let node = &self.nodes[index];
        self.wakeups.advance(index, node.next_wakeup());
        self.handled += 1;
        self.tap.touched(self.now, id, node);
    }

    /// The simulated instant.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How often a component dealt with a wake-up, a packet or a signal so far.
    pub fn handled(&self) -> u64 {
        self.handled
    }

    /// Packets before and on all links: what the network's memory grows with.
    pub fn packets_held(&self) -> usize {
        self.nodes.iter().map(Node::packets_held).sum()
    }

    /// The component at `id`.
    pub fn node(&self, id: ComponentId) -> &Node {
        &self.nodes[usize::from(id.0)]
    }

    /// The observer.
    pub fn tap(&self) -> &T {
        &self.tap
    }

    /// Ends the run and hands back the observer.
    pub fn into_tap(self) -> T {
        self.tap
    }
}
