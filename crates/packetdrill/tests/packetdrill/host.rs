//! The host by its calls, as packetdrill makes them, in one thread.

use std::net::SocketAddr;

use lasthop_base::{Duration, Time};
use lasthop_packetdrill::{Fd, Flags, Host, Interface, Wait};
use libc::{AF_INET, POLLIN, POLLOUT, SHUT_WR, SOCK_NONBLOCK, SOCK_STREAM};
use nix::errno::Errno;

fn address(last: u8) -> SocketAddr {
    SocketAddr::new([192, 168, 0, last].into(), 8080)
}

fn host(last: u8) -> Host {
    Host::new(&Flags { local: address(last).ip(), ..Flags::default() })
}

/// Exchanges packets between two hosts without delay.
fn exchange(hosts: &mut [Host; 2]) {
    while let Some((from, packet)) =
        (0..2).find_map(|from| hosts[from].take_sent().map(|(_, packet)| (from, packet)))
    {
        hosts[1 - from].receive(&packet);
    }
}

/// A connection from the first host to the second.
fn connected() -> ([Host; 2], Fd, Fd, Fd) {
    let mut hosts = [host(1), host(2)];
    let listening = hosts[1].socket(AF_INET, SOCK_STREAM, 0).expect("a socket");
    hosts[1].bind(listening, address(2)).expect("it is free");
    hosts[1].listen(listening, 5).expect("it is bound");
    assert_eq!(hosts[1].accept(listening), Err(Errno::EAGAIN));
    let connecting = hosts[0].socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0).expect("a socket");
    assert_eq!(hosts[0].connect(connecting, address(2)), Err(Errno::EAGAIN));
    assert_eq!(hosts[0].connect(connecting, address(2)), Err(Errno::EALREADY));
    exchange(&mut hosts);
    assert_eq!(hosts[0].connect(connecting, address(2)), Ok(()));
    assert_eq!(hosts[0].connect(connecting, address(2)), Err(Errno::EISCONN));
    let (accepted, peer) = hosts[1].accept(listening).expect("a connection");
    assert_eq!(peer.ip(), address(1).ip());
    (hosts, connecting, listening, accepted)
}

#[test]
fn a_stream_from_opening_to_closing() {
    let (mut hosts, here, _, there) = connected();
    let mut buffer = [0; 16];
    assert_eq!(hosts[1].read(there, &mut buffer), Err(Errno::EAGAIN));
    assert_eq!(hosts[1].events(there, POLLIN | POLLOUT), POLLOUT);
    assert_eq!(hosts[0].write(here, b"hello"), Ok(5));
    assert_eq!(hosts[0].queued(here, false), Ok(5));
    exchange(&mut hosts);
    assert!(hosts[1].is_ready(&Wait::Read(there)));
    assert_eq!(hosts[1].queued(there, true), Ok(5));
    assert_eq!((hosts[1].read(there, &mut buffer), &buffer[..5]), (Ok(5), &b"hello"[..]));
    hosts[0].shutdown(here, SHUT_WR).expect("it is connected");
    assert_eq!(hosts[0].write(here, b"more"), Err(Errno::EPIPE));
    exchange(&mut hosts);
    assert_eq!(hosts[1].read(there, &mut buffer), Ok(0));
    hosts[1].close(there).expect("a socket");
    assert_eq!(hosts[1].read(there, &mut buffer), Err(Errno::EBADF));
    exchange(&mut hosts);
    assert_eq!(hosts[0].read(here, &mut buffer), Ok(0));
}

#[test]
fn a_reset_is_reported_once() {
    let (mut hosts, here, _, there) = connected();
    let linger: Vec<u8> = [1_i32, 0].iter().flat_map(|each| each.to_ne_bytes()).collect();
    hosts[1].set_option(there, libc::SOL_SOCKET, libc::SO_LINGER, &linger).expect("an option");
    hosts[1].close(there).expect("a socket");
    exchange(&mut hosts);
    let mut buffer = [0; 4];
    assert_eq!(hosts[0].read(here, &mut buffer), Err(Errno::ECONNRESET));
    assert_eq!(hosts[0].read(here, &mut buffer), Ok(0));
    assert_eq!(hosts[0].write(here, b"x"), Err(Errno::EPIPE));
}

