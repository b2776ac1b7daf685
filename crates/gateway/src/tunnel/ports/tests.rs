//! Ports to kernels that refuse: what leaves is what entered, in its order, whatever leaves together.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use lasthop_base::Streams;
use lasthop_proto::Dscp;
use lasthop_proto::scheme::parameters::PacketFec;
use lasthop_proto::tcp::{Segment, SeqNum};
use lasthop_tunnel::{Help, Key, Settings, Tunnel};
use lasthop_wire::{Ip, TcpHeader, write};

use super::*;

/// A kernel that cuts super-packets, if it takes them.
#[derive(Debug, Default)]
struct Kernel {
    takes_udp: bool,
    takes_merged: bool,
    is_down: bool,
    got: Vec<Vec<u8>>,
    merged_udp: u64,
    asked: u64,
}

impl Interface for Kernel {
    fn takes_udp(&self) -> bool {
        self.takes_udp
    }

    fn send(&mut self, header: &[u8; VIRTIO_HEADER], packet: &[u8]) -> io::Result<bool> {
        if self.is_down {
            return Ok(false);
        }
        let offload = Offload::parse(header);
        let Some((size, is_tcp)) = offload.segments else {
            self.got.push(packet.to_vec());
            return Ok(true);
        };
        self.asked += 1;
        assert!(is_tcp || self.takes_udp, "it does not know super-packets of UDP");
        if self.takes_merged {
            let whole = IpPacket::parse(packet).expect("a packet");
            self.got.extend(offload::segments(&whole, size, offload.cwr()).expect("a super-packet"));
            self.merged_udp += u64::from(!is_tcp);
        }
        Ok(self.takes_merged)
    }
}

/// A network card, and the first link behind it.
#[derive(Debug, Default)]
struct Card {
    /// What becomes of batches.
    refuses: Option<Unsent>,
    /// The longest datagram.
    longest: Option<usize>,
    /// Of how many batches one meets a full queue.
    full: Option<u64>,
    got: Vec<Vec<u8>>,
    asked: u64,
}

impl Socket for Card {
    fn send(&mut self, _ends: Ends, _tos: Tos, datagram: &[u8]) -> Result<(), Unsent> {
        if self.longest.is_some_and(|longest| datagram.len() > longest) {
            return Err(Unsent::Oversized);
        }
        self.got.push(datagram.to_vec());
        Ok(())
    }

    fn send_batch(&mut self, _ends: Ends, _tos: Tos, size: usize, bytes: &[u8]) -> Result<(), Unsent> {
        self.asked += 1;
        if self.full.is_some_and(|full| self.asked.is_multiple_of(full)) {
            return Err(Unsent::Refused);
        }
        let refuses = self.longest.filter(|longest| size > *longest).map(|_| Unsent::Unclear);
        if let Some(why) = self.refuses.or(refuses) {
            return Err(why);
        }
        self.got.extend(bytes.chunks(size).map(<[u8]>::to_vec));
        Ok(())
    }
}

fn ports(tun: Kernel, datagrams: Card) -> Ports<Kernel, Card> {
    Ports::new(tun, datagrams, 1400, None)
}

/// The packet `number` of a flow of TCP over IPv4, or of UDP over IPv6.
fn packet(is_tcp: bool, number: u32, is_damaged: bool) -> Vec<u8> {
    let host = |last: u8| match is_tcp {
        true => IpAddr::from(Ipv4Addr::new(10, 0, 0, last)),
        false => IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into())),
    };
    let identification = if is_tcp { number as u16 } else { 0 };
    let (src, dst) = (host(1), host(2));
    let ecn = Ecn::NotEct;
    let ip = Ip { src, dst, dscp: Dscp::DEFAULT, ecn, hop_limit: 64, identification, dont_fragment: true };
    let payload = [&number.to_be_bytes()[..], &[7; 200]].concat();
    let mut bytes = if is_tcp {
        let seq = SeqNum(number * payload.len() as u32);
        let segment = Segment { seq, flags: Flags::ACK, ..Segment::default() };
        let header = TcpHeader { src_port: 80, dst_port: 4000, segment, ..TcpHeader::default() };
        write::tcp(&ip, &header, &payload)
    } else {
        write::udp(&ip, (80, 4000), &payload)
    }
    .expect("short enough");
    if is_damaged {
        *bytes.last_mut().expect("a payload") ^= 1;
    }
    bytes
}

