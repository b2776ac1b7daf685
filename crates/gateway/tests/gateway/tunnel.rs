//! Two gateways, and the tunnel between them.
//!
//! ```text
//! client (10.1.0.2) ── radio0 ── one gateway ── wired0 ── the other gateway, with a server (10.9.0.1, fd09::1)
//! ```

use std::fs;
use std::io::{ErrorKind, IoSliceMut, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use lasthop_gateway::report::rows::{self, Line};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::sockopt::{IpRecvTos, Ipv4Tos};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::unistd::Pid;
use serde_json::Value;

use super::hosts::{CLIENT, Gateway, Network, PATIENCE, SERVER, address, connect, echo, ip, nft, talk};
use super::offer::offer;

/// Options of sockets, which nix does not define.
mod options {
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// What becomes of datagrams that are longer than the path carries (ip(7)).
        MtuDiscovery, SetOnly, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::c_int
    );
}

/// The server, behind the other gateway.
const BEHIND: [&str; 2] = ["10.9.0.1", "fd09::1"];

/// A class of each kind, by port. One packet in a thousand million is lost so often that it is given up.
const RULES: &str = "
scheme = \"basic\"
[scheme.arq.protocol.selective-repeat]
retransmissions = 8
[scheme.packet-fec]
k = 4
n = 6
[[match]]
ports = [7200]
scheme = \"packet-fec\"
[[match]]
ports = [7300]
scheme = \"packet-fec\"
packet-fec = { k = 8, n = 12, interleave = 3, in_order = false }
[[match]]
ports = [7400]
scheme = \"arq\"
[[match]]
ports = [7500]
max_size = \"500 B\"
scheme = \"arq\"
in_order = false
";

/// The network with both gateways, each of which has `keys` in `[gateway]`, and `tunnel` in `[tunnel]`.
struct Pair {
    network: Network,
    near: Gateway,
    far: Gateway,
}

impl Pair {
    fn start(network: Network, keys: &str, tunnel: &str) -> Pair {
        Pair::prepare(&network);
        let far = Pair::run_far(&network, keys, tunnel);
        let near = Pair::run_near(&network, keys, tunnel);
        let pair = Pair { network, near, far };
        pair.expect_up();
        pair
    }

    /// Makes the way without the tunnel, and the key.
    fn prepare(network: &Network) {
        network.server.run(|| {
            ip("address add 10.9.0.1/32 dev lo");
            ip("address add fd09::1/128 dev lo nodad");
            // Not the one by which it would begin something itself.
            ip("address add 10.2.0.3/24 dev host2");
        });
        // The way without the tunnel.
        ip("route add 10.9.0.0/24 via 10.2.0.2");
        ip("-6 route add fd09::/64 via fd02::2");
        let key = network.directory().join("key");
        fs::write(&key, "5a".repeat(32)).expect("a file");
    }

    /// Two gateways without keys of their own, of which the near one has this peer.
    fn start_towards(network: Network, peer: &str) -> Pair {
        Pair::prepare(&network);
        let far = Pair::run_far(&network, "", "");
        let near = Pair::run_near(&network, "", peer);
        let pair = Pair { network, near, far };
        pair.expect_up();
        pair
    }

    fn file(network: &Network, name: &str, keys: &str, tunnel: &str) -> PathBuf {
        let file = network.directory().join(format!("{name}.toml"));
        let (control, key) = (network.directory().join(name), network.directory().join("key"));
        let text = format!("[tunnel]\nkey = {key:?}\n{tunnel}\n[gateway]\ncontrol = {control:?}\n{keys}\n");
        fs::write(&file, text).expect("a file");
        file
    }

    fn run_near(network: &Network, keys: &str, tunnel: &str) -> Gateway {
        let mut own = String::from("routes = [\"10.9.0.0/24\", \"fd09::/64\"]\n");
        if !tunnel.contains("peer") {
            own += "peer = \"10.2.0.3:9332\"\n";
        }
        Gateway::run(Pair::file(network, "near", keys, &(own + tunnel)), &[])
    }

