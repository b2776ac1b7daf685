//! The component interface, and the effects that components emit.

use alloc::vec::Vec;

use lasthop_base::{Bytes, Time};

use crate::packet::{DropReason, FlowId, HostId, Packet};
use crate::report::{EndReport, Usage};

/// Index of a component in the engine. At equal deadlines, lower ids run first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

impl ComponentId {
    /// Its place in a list of components.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A port of a component, to which a wire connects. Components define the meaning of their ports; those with
/// two sides use [`Port::WIRED`] and [`Port::RADIO`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u32);

impl Port {
    /// The port of a component with only one, or the input port of a one-way component.
    pub const ONLY: Port = Port(0);
    /// The side of a base station that faces the wired network.
    pub const WIRED: Port = Port(0);
    /// The side of a base station that faces the mobile host.
    pub const RADIO: Port = Port(1);
    /// The port of an agent that leads through the wired network to its peers, the same agents at the other base
    /// stations of a moving host. Packets are addressed to [one of them](crate::scheme::Site::peers).
    pub const CONTROL: Port = Port(2);

    /// Its place in a list of ports.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The opposite of the two sides.
    pub const fn across(self) -> Port {
        Port(self.0 ^ 1)
    }

    /// This side of base station number `station`, of a component that is at several base stations.
    pub const fn at_station(self, station: u16) -> Port {
        Port(2 * station as u32 + self.side().0)
    }

    /// The base station of a port [there](Port::at_station).
    pub const fn station(self) -> u16 {
        (self.0 / 2) as u16
    }

    /// The side of a port [at a base station](Port::at_station): [`WIRED`](Port::WIRED) or [`RADIO`](Port::RADIO).
    pub const fn side(self) -> Port {
        Port(self.0 & 1)
    }
}

/// A state machine driven by packets, deadlines and signals.
///
/// Contract: `next_wakeup` is a pure function of the state; a `wake` that emits nothing moves `next_wakeup`
/// past `now`; no reference to `out` is kept between calls.
pub trait Component: Send {
    /// A packet arrived through `port`.
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out);

    /// The deadline returned by [`next_wakeup`](Component::next_wakeup) has been reached.
    fn wake(&mut self, _now: Time, _out: &mut Out) {}

    /// The next deadline; [`Time::NEVER`] without one.
    fn next_wakeup(&self) -> Time {
        Time::NEVER
    }

    /// A watched component emitted a signal.
    fn on_signal(&mut self, _now: Time, _signal: &Signal, _out: &mut Out) {}

    /// Whether the component needs the [link events](Signal::Link) with this outcome of the links that it
    /// watches. Queried once, before the run: events that no watcher needs are not signalled.
    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        true
    }

    /// Whether the component needs the [packets that arrive with errors](Signal::Corrupted) at its end of a
    /// link. Queried once, before the run.
    fn needs_corrupted(&self) -> bool {
        false
    }

    /// Calls `visit` with every packet that this agent has received and may send later. The bytes of a
    /// real packet are kept as long as an agent keeps the packet. Not called for simulated packets, which
    /// have none.
    fn kept(&self, _visit: &mut dyn FnMut(&Packet)) {}

    /// The number of packets of a flow that this agent has sent again, each because it was lost. Those of other traffic than TCP
    /// then do not count as lost.
    fn repaired(&self, _flow: FlowId) -> u64 {
        0
    }

    /// What an end of a connection, or of all connections of an application, reports of itself; `None` from any other
    /// component.
    fn report(&self) -> Option<EndReport> {
        None
    }

    /// What the client of an application reports of its user; `None` from any other component.
    fn usage(&self, _now: Time) -> Option<Usage> {
        None
    }

    /// Reports counters: the same names in the same order at every call. Those of a scheme's agents are
    /// metrics of the run.
    fn count(&self, _tally: &mut dyn Tally) {}

    /// Reports quantities for plots over time: the same names in the same order at every call. By default,
    /// the [counters](Component::count).
    fn show(&self, probe: &mut dyn Probe) {
        self.count(&mut Shown(probe));
    }
}

