//! Negative acknowledgements to the mobile host: the half of Snoop that serves data from the mobile host.
//!
//! **What it does.** The base station records gaps in the data that arrive from the mobile host. It sends the mobile
//! host a negative acknowledgement (NACK) of a gap when enough later segments have arrived, or when the mobile host has
//! been silent for some time. The mobile host retransmits what is missing at once: after a round trip of the last hop,
//! and not of the whole path. Losses beyond the base station leave no gap there; the sender has to detect them.
//! `"snoop + nack"` is the complete protocol of 1995.
//! **Source.** Balakrishnan, Seshan, Amir and Katz, MobiCom 1995, section 3.2, with the additions of Balakrishnan,
//! Seshan and Katz, ACM Wireless Networks 1(4), 1995, section 3.2. The authors implemented NACKs, and printed no
//! measurements of them.
//! **Wire format.** A NACK is an ACK without data from the address of the fixed host. It repeats the acknowledgement
//! number, the window and the timestamps of the latest ACK that passed, so that it acknowledges nothing new, and has the
//! reserved bit 10 of the TCP header, counted from FIN as 0. The blocks of its SACK option are the missing data in
//! sequence order: up to four, three with timestamps. Further gaps take further NACKs.
//!
//! **Parameters.**
//! - `segments`: number of segments above a gap that make it due, 3: as many as TCP's duplicate ACKs, so that links that
//!   reorder as much as TCP tolerates cause no NACK.
//! - `silence`: time without data from the mobile host after which every gap is due, 200 ms, the persist time of the same
//!   paper. It is at least twice the time that a NACK and its answer take on an idle link.
//! - `min_timeout`: a NACK is repeated after two smoothed times from a NACK to its answer, at least 40 ms, as of Snoop's
//!   local retransmissions; each further repetition takes twice as long.
//! - `attempts`: maximum number of NACKs of a gap, 10, as of Snoop's local retransmissions.
//! - `keep_window`: whether the mobile host keeps its window when duplicate ACKs of the destination request data that a
//!   NACK requested before, which were thus lost on the air.
//!
//! **Differences from the paper.** The paper has a threshold of segments and a time, and states neither; its NACKs use
//! the SACK option of RFC 1072, or bit vectors, in a format that it does not state. Blocks of data that have arrived, as
//! of RFC 2018, could not leave out the gaps whose retransmissions are under way, and would let senders with SACK forget
//! data that are lost beyond the base station. The paper mentions neither repeated NACKs nor the window. With `keep_window`,
//! our reading, the window is unchanged, since a NACK shows that the loss was on the air. The destination's
//! duplicate ACKs still cause a fast retransmit, which sends the first lost segment of a window a second time. A loss
//! before the first segment that the base station sees, or after the last, is not noticed. Data that are lost again
//! beyond the base station count as lost on the air.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{BitRate, Bytes, Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attachment::Attachment;
use super::connections::{ConnectionState, ConnectionTable};
use super::holes::Holes;
use super::{Installer, Scheme, Site};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{Body, Dscp, Ecn, Handle, Packet};
use crate::tcp::{
    Action, Connection, Evidence, Flags, Hole, Reaction, Response, SackBlock, SackBlocks, Segment,
    SenderState, SeqNum, Settings,
};

/// "The blocks are missing at the base station".
const NACK: Flags = Flags(1 << 10);

/// Maximum number of connections of a base station. A further connection replaces the one that was idle longest.
const CONNECTIONS: u32 = 256;

/// Idle time after which a connection is removed: twice the smallest upper bound of the RTO that RFC 6298 permits.
const IDLE: Duration = Duration::from_secs(120);

/// The number of repetitions up to which the time between them doubles.
const DOUBLINGS: u32 = 10;

/// Negative acknowledgements of data from the mobile host.
///
/// Serves data from mobile hosts only. `"snoop + nack"` is the complete protocol of 1995. A NACK is an ACK
/// without data that has the reserved bit 10 of the TCP header and repeats the latest acknowledgement; the
/// blocks of its SACK option are the missing data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Nack {
    /// Number of segments above a gap after which the base station requests it.
    pub segments: u32,
    /// Time without data from the mobile host after which the base station requests every gap; at least twice
    /// the time that a NACK and its answer take on an idle link.
    pub silence: Duration,
    /// Lower bound of the time after which a NACK is repeated, which is twice the smoothed time from a NACK
    /// to its answer, and doubles.
    pub min_timeout: Duration,
    /// Maximum number of NACKs of a gap.
    pub attempts: u32,
    /// Whether the mobile host keeps its window when duplicate ACKs request data that a NACK requested
    /// before.
    pub keep_window: bool,
}

impl Default for Nack {
    fn default() -> Nack {
        Nack {
            segments: 3,
            silence: Duration::from_millis(200),
            min_timeout: Duration::from_millis(40),
            attempts: 10,
            keep_window: true,
        }
    }
}

