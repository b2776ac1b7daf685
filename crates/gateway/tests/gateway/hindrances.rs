//! What others do to the host of a gateway: firewalls, and the removal of what it has installed.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::hosts::{CLIENT, Network, PATIENCE, SERVER, address, connect, echo, ip, nft, talk};
use super::succession::retransmitted_syns;

/// The rules of routing of this host.
fn rules() -> String {
    let output = Command::new("ip").arg("rule").output().expect("ip runs");
    String::from_utf8(output.stdout).expect("text")
}

/// As OpenWrt's fw4 for a router with two zones, of which the radio is the outer one.
const FIREWALL: &str = "
table inet fw4 { }
delete table inet fw4
table inet fw4 {
    chain input {
        type filter hook input priority filter; policy drop
        iif lo accept
# chain-pre
        ct state vmap { established : accept, related : accept }
        tcp flags & (fin | syn | rst | ack) == syn jump syn_flood
        iifname wired0 jump input_lan
        iifname radio0 jump input_wan
        jump handle_reject
    }
    chain forward {
        type filter hook forward priority filter; policy drop
        ct state vmap { established : accept, related : accept }
        iifname { wired0, radio0 } accept
        jump handle_reject
    }
    chain input_lan { meta l4proto { icmp, ipv6-icmp } accept; reject; }
    chain input_wan { meta l4proto { icmp, ipv6-icmp } accept; drop; }
    chain handle_reject { meta l4proto tcp reject with tcp reset; reject with icmpx type port-unreachable; }
    chain syn_flood { limit rate 25/second burst 50 packets return; drop; }
    chain prerouting { type filter hook prerouting priority filter; }
    chain srcnat { type nat hook postrouting priority srcnat; oifname wired0 masquerade; }
}
";

/// The firewall with what it does to packets from the radio for this host.
fn firewall(verdict: &str) -> String {
    let found = "chain input_wan { meta l4proto { icmp, ipv6-icmp } accept; drop; }";
    assert!(FIREWALL.contains(found));
    FIREWALL.replace(found, &found.replace("drop", verdict))
}

/// No client is refused, or waits for longer than until its second SYN.
#[test]
fn a_firewall_that_stops_the_clients_of_splits_is_noticed() {
    let Some(network) = Network::of("hindrances::a_firewall_that_stops_the_clients_of_splits_is_noticed")
    else {
        return;
    };
    if !nft(&firewall("reject with tcp reset")) {
        return;
    }
    let mut gateway = network.start("unhelped = 0\nbypass_firewall = true");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let asked_again = || network.client.run(retransmitted_syns);
    for (number, verdict) in
        ["reject with tcp reset", "reject with icmpx type admin-prohibited", "drop"].iter().enumerate()
    {
        nft(&firewall(verdict));
        gateway.reload().expect("the same file");
        let (passed, before) = (gateway.count("passed_by_firewall"), asked_again());
        // The first is a trial.
        network.client.run(move || [0; 3].map(|_| talk(SERVER[number % 2], 1000)));
        assert_eq!(asked_again() - before, 1, "{verdict}");
        assert_eq!(gateway.count("passed_by_firewall") - passed, 3, "{verdict}");
    }
    assert_eq!((gateway.count("split"), gateway.count("opening")), (0, 0));
    // As the log says, and the archive for OpenWrt does.
    nft(&FIREWALL.replacen("# chain-pre\n", include_str!("../../package/lasthop-gateway.nft"), 1));
    gateway.reload().expect("the same file");
    network.client.run(|| [0; 3].map(|_| talk(SERVER[0], 1000)));
    assert_eq!(gateway.count("split"), 3);
    kill(Pid::from_raw(gateway.child.id() as i32), Signal::SIGTERM).expect("it runs");
    let log = gateway.wait();
    let expected = "nft insert rule inet fw4 input 'meta mark & 0x07000000 == 0x01000000 accept'";
    assert!(log.contains("clients get no answer") && log.contains(expected), "{log}");
}