    fn run_far(network: &Network, keys: &str, tunnel: &str) -> Gateway {
        let own = "routes = [\"10.1.0.0/24\", \"fd01::/64\"]";
        let file = Pair::file(network, "far", keys, &format!("{own}\n{tunnel}"));
        network.server.run(move || Gateway::run(file, &[]))
    }

    fn expect_up(&self) {
        for gateway in [&self.near, &self.far] {
            expect(gateway, "the tunnel is up", |tunnel| tunnel["is_up"] == true);
        }
    }
}

/// Waits until the status of the tunnel is as it should be.
fn expect(gateway: &Gateway, what: &str, is_so: impl Fn(&Value) -> bool) {
    expect_within(PATIENCE, gateway, what, is_so);
}

fn expect_within(patience: Duration, gateway: &Gateway, what: &str, is_so: impl Fn(&Value) -> bool) {
    let end = Instant::now() + patience;
    while !is_so(&gateway.status()["tunnel"]) {
        assert!(Instant::now() < end, "{what}: {:#}", gateway.status());
        thread::sleep(Duration::from_millis(20));
    }
}

fn count(gateway: &Gateway, counter: &str) -> u64 {
    gateway.status()["tunnel"]["counters"][counter].as_u64().unwrap_or_else(|| panic!("a counter {counter}"))
}

/// The packets that each gateway dropped. Before the tunnel is up, there may be some of the kernel's own, about its groups and routers.
fn dropped(pair: &Pair) -> [u64; 2] {
    [&pair.near, &pair.far].map(|gateway| count(gateway, "dropped"))
}

/// Lets no batches pass between the two gateways, whose packets rules would count as one.
fn cut_batches(network: &Network) {
    ip("link set wired0 gso_max_segs 1");
    network.server.run(|| ip("link set host2 gso_max_segs 1"));
}

/// Loses a tenth of all larger packets on the way between the two gateways.
fn lose(network: &Network) -> bool {
    let rules = |hook: &str, device: &str| {
        let place = format!("type filter hook {hook} device {device} priority -500; policy accept");
        format!(
            "table netdev air {{\n chain in {{\n {place}\n meta length > 200 numgen random mod 10 == 0 drop\n }}\n}}\n"
        )
    };
    let (here, there) = (rules("ingress", "\"wired0\""), rules("ingress", "\"host2\""));
    cut_batches(network);
    nft(&here) && network.server.run(move || nft(&there))
}

