//! Packet traces of a connection, as columns.

use std::collections::HashMap;
use std::rc::Rc;

use lasthop_base::{Bytes, Time};
use lasthop_proto::stack::Stack;
use lasthop_proto::tcp::{Flags, SeqNum, Settings};
use lasthop_proto::{Body, Component, ComponentId, DropReason, EndCounters, EndReport, Packet};
use lasthop_sim::network::PortRef;
use lasthop_sim::{Contents, Node, Tap, Wire};

use crate::assemble::{ConnectionComponents, ConnectionPart};

/// Trace of the packets of a connection, or of one part of a split connection, in chronological order: row
/// *i* of each column belongs to event *i*. The source of a part is the node at which it begins.
///
/// - `sent`, `delivered`, `lost`, `suppressed`: a data segment left the source, reached its destination, was lost, or was
///   suppressed by an agent or a queue's ACK filter, which is not a loss.
/// - `ack-sent`, `ack-received`, `ack-lost`, `ack-suppressed`: the same for an acknowledgement, or a reset by the
///   destination.
/// - `notice-received`, `notice-lost`, `notice-suppressed`: a control message of the scheme reached the source, was
///   lost, or was suppressed.
/// - `copied`, `ack-created`, `notice-created`: an agent sent a data segment that it had sent before, or an
///   acknowledgement or a control message of its own.
/// - `timeout`, `fast-retransmit`: the source detected a loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// Time in seconds.
    pub time_s: Vec<f64>,
    /// Event name.
    pub event: Vec<&'static str>,
    /// Of QUIC, the number of a datagram among those of its end, from 0. Of TCP, the number of a data segment, from 0: the
    /// offset of its first byte divided by the maximum payload of a
    /// segment. For an acknowledgement, the number that it expects next; for a notice, the number of its
    /// subject; for a detected loss, the first unacknowledged number. −1 for a segment of the source without
    /// data, for RST, and for a notice about QUIC.
    pub packet: Vec<i64>,
    /// Transmission number of these data, from 1 in the order of sending, by the source or an agent; otherwise 0.
    /// Retransmitted data at the start of a new segment boundary have number 2 at least.
    pub transmission: Vec<i64>,
    /// Size as an IP packet; 0 if there is none.
    pub size_bytes: Vec<i64>,
    /// Of QUIC, the number that the stack has given to the packet of application data in a datagram; −1 if there is none. It is
    /// that of the first copy in a datagram that a scheme repeats. `None` of TCP.
    pub packet_number: Option<Vec<i64>>,
    /// Reason of a loss: `queue-full`, `active-queue`, `corrupted`, `attempts-exhausted`,
    /// `unreachable`, `unrecovered` or `scripted`; the scheme of an
    /// agent that suppressed, copied or created a packet; otherwise empty.
    pub reason: Vec<&'static str>,
}

