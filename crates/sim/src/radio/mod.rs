//! One direction of a wireless last hop.

mod coding;

use std::collections::VecDeque;

use lasthop_base::{BitRate, Bytes, Duration, Stream, Time};
use lasthop_channel::Channel;
use lasthop_proto::arq::{self, Arq, Attempt, Next, Verdict};
use lasthop_proto::frag::{Fragments, Mtu, Outcome, Reassembly};
use lasthop_proto::{Component, DropReason, LinkEvent, LinkOutcome, Out, Packet, Port, Probe, Signal};

use crate::wired::QueueLimit;

pub use coding::{Expansion, Exposed};

/// What one direction of a wireless last hop is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioConfig {
    /// Raw rate of the air: at which expanded bits are sent.
    pub rate: BitRate,
    /// Propagation delay, from the end of a unit's air time to its arrival.
    pub delay: Duration,
    /// How much may wait before the link.
    pub queue: QueueLimit,
    /// What lower layers add to each unit.
    pub expansion: Expansion,
    /// Largest unit; without it, every packet is one unit.
    pub mtu: Option<Mtu>,
    /// Which bits of a unit errors can hit.
    pub exposed: Exposed,
    /// What the sending end does about lost units.
    pub arq: arq::Config,
}

/// What a link has done so far. Attempts and their bits count when they end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioStats {
    /// Attempts: units sent, each as often as it was sent.
    pub attempts: u64,
    /// Attempts whose unit was hit by an error, whether the sending end knows or not.
    pub failed_attempts: u64,
    /// Bits put on the air, after expansion.
    pub bits_on_air: u64,
    /// How long the air was in use.
    pub air_time: Duration,
    /// Packets that arrived whole.
    pub delivered: u64,
    /// Packets that arrived with a fragment missing.
    pub corrupted: u64,
    /// Packets that the sending end gave up.
    pub discarded: u64,
    /// Packets that found the queue full.
    pub overflowed: u64,
}

/// One direction of a wireless last hop: packets wait in line, leave in units at the rate of the
/// air, survive it or not, and arrive after the propagation delay in the order in which they came.
/// Enters and leaves by [`Port::ONLY`].
///
/// # Losses
/// A packet that the ARQ gives up is dropped ([`DropReason::AttemptsExhausted`]) when the attempt
/// that decided it ends. One that arrives with a fragment missing, which takes a link without
/// acknowledgements, is dropped ([`DropReason::Corrupted`]) when its last fragment would have
/// arrived.
///
/// # Signals
/// Those who watch the link are told at the end of an attempt: [`LinkOutcome::Delivered`] of each
/// unit that arrived; [`LinkOutcome::AttemptFailed`] of each that did not, the last one included;
/// and then [`LinkOutcome::Discarded`] once, if the packet is given up. They are told no more than
/// the sending end can know: without an ARQ, nothing at all.
///
/// # Randomness
/// The stream `bits` gives one uniform number for every attempt, whatever the channel's state; the
/// stream `backoff` is the ARQ's. The channel has its own: each direction of a hop holds a copy
/// built from the same one, so that both meet the same fades.
#[allow(missing_debug_implementations)]
pub struct RadioLink {
    config: RadioConfig,
    arq: Box<dyn Arq>,
    channel: Box<dyn Channel>,
    bits: Stream,
    /// All packets that are here, in the order in which they came: first those that are over for the
    /// sending end and have not reached the other one, then those that have begun, then the queue.
    line: VecDeque<Slot>,
    /// How many are over for the sending end.
    over: usize,
    /// How many of the others have begun.
    begun: usize,
    /// The number of the first of those that are not over, counted by the ARQ.
    first: u64,
    /// Bytes in the queue.
    waiting: Bytes,
    air: Air,
    units: UnitTimes,
    stats: RadioStats,
}

enum Air {
    Free { until: Time },
    Busy { attempt: Attempt, size: Bytes, start: Time, end: Time },
}

