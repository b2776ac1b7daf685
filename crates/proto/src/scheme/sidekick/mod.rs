//! Sidekick: local retransmission of packets that nobody can read.
//!
//! **What it does.** The base station keeps a copy of each packet that it sends to the mobile host, with an identifier: some bits
//! of the encrypted packet. The mobile host adds up the powers of the identifiers of what arrives, flow by flow, and sends these
//! sums to the base station: a quACK. The difference from the sums of what was sent tells which packets are missing, and
//! the base station sends these again. No payload is read or changed: QUIC is served as TCP is, and so is a VPN.
//! **Source.** Yuan, Sotoudeh, Zhang, Welzl, Mazières and Winstein, "Sidekick: In-Network Assistance for Secure End-to-End
//! Transport Protocols", NSDI 2024, for the quACK; Yuan, Zhang, Sotoudeh, Welzl and Winstein, "Sidecar: In-Network Performance
//! Enhancements in the Age of Paranoid Transport Protocols", HotNets 2022, for retransmission between two proxies. Their abstracts and
//! the authors' code (github.com/ygina/sidekick) were at hand.
//! **Parameters.**
//! - `every`: packets per quACK, 2, as in the authors' experiment with retransmissions.
//! - `wait`: maximum time from the arrival of a packet to its quACK, 10 ms: our choice.
//! - `threshold`: power sums in a quACK, the maximum number of missing packets that it can tell; 8, as in that experiment. A
//!   packet is missing until its repair has arrived, so this bounds the losses of a flow in a round trip of the link.
//! - `bits`: width of identifiers, 32.
//! - `attempts`: maximum number of repairs of a packet, 10 as of `snoop`.
//! - `buffer`: maximum number of packets kept per flow and direction, 1024 as of `snoop`.
//! - `expedite`: whether repairs and quACKs go first in the queues before the link. Repairs keep that code point on the rest of
//!   the way.
//! - `directions`: `"down"` (towards the mobile host, default), `"up"` or `"both"`.
//! - `reader`: `"link"` (the other end of the link, default) or `"source"`.
//! - `moves_window`: whether quACKs are acknowledgements for the window of the source that reads them; false, as in the authors' code.
//!
//! **quACKs.** A UDP datagram of 28 B of headers, 2 B of the count, the identifier that arrived last, and the power sums: 66 B by
//! default. It is lost, delayed and queued as any packet. Of the sums, those up to the packet named last are compared; packets
//! sent later are in flight. A repaired packet is due again when a packet that was sent after the repair has arrived. No byte is
//! counted for the flow, as if UDP ports told it. A lost quACK is not repeated: the next one says more, and what the last one of
//! a flow would have shown missing is not repaired.
//!
//! **Order.** The link must keep the order of what it carries in `directions`: refused are delays that reorder, schemes that let some
//! packets of a flow go first, and agents nearer to the link. quACKs may overtake each other: each says what earlier ones said.
//!
//! **State.** Each end has the sums of 256 flows, and removes those idle for 120 s. The other end learns of it by a quACK that
//! cannot be decoded. When a moving host comes or leaves, both ends begin anew, and what was missing is not repaired. A flow with
//! more than `buffer` packets between the two ends gets no repairs: see `unread_quacks`.
//!
//! **The source as reader**, as in NSDI 2024. The base station sends quACKs of what a QUIC source sends (towards the mobile host
//! or from it) to that source. What is missing was lost on the way to the base station: the source sends it again, and its control
//! is told of a loss there, which it may answer by less than one behind (`quinn-pacubic`). With `moves_window`, what has arrived at the
//! base station no longer counts as in flight, so that the receiver may acknowledge rarely (`quic.ack_every`). TCP is not served.
//! Refused are links that reorder packets on the way to the base station, a connection of which two report, and controls that such
//! reports mislead: BBR of Linux, and with `moves_window` all of Linux's. `attempts` and `expedite` have no effect: a repair is a packet
//! like others.
//!
//! **Differences from the papers.**
//! - By default it is the mobile host that sends quACKs, and the proxy retransmits, as in HotNets 2022.
//! - The authors' source retransmits data in a new packet of QUIC; here it sends the same one again, behind as many as are sent
//!   until the quACK comes, which quinn takes for lost if they are `quic.packet_threshold`. Its control does not learn of that.
//! - A quACK that cannot be decoded (too many packets are missing, or one has arrived twice) makes its sums
//!   the base station's own, and what was missing is not repaired. The authors' sender sends a reset instead.
//! - A loss is noticed by the arrival of a later packet. The ends' own probes find the losses of the last packets.
//! - Repairs arrive out of order. A transport that takes three later packets for the sign of a loss
//!   retransmits and reduces its window in vain if as many overtake the repair.
//! - Packets are kept before they enter the queue, so that a packet dropped by a full queue is repaired as one lost on the air, as
//!   with `snoop`. The source then learns of congestion by delay only.

