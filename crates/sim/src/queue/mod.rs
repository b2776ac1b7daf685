//! Queue disciplines: which packets wait before a link, which goes next, and which are marked or dropped.
//!
//! Drop-tail is [`QueueLimit`] alone, and links have it built in. Each other discipline is a file here, behind
//! [`Discipline`]; a link that has one is served packet by packet ([`ManagedLink`](crate::ManagedLink),
//! [`RadioLink::managed`](crate::RadioLink::managed)).

pub mod codel;
mod fifo;
pub mod fq_codel;
pub mod red;

use std::fmt;

use lasthop_base::{Bytes, Duration, Invalid, Stream, Time};
use lasthop_proto::{Ecn, Out, Packet};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::line::QueueLimit;

pub use codel::Codel;
pub use fq_codel::FqCodel;
pub use red::Red;

/// What waits before a link that is served packet by packet.
///
/// The link asks for a packet whenever it is free, also if none waits: so a discipline learns that its queue
/// has run empty.
pub trait Discipline: Send {
    /// Takes a packet. One that comes to an idle link, `at_once`, is [dequeued](Discipline::dequeue) at this same
    /// instant: no limit keeps it out.
    fn enqueue(&mut self, now: Time, packet: Packet, at_once: bool, out: &mut Out);

    /// The packet that is sent now; none only if none waits.
    fn dequeue(&mut self, now: Time, out: &mut Out) -> Option<Packet>;

    /// How many packets wait, and their bytes.
    fn queued(&self) -> (usize, Bytes);

    /// What it has done so far.
    fn stats(&self) -> &QueueStats;
}

/// What a discipline has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets dropped before it was.
    pub early_drops: u64,
    /// Packets marked in place of an early drop.
    pub marked: u64,
}

impl QueueStats {
    /// Signals congestion by `packet`: marks it if it may be marked and `ecn` says so. If not, it must be dropped.
    fn mark(&mut self, packet: &mut Packet, ecn: bool) -> bool {
        let marks = ecn && packet.ecn.is_capable();
        if marks {
            packet.ecn = Ecn::Ce;
            self.marked += 1;
        }
        marks
    }
}

/// The queue before a link, as a scenario states it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Queue {
    /// First come, first served; what does not fit is dropped.
    DropTail(QueueLimit),
    /// A queue that is managed.
    Managed(Management),
}

impl Queue {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first parameter that is wrong, as in a scenario.
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

/// As a scenario writes it: a [limit](QueueLimit), or a table such as `{ codel = { target = "5 ms" } }`.
impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Queue::DropTail(limit) => limit.serialize(serializer),
            Queue::Managed(management) => management.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Queue, D::Error> {
        const EXPECTED: &str = "\"unlimited\", a number such as \"50 packets\", a size such as \"64 KiB\", \
                                or a table of one of codel, fq-codel, red";
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        struct Table {
            codel: Option<codel::Params>,
            fq_codel: Option<fq_codel::Params>,
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
                let Table { codel, fq_codel, red } = Table::deserialize(MapAccessDeserializer::new(table))?;
                let codel = codel.map(Management::Codel);
                let stated = [codel, fq_codel.map(Management::FqCodel), red.map(Management::Red)];
                let mut stated = stated.into_iter().flatten();
                match (stated.next(), stated.next()) {
                    (Some(management), None) => Ok(Queue::Managed(management)),
                    (None, _) => Err(de::Error::custom(format!("found an empty table, expected {EXPECTED}"))),
                    _ => Err(de::Error::custom("found several disciplines, expected one of them")),
                }
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

/// A discipline beside drop-tail, and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Management {
    /// Controlled delay (RFC 8289).
    Codel(codel::Params),
    /// A queue for each flow, each with CoDel (RFC 8290).
    FqCodel(fq_codel::Params),
    /// Random early detection (Floyd and Jacobson 1993).
    Red(red::Params),
}

impl Management {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first parameter that is wrong, as in a scenario.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self {
            Management::Codel(params) => params.validate(),
            Management::FqCodel(params) => params.validate(),
            Management::Red(params) => params.validate(),
        }
    }

    /// The discipline with an empty queue, before a link on which a packet takes `air_time` of its size. Whether a
    /// discipline is random is its own affair; `random` is not shared.
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
            Management::Red(params) => Box::new(Red::new(params, air_time(params.mean_packet), random)),
        }
    }
}
