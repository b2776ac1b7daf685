//! What the observer records of flows between hosts.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use lasthop_gateway::report::rows::{self, Arm, End, FlowRow, Line, Outcome};

use super::hosts::{CLIENT, Host, Network, PATIENCE, SERVER, connect, echo, nft};
use super::report::harmful;

/// Sends `len` bytes, and reads as many back, in each of `count` flows to each address of a host.
fn exchange(host: &Host, hosts: [&'static str; 2], count: usize, len: usize) {
    host.run(move || {
        for address in hosts.into_iter().cycle().take(2 * count) {
            let mut stream = connect(address, 7000).expect("a listener");
            stream.write_all(&vec![5; len]).expect("it is read");
            stream.shutdown(Shutdown::Write).expect("it is open");
            let mut echoed = Vec::new();
            stream.read_to_end(&mut echoed).expect("an end");
            assert_eq!(echoed.len(), len);
        }
    });
}

fn written(path: &Path) -> Vec<Line> {
    let mut lines = Vec::new();
    rows::read(path, |line| lines.push(line.clone())).expect("a file");
    lines
}

/// Waits for so many flows.
fn flows(path: &Path, count: usize) -> Vec<FlowRow> {
    let flows = || -> Vec<FlowRow> {
        let lines = written(path).into_iter();
        lines.filter_map(|line| if let Line::Flow(row) = line { Some(*row) } else { None }).collect()
    };
    let end = Instant::now() + PATIENCE;
    while flows().len() < count && Instant::now() < end {
        thread::sleep(Duration::from_millis(20));
    }
    flows()
}

fn file(network: &Network) -> PathBuf {
    network.directory().join("flows.jsonl")
}

#[test]
fn both_arms_are_recorded_alike() {
    const COUNT: usize = 20;
    const LEN: usize = 70_000;
    let Some(network) = Network::of("observation::both_arms_are_recorded_alike") else { return };
    let path = file(&network);
    let rule = "[[match]]\nports = [7001]\nscheme = \"basic\"";
    let gateway = network.start(&format!("unhelped = 0.5\nflows = {path:?}\n{rule}"));
    // Opened from either side; those towards the radio behind NAT, where there is nft.
    let masquerade = "table inet nat {\n chain out {\n type nat hook postrouting priority 100\n oifname radio0 masquerade\n }\n}\n";
    nft(masquerade);
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let _others = network.server.run(|| echo(SERVER, 7001));
    let _clients = network.client.run(|| echo(CLIENT, 7000));
    let began = Instant::now();
    exchange(&network.client, SERVER, COUNT, LEN);
    exchange(&network.server, CLIENT, COUNT, LEN);
    network.client.run(|| connect(SERVER[0], 7001).expect("a listener"));
    // None takes longer than all, one after the other.
    let all_s = began.elapsed().as_secs_f64();

    let flows = flows(&path, 4 * COUNT);
    assert_eq!(flows.len(), 4 * COUNT);
    for flow in &flows {
        assert_eq!((flow.bytes_to_client, flow.bytes_to_server), (LEN as u64, LEN as u64), "{flow:?}");
        assert_eq!((flow.outcome, flow.class.as_str(), flow.unhelped), (Outcome::Closed, "port 7000", 0.5));
        // On a busy machine, the hosts may send some again.
        assert_eq!(flow.sent_bytes - flow.retransmitted_bytes, LEN as u64, "{flow:?}");
        assert!(flow.retransmitted_bytes < LEN as u64 && flow.repaired_bytes < LEN as u64, "{flow:?}");
        let active_s = flow.active_s.expect("progress");
        assert!(active_s > 0.0 && active_s < all_s, "{flow:?}");
        // Shorter than what the observer is late, it is unknown.
        assert!(flow.radio_rtt_s.is_none_or(|rtt_s| rtt_s > 0.0 && rtt_s < all_s), "{flow:?}");
        assert!(flow.wired_rtt_s.is_some_and(|rtt_s| rtt_s < all_s), "{flow:?}");
        assert_eq!(
            flow.behind == End::Client,
            CLIENT.contains(&flow.client.ip().to_string().as_str()),
            "{flow:?}"
        );
        assert!(flow.first_byte_s.is_some_and(|first_s| first_s <= active_s), "{flow:?}");
    }
    let helped = flows.iter().filter(|flow| flow.arm == Arm::Helped).count();
    assert_eq!(helped as u64, gateway.count("split"), "the arms are those of the kernel");
    assert!((COUNT..3 * COUNT).contains(&helped), "{helped}");
    let reported = gateway.report();
    assert!(reported.contains("There are too few flows to compare yet."), "{reported}");
}

#[test]
fn harm_stops_help_until_a_reload() {
    let Some(network) = Network::of("observation::harm_stops_help_until_a_reload") else { return };
    let path = file(&network);
    let keys = format!("unhelped = 0.5\nflows = {path:?}");
    let first = network.start(&keys);
    drop(first);
    // As if it had seen flows that help makes slower.
    let mut text = fs::read_to_string(&path).expect("a file");
    let Some(Line::Start(settings)) = written(&path).first().cloned() else { panic!("{text}") };
    for row in harmful(settings.time_s) {
        text += &(serde_json::to_string(&Line::Flow(Box::new(row))).expect("a line") + "\n");
    }
    fs::write(&path, text).expect("a file");
    let gateway = network.start(&keys);
    let end = Instant::now() + PATIENCE;
    while gateway.status()["stopped_s"].is_null() {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        thread::sleep(Duration::from_millis(50));
    }
    let _servers = network.server.run(|| echo(SERVER, 7000));
    exchange(&network.client, SERVER, 10, 100);
    assert_eq!(gateway.count("split"), 0);
    assert!(gateway.count("passed_by_harm") > 0);
    assert!(gateway.report().starts_with("i-tcp does harm: it was stopped."), "{}", gateway.report());
    assert!(matches!(
        written(&path).iter().rev().find(|line| !matches!(line, Line::Flow(_))),
        Some(Line::Stop { .. })
    ));

    // A restart and a successor go on with that.
    drop(gateway);
    let first = network.start(&keys);
    exchange(&network.client, SERVER, 10, 100);
    let gateway = network.start_with(&keys, &["--replace"]);
    exchange(&network.client, SERVER, 10, 100);
    drop(first);
    assert_eq!(gateway.count("split"), 0);
    assert!(gateway.count("passed_by_harm") > 0);
    assert!(!gateway.status()["stopped_s"].is_null());

    gateway.reload().expect("a valid file");
    exchange(&network.client, SERVER, 10, 100);
    assert!(gateway.count("split") > 0);
    assert!(gateway.status()["stopped_s"].is_null());
}

#[test]
fn no_thread_has_privileges_beyond_those_of_networks() {
    let Some(network) = Network::of("observation::no_thread_has_privileges_beyond_those_of_networks") else {
        return;
    };
    let gateway = network.start(&format!("unhelped = 0.5\nflows = {:?}\nthreads = 1", file(&network)));
    gateway.status();
    // CAP_NET_BIND_SERVICE, CAP_NET_ADMIN and CAP_NET_RAW.
    let kept = 1 << 10 | 1 << 12 | 1 << 13;
    let mut names = Vec::new();
    for thread in fs::read_dir(format!("/proc/{}/task", gateway.child.id())).expect("threads") {
        let status = fs::read_to_string(thread.expect("a thread").path().join("status")).expect("a status");
        let of = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).expect("a key").trim();
        names.push(of("Name:").to_owned());
        assert_eq!(of("NoNewPrivs:"), "1", "{status}");
        for key in ["CapPrm:", "CapEff:"] {
            assert_eq!(u64::from_str_radix(of(key), 16).expect("a set"), kept, "{status}");
        }
    }
    assert!(names.iter().any(|name| name == "observer"), "{names:?}");
}

