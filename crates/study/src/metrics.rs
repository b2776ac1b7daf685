//! What a run is measured by.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::tcp::{ReceiverStats, SenderStats};
use lasthop_proto::{ComponentId, DropReason, Packet};
use lasthop_sim::{RadioStats, Tap};
use serde::Serialize;

/// One metric of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A quantity in the unit of its name; none if the run does not have it.
    Real(Option<f64>),
    /// A number of things.
    Count(u64),
    /// Yes or no.
    Truth(bool),
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(Some(value))
    }
}

impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Value {
        Value::Real(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Count(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Truth(value)
    }
}

/// Defines [`Metrics`], so that names and values are listed once.
macro_rules! metrics {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)*) => {
        /// What a connection is measured by. Names carry units; bytes of packets include their headers.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct Metrics {
            $($(#[$doc])* pub $name: $type,)*
        }

        impl Metrics {
            /// The metrics' names, in their order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The metrics' values, in the order of their [names](Metrics::NAMES).
            pub fn values(&self) -> impl ExactSizeIterator<Item = Value> + use<> {
                [$(Value::from(self.$name)),*].into_iter()
            }
        }
    };
}

metrics! {
    /// Payload delivered in order, in bits, over the time from the transfer's start until its last
    /// byte reached the mobile host, or until the run ended if it did not.
    throughput_bps: f64,
    /// Payload delivered in order over payload sent by the source, copies included: 1 if nothing was
    /// sent twice or lost. Null if nothing was sent.
    goodput: Option<f64>,
    /// Time from the transfer's start until its last byte reached the mobile host. Null if it did not.
    completion_time_s: Option<f64>,
    /// Whether the last byte reached the mobile host.
    finished: bool,
    /// Payload that reached the mobile host's application, in order.
    delivered_bytes: u64,
    /// Segments that the source sent, copies included.
    segments_sent: u64,
    /// Those of them that had been sent before, in whole or in part.
    retransmitted_segments: u64,
    /// Their bytes, headers included, except payload that was new.
    retransmitted_bytes: u64,
    /// Retransmission timeouts of the source.
    timeouts: u64,
    /// Losses that the source found by duplicate acknowledgements.
    fast_retransmits: u64,
    /// Control messages of the scheme that reached the source.
    notices: u64,
    /// Units sent over the air, in both directions, each as often as it was sent.
    link_attempts: u64,
    /// Those of them that did not survive.
    link_failures: u64,
    /// Packets of both directions that the link gave up after its last permitted attempt.
    link_discards: u64,
    /// Packets of both directions that arrived damaged over a link that does not recover errors.
    lost_on_air: u64,
    /// Packets that found a queue full, anywhere.
    queue_drops: u64,
}

/// What the parts of a run counted.
pub(crate) struct Counts {
    /// When the run ended.
    pub(crate) end: Time,
    /// How often a component dealt with a wake-up, a packet or a signal.
    pub(crate) handled: u64,
    pub(crate) sender: SenderStats,
    pub(crate) receiver: ReceiverStats,
    pub(crate) radios: Vec<RadioStats>,
}

/// Counts what is lost, by reason.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Drops {
    queue_full: u64,
    corrupted: u64,
    discarded: u64,
}

impl Tap for Drops {
    fn drop(&mut self, _now: Time, _at: ComponentId, _packet: &Packet, reason: DropReason) {
        match reason {
            DropReason::QueueFull => self.queue_full += 1,
            DropReason::Corrupted => self.corrupted += 1,
            DropReason::AttemptsExhausted => self.discarded += 1,
            DropReason::Scripted => {}
        }
    }
}

impl Metrics {
    /// Of a transfer of `size` that was to begin at `start`.
    pub(crate) fn new(counts: &Counts, drops: &Drops, size: Option<Bytes>, start: Time) -> Metrics {
        let Counts { end, sender, receiver, radios, handled: _ } = counts;
        let finished = size == Some(receiver.delivered);
        let duration = if finished { receiver.last_delivery } else { *end }.since(start);
        let total = |count: fn(&RadioStats) -> u64| radios.iter().map(count).sum();
        Metrics {
            throughput_bps: rate(receiver.delivered, duration),
            goodput: share(receiver.delivered, sender.payload_sent),
            completion_time_s: finished.then(|| duration.as_secs_f64()),
            finished,
            delivered_bytes: receiver.delivered.0,
            segments_sent: sender.segments_sent,
            retransmitted_segments: sender.retransmitted_segments,
            retransmitted_bytes: sender.retransmitted_bytes.0,
            timeouts: sender.timeouts,
            fast_retransmits: sender.fast_retransmits,
            notices: sender.notices,
            link_attempts: total(|radio| radio.attempts),
            link_failures: total(|radio| radio.failed_attempts),
            link_discards: drops.discarded,
            lost_on_air: drops.corrupted,
            queue_drops: drops.queue_full,
        }
    }
}

/// Bits per second.
fn rate(size: Bytes, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { size.bits() as f64 / time.as_secs_f64() }
}

fn share(part: Bytes, whole: Bytes) -> Option<f64> {
    (whole != Bytes::ZERO).then(|| part.0 as f64 / whole.0 as f64)
}