mod identifier;
mod power_sums;
mod reader;
mod repairer;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::power_sums::{Code, MOST, PowerSums};
use self::reader::Reader;
use self::repairer::{Counters, Limits, Repairer};
use super::attachment::Attachment;
use super::connections::{ConnectionState, ConnectionTable};
use super::directions::Directions;
use super::{Deployment, Installer, LinkEnd, QueueUse, Scheme, Site};
use crate::component::{Component, LinkOutcome, Out, Port, Quack, Signal, Tally};
use crate::packet::{Body, Dscp, Ecn, FlowId, Handle, HostId, Notice, NoticeCode, Packet};
use crate::tcp::{Connection, SeqNum, Settings};

/// Marks a quACK among the packets between the two ends.
const QUACK: NoticeCode = NoticeCode { kind: 41, code: 6 };

/// Headers of IP and UDP, and the count.
const QUACK_HEADER: Bytes = Bytes(30);

/// Maximum number of quACKs under way to an agent whose contents it remembers.
const UNDER_WAY: usize = 1024;

/// Bounds of the tables of flows, those of `snoop`.
const FLOWS: u32 = 256;
const IDLE: Duration = Duration::from_secs(120);

/// Who reads quACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QuackReader {
    /// The other end of the wireless link.
    Link,
    /// The source of the packets, a QUIC sender.
    Source,
}

/// Local retransmission of packets that nobody can read.
///
/// For any transport, encrypted or not: the mobile host reports by power sums of opaque identifiers (a quACK) which packets have
/// arrived, and the base station sends the missing ones again. Repairs arrive out of order, behind as many packets as the
/// link carries in a round trip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Sidekick {
    /// Packets per quACK.
    pub every: u32,
    /// Maximum time from the arrival of a packet to its quACK.
    pub wait: Duration,
    /// Maximum number of missing packets that a quACK can tell, 1 to 20: the power sums in it. Repairs under way count as
    /// missing, so this bounds the losses of a flow in a round trip of the link.
    pub threshold: u8,
    /// Width of identifiers and power sums in bits: 16, 24 or 32.
    pub bits: u8,
    /// Maximum number of repairs of a packet.
    pub attempts: u32,
    /// Maximum number of packets kept per flow and direction, up to 65,535. A flow with more between the two ends is not repaired.
    pub buffer: u32,
    /// Whether repairs and quACKs have the Expedited Forwarding code point, and the queues before the link send them first. The
    /// scenario's queues must then be ones with a capacity, or with priority.
    pub expedite: bool,
    /// `"both"`, `"down"` (towards the mobile host) or `"up"`.
    pub directions: Directions,
    /// `"link"`, the other end of the wireless link, or `"source"`: the base station reports to the source of QUIC packets, which
    /// sends the missing ones again. Then nothing goes first in the queues.
    pub reader: QuackReader,
    /// Whether quACKs move the window of the source that reads them, as acknowledgements do. Losses behind the base station
    /// are still found by those of the receiver.
    pub moves_window: bool,
}

impl Default for Sidekick {
    fn default() -> Sidekick {
        Sidekick {
            every: 2,
            wait: Duration::from_millis(10),
            threshold: 8,
            bits: 32,
            attempts: 10,
            buffer: 1024,
            expedite: true,
            directions: Directions::Down,
            reader: QuackReader::Link,
            moves_window: false,
        }
    }
}

