//! Last hops: outages, channels, overrides of single links.

use lasthop_experiment::{ConnectionMetrics, Run, Series};

use super::connections::times_of;
use super::traffic::CROWD;
use super::{connection, events, read, run, times, traffic};
use lasthop_testing::scenario_texts::SCENARIO;

/// A packet starts every 10 ms from 0 s on and takes 4 ms. Packets whose air time overlaps an outage are
/// lost: counted by hand.
#[test]
fn packets_on_the_air_during_a_hand_off_are_lost() {
    let text = r#"
        limit = "10 s"
        [topology.graph]
        radio = ["base-mobile"]
        [transfer]
        size = "1 B"
        from = "base"
        to = "mobile"
        start = "9.9 s"
        [radio]
        rate = "1 Mbps"
        [traffic.down]
        from = "base"
        to = "mobile"
        packet_size = "500 B"
        stop = "9.5 s"
        law.constant.rate = "400 kbps"
        [traffic.up]
        from = "mobile"
        to = "base"
        packet_size = "500 B"
        stop = "9.5 s"
        law.constant.rate = "400 kbps"
    "#;
    for (outages, lost) in [
        // Those that start at 1.00, 1.01, ... 1.09 s.
        ("{first=\"1 s\", lasts=\"95 ms\"}", 10),
        ("{first=\"1.005 s\", lasts=\"95 ms\"}", 9),
        ("{first=\"1.003 s\", lasts=\"95 ms\"}", 10),
        ("{first=\"1.005 s\", lasts=\"4 ms\"}", 0),
        ("{first=\"1.001 s\", lasts=\"1 ms\"}", 1),
        ("{first=\"1 s\", lasts=\"95 ms\", every=\"2 s\"}", 50),
        ("{first=\"20 s\", lasts=\"95 ms\"}", 0),
    ] {
        let result = run(&read(text, &[&format!("radio.outage={outages}")]), "basic");
        for name in ["down", "up"] {
            assert_eq!(traffic(&result, name).lost_packets, lost, "{name} {outages}");
            assert_eq!(traffic(&result, name).sent_packets, 950);
        }
    }
}

/// The base station sends lhacks for what it transmits during an outage, so the source retransmits and keeps
/// its window: section 6 of the lhack paper.
#[test]
fn a_source_with_lhacks_does_not_treat_a_hand_off_as_congestion() {
    let text = r#"
        limit = "60 s"
        schemes = ["basic", "lhack"]
        [tcp]
        profile = "rfc"
        [transfer]
        size = "1 MB"
        [wired]
        rate = "2 Mbps"
        delay = "30 ms"
        [radio]
        rate = "1 Mbps"
        outage = { first = "4 s", lasts = "30 ms" }
    "#;
    let scenario = read(text, &[]);
    let [basic, lhack] = ["basic", "lhack"].map(|scheme| run(&scenario, scheme));
    let in_outage = |time: &f64| (4.0..=4.03 + 0.0121).contains(time);
    for result in [&basic, &lhack] {
        let events = events(&result.connections[0]);
        assert!(times_of(events, "lost") >= 2, "{}", result.scheme);
        assert!(times(events, "lost").chain(times(events, "ack-lost")).all(|time| in_outage(&time)));
    }
    // The lhacks of the lost segments.
    let heard: Vec<i64> = {
        let events = events(&lhack.connections[0]);
        let rows = 0..events.event.len();
        let row_of =
            |kind| rows.clone().filter(move |&row| events.event[row] == kind).map(|row| events.packet[row]);
        let lost: Vec<i64> = row_of("lost").collect();
        assert!(
            lost.iter().all(|packet| row_of("notice-received").any(|other| other == *packet)),
            "{lost:?}"
        );
        lost
    };
    assert!(!heard.is_empty());
    let threshold = |result: &Run| {
        let Series { columns, .. } = result.connections[0].parts[0].series.as_ref().unwrap();
        let (_, values) = columns.iter().find(|(name, _)| *name == "ssthresh_bytes").unwrap();
        *values.last().unwrap()
    };
    assert!(threshold(&basic) < threshold(&lhack), "only one took it for congestion");
    let time = |result: &Run| result.metrics.connections.completion_time_s.unwrap();
    assert!(time(&lhack) < time(&basic));
}

