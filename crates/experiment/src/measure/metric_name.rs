//! Metrics by name.
//!
//! | name | metric |
//! |---|---|
//! | `METRIC`, `SCHEME.COUNTER` | of the whole run |
//! | `connection.NAME.METRIC`, `traffic.NAME.METRIC`, `application.NAME.METRIC` | of a part of it |
//! | `agent.NAME.COUNTER` | of one agent of a scheme |
//!
//! The name of a part is written as a key of TOML: `agent."snoop base-mobile".connections`. As the metric is the last
//! word, the quotes may be left out.

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::agents::SchemeCounter;
use super::applications::ApplicationRun;
use super::metrics::{
    ApplicationMetrics, Better, ConnectionMetrics, Metrics, TrafficMetrics, Value, direction,
};

/// The kinds of parts of a run that have separate metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// A connection.
    Connection,
    /// A source of other traffic.
    Traffic,
    /// An application.
    Application,
    /// An agent of a scheme, with its counters.
    Agent,
}

impl PartKind {
    /// All kinds, in the order of results.
    pub const ALL: [PartKind; 4] =
        [PartKind::Connection, PartKind::Traffic, PartKind::Application, PartKind::Agent];

    /// The first word of its metrics.
    pub fn word(self) -> &'static str {
        match self {
            PartKind::Connection => "connection",
            PartKind::Traffic => "traffic",
            PartKind::Application => "application",
            PartKind::Agent => "agent",
        }
    }

    /// The name of its metrics in messages.
    fn metric(self) -> &'static str {
        match self {
            PartKind::Connection => "connection metric",
            PartKind::Traffic => "traffic metric",
            PartKind::Application => "application metric",
            PartKind::Agent => "agent counter",
        }
    }
}

/// The name of a metric; its text is the canonical form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetricName {
    /// Of the whole run: a metric of all connections together, of the network, or a scheme's counter.
    Whole(String),
    /// Of a part.
    Part {
        /// The kind of the part.
        kind: PartKind,
        /// Its name.
        name: String,
        /// The metric, or the counter of an agent.
        metric: String,
    },
}

impl MetricName {
    /// Which values are better.
    pub fn better(&self) -> Better {
        match self {
            MetricName::Whole(metric) => direction(metric),
            MetricName::Part { kind: PartKind::Agent, .. } => Better::Depends,
            MetricName::Part { metric, .. } => direction(metric),
        }
    }
}

/// The error of a name that no metric has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misnamed(String);

impl fmt::Display for Misnamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misnamed {}

impl FromStr for MetricName {
    type Err = Misnamed;

    fn from_str(text: &str) -> Result<MetricName, Misnamed> {
        let part = text.split_once('.').and_then(|(word, rest)| {
            PartKind::ALL.into_iter().find(|kind| kind.word() == word).map(|kind| (kind, rest))
        });
        let Some((kind, rest)) = part else { return Ok(MetricName::Whole(text.to_owned())) };
        let Some((key, metric)) = rest.rsplit_once('.').filter(|(key, _)| !key.is_empty()) else {
            let word = kind.word();
            return Err(Misnamed(format!("metric: found \"{text}\", expected {word}.NAME.METRIC")));
        };
        let name = unquoted(key).ok_or_else(|| {
            Misnamed(format!("metric: found {key} in {text}, expected a name quoted as in TOML"))
        })?;
        Ok(MetricName::Part { kind, name, metric: metric.to_owned() })
    }
}

impl fmt::Display for MetricName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetricName::Whole(metric) => f.write_str(metric),
            MetricName::Part { kind, name, metric } => {
                write!(f, "{}.{}.{metric}", kind.word(), quoted(name))
            }
        }
    }
}

/// A name as a key of TOML: bare where it can be.
fn quoted(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    match !name.is_empty() && name.chars().all(bare) {
        true => name.to_owned(),
        // A string of JSON is a basic string of TOML.
        false => serde_json::to_string(name).expect("a text has a JSON form"),
    }
}

/// The name that a key denotes; `None` if its quotes are invalid.
fn unquoted(key: &str) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Quoted {
        key: String,
    }
    match key.starts_with(['"', '\'']) {
        true => toml::from_str::<Quoted>(&format!("key = {key}")).ok().map(|quoted| quoted.key),
        false => Some(key.to_owned()),
    }
}

/// A part with the names of its metrics.
#[derive(Clone, Debug)]
struct Part {
    kind: PartKind,
    name: String,
    metrics: Vec<&'static str>,
}

/// The metrics of the runs of a scenario with a scheme, or with several.
#[derive(Clone, Debug, Default)]
pub struct MetricNames {
    /// The counters of schemes, `SCHEME.COUNTER`.
    counters: Vec<String>,
    /// In the order of their kinds.
    parts: Vec<Part>,
}