#[test]
fn flows_of_which_reports_were_lost_are_left_out() {
    let Some(network) = Network::of("observation::flows_of_which_reports_were_lost_are_left_out") else {
        return;
    };
    let path = file(&network);
    // So that flows pass while its process stands still.
    let gateway = network.start_with(&format!("unhelped = 0.5\nflows = {path:?}"), &["--observe"]);
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let talk = |mut stream: TcpStream, count| {
        network.client.run(move || {
            for _ in 0..count {
                stream.write_all(&[1]).expect("it is read");
                stream.read_exact(&mut [0]).expect("an echo");
            }
            stream
        })
    };
    let stream = talk(network.client.run(|| connect(SERVER[0], 7000).expect("a listener")), 1);
    let client = stream.local_addr().expect("an address");
    let process = Pid::from_raw(gateway.child.id() as i32);
    kill(process, Signal::SIGSTOP).expect("it runs");
    let mut stream = talk(stream, 20_000);
    kill(process, Signal::SIGCONT).expect("it runs");
    // Until the observer has read on to a later packet: flows that begin before are left out as well.
    let end = Instant::now() + PATIENCE;
    while gateway.count("unreported") == 0 {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        stream = talk(stream, 1);
    }
    drop(stream);
    exchange(&network.client, SERVER, 1, 100);
    let flows = flows(&path, 2);
    assert_eq!(flows.len(), 2);
    assert!(flows.iter().all(|flow| flow.client != client), "{flows:?}");
    assert!(gateway.count("unreported") > 0);
}

