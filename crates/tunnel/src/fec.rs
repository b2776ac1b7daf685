//! Packets of a class with a code across packets: those of the laboratory's `packet-fec`, with bytes.
//!
//! ```text
//! packet ──> end of packet-fec ──> source and repair packets ──> end of packet-fec ──> packet
//!                      │             header: block, index,              ^
//!                      └ Encoded     which packets begin blocks ──> Encoded, inferred
//! ```
//!
//! The two ends of `packet-fec` decide when blocks close, what is repaired, held and given up. Here are the bytes: of open blocks
//! at the ingress, which makes repair symbols of them, and of recent blocks at the egress. In a simulation the egress watches
//! the ingress. Here it learns the same from headers, in which each packet tells which of the 64 before it have begun a block.

use std::collections::BTreeMap;

use lasthop_base::{BitRate, Bytes, Duration, Streams, Time};
use lasthop_proto::scheme::parameters::PacketFec;
use lasthop_proto::scheme::{LinkEnd, Site, TunnelEnd};
use lasthop_proto::{
    Body, Coded, Component, Datagram, Dscp, Ecn, Effect, Encoded, FlowId, Handle, HostId, Out, Packet, Port,
    Signal, Symbol, Tally,
};

use crate::erasure;
use crate::exits::Deliver;
use crate::message::CodedHeader;
use crate::outer::Tos;

/// Packets that a header tells about.
const HISTORY: u32 = u64::BITS;

/// The most blocks, and bytes of them, that an egress keeps.
const BLOCKS: usize = 256;
const BYTES: usize = 4 << 20;

/// The most packets, source and repair, of all blocks that are open at a time, by which the other end has room for those that
/// are open and for as many that are held, with packets of `packet_size` bytes.
pub fn most_open_packets(packet_size: usize) -> usize {
    BYTES / (2 * packet_size)
}

/// The highest numbers of blocks and packets. The other end starts anew long before.
const HIGHEST: u32 = u32::MAX - (1 << 16);

/// One end of the code, as of a link of this rate.
fn end_of(scheme: &PacketFec, end: LinkEnd, rate: BitRate) -> TunnelEnd {
    scheme.end(&Site {
        end,
        is_router: false,
        node: "gateway",
        station: None,
        link: "tunnel",
        rate,
        delay: Duration::ZERO,
        arriving_rate: rate,
        hosts: None,
        peers: &[],
        streams: Streams::new(0, 0),
    })
}

/// A packet for the component, which finds its bytes by `id`.
fn packet_of(id: u64, len: usize) -> Packet {
    Packet {
        src: HostId(0),
        dst: HostId(1),
        flow: FlowId(0),
        size: Bytes(len as u64),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Datagram(Datagram { seq: id, sent: Time::ZERO }),
    }
}

/// Takes a message: a header, what follows it, and the outer octet.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(CodedHeader, &[u8], Tos);

/// The ingress.
#[derive(Debug)]
pub(crate) struct FecSender {
    end: TunnelEnd,
    out: Out,
    /// How many packets full blocks have, source ones and all.
    k: u8,
    n: u8,
    /// Number of source packets, and which of them have begun a block.
    sent: u32,
    history: u64,
    /// Successive packets go to successive ones.
    open: Vec<Option<OpenBlock>>,
}

#[derive(Debug)]
struct OpenBlock {
    number: u32,
    /// That of the latest packet. Repair packets have it too, and no marks, which nobody could give to a packet.
    dscp: Dscp,
    packets: Vec<Vec<u8>>,
}

impl FecSender {
    pub(crate) fn new(scheme: &PacketFec, rate: BitRate) -> FecSender {
        FecSender {
            end: end_of(scheme, LinkEnd::BaseStation, rate),
            out: Out::default(),
            k: scheme.k,
            n: scheme.n,
            sent: 0,
            history: 0,
            open: (0..scheme.interleave).map(|_| None).collect(),
        }
    }

    /// Number of source packets.
    pub(crate) fn sent(&self) -> u32 {
        self.sent
    }

    /// Changes how many packets full blocks have.
    pub(crate) fn set_n(&mut self, n: u8) {
        self.n = n;
        self.end.set_n(n);
    }

    /// How many packets of a full block may be lost, and so leave together; no limit if the code repairs nothing.
    ///
    /// Its price: a batch has at most `interleave` times so many datagrams of full blocks. With `n - k = 1` and without interleaving,
    /// each takes a system call of its own.
    pub(crate) fn redundancy(&self) -> usize {
        if self.n > self.k { usize::from(self.n - self.k) } else { usize::MAX }
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        self.end.next_wakeup()
    }

