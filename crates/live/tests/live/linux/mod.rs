//! Our TCP and that of the kernel, in both roles, over an emulated link that loses packets, and a host that duplicates and
//! reorders them.
//!
//! The test runs itself again in a network namespace with two pairs of virtual devices:
//!
//! ```text
//! kernel ── k0 ══ k1 ── emulator ── e0 ══ e1 ── driver, endpoint
//! ```
//!
//! `LASTHOP_TRANSFERS=0..100` makes transfers with these seeds, of 1 to 50 MB instead of 1 to 5 MB in each direction. A line for each
//! goes to stdout.

mod frames;

use std::env;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use lasthop_base::{Bytes, Duration, Stream, Streams};
use lasthop_endpoint::{Config, End, Endpoint, Secret, StateName};
use lasthop_live::{Driver, Emulation, Emulator, Interface, Link, Settings, now};
use lasthop_proto::tcp::{EcnMode, Profile};
use lasthop_scenario::Scenario;
use lasthop_testing::namespace;
use nix::sys::socket::{setsockopt, sockopt};

/// All devices have this hardware address, so that frames pass as they are.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

const DEVICES: &str = "
link set dev lo up
link add k0 address 02:00:00:00:00:01 type veth peer name k1
link add e0 type veth peer name e1
link set dev k0 gso_max_segs 1 arp off
address add 10.0.0.1/24 dev k0
link set dev k0 up
link set dev k1 up
link set dev e0 up
link set dev e1 up
address add fd00::1/64 dev k0 nodad
";

/// Whether this is the process in the namespace, with its devices. Otherwise runs `test` there, if the machine allows.
fn is_inside(test: &str) -> bool {
    let is_inside = namespace::is_inside(test);
    for command in DEVICES.lines().filter(|line| is_inside && !line.is_empty()) {
        let status = Command::new("ip").args(command.split(' ')).status().expect("ip runs");
        // There may be no IPv6.
        assert!(status.success() || command.contains("fd00"), "ip {command}");
    }
    is_inside
}

/// A host's interface that sends some packets twice, and some only after the next.
struct Careless {
    interface: Interface,
    random: Stream,
    duplication: f64,
    reordering: f64,
    held: Option<Vec<u8>>,
}

impl AsFd for Careless {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.interface.as_fd()
    }
}

