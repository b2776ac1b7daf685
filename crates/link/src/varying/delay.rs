//! The propagation delay of a link as a scenario describes it.

use std::fmt;
use std::sync::Arc;

use lasthop_base::{
    Columns, Contents, Duration, Invalid, LineError, Steps, StepsReader, Stream, Time, Unread, inline_schema,
    number, schema,
};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::lognormal::{Fluctuation, LognormalDelay};
use super::netem::{Netem, NetemReader};
use super::rate::{OfFile, UNREAD};

/// The names of a column of delays, each with the factor to seconds.
const NAMES: [(&str, f64); 2] = [("delay_ms", 1e-3), ("delay_s", 1.0)];

/// The maximum of a delay: an hour. Longer ones are refused in a file, and capped if they are random.
pub(super) const MOST_S: f64 = 3600.0;

/// The propagation delay of a link, fixed or varying. Only `netem` reorders packets; otherwise one that would
/// overtake another arrives at the same time.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Fixed.
    Fixed(Duration),
    /// Varying.
    Varying(VaryingDelay),
}

/// Propagation delays from traces, or generated at random: `series`, `per-packet`, `lognormal` or `netem`. Packets
/// arrive in order, except with `netem`: a packet that would overtake another arrives at the same time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VaryingDelay {
    /// A measured delay over time.
    ///
    /// A CSV file with the columns `time_s` (or `time_ms`) and `delay_ms` (or `delay_s`). A packet has the
    /// delay at the end of its transmission.
    Series(OfFile<DelaySteps>),
    /// A list of delays, used in order.
    ///
    /// A CSV file with the column `delay_ms` (or `delay_s`). Each packet takes the next delay; the list
    /// repeats.
    PerPacket(OfFile<DelayList>),
    /// A constant delay `least` plus a random delay with the keys of `[radio.rate.lognormal]`.
    Lognormal(LognormalDelay),
    /// Jitter and reordering, with the meanings of `tc netem`.
    ///
    /// This is `delay 30ms 5ms reorder 2% gap 5`:
    ///
    /// ```toml
    /// [radio]
    /// delay.netem = { delay = "30 ms", jitter = "5 ms", reorder = 0.02, gap = 5 }
    /// ```
    ///
    /// Packets that skip the delay overtake, and so do packets with less jitter unless `in_order` is set. With an
    /// ARQ, this happens after the link has restored the order. Schemes that take gaps between packets for losses suffer from it.
    Netem(Netem),
}

/// Delays over time: CSV with the columns `time_s` (or `time_ms`) and `delay_ms` (or `delay_s`).
#[derive(Clone, PartialEq)]
pub struct DelaySteps(Arc<Steps>);

/// Delays of packets: CSV with the column `delay_ms` (or `delay_s`).
#[derive(Clone, PartialEq)]
pub struct DelayList(Arc<[Duration]>);

impl fmt::Debug for DelaySteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DelaySteps({} values)", self.0.len())
    }
}

impl fmt::Debug for DelayList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DelayList({} values)", self.0.len())
    }
}

fn wrong(delay: f64) -> Option<&'static str> {
    match delay {
        _ if delay < 0.0 => Some("found a negative delay, expected none below zero"),
        _ if delay > MOST_S => Some("found a delay above one hour, expected a shorter one; check its unit"),
        _ => None,
    }
}

impl Contents for DelaySteps {
    fn parse(text: &str) -> Result<DelaySteps, LineError> {
        Steps::parse(text, &NAMES, wrong).map(|steps| DelaySteps(Arc::new(steps)))
    }
}

impl Contents for DelayList {
    fn parse(text: &str) -> Result<DelayList, LineError> {
        let columns = Columns::parse(text, "delay_ms")?;
        let seconds = columns.column(&NAMES)?;
        match seconds.iter().enumerate().find_map(|(row, delay)| Some((row, wrong(*delay)?))) {
            Some((row, problem)) => Err(columns.wrong(row, problem)),
            None => Ok(DelayList(seconds.into_iter().map(Duration::from_secs_f64).collect())),
        }
    }
}

