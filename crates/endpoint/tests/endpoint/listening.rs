//! A listener: many connections to one address.

use std::net::SocketAddr;

use lasthop_base::{Duration, Time};
use lasthop_endpoint::{Endpoint, Incoming, Listener, Outgoing, StateName};
use lasthop_proto::tcp::Flags;

use crate::peer::{ACK, RST, SYN, SYN_ACK, config};
use crate::world::{address, secret};

const BEGIN: Time = Time::from_nanos(1_000_000_000);

fn listener(local: SocketAddr, backlog: usize) -> Listener {
    Listener::new(config(), local, backlog, secret(1))
}

fn client(number: u16) -> Endpoint {
    let local = SocketAddr::new(address(2, true).ip(), 6000 + number);
    Endpoint::connect(BEGIN, config(), local, address(1, true), secret(number.into()))
}

/// Exchanges packets until none is left; returns those that belong to no connection.
fn exchange(listener: &mut Listener, ends: &mut [Endpoint]) -> Vec<Outgoing> {
    let mut stray = Vec::new();
    loop {
        if let Some(packet) = listener.poll() {
            match ends.iter_mut().find(|end| end.is_for(&Incoming::from(&packet))) {
                Some(end) => end.receive(BEGIN, &Incoming::from(&packet)),
                None => stray.push(packet),
            }
        } else if let Some(packet) = ends.iter_mut().find_map(Endpoint::poll) {
            listener.receive(BEGIN, &Incoming::from(&packet));
        } else {
            return stray;
        }
    }
}

// Rule: A listener takes many connections to one address and gives them out in the order in which they open;
// SYN beyond the backlog is ignored. [9293 3.10.1, 3.10.7.2; listener.rs]
#[test]
fn each_syn_begins_a_connection_and_all_are_accepted_in_order() {
    let mut listener = listener(address(1, true), 8);
    let mut clients: Vec<Endpoint> = (0..3).map(client).collect();
    exchange(&mut listener, &mut clients);
    assert_eq!((listener.opening(), listener.waiting()), (0, 3));
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.state(), StateName::Established);
        let accepted = listener.accept().expect("a connection waits");
        assert_eq!(accepted.remote(), Some(client.local()), "{number}");
        assert_eq!(accepted.state(), StateName::Established);
    }
    assert!(listener.accept().is_none());
}

// Rule: as each_syn_begins_a_connection_and_all_are_accepted_in_order
#[test]
fn data_that_arrive_before_a_connection_is_accepted_are_kept() {
    let mut listener = listener(address(1, true), 8);
    let mut clients = [client(1)];
    clients[0].send(BEGIN, b"early");
    exchange(&mut listener, &mut clients);
    let mut accepted = listener.accept().expect("a connection waits");
    let mut buffer = [0; 8];
    assert_eq!((accepted.read(BEGIN, &mut buffer), &buffer[..5]), (5, &b"early"[..]));
}

// Rule: as each_syn_begins_a_connection_and_all_are_accepted_in_order
#[test]
fn a_full_backlog_ignores_syn_until_a_connection_is_accepted() {
    let mut listener = listener(address(1, true), 2);
    let mut clients: Vec<Endpoint> = (0..3).map(client).collect();
    exchange(&mut listener, &mut clients);
    assert_eq!(clients[2].state(), StateName::SynSent);
    listener.accept().expect("a connection waits");
    let later = clients[2].next_wakeup();
    clients[2].wake(later);
    exchange(&mut listener, &mut clients);
    assert_eq!(clients[2].state(), StateName::Established);
}

// Rule: A handshake that is reset or never completed leaves nothing; closing the listener resets what was not
// accepted. [9293 3.10.4, 3.10.7.4; listener.rs]
#[test]
fn a_handshake_that_is_reset_leaves_nothing() {
    let mut listener = listener(address(1, true), 1);
    let mut first = client(1);
    let syn = first.poll().expect("a SYN");
    listener.receive(BEGIN, &Incoming::from(&syn));
    let answer = listener.poll().expect("a SYN-ACK");
    assert_eq!((answer.header.segment.flags & SYN_ACK, listener.opening()), (SYN_ACK, 1));
    let mut reset = syn.clone();
    reset.header.segment.seq += 1;
    reset.header.segment.flags = Flags::RST;
    listener.receive(BEGIN, &Incoming::from(&reset));
    assert_eq!((listener.opening(), listener.waiting()), (0, 0));
    exchange(&mut listener, &mut [client(2)]);
    assert_eq!(listener.waiting(), 1);
}

// Rule: as a_handshake_that_is_reset_leaves_nothing
#[test]
fn timers_of_handshakes_run_until_they_are_given_up() {
    let mut listener = listener(address(1, true), 1);
    let syn = client(1).poll().expect("a SYN");
    listener.receive(BEGIN, &Incoming::from(&syn));
    let mut sent = 0;
    while listener.next_wakeup() < Time::NEVER {
        let now = listener.next_wakeup();
        assert!(now < BEGIN + Duration::from_secs(400), "it is given up");
        listener.wake(now);
        sent += std::iter::from_fn(|| listener.poll()).count();
    }
    assert!((5..12).contains(&sent), "{sent} SYN-ACKs");
    assert_eq!(listener.opening(), 0);
}

// Rule: as a_handshake_that_is_reset_leaves_nothing
#[test]
fn closing_resets_what_was_not_accepted() {
    let mut listener = listener(address(1, true), 8);
    let mut clients = [0, 1].map(client);
    exchange(&mut listener, &mut clients);
    let accepted = listener.accept().expect("a connection waits");
    listener.close(BEGIN);
    exchange(&mut listener, &mut clients);
    assert_eq!(accepted.state(), StateName::Established);
    assert_eq!(clients.map(|client| client.state()), [StateName::Established, StateName::Closed]);
}

// Rule: as each_syn_begins_a_connection_and_all_are_accepted_in_order
#[test]
fn segments_for_no_connection_are_refused_and_other_addresses_ignored() {
    let unspecified = SocketAddr::new([0, 0, 0, 0].into(), address(1, true).port());
    for local in [address(1, true), unspecified] {
        let mut listener = listener(local, 8);
        let mut packet = client(1).poll().expect("a SYN");
        packet.header.segment.flags = ACK;
        listener.receive(BEGIN, &Incoming::from(&packet));
        assert_eq!(listener.poll().map(|packet| packet.header.segment.flags), Some(RST));
        packet.header.segment.flags = SYN;
        packet.remote.set_port(1);
        listener.receive(BEGIN, &Incoming::from(&packet));
        assert!(listener.poll().is_none());
        exchange(&mut listener, &mut [client(1)]);
        assert_eq!(listener.accept().expect("a connection waits").local(), address(1, true));
    }
}