impl Link for Careless {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        Link::receive(&mut self.interface, buffer)
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        if self.held.is_none() && self.random.bernoulli(self.reordering) {
            self.held = Some(frame.to_vec());
            return Ok(());
        }
        Link::send(&mut self.interface, frame)?;
        if self.random.bernoulli(self.duplication) {
            Link::send(&mut self.interface, frame)?;
        }
        match self.held.take() {
            Some(held) => Link::send(&mut self.interface, &held),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Transfer {
    seed: u64,
    is_v4: bool,
    we_open: bool,
    loss: f64,
    /// Also of reordering.
    duplication: f64,
    /// Whether both applications stop reading for a while, so that windows close.
    pauses: bool,
    /// Whether the kernel sends super-packets, to an emulator that is a wire.
    offloads: bool,
    /// Bytes from us, and to us.
    sizes: [u64; 2],
}

/// How long an application does not read.
const PAUSE: Duration = Duration::from_millis(700);

/// A receive buffer that fills meanwhile.
const SMALL_BUFFER: u32 = 1 << 16;

/// A stream whose bytes depend on their place, so that none can be missing or in another's place.
struct Pattern {
    seed: u64,
    at: u64,
    end: u64,
}

impl Pattern {
    fn new(seed: u64, end: u64) -> Pattern {
        Pattern { seed, at: 0, end }
    }

    /// The next bytes, at most `most`, without taking them.
    fn next(&self, most: usize) -> Vec<u8> {
        let until = self.end.min(self.at + most as u64);
        let byte = |at: u64| ((at ^ self.seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        (self.at..until).map(byte).collect()
    }

    fn check(&mut self, bytes: &[u8]) {
        assert!(self.next(bytes.len()) == bytes, "the bytes from {} on differ", self.at);
        self.at += bytes.len() as u64;
    }
}

fn kernel(transfer: &Transfer, address: SocketAddr, listener: Option<TcpListener>) {
    let stream = match listener {
        Some(listener) => listener.accept().expect("a connection").0,
        None => TcpStream::connect(address).expect("a connection"),
    };
    let [from_us, to_us] = transfer.sizes;
    if transfer.pauses {
        setsockopt(&stream, sockopt::RcvBuf, &(SMALL_BUFFER as usize)).expect("an option");
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            if transfer.pauses {
                thread::sleep(std::time::Duration::from_nanos(PAUSE.as_nanos()));
            }
            let mut pattern = Pattern::new(2 * transfer.seed, from_us);
            let mut buffer = vec![0; 1 << 16];
            loop {
                let len = (&stream).read(&mut buffer).expect("no reset");
                if len == 0 {
                    break;
                }
                pattern.check(&buffer[..len]);
            }
            assert_eq!(pattern.at, from_us);
        });
        let mut pattern = Pattern::new(2 * transfer.seed + 1, to_us);
        while pattern.at < pattern.end {
            let bytes = pattern.next(1 << 16);
            (&stream).write_all(&bytes).expect("no reset");
            pattern.at += bytes.len() as u64;
        }
        stream.shutdown(Shutdown::Write).expect("no reset");
    });
}

fn drive(transfer: &Transfer, ours: SocketAddr, theirs: SocketAddr, link: Careless) {
    let profiles = [Profile::Linux, Profile::LinuxBbr, Profile::Freebsd, Profile::Rfc];
    let mut settings = profiles[transfer.seed as usize % 4].settings();
    settings.user_timeout = Some(Duration::from_secs(120));
    settings.ecn = if transfer.seed.is_multiple_of(3) { EcnMode::Classic } else { EcnMode::Off };
    if transfer.pauses {
        settings.window = Bytes(SMALL_BUFFER.into()).into();
    }
    let config = Config { settings, time_wait: Duration::from_millis(300), ..Config::default() };
    let secret = Secret::draw(&mut Streams::new(transfer.seed, 0).stream("secret"));
    let endpoint = if transfer.we_open {
        Endpoint::connect(now(), config, ours, theirs, secret)
    } else {
        Endpoint::listen(config, ours, secret)
    };
    let mut driver = Driver::new(endpoint, link, [MAC; 2]);
    let [from_us, to_us] = transfer.sizes;
    let mut write = Pattern::new(2 * transfer.seed, from_us);
    let mut read = Pattern::new(2 * transfer.seed + 1, to_us);
    let mut buffer = vec![0; 1 << 16];
    let reads_from = if transfer.pauses { now() + PAUSE } else { now() };
    loop {
        let endpoint = driver.endpoint();
        let len = endpoint.send(now(), &write.next(endpoint.writable().min(1 << 16)));
        write.at += len as u64;
        if write.at == from_us
            && endpoint.state() != StateName::Listen
            && endpoint.state() != StateName::SynSent
        {
            endpoint.shutdown(now());
        }
        while endpoint.readable() > 0 && now() >= reads_from {
            let len = endpoint.read(now(), &mut buffer);
            read.check(&buffer[..len]);
        }
        if let Some(end) = endpoint.end() {
            assert_eq!((end, read.at), (End::Closed, to_us), "{transfer:?}");
            return;
        }
        driver.turn(Duration::from_millis(100)).expect("a link");
    }
}

fn run(transfer: &Transfer) {
    let scenario = format!(
        "schemes = ['basic']
        [transfer]
        size = 'unlimited'
        [wired]
        rate = '1 Gbps'
        delay = '1 ms'
        [radio]
        rate = '100 Mbps'
        delay = '1 ms'
        queue = '200 packets'
        channel.frame-loss.loss = {}",
        transfer.loss
    );
    let scenario =
        Scenario::parse(&scenario, "test.toml", &[] as &[&str]).unwrap_or_else(|error| panic!("{error}"));
    let emulation =
        Emulation::new(&scenario, "basic", transfer.seed, 0).unwrap_or_else(|error| panic!("{error}"));
    let most = if transfer.offloads { "65535" } else { "1" };
    let status = Command::new("ip").args(["link", "set", "dev", "k0", "gso_max_segs", most]).status();
    assert!(status.expect("ip runs").success());
    let open = if transfer.offloads { Interface::open_port } else { Interface::open };
    let interfaces = ["k1", "e0"].map(|name| open(name).expect("a device"));
    let longest_wait = Duration::from_secs(1);
    let settings = Settings { longest_wait, whole_frames: transfer.offloads, ..Settings::default() };
    let mut emulator = Emulator::new(emulation, interfaces, settings).expect("no capture");
    let link = Careless {
        interface: Interface::open("e1").expect("a device"),
        random: Streams::new(transfer.seed, 0).stream("host"),
        duplication: transfer.duplication,
        reordering: transfer.duplication,
        held: None,
    };
    let network = if transfer.is_v4 { "10.0.0." } else { "[fd00::" };
    let closing = if transfer.is_v4 { "" } else { "]" };
    // No port is used twice: the kernel remembers those of connections that it has closed.
    let port = 2000 + transfer.seed;
    let [theirs, ours] =
        ["1", "2"].map(|host| format!("{network}{host}{closing}:{port}").parse().expect("an address"));
    let listener = transfer.we_open.then(|| TcpListener::bind(theirs).expect("a port"));
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| emulator.run(|| !stop.load(Ordering::Relaxed)).expect("it runs"));
        let kernel = scope.spawn(|| kernel(transfer, ours, listener));
        let driver = scope.spawn(|| drive(transfer, ours, theirs, link));
        let ended = [kernel, driver].map(|thread| thread.join());
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok), "{transfer:?}");
    });
    let report = emulator.finish().expect("no capture");
    assert_eq!(report.unforwarded.oversized, 0);
    let super_packets = report.segmented_packets;
    assert!(if transfer.offloads { super_packets > 20 } else { super_packets == 0 }, "{super_packets}");
    let Transfer { seed, is_v4, we_open, loss, duplication, pauses, sizes: [from_us, to_us], .. } = transfer;
    println!(
        "{seed} {} {} loss {loss:.3} duplication {duplication:.3} sent {from_us} received {to_us} in {:.2} s{}, \
         {super_packets} super-packets",
        if *is_v4 { "IPv4" } else { "IPv6" },
        if *we_open { "connects" } else { "listens" },
        begin.elapsed().as_secs_f64(),
        if *pauses { ", with a pause" } else { "" },
    );
}

