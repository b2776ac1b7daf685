//! Ends of connections inside other components: a relay that joins two connections by a bounded buffer, a
//! source that is supplied and a sink that reads as time goes by.

use std::collections::BTreeMap;
use std::env;

use lasthop_base::{BitRate, Bytes, Duration, Stream, Streams, Time};
use lasthop_proto::tcp::{
    Connection, InitialWindow, Profile, Receiver, Segment, Sender, SeqNum, Settings, Transfer,
};
use lasthop_proto::{Component, ComponentId, Effect, FlowId, HostId, Out, Packet, Port, Probe, Signal};
use lasthop_sim::{Builder, Ended, Engine, Node, QueueLimit, Tap, WiredLink};

use crate::exhaustive::{FLAVOURS, by_order, check, nothing};
use crate::invariants::Invariants;
use crate::net::{Filter, Loses, first_byte, segments, slack};
use crate::worlds::{coin, milliseconds, queue, settings};

const WORLDS: u64 = 500;

fn connection(src: u16, dst: u16) -> Connection {
    Connection { src: HostId(src), dst: HostId(dst), flow: FlowId(0) }
}

/// Lets an embedded component speak: its packets leave by `port`, its signals are the owner's, and `see` sees
/// the segments.
fn through(out: &mut Out, port: Port, speak: impl FnOnce(&mut Out), mut see: impl FnMut(&Segment)) {
    out.redirect(speak, |effect| match effect {
        Effect::Send(_, packet) => {
            see(packet.segment().expect("a segment"));
            Some(Effect::Send(port, packet))
        }
        other => Some(other),
    });
}

/// What must hold of a sender that is supplied, after anything that happens to it.
struct Ledger {
    first_byte: SeqNum,
    supplied: u64,
    closed: bool,
    sent: SeqNum,
    slack: u32,
}

impl Ledger {
    fn new(settings: &Settings) -> Ledger {
        let (supplied, closed) = (0, false);
        let first_byte = first_byte(settings);
        Ledger { first_byte, supplied, closed, sent: first_byte, slack: slack(settings, false) }
    }

    /// Nothing is sent that was not supplied. Streams are short here.
    fn see(&self, segment: &Segment) {
        let end = segment.seq + segment.len;
        assert!(
            segment.len == 0 || end <= self.first_byte + self.supplied as u32,
            "{segment:?} of {} bytes",
            self.supplied
        );
    }

    fn check(&mut self, sender: &Sender, now: Time) {
        let on_the_way = self.supplied - sender.acknowledged() - sender.unsent();
        assert!(on_the_way <= u64::from(sender.flight_size()), "{now}: bytes are lost from the books");
        assert!(sender.flight_size() == 0 || sender.timer_runs(), "{now}: data outstanding and no timer");
        let waits = sender.unsent() > 0 && sender.flight_size() == 0;
        assert!(!waits || sender.timer_runs(), "{now}: data wait for the window and no timer");
        assert!(self.closed || sender.stats().completed.is_none(), "{now}: it ended before it was closed");
        if sender.snd_max() > self.sent {
            self.sent = sender.snd_max();
            // FIN takes a sequence number but no room, and a probe may bring the last byte and FIN.
            assert!(sender.flight_size() <= sender.rwnd() + 2, "{now}: beyond the receiver's window");
            let limit = sender.usable_window() + self.slack + 2;
            assert!(sender.pipe() <= limit, "{now}: beyond the congestion window");
        }
    }
}

/// What must hold of a receiver whose application reads at its own pace.
struct Desk {
    buffer: u32,
    worth: u32,
    /// Where the window ends that was advertised last.
    edge: Option<SeqNum>,
    /// The peer's FIN was taken: it takes a sequence number, but no room.
    ended: bool,
    first_byte: SeqNum,
    read: u64,
}

impl Desk {
    fn new(settings: &Settings) -> Desk {
        let buffer = settings.window_payload();
        let worth = settings.mss().min(buffer / 2).max(1);
        Desk { buffer, worth, edge: None, ended: false, first_byte: first_byte(settings), read: 0 }
    }

