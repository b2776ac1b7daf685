//! Endpoints inside other components: a source with supplied data, a sink that reads over time, and a proxy
//! between them.

use std::env;

use lasthop_base::{BitRate, Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::split::{Proxy, Split, StateTransfer};
use lasthop_proto::tcp::{
    Flavour, Hole, Reaction, Receiver, Response, Rules, Segment, Sender, SenderState, Settings,
};
use lasthop_proto::{Component, ComponentId, Effect, Out, Packet, Port, Probe, Signal};
use lasthop_sim::{Builder, Ended, Link, Node, Tap};
use lasthop_testing::check;
use lasthop_testing::endpoint_invariants::{ReceiverInvariants, RelayInvariants, SenderInvariants};
use lasthop_testing::net::{CONNECTION, Loses, join};
use lasthop_testing::random::{coin, milliseconds, pick, queue, settings};

const WORLDS: u64 = 500;

/// Runs an embedded component: its packets leave by `port`, its signals become the owner's, and `see` is
/// called with each segment.
fn through(out: &mut Out, port: Port, emit: impl FnOnce(&mut Out), mut see: impl FnMut(&Segment)) {
    out.redirect(emit, |effect| match effect {
        Effect::Send(_, packet) => {
            see(packet.segment().expect("a segment"));
            Some(Effect::Send(port, packet))
        }
        other => Some(other),
    });
}

/// A source that supplies data at random times.
struct Feeder {
    sender: Sender,
    invariants: SenderInvariants,
    random: Stream,
    /// Data not supplied yet.
    left: u64,
    next: Time,
}

impl Feeder {
    fn new(settings: &Settings, reaction: Option<Box<dyn Reaction>>, random: Stream, bytes: u64) -> Feeder {
        let invariants = SenderInvariants::new(settings, reaction.is_some());
        let sender = Sender::supplied(CONNECTION, settings, reaction);
        Feeder { sender, invariants, random, left: bytes, next: Time::ZERO }
    }

    fn sender(&mut self, now: Time, out: &mut Out, act: impl FnOnce(&mut Sender, &mut Out)) {
        let Feeder { sender, invariants, .. } = self;
        through(out, Port::ONLY, |out| act(sender, out), |segment| invariants.check_segment(segment));
        invariants.check(sender, now);
    }
}

impl Component for Feeder {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        self.sender(now, out, |end, out| end.receive(now, packet, Port::ONLY, out));
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        if self.sender.next_wakeup() <= now {
            self.sender(now, out, |end, out| end.wake(now, out));
        }
        if self.next > now {
            return;
        }
        if self.left == 0 {
            self.next = Time::NEVER;
            self.invariants.closed = true;
            return self.sender(now, out, |sender, out| sender.close(now, out));
        }
        let most = if coin(&mut self.random) { 50 } else { 5_000 };
        let bytes = self.random.below(most + 1).min(self.left);
        // Mostly at once, sometimes after an idle time.
        let pause = if coin(&mut self.random) { 30 } else { 5_000 };
        self.next = now + Duration::from_millis(1) + milliseconds(&mut self.random, pause);
        self.left -= bytes;
        self.invariants.supplied += bytes;
        self.sender(now, out, |sender, out| sender.supply(now, bytes, out));
    }

    fn next_wakeup(&self) -> Time {
        self.next.min(self.sender.next_wakeup())
    }

    fn show(&self, probe: &mut dyn Probe) {
        probe.value("supplied", self.invariants.supplied as f64);
    }
}

/// A sink that reads at random times.
struct Reader {
    receiver: Receiver,
    invariants: ReceiverInvariants,
    random: Stream,
    next: Time,
}

impl Reader {
    fn new(settings: &Settings, random: Stream) -> Reader {
        let mut receiver = Receiver::new(CONNECTION, settings);
        receiver.pause();
        Reader { receiver, invariants: ReceiverInvariants::new(settings), random, next: Time::ZERO }
    }

    fn receiver(&mut self, out: &mut Out, act: impl FnOnce(&mut Receiver, &mut Out)) {
        let mut answer = None;
        let Reader { receiver, invariants, .. } = self;
        through(
            out,
            Port::ONLY,
            |out| act(receiver, out),
            |segment| {
                assert!(answer.replace(*segment).is_none(), "two answers");
            },
        );
        answer.iter().for_each(|answer| invariants.check_segment(answer, receiver.has_ended()));
        assert!(receiver.unread() <= u64::from(invariants.buffer), "too many bytes are unread");
        assert_eq!(invariants.read + receiver.unread(), receiver.stats().delivered.0);
    }
}

impl Component for Reader {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        self.receiver(out, |end, out| end.receive(now, packet, Port::ONLY, out));
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        if self.receiver.next_wakeup() <= now {
            self.receiver(out, |end, out| end.wake(now, out));
        }
        if self.next > now {
            return;
        }
        self.next = now + Duration::from_millis(1) + milliseconds(&mut self.random, 500);
        let most = if coin(&mut self.random) { 100 } else { 10_000 };
        let most = self.random.below(most).min(self.receiver.unread());
        self.invariants.read += most;
        self.receiver(out, |receiver, out| assert_eq!(receiver.read(now, most, out), most));
        if self.receiver.has_ended() && self.receiver.unread() == 0 {
            self.next = Time::NEVER;
            out.signal(Signal::Finished);
        }
    }

    fn next_wakeup(&self) -> Time {
        self.next.min(self.receiver.next_wakeup())
    }

    fn show(&self, probe: &mut dyn Probe) {
        probe.value("read", self.invariants.read as f64);
    }
}

