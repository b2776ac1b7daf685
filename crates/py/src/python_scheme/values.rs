//! Packets, segments and other values as Python objects. They are immutable, since components pass them by value.

use lasthop_base::Bytes;
use lasthop_proto::tcp::{Flags, SackBlock, SackBlocks, Segment, SeqNum, Timestamps};
use lasthop_proto::{
    Body, Dscp, Ecn, FlowId, Handle, HostId, LinkOutcome, Notice, NoticeCode, Packet, Port, Reach, Signal,
};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A TCP sequence number.
///
/// Comparison is modular: the numbers of one window are in order even where they wrap around. Integers can be added and
/// subtracted; the difference of two numbers is an integer.
///
/// Parameters
/// ----------
/// value : int
///     The number, of which the lower 32 bits count.
#[pyclass(frozen, from_py_object, name = "SeqNum", module = "lasthop._lasthop")]
#[derive(Clone, Copy)]
pub(crate) struct PySeqNum(pub(super) SeqNum);

/// A sequence number, or an integer that stands for one.
#[derive(FromPyObject)]
pub(super) enum Sequence {
    Number(PySeqNum),
    Integer(i64),
}

impl Sequence {
    pub(super) fn number(self) -> SeqNum {
        match self {
            Sequence::Number(PySeqNum(number)) => number,
            // Modulo 2³².
            Sequence::Integer(integer) => SeqNum(integer as u32),
        }
    }
}

#[pymethods]
impl PySeqNum {
    #[new]
    fn new(value: i64) -> PySeqNum {
        PySeqNum(Sequence::Integer(value).number())
    }

    fn __int__(&self) -> u32 {
        self.0.0
    }

    fn __index__(&self) -> u32 {
        self.0.0
    }

    fn __hash__(&self) -> u64 {
        u64::from(self.0.0)
    }

    fn __add__(&self, distance: i64) -> PySeqNum {
        PySeqNum(self.0 + distance as u32)
    }

    fn __radd__(&self, distance: i64) -> PySeqNum {
        self.__add__(distance)
    }

    fn __rsub__(&self, other: i64) -> i32 {
        PySeqNum::new(other).0.0.wrapping_sub(self.0.0) as i32
    }

    fn __sub__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(PySeqNum(other)) = other.extract::<PySeqNum>() {
            // Negative if the other is later.
            let distance = self.0.0.wrapping_sub(other.0) as i32;
            return Ok(distance.into_pyobject(py)?.into_any());
        }
        let bytes: i64 = other.extract()?;
        Ok(Bound::new(py, PySeqNum(self.0 + bytes.wrapping_neg() as u32))?.into_any())
    }

    fn __richcmp__(&self, other: Sequence, op: CompareOp) -> bool {
        let other = other.number();
        match op {
            CompareOp::Eq => self.0 == other,
            CompareOp::Ne => self.0 != other,
            CompareOp::Lt => self.0 < other,
            CompareOp::Le => self.0 <= other,
            CompareOp::Gt => self.0 > other,
            CompareOp::Ge => self.0 >= other,
        }
    }

    fn __repr__(&self) -> String {
        format!("SeqNum({})", self.0)
    }
}

/// A TCP segment.
///
/// Parameters
/// ----------
/// seq : SeqNum or int
///     Sequence number of the first byte, or of SYN.
/// ack : SeqNum or int
///     The next byte expected from the other side, if `Flags.ACK` is set.
/// len : int, default 0
///     Payload in bytes.
/// wnd : int, default 0
///     Advertised window in bytes, after scaling.
/// flags : int, default 16
///     Control bits: `Flags` and those that a scheme uses.
/// sack : sequence of (SeqNum, SeqNum), optional
///     SACK blocks, the most recent first: at most four, each from its first number to one past its last.
/// timestamps : (int, int), optional
///     The sender's clock and the echo of the peer's, in microseconds.
#[pyclass(frozen, from_py_object, name = "Segment", module = "lasthop._lasthop")]
#[derive(Clone, Copy)]
pub(crate) struct PySegment(pub(super) Segment);

