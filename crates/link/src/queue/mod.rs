//! Queue disciplines: which packets are queued, which is sent next, and which are marked or dropped.
//!
//! Drop-tail is [`QueueLimit`] and built into the links. Each other discipline is a module here that
//! implements [`Discipline`]; a link with a discipline is served packet by packet.

mod black_hole;
mod drop_tail;
mod fifo;
mod limit;
mod link_queue;
mod registry;

use std::fmt;

use lasthop_base::{
    Bytes, Duration, FromNumber, Invalid, Number, Stream, Time, UnitError, inline_schema, schema,
};
use lasthop_proto::{Ecn, Out, Packet};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

pub use drop_tail::DropTail;
pub use limit::QueueLimit;
pub use link_queue::LinkQueue;

/// Least time between updates of a probability: a run has as many of them as fit into it.
const LEAST_UPDATE: Duration = Duration::from_micros(100);

registry::register! {
    codel: Codel,
    fq_codel: FqCodel,
    priority: Priority,
    red: Red,
    adaptive_red: AdaptiveRed,
    pie: Pie,
    policer: Policer,
    dualpi2: Dualpi2,
    cake: Cake,
}

/// The parameters of a discipline: the keys of its table in a scenario file.
pub trait Parameters {
    /// What the discipline is.
    fn about(&self) -> About;

    /// Capacity of the queue.
    fn limit(&self) -> QueueLimit;

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter, with the name of the discipline: `red.min`.
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// The largest packet that ever passes; `None` without a bound.
    fn largest_packet(&self) -> Option<Bytes> {
        None
    }

    /// Whether it looks into TCP segments. Queues of real packets cannot.
    fn reads_tcp(&self) -> bool {
        false
    }

    /// Builds the discipline with an empty queue, as [`Management::build`] returns it.
    fn build(&self, air_time: &dyn Fn(Bytes) -> Duration, random: Stream) -> Box<dyn Discipline>;
}

/// What a discipline is, for reports and advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The name in reports.
    pub title: &'static str,
    /// A one-line description of what it does, with its source.
    pub summary: &'static str,
    /// Whether packets of [expedited forwarding](lasthop_proto::Dscp::EXPEDITED) are served first.
    pub expedites: bool,
    /// Whether flows have queues of their own.
    pub separates_flows: bool,
    /// How the ends of a link get it; `None` for a discipline that `lasthop advise` does not try.
    pub deployment: Option<&'static str>,
}

/// A queue discipline of a link that is served packet by packet.
///
/// The link calls [`dequeue`](Discipline::dequeue) whenever it is free, even if nothing is queued, so a
/// discipline notices when its queue is empty.
pub trait Discipline: Send {
    /// Enqueues a packet. A packet that arrives at an idle link (`at_once`) is dequeued at the same instant,
    /// so no limit applies to it.
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out);

    /// The next packet to send; `None` only if the queue is empty.
    fn dequeue(&mut self, now: Time, out: &mut Out) -> Option<Packet>;

    /// Number of queued packets, and their bytes.
    fn queued(&self) -> (usize, Bytes);

    /// Counters.
    fn stats(&self) -> &QueueStats;
}

impl<D: Discipline + ?Sized> Discipline for Box<D> {
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out) {
        (**self).enqueue(now, packet, at_once, out);
    }

    fn dequeue(&mut self, now: Time, out: &mut Out) -> Option<Packet> {
        (**self).dequeue(now, out)
    }

    fn queued(&self) -> (usize, Bytes) {
        (**self).queued()
    }

    fn stats(&self) -> &QueueStats {
        (**self).stats()
    }
}

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets dropped before the queue was full.
    pub early_drops: u64,
    /// Packets marked instead of an early drop.
    pub marked: u64,
    /// Waits in the two queues of [`Dualpi2`]: that for scalable traffic, and the other one.
    pub waits: [Waits; 2],
}

/// Packets that have left a queue, and the sum of the times for which they waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// The number of packets.
    pub packets: u64,
    /// The sum of their times.
    pub total: Duration,
}

impl Waits {
    /// The waits of both.
    pub fn and(self, other: Waits) -> Waits {
        Waits { packets: self.packets + other.packets, total: self.total + other.total }
    }

    /// The waits since those `before`.
    pub fn since(self, before: Waits) -> Waits {
        Waits { packets: self.packets - before.packets, total: self.total - before.total }
    }

    /// The mean wait in seconds; `None` without packets.
    pub fn mean_s(self) -> Option<f64> {
        (self.packets > 0).then(|| self.total.as_secs_f64() / self.packets as f64)
    }
}