/// The latest values, in bytes.
#[derive(Default)]
struct Shown {
    supplied: f64,
    read: f64,
}

impl Probe for Shown {
    fn value(&mut self, name: &'static str, value: f64) {
        match name {
            "supplied" => self.supplied = value,
            "read" => self.read = value,
            _ => {}
        }
    }
}

impl Tap for Shown {
    fn handled(&mut self, _now: Time, _id: ComponentId, component: &Node) {
        if let Node::Custom(component) = component {
            component.show(self);
            assert!(self.read <= self.supplied, "{} of {}", self.read, self.supplied);
        }
    }
}

/// Random settings and losses for one side.
fn side(random: &mut Stream, lost: Stream) -> (Settings, [Loses; 2]) {
    let settings = Settings { close: true, ..settings(random) };
    let loses = |mut lost: Stream, p| Box::new(move |_: &Packet| lost.bernoulli(p)) as Loses;
    let mut probability = || if coin(random) { 0.0 } else { random.uniform() * 0.2 };
    let losses = [loses(lost.clone(), probability()), loses(lost, probability())];
    (settings, losses)
}

/// Changes the segment size after every acknowledgement and at every loss, with a random classification.
#[derive(Debug)]
struct Recut(Stream);

impl Recut {
    fn cut(&mut self, sender: &mut SenderState) {
        let largest = u64::from(sender.settings().mss());
        sender.set_mss(1 + self.0.below(largest) as u32);
    }
}

impl Reaction for Recut {
    fn on_segment(&mut self, _now: Time, _segment: &Segment, sender: &mut SenderState) {
        self.cut(sender);
    }

    fn judge(&mut self, _now: Time, _hole: Hole, sender: &mut SenderState) -> Response {
        self.cut(sender);
        pick(&mut self.0, &[Response::Congestion, Response::Corruption])
    }
}

/// World number `number`: a supplied stream, relayed in either direction and read at random times.
fn world(number: u64) {
    let streams = Streams::new(number, 1);
    let random = &mut streams.stream("world");
    let (wired, on_wire) = side(random, streams.stream("wire"));
    let (radio, on_air) = side(random, streams.stream("air"));
    let bytes = random.below(60_000);
    let buffer = Bytes(radio.packet_size.0 + random.below(20_000));
    let from = pick(random, &[Port::WIRED, Port::RADIO]);
    // The SACK of ns-2 counts segments, so its pipe is undefined for mixed sizes.
    let counts_segments = |side: &Settings| side.flavour == Flavour::Sack && side.rules == Rules::Ns2;
    let recuts = coin(random) && !counts_segments(&radio);
    let recut = |own| (recuts && own).then(|| Box::new(Recut(streams.stream("sizes"))) as Box<dyn Reaction>);
    let mut net = Builder::new();
    let (near, far) = if from == Port::WIRED { (&wired, &radio) } else { (&radio, &wired) };
    let feeder = Feeder::new(near, recut(from == Port::RADIO), streams.stream("supply"), bytes);
    let feeder = net.add(Box::new(feeder) as Box<dyn Component>);
    let split = Split { wireless: radio.clone(), buffer, holds: None, transfer: StateTransfer::default() };
    let mut proxy = Proxy::new();
    proxy.join(CONNECTION, (&wired, &split), from, true, (recut(from == Port::WIRED), None));
    let proxy = net.add(proxy);
    let reader = net.add(Box::new(Reader::new(far, streams.stream("reads"))) as Box<dyn Component>);
    let (before, behind) = if from == Port::WIRED { (on_wire, on_air) } else { (on_air, on_wire) };
    for (ends, losses, settings) in [
        ([(feeder, Port::ONLY), (proxy, from)], before, near),
        ([(proxy, from.across()), (reader, Port::ONLY)], behind, far),
    ] {
        let rate = BitRate::from_bps(56_000 + random.below(10_000_000)).expect("not zero");
        let (delay, queue) = (milliseconds(random, 100), queue(random, settings.packet_size));
        join(&mut net, ends, || Link::wired(rate, delay, queue), losses);
    }
    if env::var_os("LASTHOP_WORLD").is_some() {
        println!("{bytes} B through {buffer} {from:?}, cut anew: {recuts}, by {wired:#?} and {radio:#?}");
    }
    let relay_invariants = RelayInvariants::new(proxy, from, &wired, &split, recuts && from == Port::WIRED);
    let mut engine = net.build((Shown::default(), relay_invariants));
    let ended = engine.run(&[feeder, proxy, reader], Time::ZERO + Duration::from_secs(1_000_000));
    let (shown, relay_invariants) = engine.tap();
    assert_eq!(ended, Ended::Finished, "{} of {bytes} B were read", shown.read);
    assert_eq!((shown.supplied, shown.read), (bytes as f64, bytes as f64));
    relay_invariants.check_end(bytes);
}

// Rule: The same in random worlds, with random supply and reading; the right edge of each window obeys its
// rule. []
#[test]
fn supplied_and_relayed_streams_arrive_intact() {
    let number = |name| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let worlds = match number("LASTHOP_WORLD") {
        Some(one) => one..one + 1,
        None => 0..number("LASTHOP_WORLDS").unwrap_or(WORLDS),
    };
    for seed in worlds {
        check(&format!("LASTHOP_WORLD={seed}"), || world(seed));
    }
}