impl Scheme for Nack {
    fn name(&self) -> &'static str {
        "nack"
    }

    fn summary(&self) -> &'static str {
        "the base station requests missing data from the mobile host, which retransmits them at once"
    }

    fn source(&self) -> &'static str {
        "Balakrishnan et al., MobiCom 1995"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let numbers = [("segments", self.segments), ("attempts", self.attempts)];
        let times = [("silence", self.silence), ("min_timeout", self.min_timeout)];
        let none = numbers.into_iter().filter(|&(_, number)| number == 0);
        let none = none.map(|(key, _)| (key, "found 0, expected at least 1"));
        let zero = times.into_iter().filter(|(_, time)| time.is_zero());
        let zero = zero.map(|(key, _)| (key, "found 0 s, expected more than zero"));
        none.chain(zero).map(|(key, fault)| (String::from(key), String::from(fault))).collect()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.use_flags(NACK);
        installer.at_base_station(|site| Agent::new(self, site));
        installer.at_sender(&[Action::Resend, Action::Judge], || Retransmit {
            keep_window: self.keep_window,
            requested: VecDeque::new(),
        });
    }
}

/// Sends NACKs to the mobile host.
#[derive(Debug)]
struct Agent {
    scheme: Nack,
    /// Connections with data from the mobile host.
    connections: ConnectionTable<Upload>,
    /// Lower bound of the connections' deadlines.
    deadline: Time,
    attachment: Attachment,
    link: Link,
    /// NACKs to send after the current packet.
    nacks: Vec<Packet>,
    counters: Counters,
}

/// The wireless link: rates to and from the mobile host, and the propagation delay.
#[derive(Clone, Copy, Debug)]
struct Link {
    down: BitRate,
    up: BitRate,
    delay: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    holes: u64,
    nacks: u64,
    /// Gaps in NACKs, and those of them that an earlier NACK had requested.
    requested: u64,
    repeated: u64,
    silences: u64,
}

impl Agent {
    fn new(scheme: &Nack, site: &Site<'_>) -> Agent {
        Agent {
            scheme: scheme.clone(),
            connections: ConnectionTable::new(CONNECTIONS, IDLE),
            deadline: Time::NEVER,
            attachment: Attachment::new(site.station),
            link: Link { down: site.rate, up: site.arriving_rate, delay: site.delay },
            nacks: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// A segment of `connection` has arrived over the link.
    fn on_data(&mut self, now: Time, connection: Connection, packet: &Packet, segment: &Segment) {
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            self.connections.remove_connection(connection);
        }
        if segment.seq_len() == 0 || segment.flags.has(Flags::RST) || !self.attachment.is_attached() {
            return;
        }
        let Agent { scheme, connections, deadline, link, nacks, counters, .. } = self;
        let slot = connections.find_or_add(now, connection, segment);
        connections.update(now, slot, |upload| {
            upload.on_data(now, packet, segment, *link, counters);
            upload.request(now, scheme, counters, |nack| nacks.push(nack));
        });
        *deadline = (*deadline).min(connections[slot].deadline(scheme));
    }

    /// An acknowledgement of data of `connection` is about to be sent over the link.
    fn on_ack(&mut self, now: Time, connection: Connection, packet: &Packet, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            self.connections.remove_connection(connection);
        }
        let Agent { scheme, connections, deadline, nacks, counters, .. } = self;
        let Some(slot) = connections.find(now, connection) else { return };
        if connections[slot].holes.is_far_from(segment.ack) {
            return connections.remove(slot);
        }
        connections.update(now, slot, |upload| {
            upload.on_ack(packet, segment);
            upload.request(now, scheme, counters, |nack| nacks.push(nack));
        });
        *deadline = (*deadline).min(connections[slot].deadline(scheme));
    }
}

/// The data of one connection from the mobile host.
#[derive(Debug)]
struct Upload {
    holes: Holes<Requests>,
    /// The latest acknowledgement that passed, without data and SACK blocks.
    ack: Option<Packet>,
    /// The smoothed time from a NACK to its answer.
    rtt: Option<Duration>,
    /// When the silence of the mobile host began, or last caused NACKs.
    quiet_since: Time,
    /// The shortest silence that indicates a loss: twice the time that a NACK and its answer take on an idle link.
    shortest_silence: Duration,
}

/// The requests of a gap.
#[derive(Clone, Copy, Debug)]
struct Requests {
    /// Number of segments above the gap that have arrived.
    above: u32,
    /// Number of NACKs, and the time of the last one.
    count: u32,
    last: Time,
}

impl ConnectionState for Upload {
    type Read = Segment;

