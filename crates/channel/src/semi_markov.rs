//! Good and bad periods of any distribution.
//!
//! # Stationary start
//! At a random instant, a period is met with a probability that is proportional to its length, and the instant is
//! uniformly distributed in it. So the first period lasts U · L, where U is uniform on [0, 1) and L has the
//! length-biased distribution: for a lognormal one with median m and sigma σ it is lognormal with median m e^(σ²) and the
//! same σ; for a list, each element with a weight of its length; for an exponential one the result is the same exponential.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use lasthop_base::{
    Columns, Contents, DataFile, Duration, Invalid, LineError, Probability, Stream, Unread, inline_schema,
    schema,
};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use crate::alternating::{Alternating, ByTime, PerState, Start};
use crate::model::above_zero;
use crate::{Channel, ChannelModel, State};

/// Alternating good and bad periods with independent lengths from any distribution, such as measured or
/// heavy-tailed ones.
///
/// ```toml
/// [radio.channel.semi-markov]
/// good.lognormal = { mean = "20 s", sigma = 1.5 }
/// bad.empirical = ["20 ms", "35 ms", "35 ms", "1.2 s"]
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SemiMarkov {
    /// Distribution of the lengths of good periods.
    pub good: Sojourns,
    /// Distribution of the lengths of bad periods.
    pub bad: Sojourns,
    /// Bit error rate in good periods.
    #[serde(default)]
    pub good_ber: Probability,
    /// Bit error rate in bad periods. With the defaults, exactly the units that overlap a bad period are
    /// lost.
    #[serde(default = "always")]
    pub bad_ber: Probability,
    /// Loss probability of a unit whose transmission starts in a good period. If either loss is stated, there
    /// are no bit errors; the default is then 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_good: Option<Probability>,
    /// Loss probability of a unit whose transmission starts in a bad period; 1 if only `loss_good` is stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss_bad: Option<Probability>,
    /// `"stationary"`: within a period in progress (residual life), in either state with its stationary
    /// probability. `"good"` or `"bad"`: at the start of a period.
    #[serde(default = "stationary")]
    pub start: Start,
}

fn always() -> Probability {
    Probability::new(1.0).expect("a probability")
}

fn stationary() -> Start {
    Start::Stationary
}

/// The distribution of the lengths of periods.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sojourns {
    /// Constant.
    Constant(Duration),
    /// Exponential with this mean.
    Exponential(Duration),
    /// Lognormal.
    Lognormal(Lognormal),
    /// Drawn from a list, with replacement.
    Empirical(Empirical),
}

/// A lognormal distribution by its median or its mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lognormal {
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median: Option<Duration>,
    /// The mean, median · e^(sigma²/2), instead of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Duration>,
    /// The standard deviation of the logarithm.
    pub sigma: f64,
}

/// Measured lengths: a list in the scenario, or the column `length_s` (or `length_ms`) of a CSV file.
#[derive(Clone, Debug, PartialEq)]
pub enum Empirical {
    /// A list.
    List(Lengths),
    /// A file.
    File(DataFile<Lengths>),
}

/// A list of lengths above zero.
#[derive(Clone, PartialEq)]
pub struct Lengths {
    lengths: Arc<[Duration]>,
    /// The sum of each and all before it, in seconds.
    sums: Arc<[f64]>,
}

impl fmt::Debug for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lengths({})", self.lengths.len())
    }
}

impl Lengths {
    fn new(lengths: Vec<Duration>) -> Lengths {
        let sums = lengths.iter().scan(0.0, |sum, length| {
            *sum += length.as_secs_f64();
            Some(*sum)
        });
        Lengths { sums: sums.collect(), lengths: lengths.into() }
    }

    fn mean_s(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0) / self.lengths.len() as f64
    }

    fn draw(&self, stream: &mut Stream) -> Duration {
        self.lengths[stream.below(self.lengths.len() as u64) as usize]
    }

    /// One of them, with a probability that is proportional to its length.
    fn biased(&self, stream: &mut Stream) -> Duration {
        let all = self.sums[self.sums.len() - 1];
        let place = stream.uniform() * all;
        let index = self.sums.partition_point(|&sum| sum <= place);
        self.lengths[index.min(self.lengths.len() - 1)]
    }
}

