//! Captures of a run in pcapng format.
//!
//! Blocks are written by `pcap-file` 2.0.0, which ignores `if_tsresol` and always writes nanoseconds. That is
//! correct here only because every interface declares nanoseconds.

mod datagram;

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use lasthop_base::Time;
use lasthop_proto::tcp::Flags;
use lasthop_proto::{Body, Coded, ComponentId, DropReason, FlowId, Packet, Symbol};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::tap::{Tap, Wire, WireId};
use datagram::{Datagram, Encoder, SNAP_LEN};

/// The capture point, and TCP options that segments do not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Interface name, such as "sender".
    pub name: String,
    /// Interface description, one sentence.
    pub description: String,
    /// The captured wires: one location, both directions, so that no packet crosses two of them.
    pub wires: Vec<WireId>,
    /// Whether all losses of the run are recorded as well, on an interface called "losses".
    pub losses: bool,
    /// The maximum segment size announced in SYN segments, in bytes.
    pub mss: u16,
    /// The largest window that will be advertised, in bytes. SYN segments announce the smallest window scale
    /// that can express it.
    pub largest_window: u32,
    /// Whether SYN segments carry the SACK-permitted option.
    pub sack_permitted: bool,
    /// Further parts of the captured connection if base stations split it; at most 63.
    pub parts: Vec<CapturedPart>,
}

/// A further part of a split connection, captured at its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPart {
    /// Interface name, such as "base".
    pub name: String,
    /// Interface description, one sentence.
    pub description: String,
    /// The connection; other packets on the wires are ignored.
    pub flow: FlowId,
    /// The wires at the sender of this part, both directions.
    pub wires: Vec<WireId>,
    /// The links on which this part may lose packets.
    pub links: Vec<ComponentId>,
    /// As in [`Capture`].
    pub mss: u16,
    /// As in [`Capture`].
    pub largest_window: u32,
    /// As in [`Capture`].
    pub sack_permitted: bool,
}

/// A tap that writes a pcapng file with nanosecond timestamps, for Wireshark and tshark.
///
/// Wireshark groups TCP packets by conversation, across interfaces: a packet that appears twice in a file
/// counts as a retransmission. Therefore a file captures a run at one location, like a capture on a real
/// host. To capture both ends, write two files with two taps side by side.
///
/// A loss is unknown when its packet is written, so each loss is a separate record at the time of the loss:
/// an ICMP "destination unreachable" message from the component that dropped the packet, on a separate
/// interface. It quotes the packet, and its comment gives the reason. Wireshark displays the quoted headers
/// but excludes them from its TCP analysis.
///
/// The parts of a split connection are separate connections with the same addresses and ports. To keep
/// Wireshark from merging them, each further part has its own interface and addresses: in part *p*, counted
/// from 0, host *n* has the address 10.2*p*.0.*n* + 1.
///
/// Only headers are stored, and payloads as lengths, to keep files small. Lengths are those of the encoded
/// headers, even where [`Packet::size`] counts headers differently, as some old simulators do.
///
/// Host *n* has the address 10.0.0.*n* + 1. In flow *f*, the host that sends first uses port 49152 + *f* and
/// the other 5001 + *f*, with UDP as with TCP. A component that drops packets has the address 10.128.0.0 plus
/// its id.
///
/// Readers learn the window scale of a connection from its handshake only. Without a handshake, or before it,
/// windows are written unscaled, capped at 65,535.
#[allow(missing_debug_implementations)]
pub struct Pcapng<W: Write> {
    file: PcapNgWriter<W>,
    encoder: Encoder,
    wires: Vec<WireId>,
    losses: bool,
    parts: Vec<(CapturedPart, Encoder)>,
    records: usize,
    failure: Option<io::Error>,
}

/// The interface of the capture point.
const CAPTURE: u32 = 0;
/// The interface of losses.
const LOSSES: u32 = 1;

/// Bytes of a buffer before a file. With the usual 8 KB, a traced run takes a fifth longer.
const BUFFER: usize = 1 << 18;

impl Pcapng<BufWriter<File>> {
    /// Creates a file, or empties an existing one.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    ///
    /// # Panics
    /// As [`new`](Pcapng::new).
    pub fn create(path: impl AsRef<Path>, capture: Capture) -> io::Result<Pcapng<BufWriter<File>>> {
        Pcapng::new(BufWriter::with_capacity(BUFFER, File::create(path)?), capture)
    }
}

