//! Mobile hosts that move between base stations.

use crate::common::counter;
use lasthop_base::{Stream, Streams};
use lasthop_experiment::{Experiment, Observe, Run, TrafficMetrics};
use lasthop_proto::scheme::Schemes;
use lasthop_scenario::Scenario;
use lasthop_testing::random::{coin, pick, pick_name};

const EVERYTHING: Observe<'_> = Observe { trace: true, series: true, delays: false, pcap: None, qlog: false };

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario, scheme: &str) -> Run {
    scenario.run(scheme, 1, 0, EVERYTHING).unwrap_or_else(|error| panic!("{error}"))
}

fn traffic<'a>(run: &'a Run, name: &str) -> &'a TrafficMetrics {
    &run.traffic.iter().find(|each| each.0 == name).unwrap_or_else(|| panic!("there is no {name}")).1
}

/// Packets of 500 B every 10 ms in both directions, 4 ms on the air and next to no time on wires. The host is
/// at `BS1` until 5 s.
const PACKETS: &str = r#"
    limit = "10 s"
    [topology.hand-off]
    [traffic.down]
    from = "fixed"
    to = "mobile"
    packet_size = "500 B"
    stop = "9.5 s"
    law.constant.rate = "400 kbps"
    [traffic.up]
    from = "mobile"
    to = "fixed"
    packet_size = "500 B"
    stop = "9.5 s"
    law.constant.rate = "400 kbps"
    [mobility.mobile.moves]
    timetable = [{ at = "5 s", to = "BS2" }]
    [wired]
    rate = "100 Gbps"
    [radio]
    rate = "1 Mbps"
"#;

/// Packets lost downwards and upwards.
fn lost(overrides: &[&str]) -> [u64; 2] {
    let result = run(&read(PACKETS, overrides), "basic");
    let lost = ["down", "up"].map(|name| traffic(&result, name));
    for each in lost {
        assert_eq!((each.sent_packets, each.delivered_packets + each.lost_packets), (950, 950));
    }
    lost.map(|each| each.lost_packets)
}

/// Counted by hand. The host learns of its own moves at once, and what it sends at 5.00 s goes to `BS2`, or
/// during a gap to nobody. Packets for it go to the old base station until the registration at the new one
/// has reached the router.
#[test]
fn packets_to_a_host_that_has_left_are_lost_until_it_is_registered() {
    for arq in
        ["\"none\"", "{ stop-and-wait = { backoff = { fixed = \"1 ms\" } } }", "{ selective-repeat = {} }"]
    {
        check_losses(&format!("radio.arq={arq}"));
    }
}

/// Whatever the ARQ: what it could not deliver before the host left is given up, and it takes nothing on
/// until the host returns.
fn check_losses(arq: &str) {
    let lost = |overrides: &[&str]| lost(&[&[arq], overrides].concat());
    assert_eq!(lost(&[]), [0, 0]);
    // Those of 5.00, 5.01, ... 5.09 s.
    assert_eq!(lost(&["mobility.mobile.gap=\"95 ms\""]), [10, 10]);
    // The packet of 4.995 s is on the air when the host leaves.
    let spread = "mobility.mobile.moves.timetable=[{ at = \"4.993 s\", to = \"BS2\" }]";
    assert_eq!(lost(&[spread]), [1, 1]);
    assert_eq!(lost(&[spread, "mobility.mobile.gap=\"20 ms\""]), [3, 3]);
    // A registration from BS2 takes 35 ms to the router. Packets enter it at 4.95, 4.96, ... 5.03 s and reach
    // BS1 35 ms later, at 4.985, 4.995, when the first is still in time; the second is on the air until 4.999
    // s.
    let slow =
        ["wired.delay=\"0 s\"", "link.router-BS1.rate=\"100 Gbps\"", "link.router-BS1.delay=\"35 ms\""];
    let both =
        [&slow[..], &["link.router-BS2.rate=\"100 Gbps\"", "link.router-BS2.delay=\"35 ms\""]].concat();
    // Those that enter the router at 4.97 to 5.03 s: the last before 5.035 s.
    assert_eq!(lost(&both), [7, 0]);
    // With a gap of 20 ms the registration arrives at 5.055 s: two more. What the host sends in the gap is
    // lost.
    assert_eq!(lost(&[&both[..], &["mobility.mobile.gap=\"20 ms\""]].concat()), [9, 2]);
    // If only the old base station is far away, the registration is there at once: those that enter the
    // router at 4.97, 4.98 and 4.99 s; the one of 5.00 s comes after it.
    assert_eq!(lost(&slow), [3, 0]);
}

