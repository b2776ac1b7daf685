//! The queue before the radio.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::hosts::{Network, PATIENCE, SERVER, address, connect, ip};

const KEYS: &str = "scheme = \"basic\"\n[shaper]\nrate = \"20 Mbps\"\nqueue = \"drop-tail\"";

/// The disciplines of the radio's interface, or `None` without tc.
fn disciplines() -> Option<String> {
    let output = Command::new("tc").args(["qdisc", "show", "dev", "radio0"]).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Waits until the radio's interface is shaped, or no more.
fn expect(is_shaped: bool) {
    let end = Instant::now() + PATIENCE;
    while disciplines().is_some_and(|text| text.contains("htb 2473: root") != is_shaped) {
        assert!(Instant::now() < end, "{:?}", disciplines());
        thread::sleep(Duration::from_millis(50));
    }
}

/// How long the client takes to get so many bytes.
fn download(network: &Network, len: usize) -> Duration {
    let listener = network.server.run(|| TcpListener::bind(address(SERVER[0], 7000)).expect("a port"));
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        stream.write_all(&vec![7; len]).expect("it is read");
    });
    let began = Instant::now();
    network.client.run(move || {
        let mut received = Vec::new();
        connect(SERVER[0], 7000).expect("a listener").read_to_end(&mut received).expect("an end");
        assert_eq!(received.len(), len);
    });
    serving.join().expect("it was sent");
    began.elapsed()
}

#[test]
fn the_radio_is_shaped_while_the_gateway_runs() {
    let Some(network) = Network::of("shaper::the_radio_is_shaped_while_the_gateway_runs") else { return };
    if disciplines().is_none() {
        println!("skipped: there is no tc here");
        return;
    }
    let mut gateway = network.start(KEYS);
    expect(true);
    assert_eq!(gateway.status()["shaper"]["radio0"], "shaped to 20 Mbps by drop-tail");
    // 2 MB at 20 Mbps.
    assert!(download(&network, 2_000_000) > Duration::from_millis(750));
    // It follows the interface.
    ip("link set radio0 down");
    ip("link set radio0 name away0");
    let end = Instant::now() + PATIENCE;
    while gateway.status()["shaper"]["radio0"] != "not shaped" {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        thread::sleep(Duration::from_millis(50));
    }
    ip("link set away0 name radio0");
    ip("link set radio0 up");
    expect(true);
    // Another file, and back.
    network.write("scheme = \"basic\"");
    gateway.reload().expect("a valid file");
    expect(false);
    network.write(KEYS);
    gateway.reload().expect("a valid file");
    expect(true);
    kill(Pid::from_raw(gateway.child.id() as i32), Signal::SIGTERM).expect("it runs");
    gateway.wait();
    expect(false);
    // One that was killed leaves it, and the next one, or `remove`, takes it away.
    for _ in 0..2 {
        let mut gateway = network.start(KEYS);
        gateway.child.kill().expect("it runs");
        gateway.child.wait().expect("it ends");
        expect(true);
    }
    let file = network.write(KEYS);
    let line =
        |command: &str| Command::new(env!("CARGO_BIN_EXE_lasthop-gateway")).arg(command).arg(&file).output();
    assert!(line("remove").expect("it runs").status.success());
    expect(false);
}

/// Without a discipline of the kernel, or where there is another, the gateway says so and leaves the interface as it is.
#[test]
fn what_cannot_be_shaped_is_left_alone() {
    let Some(network) = Network::of("shaper::what_cannot_be_shaped_is_left_alone") else { return };
    if disciplines().is_none() {
        println!("skipped: there is no tc here");
        return;
    }
    let start = |keys: &str| {
        let file = network.write(keys);
        let mut gateway = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"));
        let output = gateway.arg("run").arg(&file).output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let has = |kind: &str| {
        let args = ["qdisc", "add", "dev", "lo", "root", kind];
        Command::new("tc").args(args).output().is_ok_and(|output| output.status.success())
    };
    for (queue, kind) in [("fq-codel", "fq_codel"), ("cake", "cake")] {
        let keys = KEYS.replace("drop-tail", queue);
        if has(kind) {
            drop(network.start(&keys));
            Command::new("tc").args(["qdisc", "delete", "dev", "lo", "root"]).output().expect("tc runs");
        } else {
            let error = start(&keys);
            let expected = format!("shaper: radio0: this kernel has no sch_{kind}; load its module");
            assert!(error.contains(&expected), "{error}");
            expect(false);
        }
    }
    let own =
        ["qdisc", "replace", "dev", "radio0", "root", "handle", "7:", "tbf", "rate", "1gbit", "burst", "1mb"];
    let own = Command::new("tc").args(own).args(["latency", "9ms"]).output().expect("tc runs");
    assert!(own.status.success(), "{own:?}");
    let error = start(KEYS);
    assert!(error.contains("shaper: radio0: the interface has a queueing discipline already"), "{error}");
    assert!(disciplines().is_some_and(|text| text.contains("tbf 7:")));
}
