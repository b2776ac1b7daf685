//! The discrete-event engine: wakes components at their deadlines and carries out the effects they emit.

use lasthop_base::Time;
use lasthop_proto::{Body, Component, ComponentId, DropReason, Effect, Out, Outcomes, Packet, Port, Signal};

use crate::node::Node;
use crate::tap::{Tap, Wire, WireId};
use crate::wakeups::Wakeups;
use crate::watchers::Watchers;

// Public for its documentation, which that of several items refers to.
pub mod look_ahead;

use look_ahead::Place;

/// Room for the effects of one instant that a short run needs, for an initial window of segments; and for the components
/// of a simple network. More is allocated when needed.
const USUAL_EFFECTS: usize = 16;
const USUAL_NODES: usize = 8;

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ended {
    /// Every awaited component has finished.
    Finished,
    /// The time limit was reached.
    TimeLimit,
    /// No component has a deadline.
    Idle,
}

/// A component, and all that the engine looks up at each of its events: side by side, since a large network is not in
/// the cache.
struct Row {
    node: Node,
    place: Place,
    /// The index in the engine's wires of the one out of the component's first port.
    first_wire: u32,
}

/// Collects components, wires and watchers, and builds the engine.
#[derive(Default)]
#[allow(missing_debug_implementations)]
pub struct Builder {
    rows: Vec<Row>,
    wires: Vec<Wire>,
    watches: Vec<(ComponentId, ComponentId)>,
    arrival_watches: Vec<((ComponentId, Port), ComponentId)>,
    loss_watches: Vec<(ComponentId, ComponentId)>,
    feeds: Vec<(ComponentId, ComponentId)>,
    step_by_step: bool,
}

impl Builder {
    /// An empty network.
    pub fn new() -> Builder {
        Builder::with_capacity(USUAL_NODES)
    }

    /// An empty network with room for so many components, and as many wires.
    pub fn with_capacity(components: usize) -> Builder {
        let (rows, wires) = (Vec::with_capacity(components), Vec::with_capacity(components));
        Builder { rows, wires, ..Builder::default() }
    }

    /// Adds a component. Components with equal deadlines wake in the order in which they were added.
    ///
    /// # Panics
    /// If there are 2^32 or more.
    pub fn add(&mut self, node: impl Into<Node>) -> ComponentId {
        let id = u32::try_from(self.rows.len()).expect("fewer than 2^32 components");
        self.rows.push(Row { node: node.into(), place: Place::plain(), first_wire: 0 });
        ComponentId(id)
    }

    /// The number of components.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no component.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Connects an output port to an input port, one way.
    pub fn connect(&mut self, from: (ComponentId, Port), to: (ComponentId, Port)) -> WireId {
        let id = WireId(self.wires.len() as u32);
        self.wires.push(Wire { id, from, to });
        id
    }

    /// Delivers the signals of `watched` to `watcher`.
    pub fn watch(&mut self, watched: ComponentId, watcher: ComponentId) {
        self.watches.push((watched, watcher));
    }

    /// Tells `watcher`, a component behind the output port `outlet` of a link, of the packets that arrive there
    /// [with errors](Signal::Corrupted), if it [needs](lasthop_proto::Component::needs_corrupted) them.
    pub fn watch_arrivals(&mut self, outlet: (ComponentId, Port), watcher: ComponentId) {
        self.arrival_watches.push((outlet, watcher));
    }

    /// Tells `watcher`, an end of a code across packets, which of its packets `link` [drops](Signal::Lost).
    pub fn watch_losses(&mut self, link: ComponentId, watcher: ComponentId) {
        self.loss_watches.push((link, watcher));
    }

    /// Declares that all packets that enter the link `link` come out of the link `feeder`, directly or through a
    /// router, which permits [look-ahead](look_ahead). Needless if no router is between them.
    pub fn feed(&mut self, feeder: ComponentId, link: ComponentId) {
        self.feeds.push((feeder, link));
    }

