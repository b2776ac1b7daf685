//! An 802.11 cell: an access point and its stations, which share one medium by the distributed
//! coordination function (DCF; IEEE 802.11-1999 clause 9).

mod config;
mod contender;
mod phy;
mod queues;
mod stats;
mod words;

use lasthop_base::{Bytes, Duration, Stream, Time};
use lasthop_channel::Channel;
use lasthop_proto::{Component, DropReason, HostId, LinkOutcome, Out, Packet, Port, Probe};

use contender::{Contender, Frame};
use phy::DATA_OVERHEAD;
use queues::Queues;
use words::{Word, Words};

pub use config::{AboveMac, ApQueue, CellConfig, Cw, RetryLimit, Station, StationStreams};
pub use phy::{Band, Dsss, DsssRate, Ofdm, OfdmRate, Phy, Preamble, Timing};
pub use stats::{CellStats, StationStats, WayStats};

/// The access point's place among those who contend; station i has place 1 + i.
const AP: usize = 0;

/// An access point and its stations. [`Port(0)`](Port::WIRED) is the access point's side towards the fixed
/// network; `Port(1 + i)` is station i. Everybody hears everybody, and propagation takes no time.
///
/// # The way of a packet
/// One that enters by [`Port::WIRED`] is queued at the access point for the station through which its
/// destination is reached. One that enters by a station's port is queued there for the access point, which
/// sends it back into the cell if it is for one of the cell's hosts, and out of [`Port::WIRED`] if it is for
/// anyone else. A packet is handed on when its data frame ends, before the ACK.
///
/// # Taking turns
/// In the standard's words (section 9.2), and where these leave something open:
/// - Backoff slots begin after the medium was idle for DIFS, or for EIFS after a frame that could not be
///   understood. A backoff of b slots ends b slots later, and the station begins to send. The backoff of
///   others loses the slots that have ended by then, and not the one that has begun (freezing). So after a
///   busy period nobody but those who have just sent can have no slot left: Bianchi's model (IEEE JSAC
///   18(3), 2000) lets a busy period take a slot from everyone, the standard does not.
/// - A station that begins is noticed a slot later: this is what a slot is made for. Who begins before that
///   collides, at the same instant or not.
/// - After each attempt, whatever its outcome, a backoff is drawn, though nothing may wait (post-backoff).
///   A packet that finds the medium idle and no backoff left is sent at once, or as soon as DIFS or EIFS is
///   over; one that finds it busy draws a backoff. So does a packet that waits for DIFS or EIFS without one
///   when the medium gets busy.
/// - ACK and CTS timeouts last as long as what did not come would have taken: SIFS and the frame. DIFS
///   follows. With control frames at the lowest mandatory rate this is EIFS, so that those who collided and
///   those who listened begin their slots together; with faster ones, those who collided are ahead.
/// - Whose frame the channel destroyed is not known to those who listen but are not meant: they understood
///   it, and their NAV says when it would have been acknowledged. The receiver waits for EIFS.
///
/// # Losses
/// Frames that collide are lost. Of the others data frames meet the station's channel, with all their bits
/// behind the PLCP header; RTS, CTS and ACK frames, which are short and slow, always arrive. So no packet
/// arrives twice. What is dropped above the MAC ([`DropReason::Corrupted`]) was acknowledged, and is not
/// sent again. A packet whose retry limit is reached is dropped ([`DropReason::AttemptsExhausted`]) when the
/// last timeout is over.
///
/// # Signals
/// Those who watch hear of what the access point sends, as from a [`RadioLink`](crate::RadioLink):
/// [`LinkOutcome::Delivered`] when the ACK has come; [`LinkOutcome::AttemptFailed`] when the timeout is over,
/// or when a longer frame that it collided with has ended; and then [`LinkOutcome::Discarded`], if the retry
/// limit is reached. What is dropped above the MAC was delivered for all that the access point knows.
///
/// # Randomness
/// See [`StationStreams`]; the access point has a stream of its own for its backoffs.
///
/// # Cost
/// There is no event for a slot: who begins next follows from the slots that each has left. A frame exchange
/// takes a wake-up when its data frame ends, one more with RTS or with a collision of frames that differ,
/// and one more for what watchers hear.
#[allow(missing_debug_implementations)]
pub struct Cell {
    config: CellConfig,
    timing: Timing,
    contenders: Vec<Contender>,
    queues: Vec<Queues>,
    peers: Vec<Peer>,
    /// For each host the place of its station; [`AP`] for who is not in the cell.
    places: Vec<usize>,
    phase: Phase,
    /// Those who send now.
    senders: Vec<usize>,
    words: Words,
    stats: CellStats,
}