    /// The right edge of the window stays, or moves right by what is worth telling, and no further than
    /// there is room.
    fn see(&mut self, answer: &Segment, ended: bool) {
        let fin = u32::from(ended && !std::mem::replace(&mut self.ended, ended));
        let edge = answer.ack + answer.wnd;
        let moved = self.edge.map_or(0, |old| edge - (old + fin));
        assert!(moved == 0 || moved >= self.worth, "the window moves by {moved}, worth is {}", self.worth);
        let room = self.first_byte + self.read as u32 + self.buffer + u32::from(ended);
        assert!(edge <= room, "{edge} is advertised, there is room up to {room}");
        self.edge = Some(edge);
    }
}

/// Ends one connection and goes on with another. At most `bound` bytes are taken and not yet acknowledged.
struct Relay {
    receiver: Receiver,
    desk: Desk,
    sender: Sender,
    ledger: Ledger,
    bound: u64,
}

impl Relay {
    fn new(wired: &Settings, radio: &Settings, bound: u64) -> Relay {
        let mut receiver = Receiver::new(connection(0, 2), wired);
        receiver.pause();
        Relay {
            receiver,
            desk: Desk::new(wired),
            sender: Sender::supplied(connection(0, 2), radio, None),
            ledger: Ledger::new(radio),
            bound,
        }
    }

    fn held(&self) -> u64 {
        self.ledger.supplied - self.sender.acknowledged()
    }

    fn receiver(&mut self, out: &mut Out, act: impl FnOnce(&mut Receiver, &mut Out)) {
        let mut answers = [None; 2];
        let Relay { receiver, desk, .. } = self;
        through(
            out,
            Port::WIRED,
            |out| act(receiver, out),
            |answer| {
                let free = answers.iter_mut().find(|place| place.is_none());
                *free.expect("at most two answers") = Some(*answer);
            },
        );
        answers.iter().flatten().for_each(|answer| desk.see(answer, receiver.has_ended()));
    }

    fn sender(&mut self, now: Time, out: &mut Out, act: impl FnOnce(&mut Sender, &mut Out)) {
        let Relay { sender, ledger, .. } = self;
        through(out, Port::RADIO, |out| act(sender, out), |segment| ledger.see(segment));
        ledger.check(sender, now);
    }

    /// Takes what there is room for, and hands it on.
    fn pass_on(&mut self, now: Time, out: &mut Out) {
        let most = (self.bound - self.held()).min(self.receiver.unread());
        self.desk.read += most;
        self.receiver(out, |receiver, out| assert_eq!(receiver.read(now, most, out), most));
        if most > 0 {
            self.ledger.supplied += most;
            self.sender(now, out, |sender, out| sender.supply(now, most, out));
        }
        if self.receiver.has_ended() && self.receiver.unread() == 0 && !self.ledger.closed {
            self.ledger.closed = true;
            self.sender(now, out, |sender, out| sender.close(now, out));
        }
        assert!(self.held() <= self.bound, "{now}: {} bytes are held", self.held());
        assert!(self.receiver.unread() <= u64::from(self.desk.buffer), "{now}: too many are unread");
    }
}

impl Component for Relay {
    fn receive(&mut self, now: Time, packet: Packet, port: Port, out: &mut Out) {
        match port {
            Port::WIRED => self.receiver(out, |end, out| end.receive(now, packet, Port::ONLY, out)),
            _ => self.sender(now, out, |end, out| end.receive(now, packet, Port::ONLY, out)),
        }
        self.pass_on(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        if self.receiver.next_wakeup() <= now {
            self.receiver(out, |end, out| end.wake(now, out));
        }
        if self.sender.next_wakeup() <= now {
            self.sender(now, out, |end, out| end.wake(now, out));
        }
        self.pass_on(now, out);
    }

    fn next_wakeup(&self) -> Time {
        self.receiver.next_wakeup().min(self.sender.next_wakeup())
    }

    fn show(&self, probe: &mut dyn Probe) {
        probe.value("relayed", self.ledger.supplied as f64);
        probe.value("held", self.held() as f64);
    }
}

/// Has something to send now and then.
struct Feeder {
    sender: Sender,
    ledger: Ledger,
    random: Stream,
    /// What is still to be supplied.
    left: u64,
    next: Time,
}

impl Feeder {
    fn new(settings: &Settings, random: Stream, bytes: u64) -> Feeder {
        let sender = Sender::supplied(connection(0, 2), settings, None);
        Feeder { sender, ledger: Ledger::new(settings), random, left: bytes, next: Time::ZERO }
    }