fn sack_blocks(blocks: Vec<(Sequence, Sequence)>) -> PyResult<SackBlocks> {
    if blocks.len() > SackBlocks::MAX {
        let (most, found) = (SackBlocks::MAX, blocks.len());
        return Err(PyValueError::new_err(format!("sack: found {found} blocks, expected at most {most}")));
    }
    let mut sack = SackBlocks::default();
    for (start, end) in blocks {
        sack.push(SackBlock { start: start.number(), end: end.number() });
    }
    Ok(sack)
}

fn timestamps((value, echo): (u32, u32)) -> Timestamps {
    Timestamps { value, echo }
}

#[pymethods]
impl PySegment {
    #[new]
    #[pyo3(
        signature = (seq, ack, len = 0, wnd = 0, flags = Flags::ACK.0, sack = Vec::new(), timestamps = None),
        text_signature = "(seq, ack, len=0, wnd=0, flags=16, sack=(), timestamps=None)"
    )]
    fn new(
        seq: Sequence,
        ack: Sequence,
        len: u32,
        wnd: u32,
        flags: u16,
        sack: Vec<(Sequence, Sequence)>,
        timestamps: Option<(u32, u32)>,
    ) -> PyResult<PySegment> {
        let (seq, ack, sack) = (seq.number(), ack.number(), sack_blocks(sack)?);
        let timestamps = timestamps.map(self::timestamps);
        let flags = Flags(flags);
        Ok(PySegment(Segment { seq, ack, len, wnd, flags, sack, timestamps, has_unknown_options: false }))
    }

    #[getter]
    fn seq(&self) -> PySeqNum {
        PySeqNum(self.0.seq)
    }

    #[getter]
    fn ack(&self) -> PySeqNum {
        PySeqNum(self.0.ack)
    }

    #[getter]
    fn len(&self) -> u32 {
        self.0.len
    }

    #[getter]
    fn wnd(&self) -> u32 {
        self.0.wnd
    }

    #[getter]
    fn flags(&self) -> u16 {
        self.0.flags.0
    }

    #[getter]
    fn sack(&self) -> Vec<(PySeqNum, PySeqNum)> {
        self.0.sack.iter().map(|block| (PySeqNum(block.start), PySeqNum(block.end))).collect()
    }

    #[getter]
    fn timestamps(&self) -> Option<(u32, u32)> {
        self.0.timestamps.map(|each| (each.value, each.echo))
    }

    /// Length in sequence space: payload, SYN and FIN.
    #[getter]
    fn seq_len(&self) -> u32 {
        self.0.seq_len()
    }

    /// Return whether control bits are set.
    ///
    /// Parameters
    /// ----------
    /// flags : int
    ///     The bits.
    ///
    /// Returns
    /// -------
    /// bool
    ///     Whether all of them are.
    fn has(&self, flags: u16) -> bool {
        self.0.flags.has(Flags(flags))
    }

    /// Return the segment with other values of some fields.
    ///
    /// Parameters
    /// ----------
    /// seq, ack, len, wnd, flags, sack, timestamps
    ///     As in the constructor; omitted fields are unchanged.
    ///
    /// Returns
    /// -------
    /// Segment
    ///     The changed copy.
    #[pyo3(signature = (
        *, seq = None, ack = None, len = None, wnd = None, flags = None, sack = None, timestamps = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn replace(
        &self,
        seq: Option<Sequence>,
        ack: Option<Sequence>,
        len: Option<u32>,
        wnd: Option<u32>,
        flags: Option<u16>,
        sack: Option<Vec<(Sequence, Sequence)>>,
        timestamps: Option<(u32, u32)>,
    ) -> PyResult<PySegment> {
        let old = self.0;
        let mut reports = old.sack;
        if let Some(blocks) = sack {
            reports.replace_blocks(&sack_blocks(blocks)?);
        }
        Ok(PySegment(Segment {
            seq: seq.map_or(old.seq, Sequence::number),
            ack: ack.map_or(old.ack, Sequence::number),
            len: len.unwrap_or(old.len),
            wnd: wnd.unwrap_or(old.wnd),
            flags: flags.map_or(old.flags, Flags),
            sack: reports,
            timestamps: timestamps.map(self::timestamps).or(old.timestamps),
            has_unknown_options: old.has_unknown_options,
        }))
    }

    fn __eq__(&self, other: &PySegment) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        u64::from(self.0.seq.0) << 32 | u64::from(self.0.ack.0)
    }

    fn __repr__(&self) -> String {
        let Segment { seq, ack, len, wnd, flags, .. } = self.0;
        format!("<Segment seq={seq} ack={ack} len={len} wnd={wnd} flags={:#x}>", flags.0)
    }
}

