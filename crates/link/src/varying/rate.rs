//! The rate of a link as a scenario describes it.

use std::fmt;
use std::sync::Arc;

use lasthop_base::{
    BitRate, Contents, DataFile, Duration, Invalid, LineError, Steps, StepsReader, Time, Unread,
    inline_schema, number, schema,
};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::lognormal::{Fluctuation, LognormalRate};
use super::mahimahi::Opportunities;
use super::token_bucket::TokenBucket;

/// The maximum of a rate: 1 Tb/s. Higher ones are refused in a file, and capped if they are random.
const MOST_BPS: f64 = 1e12;

pub(super) const UNREAD: &str =
    "found a file that has not been read, expected a scenario that was loaded from a file";

/// The rate of a link: fixed, or varying over time.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Fixed.
    Fixed(BitRate),
    /// Varying.
    Varying(VaryingRate),
}

/// Rates from traces, generated at random, or shaped: `mahimahi`, `series`, `signal`, `lognormal` or `token-bucket`. They apply to
/// wired and wireless links and to both directions; `[radio.uplink]` can have its own. Queues, ARQs, codes,
/// fragmentation, fades and outages work as with a constant rate. A rate depends on time only, never on the
/// traffic (except `token-bucket`), and is the same for all schemes with the same seed. Computations in advance (`air_time` of RED,
/// delays assumed by schemes) use the mean.
///
/// `lasthop run --trace` plots rate and delay and writes them as CSV; in Python, use `Scenario.link_timing`.
/// `Scenario.mahimahi` returns a Mahimahi trace of any link, and `lasthop links NAME --mahimahi FILE` writes
/// that of a preset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VaryingRate {
    /// The delivery opportunities of a [Mahimahi](http://mahimahi.mit.edu) trace, replayed exactly as by its
    /// link shell.
    ///
    /// A file with a non-decreasing time in milliseconds on each line: an opportunity to send 1504 B. Small
    /// packets share opportunities, large packets need several. Unused bytes expire when the queue is empty;
    /// a packet that arrives exactly at an opportunity misses it. The trace repeats after the last line. A
    /// packet is queued until its first bytes are sent.
    ///
    /// ```toml
    /// [radio]
    /// rate.mahimahi.file = "Verizon-LTE-short.down"
    ///
    /// [radio.uplink]
    /// rate.mahimahi.file = "Verizon-LTE-short.up"
    /// ```
    ///
    /// Without an ARQ, a packet is on the air from its first to its last opportunity.
    Mahimahi(OfFile<Opportunities>),
    /// A measured rate over time.
    ///
    /// A CSV file with the columns `time_s` (or `time_ms`) and `rate_bps` (or `rate_kbps`, `rate_mbps`). A
    /// value applies until the next row, the last one as long as the previous one; then the series repeats. A
    /// rate of 0 stops transmission.
    Series(OfFile<RateSteps>),
    /// A measured signal level, and the rate at each level.
    Signal(Signal),
    /// A random rate: median · e^(sigma · X + slot_sigma · Z). X is standard normal, changes at each step,
    /// and has an autocorrelation of e^(−t / correlation). Z is standard normal and independent in each slot,
    /// such as the 15 s between Starlink's satellite reassignments. Both are stationary from the start. The
    /// slots of rate and delay, in both directions, change at the same times; the first change is at a random
    /// time.
    ///
    /// ```toml
    /// [radio]
    /// rate.lognormal = { mean = "50 Mbps", sigma = 0.4, step = "100 ms", correlation = "2 s" }
    /// ```
    Lognormal(LognormalRate),
    /// A token-bucket shaper, as `tc tbf`: packets wait in the queue for tokens, which arrive at `rate`. A bucket of
    /// `burst`, full at the start, lets those after a pause go at `peak`. A policer, which drops instead, is a
    /// queue discipline.
    ///
    /// ```toml
    /// [wired]
    /// rate.token-bucket = { rate = "10 Mbps", burst = "150 kB", peak = "1 Gbps" }
    /// ```
    TokenBucket(TokenBucket),
}

/// A table with the key `file`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, bound = "T: Contents", expecting = "a table with the key file")]
#[schemars(rename = "OfFile", bound = "")]
pub struct OfFile<T> {
    /// The file.
    pub file: DataFile<T>,
}

impl<T> PartialEq for OfFile<T> {
    fn eq(&self, other: &OfFile<T>) -> bool {
        self.file == other.file
    }
}

/// Rates over time: CSV with the columns `time_s` (or `time_ms`) and `rate_bps` (or `rate_kbps`,
/// `rate_mbps`).
#[derive(Clone, PartialEq)]
pub struct RateSteps(Arc<Steps>);

/// Signal levels over time: CSV with the columns `time_s` (or `time_ms`) and `sinr_db`, `snr_db`, `rssi_dbm`
/// or `rsrp_dbm`.
#[derive(Clone, PartialEq)]
pub struct SignalSteps(Arc<Steps>);

