//! CAKE: common applications kept enhanced.
//!
//! *What it does.* Packets are sorted into tins by their code point, and in a tin into queues by flow. The tins share the rate;
//! the queues of a tin are served by deficit round robin, those of flows that send little first. A queue's turn is the shorter
//! the more backlogged queues its host has, so that hosts, not flows, share the link. Each queue is kept short by COBALT: CoDel,
//! and BLUE for senders that do not respond. Beyond the limit, packets are dropped from the head of the longest queue. Optionally,
//! acknowledgements that a newer one supersedes are dropped, for narrow uplinks.
//!
//! *Source.* Høiland-Jørgensen, Täht and Morton, "Piece of CAKE", LANMAN 2018; rules and constants of Linux's `sch_cake`, held to 7.3.
//!
//! *Differences from Linux.* The rate is that of the link, or its mean, as if `bandwidth` were set to it; the link paces, not the
//! queue. In Wi-Fi, where no rate is known, all packets of an access category are in one tin. Each flow has a queue of its own,
//! without collisions of a hash; all packets of a tunnel share one. Hosts are the ends of a flow, as with `nat`. Sizes are those
//! of IP. The limit counts packets or their bytes; Linux counts their memory, at a known rate the larger of 4 MiB and four times
//! what the link carries in `rtt`. Other tins, other kinds of isolation, `ingress`, `autorate-ingress`, `wash` and `overhead`
//! are left out.
//!
//! *Parameters.* See [`Params`].

mod ack_filter;
mod cobalt;

use std::cmp::Reverse;
use std::collections::VecDeque;

use lasthop_base::{Bytes, Duration, Invalid, Stream, Time};
use lasthop_proto::{Body, DropReason, Dscp, FlowId, HostId, Out, Packet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::ack_filter::AckFilter;
use self::cobalt::{Cobalt, Limits};
use super::fifo::Fifo;
use super::{About, Discipline, Parameters, QueueStats};
use crate::queue::QueueLimit;

/// A packet of full size, with the header of Ethernet.
const MTU: Bytes = Bytes(1514);
/// The largest number of backlogged queues of a host that shortens their turns.
const LARGEST_LOAD: u64 = 1024;

/// CAKE ([LANMAN 2018](https://arxiv.org/abs/1804.07617)), as home routers have it, with `bandwidth` set to the rate of the
/// link: a queue for each flow, fairness among hosts and then among their flows, and short queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
#[schemars(rename = "Cake")]
pub struct Params {
    /// Total capacity of all queues. Beyond it, packets are dropped from the head of the queue with the most bytes. By default
    /// 10,240 packets. Linux counts memory, where 4 MiB are some 1,800 packets of full size.
    pub limit: QueueLimit,
    /// The usual round-trip time of what crosses the link. The acceptable standing delay is a twentieth of it, but at least
    /// the time of one and a half packets. By default 100 ms.
    pub rtt: Duration,
    /// Who shares the link equally.
    pub isolation: Isolation,
    /// Into which tins code points are sorted.
    pub tins: Tins,
    /// Which superseded TCP acknowledgements are dropped.
    pub ack_filter: AckFilter,
}

/// Who shares a link equally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Flows.
    Flows,
    /// Hosts that send, and the flows of each.
    DualSrchost,
    /// Hosts that receive, and the flows of each.
    DualDsthost,
    /// The hosts of both sides, and the flows of each: of those at either end of a flow, the host with more flows counts.
    #[default]
    TripleIsolate,
}

/// Into which tins code points are sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tins {
    /// All into one.
    Besteffort,
    /// Three: network control and voice (CS6, CS7, EF, VA, and 4) go first up to a quarter of the rate;
    /// background (LE, CS1) has a sixteenth while best effort has more.
    #[default]
    Diffserv3,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            limit: QueueLimit::Packets(10_240),
            rtt: Duration::from_millis(100),
            isolation: Isolation::default(),
            tins: Tins::default(),
            ack_filter: AckFilter::default(),
        }
    }
}

impl Tins {
    /// The share of the rate for each tin, as its reciprocal. The last ones are asked first.
    fn shares(self) -> &'static [u64] {
        match self {
            Tins::Besteffort => &[1],
            Tins::Diffserv3 => &[1, 16, 4],
        }
    }

    fn tin_of(self, dscp: Dscp) -> usize {
        match (self, dscp.get()) {
            (Tins::Diffserv3, 1 | 8) => 1,
            (Tins::Diffserv3, 4 | 44 | 46 | 48 | 56) => 2,
            _ => 0,
        }
    }
}