/// A control message about a segment: on the wire, an ICMP message.
///
/// Attributes
/// ----------
/// code : (int, int)
///     ICMP type and code, which identify a scheme's message.
/// seq : SeqNum
///     First sequence number of the segment that it is about.
#[pyclass(frozen, from_py_object, name = "Notice", module = "lasthop._lasthop")]
#[derive(Clone, Copy)]
pub(crate) struct PyNotice(pub(super) Notice);

#[pymethods]
impl PyNotice {
    /// Return a message about the data in a packet, addressed to their source.
    ///
    /// Parameters
    /// ----------
    /// packet : Packet
    ///     The packet.
    /// code : (int, int)
    ///     ICMP type and code; type 41 is for experimental mobility protocols.
    /// size : int
    ///     The size of the message as an IP packet, in bytes.
    ///
    /// Returns
    /// -------
    /// Packet or None
    ///     The message; None if the packet has no data: no message is sent about ACKs and messages.
    #[staticmethod]
    fn about(packet: PyPacket, code: (u8, u8), size: u64) -> PyResult<Option<PyPacket>> {
        let code = NoticeCode { kind: code.0, code: code.1 };
        Ok(Notice::about(&packet.0, code, length(size)?).map(PyPacket))
    }

    #[getter]
    fn code(&self) -> (u8, u8) {
        (self.0.code.kind, self.0.code.code)
    }

    #[getter]
    fn seq(&self) -> PySeqNum {
        PySeqNum(self.0.seq)
    }

    fn __repr__(&self) -> String {
        let Notice { code: NoticeCode { kind, code }, seq } = self.0;
        format!("<Notice code=({kind}, {code}) seq={seq}>")
    }
}

/// A packet. To forward it is to send it; to hold it is to keep it; to suppress it is to drop it, or to do nothing.
///
/// Attributes
/// ----------
/// src, dst : int
///     The numbers of the sending and the receiving host.
/// flow : int
///     The number of the flow: a connection, or other traffic.
/// size : int
///     Size as an IP packet, in bytes.
/// dscp : int
///     The code point in the IP header, 0 to 63.
/// ecn : int
///     The two bits of the ECN field.
/// protocol : str
///     ``"tcp"``, ``"notice"``, ``"datagram"`` or ``"coded"``.
/// segment : Segment or None
///     The TCP segment, if it contains one.
/// notice : Notice or None
///     The control message, if it contains one.
#[pyclass(frozen, from_py_object, name = "Packet", module = "lasthop._lasthop")]
#[derive(Clone, Copy)]
pub(crate) struct PyPacket(pub(super) Packet);

fn dscp(value: u8) -> PyResult<Dscp> {
    match value {
        0..64 => Ok(Dscp::new(value)),
        _ => Err(PyValueError::new_err(format!("dscp: found {value}, expected a number from 0 to 63"))),
    }
}

/// The size of a packet. Without any it would pass a link in no time.
fn length(size: u64) -> PyResult<Bytes> {
    match size {
        0 => Err(PyValueError::new_err("size: found 0, expected at least 1 B")),
        size => Ok(Bytes(size)),
    }
}

pub(super) fn code_point(value: &Bound<'_, PyAny>) -> PyResult<Dscp> {
    dscp(value.extract()?)
}

#[pymethods]
impl PyPacket {
    /// Make a packet with a TCP segment.
    ///
    /// Parameters
    /// ----------
    /// src, dst, flow : int
    ///     Numbers of the hosts and the flow, as in other packets.
    /// size : int
    ///     Size as an IP packet, in bytes.
    /// segment : Segment
    ///     The segment.
    ///
    /// Returns
    /// -------
    /// Packet
    ///     The packet.
    #[staticmethod]
    fn tcp(src: u32, dst: u32, flow: u32, size: u64, segment: PySegment) -> PyResult<PyPacket> {
        Ok(PyPacket(Packet {
            src: HostId(src),
            dst: HostId(dst),
            flow: FlowId(flow),
            size: length(size)?,
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            handle: Handle::NONE,
            body: Body::Tcp(segment.0),
        }))
    }

