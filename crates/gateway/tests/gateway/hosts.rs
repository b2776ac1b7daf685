//! A client and a server, each with a kernel's network of its own, and the gateway between them.
//!
//! ```text
//! client (10.1.0.2, fd01::2) ── radio0 ── gateway ── wired0 ── server (10.2.0.2, fd02::2)
//! ```
//!
//! A test runs itself again in a network namespace, which is the gateway's; each host is a thread in a namespace of its own.

use std::any::Any;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use lasthop_testing::namespace;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, gettid};
use serde_json::Value;

/// The processes of gateways.
static GATEWAYS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// How long anything may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("ip runs");
    assert!(status.success(), "ip {arguments}");
}

/// Gives rules to the kernel of this host; returns false, and says so, if there is no nft.
pub(crate) fn nft(rules: &str) -> bool {
    let Ok(mut nft) = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn() else {
        println!("skipped: there is no nft here");
        return false;
    };
    nft.stdin.take().expect("a pipe").write_all(rules.as_bytes()).expect("it is read");
    assert!(nft.wait().expect("it ends").success(), "{rules}");
    true
}

type Task = Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>;

/// A host: a thread in a network namespace, which does what it is told.
pub(crate) struct Host {
    tasks: Sender<Task>,
    results: Receiver<Box<dyn Any + Send>>,
    thread: i32,
}

impl Host {
    pub(crate) fn new() -> Host {
        let ((tasks, told), (tell, results), (made, id)) = (channel::<Task>(), channel(), channel());
        thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).expect("privileges");
            made.send(gettid().as_raw()).expect("the main thread waits");
            for task in told {
                tell.send(task()).expect("the main thread waits");
            }
        });
        Host { tasks, results, thread: id.recv().expect("a thread") }
    }

    /// The number of the thread, by which `ip` names its namespace.
    pub(crate) fn thread(&self) -> i32 {
        self.thread
    }

    /// What `task` returns, run at this host. Threads that it starts are there as well.
    pub(crate) fn run<T: Send + 'static>(&self, task: impl FnOnce() -> T + Send + 'static) -> T {
        self.tasks.send(Box::new(move || Box::new(task()))).expect("the host runs");
        *self.results.recv().expect("the task ends").downcast().expect("its result")
    }
}

/// The network: two hosts, and the namespace of this process between them.
pub(crate) struct Network {
    pub(crate) client: Host,
    pub(crate) server: Host,
    directory: PathBuf,
}

pub(crate) const CLIENT: [&str; 2] = ["10.1.0.2", "fd01::2"];
pub(crate) const SERVER: [&str; 2] = ["10.2.0.2", "fd02::2"];

pub(crate) fn address(host: &str, port: u16) -> SocketAddr {
    SocketAddr::new(host.parse::<IpAddr>().expect("an address"), port)
}