/// Receives the counters of a component. A name consists of lower-case words joined by underscores, and ends
/// with the unit unless it is a number.
pub trait Tally {
    /// A total since the start of the run. Its metric is what was added after the warm-up; several agents add
    /// up.
    fn total(&mut self, name: &'static str, value: u64);

    /// A current value. Its metric is the value at the end of the run; several agents add up.
    fn level(&mut self, name: &'static str, value: u64);

    /// The greatest value of a level since the start of the run. Its metric includes the warm-up; of several
    /// agents, it is the greatest.
    fn peak(&mut self, name: &'static str, value: u64);
}

/// Receives the quantities that a component reports.
pub trait Probe {
    /// The current value of the quantity `name`. The unit is part of the name or documented by the component.
    fn value(&mut self, name: &'static str, value: f64);
}

/// Counters as quantities over time.
struct Shown<'a>(&'a mut dyn Probe);

impl Tally for Shown<'_> {
    fn total(&mut self, name: &'static str, value: u64) {
        self.0.value(name, value as f64);
    }

    fn level(&mut self, name: &'static str, value: u64) {
        self.0.value(name, value as f64);
    }

    fn peak(&mut self, name: &'static str, value: u64) {
        self.0.value(name, value as f64);
    }
}

/// A signal from a component to its watchers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Signal {
    /// Outcome of a transmission on a link, for its sending end.
    Link(LinkEvent),
    /// The receiving end of a link has sent a message about several units to the sending end of its ARQ, or
    /// will by the next attempt.
    Status,
    /// Outcome of a frame, for the sending end of an ARQ that [cuts frames](crate::arq::Config::cuts_frames). The
    /// [link events](Signal::Link) of the packets in it come first.
    Frame(FrameEvent),
    /// A packet arrived over a link with errors and was dropped, for the receiving end. Only links without an
    /// ARQ of their own pass packets with errors.
    Corrupted(Packet),
    /// A moving host is reachable at one of its base stations. Sent for where it begins, too, before anything
    /// else happens.
    Attached {
        /// The host.
        host: HostId,
        /// The number of the base station among those of the host, from 0.
        station: u16,
    },
    /// A moving host has left a base station.
    Detached {
        /// The host.
        host: HostId,
        /// The number of the base station among those of the host, from 0.
        station: u16,
    },
    /// A mobile host's radio signal has changed, or is about to.
    Reach(Reach),
    /// A client makes a request. Packets have no contents, so the server learns the sizes from this signal.
    Request(Request),
    /// An encoder has added a packet to a block. Packets have no contents, so the decoder takes the source
    /// packet from this signal.
    Encoded(Encoded),
    /// An agent sends a report of the packets that have arrived. Packets have no contents, so the other end of the link takes
    /// the report from this signal.
    Quack(Quack),
    /// A link has dropped a packet of a code across packets. For accounting at the decoder only; no protocol
    /// action may follow from it.
    Lost(Packet),
    /// A transfer has ended: all data were sent and acknowledged, or the connection was aborted or reset. A
    /// run ends when all awaited components have sent this signal.
    Finished,
}

/// A request of an [application](crate::application): its connection, its size, and the size of its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The number of the connection.
    pub connection: u8,
    /// Size of the request.
    pub size: Bytes,
    /// Size of the response.
    pub response: Bytes,
}

/// A packet in a block of a code across packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Encoded {
    /// The packet.
    pub packet: Packet,
    /// The number of the block. The source packets of a block are signalled in the order of their indices.
    pub block: u32,
}

