//! One direction of a wireless last hop.

mod air;
mod fragmenter;
mod one_shot;
mod shared;
mod with_arq;

use lasthop_base::{BitRate, Bytes, Duration, Stream, Time};
use lasthop_channel::Channel;
use lasthop_link::pace::Fixed;
use lasthop_link::queue::{Discipline, QueueLimit, QueueStats};
use lasthop_link::varying::Timing;
use lasthop_link::{Expansion, Exposed};
use lasthop_proto::frag::Mtu;
use lasthop_proto::{Component, Out, Packet, Port, Probe, Signal, arq};

use crate::line::Line;
use air::Air;
use one_shot::{ManagedOneShot, OneShot, VaryingOneShot};
use with_arq::{Queue, WithArq};

pub use fragmenter::Fec;
pub use shared::{SharedLink, SharedRadio};

/// Parameters of one direction of a wireless last hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioConfig {
    /// Raw bit rate of the air interface; expanded bits are sent at this rate.
    pub rate: BitRate,
    /// Propagation delay, from the end of a unit's air time to its arrival.
    pub delay: Duration,
    /// Capacity of the queue; ignored if the queue is [managed](RadioLink::managed).
    pub queue: QueueLimit,
    /// Overhead of the lower layers.
    pub expansion: Expansion,
    /// Maximum unit size (MTU); without it, every packet is one unit. Ignored, like `unit`, if the ARQ [cuts
    /// frames](arq::Config::cuts_frames).
    pub mtu: Option<Mtu>,
    /// Fixed unit size; the last unit of a packet is padded. Excludes an MTU.
    pub unit: Option<Mtu>,
    /// An error-correcting code and what it protects.
    pub fec: Option<Fec>,
    /// Which bits of a unit are exposed to errors.
    pub exposed: Exposed,
    /// Recovery of lost units by the sending end.
    pub arq: arq::Config,
}

impl RadioConfig {
    /// The fixed unit size in effect.
    fn fixed_unit(&self) -> Option<Mtu> {
        self.unit.filter(|_| !self.arq.cuts_frames())
    }
}

/// Counters of a link. Attempts and their bits are counted when they end if the link has an ARQ, otherwise
/// when their packet reaches the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioStats {
    /// Transmissions of units, retransmissions included.
    pub attempts: u64,
    /// Transmissions with an error, whether or not the sending end learns of it.
    pub failed_attempts: u64,
    /// Bits put on the air, after expansion.
    pub bits_on_air: u64,
    /// Total air time. On a link whose rate is given by opportunities, computed at their mean rate.
    pub air_time: Duration,
    /// Packets that arrived intact.
    pub delivered: u64,
    /// Packets that arrived with a fragment missing.
    pub corrupted: u64,
    /// Packets that the ARQ gave up.
    pub discarded: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets dropped by the queue discipline before the queue was full.
    pub early_drops: u64,
    /// Packets marked by the queue discipline instead of a drop.
    pub marked: u64,
}

impl RadioStats {
    fn note_queue(&mut self, queue: &QueueStats) {
        let QueueStats { overflowed, early_drops, marked } = *queue;
        (self.overflowed, self.early_drops, self.marked) = (overflowed, early_drops, marked);
    }
}

/// One direction of a wireless last hop. Packets wait in a queue, are sent in units at the rate of the air
/// interface, survive or not, and arrive in order after the propagation delay. Uses [`Port::ONLY`] for input
/// and output.
///
/// # Losses
/// A packet that the ARQ gives up is dropped ([`DropReason::AttemptsExhausted`]) at the end of its last
/// attempt. A packet with a missing fragment, possible only without an ARQ, is dropped
/// ([`DropReason::Corrupted`]) when its last fragment would have arrived.
///
/// # Signals
/// A link with an ARQ that watches a [moving host](Signal::Attached) gives up its packets when the host leaves, and those
/// that enter until it returns ([`DropReason::Unreachable`]), without a signal. The attempt on the air is not counted.
/// A link without an ARQ transmits its packets in vain.
///
/// # Signals sent
/// Watchers get a signal at the end of each attempt: [`LinkOutcome::Delivered`] for a unit that arrived, or
/// [`LinkOutcome::AttemptFailed`] for one that did not, including the last attempt. If the packet is given
/// up, [`LinkOutcome::Discarded`] follows once. Signals carry only what the sending end can know, so there
/// are none without an ARQ. They are sent before the feedback delay of selective repeat has passed.
///
/// # Randomness
/// The stream `bits` yields one uniform number per attempt, whatever the state of the channel; the stream
/// `backoff` belongs to the ARQ. The channel has its own stream; both directions of a hop hold copies
/// built from the same stream, so that they meet the same fades.
///
/// [`DropReason::AttemptsExhausted`]: lasthop_proto::DropReason::AttemptsExhausted
/// [`DropReason::Corrupted`]: lasthop_proto::DropReason::Corrupted
/// [`DropReason::Unreachable`]: lasthop_proto::DropReason::Unreachable
/// [`LinkOutcome::Delivered`]: lasthop_proto::LinkOutcome::Delivered
/// [`LinkOutcome::AttemptFailed`]: lasthop_proto::LinkOutcome::AttemptFailed
/// [`LinkOutcome::Discarded`]: lasthop_proto::LinkOutcome::Discarded
#[allow(missing_debug_implementations)]
pub struct RadioLink {
    kind: Kind,
    /// The number of its base station among those of a moving host.
    station: u16,
}

