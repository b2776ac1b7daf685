//! Links: a queue, a pace, and a way to recover from losses.
//!
//! ```text
//! queue              pace               recovery
//! drop-tail          fixed              none: a wire, or a radio whose units are sent once
//! a discipline       varying            an ARQ
//! ```
//!
//! Every combination is a [`QueuedLink`]. A drop-tail queue with a fixed pace and without an ARQ needs no
//! queue of packets: such a link is a [`Line`], which computes the same in one step per packet.

mod air;
mod fragmenter;
pub(crate) mod line;
mod medium;
mod narrowing_deque;
mod queued;
mod radio;
mod shared;
mod wire;
mod with_arq;

use lasthop_base::{BitRate, Bytes, Duration, Stream, Time};
use lasthop_channel::Channel;
use lasthop_link::pace::{Fixed, Pace};
use lasthop_link::queue::{Discipline, DropTail, LinkQueue, QueueStats, Waits};
use lasthop_link::varying::Timing;
use lasthop_link::{Expansion, Exposed};
use lasthop_proto::frag::Mtu;
use lasthop_proto::{Component, Out, Packet, Port, Probe, Signal, arq};

use air::Air;
use line::{Arrivals, Fate, Line};
use queued::{Once, QueuedLink, Service};
use radio::Radio;
use wire::Wire;
use with_arq::WithArq;

pub use fragmenter::Fec;
pub use shared::{SharedLink, SharedRadio};

/// Parameters of one direction of a wireless last hop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RadioConfig {
    /// Raw bit rate of the air interface; expanded bits are sent at this rate.
    pub rate: BitRate,
    /// Propagation delay, from the end of a unit's air time to its arrival.
    pub delay: Duration,
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

/// Counters of a link; of a wired link, only those of its queue. Attempts and their bits are counted when they end if the
/// link has an ARQ, otherwise when their packet reaches the other end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
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
    /// Waits in the two queues of DualPI2: that for scalable traffic, and the other one.
    pub waits: [Waits; 2],
}

impl LinkStats {
    /// Adds the counters of the queue.
    fn with_queue(mut self, queue: &QueueStats) -> LinkStats {
        self.overflowed += queue.overflowed;
        self.early_drops += queue.early_drops;
        self.marked += queue.marked;
        self.waits = [0, 1].map(|index| self.waits[index].and(queue.waits[index]));
        self
    }
}

/// One direction of a link, wired or wireless. Packets wait in a queue, are sent at the rate of the link, and arrive in
/// order after the propagation delay. On a wireless link they are sent in units, which survive or not. Uses
/// [`Port::ONLY`] for input and output.
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
pub struct Link(Kind);

/// The frequent kinds are dispatched by a jump, all others by a virtual call. All are boxed: their sizes differ.
enum Kind {
    Wire(Box<Line<Wire>>),
    Radio(Box<Line<Radio>>),
    Arq(Box<QueuedLink<DropTail, Fixed, WithArq>>),
    Other(Box<dyn Service>),
}

macro_rules! dispatch {
    ($self:expr, $link:ident => $call:expr) => {
        match $self {
            Kind::Wire($link) => $call,
            Kind::Radio($link) => $call,
            Kind::Arq($link) => $call,
            Kind::Other($link) => $call,
        }
    };
}

/// Calls a method of a [`Line`].
macro_rules! line {
    ($self:expr, $line:ident => $call:expr) => {
        match &mut $self.0 {
            Kind::Wire($line) => $call,
            Kind::Radio($line) => $call,
            Kind::Arq(_) | Kind::Other(_) => unreachable!("the link is a line"),
        }
    };
}

impl Link {
    /// An idle wired link.
    pub fn wired(rate: BitRate, delay: Duration, queue: impl Into<LinkQueue>) -> Link {
        let wire = Wire::new(Some(rate));
        Link(match queue.into() {
            LinkQueue::DropTail(limit) => Kind::Wire(Box::new(Line::new(delay, limit, wire))),
            LinkQueue::Managed(queue) => other(queue, Fixed { delay }, Once::new(wire)),
        })
    }

    /// An idle wired link whose rate or delay varies.
    pub fn wired_varying(timing: Timing, queue: impl Into<LinkQueue>) -> Link {
        Link(other(queue.into().into_discipline(), timing, Once::new(Wire::new(None))))
    }

    /// An idle wireless link over `channel`, with its two random streams.
    ///
    /// # Panics
    /// If the ARQ parameters are not [valid](arq::Config::validate), or if both a unit size and an MTU are
    /// set.
    pub fn radio(
        config: RadioConfig,
        queue: impl Into<LinkQueue>,
        channel: Box<dyn Channel>,
        bits: Stream,
        backoff: Stream,
    ) -> Link {
        let (air, pace) = (Air::new(&config, channel, bits), Fixed { delay: config.delay });
        Link(match (queue.into(), config.arq.build(backoff)) {
            (LinkQueue::DropTail(limit), None) => {
                Kind::Radio(Box::new(Line::new(config.delay, limit, Radio::new(&config, air))))
            }
            (LinkQueue::DropTail(limit), Some(arq)) => {
                let recovery = WithArq::new(&config, air, arq);
                Kind::Arq(Box::new(QueuedLink::new(DropTail::new(limit), pace, recovery)))
            }
            (LinkQueue::Managed(queue), None) => other(queue, pace, Once::new(Radio::new(&config, air))),
            (LinkQueue::Managed(queue), Some(arq)) => other(queue, pace, WithArq::new(&config, air, arq)),
        })
    }