/// Its rules come while the gateway runs, and leave some ports alone.
#[test]
fn a_firewall_that_comes_later_is_noticed_by_port() {
    let Some(network) = Network::of("hindrances::a_firewall_that_comes_later_is_noticed_by_port") else {
        return;
    };
    let gateway = network.start("unhelped = 0\nbypass_firewall = true");
    let _servers = network.server.run(|| [echo(SERVER, 7000), echo(SERVER, 7001)]);
    network.client.run(|| talk(SERVER[0], 1000));
    if !nft(&firewall("tcp dport 7001 accept; reject with tcp reset")) {
        return;
    }
    let end = Instant::now() + PATIENCE;
    while gateway.count("passed_by_firewall") == 0 {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        // Until the gateway looks, it is refused.
        let _ = network.client.run(|| connect(SERVER[0], 7000));
    }
    network.client.run(|| talk(SERVER[0], 1000));
    assert_eq!(gateway.count("split"), 1);
    network.client.run(|| connect(SERVER[0], 7001).expect("a listener"));
    gateway.expect("split", 2);
}

/// It lets SYNs come in, and rejects what follows them, of which conntrack knows nothing.
#[test]
fn a_firewall_that_stops_what_follows_is_noticed() {
    let Some(network) = Network::of("hindrances::a_firewall_that_stops_what_follows_is_noticed") else {
        return;
    };
    if !nft(&firewall("tcp flags & (syn | ack) == syn accept; reject with tcp reset")) {
        return;
    }
    let gateway = network.start("unhelped = 0\nbypass_firewall = true");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let end = Instant::now() + PATIENCE;
    while gateway.count("passed_by_firewall") == 0 {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        // Until the gateway looks, it is reset.
        let _ = network.client.run(|| connect(SERVER[0], 7000));
    }
    network.client.run(|| talk(SERVER[0], 1000));
    assert_eq!((gateway.count("split"), gateway.count("opening")), (0, 0));
}

/// Flows that it stops stay stopped, and others meet it.
#[test]
fn a_firewall_for_forwarded_packets_is_not_bypassed() {
    let Some(network) = Network::of("hindrances::a_firewall_for_forwarded_packets_is_not_bypassed") else {
        return;
    };
    let _servers = network.server.run(|| [echo(SERVER, 7000), echo(SERVER, 7001)]);
    let mut gateway = network.start("unhelped = 0");
    network.client.run(|| talk(SERVER[0], 1000));
    assert_eq!(gateway.count("split"), 1);
    let fences = [
        "chain forward { type filter hook forward priority 0; tcp dport 7001 reject with tcp reset; }",
        "chain elsewhere { type nat hook prerouting priority dstnat; tcp dport 7001 redirect to :7999; }",
    ];
    for fence in fences {
        if !nft(&format!("table inet fence {{ {fence}\n }}")) {
            return;
        }
        let passed = gateway.count("passed_by_firewall");
        thread::sleep(Duration::from_millis(1100));
        for host in SERVER {
            let error = network.client.run(move || connect(host, 7001)).expect_err("it is stopped");
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{host}");
            network.client.run(move || talk(host, 1000));
        }
        assert_eq!((gateway.count("passed_by_firewall") - passed, gateway.count("split")), (4, 1));
        assert!(nft("delete table inet fence"));
    }
    thread::sleep(Duration::from_millis(1100));
    network.client.run(|| talk(SERVER[0], 1000));
    assert_eq!(gateway.count("split"), 2);
    kill(Pid::from_raw(gateway.child.id() as i32), Signal::SIGTERM).expect("it runs");
    assert_eq!(gateway.wait().matches("the firewall has changed").count(), 2);
    // It does not start, unless it is told that it may pass.
    assert!(nft(&format!("table inet fence {{ {}\n }}", fences[0])));
    let output = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"))
        .arg("run")
        .arg(network.write("unhelped = 0"))
        .output()
        .expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && message.contains("bypass the firewall (inet fence forward)"),
        "{message}"
    );
    assert!(gateway.ask("check", &[]).1.contains("# Caveat: split connections would bypass the firewall"));
    let gateway = network.start("unhelped = 0\nbypass_firewall = true");
    network.client.run(|| connect(SERVER[0], 7001).expect("a listener"));
    gateway.expect("split", 1);
}