impl Network {
    /// The network, in the process that has a namespace of its own for the test of this name; `None` elsewhere.
    pub(crate) fn of(test: &str) -> Option<Network> {
        if !namespace::is_inside(test) {
            return None;
        }
        // A failure ends the process, since hosts would wait for ever, and gateways run on.
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            print(info);
            for gateway in GATEWAYS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                let _ = kill(Pid::from_raw(*gateway as i32), Signal::SIGKILL);
            }
            std::process::exit(101);
        }));
        let [client, server] = [(); 2].map(|()| Host::new());
        for (number, host, device) in [(1, &client, "radio0"), (2, &server, "wired0")] {
            ip(&format!("link add {device} type veth peer name host{number}"));
            ip(&format!("link set host{number} netns {}", host.thread));
            ip(&format!("address add 10.{number}.0.1/24 dev {device}"));
            ip(&format!("address add fd0{number}::1/64 dev {device} nodad"));
            ip(&format!("link set {device} up"));
            host.run(move || {
                ip("link set lo up");
                ip(&format!("address add 10.{number}.0.2/24 dev host{number}"));
                ip(&format!("address add fd0{number}::2/64 dev host{number} nodad"));
                ip(&format!("link set host{number} up"));
                ip(&format!("route add default via 10.{number}.0.1"));
                ip(&format!("-6 route add default via fd0{number}::1"));
            });
        }
        // Until both versions of IP work between the hosts and their router.
        for (number, host) in [(1, &client), (2, &server)] {
            for router in [format!("10.{number}.0.1"), format!("fd0{number}::1")] {
                host.run(move || {
                    let end = Instant::now() + PATIENCE;
                    let attempt =
                        || TcpStream::connect_timeout(&address(&router, 1), Duration::from_millis(100));
                    while !attempt().is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused) {
                        assert!(Instant::now() < end, "{router} is silent");
                    }
                });
            }
        }
        ip("link set lo up");
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            fs::write(format!("/proc/sys/net/{key}"), "1").expect("a router");
        }
        let directory = std::env::temp_dir().join(format!("lasthop-gateway-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        Some(Network { client, server, directory })
    }

    /// The directory of its files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A gateway with `keys` in `[gateway]` and what follows it.
    pub(crate) fn start(&self, keys: &str) -> Gateway {
        self.start_with(keys, &[])
    }

    pub(crate) fn start_with(&self, keys: &str, options: &[&str]) -> Gateway {
        Gateway::run(self.write(keys), options)
    }

    /// Writes the file of the gateway.
    pub(crate) fn write(&self, keys: &str) -> PathBuf {
        let file = self.directory.join("gateway.toml");
        let control = self.directory.join("control");
        let text = format!("[gateway]\nradio = [\"radio0\"]\ncontrol = {control:?}\n{keys}\n");
        fs::write(&file, text).expect("a file");
        file
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A running gateway.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    file: PathBuf,
    log: BufReader<ChildStderr>,
}

impl Gateway {
    /// One with this file, at the host where this is called.
    pub(crate) fn run(file: PathBuf, options: &[&str]) -> Gateway {
        Gateway::run_managed(file, options, None)
    }

    /// As [`run`](Gateway::run), with the socket of a service manager.
    pub(crate) fn run_managed(file: PathBuf, options: &[&str], manager: Option<&Path>) -> Gateway {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"))
            .arg("run")
            .arg(&file)
            .args(options)
            .envs(manager.map(|socket| ("NOTIFY_SOCKET", socket)))
            .stderr(Stdio::piped())
            .spawn()
            .expect("the gateway runs");
        GATEWAYS.lock().unwrap_or_else(PoisonError::into_inner).push(child.id());
        let mut log = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut all = String::new();
        while !all.contains("\"event\":\"started\"") {
            let before = all.len();
            log.read_line(&mut all).expect("a log");
            assert!(all.len() > before, "the gateway has ended: {all}");
        }
        Gateway { child, file, log }
    }

    pub(crate) fn ask(&self, command: &str, options: &[&str]) -> (bool, String) {
        let mut line = Command::new(env!("CARGO_BIN_EXE_lasthop-gateway"));
        let output = line.arg(command).arg(&self.file).args(options).output().expect("it runs");
        let text = if output.status.success() { output.stdout } else { output.stderr };
        (output.status.success(), String::from_utf8(text).expect("text"))
    }

    pub(crate) fn status(&self) -> Value {
        let (is_good, text) = self.ask("status", &["--json"]);
        assert!(is_good, "{text}");
        serde_json::from_str(&text).expect("JSON")
    }

    /// What help gains, as text.
    pub(crate) fn report(&self) -> String {
        let (is_good, text) = self.ask("report", &[]);
        assert!(is_good, "{text}");
        text
    }

    pub(crate) fn reload(&self) -> Result<(), String> {
        let (is_good, text) = self.ask("reload", &[]);
        if is_good { Ok(()) } else { Err(text) }
    }

    pub(crate) fn count(&self, counter: &str) -> u64 {
        self.status()["counters"][counter].as_u64().unwrap_or_else(|| panic!("a counter {counter}"))
    }

    /// Checks that its memory is bounded: 20 kB for each of so many flows, as for 10,000 in 200 MB, and as much as it has without any.
    pub(crate) fn expect_small(&self, flows: usize) {
        const WITHOUT: usize = 32_000;
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
        let resident: usize = line.trim_end_matches("kB").trim().parse().expect("a number");
        println!("{resident} kB with {flows} flows");
        assert!(resident < WITHOUT + 20 * flows, "{resident} kB with {flows} flows");
    }

    /// Waits until the counter has the value.
    pub(crate) fn expect(&self, counter: &str, value: u64) {
        let end = Instant::now() + PATIENCE;
        while self.count(counter) != value {
            assert!(Instant::now() < end, "{counter} is not {value}: {:#}", self.status());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the process has ended by itself; returns the rest of its log.
    pub(crate) fn wait(&mut self) -> String {
        assert!(self.child.wait().expect("a process").success());
        let mut log = String::new();
        self.log.read_to_string(&mut log).expect("a log");
        log
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A listener at this host whose connections send back what arrives, until its end; each first tells the address of its peer.
pub(crate) fn echo(addresses: [&str; 2], port: u16) -> Receiver<SocketAddr> {
    let (tell, peers) = channel();
    for each in addresses {
        let listener = TcpListener::bind(address(each, port)).expect("a port");
        let tell = tell.clone();
        thread::spawn(move || {
            while let Ok((stream, peer)) = listener.accept() {
                let _ = tell.send(peer);
                thread::spawn(move || {
                    let mut stream = &stream;
                    let mut buffer = [0; 1 << 16];
                    while let Ok(len) = stream.read(&mut buffer) {
                        if len == 0 || stream.write_all(&buffer[..len]).is_err() {
                            break;
                        }
                    }
                });
            }
        });
    }
    peers
}

/// Connects, with a bound on the time.
pub(crate) fn connect(host: &str, port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address(host, port), PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends `len` bytes to a host and reads them back; returns both ends, as this host sees them.
pub(crate) fn talk(host: &'static str, len: u32) -> (SocketAddr, SocketAddr) {
    let mut stream = connect(host, 7000).expect("a listener");
    let ends = (stream.local_addr().expect("an address"), stream.peer_addr().expect("an address"));
    let data: Vec<u8> = (0..len).map(|number| (number / 7) as u8).collect();
    let mut writer = stream.try_clone().expect("a socket");
    let sent = data.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&sent).expect("it is read");
        writer.shutdown(Shutdown::Write).expect("it is open");
    });
    let mut echoed = Vec::new();
    stream.read_to_end(&mut echoed).expect("an end after the end was sent");
    writing.join().expect("written");
    assert!(echoed == data, "{host}");
    ends
}
