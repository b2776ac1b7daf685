//! A run as a pcapng file.
//!
//! Blocks are written by `pcap-file` 2.0.0. It ignores `if_tsresol` and always writes nanoseconds;
//! that is right here, and only here, because every interface declares nanoseconds.

mod datagram;

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use lasthop_base::Time;
use lasthop_proto::tcp::Flags;
use lasthop_proto::{Body, ComponentId, DropReason, FlowId, Packet};
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::tap::{Tap, Wire, WireId};
use datagram::{Datagram, Encoder, SNAP_LEN};

/// The place from which a file shows a run, and what the file says of TCP that segments do not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The interface's name, such as "sender".
    pub name: String,
    /// What the interface is, in a sentence.
    pub description: String,
    /// The wires whose packets are written: of one place, each way, so that no packet crosses two.
    pub wires: Vec<WireId>,
    /// Whether the losses of the whole run are recorded too, on an interface called "losses".
    pub losses: bool,
    /// The maximum segment size that SYN segments announce, in bytes.
    pub mss: u16,
    /// The largest window that will be advertised, in bytes: the window scale that SYN segments
    /// announce is the smallest that can say it.
    pub largest_window: u32,
    /// Whether SYN segments permit selective acknowledgements.
    pub sack_permitted: bool,
    /// The further parts of the captured connection, if base stations split it; 63 at most.
    pub parts: Vec<CapturedPart>,
}

/// A further part of a split connection, captured where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedPart {
    /// The interface's name, such as "base".
    pub name: String,
    /// What the interface is, in a sentence.
    pub description: String,
    /// The connection: other packets on the wires are not its.
    pub flow: FlowId,
    /// The wires at the beginning of the part, each way.
    pub wires: Vec<WireId>,
    /// The links on which it loses packets.
    pub links: Vec<ComponentId>,
    /// As of the [`Capture`].
    pub mss: u16,
    /// As of the [`Capture`].
    pub largest_window: u32,
    /// As of the [`Capture`].
    pub sack_permitted: bool,
}

/// Writes what it observes as a pcapng file with nanosecond timestamps, for Wireshark and tshark.
///
/// Wireshark analyses TCP by conversation, whatever interface a packet was seen on: a packet that is
/// in a file twice counts as a retransmission. So a file shows a run from one place, as a capture on
/// a real host does. Who wants to see it from both ends writes two files, with two taps side by side.
///
/// What becomes of a packet is not yet known when it is written, so a loss is a record of its own, at
/// the instant of the loss: an ICMP "destination unreachable" from the component where it happened,
/// on an interface of its own. It quotes the packet, and a comment says why it was lost. Wireshark
/// shows quoted headers, but leaves them out of its TCP analysis.
///
/// The parts of a split connection are connections of their own, with the addresses and ports of the first. So that
/// Wireshark does not take them for one, each further part has an interface and addresses of its own: in part *p*,
/// counted from 0, host *n* has the address 10.2*p*.0.*n* + 1.
///
/// Only headers are stored, payloads as lengths, so that files stay small. The lengths are those of
/// the headers as encoded, even where [`Packet::size`] counts otherwise, as some old simulators do.
///
/// Host *n* has the address 10.0.0.*n* + 1, and in flow *f* the host that sends first uses port
/// 49152 + *f*, the other 5001 + *f*, with UDP as with TCP. A component that loses packets has an address
/// too: its number added to 10.128.0.0.
///
/// A reader knows a connection's window scale only from its handshake. In one without, or before it,
/// windows are written unscaled, as 65,535 if they are larger.
#[allow(missing_debug_implementations)]
pub struct Pcapng<W: Write> {
    file: PcapNgWriter<W>,
    encoder: Encoder,
    wires: Vec<WireId>,
    losses: bool,
    parts: Vec<(CapturedPart, Encoder)>,
    failure: Option<io::Error>,
}

/// The interface of the capture itself.
const CAPTURE: u32 = 0;
/// The interface on which losses are recorded.
const LOSSES: u32 = 1;

impl<W: Write> Pcapng<W> {
    /// Begins a file. Every packet is a few small writes: give it a [`BufWriter`](io::BufWriter).
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
            // Never that of the machine: the same run is the same file everywhere.
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
        Ok(Pcapng { file, encoder, wires, losses, parts, failure: None })
    }

    /// Ends the file and hands back the writer, flushed.
    ///
    /// # Errors
    /// The first that occurred, now or during the run: the writer's, or that of a segment too long
    /// for an IPv4 packet. Nothing was written after it.
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

    /// Records what crosses a wire of the capture, or of a further part of the connection.
    fn record_crossing(&mut self, now: Time, wire: WireId, packet: &Packet) -> io::Result<()> {
        // Wireshark cannot know what a scheme's message means.
        let comment = || matches!(packet.body, Body::Notice(_)).then(|| describe(packet));
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

    /// Tells all encoders of a packet.
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
}

/// The packet in words, with sequence numbers as the simulator counts them.
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
        Body::Datagram(datagram) => format!("UDP datagram seq={}", datagram.seq),
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
