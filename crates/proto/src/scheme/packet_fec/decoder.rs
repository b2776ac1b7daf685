//! The egress of the tunnel.
//!
//! A source packet passes through these states:
//!
//! ```text
//!            arrives or is recovered        no gap before it
//!  Awaited ──────────────────────────▶ Held ────────────────▶ Delivered    (immediately unless `in_order`)
//!     │
//!     └────── given up ──────▶ Lost ── arrives or is recovered late ──▶ Late
//! ```

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};

use super::{PacketFec, mobile_host};
use crate::component::{Encoded, Out, Port, Tally};
use crate::packet::{Body, Coded, DropReason, Ecn, HostId, Packet, Symbol};
use crate::scheme::{LinkEnd, Site};

const REMEMBERED: u32 = PacketFec::REMEMBERED;

/// Recovers lost packets, and delivers packets in order.
#[derive(Debug)]
pub(super) struct Decoder {
    code: PacketFec,
    hold: Duration,
    /// The end of the link at which the ingress is.
    from: LinkEnd,
    /// The hosts served here; `None` at a base station, which serves all mobile hosts.
    local_hosts: Option<BTreeSet<HostId>>,
    hosts: BTreeMap<HostId, HostDecoder>,
    /// Lower bound of the deadlines of all hosts.
    deadline: Time,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    recovered: u64,
    /// Packets lost with too many others of their block. Known to the simulation only, not to the egress.
    unrecovered: u64,
    given_up: u64,
    late: u64,
    unneeded: u64,
    /// Packets that have not arrived.
    awaited: u64,
    /// Packets that wait behind gaps, and their peak.
    held: u64,
    held_peak: u64,
}

/// The decoding state of a mobile host.
#[derive(Debug)]
struct HostDecoder {
    blocks: BTreeMap<u32, Block>,
    /// Block and index of the source packets that are neither delivered nor skipped, in the order of encoding.
    order: VecDeque<(u32, u8)>,
    /// Number of packets in `order` that have arrived or were recovered in time.
    buffered: usize,
    /// Start of the gap at the front of `order`: the arrival of the first packet behind it. [`Time::NEVER`] without a gap.
    gap_since: Time,
    /// The highest block number that has arrived.
    latest_arrived: u32,
    /// The highest block number that was encoded.
    latest_encoded: u32,
    /// The awaited packets of all blocks below this number were given up because a later block was complete.
    given_up_before: u32,
}

#[derive(Debug, Default)]
struct Block {
    sources: Vec<Source>,
    /// Source packets of the block that have arrived.
    arrived: u16,
    /// The indices of its repair packets that have arrived.
    repairs: Vec<u8>,
    /// The number of source packets, once known.
    size: Option<u8>,
    /// The same, taken from lost repair packets too. Known to the simulation only, not to the egress.
    true_size: Option<u8>,
    /// Source and repair packets of the block that the link has dropped.
    dropped: u16,
    /// Number of source packets removed from [`HostDecoder::order`].
    consumed: usize,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    packet: Packet,
    state: State,
    /// Whether the link has dropped it.
    is_dropped: bool,
    /// Whether it was reported as lost.
    is_reported: bool,
}

/// The state of a source packet, with the time of its arrival or recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Awaited,
    Held(Time),
    Delivered(Time),
    Lost,
    Late,
}

