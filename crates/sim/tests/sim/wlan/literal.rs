//! A reference implementation of a BSS that follows the standard in steps of a microsecond: every station
//! counts its own slots, sets its own NAV and waits for its own responses. It computes no outcome in advance,
//! and draws from the same streams.

use std::collections::VecDeque;

use lasthop_base::{Stream, Streams};
use lasthop_proto::{DropReason, HostId, LinkOutcome, Packet, Port};
use lasthop_sim::QueueLimit;
use lasthop_sim::wlan::{AboveMac, ApQueue, BssConfig, RetryLimit, StationStreams, Timing};

use crate::wlan::harness::{Did, host, id};

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Rts,
    Cts,
    Data,
    Ack,
}

#[derive(Clone, Copy)]
struct OnAir {
    from: usize,
    to: usize,
    kind: Kind,
    start: u64,
    end: u64,
    intact: bool,
}

#[derive(Clone, Copy)]
struct Head {
    packet: Packet,
    to: usize,
    attempts: u32,
    short: u32,
    long: u32,
}

#[derive(Default)]
struct Node {
    head: Option<Head>,
    queues: Vec<VecDeque<(Packet, usize)>>,
    /// The queue served last.
    served: usize,
    timer: u64,
    cw: u64,
    nav: u64,
    /// The deadline of a pending response.
    waits: Option<u64>,
    /// End of the last wait for a response.
    waited: u64,
    /// Since when it senses the medium idle; `None` while busy.
    idle_since: Option<u64>,
    /// Whether the last frame could not be decoded.
    garbled: bool,
}

struct Chance {
    bits: [Stream; 2],
    above: [Stream; 2],
}

/// All times are in microseconds.
pub(crate) struct Literal {
    config: BssConfig,
    timing: Timing,
    loss: f64,
    above_mac: AboveMac,
    nodes: Vec<Node>,
    backoffs: Vec<Stream>,
    chances: Vec<Chance>,
    air: Vec<OnAir>,
    /// Pending responses, with their start times.
    answers: Vec<(u64, OnAir)>,
    /// Senders in the current collision, with their response timeouts.
    open: Vec<(usize, u64)>,
    /// Signals to the access point's watchers, and drops, with the times at which they are due.
    later: Vec<(u64, Did)>,
    pub(crate) log: Vec<(u64, Did)>,
}

fn micros(duration: lasthop_base::Duration) -> u64 {
    assert_eq!(duration.as_nanos() % 1000, 0);
    duration.as_nanos() / 1000
}

impl Literal {
    pub(crate) fn new(config: BssConfig, seed: u64, count: u32, loss: f64, above_mac: AboveMac) -> Literal {
        let streams = Streams::new(seed, 0);
        let timing = config.timing();
        let mut backoffs = vec![streams.stream("backoff:ap")];
        let mut chances = Vec::new();
        for index in 0..count {
            let StationStreams { backoff, bits_down, bits_up, above_down, above_up } =
                StationStreams::named(&streams, &index.to_string());
            backoffs.push(backoff);
            chances.push(Chance { bits: [bits_down, bits_up], above: [above_down, above_up] });
        }
        let node = |place| {
            let per_station = place == 0 && matches!(config.ap_queue, ApQueue::PerStation(_));
            let queues = if per_station { count as usize } else { 1 };
            Node {
                queues: vec![VecDeque::new(); queues],
                cw: u64::from(timing.cw.min),
                idle_since: Some(0),
                ..Node::default()
            }
        };
        let nodes = (0..=count as usize).map(node).collect();
        Literal {
            config,
            timing,
            loss,
            above_mac,
            nodes,
            backoffs,
            chances,
            air: Vec::new(),
            answers: Vec::new(),
            open: Vec::new(),
            later: Vec::new(),
            log: Vec::new(),
        }
    }

    fn draw(&mut self, place: usize) {
        self.nodes[place].timer = self.backoffs[place].below(self.nodes[place].cw + 1);
    }

    fn slot(&self) -> u64 {
        micros(self.timing.slot)
    }