/// A report of the packets of one flow that have arrived over a link: a quACK (Yuan and others, NSDI 2024).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quack {
    /// The number in the packet that carries the report: a name of the agent or of the mobile host in its upper half, and
    /// a count of the agent.
    pub number: u32,
    /// The mobile host.
    pub mobile: HostId,
    /// The identifier of the packet that arrived last.
    pub last: u32,
    /// Power sums of the identifiers of all packets that have arrived.
    pub sums: [u32; Quack::MOST_SUMS],
    /// The number of these packets, modulo 2¹⁶.
    pub count: u16,
    /// The flow.
    pub flow: FlowId,
}

impl Quack {
    /// The maximum number of power sums.
    pub const MOST_SUMS: usize = 20;
}

/// A change of the radio signal, as a mobile host and its base station observe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The signal will be lost after the lead time that the scheme
    /// [requested](crate::scheme::Installer::watch_signal), or sooner if it has just returned.
    Fading,
    /// The signal is lost: a fade or an outage begins, or the host leaves a base station.
    Lost,
    /// The signal is back: a fade or an outage is over, or the host has arrived at a base station.
    Back,
}

/// The outcome of one transmission of a unit (a packet or a fragment) on a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkEvent {
    /// Outcome of the transmission.
    pub outcome: LinkOutcome,
    /// The packet that contains the unit.
    pub packet: Packet,
    /// Number of this transmission of the unit, from 1.
    pub attempt: u32,
}

/// The outcome of one transmission of a frame, which carries bytes of one or several packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameEvent {
    /// Outcome of the transmission. [`Discarded`](LinkOutcome::Discarded) if it was the last one permitted: packets are
    /// given up.
    pub outcome: LinkOutcome,
    /// Sizes of this frame, and of full frames that are cut now.
    pub sizes: FrameSizes,
}

/// Sizes of frames in bytes, overhead included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSizes {
    /// The frame on the air.
    pub this: Bytes,
    /// Full frames that are cut now.
    pub full: Bytes,
}

/// Outcome of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkOutcome {
    /// The attempt failed; a retransmission or [`Discarded`](LinkOutcome::Discarded) follows.
    AttemptFailed,
    /// The unit arrived.
    Delivered,
    /// The last permitted attempt failed: the whole packet is given up.
    Discarded,
}

/// A set of outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcomes(u8);

impl LinkOutcome {
    /// All outcomes.
    pub const ALL: [LinkOutcome; 3] =
        [LinkOutcome::AttemptFailed, LinkOutcome::Delivered, LinkOutcome::Discarded];
}

impl Outcomes {
    /// The outcomes for which `holds` is true.
    pub fn of(holds: impl Fn(LinkOutcome) -> bool) -> Outcomes {
        Outcomes(
            LinkOutcome::ALL
                .into_iter()
                .filter(|&outcome| holds(outcome))
                .fold(0, |set, outcome| set | 1 << outcome as u8),
        )
    }

    /// Whether the set contains `outcome`.
    pub fn contains(self, outcome: LinkOutcome) -> bool {
        self.0 & 1 << outcome as u8 != 0
    }
}

/// An action that a component requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Effect {
    /// A packet leaves through a port.
    Send(Port, Packet),
    /// A packet is dropped.
    Drop(Packet, DropReason),
    /// A packet has arrived with errors where it would leave through a port, and is dropped
    /// ([`DropReason::Corrupted`]).
    Corrupt(Port, Packet),
    /// Delivered to every watcher of this component.
    Signal(Signal),
}

/// The effects emitted by components, in order, each with its emitter.
#[derive(Debug, Default)]
pub struct Out {
    effects: Vec<(ComponentId, Effect)>,
    /// Number of effects already taken from the head of `effects`; they are removed together.
    taken: usize,
    emitter: ComponentId,
    /// Link events with these outcomes are not signalled.
    unneeded: Outcomes,
}

impl Out {
    /// No effects, and room for `effects` of them.
    pub fn with_capacity(effects: usize) -> Out {
        Out { effects: Vec::with_capacity(effects), ..Out::default() }
    }