impl Decoder {
    pub(super) fn new(code: &PacketFec, site: &Site<'_>) -> Decoder {
        Decoder {
            hold: code.hold(site.arriving_rate),
            code: code.clone(),
            from: match site.end {
                LinkEnd::BaseStation => LinkEnd::MobileHost,
                LinkEnd::MobileHost => LinkEnd::BaseStation,
            },
            local_hosts: site.hosts.cloned(),
            hosts: BTreeMap::new(),
            deadline: Time::NEVER,
            counters: Counters::default(),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// Registers a packet that the ingress has encoded.
    pub(super) fn on_encoded(&mut self, encoded: &Encoded) {
        let host = mobile_host(&encoded.packet, self.from);
        if self.local_hosts.as_ref().is_some_and(|hosts| !hosts.contains(&host)) {
            return;
        }
        let decoder = self.hosts.entry(host).or_insert_with(HostDecoder::new);
        let block = decoder.blocks.entry(encoded.block).or_default();
        decoder.order.push_back((encoded.block, block.sources.len() as u8));
        decoder.latest_encoded = decoder.latest_encoded.max(encoded.block);
        self.counters.awaited += 1;
        let (packet, state) = (encoded.packet, State::Awaited);
        block.sources.push(Source { packet, state, is_dropped: false, is_reported: false });
    }

    /// Calls `visit` with the packets that are not delivered and may still be.
    pub(super) fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        let blocks = self.hosts.values().flat_map(|host| host.blocks.values());
        let sources = blocks.flat_map(|block| &block.sources);
        let missing = sources.filter(|source| !matches!(source.state, State::Delivered(_) | State::Late));
        missing.for_each(|source| visit(&source.packet));
    }

    /// Processes a packet from the link.
    pub(super) fn receive(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let Body::Coded(coded) = packet.body else { return out.send(Port::WIRED, *packet) };
        let Decoder { code, hold, counters, deadline, .. } = self;
        let Some(decoder) = self.hosts.get_mut(&mobile_host(packet, self.from)) else { return };
        decoder.latest_arrived = decoder.latest_arrived.max(coded.block);
        let mut delivery = Delivery { now, code, counters, out };
        decoder.receive(packet.ecn, coded, &mut delivery);
        decoder.drop_old(&mut delivery);
        decoder.advance(*hold, &mut delivery);
        *deadline = (*deadline).min(decoder.deadline(*hold));
    }

    /// Accounts for a packet that the link has dropped: reports packets lost beyond recovery. Has no effect on deliveries.
    pub(super) fn on_lost(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let Body::Coded(coded) = packet.body else { return };
        let Decoder { code, counters, .. } = self;
        if let Some(decoder) = self.hosts.get_mut(&mobile_host(packet, self.from)) {
            let mut delivery = Delivery { now, code, counters, out };
            decoder.on_lost(coded, &mut delivery);
            decoder.drop_lost(&mut delivery);
        }
    }

    /// Gives up the gaps behind which packets have waited for `hold`.
    pub(super) fn give_up_expired(&mut self, now: Time, out: &mut Out) {
        if now < self.deadline {
            return;
        }
        let Decoder { code, hold, counters, .. } = self;
        let mut delivery = Delivery { now, code, counters, out };
        for decoder in self.hosts.values_mut() {
            decoder.advance(*hold, &mut delivery);
        }
        self.deadline =
            self.hosts.values().map(|decoder| decoder.deadline(*hold)).min().unwrap_or(Time::NEVER);
    }

    pub(super) fn count(&self, tally: &mut dyn Tally) {
        let Counters { recovered, unrecovered, given_up, late, unneeded, awaited, held, held_peak } =
            self.counters;
        tally.total("recovered_packets", recovered);
        tally.total("unrecovered_packets", unrecovered);
        tally.total("given_up_packets", given_up);
        tally.total("passed_late_packets", late);
        tally.total("unneeded_packets", unneeded);
        tally.level("awaited_packets", awaited);
        tally.level("held_packets", held);
        tally.peak("held_packets_peak", held_peak);
    }
}

/// Delivers packets, and updates the counters.
struct Delivery<'a> {
    now: Time,
    code: &'a PacketFec,
    counters: &'a mut Counters,
    out: &'a mut Out,
}

impl Delivery<'_> {
    /// Takes a source packet that has arrived or was recovered, and returns its new state.
    fn arrive(&mut self, source: &Source) -> State {
        self.counters.awaited -= u64::from(source.state == State::Awaited);
        match source.state {
            State::Awaited if self.code.in_order => {
                self.counters.held += 1;
                self.counters.held_peak = self.counters.held_peak.max(self.counters.held);
                State::Held(self.now)
            }
            State::Awaited => {
                self.out.send(Port::WIRED, source.packet);
                State::Delivered(self.now)
            }
            State::Lost => {
                self.counters.late += 1;
                self.out.send(Port::WIRED, source.packet);
                State::Late
            }
            State::Held(_) | State::Delivered(_) | State::Late => source.state,
        }
    }

    /// Delivers a held packet.
    fn release(&mut self, source: &Source) {
        self.counters.held -= 1;
        self.out.send(Port::WIRED, source.packet);
    }

    fn give_up(&mut self, source: &mut Source) {
        if source.state == State::Awaited {
            source.state = State::Lost;
            self.counters.awaited -= 1;
            self.counters.given_up += 1;
        }
    }

    /// Reports a source packet as lost beyond recovery.
    fn report(&mut self, source: &mut Source) {
        source.is_reported = true;
        self.counters.unrecovered += 1;
        self.out.drop(source.packet, DropReason::Unrecovered);
    }
}