    /// Turns [look-ahead](look_ahead) off, and that of links with an ARQ: every event is carried out at its own time,
    /// and every outcome is signalled. Results are the same.
    pub fn step_by_step(mut self) -> Builder {
        self.step_by_step = true;
        self
    }

    /// The wires of all components, indexed by port within each component, whose first index is noted in its row. A
    /// port without a wire has a placeholder.
    fn wire_table(&mut self) -> Vec<Wire> {
        let mut ports = vec![0u32; self.rows.len()];
        for Wire { from: (id, port), .. } in &self.wires {
            let ports = &mut ports[id.index()];
            *ports = (*ports).max(port.0 + 1);
        }
        let mut total = 0;
        for (row, ports) in self.rows.iter_mut().zip(ports) {
            row.first_wire = total;
            total += ports;
        }
        let nowhere = (ComponentId(u32::MAX), Port::ONLY);
        let none = Wire { id: WireId(u32::MAX), from: nowhere, to: nowhere };
        let mut wires = vec![none; total as usize];
        for wire in &self.wires {
            let (id, port) = wire.from;
            let place = &mut wires[self.rows[id.index()].first_wire as usize + port.index()];
            assert!(place.id == none.id, "{:?} has two wires", wire.from);
            *place = *wire;
        }
        wires
    }

    /// Builds the engine at time zero, with `tap` as its observer.
    ///
    /// # Panics
    /// If two wires leave the same port.
    pub fn build<T: Tap>(mut self, tap: T) -> Engine<T> {
        let wires = self.wire_table();
        if !self.step_by_step {
            Place::assign(&mut self.rows, &self.wires, &self.watches, &self.feeds, &tap);
        }
        let mut rows = self.rows;
        let watchers = Watchers::new(rows.len(), self.watches);
        let mut arrival_watches = self.arrival_watches;
        arrival_watches.retain(|(_, watcher)| rows[watcher.index()].node.needs_corrupted());
        // A stable sort: watchers receive a signal in the order in which they were added.
        arrival_watches.sort_by_key(|&(outlet, _)| outlet);
        let loss_watchers = Watchers::new(rows.len(), self.loss_watches);
        let mut wakeups = Wakeups::new(rows.len());
        for index in 0..rows.len() {
            let watchers = &watchers.ids[watchers.of(ComponentId(index as u32))];
            let needs = |outcome| watchers.iter().any(|id| rows[id.index()].node.needs_outcome(outcome));
            let is_seen = tap.sees_signals() || tap.sees_component(ComponentId(index as u32));
            let unneeded = Outcomes::of(|outcome| !self.step_by_step && !is_seen && !needs(outcome));
            rows[index].place.unneeded = unneeded;
            wakeups.set(index, rows[index].node.next_wakeup());
        }
        Engine {
            components: Components { rows, wires, wakeups, now: Time::ZERO, handled: 0 },
            watchers,
            arrival_watches,
            loss_watchers,
            out: Out::with_capacity(USUAL_EFFECTS),
            turn: 0,
            finished: Vec::new(),
            awaited: Vec::new(),
            pending: 0,
            end: Time::ZERO,
            tap,
        }
    }
}

/// Stands in for a component that is being replaced.
struct Vacancy;

impl Component for Vacancy {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {}
}

/// The components, the wires between them, and when each is due: all that the passage of a packet through lines changes.
/// Apart from the effects, so that a packet passes from where it was emitted without a copy.
struct Components {
    rows: Vec<Row>,
    /// Wires of all components, indexed by port within each component.
    wires: Vec<Wire>,
    wakeups: Wakeups,
    now: Time,
    handled: u64,
}

impl Components {
    /// The wire out of a port.
    ///
    /// # Panics
    /// If there is none.
    #[inline(always)]
    fn wire(&self, from: ComponentId, port: Port) -> &Wire {
        let place = self.rows[from.index()].first_wire as usize + port.index();
        let wire = self.wires.get(place).filter(|wire| wire.from == (from, port));
        wire.unwrap_or_else(|| panic!("{from:?} sent out of {port:?}, which has no wire"))
    }

