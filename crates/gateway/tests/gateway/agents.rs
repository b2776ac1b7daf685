//! What agents do with the packets of flows between hosts.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use lasthop_gateway::report::rows::{self, Line, Outcome};
use nix::net::if_::if_nametoindex;

use super::hosts::{CLIENT, Gateway, Network, PATIENCE, SERVER, address, connect, echo, ip, nft, talk};

const SNOOP: &str = "scheme = \"snoop\"";

/// Lets the radio lose each packet of data whose number is a multiple of `one_in`, in both directions.
pub(super) fn lose(network: &Network, one_in: u32) -> bool {
    // Losses are of packets, not of super-packets.
    ip("link set radio0 gso_max_segs 1");
    network.client.run(|| ip("link set host1 gso_max_segs 1"));
    let rules = move |hook: &str| {
        let lossy = format!("meta l4proto tcp meta length > 600 numgen inc mod {one_in} == 0 drop");
        format!("table {hook} policy accept; {lossy}\n }}\n}}\n")
    };
    let arriving = rules("netdev air {\n chain in {\n type filter hook ingress device radio0 priority -500;");
    let received = rules("inet air {\n chain in {\n type filter hook prerouting priority -300;");
    nft(&arriving) && network.client.run(move || nft(&received))
}

pub(super) fn agent(gateway: &Gateway, counter: &str) -> u64 {
    gateway.status()["agents"][counter].as_u64().unwrap_or(0)
}

#[test]
fn losses_are_repaired_and_neither_end_sees_the_gateway() {
    let Some(network) = Network::of("agents::losses_are_repaired_and_neither_end_sees_the_gateway") else {
        return;
    };
    if !lose(&network, 40) {
        return;
    }
    // Connections are opened from either side of the radio.
    let sides = [
        (&network.client, SERVER, network.server.run(|| echo(SERVER, 7000))),
        (&network.server, CLIENT, network.client.run(|| echo(CLIENT, 7000))),
    ];
    for (settings, counters) in [
        (SNOOP, ["snoop.local_retransmissions", "snoop.suppressed_dupacks"]),
        (
            "scheme = \"wtcp-timestamps\"",
            ["wtcp-timestamps.local_retransmissions", "wtcp-timestamps.suppressed_dupacks"],
        ),
        ("scheme = \"eln\"\n[scheme.eln]\nholes = true", ["eln.holes", "eln.marked_acks"]),
    ] {
        let gateway = network.start(settings);
        let mut conversations = 0;
        // What agents do depends on which packets are lost: four conversations need not show all of it.
        while conversations == 0 || counters.iter().any(|counter| agent(&gateway, counter) == 0) {
            assert!(conversations < 40, "one of {counters:?} is 0: {:#}", gateway.status());
            for (opener, hosts, peers) in &sides {
                for host in *hosts {
                    let (own, peer) = opener.run(move || talk(host, 600_000));
                    assert_eq!(peer, address(host, 7000));
                    assert_eq!(peers.recv_timeout(PATIENCE).expect("a connection"), own);
                    conversations += 1;
                }
            }
            gateway.expect("with_agents", 0);
        }
        assert_eq!(
            (gateway.count("given_agents"), gateway.count("failures")),
            (conversations, 0),
            "{settings}"
        );
        assert_eq!((gateway.count("split"), gateway.count("strays")), (0, 0), "{settings}");
    }
}