#[test]
fn packets_have_the_help_of_their_class() {
    let Some(network) = Network::of("tunnel::packets_have_the_help_of_their_class") else { return };
    let pair = Pair::start(network, RULES, "");
    if !lose(&pair.network) {
        return;
    }
    const NUMBER: u16 = 1000;
    let (began, before) = (Instant::now(), dropped(&pair));
    for (host, len) in [(BEHIND[0], 300), (BEHIND[1], 1200)] {
        let found = offer(&pair.network, host, NUMBER, len);
        let share = |class: usize| f64::from(found[class].0) / f64::from(NUMBER);
        println!("{host}, {len} B: {found:?}");
        // A tenth is lost; beyond recovery, of four with two, the tenth in which two of the other five are lost as well: 0.8 %;
        // of eight with four, 0.2 %. Five standard deviations.
        assert!((0.85..0.95).contains(&share(0)), "{found:?}");
        assert!((0.97..=1.0).contains(&share(1)) && (0.985..=1.0).contains(&share(2)), "{found:?}");
        assert_eq!((found[3], found[0].1), ((NUMBER.into(), 0), 0), "in order, and all");
        // Longer ones have no help there.
        assert_eq!(found[4].0 == u32::from(NUMBER), len < 500, "{found:?}");
        assert!(found[1].1 < 10, "{found:?}");
        assert!(found[2].1 > 20 && (found[4].1 > 20) == (len < 500), "these come as they arrive: {found:?}");
    }
    // Connections from both sides, with segments as the tunnel carries them.
    let peers = pair.network.server.run(|| echo(BEHIND, 7000));
    let other = pair.network.client.run(|| echo(CLIENT, 7000));
    for host in BEHIND {
        let (own, _) = pair.network.client.run(move || talk(host, 300_000));
        assert_eq!(peers.recv_timeout(PATIENCE).expect("a connection"), own);
    }
    let (own, _) = pair.network.server.run(|| talk(CLIENT[0], 300_000));
    assert_eq!(other.recv_timeout(PATIENCE).expect("a connection"), own);
    let near = pair.near.status();
    let loss = near["tunnel"]["loss"].as_f64().expect("measured");
    assert!((0.06..0.13).contains(&loss), "{near:#}");
    // 1500 bytes, without headers.
    assert_eq!(near["tunnel"]["mtu"], 1406);
    let rtt_s = near["tunnel"]["rtt_s"].as_f64().expect("measured");
    assert!(rtt_s > 0.0 && rtt_s < began.elapsed().as_secs_f64(), "{near:#}");
    for (gateway, counter) in
        [(&pair.far, "recovered"), (&pair.near, "retransmitted"), (&pair.far, "unrecovered")]
    {
        assert!(count(gateway, counter) > 0, "{counter}: {near:#}");
    }
    for gateway in [&pair.near, &pair.far] {
        for counter in ["forged", "malformed", "oversized"] {
            assert_eq!(count(gateway, counter), 0, "{counter}: {near:#}");
        }
    }
    assert_eq!(dropped(&pair), before);
    assert_eq!(pair.near.count("failures"), 0);
}