/// A station, as the medium sees it.
struct Peer {
    channel: Box<dyn Channel>,
    down: Way,
    up: Way,
    stats: StationStats,
}

/// Chance on one way.
struct Way {
    bits: Stream,
    above: Stream,
    /// Probability that a packet is dropped above the MAC.
    dropped: f64,
}

/// What the medium is in.
#[derive(Clone, Copy)]
enum Phase {
    /// Nobody sends. As things stand, someone begins at `first`, and cannot be over before `due`.
    Contention { first: Time, due: Time },
    /// One sends, and the data frame ends at `until`.
    Alone { sender: usize, until: Time, arrives: bool },
    /// Several send, the longest until `until`.
    Collision { until: Time },
}

impl Cell {
    /// An idle cell, whose access point draws its backoffs from `backoff`.
    ///
    /// # Panics
    /// If the parameters are not [valid](CellConfig::validate), or if a host has two stations.
    pub fn new(config: CellConfig, backoff: Stream, stations: Vec<Station>) -> Cell {
        if let Err(invalid) = config.validate() {
            panic!("{invalid}");
        }
        let timing = config.timing();
        let mut contenders = vec![Contender::new(timing.cw, timing.difs, backoff)];
        let mut queues = vec![Queues::of_ap(config.ap_queue, stations.len())];
        let (mut peers, mut places) = (Vec::new(), Vec::new());
        for (index, Station { hosts, channel, above_mac, streams }) in stations.into_iter().enumerate() {
            contenders.push(Contender::new(timing.cw, timing.difs, streams.backoff));
            queues.push(Queues::one(config.station_queue));
            let (down, up) = (above_mac.down.get(), above_mac.up.get());
            let down = Way { bits: streams.bits_down, above: streams.above_down, dropped: down };
            let up = Way { bits: streams.bits_up, above: streams.above_up, dropped: up };
            peers.push(Peer { channel, down, up, stats: StationStats::default() });
            for HostId(host) in hosts {
                let host = usize::from(host);
                places.resize(places.len().max(host + 1), AP);
                assert!(places[host] == AP, "host {host} has two stations");
                places[host] = index + 1;
            }
        }
        Cell {
            config,
            timing,
            senders: Vec::with_capacity(contenders.len()),
            contenders,
            queues,
            peers,
            places,
            phase: Phase::Contention { first: Time::NEVER, due: Time::NEVER },
            words: Words::default(),
            stats: CellStats::default(),
        }
    }

    /// What happened on the medium so far.
    pub fn stats(&self) -> &CellStats {
        &self.stats
    }