    /// Like [`radio`](Link::radio), with a rate and a delay that vary; `config` has their means.
    ///
    /// # Panics
    /// As `radio`.
    pub fn radio_varying(
        config: RadioConfig,
        timing: Timing,
        queue: impl Into<LinkQueue>,
        channel: Box<dyn Channel>,
        bits: Stream,
        backoff: Stream,
    ) -> Link {
        let (air, queue) = (Air::new(&config, channel, bits), queue.into().into_discipline());
        let horizon = timing.horizon();
        match config.arq.build(backoff) {
            None => Link(other(queue, timing, Once::new(Radio::new(&config, air)))).until(horizon),
            // No look-ahead: the rate of a later unit may depend on what is yet to happen.
            Some(arq) => Link(other(queue, timing, WithArq::new(&config, air, arq))).until(Time::ZERO),
        }
    }

    /// Sets the end of the run: no survival is drawn ahead for units that start after `horizon`. A long queue may
    /// extend years into the future, and the channel would draw its trajectory that far.
    pub fn until(mut self, horizon: Time) -> Link {
        dispatch!(&mut self.0, link => link.until(horizon));
        self
    }

    /// A link to or from the base station with this number among those of a moving host.
    pub fn of_station(mut self, station: u16) -> Link {
        match &mut self.0 {
            Kind::Arq(link) => link.set_station(station),
            Kind::Other(link) => link.set_station(station),
            Kind::Wire(_) | Kind::Radio(_) => {}
        }
        self
    }

    /// Counts what had ended before `now`, and at `now` itself if `inclusive`.
    pub(crate) fn settle(&mut self, now: Time, inclusive: bool) {
        dispatch!(&mut self.0, link => link.settle(now, inclusive));
    }

    /// Whether the link is a [`Line`].
    pub(crate) fn is_line(&self) -> bool {
        matches!(self.0, Kind::Wire(_) | Kind::Radio(_))
    }

    /// [`Line::pass`] of a line.
    #[inline(always)]
    pub(crate) fn pass(&mut self, now: Time, at: Time, packet: &Packet) -> (Fate, &mut Arrivals) {
        line!(self, line => line.pass(now, at, packet))
    }

    /// [`Line::arrivals`] of a line.
    #[inline]
    pub(crate) fn arrivals(&mut self) -> &mut Arrivals {
        line!(self, line => line.arrivals())
    }

    /// [`Line::count_refused`] of a line.
    pub(crate) fn count_refused(&mut self) {
        line!(self, line => line.count_refused());
    }

    /// Packets that have not arrived, queued or in flight.
    pub(crate) fn held(&self) -> usize {
        dispatch!(&self.0, link => link.held())
    }

    /// Whether the link is wireless.
    pub fn is_radio(&self) -> bool {
        match &self.0 {
            Kind::Wire(_) => false,
            Kind::Radio(_) | Kind::Arq(_) => true,
            Kind::Other(link) => link.attempt().is_some(),
        }
    }

    /// Counters of the link.
    pub fn stats(&self) -> LinkStats {
        dispatch!(&self.0, link => link.stats())
    }
}

fn other<P: Pace + 'static, R: Send + 'static>(queue: Box<dyn Discipline>, pace: P, recovery: R) -> Kind
where
    QueuedLink<Box<dyn Discipline>, P, R>: Service,
{
    Kind::Other(Box::new(QueuedLink::new(queue, pace, recovery)))
}

impl Component for Link {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        dispatch!(&mut self.0, link => link.receive(now, packet, port, out));
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        dispatch!(&mut self.0, link => link.wake(now, out));
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        dispatch!(&mut self.0, link => link.on_signal(now, signal, out));
    }

    #[inline(always)]
    fn next_wakeup(&self) -> Time {
        dispatch!(&self.0, link => link.next_wakeup())
    }

    /// Packets and bytes in the queue. On a wireless link, also the number of the current transmission of the unit on the
    /// air (zero between units). A wired link with a drop-tail queue and a fixed pace shows nothing.
    fn show(&self, probe: &mut dyn Probe) {
        dispatch!(&self.0, link => link.show(probe));
    }
}

fn show_queue((packets, bytes): (usize, Bytes), probe: &mut dyn Probe) {
    probe.value("queue_packets", packets as f64);
    probe.value("queue_bytes", bytes.0 as f64);
}