/// Of cells that overlap the host hears both: a move loses nothing, with or without an ARQ, whatever is on the air and however
/// late the router learns of it. It changes the way: of two base stations the one that loses everything loses the half.
#[test]
fn overlapping_cells_lose_nothing_and_share_the_packets() {
    let moves = "mobility.mobile.moves.timetable=[{ at = \"4.993 s\", to = \"BS2\" }]";
    for arq in ["\"none\"", "{ selective-repeat = {} }"] {
        let arq = format!("radio.arq={arq}");
        let overlap = [moves, "mobility.mobile.overlap=true", &arq, "link.router-BS2.delay=\"300 ms\""];
        assert_eq!(lost(&overlap), [0, 0], "{arq}");
        assert_ne!(lost(&overlap[..1]), [0, 0], "without, the packets on the air are lost");
    }
    let deaf = "link.BS2-mobile.channel.frame-loss.loss=1";
    let stays = "mobility.mobile.moves.periodic.stay=\"20 ms\"";
    // Of each four packets the last two, and the last two of the 950 are the first of four.
    assert_eq!(lost(&[deaf, stays, "mobility.mobile.overlap=true"]), [474, 474]);
}

/// Repairs by `sidekick` at a base station to which the host comes, and at one to which it returns.
#[test]
fn a_sidekick_repairs_wherever_the_host_is() {
    let moves =
        "mobility.mobile.moves.timetable=[{ at = \"3 s\", to = \"BS2\" }, { at = \"6 s\", to = \"BS1\" }]";
    let scenario = read(PACKETS, &[moves, "radio.channel.frame-loss.loss=0.1"]);
    let [basic, helped] = ["basic", "sidekick"].map(|scheme| run(&scenario, scheme));
    let lost = traffic(&basic, "down").lost_packets;
    assert!(lost > 60);
    assert!(traffic(&helped, "down").lost_packets < lost / 8, "{:?}", traffic(&helped, "down"));
    assert!(counter(&helped, "repairs") > 60);
    assert_eq!((counter(&helped, "undecodable_quacks"), counter(&helped, "unread_quacks")), (0, 0));
}

/// With an ARQ nothing is left for a host that returns: of the packets sent from 5.00 s to 5.49 s none
/// arrives later.
#[test]
fn nothing_stale_arrives_when_the_host_returns() {
    let there_and_back =
        "mobility.mobile.moves.timetable=[{ at = \"5 s\", to = \"BS2\" }, { at = \"5.5 s\", to = \"BS1\" }]";
    let slow = ["wired.delay=\"0 s\"", "link.router-BS2.rate=\"100 Gbps\"", "link.router-BS2.delay=\"2 s\""];
    // An ARQ that never gives up by itself.
    let arq = "radio.arq={ stop-and-wait = { backoff = { fixed = \"1 ms\" } } }";
    let overrides = [&slow[..], &[there_and_back, arq]].concat();
    // The registration at BS2 is on its way when the one at BS1, sent later, has arrived, and has no effect.
    assert_eq!(lost(&overrides), [50, 0]);
}