impl Contents for Lengths {
    fn parse(text: &str) -> Result<Lengths, LineError> {
        let columns = Columns::parse(text, "length_s")?;
        let seconds = columns.column(&[("length_s", 1.0), ("length_ms", 1e-3)])?;
        let lengths: Vec<_> = seconds.iter().map(|&length| Duration::from_secs_f64(length)).collect();
        match lengths.iter().position(|length| length.is_zero()) {
            Some(row) => {
                Err(columns.wrong(row, "found a length that is not above zero, expected a longer one"))
            }
            None => Ok(Lengths::new(lengths)),
        }
    }
}

impl Serialize for Empirical {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Empirical::List(Lengths { lengths, .. }) => serializer.collect_seq(lengths.iter()),
            Empirical::File(file) => LengthsTable { file: file.clone() }.serialize(serializer),
        }
    }
}

/// Lengths in a file.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LengthsTable {
    /// The file.
    file: DataFile<Lengths>,
}

inline_schema!(Empirical, |generator| schema::any([
    generator.subschema_for::<Vec<Duration>>(),
    generator.subschema_for::<LengthsTable>(),
]));

impl<'de> Deserialize<'de> for Empirical {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Empirical, D::Error> {
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Empirical;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list such as [\"20 ms\", \"1.5 s\"], or a table { file = \"fades.csv\" }")
            }
            fn visit_seq<S: SeqAccess<'de>>(self, list: S) -> Result<Empirical, S::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list))
                    .map(|list| Empirical::List(Lengths::new(list)))
            }
            fn visit_map<M: MapAccess<'de>>(self, table: M) -> Result<Empirical, M::Error> {
                LengthsTable::deserialize(MapAccessDeserializer::new(table))
                    .map(|table| Empirical::File(table.file))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Empirical, E> {
                Err(E::invalid_type(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

impl Lognormal {
    fn median_s(&self) -> f64 {
        match (self.median, self.mean) {
            (Some(median), _) => median.as_secs_f64(),
            (None, Some(mean)) => mean.as_secs_f64() * libm::exp(-self.sigma * self.sigma / 2.0),
            (None, None) => unreachable!("the model is valid"),
        }
    }
}

impl Sojourns {
    /// Errors are reported at the state, `at`.
    fn validate(&self, at: &'static str) -> Result<(), Invalid> {
        let wrong = |problem| Err(Invalid { field: at, problem });
        match self {
            Sojourns::Constant(length) | Sojourns::Exponential(length) => above_zero(at, *length),
            Sojourns::Lognormal(Lognormal { median, mean, sigma }) => {
                if !(0.0..=5.0).contains(sigma) {
                    return wrong("found a sigma out of range, expected 0 to 5, such as 1.2");
                }
                match (median, mean) {
                    (Some(length), None) | (None, Some(length)) => above_zero(at, *length),
                    _ => {
                        wrong("expected either the median or the mean of the lognormal lengths, and not both")
                    }
                }
            }
            Sojourns::Empirical(empirical) => match empirical.lengths() {
                None => wrong(
                    "found a file that has not been read, expected a scenario that was loaded from a file",
                ),
                Some(lengths) if lengths.lengths.is_empty() => {
                    wrong("found an empty list, expected at least one length, such as [\"20 ms\", \"1.5 s\"]")
                }
                Some(lengths) if lengths.lengths.iter().any(|length| length.is_zero()) => {
                    wrong("found a length of zero in the list, expected lengths above zero")
                }
                Some(_) => Ok(()),
            },
        }
    }

    fn mean_s(&self) -> f64 {
        match self {
            Sojourns::Constant(length) | Sojourns::Exponential(length) => length.as_secs_f64(),
            Sojourns::Lognormal(law) => law.median_s() * libm::exp(law.sigma * law.sigma / 2.0),
            Sojourns::Empirical(empirical) => empirical.lengths().expect("the file has been read").mean_s(),
        }
    }

    fn draw(&self, stream: &mut Stream) -> Duration {
        match self {
            Sojourns::Constant(length) => *length,
            Sojourns::Exponential(mean) => stream.exponential(*mean),
            Sojourns::Lognormal(law) => lognormal(law.median_s(), law.sigma, stream),
            Sojourns::Empirical(empirical) => {
                empirical.lengths().expect("the file has been read").draw(stream)
            }
        }
    }

    /// Residual length of a period at a random instant in it.
    fn residual(&self, stream: &mut Stream) -> Duration {
        let whole = match self {
            Sojourns::Constant(length) => *length,
            Sojourns::Exponential(mean) => return stream.exponential(*mean),
            Sojourns::Lognormal(law) => {
                lognormal(law.median_s() * libm::exp(law.sigma * law.sigma), law.sigma, stream)
            }
            Sojourns::Empirical(empirical) => {
                empirical.lengths().expect("the file has been read").biased(stream)
            }
        };
        Duration::from_secs_f64(whole.as_secs_f64() * stream.uniform())
    }

    fn file(&mut self) -> Option<&mut dyn Unread> {
        match self {
            Sojourns::Empirical(Empirical::File(file)) => Some(file),
            _ => None,
        }
    }
}

fn lognormal(median_s: f64, sigma: f64, stream: &mut Stream) -> Duration {
    Duration::from_secs_f64(median_s * libm::exp(sigma * stream.normal()))
}

impl Empirical {
    /// `None` for a file that has not been read.
    fn lengths(&self) -> Option<&Lengths> {
        match self {
            Empirical::List(lengths) => Some(lengths),
            Empirical::File(file) => file.contents().map(|lengths| &**lengths),
        }
    }
}

impl SemiMarkov {
    /// The losses of whole units, if the model has them: by default none in good periods, and all in bad ones.
    fn losses(&self) -> Option<PerState<f64>> {
        let either = self.loss_good.is_some() || self.loss_bad.is_some();
        either.then(|| PerState {
            good: self.loss_good.map_or(0.0, Probability::get),
            bad: self.loss_bad.map_or(1.0, Probability::get),
        })
    }

    fn cycle_s(&self) -> f64 {
        self.good.mean_s() + self.bad.mean_s()
    }
}

impl ChannelModel for SemiMarkov {
    fn examples() -> &'static [&'static str] {
        &[
            "good.exponential = \"10 s\", bad.constant = \"300 ms\", good_ber = 1e-6, bad_ber = 0.01, start = \"good\"",
            "good.lognormal = { median = \"10 s\", sigma = 0.5 }, bad.lognormal = { mean = \"1 s\", sigma = 1.2 }, \
             loss_good = 0.001, loss_bad = 0.5",
            "good.empirical = [\"2 s\", \"5 s\"], bad.empirical.file = \"fades.csv\"",
        ]
    }

    fn validate(&self) -> Result<(), Invalid> {
        if self.losses().is_some() && (self.good_ber.get() > 0.0 || self.bad_ber.get() < 1.0) {
            return Err(Invalid {
                field: "semi-markov",
                problem: "found both bit error rates and losses, expected either good_ber and bad_ber, or loss_good and \
                          loss_bad",
            });
        }
        self.good.validate("semi-markov.good")?;
        self.bad.validate("semi-markov.bad")
    }

    fn channel(&self, mut stream: Stream) -> Box<dyn Channel> {
        let start = self.start.draw(self.availability(), &mut stream);
        let laws = Laws { good: self.good.clone(), bad: self.bad.clone() };
        let mut first = (self.start == Start::Stationary).then(|| laws.of(start).residual(&mut stream));
        let lengths = move |state| first.take().unwrap_or_else(|| laws.of(state).draw(&mut stream));
        match self.losses() {
            Some(loss) => Box::new(ByTime::new(start, loss, lengths)),
            None => {
                let rates = PerState { good: self.good_ber, bad: self.bad_ber };
                Box::new(Alternating::new(start, rates, lengths))
            }
        }
    }

    fn availability(&self) -> f64 {
        self.good.mean_s() / self.cycle_s()
    }

    fn mean_cycle_s(&self) -> Option<f64> {
        Some(self.cycle_s())
    }

    fn files(&mut self) -> Vec<(&'static [&'static str], &mut dyn Unread)> {
        let good = self.good.file().map(|file| (&["semi-markov", "good", "empirical", "file"][..], file));
        let bad = self.bad.file().map(|file| (&["semi-markov", "bad", "empirical", "file"][..], file));
        good.into_iter().chain(bad).collect()
    }
}

/// The distributions of both states.
struct Laws {
    good: Sojourns,
    bad: Sojourns,
}

impl Laws {
    fn of(&self, state: State) -> &Sojourns {
        match state {
            State::Good => &self.good,
            State::Bad => &self.bad,
        }
    }
}
