//! The observer by hand: packets and replies at given times.

use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};

use super::observer::Observer;
use super::{Pemi, is_quic};
use crate::packet::{Body, Datagram, Dscp, Ecn, FlowId, Handle, HostId, Packet};
use crate::scheme::connections::ConnectionState;

fn at(microseconds: u64) -> Time {
    Time::ZERO + Duration::from_micros(microseconds)
}

fn packet(seq: u64) -> Packet {
    let (src, dst, flow) = (HostId(0), HostId(1), FlowId(0));
    let body = Body::Datagram(Datagram { seq, sent: Time::ZERO });
    let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle(1));
    Packet { src, dst, flow, size: Bytes(1500), dscp, ecn, handle, body }
}

fn seq(packet: &Packet) -> u64 {
    let Body::Datagram(datagram) = packet.body else { panic!("{packet:?}") };
    datagram.seq
}

/// A path of 10 ms on which a receiver acknowledges every packet or every other one.
struct Path {
    observer: Observer,
    every: u64,
    lost: Vec<u64>,
    abandoned: u64,
    /// Replies to come, in order.
    replies: Vec<Time>,
    unacknowledged: u64,
    next: u64,
}

const ROUND_TRIP: u64 = 10_000;

impl Path {
    fn new(every: u64) -> Path {
        let observer = Observer::new(Time::ZERO, &());
        Path {
            observer,
            every,
            lost: Vec::new(),
            abandoned: 0,
            replies: Vec::new(),
            unacknowledged: 0,
            next: 0,
        }
    }

    /// Handles replies and deadlines until then. A repair arrives, and is acknowledged at once.
    fn reply_until(&mut self, end: Time) {
        let scheme = Pemi::default();
        loop {
            let reply = self.replies.first().copied().unwrap_or(Time::NEVER);
            let now = reply.min(self.observer.deadline(&scheme));
            if now > end {
                return;
            }
            let lost = if now == reply {
                self.replies.remove(0);
                self.observer.on_reply(now, Bytes(60), &scheme, &mut self.abandoned)
            } else {
                self.observer.on_time(now, &scheme, &mut self.abandoned)
            };
            self.lost.extend(lost.iter().map(seq));
            let arrival = now + Duration::from_micros(ROUND_TRIP);
            let place = self.replies.partition_point(|reply| *reply <= arrival);
            self.replies.splice(place..place, lost.iter().map(|_| arrival));
        }
    }

    /// Sends the packets of a flowlet from `begin` on, `gap` apart, of which those in `missing` do not arrive.
    fn send(&mut self, begin: u64, gap: u64, count: u64, missing: &[u64]) {
        for number in 0..count {
            let now = at(begin + number * gap);
            self.reply_until(now);
            self.observer.on_packet(now, &packet(self.next), &Pemi::default(), &mut self.abandoned);
            self.next += 1;
            if missing.contains(&number) {
                // What follows it is out of order, and acknowledged at once.
                self.unacknowledged = self.every - 1;
                continue;
            }
            self.unacknowledged += 1;
            if self.unacknowledged >= self.every || number + 1 == count {
                self.unacknowledged = 0;
                let arrival = now + Duration::from_micros(ROUND_TRIP);
                let place = self.replies.partition_point(|reply| *reply <= arrival);
                self.replies.insert(place, arrival);
            }
        }
    }
}

/// Ten packets 1 ms apart, each 50 ms: those that are lost are found, and no others, once the direction of the data is known. The last
/// packet arrives: without its reply, the other nine seem to be those to the last nine packets.
#[test]
fn lost_packets_of_flowlets_are_found() {
    let mut random: Stream = Streams::new(46, 0).stream("pemi");
    let mut path = Path::new(1);
    let mut expected = Vec::new();
    for flowlet in 0..400 {
        let missing: Vec<u64> = (0..9).filter(|_| flowlet > 3 && random.bernoulli(0.03)).collect();
        expected.extend(missing.iter().map(|number| path.next + number));
        path.send(50_000 * flowlet, 1_000, 10, &missing);
    }
    path.reply_until(at(30_000_000));
    path.lost.sort_unstable();
    assert!(expected.len() > 80, "{}", expected.len());
    let wrong = path.lost.iter().filter(|lost| !expected.contains(lost)).count();
    let missed = expected.iter().filter(|lost| !path.lost.contains(lost)).count();
    assert_eq!((wrong, missed, path.abandoned), (0, 0, 0), "{expected:?} {:?}", path.lost);
}

/// A receiver that acknowledges every other packet: half of the packets have no reply, and are not sent again.
#[test]
fn packets_without_a_reply_of_their_own_are_not_lost() {
    let mut path = Path::new(2);
    for flowlet in 0..200 {
        path.send(50_000 * flowlet, 1_000, 10, if flowlet % 10 == 9 { &[4] } else { &[] });
    }
    path.reply_until(at(20_000_000));
    // The first estimate of how many packets a reply acknowledges takes 50 packets.
    let late: Vec<u64> = path.lost.iter().copied().filter(|lost| *lost >= 100).collect();
    assert!(late.len() < 40, "{} of 2,000: {late:?}", late.len());
}

/// Packets of one burst may share a reply; a whole flowlet without one is lost.
#[test]
fn a_burst_is_lost_as_a_whole() {
    let mut path = Path::new(1);
    for flowlet in 0..20 {
        path.send(50_000 * flowlet, 1_000, 6, &[]);
    }
    let before = path.next;
    path.reply_until(at(1_100_000));
    path.lost.clear();
    path.send(1_100_000, 10, 5, &[1, 3]);
    path.send(1_150_000, 1_000, 3, &[0, 1, 2]);
    path.reply_until(at(2_000_000));
    assert_eq!(path.lost, [before + 5, before + 6, before + 7]);
}

/// A flowlet without end is not protected, and not kept.
#[test]
fn a_flow_without_gaps_is_left_alone() {
    let mut path = Path::new(1);
    path.send(0, 1_000, 5_000, &(0..5_000).filter(|number| number % 50 == 49).collect::<Vec<_>>());
    assert!(path.lost.len() < 20 && path.observer.cached() <= 1_000, "{:?}", path.lost);
    path.reply_until(at(10_000_000));
    assert!(path.lost.len() < 20 && path.abandoned >= 1, "{:?}", path.lost);
}

/// Only packets with bytes of their own are QUIC's; uploads are not protected.
#[test]
fn uploads_and_other_packets_are_left_alone() {
    assert!(is_quic(&packet(0)) && !is_quic(&Packet { handle: Handle::NONE, ..packet(0) }));
    let (mut observer, scheme, mut abandoned) = (Observer::new(Time::ZERO, &()), Pemi::default(), 0);
    for number in 0..500 {
        let now = at(50_000 * (number / 10) + 1_000 * (number % 10));
        let ack = Packet { size: Bytes(60), ..packet(number) };
        let overdue = observer.on_time(now, &scheme, &mut abandoned);
        observer.on_packet(now, &ack, &scheme, &mut abandoned);
        let reply = now + Duration::from_micros(10);
        let is_lost = number % 10 == 5;
        let size = Bytes(1500);
        let lost = if is_lost { vec![] } else { observer.on_reply(reply, size, &scheme, &mut abandoned) };
        assert!(lost.is_empty() && overdue.is_empty(), "{number}");
    }
    assert!(observer.on_time(at(9_000_000), &scheme, &mut abandoned).is_empty());
}
