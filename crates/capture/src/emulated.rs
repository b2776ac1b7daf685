//! Captures of an emulation: real frames at one end.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use lasthop_base::Time;
use lasthop_proto::{ComponentId, DropReason, Dscp, Ecn, NoticeCode};
use lasthop_wire::{Ip, IpPacket, LinkType, write};

use crate::writer::{Interface, Record, Writer};

/// LINKTYPE of Ethernet.
const ETHERNET: u16 = 1;

/// Length of an Ethernet header without tags.
const ETHERNET_HEADER: usize = 14;

/// The interface that records the end's own frames.
const END: u32 = 0;

/// The interface that records losses.
const LOSSES: u32 = 1;

/// Quoted length of a lost packet (RFC 1812 section 4.3.2.3: at most 576 bytes with all headers).
const QUOTE: usize = 576 - 28;

/// A pcapng file with the frames of one end. Times count from the first packet.
///
/// Wireshark groups packets by conversation, across interfaces, so a file with both ends would show each packet twice.
/// Losses are on a separate interface, as in a simulation's capture: ICMP messages that quote the packet, with the
/// reason as comment.
#[allow(missing_debug_implementations)]
pub struct EndCapture {
    file: Writer<BufWriter<File>>,
}

impl EndCapture {
    /// Creates the file of the end `host`, with an interface for losses if `losses`.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    pub fn create(path: &Path, host: &str, losses: bool) -> io::Result<EndCapture> {
        let interface = |name, description| Interface { name, description, link_type: ETHERNET, snap_len: 0 };
        let at_end = format!("What {host} sends and receives");
        let mut interfaces = vec![interface(host, &at_end)];
        if losses {
            interfaces
                .push(interface("losses", "Packets that links and agents dropped, each quoted when it was"));
        }
        let file = Writer::new(BufWriter::new(File::create(path)?), &interfaces)?;
        Ok(EndCapture { file })
    }

    /// Records a frame that this end sent or received.
    ///
    /// # Errors
    /// If the file cannot be written, or has [`MAX_PACKETS`](crate::MAX_PACKETS) or [`MAX_BYTES`](crate::MAX_BYTES) already.
    pub fn cross(&mut self, now: Time, frame: &[u8]) -> io::Result<()> {
        self.record(END, now, frame, None)
    }

    /// Records a frame dropped by `dropper`, a link or an agent with the id `at`.
    ///
    /// # Errors
    /// As [`cross`](EndCapture::cross).
    pub fn lose(
        &mut self,
        now: Time,
        frame: &[u8],
        at: ComponentId,
        dropper: &str,
        reason: DropReason,
    ) -> io::Result<()> {
        let comment = match reason {
            DropReason::Suppressed => format!("suppressed by {dropper}"),
            _ => format!("lost on {dropper}: {reason}"),
        };
        // No message can quote a packet of another protocol than IP, or with a tag.
        let network = LinkType::ETHERNET.network_layer(frame);
        let untagged = network.ok().filter(|bytes| frame.len() - bytes.len() == ETHERNET_HEADER);
        let Some(packet) = untagged.and_then(|bytes| IpPacket::parse(bytes).ok()) else {
            return self.record(LOSSES, now, frame, Some(comment));
        };
        let lost = packet.ip;
        let (address, code): (IpAddr, _) = match lost.src {
            IpAddr::V4(_) => {
                let of_component = Ipv4Addr::new(10, 128, 0, 0).to_bits() + at.0;
                (Ipv4Addr::from_bits(of_component).into(), NoticeCode { kind: 3, code: 1 })
            }
            IpAddr::V6(_) => {
                let of_component =
                    Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 128 + (at.0 >> 16) as u16, at.0 as u16);
                (of_component.into(), NoticeCode { kind: 1, code: 3 })
            }
        };
        let ip = Ip {
            src: address,
            dst: lost.src,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            hop_limit: 64,
            identification: 0,
            dont_fragment: true,
        };
        let quoted = &packet.bytes[..packet.bytes.len().min(QUOTE)];
        let message = write::icmp(&ip, code, 0, quoted).map_err(io::Error::other)?;
        let framed = [&frame[..ETHERNET_HEADER], &message].concat();
        self.record(LOSSES, now, &framed, Some(comment))
    }

    /// Finishes the file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(self) -> io::Result<()> {
        self.file.finish().map(drop)
    }

    fn record(
        &mut self,
        interface: u32,
        time: Time,
        bytes: &[u8],
        comment: Option<String>,
    ) -> io::Result<()> {
        if let Some(limit) = self.file.limit() {
            return Err(io::Error::other(format!(
                "the capture has reached its limit of {limit}; emulate without it, or for a shorter time"
            )));
        }
        let original_len = bytes.len() as u32;
        self.file.packet(&Record { interface, time, original_len, bytes, comment: comment.as_deref() })
    }
}