/// Fast flows leave in batches, and arrive in them if nothing on the path cuts them. Whether it does or not, they are the same.
#[test]
fn batches_carry_what_is_fast() {
    let Some(network) = Network::of("tunnel::batches_carry_what_is_fast") else { return };
    let pair = Pair::start(network, RULES, "");
    let _peers = pair.network.server.run(|| echo(BEHIND, 7000));
    // What sockets of the other gateway's host have read.
    let read = || {
        let counters =
            pair.network.server.run(|| fs::read_to_string("/proc/thread-self/net/snmp")).expect("counters");
        let values =
            counters.lines().filter_map(|line| line.strip_prefix("Udp: ")).nth(1).expect("those of UDP");
        values.split(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("InDatagrams")
    };
    let entered = || {
        // The status is written five times a second, or later on a busy machine.
        let mut known = None;
        loop {
            let entered = count(&pair.near, "entered");
            if known.replace(entered) == Some(entered) {
                return entered;
            }
            thread::sleep(Duration::from_millis(300));
        }
    };
    let before = dropped(&pair);
    let talk = |host| {
        let (before, entered_before) = (read(), entered());
        pair.network.client.run(move || talk(host, 4_000_000));
        (read() - before, entered() - entered_before)
    };
    for host in BEHIND {
        let (whole, of) = talk(host);
        assert!(of > 2800 && whole < of * 9 / 10, "{whole} reads of {of} packets");
    }
    for gateway in [&pair.near, &pair.far] {
        for counter in ["super_packets_in", "super_packets_out", "batches"] {
            assert!(count(gateway, counter) > 0, "{counter}");
        }
    }
    cut_batches(&pair.network);
    let (single, of) = talk(BEHIND[0]);
    assert!(single >= of, "{single} reads of {of} packets");
    for gateway in [&pair.near, &pair.far] {
        for counter in ["forged", "malformed", "oversized", "refused", "unsent"] {
            assert_eq!(count(gateway, counter), 0, "{counter}");
        }
    }
    assert_eq!(dropped(&pair), before);
}

/// Bytes there and back. What the kernel's retransmissions do not bring over any way has no echo.
fn exchange(stream: &mut TcpStream) {
    let mut echoed = [0; 5000];
    stream.write_all(&[3; 5000]).expect("it is open");
    stream.read_exact(&mut echoed).expect("an echo");
}

/// Exchanges bytes until some of them have entered here.
fn exchange_through(stream: &mut TcpStream, gateway: &Gateway) {
    let (before, end) = (count(gateway, "entered"), Instant::now() + PATIENCE);
    while count(gateway, "entered") == before {
        assert!(Instant::now() < end, "{:#}", gateway.status());
        exchange(stream);
        thread::sleep(Duration::from_millis(100));
    }
}

/// Whatever dies, or goes and comes: connections go on, without the tunnel and with it.
#[test]
fn without_the_other_gateway_packets_take_other_routes() {
    let Some(network) = Network::of("tunnel::without_the_other_gateway_packets_take_other_routes") else {
        return;
    };
    let tunnel = "patience = \"500 ms\"";
    let keys = "scheme = \"arq\"";
    let Pair { network, mut near, mut far } = Pair::start(network, keys, tunnel);
    let _peers = network.server.run(|| echo(BEHIND, 7000));
    let mut stream = network.client.run(|| connect(BEHIND[0], 7000).expect("a listener"));
    exchange_through(&mut stream, &near);

    far.child.kill().expect("it runs");
    far.child.wait().expect("it ends");
    // Until it is taken for dead.
    exchange(&mut stream);
    expect(&near, "it is silent", |tunnel| tunnel["is_up"] == false);
    let before = count(&near, "entered");
    exchange(&mut stream);
    assert_eq!(count(&near, "entered"), before);

    let far = Pair::run_far(&network, keys, tunnel);
    let pair = Pair { network, near, far };
    pair.expect_up();
    exchange_through(&mut stream, &pair.near);
    let Pair { network, near: found, far } = pair;
    near = found;

    near.child.kill().expect("it runs");
    near.child.wait().expect("it ends");
    exchange(&mut stream);
    let near = Pair::run_near(&network, keys, tunnel);
    let pair = Pair { network, near, far };
    pair.expect_up();
    exchange_through(&mut stream, &pair.near);

    // One that is stopped.
    let process = Pid::from_raw(pair.near.child.id() as i32);
    kill(process, Signal::SIGSTOP).expect("it runs");
    exchange(&mut stream);
    kill(process, Signal::SIGCONT).expect("it runs");
    pair.expect_up();
    exchange_through(&mut stream, &pair.near);

    // The interface, and the one below it, go and come.
    ip("link delete lasthop-tun");
    exchange(&mut stream);
    exchange_through(&mut stream, &pair.near);
    ip("link set lasthop-tun down");
    exchange_through(&mut stream, &pair.near);
    ip("link set wired0 down");
    expect(&pair.near, "it is silent", |tunnel| tunnel["is_up"] == false);
    ip("link set wired0 up");
    ip("route add 10.9.0.0/24 via 10.2.0.2");
    pair.expect_up();
    exchange_through(&mut stream, &pair.near);

    // A file that was read again, and a successor.
    let file = Pair::file(
        &pair.network,
        "near",
        "scheme = \"packet-fec\"",
        &format!("peer = \"10.2.0.2:9332\"\nroutes = [\"10.9.0.0/24\"]\n{tunnel}"),
    );
    pair.near.reload().expect("a valid file");
    pair.expect_up();
    exchange(&mut stream);
    assert_eq!(pair.near.status()["tunnel"]["classes"]["packet-fec"], "packet-fec");
    let successor = Gateway::run(file, &["--replace"]);
    expect(&successor, "the tunnel is up", |tunnel| tunnel["is_up"] == true);
    exchange_through(&mut stream, &successor);
    assert_eq!(successor.count("failures"), 0);
}

#[test]
fn strangers_get_no_answer() {
    let Some(network) = Network::of("tunnel::strangers_get_no_answer") else { return };
    let mut pair = Pair::start(network, "scheme = \"arq\"", "patience = \"500 ms\"");
    let socket = pair.network.client.run(|| UdpSocket::bind(address(CLIENT[0], 0)).expect("a port"));
    for round in 0..5000usize {
        let kind = [1, 2, 3][round % 3];
        let mut datagram = vec![kind; [0, 1, 26, 210, 1400][round % 5]];
        datagram.iter_mut().skip(1).take(1).for_each(|version| *version = 2);
        socket.send_to(&datagram, address(SERVER[0], 9332)).expect("a route");
        // Its socket holds more than a thousand.
        if (round + 1) % 1000 == 0 {
            expect(&pair.far, "all are forged", |tunnel| tunnel["counters"]["forged"] == round + 1);
        }
    }
    socket.set_read_timeout(Some(Duration::from_millis(300))).expect("a socket");
    let answer = socket.recv(&mut [0; 2000]).expect_err("no answer").kind();
    assert!([ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&answer), "{answer}");
    assert_eq!(pair.far.status()["tunnel"]["peer"], "10.2.0.1:9332");
    // It carries on.
    let _peers = pair.network.server.run(|| echo(BEHIND, 7000));
    pair.network.client.run(|| talk(BEHIND[0], 50_000));
    assert_eq!(count(&pair.far, "replayed"), 0);

    // Another key in the same file is taken when the file is read again.
    fs::write(pair.network.directory().join("key"), "5b".repeat(32)).expect("a file");
    pair.near.reload().expect("a valid file");
    expect(&pair.near, "it has the new key", |tunnel| tunnel["is_up"] == false);
    // The other one knows why it hears nothing, and this one what may be wrong.
    expect(&pair.far, "it is silent", |tunnel| tunnel["is_up"] == false);
    let forged = count(&pair.far, "forged");
    expect(&pair.far, "greetings come", |tunnel| tunnel["counters"]["forged"].as_u64() > Some(forged + 1));
    let (_, status) = pair.far.ask("status", &[]);
    assert!(status.contains("fails authentication: is the key the same at both ends?"), "{status}");
    pair.far.reload().expect("a valid file");
    pair.expect_up();
    pair.network.client.run(|| talk(BEHIND[0], 50_000));
    for (gateway, event) in
        [(&mut pair.near, "tunnel has no answer"), (&mut pair.far, "tunnel hears another key")]
    {
        kill(Pid::from_raw(gateway.child.id() as i32), Signal::SIGTERM).expect("it runs");
        let log = gateway.wait();
        assert_eq!(log.matches(event).count(), 1, "{log}");
    }
}

/// If a route cannot be made, none leads into the tunnel, and the others work without it.
#[test]
fn without_all_routes_there_is_none() {
    let Some(network) = Network::of("tunnel::without_all_routes_there_is_none") else { return };
    // Longer than anything is waited for here: that an end was told needs none of it.
    let patience = "patience = \"30 s\"";
    let Pair { network, mut near, mut far } = Pair::start(network, "scheme = \"arq\"", patience);
    let _peers = network.server.run(|| echo(BEHIND, 7000));
    let end = |gateway: &mut Gateway| {
        kill(Pid::from_raw(gateway.child.id() as i32), Signal::SIGTERM).expect("it runs");
        gateway.wait()
    };
    end(&mut far);
    expect(&near, "it is silent", |tunnel| tunnel["is_up"] == false);
    fs::write("/proc/sys/net/ipv6/conf/lasthop-tun/disable_ipv6", "1").expect("an interface");
    let _far = Pair::run_far(&network, "scheme = \"arq\"", patience);
    expect(&near, "it is up", |tunnel| tunnel["is_up"] == true);
    let entered = count(&near, "entered");
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(300));
        network.client.run(|| talk(BEHIND[0], 20_000));
    }
    assert!(count(&near, "entered") < entered + 10, "while it was tried");
    let log = end(&mut near);
    assert_eq!(log.matches("tunnel has no routes").count(), 1, "{log}");
}

