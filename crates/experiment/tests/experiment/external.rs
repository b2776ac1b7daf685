//! Schemes from outside: they run like registered ones, and their failures end a run.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lasthop_base::Time;
use lasthop_experiment::{Experiment, Observe, RunError};
use lasthop_proto::scheme::{ExternalSchemes, Installer, Scheme, SchemeFailure, Schemes};
use lasthop_proto::{Component, Out, Packet, Port};
use lasthop_scenario::Scenario;

const SCENARIO: &str = "schemes = ['basic', 'ebsn']\nwarmup = '100 ms'\n\
                        [transfer]\nsize = '100 KB'\n[wired]\nrate = '1 Mbps'\n[radio]\nrate = '1 Mbps'\n\
                        [radio.arq.stop-and-wait]\nretransmissions = 3\n[radio.channel.iid]\nber = 1e-5\n\
                        [sweep]\n'radio.channel.iid.ber' = [1e-6, 1e-5]";

/// A scheme under another name, whose agents count packets and fail after some.
struct Outside {
    scheme: Schemes,
    name: &'static str,
    parameter: u32,
    passed: Arc<AtomicU64>,
    limit: u64,
}

impl Outside {
    fn named(name: &'static str, parameter: u32, limit: u64) -> Outside {
        Outside { scheme: Schemes::default(), name, parameter, passed: Arc::default(), limit }
    }
}

#[derive(Debug)]
struct Limit(u64);

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "more than {} packets", self.0)
    }
}

impl std::error::Error for Limit {}

struct Count(Arc<AtomicU64>);

impl Component for Count {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.0.fetch_add(1, Ordering::Relaxed);
        out.send(port.across(), *packet);
    }
}

impl Scheme for Outside {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        "a scheme from outside"
    }

    fn source(&self) -> &'static str {
        "a test"
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        self.scheme.get("ebsn").expect("it is registered").install(installer);
        installer.at_base_station(|_| Count(Arc::clone(&self.passed)));
    }

    fn take_failure(&self) -> Option<SchemeFailure> {
        let passed = self.passed.swap(0, Ordering::Relaxed);
        (passed > self.limit).then(|| SchemeFailure {
            scheme: self.name,
            at: Some(Time::from_nanos(1_500_000_000)),
            cause: Arc::new(Limit(self.limit)),
        })
    }

    fn fingerprint(&self) -> String {
        self.parameter.to_string()
    }
}

fn external(schemes: impl IntoIterator<Item = Outside>) -> ExternalSchemes {
    let mut all = Schemes::default();
    schemes.into_iter().for_each(|scheme| assert!(all.add(Arc::new(scheme)).is_ok()));
    all.external
}

fn scenario() -> Scenario {
    Scenario::parse::<&str>(SCENARIO, "test.toml", &[]).expect("it is sound")
}

#[test]
fn an_external_scheme_runs_like_a_registered_one() {
    let with = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        scenario().with_schemes(names, [Arc::new(Outside::named("outside", 1, u64::MAX)) as _])
    };
    let outside = with(&["outside", "outside + lhack", "basic"]).expect("they go together");
    let usual = scenario();
    for (outer, inner) in [("outside", "ebsn"), ("outside+lhack", "ebsn + lhack")] {
        let found = outside.run(outer, 3, 1, Observe::default()).expect("it runs");
        let expected = usual.run(inner, 3, 1, Observe::default()).expect("it runs");
        assert_eq!(found.metrics, expected.metrics);
        assert_eq!(found.connections, expected.connections);
    }
    // It has the same link requirement, and cannot be named where nobody brought it.
    let known = &outside.scheme.external;
    let named = ["schemes=['outside']"];
    assert!(Scenario::parse_with(SCENARIO, "", &named, known).is_ok());
    let bare = SCENARIO.replace("[radio.arq.stop-and-wait]\nretransmissions = 3\n", "");
    assert!(Scenario::parse_with(&bare, "", &named, known).is_err());
    let unknown = Scenario::parse(SCENARIO, "", &["schemes=['outside']"]).unwrap_err().to_string();
    assert!(unknown.contains("found \"outside\", expected"), "{unknown}");
    assert!(with(&["outside + outside"]).is_err());
}

/// Points of a sweep know the schemes of their scenario.
#[test]
fn points_know_external_schemes() {
    let known = external([Outside::named("outside", 1, u64::MAX)]);
    let scenario = Scenario::parse_with(SCENARIO, "", &["schemes=['outside']"], &known).expect("it is sound");
    let points = scenario.points();
    assert_eq!(points.len(), 2);
    for point in points {
        assert_eq!(point.scenario.scheme.external, known);
        point.scenario.run("outside", 1, 0, Observe::default()).expect("it runs");
    }
    // The file has no table of theirs.
    assert!(!scenario.to_toml().contains("external"));
}

#[test]
fn registered_names_are_taken_and_external_ones_are_replaced() {
    let mut schemes = Schemes::default();
    assert!(schemes.add(Arc::new(Outside::named("ebsn", 1, 0))).is_err());
    assert!(schemes.add(Arc::new(Outside::named("outside", 1, 0))).is_ok());
    assert!(schemes.add(Arc::new(Outside::named("outside", 2, 0))).is_ok());
    assert_eq!(schemes.external.all().map(Scheme::fingerprint).collect::<Vec<_>>(), ["2"]);
    assert_eq!(schemes.all().filter(|scheme| scheme.name() == "outside").count(), 1);
    let taken = scenario().with_schemes(vec!["ebsn".into()], [Arc::new(Outside::named("ebsn", 1, 0)) as _]);
    assert!(taken.unwrap_err().to_string().contains("found \"ebsn\" as an external scheme"));
}

#[test]
fn the_hash_tells_external_schemes_apart() {
    let hash = |parameter| {
        let known = external([Outside::named("outside", parameter, 0)]);
        Scenario::parse_with::<&str>(SCENARIO, "", &[], &known).expect("it is sound").hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
    assert_ne!(hash(1), scenario().hash());
}

#[test]
fn a_failure_ends_the_run_with_its_reason() {
    let known = external([Outside::named("outside", 1, 20)]);
    let scenario = Scenario::parse_with::<&str>(SCENARIO, "", &[], &known).expect("it is sound");
    for observe in [Observe::default(), Observe { trace: true, series: true, ..Observe::default() }] {
        let error = scenario.run("outside", 1, 0, observe).unwrap_err();
        assert!(matches!(&error, RunError::Scheme(failure) if failure.cause.is::<Limit>()));
        assert_eq!(error.to_string(), "scheme \"outside\" failed at 1.500000000 s: more than 20 packets");
    }
    // A scheme that is not run does not fail.
    assert!(scenario.run("ebsn", 1, 0, Observe::default()).is_ok());
}
