//! Background traffic, with connections and alone.

use lasthop_experiment::{Ended, Experiment, Observe};
use lasthop_scenario::Scenario;

use super::{EVERYTHING, read, traffic};

/// Two datagram sources and a transfer share a short queue before a lossy last hop.
pub(crate) const CROWD: &str = r#"
limit = "20 s"

[transfer]
size = "unlimited"

[wired]
rate = "2 Mbps"
delay = "10 ms"
queue = "10 packets"

[radio]
rate = "1 Mbps"
queue = "10 packets"
channel.iid.ber = 1e-5

[traffic.steady]
from = "fixed"
to = "mobile"
packet_size = "500 B"
start = "1 s"
stop = "15 s"
law.constant.rate = "200 kbps"

[traffic.bursts]
from = "fixed"
to = "mobile"
packet_size = "1000 B"
stop = "15 s"
law.on-off = { rate = "4 Mbps", on = "100 ms", off = "900 ms" }
"#;

#[test]
fn packets_are_conserved() {
    for number in 0..10 {
        let at_end = read(CROWD, &[]).run("basic", 1, number, Observe::default()).unwrap();
        for (name, each) in &at_end.traffic {
            assert_eq!(each.sent_packets, each.delivered_packets + each.lost_packets, "{name} {number}");
            assert!(each.lost_packets > 0 && each.delivered_packets > 0, "{name} {number}");
        }
        // 14 s of 50 packets.
        let steady = traffic(&at_end, "steady");
        assert_eq!(steady.sent_packets, 700);
        // Until the last packet has left the two queues and the two links.
        let took = steady.delivered_packets as f64 * 4000.0 / steady.throughput_bps;
        assert!((14.0 - 1e-9..14.3).contains(&took), "{took}");
        // Upper bound on the packets in two queues and two links of each direction.
        let middle = read(CROWD, &["limit=8.7 s"]).run("basic", 1, number, Observe::default()).unwrap();
        for (name, each) in &middle.traffic {
            let ended = each.delivered_packets + each.lost_packets;
            assert!((ended..=ended + 30).contains(&each.sent_packets), "{name} {number}: {each:?}");
        }
    }
}

/// Departures of a source depend on its name, its pattern and the run only.
#[test]
fn traffic_sources_are_independent() {
    let sent = |text: &str, overrides: &[&str], name: &str| -> Vec<u64> {
        let until = |n: u32| {
            let limit = format!("limit={} ms", 1_001 + 137 * n);
            let scenario = read(text, &[overrides, &[&limit]].concat());
            let result = scenario.run("basic", 1, 0, Observe::default()).unwrap();
            traffic(&result, name).sent_packets
        };
        (0..100).map(until).collect()
    };
    let alone = sent(CROWD, &[], "bursts");
    // Another source and another connection, listed before and after it.
    let other = "from = 'fixed'\nto = 'base'\npacket_size = '99 B'\nlaw.poisson.rate = '9 kbps'\n";
    let before =
        CROWD.replacen("[traffic.steady]", &format!("[traffic.other]\n{other}\n[traffic.steady]"), 1);
    assert_eq!(sent(&before, &[], "bursts"), alone);
    assert_eq!(sent(&format!("{CROWD}\n[traffic.other]\n{other}"), &[], "bursts"), alone);
    assert_eq!(sent(CROWD, &["connection.a={}", "connection.b={}"], "bursts"), alone);
    // Its losses.
    assert_eq!(sent(CROWD, &["radio.channel=perfect", "wired.delay=1 ms"], "bursts"), alone);
    let twin = CROWD.replacen("[traffic.bursts]", "[traffic.twin]", 1);
    assert_ne!(sent(&twin, &[], "twin"), alone, "another name is another source");
}

/// Traffic at half the rate of its links: all of it arrives, after the delay of two links.
#[test]
fn a_scenario_may_have_traffic_only() {
    let text = "schemes = ['basic', 'local-recovery']\nlimit = '10 s'\n[traffic.video]\nfrom = 'fixed'\nto = \
                'mobile'\npacket_size = '1000 B'\nstop = '5 s'\nlaw.constant.rate = '1 Mbps'\n[wired]\nrate = \
                '2 Mbps'\n[radio]\nrate = '2 Mbps'\narq.stop-and-wait.backoff.fixed = '1 ms'\n[scheme.basic]\narq = false\n";
    let scenario = read(text, &[]);
    assert_eq!(read(&scenario.to_toml(), &[]), scenario);
    for scheme in &scenario.schemes {
        let run = scenario.run(scheme, 1, 0, EVERYTHING).expect("it runs");
        assert_eq!((run.ended, run.connections.len()), (Ended::Idle, 0));
        let (name, video) = &run.traffic[0];
        assert_eq!((name.as_str(), video.sent_packets, video.delivered_packets), ("video", 625, 625));
        assert_eq!((video.lost_packets, video.mean_delay_s), (0, Some(0.008)));
        assert_eq!(run.metrics.network.link_attempts, 625);
        assert_eq!(run.metrics.connections.throughput_bps, 0.0);
        assert_eq!((run.metrics.connections.goodput, run.metrics.connections.finished), (None, false));
        let json = lasthop_experiment::report::to_json(&scenario, &[&run]).expect("it can be told");
        assert!(json.contains("\"video\""), "{json}");
    }
    let lossy = read(text, &["radio.channel.frame-loss.loss=0.2"]);
    let lost = |scheme: &str| {
        lossy.run(scheme, 1, 0, Observe::default()).expect("it runs").traffic[0].1.lost_packets
    };
    assert!((80..=170).contains(&lost("basic")), "of 625 packets one in five");
    assert_eq!(lost("local-recovery"), 0);
}

/// Features that need a connection.
#[test]
fn a_scenario_without_a_transfer_has_no_connections() {
    let traffic = "[traffic.video]\nfrom = 'fixed'\nto = 'mobile'\npacket_size = '1000 B'\nlaw.constant.rate = '1 Mbps'\n";
    let links = "[wired]\nrate = '2 Mbps'\n[radio]\nrate = '2 Mbps'\n";
    let missing = "missing key transfer, expected a table with the key size";
    for text in [links.to_owned(), format!("{traffic}[connection.a]\nstart = '1 s'\n{links}")] {
        let error = Scenario::parse::<&str>(&text, "test.toml", &[]).expect_err("it is refused");
        assert_eq!(error.message(), missing);
    }
    let scenario = read(&format!("limit = '1 s'\n{traffic}{links}"), &[]);
    let observe = Observe { pcap: Some(std::path::Path::new("never-written.pcapng")), ..Observe::default() };
    let error = scenario.run("basic", 1, 0, observe).expect_err("there is nothing to capture").to_string();
    assert!(error.contains("found no connection"), "{error}");
    assert!(!std::path::Path::new("never-written.pcapng").exists());
}