/// An event of a packet.
#[derive(Clone, Copy)]
enum PacketEvent {
    Sent,
    Arrived,
    Lost(&'static str),
    /// Suppressed by an agent of this scheme.
    Suppressed(&'static str),
    /// Sent by an agent of this scheme that did not hold it.
    Created(&'static str),
}

/// Tells apart the packets of a part that an agent may hold at the same time: the direction, the sequence or
/// acknowledgement number, and the length or the code of a message.
type PacketKey = (bool, u32, u64);

/// An agent with the packets that it has received, and neither sent nor dropped.
#[derive(Debug)]
struct Holder {
    scheme: &'static str,
    held: HashMap<PacketKey, u32>,
}

impl Holder {
    /// Whether it held the packet, which leaves it.
    fn release(&mut self, key: PacketKey) -> bool {
        match self.held.get_mut(&key) {
            None => false,
            Some(1) => self.held.remove(&key).is_some(),
            Some(count) => {
                *count -= 1;
                true
            }
        }
    }
}

/// Records the [`Events`] of one part of a connection.
pub(crate) struct Tracer {
    flow: ConnectionComponents,
    part: ConnectionPart,
    /// Whether the connection has no other part.
    whole: bool,
    mss: i64,
    first_data: SeqNum,
    /// The agents with their schemes.
    agents: Rc<[(ComponentId, &'static str)]>,
    /// Those of them on this part that pass packets on as they are.
    holders: HashMap<ComponentId, Holder>,
    /// Offset of the last sequence number seen; others are unwrapped relative to it.
    near: i64,
    acknowledged: i64,
    /// For each offset, the number of segments beginning there that were sent, and that were delivered or
    /// lost.
    copies: HashMap<i64, (i64, i64)>,
    /// End of the data sent so far.
    sent: i64,
    counted: EndCounters,
    /// The bytes of the packets, and the stack that reads their numbers.
    numbers: Option<(Contents, &'static dyn Stack)>,
    events: Events,
}

impl Tracer {
    /// A tracer of a part with these TCP settings; `whole` if the connection has no other part.
    pub(crate) fn new(
        flow: ConnectionComponents,
        part: ConnectionPart,
        whole: bool,
        settings: &Settings,
        agents: Rc<[(ComponentId, &'static str)]>,
        tunnels: &[ComponentId],
    ) -> Tracer {
        let passes_on = |id: &ComponentId| part.links.contains(id) && !tunnels.contains(id);
        let holders = agents.iter().filter(|(id, _)| passes_on(id));
        let holders = holders.map(|&(id, scheme)| (id, Holder { scheme, held: HashMap::new() })).collect();
        Tracer {
            flow,
            part,
            whole,
            mss: i64::from(settings.mss()),
            first_data: SeqNum(settings.iss) + u32::from(settings.handshake),
            agents,
            holders,
            near: 0,
            acknowledged: 0,
            copies: HashMap::new(),
            sent: 0,
            counted: EndCounters::default(),
            numbers: None,
            events: Events::default(),
        }
    }

    /// Traces the numbers of `stack`'s packets, too, with these bytes.
    pub(crate) fn with_numbers(self, contents: Contents, stack: &'static dyn Stack) -> Tracer {
        let events = Events { packet_number: Some(Vec::new()), ..self.events };
        Tracer { numbers: Some((contents, stack)), events, ..self }
    }

    /// The number of a datagram's packet, or −1.
    fn number_of(&self, packet: &Packet) -> i64 {
        let mut number = None;
        if let Some((contents, stack)) = &self.numbers {
            contents.read(packet.handle, |datagram| number = stack.packet_number(datagram));
        }
        number.and_then(|number| i64::try_from(number).ok()).unwrap_or(-1)
    }

    /// How many events there are so far.
    pub(crate) fn rows(&self) -> usize {
        self.events.time_s.len()
    }

    pub(crate) fn into_events(self) -> Events {
        self.events
    }

    /// The stream offset of `seq`: the one nearest to the last offset seen.
    fn offset(&mut self, seq: SeqNum) -> i64 {
        let near = self.first_data + self.near as u32;
        self.near += i64::from(seq.0.wrapping_sub(near.0) as i32);
        self.near
    }

    fn push(&mut self, now: Time, event: &'static str, packet: i64, transmission: i64, size: Bytes) {
        let events = &mut self.events;
        events.time_s.push(now.as_secs_f64());
        events.event.push(event);
        events.packet.push(packet);
        events.transmission.push(transmission);
        events.size_bytes.push(size.0 as i64);
        events.reason.push("");
        if let Some(numbers) = &mut events.packet_number {
            numbers.push(-1);
        }
    }

    fn record(&mut self, now: Time, packet: &Packet, event: PacketEvent) {
        match &packet.body {
            Body::Tcp(segment) if packet.src == self.flow.source => {
                let offset = if segment.len > 0 { self.offset(segment.seq) } else { -1 };
                let transmission = self.count_copy(offset, event);
                self.sent = self.sent.max(offset + i64::from(segment.len));
                let number = if segment.len > 0 { offset / self.mss } else { -1 };
                self.push(now, named(event, DATA), number, transmission, packet.size);
            }
            Body::Tcp(segment) if segment.flags.has(Flags::RST) => {
                self.push(now, named(event, ACKS), -1, 0, packet.size);
            }
            Body::Tcp(segment) => {
                let next = (self.offset(segment.ack) + self.mss - 1) / self.mss;
                if let PacketEvent::Arrived = event {
                    self.acknowledged = self.acknowledged.max(next);
                }
                self.push(now, named(event, ACKS), next, 0, packet.size);
            }
            Body::Notice(notice) => {
                // Only TCP has numbers of its subjects.
                let number = if self.sent > 0 { self.offset(notice.seq) / self.mss } else { -1 };
                self.push(now, named(event, NOTICES), number, 0, packet.size);
            }
            Body::Datagram(datagram) => {
                let (number, is_data) = (datagram.seq as i64, packet.src == self.flow.source);
                let names = if is_data { DATA } else { ACKS };
                self.push(now, named(event, names), number, i64::from(is_data), packet.size);
                let of_stack = self.number_of(packet);
                if let Some(last) = self.events.packet_number.as_mut().and_then(|numbers| numbers.last_mut())
                {
                    *last = of_stack;
                }
            }
            // Lost packets of a code may be recovered.
            Body::Coded(_) => return,
        }
        if let (
            PacketEvent::Lost(why) | PacketEvent::Suppressed(why) | PacketEvent::Created(why),
            Some(reason),
        ) = (event, self.events.reason.last_mut())
        {
            *reason = why;
        }
    }

    /// The key of a packet of the part; `None` for a packet that is not traced.
    fn key(&self, packet: &Packet) -> Option<PacketKey> {
        let is_data = packet.src == self.flow.source;
        match &packet.body {
            Body::Tcp(segment) if is_data => Some((true, segment.seq.0, u64::from(segment.len))),
            Body::Tcp(segment) => Some((false, segment.ack.0, u64::from(segment.len))),
            Body::Notice(notice) => {
                let code = u64::from(notice.code.kind) << 8 | u64::from(notice.code.code);
                Some((is_data, notice.seq.0, code | 1 << 32))
            }
            Body::Datagram(datagram) => Some((is_data, datagram.seq as u32, datagram.seq >> 32 | 1 << 33)),
            Body::Coded(_) => None,
        }
    }

    /// Whether a packet that is dropped at a component is one of the part: on the way, or by the proxy that it reaches.
    fn is_lost_here(&self, at: ComponentId, packet: &Packet) -> bool {
        let ConnectionPart { sender, receiver, links, wireless, .. } = &self.part;
        if ![self.flow.source, self.flow.destination].contains(&packet.dst) {
            // On the way from one base station to another.
            return *wireless;
        }
        let end = if packet.src == self.flow.source { receiver } else { sender };
        links.contains(&at) || end.id == at
    }

    fn dropped(&self, at: ComponentId, reason: DropReason) -> PacketEvent {
        match reason {
            DropReason::QueueFull => PacketEvent::Lost("queue-full"),
            DropReason::Corrupted => PacketEvent::Lost("corrupted"),
            DropReason::ActiveQueue => PacketEvent::Lost("active-queue"),
            DropReason::AttemptsExhausted => PacketEvent::Lost("attempts-exhausted"),
            DropReason::Unreachable => PacketEvent::Lost("unreachable"),
            DropReason::TooLarge => PacketEvent::Lost("too-large"),
            DropReason::Unrecovered => PacketEvent::Lost("unrecovered"),
            DropReason::Scripted => PacketEvent::Lost("scripted"),
            DropReason::Suppressed => {
                let agent = self.agents.iter().find(|(agent, _)| *agent == at);
                PacketEvent::Suppressed(agent.map_or("ack-filter", |(_, scheme)| *scheme))
            }
        }
    }

    /// Transmission number of these data. Copies are delivered or lost in the order in which they were sent.
    fn count_copy(&mut self, offset: i64, event: PacketEvent) -> i64 {
        // Retransmitted data may have different segment boundaries.
        let earlier = i64::from(offset >= 0 && offset < self.sent);
        let (left, ended) = self.copies.entry(offset).or_insert((earlier, earlier));
        let count = if let PacketEvent::Sent | PacketEvent::Created(_) = event { left } else { ended };
        *count += 1;
        *count
    }
}

impl Tap for Tracer {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        if packet.flow != self.flow.id {
            return;
        }
        let key = if self.holders.is_empty() { None } else { self.key(packet) };
        if let Some(key) = key {
            if let Some(holder) = self.holders.get_mut(&wire.from.0)
                && !holder.release(key)
            {
                let scheme = holder.scheme;
                self.record(now, packet, PacketEvent::Created(scheme));
            }
            if let Some(holder) = self.holders.get_mut(&wire.to.0) {
                *holder.held.entry(key).or_default() += 1;
            }
        }
        let ConnectionPart { sender, receiver, .. } = self.part;
        // The other parts of the connection use the other port of the proxy.
        if sender.is(wire.from) || receiver.is(wire.from) {
            self.record(now, packet, PacketEvent::Sent);
        } else if sender.is(wire.to) || receiver.is(wire.to) {
            self.record(now, packet, PacketEvent::Arrived);
        }
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        if packet.flow == self.flow.id && (self.whole || self.is_lost_here(at, packet)) {
            if let (Some(key), Some(holder)) = (self.key(packet), self.holders.get_mut(&at)) {
                holder.release(key);
            }
            self.record(now, packet, self.dropped(at, reason));
        }
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        if id != self.part.sender.id {
            return;
        }
        let report = match component {
            Node::Proxy(proxy) => {
                proxy.relay(self.flow.id).expect("the sender of the part is in this proxy").sender().report()
            }
            end => end.report(),
        };
        let Some(EndReport { counters, .. }) = report else { return };
        let before = std::mem::replace(&mut self.counted, counters);
        for (event, now_counted, counted) in [
            ("timeout", counters.timeouts, before.timeouts),
            ("fast-retransmit", counters.detected_losses, before.detected_losses),
        ] {
            if now_counted.unwrap_or_default() > counted.unwrap_or_default() {
                self.push(now, event, self.acknowledged, 0, Bytes::ZERO);
            }
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        let ConnectionPart { sender, receiver, .. } = self.part;
        let is_seen =
            |place: PortRef| sender.is(place) || receiver.is(place) || self.holders.contains_key(&place.0);
        [wire.from, wire.to].into_iter().any(is_seen)
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, id: ComponentId) -> bool {
        id == self.part.sender.id
    }
}

const DATA: [&str; 5] = ["sent", "delivered", "lost", "suppressed", "copied"];
const ACKS: [&str; 5] = ["ack-sent", "ack-received", "ack-lost", "ack-suppressed", "ack-created"];
const NOTICES: [&str; 5] =
    ["notice-sent", "notice-received", "notice-lost", "notice-suppressed", "notice-created"];

fn named(event: PacketEvent, [sent, arrived, lost, suppressed, created]: [&'static str; 5]) -> &'static str {
    match event {
        PacketEvent::Sent => sent,
        PacketEvent::Arrived => arrived,
        PacketEvent::Lost(_) => lost,
        PacketEvent::Suppressed(_) => suppressed,
        PacketEvent::Created(_) => created,
    }
}