impl Parameters for Params {
    fn about(&self) -> About {
        About {
            title: "CAKE",
            summary: "a queue for each flow, each kept short, and hosts that share the link equally (LANMAN 2018)",
            // Up to a quarter of the rate only.
            expedites: false,
            separates_flows: true,
            deployment: None,
        }
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }

    fn validate(&self) -> Result<(), Invalid> {
        let problem =
            "found less than 20 us, expected at least as much, so that the delay that is accepted is 1 us";
        if self.rtt < Duration::from_micros(20) {
            return Err(Invalid { field: "cake.rtt", problem });
        }
        Ok(())
    }

    fn reads_tcp(&self) -> bool {
        self.ack_filter != AckFilter::Off
    }

    fn build(&self, air_time: &dyn Fn(Bytes) -> Duration, random: Stream) -> Box<dyn Discipline> {
        Box::new(Cake::new(*self, air_time(MTU), random))
    }
}

/// Queues under CAKE.
#[derive(Clone, Debug)]
pub struct Cake {
    params: Params,
    random: Stream,
    /// Time that the link takes for a packet of full size.
    mtu_time: Duration,
    tins: Vec<Tin>,
    packets: usize,
    bytes: Bytes,
    stats: QueueStats,
}

/// The queues of some code points.
#[derive(Clone, Debug)]
struct Tin {
    limits: Limits,
    /// Bytes of a turn.
    quantum: u64,
    /// The reciprocal of its share of the rate.
    share: u64,
    /// When its share is due.
    next: Time,
    packets: usize,
    /// Grown on demand.
    flows: Vec<Flow>,
    /// Queues that are served in turn: those that send little, all others, and those that are empty but not at rest.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    decaying: VecDeque<usize>,
    /// Queues that are not empty, or were not when they had their last turn.
    active: usize,
    senders: Backlogs,
    receivers: Backlogs,
}

/// The number of backlogged queues of each host.
#[derive(Clone, Debug, Default)]
struct Backlogs(Vec<u64>);

impl Backlogs {
    fn of(&self, host: HostId) -> u64 {
        self.0.get(host.index()).copied().unwrap_or(0)
    }

    fn add(&mut self, host: HostId) {
        let place = host.index();
        if place >= self.0.len() {
            self.0.resize(place + 1, 0);
        }
        self.0[place] += 1;
    }

    fn remove(&mut self, host: HostId) {
        self.0[host.index()] -= 1;
    }
}

#[derive(Clone, Debug, Default)]
struct Flow {
    queue: Fifo,
    cobalt: Cobalt,
    deficit: i64,
    set: Set,
    /// Where the packets come from, and where they go.
    src: HostId,
    dst: HostId,
}

/// What a queue counts as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Set {
    /// Empty and at rest.
    #[default]
    None,
    /// It has not used up its first turn.
    Sparse,
    /// It used up its first turn, and was empty.
    SparseWait,
    /// Backlogged.
    Bulk,
    /// Empty; its COBALT comes to rest.
    Decaying,
}

impl Tin {
    fn new(params: &Params, mtu_time: Duration, share: u64) -> Tin {
        let mtu_time = mtu_time * share;
        let wanted = Duration::from_nanos(params.rtt.as_nanos() / 20);
        let target = wanted.max(Duration::from_nanos(mtu_time.as_nanos() * 3 / 2));
        let interval = (params.rtt + target - wanted).max(target * 2);
        // The bytes in 1/4096 of a second.
        let quantum = ((MTU.0 * 1_000_000_000 / mtu_time.as_nanos().max(1)) >> 12).clamp(300, MTU.0);
        Tin {
            limits: Limits { target, interval, mtu_time },
            quantum,
            share,
            next: Time::ZERO,
            packets: 0,
            flows: Vec::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            active: 0,
            senders: Backlogs::default(),
            receivers: Backlogs::default(),
        }
    }

