//! Captures of real packets in pcapng format.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::Duration;

use lasthop_base::Time;
use lasthop_proto::{ComponentId, DropReason, Dscp, Ecn, NoticeCode};
use lasthop_wire::{Ip, write};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::emulator::{ETHERNET, ip_packet};

/// Maximum number of packets in a capture, as in a simulation.
const MAX_RECORDS: usize = 4_000_000;

/// The interface that records the end's own frames.
const END: u32 = 0;

/// The interface that records losses.
const LOSSES: u32 = 1;

/// Nanoseconds, as encoded in `if_tsresol`. The writer always uses nanoseconds.
const NANOSECONDS: u8 = 9;

/// Quoted length of a lost packet (RFC 1812 section 4.3.2.3: at most 576 bytes with all headers).
const QUOTE: usize = 576 - 28;

/// A pcapng file with the frames of one end. Times count from the first packet.
///
/// Wireshark groups packets by conversation, across interfaces, so a file with both ends would show each packet twice.
/// Losses are on a separate interface, as in a simulation's capture: ICMP messages that quote the packet, with the
/// reason as comment.
pub(crate) struct Capture {
    file: PcapNgWriter<BufWriter<File>>,
    records: usize,
}

impl Capture {
    /// Creates the file of the end `host`.
    pub(crate) fn new(path: &Path, host: &str, losses: bool) -> io::Result<Capture> {
        let application = concat!("Lasthop ", env!("CARGO_PKG_VERSION"));
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(application.into())],
            ..SectionHeaderBlock::default()
        };
        let writer = BufWriter::new(File::create(path)?);
        let mut file = PcapNgWriter::with_section_header(writer, section).map_err(io_error)?;
        let end = (String::from(host), format!("What {host} sends and receives"));
        let losses = losses.then(|| {
            (
                String::from("losses"),
                String::from("Packets that links and agents dropped, each quoted when it was"),
            )
        });
        for (name, description) in [end].into_iter().chain(losses) {
            let options = vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfDescription(description.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
            file.write_pcapng_block(block).map_err(io_error)?;
        }
        Ok(Capture { file, records: 0 })
    }

    /// Records a frame that this end sent or received.
    pub(crate) fn cross(&mut self, now: Time, frame: &[u8]) -> io::Result<()> {
        self.record(END, now, frame, None)
    }

    /// Records a frame dropped by `dropper`, a link or an agent.
    pub(crate) fn lose(
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
        // No message can quote a packet of another protocol than IP.
        let Some(packet) = ip_packet(frame) else {
            return self.record(LOSSES, now, frame, Some(comment));
        };
        let lost = packet.ip;
        let (address, code): (IpAddr, _) = match lost.src {
            IpAddr::V4(_) => {
                let of_component = Ipv4Addr::new(10, 128, 0, 0).to_bits() + u32::from(at.0);
                (Ipv4Addr::from_bits(of_component).into(), NoticeCode { kind: 3, code: 1 })
            }
            IpAddr::V6(_) => {
                let of_component = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 128, at.0);
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
        let framed = [&frame[..ETHERNET], &message].concat();
        self.record(LOSSES, now, &framed, Some(comment))
    }

    /// Finishes the file.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file.into_inner().flush()
    }

    fn record(
        &mut self,
        interface_id: u32,
        now: Time,
        frame: &[u8],
        comment: Option<String>,
    ) -> io::Result<()> {
        self.records += 1;
        if self.records > MAX_RECORDS {
            return Err(io::Error::other(format!(
                "the capture has more than {MAX_RECORDS} packets; emulate without it, or for a shorter time"
            )));
        }
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(frame),
            options: comment.into_iter().map(|text| EnhancedPacketOption::Comment(text.into())).collect(),
        };
        self.file.write_pcapng_block(block).map_err(io_error)?;
        Ok(())
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