impl HostDecoder {
    fn new() -> HostDecoder {
        HostDecoder {
            blocks: BTreeMap::new(),
            order: VecDeque::new(),
            buffered: 0,
            gap_since: Time::NEVER,
            latest_arrived: 0,
            latest_encoded: 0,
            given_up_before: 0,
        }
    }

    fn deadline(&self, hold: Duration) -> Time {
        if self.gap_since == Time::NEVER { Time::NEVER } else { self.gap_since + hold }
    }

    /// Processes a source or repair packet; `ecn` is the outer ECN field.
    fn receive(&mut self, ecn: Ecn, coded: Coded, delivery: &mut Delivery<'_>) {
        // The state of a block is dropped once all of it is delivered, or `REMEMBERED` blocks later.
        let Some(block) = self.blocks.get_mut(&coded.block) else { return delivery.counters.unneeded += 1 };
        let mut is_needed = false;
        match coded.symbol {
            Symbol::Source { index } => {
                if index + 1 == delivery.code.k {
                    block.size = Some(delivery.code.k);
                }
                let source = &mut block.sources[usize::from(index)];
                if ecn == Ecn::Ce && source.packet.ecn.is_capable() {
                    source.packet.ecn = Ecn::Ce;
                }
                is_needed = source.is_missing();
                block.arrived += u16::from(is_needed);
                self.buffered += usize::from(source.arrive(delivery));
            }
            Symbol::Repair { index, sources } => {
                if !block.repairs.contains(&index) {
                    block.repairs.push(index);
                }
                (block.size, block.true_size) = (Some(sources), Some(sources));
                block.report_lost(delivery);
            }
        }
        let available = block.arrived + block.repairs.len() as u16;
        let is_complete = block.size.is_some_and(|size| available >= u16::from(size));
        if is_complete {
            for source in block.sources.iter_mut().filter(|source| source.is_missing()) {
                is_needed = true;
                block.arrived += 1;
                delivery.counters.recovered += 1;
                self.buffered += usize::from(source.arrive(delivery));
            }
            self.remove_settled(coded.block);
            // The link preserves order, so nothing more of earlier blocks can arrive.
            let open = u32::from(delivery.code.interleave);
            self.give_up_before((coded.block + 1).saturating_sub(open), delivery);
            delivery.counters.unneeded += u64::from(!is_needed);
        }
    }

    /// Gives up the awaited packets of all blocks before `end`.
    fn give_up_before(&mut self, end: u32, delivery: &mut Delivery<'_>) {
        if self.given_up_before < end {
            let blocks = self.blocks.range_mut(self.given_up_before..end);
            blocks.flat_map(|(_, block)| &mut block.sources).for_each(|source| delivery.give_up(source));
            self.given_up_before = end;
        }
    }

    /// Gives up the awaited packets at the front.
    fn give_up_gap(&mut self, delivery: &mut Delivery<'_>) {
        for &(number, index) in &self.order {
            let source = self.blocks.get_mut(&number).map(|block| &mut block.sources[usize::from(index)]);
            match source {
                Some(source) if source.state == State::Awaited => delivery.give_up(source),
                _ => break,
            }
        }
    }

    fn on_lost(&mut self, coded: Coded, delivery: &mut Delivery<'_>) {
        let Some(block) = self.blocks.get_mut(&coded.block) else { return };
        block.dropped += 1;
        match coded.symbol {
            Symbol::Source { index } => block.sources[usize::from(index)].is_dropped = true,
            Symbol::Repair { sources, .. } => block.true_size = Some(sources),
        }
        block.report_lost(delivery);
    }