impl Delay {
    /// Whether packets arrive in the order in which they are sent.
    pub fn keeps_order(&self) -> bool {
        !matches!(self, Delay::Varying(VaryingDelay::Netem(netem)) if !netem.keeps_order())
    }

    /// The delay, or its mean over time.
    ///
    /// # Panics
    /// If the delay is not [valid](Delay::validate).
    pub fn nominal(&self) -> Duration {
        let mean = match self {
            Delay::Fixed(delay) => return *delay,
            Delay::Varying(VaryingDelay::Series(series)) => {
                series.file.contents().expect("the file has been read").0.mean()
            }
            Delay::Varying(VaryingDelay::PerPacket(list)) => {
                let DelayList(delays) = &**list.file.contents().expect("the file has been read");
                delays.iter().map(|delay| delay.as_secs_f64()).sum::<f64>() / delays.len() as f64
            }
            Delay::Varying(VaryingDelay::Lognormal(law)) => law.mean_s().min(MOST_S),
            Delay::Varying(VaryingDelay::Netem(netem)) => netem.mean_s(),
        };
        Duration::from_secs_f64(mean)
    }

    /// The time by which a packet overtakes others, on average at most; zero if packets keep their order.
    pub fn overtaking(&self) -> Duration {
        match self {
            Delay::Varying(VaryingDelay::Netem(netem)) => netem.overtaking(),
            _ => Duration::ZERO,
        }
    }

    /// Whether the delay varies.
    pub fn varies(&self) -> bool {
        matches!(self, Delay::Varying(_))
    }

    /// As [`Rate::mean_step`](super::Rate::mean_step).
    ///
    /// # Panics
    /// If the delay is not [valid](Delay::validate).
    pub fn mean_step(&self) -> Option<Duration> {
        match self {
            Delay::Fixed(_) | Delay::Varying(VaryingDelay::PerPacket(_) | VaryingDelay::Netem(_)) => None,
            Delay::Varying(VaryingDelay::Series(series)) => {
                let DelaySteps(steps) = &**series.file.contents().expect("the file has been read");
                Some(Duration::from_nanos((steps.period().as_nanos() / steps.len() as u64).max(1)))
            }
            Delay::Varying(VaryingDelay::Lognormal(law)) => Some(law.shape().shortest()),
        }
    }

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter, named as in a scenario.
    pub fn validate(&self) -> Result<(), Invalid> {
        let read = |is_read: bool, field| {
            if is_read { Ok(()) } else { Err(Invalid { field, problem: UNREAD }) }
        };
        match self {
            Delay::Fixed(_) => Ok(()),
            Delay::Varying(VaryingDelay::Series(series)) => {
                read(series.file.contents().is_some(), "series.file")
            }
            Delay::Varying(VaryingDelay::PerPacket(list)) => {
                read(list.file.contents().is_some(), "per-packet.file")
            }
            Delay::Varying(VaryingDelay::Lognormal(law)) => law.validate(),
            Delay::Varying(VaryingDelay::Netem(netem)) => netem.validate(),
        }
    }

    /// The data files, each with the path of its key in the delay.
    pub fn files(&mut self) -> Option<(&'static [&'static str], &mut dyn Unread)> {
        match self {
            Delay::Varying(VaryingDelay::Series(series)) => Some((&["series", "file"], &mut series.file)),
            Delay::Varying(VaryingDelay::PerPacket(list)) => Some((&["per-packet", "file"], &mut list.file)),
            Delay::Fixed(_) | Delay::Varying(VaryingDelay::Lognormal(_) | VaryingDelay::Netem(_)) => None,
        }
    }
}

impl Default for Delay {
    fn default() -> Delay {
        Delay::Fixed(Duration::ZERO)
    }
}