    /// Counts an event at component `id`, whose next deadline is `wanted`.
    #[inline(always)]
    fn note_handled(&mut self, id: ComponentId, wanted: Time) {
        self.wakeups.advance(id.index(), wanted);
        self.handled += 1;
    }
}

/// Drives components through simulated time.
#[allow(missing_debug_implementations)]
pub struct Engine<T> {
    components: Components,
    watchers: Watchers,
    /// The output ports of links with those who watch the arrivals there, in the order of the ports.
    arrival_watches: Vec<((ComponentId, Port), ComponentId)>,
    /// The exits of codes across packets, by the links that lead to them.
    loss_watchers: Watchers,
    out: Out,
    /// The highest component that was woken at this instant.
    turn: usize,
    /// Whether each component has signalled that it finished. Grown on demand, so it may be shorter than
    /// the list of components.
    finished: Vec<bool>,
    /// Awaited components that had not finished when the run started.
    awaited: Vec<ComponentId>,
    /// Number of awaited components that have not finished.
    pending: usize,
    /// Upper bound of the clock: the limit, or the current instant once all awaited components have finished.
    end: Time,
    tap: T,
}

impl<T: Tap> Engine<T> {
    /// Runs until every component in `awaited` has signalled that it finished, no deadline is left, or the
    /// clock would pass `limit`. With an empty `awaited`, only the last two apply. May be called again with a
    /// later limit.
    ///
    /// # Panics
    /// If a component violates its contract: its deadline is in the past, it wakes without emitting anything
    /// and asks to be woken at the same instant, or it sends out of a port without a wire.
    pub fn run(&mut self, awaited: &[ComponentId], limit: Time) -> Ended {
        self.run_while(awaited, limit, || true).expect("keep_going always returns true")
    }

    /// Like [`run`](Engine::run), but calls `keep_going` after every 65,536 wake-ups and returns `None` once
    /// it returns false, so that long runs can be interrupted at no measurable cost.
    pub fn run_while(
        &mut self,
        awaited: &[ComponentId],
        limit: Time,
        mut keep_going: impl FnMut() -> bool,
    ) -> Option<Ended> {
        self.wait_for(awaited, limit);
        loop {
            for _ in 0..65_536 {
                let (due, index) = self.components.wakeups.earliest();
                if due >= self.end {
                    return Some(self.stop(due, limit));
                }
                self.step(due, index);
            }
            if !keep_going() {
                self.settle(self.turn);
                return None;
            }
        }
    }

    fn wait_for(&mut self, awaited: &[ComponentId], limit: Time) {
        let finished = |id: &ComponentId| self.finished.get(id.index()).is_some_and(|&ended| ended);
        self.awaited.clear();
        self.awaited.extend(awaited.iter().filter(|id| !finished(id)));
        self.pending = self.awaited.len();
        let all_came = self.pending == 0 && !awaited.is_empty();
        self.end = if all_came { Time::ZERO } else { Time::from_nanos(limit.as_nanos().saturating_add(1)) };
    }

    /// Why the run stopped, given the next deadline.
    fn stop(&mut self, due: Time, limit: Time) -> Ended {
        if self.end == Time::ZERO {
            self.settle(self.turn);
            return Ended::Finished;
        }
        if due != Time::NEVER {
            self.components.now = limit;
        }
        self.settle(usize::MAX);
        if due == Time::NEVER { Ended::Idle } else { Ended::TimeLimit }
    }

    #[cold]
    fn note_finished(&mut self, id: ComponentId) {
        let index = id.index();
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
        let Components { rows, wakeups, now, .. } = &mut self.components;
        let is_served = rows[index].place.is_served;
        // The next arrival at the end of a line only moves back when this one is taken.
        if !is_served && wakeups.may_be_early() {
            let wanted = rows[index].node.next_wakeup();
            if wanted > due {
                return wakeups.set(index, wanted);
            }
        }
        if due > *now {
            (*now, self.turn) = (due, index);
        } else {
            assert!(due == *now, "component {index} asked for a wake-up in the past");
            self.turn = self.turn.max(index);
        }
        let id = ComponentId(index as u32);
        if is_served {
            self.arrive(id);
        } else {
            self.wake(due, id);
        }
        self.deliver();
    }

