//! What happens when the gateway's process ends.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::hosts::{Network, SERVER, connect, echo};

/// How many SYNs this host has sent again.
pub(super) fn retransmitted_syns() -> u64 {
    let counters = fs::read_to_string("/proc/thread-self/net/netstat").expect("counters");
    let mut lines = counters.lines().filter(|line| line.starts_with("TcpExt: "));
    let [names, values] = [lines.next(), lines.next()].map(|line| line.expect("those of TCP").split(' '));
    let found = names.zip(values).find(|(name, _)| *name == "TCPSynRetrans");
    found.and_then(|(_, value)| value.parse().ok()).expect("a counter")
}

#[test]
fn without_its_process_flows_pass() {
    let Some(network) = Network::of("succession::without_its_process_flows_pass") else { return };
    let mut gateway = network.start("");
    let peers = network.server.run(|| echo(SERVER, 7000));
    let mut stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    gateway.expect("open", 1);
    gateway.child.kill().expect("it runs");
    gateway.child.wait().expect("it ends");
    let before = network.client.run(retransmitted_syns);
    let error = stream.read(&mut [0]).expect_err("a reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    for host in SERVER {
        let mut stream = network.client.run(move || connect(host, 7000).expect("a listener"));
        stream.write_all(b"x").expect("it is open");
        stream.read_exact(&mut [0]).expect("an answer");
    }
    assert_eq!(network.client.run(retransmitted_syns), before, "nothing holds them");
    assert_eq!(peers.iter().take(3).count(), 3);
    // What it has left in the kernel is in nobody's way.
    drop(gateway);
    let gateway = network.start("");
    let _stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    gateway.expect("open", 1);
}

#[test]
fn a_gateway_that_is_told_to_stop_leaves_nothing() {
    let Some(network) = Network::of("succession::a_gateway_that_is_told_to_stop_leaves_nothing") else {
        return;
    };
    let rules = || Command::new("ip").args(["rule", "show"]).output().expect("ip runs").stdout;
    let before = rules();
    let mut gateway = network.start("");
    assert_ne!(rules(), before);
    kill(Pid::from_raw(gateway.child.id() as i32), Signal::SIGTERM).expect("it runs");
    assert!(gateway.wait().contains("\"event\":\"stopped\""));
    assert_eq!(rules(), before);
}

#[test]
fn a_successor_takes_over() {
    let Some(network) = Network::of("succession::a_successor_takes_over") else { return };
    let keys = format!("flows = {:?}", network.directory().join("flows.jsonl"));
    let mut first = network.start(&keys);
    let _peers = network.server.run(|| echo(SERVER, 7000));
    let mut answer = {
        let mut stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
        move || {
            stream.write_all(b"x").expect("it is open");
            stream.read_exact(&mut [0]).expect("an answer");
        }
    };
    answer();
    let second = network.start_with(&keys, &["--replace"]);
    answer();
    for host in SERVER {
        let _stream = network.client.run(move || connect(host, 7000).expect("a listener"));
    }
    // It observes in the other's place.
    second.expect("split", 2);
    second.expect("watched", 2);
    assert!(first.child.try_wait().expect("a process").is_none(), "it has a connection");
    answer();
    drop(answer);
    assert!(first.wait().contains("\"event\":\"drained\""));
    // The first has taken nothing with it.
    let _stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    second.expect("split", 3);
}

/// A gateway without connections ends as soon as it has handed over, and not before.
#[test]
fn idle_gateways_succeed_each_other() {
    let Some(network) = Network::of("succession::idle_gateways_succeed_each_other") else { return };
    let keys = "metrics = \"127.0.0.1:9330\"";
    let mut running = network.start(keys);
    for _ in 0..5 {
        let next = network.start_with(keys, &["--replace"]);
        assert!(running.wait().contains("\"event\":\"drained\""));
        running = next;
        let mut page = TcpStream::connect("127.0.0.1:9330").expect("it listens");
        page.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").expect("it reads");
        let mut answer = String::new();
        page.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
}

/// Whether it leaves before it is given anything or with all in its hands.
#[test]
fn a_successor_that_leaves_takes_nothing() {
    let Some(network) = Network::of("succession::a_successor_that_leaves_takes_nothing") else { return };
    let first = network.start(&format!("flows = {:?}", network.directory().join("flows.jsonl")));
    let _peers = network.server.run(|| echo(SERVER, 7000));
    for (round, is_given) in [(1, false), (2, true), (3, false)] {
        let mut asking = UnixStream::connect(network.directory().join("control")).expect("its socket");
        asking.write_all(b"hand-over\n").expect("it listens");
        if is_given {
            assert!(asking.read(&mut [0; 64]).expect("an answer") > 0);
        }
        drop(asking);
        // It answers after the hand-over has failed.
        first.status();
        let _stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
        first.expect("split", round);
        first.expect("watched", round);
    }
}

#[test]
fn a_successor_that_cannot_start_takes_nothing() {
    let Some(network) = Network::of("succession::a_successor_that_cannot_start_takes_nothing") else {
        return;
    };
    let first = network.start("");
    let _peers = network.server.run(|| echo(SERVER, 7000));
    let file = network.write("flows = \"/dev/null/flows.jsonl\"");
    let mut line = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"));
    let output = line.arg("run").arg(file).arg("--replace").output().expect("it runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("gateway.flows /dev/null/flows.jsonl: "), "{error}");
    let _stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    first.expect("split", 1);
}

/// All threads of every mode are confined, unless the file says otherwise; a new file in the place of the old one is read.
#[test]
fn its_threads_are_confined() {
    let Some(network) = Network::of("succession::its_threads_are_confined") else { return };
    let threads = |process: u32, line: &str| {
        let threads = fs::read_dir(format!("/proc/{process}/task")).expect("a process");
        let statuses = threads.map(|thread| fs::read_to_string(thread.expect("it").path().join("status")));
        let statuses: Vec<String> = statuses.map(|status| status.expect("a thread")).collect();
        (statuses.iter().filter(|status| status.contains(line)).count(), statuses.len())
    };
    let keys = "scheme = \"snoop\"\nunhelped = 0.5\nmetrics = \"127.0.0.1:9330\"";
    let gateway = network.start(keys);
    let state = gateway.status()["sandbox"].clone();
    println!("{state}");
    if state["system_calls"] == "confined" {
        let (confined, all) = threads(gateway.child.id(), "Seccomp:\t2");
        assert!(confined == all && all >= 6, "{confined} of {all}");
    }
    let (file, other) = (network.write(keys), network.directory().join("other.toml"));
    fs::rename(&file, &other).expect("a file");
    fs::rename(&other, &file).expect("a file");
    gateway.reload().expect("a file that may be read");
    drop(gateway);
    let gateway = network.start("sandbox = false");
    assert_eq!(threads(gateway.child.id(), "Seccomp:\t2").0, 0);
    assert_eq!(gateway.status()["sandbox"]["files"], "not confined: gateway.sandbox is false");
}