/// The uplink may have its own channel, which leaves the downlink unchanged.
#[test]
fn an_uplink_channel_affects_the_uplink_only() {
    let outcomes = |overrides: &[&str]| {
        let result =
            run(&read(CROWD, &[overrides, &["limit=10 s", "transfer.size=20 KB"]].concat()), "basic");
        let events = events(&result.connections[0]).clone();
        ["delivered", "lost", "ack-received", "ack-lost"].map(|kind| times_of(&events, kind) > 0)
    };
    let quiet = ["traffic={}", "wired.queue=unlimited", "radio.queue=unlimited"];
    let with = |channels: &[&'static str]| outcomes(&[&quiet[..], channels].concat());
    let (perfect, dead) = ("radio.channel=perfect", "radio.channel.frame-loss.loss=1");
    let (up_perfect, up_dead) = ("radio.uplink.channel=perfect", "radio.uplink.channel.frame-loss.loss=1");
    // Only acknowledgements use the uplink, and only SYN and data the downlink.
    let established = "tcp.handshake=false";
    assert_eq!(with(&[established, perfect, up_dead]), [true, false, false, true]);
    assert_eq!(with(&[established, dead, up_perfect]), [false, true, false, false]);
    assert_eq!(with(&[established, perfect, up_perfect]), [true, false, true, false]);
    assert_eq!(with(&[established, perfect]), [true, false, true, false]);
    assert_eq!(with(&[established, dead]), [false, true, false, false]);
    // With a source at the other end data use the uplink.
    let turned = ["transfer.from=mobile", "transfer.to=fixed"];
    assert_eq!(with(&[established, perfect, up_dead, turned[0], turned[1]]), [false, true, false, false]);
    assert_eq!(with(&[established, dead, up_perfect, turned[0], turned[1]]), [true, false, false, true]);
}

/// A link's overrides affect no other link.
#[test]
fn a_link_override_affects_one_link_only() {
    let text = r#"
        limit = "30 s"
        [topology.dumbbell]
        pairs = 2
        [transfer]
        size = "50 KB"
        [wired]
        rate = "10 Mbps"
        [radio]
        rate = "1 Mbps"
        [link.right-D2]
        rate = "200 kbps"
        channel.frame-loss.loss = 0.05
    "#;
    let result = run(&read(text, &[]), "basic");
    let [one, two] = ["1", "2"].map(|name| &connection(&result, name).metrics);
    assert_eq!((one.lost_on_air, one.goodput), (0, Some(1.0)));
    assert!(two.lost_on_air > 0 && two.completion_time_s > one.completion_time_s);
}

/// One source has the scheme, the other does not; the base station serves both.
#[test]
fn a_source_without_the_scheme_ignores_notices() {
    let text = r#"
        limit = "60 s"
        [topology.dumbbell]
        pairs = 2
        [transfer]
        size = "500 KB"
        [connection.1]
        [connection.2]
        plain = true
        [wired]
        rate = "10 Mbps"
        delay = "20 ms"
        [radio]
        rate = "1 Mbps"
        channel.fixed-periods = { good = "3.1 s", bad = "20 ms" }
    "#;
    // The links are so fast that the two are independent: the plain source behaves as with `basic`.
    let [basic, lhack] = ["basic", "lhack"].map(|scheme| run(&read(text, &[]), scheme));
    let metrics = |run, name| connection(run, name).metrics.clone();
    let (before, after) = (metrics(&basic, "2"), metrics(&lhack, "2"));
    assert!(after.notices > 0 && before.notices == 0);
    assert_eq!(ConnectionMetrics { notices: 0, ..after.clone() }, before);
    assert!(metrics(&lhack, "1").completion_time_s < after.completion_time_s);
}

/// Random streams are named, so an added part leaves the existing ones unchanged.
#[test]
fn a_second_last_hop_leaves_the_first_unchanged() {
    let text = |pairs| {
        format!(
            "limit = '30 s'\n[topology.dumbbell]\npairs = {pairs}\n[transfer]\nsize = '50 KB'\n[wired]\n\
             rate = '1000 Mbps'\n[radio]\nrate = '1 Mbps'\n\
             channel.two-state = {{ good = '300 ms', bad = '20 ms', good_ber = 0.0, bad_ber = 1.0 }}\n"
        )
    };
    let [one, two] = [1, 2].map(|pairs| run(&read(&text(pairs), &[]), "basic"));
    // In the bottleneck they may interfere for a few microseconds.
    let lost = |run: &Run| -> Vec<i64> {
        let events = events(connection(run, "1"));
        let rows = (0..events.event.len()).filter(|&row| events.event[row] == "lost");
        rows.map(|row| events.packet[row]).collect()
    };
    assert!(!lost(&one).is_empty());
    assert_eq!(lost(&one), lost(&two));
    assert_ne!(lost(&two), {
        let events = events(connection(&two, "2"));
        let rows = (0..events.event.len()).filter(|&row| events.event[row] == "lost");
        rows.map(|row| events.packet[row]).collect::<Vec<_>>()
    });
}

/// Bad periods are those of the first wireless link's channel in this run, with both ends, for those that
/// start before the end.
#[test]
fn bad_periods_match_the_channel_of_the_run() {
    let fixed = "radio.channel.fixed-periods={ good = '2 s', bad = '1 s' }";
    let scenario = read(SCENARIO, &[fixed, "limit=30 s"]);
    assert_eq!(lasthop_predict::bad_periods(&scenario, 1, 0, 8.0), [(2.0, 3.0), (5.0, 6.0)]);
    assert_eq!(lasthop_predict::bad_periods(&scenario, 1, 0, 8.1), [(2.0, 3.0), (5.0, 6.0), (8.0, 9.0)]);
    let until_limit = lasthop_predict::bad_periods(&scenario, 1, 0, f64::INFINITY);
    assert_eq!((until_limit.len(), until_limit.last()), (10, Some(&(29.0, 30.0))));

    let model: lasthop_channel::Model =
        toml::from_str("two-state = { good = '2 s', bad = '1 s' }").expect("a channel");
    let by_hand = |stream: &str| {
        let mut channel = model.build(lasthop_base::Streams::new(7, 3).stream(stream));
        let (mut now, mut periods) = (lasthop_base::Time::ZERO, Vec::new());
        while now.as_secs_f64() < 20.0 {
            let stay = channel.sojourn(now);
            if stay.state == lasthop_channel::State::Bad {
                periods.push((now.as_secs_f64(), stay.until.as_secs_f64()));
            }
            now = stay.until;
        }
        periods
    };
    let links = "[transfer]\nsize = '1 KB'\n[wired]\nrate = '1 Mbps'\n[radio]\nrate = '1 Mbps'\n\
                 channel.two-state = { good = '2 s', bad = '1 s' }\n";
    let cell = "[topology.cell]\nstations = 2\n[transfer]\nsize = '1 KB'\n[wired]\nrate = '1 Mbps'\n\
                [cell.channel.two-state]\ngood = '2 s'\nbad = '1 s'\n";
    for (text, stream) in [
        (String::from(links), "channel"),
        (format!("[topology.path]\nrouters = 2\nwireless = 'last'\n{links}"), "channel:destination"),
        (format!("[topology.dumbbell]\npairs = 2\n{links}"), "channel:D1"),
        (String::from(cell), "channel:MH1"),
    ] {
        let periods = lasthop_predict::bad_periods(&read(&text, &[]), 7, 3, 20.0);
        assert!(periods.len() > 2, "{stream}");
        assert_eq!(periods, by_hand(stream), "{stream}");
    }
    let wired = "[topology.path]\nrouters = 1\nwireless = 'none'\n[transfer]\nsize = '1 KB'\n[wired]\nrate = '1 Mbps'\n";
    assert_eq!(lasthop_predict::bad_periods(&read(wired, &[]), 7, 3, 20.0), []);
}