    /// Sends `packet` out of `port`; it reaches the other end of the wire at the same instant.
    // Inlined, so that the packet is built where it is stored.
    #[inline(always)]
    pub fn send(&mut self, port: Port, packet: Packet) {
        self.push(Effect::Send(port, packet));
    }

    /// Drops `packet` for the given reason.
    pub fn drop(&mut self, packet: Packet, reason: DropReason) {
        self.push(Effect::Drop(packet, reason));
    }

    /// Drops `packet`, which has arrived with errors where it would leave through `port`.
    pub fn corrupt(&mut self, port: Port, packet: Packet) {
        self.push(Effect::Corrupt(port, packet));
    }

    /// Signals to the watchers of this component.
    #[inline]
    pub fn signal(&mut self, signal: Signal) {
        let effect = Effect::Signal(signal);
        if self.is_heard(&effect) {
            self.push(effect);
        }
    }

    /// Whether link events with this outcome, of the component that emits now, are signalled to anyone.
    #[inline]
    pub fn needs(&self, outcome: LinkOutcome) -> bool {
        !self.unneeded.contains(outcome)
    }

    #[inline]
    fn is_heard(&self, effect: &Effect) -> bool {
        !matches!(effect, Effect::Signal(Signal::Link(event)) if !self.needs(event.outcome))
    }

    /// For a component that embeds others and is their only neighbour: collects the effects that `emit`
    /// produces, and replaces each by the result of `rewrite`; `None` removes it. The owner can so send
    /// packets out of its own ports, and forward or suppress signals.
    pub fn redirect(
        &mut self,
        emit: impl FnOnce(&mut Out),
        mut rewrite: impl FnMut(Effect) -> Option<Effect>,
    ) {
        let first = self.effects.len();
        // The owner receives all signals.
        let unneeded = core::mem::take(&mut self.unneeded);
        emit(self);
        self.unneeded = unneeded;
        let mut end = first;
        for index in first..self.effects.len() {
            let (emitter, effect) = self.effects[index];
            if let Some(effect) = rewrite(effect).filter(|effect| self.is_heard(effect)) {
                self.effects[end] = (emitter, effect);
                end += 1;
            }
        }
        self.effects.truncate(end);
    }

    #[inline(always)]
    fn push(&mut self, effect: Effect) {
        self.effects.push((self.emitter, effect));
    }

    /// For the engine: attributes the effects that follow to `emitter`, and leaves none of them out.
    pub fn attributed_to(&mut self, emitter: ComponentId) -> &mut Out {
        self.emitter = emitter;
        self.unneeded = Outcomes::default();
        self
    }

    /// For the engine: leaves out link events of the emitter with these outcomes, which have no watcher.
    pub fn without(&mut self, unneeded: Outcomes) -> &mut Out {
        self.unneeded = unneeded;
        self
    }

    /// For the engine: effect number `index` since the last [`clear`](Out::clear), and its emitter.
    pub fn get(&self, index: usize) -> Option<&(ComponentId, Effect)> {
        self.effects.get(index)
    }

    /// For the engine: removes all effects after they were carried out.
    pub fn clear(&mut self) {
        self.effects.clear();
        self.taken = 0;
    }

    /// For the engine: takes the oldest effect, and its emitter.
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
    use crate::packet::{Body, Datagram, Dscp, Ecn, Handle, HostId};
    use lasthop_base::Bytes;

    fn packet(seq: u64) -> Packet {
        let body = Body::Datagram(Datagram { seq, sent: Time::ZERO });
        let (src, dst, flow) = (HostId(0), HostId(1), FlowId(0));
        Packet {
            src,
            dst,
            flow,
            size: Bytes(40),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body,
        }
    }

    /// Signals are copied with the effects of a component.
    #[test]
    fn a_signal_is_small() {
        assert_eq!(core::mem::size_of::<Signal>(), 112);
    }

    /// The owner rewrites effects of an embedded component in order: sent through another port, or dropped.
    /// Its own effects are unaffected.
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
