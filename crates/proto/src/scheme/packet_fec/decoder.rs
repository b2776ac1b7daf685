//! The exit of the tunnel.
//!
//! A source packet passes through these states:
//!
//! ```text
//!            arrives, or is recovered          its turn comes
//!  Awaited ───────────────────────────▶ Held ────────────────▶ Passed     (at once if order does not matter)
//!     │
//!     └───── is given up ─────▶ Lost ── arrives, or is recovered, late ──▶ Late
//! ```

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};

use super::{PacketFec, mobile_host};
use crate::component::{Encoded, Out, Port, Tally};
use crate::packet::{Body, Coded, DropReason, Ecn, HostId, Packet, Symbol};
use crate::scheme::{LinkEnd, Site};

/// Number of blocks, from the latest that has arrived, that are remembered.
const REMEMBERED: u32 = 256;

/// Recovers lost packets and passes packets on.
#[derive(Debug)]
pub(super) struct Decoder {
    code: PacketFec,
    hold: Duration,
    /// The end of the link at which the entrance is.
    from: LinkEnd,
    /// The hosts for which packets arrive here; `None` at a base station, where packets of all mobile hosts arrive.
    here: Option<BTreeSet<HostId>>,
    /// By mobile host.
    hosts: BTreeMap<HostId, Exit>,
    /// No gap is given up earlier.
    deadline: Time,
    counters: Counters,
}

#[derive(Debug, Default)]
struct Counters {
    recovered: u64,
    /// Packets lost on the link, as the simulation knows and the exit does not, with too much of their block to recover
    /// them.
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

/// The blocks of a mobile host.
#[derive(Debug)]
struct Exit {
    blocks: BTreeMap<u32, Block>,
    /// The source packets whose turn has not come, in the order in which they were encoded: block and index.
    order: VecDeque<(u32, u8)>,
    /// Number of packets in `order` that have arrived or were recovered in time.
    ahead: usize,
    /// When the first of them arrived, if the front of `order` is awaited: since then there is a gap. Otherwise
    /// [`Time::NEVER`].
    gap: Time,
    /// The latest block of which something has arrived.
    latest: u32,
    /// The latest block that was encoded.
    newest: u32,
    /// The first block of which awaited packets were not given up because of a later block.
    given_up: u32,
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
    /// The same, as the simulation knows it from repair packets that are lost.
    closed: Option<u8>,
    /// Packets of the block that the link has dropped, repair packets included.
    dropped: u16,
    /// Number of source packets that are no longer in [`Exit::order`].
    turned: usize,
}

#[derive(Clone, Copy, Debug)]
struct Source {
    packet: Packet,
    state: State,
    /// Whether the link has dropped it, and whether this was reported as a loss.
    is_dropped: bool,
    is_reported: bool,
}

/// The state of a source packet, with the time of its arrival or recovery.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Awaited,
    Held(Time),
    Passed(Time),
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
            here: site.hosts.cloned(),
            hosts: BTreeMap::new(),
            deadline: Time::NEVER,
            counters: Counters::default(),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        self.deadline
    }

    /// A packet has entered the code.
    pub(super) fn learn(&mut self, encoded: &Encoded) {
        let host = mobile_host(&encoded.packet, self.from);
        if self.here.as_ref().is_some_and(|here| !here.contains(&host)) {
            return;
        }
        let exit = self.hosts.entry(host).or_insert_with(Exit::new);
        let block = exit.blocks.entry(encoded.block).or_default();
        exit.order.push_back((encoded.block, block.sources.len() as u8));
        exit.newest = exit.newest.max(encoded.block);
        self.counters.awaited += 1;
        let (packet, state) = (encoded.packet, State::Awaited);
        block.sources.push(Source { packet, state, is_dropped: false, is_reported: false });
    }

    /// A packet from the link.
    pub(super) fn receive(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let Body::Coded(coded) = packet.body else { return out.send(Port::WIRED, *packet) };
        let Decoder { code, hold, counters, deadline, .. } = self;
        let Some(exit) = self.hosts.get_mut(&mobile_host(packet, self.from)) else { return };
        exit.latest = exit.latest.max(coded.block);
        let mut passer = Passer { now, code, counters, out };
        exit.receive(packet.ecn, coded, &mut passer);
        exit.forget(&mut passer);
        exit.advance(*hold, &mut passer);
        *deadline = (*deadline).min(exit.deadline(*hold));
    }

    /// The link has dropped a packet of the code. This reports which packets are lost for good, and has no influence on what
    /// is passed on.
    pub(super) fn note_lost(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let Body::Coded(coded) = packet.body else { return };
        let Decoder { code, counters, .. } = self;
        if let Some(exit) = self.hosts.get_mut(&mobile_host(packet, self.from)) {
            let mut passer = Passer { now, code, counters, out };
            exit.note_lost(coded, &mut passer);
            exit.forget_lost(&mut passer);
        }
    }

    /// Gives up the gaps behind which packets have waited long enough.
    pub(super) fn give_up_until(&mut self, now: Time, out: &mut Out) {
        if now < self.deadline {
            return;
        }
        let Decoder { code, hold, counters, .. } = self;
        let mut passer = Passer { now, code, counters, out };
        for exit in self.hosts.values_mut() {
            exit.advance(*hold, &mut passer);
        }
        self.deadline = self.hosts.values().map(|exit| exit.deadline(*hold)).min().unwrap_or(Time::NEVER);
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

/// Passes packets on, and counts.
struct Passer<'a> {
    now: Time,
    code: &'a PacketFec,
    counters: &'a mut Counters,
    out: &'a mut Out,
}