/// Neither arm waits for the gateway's process, which stands still here.
#[test]
fn observation_holds_nothing() {
    let Some(network) = Network::of("observation::observation_holds_nothing") else { return };
    let gateway = network.start_with("unhelped = 0.5", &["--observe"]);
    let _servers = network.server.run(|| echo(SERVER, 7000));
    let process = Pid::from_raw(gateway.child.id() as i32);
    kill(process, Signal::SIGSTOP).expect("it runs");
    exchange(&network.client, SERVER, 10, 100);
    kill(process, Signal::SIGCONT).expect("it runs");
    let end = Instant::now() + PATIENCE;
    loop {
        let (status, watched) = (gateway.status(), gateway.count("watched"));
        let [flows, observed] = ["flows", "observed"].map(|counter| gateway.count(counter));
        let unhelped = status["unhelped_flows"].as_u64().expect("a count");
        // The kernel has counted either arm, and the observer seen both.
        if (observed + unhelped, flows, watched) == (20, observed, 20) {
            break;
        }
        assert!(Instant::now() < end, "{status:#}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_reload_can_begin_to_observe() {
    let Some(network) = Network::of("observation::a_reload_can_begin_to_observe") else { return };
    let gateway = network.start("unhelped = 0");
    let _servers = network.server.run(|| echo(SERVER, 7000));
    exchange(&network.client, SERVER, 2, 100);
    assert_eq!(gateway.count("watched"), 0);
    network.write("unhelped = 0.5\nobserved = 0.999");
    gateway.reload().expect("a valid file");
    exchange(&network.client, SERVER, 20, 100);
    // The file says that one of a thousand is not, and the first may begin before the observer reads.
    let end = Instant::now() + PATIENCE;
    while gateway.count("watched") < 30 {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        thread::sleep(Duration::from_millis(20));
    }
    assert!(gateway.count("watched") <= 40, "{:#}", gateway.status());
}

#[test]
fn the_page_is_for_those_who_name_the_loopback() {
    let Some(network) = Network::of("observation::the_page_is_for_those_who_name_the_loopback") else {
        return;
    };
    let _gateway = network.start("metrics = \"127.0.0.1:9330\"");
    // More than are answered at once: who asks nothing keeps nobody waiting for long.
    let _idle: Vec<_> = (0..20).map(|_| connect("127.0.0.1", 9330).expect("a listener")).collect();
    for (host, expected) in [("localhost:9330", "HTTP/1.1 200 OK"), ("site.example:9330", "HTTP/1.1 421 ")] {
        let mut stream = connect("127.0.0.1", 9330).expect("a listener");
        write!(stream, "GET /status.json HTTP/1.1\r\nhost: {host}\r\n\r\n").expect("it is read");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with(expected), "{answer}");
        assert_eq!(answer.contains("radio0"), host.starts_with("localhost"), "{answer}");
    }
}