#[test]
fn a_new_incarnation_succeeds_one_in_time_wait() {
    let (mut hosts, here, listening, there) = connected();
    // The server closes first and waits; the client's next connection has the same port.
    hosts[1].close(there).expect("a socket");
    exchange(&mut hosts);
    hosts[0].close(here).expect("a socket");
    exchange(&mut hosts);
    for host in &mut hosts {
        let later = host.after(Duration::from_secs(2));
        while !host.advance(later) {}
    }
    let port = 49_153;
    let again = hosts[0].socket(AF_INET, SOCK_STREAM, 0).expect("a socket");
    hosts[0].bind(again, SocketAddr::new(address(1).ip(), port)).expect("it is free");
    assert_eq!(hosts[0].connect(again, address(2)), Err(Errno::EAGAIN));
    exchange(&mut hosts);
    assert_eq!(hosts[1].accept(listening).expect("a connection").1.port(), port);
}

#[test]
fn calls_on_the_wrong_sockets_are_errors() {
    let mut host = host(1);
    assert_eq!(host.socket(libc::AF_UNIX, SOCK_STREAM, 0), Err(Errno::EAFNOSUPPORT));
    assert_eq!(host.socket(AF_INET, libc::SOCK_DGRAM, 0), Err(Errno::ESOCKTNOSUPPORT));
    assert_eq!(host.socket(AF_INET, SOCK_STREAM, libc::IPPROTO_UDP), Err(Errno::EPROTONOSUPPORT));
    let fd = host.socket(AF_INET, SOCK_STREAM, 0).expect("a socket");
    assert_eq!(host.accept(fd), Err(Errno::EINVAL));
    assert_eq!(host.read(fd, &mut [0]), Err(Errno::ENOTCONN));
    assert_eq!(host.write(fd, b"x"), Err(Errno::EPIPE));
    assert_eq!(host.shutdown(fd, SHUT_WR), Err(Errno::ENOTCONN));
    assert_eq!(host.connect(fd, "[::1]:80".parse().expect("an address")), Err(Errno::EAFNOSUPPORT));
    for call in [host.listen(Fd(-1), 1), host.close(Fd(-1)), host.bind(Fd(-1), address(1))] {
        assert_eq!(call, Err(Errno::EBADF));
    }
    assert_eq!(host.option(fd, libc::IPPROTO_TCP, 9999), Err(Errno::ENOPROTOOPT));
    assert_eq!(host.set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, b"1"), Err(Errno::EINVAL));
    assert_eq!(host.set_option(fd, libc::IPPROTO_TCP, libc::TCP_CONGESTION, b"none"), Err(Errno::ENOENT));
    assert_eq!(host.set_option(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &[0; 4]), Err(Errno::EINVAL));
}

#[test]
fn a_call_that_nothing_can_end_is_no_deadlock() {
    let interface = Interface::new(&Flags::default());
    let fd = interface.call(|host| host.socket(AF_INET, SOCK_STREAM, 0)).expect("a socket");
    interface.call(|host| host.bind(fd, address(1))).expect("it is free");
    interface.call(|host| host.listen(fd, 1)).expect("it is bound");
    let accepted = interface.call_blocking(&Wait::Accept(fd), |host| host.accept(fd));
    assert_eq!(accepted, Err(Errno::EDEADLK));
    assert_eq!(interface.sniff(), None);
    let before = interface.read_clock();
    interface.sleep(Duration::from_millis(3));
    assert!(interface.read_clock() >= before + Duration::from_millis(3));
    assert!(interface.read_clock() < Time::NEVER);
}