#[test]
fn firewalls_and_nat_see_one_connection() {
    const RULES: &str = "
table inet firewall {
    chain forward {
        type filter hook forward priority 0; policy drop
        ct state invalid counter drop
        ct state established,related accept
        iifname radio0 accept
        iifname wired0 accept
    }
    chain nat {
        type nat hook postrouting priority 100
        oifname { wired0, radio0 } masquerade
    }
}";
    let Some(network) = Network::of("agents::firewalls_and_nat_see_one_connection") else { return };
    if !nft(RULES) || !lose(&network, 50) {
        return;
    }
    for key in ["all", "default"] {
        fs::write(format!("/proc/sys/net/ipv4/conf/{key}/rp_filter"), "1").expect("a strict router");
    }
    let gateway = network.start(SNOOP);
    let mut flows = 0;
    let sides = [
        (&network.client, &network.server, SERVER, ["10.2.0.1", "fd02::1"]),
        (&network.server, &network.client, CLIENT, ["10.1.0.1", "fd01::1"]),
    ];
    let listening = sides.map(|(_, listener, hosts, _)| listener.run(move || echo(hosts, 7000)));
    let end = Instant::now() + PATIENCE;
    // Which packets are lost decides whether an agent or its sender is the first to repair them; counters are told once a second.
    while flows == 0 || agent(&gateway, "snoop.local_retransmissions") == 0 {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        for ((opener, _, hosts, masqueraded), peers) in sides.iter().zip(&listening) {
            for (&host, masqueraded) in hosts.iter().zip(masqueraded) {
                opener.run(move || talk(host, 300_000));
                let peer = peers.recv_timeout(PATIENCE).expect("a connection");
                assert_eq!(peer.ip(), address(masqueraded, 0).ip());
                let refused = opener.run(move || connect(host, 7001).expect_err("no listener").kind());
                assert_eq!(refused, ErrorKind::ConnectionRefused);
                flows += 2;
            }
        }
    }
    assert_eq!((gateway.count("given_agents"), gateway.count("strays")), (flows, 0));
    let listed = Command::new("nft").args(["list", "table", "inet", "firewall"]).output().expect("nft runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.matches("counter packets 0 bytes 0").count(), 1, "{listed}");
}

/// A stream that goes on until it is told to end, and the number of bytes that have come back.
fn exchange(stream: &mut TcpStream, rounds: usize) {
    for round in 0..rounds {
        let data = vec![round as u8; 20_000];
        let mut echoed = vec![0; data.len()];
        stream.write_all(&data).expect("it is open");
        stream.read_exact(&mut echoed).expect("an echo");
        assert!(echoed == data);
    }
}

/// Whatever happens to the gateway or to the radio, flows go on.
#[test]
fn flows_survive_the_gateway_and_the_interface() {
    let Some(network) = Network::of("agents::flows_survive_the_gateway_and_the_interface") else { return };
    if !lose(&network, 30) {
        return;
    }
    let _peers = network.server.run(|| echo(SERVER, 7000));
    let open = || network.client.run(|| SERVER.map(|host| connect(host, 7000).expect("a listener")));
    let go_on = |streams: [TcpStream; 2]| {
        network.client.run(move || {
            let mut streams = streams;
            streams.iter_mut().for_each(|stream| exchange(stream, 20));
            streams
        })
    };
    for scheme in ["snoop", "wtcp-timestamps"] {
        let settings = format!("scheme = {scheme:?}");
        let mut gateway = network.start(&settings);
        let streams = go_on(open());
        gateway.expect("with_agents", 2);
        gateway.child.kill().expect("it runs");
        gateway.child.wait().expect("it ends");
        let streams = go_on(streams);
        // One that was killed leaves an interface without packets, which the next one takes away.
        let gateway = network.start(&settings);
        let streams = go_on(streams);
        assert_eq!(gateway.count("agent_packets"), 0, "flows that began before stay alone");
        let others = go_on(open());
        gateway.expect("with_agents", 2);
        let successor = network.start_with(&settings, &["--replace"]);
        drop(go_on(others));
        drop(go_on(streams));
        drop(gateway);
        let new = go_on(open());
        successor.expect("with_agents", 2);
        ip("link set radio0 down");
        ip("link set radio0 name away0");
        thread::sleep(Duration::from_millis(1500));
        ip("link set away0 name radio0");
        ip("link set radio0 up");
        // The kernel has removed routes of IPv6 with the addresses.
        ip("address replace fd01::1/64 dev radio0 nodad");
        // Counters are told once a second, and those of before as late as now.
        thread::sleep(Duration::from_millis(1200));
        let (before, end) = (successor.count("agent_packets"), Instant::now() + PATIENCE);
        let mut streams = new;
        while successor.count("agent_packets") == before {
            assert!(Instant::now() < end, "{scheme}: {:#}", successor.status());
            streams = go_on(streams);
            thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(successor.count("failures"), 0);
    }
}

#[test]
fn other_packets_and_the_other_arm_are_not_touched() {
    let Some(network) = Network::of("agents::other_packets_and_the_other_arm_are_not_touched") else {
        return;
    };
    let path = network.directory().join("flows.jsonl");
    let rule = "[[match]]\nports = [7001]\nscheme = \"i-tcp\"";
    let gateway = network.start(&format!("{SNOOP}\nunhelped = 0.5\nflows = {path:?}\n{rule}"));
    let _peers = network.server.run(|| (echo(SERVER, 7000), echo(SERVER, 7001)));
    let server = network.server.run(|| UdpSocket::bind(address(SERVER[0], 7000)).expect("a port"));
    network.client.run(move || {
        let client = UdpSocket::bind(address(CLIENT[0], 7000)).expect("a port");
        // One in fragments, too.
        for len in [100, 4000] {
            client.send_to(&vec![7; len], address(SERVER[0], 7000)).expect("a route");
            let (mut buffer, patience) = (vec![0; 5000], Some(PATIENCE));
            server.set_read_timeout(patience).expect("a socket");
            assert_eq!(server.recv(&mut buffer).expect("it passes"), len);
        }
    });
    const COUNT: usize = 40;
    network.client.run(|| {
        (0..COUNT).for_each(|_| {
            talk(SERVER[0], 20_000);
        })
    });
    network.client.run(|| (0..COUNT).for_each(|_| drop(connect(SERVER[0], 7001).expect("a listener"))));
    let unhelped = gateway.status()["unhelped_flows"].as_u64().expect("a number");
    let (helped, split) = (gateway.count("given_agents"), gateway.count("split"));
    assert_eq!(unhelped + helped + split, 2 * COUNT as u64);
    assert!((8..=32).contains(&helped) && (8..=32).contains(&split), "{helped} {split}");
    gateway.expect("watching", 0);
    assert!(gateway.report().contains("snoop or i-tcp"), "{}", gateway.report());
    // Both arms are observed alike.
    let mut flows = Vec::new();
    rows::read(&path, |line| {
        if let Line::Flow(row) = line {
            flows.push((**row).clone());
        }
    })
    .expect("a file");
    let of_agents: Vec<_> = flows.iter().filter(|flow| flow.server.port() == 7000).collect();
    assert_eq!(of_agents.len(), COUNT);
    for flow in of_agents {
        assert_eq!((flow.bytes_to_client, flow.bytes_to_server), (20_000, 20_000), "{flow:?}");
        assert_eq!(flow.outcome, Outcome::Closed, "{flow:?}");
    }
}

#[test]
fn a_flood_of_openings_has_bounds() {
    let Some(network) = Network::of("agents::a_flood_of_openings_has_bounds") else { return };
    let gateway = network.start(&format!("{SNOOP}\nopening = 20\nopening_per_host = 10"));
    network.server.run(|| ip("route add blackhole 10.8.0.0/16"));
    ip("route add 10.8.0.0/16 via 10.2.0.2");
    network.client.run(|| {
        (0..60).for_each(|host| {
            let silent = format!("10.8.0.{host}");
            let _ = TcpStream::connect_timeout(&address(&silent, 7000), Duration::from_millis(5));
        });
    });
    gateway.expect("passed_by_limit", 50);
    gateway.expect_small(20);
    assert_eq!((gateway.count("given_agents"), gateway.count("failures")), (0, 0));
    // Others pass, without agents.
    let _peers = network.server.run(|| echo(SERVER, 7000));
    network.client.run(|| talk(SERVER[0], 100_000));
    // A first packet that is sent again is counted again.
    assert!(gateway.count("passed_by_limit") > 50, "{:#}", gateway.status());
    // Those that nobody answers are not diverted for ever, although no other flow comes.
    assert_eq!(diverted(), 10);
    let end = Instant::now() + 2 * PATIENCE;
    while diverted() > 0 {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        thread::sleep(Duration::from_millis(200));
    }
}

/// The number of flows of IPv4 that the kernel diverts.
fn diverted() -> usize {
    let list = ["list", "set", "netdev", "lasthop_agents0", "flows4"];
    let output = Command::new("nft").args(list).output().expect("nft runs");
    String::from_utf8_lossy(&output.stdout).matches("10.1.0.2").count()
}

#[test]
fn hundreds_of_flows_end_at_once_and_others_follow() {
    let Some(network) = Network::of("agents::hundreds_of_flows_end_at_once_and_others_follow") else {
        return;
    };
    let gateway = network.start(&format!("{SNOOP}\nopening_per_host = 1000"));
    let _peers = network.server.run(|| echo(SERVER, 7000));
    const COUNT: u64 = 400;
    for round in 1..=2 {
        let open = || (0..COUNT).map(|_| connect(SERVER[0], 7000).expect("a listener")).collect();
        let streams: Vec<TcpStream> = network.client.run(open);
        gateway.expect("with_agents", COUNT);
        gateway.expect_small(COUNT as usize);
        network.client.run(move || drop(streams));
        gateway.expect("with_agents", 0);
        network.client.run(|| talk(SERVER[0], 100_000));
        assert_eq!((gateway.count("given_agents"), gateway.count("failures")), (round * (COUNT + 1), 0));
        gateway.expect("with_agents", 0);
    }
}

#[test]
fn larger_limits_get_the_room_that_they_need() {
    let Some(network) = Network::of("agents::larger_limits_get_the_room_that_they_need") else { return };
    let gateway = network.start(&format!("{SNOOP}\nconnections = 2\nopening = 2"));
    network.write(&format!("{SNOOP}\nconnections = 50\nopening = 50"));
    gateway.reload().expect("a valid file");
    let _peers = network.server.run(|| echo(SERVER, 7000));
    let streams: Vec<TcpStream> =
        network.client.run(|| (0..20).map(|_| connect(SERVER[0], 7000).expect("a listener")).collect());
    gateway.expect("with_agents", 20);
    assert_eq!(gateway.count("failures"), 0);
    drop(streams);
}

/// Whatever becomes of the pair of interfaces, or of the table: flows go on, and get their agents back.
#[test]
fn what_is_lost_is_made_anew() {
    let Some(network) = Network::of("agents::what_is_lost_is_made_anew") else { return };
    if !nft("") {
        return;
    }
    let gateway = network.start(SNOOP);
    let _peers = network.server.run(|| echo(SERVER, 7000));
    let mut stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    // Counters are told once a second.
    let told = || thread::sleep(Duration::from_millis(1100));
    let mut go_on = |stays: bool| {
        exchange(&mut stream, 5);
        told();
        let (before, end) = (gateway.count("agent_packets"), Instant::now() + PATIENCE);
        exchange(&mut stream, 5);
        while stays && gateway.count("agent_packets") == before {
            assert!(Instant::now() < end, "{:#}", gateway.status());
            exchange(&mut stream, 5);
            thread::sleep(Duration::from_millis(200));
        }
        if !stays {
            told();
            assert_eq!(gateway.count("agent_packets"), before);
        }
    };
    go_on(true);
    for loss in ["link delete lasthop0", "link set lasthop0 down", "link set lasthop0-in down"] {
        ip(loss);
        go_on(true);
    }
    assert_eq!(gateway.count("failures"), 0);
    // Neither `remove` nor another gateway takes them away.
    let index = || if_nametoindex("lasthop0").expect("an interface");
    let before = index();
    let (is_removed, error) = gateway.ask("remove", &[]);
    assert!(!is_removed && error.contains("a gateway runs with the control socket"), "{error}");
    let other = network.directory().join("other.toml");
    let keys = format!("number = 7\nport = 7900\ncontrol = {:?}", network.directory().join("other"));
    fs::write(&other, format!("[gateway]\nradio = [\"radio0\"]\n{keys}\n{SNOOP}\n")).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway")).arg("run").arg(&other).output();
    let output = output.expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("belongs to another running gateway"), "{error}");
    assert_eq!(index(), before);
    go_on(true);
    // Another table has the name, when the radio comes back.
    ip("link set radio0 down");
    ip("link set radio0 name away0");
    thread::sleep(Duration::from_millis(1500));
    nft("table netdev lasthop_agents0 {}");
    ip("link set away0 name radio0");
    ip("link set radio0 up");
    gateway.expect("failures", 1);
    go_on(false);
    assert_eq!(gateway.count("failures"), 1, "it is told once");
    nft("delete table netdev lasthop_agents0");
    go_on(true);
}

#[test]
fn a_successor_whose_agents_cannot_start_takes_nothing() {
    let Some(network) = Network::of("agents::a_successor_whose_agents_cannot_start_takes_nothing") else {
        return;
    };
    let line = ["tuntap", "add", "dev", "tun8", "mode", "tun"];
    if !Command::new("ip").args(line).status().expect("ip runs").success() {
        println!("skipped: this kernel makes no interfaces without Ethernet frames");
        return;
    }
    let gateway = network.start(SNOOP);
    let _peers = network.server.run(|| echo(SERVER, 7000));
    let file = network.write(SNOOP);
    let text = fs::read_to_string(&file).expect("a file").replace("\"radio0\"", "\"radio0\", \"tun8\"");
    fs::write(&file, text).expect("a file");
    let mut line = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"));
    let output = line.arg("run").arg(&file).arg("--replace").output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("agents need Ethernet frames"), "{error}");
    let _stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    gateway.expect("with_agents", 1);
}

/// A gateway whose successor has left goes on, even if its agents cannot start again; a reload tries once more.
#[test]
fn agents_that_cannot_start_again_cost_no_gateway() {
    let Some(network) = Network::of("agents::agents_that_cannot_start_again_cost_no_gateway") else {
        return;
    };
    if !nft("") {
        return;
    }
    let gateway = network.start(SNOOP);
    let _peers = network.server.run(|| echo(SERVER, 7000));
    // While the radio is away, another table gets the name.
    ip("link set radio0 down");
    ip("link set radio0 name away0");
    thread::sleep(Duration::from_millis(1200));
    nft("table netdev lasthop_agents0 {}");
    let mut asking = UnixStream::connect(network.directory().join("control")).expect("its socket");
    asking.write_all(b"hand-over\n").expect("it listens");
    drop(asking);
    gateway.expect("failures", 1);
    ip("link set away0 name radio0");
    ip("link set radio0 up");
    let _other = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    assert_eq!(gateway.count("given_agents"), 0);
    assert!(gateway.reload().is_err(), "the other table is there");
    nft("delete table netdev lasthop_agents0");
    gateway.reload().expect("a valid file");
    let _stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    gateway.expect("with_agents", 1);
}