#[test]
fn packets_leave_as_they_entered() {
    for (takes_udp, takes_merged, is_down) in
        [(true, true, false), (false, true, false), (true, false, false), (true, true, true)]
    {
        let mut ports =
            ports(Kernel { takes_udp, takes_merged, is_down, ..Kernel::default() }, Card::default());
        let mut draw = Streams::new(47, 0).stream("packets");
        let (mut entered, mut numbers) = (Vec::new(), [0; 2]);
        let mut is_tcp = true;
        for _ in 0..400 {
            is_tcp ^= draw.bernoulli(0.1);
            let number = &mut numbers[usize::from(is_tcp)];
            let bytes = packet(is_tcp, *number, draw.bernoulli(0.05));
            *number += 1;
            ports.packet(&bytes, Ecn::NotEct);
            entered.push(bytes);
            if draw.bernoulli(0.02) {
                ports.flush(Time::ZERO);
            }
        }
        ports.flush(Time::ZERO);
        let (kernel, handed) = (&ports.tun, ports.handed);
        if is_down {
            assert_eq!((handed.refused, handed.merged), (400, 0));
            continue;
        }
        assert!(kernel.got == entered, "{takes_udp} {takes_merged}");
        assert_eq!((handed.refused, handed.merged), (0, if takes_merged { kernel.asked } else { 0 }));
        assert!(kernel.asked > 10 && (kernel.merged_udp > 5) == (takes_udp && takes_merged), "{kernel:?}");
    }
}

fn peer() -> Ends {
    SocketAddr::from(([192, 0, 2, 1], 9332)).into()
}

/// Lets ten datagrams enter, of which the first four have `long` bytes, at a speed that makes batches.
fn enter(ports: &mut Ports<Kernel, Card>, long: usize, now: Time) -> Vec<Vec<u8>> {
    let datagrams: Vec<Vec<u8>> = (0..10).map(|at| vec![at; if at < 4 { long } else { 1000 }]).collect();
    for datagram in &datagrams {
        ports.datagram(peer(), Tos::default(), datagram, None);
    }
    ports.flush(now);
    datagrams
}

/// Ports that have sent enough for batches, and the time.
fn fast(card: Card) -> (Ports<Kernel, Card>, Time) {
    let mut ports = ports(Kernel::default(), card);
    for _ in 0..1000 {
        ports.datagram(peer(), Tos::default(), &[0; 1000], None);
    }
    let now = Time::ZERO + Duration::from_millis(10);
    ports.flush(now);
    ports.datagrams.got.clear();
    (ports, now)
}

#[test]
fn datagrams_leave_whatever_becomes_of_batches() {
    for refuses in [None, Some(Unsent::Uncut), Some(Unsent::Unclear)] {
        let (mut ports, mut now) = fast(Card { refuses, ..Card::default() });
        let mut asked = 0;
        for round in 0..4 {
            let datagrams = enter(&mut ports, 1000, now);
            assert!(std::mem::take(&mut ports.datagrams.got) == datagrams);
            asked += u64::from(refuses.is_none() || round == 0);
            assert_eq!(ports.datagrams.asked, asked, "{refuses:?}: it is remembered");
            now += Duration::from_millis(1);
        }
        assert_eq!(ports.handed.batches, if refuses.is_none() { asked } else { 0 });
        assert_eq!((ports.handed.unsent, ports.handed.oversized), (0, 0));
    }
}

