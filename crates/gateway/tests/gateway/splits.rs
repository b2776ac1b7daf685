//! What the two ends of a split connection see.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use rustix::net::sockopt::set_socket_oobinline;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect as begin_to_connect, recv, send,
    socket_with,
};

use super::hosts::{CLIENT, Host, Network, PATIENCE, SERVER, address, connect, echo, ip, nft, talk};

/// Closes a connection by a reset.
fn reset(stream: TcpStream) {
    let now = nix::libc::linger { l_onoff: 1, l_linger: 0 };
    setsockopt(&stream, sockopt::Linger, &now).expect("a socket");
}

#[test]
fn neither_end_sees_the_gateway() {
    let Some(network) = Network::of("splits::neither_end_sees_the_gateway") else { return };
    let gateway = network.start("");
    // Connections are opened from either side of the radio.
    for (opener, listener, hosts) in
        [(&network.client, &network.server, SERVER), (&network.server, &network.client, CLIENT)]
    {
        let peers = listener.run(move || echo(hosts, 7000));
        for host in hosts {
            let (own, peer) = opener.run(move || talk(host, 1_000_000));
            assert_eq!(peer, address(host, 7000));
            assert_eq!(peers.recv_timeout(PATIENCE).expect("a connection"), own);
        }
    }
    gateway.expect("closed", 4);
    assert_eq!(gateway.count("split"), 4);
    assert_eq!((gateway.count("open"), gateway.count("reset"), gateway.count("failures")), (0, 0, 0));
    assert_eq!(gateway.count("bytes_to_servers"), 4_000_000);
    assert_eq!(gateway.count("bytes_to_clients"), 4_000_000);
}

#[test]
fn servers_that_cannot_be_reached_stay_so() {
    let Some(network) = Network::of("splits::servers_that_cannot_be_reached_stay_so") else { return };
    let hold = "hold = \"1 s\"\nopening_per_host = 1";
    let gateway = network.start(hold);
    let attempt = |host: &'static str, patience: Duration| {
        let result = TcpStream::connect_timeout(&address(host, 7000), patience);
        result.expect_err("no listener").kind()
    };
    for host in SERVER {
        let error = network.client.run(move || attempt(host, PATIENCE));
        assert_eq!(error, ErrorKind::ConnectionRefused, "{host}");
    }
    gateway.expect("refused", 2);
    // A router behind the gateway says that there is no such host.
    network.server.run(|| {
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").expect("a router");
        ip("route add unreachable 10.9.0.0/24");
        ip("route add blackhole 10.8.0.0/24");
    });
    ip("route add 10.9.0.0/24 via 10.2.0.2");
    ip("route add 10.8.0.0/24 via 10.2.0.2");
    let error = network.client.run(move || attempt("10.9.0.1", PATIENCE));
    assert_eq!(error, ErrorKind::HostUnreachable);
    gateway.expect("refused", 3);
    assert_eq!(gateway.count("passed_by_silence"), 0, "none of them was held to the end");
    // One that is silent is so for its clients as well; while it is asked, its client may open no other.
    let short = Duration::from_millis(100);
    let (first, second) = network.client.run(move || {
        // Before its SYN is sent again, which would be counted again.
        (attempt("10.8.0.1", short), attempt("10.8.0.2", short))
    });
    assert_eq!((first, second), (ErrorKind::TimedOut, ErrorKind::TimedOut));
    gateway.expect("passed_by_limit", 1);
    gateway.expect("passed_by_silence", 1);
    let _ = network.client.run(move || attempt("10.8.0.1", short));
    gateway.expect("passed_by_silence", 2);
    assert_eq!((gateway.count("split"), gateway.count("failures")), (0, 0));
}

