//! Every scheme over every shape of network; split connections at its borders.

use lasthop_experiment::{ConnectionRun, Ended, Experiment, Metrics, Observe, PartRun};
use lasthop_proto::scheme::{QueueUse, Schemes};
use lasthop_testing::schemes::extending;

use super::connections::times_of;
use super::{EVERYTHING, events, read, run};
use lasthop_testing::scenario_texts::{NETWORK, SCENARIO};

/// Several connections and other traffic.
#[test]
fn runs_are_reproducible() {
    let scenario = read(NETWORK, &["link.base2-laptop.channel.iid.ber=1e-5", "limit=6 s"]);
    let report = |number| {
        let result = scenario.run("lhack", 7, number, Observe::default()).unwrap();
        lasthop_experiment::report::to_json(&scenario, &[&result]).unwrap()
    };
    assert_eq!(report(3), report(3));
    assert_ne!(report(3).replace("\"run\": 3", "\"run\": 4"), report(4));
}

/// Every scheme over every topology, in both directions, with an application and background traffic.
#[test]
fn every_scheme_runs_over_every_shape() {
    let application = |from, to| {
        format!(
            "application.web={{kind=\"http\", from={from:?}, to={to:?}, think={{exponential=\"1 s\"}}, requests=4}}"
        )
    };
    let ends = [
        ("fixed", "mobile"),
        ("destination", "source"),
        ("S2", "D3"),
        ("a", "b"),
        ("MH3", "server"),
        ("c", "b"),
    ];
    let [usual, path, dumbbell, graph, cell, within] = ends.map(|(from, to)| application(from, to));
    let shapes = [
        &[usual.as_str()][..],
        &["topology.path={routers=3, wireless=\"both\"}", &path],
        &["topology.dumbbell={pairs=3, wireless=\"both\"}", &dumbbell],
        &[
            &graph,
            "topology.graph={wired=[\"server-base\", \"base-base2\"], radio=[\"base-a\", \"base2-b\"]}",
            "connection.down={from=\"server\", to=\"a\"}",
            "connection.up={from=\"b\", to=\"server\"}",
            "connection.between={from=\"a\", to=\"b\"}",
            "connection.hop={from=\"base\", to=\"a\"}",
            "connection.back={from=\"a\", to=\"base\"}",
            "traffic.cross={from=\"b\", to=\"a\", packet_size=\"100 B\", law={poisson={rate=\"2 kbps\"}}}",
        ],
        &[
            &cell,
            "topology.cell={stations=3}",
            "connection.1={}",
            "connection.2={from=\"MH2\", to=\"server\"}",
        ],
        &[
            &within,
            "topology.graph={wired=[\"server-ap\", \"ap-base\"], radio=[\"base-a\"], cell=[\"ap-b\", \"ap-c\"]}",
            "connection.down={from=\"server\", to=\"b\"}",
            "connection.up={from=\"c\", to=\"server\"}",
            "connection.between={from=\"b\", to=\"c\"}",
            "connection.over={from=\"c\", to=\"a\"}",
            "connection.hop={from=\"ap\", to=\"b\"}",
            "connection.back={from=\"b\", to=\"ap\"}",
            "link.ap-b.drop={down=0.05, up=0.02}",
            "traffic.cross={from=\"a\", to=\"c\", packet_size=\"100 B\", law={poisson={rate=\"2 kbps\"}}}",
        ],
    ];
    for shape in shapes {
        let lossy = [
            "transfer.size=20 KB",
            "tcp.close=true",
            "radio.channel.frame-loss.loss=0.05",
            "radio.fec=bch-255-131-18",
            "limit=1 h",
        ];
        // The cell of a shape has no links of `[radio]`.
        let in_cell = shape.iter().any(|key| key.starts_with("topology.cell"));
        let lossy = lossy.into_iter().filter(|key| !(in_cell && key.starts_with("radio.")));
        let overrides: Vec<&str> = shape.iter().copied().chain(lossy).collect();
        let scenario = read(SCENARIO, &overrides);
        for scheme in extending(&Schemes::default(), &scenario.tcp) {
            let result = match scenario.run(scheme.name(), 1, 0, EVERYTHING) {
                // A cell has no coding and queues of its own, and a tunnel does not lead from station to station.
                Err(refused) => {
                    let schemes = Schemes::default();
                    let combination = schemes.combination(scheme.name()).expect("it is known");
                    let link = combination.link();
                    let is_for_radios = link.protects.is_some() || link.queue != QueueUse::Kept;
                    assert!(is_for_radios || combination.tunnel().is_some());
                    assert!(refused.to_string().contains("cell"), "{refused}");
                    continue;
                }
                Ok(result) => result,
            };
            assert_eq!(result.ended, Ended::Finished, "{} over {shape:?}", scheme.name());
            assert!(Metrics::names().count() == result.metrics.values().count());
            let web = &result.applications[0].1.metrics;
            assert_eq!((web.requests, web.responses), (4, 4), "{} over {shape:?}", scheme.name());
            for each in &result.connections {
                let received = times_of(events(each), "notice-received");
                assert_eq!(each.metrics.notices, received, "{} of {}", each.name, scheme.name());
            }
        }
    }
}

