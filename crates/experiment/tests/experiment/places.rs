//! Schemes at one node: a router in front of the base stations, or one of several base stations.

use lasthop_base::{Stream, Streams};
use lasthop_experiment::{Experiment, Observe, Run};
use lasthop_proto::scheme::Schemes;
use lasthop_scenario::Scenario;
use lasthop_testing::random::pick_name;

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

/// A phone that moves between two base stations behind a switch, which is behind a router.
const MOVING: &str = r#"
    schemes = ["basic"]
    limit = "300 s"
    [topology.graph]
    wired = ["server-router", "router-switch", "switch-base1", "switch-base2"]
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

/// The parts of a connection, by their ends.
fn parts<'a>(run: &'a Run, connection: &str) -> Vec<(&'a str, &'a str)> {
    let found =
        run.connections.iter().find(|each| each.name == connection).expect("there is such a connection");
    found.parts.iter().map(|part| (part.from.as_str(), part.to.as_str())).collect()
}

/// Whether and where a connection is split depends on its own way alone: a base station splits on its wireless links, and a
/// router what goes to mobile hosts from there.
#[test]
fn connections_do_not_change_how_others_are_split() {
    let others = "connection={ down = {}, across = { from = \"laptop\" }, up = { from = \"phone\", to = \"server\" } }";
    let all = [others, "tcp.close=true", "transfer.size=20 KB"];
    let found = run(&all, "i-tcp@base1");
    assert_eq!(parts(&found, "down"), [("server", "base1"), ("base1", "phone")]);
    assert_eq!(parts(&found, "across"), [("laptop", "base1"), ("base1", "phone")]);
    assert_eq!(parts(&found, "up"), [("phone", "base1"), ("base1", "server")]);
    let found = run(&all, "i-tcp@gateway");
    assert_eq!(parts(&found, "down"), [("server", "gateway"), ("gateway", "phone")]);
    assert_eq!(
        parts(&found, "across"),
        [("laptop", "gateway"), ("gateway", "gateway"), ("gateway", "phone")]
    );
    assert_eq!(parts(&found, "up"), [("phone", "gateway"), ("gateway", "server")]);
    // A host without a radio behind the same link.
    let wired = [
        "topology.graph.wired=[\"server-gateway\", \"gateway-base1\", \"gateway-base2\", \"base1-desktop\"]",
        "connection={ down = {}, wired = { to = \"desktop\" } }",
        "tcp.close=true",
    ];
    let found = run(&wired, "i-tcp@gateway");
    assert_eq!(parts(&found, "down"), [("server", "gateway"), ("gateway", "phone")]);
    assert_eq!(parts(&found, "wired"), [("server", "desktop")]);
    let signal = run(&wired, "m-tcp@gateway");
    assert!(signal.metrics.connections.finished);
}

/// A connection that is not split has the reactions of the other schemes at its ends. It begins when the other one is over.
#[test]
fn whole_connections_keep_the_reactions_of_schemes() {
    let arq = "radio.arq={ selective-repeat = { retransmissions = 2, feedback_delay = \"10 ms\" } }";
    let only = [
        "connection={ other = { to = \"laptop\", start = \"1000 s\" } }",
        arq,
        "radio.channel={ frame-loss = { loss = 0.2 } }",
    ];
    let both = [
        "connection={ down = {}, other = { to = \"laptop\", start = \"1000 s\" } }",
        only[1],
        only[2],
        "tcp.close=true",
    ];
    let other = |run: &Run| {
        run.connections.iter().find(|each| each.name == "other").expect("it is there").metrics.clone()
    };
    let alone = other(&run(&[&only[..], &["tcp.close=true"]].concat(), "delayed-dupacks"));
    // The gateway's link to the phone carries nothing of the laptop.
    let beside = other(&run(&both, "i-tcp@base1 + delayed-dupacks"));
    let plain = other(&run(&both, "i-tcp@base1"));
    assert_eq!(beside, alone);
    assert_ne!(beside, plain);
}