    #[inline]
    fn wake(&mut self, due: Time, id: ComponentId) {
        let index = id.index();
        let Row { node, place, .. } = &mut self.components.rows[index];
        let wanted = node.wake(due, self.out.attributed_to(id).without(place.unneeded));
        assert!(
            !self.out.is_empty() || wanted > due,
            "component {index} woke at {due} without effect and asked to be woken at once"
        );
        self.components.wakeups.set(index, wanted);
        self.components.handled += 1;
        self.tap.handled(due, id, node);
    }

    /// Carries out all pending effects of this instant, in FIFO order.
    #[inline]
    fn deliver(&mut self) {
        let mut next = 0;
        while let Some(&(from, ref effect)) = self.out.get(next) {
            next += 1;
            // First, since most effects are packets, and a jump through a table takes longer than a comparison.
            if let Effect::Send(port, packet) = effect {
                let wire = *self.components.wire(from, *port);
                if self.components.begins_line(wire.to.0) {
                    self.tap.cross(self.components.now, wire, packet);
                    if !self.components.carry(wire.to.0, packet) {
                        let packet = *packet;
                        self.refuse(wire.to.0, packet);
                    }
                } else {
                    let packet = *packet;
                    self.hand_over(wire, &packet);
                }
                continue;
            }
            match *effect {
                Effect::Send(..) => unreachable!("dealt with above"),
                Effect::Corrupt(port, packet) => self.drop_corrupted((from, port), &packet),
                Effect::Drop(packet, reason) => {
                    self.tap.drop(self.components.now, from, &packet, reason);
                    if let Body::Coded(_) = packet.body {
                        self.note_lost(from, &packet);
                    }
                }
                Effect::Signal(signal) => self.notify(from, signal),
            }
        }
        self.out.clear();
    }

    /// Takes a packet across a wire.
    fn cross(&mut self, wire: Wire, packet: &Packet) {
        if !self.components.begins_line(wire.to.0) {
            return self.hand_over(wire, packet);
        }
        self.tap.cross(self.components.now, wire, packet);
        if !self.components.carry(wire.to.0, packet) {
            self.refuse(wire.to.0, *packet);
        }
    }

    /// Takes a packet across a wire to a component that is no line.
    fn hand_over(&mut self, wire: Wire, packet: &Packet) {
        let now = self.components.now;
        self.tap.cross(now, wire, packet);
        let (to, port) = wire.to;
        let Row { node, place, .. } = &mut self.components.rows[to.index()];
        let wanted = node.receive(now, packet, port, self.out.attributed_to(to).without(place.unneeded));
        self.note_handled(to, wanted);
    }

    fn notify(&mut self, from: ComponentId, signal: Signal) {
        self.tap.signal(self.components.now, from, &signal);
        if signal == Signal::Finished {
            self.note_finished(from);
        }
        for place in self.watchers.of(from) {
            self.notify_watcher(self.watchers.ids[place], &signal);
        }
    }

    /// Drops a packet that has arrived with errors at the output port of a link.
    fn drop_corrupted(&mut self, outlet: (ComponentId, Port), packet: &Packet) {
        let link = outlet.0;
        self.tap.drop(self.components.now, link, packet, DropReason::Corrupted);
        let first = self.arrival_watches.partition_point(|&(watched, _)| watched < outlet);
        for place in first..self.arrival_watches.len() {
            let (watched, watcher) = self.arrival_watches[place];
            if watched != outlet {
                break;
            }
            self.notify_watcher(watcher, &Signal::Corrupted(*packet));
        }
        if let Body::Coded(_) = packet.body {
            self.note_lost(link, packet);
        }
    }

