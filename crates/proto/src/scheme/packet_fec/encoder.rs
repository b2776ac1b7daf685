//! The ingress of the tunnel.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

use super::PacketFec;
use crate::component::{Encoded, Out, Port, Signal};
use crate::packet::{Body, Coded, Dscp, Ecn, Handle, HostId, Packet, Symbol};
use crate::scheme::Site;

/// Field of a repair packet that protects the lengths of the source packets.
pub(super) const LENGTH_FIELD: Bytes = Bytes(2);

/// Groups packets into blocks, and sends repair packets when a block closes.
#[derive(Debug)]
pub(super) struct Encoder {
    code: PacketFec,
    wait: Duration,
    hosts: BTreeMap<HostId, OpenBlocks>,
    /// Deadline of each block, in the order of opening. Entries behind the front may belong to closed blocks.
    deadlines: VecDeque<(Time, HostId, u32)>,
    /// Source packets sent.
    sources: u64,
    /// Repair packets sent.
    repairs: u64,
}

/// The open blocks of a mobile host.
#[derive(Debug)]
struct OpenBlocks {
    /// One slot for each interleaved block; `None` until its next packet.
    slots: Vec<Option<Block>>,
    /// The slot of the next packet.
    next_slot: usize,
    /// The number of the next block.
    next_number: u32,
}

/// An open block.
#[derive(Clone, Copy, Debug)]
struct Block {
    number: u32,
    sources: u8,
    /// Length of its longest packet.
    longest: Bytes,
    /// Its latest packet, whose addresses the repair packets have.
    last: Packet,
}

impl Encoder {
    pub(super) fn new(code: &PacketFec, site: &Site<'_>) -> Encoder {
        Encoder {
            code: code.clone(),
            wait: code.wait(site.rate),
            hosts: BTreeMap::new(),
            deadlines: VecDeque::new(),
            sources: 0,
            repairs: 0,
        }
    }

    /// Source packets and repair packets sent.
    pub(super) fn sent(&self) -> (u64, u64) {
        (self.sources, self.repairs)
    }

    pub(super) fn set_n(&mut self, n: u8) {
        self.code.n = n.max(self.code.k);
    }

    pub(super) fn deadline(&self) -> Time {
        self.deadlines.front().map_or(Time::NEVER, |(at, ..)| *at)
    }

    /// Forwards a packet to or from `host`, and closes its block if that is full.
    pub(super) fn receive(&mut self, now: Time, packet: &Packet, host: HostId, out: &mut Out) {
        let interleave = usize::from(self.code.interleave);
        let blocks = self.hosts.entry(host).or_insert_with(|| OpenBlocks {
            slots: vec![None; interleave],
            next_slot: 0,
            next_number: 0,
        });
        let slot = blocks.next_slot;
        blocks.next_slot = (slot + 1) % interleave;
        let block = blocks.slots[slot].get_or_insert_with(|| {
            let number = blocks.next_number;
            blocks.next_number += 1;
            self.deadlines.push_back((now + self.wait, host, number));
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
            self.close(host, slot, out);
            self.drop_closed_deadlines();
        }
    }

    /// Closes the blocks whose deadline has passed.
    pub(super) fn close_expired(&mut self, now: Time, out: &mut Out) {
        while let Some(&(_, host, number)) = self.deadlines.front().filter(|(at, ..)| *at <= now) {
            if let Some(slot) = self.slot_of(host, number) {
                self.close(host, slot, out);
            }
            self.drop_closed_deadlines();
        }
    }

    /// The slot of an open block; `None` if it is closed.
    fn slot_of(&self, host: HostId, number: u32) -> Option<usize> {
        self.hosts[&host].slots.iter().position(|block| block.is_some_and(|block| block.number == number))
    }

    fn drop_closed_deadlines(&mut self) {
        while self.deadlines.front().is_some_and(|&(_, host, number)| self.slot_of(host, number).is_none()) {
            self.deadlines.pop_front();
        }
    }

    fn close(&mut self, host: HostId, slot: usize, out: &mut Out) {
        let blocks = self.hosts.get_mut(&host).expect("the host has blocks");
        let Some(Block { number, sources, longest, last }) = blocks.slots[slot].take() else { return };
        let size = longest + LENGTH_FIELD + self.code.header;
        for index in 0..self.code.repairs(sources) {
            let body = Body::Coded(Coded { block: number, symbol: Symbol::Repair { index, sources } });
            let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE);
            out.send(Port::RADIO, Packet { size, dscp, ecn, handle, body, ..last });
            self.repairs += 1;
        }
    }
}