/// A packet and what is known of it.
struct Slot {
    packet: Packet,
    reassembly: Reassembly,
    /// When it reaches the other end, once it is over for the sending end.
    arrival: Time,
}

/// What a unit's size means on the air; remembers the last, since units come in few sizes.
struct UnitTimes {
    size: Bytes,
    on_air: u64,
    air_time: Duration,
}

impl Air {
    fn until(&self) -> Time {
        match *self {
            Air::Free { until } => until,
            Air::Busy { end, .. } => end,
        }
    }
}

impl RadioLink {
    /// An idle link over `channel`, with its two random streams.
    ///
    /// # Panics
    /// If the ARQ's parameters are not [valid](arq::Config::validate).
    pub fn new(config: RadioConfig, channel: Box<dyn Channel>, bits: Stream, backoff: Stream) -> RadioLink {
        RadioLink {
            config,
            arq: config.arq.build(backoff),
            channel,
            bits,
            line: VecDeque::new(),
            over: 0,
            begun: 0,
            first: 0,
            waiting: Bytes::ZERO,
            air: Air::Free { until: Time::NEVER },
            units: UnitTimes { size: Bytes::ZERO, on_air: 0, air_time: Duration::ZERO },
            stats: RadioStats::default(),
        }
    }

    /// What the link has done so far.
    pub fn stats(&self) -> &RadioStats {
        &self.stats
    }

    /// Packets in the queue.
    fn queued(&self) -> usize {
        self.line.len() - self.over - self.begun
    }

    /// Does everything that is due by `now`.
    fn advance(&mut self, now: Time, out: &mut Out) {
        while self.air.until() <= now {
            if let Air::Busy { attempt, size, start, end } = self.air {
                self.end_attempt(attempt, size, start, end, out);
            }
            self.use_air(now);
        }
        while self.over > 0 && self.line[0].arrival <= now {
            self.arrive(out);
        }
    }

    /// Gives the free air to whatever the ARQ wants to send.
    fn use_air(&mut self, now: Time) {
        self.air = loop {
            match self.arq.next(now, self.queued() > 0) {
                Next::Begin => self.begin_packet(),
                Next::Send(attempt) => break self.begin_attempt(attempt, now),
                Next::Wait(until) => {
                    assert!(until > now, "an ARQ asked at {now} to wait until {until}");
                    break Air::Free { until };
                }
            }
        };
    }

    fn begin_packet(&mut self) {
        let slot = self.line.get_mut(self.over + self.begun);
        let Slot { packet, reassembly, .. } = slot.expect("an ARQ begins a packet only if one waits");
        self.waiting = self.waiting - packet.size;
        let units = Fragments::of(packet.size, self.config.mtu).count();
        *reassembly = Reassembly::of(units);
        self.arq.begin(self.first + self.begun as u64, units);
        self.begun += 1;
    }

    fn begin_attempt(&mut self, attempt: Attempt, start: Time) -> Air {
        let packet = self.line[self.place(attempt)].packet.size;
        let size = Fragments::of(packet, self.config.mtu).size(attempt.unit);
        if self.units.size != size {
            let on_air = self.config.expansion.on_air(size.bits());
            self.units = UnitTimes { size, on_air, air_time: self.config.rate.time_for_bits(on_air) };
        }
        Air::Busy { attempt, size, start, end: start + self.units.air_time }
    }

    /// Where the attempt's packet is in the line.
    fn place(&self, attempt: Attempt) -> usize {
        self.over + (attempt.packet - self.first) as usize
    }

