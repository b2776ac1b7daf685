//! Captures of a simulated run.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use lasthop_base::Time;
use lasthop_proto::tcp::Flags;
use lasthop_proto::{Body, Coded, ComponentId, DropReason, FlowId, Packet, Symbol};
use lasthop_sim::{Contents, Tap, Wire, WireId};

use crate::datagram::{Datagram, Encoder, SNAP_LEN};
use crate::writer::{Interface, Record, Writer};

/// Maximum number of [further parts](CapturePoint::parts) of a connection: each has a range of addresses.
pub const MAX_FURTHER_PARTS: usize = 63;

/// The capture point, and TCP options that segments do not carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePoint {
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
    /// Further parts of the captured connection if base stations split it; at most [`MAX_FURTHER_PARTS`].
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
    /// As in [`CapturePoint`].
    pub mss: u16,
    /// As in [`CapturePoint`].
    pub largest_window: u32,
    /// As in [`CapturePoint`].
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
/// from 0, host *n* has the address 10.2*p*.0.*n* + 1. Each further 131,072 hosts have the next first byte.
///
/// Of TCP and of other traffic, only headers are stored, and payloads as lengths, to keep files small; of QUIC, the whole
/// datagrams, not to be fragmented, after the secrets of TLS that protect them, if they are. Lengths are those of the encoded
/// headers, even where [`Packet::size`] counts headers differently, as some old simulators do.
///
/// Host *n* has the address 10.0.0.*n* + 1. In flow *f*, the host that sends first uses port 49152 + *f* and
/// the other 5001 + *f*, with UDP as with TCP. A component that drops packets has the address 10.128.0.0 plus
/// its id.
///
/// Readers learn the window scale of a connection from its handshake only. Without a handshake, or before it,
/// windows are written unscaled, capped at 65,535.
#[allow(missing_debug_implementations)]
pub struct RunCapture<W: Write> {
    file: Writer<W>,
    encoder: Encoder,
    wires: Vec<WireId>,
    losses: bool,
    parts: Vec<(CapturedPart, Encoder)>,
    contents: Option<Contents>,
    /// Bytes of the key log of the contents that are in the file.
    logged: usize,
    /// Where the key log is written by itself.
    key_log: Option<PathBuf>,
    failure: Option<io::Error>,
}

/// The interface of the capture point.
const CAPTURE: u32 = 0;
/// The length of the largest IP packet.
const WHOLE: u32 = 65_535;

/// The interface of losses.
const LOSSES: u32 = 1;

/// Bytes of a buffer before a file. With the usual 8 KB, a traced run takes a fifth longer.
const BUFFER: usize = 1 << 18;

impl RunCapture<BufWriter<File>> {
    /// Creates a file, or empties an existing one. If there are secrets of TLS, [`finish`](RunCapture::finish) writes them to a key
    /// log beside it, too: the same path with the extension `keys`.
    ///
    /// # Errors
    /// If the file cannot be created or written.
    ///
    /// # Panics
    /// As [`new`](RunCapture::new).
    pub fn create(
        path: impl AsRef<Path>,
        point: CapturePoint,
        contents: Option<Contents>,
    ) -> io::Result<RunCapture<BufWriter<File>>> {
        let key_log = Some(path.as_ref().with_extension("keys"));
        let file = BufWriter::with_capacity(BUFFER, File::create(path)?);
        Ok(RunCapture { key_log, ..RunCapture::new(file, point, contents)? })
    }
}

impl<W: Write> RunCapture<W> {
    /// Starts a file. Every packet causes a small write: pass a [`BufWriter`]. `contents` are the bytes of those packets of the
    /// run that have any, which are captured whole.
    ///
    /// # Errors
    /// If `writer` fails.
    ///
    /// # Panics
    /// If there are more than [`MAX_FURTHER_PARTS`].
    pub fn new(writer: W, point: CapturePoint, contents: Option<Contents>) -> io::Result<RunCapture<W>> {
        assert!(point.parts.len() <= MAX_FURTHER_PARTS, "a connection has at most 64 parts");
        let snap_len = if contents.is_some() { WHOLE } else { SNAP_LEN };
        let interface = |name, description| interface(name, description, snap_len);
        let encoder =
            Encoder::new(point.mss, point.largest_window, point.sack_permitted, 0, contents.clone());
        let mut interfaces = vec![interface(&point.name, &point.description)];
        if point.losses {
            interfaces.push(interface("losses", "Packets lost anywhere, each quoted where it was lost"));
        }
        interfaces.extend(point.parts.iter().map(|part| interface(&part.name, &part.description)));
        let file = Writer::new(writer, &interfaces)?;
        let parts = (1..).zip(point.parts).map(|(number, part)| {
            let encoder =
                Encoder::new(part.mss, part.largest_window, part.sack_permitted, number, contents.clone());
            (part, encoder)
        });
        let (wires, losses, parts) = (point.wires, point.losses, parts.collect());
        Ok(RunCapture {
            file,
            encoder,
            wires,
            losses,
            parts,
            contents,
            logged: 0,
            key_log: None,
            failure: None,
        })
    }

    /// The limit that the file has reached, [`MAX_PACKETS`](crate::MAX_PACKETS) or [`MAX_BYTES`](crate::MAX_BYTES) with its unit, if
    /// it has reached one. Packets are recorded nonetheless.
    pub fn limit(&self) -> Option<String> {
        self.file.limit()
    }

    /// Whether an error has occurred: nothing more is written, and [`finish`](RunCapture::finish) returns it.
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
                if let (Some(path), Some(contents), true) = (self.key_log, self.contents, self.logged > 0) {
                    contents.read_secrets(0, |lines| fs::write(path, lines))?;
                }
                self.file.finish()
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
        interface: u32,
        time: Time,
        datagram: &Datagram,
        comment: Option<String>,
    ) -> io::Result<()> {
        if let Some(contents) = &self.contents {
            self.logged += contents.read_secrets(self.logged, |new| match new {
                "" => Ok(0),
                new => self.file.secrets(new).map(|()| new.len()),
            })?;
        }
        self.file.packet(&Record {
            interface,
            time,
            original_len: datagram.len,
            bytes: &datagram.bytes,
            comment: comment.as_deref(),
        })
    }
}

impl<W: Write> Tap for RunCapture<W> {
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

fn interface<'a>(name: &'a str, description: &'a str, snap_len: u32) -> Interface<'a> {
    /// IP packets without a link's header.
    const RAW: u16 = 101;
    Interface { name, description, link_type: RAW, snap_len }
}
