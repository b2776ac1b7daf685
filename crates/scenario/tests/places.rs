//! Schemes at one node: a router in front of the base stations, or one of several base stations.

use lasthop_base::{Stream, Streams};
use lasthop_proto::scheme::Schemes;
use lasthop_scenario::{Observe, Run, Scenario};

/// A router in front of two base stations, behind 20 ms of wired network.
const NETWORK: &str = r#"
    schemes = ["basic"]
    limit = "2000 s"
    [topology.graph]
    wired = ["server-gateway", "gateway-base1", "gateway-base2"]
    radio = ["base1-phone", "base2-laptop"]
    [transfer]
    size = "2 MB"
    from = "server"
    to = "phone"
    [wired]
    rate = "100 Mbps"
    [link.server-gateway]
    delay = "20 ms"
    [link.gateway-base1]
    delay = "3 ms"
    [radio]
    rate = "10 Mbps"
    delay = "1 ms"
    channel.frame-loss.loss = 0.02
"#;

fn read(text: &str, overrides: &[&str]) -> Scenario {
    Scenario::parse(text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(overrides: &[&str], scheme: &str) -> Run {
    let observe = Observe { trace: true, ..Observe::default() };
    read(NETWORK, overrides).run(scheme, 1, 0, observe).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(overrides: &[&str], scheme: &str) -> String {
    let schemes = format!("schemes=[\"{scheme}\"]");
    Scenario::parse(NETWORK, "test.toml", &[overrides, &[&schemes]].concat()).expect_err(scheme).to_string()
}

/// A gateway one hop before the base station repairs losses, too: later than the base station by one round trip between
/// them, and far sooner than the source.
#[test]
fn snoop_repairs_losses_from_a_router() {
    let throughput = |scheme: &str| {
        let runs = (0..8).map(|number| {
            let run = read(NETWORK, &["tcp.profile=rfc"]).run(scheme, 1, number, Observe::default());
            run.expect(scheme).metrics.connections.throughput_bps
        });
        runs.sum::<f64>() / 8.0
    };
    let [basic, at_gateway, at_base] = ["basic", "snoop@gateway", "snoop"].map(throughput);
    assert!(1.5 * basic < at_gateway && at_gateway < at_base, "{basic} {at_gateway} {at_base}");
    let run = run(&["tcp.profile=rfc"], "snoop@gateway");
    assert_eq!(run.scheme, "snoop@gateway");
    let agents: Vec<_> = run.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(agents, ["gateway-base1"]);
    let events = run.connections[0].parts[0].events.as_ref().expect("they were recorded");
    assert!(events.event.iter().any(|event| event.contains("suppressed")), "the trace says so");
}

/// A base station by its name is what every base station is without one, if there is only one on the way.
#[test]
fn a_scheme_at_the_only_base_station_is_at_all() {
    for scheme in ["snoop", "i-tcp", "wtcp-timestamps", "snoop + nack"] {
        let [all, one] =
            [scheme.to_owned(), scheme.replace("snoop", "snoop@base1").replace("i-tcp", "i-tcp@base1")]
                .map(|scheme| run(&["tcp.close=true"], &scheme));
        assert_eq!(all.metrics, one.metrics, "{scheme}");
        assert_eq!(all.connections, one.connections, "{scheme}");
    }
}

/// The parts of a connection that a router splits.
#[test]
fn a_router_splits_connections() {
    let found = run(&["tcp.close=true", "tcp.profile=rfc"], "i-tcp@gateway");
    let parts: Vec<_> =
        found.connections[0].parts.iter().map(|part| (part.from.as_str(), part.to.as_str())).collect();
    assert_eq!(parts, [("server", "gateway"), ("gateway", "phone")]);
    assert!(found.metrics.connections.finished);
    let [basic, at_base] = ["basic", "i-tcp"]
        .map(|scheme| run(&["tcp.close=true", "tcp.profile=rfc"], scheme).metrics.connections);
    let at_gateway = found.metrics.connections.throughput_bps;
    assert!(basic.throughput_bps < at_gateway && at_gateway < at_base.throughput_bps);
}

/// A supervisory host serves several base stations, and a hand-off between them moves nothing.
#[test]
fn a_supervisory_host_keeps_connections_during_hand_offs() {
    let text = r#"
        limit = "300 s"
        [topology.graph]
        wired = ["server-supervisor", "supervisor-switch", "switch-base1", "switch-base2"]
        radio = ["base1-phone", "base2-phone"]
        [mobility.phone]
        gap = "100 ms"
        moves.periodic.stay = "3 s"
        [transfer]
        size = "3 MB"
        from = "server"
        to = "phone"
        [tcp]
        profile = "rfc"
        close = true
        [wired]
        rate = "10 Mbps"
        delay = "2 ms"
        [radio]
        rate = "2 Mbps"
    "#;
    let time = |scheme: &str| {
        let run =
            read(text, &[]).run(scheme, 1, 0, Observe::default()).unwrap_or_else(|error| panic!("{error}"));
        run.metrics.connections.completion_time_s.expect("it finishes")
    };
    let [moved, kept] = ["m-tcp", "m-tcp@supervisor"].map(time);
    // Four hand-offs, each of which moves the connection in more than 265 ms.
    assert!(kept + 4.0 * 0.265 < moved, "{kept} {moved}");
}

#[test]
fn misplaced_schemes_are_refused_with_the_remedy() {
    let several = &["connection={ one = {}, other = { to = \"laptop\" } }"][..];
    let arq = &["radio.arq={ stop-and-wait = {} }"][..];
    let code = &["radio.fec=bch-255-131-18"][..];
    for (overrides, scheme, message) in [
        (&[][..], "snoop@gatway", "names a node \"gatway\", expected \"server\", \"gateway\""),
        (&[], "snoop@", "names a node \"\", expected \"server\""),
        (&[], "snoop@phone", "from which no connection goes to a mobile host; leave \"@phone\" out"),
        (&[], "snop@gateway", "found \"snop\""),
        (arq, "ebsn@gateway", "is not told what becomes of packets on the wireless link"),
        (&[], "eln@gateway", "is not told what becomes of packets on the wireless link"),
        (
            &[],
            "freeze-tcp@gateway",
            "\"freeze-tcp\" has nothing that could be at \"gateway\"; leave \"@gateway\" out",
        ),
        (&[], "basic@gateway", "\"basic\" has nothing that could be at \"gateway\""),
        (&[], "arq@gateway", "\"arq\" has nothing that could be at \"gateway\""),
        (
            &[],
            "airmail@gateway",
            "\"airmail\" changes the wireless links, and cannot be at \"gateway\" alone",
        ),
        (code, "selective-fec@gateway", "\"selective-fec\" has nothing that could be"),
        (&[], "packet-fec@gateway", "\"packet-fec\" is a tunnel over the wireless links"),
        (&[], "multicast@gateway", "\"multicast\" needs its agents at all base stations"),
        (&[], "snoop@gateway + snoop", "\"snoop\" occurs twice"),
        (&[], "i-tcp@gateway + metp", "both split the connection"),
        (several, "m-tcp@server", "a link from \"server\" leads to several mobile hosts"),
    ] {
        let found = refusal(&[overrides, &["tcp.close=true"]].concat(), scheme);
        assert!(found.contains(message), "{scheme}: {found}");
    }
}

#[test]
fn what_a_moving_host_needs_everywhere_is_refused_at_one_base_station() {
    let moving = r#"
        [topology.hand-off]
        [mobility.mobile.moves.periodic]
        stay = "1 s"
        [transfer]
        size = "1 MB"
        [tcp]
        close = true
        [wired]
        rate = "1 Mbps"
        [radio]
        rate = "1 Mbps"
    "#;
    for (scheme, message) in [
        ("i-tcp@router", "do not always go over the same link from there; leave \"@router\" out"),
        ("i-tcp@BS1", "do not always go over the same link"),
        ("snoop@BS1 + forwarding", "needs the same agents at all base stations of a moving host"),
    ] {
        let schemes = format!("schemes=[\"{scheme}\"]");
        let found = Scenario::parse(moving, "test.toml", &[schemes]).expect_err(scheme).to_string();
        assert!(found.contains(message), "{scheme}: {found}");
    }
}

/// A random network of a router, two base stations and connections in both directions.
fn world(random: &mut Stream) -> String {
    let mut pick = |choices: &[&str]| choices[random.below(choices.len() as u64) as usize].to_owned();
    let loss = pick(&["0.01", "0.05", "0.15"]);
    let arq = pick(&["\"none\"", "{ stop-and-wait = {} }", "{ selective-repeat = {} }"]);
    let queue = pick(&["\"unlimited\"", "\"12 packets\"", "{ fq-codel = {} }"]);
    let profile = pick(&["linux", "linux-bbr", "ns2", "rfc"]);
    let delay = pick(&["0 s", "2 ms", "60 ms"]);
    format!(
        r#"
        {NETWORK}
        arq = {arq}
        queue = {queue}
        channel.frame-loss.loss = {loss}
        [link.gateway-base2]
        delay = "{delay}"
        [tcp]
        profile = "{profile}"
        close = true
        [connection.down]
        from = "server"
        to = "laptop"
        [connection.up]
        from = "phone"
        to = "server"
        start = "1 s"
        [connection.across]
        from = "laptop"
        to = "phone"
        [application.web]
        from = "laptop"
        to = "server"
        kind = "http"
        requests = 5
        think.constant = "1 s"
        "#
    )
    .replace("    channel.frame-loss.loss = 0.02\n", "")
    .replace("    size = \"2 MB\"\n    from = \"server\"\n    to = \"phone\"\n", "    size = \"200 KB\"\n")
}

/// With any scheme at a router, alone and beside another one, every transfer arrives, byte for byte.
#[test]
fn everything_arrives_in_random_worlds() {
    let schemes = Schemes::default();
    let names: Vec<&str> = schemes.all().map(|scheme| scheme.name()).collect();
    let worlds = std::env::var("LASTHOP_WORLDS");
    let worlds: u64 = worlds.map_or(8, |text| text.parse().expect("a number"));
    let mut seen = std::collections::BTreeSet::new();
    for (number, first) in (0..worlds).flat_map(|number| names.iter().map(move |name| (number, *name))) {
        let mut random = Streams::new(6, number).stream(&format!("places of {first}"));
        let node = ["gateway", "gateway", "base1", "server"][random.below(4) as usize];
        let mut name = format!("{first}@{node}");
        if random.below(2) == 0 {
            name = format!("{name} + {}", names[random.below(names.len() as u64) as usize]);
        }
        let text = world(&mut random);
        let scenario = read(&text, &[]);
        let Ok(result) = scenario.run(&name, 1, number, Observe::default()) else { continue };
        seen.insert(first);
        let case = format!("world {number} with {name}: {text}");
        for connection in &result.connections {
            assert!(connection.metrics.finished, "{} in {case}", connection.name);
            assert_eq!(connection.metrics.delivered_bytes, 200_000, "{} in {case}", connection.name);
        }
        assert_eq!(result.applications[0].1.metrics.responses, 5, "{case}");
    }
    assert!(seen.len() > 5, "{seen:?}");
}
