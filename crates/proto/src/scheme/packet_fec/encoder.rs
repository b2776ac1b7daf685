//! The entrance of the tunnel.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

use super::PacketFec;
use crate::component::{Encoded, Out, Port, Signal};
use crate::packet::{Body, Coded, Dscp, Ecn, Handle, HostId, Packet, Symbol};
use crate::scheme::Site;

/// Bytes of a repair packet that protect the length of the source packets.
const LENGTH_FIELD: Bytes = Bytes(2);

/// Counts packets into blocks and closes these with repair packets.
#[derive(Debug)]
pub(super) struct Encoder {
    code: PacketFec,
    wait: Duration,
    /// By mobile host.
    hosts: BTreeMap<HostId, Blocks>,
    /// When each block is closed with what it has, in the order in which they were opened. Blocks after the first may be closed
    /// already.
    closings: VecDeque<(Time, HostId, u32)>,
    /// Packets sent.
    sources: u64,
    repairs: u64,
}

/// The open blocks of a mobile host.
#[derive(Debug)]
struct Blocks {
    /// Packets take turns between them.
    open: Vec<Option<Block>>,
    turn: usize,
    /// The number of the next block.
    next: u32,
}

/// A block that takes packets.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: u32,
    sources: u8,
    /// Length of its longest packet.
    longest: Bytes,
    /// Its last packet.
    last: Packet,
}

impl Encoder {
    pub(super) fn new(code: &PacketFec, site: &Site<'_>) -> Encoder {
        Encoder {
            code: code.clone(),
            wait: code.wait(site.rate),
            hosts: BTreeMap::new(),
            closings: VecDeque::new(),
            sources: 0,
            repairs: 0,
        }
    }

    /// The source packets and repair packets sent.
    pub(super) fn sent(&self) -> (u64, u64) {
        (self.sources, self.repairs)
    }

    pub(super) fn deadline(&self) -> Time {
        self.closings.front().map_or(Time::NEVER, |(at, ..)| *at)
    }

    /// A packet to or from `host`.
    pub(super) fn receive(&mut self, now: Time, packet: &Packet, host: HostId, out: &mut Out) {
        let turns = usize::from(self.code.interleave);
        let blocks =
            self.hosts.entry(host).or_insert_with(|| Blocks { open: vec![None; turns], turn: 0, next: 0 });
        let turn = blocks.turn;
        blocks.turn = (turn + 1) % turns;
        let block = blocks.open[turn].get_or_insert_with(|| {
            let number = blocks.next;
            blocks.next += 1;
            self.closings.push_back((now + self.wait, host, number));
            Block { number, sources: 0, longest: Bytes::ZERO, last: *packet }
        });
        let symbol = Symbol::Source { index: block.sources };
        block.sources += 1;
        block.longest = block.longest.max(packet.size);
        block.last = *packet;
        out.signal(Signal::Encoded(Encoded { packet: *packet, block: block.number }));
        let body = Body::Coded(Coded { block: block.number, symbol });
        let (size, dscp, handle) = (packet.size + self.code.header, Dscp::DEFAULT, Handle::NONE);
        out.send(Port::RADIO, Packet { size, dscp, handle, body, ..*packet });
        self.sources += 1;
        if block.sources == self.code.k {
            self.close(host, turn, out);
            self.forget_closed();
        }
    }

    /// Closes the blocks that have waited long enough.
    pub(super) fn close_until(&mut self, now: Time, out: &mut Out) {
        while let Some(&(_, host, number)) = self.closings.front().filter(|(at, ..)| *at <= now) {
            if let Some(turn) = self.open_at(host, number) {
                self.close(host, turn, out);
            }
            self.forget_closed();
        }
    }

    fn open_at(&self, host: HostId, number: u32) -> Option<usize> {
        self.hosts[&host].open.iter().position(|block| block.is_some_and(|block| block.number == number))
    }

    fn forget_closed(&mut self) {
        while self.closings.front().is_some_and(|&(_, host, number)| self.open_at(host, number).is_none()) {
            self.closings.pop_front();
        }
    }

    fn close(&mut self, host: HostId, turn: usize, out: &mut Out) {
        let blocks = self.hosts.get_mut(&host).expect("the host has blocks");
        let Some(Block { number, sources, longest, last }) = blocks.open[turn].take() else { return };
        let size = longest + LENGTH_FIELD + self.code.header;
        for index in 0..self.code.repairs(sources) {
            let body = Body::Coded(Coded { block: number, symbol: Symbol::Repair { index, sources } });
            let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE);
            out.send(Port::RADIO, Packet { size, dscp, ecn, handle, body, ..last });
            self.repairs += 1;
        }
    }
}