/// In its place in the stream, and as urgent.
#[test]
fn urgent_bytes_are_carried_over() {
    let Some(network) = Network::of("splits::urgent_bytes_are_carried_over") else { return };
    let gateway = network.start("unhelped = 0");
    let listeners =
        network.server.run(|| SERVER.map(|host| TcpListener::bind(address(host, 7002)).expect("a port")));
    for (host, listener) in SERVER.iter().zip(listeners) {
        let client = network.client.run(move || connect(host, 7002).expect("a listener"));
        let (mut server, _) = listener.accept().expect("a connection");
        server.set_read_timeout(Some(PATIENCE)).expect("a socket");
        set_socket_oobinline(&server, true).expect("a socket");
        for pause in [Duration::ZERO, Duration::from_millis(20)] {
            for (data, flags) in [
                (&b"abc"[..], SendFlags::empty()),
                (b"!", SendFlags::OOB),
                (b"def", SendFlags::empty()),
                (b"?", SendFlags::OOB),
            ] {
                assert_eq!(send(&client, data, flags), Ok(data.len()));
                thread::sleep(pause);
            }
            let mut read = [0; 8];
            server.read_exact(&mut read).expect("all of it");
            assert_eq!(&read, b"abc!def?", "{host}, {pause:?}");
        }
        set_socket_oobinline(&server, false).expect("a socket");
        assert_eq!(send(&client, b"*", SendFlags::OOB), Ok(1));
        let end = Instant::now() + PATIENCE;
        while recv(&server, &mut [0][..], RecvFlags::OOB).is_err() {
            assert!(Instant::now() < end, "it is not urgent");
        }
        set_socket_oobinline(&server, true).expect("a socket");
        // Behind the urgent byte, with the end already there.
        for (data, flags) in
            [(&b"ab"[..], SendFlags::empty()), (b"!", SendFlags::OOB), (b"c", SendFlags::empty())]
        {
            assert_eq!(send(&client, data, flags), Ok(data.len()));
        }
        client.shutdown(Shutdown::Write).expect("it is open");
        let mut rest = Vec::new();
        server.read_to_end(&mut rest).expect("its end");
        assert!(rest.ends_with(b"ab!c"), "{rest:?}");
    }
    assert_eq!(gateway.count("split"), 2);
}

#[test]
fn resets_are_carried_over() {
    let Some(network) = Network::of("splits::resets_are_carried_over") else { return };
    let gateway = network.start("");
    let listener = network.server.run(|| TcpListener::bind(address(SERVER[0], 7000)).expect("a port"));
    for server_resets in [true, false] {
        let client = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
        let (server, _) = listener.accept().expect("a connection");
        server.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let (resetting, mut other) = if server_resets { (server, client) } else { (client, server) };
        (&resetting).write_all(b"x").expect("it is open");
        other.read_exact(&mut [0]).expect("a byte");
        reset(resetting);
        assert_eq!(other.read(&mut [0]).expect_err("a reset").kind(), ErrorKind::ConnectionReset);
    }
    gateway.expect("reset", 2);
    assert_eq!(gateway.count("open"), 0);
}

#[test]
fn an_end_that_does_not_read_stops_the_other() {
    let Some(network) = Network::of("splits::an_end_that_does_not_read_stops_the_other") else { return };
    let gateway = network.start("");
    let listener = network.server.run(|| TcpListener::bind(address(SERVER[0], 7000)).expect("a port"));
    let mut client = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    let (mut server, _) = listener.accept().expect("a connection");
    client.set_write_timeout(Some(Duration::from_millis(500))).expect("a socket");
    let block = [7; 1 << 16];
    let mut taken = 0;
    while let Ok(len) = client.write(&block) {
        taken += len;
        // The buffers of four sockets at their largest, and the gateway's.
        assert!(taken < 64 << 20, "nothing bounds it");
    }
    println!("{taken} bytes were taken without a reader");
    client.shutdown(Shutdown::Write).expect("it is open");
    let mut count = 0;
    let mut buffer = vec![0; 1 << 16];
    server.set_read_timeout(Some(PATIENCE)).expect("a socket");
    loop {
        match server.read(&mut buffer).expect("data or an end") {
            0 => break,
            len => count += len,
        }
    }
    assert_eq!(count, taken);
    drop((client, server));
    gateway.expect("closed", 1);
}