#[test]
fn batches_are_tried_again() {
    let (mut ports, now) = fast(Card { refuses: Some(Unsent::Uncut), ..Card::default() });
    enter(&mut ports, 1000, now);
    assert_eq!((ports.datagrams.asked, ports.batches_from), (1, now + PAUSE));
    ports.datagrams.refuses = None;
    for (after, batches) in [(PAUSE - Duration::from_nanos(1), 0), (PAUSE, 1)] {
        ports.flushed_at = now + after;
        (0..10).for_each(|_| ports.datagram(peer(), Tos::default(), &[0; 1000], None));
        ports.flush_datagrams();
        assert_eq!(ports.handed.batches, batches);
    }
}

#[test]
fn one_datagram_may_fail_for_itself() {
    // Of those that are too long, the tunnel is told; it is no reason to end batches.
    let (mut ports, now) = fast(Card { longest: Some(1100), ..Card::default() });
    let datagrams = enter(&mut ports, 1200, now);
    assert!(ports.datagrams.got == datagrams[4..]);
    assert_eq!((ports.handed.oversized, ports.oversized, ports.batches_from), (4, Some(1200), Time::ZERO));
    // A full queue takes none of a batch.
    ports.datagrams.refuses = Some(Unsent::Refused);
    enter(&mut ports, 1000, now);
    assert_eq!((ports.handed.unsent, ports.batches_from), (10, Time::ZERO));
    // An interface that cuts none is remembered, whatever its datagrams come to.
    ports.datagrams.refuses = Some(Unsent::Uncut);
    (0..3).for_each(|_| ports.datagram(peer(), Tos::default(), &[0; 1200], None));
    ports.flush(now);
    assert_eq!((ports.handed.oversized, ports.batches_from), (7, now + PAUSE));
}

/// A full queue of this host drops whole batches, of which none has more of a block than its code repairs.
#[test]
fn a_code_repairs_what_a_lost_batch_had() {
    // Whole blocks: what is left of one waits for a moment only.
    const EACH: u32 = 96;
    let code = PacketFec { k: 8, n: 12, ..PacketFec::default() };
    let hosts = [1, 2].map(|host| SocketAddr::from(([192, 0, 2, host], 9332)));
    let mut ends = [Some(hosts[1]), None].map(|peer| {
        let settings = Settings {
            classes: vec![Help::None, Help::Fec(code.clone())],
            unhelped: 0,
            peer,
            rate: None,
            sizes: 528..=1452,
            adapts: false,
            patience: Duration::from_secs(3),
        };
        let salt = [u8::from(peer.is_some()); 16];
        let card = Card { full: Some(5), ..Card::default() };
        let ports = ports(Kernel { takes_merged: true, ..Kernel::default() }, card);
        (Tunnel::new(settings, Key::new([3; 32]), salt), ports)
    });
    let (mut now, mut entered) = (Time::ZERO, Vec::new());
    for round in 0..2000 {
        now += Duration::from_millis(1);
        for from in [0, 1] {
            let [first, second] = &mut ends;
            let ((near, ports), (far, far_ports)) = if from == 0 { (first, second) } else { (second, first) };
            if from == 0 && near.is_up() && round < 200 {
                for _ in 0..EACH {
                    let bytes = packet(true, entered.len() as u32, false);
                    near.send(now, 1, Tos::default(), &bytes, ports);
                    entered.push(bytes);
                }
            }
            if near.next_wakeup() <= now {
                near.wake(now, ports);
            }
            ports.flush(now);
            for mut datagram in std::mem::take(&mut ports.datagrams.got) {
                far.receive(now, &mut datagram, (hosts[from].into(), Ecn::NotEct), far_ports);
            }
        }
    }
    ends[1].1.flush(now);
    let [(_, near), (far, got)] = &ends;
    let fec = far.counters().fec;
    assert!(near.handed.batches > 1000 && near.handed.unsent > 1000, "{:?}", near.handed);
    assert!(fec.recovered > 1000 && fec.unrecovered == 0, "{fec:?}");
    let first = got.tun.got.iter().zip(&entered).position(|(got, entered)| got != entered);
    assert!(got.tun.got == entered, "{first:?} of {}, {}", entered.len(), got.tun.got.len());
}