/// Without an ARQ, losses do not affect timing: the link is a line of packets, as cheap as a wired one.
#[allow(clippy::large_enum_variant, reason = "a scenario has few, and all kinds are busy")]
enum Kind {
    OneShot(OneShot),
    ManagedOneShot(ManagedOneShot),
    Arq(WithArq<Fixed>),
    /// Boxed and handled out of line, so that the other kinds do not pay for it.
    Varying(Box<Varying>),
}

/// A link whose rate or delay varies.
enum Varying {
    OneShot(VaryingOneShot),
    Arq(WithArq<Timing>),
}

impl Varying {
    fn held(&self) -> usize {
        match self {
            Varying::OneShot(link) => link.held(),
            Varying::Arq(link) => link.held(),
        }
    }

    fn stats(&self) -> &RadioStats {
        match self {
            Varying::OneShot(link) => link.stats(),
            Varying::Arq(link) => link.stats(),
        }
    }

    fn queued(&self) -> (usize, Bytes) {
        match self {
            Varying::OneShot(link) => link.queued(),
            Varying::Arq(link) => link.queued(),
        }
    }

    fn attempt(&self) -> u32 {
        match self {
            Varying::OneShot(_) => 0,
            Varying::Arq(link) => link.attempt(),
        }
    }

    #[cold]
    #[inline(never)]
    fn receive(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        match self {
            Varying::OneShot(link) => link.receive(now, *packet, out),
            Varying::Arq(link) => link.receive(now, packet, out),
        }
    }

    #[cold]
    #[inline(never)]
    fn wake(&mut self, now: Time, out: &mut Out) {
        match self {
            Varying::OneShot(link) => link.wake(now, out),
            Varying::Arq(link) => link.advance(now, out),
        }
    }

    #[cold]
    #[inline(never)]
    fn next_wakeup(&self) -> Time {
        match self {
            Varying::OneShot(link) => link.next_wakeup(),
            Varying::Arq(link) => link.next_wakeup(),
        }
    }
}

impl RadioLink {
    /// An idle link over `channel`, with its two random streams.
    ///
    /// # Panics
    /// If the ARQ parameters are not [valid](arq::Config::validate), or if both a unit size and an MTU are
    /// set.
    pub fn new(config: RadioConfig, channel: Box<dyn Channel>, bits: Stream, backoff: Stream) -> RadioLink {
        let air = Air::new(&config, channel, bits);
        let kind = match config.arq.build(backoff) {
            None => Kind::OneShot(OneShot::new(&config, air)),
            Some(arq) => {
                let pace = Fixed { delay: config.delay };
                Kind::Arq(WithArq::new(&config, pace, air, arq, Queue::DropTail(config.queue)))
            }
        };
        RadioLink { kind, station: 0 }
    }

