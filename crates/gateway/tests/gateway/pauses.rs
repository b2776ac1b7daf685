//! A process that is stopped, or hangs.

use std::io::{Read, Write};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::thread;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::agents::{agent, lose};
use super::hosts::{Gateway, Network, PATIENCE, SERVER, connect, echo, talk};
use super::succession::retransmitted_syns;

fn signal(gateway: &Gateway, signal: Signal) {
    kill(Pid::from_raw(gateway.child.id() as i32), signal).expect("it runs");
}

/// Waits until it has told what has passed since it stood still.
fn expect_awake(gateway: &Gateway) {
    let end = Instant::now() + PATIENCE;
    while gateway.count("passed_by_stall") == 0 {
        assert!(Instant::now() < end, "{:#}", gateway.status());
    }
}

/// New connections pass, after the second in which their first packet is held; those that it has, and those that the kernel
/// held, go on when it does.
#[test]
fn a_stopped_process_holds_nothing() {
    let Some(network) = Network::of("pauses::a_stopped_process_holds_nothing") else { return };
    let gateway = network.start("unhelped = 0");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let mut split = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    gateway.expect("open", 1);
    signal(&gateway, Signal::SIGSTOP);
    let before = network.client.run(retransmitted_syns);
    let mut passed = network.client.run(|| SERVER.map(|host| connect(host, 7000).expect("a listener")));
    network.client.run(|| talk(SERVER[0], 1000));
    // The first asks again, if it was held.
    assert!(network.client.run(retransmitted_syns) - before <= 1);
    signal(&gateway, Signal::SIGCONT);
    expect_awake(&gateway);
    let _stream = network.client.run(|| connect(SERVER[1], 7000).expect("a listener"));
    gateway.expect("split", 2);
    for stream in passed.iter_mut().chain([&mut split]) {
        stream.write_all(b"x").expect("it is open");
        stream.read_exact(&mut [0]).expect("an answer");
    }
    for counter in ["failures", "refused", "opening"] {
        assert_eq!(gateway.count(counter), 0, "{counter}");
    }
    assert!((3..=4).contains(&gateway.count("passed_by_stall")), "{:#}", gateway.status());
}

/// One that waits for a successor, which has been given all and says nothing.
#[test]
fn a_successor_that_hangs_holds_nothing() {
    let Some(network) = Network::of("pauses::a_successor_that_hangs_holds_nothing") else { return };
    let gateway = network.start("unhelped = 0");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let mut asking = UnixStream::connect(network.directory().join("control")).expect("its socket");
    asking.write_all(b"hand-over\n").expect("it listens");
    assert!(asking.read(&mut [0; 64]).expect("an answer") > 0);
    let before = network.client.run(retransmitted_syns);
    network.client.run(|| talk(SERVER[0], 1000));
    assert!(network.client.run(retransmitted_syns) - before <= 1);
    drop(asking);
    expect_awake(&gateway);
    let _stream = network.client.run(|| connect(SERVER[1], 7000).expect("a listener"));
    gateway.expect("split", 1);
}

/// Flows with agents go on without, and with them when it goes on.
#[test]
fn a_stopped_process_keeps_no_packets_from_flows_with_agents() {
    let Some(network) = Network::of("pauses::a_stopped_process_keeps_no_packets_from_flows_with_agents")
    else {
        return;
    };
    if !lose(&network, 40) {
        return;
    }
    let gateway = network.start("scheme = \"wtcp-timestamps\"\nunhelped = 0");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let mut stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    let mut converse = move |len: usize| {
        let mut sending = stream.try_clone().expect("a socket");
        let writing = thread::spawn(move || sending.write_all(&vec![7; len]).expect("it is open"));
        stream.read_exact(&mut vec![0; len]).expect("an answer");
        writing.join().expect("written");
    };
    converse(10_000);
    gateway.expect("with_agents", 1);
    signal(&gateway, Signal::SIGSTOP);
    converse(200_000);
    signal(&gateway, Signal::SIGCONT);
    let before = gateway.count("agent_packets");
    let end = Instant::now() + PATIENCE;
    while gateway.count("agent_packets") < before + 200
        || agent(&gateway, "wtcp-timestamps.local_retransmissions") == 0
    {
        converse(200_000);
        assert!(Instant::now() < end, "{:#}", gateway.status());
    }
    assert_eq!(gateway.count("failures"), 0);
}

/// The service manager is told that it has started and works, and is not any more by one that has a successor.
#[test]
fn the_service_manager_is_told() {
    let Some(network) = Network::of("pauses::the_service_manager_is_told") else { return };
    let path = network.directory().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let told = || {
        let mut word = [0; 64];
        let len = manager.recv(&mut word).expect("it is told something");
        String::from_utf8_lossy(&word[..len]).into_owned()
    };
    let mut first = Gateway::run_managed(network.write(""), &[], Some(&path));
    assert_eq!([told(), told()], ["READY=1", "WATCHDOG=1"]);
    let _second = network.start_with("", &["--replace"]);
    first.wait();
    let last = std::iter::repeat_with(told).find(|word| word != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("WATCHDOG_USEC=0"));
}