    /// Bytes of the next turn of a queue.
    fn turn(&self, flow: &Flow, isolation: Isolation, random: &mut Stream) -> i64 {
        let (senders, receivers) = (self.senders.of(flow.src), self.receivers.of(flow.dst));
        let load = match isolation {
            Isolation::Flows => 1,
            Isolation::DualSrchost => senders,
            Isolation::DualDsthost => receivers,
            Isolation::TripleIsolate => senders.max(receivers),
        };
        // As in Linux, rounded at random.
        ((self.quantum * (65_535 / load.clamp(1, LARGEST_LOAD)) + random.below(1 << 16)) >> 16) as i64
    }

    fn make_bulk(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        flow.set = Set::Bulk;
        self.senders.add(flow.src);
        self.receivers.add(flow.dst);
    }

    /// Enqueues in the queue of a flow, which has its turn.
    fn join(&mut self, index: usize, packet: &Packet, isolation: Isolation, random: &mut Stream) {
        match self.flows[index].set {
            Set::None | Set::Decaying => {
                if self.flows[index].set == Set::Decaying {
                    self.decaying.retain(|&other| other != index);
                }
                self.new.push_back(index);
                self.active += 1;
                let flow = &mut self.flows[index];
                (flow.set, flow.src, flow.dst) = (Set::Sparse, packet.src, packet.dst);
                self.flows[index].deficit = self.turn(&self.flows[index], isolation, random);
            }
            Set::SparseWait => self.make_bulk(index),
            Set::Sparse | Set::Bulk => {}
        }
    }

    /// A queue was found empty in its turn, and leaves it.
    fn leave(&mut self, index: usize, now: Time) {
        let flow = &mut self.flows[index];
        flow.cobalt.on_empty(&self.limits, now);
        match flow.set {
            Set::Bulk => {
                self.senders.remove(flow.src);
                self.receivers.remove(flow.dst);
                self.active -= 1;
            }
            Set::Sparse | Set::SparseWait => self.active -= 1,
            Set::None | Set::Decaying => {}
        }
        if flow.cobalt.is_at_rest(now) {
            flow.set = Set::None;
        } else {
            flow.set = Set::Decaying;
            self.decaying.push_back(index);
        }
    }

    /// The list whose first queue is served.
    fn served(&mut self, is_first: bool) -> Option<&mut VecDeque<usize>> {
        let Tin { new, old, decaying, .. } = self;
        if is_first && !decaying.is_empty() {
            return Some(decaying);
        }
        [new, old, decaying].into_iter().find(|list| !list.is_empty())
    }

    /// The packet that leaves the tin. `is_first` says whether no queue was looked at before in this instant.
    fn dequeue(
        &mut self,
        now: Time,
        is_first: &mut bool,
        params: &Params,
        random: &mut Stream,
        stats: &mut QueueStats,
        mut drop: impl FnMut(Packet),
    ) -> Option<Packet> {
        loop {
            let list = self.served(std::mem::take(is_first))?;
            let index = list.pop_front()?;
            let flow = &self.flows[index];
            if flow.deficit <= 0 {
                if flow.set == Set::Sparse {
                    if flow.queue.is_empty() {
                        self.flows[index].set = Set::SparseWait;
                    } else {
                        self.make_bulk(index);
                    }
                }
                let turn = self.turn(&self.flows[index], params.isolation, random);
                self.flows[index].deficit += turn;
                self.old.push_back(index);
                continue;
            }
            loop {
                let flow = &mut self.flows[index];
                let Some((came, mut packet)) = flow.queue.pop() else {
                    self.leave(index, now);
                    return None;
                };
                self.packets -= 1;
                let waited = now.since(came);
                let drops = flow.cobalt.drops(&self.limits, now, waited, &mut packet, stats, random);
                // The last packet may be marked, and is not dropped.
                if drops && !flow.queue.is_empty() {
                    drop(packet);
                    continue;
                }
                flow.deficit -= packet.size.0 as i64;
                // Its turn goes on.
                let list = if flow.set == Set::Sparse { &mut self.new } else { &mut self.old };
                list.push_front(index);
                return Some(packet);
            }
        }
    }
}

impl Cake {
    /// Empty queues before a link that takes `mtu_time` for a packet of 1514 B; zero if its rate is not known.
    pub fn new(mut params: Params, mtu_time: Duration, random: Stream) -> Cake {
        if mtu_time.is_zero() {
            params.tins = Tins::Besteffort;
        }
        let tins = params.tins.shares().iter().map(|&share| Tin::new(&params, mtu_time, share)).collect();
        let stats = QueueStats::default();
        Cake { params, random, mtu_time, tins, packets: 0, bytes: Bytes::ZERO, stats }
    }