    /// Like [`new`](RadioLink::new), with a queue discipline instead of `config.queue`.
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
        let kind = match config.arq.build(backoff) {
            None => Kind::ManagedOneShot(ManagedOneShot::new(&config, air, queue)),
            Some(arq) => {
                let pace = Fixed { delay: config.delay };
                Kind::Arq(WithArq::new(&config, pace, air, arq, Queue::Managed(queue)))
            }
        };
        RadioLink { kind, station: 0 }
    }

    /// Like [`managed`](RadioLink::managed), with a rate and a delay that vary; `config` has their means.
    ///
    /// # Panics
    /// As [`new`](RadioLink::new).
    pub fn varying(
        config: RadioConfig,
        timing: Timing,
        queue: Box<dyn Discipline>,
        channel: Box<dyn Channel>,
        bits: Stream,
        backoff: Stream,
    ) -> RadioLink {
        let air = Air::new(&config, channel, bits);
        let kind = Kind::Varying(Box::new(match config.arq.build(backoff) {
            None => Varying::OneShot(VaryingOneShot::new(&config, timing, air, queue)),
            Some(arq) => {
                let mut link = WithArq::new(&config, timing, air, arq, Queue::Managed(queue));
                // The rate of a later unit may depend on what is yet to happen.
                link.until(Time::ZERO);
                Varying::Arq(link)
            }
        }));
        RadioLink { kind, station: 0 }
    }

    /// Sets the end of the run: no survival is drawn ahead for units that start after `horizon`. A long queue may
    /// extend years into the future, and the channel would draw its trajectory that far.
    pub fn until(mut self, horizon: Time) -> RadioLink {
        match &mut self.kind {
            Kind::OneShot(link) => link.until(horizon),
            Kind::Arq(link) => link.until(horizon),
            Kind::ManagedOneShot(_) | Kind::Varying(_) => {}
        }
        self
    }

    /// Counts the attempts to which the link has looked ahead and that had ended before `now`, and at `now` itself if
    /// `inclusive`. Only links that are not [lines](Line).
    pub(crate) fn settle(&mut self, now: Time, inclusive: bool) {
        if let Kind::Arq(link) = &mut self.kind {
            link.settle(now, inclusive);
        }
    }

    /// A link to or from the base station with this number among those of a moving host.
    pub fn of_station(self, station: u16) -> RadioLink {
        RadioLink { station, ..self }
    }

    /// Whether the link is a [`Line`].
    pub(crate) fn is_line(&self) -> bool {
        matches!(self.kind, Kind::OneShot(_))
    }

    /// The link as a line, if it is one.
    #[inline]
    pub(crate) fn line_mut(&mut self) -> Option<&mut impl Line> {
        match &mut self.kind {
            Kind::OneShot(link) => Some(link),
            Kind::ManagedOneShot(_) | Kind::Arq(_) | Kind::Varying(_) => None,
        }
    }

    /// Packets that have not arrived, queued or in flight.
    pub(crate) fn held(&self) -> usize {
        match &self.kind {
            Kind::OneShot(link) => link.held(),
            Kind::ManagedOneShot(link) => link.held(),
            Kind::Arq(link) => link.held(),
            Kind::Varying(link) => link.held(),
        }
    }

    /// Counters of the link.
    pub fn stats(&self) -> &RadioStats {
        match &self.kind {
            Kind::OneShot(link) => link.stats(),
            Kind::ManagedOneShot(link) => link.stats(),
            Kind::Arq(link) => link.stats(),
            Kind::Varying(link) => link.stats(),
        }
    }
}

impl Component for RadioLink {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        match &mut self.kind {
            Kind::OneShot(link) => link.enter(now, packet, out),
            Kind::ManagedOneShot(link) => link.receive(now, *packet, out),
            Kind::Arq(link) => link.receive(now, packet, out),
            Kind::Varying(link) => link.receive(now, packet, out),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        match &mut self.kind {
            Kind::OneShot(link) => link.leave(now, out),
            Kind::ManagedOneShot(link) => link.wake(now, out),
            Kind::Arq(link) => link.advance(now, out),
            Kind::Varying(link) => link.wake(now, out),
        }
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        let is_away = match *signal {
            Signal::Attached { station, .. } => station != self.station,
            Signal::Detached { .. } => true,
            _ => return,
        };
        match &mut self.kind {
            Kind::Arq(link) => link.set_away(now, is_away, out),
            Kind::Varying(link) => {
                if let Varying::Arq(link) = &mut **link {
                    link.set_away(now, is_away, out);
                }
            }
            Kind::OneShot(_) | Kind::ManagedOneShot(_) => {}
        }
    }

    #[inline(always)]
    fn next_wakeup(&self) -> Time {
        match &self.kind {
            Kind::OneShot(link) => link.next_wakeup(),
            Kind::ManagedOneShot(link) => link.next_wakeup(),
            Kind::Arq(link) => link.next_wakeup(),
            Kind::Varying(link) => link.next_wakeup(),
        }
    }

    /// Packets and bytes in the queue, and the number of the current transmission of the unit on the air
    /// (zero between units).
    fn show(&self, probe: &mut dyn Probe) {
        let ((packets, bytes), attempt) = match &self.kind {
            Kind::OneShot(link) => (link.queued(), 0),
            Kind::ManagedOneShot(link) => (link.queued(), 0),
            Kind::Arq(link) => (link.queued(), link.attempt()),
            Kind::Varying(link) => (link.queued(), link.attempt()),
        };
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes.0 as f64);
        probe.value("attempt", f64::from(attempt));
    }
}
