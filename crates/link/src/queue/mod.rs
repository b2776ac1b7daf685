//! Queue disciplines: which packets are queued, which is sent next, and which are marked or dropped.
//!
//! Drop-tail is [`QueueLimit`] and built into the links. Each other discipline is a module here that
//! implements [`Discipline`]; a link with a discipline is served packet by packet.

pub mod codel;
mod drop_tail;
mod fifo;
pub mod fq_codel;
mod limit;
pub mod priority;
pub mod red;

use std::fmt;

use lasthop_base::{Bytes, Duration, Invalid, Stream, Time, inline_schema, schema};
use lasthop_proto::{Ecn, Out, Packet};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

pub use codel::Codel;
pub use drop_tail::DropTail;
pub use fq_codel::FqCodel;
pub use limit::QueueLimit;
pub use priority::Priority;
pub use red::Red;

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

/// Counters of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets dropped before the queue was full.
    pub early_drops: u64,
    /// Packets marked instead of an early drop.
    pub marked: u64,
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
            Queue::Managed(Management::Codel(params)) => params.limit,
            Queue::Managed(Management::FqCodel(params)) => params.limit,
            Queue::Managed(Management::Priority(params)) => params.limit,
            Queue::Managed(Management::Red(params)) => params.limit,
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
        const EXPECTED: &str = "\"unlimited\", a number such as \"50 packets\", a size such as \"64 KiB\", \
                                or a table of one of codel, fq-codel, priority, red";
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        struct Table {
            codel: Option<codel::Params>,
            fq_codel: Option<fq_codel::Params>,
            priority: Option<priority::Params>,
            red: Option<red::Params>,
        }
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Queue;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Queue, E> {
                QueueLimit::parse(text, EXPECTED).map(Queue::DropTail)
            }
            fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Queue, M::Error> {
                let table = Table::deserialize(MapAccessDeserializer::new(table))?;
                let stated = [
                    table.codel.map(Management::Codel),
                    table.fq_codel.map(Management::FqCodel),
                    table.priority.map(Management::Priority),
                    table.red.map(Management::Red),
                ];
                let mut stated = stated.into_iter().flatten();
                match (stated.next(), stated.next()) {
                    (Some(management), None) => Ok(Queue::Managed(management)),
                    (None, _) => Err(de::Error::custom(format!("found an empty table, expected {EXPECTED}"))),
                    _ => Err(de::Error::custom("found several disciplines, expected only one of them")),
                }
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

/// A queue discipline other than drop-tail, with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Management {
    /// Controlled delay (RFC 8289).
    Codel(codel::Params),
    /// CoDel per flow (RFC 8290).
    FqCodel(fq_codel::Params),
    /// Strict priority of expedited packets.
    Priority(priority::Params),
    /// Random early detection (Floyd and Jacobson 1993).
    Red(red::Params),
}

impl Management {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter, named as in a scenario.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self {
            Management::Codel(params) => params.validate(),
            Management::FqCodel(params) => params.validate(),
            Management::Priority(_) => Ok(()),
            Management::Red(params) => params.validate(),
        }
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
        match *self {
            Management::Codel(params) => Box::new(Codel::new(params)),
            Management::FqCodel(params) => Box::new(FqCodel::new(params)),
            Management::Priority(params) => Box::new(Priority::new(params)),
            Management::Red(params) => Box::new(Red::new(params, air_time(params.mean_packet), random)),
        }
    }
}
