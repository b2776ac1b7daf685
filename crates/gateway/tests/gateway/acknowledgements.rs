//! Agents that hold acknowledgements back: what enters the gateway goes on, or is counted as what makes way.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::agents::{agent, lose};
use super::hosts::{CLIENT, Gateway, Host, Network, PATIENCE, SERVER, address, connect, nft};

/// Counts packets of this kind that arrive at a device of this host.
fn count(device: &str, kind: &str) -> bool {
    let hook = format!("type filter hook ingress device {device} priority -600; policy accept");
    nft(&format!("table netdev seen {{\n chain in {{\n {hook}\n {kind} counter\n }}\n}}\n"))
}

/// How many were counted.
fn counted() -> u64 {
    let output = Command::new("nft").args(["list", "table", "netdev", "seen"]).output().expect("nft runs");
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, after) = listed.split_once("counter packets ").unwrap_or_else(|| panic!("{listed}"));
    after.split(' ').next().and_then(|count| count.parse().ok()).expect("a number")
}

/// One host sends this to another one, which only receives.
fn send(from: &Host, to: &Host, sender: &'static str, len: usize) {
    let listener = from.run(move || TcpListener::bind(address(sender, 7000)).expect("a port"));
    let sending = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a receiver");
        stream.write_all(&vec![7; len]).expect("it is read");
    });
    to.run(move || {
        let mut received = Vec::new();
        connect(sender, 7000).expect("a listener").read_to_end(&mut received).expect("an end");
        assert!(received == vec![7; len], "{sender}");
    });
    sending.join().expect("it was sent");
}

/// Waits until what has entered is what went on and what the agents have suppressed; returns the two.
fn expect_all(gateway: &Gateway, counter: &str, left: impl Fn() -> u64) -> [u64; 2] {
    let end = Instant::now() + PATIENCE;
    loop {
        // What enters comes to rest first.
        let [entered, suppressed, left] = [counted(), agent(gateway, counter), left()];
        if left + suppressed == entered {
            println!("{counter}: {suppressed} of {entered}");
            return [left, suppressed];
        }
        assert!(Instant::now() < end, "{counter}: {suppressed}, {left} of {entered}");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn duplicates_make_way_for_what_repairs_their_loss() {
    let Some(network) = Network::of("acknowledgements::duplicates_make_way_for_what_repairs_their_loss")
    else {
        return;
    };
    const KIND: &str = "tcp option sack exists";
    if !lose(&network, 40) || !count("radio0", KIND) || !network.server.run(|| count("host2", KIND)) {
        return;
    }
    let keys = "scheme = \"delayed-dupacks\"\n[scheme.delayed-dupacks]\nagent = true\ndelay = \"300 ms\"";
    let gateway = network.start(keys);
    let counter = "delayed-dupacks.suppressed_dupacks";
    // Which packets are lost decides how many duplicates there are; counters are told once a second.
    let (mut transfers, end) = (0, Instant::now() + PATIENCE);
    while transfers == 0 || agent(&gateway, counter) == 0 {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        for host in SERVER {
            send(&network.server, &network.client, host, 1_000_000);
            transfers += 1;
        }
    }
    let [left, suppressed] = expect_all(&gateway, counter, || network.server.run(counted));
    // The first two of a row pass, and the third and later ones wait.
    assert!(left > 0 && suppressed > 0 && agent(&gateway, "delayed-dupacks.delayed_dupacks") >= suppressed);
    assert_eq!((gateway.count("given_agents"), gateway.count("failures")), (transfers, 0));
}

#[test]
fn thinned_acknowledgements_leave_a_narrow_uplink_room() {
    let Some(network) = Network::of("acknowledgements::thinned_acknowledgements_leave_a_narrow_uplink_room")
    else {
        return;
    };
    const KIND: &str = "meta l4proto tcp meta length < 100";
    if !count("wired0", KIND) || !network.client.run(|| count("host1", KIND)) {
        return;
    }
    let gateway =
        network.start("scheme = \"ack-thinning\"\n[scheme.ack-thinning]\nevery = 8\ndelay = \"50 ms\"");
    // Data come over the radio, and their acknowledgements go there.
    for host in CLIENT {
        send(&network.client, &network.server, host, 5_000_000);
    }
    let [left, omitted] = expect_all(&gateway, "ack-thinning.omitted_acks", || network.client.run(counted));
    // Those pass that nothing follows for a while, on a busy machine most.
    assert!(omitted > 0 && left > 0, "{left} and {omitted}");
    assert_eq!((gateway.count("given_agents"), gateway.count("failures")), (2, 0));
}