#[test]
fn reverse_paths_by_marks_are_refused() {
    let Some(network) = Network::of("hindrances::reverse_paths_by_marks_are_refused") else { return };
    for (name, value) in [("src_valid_mark", "1"), ("rp_filter", "2")] {
        std::fs::write(format!("/proc/sys/net/ipv4/conf/all/{name}"), value).expect("a setting");
    }
    let mut run = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"));
    let output = run.arg("run").arg(network.write("unhelped = 0")).output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && message.contains("both src_valid_mark and rp_filter"), "{message}");
    std::fs::write("/proc/sys/net/ipv4/conf/all/src_valid_mark", "0").expect("a setting");
    let gateway = network.start("unhelped = 0");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    network.client.run(|| talk(SERVER[0], 1000));
    assert_eq!(gateway.count("split"), 1);
}

#[test]
fn connections_are_helped_that_the_stated_side_opens() {
    let Some(network) = Network::of("hindrances::connections_are_helped_that_the_stated_side_opens") else {
        return;
    };
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let _mobiles = network.client.run(|| echo(CLIENT, 7000));
    for (clients, split) in
        [("[\"radio\"]", [2, 0]), ("[\"wired\"]", [0, 2]), ("[\"wired\", \"radio\"]", [2; 2])]
    {
        let gateway = network.start(&format!("unhelped = 0\nclients = {clients}"));
        network.client.run(|| SERVER.map(|host| talk(host, 1000)));
        assert_eq!(gateway.count("split"), split[0], "{clients}");
        network.server.run(|| CLIENT.map(|host| talk(host, 1000)));
        assert_eq!(gateway.count("split"), split[0] + split[1], "{clients}");
    }
}

/// Answers leave, and do not arrive: the radio is away, and no firewall is to blame.
#[test]
fn clients_behind_a_fade_wait_for_its_end() {
    let Some(network) = Network::of("hindrances::clients_behind_a_fade_wait_for_its_end") else { return };
    let gateway = network.start("unhelped = 0");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let fade = "table inet fade { chain fade { type filter hook input priority 0; policy drop; }\n }";
    if !network.client.run(move || nft(fade)) {
        return;
    }
    network.client.run(|| {
        let clients: Vec<_> =
            (0..4).map(|number| thread::spawn(move || talk(SERVER[number % 2], 1000))).collect();
        thread::sleep(Duration::from_millis(3500));
        assert!(nft("delete table inet fade"));
        assert!(clients.into_iter().all(|client| client.join().is_ok()));
    });
    assert_eq!((gateway.count("split"), gateway.count("passed_by_firewall")), (4, 0));
}

/// What the kernel holds for rules that a file changes would be lost, and its clients would wait for a second.
#[test]
fn a_reload_loses_no_connection_that_opens() {
    let Some(network) = Network::of("hindrances::a_reload_loses_no_connection_that_opens") else { return };
    let gateway = network.start("unhelped = 0");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let silence = "chain silence { type filter hook input priority 0; tcp dport 7000 drop; }";
    for (keys, opening) in [("unhelped = 0", 1), ("unhelped = 0\nclients = [\"radio\"]", 0)] {
        if !network.server.run(move || nft(&format!("table inet silence {{ {silence}\n }}"))) {
            return;
        }
        let client = network.client.run(|| thread::spawn(|| talk(SERVER[0], 1000)));
        gateway.expect("opening", 1);
        network.write(keys);
        gateway.reload().expect("a valid file");
        assert_eq!(gateway.count("opening"), opening);
        network.server.run(|| assert!(nft("delete table inet silence")));
        client.join().expect("an answer");
    }
    // The server did not hear what has passed, and its client has asked again.
    assert_eq!((gateway.count("split"), gateway.count("passed_by_reload")), (2, 1));
}

