//! Packet traces of a connection, as columns.

use std::collections::HashMap;
use std::rc::Rc;

use lasthop_base::{Bytes, Time};
use lasthop_proto::tcp::{Flags, SenderStats, SeqNum, Settings};
use lasthop_proto::{Body, ComponentId, DropReason, Packet};
use lasthop_sim::{Node, Tap, Wire};

use crate::build::{ConnectionComponents, ConnectionPart};

/// Trace of the packets of a connection, or of one part of a split connection, in chronological order: row
/// *i* of each column belongs to event *i*. The source of a part is the node at which it begins.
///
/// - `sent`, `delivered`, `lost`, `suppressed`: a data segment left the source, reached its destination, was lost, or was
///   suppressed by an agent, which is not a loss.
/// - `ack-sent`, `ack-received`, `ack-lost`, `ack-suppressed`: the same for an acknowledgement, or a reset by the
///   destination.
/// - `notice-received`, `notice-lost`, `notice-suppressed`: a control message of the scheme reached the source, was
///   lost, or was suppressed.
/// - `timeout`, `fast-retransmit`: the source detected a loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Events {
    /// Time in seconds.
    pub time_s: Vec<f64>,
    /// Event name.
    pub event: Vec<&'static str>,
    /// Number of a data segment, from 0: the offset of its first byte divided by the maximum payload of a
    /// segment. For an acknowledgement, the number that it expects next; for a notice, the number of its
    /// subject; for a detected loss, the first unacknowledged number. −1 for a segment of the source without
    /// data, and for RST.
    pub packet: Vec<i64>,
    /// Transmission number of these data, from 1 in the order of sending; otherwise 0. Retransmitted data at
    /// the start of a new segment boundary have number 2 at least.
    pub transmission: Vec<i64>,
    /// Size as an IP packet; 0 if there is none.
    pub size_bytes: Vec<i64>,
    /// Reason of a loss: `queue-full`, `active-queue`, `corrupted`, `attempts-exhausted`,
    /// `unreachable`, `unrecovered` or `scripted`; the scheme of an
    /// agent that suppressed a packet; otherwise empty.
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
    /// Offset of the last sequence number seen; others are unwrapped relative to it.
    near: i64,
    acknowledged: i64,
    /// For each offset, the number of segments beginning there that were sent, and that were delivered or
    /// lost.
    copies: HashMap<i64, (i64, i64)>,
    /// End of the data sent so far.
    sent: i64,
    counted: SenderStats,
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
    ) -> Tracer {
        Tracer {
            flow,
            part,
            whole,
            mss: i64::from(settings.mss()),
            first_data: SeqNum(settings.iss) + u32::from(settings.handshake),
            agents,
            near: 0,
            acknowledged: 0,
            copies: HashMap::new(),
            sent: 0,
            counted: SenderStats::default(),
            events: Events::default(),
        }
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
    }

    fn record(&mut self, now: Time, packet: &Packet, event: PacketEvent) {
        match &packet.body {
            Body::Tcp(segment) if packet.src == self.flow.source => {
                let offset = if segment.len > 0 { self.offset(segment.seq) } else { -1 };
                let transmission = self.count_copy(offset, event);
                self.sent = self.sent.max(offset + i64::from(segment.len));
                let number = if segment.len > 0 { offset / self.mss } else { -1 };
                let event = named(event, ["sent", "delivered", "lost", "suppressed"]);
                self.push(now, event, number, transmission, packet.size);
            }
            Body::Tcp(segment) if segment.flags.has(Flags::RST) => {
                let event = named(event, ["ack-sent", "ack-received", "ack-lost", "ack-suppressed"]);
                self.push(now, event, -1, 0, packet.size);
            }
            Body::Tcp(segment) => {
                let next = (self.offset(segment.ack) + self.mss - 1) / self.mss;
                if let PacketEvent::Arrived = event {
                    self.acknowledged = self.acknowledged.max(next);
                }
                let event = named(event, ["ack-sent", "ack-received", "ack-lost", "ack-suppressed"]);
                self.push(now, event, next, 0, packet.size);
            }
            Body::Notice(notice) => {
                let number = self.offset(notice.seq) / self.mss;
                let names = ["notice-sent", "notice-received", "notice-lost", "notice-suppressed"];
                let event = named(event, names);
                self.push(now, event, number, 0, packet.size);
            }
            // Lost packets of a code may be recovered.
            Body::Datagram(_) | Body::Coded(_) => return,
        }
        if let (PacketEvent::Lost(why) | PacketEvent::Suppressed(why), Some(reason)) =
            (event, self.events.reason.last_mut())
        {
            *reason = why;
        }
    }

    /// Whether a packet that is dropped at a component is one of the part: on the way, or by the proxy that it reaches.
    fn is_lost_here(&self, at: ComponentId, packet: &Packet) -> bool {
        let ConnectionPart { sender, receiver, links, .. } = &self.part;
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
            DropReason::Unrecovered => PacketEvent::Lost("unrecovered"),
            DropReason::Scripted => PacketEvent::Lost("scripted"),
            DropReason::Suppressed => {
                let agent = self.agents.iter().find(|(agent, _)| *agent == at);
                PacketEvent::Suppressed(agent.map_or("", |(_, scheme)| *scheme))
            }
        }
    }

    /// Transmission number of these data. Copies are delivered or lost in the order in which they were sent.
    fn count_copy(&mut self, offset: i64, event: PacketEvent) -> i64 {
        // Retransmitted data may have different segment boundaries.
        let earlier = i64::from(offset >= 0 && offset < self.sent);
        let (left, ended) = self.copies.entry(offset).or_insert((earlier, earlier));
        let count = if let PacketEvent::Sent = event { left } else { ended };
        *count += 1;
        *count
    }
}

impl Tap for Tracer {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        if packet.flow != self.flow.id {
            return;
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
            self.record(now, packet, self.dropped(at, reason));
        }
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        if id != self.part.sender.id {
            return;
        }
        let sender = match component {
            Node::Sender(sender) => sender,
            Node::Proxy(proxy) => {
                proxy.relay(self.flow.id).expect("the sender of the part is in this proxy").sender()
            }
            _ => return,
        };
        let (before, stats) = (self.counted, *sender.stats());
        self.counted = stats;
        for (event, happened) in [
            ("timeout", stats.timeouts > before.timeouts),
            ("fast-retransmit", stats.fast_retransmits > before.fast_retransmits),
        ] {
            if happened {
                self.push(now, event, self.acknowledged, 0, Bytes::ZERO);
            }
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        let ConnectionPart { sender, receiver, .. } = self.part;
        [wire.from, wire.to].into_iter().any(|place| sender.is(place) || receiver.is(place))
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, id: ComponentId) -> bool {
        id == self.part.sender.id
    }
}

fn named(event: PacketEvent, [sent, arrived, lost, suppressed]: [&'static str; 4]) -> &'static str {
    match event {
        PacketEvent::Sent => sent,
        PacketEvent::Arrived => arrived,
        PacketEvent::Lost(_) => lost,
        PacketEvent::Suppressed(_) => suppressed,
    }
}
