//! Two kernels and a base station that splits their connections, over links that lose packets.
//!
//! The test runs itself again in a network namespace; each host is a thread in a namespace of its own:
//!
//! ```text
//! host 0 ── k0 ══ k1 ── emulator, with the proxy ── e1 ══ e0 ── host 1
//! ```
//!
//! `LASTHOP_TRANSFERS=1` sends 50 MB one way and 20 MB the other instead of 5 and 2 MB. Figures go to stdout.

use std::env;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use lasthop_live::{Emulation, Emulator, Interface, Report, Settings};
use lasthop_scenario::Scenario;
use lasthop_testing::namespace;
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::gettid;

/// The devices of the hosts and those of the emulator.
const DEVICES: [[&str; 2]; 2] = [["k0", "k1"], ["e0", "e1"]];

/// A last mile that loses packets in both directions.
const SCENARIO: &str = "
schemes = ['i-tcp', 'metp', 'vs-tcp', 'm-tcp']
[transfer]
size = 'unlimited'
[wired]
rate = '1 Gbps'
delay = '10 ms'
[radio]
rate = '100 Mbps'
delay = '1 ms'
queue = '200 packets'
channel.frame-loss.loss = LOSS
[scheme.i-tcp]
buffer = '1 MiB'
[scheme.m-tcp]
buffer = '1 MiB'
[scheme.metp]
recovery = 'selective-repeat'
[scheme.vs-tcp]
recovery = 'selective-repeat'
";

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("ip runs");
    assert!(status.success(), "ip {arguments}");
}

/// Whether this is the process in the namespace. Otherwise runs `test` there, if the machine allows.
fn is_inside(test: &str) -> bool {
    let is_inside = namespace::is_inside(test);
    if is_inside {
        // A failure ends the process, since the thread of the other host would wait for ever.
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            print(info);
            std::process::exit(101);
        }));
    }
    is_inside
}

/// Synchronises the thread of a host with the main thread.
struct Gate {
    made: Sender<i32>,
    go: Receiver<()>,
}

/// Puts this thread into a network namespace and configures its device once it is there.
fn enter(side: usize, gate: &Gate) {
    unshare(CloneFlags::CLONE_NEWNET).expect("privileges");
    gate.made.send(gettid().as_raw()).expect("the main thread waits");
    gate.go.recv().expect("the device is there");
    let device = DEVICES[side][0];
    ip("link set dev lo up");
    ip(&format!("link set dev {device} gso_max_segs 1 arp off"));
    ip(&format!("address add 10.0.0.{}/24 dev {device}", side + 1));
    ip(&format!("link set dev {device} up"));
}

/// Emulates while both hosts talk, each in its namespace.
fn emulate(scheme: &str, loss: f64, overrides: &[&str], hosts: [Box<dyn FnOnce() + Send>; 2]) -> Report {
    let text = SCENARIO.replace("LOSS", &loss.to_string());
    let scenario = Scenario::parse(&text, "test.toml", overrides).unwrap_or_else(|error| panic!("{error}"));
    let emulation = Emulation::new(&scenario, scheme, 1, 0).unwrap_or_else(|error| panic!("{error}"));
    for [device, ours] in DEVICES {
        ip(&format!("link add {device} address 02:00:00:00:00:01 type veth peer name {ours}"));
        ip(&format!("link set dev {ours} arp off up"));
    }
    thread::scope(|scope| {
        let mut gates = Vec::new();
        let mut running = Vec::new();
        for (side, host) in hosts.into_iter().enumerate() {
            let ((made, is_made), (pass, go)) = (channel(), channel());
            running.push(scope.spawn(move || {
                enter(side, &Gate { made, go });
                host();
            }));
            gates.push((is_made, pass));
        }
        for ([device, _], (is_made, _)) in DEVICES.into_iter().zip(&gates) {
            let thread = is_made.recv().expect("the host waits");
            ip(&format!("link set dev {device} netns {thread}"));
        }
        let interfaces = DEVICES.map(|[_, ours]| Interface::open(ours).expect("a device"));
        let settings =
            Settings { mtu: 1500, longest_wait: lasthop_base::Duration::from_secs(1), ..Settings::default() };
        let mut emulator = Emulator::new(emulation, interfaces, settings).expect("no capture");
        gates.iter().for_each(|(_, pass)| pass.send(()).expect("the host waits"));
        let stop = AtomicBool::new(false);
        thread::scope(|inner| {
            inner.spawn(|| emulator.run(|| !stop.load(Ordering::Relaxed)).expect("it runs"));
            let ended: Vec<_> = running.into_iter().map(|thread| thread.join()).collect();
            // The last segments are on their way.
            thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            assert!(ended.iter().all(Result::is_ok));
        });
        emulator.finish().expect("no capture")
    })
}