    #[getter]
    fn src(&self) -> u32 {
        self.0.src.0
    }

    #[getter]
    fn dst(&self) -> u32 {
        self.0.dst.0
    }

    #[getter]
    fn flow(&self) -> u32 {
        self.0.flow.0
    }

    #[getter]
    fn size(&self) -> u64 {
        self.0.size.0
    }

    #[getter]
    fn dscp(&self) -> u8 {
        self.0.dscp.get()
    }

    #[getter]
    fn ecn(&self) -> u8 {
        self.0.ecn.bits()
    }

    #[getter]
    fn protocol(&self) -> &'static str {
        match self.0.body {
            Body::Tcp(_) => "tcp",
            Body::Notice(_) => "notice",
            Body::Datagram(_) => "datagram",
            Body::Coded(_) => "coded",
        }
    }

    #[getter]
    fn segment(&self) -> Option<PySegment> {
        self.0.segment().copied().map(PySegment)
    }

    #[getter]
    fn notice(&self) -> Option<PyNotice> {
        match self.0.body {
            Body::Notice(notice) => Some(PyNotice(notice)),
            Body::Tcp(_) | Body::Datagram(_) | Body::Coded(_) => None,
        }
    }

    /// Return the packet with other values of some fields.
    ///
    /// Parameters
    /// ----------
    /// src, dst, flow, size, dscp, ecn : int, optional
    ///     Omitted fields are unchanged.
    /// segment : Segment, optional
    ///     Only for packets with a segment.
    ///
    /// Returns
    /// -------
    /// Packet
    ///     The changed copy.
    #[pyo3(signature = (
        *, src = None, dst = None, flow = None, size = None, dscp = None, ecn = None, segment = None
    ))]
    #[allow(clippy::too_many_arguments, reason = "they have names in Python")]
    fn replace(
        &self,
        src: Option<u32>,
        dst: Option<u32>,
        flow: Option<u32>,
        size: Option<u64>,
        dscp: Option<u8>,
        ecn: Option<u8>,
        segment: Option<PySegment>,
    ) -> PyResult<PyPacket> {
        let old = self.0;
        let body = match (segment, old.body) {
            (None, body) => body,
            (Some(segment), Body::Tcp(_)) => Body::Tcp(segment.0),
            (Some(_), _) => {
                let found = self.protocol();
                return Err(PyTypeError::new_err(format!("segment: the packet is a {found}, expected tcp")));
            }
        };
        Ok(PyPacket(Packet {
            src: src.map_or(old.src, HostId),
            dst: dst.map_or(old.dst, HostId),
            flow: flow.map_or(old.flow, FlowId),
            size: size.map_or(Ok(old.size), length)?,
            dscp: dscp.map_or(Ok(old.dscp), self::dscp)?,
            ecn: ecn.map_or(old.ecn, Ecn::from_bits),
            handle: old.handle,
            body,
        }))
    }

    fn __eq__(&self, other: &PyPacket) -> bool {
        self.0 == other.0
    }

    fn __hash__(&self) -> u64 {
        let Packet { src, dst, flow, size, .. } = self.0;
        u64::from(src.0) << 48 ^ u64::from(dst.0) << 32 ^ u64::from(flow.0) << 16 ^ size.0
    }

    fn __repr__(&self) -> String {
        let Packet { src, dst, flow, size, .. } = self.0;
        let (src, dst, flow, size) = (src.0, dst.0, flow.0, size.0);
        format!("<Packet {} src={src} dst={dst} flow={flow} size={size}>", self.protocol())
    }
}

/// A side of an agent.
///
/// Attributes
/// ----------
/// WIRED
///     At a base station, the side of the wired network; at a mobile host, that of the host.
/// RADIO
///     The side of the wireless link.
#[pyclass(frozen, eq, hash, from_py_object, name = "Port", module = "lasthop._lasthop")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum PyPort {
    #[pyo3(name = "WIRED")]
    Wired,
    #[pyo3(name = "RADIO")]
    Radio,
}