    fn new(now: Time, segment: &Segment) -> Upload {
        Upload {
            holes: Holes::new(now, segment),
            ack: None,
            rtt: None,
            quiet_since: now,
            shortest_silence: Duration::ZERO,
        }
    }

    fn is_outdated(&self, segment: &Segment) -> bool {
        self.holes.is_outdated(segment)
    }

    fn cached(&self) -> usize {
        self.holes.cached()
    }
}

impl Upload {
    fn on_data(
        &mut self,
        now: Time,
        packet: &Packet,
        segment: &Segment,
        link: Link,
        counters: &mut Counters,
    ) {
        let Upload { holes, rtt, .. } = self;
        self.quiet_since = now;
        let answer = link.up.time_for(packet.size) + link.delay * 2;
        self.shortest_silence = (answer + link.down.time_for(size_of_nack(&self.ack))) * 2;
        let new = Requests { above: 0, count: 0, last: now };
        let leaves_hole = holes.receive(segment, new, |filled| {
            // If several NACKs were sent, it is unknown which of them is answered (Karn).
            if filled.count == 1 {
                let sample = now.since(filled.last);
                *rtt = Some(rtt.map_or(sample, |old| weighted(old, sample)));
            }
        });
        holes.iter_mut().filter(|(hole, _)| hole.end <= segment.seq).for_each(|(_, requests)| {
            requests.above = requests.above.saturating_add(1);
        });
        counters.holes += u64::from(leaves_hole);
    }

    fn on_ack(&mut self, packet: &Packet, segment: &Segment) {
        self.holes.acknowledge(segment.ack);
        let latest = self.ack.as_ref().and_then(Packet::segment).map(|latest| latest.ack);
        if latest.is_none_or(|latest| latest <= segment.ack) {
            let payload = Bytes(u64::from(segment.len)) + size_of_option(segment.sack.len());
            let bare = Segment {
                seq: segment.seq + segment.seq_len(),
                len: 0,
                flags: Flags::ACK,
                sack: SackBlocks::default(),
                ..*segment
            };
            self.ack = Some(Packet {
                size: Bytes(packet.size.0.saturating_sub(payload.0)),
                dscp: Dscp::DEFAULT,
                ecn: Ecn::NotEct,
                handle: Handle::NONE,
                body: Body::Tcp(bare),
                ..*packet
            });
        }
    }

    /// Sends NACKs of the gaps that are due.
    fn request(&mut self, now: Time, scheme: &Nack, counters: &mut Counters, mut send: impl FnMut(Packet)) {
        let Some(ack) = self.ack else { return };
        let is_silent = self.silent_at(scheme) <= now;
        let Upload { holes, rtt, .. } = self;
        let stamps = ack.segment().is_some_and(|segment| segment.timestamps.is_some());
        let most = SackBlocks::MAX - usize::from(stamps);
        let mut blocks = SackBlocks::default();
        let mut send = |blocks: &mut SackBlocks| {
            counters.nacks += 1;
            send(nack(&ack, core::mem::take(blocks)));
        };
        let (mut requested, mut repeated) = (0, 0);
        for (hole, requests) in holes.iter_mut().filter(|(_, requests)| requests.count < scheme.attempts) {
            let is_due = match requests.count {
                0 => requests.above >= scheme.segments,
                _ => requests.repeated_at(*rtt, scheme) <= now,
            };
            if is_due || is_silent {
                requested += 1;
                repeated += u64::from(requests.count > 0);
                (requests.count, requests.last) = (requests.count + 1, now);
                blocks.push(hole);
                if blocks.len() == most {
                    send(&mut blocks);
                }
            }
        }
        if !blocks.is_empty() {
            send(&mut blocks);
        }
        counters.requested += requested;
        counters.repeated += repeated;
        if is_silent {
            counters.silences += u64::from(requested > 0);
            self.quiet_since = now;
        }
    }

    /// When the mobile host will have been silent for long enough.
    fn silent_at(&self, scheme: &Nack) -> Time {
        self.quiet_since + scheme.silence.max(self.shortest_silence)
    }

    /// When the next gap is due without further segments.
    fn deadline(&self, scheme: &Nack) -> Time {
        if self.ack.is_none() {
            return Time::NEVER;
        }
        let silent_at = self.silent_at(scheme);
        let open = self.holes.iter().filter(|(_, requests)| requests.count < scheme.attempts);
        let due = open.map(|(_, requests)| match requests.count {
            0 => silent_at,
            _ => requests.repeated_at(self.rtt, scheme).min(silent_at),
        });
        due.min().unwrap_or(Time::NEVER)
    }
}

impl Requests {
    /// When the last NACK is repeated, unless the mobile host falls silent. Before the first round-trip sample, the loss of
    /// a NACK or of its answer is detected by silence only.
    fn repeated_at(&self, rtt: Option<Duration>, scheme: &Nack) -> Time {
        let Some(rtt) = rtt else { return Time::NEVER };
        let doubled = self.count.saturating_sub(1).min(DOUBLINGS);
        self.last + (rtt * 2).max(scheme.min_timeout) * (1 << doubled)
    }
}