impl<W: Write> Pcapng<W> {
    /// Starts a file. Every packet causes a few small writes: pass a [`BufWriter`].
    ///
    /// # Errors
    /// If `writer` fails.
    ///
    /// # Panics
    /// If there are more than 63 further parts.
    pub fn new(writer: W, capture: Capture) -> io::Result<Pcapng<W>> {
        assert!(capture.parts.len() < 64, "a connection has at most 64 parts");
        let encoder = Encoder::new(capture.mss, capture.largest_window, capture.sack_permitted, 0);
        let application = concat!("Lasthop ", env!("CARGO_PKG_VERSION"));
        let section = SectionHeaderBlock {
            // Not the platform of the machine: the same run produces the same file everywhere.
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(application.into())],
            ..SectionHeaderBlock::default()
        };
        let mut file = PcapNgWriter::with_section_header(writer, section).map_err(io_error)?;
        put(&mut file, interface(&capture.name, &capture.description))?;
        if capture.losses {
            put(&mut file, interface("losses", "Packets lost anywhere, each quoted where it was lost"))?;
        }
        for part in &capture.parts {
            put(&mut file, interface(&part.name, &part.description))?;
        }
        let parts = (1..).zip(capture.parts).map(|(number, part)| {
            let encoder = Encoder::new(part.mss, part.largest_window, part.sack_permitted, number);
            (part, encoder)
        });
        let (wires, losses, parts) = (capture.wires, capture.losses, parts.collect());
        Ok(Pcapng { file, encoder, wires, losses, parts, records: 0, failure: None })
    }

    /// Number of packets and losses recorded so far.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Whether an error has occurred: nothing more is written, and [`finish`](Pcapng::finish) returns it.
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Ends the file, flushes and returns the writer.
    ///
    /// # Errors
    /// The first error that occurred, now or during the run: a write error, or a segment too long for an IPv4
    /// packet. Nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        match self.failure {
            Some(failure) => Err(failure),
            None => {
                let mut writer = self.file.into_inner();
                writer.flush()?;
                Ok(writer)
            }
        }
    }

    /// Records a packet that crosses a captured wire.
    fn record_crossing(&mut self, now: Time, wire: WireId, packet: &Packet) -> io::Result<()> {
        // Wireshark does not know the messages and tunnels of the schemes.
        let comment = || matches!(packet.body, Body::Notice(_) | Body::Coded(_)).then(|| describe(packet));
        if self.wires.contains(&wire) {
            let datagram = self.encoder.crossing(packet)?;
            self.record(CAPTURE, now, &datagram, comment())?;
        }
        let is_here = |part: &CapturedPart| part.flow == packet.flow && part.wires.contains(&wire);
        let first = if self.losses { LOSSES + 1 } else { CAPTURE + 1 };
        let place = self.parts.iter().position(|(part, _)| is_here(part));
        if let Some(place) = place {
            let datagram = self.parts[place].1.crossing(packet)?;
            self.record(first + place as u32, now, &datagram, comment())?;
        }
        Ok(())
    }

    fn record_loss(
        &mut self,
        now: Time,
        at: ComponentId,
        packet: &Packet,
        reason: DropReason,
    ) -> io::Result<()> {
        let is_here = |part: &CapturedPart| part.flow == packet.flow && part.links.contains(&at);
        let part = self.parts.iter_mut().find(|(part, _)| is_here(part));
        let encoder = part.map_or(&mut self.encoder, |(_, encoder)| encoder);
        let datagram = encoder.loss(at, packet)?;
        self.record(LOSSES, now, &datagram, Some(format!("{} lost: {reason}", describe(packet))))
    }

    /// Updates the state of all encoders.
    fn meet(&mut self, packet: &Packet) {
        self.encoder.meet(packet);
        for (_, encoder) in &mut self.parts {
            encoder.meet(packet);
        }
    }

    fn record(
        &mut self,
        interface_id: u32,
        now: Time,
        datagram: &Datagram,
        comment: Option<String>,
    ) -> io::Result<()> {
        let block = EnhancedPacketBlock {
            interface_id,
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: datagram.len,
            data: Cow::Borrowed(&datagram.headers),
            options: comment.into_iter().map(|text| EnhancedPacketOption::Comment(text.into())).collect(),
        };
        self.records += 1;
        put(&mut self.file, block)
    }
}

impl<W: Write> Tap for Pcapng<W> {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        self.meet(packet);
        if self.failure.is_none() {
            self.failure = self.record_crossing(now, wire.id, packet).err();
        }
    }

    fn drop(&mut self, now: Time, at: ComponentId, packet: &Packet, reason: DropReason) {
        self.meet(packet);
        if self.failure.is_none() && self.losses {
            self.failure = self.record_loss(now, at, packet, reason).err();
        }
    }

    fn sees_wire(&self, wire: &Wire) -> bool {
        self.wires.contains(&wire.id) || self.parts.iter().any(|(part, _)| part.wires.contains(&wire.id))
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, _id: ComponentId) -> bool {
        false
    }
}

/// Description of a packet, with sequence numbers as counted by the simulator.
fn describe(packet: &Packet) -> String {
    match packet.body {
        Body::Tcp(segment) if segment.seq_len() > 0 => {
            format!("TCP segment seq={} len={}", segment.seq, segment.len)
        }
        Body::Tcp(segment) if segment.flags.has(Flags::RST) => format!("TCP reset seq={}", segment.seq),
        Body::Tcp(segment) => format!("TCP acknowledgement ack={}", segment.ack),
        Body::Notice(notice) => {
            let code = notice.code;
            format!("notice type={} code={} about TCP segment seq={}", code.kind, code.code, notice.seq)
        }
        Body::Datagram(datagram) => format!("UDP datagram seq={}", { datagram.seq }),
        Body::Coded(Coded { block, symbol: Symbol::Source { index } }) => {
            format!("block {block} of a code, source packet {index}")
        }
        Body::Coded(Coded { block, symbol: Symbol::Repair { index, sources } }) => {
            format!("block {block} of a code, repair packet {index} for {sources} source packets")
        }
    }
}

fn interface(name: &str, description: &str) -> InterfaceDescriptionBlock<'static> {
    const NANOSECONDS: u8 = 9;
    InterfaceDescriptionBlock {
        linktype: DataLink::RAW,
        snaplen: SNAP_LEN,
        options: vec![
            InterfaceDescriptionOption::IfName(name.to_owned().into()),
            InterfaceDescriptionOption::IfDescription(description.to_owned().into()),
            InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
        ],
    }
}

fn put<'a, W: Write>(file: &mut PcapNgWriter<W>, block: impl PcapNgBlock<'a>) -> io::Result<()> {
    file.write_pcapng_block(block).map(drop).map_err(io_error)
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}