impl PyPort {
    pub(super) fn of(port: Port) -> PyPort {
        if port == Port::WIRED { PyPort::Wired } else { PyPort::Radio }
    }

    pub(super) fn port(self) -> Port {
        match self {
            PyPort::Wired => Port::WIRED,
            PyPort::Radio => Port::RADIO,
        }
    }
}

#[pymethods]
impl PyPort {
    /// Return the opposite side.
    ///
    /// Returns
    /// -------
    /// Port
    ///     `Port.RADIO` for `Port.WIRED`, and the reverse.
    fn across(&self) -> PyPort {
        PyPort::of(self.port().across())
    }
}

/// A signal to an agent, from the link that it watches or from the mobile host.
///
/// Attributes
/// ----------
/// kind : str
///     - ``"link"``: a transmission on the link has an `outcome`;
///     - ``"status"``: the receiving end of the link has sent a report on several units;
///     - ``"corrupted"``: a `packet` arrived with errors and was dropped;
///     - ``"attached"``, ``"detached"``: a moving `host` has come to or left the base station number `station`;
///     - ``"reach"``: the radio signal has changed, see `reach`;
///     - ``"request"``, ``"encoded"``, ``"lost"``, ``"finished"``: others, without further attributes.
/// outcome : str or None
///     ``"attempt-failed"``, ``"delivered"`` or ``"discarded"``, for the kind ``"link"``.
/// packet : Packet or None
///     The packet, for the kinds ``"link"`` and ``"corrupted"``.
/// attempt : int or None
///     The number of the transmission of the unit, from 1, for the kind ``"link"``.
/// host, station : int or None
///     For the kinds ``"attached"`` and ``"detached"``.
/// reach : str or None
///     ``"fading"``, ``"lost"`` or ``"back"``, for the kind ``"reach"``.
#[pyclass(frozen, get_all, name = "Signal", module = "lasthop._lasthop")]
#[derive(Default)]
pub(crate) struct PySignal {
    kind: &'static str,
    outcome: Option<&'static str>,
    packet: Option<PyPacket>,
    attempt: Option<u32>,
    host: Option<u32>,
    station: Option<u16>,
    reach: Option<&'static str>,
}

#[pymethods]
impl PySignal {
    fn __repr__(&self) -> String {
        let what = self.outcome.or(self.reach).map(|what| format!(" {what}")).unwrap_or_default();
        format!("<Signal {}{what}>", self.kind)
    }
}

impl From<&Signal> for PySignal {
    fn from(signal: &Signal) -> PySignal {
        let kind = |kind| PySignal { kind, ..PySignal::default() };
        match *signal {
            Signal::Link(event) => PySignal {
                outcome: Some(outcome_name(event.outcome)),
                packet: Some(PyPacket(event.packet)),
                attempt: Some(event.attempt),
                ..kind("link")
            },
            Signal::Status => kind("status"),
            Signal::Frame(event) => PySignal { outcome: Some(outcome_name(event.outcome)), ..kind("frame") },
            Signal::Corrupted(packet) => PySignal { packet: Some(PyPacket(packet)), ..kind("corrupted") },
            Signal::Attached { host, station } => {
                PySignal { host: Some(host.0), station: Some(station), ..kind("attached") }
            }
            Signal::Detached { host, station } => {
                PySignal { host: Some(host.0), station: Some(station), ..kind("detached") }
            }
            Signal::Reach(reach) => PySignal { reach: Some(reach_name(reach)), ..kind("reach") },
            Signal::Request(_) => kind("request"),
            Signal::Encoded(_) => kind("encoded"),
            Signal::Quack(_) => kind("quack"),
            Signal::Lost(_) => kind("lost"),
            Signal::Finished => kind("finished"),
        }
    }
}

pub(super) fn outcome_name(outcome: LinkOutcome) -> &'static str {
    match outcome {
        LinkOutcome::AttemptFailed => "attempt-failed",
        LinkOutcome::Delivered => "delivered",
        LinkOutcome::Discarded => "discarded",
    }
}

pub(super) fn reach_name(reach: Reach) -> &'static str {
    match reach {
        Reach::Fading => "fading",
        Reach::Lost => "lost",
        Reach::Back => "back",
    }
}