    fn sender(&mut self, now: Time, out: &mut Out, act: impl FnOnce(&mut Sender, &mut Out)) {
        let Feeder { sender, ledger, .. } = self;
        through(out, Port::ONLY, |out| act(sender, out), |segment| ledger.see(segment));
        ledger.check(sender, now);
    }
}

impl Component for Feeder {
    fn receive(&mut self, now: Time, packet: Packet, _port: Port, out: &mut Out) {
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
            self.ledger.closed = true;
            return self.sender(now, out, |sender, out| sender.close(now, out));
        }
        let most = if coin(&mut self.random) { 50 } else { 5_000 };
        let bytes = self.random.below(most + 1).min(self.left);
        // Often at once, now and then after an idle time.
        let pause = if coin(&mut self.random) { 30 } else { 5_000 };
        self.next = now + Duration::from_millis(1) + milliseconds(&mut self.random, pause);
        self.left -= bytes;
        self.ledger.supplied += bytes;
        self.sender(now, out, |sender, out| sender.supply(now, bytes, out));
    }

    fn next_wakeup(&self) -> Time {
        self.next.min(self.sender.next_wakeup())
    }

    fn show(&self, probe: &mut dyn Probe) {
        probe.value("supplied", self.ledger.supplied as f64);
    }
}

/// Reads something now and then.
struct Reader {
    receiver: Receiver,
    desk: Desk,
    random: Stream,
    next: Time,
}

impl Reader {
    fn new(settings: &Settings, random: Stream) -> Reader {
        let mut receiver = Receiver::new(connection(0, 2), settings);
        receiver.pause();
        Reader { receiver, desk: Desk::new(settings), random, next: Time::ZERO }
    }

    fn receiver(&mut self, out: &mut Out, act: impl FnOnce(&mut Receiver, &mut Out)) {
        let mut answer = None;
        let Reader { receiver, desk, .. } = self;
        through(
            out,
            Port::ONLY,
            |out| act(receiver, out),
            |segment| {
                assert!(answer.replace(*segment).is_none(), "two answers");
            },
        );
        answer.iter().for_each(|answer| desk.see(answer, receiver.has_ended()));
        assert!(receiver.unread() <= u64::from(desk.buffer), "too many bytes are unread");
        assert_eq!(desk.read + receiver.unread(), receiver.stats().delivered.0);
    }
}

impl Component for Reader {
    fn receive(&mut self, now: Time, packet: Packet, _port: Port, out: &mut Out) {
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
        self.desk.read += most;
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
        probe.value("read", self.desk.read as f64);
    }
}

