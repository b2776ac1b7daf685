//! A test bench for a link, and scripted channels.

use std::sync::mpsc::Sender;

use lasthop_base::{BitRate, Bytes, Duration, Probability, Streams, Time};
use lasthop_channel::{Channel, Sojourn, State};
use lasthop_proto::arq::{Backoff, Config, Retransmissions, selective_repeat, stop_and_wait};
use lasthop_proto::frag::Mtu;
use lasthop_proto::tcp::SeqNum;
use lasthop_proto::{
    Body, Component, DropReason, Dscp, Ecn, Effect, FlowId, FrameEvent, Handle, HostId, LinkOutcome, Notice,
    NoticeCode, Out, Packet, Port, Signal,
};
use lasthop_sim::{Link, QueueLimit, RadioConfig};
use lasthop_testing::net::plain_radio;

/// Packet number `id`, with `size` bytes.
pub(crate) fn packet(id: u32, size: u64) -> Packet {
    let notice = Notice { code: NoticeCode { kind: 41, code: 0 }, seq: SeqNum(id) };
    let (src, dst, dscp) = (HostId(0), HostId(1), Dscp::DEFAULT);
    Packet {
        src,
        dst,
        flow: FlowId(0),
        size: Bytes(size),
        dscp,
        ecn: Ecn::NotEct,
        handle: Handle::NONE,
        body: Body::Notice(notice),
    }
}

fn id(packet: &Packet) -> u32 {
    match packet.body {
        Body::Notice(notice) => notice.seq.0,
        _ => panic!("the tests send notices"),
    }
}

pub(crate) fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

pub(crate) fn mtu(bytes: u64) -> Option<Mtu> {
    Mtu::new(Bytes(bytes))
}

pub(crate) fn stop_and_wait(retransmissions: Retransmissions, backoff: Backoff) -> Config {
    Config::StopAndWait(stop_and_wait::Params { retransmissions, backoff })
}

/// A feedback delay and a slot, in ms.
pub(crate) fn selective_repeat(retransmissions: Retransmissions, delay_ms: u64, slot_ms: u64) -> Config {
    let (feedback_delay, slot) = (Duration::from_millis(delay_ms), Duration::from_millis(slot_ms));
    Config::SelectiveRepeat(selective_repeat::Params { retransmissions, feedback_delay, slot })
}

/// 8 kbps, one byte a millisecond, and nothing else.
pub(crate) fn plain() -> RadioConfig {
    plain_radio(BitRate::from_bps(8_000).unwrap())
}

/// Attempts survive with the listed probabilities; later ones always survive.
pub(crate) struct Odds<I>(pub(crate) I);

impl<I: Iterator<Item = f64> + Send> Channel for Odds<I> {
    fn survival(&mut self, start: Time, end: Time, _bits: u64) -> f64 {
        assert!(start < end);
        self.0.next().unwrap_or(1.0)
    }

    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, Probability::default());
        self.survival(start, end, 0)
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn { state: State::Good, until: Time::NEVER }
    }
}

/// Attempts survive as listed; later ones survive.
pub(crate) fn scripted<O>(outcomes: O) -> Box<dyn Channel>
where
    O: IntoIterator<Item = bool, IntoIter: Send + 'static>,
{
    Box::new(Odds(outcomes.into_iter().map(|survives| f64::from(u8::from(survives)))))
}

/// A perfect channel that records queries: start, end and bits.
pub(crate) struct Recorder(pub(crate) Sender<(Time, Time, u64)>);

impl Channel for Recorder {
    fn survival(&mut self, start: Time, end: Time, bits: u64) -> f64 {
        self.0.send((start, end, bits)).unwrap();
        1.0
    }

    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, Probability::default());
        self.survival(start, end, 0)
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn { state: State::Good, until: Time::NEVER }
    }
}

/// Actions of a link, with packets by number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Did {
    Deliver(u32),
    Drop(u32, DropReason),
    Signal(u32, LinkOutcome, u32),
}

/// A link driven by hand; checks the contract of a component.
pub(crate) struct Bench {
    pub(crate) link: Link,
    pub(crate) log: Vec<(Time, Did)>,
    pub(crate) frames: Vec<(Time, FrameEvent)>,
    out: Out,
    now: Time,
}

impl Bench {
    /// `link` with the streams of run 0 of `seed`.
    pub(crate) fn seeded(config: RadioConfig, channel: Box<dyn Channel>, seed: u64) -> Bench {
        Bench::of(config, QueueLimit::Unlimited, channel, seed)
    }

    /// A link with a queue of this capacity.
    pub(crate) fn queued(config: RadioConfig, queue: QueueLimit, channel: Box<dyn Channel>) -> Bench {
        Bench::of(config, queue, channel, 1)
    }

    fn of(config: RadioConfig, queue: QueueLimit, channel: Box<dyn Channel>, seed: u64) -> Bench {
        let streams = Streams::new(seed, 0);
        let (bits, backoff) = (streams.stream("bits"), streams.stream("backoff"));
        let link = Link::radio(config, queue, channel, bits, backoff);
        Bench { link, log: Vec::new(), frames: Vec::new(), out: Out::default(), now: Time::ZERO }
    }

    pub(crate) fn new(config: RadioConfig, channel: Box<dyn Channel>) -> Bench {
        Bench::seeded(config, channel, 1)
    }

    /// Advances time to `at`, without waking the link at `at` itself.
    pub(crate) fn until(&mut self, at: Time) {
        while self.link.next_wakeup() < at {
            self.wake();
        }
        self.now = at;
    }

    /// Enqueues a packet at `at`.
    pub(crate) fn send(&mut self, at: Time, packet: Packet) {
        self.until(at);
        self.link.receive(at, &packet, Port::ONLY, &mut self.out);
        self.take();
    }

    /// Runs until the link has no wake-up pending.
    pub(crate) fn finish(&mut self) -> &[(Time, Did)] {
        self.until(Time::NEVER);
        &self.log
    }

    fn wake(&mut self) {
        let due = self.link.next_wakeup();
        assert!(due >= self.now, "it asked for an instant that is past");
        self.now = due;
        self.link.wake(due, &mut self.out);
        let silent = self.out.is_empty();
        self.take();
        assert!(!silent || self.link.next_wakeup() > due, "it woke, did nothing and wants to wake at once");
    }

    fn take(&mut self) {
        assert_eq!(self.link.next_wakeup(), self.link.next_wakeup());
        while let Some((_, effect)) = self.out.take() {
            let did = match effect {
                Effect::Send(port, packet) => {
                    assert_eq!(port, Port::ONLY);
                    Did::Deliver(id(&packet))
                }
                Effect::Drop(packet, reason) => Did::Drop(id(&packet), reason),
                Effect::Corrupt(port, packet) => {
                    assert_eq!(port, Port::ONLY);
                    Did::Drop(id(&packet), DropReason::Corrupted)
                }
                Effect::Signal(Signal::Link(event)) => {
                    Did::Signal(id(&event.packet), event.outcome, event.attempt)
                }
                Effect::Signal(Signal::Frame(event)) => {
                    self.frames.push((self.now, event));
                    continue;
                }
                Effect::Signal(signal) => panic!("a link does not say {signal:?}"),
            };
            self.log.push((self.now, did));
        }
    }
}
