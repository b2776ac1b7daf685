//! Delays of packets, end to end and on each link, as columns.

use std::collections::{HashMap, VecDeque};

use lasthop_base::{Duration, Time};
use lasthop_proto::tcp::SeqNum;
use lasthop_proto::{Body, ComponentId, DropReason, Ecn, FlowId, HostId, Packet};
use lasthop_scenario::network::{NetworkLink, Workload};
use lasthop_scenario::{Radio, Wired};
use lasthop_sim::{Tap, Wire};

use crate::assemble::{ConnectionPart, Layout, PartEnd};

/// Delays of a run, in the order of arrival: row *i* of each column belongs to one packet that arrived, at the end of its
/// flow or of a link.
///
/// End to end, a packet is one of a source of other traffic, or the data of one segment, from when they were first sent until
/// they first arrived, by whatever retransmissions; of a split connection, for each part. On a link, it is any packet, from
/// when it came to the queue until it arrived at the other end. Cells, and shared radios to mobile hosts, are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Delays {
    /// Time of arrival in seconds.
    pub time_s: Vec<f64>,
    /// Index of the flow in [`flows`](Delays::flows).
    pub flow: Vec<u32>,
    /// Index of the path or the link in [`ways`](Delays::ways).
    pub way: Vec<u32>,
    /// Size as an IP packet.
    pub size_bytes: Vec<i64>,
    /// The delay in seconds.
    pub delay_s: Vec<f64>,
    /// The part of it by which it exceeds that of an idle link without losses: waiting, and retransmissions of an ARQ. NaN
    /// end to end, and on a link whose rate or delay varies or that has a code.
    pub queueing_s: Vec<f64>,
    /// The names of flows.
    pub flows: Vec<String>,
    /// The ways of packets.
    pub ways: Vec<Way>,
}

/// Where packets are delayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The node at which it begins.
    pub from: String,
    /// The node at which it ends.
    pub to: String,
    /// Whether it is a link, and not the path of a flow.
    pub is_link: bool,
}

/// The delay of a link without queueing and losses.
enum Unloaded {
    Unknown,
    Wired(Box<Wired>),
    Radio(Box<Radio>),
}

impl Unloaded {
    /// Of the direction of a link that leads away from its end `from`.
    fn new(link: &NetworkLink, from: usize) -> Unloaded {
        match link {
            NetworkLink::Wired(wired) if !wired.rate.varies() && !wired.delay.varies() => {
                Unloaded::Wired(wired.clone())
            }
            NetworkLink::Radio(hop) => {
                let radio = if from == hop.mobile { &hop.up } else { &hop.down };
                match radio.varies() || radio.fec.is_some() {
                    true => Unloaded::Unknown,
                    false => Unloaded::Radio(Box::new(radio.clone())),
                }
            }
            NetworkLink::Wired(_) | NetworkLink::Station(_) => Unloaded::Unknown,
        }
    }

    fn delay(&self, packet: &Packet) -> Option<Duration> {
        match self {
            Unloaded::Unknown => None,
            Unloaded::Wired(wired) => {
                Some(wired.rate.nominal().time_for(packet.size) + wired.delay.nominal())
            }
            Unloaded::Radio(radio) => Some(radio.on_air(packet.size).2 + radio.delay.nominal()),
        }
    }
}

/// One direction of a link.
struct Link {
    way: u32,
    unloaded: Unloaded,
    /// The packets that have entered, and when.
    within: VecDeque<(Time, Packet)>,
}

impl Link {
    /// Takes out a packet that leaves. The queue may have marked it.
    fn leave(&mut self, packet: &Packet) -> Option<Time> {
        let unmarked = |packet: &Packet| Packet { ecn: Ecn::NotEct, ..*packet };
        let wanted = unmarked(packet);
        let index = self.within.iter().position(|(_, entered)| unmarked(entered) == wanted)?;
        self.within.remove(index).map(|(entered, _)| entered)
    }
}

/// The data of a connection, or of one part of it, that are on their way.
struct Data {
    way: u32,
    sender: PartEnd,
    receiver: PartEnd,
    /// When the segment that begins with a number was first sent; until it has arrived.
    sent: HashMap<u32, Time>,
    /// The end of what was sent.
    end: Option<SeqNum>,
}

