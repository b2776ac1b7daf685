//! One direction of a wireless last hop.

mod air;
mod coding;
mod cut;
mod plain;
mod recovering;

use lasthop_base::{BitRate, Duration, Stream, Time};
use lasthop_channel::Channel;
use lasthop_proto::frag::Mtu;
use lasthop_proto::{Component, Out, Packet, Port, Probe, arq};

use crate::line::QueueLimit;
use crate::queue::{Discipline, QueueStats};
use air::Air;
use plain::{Managed, Plain};
use recovering::{Queue, Recovering};

pub use coding::{Expansion, Exposed};
pub use cut::Fec;

/// What one direction of a wireless last hop is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioConfig {
    /// Raw rate of the air: at which expanded bits are sent.
    pub rate: BitRate,
    /// Propagation delay, from the end of a unit's air time to its arrival.
    pub delay: Duration,
    /// How much may wait before the link, unless its queue is [managed](RadioLink::managed).
    pub queue: QueueLimit,
    /// What lower layers add to each unit.
    pub expansion: Expansion,
    /// Largest unit; without it, every packet is one unit.
    pub mtu: Option<Mtu>,
    /// The size of every unit, the last of a packet filled up; in place of a largest one.
    pub unit: Option<Mtu>,
    /// A code that corrects errors, and what it protects.
    pub fec: Option<Fec>,
    /// Which bits of a unit errors can hit.
    pub exposed: Exposed,
    /// What the sending end does about lost units.
    pub arq: arq::Config,
}

/// What a link has done so far. Attempts and their bits count when it is over with their packet: with
/// an ARQ as they end, without one as the packet reaches the other end.
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
    /// Packets that found the queue full, or were dropped because it was.
    pub overflowed: u64,
    /// Packets that the queue's discipline dropped before it was full.
    pub early_drops: u64,
    /// Packets that it marked in place of dropping them.
    pub marked: u64,
}

impl RadioStats {
    fn note_queue(&mut self, queue: &QueueStats) {
        let QueueStats { overflowed, early_drops, marked } = *queue;
        (self.overflowed, self.early_drops, self.marked) = (overflowed, early_drops, marked);
    }
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
/// the sending end can know: without an ARQ, nothing at all. They are told it before the feedback
/// delay of selective repeat has passed.
///
/// # Randomness
/// The stream `bits` gives one uniform number for every attempt, whatever the channel's state; the
/// stream `backoff` is the ARQ's. The channel has its own: each direction of a hop holds a copy
/// built from the same one, so that both meet the same fades.
///
/// [`DropReason::AttemptsExhausted`]: lasthop_proto::DropReason::AttemptsExhausted
/// [`DropReason::Corrupted`]: lasthop_proto::DropReason::Corrupted
/// [`LinkOutcome::Delivered`]: lasthop_proto::LinkOutcome::Delivered
/// [`LinkOutcome::AttemptFailed`]: lasthop_proto::LinkOutcome::AttemptFailed
/// [`LinkOutcome::Discarded`]: lasthop_proto::LinkOutcome::Discarded
#[allow(missing_debug_implementations)]
pub struct RadioLink(Kind);

/// Without an ARQ, a unit's fate changes nothing about what is sent when: such a link is a line of
/// packets like a wired one, and as cheap.
#[allow(clippy::large_enum_variant, reason = "a scenario has few, and all kinds are busy")]
enum Kind {
    Plain(Plain),
    Managed(Managed),
    Recovering(Recovering),
}

impl RadioLink {
    /// An idle link over `channel`, with its two random streams.
    ///
    /// # Panics
    /// If the ARQ's parameters are not [valid](arq::Config::validate), or units have both a size and a
    /// largest one.
    pub fn new(config: RadioConfig, channel: Box<dyn Channel>, bits: Stream, backoff: Stream) -> RadioLink {
        let air = Air::new(&config, channel, bits);
        RadioLink(match config.arq.build(backoff) {
            None => Kind::Plain(Plain::new(&config, air)),
            Some(arq) => Kind::Recovering(Recovering::new(&config, air, arq, Queue::DropTail(config.queue))),
        })
    }

    /// As [`new`](RadioLink::new), with a queue under a discipline in place of `config.queue`.
    ///
    /// # Panics
    /// As `new`.
    pub fn managed(
        config: RadioConfig,
        queue: Box<dyn Discipline>,
        channel: Box<dyn Channel>,
        bits: Stream,
        backoff: Stream,
    ) -> RadioLink {
        let air = Air::new(&config, channel, bits);
        RadioLink(match config.arq.build(backoff) {
            None => Kind::Managed(Managed::new(&config, air, queue)),
            Some(arq) => Kind::Recovering(Recovering::new(&config, air, arq, Queue::Managed(queue))),
        })
    }

    /// The link of a run that ends at `horizon`: a unit that begins later has no fate. A queue without a bound may
    /// reach years ahead, and so would the channel, whose fades are drawn as far as they are asked about.
    pub fn until(mut self, horizon: Time) -> RadioLink {
        if let Kind::Plain(link) = &mut self.0 {
            link.until(horizon);
        }
        self
    }

    /// Packets that have not arrived: those that wait, and those on their way.
    pub(crate) fn held(&self) -> usize {
        match &self.0 {
            Kind::Plain(link) => link.held(),
            Kind::Managed(link) => link.held(),
            Kind::Recovering(link) => link.held(),
        }
    }

    /// What the link has done so far.
    pub fn stats(&self) -> &RadioStats {
        match &self.0 {
            Kind::Plain(link) => link.stats(),
            Kind::Managed(link) => link.stats(),
            Kind::Recovering(link) => link.stats(),
        }
    }
}

impl Component for RadioLink {
    fn receive(&mut self, now: Time, packet: Packet, _port: Port, out: &mut Out) {
        match &mut self.0 {
            Kind::Plain(link) => link.receive(now, packet, out),
            Kind::Managed(link) => link.receive(now, packet, out),
            Kind::Recovering(link) => link.receive(now, packet, out),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        match &mut self.0 {
            Kind::Plain(link) => link.wake(now, out),
            Kind::Managed(link) => link.wake(now, out),
            Kind::Recovering(link) => link.advance(now, out),
        }
    }

    fn next_wakeup(&self) -> Time {
        match &self.0 {
            Kind::Plain(link) => link.next_wakeup(),
            Kind::Managed(link) => link.next_wakeup(),
            Kind::Recovering(link) => link.next_wakeup(),
        }
    }

    /// Packets waiting in the queue, bytes of those, and how many times the unit on the air has been
    /// sent now; zero between units.
    fn show(&self, probe: &mut dyn Probe) {
        let ((packets, bytes), attempt) = match &self.0 {
            Kind::Plain(link) => (link.queued(), 0),
            Kind::Managed(link) => (link.queued(), 0),
            Kind::Recovering(link) => (link.queued(), link.attempt()),
        };
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes.0 as f64);
        probe.value("attempt", f64::from(attempt));
    }
}