/// A base station that is itself a mobile host has no wired side, so connections are not split.
#[test]
fn wireless_links_in_a_row_are_not_split() {
    for links in [r#"radio=["a-b", "b-c"]"#, r#"cell=["a-b", "b-c"]"#, r#"cell=["a-b"], radio=["b-c"]"#] {
        for (from, to) in [("a", "c"), ("c", "a")] {
            let ends = format!("connection.only={{from=\"{from}\", to=\"{to}\"}}");
            let graph = format!("topology.graph={{{links}}}");
            let scenario = read(SCENARIO, &[&graph, &ends, "tcp.close=true", "limit=1 h"]);
            assert_eq!(run(&scenario, "basic").ended, Ended::Finished, "{links}");
            for scheme in ["i-tcp", "metp", "vs-tcp"] {
                let refused = scenario.run(scheme, 1, 0, Observe::default()).unwrap_err();
                assert!(refused.to_string().contains("two wireless links in a row"), "{refused}");
                let endless = read(SCENARIO, &[&graph, &ends, "transfer.size=unlimited", "limit=10 s"]);
                assert!(endless.run(scheme, 1, 0, Observe::default()).is_err());
            }
        }
    }
    let between = "topology.graph={radio=[\"base-a\", \"base-b\"]}";
    let ends = "connection.only={from=\"a\", to=\"b\"}";
    let scenario = read(SCENARIO, &[between, ends, "tcp.close=true", "limit=1 h"]);
    assert_eq!(run(&scenario, "metp").ended, Ended::Finished);
}

/// A mobile host that fails permanently does not block a run: the base station aborts, resets the source, and
/// counts the bytes that it acknowledged in vain; also if the source has finished.
#[test]
fn a_base_station_aborts_connections_to_a_dead_mobile_host() {
    let dead = "radio.channel.fixed-periods={good=\"5 s\", bad=\"10000 s\"}";
    for (size, source_is_done) in [("10 MB", false), ("20 KB", true)] {
        for scheme in ["i-tcp", "metp", "vs-tcp"] {
            let size = format!("transfer.size={size}");
            let overrides = [dead, &size, "tcp.close=true", "limit=10 h", "wired.rate=10 Mbps"];
            let result = run(&read(SCENARIO, &overrides), scheme);
            let ConnectionRun { metrics, parts, .. } = &result.connections[0];
            assert_eq!(result.ended, Ended::Finished, "{scheme}");
            assert!(metrics.aborted && !metrics.finished && metrics.completion_time_s.is_none());
            assert!(metrics.acknowledged_undelivered_bytes > 0 && metrics.relay_held_bytes == 0);
            assert!(metrics.relay_timeouts > 1 && metrics.relay_peak_bytes > 0);
            let [wired, wireless] = &parts[..] else { panic!("two parts") };
            let last = |part: &PartRun| *part.events.as_ref().unwrap().time_s.last().unwrap();
            // R2 of RFC 9293 section 3.8.3, plus the last interval of the timer.
            assert!(last(wireless) > 105.0 && last(wireless) < 5.0 + 2.0 * 100.0 + 64.0, "{scheme}");
            assert_eq!(last(wired) < 100.0, source_is_done, "{scheme}: {}", last(wired));
        }
    }
}
