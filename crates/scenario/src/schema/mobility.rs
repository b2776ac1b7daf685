//! The schema of moving hosts: `[mobility.NAME]`.

use lasthop_base::{Decibels, Duration};
use lasthop_channel as channel;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Movement of the mobile host `NAME` between base stations. The host has a wireless link to each base
/// station, and is attached to one of them, or to none during a hand-off. In cells that `overlap`, it still hears the others.
/// `scenarios/hand-off.toml` is a worked example.
///
/// ```toml
/// [topology.hand-off]
/// stations = 2
///
/// [mobility.mobile]
/// gap = "20 ms"
/// moves.periodic.stay = "5 s"
/// ```
///
/// - **Losses.** While the host is away from a base station, all units on that link are lost in both
///   directions, including the units on the air when it leaves. A link with an ARQ drops its packets when the
///   host leaves, and later arrivals until it returns. A link without an ARQ continues to transmit; packets
///   still queued when the host returns are delivered.
/// - **Routing.** On arrival the host registers at the base station. A router forwards packets for the host
///   there once the registration has reached it, after the propagation delay of the wired links between.
///   Registrations are never lost and use no bandwidth. Packets that reach the old base station are lost,
///   unless a scheme buffers or forwards them. Packets from the host take the link of the current, or last,
///   base station.
/// - **Schemes.** With `multicast`, all base stations receive the packets for the host. With `forwarding` and
///   `snoop` with `transfer = true`, the old base station forwards them to the new one. Split connections
///   (`i-tcp`, `metp`, `vs-tcp`, `m-tcp`) move to the new base station, which takes time. With `freeze-tcp`
///   or `handoff-rxmt`, the host reacts to changes of its signal.
/// - **Random numbers.** Movements depend only on the seed and the run, not on packets or schemes. The fades
///   of the link to the first base station are those of a host with that link alone.
///
/// At most one end of a path may move. A moving host may only have wireless links to its base stations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the key moves")]
pub struct Mobility {
    /// The movement: `periodic`, `random`, `strongest` or `timetable`.
    pub moves: Moves,
    /// Time between leaving a base station and being reachable at the next. By default zero; what is on the
    /// air when the host leaves is lost even then.
    #[serde(default)]
    pub gap: Duration,
    /// Whether the host hears all its base stations wherever it is, as routers of one wireless cell: a move then loses
    /// nothing, and changes only the way that packets take to and from the host. By default not, and not with a `gap`.
    /// Each link keeps its own rate, queue, medium and losses, so that two routers have twice the air. Agents of schemes
    /// at base stations, such as `forwarding`, `multicast`, `snoop`, `eln` and `nack`, follow the moves as in cells apart.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub overlap: bool,
    /// The names of the base stations, in order, such as `["BS2", "BS1"]`. The host starts at the first. By
    /// default the base stations of all its wireless links, in the order of the links.
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
    /// The host leaves at each time `at` for the base station `to`. Times must increase by more than the gap.
    ///
    /// ```toml
    /// [topology.hand-off]
    /// stations = 2
    ///
    /// [mobility.mobile]
    /// moves.timetable = [{ at = "5 s", to = "BS2" }, { at = "12 s", to = "BS1" }]
    /// ```
    Timetable(Vec<Move>),
    /// To the base station with the strongest signal.
    Strongest(Strongest),
}

/// The host moves to the next base station in order, and from the last to the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// Time at each base station, above zero.
    pub stay: Duration,
}

/// The host moves to any other base station with equal probability.
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

/// The host drives at constant speed along a straight road past equidistant base stations, from the first to
/// the last and back. At each beacon it compares their signals, and moves to the strongest one if that
/// exceeds its own by the hysteresis. Signals decay with the distance d as d^(−exponent); the distance
/// between road and base stations is a twentieth of that between base stations. Shadowing is normal in
/// decibels and independent for each base station (M. Gudmundson, Electronics Letters 27(23), 1991). The
/// signal only determines the hand-offs; errors on a link follow its channel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Strongest {
    /// Driving time from one base station to the next, above zero.
    pub crossing: Duration,
    /// Path loss exponent: 2 in free space, 3 to 5 in towns. By default 3.5, as in towns.
    #[serde(default = "urban_exponent")]
    pub exponent: f64,
    /// Standard deviation of the shadowing.
    #[serde(default = "no_shadowing")]
    pub shadowing: Decibels,
    /// Time in which the correlation of the shadowing falls to 1/e, above zero.
    #[serde(default = "one_second")]
    pub correlation: Duration,
    /// Required advantage of another signal.
    #[serde(default = "twice_the_power")]
    pub hysteresis: Decibels,
    /// Time between comparisons, above zero. By default 1 s, as in "Improving Reliable Transport and Handoff
    /// Performance in Cellular Wireless Networks" (WINET 1995).
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