    /// What became of the packets of station `index` so far.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn station(&self, index: usize) -> &StationStats {
        &self.peers[index].stats
    }

    /// The place of the station through which a host is reached; [`AP`] if it is not in the cell.
    fn place_of(&self, host: HostId) -> usize {
        self.places.get(usize::from(host.0)).copied().unwrap_or(AP)
    }

    fn way(&mut self, from: usize, to: usize) -> &mut WayStats {
        if from == AP { &mut self.peers[to - 1].stats.down } else { &mut self.peers[from - 1].stats.up }
    }

    /// Does everything that is due by `now`.
    fn advance(&mut self, now: Time, out: &mut Out) {
        loop {
            let begun = match self.phase {
                Phase::Contention { first, .. } => first + self.timing.slot,
                Phase::Alone { until, .. } | Phase::Collision { until } => until,
            };
            if begun.min(self.words.next()) > now {
                return;
            }
            if self.words.next() <= begun {
                self.words.say(out);
                continue;
            }
            match self.phase {
                Phase::Contention { first, .. } => self.begin(first),
                Phase::Alone { sender, until, arrives } => {
                    self.stats.exchanges += 1;
                    if arrives {
                        self.succeed(sender, until, out)
                    } else {
                        self.fail(sender, until)
                    }
                    self.plan();
                }
                Phase::Collision { until } => {
                    self.collide(until);
                    self.plan();
                }
            }
        }
    }

    /// Computes who begins next, of those who have something to send.
    fn plan(&mut self) {
        let slot = self.timing.slot;
        self.phase = Phase::Contention { first: Time::NEVER, due: Time::NEVER };
        for place in 0..self.contenders.len() {
            self.contenders[place].plan(slot);
            self.plan_for(place);
        }
    }

    /// Takes into account when one of them would begin.
    fn plan_for(&mut self, place: usize) {
        let Contender { start, head: Some(frame), .. } = &self.contenders[place] else { return };
        if let Phase::Contention { first, .. } = self.phase
            && *start < first
        {
            self.phase = Phase::Contention { first: *start, due: *start + frame.first };
        }
    }

    /// The medium is in use from `first` on.
    fn begin(&mut self, first: Time) {
        let slot = self.timing.slot;
        let noticed = first + slot;
        let mut known = (Time::NEVER, 0);
        let mut slots_ended = |from: Time| {
            if known.0 != from {
                let span = noticed.max(from).since(from).saturating_sub(Duration::from_nanos(1));
                known = (from, (span.as_nanos() / slot.as_nanos()).min(u64::from(u32::MAX)) as u32);
            }
            known.1
        };
        self.senders.clear();
        for (place, contender) in self.contenders.iter_mut().enumerate() {
            if contender.start < noticed {
                contender.send();
                self.senders.push(place);
            } else {
                contender.defer(noticed, &mut slots_ended);
            }
        }
        for index in 0..self.senders.len() {
            let sender = self.senders[index];
            let frame = self.frame(sender);
            frame.attempts += 1;
            let (again, to) = (frame.attempts > 1, frame.to);
            let way = self.way(sender, to);
            way.attempts += 1;
            way.retries += u64::from(again);
        }
        self.phase = match self.senders[..] {
            [sender] => self.begin_alone(sender),
            _ => self.begin_collision(first),
        };
    }

    fn frame(&mut self, sender: usize) -> &mut Frame {
        self.contenders[sender].head.as_mut().expect("who sends has a packet")
    }

    fn begin_alone(&mut self, sender: usize) -> Phase {
        let Timing { rts, cts, sifs, plcp, ack, .. } = self.timing;
        let mut start = self.contenders[sender].start;
        let frame = self.contenders[sender].head.as_mut().expect("who sends has a packet");
        if frame.rts {
            // The CTS frame is a success of its own (section 9.2.5.7).
            frame.short = 0;
            start = start + rts + sifs + cts + sifs;
            self.stats.busy_time += rts + cts;
        }
        let until = start + frame.data;
        self.stats.busy_time += frame.data;
        let bits = (frame.packet.size + DATA_OVERHEAD).bits();
        let to = frame.to;
        let Peer { channel, down, up, .. } = &mut self.peers[sender.max(to) - 1];
        let survival = channel.survival(start + plcp, until, bits);
        let way = if sender == AP { down } else { up };
        let arrives = way.bits.bernoulli(survival);
        if arrives {
            self.stats.busy_time += ack;
        } else {
            self.way(sender, to).lost += 1;
        }
        Phase::Alone { sender, until, arrives }
    }

    fn begin_collision(&mut self, first: Time) -> Phase {
        let mut until = first;
        for index in 0..self.senders.len() {
            let sender = self.senders[index];
            until = until.max(self.contenders[sender].start + self.frame(sender).first);
            let to = self.frame(sender).to;
            self.way(sender, to).collided += 1;
        }
        self.stats.busy_time += until.since(first);
        self.stats.collisions += 1;
        Phase::Collision { until }
    }

    /// A data frame has arrived at `until`; the ACK follows.
    fn succeed(&mut self, sender: usize, until: Time, out: &mut Out) {
        let end = until + self.timing.sifs + self.timing.ack;
        self.everyone_hears(end, end + self.timing.difs);
        let frame = *self.frame(sender);
        self.over(sender, until, end);
        if sender == AP {
            self.words.add(Word::new(end, &frame, LinkOutcome::Delivered, true));
        }
        self.hand_on(sender, &frame, until, out);
    }

    /// A data frame has ended at `until` that the receiver could not understand.
    fn fail(&mut self, sender: usize, until: Time) {
        let Timing { sifs, ack, difs, eifs, .. } = self.timing;
        let acknowledged = until + sifs + ack;
        self.everyone_hears(acknowledged, acknowledged + difs);
        let Frame { to, rts, .. } = *self.frame(sender);
        self.contenders[to].hear(until, until + eifs);
        self.attempt_failed(sender, rts, until, acknowledged);
    }

    /// Several frames have met, and the last one ends at `until`.
    fn collide(&mut self, until: Time) {
        let Timing { sifs, ack, cts, eifs, .. } = self.timing;
        self.everyone_hears(until, until + eifs);
        for index in 0..self.senders.len() {
            let sender = self.senders[index];
            let Frame { first, rts, .. } = *self.frame(sender);
            let answer = if rts { cts } else { ack };
            let timeout = self.contenders[sender].start + first + sifs + answer;
            self.attempt_failed(sender, false, until, timeout.max(until));
        }
    }

    fn everyone_hears(&mut self, busy_until: Time, slots_from: Time) {
        for contender in &mut self.contenders {
            contender.hear(busy_until, slots_from);
        }
    }

    /// An attempt has failed, which its sender will know at `timeout`. The long retry limit counts if the
    /// frame that failed is `long`.
    fn attempt_failed(&mut self, sender: usize, long: bool, now: Time, timeout: Time) {
        let CellConfig { short_retry_limit, long_retry_limit, .. } = self.config;
        let frame = self.frame(sender);
        let (failures, limit) = match long {
            true => (&mut frame.long, long_retry_limit),
            false => (&mut frame.short, short_retry_limit),
        };
        *failures += 1;
        let given_up = limit.is_reached(*failures);
        let frame = *frame;
        let from_ap = sender == AP;
        if from_ap {
            self.words.add(Word::new(timeout, &frame, LinkOutcome::AttemptFailed, true));
        }
        if given_up {
            self.words.add(Word::new(timeout, &frame, LinkOutcome::Discarded, from_ap));
            self.way(sender, frame.to).discarded += 1;
            self.over(sender, now, timeout);
        } else {
            self.contenders[sender].wait(timeout);
            self.contenders[sender].try_again();
        }
    }

    /// A packet is over for its sender at `answer`, when the ACK or the last timeout has ended. The MAC takes
    /// the next packet, if there is one.
    fn over(&mut self, sender: usize, now: Time, answer: Time) {
        self.contenders[sender].wait(answer);
        self.contenders[sender].begin_anew();
        if let Some((packet, to)) = self.queues[sender].pop() {
            let frame = self.frame_of(packet, to);
            self.contenders[sender].follow(now, frame);
        }
    }

    fn frame_of(&self, packet: Packet, to: usize) -> Frame {
        let data = self.config.phy.data_time(packet.size);
        let rts = self.config.rts_threshold.is_some_and(|most| packet.size + DATA_OVERHEAD > most);
        let first = if rts { self.timing.rts } else { data };
        Frame { packet, to, data, first, rts, attempts: 0, short: 0, long: 0 }
    }

    /// What the MAC has received goes to where it is for, unless it is dropped above.
    fn hand_on(&mut self, sender: usize, frame: &Frame, now: Time, out: &mut Out) {
        let Frame { packet, to, .. } = *frame;
        let peer = &mut self.peers[sender.max(to) - 1];
        let (way, stats) = match sender {
            AP => (&mut peer.down, &mut peer.stats.down),
            _ => (&mut peer.up, &mut peer.stats.up),
        };
        // Drawn even where nothing is dropped, so that the same packet of two schemes meets the same number.
        if way.above.bernoulli(way.dropped) {
            stats.corrupted += 1;
            return out.drop(packet, DropReason::Corrupted);
        }
        stats.delivered += 1;
        stats.delivered_bytes += packet.size;
        if sender == AP {
            return out.send(Port(to as u16), packet);
        }
        match self.place_of(packet.dst) {
            AP => out.send(Port::WIRED, packet),
            station => self.enqueue(AP, station, packet, now, out),
        }
    }

    /// A packet comes to one who contends, for another.
    fn enqueue(&mut self, from: usize, to: usize, packet: Packet, now: Time, out: &mut Out) {
        if self.contenders[from].head.is_none() {
            let during = !matches!(self.phase, Phase::Contention { .. });
            let frame = self.frame_of(packet, to);
            self.queues[from].pass(to);
            self.contenders[from].take(now, frame, during);
            self.contenders[from].plan(self.timing.slot);
            self.plan_for(from);
        } else if !self.queues[from].push(packet, to) {
            self.way(from, to).overflowed += 1;
            out.drop(packet, DropReason::QueueFull);
        }
    }
}

impl Component for Cell {
    /// # Panics
    /// If a packet from the fixed network is for nobody in the cell: it was routed wrongly.
    fn receive(&mut self, now: Time, packet: Packet, port: Port, out: &mut Out) {
        // What ends at this instant counts, whether the cell was woken before or not.
        self.advance(now, out);
        let from = usize::from(port.0);
        let to = match from {
            AP => self.place_of(packet.dst),
            _ => AP,
        };
        assert!(from != to, "{:?} is not in the cell", packet.dst);
        self.enqueue(from, to, packet, now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.advance(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let due = match self.phase {
            Phase::Contention { due, .. } => due,
            Phase::Alone { until, .. } | Phase::Collision { until } => until,
        };
        due.min(self.words.next())
    }

    /// The access point's queue in packets and bytes, and its contention window.
    fn show(&self, probe: &mut dyn Probe) {
        let (packets, Bytes(bytes)) = self.queues[AP].waiting();
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes as f64);
        probe.value("cw", f64::from(self.contenders[AP].window()));
    }
}
