//! A run by hand, and its packets.

use std::io::Write;

use lasthop_base::{Bytes, Time};
use lasthop_capture::{CapturePoint, CapturedPart, RunCapture};
use lasthop_proto::tcp::{Flags, SackBlock, Segment, SeqNum};
use lasthop_proto::{
    Body, ComponentId, Datagram, DropReason, Dscp, Ecn, FlowId, Handle, HostId, Notice, NoticeCode, Packet,
    Port,
};
use lasthop_sim::{Tap, Wire, WireId};

use crate::pcapng::reader::File;

pub(crate) const SENDER: HostId = HostId(0);
pub(crate) const BASE_STATION: HostId = HostId(1);
pub(crate) const RECEIVER: HostId = HostId(2);
pub(crate) const LEAVING: WireId = WireId(7);
pub(crate) const ARRIVING: WireId = WireId(8);
pub(crate) const FLOW: FlowId = FlowId(3);
pub(crate) const AIR: ComponentId = ComponentId(300);

pub(crate) fn at_sender() -> CapturePoint {
    CapturePoint {
        name: "sender".into(),
        description: "The fixed host".into(),
        wires: vec![LEAVING, ARRIVING],
        losses: true,
        mss: 1000,
        largest_window: 1_000_000,
        sack_permitted: true,
        parts: Vec::new(),
    }
}

/// The wires at a base station that splits connections, where the wireless part begins.
pub(crate) const SENT_ON: WireId = WireId(9);
pub(crate) const RETURNED: WireId = WireId(10);

pub(crate) fn split_at_base_station() -> CapturePoint {
    let part = CapturedPart {
        name: "base".into(),
        description: "The base station".into(),
        flow: FLOW,
        wires: vec![SENT_ON, RETURNED],
        links: vec![AIR],
        mss: 500,
        largest_window: 65_535,
        sack_permitted: false,
    };
    CapturePoint { parts: vec![part], ..at_sender() }
}

/// A run by hand: packets cross one millisecond apart unless a time is given.
pub(crate) struct Run<W: Write> {
    pub(crate) tap: RunCapture<W>,
    pub(crate) now: Time,
}

impl Run<Vec<u8>> {
    pub(crate) fn new(capture: CapturePoint) -> Run<Vec<u8>> {
        Run::into_writer(Vec::new(), capture)
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.tap.finish().expect("a vector takes everything")
    }

    pub(crate) fn read_back(self) -> File {
        File::parse(&self.bytes())
    }
}

impl<W: Write> Run<W> {
    pub(crate) fn into_writer(writer: W, capture: CapturePoint) -> Run<W> {
        let tap = RunCapture::new(writer, capture, None).expect("the writer takes a header");
        Run { tap, now: Time::ZERO }
    }

    pub(crate) fn at(&mut self, ns: u64) -> &mut Self {
        self.now = Time::from_nanos(ns);
        self
    }

    pub(crate) fn cross(&mut self, wire: WireId, packet: Packet) -> &mut Self {
        let end = (ComponentId(0), Port::ONLY);
        self.tap.cross(self.now, Wire { id: wire, from: end, to: end }, &packet);
        self.at(self.now.as_nanos().saturating_add(1_000_000))
    }

    pub(crate) fn forth(&mut self, segment: Segment) -> &mut Self {
        self.cross(LEAVING, carrying(segment, SENDER, RECEIVER))
    }

    pub(crate) fn back(&mut self, segment: Segment) -> &mut Self {
        self.cross(ARRIVING, carrying(segment, RECEIVER, SENDER))
    }

    pub(crate) fn lose(&mut self, packet: Packet, reason: DropReason) -> &mut Self {
        self.tap.drop(self.now, AIR, &packet, reason);
        self
    }

    pub(crate) fn shake_hands(&mut self) -> &mut Self {
        let syn = Segment { seq: SeqNum(999), wnd: 1_000_000, flags: Flags::SYN, ..Segment::default() };
        let reply = Segment { seq: SeqNum(4999), ack: SeqNum(1000), flags: Flags::SYN | Flags::ACK, ..syn };
        self.forth(syn).back(reply).forth(Segment { seq: SeqNum(1000), ..ack(5000) })
    }
}

pub(crate) fn carrying(segment: Segment, src: HostId, dst: HostId) -> Packet {
    let size = Bytes(40 + u64::from(segment.len));
    Packet {
        src,
        dst,
        flow: FLOW,
        size,
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Tcp(segment),
    }
}

pub(crate) fn notice(kind: u8, code: u8, seq: u32) -> Packet {
    let body = Body::Notice(Notice { code: NoticeCode { kind, code }, seq: SeqNum(seq) });
    Packet {
        src: BASE_STATION,
        dst: SENDER,
        flow: FLOW,
        size: Bytes(56),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    }
}

/// A datagram of the flow after that of the segments.
pub(crate) fn datagram(seq: u64, size: u64) -> Packet {
    let body = Body::Datagram(Datagram { seq, sent: Time::ZERO });
    let (flow, dscp) = (FlowId(FLOW.0 + 1), Dscp::DEFAULT);
    Packet {
        src: SENDER,
        dst: RECEIVER,
        flow,
        size: Bytes(size),
        dscp,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    }
}

pub(crate) fn data(seq: u32) -> Segment {
    Segment { seq: SeqNum(seq), len: 1000, ..ack(5000) }
}

/// An acknowledgement from the receiver.
pub(crate) fn answer(number: u32) -> Segment {
    Segment { seq: SeqNum(5000), ..ack(number) }
}

pub(crate) fn ack(number: u32) -> Segment {
    Segment { ack: SeqNum(number), wnd: 100_000, flags: Flags::ACK, ..Segment::default() }
}

pub(crate) fn sack(number: u32, blocks: &[(u32, u32)]) -> Segment {
    let mut segment = answer(number);
    for &(start, end) in blocks {
        segment.sack.push(SackBlock { start: SeqNum(start), end: SeqNum(end) });
    }
    segment
}