impl From<Duration> for Delay {
    fn from(delay: Duration) -> Delay {
        Delay::Fixed(delay)
    }
}

/// In the format of scenario files: a duration, or a table such as `{ series = { file = "delay.csv" } }`.
impl Serialize for Delay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Delay::Fixed(delay) => delay.serialize(serializer),
            Delay::Varying(varying) => varying.serialize(serializer),
        }
    }
}

inline_schema!(Delay, |generator| schema::any([
    generator.subschema_for::<Duration>(),
    generator.subschema_for::<VaryingDelay>(),
]));

impl<'de> Deserialize<'de> for Delay {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Delay, D::Error> {
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Delay;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, such as \"30 ms\" or \"1.5 s\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Delay, E> {
                text.parse().map(Delay::Fixed).map_err(E::custom)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<Delay, D::Error> {
                number::read(number).map(Delay::Fixed)
            }
            fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Delay, M::Error> {
                VaryingDelay::deserialize(MapAccessDeserializer::new(table)).map(Delay::Varying)
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

/// Delays, in the order of packets and of time.
#[derive(Clone, Debug)]
pub(super) enum DelayReader {
    Fixed(Duration),
    Steps(StepsReader),
    List { delays: Arc<[Duration]>, next: usize },
    Lognormal { least: Duration, median_s: f64, fluctuation: Box<Fluctuation> },
    Netem(Box<NetemReader>),
}

impl DelayReader {
    /// A reader with the `random` streams of the delay, and the `phase` of its slots.
    pub(super) fn new(delay: &Delay, random: [Stream; 2], phase: f64) -> DelayReader {
        let [steps, slots] = random;
        match delay {
            Delay::Fixed(delay) => DelayReader::Fixed(*delay),
            Delay::Varying(VaryingDelay::Series(series)) => {
                let DelaySteps(steps) = &**series.file.contents().expect("the file has been read");
                DelayReader::Steps(StepsReader::new(Arc::clone(steps)))
            }
            Delay::Varying(VaryingDelay::PerPacket(list)) => {
                let DelayList(delays) = &**list.file.contents().expect("the file has been read");
                DelayReader::List { delays: Arc::clone(delays), next: 0 }
            }
            Delay::Varying(VaryingDelay::Lognormal(law)) => DelayReader::Lognormal {
                least: law.least,
                median_s: law.median_s(),
                fluctuation: Box::new(Fluctuation::new(law.shape(), steps, slots, phase)),
            },
            Delay::Varying(VaryingDelay::Netem(netem)) => {
                DelayReader::Netem(Box::new(NetemReader::new(*netem, steps, slots)))
            }
        }
    }

    /// Whether packets keep their order.
    pub(super) fn keeps_order(&self) -> bool {
        !matches!(self, DelayReader::Netem(netem) if !netem.keeps_order())
    }

    /// The delay at `at`, and until when it holds, exclusive; `None` if it belongs to a packet.
    pub(super) fn at(&mut self, at: Time) -> Option<(Duration, Time)> {
        match self {
            DelayReader::Fixed(delay) => Some((*delay, Time::NEVER)),
            DelayReader::Steps(steps) => {
                let (seconds, until) = steps.at(at);
                Some((Duration::from_secs_f64(seconds), until))
            }
            DelayReader::List { .. } | DelayReader::Netem(_) => None,
            DelayReader::Lognormal { least, median_s, fluctuation } => {
                let (factor, until) = fluctuation.at(at);
                Some((*least + Duration::from_secs_f64((*median_s * factor).min(MOST_S)), until))
            }
        }
    }

    /// The delay of the next packet, whose transmission ends at `end`.
    pub(super) fn of_packet(&mut self, end: Time) -> Duration {
        match self {
            DelayReader::List { delays, next } => {
                let delay = delays[*next];
                *next = (*next + 1) % delays.len();
                delay
            }
            DelayReader::Netem(netem) => netem.next(),
            _ => self.at(end).expect("it is a delay over time").0,
        }
    }
}