    pub(crate) fn send(&mut self, now: Time, tos: Tos, packet: &[u8], emit: Emit<'_>) {
        self.end.receive(now, &packet_of(0, packet.len()), Port::WIRED, &mut self.out);
        self.carry_out(tos, packet, emit);
    }

    pub(crate) fn wake(&mut self, now: Time, emit: Emit<'_>) {
        if self.end.next_wakeup() <= now {
            self.end.wake(now, &mut self.out);
            self.carry_out(Tos::default(), &[], emit);
        }
    }

    fn carry_out(&mut self, tos: Tos, packet: &[u8], emit: Emit<'_>) {
        while let Some((_, effect)) = self.out.take() {
            match effect {
                Effect::Signal(Signal::Encoded(Encoded { block, .. })) => {
                    let slot = self.sent as usize % self.open.len();
                    let begins = self.open[slot].as_ref().is_none_or(|open| open.number != block);
                    if begins {
                        self.open[slot] =
                            Some(OpenBlock { number: block, dscp: tos.dscp, packets: Vec::new() });
                    }
                    if let Some(open) = &mut self.open[slot] {
                        open.dscp = tos.dscp;
                        open.packets.push(packet.to_vec());
                    }
                    self.history = self.history << 1 | u64::from(begins);
                    self.sent += 1;
                }
                Effect::Send(Port::RADIO, Packet { body: Body::Coded(Coded { block, symbol }), .. }) => {
                    let header = CodedHeader { sent: self.sent, history: self.history, block, symbol };
                    match symbol {
                        Symbol::Source { .. } => emit(header, packet, tos),
                        Symbol::Repair { index, .. } => {
                            let found = self.open.iter().flatten().find(|open| open.number == block);
                            if let Some(open) = found {
                                let tos = Tos { dscp: open.dscp, ecn: Ecn::NotEct };
                                emit(header, &erasure::repair_symbol(index, &open.packets), tos);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// What an egress has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FecCounters {
    /// Packets that were lost, and computed from others.
    pub recovered: u64,
    /// Packets that were lost beyond recovery.
    pub unrecovered: u64,
}

impl FecCounters {
    pub(crate) fn add(&mut self, other: FecCounters) {
        self.recovered += other.recovered;
        self.unrecovered += other.unrecovered;
    }
}

/// A rate for the end at the egress, of which all times are stated.
fn any_rate() -> BitRate {
    BitRate::from_bps(1).expect("not zero")
}

/// The egress.
#[derive(Debug)]
pub(crate) struct FecReceiver {
    scheme: PacketFec,
    end: TunnelEnd,
    out: Out,
    /// Number of source packets that the end knows of, arrived or not.
    sent: u32,
    next_block: u32,
    /// The first block, and the number of the first source packet, since this end last began anew.
    first_block: u32,
    first: u32,
    /// The block of each slot.
    slots: Vec<Option<u32>>,
    blocks: BTreeMap<u32, Block>,
    bytes: usize,
    recovered: u64,
    /// Packets lost beyond recovery that ends before this one knew of.
    former_unrecovered: u64,
}

/// What an end of the code counts.
#[derive(Debug, Default)]
struct Totals {
    given_up: u64,
    late: u64,
    awaited: u64,
}

impl Tally for Totals {
    fn total(&mut self, name: &'static str, value: u64) {
        match name {
            "given_up_packets" => self.given_up = value,
            "passed_late_packets" => self.late = value,
            _ => {}
        }
    }

    fn level(&mut self, name: &'static str, value: u64) {
        if name == "awaited_packets" {
            self.awaited = value;
        }
    }

    fn peak(&mut self, _name: &'static str, _value: u64) {}
}

/// A block of which packets are known.
#[derive(Debug, Default)]
struct Block {
    sources: Vec<Source>,
    repairs: Vec<(u8, Vec<u8>)>,
    /// Number of source packets, once known.
    size: Option<u8>,
}

#[derive(Debug)]
struct Source {
    /// Its number among all.
    number: u32,
    bytes: Option<Vec<u8>>,
    /// The mark of its datagram, if it was not lost.
    outer: Ecn,
    is_delivered: bool,
}

impl Block {
    fn bytes(&self) -> usize {
        let sources = self.sources.iter().filter_map(|source| source.bytes.as_ref());
        sources.chain(self.repairs.iter().map(|(_, symbol)| symbol)).map(Vec::len).sum()
    }

    /// Whether packets are to be delivered that have arrived, or can be recovered.
    fn has_waiting(&self) -> bool {
        let arrived = self.sources.iter().filter(|source| source.bytes.is_some()).count();
        let is_complete = self.size.is_some_and(|size| arrived + self.repairs.len() >= usize::from(size));
        self.sources.iter().any(|source| !source.is_delivered && (is_complete || source.bytes.is_some()))
    }

    fn is_over(&self) -> bool {
        self.size.is_some_and(|size| self.sources.len() == usize::from(size))
            && self.sources.iter().all(|source| source.is_delivered)
    }
}

impl FecReceiver {
    pub(crate) fn new(k: u8, interleave: u8, in_order: bool, hold: Duration) -> FecReceiver {
        let scheme =
            PacketFec { k, n: u8::MAX, interleave, in_order, hold: Some(hold), ..PacketFec::default() };
        FecReceiver {
            end: end_of(&scheme, LinkEnd::MobileHost, any_rate()),
            out: Out::default(),
            sent: 0,
            next_block: 0,
            first_block: 0,
            first: 0,
            slots: vec![None; interleave.into()],
            blocks: BTreeMap::new(),
            bytes: 0,
            recovered: 0,
            former_unrecovered: 0,
            scheme,
        }
    }

    pub(crate) fn counters(&self) -> FecCounters {
        let mut totals = Totals::default();
        self.end.count(&mut totals);
        let unrecovered = self.former_unrecovered + totals.given_up - totals.late;
        FecCounters { recovered: self.recovered, unrecovered }
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        self.end.next_wakeup()
    }

    /// The bytes of packets and repair symbols that are kept.
    #[cfg(test)]
    pub(crate) fn kept_bytes(&self) -> usize {
        self.blocks.values().map(Block::bytes).sum()
    }

    /// Takes a message of the class; `deliver` gets the packets that leave.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        header: CodedHeader,
        rest: &[u8],
        outer: Ecn,
        deliver: Deliver<'_>,
    ) {
        let CodedHeader { block, symbol, .. } = header;
        let (in_block, is_source) = match symbol {
            Symbol::Source { index } => (index.checked_add(1), true),
            Symbol::Repair { sources, .. } => (Some(sources), false),
        };
        let Some(in_block) = in_block.filter(|count| (1..=self.scheme.k).contains(count)) else { return };
        if block.max(header.sent) > HIGHEST {
            return;
        }
        self.learn(now, header, is_source, deliver);
        if block < self.first_block {
            // What has arrived of its block before is not known any more, so that nothing can be recovered of it.
            if is_source && header.sent > self.first {
                deliver(rest, outer);
            }
            return;
        }
        // What was delivered or given up long ago is not known any more.
        if !self.blocks.contains_key(&block) && block < self.next_block {
            return;
        }
        self.next_block = self.next_block.max(block.saturating_add(1));
        let known = self.blocks.get(&block).map_or(0, |found| found.sources.len());
        (known..in_block.into()).for_each(|_| self.register(now, block, self.sent));
        // A block that is closed has no more packets.
        let has_room = |found: &&mut Block| found.sources.len() >= usize::from(in_block);
        let Some(found) = self.blocks.get_mut(&block).filter(has_room) else { return };
        match symbol {
            Symbol::Source { index } => {
                let source = &mut found.sources[usize::from(index)];
                if source.bytes.is_some() {
                    return;
                }
                (source.bytes, source.outer) = (Some(rest.to_vec()), outer);
                if index + 1 == self.scheme.k {
                    found.size = Some(index + 1);
                }
            }
            Symbol::Repair { index, sources } => {
                // One of another size is of another block.
                let is_of_another = found.sources.len() != usize::from(sources)
                    || found.size.is_some_and(|size| size != sources);
                let is_known = found.repairs.iter().any(|(known, _)| *known == index);
                if is_of_another || is_known || rest.len() < erasure::LENGTH {
                    return;
                }
                found.size = Some(sources);
                found.repairs.push((index, rest.to_vec()));
            }
        }
        self.bytes += rest.len();
        let coded = Packet { body: Body::Coded(Coded { block, symbol }), ..packet_of(0, rest.len()) };
        self.end.receive(now, &coded, Port::RADIO, &mut self.out);
        self.carry_out(deliver);
        self.forget(deliver);
    }

    /// Gives up what has waited for too long.
    pub(crate) fn wake(&mut self, now: Time, deliver: Deliver<'_>) {
        if self.end.next_wakeup() <= now {
            self.end.wake(now, &mut self.out);
            self.carry_out(deliver);
        }
    }

    /// Lets the end know of the source packets that were sent before this one.
    fn learn(&mut self, now: Time, header: CodedHeader, is_source: bool, deliver: Deliver<'_>) {
        let CodedHeader { sent, history, block, .. } = header;
        let Some(unknown) = sent.checked_sub(self.sent).filter(|unknown| *unknown > 0) else { return };
        if unknown > HISTORY {
            self.begin_anew(sent - u32::from(is_source), deliver);
        }
        for behind in (0..sent - self.sent).rev() {
            let number = sent - 1 - behind;
            let slot = number as usize % self.slots.len();
            if history >> behind & 1 == 1 {
                let new = if is_source && behind == 0 { block.max(self.next_block) } else { self.next_block };
                self.slots[slot] = Some(new);
                self.next_block = new.saturating_add(1);
            } else if is_source && behind == 0 {
                self.slots[slot] = Some(block);
            }
            if let Some(block) = self.slots[slot].filter(|block| *block >= self.first_block) {
                self.register(now, block, number);
            }
        }
        self.sent = sent;
    }

    /// Delivers what waits, and goes on with packet `sent`: too many were lost to tell which they were, or there is no room.
    fn begin_anew(&mut self, sent: u32, deliver: Deliver<'_>) {
        let blocks = std::mem::take(&mut self.blocks);
        let mut waiting: Vec<Source> = blocks.into_values().flat_map(|block| block.sources).collect();
        waiting.retain(|source| !source.is_delivered);
        waiting.sort_by_key(|source| source.number);
        for source in waiting {
            source.bytes.iter().for_each(|bytes| deliver(bytes, source.outer));
        }
        let mut totals = Totals::default();
        self.end.count(&mut totals);
        self.former_unrecovered += totals.given_up - totals.late + totals.awaited;
        self.former_unrecovered += u64::from(sent.saturating_sub(self.sent));
        self.end = end_of(&self.scheme, LinkEnd::MobileHost, any_rate());
        self.slots.fill(None);
        (self.sent, self.bytes) = (sent, 0);
        (self.first_block, self.first) = (self.next_block, sent);
    }

    /// A source packet of `block` was sent. Those of blocks that the end may have dropped are not known any more: it would number
    /// their packets anew.
    fn register(&mut self, now: Time, block: u32, number: u32) {
        if block + PacketFec::REMEMBERED < self.next_block {
            return;
        }
        let found = self.blocks.entry(block).or_default();
        let is_full = found.sources.len() >= usize::from(found.size.unwrap_or(self.scheme.k));
        if is_full {
            return;
        }
        let id = u64::from(block) << 8 | found.sources.len() as u64;
        found.sources.push(Source { number, bytes: None, outer: Ecn::NotEct, is_delivered: false });
        let encoded = Signal::Encoded(Encoded { packet: packet_of(id, 0), block });
        self.end.on_signal(now, &encoded, &mut self.out);
    }

    fn carry_out(&mut self, deliver: Deliver<'_>) {
        while let Some((_, effect)) = self.out.take() {
            if let Effect::Send(Port::WIRED, Packet { body: Body::Datagram(Datagram { seq: id, .. }), .. }) =
                effect
            {
                self.deliver((id >> 8) as u32, id as u8, deliver);
            }
        }
    }

    fn deliver(&mut self, number: u32, index: u8, deliver: Deliver<'_>) {
        let Some(block) = self.blocks.get_mut(&number) else { return };
        if block.sources.get(usize::from(index)).is_some_and(|source| source.bytes.is_none()) {
            let before = block.bytes();
            let mut bytes: Vec<_> = block.sources.iter_mut().map(|source| source.bytes.take()).collect();
            let missing = bytes.iter().filter(|bytes| bytes.is_none()).count() as u64;
            let is_recovered = erasure::recover(&mut bytes, &block.repairs);
            for (source, bytes) in block.sources.iter_mut().zip(bytes) {
                source.bytes = bytes;
            }
            self.bytes += block.bytes() - before;
            self.recovered += if is_recovered { missing } else { 0 };
        }
        let Some(source) = block.sources.get_mut(usize::from(index)) else { return };
        source.is_delivered = true;
        if let Some(bytes) = &source.bytes {
            deliver(bytes, source.outer);
        }
        if block.is_over() {
            self.remove(number);
        }
    }

    fn remove(&mut self, number: u32) {
        if let Some(block) = self.blocks.remove(&number) {
            self.bytes -= block.bytes();
        }
    }

    /// Bounds the memory. Blocks of which nothing can be delivered any more are forgotten; of those that the end has use for, it
    /// must know.
    fn forget(&mut self, deliver: Deliver<'_>) {
        let in_use = 2 * self.slots.len() as u32;
        while (self.blocks.len() > BLOCKS || self.bytes > BYTES)
            && let Some((&oldest, block)) = self.blocks.first_key_value()
        {
            if block.has_waiting() || oldest + in_use >= self.next_block {
                return self.begin_anew(self.sent, deliver);
            }
            self.remove(oldest);
        }
    }
}