// Rule: Streams to and from Linux, in both roles, over an emulated link; resets and keep-alive. []
#[test]
fn every_byte_to_and_from_the_kernel_arrives() {
    if !is_inside("linux::every_byte_to_and_from_the_kernel_arrives") {
        return;
    }
    let has_v6 = TcpListener::bind("[fd00::1]:1").is_ok();
    let (seeds, largest) = match env::var("LASTHOP_TRANSFERS") {
        Ok(seeds) => {
            let (first, end) = seeds.split_once("..").expect("such as 0..100");
            (first.parse().expect("a number")..end.parse().expect("a number"), 50.0)
        }
        Err(_) => (0..6, 5.0),
    };
    for seed in seeds {
        let mut random = Streams::new(seed, 0).stream("transfer");
        let mut size = || (1e6 * f64::powf(largest, random.uniform())) as u64;
        let sizes = [size(), size()];
        run(&Transfer {
            seed,
            is_v4: !has_v6 || seed % 3 != 1,
            we_open: seed % 2 == 0,
            loss: [0.0, 0.01, 0.05, 0.002, 0.02][seed as usize % 5],
            duplication: if seed % 4 == 3 { 0.0 } else { 0.01 },
            pauses: seed % 3 == 2,
            offloads: seed % 2 == 1,
            sizes,
        });
    }
}

/// An endpoint on the other end of the kernel's device.
fn beside_the_kernel(endpoint: Endpoint) -> Driver {
    Driver::new(endpoint, Interface::open("k1").expect("a device"), [MAC; 2])
}

/// Lets the endpoint run until `holds`.
fn until(driver: &mut Driver, holds: impl Fn(&Endpoint) -> bool) {
    let deadline = now() + Duration::from_secs(20);
    while !holds(driver.endpoint()) {
        assert!(now() < deadline, "{:?}", driver.endpoint().state());
        driver.turn(Duration::from_millis(50)).expect("a link");
    }
}