#[test]
fn a_share_of_flows_has_no_help() {
    let Some(network) = Network::of("tunnel::a_share_of_flows_has_no_help") else { return };
    let path = network.directory().join("flows.jsonl");
    let keys = "scheme = \"arq\"\nunhelped = 0.5\n";
    let Pair { network, near, far } = Pair::start(network, keys, "");
    drop(near);
    let near = Pair::run_near(&network, &format!("{keys}flows = {path:?}"), "");
    let pair = Pair { network, near, far };
    pair.expect_up();
    if !lose(&pair.network) {
        return;
    }
    let _peers = pair.network.server.run(|| echo(BEHIND, 7000));
    const COUNT: usize = 40;
    pair.network.client.run(|| {
        (0..COUNT).for_each(|_| {
            talk(BEHIND[0], 20_000);
        });
    });
    let (helped, unhelped) = (pair.near.count("tunnelled"), pair.near.count("unhelped"));
    assert_eq!(helped + unhelped, COUNT as u64);
    assert!((8..=32).contains(&unhelped), "{unhelped}");
    assert_eq!(pair.near.status()["unhelped_flows"], unhelped);
    pair.near.expect("watching", 0);
    let mut arms = [0; 2];
    rows::read(&path, |line| {
        if let Line::Flow(row) = line {
            arms[row.arm as usize] += 1;
            // The last acknowledgement may be lost, and is not repeated.
            assert_eq!(row.bytes_to_server, 20_000, "{row:?}");
            assert!((15_000..=20_000).contains(&row.bytes_to_client), "{row:?}");
        }
    })
    .expect("a file");
    arms.sort_unstable();
    let mut expected = [helped, unhelped];
    expected.sort_unstable();
    assert_eq!(arms, expected);
    assert!(pair.near.report().contains("arq"), "{}", pair.near.report());
}