    fn end_attempt(&mut self, attempt: Attempt, size: Bytes, start: Time, end: Time, out: &mut Out) {
        let arrived = self.survives(size, start, end);
        let verdict = self.arq.ended(end, attempt, arrived);
        let place = self.place(attempt);
        let Slot { packet, reassembly, .. } = &mut self.line[place];
        let mut tell = |outcome| {
            let event = LinkEvent { outcome, packet: *packet, attempt: attempt.number };
            out.signal(Signal::Link(event));
        };
        match verdict {
            Verdict::Unacknowledged if arrived => reassembly.arrived(),
            Verdict::Unacknowledged => reassembly.lost(),
            Verdict::Delivered => {
                reassembly.arrived();
                tell(LinkOutcome::Delivered);
            }
            Verdict::Again => tell(LinkOutcome::AttemptFailed),
            Verdict::GiveUp => {
                reassembly.abandon();
                tell(LinkOutcome::AttemptFailed);
                tell(LinkOutcome::Discarded);
                out.drop(*packet, DropReason::AttemptsExhausted);
                self.stats.discarded += 1;
            }
        }
        self.release(end);
    }

    /// Whether a unit of this size survives the air.
    fn survives(&mut self, size: Bytes, start: Time, end: Time) -> bool {
        let exposed = match self.config.exposed {
            Exposed::OnAir => self.units.on_air,
            Exposed::Payload => size.bits(),
        };
        // Drawn even where the outcome is certain, so that the same attempt of two schemes meets
        // the same number.
        let survives = self.bits.bernoulli(self.channel.survival(start, end, exposed));
        self.stats.attempts += 1;
        self.stats.failed_attempts += u64::from(!survives);
        self.stats.bits_on_air += self.units.on_air;
        self.stats.air_time += end.since(start);
        survives
    }

    /// Lets go of the packets that are over, in order: one that is over waits for those before it.
    fn release(&mut self, now: Time) {
        while self.begun > 0 {
            let slot = &mut self.line[self.over];
            let Some(outcome) = slot.reassembly.outcome() else { break };
            self.begun -= 1;
            self.first += 1;
            if outcome == Outcome::Abandoned {
                self.line.remove(self.over);
            } else {
                slot.arrival = now + self.config.delay;
                self.over += 1;
            }
        }
    }

    /// The first packet in the line reaches the other end.
    fn arrive(&mut self, out: &mut Out) {
        let Slot { packet, reassembly, .. } = &self.line[0];
        if reassembly.outcome() == Some(Outcome::Complete) {
            self.stats.delivered += 1;
            out.send(Port::ONLY, *packet);
        } else {
            self.stats.corrupted += 1;
            out.drop(*packet, DropReason::Corrupted);
        }
        self.line.pop_front();
        self.over -= 1;
    }

    /// Whether one more packet of this size may come: it begins at once, or may wait.
    fn has_room(&self, now: Time, size: Bytes) -> bool {
        let free = matches!(self.air, Air::Free { .. });
        let begins_at_once = free && self.queued() == 0 && self.arq.next(now, true) == Next::Begin;
        begins_at_once || self.config.queue.admits(self.queued(), self.waiting, size)
    }
}

impl Component for RadioLink {
    fn receive(&mut self, now: Time, packet: Packet, _port: Port, out: &mut Out) {
        // Room made at this instant counts, whether the link was woken before or not.
        self.advance(now, out);
        if !self.has_room(now, packet.size) {
            self.stats.overflowed += 1;
            return out.drop(packet, DropReason::QueueFull);
        }
        self.waiting += packet.size;
        let reassembly = Reassembly::of(0);
        self.line.push_back(Slot { packet, reassembly, arrival: Time::NEVER });
        if let Air::Free { .. } = self.air {
            self.use_air(now);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.advance(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let arrival = self.line.front().map_or(Time::NEVER, |slot| slot.arrival);
        self.air.until().min(arrival)
    }

    /// Packets waiting in the queue, bytes of those, and how many times the unit on the air has been
    /// sent now; zero between units.
    fn show(&self, probe: &mut dyn Probe) {
        let attempt = match self.air {
            Air::Busy { attempt, .. } => attempt.number,
            Air::Free { .. } => 0,
        };
        probe.value("queue_packets", self.queued() as f64);
        probe.value("queue_bytes", self.waiting.0 as f64);
        probe.value("attempt", f64::from(attempt));
    }
}