    fn is_too_long(&self) -> bool {
        match self.params.limit {
            QueueLimit::Unlimited => false,
            QueueLimit::Packets(most) => self.packets > most as usize,
            QueueLimit::Bytes(most) => self.bytes > most,
        }
    }

    /// Drops the first packet of the queue with the most bytes; ties go to the first one.
    fn drop_from_longest(&mut self, now: Time, out: &mut Out) {
        let flows = self.tins.iter_mut().flat_map(|tin| {
            let Tin { limits, packets, flows, .. } = tin;
            let mut longest: Option<&mut Flow> = None;
            for flow in flows {
                if longest.as_ref().is_none_or(|other| flow.queue.bytes() > other.queue.bytes()) {
                    longest = Some(flow);
                }
            }
            longest.map(|flow| (&*limits, packets, flow))
        });
        let longest =
            flows.reduce(|one, other| if other.2.queue.bytes() > one.2.queue.bytes() { other } else { one });
        let (limits, packets, flow) = longest.expect("queues that are too long have packets");
        let (_, packet) = flow.queue.pop().expect("the longest queue has packets");
        flow.cobalt.on_full(limits, now);
        *packets -= 1;
        self.packets -= 1;
        self.bytes = self.bytes - packet.size;
        self.stats.overflowed += 1;
        out.drop(packet, DropReason::QueueFull);
    }

    /// The tin that is served: the last one whose share is due, or else the one whose share is due first.
    fn next_tin(&self, now: Time) -> Option<usize> {
        let waiting = self.tins.iter().enumerate().filter(|(_, tin)| tin.active > 0);
        let chosen = waiting.min_by_key(|&(index, tin)| (tin.next.max(now), Reverse(index)));
        chosen.map(|(index, _)| index)
    }
}

impl Discipline for Cake {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        let tin = &mut self.tins[self.params.tins.tin_of(packet.dscp)];
        if tin.packets == 0 {
            tin.next = tin.next.max(now);
        }
        // A tunnel is one flow, and so is what the agents of a scheme say to each other.
        let index = match packet.body {
            Body::Coded(_) => 0,
            _ if packet.flow == FlowId::NONE => 1,
            _ => 2 + packet.flow.index(),
        };
        if index >= tin.flows.len() {
            tin.flows.resize_with(index + 1, Flow::default);
        }
        let queue = &mut tin.flows[index].queue;
        queue.push(now, packet);
        tin.packets += 1;
        self.packets += 1;
        self.bytes += packet.size;
        let superseded = self.params.ack_filter.superseded(queue.packets());
        if let Some(ack) = superseded.and_then(|place| queue.remove(place)) {
            tin.packets -= 1;
            self.packets -= 1;
            self.bytes = self.bytes - ack.size;
            out.drop(ack, DropReason::Suppressed);
        }
        tin.join(index, &packet, self.params.isolation, &mut self.random);
        while !at_once && self.is_too_long() {
            self.drop_from_longest(now, out);
        }
    }

    fn dequeue(&mut self, now: Time, out: &mut Out) -> Option<Packet> {
        let mut is_first = true;
        while self.packets > 0 {
            let tin = self.next_tin(now).expect("what waits is in a tin");
            let tin = &mut self.tins[tin];
            let (mut lost, mut lost_bytes) = (0, Bytes::ZERO);
            let found =
                tin.dequeue(now, &mut is_first, &self.params, &mut self.random, &mut self.stats, |packet| {
                    lost += 1;
                    lost_bytes += packet.size;
                    out.drop(packet, DropReason::ActiveQueue);
                });
            self.stats.early_drops += lost;
            self.packets -= lost as usize;
            self.bytes = self.bytes - lost_bytes;
            if let Some(packet) = found {
                self.packets -= 1;
                self.bytes = self.bytes - packet.size;
                let time = self.mtu_time.as_nanos() * packet.size.0 / MTU.0 * tin.share;
                let time = Duration::from_nanos(time);
                tin.next = if tin.next < now { tin.next + time } else { tin.next.max(now + time) };
                return Some(packet);
            }
        }
        None
    }

    fn queued(&self) -> (usize, Bytes) {
        (self.packets, self.bytes)
    }

    fn stats(&self) -> &QueueStats {
        &self.stats
    }
}