    /// Bounds memory on a dead link: drops the state of packets lost `REMEMBERED` blocks ago if nothing has arrived since.
    fn drop_lost(&mut self, delivery: &mut Delivery<'_>) {
        while self.buffered == 0
            && let Some(&(number, index)) = self.order.front()
            && number + REMEMBERED < self.latest_encoded
        {
            let block =
                self.blocks.get_mut(&number).expect("a block is kept while its packets are in `order`");
            let source = &mut block.sources[usize::from(index)];
            if !source.is_reported {
                break;
            }
            delivery.give_up(source);
            block.consumed += 1;
            self.order.pop_front();
            if block.consumed == block.sources.len() {
                self.blocks.remove(&number);
            }
        }
    }

    /// Drops the state of blocks more than `REMEMBERED` behind the latest.
    fn drop_old(&mut self, delivery: &mut Delivery<'_>) {
        self.give_up_before(self.latest_arrived.saturating_sub(REMEMBERED), delivery);
        while let Some(first) = self.blocks.first_entry()
            && first.key() + REMEMBERED < self.latest_arrived
            && first.get().consumed == first.get().sources.len()
        {
            first.remove();
        }
    }

    /// Delivers packets in order, and skips gaps behind which packets have waited for `hold`.
    fn advance(&mut self, hold: Duration, delivery: &mut Delivery<'_>) {
        self.deliver_in_order(delivery);
        while self.deadline(hold) <= delivery.now {
            self.give_up_gap(delivery);
            self.deliver_in_order(delivery);
        }
    }

    fn deliver_in_order(&mut self, delivery: &mut Delivery<'_>) {
        while let Some(&(number, index)) = self.order.front() {
            let block =
                self.blocks.get_mut(&number).expect("a block is kept while its packets are in `order`");
            let source = &mut block.sources[usize::from(index)];
            match source.state {
                State::Awaited => break,
                State::Held(at) => {
                    delivery.release(source);
                    source.state = State::Delivered(at);
                    self.buffered -= 1;
                }
                State::Delivered(_) => self.buffered -= 1,
                State::Lost | State::Late => {}
            }
            block.consumed += 1;
            self.order.pop_front();
            self.gap_since = Time::NEVER;
            self.remove_settled(number);
        }
        if self.gap_since == Time::NEVER && self.buffered > 0 {
            let arrival =
                |&(number, index): &(u32, u8)| match self.blocks[&number].sources[usize::from(index)].state {
                    State::Held(at) | State::Delivered(at) => Some(at),
                    State::Awaited | State::Lost | State::Late => None,
                };
            self.gap_since = self.order.iter().find_map(arrival).unwrap_or(Time::NEVER);
        }
    }

    /// Drops the state of a block once all of it is delivered.
    fn remove_settled(&mut self, number: u32) {
        if self.blocks.get(&number).is_some_and(Block::is_settled) {
            self.blocks.remove(&number);
        }
    }
}

impl Block {
    /// Reports the lost source packets of the block if more packets are lost than it has repair packets.
    fn report_lost(&mut self, delivery: &mut Delivery<'_>) {
        let is_full = self.sources.len() == usize::from(delivery.code.k);
        let size = if is_full { delivery.code.k } else { self.true_size.unwrap_or(delivery.code.k) };
        if self.dropped > u16::from(delivery.code.repairs(size)) {
            let lost = self.sources.iter_mut().filter(|source| source.is_dropped && !source.is_reported);
            lost.filter(|source| source.is_missing()).for_each(|source| delivery.report(source));
        }
    }

    /// Whether all source packets are delivered.
    fn is_settled(&self) -> bool {
        self.size.is_some_and(|size| self.consumed == usize::from(size))
            && self.sources.iter().all(|source| source.state != State::Lost)
    }
}

impl Source {
    fn is_missing(&self) -> bool {
        matches!(self.state, State::Awaited | State::Lost)
    }

    /// Marks the packet as arrived or recovered; returns whether it was still awaited.
    fn arrive(&mut self, delivery: &mut Delivery<'_>) -> bool {
        let is_in_time = self.state == State::Awaited;
        self.state = delivery.arrive(self);
        is_in_time
    }
}