    /// Whether a station senses the medium busy: by carrier sense, its own transmission, or its NAV.
    fn is_busy(&self, place: usize, now: u64) -> bool {
        let node = &self.nodes[place];
        let heard = |frame: &OnAir| frame.from == place || frame.start + self.slot() <= now;
        self.air.iter().any(heard) || now < node.nav
    }

    /// Advances by one microsecond; `arrivals` are enqueued at its start.
    pub(crate) fn tick(&mut self, now: u64, arrivals: &[(Port, Packet)]) {
        self.end_waits(now);
        self.end_frames(now);
        self.say(now);
        for index in (0..self.answers.len()).rev() {
            if self.answers[index].0 == now {
                let (_, frame) = self.answers.swap_remove(index);
                self.air.push(frame);
            }
        }
        for place in 0..self.nodes.len() {
            self.sense(place, now);
        }
        for &(Port(port), packet) in arrivals {
            let from = port as usize;
            let to = if from == 0 { self.station_of(packet.dst) } else { 0 };
            self.enqueue(from, to, packet, now);
        }
        for place in 0..self.nodes.len() {
            if self.may_begin(place, now) {
                self.begin(place, now);
            }
        }
        self.mark_collisions();
    }

    pub(crate) fn is_idle(&self) -> bool {
        let idle = |node: &Node| node.head.is_none() && node.waits.is_none();
        self.nodes.iter().all(idle) && self.air.is_empty() && self.later.is_empty() && self.answers.is_empty()
    }

    /// Whether nothing changes before the next arrival.
    pub(crate) fn is_quiet(&self, now: u64) -> bool {
        let done = |node: &Node| node.timer == 0 && node.idle_since.is_some_and(|since| now > since + 1000);
        self.is_idle() && self.nodes.iter().all(done)
    }

    fn station_of(&self, dst: HostId) -> usize {
        (1..self.nodes.len()).find(|&place| host(place as u32 - 1) == dst).unwrap_or(0)
    }

    /// The backoff after an attempt is drawn when the wait for its response ends.
    fn end_waits(&mut self, now: u64) {
        for place in 0..self.nodes.len() {
            if self.nodes[place].waits == Some(now) {
                self.answered(place, now);
            }
        }
    }

    fn answered(&mut self, place: usize, now: u64) {
        self.nodes[place].waits = None;
        self.nodes[place].waited = now;
        self.draw(place);
    }

    /// Start of the slots for a station that senses the medium idle and expects no response.
    fn slots_from(&self, place: usize) -> Option<u64> {
        let Node { idle_since, waits, waited, garbled, .. } = &self.nodes[place];
        let ifs = if *garbled { self.timing.eifs } else { self.timing.difs };
        let from = (*idle_since)? + micros(ifs);
        waits.is_none().then(|| from.max(waited + micros(self.timing.difs)))
    }

    fn sense(&mut self, place: usize, now: u64) {
        let busy = self.is_busy(place, now);
        let (slots_from, slot) = (self.slots_from(place), self.slot());
        let node = &mut self.nodes[place];
        match node.idle_since {
            None if !busy => node.idle_since = Some(now),
            None => {}
            Some(_) if busy => {
                node.idle_since = None;
                let waits = node.waits.is_some() || node.waited == now;
                if node.head.is_some() && node.timer == 0 && !waits {
                    self.draw(place);
                }
            }
            _ => {
                let ends = slots_from.is_some_and(|from| now > from && (now - from).is_multiple_of(slot));
                node.timer = node.timer.saturating_sub(u64::from(ends));
            }
        }
    }

    fn may_begin(&self, place: usize, now: u64) -> bool {
        let node = &self.nodes[place];
        let idle = self.slots_from(place).is_some_and(|from| now >= from);
        let sends = self.air.iter().any(|frame| frame.from == place);
        idle && !sends && node.head.is_some() && node.timer == 0
    }

    fn is_long(&self, packet: &Packet) -> bool {
        self.config.rts_threshold.is_some_and(|most| packet.size.0 + 36 > most.0)
    }