/// The latest of what components show.
#[derive(Default)]
struct Shown(BTreeMap<&'static str, f64>);

impl Probe for Shown {
    fn value(&mut self, name: &'static str, value: f64) {
        self.0.insert(name, value);
    }
}

impl Tap for Shown {
    fn touched(&mut self, _now: Time, _id: ComponentId, component: &Node) {
        if let Node::Custom(component) = component {
            component.show(self);
            let of = |name| self.0.get(name).copied();
            let (read, held) = (of("read").unwrap_or(0.0), of("held").unwrap_or(0.0));
            let (relayed, supplied) = (of("relayed").unwrap_or(0.0), of("supplied").unwrap_or(f64::INFINITY));
            assert!(read <= relayed && relayed <= supplied, "{read} of {relayed} of {supplied}");
            let peak = of("peak").unwrap_or(0.0).max(held);
            self.value("peak", peak);
        }
    }
}

/// A link each way between two ports, and what is lost on it.
fn join(
    net: &mut Builder,
    ends: [(ComponentId, Port); 2],
    link: impl Fn() -> WiredLink,
    [there, back]: [Loses; 2],
) {
    let only = |id| (id, Port::ONLY);
    for (from, to, loses) in [(ends[0], ends[1], there), (ends[1], ends[0], back)] {
        let filter = net.add(Box::new(Filter(loses)) as Box<dyn Component>);
        let link = net.add(link());
        net.connect(from, only(link));
        net.connect(only(link), only(filter));
        net.connect(only(filter), to);
    }
}

/// A transfer through a relay; `losses` are of data and acknowledgements, on the wired and on the radio side.
fn relayed<T: Tap>(
    [wired, radio]: [&Settings; 2],
    bytes: u64,
    bound: u64,
    losses: [[Loses; 2]; 2],
    tap: impl FnOnce(ComponentId) -> T,
) -> (Engine<T>, [ComponentId; 3]) {
    let rate = |bps| BitRate::from_bps(bps).expect("not zero");
    let link = |bps, ms| WiredLink::new(rate(bps), Duration::from_millis(ms), QueueLimit::Unlimited);
    let mut net = Builder::new();
    let transfer = Transfer { bytes: Some(bytes), start: Time::ZERO };
    let source = net.add(Sender::new(connection(0, 2), wired, transfer, None));
    let relay = net.add(Box::new(Relay::new(wired, radio, bound)) as Box<dyn Component>);
    let sink = net.add(Receiver::new(connection(0, 2), radio));
    let [on_wire, on_air] = losses;
    join(&mut net, [(source, Port::ONLY), (relay, Port::WIRED)], || link(10_000_000, 5), on_wire);
    join(&mut net, [(relay, Port::RADIO), (sink, Port::ONLY)], || link(1_000_000, 2), on_air);
    (net.build(tap(sink)), [source, relay, sink])
}

/// The wired side, and a radio side with segments of another size.
fn sides(profile: Profile, flavour: lasthop_proto::tcp::Flavour) -> [Settings; 2] {
    let base = Settings { flavour, close: true, ..profile.settings() };
    let of = |packet_size, window| Settings {
        packet_size: Bytes(packet_size),
        window: Bytes(window).into(),
        ..base.clone()
    };
    let radio = of(940, 6 * 900);
    [of(1040, 3_500), Settings { initial_window: InitialWindow::Segments(3), iss: u32::MAX - 2_000, ..radio }]
}

fn minutes(minutes: u64) -> Time {
    Time::ZERO + Duration::from_secs(60 * minutes)
}

/// Every loss of the first six packets on either side of a relay, in one direction or the other: the stream
/// arrives whole, and the buffer keeps to its bound.
#[test]
fn any_loss_of_the_first_six_on_either_side_of_a_relay() {
    for (profile, flavour) in [Profile::Rfc, Profile::Ns2].into_iter().flat_map(|p| FLAVOURS.map(|f| (p, f)))
    {
        let [wired, radio] = sides(profile, flavour);
        let bytes = segments(&wired, 8);
        for pattern in 0..1u32 << 12 {
            let (wire, air) = (pattern & 63, pattern >> 6);
            for data in [true, false] {
                let what = if data { "data" } else { "acknowledgements" };
                check(&format!("{profile:?}, {flavour:?}, {what} lost {wire:06b} and {air:06b}"), || {
                    let lost = |pattern| match data {
                        true => [by_order(pattern), nothing()],
                        false => [nothing(), by_order(pattern)],
                    };
                    let losses = [lost(wire), lost(air)];
                    let tap = |sink| {
                        (Invariants::new(sink, first_byte(&radio), slack(&wired, false)), Shown::default())
                    };
                    let (mut engine, [source, relay, sink]) =
                        relayed([&wired, &radio], bytes, 2_500, losses, tap);
                    let ended = engine.run(&[source, relay], minutes(600));
                    assert_eq!(ended, Ended::Finished);
                    let (Node::Sender(from), Node::Receiver(to)) = (engine.node(source), engine.node(sink))
                    else {
                        unreachable!("that is what was added there")
                    };
                    let (invariants, shown) = engine.tap();
                    invariants.check_end(from, to, bytes);
                    assert!(!data || invariants.drops == u64::from(pattern.count_ones()));
                    assert_eq!((shown.0["relayed"], shown.0["held"]), (bytes as f64, 0.0));
                    assert!(shown.0["peak"] > 2_000.0, "the buffer was never full: {}", shown.0["peak"]);
                });
            }
        }
    }
}

/// An end that nobody waits for ends no run, and one that has come need not come again.
#[test]
fn a_run_waits_for_those_that_it_is_told() {
    let [wired, radio] = sides(Profile::Rfc, FLAVOURS[2]);
    let losses = || [[nothing(), nothing()], [nothing(), nothing()]];
    let (mut engine, [source, relay, _]) =
        relayed([&wired, &radio], 20_000, 15_000, losses(), |_| Shown::default());
    assert_eq!(engine.run(&[source], minutes(1)), Ended::Finished);
    assert!(engine.tap().0["held"] > 0.0, "the source ends before the relay does");
    let first = engine.now();
    assert_eq!(engine.run(&[source], minutes(1)), Ended::Finished);
    assert_eq!(engine.now(), first);
    assert_eq!(engine.run(&[source, relay], first), Ended::TimeLimit);
    assert_eq!(engine.run(&[relay, source, relay], minutes(1)), Ended::Finished);
    assert!(engine.now() > first && engine.tap().0["held"] == 0.0);
    assert_eq!(engine.run(&[], minutes(1)), Ended::Idle);
    assert_eq!(engine.run(&[relay, source], Time::ZERO), Ended::Finished);
    let (mut engine, [_, relay, _]) =
        relayed([&wired, &radio], 20_000, 15_000, losses(), |_| Shown::default());
    assert_eq!(engine.run(&[relay], minutes(1)), Ended::Finished);
    assert_eq!(engine.tap().0["held"], 0.0, "that was the end of the source");
    let (mut engine, [source, relay, sink]) =
        relayed([&wired, &radio], 20_000, 15_000, losses(), |_| Shown::default());
    assert_eq!(
        engine.run(&[source, relay, sink], minutes(1)),
        Ended::Idle,
        "a receiver says nothing of an end"
    );
}

/// Settings of a side, and what is lost there.
fn side(random: &mut Stream, lost: Stream) -> (Settings, [Loses; 2]) {
    let settings = Settings { close: true, ..settings(random) };
    let loses = |mut lost: Stream, p| Box::new(move |_: &Packet| lost.bernoulli(p)) as Loses;
    let mut probability = || if coin(random) { 0.0 } else { random.uniform() * 0.2 };
    let losses = [loses(lost.clone(), probability()), loses(lost, probability())];
    (settings, losses)
}

/// World number `number`: a stream that is supplied, relayed and read at random.
fn world(number: u64) {
    let streams = Streams::new(number, 1);
    let random = &mut streams.stream("world");
    let (wired, on_wire) = side(random, streams.stream("wire"));
    let (radio, on_air) = side(random, streams.stream("air"));
    let bytes = random.below(60_000);
    let bound = 1 + random.below(20_000);
    let mut net = Builder::new();
    let feeder =
        net.add(Box::new(Feeder::new(&wired, streams.stream("supply"), bytes)) as Box<dyn Component>);
    let relay = net.add(Box::new(Relay::new(&wired, &radio, bound)) as Box<dyn Component>);
    let reader = net.add(Box::new(Reader::new(&radio, streams.stream("reads"))) as Box<dyn Component>);
    for (ends, losses, settings) in [
        ([(feeder, Port::ONLY), (relay, Port::WIRED)], on_wire, &wired),
        ([(relay, Port::RADIO), (reader, Port::ONLY)], on_air, &radio),
    ] {
        let rate = BitRate::from_bps(56_000 + random.below(10_000_000)).expect("not zero");
        let (delay, queue) = (milliseconds(random, 100), queue(random, settings.packet_size));
        join(&mut net, ends, || WiredLink::new(rate, delay, queue), losses);
    }
    if env::var_os("LASTHOP_WORLD").is_some() {
        println!("{bytes} B through {bound} B, by {wired:#?} and {radio:#?}");
    }
    let mut engine = net.build(Shown::default());
    let ended = engine.run(&[feeder, relay, reader], Time::ZERO + Duration::from_secs(1_000_000));
    let shown = &engine.tap().0;
    assert_eq!(ended, Ended::Finished, "{} of {bytes} B were read", shown["read"]);
    for name in ["supplied", "relayed", "read"] {
        assert_eq!(shown[name], bytes as f64, "{name}");
    }
    assert!(shown["peak"] <= bound as f64);
}

#[test]
fn streams_are_whole_however_they_are_supplied_and_read() {
    let number = |name| env::var(name).ok().map(|text| text.parse().expect("a number"));
    let worlds = match number("LASTHOP_WORLD") {
        Some(one) => one..one + 1,
        None => 0..number("LASTHOP_WORLDS").unwrap_or(WORLDS),
    };
    for seed in worlds {
        check(&format!("LASTHOP_WORLD={seed}"), || world(seed));
    }
}
