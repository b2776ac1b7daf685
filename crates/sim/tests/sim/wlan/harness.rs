//! A test bench for a BSS.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Duration, Probability, Stream, Streams, Time};
use lasthop_channel::{Channel, FrameLoss, Model, Sojourn, State};
use lasthop_proto::{
    Body, Component, Datagram, DropReason, Dscp, Ecn, Effect, FlowId, Handle, HostId, LinkOutcome, Out,
    Packet, Port, Signal,
};
use lasthop_sim::wlan::{AboveMac, Bss, BssConfig, Station, StationStreams};

/// A host of the wired network.
pub(crate) const SERVER: HostId = HostId(0);

/// The host of station `index`.
pub(crate) fn host(index: u32) -> HostId {
    HostId(100 + index)
}

/// The port of station `index`.
pub(crate) fn port(index: u32) -> Port {
    Port(1 + index)
}

/// Packet number `id` for `dst`.
pub(crate) fn packet(id: u64, dst: HostId, size: u64) -> Packet {
    let body = Body::Datagram(Datagram { seq: id, sent: Time::ZERO });
    Packet {
        src: SERVER,
        dst,
        flow: FlowId(0),
        size: Bytes(size),
        dscp: Dscp::DEFAULT,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body,
    }
}

pub(crate) fn id(packet: &Packet) -> u64 {
    match packet.body {
        Body::Datagram(datagram) => datagram.seq,
        _ => panic!("the tests send datagrams"),
    }
}

pub(crate) fn us(us: u64) -> Time {
    Time::ZERO + Duration::from_micros(us)
}

pub(crate) fn frame_loss(loss: f64) -> Model {
    Model::FrameLoss(FrameLoss { loss: Probability::new(loss).unwrap() })
}

/// Frames survive as listed; later ones survive.
pub(crate) struct Scripted(pub(crate) VecDeque<bool>);

impl Channel for Scripted {
    fn survival(&mut self, start: Time, end: Time, _bits: u64) -> f64 {
        assert!(start < end);
        f64::from(u8::from(self.0.pop_front().unwrap_or(true)))
    }

    fn exposure(&mut self, _start: Time, _end: Time, _each: &mut dyn FnMut(f64, Probability)) -> f64 {
        unreachable!("nothing is coded")
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn { state: State::Good, until: Time::NEVER }
    }
}

/// Actions of a BSS, with packets by number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Did {
    Deliver(Port, u64),
    Drop(u64, DropReason),
    Signal(u64, LinkOutcome, u32),
}

/// The stations of a world, with channels of one model.
pub(crate) fn stations(streams: Streams, count: u32, model: Model, above_mac: AboveMac) -> Vec<Station> {
    let station = |index| Station {
        hosts: vec![host(index)],
        channel: model.build(streams.stream(&format!("channel:{index}"))),
        above_mac,
        streams: StationStreams::named(&streams, &index.to_string()),
    };
    (0..count).map(station).collect()
}

/// The backoffs drawn by a station, or by the access point with the name "ap".
pub(crate) struct Draws(Stream);

impl Draws {
    pub(crate) fn of(seed: u64, name: &str) -> Draws {
        Draws(Streams::new(seed, 0).stream(&format!("backoff:{name}")))
    }

    /// The next backoff for a window of `cw`, in microseconds, with slots of 20.
    pub(crate) fn next(&mut self, cw: u64) -> u64 {
        20 * self.slots(cw)
    }

    pub(crate) fn slots(&mut self, cw: u64) -> u64 {
        self.0.below(cw + 1)
    }
}

/// A BSS driven by hand; checks the contract of a component.
pub(crate) struct Bench {
    pub(crate) bss: Bss,
    pub(crate) log: Vec<(Time, Did)>,
    out: Out,
    pub(crate) now: Time,
}

impl Bench {
    pub(crate) fn new(config: BssConfig, seed: u64, stations: Vec<Station>) -> Bench {
        let bss = Bss::new(config, Streams::new(seed, 0).stream("backoff:ap"), stations);
        Bench { bss, log: Vec::new(), out: Out::default(), now: Time::ZERO }
    }

    /// Perfect channels and no losses above the MAC.
    pub(crate) fn perfect(config: BssConfig, seed: u64, count: u32) -> Bench {
        let streams = Streams::new(seed, 0);
        Bench::new(config, seed, stations(streams, count, Model::Perfect, AboveMac::default()))
    }

    /// Channels that lose frames as listed for each station.
    pub(crate) fn scripted(config: BssConfig, seed: u64, fates: &[&[bool]]) -> Bench {
        let streams = Streams::new(seed, 0);
        let mut all = stations(streams, fates.len() as u32, Model::Perfect, AboveMac::default());
        for (station, fates) in all.iter_mut().zip(fates) {
            station.channel = Box::new(Scripted(fates.iter().copied().collect()));
        }
        Bench::new(config, seed, all)
    }

    /// Advances time to `at`, without waking the BSS at `at` itself.
    pub(crate) fn until(&mut self, at: Time) {
        while self.bss.next_wakeup() < at {
            self.wake();
        }
        self.now = at;
    }

    /// Enqueues a packet at `at`.
    pub(crate) fn send(&mut self, at: Time, port: Port, packet: Packet) {
        self.until(at);
        self.enter(port, packet);
    }

    /// Enqueues a packet now.
    pub(crate) fn enter(&mut self, port: Port, packet: Packet) {
        self.bss.receive(self.now, &packet, port, &mut self.out);
        self.take();
    }

    /// Runs until the BSS has no wake-up pending.
    pub(crate) fn finish(&mut self) -> &[(Time, Did)] {
        while self.bss.next_wakeup() < Time::NEVER {
            self.wake();
        }
        &self.log
    }

    pub(crate) fn wake(&mut self) {
        let due = self.bss.next_wakeup();
        assert!(due >= self.now, "it asked for an instant that is past");
        self.now = due;
        self.bss.wake(due, &mut self.out);
        let silent = self.out.is_empty();
        self.take();
        assert!(!silent || self.bss.next_wakeup() > due, "it woke, did nothing and wants to wake at once");
    }

    fn take(&mut self) {
        assert_eq!(self.bss.next_wakeup(), self.bss.next_wakeup());
        while let Some((_, effect)) = self.out.take() {
            let did = match effect {
                Effect::Send(port, packet) => Did::Deliver(port, id(&packet)),
                Effect::Drop(packet, reason) => Did::Drop(id(&packet), reason),
                Effect::Corrupt(_, packet) => Did::Drop(id(&packet), DropReason::Corrupted),
                Effect::Signal(Signal::Link(event)) => {
                    Did::Signal(id(&event.packet), event.outcome, event.attempt)
                }
                Effect::Signal(signal) => panic!("a BSS does not say {signal:?}"),
            };
            self.log.push((self.now, did));
        }
    }
}