#[test]
fn rules_and_a_share_leave_flows_alone() {
    let Some(network) = Network::of("splits::rules_and_a_share_leave_flows_alone") else { return };
    let rule = "[[match]]\nports = [7001]\nhosts = [\"10.2.0.2\"]\nscheme = \"basic\"\n";
    let gateway = network.start(&format!("unhelped = 0.5\n{rule}"));
    let _peers = [7000, 7001].map(|port| network.server.run(move || echo(SERVER, port)));
    let connect_to = |hosts: [&'static str; 2], port: u16, count: usize| {
        network.client.run(move || {
            let each = |number: usize| connect(hosts[number % 2], port).expect("a listener");
            (0..count).map(each).collect::<Vec<_>>()
        })
    };
    let open = connect_to(SERVER, 7000, 200);
    gateway.expect("opening", 0);
    let (helped, unhelped) = (gateway.count("split"), gateway.status()["unhelped_flows"].as_u64());
    // A first packet that is sent again is counted again.
    assert!((200..=210).contains(&(helped + unhelped.expect("a count"))), "{helped} {unhelped:?}");
    assert!((60..140).contains(&helped), "{helped}");
    drop(open);

    // From a file that is read again on, no flow is left alone but by its rule, which is about one host.
    network.write(rule);
    gateway.reload().expect("a valid file");
    let _open = connect_to(SERVER, 7001, 10);
    gateway.expect("split", helped + 5);
    let passed = gateway.count("passed_by_rule");
    assert!(passed >= 5, "{passed}");
    assert_eq!(gateway.status()["unhelped_flows"], 0);

    network.write("port = 5000");
    let error = gateway.reload().expect_err("a fixed key");
    assert!(error.contains("gateway.port has changed"), "{error}");
    network.write("prot = 5000");
    let error = gateway.reload().expect_err("an invalid file");
    assert!(error.contains("did you mean \"port\"?"), "{error}");
    network.write("");
    let _other = connect_to([SERVER[0], SERVER[0]], 7001, 1);
    assert_eq!(gateway.count("passed_by_rule"), passed + 1, "the settings have stayed");
}

#[test]
fn an_observer_helps_nobody() {
    let Some(network) = Network::of("splits::an_observer_helps_nobody") else { return };
    let gateway = network.start_with("", &["--observe"]);
    let _peers = network.server.run(|| echo(SERVER, 7000));
    let _stream = network.client.run(|| connect(SERVER[0], 7000).expect("a listener"));
    gateway.expect("observed", 1);
    assert_eq!(gateway.count("split"), 0);
}

