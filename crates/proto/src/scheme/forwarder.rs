//! What the old base station of a mobile host sends to the new one.

use alloc::vec::Vec;

use lasthop_base::Bytes;

use super::Site;
use crate::component::{Out, Port, Signal};
use crate::packet::{Body, Dscp, Ecn, FlowId, Handle, HostId, Notice, NoticeCode, Packet};
use crate::tcp::SeqNum;

/// The request of the new base station: an ICMP message of the type for experimental mobility protocols (RFC 4065).
const REQUEST: NoticeCode = NoticeCode { kind: 41, code: 5 };

/// Size of a request, which has the addresses of the mobile host and of the base station, and the number of the attachment.
const REQUEST_SIZE: Bytes = Bytes(64);

/// Size of the outer IP header of a forwarded packet (RFC 2003).
const OUTER_HEADER: Bytes = Bytes(20);

/// One base station's part in forwarding, with its peers.
///
/// The base station that a mobile host has reached sends a request to the one that the host has left. From then on the old
/// base station forwards packets for the host, in an outer IP header, until the host returns. A host that moves on leaves
/// a chain of base stations, each of which forwards to the next one that the host went to. A request has the number of the
/// attachment that caused it, and a base station ignores requests older than its own last attachment. Packets therefore go
/// from each attachment to a later one, and never in a loop.
#[derive(Debug)]
pub(super) struct Forwarder {
    station: Option<u16>,
    /// The addresses of the base stations, by number.
    peers: Vec<HostId>,
    /// The mobile host, once it is known.
    host: Option<HostId>,
    /// The base station at which the host is or was last.
    latest: Option<u16>,
    is_here: bool,
    /// The number of attachments of the host so far, and the number of the latest one here.
    attachments: u32,
    here: u32,
    /// The base station that has requested packets since the host left, and the number of its attachment.
    target: Option<(HostId, u32)>,
}

/// A packet from another base station.
pub(super) enum FromPeer {
    /// A request for the packets of the mobile host, which has been noted.
    Request,
    /// A packet for the mobile host, as it was.
    Forwarded(Packet),
}

impl Forwarder {
    pub(super) fn new(site: &Site<'_>) -> Forwarder {
        Forwarder {
            station: site.station,
            peers: site.peers.into(),
            host: None,
            latest: None,
            is_here: site.station.is_none(),
            attachments: 0,
            here: 0,
            target: None,
        }
    }

    /// Whether the mobile host is here.
    pub(super) fn is_here(&self) -> bool {
        self.is_here
    }

    /// Whether packets for the mobile host are forwarded.
    pub(super) fn forwards(&self) -> bool {
        self.target.is_some()
    }

    /// Takes a signal; sends the request if the mobile host has arrived from another base station. Returns whether it has
    /// come or left.
    pub(super) fn on_signal(&mut self, signal: &Signal, out: &mut Out) -> bool {
        let was_here = self.is_here;
        match *signal {
            Signal::Attached { host, station } => {
                self.host = Some(host);
                self.attachments = self.attachments.wrapping_add(1);
                self.is_here = self.station == Some(station);
                let before = self.latest.replace(station).filter(|before| *before != station);
                if self.is_here {
                    (self.here, self.target) = (self.attachments, None);
                    if let Some(before) = before {
                        self.request(before, out);
                    }
                }
            }
            Signal::Detached { .. } => self.is_here = false,
            _ => {}
        }
        self.is_here != was_here
    }

    fn request(&self, before: u16, out: &mut Out) {
        let address = |station: u16| self.peers.get(usize::from(station)).copied();
        let (Some(src), Some(dst)) = (self.station.and_then(address), address(before)) else { return };
        let packet = Packet {
            src,
            dst,
            flow: FlowId::NONE,
            size: REQUEST_SIZE,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body: Body::Notice(Notice { code: REQUEST, seq: SeqNum(self.attachments) }),
        };
        out.send(Port::CONTROL, packet);
    }

    /// Takes a packet that has come through [`Port::CONTROL`].
    pub(super) fn receive(&mut self, packet: &Packet) -> FromPeer {
        match packet.body {
            Body::Notice(Notice { code: REQUEST, seq: SeqNum(number) }) if packet.flow == FlowId::NONE => {
                // The host may have returned, and left again, while the request was on its way.
                let newest = self.target.map_or(self.here, |(_, newest)| newest);
                if !self.is_here && number > newest {
                    self.target = Some((packet.src, number));
                }
                FromPeer::Request
            }
            _ => {
                let size = Bytes(packet.size.0.saturating_sub(OUTER_HEADER.0));
                FromPeer::Forwarded(Packet { dst: self.host.unwrap_or(packet.dst), size, ..*packet })
            }
        }
    }

    /// Sends a packet for the mobile host to the base station that has requested it. Returns whether it was sent.
    pub(super) fn forward(&self, packet: &Packet, out: &mut Out) -> bool {
        let Some((target, _)) = self.target else { return false };
        out.send(Port::CONTROL, Packet { dst: target, size: packet.size + OUTER_HEADER, ..*packet });
        true
    }
}