/// Sends a datagram with this octet from the client to the server; returns that with which it arrives, if it does within this time.
fn octet_of(network: &Network, octet: u8, patience: Duration) -> Option<u8> {
    let server = network.server.run(|| UdpSocket::bind(address(BEHIND[0], 7000)).expect("a port"));
    setsockopt(&server, IpRecvTos, &true).expect("a socket");
    server.set_read_timeout(Some(patience)).expect("a socket");
    network.client.run(move || {
        let client = UdpSocket::bind(address(CLIENT[0], 0)).expect("a port");
        setsockopt(&client, Ipv4Tos, &i32::from(octet)).expect("a socket");
        client.send_to(&[7; 300], address(BEHIND[0], 7000)).expect("a route");
    });
    let (mut bytes, mut space) = ([0; 400], nix::cmsg_space!(u8));
    let mut pieces = [IoSliceMut::new(&mut bytes)];
    let received =
        recvmsg::<()>(server.as_raw_fd(), &mut pieces, Some(&mut space), MsgFlags::empty()).ok()?;
    received.cmsgs().expect("room").find_map(|message| match message {
        ControlMessageOwned::Ipv4Tos(octet) => Some(octet),
        _ => None,
    })
}

/// Queues on the path see the DSCP of packets whose rule states it, and their marks reach the packets; answers come from the address that was asked.
#[test]
fn outer_headers_are_those_that_packets_need() {
    let Some(network) = Network::of("tunnel::outer_headers_are_those_that_packets_need") else { return };
    const EXPEDITED: u8 = 46 << 2;
    let rules = "table netdev queues {
        chain in {
            type filter hook ingress device \"host2\" priority -500; policy accept
            udp dport 9332 ip dscp ef ip ecn != not-ect counter ip ecn set ce
            udp dport 9332 ip dscp { af41, af42 } counter ip ecn set ce
        }
    }";
    if !network.server.run(move || nft(rules)) {
        return;
    }
    let rule = |dscp: u8| format!("[[match]]\ndscp = [{dscp}]\nscheme = \"basic\"\n");
    let pair = Pair::start(network, &(rule(46) + &rule(34)), "");
    assert_eq!(pair.near.status()["tunnel"]["peer"], "10.2.0.3:9332");
    let (not_ect, ect0, ect1, ce) = (0, 2, 1, 3);
    for (octet, expected) in [
        (EXPEDITED | ect0, Some(EXPEDITED | ce)),
        (EXPEDITED | ect1, Some(EXPEDITED | ce)),
        (EXPEDITED | ce, Some(EXPEDITED | ce)),
        (EXPEDITED | not_ect, Some(EXPEDITED)),
        (ect0, Some(ect0)),
        // A queue has marked what it had to drop.
        (34 << 2, None),
        // No rule is of these alone.
        (36 << 2, Some(36 << 2)),
    ] {
        let patience = if expected.is_some() { PATIENCE } else { Duration::from_millis(300) };
        assert_eq!(octet_of(&pair.network, octet, patience), expected, "{octet:#x}");
    }
    let is_counted =
        |tunnel: &Value| tunnel["counters"]["marked"] == 2 && tunnel["counters"]["unmarkable"] == 1;
    expect(&pair.far, "two are marked, and one was dropped", is_counted);
}