/// Where a run has the value of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricPlace {
    /// Among the [metrics](Metrics) of the whole run.
    Whole(usize),
    /// Among the counters of schemes.
    Counter(usize),
    /// The number of the part among those of its kind, and of the metric among the part's.
    Part(PartKind, usize, usize),
}

/// A metric that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownMetric {
    /// The kind of thing that does not exist: a metric, a connection, a connection metric ...
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// The names that exist.
    pub known: Vec<String>,
    /// How many of `known` a message lists: not the metrics of parts, which may be thousands.
    pub listed: usize,
}

impl MetricNames {
    /// The names of a run with `counters` of schemes.
    pub(crate) fn new<'a>(counters: impl Iterator<Item = &'a SchemeCounter>) -> MetricNames {
        MetricNames { counters: counters.map(SchemeCounter::to_string).collect(), parts: Vec::new() }
    }

    pub(crate) fn connection(&mut self, name: &str) {
        self.part(PartKind::Connection, name, ConnectionMetrics::NAMES.to_vec());
    }

    pub(crate) fn traffic(&mut self, name: &str) {
        self.part(PartKind::Traffic, name, TrafficMetrics::NAMES.to_vec());
    }

    /// An application whose activity has these metrics.
    pub(crate) fn application(&mut self, name: &str, activity: impl IntoIterator<Item = &'static str>) {
        let metrics = ApplicationMetrics::NAMES.iter().copied().chain(activity);
        self.part(PartKind::Application, name, metrics.collect());
    }

    pub(crate) fn agent(&mut self, name: &str, counters: Vec<&'static str>) {
        self.part(PartKind::Agent, name, counters);
    }

    fn part(&mut self, kind: PartKind, name: &str, metrics: Vec<&'static str>) {
        self.parts.push(Part { kind, name: name.to_owned(), metrics });
    }

    /// Adds the further names of runs with another scheme.
    pub(crate) fn extend(&mut self, other: MetricNames) {
        for counter in other.counters {
            if !self.counters.contains(&counter) {
                self.counters.push(counter);
            }
        }
        for part in other.parts {
            match self.parts.iter_mut().find(|own| (own.kind, &own.name) == (part.kind, &part.name)) {
                Some(own) => {
                    for metric in part.metrics {
                        if !own.metrics.contains(&metric) {
                            own.metrics.push(metric);
                        }
                    }
                }
                None => self.parts.push(part),
            }
        }
    }

    /// The names of the whole run, in the order of results.
    pub fn of_the_run(&self) -> impl Iterator<Item = String> {
        Metrics::names().map(str::to_owned).chain(self.counters.iter().cloned())
    }

    /// The canonical names of all parts, in the order of results.
    pub fn of_parts(&self) -> impl Iterator<Item = String> {
        self.parts.iter().flat_map(|Part { kind, name, metrics }| {
            metrics.iter().map(|metric| {
                let (kind, name, metric) = (*kind, name.clone(), (*metric).to_owned());
                MetricName::Part { kind, name, metric }.to_string()
            })
        })
    }

    fn of_kind(&self, wanted: PartKind) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.kind == wanted)
    }

    /// Where runs have a metric.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn find(&self, name: &MetricName) -> Result<MetricPlace, UnknownMetric> {
        match name {
            MetricName::Whole(wanted) => {
                let counter = || self.counters.iter().position(|each| each == wanted);
                let metric = Metrics::names().position(|each| each == wanted).map(MetricPlace::Whole);
                metric.or_else(|| counter().map(MetricPlace::Counter)).ok_or_else(|| {
                    let known: Vec<String> = self.of_the_run().collect();
                    let listed = known.len();
                    let known = known.into_iter().chain(self.of_parts()).collect();
                    UnknownMetric { what: "metric", name: wanted.clone(), known, listed }
                })
            }
            MetricName::Part { kind, name, metric } => {
                let unknown = |what, name: &str, known: Vec<String>| {
                    let listed = known.len();
                    UnknownMetric { what, name: name.to_owned(), known, listed }
                };
                let part = self.of_kind(*kind).enumerate().find(|(_, part)| part.name == *name);
                let (index, part) = part.ok_or_else(|| {
                    // Agents without counters.
                    let parts = self.of_kind(*kind).filter(|part| !part.metrics.is_empty());
                    unknown(kind.word(), name, parts.map(|part| part.name.clone()).collect())
                })?;
                let place = part.metrics.iter().position(|each| each == metric);
                let place = place.ok_or_else(|| {
                    let known = part.metrics.iter().map(|each| (*each).to_owned());
                    unknown(kind.metric(), metric, known.collect())
                })?;
                Ok(MetricPlace::Part(*kind, index, place))
            }
        }
    }
}