#[test]
fn thousands_of_connections_at_once() {
    let count =
        std::env::var("LASTHOP_CONNECTIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(2000_usize);
    let Some(network) = Network::of("splits::thousands_of_connections_at_once") else { return };
    let gateway = network.start("");
    network.server.run(move || {
        // A thread for each connection would be two thousand threads.
        let listener = TcpListener::bind(address(SERVER[0], 7000)).expect("a port");
        thread::spawn(move || {
            let mut all: Vec<TcpStream> = listener.incoming().flatten().take(count).collect();
            for stream in &mut all {
                let mut byte = [0];
                stream.read_exact(&mut byte).expect("a byte");
                stream.write_all(&byte).expect("it is open");
            }
            all.iter_mut().for_each(|stream| assert_eq!(stream.read(&mut [0]).expect("an end"), 0));
        });
    });
    let began = Instant::now();
    let all = network
        .client
        .run(move || (0..count).map(|_| connect(SERVER[0], 7000).expect("a listener")).collect::<Vec<_>>());
    println!(
        "{:.0} us for each connection, one after the other",
        began.elapsed().as_secs_f64() * 1e6 / count as f64
    );
    gateway.expect("open", count as u64);
    gateway.expect_small(count);
    for (number, mut stream) in all.iter().enumerate() {
        stream.write_all(&[number as u8]).expect("it is open");
    }
    for (number, mut stream) in all.iter().enumerate() {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        assert_eq!(byte, [number as u8]);
    }
    drop(all);
    gateway.expect("closed", count as u64);
    assert_eq!(gateway.count("open"), 0);
}

/// A firewall that drops what conntrack does not understand, and masquerades, as on most routers.
#[test]
fn firewalls_and_nat_see_one_connection() {
    const RULES: &str = "
table inet firewall {
    chain input {
        type filter hook input priority 0; policy drop
        meta mark & 0x07000000 == 0x01000000 accept
        ct state established,related accept
        meta l4proto ipv6-icmp accept
    }
    chain forward {
        type filter hook forward priority 0; policy drop
        ct state invalid counter drop
        ct state established,related accept
        iifname radio0 accept
    }
    chain output {
        type filter hook output priority 0
        ct state invalid counter drop
    }
    chain nat {
        type nat hook postrouting priority 100
        oifname wired0 masquerade
    }
}";
    let Some(network) = Network::of("splits::firewalls_and_nat_see_one_connection") else { return };
    if !nft(RULES) {
        return;
    }
    let gateway = network.start("bypass_firewall = true");
    let peers = network.server.run(|| echo(SERVER, 7000));
    for (host, masqueraded) in SERVER.into_iter().zip(["10.2.0.1", "fd02::1"]) {
        network.client.run(move || {
            let mut stream = connect(host, 7000).expect("a listener");
            let data = vec![9; 300_000];
            let mut writer = stream.try_clone().expect("a socket");
            let writing = thread::spawn(move || {
                writer.write_all(&vec![9; 300_000]).expect("it is read");
                writer.shutdown(Shutdown::Write).expect("it is open");
            });
            let mut echoed = Vec::new();
            stream.read_to_end(&mut echoed).expect("an end");
            writing.join().expect("written");
            assert!(echoed == data);
        });
        let peer = peers.recv_timeout(PATIENCE).expect("a connection");
        assert_eq!(peer.ip(), address(masqueraded, 0).ip());
        let refused = network.client.run(move || connect(host, 7001).expect_err("no listener").kind());
        assert_eq!(refused, ErrorKind::ConnectionRefused);
    }
    gateway.expect("closed", 2);
    let listed = Command::new("nft").args(["list", "table", "inet", "firewall"]).output().expect("nft runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert_eq!(listed.matches("counter packets 0 bytes 0").count(), 2, "{listed}");
}

/// Links behind the gateway that carry less than its own: what routers say of packets that are too long is about its sockets.
#[test]
fn the_path_mtu_is_discovered() {
    let Some(network) = Network::of("splits::the_path_mtu_is_discovered") else { return };
    let gateway = network.start("");
    // The server's host forwards to a namespace behind it.
    let behind = network.server.run(|| {
        let host = Host::new();
        for key in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            std::fs::write(format!("/proc/sys/net/{key}"), "1").expect("a router");
        }
        ip("link add narrow type veth peer name end");
        ip(&format!("link set end netns {}", host.thread()));
        ip("link set narrow mtu 1280 up");
        ip("address add 10.3.0.1/24 dev narrow");
        ip("address add fd03::1/64 dev narrow nodad");
        host
    });
    behind.run(|| {
        ip("link set end up");
        ip("address add 10.3.0.2/24 dev end");
        ip("address add fd03::2/64 dev end nodad");
        ip("route add default via 10.3.0.1");
        ip("-6 route add default via fd03::1");
    });
    ip("route add 10.3.0.0/24 via 10.2.0.2");
    ip("-6 route add fd03::/64 via fd02::2");
    const ENDS: [&str; 2] = ["10.3.0.2", "fd03::2"];
    let _peers = behind.run(|| echo(ENDS, 7000));
    for host in ENDS {
        let echoed = network.client.run(move || {
            let end = Instant::now() + PATIENCE;
            let mut stream = loop {
                match connect(host, 7000) {
                    Ok(stream) => break stream,
                    Err(error) => assert!(Instant::now() < end, "{error}"),
                }
            };
            let mut echoed = vec![0; 200_000];
            let mut writer = stream.try_clone().expect("a socket");
            let writing = thread::spawn(move || writer.write_all(&[5; 200_000]));
            stream.read_exact(&mut echoed).expect("it passes");
            writing.join().expect("written").expect("it is read");
            echoed
        });
        assert!(echoed.iter().all(|byte| *byte == 5));
    }
    assert!(gateway.count("split") >= 2);
    let known = |family: &str| {
        let line = [family, "route", "get", ENDS[usize::from(family == "-6")]];
        let route = Command::new("ip").args(line).output().expect("ip runs").stdout;
        String::from_utf8_lossy(&route).into_owned()
    };
    for family in ["-4", "-6"] {
        assert!(known(family).contains("mtu 1280"), "{}", known(family));
    }
}

/// Queues on the way to the server may prefer what its client has marked.
#[test]
fn the_server_gets_the_dscp_of_the_client() {
    let Some(network) = Network::of("splits::the_server_gets_the_dscp_of_the_client") else { return };
    const EXPECTED: &str = "
table inet marked {
    chain input { type filter hook input priority 0; jump others; }
    chain others { tcp dport != 7000 return; ip dscp != af41 drop; ip6 dscp != af41 drop; }
}
";
    const SET: &str = "
table inet marks {
    chain output { type filter hook output priority 0; jump marking; }
    chain marking { ip dscp set af41; ip6 dscp set af41; }
}
";
    if !network.server.run(|| nft(EXPECTED)) {
        return;
    }
    let gateway = network.start("unhelped = 0");
    let _peers = network.server.run(|| echo(SERVER, 7000));
    network.client.run(|| nft(SET));
    network.client.run(|| SERVER.map(|host| talk(host, 10_000)));
    assert_eq!((gateway.count("split"), gateway.count("passed_by_silence")), (2, 0));
}

/// The kernel lets pass what the queue has no room for, which this process never sees.
#[test]
fn what_the_queue_has_no_room_for_is_counted() {
    let Some(network) = Network::of("splits::what_the_queue_has_no_room_for_is_counted") else { return };
    let gateway = network.start("opening = 1\nhold = \"20 s\"");
    network.server.run(|| ip("route add blackhole 10.8.0.0/16"));
    ip("route add 10.8.0.0/16 via 10.2.0.2");
    let _peers = network.server.run(|| echo(SERVER, 7000));
    network.client.run(|| {
        let silent = TcpStream::connect_timeout(&address("10.8.0.1", 7000), Duration::from_millis(100));
        assert!(silent.is_err());
        talk(SERVER[0], 1000);
    });
    gateway.expect("passed_by_limit", 1);
    assert_eq!(["flows", "split", "opening"].map(|counter| gateway.count(counter)), [2, 0, 1]);
}

/// Someone who scans, or floods with SYNs, takes no more than the limits say, and others are helped meanwhile.
#[test]
fn scans_and_floods_have_bounds() {
    let Some(network) = Network::of("splits::scans_and_floods_have_bounds") else { return };
    let gateway = network.start("opening = 200\nopening_per_host = 100\nhold = \"1 s\"");
    network.server.run(|| ip("route add blackhole 10.8.0.0/16"));
    ip("route add 10.8.0.0/16 via 10.2.0.2");
    const COUNT: u16 = 3000;
    // All at once, of which none waits for an answer; each has a port of its own.
    let all: Vec<OwnedFd> = network.client.run(|| {
        let attempt = |number: u16| {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).expect("a socket");
            let silent = format!("10.8.{}.{}", number / 250, 1 + number % 250);
            let _ = begin_to_connect(&socket, &address(&silent, 7000));
            socket
        };
        (0..COUNT).map(attempt).collect()
    });
    let _peers = network.server.run(|| echo(SERVER, 7000));
    let end = Instant::now() + PATIENCE;
    let mut most = 0;
    loop {
        let counters = gateway.status()["counters"].take();
        let [flows, by_limit, by_silence, opening] =
            ["flows", "passed_by_limit", "passed_by_silence", "opening"]
                .map(|counter| counters[counter].as_u64().expect("a counter"));
        most = opening.max(most);
        assert!(opening <= 100 && Instant::now() < end, "{counters:#}");
        if flows >= u64::from(COUNT) {
            assert!(by_limit + by_silence + opening >= u64::from(COUNT), "{counters:#}");
            assert!(by_limit > 0, "{counters:#}");
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(most, 100, "as many as one host may have");
    gateway.expect_small(200);
    drop(all);
    gateway.expect("opening", 0);
    network.client.run(|| talk(SERVER[0], 100_000));
    assert_eq!((gateway.count("split"), gateway.count("failures")), (1, 0));
}