#[test]
fn what_cannot_move_is_refused() {
    let cases: &[(&[&str], &str)] = &[
        (&["mobility.moblie.moves.periodic.stay=\"1 s\""], "mobility.moblie: found no such host, expected"),
        (
            &["mobility.fixed.moves.periodic.stay=\"1 s\""],
            "mobility.fixed: found a host with other links than wireless",
        ),
        (&["mobility.mobile.moves.periodic.stay=\"0 s\""], "moves.periodic.stay: found a length of zero"),
        (
            &["mobility.mobile.moves.random.stay=\"1 us\""],
            "moves.random.stay: found \"1 us\" with 2 base stations",
        ),
        (
            &["mobility.mobile.moves.strongest={ crossing = \"0 s\" }"],
            "strongest.crossing: found a length of zero",
        ),
        (
            &["mobility.mobile.moves.strongest={ crossing = \"1 s\", exponent = -1.0 }"],
            "strongest.exponent: found -1, expected 0 to 10",
        ),
        (
            &["mobility.mobile.moves.strongest={ crossing = \"1 s\", hysteresis = \"-1 dB\" }"],
            "strongest.hysteresis: found \"-1 dB\", expected at least \"0 dB\"",
        ),
        (&["mobility.mobile.stations=[]"], "mobility.mobile.stations: found none, expected at least one"),
        (
            &["mobility.mobile.stations=[\"BS1\", \"BS3\"]"],
            "stations[1]: found \"BS3\", expected \"BS1\" or \"BS2\"",
        ),
        (&["mobility.mobile.stations=[\"BS2\", \"BS2\"]"], "stations[1]: found \"BS2\" a second time"),
        (
            &["mobility.mobile.moves.timetable=[{ at = \"1 s\", to = \"BS9\" }]"],
            "timetable[0].to: found \"BS9\", expected \"BS1\" or \"BS2\"",
        ),
        (
            &[
                "mobility.mobile.gap=\"2 s\"",
                "mobility.mobile.moves.timetable=[{ at = \"1 s\", to = \"BS2\" }, { at = \"3 s\", to = \"BS1\" }]",
            ],
            "timetable[1].at: found \"3 s\", expected a time after the host has arrived at \"BS2\", later than \"3 s\"",
        ),
        (
            &["traffic.down.via=[\"router\", \"BS1\"]"],
            "traffic.down.via: found a path with \"mobile\", which moves",
        ),
        (
            &["mobility.mobile.overlap=true", "mobility.mobile.gap=\"1 s\""],
            "mobility.mobile.overlap: found true beside a gap of \"1 s\", expected no gap",
        ),
        (&["topology.hand-off.stations=0"], "topology.hand-off.stations: found 0, expected 1 to 1000"),
    ];
    let download = "transfer={ size = \"1 MB\" }";
    for (overrides, message) in cases {
        let error = Scenario::parse(PACKETS, "test.toml", &[&[download], *overrides].concat());
        let error = error.expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
    let moves = "[mobility.mobile.moves]\n    timetable = [{ at = \"5 s\", to = \"BS2\" }]";
    assert!(PACKETS.contains(moves));
    let still = PACKETS.replace(moves, "");
    let error = Scenario::parse::<&str>(&still, "test.toml", &[]).expect_err("nothing says how").to_string();
    assert!(error.contains("missing key mobility.mobile, which states how the host moves"), "{error}");
}

/// Two base stations of a host behind different stations of one cell: the access point would have to follow
/// the host.
#[test]
fn a_cell_cannot_follow_a_host() {
    let text = r#"
        [topology.graph]
        wired = ["fixed-ap"]
        cell = ["ap-BS1", "ap-BS2"]
        radio = ["BS1-mobile", "BS2-mobile"]
        [mobility.mobile.moves.periodic]
        stay = "1 s"
        [transfer]
        size = "1 MB"
        from = "fixed"
        to = "mobile"
        [wired]
        rate = "1 Mbps"
        [radio]
        rate = "1 Mbps"
    "#;
    let error = Scenario::parse::<&str>(text, "test.toml", &[]).expect_err("the cell is fixed").to_string();
    assert!(error.contains("the cell of ap would have to send packets for mobile to"), "{error}");
}

/// The periods in which no base station reaches the host.
#[test]
fn a_moving_host_is_out_of_reach_between_its_base_stations() {
    let scenario = read(PACKETS, &["mobility.mobile.gap=\"50 ms\""]);
    assert_eq!(lasthop_predict::bad_periods(&scenario, 1, 0, 10.0), [(5.0, 5.05)]);
    assert_eq!(lasthop_predict::bad_periods(&read(PACKETS, &[]), 1, 0, 10.0), []);
}

#[test]
fn a_host_that_never_moves_is_like_a_host_that_cannot() {
    let download = r#"
        [transfer]
        size = "300 KB"
        [wired]
        rate = "10 Mbps"
        delay = "5 ms"
        [radio]
        rate = "2 Mbps"
        queue = "20 packets"
        channel.iid.ber = 1e-6
        [topology.graph]
        wired = ["fixed-router", "router-BS1"]
        radio = ["BS1-mobile"]
        [transfer]
    "#;
    let still = download
        .replace("[transfer]\n        size = \"300 KB\"", "")
        .replace("[transfer]", "[transfer]\n size = \"300 KB\"\n from = \"fixed\"\n to = \"mobile\"");
    let moving =
        still.replace("[topology.graph]", "[topology.hand-off]\n[mobility.mobile.moves]\ntimetable = []");
    let moving: String = moving
        .lines()
        .filter(|line| !line.contains("= [\""))
        .fold(String::new(), |all, line| all + line + "\n");
    for scheme in ["basic", "snoop", "arq"] {
        let [one, other] = [&still, &moving].map(|text| run(&read(text, &[]), scheme));
        assert!(one.metrics.connections.finished);
        assert_eq!(format!("{:?}", one.metrics), format!("{:?}", other.metrics), "{scheme}");
        assert_eq!(format!("{:?}", one.connections), format!("{:?}", other.connections), "{scheme}");
    }
}

/// A random scenario with a moving host: a download, an upload, an application and other traffic in both
/// directions.
fn world(random: &mut Stream) -> String {
    let stations = 1 + random.below(4);
    // Long beside round trips: a host that keeps moving on may miss every retransmission, whatever the
    // scheme.
    let stay = pick(random, &["3.7 s", "7 s"]);
    let moves = match random.below(4) {
        0 => format!("periodic.stay = \"{stay}\""),
        1 => format!("random.stay = \"{stay}\""),
        2 => String::from(
            "strongest = { crossing = \"7.3 s\", shadowing = \"4 dB\", hysteresis = \"8 dB\", correlation = \"5 s\" }",
        ),
        _ => format!(
            "timetable = [{{ at = \"3 s\", to = \"BS{stations}\" }}, {{ at = \"6 s\", to = \"BS1\" }}]"
        ),
    };
    let gap = pick(random, &["0 s", "1 ms", "50 ms"]);
    let delay = pick(random, &["0 s", "3 ms", "40 ms"]);
    let queue = pick(random, &["\"unlimited\"", "\"20 packets\"", "{ priority = {} }", "{ fq-codel = {} }"]);
    let arq = pick(random, &["\"none\"", "{ stop-and-wait = {} }", "{ selective-repeat = {} }"]);
    let channel = pick(
        random,
        &["\"perfect\"", "{ iid = { ber = 2e-6 } }", "{ two-state = { good = \"3 s\", bad = \"200 ms\" } }"],
    );
    let far = pick(random, &["1 ms", "100 ms"]);
    let mtu = if coin(random) { "mtu = \"576 B\"" } else { "" };
    let flavour = pick(random, &["linux", "linux-bbr", "ns2", "rfc"]);
    // Short beside the stays, or the state of split connections never catches up with the host.
    let handoff = pick(
        random,
        &["{ setup = \"0 s\", rate = \"1 Gbps\" }", "{ setup = \"265 ms\", rate = \"10 Mbps\" }"],
    );
    let [transfer, holes] = [(); 2].map(|()| coin(random));
    format!(
        r#"
        limit = "3000 s"
        [topology.hand-off]
        stations = {stations}
        [mobility.mobile]
        gap = "{gap}"
        moves.{moves}
        [transfer]
        size = "200 KB"
        [connection.down]
        from = "fixed"
        to = "mobile"
        [connection.up]
        from = "mobile"
        to = "fixed"
        start = "1 s"
        # The run outlasts the other traffic.
        [connection.late]
        from = "fixed"
        to = "mobile"
        start = "40 s"
        [application.web]
        from = "mobile"
        to = "fixed"
        kind = "http"
        requests = 5
        think.constant = "1 s"
        [traffic.to]
        from = "fixed"
        to = "mobile"
        packet_size = "300 B"
        stop = "20 s"
        law.poisson.rate = "40 kbps"
        [traffic.back]
        from = "mobile"
        to = "fixed"
        packet_size = "300 B"
        stop = "20 s"
        law.poisson.rate = "40 kbps"
        [tcp]
        profile = "{flavour}"
        close = true
        [wired]
        rate = "10 Mbps"
        delay = "{delay}"
        [link.router-BS1]
        delay = "{far}"
        [radio]
        rate = "1 Mbps"
        delay = "{delay}"
        queue = {queue}
        arq = {arq}
        channel = {channel}
        {mtu}
        [scheme]
        i-tcp.handoff = {handoff}
        metp.handoff = {handoff}
        vs-tcp.handoff = {handoff}
        m-tcp.handoff = {handoff}
        snoop.transfer = {transfer}
        eln.holes = {holes}
        "#
    )
}

/// In random worlds with random combinations of schemes every transfer arrives, byte for byte, every request
/// is answered, every other packet arrives once or is lost, and recording changes nothing.
#[test]
fn everything_is_accounted_for_in_random_worlds() {
    let schemes = Schemes::default();
    let names: Vec<&str> = schemes.all().map(|scheme| scheme.name()).collect();
    let worlds = std::env::var("LASTHOP_WORLDS");
    let worlds: u64 = worlds.map_or(400, |text| text.parse().expect("a number"));
    let (mut run_at_all, mut lost, mut combined, mut placed) = (0, 0, 0, 0);
    for number in 0..worlds {
        let mut random = Streams::new(5, number).stream("moving worlds");
        let text = world(&mut random);
        // What schemes have at base stations is at one node in some.
        let mut places = Streams::new(5, number).stream("places");
        let mut scheme = |random: &mut Stream| match places.below(4) {
            0 => format!("{}@{}", pick_name(random, &names), pick(&mut places, &["fixed", "BS1"])),
            _ => pick_name(random, &names).to_owned(),
        };
        let mut name = scheme(&mut random);
        while coin(&mut random) {
            name = format!("{name} + {}", scheme(&mut random));
        }
        let scenario = read(&text, &[]);
        let Ok(result) = scenario.run(&name, 1, number, Observe::default()) else { continue };
        run_at_all += 1;
        combined += u64::from(name.contains('+'));
        placed += u64::from(name.contains("@fixed"));
        let case = format!("world {number} with {name}: {text}");
        for connection in &result.connections {
            assert!(connection.metrics.finished, "{} in {case}", connection.name);
            assert_eq!(connection.metrics.delivered_bytes, 200_000, "{} in {case}", connection.name);
        }
        assert_eq!(result.applications[0].1.metrics.responses, 5, "{case}");
        // What is lost of a block of a code across packets, as long as the rest of the block could recover
        // it.
        let awaited = counter(&result, "awaited_packets");
        for (name, metrics) in &result.traffic {
            let TrafficMetrics { sent_packets, delivered_packets, lost_packets, .. } = *metrics;
            let ended = delivered_packets + lost_packets;
            assert!(ended <= sent_packets && sent_packets <= ended + awaited, "{name} in {case}");
            lost += lost_packets;
        }
        if number % 10 == 0 {
            match scenario.run(&name, 1, number, EVERYTHING) {
                Ok(recorded) => {
                    assert_eq!(format!("{:?}", recorded.metrics), format!("{:?}", result.metrics), "{case}");
                }
                // A sender without congestion control may send more before a full queue than a recording holds.
                Err(error) => {
                    assert!(error.to_string().contains("more than 4000000 rows"), "{error}: {case}")
                }
            }
        }
    }
    assert!(
        run_at_all > worlds / 3 && combined > worlds / 12 && placed > worlds / 100 && lost > 100,
        "{run_at_all} {combined} {placed} {lost}"
    );
}

/// What was on its way when the host left waits at the next base station: with `multicast` a hand-off costs
/// the gap, and nothing is sent again. Plain TCP waits for a timeout or retransmits.
#[test]
fn with_multicast_no_packet_is_lost_in_a_hand_off() {
    let text = r#"
        limit = "100 s"
        [topology.hand-off]
        [mobility.mobile]
        gap = "25 ms"
        moves.periodic.stay = "2 s"
        [transfer]
        size = "3 MB"
        [tcp]
        profile = "rfc"
        window = "16 KiB"
        [wired]
        rate = "10 Mbps"
        delay = "1 ms"
        [radio]
        rate = "2 Mbps"
    "#;
    let metrics = |scheme| run(&read(text, &[]), scheme).metrics.connections;
    let basic = metrics("basic");
    assert!(basic.retransmitted_bytes > Some(0));
    for scheme in ["multicast", "snoop + multicast"] {
        let found = metrics(scheme);
        assert_eq!((found.retransmitted_bytes, found.timeouts), (Some(0), Some(0)), "{scheme}");
        assert!(found.throughput_bps > basic.throughput_bps, "{scheme}");
        // Seven hand-offs; after each the first packets take the gap, and a round trip more.
        assert!(found.throughput_bps > 0.97 * 2e6 * 1460.0 / 1500.0, "{scheme}: {}", found.throughput_bps);
    }
    let frozen = metrics("freeze-tcp");
    assert!(frozen.throughput_bps > basic.throughput_bps && frozen.timeouts == Some(0));
}

/// The losses of a host that moves have no closed form, since they depend on its movements.
#[test]
fn the_packet_loss_of_a_moving_host_has_no_closed_form() {
    let loss =
        lasthop_predict::packet_loss(&read(PACKETS, &[]), "500 B".parse().unwrap(), Some("BS1-mobile"));
    let found = loss.unwrap_err().to_string();
    assert!(found.contains("no closed form for the movements of the host of the link BS1-mobile"), "{found}");
}

/// A download to a host that moves once, at 5 s, with few losses but those of the move.
const DOWNLOAD: &str = r#"
    limit = "100 s"
    [topology.hand-off]
    [transfer]
    size = "2 MB"
    [tcp]
    profile = "rfc"
    window = "16 KiB"
    close = true
    [mobility.mobile.moves]
    timetable = [{ at = "5 s", to = "BS2" }]
    [wired]
    rate = "10 Mbps"
    delay = "5 ms"
    [radio]
    rate = "1 Mbps"
"#;

/// The parts of a split connection stand still while its state moves: from the move at 5 s for the set-up, a round trip
/// between the base stations, and the time for what the base station has buffered. Timers that expire meanwhile do so at
/// the end.
#[test]
fn a_hand_off_of_split_connections_takes_the_time_for_their_state() {
    for (overrides, setup, rate) in [
        (&[][..], 0.265, 225e3),
        (&["scheme.i-tcp.handoff={ setup = \"0 s\", rate = \"1 Mbps\" }"], 0.0, 1e6),
        (&["scheme.i-tcp.handoff={ setup = \"1 s\", rate = \"1 Mbps\" }"], 1.0, 1e6),
    ] {
        let result = run(&read(DOWNLOAD, overrides), "i-tcp");
        let [near, far] = &result.connections[0].parts[..] else { panic!("two parts") };
        assert_eq!(result.connections[0].metrics.delivered_bytes, 2_000_000);
        let series = far.series.as_ref().expect("it was recorded");
        let held = &series.columns.iter().find(|column| column.0 == "held_bytes").expect("it is shown").1;
        let held = held[series.time_s.partition_point(|time| *time <= 5.0) - 1];
        assert!(held > 30_000.0, "{held}");
        let end = 5.0 + setup + 0.02 + held * 8.0 / rate;
        let by_proxy = [(near, "ack-sent"), (far, "sent")].into_iter().flat_map(|(part, kind)| {
            let events = part.events.as_ref().expect("it was traced");
            let rows = events.event.iter().zip(&events.time_s);
            rows.filter(move |(event, time)| **event == kind && **time > 5.0).map(|(_, time)| *time)
        });
        let first = by_proxy.fold(f64::INFINITY, f64::min);
        assert!(first > end - 1e-6, "{first} before {end}");
        if end > 6.0 {
            // The retransmission timeout of the wireless part is 1 s.
            assert!(first < end + 1e-6, "{first} after {end}");
        } else {
            assert!(first < 6.2, "{first} after the timeout");
        }
    }
}

/// The state of a split connection would be at base stations of two kinds.
#[test]
fn split_connections_over_a_second_wireless_link_are_refused() {
    let text = r#"
        schemes = ["i-tcp"]
        [topology.graph]
        wired = ["router-BS1", "router-BS2"]
        radio = ["router-fixed", "BS1-mobile", "BS2-mobile"]
        [mobility.mobile.moves.periodic]
        stay = "1 s"
        [transfer]
        size = "1 MB"
        from = "fixed"
        to = "mobile"
        [tcp]
        close = true
        [wired]
        rate = "1 Mbps"
        [radio]
        rate = "1 Mbps"
    "#;
    let error = Scenario::parse::<&str>(text, "test.toml", &[]).expect_err("two wireless links").to_string();
    assert!(error.contains("goes over another wireless link than that of its moving host"), "{error}");
}