/// Agents with control ports find each other whatever else the combination has at a router.
#[test]
fn connected_agents_find_their_peers_beside_an_agent_at_a_router() {
    let forwarded = |scheme: &str| {
        let run =
            read(MOVING, &[]).run(scheme, 1, 0, Observe::default()).unwrap_or_else(|error| panic!("{error}"));
        let counters = run.agents.iter().flat_map(|agent| &agent.counters);
        counters.filter(|(name, _)| *name == "forwarded_packets").map(|(_, count)| count).sum::<u64>()
    };
    for scheme in ["forwarding", "snoop@router + forwarding", "forwarding + snoop@router"] {
        assert!(forwarded(scheme) > 0, "{scheme}");
    }
}

/// A supervisory host serves several base stations, and a hand-off between them moves nothing.
#[test]
fn a_supervisory_host_keeps_connections_during_hand_offs() {
    let time = |scheme: &str| {
        let run =
            read(MOVING, &[]).run(scheme, 1, 0, Observe::default()).unwrap_or_else(|error| panic!("{error}"));
        run.metrics.connections.completion_time_s.expect("it finishes")
    };
    let [moved, kept] = ["m-tcp", "m-tcp@router"].map(time);
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
        (arq, "ebsn@gateway", "does not see the wireless link's outcomes"),
        (&[], "eln@gateway", "does not see the wireless link's outcomes"),
        (
            &[],
            "freeze-tcp@gateway",
            "\"freeze-tcp\" installs nothing at base stations that could be at \"gateway\"; leave \"@gateway\" out",
        ),
        (&[], "basic@gateway", "\"basic\" installs nothing at base stations that could be at \"gateway\""),
        (&[], "arq@gateway", "\"arq\" installs nothing at base stations that could be at \"gateway\""),
        (
            &[],
            "airmail@gateway",
            "\"airmail\" changes the wireless links, and cannot be at \"gateway\" alone",
        ),
        (code, "selective-fec@gateway", "\"selective-fec\" installs nothing at base stations"),
        (&[], "packet-fec@gateway", "\"packet-fec\" is a tunnel over the wireless links"),
        (&[], "multicast@gateway", "\"multicast\" needs its agents at all base stations"),
        (&[], "snoop@gateway + snoop", "\"snoop\" occurs twice"),
        (&[], "i-tcp@gateway + metp", "both split the connection"),
        (&[], "snoop@base2", "from which no connection goes to a mobile host; leave \"@base2\" out"),
        (several, "m-tcp@server", "a link of \"server\" leads to several, or to a cell"),
    ] {
        let found = refusal(&[overrides, &["tcp.close=true"]].concat(), scheme);
        assert!(found.contains(message), "{scheme}: {found}");
        // One remedy, not two.
        assert!(found.matches("leave ").count() <= 1, "{found}");
    }
    // What watches the signal is elsewhere.
    let accepted = [several, &["schemes=[\"snoop@server + freeze-tcp\"]"]].concat();
    read(NETWORK, &accepted);
}

#[test]
fn what_a_moving_host_needs_everywhere_is_refused_at_one_base_station() {
    for (scheme, message) in [
        (
            "i-tcp@switch",
            "the ways to the base stations of a moving host begin with different links; leave \"@switch\" out",
        ),
        ("nack@switch", "the ways to the base stations of a moving host begin with different links"),
        ("i-tcp@base1", "needs the same agents and proxies at all base stations of a moving host"),
        (
            "snoop@base1 + forwarding",
            "needs the same agents and proxies at all base stations of a moving host",
        ),
    ] {
        let schemes = format!("schemes=[\"{scheme}\"]");
        let found = Scenario::parse(MOVING, "test.toml", &[schemes]).expect_err(scheme).to_string();
        assert!(found.contains(message), "{scheme}: {found}");
    }
}

/// A random network of a router, two base stations and connections in both directions.
fn world(random: &mut Stream) -> String {
    let mut pick = |choices: &[&str]| choices[random.below(choices.len() as u64) as usize].to_owned();
    let loss = pick(&["0.005", "0.02", "0.06"]);
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
            name = format!("{name} + {}", pick_name(&mut random, &names));
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