impl Passer<'_> {
    /// A source packet has arrived or was recovered: its new state.
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
                State::Passed(self.now)
            }
            State::Lost => {
                self.counters.late += 1;
                self.out.send(Port::WIRED, source.packet);
                State::Late
            }
            State::Held(_) | State::Passed(_) | State::Late => source.state,
        }
    }

    /// The turn of a packet that was held has come.
    fn pass(&mut self, source: &Source) {
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

    /// A source packet is lost for good.
    fn report(&mut self, source: &mut Source) {
        source.is_reported = true;
        self.counters.unrecovered += 1;
        self.out.drop(source.packet, DropReason::Unrecovered);
    }
}

impl Exit {
    fn new() -> Exit {
        Exit {
            blocks: BTreeMap::new(),
            order: VecDeque::new(),
            ahead: 0,
            gap: Time::NEVER,
            latest: 0,
            newest: 0,
            given_up: 0,
        }
    }

    fn deadline(&self, hold: Duration) -> Time {
        if self.gap == Time::NEVER { Time::NEVER } else { self.gap + hold }
    }

    /// A packet of the code arrives, with this ECN field.
    fn receive(&mut self, ecn: Ecn, coded: Coded, passer: &mut Passer<'_>) {
        // A block that is not there was passed on, or forgotten.
        let Some(block) = self.blocks.get_mut(&coded.block) else { return passer.counters.unneeded += 1 };
        let mut is_needed = false;
        match coded.symbol {
            Symbol::Source { index } => {
                if index + 1 == passer.code.k {
                    block.size = Some(passer.code.k);
                }
                let source = &mut block.sources[usize::from(index)];
                if ecn == Ecn::Ce && source.packet.ecn.is_capable() {
                    source.packet.ecn = Ecn::Ce;
                }
                is_needed = source.is_missing();
                block.arrived += u16::from(is_needed);
                self.ahead += usize::from(source.arrive(passer));
            }
            Symbol::Repair { index, sources } => {
                if !block.repairs.contains(&index) {
                    block.repairs.push(index);
                }
                (block.size, block.closed) = (Some(sources), Some(sources));
                block.report_lost(passer);
            }
        }
        let there = block.arrived + block.repairs.len() as u16;
        let is_complete = block.size.is_some_and(|size| there >= u16::from(size));
        if is_complete {
            for source in block.sources.iter_mut().filter(|source| source.is_missing()) {
                is_needed = true;
                block.arrived += 1;
                passer.counters.recovered += 1;
                self.ahead += usize::from(source.arrive(passer));
            }
            self.remove_settled(coded.block);
            // On a link that keeps the order nothing more of earlier blocks can come.
            let open = u32::from(passer.code.interleave);
            self.give_up_before((coded.block + 1).saturating_sub(open), passer);
            passer.counters.unneeded += u64::from(!is_needed);
        }
    }

    /// Gives up what is awaited of the blocks before `end`.
    fn give_up_before(&mut self, end: u32, passer: &mut Passer<'_>) {
        if self.given_up < end {
            let blocks = self.blocks.range_mut(self.given_up..end);
            blocks.flat_map(|(_, block)| &mut block.sources).for_each(|source| passer.give_up(source));
            self.given_up = end;
        }
    }

    /// Gives up what is awaited at the front.
    fn give_up_gap(&mut self, passer: &mut Passer<'_>) {
        for &(number, index) in &self.order {
            let source = self.blocks.get_mut(&number).map(|block| &mut block.sources[usize::from(index)]);
            match source {
                Some(source) if source.state == State::Awaited => passer.give_up(source),
                _ => break,
            }
        }
    }

