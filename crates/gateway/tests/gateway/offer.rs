//! Datagrams to each class of a tunnel, as fast as they are taken.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::hosts::{CLIENT, Network, PATIENCE, address};

/// A port for each class.
pub(super) const PORTS: [u16; 5] = [7100, 7200, 7300, 7400, 7500];

/// By how many numbers the sender may be ahead of every port: with five ports, 300 packets, less than any queue on the way holds,
/// however long who reads it may not run.
const AHEAD: u32 = 60;

/// The number of datagrams that say that no others follow.
const END: u16 = u16::MAX;

/// How long none must come behind one that says so: those that a code or a repetition brings may be later.
const SILENCE: Duration = Duration::from_secs(1);

/// What a port has received.
#[derive(Debug, Default)]
struct Port {
    count: AtomicU32,
    /// The largest number, counted from one.
    last: AtomicU32,
    is_done: AtomicBool,
}

/// Receives `number` datagrams, or fewer if no others follow; returns how many came, and how many came out of order.
fn receive(socket: &UdpSocket, number: u16, len: usize, port: &Port) -> (u32, u32) {
    socket.set_read_timeout(Some(SILENCE / 10)).expect("a socket");
    let (mut overtaken, mut last, mut buffer) = (0, 0, [0; 2000]);
    let mut silent_from = None;
    loop {
        if let Ok(received) = socket.recv(&mut buffer) {
            assert_eq!(received, len);
            let number = u16::from_be_bytes([buffer[0], buffer[1]]);
            if number == END {
                silent_from.get_or_insert_with(Instant::now);
            } else {
                silent_from = silent_from.map(|_| Instant::now());
                port.count.fetch_add(1, Ordering::Relaxed);
                port.last.fetch_max(u32::from(number) + 1, Ordering::Relaxed);
                overtaken += u32::from(number < last);
                last = last.max(number);
            }
        }
        let count = port.count.load(Ordering::Relaxed);
        if count == u32::from(number) || silent_from.is_some_and(|from: Instant| from.elapsed() > SILENCE) {
            port.is_done.store(true, Ordering::Relaxed);
            return (count, overtaken);
        }
    }
}

/// Sends `number` datagrams of the client to each port of the server; returns how many of each came, and how many came out of order.
pub(super) fn offer(
    network: &Network,
    host: &'static str,
    number: u16,
    len: usize,
) -> [(u32, u32); PORTS.len()] {
    let ports: Arc<[Port; PORTS.len()]> = Arc::default();
    let receivers = {
        let ports = Arc::clone(&ports);
        network.server.run(move || {
            [0, 1, 2, 3, 4].map(|place| {
                let socket = UdpSocket::bind(address(host, PORTS[place])).expect("a port");
                let ports = Arc::clone(&ports);
                thread::spawn(move || receive(&socket, number, len, &ports[place]))
            })
        })
    };
    network.client.run(move || {
        let own = if host.contains(':') { CLIENT[1] } else { CLIENT[0] };
        let socket = UdpSocket::bind(address(own, 0)).expect("a port");
        let send = |number: u16, port: u16| {
            let mut datagram = vec![7; len];
            datagram[..2].copy_from_slice(&number.to_be_bytes());
            socket.send_to(&datagram, address(host, port)).expect("a route");
        };
        let end = Instant::now() + 3 * PATIENCE;
        for number in 0..number {
            let least = || ports.iter().map(|port| port.last.load(Ordering::Relaxed)).min().expect("ports");
            while u32::from(number) > least() + AHEAD {
                assert!(Instant::now() < end, "{ports:?}");
                thread::sleep(Duration::from_micros(100));
            }
            PORTS.iter().for_each(|port| send(number, *port));
        }
        let is_open = |(_, port): &(&u16, &Port)| !port.is_done.load(Ordering::Relaxed);
        while PORTS.iter().zip(&*ports).filter(is_open).map(|(port, _)| send(END, *port)).count() > 0 {
            assert!(Instant::now() < end, "{ports:?}");
            thread::sleep(Duration::from_millis(20));
        }
    });
    receivers.map(|receiver| receiver.join().expect("it ends"))
}