impl Sidekick {
    fn quack_size(&self) -> Bytes {
        QUACK_HEADER + Bytes(u64::from(self.bits) / 8 * (u64::from(self.threshold) + 1))
    }

    fn dscp(&self, own: Dscp) -> Dscp {
        if self.expedite && own == Dscp::DEFAULT { Dscp::EXPEDITED } else { own }
    }
}

impl Scheme for Sidekick {
    fn name(&self) -> &'static str {
        "sidekick"
    }

    fn summary(&self) -> &'static str {
        "the base station retransmits encrypted packets that the mobile host's quACKs show missing"
    }

    fn source(&self) -> &'static str {
        "Yuan et al., NSDI 2024 and HotNets 2022"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "base station and mobile host",
            products: None,
            cost: "quACKs take bandwidth of the other direction; repairs arrive out of order, which QUIC may take for losses",
            variants: &[&[]],
        })
    }

    fn reads_tcp(&self) -> bool {
        false
    }

    fn needs_quic(&self) -> bool {
        self.reader == QuackReader::Source
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let numbers = [("every", self.every), ("attempts", self.attempts), ("buffer", self.buffer)];
        let zero = numbers.into_iter().filter(|&(_, number)| number == 0);
        let mut faults: Vec<_> = zero.map(|(key, _)| (key, "found 0, expected at least 1".into())).collect();
        if self.wait.is_zero() {
            faults.push(("wait", "found 0 s, expected more than zero".into()));
        }
        if self.threshold == 0 || usize::from(self.threshold) > MOST {
            faults.push(("threshold", format!("found {}, expected from 1 to {MOST}", self.threshold)));
        }
        if self.buffer > u16::MAX.into() {
            faults.push(("buffer", format!("found {}, expected at most {}", self.buffer, u16::MAX)));
        }
        if self.moves_window && self.reader == QuackReader::Link {
            faults.push(("moves_window", "found true, expected false unless reader is \"source\"".into()));
        }
        if !Code::is_valid(self.bits) {
            faults.push(("bits", format!("found {}, expected 16, 24 or 32", self.bits)));
        }
        faults.into_iter().map(|(key, fault)| (String::from(key), fault)).collect()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        if self.reader == QuackReader::Source {
            installer.at_base_station(|site| Agent::new(self, site));
            return installer.at_source(|| Reader::new(self));
        }
        if self.expedite {
            installer.queue(QueueUse::ExpeditedFirst);
        }
        installer.at_both_ends(self.directions, |site| Agent::new(self, site));
    }
}

/// One end of the link: repairs what it sends, and reports what arrives.
#[derive(Debug)]
struct Agent {
    scheme: Sidekick,
    code: Code,
    end: LinkEnd,
    /// Tells this agent from others on the way to a source.
    name: u16,
    /// The mobile hosts that are served here; `None` at a base station, which serves all.
    hosts: Option<BTreeSet<HostId>>,
    attachment: Attachment,
    repairers: ConnectionTable<Repairer>,
    reporters: ConnectionTable<Reporter>,
    /// Number of repairs of each flow.
    repairs: BTreeMap<FlowId, u64>,
    /// The contents of quACKs that are under way to this end.
    under_way: VecDeque<Quack>,
    /// Lower bound of the deadlines of reporters.
    deadline: Time,
    quacks_sent: u64,
    counters: Counters,
}

/// What has arrived of one flow.
#[derive(Clone, Copy, Debug)]
struct Reporter {
    connection: Connection,
    /// Where the packets arrive.
    port: Port,
    sums: PowerSums,
    /// The identifier that arrived last.
    last: u32,
    /// Packets that no quACK has reported, and when one is due at the latest.
    unreported: u32,
    due: Time,
}

impl ConnectionState for Reporter {
    type Read = (Connection, Port);

    fn new(now: Time, &(connection, port): &(Connection, Port)) -> Reporter {
        Reporter { connection, port, sums: PowerSums::default(), last: 0, unreported: 0, due: now }
    }