/// Smoothing with a gain of a quarter, as in Snoop.
fn weighted(old: Duration, sample: Duration) -> Duration {
    Duration::from_nanos((3 * old.as_nanos() + sample.as_nanos()) / 4)
}

/// A NACK of `missing`, given the latest acknowledgement.
fn nack(ack: &Packet, missing: SackBlocks) -> Packet {
    let mut nack = Packet { size: ack.size + size_of_option(missing.len()), ..*ack };
    if let Body::Tcp(segment) = &mut nack.body {
        (segment.sack, segment.flags) = (missing, segment.flags | NACK);
    }
    nack
}

/// The size of a NACK of one gap.
fn size_of_nack(ack: &Option<Packet>) -> Bytes {
    ack.as_ref().map_or(Bytes::ZERO, |ack| ack.size + size_of_option(1))
}

/// The size of a SACK option with its padding.
fn size_of_option(blocks: usize) -> Bytes {
    if blocks == 0 { Bytes::ZERO } else { Bytes(4 + 8 * blocks as u64) }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let Packet { src, dst, flow, .. } = *packet;
        match &packet.body {
            Body::Tcp(segment) if port == Port::RADIO => {
                self.on_data(now, Connection { src, dst, flow }, packet, segment);
            }
            Body::Tcp(segment) if segment.flags.has(Flags::ACK) => {
                self.on_ack(now, Connection { src: dst, dst: src, flow }, packet, segment);
            }
            _ => {}
        }
        out.send(port.across(), *packet);
        self.nacks.drain(..).for_each(|nack| out.send(Port::RADIO, nack));
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        let Agent { scheme, connections, deadline, counters, .. } = self;
        *deadline = Time::NEVER;
        connections.for_each(|upload| {
            upload.request(now, scheme, counters, |nack| out.send(Port::RADIO, nack));
            *deadline = (*deadline).min(upload.deadline(scheme));
        });
    }

    fn next_wakeup(&self) -> Time {
        self.deadline
    }

    fn on_signal(&mut self, _now: Time, signal: &Signal, _out: &mut Out) {
        if self.attachment.update(signal) {
            // Data sent through another base station are not missing here.
            self.connections = ConnectionTable::new(CONNECTIONS, IDLE);
            self.deadline = Time::NEVER;
        }
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    /// Gaps that are open, and totals: gaps found, NACKs, gaps in them, those of them that were requested before, and the
    /// silences of the mobile host that caused NACKs.
    fn count(&self, tally: &mut dyn Tally) {
        let Counters { holes, nacks, requested, repeated, silences } = self.counters;
        tally.level("open_holes", self.connections.cached() as u64);
        tally.total("holes", holes);
        tally.total("nacks_sent", nacks);
        tally.total("requested_holes", requested);
        tally.total("repeated_requests", repeated);
        tally.total("silences", silences);
    }
}

/// Retransmits what NACKs request.
#[derive(Debug)]
struct Retransmit {
    keep_window: bool,
    /// The data that NACKs have requested, until they are acknowledged.
    requested: VecDeque<SackBlock>,
}

impl Retransmit {
    fn is_requested(&self, seq: SeqNum) -> bool {
        self.requested.iter().any(|block| block.start <= seq && seq < block.end)
    }
}

impl Reaction for Retransmit {
    fn takes(&mut self, _now: Time, segment: &Segment, sender: &mut SenderState) -> bool {
        if !segment.flags.has(NACK) {
            return false;
        }
        for &block in segment.sack.iter() {
            let (mut seq, end) = (block.start.max(sender.snd_una()), block.end.min(sender.snd_max()));
            if seq < end && !self.requested.contains(&block) {
                self.requested.push_back(block);
            }
            while seq < end {
                sender.resend(seq);
                seq += sender.mss();
                // A FIN goes with the last data.
                if sender.left_from(seq) == Some(0) {
                    break;
                }
            }
        }
        true
    }

    fn on_segment(&mut self, _now: Time, segment: &Segment, _sender: &mut SenderState) {
        self.requested.retain(|block| block.end > segment.ack);
    }

    fn judge(&mut self, _now: Time, hole: Hole, _sender: &mut SenderState) -> Response {
        match hole.evidence {
            Evidence::Timeout | Evidence::Mark => Response::Congestion,
            _ if self.keep_window && self.is_requested(hole.seq) => Response::Corruption,
            _ => Response::Congestion,
        }
    }

    fn is_corruption(&self, seq: SeqNum) -> bool {
        self.keep_window && self.is_requested(seq)
    }
}
