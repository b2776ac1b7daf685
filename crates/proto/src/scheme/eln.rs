//! Explicit Loss Notification.
//!
//! **What it does.** The receiving end of the wireless link knows which segments arrived with errors. Acknowledgements
//! that request such a segment get the ELN bit. The sender then retransmits it without reducing its window. Other
//! losses and all timeouts are handled as usual. The mobile host marks its own acknowledgements of data to it
//! (downlink), and the base station marks acknowledgements of data from the mobile host (uplink).
//! **Source.** Balakrishnan, Padmanabhan, Seshan and Katz, IEEE/ACM ToN 5(6), 1997, sections 3.1, 4.3 and 5.2
//! (E2E-ELN). `holes` is the ELN for data from the mobile host of Balakrishnan and Katz, Globecom 1998, which was not at
//! hand: it is built from its abstract and summaries.
//! **Parameters.** `early`: the first marked duplicate causes the retransmission (E2E-ELN-RXMT), instead of the third
//! duplicate. `holes`: the base station infers losses from the sequence numbers of data from the mobile host, as a real
//! base station can, without seeing frames with errors. Every gap between segments that arrive over the link is a hole
//! until a copy fills it, and acknowledgements that request a byte of a hole are marked. Losses in the wired network
//! beyond the base station are not marked. Downloads are unaffected: the mobile host cannot tell where a segment was
//! lost.
//! `memory`: which of several corrupted segments of a connection the receiving end remembers: `"all"`, the `"first"` or
//! the `"last"`, since the paper's implementation "does not convey information about multiple wireless-related losses"
//! (section 4.3). `inflate`: whether duplicates inflate the window while a segment is missing, as in Reno, since each shows
//! that a segment has left the network; afterwards the window returns to its earlier value. In figure 8 it stands still.
//! **Differences from the paper.** The paper does not place the ELN bit in the header: here it is the reserved bit 9,
//! counted from FIN as 0. By default all corrupted segments are remembered, as a receiver can, and the window is
//! inflated. Copies of a segment are not distinguished: once a copy arrived with errors, the segment counts as
//! corrupted until it is acknowledged, even if another copy is lost to congestion. An ARQ, and the MAC of a cell,
//! retransmit frames with errors, or give up unseen by the receiver: only what a cell drops above the MAC is marked.
//! `holes` works there, too. Packets that the mobile host's own queue drops leave holes like
//! those lost on the air. A loss before the first segment that the base station sees is not noticed.

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::attachment::Attachment;
use super::connections::ConnectionTable;
use super::holes::Holes;
use super::{Deployment, Installer, Scheme, Site};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{Body, Packet};
use crate::tcp::{
    Action, Connection, Evidence, Flags, Hole, Reaction, Response, Segment, SenderState, SeqNum,
};

/// "The requested segment arrived with errors".
const ELN: Flags = Flags(1 << 9);

/// Maximum number of connections at one end of a link. A further connection replaces the one that was idle longest.
const CONNECTIONS: u32 = 256;

/// Idle time after which a connection is removed: twice the smallest upper bound of the RTO that RFC 6298 permits.
const IDLE: Duration = Duration::from_secs(120);

/// Explicit Loss Notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Eln {
    /// Whether the first marked duplicate ACK triggers the retransmission, instead of the third duplicate.
    pub early: bool,
    /// Whether base stations learn of losses from gaps in the data from mobile hosts, instead of segments
    /// that arrive with errors.
    pub holes: bool,
    /// Which of several corrupted segments of a connection are remembered until they are acknowledged: `"all"`, or
    /// only the `"first"` or the `"last"`.
    pub memory: Memory,
    /// Whether duplicate ACKs inflate the window while a corrupted segment is missing.
    pub inflate: bool,
}

/// Which of several corrupted segments of a connection are remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// All of them.
    All,
    /// The first, until it is acknowledged.
    First,
    /// The last.
    Last,
}

impl Default for Eln {
    fn default() -> Eln {
        Eln { early: false, holes: false, memory: Memory::All, inflate: true }
    }
}

impl Scheme for Eln {
    fn name(&self) -> &'static str {
        "eln"
    }

    fn summary(&self) -> &'static str {
        "ACKs tell that the requested segment arrived corrupted; the source keeps its window"
    }

    fn source(&self) -> &'static str {
        "Balakrishnan et al., ToN 5(6), 1997"
    }

    fn deployment(&self) -> Option<Deployment> {
        Some(Deployment {
            place: "base station and sender",
            products: None,
            cost: "marks in TCP headers",
            variants: &[&[]],
        })
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.use_flags(ELN);
        installer.at_base_station(|site| Marker::new(site, self.holes, self.memory));
        installer.at_mobile_host(|site| Marker::new(site, false, self.memory));
        let early: &[Action] = &[Action::Judge, Action::Threshold];
        installer.at_sender(if self.early { early } else { &[Action::Judge] }, || KeepWindow {
            early: self.early,
            inflates: self.inflate,
            corrupted: None,
        });
    }
}

/// Marks acknowledgements at the receiving end of a link.
#[derive(Debug)]
struct Marker {
    attachment: Attachment,
    /// Connections with data that arrive over the link.
    connections: ConnectionTable<Holes>,
    /// Whether losses are inferred from gaps in the data instead of segments with errors.
    by_holes: bool,
    memory: Memory,
    corrupted_segments: u64,
    holes: u64,
    marked_acks: u64,
}

