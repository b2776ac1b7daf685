//! A transfer between real sockets: the ends of simulations, quinn's state machines with handshakes and packets that have the sizes of
//! TLS and no cryptography, driven by the clock of the machine.
//!
//! ```text
//! udp serve PORT SENDER                    sends without end to the first client
//! udp fetch ADDRESS:PORT SENDER SECONDS    prints the throughput from the first packet on, in bits per second
//! ```

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_proto::stack::{Contents, Stack, StackFlow};
use lasthop_proto::tcp::{Connection, Transfer};
use lasthop_proto::{
    Body, Component, Datagram, Dscp, Ecn, Effect, FlowId, Handle, HostId, Out, Packet, Port, quic,
};
use lasthop_quic::Quinn;

/// The bytes of datagrams between an end and its socket.
#[derive(Debug, Default)]
struct InTransit(Mutex<(u32, BTreeMap<u32, Vec<u8>>)>);

impl Contents for InTransit {
    fn put(&self, bytes: &[u8]) -> Handle {
        let (last, kept) = &mut *self.0.lock().expect("no thread panics");
        *last = last.wrapping_add(1).max(1);
        kept.insert(*last, bytes.to_vec());
        Handle(*last)
    }

    fn take(&self, handle: Handle, read: &mut dyn FnMut(&[u8])) {
        let found = self.0.lock().expect("no thread panics").1.remove(&handle.0);
        found.iter().for_each(|bytes| read(bytes));
    }
}

/// An end and its socket.
struct Driver {
    end: Box<dyn Component>,
    contents: Arc<InTransit>,
    socket: UdpSocket,
    /// Datagrams that have arrived. A thread waits for them, since timeouts of sockets are coarse.
    arrivals: Receiver<(SocketAddr, Vec<u8>)>,
    peer: Option<SocketAddr>,
    began: Instant,
}

impl Driver {
    fn now(&self) -> Time {
        Time::ZERO + Duration::from_nanos(u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Runs until `until`, or until the end has given up.
    fn run(&mut self, until: Time) -> Result<(), Box<dyn Error>> {
        let mut out = Out::default();
        loop {
            let now = self.now();
            if now >= until {
                return Ok(());
            }
            if self.end.next_wakeup() <= now {
                self.end.wake(now, &mut out);
            }
            while let Some((_, effect)) = out.take() {
                let Effect::Send(_, packet) = effect else { continue };
                if let Some(peer) = self.peer {
                    let mut sent = Ok(0);
                    self.contents.take(packet.handle, &mut |bytes| sent = self.socket.send_to(bytes, peer));
                    // A full buffer loses a datagram as a queue does.
                    let _ = sent;
                }
            }
            // The clock goes on meanwhile.
            let due = self.end.next_wakeup().min(until).as_nanos();
            let wait = std::time::Duration::from_nanos(due.saturating_sub(self.now().as_nanos()));
            let arrival = self.arrivals.recv_timeout(wait);
            if let Ok((from, bytes)) = arrival {
                self.peer.get_or_insert(from);
                let now = self.now();
                let packet = Packet {
                    src: HostId(0),
                    dst: HostId(1),
                    flow: FlowId(0),
                    size: Bytes(bytes.len() as u64) + quic::Settings::HEADERS,
                    dscp: Dscp::DEFAULT,
                    ecn: Ecn::NotEct,
                    handle: self.contents.put(&bytes),
                    body: Body::Datagram(Datagram { seq: 0, sent: now }),
                };
                self.end.receive(now, &packet, Port::ONLY, &mut out);
            }
        }
    }
}

fn driver(
    sender: &str,
    place: usize,
    socket: UdpSocket,
    peer: Option<SocketAddr>,
) -> Result<Driver, Box<dyn Error>> {
    let sender = Quinn.senders().iter().find(|each| each.name == sender);
    let contents = Arc::<InTransit>::default();
    let flow = StackFlow {
        connection: Connection { src: HostId(0), dst: HostId(1), flow: FlowId(0) },
        sender: sender
            .ok_or("found no such sender, expected quinn-cubic or another of `lasthop run --sender`")?
            .name,
        quic: &quic::Settings::default(),
        random: Streams::new(1, 0).stream("udp"),
        contents: contents.clone(),
        log: None,
        sidecar: None,
    };
    let ends = Quinn.transfer(&flow, Transfer { bytes: None, start: Time::ZERO });
    let end = ends.into_iter().nth(place).ok_or("two ends")?;
    let (into, arrivals) = mpsc::channel();
    let listener = socket.try_clone()?;
    thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok((length, from)) = listener.recv_from(&mut buffer) {
            if into.send((from, buffer[..length].to_vec())).is_err() {
                return;
            }
        }
    });
    Ok(Driver { end, contents, socket, arrivals, peer, began: Instant::now() })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", port, sender] => {
            let socket = UdpSocket::bind(("0.0.0.0", port.parse()?))?;
            driver(sender, 0, socket, None)?.run(Time::NEVER)
        }
        ["fetch", address, sender, seconds] => {
            let peer: SocketAddr = address.parse()?;
            let socket = UdpSocket::bind(("0.0.0.0", 0))?;
            let seconds: f64 = seconds.parse()?;
            let mut client = driver(sender, 1, socket, Some(peer))?;
            client.run(Time::ZERO + Duration::from_secs_f64(seconds))?;
            let delivered = client.end.report().ok_or("an end reports")?.counters.delivered;
            println!("{}", delivered.bits() as f64 / seconds);
            Ok(())
        }
        _ => Err("expected serve PORT SENDER, or fetch ADDRESS:PORT SENDER SECONDS".into()),
    }
}