    fn is_outdated(&self, _read: &(Connection, Port)) -> bool {
        false
    }

    fn cached(&self) -> usize {
        0
    }
}

fn connection_of(packet: &Packet) -> Connection {
    let Packet { src, dst, flow, .. } = *packet;
    Connection { src, dst, flow }
}

/// The number of a quACK, if the packet is one.
fn number_of(packet: &Packet) -> Option<u32> {
    match packet.body {
        Body::Notice(Notice { code: QUACK, seq }) => Some(seq.0),
        _ => None,
    }
}

/// The upper half of the number of a quACK, which is the name of the agent if the source reads it. Otherwise it has the
/// lower half of the number of its mobile host.
fn agent_of(number: u32) -> u16 {
    (number >> 16) as u16
}

impl Agent {
    fn new(scheme: &Sidekick, site: &Site<'_>) -> Agent {
        Agent {
            scheme: scheme.clone(),
            code: Code::new(scheme.bits, scheme.threshold),
            end: site.end,
            name: site.stream("sidekick").below(1 << 16) as u16,
            hosts: site.hosts.cloned(),
            attachment: Attachment::new(site.station),
            repairers: ConnectionTable::new(FLOWS, IDLE),
            reporters: ConnectionTable::new(FLOWS, IDLE),
            repairs: BTreeMap::new(),
            under_way: VecDeque::new(),
            deadline: Time::NEVER,
            quacks_sent: 0,
            counters: Counters::default(),
        }
    }

    fn other_end(&self) -> LinkEnd {
        match self.end {
            LinkEnd::BaseStation => LinkEnd::MobileHost,
            LinkEnd::MobileHost => LinkEnd::BaseStation,
        }
    }

    fn limits(&self) -> Limits {
        Limits { attempts: self.scheme.attempts, buffer: self.scheme.buffer as usize }
    }

    /// A packet is sent over the link.
    fn on_sent(&mut self, now: Time, packet: &Packet) {
        let (code, limits) = (self.code, self.limits());
        let id = code.identifier(identifier::hash(packet));
        let Agent { repairers, counters, .. } = self;
        let slot = repairers.find_or_add(now, connection_of(packet), &());
        repairers.update(now, slot, |repairer| repairer.send(packet, id, code, limits, counters));
    }

    /// A packet has arrived over the link.
    fn on_arrived(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let Agent { code, scheme, reporters, .. } = self;
        let id = code.identifier(identifier::hash(packet));
        let connection = connection_of(packet);
        let slot = reporters.find_or_add(now, connection, &(connection, port));
        let reporter = reporters.update(now, slot, |reporter| {
            code.add(&mut reporter.sums, id);
            reporter.last = id;
            if reporter.unreported == 0 {
                reporter.due = now + scheme.wait;
            }
            reporter.unreported = (reporter.unreported + 1) % scheme.every;
            *reporter
        });
        if reporter.unreported == 0 {
            self.report(&reporter, out);
        } else {
            self.deadline = self.deadline.min(reporter.due);
        }
    }

    /// Sends a quACK of a flow.
    fn report(&mut self, reporter: &Reporter, out: &mut Out) {
        let Connection { src, dst, flow } = reporter.connection;
        let is_for_source = self.scheme.reader == QuackReader::Source;
        let mobile = if self.end == LinkEnd::MobileHost { dst } else { src };
        let name = if is_for_source { self.name } else { mobile.0 as u16 };
        let number = u32::from(name) << 16 | (self.quacks_sent & 0xffff) as u32;
        self.quacks_sent += 1;
        let Reporter { sums: PowerSums { count, sums }, last, .. } = *reporter;
        out.signal(Signal::Quack(Quack { number, mobile, last, sums, count, flow }));
        let packet = Packet {
            src: dst,
            dst: src,
            flow: if is_for_source { flow } else { FlowId::NONE },
            size: self.scheme.quack_size(),
            dscp: if is_for_source { Dscp::DEFAULT } else { self.scheme.dscp(Dscp::DEFAULT) },
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body: Body::Notice(Notice { code: QUACK, seq: SeqNum(number) }),
        };
        out.send(reporter.port, packet);
    }