    /// A link has dropped a packet of a code across packets.
    #[cold]
    fn note_lost(&mut self, link: ComponentId, packet: &Packet) {
        for place in self.loss_watchers.of(link) {
            self.notify_watcher(self.loss_watchers.ids[place], &Signal::Lost(*packet));
        }
    }

    fn notify_watcher(&mut self, watcher: ComponentId, signal: &Signal) {
        let Row { node, place, .. } = &mut self.components.rows[watcher.index()];
        let out = self.out.attributed_to(watcher).without(place.unneeded);
        let wanted = node.on_signal(self.components.now, signal, out);
        self.note_handled(watcher, wanted);
    }

    /// Counts an event at component `id`, whose next deadline is `wanted`.
    #[inline(always)]
    fn note_handled(&mut self, id: ComponentId, wanted: Time) {
        self.components.note_handled(id, wanted);
        self.tap.handled(self.components.now, id, &self.components.rows[id.index()].node);
    }

    /// Handles all events due by `until`, each at its own time, and sets the clock to `until`. For drivers with a real
    /// clock.
    ///
    /// # Panics
    /// As [`run`](Engine::run).
    pub fn advance(&mut self, until: Time) {
        loop {
            let (due, index) = self.components.wakeups.earliest();
            if due > until {
                break;
            }
            self.step(due, index);
        }
        if until > self.components.now {
            (self.components.now, self.turn) = (until, 0);
        }
    }

    /// Sends a packet out of a port, now. For packets from outside: the component at `from` only receives.
    ///
    /// # Panics
    /// If the port has no wire, or as [`run`](Engine::run).
    pub fn inject(&mut self, from: (ComponentId, Port), packet: &Packet) {
        let wire = *self.components.wire(from.0, from.1);
        self.cross(wire, packet);
        self.deliver();
    }

    /// The next deadline, or an earlier time; [`Time::NEVER`] without one.
    pub fn next_wakeup(&self) -> Time {
        self.components.wakeups.earliest().0
    }

    /// Replaces a component, before the first event, by one that needs the same signals.
    ///
    /// # Panics
    /// If the component is a link.
    pub fn replace(&mut self, id: ComponentId, replacement: impl FnOnce(Node) -> Node) {
        let index = id.index();
        let Row { node, .. } = &mut self.components.rows[index];
        assert!(!matches!(node, Node::Link(_)), "links are not replaced");
        let vacancy: Box<dyn Component> = Box::new(Vacancy);
        let before = std::mem::replace(node, vacancy.into());
        *node = replacement(before);
        self.components.wakeups.set(index, node.next_wakeup());
    }

    /// Completes the counters of all components, as at the end of a run at this time.
    pub fn settle_counters(&mut self) {
        self.settle(usize::MAX);
    }

    /// The simulated time.
    pub fn now(&self) -> Time {
        self.components.now
    }

    /// Number of wake-ups, packets and signals handled so far.
    pub fn handled(&self) -> u64 {
        self.components.handled
    }

    /// Packets in queues and in flight on all links: the memory use of the network is proportional to it.
    pub fn packets_held(&self) -> usize {
        self.components.rows.iter().map(|row| row.node.packets_held()).sum()
    }

    /// Whether packets pass from one link to another ahead of time anywhere, by [look-ahead](look_ahead).
    pub fn looks_ahead(&self) -> bool {
        self.components.rows.iter().any(|row| row.place.looks_ahead())
    }

    /// The component at `id`. What a link [shows](Node::show) may be ahead of time, unless the tap
    /// [sees](Tap::sees_component) it; its counters are not.
    pub fn node(&self, id: ComponentId) -> &Node {
        &self.components.rows[id.index()].node
    }

    /// The observer.
    pub fn tap(&self) -> &T {
        &self.tap
    }

    /// The observer, to take its records.
    pub fn tap_mut(&mut self) -> &mut T {
        &mut self.tap
    }

    /// Ends the run and returns the observer.
    pub fn into_tap(self) -> T {
        self.tap
    }
}