impl QueueStats {
    /// Signals congestion: marks the packet if it is ECN-capable and `ecn` is set. Returns false if it must
    /// be dropped instead.
    fn mark(&mut self, packet: &mut Packet, ecn: bool) -> bool {
        let marks = ecn && packet.ecn.is_capable();
        if marks {
            packet.ecn = Ecn::Ce;
            self.marked += 1;
        }
        marks
    }
}

/// The queue of a link as a scenario describes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// Drop-tail FIFO.
    DropTail(QueueLimit),
    /// A queue with a discipline.
    Managed(Management),
}

impl Queue {
    /// Its capacity.
    pub fn limit(&self) -> QueueLimit {
        match self {
            Queue::DropTail(limit) => *limit,
            Queue::Managed(management) => management.limit(),
        }
    }

    /// The largest packet that ever passes; `None` without a bound.
    pub fn largest_packet(&self) -> Option<Bytes> {
        match self {
            Queue::DropTail(_) => None,
            Queue::Managed(management) => management.largest_packet(),
        }
    }

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter, named as in a scenario.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self {
            Queue::DropTail(_) => Ok(()),
            Queue::Managed(management) => management.validate(),
        }
    }
}

impl Default for Queue {
    fn default() -> Queue {
        Queue::DropTail(QueueLimit::default())
    }
}

impl From<QueueLimit> for Queue {
    fn from(limit: QueueLimit) -> Queue {
        Queue::DropTail(limit)
    }
}

/// In the format of scenario files: a [limit](QueueLimit), or a table such as `{ codel = { target = "5 ms" }
/// }`.
impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Queue::DropTail(limit) => limit.serialize(serializer),
            Queue::Managed(management) => management.serialize(serializer),
        }
    }
}

inline_schema!(Queue, |generator| schema::any([
    generator.subschema_for::<QueueLimit>(),
    generator.subschema_for::<Management>(),
]));

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Queue, D::Error> {
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Queue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&expected())
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Queue, E> {
                let unknown = |error: UnitError| E::custom(error.expecting(expected()));
                text.parse().map(Queue::DropTail).map_err(unknown)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<Queue, D::Error> {
                let unknown = |error: UnitError| de::Error::custom(error.expecting(expected()));
                QueueLimit::from_number(&Number::deserialize(number)?).map(Queue::DropTail).map_err(unknown)
            }
            fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Queue, M::Error> {
                let mut stated = Table::deserialize(MapAccessDeserializer::new(table))?.stated();
                match (stated.next(), stated.next()) {
                    (Some(management), None) => Ok(Queue::Managed(management)),
                    (None, _) => {
                        Err(de::Error::custom(format!("found an empty table, expected {}", expected())))
                    }
                    _ => Err(de::Error::custom("found several disciplines, expected only one of them")),
                }
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

/// The forms of a queue in a scenario file.
fn expected() -> String {
    let names: Vec<String> = Management::all().map(|(name, _)| name).collect();
    format!(
        "\"unlimited\", a number such as \"50 packets\", a size such as \"64 KiB\", or a table of one of {}",
        names.join(", ")
    )
}

impl Management {
    /// The names of all disciplines in the order of registration, each with its default parameters.
    pub fn all() -> impl Iterator<Item = (String, Management)> {
        Management::ALL.iter().map(|(module, usual)| (module.replace('_', "-"), usual()))
    }

    /// What the discipline is.
    pub fn about(&self) -> About {
        self.params().about()
    }

    /// Its capacity.
    pub fn limit(&self) -> QueueLimit {
        self.params().limit()
    }

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter, named as in a scenario.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.params().validate()
    }

    /// The largest packet that ever passes; `None` without a bound.
    pub fn largest_packet(&self) -> Option<Bytes> {
        self.params().largest_packet()
    }

    /// Whether it looks into TCP segments. Queues of real packets cannot.
    pub fn reads_tcp(&self) -> bool {
        self.params().reads_tcp()
    }

    /// Builds the discipline with an empty queue, for a link that transmits a packet of a given size in
    /// `air_time`. `random` is its own stream, unused by deterministic disciplines.
    ///
    /// # Panics
    /// If the parameters are not [valid](Management::validate).
    pub fn build(&self, air_time: impl Fn(Bytes) -> Duration, random: Stream) -> Box<dyn Discipline> {
        if let Err(invalid) = self.validate() {
            panic!("{invalid}");
        }
        self.params().build(&air_time, random)
    }
}
