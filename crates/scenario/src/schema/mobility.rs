//! The schema of moving hosts: `[mobility.NAME]`.

use lasthop_base::{Decibels, Duration};
use lasthop_channel as channel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a mobile host moves between its base stations: the table `[mobility.NAME]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the key moves")]
pub struct Mobility {
    /// When and where it moves.
    pub moves: Moves,
    /// Time between leaving a base station and being reachable at the next. By default zero; what is on the air
    /// when the host leaves is lost even then.
    #[serde(default)]
    pub gap: Duration,
    /// The names of its base stations, in order. By default those of all its wireless links, in the order of the links.
    /// Except under `strongest`, the host begins at the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stations: Option<Vec<String>>,
}

/// When and where a mobile host moves: the table `[mobility.NAME.moves]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Moves {
    /// To the next base station in order, and from the last to the first.
    Periodic(Periodic),
    /// To any other base station with equal probability.
    Random(Random),
    /// At given times, in ascending order.
    Timetable(Vec<Move>),
    /// To the base station with the strongest signal.
    Strongest(Strongest),
}

/// The table `[mobility.NAME.moves.periodic]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// Time at each base station, above zero.
    pub stay: Duration,
}

/// The table `[mobility.NAME.moves.random]`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Random {
    /// Mean of the exponentially distributed time at each base station, above zero.
    pub stay: Duration,
}

/// One move of a timetable.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the keys at and to")]
pub struct Move {
    /// When the host leaves the base station at which it is.
    pub at: Duration,
    /// The name of the next base station.
    pub to: String,
}

/// The table `[mobility.NAME.moves.strongest]`: the base stations stand at equal distances along a straight road, and
/// the host drives from the first to the last and back. See [`channel::Strongest`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Strongest {
    /// Time from one base station to the next, above zero.
    pub crossing: Duration,
    /// Path loss exponent. By default 3.5, as in towns.
    #[serde(default = "urban_exponent")]
    pub exponent: f64,
    /// Standard deviation of the shadowing. By default none.
    #[serde(default = "no_shadowing")]
    pub shadowing: Decibels,
    /// Time in which the correlation of the shadowing falls to 1/e, above zero. By default 1 s.
    #[serde(default = "one_second")]
    pub correlation: Duration,
    /// By how much another signal must be stronger. By default 3 dB.
    #[serde(default = "twice_the_power")]
    pub hysteresis: Decibels,
    /// Time between two comparisons of the signals, above zero. By default 1 s, as in "Improving Reliable Transport and
    /// Handoff Performance in Cellular Wireless Networks" (WINET 1995).
    #[serde(default = "one_second")]
    pub beacon: Duration,
}

fn urban_exponent() -> f64 {
    3.5
}

fn no_shadowing() -> Decibels {
    decibels(0.0)
}

fn twice_the_power() -> Decibels {
    decibels(3.0)
}

fn decibels(db: f64) -> Decibels {
    Decibels::new(db).expect("a finite ratio")
}

fn one_second() -> Duration {
    Duration::from_secs(1)
}

impl Moves {
    /// These moves, with base stations by number.
    pub(crate) fn numbered(&self, number: impl Fn(&str) -> Option<u16>) -> channel::Moves {
        match self {
            Moves::Periodic(Periodic { stay }) => channel::Moves::Periodic { stay: *stay },
            Moves::Random(Random { stay }) => channel::Moves::Random { stay: *stay },
            Moves::Timetable(moves) => {
                let numbered = moves.iter().filter_map(|Move { at, to }| Some((*at, number(to)?)));
                channel::Moves::Timetable(numbered.collect())
            }
            Moves::Strongest(law) => {
                let Strongest { crossing, exponent, shadowing, correlation, hysteresis, beacon } = *law;
                let law =
                    channel::Strongest { crossing, exponent, shadowing, correlation, hysteresis, beacon };
                channel::Moves::Strongest(law)
            }
        }
    }

    /// The shortest interval at which something is drawn, and its key.
    pub(crate) fn cycle(&self) -> Option<(&'static str, Duration)> {
        match self {
            Moves::Periodic(Periodic { stay }) => Some(("periodic.stay", *stay)),
            Moves::Random(Random { stay }) => Some(("random.stay", *stay)),
            Moves::Timetable(_) => None,
            Moves::Strongest(law) => Some(("strongest.beacon", law.beacon)),
        }
    }

    /// Lengths that must be above zero, each with its key.
    pub(crate) fn lengths(&self) -> Vec<(&'static str, Duration)> {
        match self {
            Moves::Strongest(law) => vec![
                ("strongest.crossing", law.crossing),
                ("strongest.correlation", law.correlation),
                ("strongest.beacon", law.beacon),
            ],
            _ => self.cycle().into_iter().collect(),
        }
    }
}