    /// A quACK has arrived.
    fn on_quack(&mut self, now: Time, number: u32, packet: &Packet, out: &mut Out) {
        let is_it =
            |quack: &Quack| quack.number == number && [packet.src, packet.dst].contains(&quack.mobile);
        let Some(place) = self.under_way.iter().position(is_it) else { return };
        let quack = self.under_way[place];
        // Earlier ones of the same host are lost or out of date.
        let mut index = 0;
        self.under_way.retain(|other| {
            index += 1;
            index > place + 1 || other.mobile != quack.mobile
        });
        let connection = Connection { src: packet.dst, dst: packet.src, flow: quack.flow };
        let (code, limits) = (self.code, self.limits());
        let Agent { repairers, repairs, scheme, counters, .. } = self;
        let Some(slot) = repairers.find(now, connection) else { return };
        let repair = |packet: Packet| {
            *repairs.entry(packet.flow).or_default() += 1;
            out.send(Port::RADIO, Packet { dscp: scheme.dscp(packet.dscp), ..packet });
        };
        repairers.update(now, slot, |repairer| repairer.read(&quack, code, limits, counters, repair));
    }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let for_source = self.scheme.reader == QuackReader::Source;
        if port == Port::RADIO
            && !for_source
            && let Some(number) = number_of(packet)
        {
            return self.on_quack(now, number, packet, out);
        }
        out.send(port.across(), *packet);
        // Packets between agents concern no flow, and those for a host that is elsewhere do not arrive.
        if packet.flow == FlowId::NONE || !self.attachment.is_attached() {
            return;
        }
        if for_source {
            let from = if port == Port::WIRED { self.end } else { self.other_end() };
            let has_bytes = matches!(packet.body, Body::Datagram(_)) && packet.handle != Handle::NONE;
            if has_bytes && self.scheme.directions.include_from(from) {
                self.on_arrived(now, packet, port, out);
            }
            return;
        }
        match port {
            Port::WIRED if self.scheme.directions.include_from(self.end) => self.on_sent(now, packet),
            Port::RADIO if self.scheme.directions.include_from(self.other_end()) => {
                self.on_arrived(now, packet, port, out);
            }
            _ => {}
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let mut due = Vec::new();
        self.deadline = Time::NEVER;
        self.reporters.for_each(|reporter| match reporter.unreported {
            0 => {}
            _ if reporter.due <= now => {
                reporter.unreported = 0;
                due.push(*reporter);
            }
            _ => self.deadline = self.deadline.min(reporter.due),
        });
        due.iter().for_each(|reporter| self.report(reporter, out));
    }

    fn next_wakeup(&self) -> Time {
        self.deadline
    }

    fn on_signal(&mut self, _now: Time, signal: &Signal, _out: &mut Out) {
        if self.attachment.update(signal) {
            self.repairers.clear();
            self.reporters.clear();
            self.under_way.clear();
            self.deadline = Time::NEVER;
        }
        let Signal::Quack(quack) = signal else { return };
        if self.hosts.as_ref().is_none_or(|hosts| hosts.contains(&quack.mobile)) {
            self.under_way.push_back(*quack);
            if self.under_way.len() > UNDER_WAY {
                self.under_way.pop_front();
            }
        }
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.repairers.states().for_each(|repairer| repairer.visit(visit));
    }

    fn repaired(&self, flow: FlowId) -> u64 {
        self.repairs.get(&flow).copied().unwrap_or(0)
    }

    /// quACKs sent, and, of those that this end reads, whether read, decoded or neither, repairs, packets given up, packets of
    /// which it is not known whether they are missing, and packets for which the buffer had no room. Levels: packets kept, and
    /// their peak.
    fn count(&self, tally: &mut dyn Tally) {
        tally.total("quacks_sent", self.quacks_sent);
        if self.scheme.reader == QuackReader::Link {
            let kept = [self.repairers.cached(), self.repairers.cached_peak()];
            self.counters.count(self.repairs.values().sum(), kept, true, tally);
        }
    }
}