macro_rules! short_debug {
    ($($type:ident),*) => {
        $(impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($type), "({} values)"), self.0.len())
            }
        })*
    };
}

short_debug!(RateSteps, SignalSteps);

impl Contents for RateSteps {
    fn parse(text: &str) -> Result<RateSteps, LineError> {
        let wrong = |rate: f64| match rate {
            _ if rate < 0.0 => Some("found a rate below zero, expected zero (no service) or more"),
            _ if rate > MOST_BPS => Some("found a rate above 1 Tb/s, expected a lower one; check its unit"),
            _ => None,
        };
        let names = [("rate_bps", 1.0), ("rate_kbps", 1e3), ("rate_mbps", 1e6)];
        let steps = Steps::parse(text, &names, wrong)?;
        match steps.mean() >= 1.0 {
            true => Ok(RateSteps(Arc::new(steps))),
            false => Err(LineError::whole("found no rate above zero, expected one at some time")),
        }
    }
}

impl Contents for SignalSteps {
    fn parse(text: &str) -> Result<SignalSteps, LineError> {
        let names = [("sinr_db", 1.0), ("snr_db", 1.0), ("rssi_dbm", 1.0), ("rsrp_dbm", 1.0)];
        Steps::parse(text, &names, |_| None).map(|steps| SignalSteps(Arc::new(steps)))
    }
}

/// A measured signal level, and the rate at each level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// A CSV file with the columns `time_s` (or `time_ms`) and `sinr_db`, `snr_db`, `rssi_dbm` or `rsrp_dbm`.
    pub file: DataFile<SignalSteps>,
    /// Increasing levels with the rate from each level on: `[[-5, "1 Mbps"], [10, "20 Mbps"]]`. Below the
    /// first level there is no service.
    pub table: Vec<(f64, BitRate)>,
}

impl Signal {
    fn bps(&self, level: f64) -> f64 {
        let above = self.table.partition_point(|(from, _)| *from <= level);
        above.checked_sub(1).map_or(0.0, |row| self.table[row].1.as_bps() as f64)
    }

    /// The rates over time; `None` until the file has been read.
    fn steps(&self) -> Option<Steps> {
        let SignalSteps(levels) = &**self.file.contents()?;
        Some(levels.with(|level| self.bps(level)))
    }
}

impl Rate {
    /// The shaper that limits it, if any.
    pub fn token_bucket(&self) -> Option<&TokenBucket> {
        match self {
            Rate::Varying(VaryingRate::TokenBucket(bucket)) => Some(bucket),
            _ => None,
        }
    }

    /// The rate, or its mean over time.
    ///
    /// # Panics
    /// If the rate is not [valid](Rate::validate).
    pub fn nominal(&self) -> BitRate {
        let mean = match self {
            Rate::Fixed(rate) => return *rate,
            Rate::Varying(VaryingRate::Mahimahi(trace)) => {
                trace.file.contents().expect("the file has been read").mean_bps()
            }
            Rate::Varying(VaryingRate::Series(series)) => {
                series.file.contents().expect("the file has been read").0.mean()
            }
            Rate::Varying(VaryingRate::Signal(signal)) => {
                signal.steps().expect("the file has been read").mean()
            }
            Rate::Varying(VaryingRate::Lognormal(law)) => law.mean_bps().min(MOST_BPS),
            Rate::Varying(VaryingRate::TokenBucket(bucket)) => return bucket.rate,
        };
        BitRate::from_bps(mean.round().max(1.0) as u64).expect("it is above zero")
    }

    /// Whether it is a function of time, which packets do not have to wait for.
    pub fn is_of_time(&self) -> bool {
        !matches!(self, Rate::Varying(VaryingRate::Mahimahi(_) | VaryingRate::TokenBucket(_)))
    }

    /// Whether the rate varies.
    pub fn varies(&self) -> bool {
        matches!(self, Rate::Varying(_))
    }