/// Records the [`Delays`] of a run.
pub(crate) struct DelayRecorder {
    links: HashMap<ComponentId, Link>,
    /// By the index of the flow.
    data: Vec<Vec<Data>>,
    /// The sinks of other traffic, with their ways.
    sinks: HashMap<ComponentId, u32>,
    delays: Delays,
}

impl DelayRecorder {
    pub(crate) fn new(layout: &Layout) -> DelayRecorder {
        let network = layout.network();
        let name = |node: HostId| network.names[node.index()].clone();
        let mut ways = Vec::new();
        let mut way = |[from, to]: [HostId; 2], is_link| {
            ways.push(Way { from: name(from), to: name(to), is_link });
            (ways.len() - 1) as u32
        };
        let mut sinks = HashMap::new();
        let mut data = Vec::new();
        for ((flow, ends), parts) in network.flows.iter().zip(layout.flow_ends()).zip(layout.parts()) {
            if let Workload::Traffic { .. } = flow.workload {
                sinks.insert(ends.1, way([flow.source(), flow.destination()], false));
            }
            let of_part = |part: &ConnectionPart| Data {
                way: way(part.nodes, false),
                sender: part.sender,
                receiver: part.receiver,
                sent: HashMap::new(),
                end: None,
            };
            data.push(parts.iter().map(of_part).collect());
        }
        let links = layout.link_components().map(|(id, link, from)| {
            let ends = network.graph.ends(link);
            let way = way([ends[from], ends[1 - from]], true);
            let unloaded = Unloaded::new(&network.links[link.index()], from);
            (id, Link { way, unloaded, within: VecDeque::new() })
        });
        let links = links.collect();
        let flows = network.flows.iter().map(|flow| flow.name.clone()).collect();
        let delays = Delays { flows, ways, ..Delays::default() };
        DelayRecorder { links, data, sinks, delays }
    }

    /// How many rows there are so far.
    pub(crate) fn rows(&self) -> usize {
        self.delays.time_s.len()
    }

    pub(crate) fn into_delays(self) -> Delays {
        self.delays
    }
}

impl Delays {
    fn push(&mut self, now: Time, way: u32, packet: &Packet, since: Time, unloaded: Option<Duration>) {
        let delay = now.since(since).as_secs_f64();
        self.time_s.push(now.as_secs_f64());
        self.flow.push(packet.flow.0);
        self.way.push(way);
        self.size_bytes.push(packet.size.0 as i64);
        self.delay_s.push(delay);
        let queueing = unloaded.map(|unloaded| now.since(since).saturating_sub(unloaded).as_secs_f64());
        self.queueing_s.push(queueing.unwrap_or(f64::NAN));
    }
}

impl Tap for DelayRecorder {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        let DelayRecorder { links, data, sinks, delays } = self;
        if packet.flow == FlowId::NONE {
            return;
        }
        if let Some(link) = links.get_mut(&wire.from.0)
            && let Some(entered) = link.leave(packet)
        {
            delays.push(now, link.way, packet, entered, link.unloaded.delay(packet));
        }
        if let Some(link) = links.get_mut(&wire.to.0) {
            link.within.push_back((now, *packet));
        }
        match packet.body {
            Body::Datagram(datagram) => {
                if let Some(&way) = sinks.get(&wire.to.0) {
                    delays.push(now, way, packet, datagram.sent, None);
                }
            }
            Body::Tcp(segment) if segment.len > 0 => {
                for part in data[packet.flow.index()].iter_mut() {
                    if part.sender.is(wire.from) {
                        if part.end.is_none_or(|end| segment.seq >= end) {
                            part.sent.insert(segment.seq.0, now);
                            part.end = Some(segment.seq + segment.len);
                        }
                    } else if part.receiver.is(wire.to)
                        && let Some(sent) = part.sent.remove(&segment.seq.0)
                    {
                        delays.push(now, part.way, packet, sent, None);
                    }
                }
            }
            Body::Tcp(_) | Body::Notice(_) | Body::Coded(_) => {}
        }
    }

    fn drop(&mut self, _now: Time, at: ComponentId, packet: &Packet, _reason: DropReason) {
        if let Some(link) = self.links.get_mut(&at) {
            link.leave(packet);
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        let is_end =
            |&place| self.data.iter().flatten().any(|part| part.sender.is(place) || part.receiver.is(place));
        [wire.from, wire.to]
            .iter()
            .any(|end| self.links.contains_key(&end.0) || self.sinks.contains_key(&end.0) || is_end(end))
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, _id: ComponentId) -> bool {
        false
    }
}