// Rule: as every_byte_to_and_from_the_kernel_arrives
#[test]
fn refusals_and_resets_pass_in_both_directions() {
    if !is_inside("linux::refusals_and_resets_pass_in_both_directions") {
        return;
    }
    let address = |host: u8, port: u16| SocketAddr::from(([10, 0, 0, host], port));
    let secret = Secret::draw(&mut Streams::new(1, 0).stream("secret"));
    let connect = |ours, theirs| Endpoint::connect(now(), Config::default(), ours, theirs, secret.clone());

    let mut driver = beside_the_kernel(connect(address(2, 1000), address(1, 7)));
    until(&mut driver, |endpoint| endpoint.end() == Some(End::Refused));

    // The kernel asks for a port at which nobody listens.
    let mut driver = beside_the_kernel(Endpoint::listen(Config::default(), address(2, 1001), secret.clone()));
    thread::scope(|scope| {
        let asking = scope.spawn(|| TcpStream::connect(address(2, 9)).expect_err("refused").kind());
        while !asking.is_finished() {
            driver.turn(Duration::from_millis(10)).expect("a link");
        }
        assert_eq!(asking.join().expect("no panic"), io::ErrorKind::ConnectionRefused);
    });

    let listener = TcpListener::bind(address(1, 1002)).expect("a port");
    let mut driver = beside_the_kernel(connect(address(2, 1002), address(1, 1002)));
    until(&mut driver, |endpoint| endpoint.state() == StateName::Established);
    driver.endpoint().send(now(), b"never read");
    until(&mut driver, |endpoint| endpoint.sender().is_some_and(|sender| sender.acknowledged() == 10));
    drop(listener.accept().expect("a connection"));
    until(&mut driver, |endpoint| endpoint.end() == Some(End::Reset));

    let mut driver = beside_the_kernel(connect(address(2, 1003), address(1, 1002)));
    until(&mut driver, |endpoint| endpoint.state() == StateName::Established);
    let (mut stream, _) = listener.accept().expect("a connection");
    driver.endpoint().abort(now());
    driver.turn(Duration::ZERO).expect("a link");
    let error = stream.read(&mut [0]).expect_err("reset");
    assert_eq!((error.kind(), driver.endpoint().end()), (io::ErrorKind::ConnectionReset, Some(End::Aborted)));
}

// Rule: as every_byte_to_and_from_the_kernel_arrives
#[test]
fn the_kernel_keeps_an_idle_connection_alive_and_learns_of_its_end() {
    if !is_inside("linux::the_kernel_keeps_an_idle_connection_alive_and_learns_of_its_end") {
        return;
    }
    let address = |host: u8, port: u16| SocketAddr::from(([10, 0, 0, host], port));
    let secret = Secret::draw(&mut Streams::new(1, 0).stream("secret"));
    let listener = TcpListener::bind(address(1, 1000)).expect("a port");
    let (ours, theirs) = (address(2, 1000), address(1, 1000));
    let mut driver =
        beside_the_kernel(Endpoint::connect(now(), Config::default(), ours, theirs, secret.clone()));
    until(&mut driver, |endpoint| endpoint.state() == StateName::Established);
    let (mut stream, _) = listener.accept().expect("a connection");
    setsockopt(&stream, sockopt::KeepAlive, &true).expect("an option");
    setsockopt(&stream, sockopt::TcpKeepIdle, &1).expect("an option");
    setsockopt(&stream, sockopt::TcpKeepInterval, &1).expect("an option");
    setsockopt(&stream, sockopt::TcpKeepCount, &2).expect("an option");
    let begin = Instant::now();
    while begin.elapsed().as_secs() < 4 {
        driver.turn(Duration::from_millis(50)).expect("a link");
    }
    (&stream).write_all(b"still there").expect("no reset");
    until(&mut driver, |endpoint| endpoint.readable() == 11);
    // An endpoint that has forgotten the connection, as after a restart of its host.
    let mut driver = beside_the_kernel(Endpoint::listen(Config::default(), ours, secret));
    driver.endpoint().shutdown(now());
    thread::scope(|scope| {
        let reading = scope.spawn(|| stream.read(&mut [0]).expect_err("reset").kind());
        while !reading.is_finished() {
            driver.turn(Duration::from_millis(10)).expect("a link");
        }
        assert_eq!(reading.join().expect("no panic"), io::ErrorKind::ConnectionReset);
    });
}