    /// The mean time between two steps, each of which costs computing time; `None` if the rate does not
    /// change in steps.
    ///
    /// # Panics
    /// If the rate is not [valid](Rate::validate).
    pub fn mean_step(&self) -> Option<Duration> {
        let mean =
            |steps: &Steps| Duration::from_nanos((steps.period().as_nanos() / steps.len() as u64).max(1));
        match self {
            Rate::Fixed(_) | Rate::Varying(VaryingRate::Mahimahi(_) | VaryingRate::TokenBucket(_)) => None,
            Rate::Varying(VaryingRate::Series(series)) => {
                Some(mean(&series.file.contents().expect("the file has been read").0))
            }
            Rate::Varying(VaryingRate::Signal(signal)) => {
                Some(mean(&signal.file.contents().expect("the file has been read").0))
            }
            Rate::Varying(VaryingRate::Lognormal(law)) => Some(law.shape().shortest()),
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
            Rate::Fixed(_) => Ok(()),
            Rate::Varying(VaryingRate::Mahimahi(trace)) => {
                read(trace.file.contents().is_some(), "mahimahi.file")
            }
            Rate::Varying(VaryingRate::Series(series)) => {
                read(series.file.contents().is_some(), "series.file")
            }
            Rate::Varying(VaryingRate::Signal(signal)) => {
                let wrong = |problem| Err(Invalid { field: "signal.table", problem });
                let rows = &signal.table;
                let increasing = rows.iter().all(|row| row.0.is_finite())
                    && rows.windows(2).all(|two| two[0].0 < two[1].0);
                if rows.is_empty() || !increasing {
                    return wrong(
                        "expected levels that increase, each with a rate: [[-5, \"1 Mbps\"], [10, \"20 Mbps\"]]",
                    );
                }
                read(signal.file.contents().is_some(), "signal.file")?;
                match signal.steps().is_some_and(|steps| steps.mean() >= 1.0) {
                    true => Ok(()),
                    false => {
                        wrong("found no level that the signal ever reaches, expected service at some time")
                    }
                }
            }
            Rate::Varying(VaryingRate::Lognormal(law)) => law.validate(),
            Rate::Varying(VaryingRate::TokenBucket(bucket)) => bucket.validate(),
        }
    }

    /// The data files, each with the path of its key in the rate.
    pub fn files(&mut self) -> Option<(&'static [&'static str], &mut dyn Unread)> {
        match self {
            Rate::Varying(VaryingRate::Mahimahi(trace)) => Some((&["mahimahi", "file"], &mut trace.file)),
            Rate::Varying(VaryingRate::Series(series)) => Some((&["series", "file"], &mut series.file)),
            Rate::Varying(VaryingRate::Signal(signal)) => Some((&["signal", "file"], &mut signal.file)),
            Rate::Fixed(_) | Rate::Varying(VaryingRate::Lognormal(_) | VaryingRate::TokenBucket(_)) => None,
        }
    }
}

impl From<BitRate> for Rate {
    fn from(rate: BitRate) -> Rate {
        Rate::Fixed(rate)
    }
}

/// In the format of scenario files: a rate, or a table such as `{ mahimahi = { file = "drive.down" } }`.
impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Rate::Fixed(rate) => rate.serialize(serializer),
            Rate::Varying(varying) => varying.serialize(serializer),
        }
    }
}

inline_schema!(Rate, |generator| schema::any([
    generator.subschema_for::<BitRate>(),
    generator.subschema_for::<VaryingRate>(),
]));

impl<'de> Deserialize<'de> for Rate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Rate;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a rate with its unit, such as \"2 Mbps\" or \"19.2 kbps\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Rate, E> {
                text.parse().map(Rate::Fixed).map_err(E::custom)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<Rate, D::Error> {
                number::read(number).map(Rate::Fixed)
            }
            fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Rate, M::Error> {
                VaryingRate::deserialize(MapAccessDeserializer::new(table)).map(Rate::Varying)
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

/// A rate in steps, read forward in time.
#[derive(Clone, Debug)]
pub(super) enum RateReader {
    Fixed(u64),
    Steps(StepsReader),
    Lognormal { median_bps: f64, fluctuation: Box<Fluctuation> },
}

impl RateReader {
    /// A reader of a rate over time.
    pub(super) fn new(rate: &Rate, fluctuation: impl FnOnce(&LognormalRate) -> Fluctuation) -> RateReader {
        match rate {
            Rate::Fixed(rate) => RateReader::Fixed(rate.as_bps()),
            Rate::Varying(VaryingRate::Series(series)) => {
                let RateSteps(steps) = &**series.file.contents().expect("the file has been read");
                RateReader::Steps(StepsReader::new(Arc::clone(steps)))
            }
            Rate::Varying(VaryingRate::Signal(signal)) => {
                let steps = signal.steps().expect("the file has been read");
                RateReader::Steps(StepsReader::new(Arc::new(steps)))
            }
            Rate::Varying(VaryingRate::Lognormal(law)) => RateReader::Lognormal {
                median_bps: law.median_bps(),
                fluctuation: Box::new(fluctuation(law)),
            },
            Rate::Varying(VaryingRate::Mahimahi(_) | VaryingRate::TokenBucket(_)) => {
                unreachable!("the rate depends on the traffic")
            }
        }
    }

    /// The rate at `at` in bits per second, and the end of the time for which it holds, exclusive.
    pub(super) fn at(&mut self, at: Time) -> (u64, Time) {
        match self {
            RateReader::Fixed(bps) => (*bps, Time::NEVER),
            RateReader::Steps(steps) => {
                let (bps, until) = steps.at(at);
                (bps.round() as u64, until)
            }
            RateReader::Lognormal { median_bps, fluctuation } => {
                let (factor, until) = fluctuation.at(at);
                ((*median_bps * factor).clamp(1.0, MOST_BPS).round() as u64, until)
            }
        }
    }
}