impl Marker {
    fn new(site: &Site<'_>, by_holes: bool, memory: Memory) -> Marker {
        let connections = ConnectionTable::new(CONNECTIONS, IDLE);
        let attachment = Attachment::new(site.station);
        Marker { attachment, connections, by_holes, memory, corrupted_segments: 0, holes: 0, marked_acks: 0 }
    }

    /// A segment of `connection` has arrived over the link without errors.
    fn on_data(&mut self, now: Time, connection: Connection, segment: &Segment) {
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            self.connections.remove_connection(connection);
        }
        if segment.seq_len() > 0 && !segment.flags.has(Flags::RST) {
            let slot = self.connections.find_or_add(now, connection, segment);
            self.holes +=
                u64::from(self.connections.update(now, slot, |holes| holes.receive(segment, (), |()| {})));
        }
    }

    /// A segment of `connection` arrived with errors.
    fn on_corrupted(&mut self, now: Time, connection: Connection, segment: &Segment) {
        if segment.len > 0 {
            let slot = self.connections.find_or_add(now, connection, segment);
            self.connections.update(now, slot, |holes| match self.memory {
                Memory::First if !holes.is_empty() => (),
                memory => {
                    if memory == Memory::Last {
                        holes.clear();
                    }
                    holes.insert(segment, ());
                }
            });
            self.corrupted_segments += 1;
        }
    }

    /// The acknowledgement `segment` of data of `connection` is about to be sent over the link. Returns whether it
    /// is marked.
    fn on_ack(&mut self, now: Time, connection: Connection, segment: &Segment) -> bool {
        // The answer to a SYN belongs to the connection whose data are watched.
        let ends = if self.by_holes { Flags::RST } else { Flags::SYN | Flags::RST };
        if segment.flags & ends != Flags::default() {
            self.connections.remove_connection(connection);
        }
        let Some(slot) = self.connections.find(now, connection) else { return false };
        if self.connections[slot].is_far_from(segment.ack) {
            self.connections.remove(slot);
            return false;
        }
        let requested = self.connections.update(now, slot, |holes| holes.is_requested_by(segment.ack));
        self.marked_acks += u64::from(requested);
        requested
    }
}

impl Component for Marker {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let mut packet = *packet;
        let Packet { src, dst, flow, .. } = packet;
        if let Body::Tcp(segment) = &mut packet.body
            && port == Port::WIRED
            && segment.flags.has(Flags::ACK)
            && self.on_ack(now, Connection { src: dst, dst: src, flow }, segment)
        {
            segment.flags = segment.flags | ELN;
        }
        if let Body::Tcp(segment) = &packet.body
            && port == Port::RADIO
            && self.by_holes
        {
            self.on_data(now, Connection { src, dst, flow }, segment);
        }
        out.send(port.across(), packet);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, _out: &mut Out) {
        if self.attachment.update(signal) && self.by_holes {
            // Data sent through another base station are no holes here.
            self.connections = ConnectionTable::new(CONNECTIONS, IDLE);
        }
        // While the mobile host is elsewhere, losses on this link have no receiver.
        if !self.attachment.is_attached() {
            return;
        }
        if let Signal::Corrupted(Packet { src, dst, flow, body: Body::Tcp(segment), .. }) = *signal {
            self.on_corrupted(now, Connection { src, dst, flow }, &segment);
        }
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn needs_corrupted(&self) -> bool {
        !self.by_holes
    }

    /// Totals of corrupted data segments, of holes and of marked acknowledgements.
    fn count(&self, tally: &mut dyn Tally) {
        tally.total("corrupted_segments", self.corrupted_segments);
        tally.total("holes", self.holes);
        tally.total("marked_acks", self.marked_acks);
    }
}

/// Keeps the window on marked losses.
#[derive(Debug)]
struct KeepWindow {
    early: bool,
    /// Whether duplicate ACKs inflate the window while the segment is missing.
    inflates: bool,
    /// The segment that the latest acknowledgement requests, if it is marked.
    corrupted: Option<SeqNum>,
}

impl Reaction for KeepWindow {
    fn on_segment(&mut self, _now: Time, segment: &Segment, sender: &mut SenderState) {
        if segment.ack >= sender.snd_una() {
            self.corrupted = segment.flags.has(ELN).then_some(segment.ack);
        }
    }

    fn dupthresh(&self, set: u32, sender: &SenderState) -> u32 {
        if self.early && self.is_corruption(sender.snd_una()) { 1 } else { set }
    }

    fn extension(&self, _sender: &SenderState) -> Option<u32> {
        (!self.inflates).then_some(0)
    }

    fn judge(&mut self, _now: Time, hole: Hole, _sender: &mut SenderState) -> Response {
        match hole.evidence {
            Evidence::Timeout | Evidence::Mark => Response::Congestion,
            _ if self.is_corruption(hole.seq) => Response::Corruption,
            _ => Response::Congestion,
        }
    }

    fn is_corruption(&self, seq: SeqNum) -> bool {
        self.corrupted == Some(seq)
    }
}
