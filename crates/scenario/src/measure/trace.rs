//! Packet traces of a connection, as columns.

use std::collections::HashMap;

use lasthop_base::{Bytes, Time};
use lasthop_proto::tcp::{Flags, SenderStats, SeqNum, Settings};
use lasthop_proto::{Body, ComponentId, DropReason, Packet};
use lasthop_sim::{Node, Tap, Wire};

use crate::build::{ConnectionComponents, ConnectionPart};

/// Trace of the packets of a connection, or of one part of a split connection, in chronological order: row
/// *i* of each column belongs to event *i*. The source of a part is the node at which it begins.
///
/// - `sent`, `delivered`, `lost`: a data segment left the source, reached its destination, or was lost.
/// - `ack-sent`, `ack-received`, `ack-lost`: likewise for an acknowledgement, or a reset by the destination.
/// - `notice-received`, `notice-lost`: a control message of the scheme reached the source, or was lost.
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
    /// Reason of a loss: `queue-full`, `active-queue`, `corrupted`, `attempts-exhausted` or `scripted`;
    /// otherwise empty.
    pub reason: Vec<&'static str>,
}

/// What happened to a packet.
#[derive(Clone, Copy)]
enum PacketEvent {
    Sent,
    Arrived,
    Lost(DropReason),
}

/// Records the [`Events`] of one part of a connection.
pub(crate) struct Tracer {
    flow: ConnectionComponents,
    part: ConnectionPart,
    /// Whether the connection has no other part.
    whole: bool,
    mss: i64,
    first_data: SeqNum,
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
    ) -> Tracer {
        Tracer {
            flow,
            part,
            whole,
            mss: i64::from(settings.mss()),
            first_data: SeqNum(settings.iss) + u32::from(settings.handshake),
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
                let event = named(event, ["sent", "delivered", "lost"]);
                self.push(now, event, number, transmission, packet.size);
            }
            Body::Tcp(segment) if segment.flags.has(Flags::RST) => {
                let event = named(event, ["ack-sent", "ack-received", "ack-lost"]);
                self.push(now, event, -1, 0, packet.size);
            }
            Body::Tcp(segment) => {
                let next = (self.offset(segment.ack) + self.mss - 1) / self.mss;
                if let PacketEvent::Arrived = event {
                    self.acknowledged = self.acknowledged.max(next);
                }
                let event = named(event, ["ack-sent", "ack-received", "ack-lost"]);
                self.push(now, event, next, 0, packet.size);
            }
            Body::Notice(notice) => {
                let number = self.offset(notice.seq) / self.mss;
                let event = named(event, ["notice-sent", "notice-received", "notice-lost"]);
                self.push(now, event, number, 0, packet.size);
            }
            Body::Datagram(_) => return,
        }
        if let (PacketEvent::Lost(why), Some(reason)) = (event, self.events.reason.last_mut()) {
            *reason = reason_key(why);
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
        if wire.from == sender || wire.from == receiver {
            self.record(now, packet, PacketEvent::Sent);
        } else if wire.to == sender || wire.to == receiver {
            self.record(now, packet, PacketEvent::Arrived);
        }
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        if packet.flow == self.flow.id && (self.whole || self.part.links.contains(&at)) {
            self.record(now, packet, PacketEvent::Lost(reason));
        }
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        if id != self.part.sender.0 {
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
        [wire.from, wire.to].iter().any(|&end| end == sender || end == receiver)
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, id: ComponentId) -> bool {
        id == self.part.sender.0
    }
}

fn named(event: PacketEvent, [sent, arrived, lost]: [&'static str; 3]) -> &'static str {
    match event {
        PacketEvent::Sent => sent,
        PacketEvent::Arrived => arrived,
        PacketEvent::Lost(_) => lost,
    }
}

fn reason_key(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "queue-full",
        DropReason::Corrupted => "corrupted",
        DropReason::ActiveQueue => "active-queue",
        DropReason::AttemptsExhausted => "attempts-exhausted",
        DropReason::Suppressed => "suppressed",
        DropReason::Scripted => "scripted",
    }
}