fn address(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// Connects as soon as the peer listens.
fn connect(address: SocketAddr) -> TcpStream {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The bytes of a stream are functions of their position, so that missing or misplaced bytes are detected.
fn pattern(key: u64, from: u64, len: usize) -> Vec<u8> {
    let byte = |at: u64| ((at ^ key << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (from..from + len as u64).map(byte).collect()
}

fn write(mut stream: &TcpStream, key: u64, size: u64) {
    let mut at = 0;
    while at < size {
        let bytes = pattern(key, at, (size - at).min(1 << 16) as usize);
        stream.write_all(&bytes).expect("no reset");
        at += bytes.len() as u64;
    }
    stream.shutdown(Shutdown::Write).expect("no reset");
}

fn check(mut stream: &TcpStream, key: u64, size: u64) {
    let (mut at, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        let len = stream.read(&mut buffer).expect("no reset");
        if len == 0 {
            break;
        }
        assert!(buffer[..len] == pattern(key, at, len), "the bytes from {at} on differ");
        at += len as u64;
    }
    assert_eq!(at, size);
}

/// Sends and receives at the same time.
fn exchange(stream: &TcpStream, [out, back]: [(u64, u64); 2]) {
    thread::scope(|scope| {
        scope.spawn(|| write(stream, out.0, out.1));
        check(stream, back.0, back.1);
    });
}

fn counter(report: &Report, name: &str) -> u64 {
    report.schemes[&format!("i-tcp.{name}")]
}

/// Sends and receives over one connection, with a loss of 1 %.
fn transfer(scheme: &str, scale: u64, overrides: &[&str]) -> Report {
    let (up, down) = ((1, 5 * scale), (2, 2 * scale));
    let server = move || {
        let listener = TcpListener::bind(address(1, 7000)).expect("a port");
        let (stream, peer) = listener.accept().expect("a connection");
        assert_eq!(peer.ip(), address(2, 1).ip(), "the proxy has the address of the other host");
        exchange(&stream, [down, up]);
    };
    let client = move || {
        let begin = Instant::now();
        exchange(&connect(address(1, 7000)), [up, down]);
        let seconds = begin.elapsed().as_secs_f64();
        println!("{} up and {} down in {seconds:.2} s, equal", up.1, down.1);
    };
    let report = emulate(scheme, 0.01, overrides, [Box::new(server), Box::new(client)]);
    println!("{report:?}");
    let counter = |name: &str| report.schemes[&format!("{scheme}.{name}")];
    assert_eq!(counter("connections"), 1);
    assert_eq!(counter("reset_connections") + counter("acknowledged_undelivered_bytes"), 0);
    assert!(counter("held_bytes_peak") <= 1 << 20);
    report
}

// Rule: Streams between two Linux hosts over links that lose packets; resets, refusals, closed windows and
// many connections at once. []
#[test]
fn every_byte_passes_between_two_kernels() {
    if !is_inside("split::every_byte_passes_between_two_kernels") {
        return;
    }
    let scale = if env::var("LASTHOP_TRANSFERS").is_ok() { 10_000_000 } else { 1_000_000 };
    let report = transfer("i-tcp", scale, &[]);
    assert!(report.lost_packets > 20, "{}", report.lost_packets);
}

/// Without congestion control, and with segments of variable size, on the wireless part.
// Rule: as every_byte_passes_between_two_kernels
#[test]
fn metp_serves_kernels() {
    if is_inside("split::metp_serves_kernels") {
        transfer("metp", 500_000, &[]);
    }
}

// Rule: as every_byte_passes_between_two_kernels
#[test]
fn vs_tcp_serves_kernels() {
    if is_inside("split::vs_tcp_serves_kernels") {
        transfer("vs-tcp", 500_000, &[]);
    }
}

/// With acknowledgements that wait for the other host, which is away for a second.
#[test]
fn m_tcp_serves_kernels() {
    if is_inside("split::m_tcp_serves_kernels") {
        // Short, since after the timeouts of an outage Linux may go on with one segment at a time (docs/guide/emulate.md).
        let report = transfer("m-tcp", 200_000, &["radio.outage={first='100 ms', lasts='1 s'}"]);
        assert!(report.duration_s > 1.1, "{}", report.duration_s);
    }
}

/// Refusals, resets, many connections at once, a slow reader, and protocols other than TCP.
// Rule: as every_byte_passes_between_two_kernels
#[test]
fn failures_windows_and_other_protocols_pass() {
    if !is_inside("split::failures_windows_and_other_protocols_pass") {
        return;
    }
    const ECHOES: usize = 60;
    const PAUSE: Duration = Duration::from_millis(1500);
    let server = || {
        let listener = TcpListener::bind(address(1, 7000)).expect("a port");
        thread::scope(|scope| {
            for _ in 0..ECHOES {
                let (stream, _) = listener.accept().expect("a connection");
                scope.spawn(move || {
                    let (mut bytes, mut stream) = (Vec::new(), stream);
                    stream.read_to_end(&mut bytes).expect("no reset");
                    stream.write_all(&bytes).expect("no reset");
                });
            }
        });
        // The client resets, then this host.
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a byte");
        assert_eq!(stream.read(&mut byte).expect_err("reset").kind(), ErrorKind::ConnectionReset);
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.read_exact(&mut byte).expect("a byte");
        // Closing with unread bytes sends a reset.
        thread::sleep(Duration::from_millis(300));
        drop(stream);
        // A slow reader.
        let (stream, _) = listener.accept().expect("a connection");
        thread::sleep(PAUSE);
        check(&stream, 5, 6_000_000);
        let datagrams = UdpSocket::bind(address(1, 7001)).expect("a port");
        let (len, peer) = datagrams.recv_from(&mut [0; 100]).expect("a datagram");
        datagrams.send_to(&vec![9; len], peer).expect("it is sent");
        // The namespace exists as long as this thread.
        thread::sleep(Duration::from_secs(1));
    };
    let client = || {
        // A port without a listener.
        let error = TcpStream::connect(address(1, 9)).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        // The first echo is empty.
        drop(connect(address(1, 7000)));
        thread::scope(|scope| {
            for number in 1..ECHOES as u64 {
                scope.spawn(move || {
                    let stream = connect(address(1, 7000));
                    let size = 1_000 * number;
                    exchange(&stream, [(number, size), (number, size)]);
                });
            }
        });
        let mut stream = connect(address(1, 7000));
        stream.write_all(&[1]).expect("no reset");
        thread::sleep(Duration::from_millis(300));
        let linger = nix::libc::linger { l_onoff: 1, l_linger: 0 };
        setsockopt(&stream, sockopt::Linger, &linger).expect("an option");
        drop(stream);
        let mut stream = connect(address(1, 7000));
        stream.write_all(&[1, 2, 3]).expect("no reset");
        assert_eq!(stream.read(&mut [0]).expect_err("reset").kind(), ErrorKind::ConnectionReset);
        let stream = connect(address(1, 7000));
        let begin = Instant::now();
        write(&stream, 5, 6_000_000);
        println!("6 MB to a reader that waits took {:.2} s to write", begin.elapsed().as_secs_f64());
        let datagrams = UdpSocket::bind(address(2, 7001)).expect("a port");
        datagrams.set_read_timeout(Some(Duration::from_secs(5))).expect("an option");
        thread::sleep(Duration::from_millis(500));
        datagrams.send_to(&[7; 50], address(1, 7001)).expect("it is sent");
        assert_eq!(datagrams.recv(&mut [0; 100]).expect("an answer"), 50);
        // The other host answers with "port unreachable" (ICMP).
        datagrams.connect(address(1, 9)).expect("an address");
        datagrams.send(&[7]).expect("it is sent");
        assert_eq!(datagrams.recv(&mut [0]).expect_err("unreachable").kind(), ErrorKind::ConnectionRefused);
    };
    let report = emulate("i-tcp", 0.0, &[], [Box::new(server), Box::new(client)]);
    println!("{report:?}");
    assert!(counter(&report, "connections") >= ECHOES as u64 + 3);
    assert!(counter(&report, "refused_connections") >= 1);
    assert!(counter(&report, "reset_connections") >= 2);
}