/// The metrics of a run by their places.
pub(crate) trait Values {
    fn whole(&self) -> &Metrics;
    fn counter(&self, index: usize) -> u64;
    fn connection(&self, index: usize) -> &ConnectionMetrics;
    fn traffic(&self, index: usize) -> &TrafficMetrics;
    fn application(&self, index: usize) -> &ApplicationRun;
    fn agent(&self, index: usize, counter: usize) -> u64;

    /// The value at a place that the names of this run have.
    fn at(&self, place: MetricPlace) -> Value {
        let value = match place {
            MetricPlace::Whole(metric) => self.whole().values().nth(metric),
            MetricPlace::Counter(index) => Some(Value::Count(self.counter(index))),
            MetricPlace::Part(PartKind::Connection, index, metric) => {
                self.connection(index).values().nth(metric)
            }
            MetricPlace::Part(PartKind::Traffic, index, metric) => self.traffic(index).values().nth(metric),
            MetricPlace::Part(PartKind::Application, index, metric) => self.application(index).value(metric),
            MetricPlace::Part(PartKind::Agent, index, counter) => {
                Some(Value::Count(self.agent(index, counter)))
            }
        };
        value.expect("the place is one of this run")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> MetricName {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn names_of_parts_are_keys_of_toml() {
        for (text, canonical) in [
            ("throughput_bps", "throughput_bps"),
            ("snoop.connections", "snoop.connections"),
            ("connection.a-1.goodput", "connection.a-1.goodput"),
            ("connection.\"a-1\".goodput", "connection.a-1.goodput"),
            ("traffic.'a.b'.lost_packets", "traffic.\"a.b\".lost_packets"),
            ("traffic.a.b.lost_packets", "traffic.\"a.b\".lost_packets"),
            ("agent.snoop base-mobile.connections", "agent.\"snoop base-mobile\".connections"),
            ("application.'\"'.timeouts", "application.\"\\\"\".timeouts"),
        ] {
            assert_eq!(name(text).to_string(), canonical, "{text}");
            assert_eq!(name(canonical), name(text), "{text}");
        }
        for text in
            ["connection.goodput", "connection.", "agent..x", "traffic.\"a.b.c", "traffic.\"a\" = 1.x"]
        {
            assert!(text.parse::<MetricName>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_metric_of_a_part_has_the_direction_of_the_metric() {
        assert_eq!(name("throughput_bps").better(), Better::Higher);
        assert_eq!(name("traffic.voice.lost_packets").better(), Better::Lower);
        assert_eq!(name("application.web.timeouts").better(), Better::Lower);
        // A counter has no direction, even if it has the name of a metric.
        assert_eq!(name("agent.base-mobile.timeouts").better(), Better::Depends);
        assert_eq!(name("snoop.timeouts").better(), Better::Depends);
    }

    #[test]
    fn an_unknown_name_comes_with_those_that_there_are() {
        let mut names = MetricNames::default();
        names.connection("up");
        names.connection("down");
        names.agent("base-mobile", vec!["notices_sent"]);
        assert_eq!(
            names.find(&name("connection.down.goodput")),
            Ok(MetricPlace::Part(PartKind::Connection, 1, 1))
        );
        let unknown = |text| names.find(&name(text)).expect_err("there is none");
        let found = unknown("speed");
        assert_eq!((found.what, found.listed), ("metric", Metrics::names().count()));
        assert!(found.known.contains(&String::from("connection.up.goodput")));
        let found = unknown("connection.donw.goodput");
        assert_eq!((found.what, found.known.join(" ")), ("connection", String::from("up down")));
        let found = unknown("connection.down.godput");
        assert_eq!((found.what, found.known.len()), ("connection metric", ConnectionMetrics::NAMES.len()));
        assert_eq!(unknown("traffic.x.sent_packets").known, [""; 0]);
        assert_eq!(unknown("agent.base-mobile.sent").known, ["notices_sent"]);
    }

    #[test]
    fn names_of_several_schemes_are_those_of_any() {
        let (mut one, mut two) = (MetricNames::default(), MetricNames::default());
        one.connection("up");
        one.agent("base-mobile", vec!["a"]);
        two.connection("up");
        two.agent("base-mobile", vec!["b"]);
        one.extend(two);
        assert_eq!(one.of_parts().filter(|name| name.starts_with("agent")).count(), 2);
        assert_eq!(one.of_parts().count(), ConnectionMetrics::NAMES.len() + 2);
    }
}
