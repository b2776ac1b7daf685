//! Captures of real packets in pcapng format.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use lasthop_base::Time;
use lasthop_scenario::Side;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

/// Limit of packets in a capture, as in a simulation.
const MAX_RECORDS: usize = 4_000_000;

/// Interface of losses, after those of the two ends.
const LOSSES: u32 = 2;

/// Nanoseconds, in the encoding of `if_tsresol`. The writer uses them in any case.
const NANOSECONDS: u8 = 9;

/// A pcapng file with three interfaces: both ends of the network, and the packets that its links dropped. Times count from
/// the first packet.
pub(crate) struct Capture {
    file: PcapNgWriter<BufWriter<File>>,
    records: usize,
}

impl Capture {
    pub(crate) fn new(path: &Path, hosts: &[String; 2]) -> io::Result<Capture> {
        let application = concat!("Lasthop ", env!("CARGO_PKG_VERSION"));
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(application.into())],
            ..SectionHeaderBlock::default()
        };
        let writer = BufWriter::new(File::create(path)?);
        let mut file = PcapNgWriter::with_section_header(writer, section).map_err(io_error)?;
        let described = hosts.iter().map(|host| (host.clone(), format!("What {host} sends and receives")));
        let losses = (String::from("losses"), String::from("Packets that links dropped"));
        for (name, description) in described.chain([losses]) {
            let options = vec![
                InterfaceDescriptionOption::IfName(name.into()),
                InterfaceDescriptionOption::IfDescription(description.into()),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let block = InterfaceDescriptionBlock { linktype: DataLink::RAW, snaplen: 0, options };
            file.write_pcapng_block(block).map_err(io_error)?;
        }
        Ok(Capture { file, records: 0 })
    }

    /// Records a packet that enters or leaves at `side`.
    pub(crate) fn cross(&mut self, now: Time, side: Side, packet: &[u8]) -> io::Result<()> {
        self.record(side as u32, now, packet, None)
    }

    /// Records a packet that a link dropped.
    pub(crate) fn lose(&mut self, now: Time, packet: &[u8], why: String) -> io::Result<()> {
        self.record(LOSSES, now, packet, Some(why))
    }

    /// Ends the file.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.file.into_inner().flush()
    }

    fn record(
        &mut self,
        interface_id: u32,
        now: Time,
        packet: &[u8],
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
            original_len: packet.len() as u32,
            data: Cow::Borrowed(packet),
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