    fn begin(&mut self, from: usize, now: u64) {
        let head = self.nodes[from].head.as_mut().unwrap();
        head.attempts += 1;
        let Head { to, packet, .. } = *head;
        let (kind, time) = match self.is_long(&packet) {
            true => (Kind::Rts, self.timing.rts),
            false => (Kind::Data, self.config.phy.data_time(packet.size)),
        };
        self.nodes[from].idle_since = None;
        self.air.push(OnAir { from, to, kind, start: now, end: now + micros(time), intact: true });
    }

    fn mark_collisions(&mut self) {
        if self.air.len() > 1 {
            self.air.iter_mut().for_each(|frame| frame.intact = false);
        }
    }

    fn end_frames(&mut self, now: u64) {
        let ended: Vec<OnAir> = self.air.iter().filter(|frame| frame.end == now).copied().collect();
        self.air.retain(|frame| frame.end != now);
        for frame in ended {
            match frame.intact {
                true => self.understood(frame, now),
                false => self.open_collision(frame, now),
            }
        }
        if self.air.is_empty() && !self.open.is_empty() {
            self.end_collision(now);
        }
    }

    fn open_collision(&mut self, frame: OnAir, now: u64) {
        let answer = match frame.kind {
            Kind::Rts => self.timing.cts,
            _ => self.timing.ack,
        };
        self.open.push((frame.from, now + micros(self.timing.sifs + answer)));
        self.nodes[frame.from].waits = Some(u64::MAX);
    }

    /// The last frame of a collision has ended. Its senders wait for a response, at least until now.
    fn end_collision(&mut self, now: u64) {
        let mut open = std::mem::take(&mut self.open);
        open.sort_unstable();
        for place in 0..self.nodes.len() {
            self.nodes[place].garbled = !open.iter().any(|&(sender, _)| sender == place);
        }
        for (place, timeout) in open {
            self.fails(place, false, now, timeout.max(now));
        }
    }

    fn understood(&mut self, frame: OnAir, now: u64) {
        let Timing { sifs, cts, ack, .. } = self.timing;
        let OnAir { from, to, kind, .. } = frame;
        for place in 0..self.nodes.len() {
            self.nodes[place].garbled = false;
        }
        let then = now + micros(sifs);
        let answer = |from, to, kind, time| {
            (then, OnAir { from, to, kind, start: then, end: then + micros(time), intact: true })
        };
        match kind {
            Kind::Rts => {
                let data = self.config.phy.data_time(self.nodes[from].head.unwrap().packet.size);
                self.set_nav(now + micros(sifs + cts + sifs + data + sifs + ack), [from, to]);
                self.nodes[from].nav = then + micros(cts);
                self.nodes[to].nav = then;
                self.answers.push(answer(to, from, Kind::Cts, cts));
            }
            Kind::Cts => {
                let head = self.nodes[to].head.as_mut().unwrap();
                head.short = 0;
                let data = self.config.phy.data_time(head.packet.size);
                self.nodes[to].nav = then;
                self.nodes[from].nav = then + micros(data);
                self.answers.push(answer(to, from, Kind::Data, data));
            }
            Kind::Data => {
                let way = usize::from(from != 0);
                self.set_nav(then + micros(ack), [from, to]);
                let arrives = self.chances[from.max(to) - 1].bits[way].bernoulli(1.0 - self.loss);
                let head = self.nodes[from].head.unwrap();
                self.nodes[from].waits = Some(then + micros(ack));
                if arrives {
                    self.nodes[to].nav = then;
                    self.answers.push(answer(to, from, Kind::Ack, ack));
                    self.nodes[from].cw = u64::from(self.timing.cw.min);
                    self.next(from);
                    if from == 0 {
                        let told = Did::Signal(id(&head.packet), LinkOutcome::Delivered, head.attempts);
                        self.later.push((then + micros(ack), told));
                    }
                    self.deliver(from, &head, now);
                } else {
                    self.nodes[to].garbled = true;
                    self.nodes[to].nav = now;
                    self.fails(from, self.is_long(&head.packet), now, then + micros(ack));
                }
            }
            Kind::Ack => {}
        }
    }