/// Drops what is longer than this on the way between the two gateways, in both directions.
fn limit(network: &Network, size: u16) -> bool {
    let rules = move |device: &str| {
        let chain = format!(
            "chain in {{\n type filter hook ingress device {device} priority -500; policy accept\n \
             udp dport 9332 meta length > {size} drop\n }}"
        );
        format!("table netdev path\ndelete table netdev path\ntable netdev path {{\n {chain}\n}}\n")
    };
    cut_batches(network);
    nft(&rules("wired0")) && network.server.run(move || nft(&rules("host2")))
}

/// What the path carries is found, over IPv6 as well: routers and segments follow it.
#[test]
fn the_size_of_the_path_is_found() {
    let Some(network) = Network::of("tunnel::the_size_of_the_path_is_found") else { return };
    if !limit(&network, 1440) {
        return;
    }
    let peer = "peer = \"[fd02::2]:9332\"";
    let Pair { network, mut near, far } = Pair::start_towards(network, peer);
    let is_about = |most: u64| {
        move |tunnel: &Value| tunnel["mtu"].as_u64().is_some_and(|mtu| (most - 8..=most).contains(&mtu))
    };
    let _peers = network.server.run(|| echo(BEHIND, 7000));
    // Probes are a second apart.
    const PROBED: Duration = Duration::from_secs(30);
    // Without the headers of IPv6 and UDP, 48 bytes, and of the tunnel, 46.
    for (size, most) in [(1440_usize, 1346), (1380, 1286)] {
        for gateway in [&near, &far] {
            let what = "the MTU follows";
            expect_within(PROBED, gateway, what, |tunnel| {
                is_about(most)(tunnel) && tunnel["is_mtu_confirmed"] == true
            });
        }
        network.client.run(|| BEHIND.map(|host| talk(host, 200_000)));
        // A router says that longer packets do not pass.
        let refused = network.client.run(move || {
            let client = UdpSocket::bind(address(CLIENT[0], 0)).expect("a port");
            setsockopt(&client, options::MtuDiscovery, &nix::libc::IP_PMTUDISC_DO).expect("a socket");
            client.connect(address(BEHIND[0], 7001)).expect("a route");
            let send = || client.send(&vec![7; size - 80]).map(|_| thread::sleep(Duration::from_millis(20)));
            (0..50).find_map(|_| send().err()).map(|error| error.raw_os_error())
        });
        assert_eq!(refused, Some(Some(nix::libc::EMSGSIZE)), "{size}");
        if size == 1440 {
            ip("link set wired0 mtu 1380");
            kill(Pid::from_raw(near.child.id() as i32), Signal::SIGTERM).expect("it runs");
            near.wait();
            near = Pair::run_near(&network, "", peer);
            // Its own link needs no probes that are lost.
            expect_within(Duration::from_secs(4), &near, "the MTU follows", is_about(1286));
            assert!(count(&near, "oversized") > 0);
        }
    }
}