    fn note_lost(&mut self, coded: Coded, passer: &mut Passer<'_>) {
        let Some(block) = self.blocks.get_mut(&coded.block) else { return };
        block.dropped += 1;
        match coded.symbol {
            Symbol::Source { index } => block.sources[usize::from(index)].is_dropped = true,
            Symbol::Repair { sources, .. } => block.closed = Some(sources),
        }
        block.report_lost(passer);
    }

    /// Forgets what was lost long ago, if nothing has arrived after it: on a dead link nothing else would.
    fn forget_lost(&mut self, passer: &mut Passer<'_>) {
        while self.ahead == 0
            && let Some(&(number, index)) = self.order.front()
            && number + REMEMBERED < self.newest
        {
            let block = self.blocks.get_mut(&number).expect("a block is kept until all its turns have come");
            let source = &mut block.sources[usize::from(index)];
            if !source.is_reported {
                break;
            }
            passer.give_up(source);
            block.turned += 1;
            self.order.pop_front();
            if block.turned == block.sources.len() {
                self.blocks.remove(&number);
            }
        }
    }

    /// Forgets old blocks.
    fn forget(&mut self, passer: &mut Passer<'_>) {
        self.give_up_before(self.latest.saturating_sub(REMEMBERED), passer);
        while let Some(first) = self.blocks.first_entry()
            && first.key() + REMEMBERED < self.latest
            && first.get().turned == first.get().sources.len()
        {
            first.remove();
        }
    }

    /// Passes on the packets whose turn has come, over the gaps behind which others have waited for `hold`.
    fn advance(&mut self, hold: Duration, passer: &mut Passer<'_>) {
        self.take_turns(passer);
        while self.deadline(hold) <= passer.now {
            self.give_up_gap(passer);
            self.take_turns(passer);
        }
    }

    fn take_turns(&mut self, passer: &mut Passer<'_>) {
        while let Some(&(number, index)) = self.order.front() {
            let block = self.blocks.get_mut(&number).expect("a block is kept until all its turns have come");
            let source = &mut block.sources[usize::from(index)];
            match source.state {
                State::Awaited => break,
                State::Held(at) => {
                    passer.pass(source);
                    source.state = State::Passed(at);
                    self.ahead -= 1;
                }
                State::Passed(_) => self.ahead -= 1,
                State::Lost | State::Late => {}
            }
            block.turned += 1;
            self.order.pop_front();
            self.gap = Time::NEVER;
            self.remove_settled(number);
        }
        if self.gap == Time::NEVER && self.ahead > 0 {
            let arrival =
                |&(number, index): &(u32, u8)| match self.blocks[&number].sources[usize::from(index)].state {
                    State::Held(at) | State::Passed(at) => Some(at),
                    State::Awaited | State::Lost | State::Late => None,
                };
            self.gap = self.order.iter().find_map(arrival).unwrap_or(Time::NEVER);
        }
    }

    /// Removes a block of which nothing more is needed.
    fn remove_settled(&mut self, number: u32) {
        if self.blocks.get(&number).is_some_and(Block::is_settled) {
            self.blocks.remove(&number);
        }
    }
}

impl Block {
    /// Reports the lost packets that cannot be recovered any more, because more packets of the block are lost than it has
    /// repair packets.
    fn report_lost(&mut self, passer: &mut Passer<'_>) {
        let is_full = self.sources.len() == usize::from(passer.code.k);
        let size = if is_full { passer.code.k } else { self.closed.unwrap_or(passer.code.k) };
        if self.dropped > u16::from(passer.code.repairs(size)) {
            let lost = self.sources.iter_mut().filter(|source| source.is_dropped && !source.is_reported);
            lost.filter(|source| source.is_missing()).for_each(|source| passer.report(source));
        }
    }

    /// Whether all of it was passed on.
    fn is_settled(&self) -> bool {
        self.size.is_some_and(|size| self.turned == usize::from(size))
            && self.sources.iter().all(|source| source.state != State::Lost)
    }
}

impl Source {
    fn is_missing(&self) -> bool {
        matches!(self.state, State::Awaited | State::Lost)
    }

    /// Notes that it has arrived or was recovered; returns whether that was in time.
    fn arrive(&mut self, passer: &mut Passer<'_>) -> bool {
        let is_in_time = self.state == State::Awaited;
        self.state = passer.arrive(self);
        is_in_time
    }
}