    fn set_nav(&mut self, until: u64, except: [usize; 2]) {
        for place in 0..self.nodes.len() {
            if !except.contains(&place) {
                self.nodes[place].nav = self.nodes[place].nav.max(until);
            }
        }
    }

    /// An attempt has failed; its sender detects this at `until`.
    fn fails(&mut self, place: usize, long: bool, now: u64, until: u64) {
        let limit = if long { self.config.long_retry_limit } else { self.config.short_retry_limit };
        let head = self.nodes[place].head.as_mut().unwrap();
        let failures = if long { &mut head.long } else { &mut head.short };
        *failures += 1;
        let given_up = matches!(limit, RetryLimit::AtMost(most) if *failures >= most.get());
        let head = *head;
        let number = id(&head.packet);
        if place == 0 {
            self.later.push((until, Did::Signal(number, LinkOutcome::AttemptFailed, head.attempts)));
        }
        if given_up {
            if place == 0 {
                self.later.push((until, Did::Signal(number, LinkOutcome::Discarded, head.attempts)));
            }
            self.later.push((until, Did::Drop(number, DropReason::AttemptsExhausted)));
            self.nodes[place].cw = u64::from(self.timing.cw.min);
            self.next(place);
        } else {
            let cw = self.nodes[place].cw;
            self.nodes[place].cw = (2 * cw + 1).min(u64::from(self.timing.cw.max));
        }
        self.nodes[place].waits = Some(until);
        if until == now {
            self.answered(place, now);
        }
    }

    /// The MAC dequeues the next packet, round-robin over its queues.
    fn next(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        node.head = None;
        let count = node.queues.len();
        for step in 1..=count {
            let queue = (node.served + step) % count;
            if let Some((packet, to)) = node.queues[queue].pop_front() {
                node.served = queue;
                node.head = Some(Head { packet, to, attempts: 0, short: 0, long: 0 });
                return;
            }
        }
    }

    fn deliver(&mut self, from: usize, head: &Head, now: u64) {
        let way = usize::from(from != 0);
        let Head { packet, to, .. } = *head;
        let p = [self.above_mac.down, self.above_mac.up][way].get();
        if self.chances[from.max(to) - 1].above[way].bernoulli(p) {
            return self.log.push((now, Did::Drop(id(&packet), DropReason::Corrupted)));
        }
        let station = self.station_of(packet.dst);
        if from != 0 && station != 0 {
            return self.enqueue(0, station, packet, now);
        }
        self.log.push((now, Did::Deliver(Port(to as u32), id(&packet))));
    }

    fn enqueue(&mut self, from: usize, to: usize, packet: Packet, now: u64) {
        let busy = self.is_busy(from, now);
        let limit = match (from, self.config.ap_queue) {
            (0, ApQueue::PerStation(limit) | ApQueue::Shared(limit)) => limit,
            _ => self.config.station_queue,
        };
        let node = &mut self.nodes[from];
        let queue = if node.queues.len() > 1 { to - 1 } else { 0 };
        if node.head.is_none() {
            node.served = queue;
            node.head = Some(Head { packet, to, attempts: 0, short: 0, long: 0 });
            if busy && node.timer == 0 && node.waits.is_none() {
                self.draw(from);
            }
            return;
        }
        let waiting = &mut node.queues[queue];
        let bytes: u64 = waiting.iter().map(|(packet, _)| packet.size.0).sum();
        let room = match limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(most) => waiting.len() < most as usize,
            QueueLimit::Bytes(most) => bytes + packet.size.0 <= most.0,
        };
        if room {
            waiting.push_back((packet, to));
        } else {
            self.log.push((now, Did::Drop(id(&packet), DropReason::QueueFull)));
        }
    }

    fn say(&mut self, now: u64) {
        let due: Vec<_> = self.later.iter().filter(|(at, _)| *at == now).copied().collect();
        self.later.retain(|(at, _)| *at != now);
        self.log.extend(due);
    }
}