#[test]
fn a_rule_of_routing_that_is_removed_is_put_back() {
    let Some(network) = Network::of("hindrances::a_rule_of_routing_that_is_removed_is_put_back") else {
        return;
    };
    let mut gateway = network.start("unhelped = 0");
    let installed = rules();
    ip("rule del priority 100");
    assert_ne!(rules(), installed);
    let end = Instant::now() + PATIENCE;
    while rules() != installed {
        assert!(Instant::now() < end, "{}", rules());
        thread::sleep(Duration::from_millis(20));
    }
    kill(Pid::from_raw(gateway.child.id() as i32), Signal::SIGTERM).expect("it runs");
    let log = gateway.wait();
    assert_eq!(log.matches("routes were put back").count(), 1, "{log}");
    assert_ne!(rules(), installed, "it removes its own at its end");
}

#[test]
fn a_radio_in_a_bridge_is_told() {
    let Some(network) = Network::of("hindrances::a_radio_in_a_bridge_is_told") else {
        return;
    };
    ip("link add br7 type bridge");
    ip("link set radio0 master br7");
    let gateway = network.start("unhelped = 0");
    let (_, checked) = gateway.ask("check", &[]);
    assert!(checked.contains("# Caveat: gateway.radio: radio0 is a port of the bridge br7,"), "{checked}");
    ip("link set radio0 nomaster");
    assert!(!gateway.ask("check", &[]).1.contains("bridge"));
}

/// The ports of the listeners are for clients whose servers have answered.
#[test]
fn strangers_do_not_reach_the_listeners() {
    let Some(network) = Network::of("hindrances::strangers_do_not_reach_the_listeners") else { return };
    let gateway = network.start("unhelped = 0");
    for router in ["10.1.0.1", "fd01::1"] {
        for port in [9331, 9332] {
            let short = Duration::from_millis(100);
            let attempt = move || TcpStream::connect_timeout(&address(router, port), short);
            let error = network.client.run(attempt).expect_err("nobody listens");
            assert_eq!(error.kind(), ErrorKind::TimedOut, "{router} {port}");
        }
    }
    let _servers = network.server.run(|| echo(SERVER, 7000));
    network.client.run(|| SERVER.map(|host| talk(host, 1000)));
    assert_eq!(gateway.count("split"), 2);
}

/// Of a gateway with another control socket.
#[test]
fn what_a_running_gateway_has_is_not_removed() {
    let Some(network) = Network::of("hindrances::what_a_running_gateway_has_is_not_removed") else { return };
    let gateway = network.start("unhelped = 0");
    let installed = rules();
    let other = network.directory().join("other.toml");
    // The same number, and another.
    for keys in ["", "number = 9400\nport = 9500\n"] {
        let control = network.directory().join("other");
        std::fs::write(&other, format!("[gateway]\nradio = [\"radio0\"]\ncontrol = {control:?}\n{keys}"))
            .expect("a file");
        let mut remove = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"));
        let output = remove.arg("remove").arg(&other).output().expect("it runs");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains("a gateway runs"), "{message}");
        assert_eq!(rules(), installed);
    }
    let _servers = network.server.run(|| echo(SERVER, 7000));
    network.client.run(|| talk(SERVER[0], 1000));
    assert_eq!(gateway.count("split"), 1);
    // Killed, it leaves them, and they can be removed.
    drop(gateway);
    assert_eq!(rules(), installed);
    let mut remove = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"));
    let file = network.write("unhelped = 0");
    assert!(remove.arg("remove").arg(&file).status().expect("it runs").success());
    assert_ne!(rules(), installed);
}
