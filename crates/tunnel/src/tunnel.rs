//! The tunnel: an end of it, between packets and datagrams.

use std::collections::VecDeque;
use std::net::SocketAddr;

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::Ecn;

use crate::arq::ArqCounters;
use crate::cipher::{Cipher, Key, Salt};
use crate::exits::{Event, Exits};
use crate::fec::FecCounters;
use crate::message::{self, ClassForm, DATA_HEADER, HELLO_HEADER, Header, Hello, Message, OVERHEAD};
use crate::outer::{Ends, Tos};
use crate::path_size::{Measured, PathSize};
use crate::places::Places;
use crate::session::{Session, Wire};
use crate::settings::{Help, Settings};

/// The time between two hellos while the other end is silent.
const HELLO: Duration = Duration::from_secs(1);

/// How long a challenge holds: up to twice this time.
const CHALLENGE: Duration = Duration::from_secs(10);

/// Starts of the other end that were succeeded, and cannot come back by a repeated hello while its challenge holds.
const RETIRED: usize = 256;

/// Starts whose hellos were answered, though they may be recorded ones; the time that an answer takes, and how much of it may
/// be taken at once.
const ANSWERED: usize = 1024;
const ANSWER: Duration = Duration::from_millis(200);
const ANSWERS: Duration = Duration::from_secs(1);

/// Numbers of packets above which an end should be started anew: they have 32 bits.
const WORN: u64 = 1 << 31;

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that have entered here.
    pub entered: u64,
    /// Packets that have left here.
    pub left: u64,
    /// Packets that have entered while the other end was unknown or silent, and were dropped.
    pub dropped: u64,
    /// Datagrams that were not authentic, of whatever kind.
    pub forged: u64,
    /// Authentic datagrams that had come before, or too late, and hellos without proof that were too many to be answered.
    pub replayed: u64,
    /// Authentic datagrams that make no sense.
    pub malformed: u64,
    /// The work of the codes.
    pub fec: FecCounters,
    /// The work of the ARQ.
    pub arq: ArqCounters,
}

/// One end of the tunnel, which does no I/O: packets and datagrams enter by calls, and leave by [`Exits`].
#[derive(Debug)]
pub struct Tunnel {
    settings: Settings,
    key: Key,
    salt: Salt,
    hellos: Cipher,
    /// The counter of the next datagram.
    counter: u64,
    session: Option<Session>,
    path_size: PathSize,
    /// Whether it was told that packets of the smallest size do not arrive.
    has_told_size: bool,
    places: Places,
    /// The challenge of the other end that is to be echoed.
    echo: Salt,
    hello_at: Time,
    /// Each with the highest counter that has come from it, and until when it is refused below.
    retired: VecDeque<(Time, Salt, u64)>,
    /// Each with the highest counter of a hello that was answered.
    answered: VecDeque<(Salt, u64)>,
    /// Until when answers have taken all the time that they may.
    answers_until: Time,
    events: VecDeque<Event>,
    counters: Counters,
    /// The totals of former sessions.
    former: (FecCounters, ArqCounters),
    datagram: Vec<u8>,
}

impl Tunnel {
    /// An end. The salt must be random, and another one for every end that is ever made with the key.
    ///
    /// # Panics
    /// If there are no classes, or more than [`CLASSES`](crate::CLASSES).
    pub fn new(settings: Settings, key: Key, salt: Salt) -> Tunnel {
        assert!(
            (1..=message::CLASSES).contains(&settings.classes.len()),
            "1 to {} classes",
            message::CLASSES
        );
        Tunnel {
            hellos: Cipher::of_hellos(&key, &salt),
            counter: 0,
            session: None,
            path_size: PathSize::new(Time::ZERO, *settings.sizes.start(), *settings.sizes.end()),
            has_told_size: false,
            places: Places::default(),
            echo: Salt::default(),
            hello_at: if settings.peer.is_some() { Time::ZERO } else { Time::NEVER },
            retired: VecDeque::new(),
            answered: VecDeque::new(),
            answers_until: Time::ZERO,
            events: VecDeque::new(),
            counters: Counters::default(),
            former: Default::default(),
            datagram: Vec::new(),
            settings,
            key,
            salt,
        }
    }

    /// Whether packets that enter reach the other end.
    pub fn is_up(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.silent_from.is_none())
    }

    /// The address of the other end, once found.
    pub fn peer(&self) -> Option<SocketAddr> {
        self.session.as_ref().map(|session| session.outbound.ends.peer)
    }

    /// The largest packet that the tunnel carries, as far as is known of the path.
    pub fn mtu(&self) -> usize {
        self.path_size.get() - OVERHEAD
    }

    /// Whether packets of that size have arrived.
    pub fn is_mtu_confirmed(&self) -> bool {
        self.path_size.is_confirmed()
    }

    /// The first link does not carry datagrams of this size. This must be certain: what came over the network is not.
    pub fn refuse_size(&mut self, now: Time, size: usize) {
        self.path_size.refuse(now, size);
        self.tell_size();
    }

    fn tell_size(&mut self) {
        let is_oversized = self.path_size.is_oversized();
        if is_oversized && !self.has_told_size {
            self.events.push_back(Event::Oversized(self.mtu()));
        }
        self.has_told_size = is_oversized;
    }

    /// The round-trip time through the tunnel, once known.
    pub fn rtt(&self) -> Option<Duration> {
        self.session.as_ref().and_then(|session| session.outbound.record.rtt())
    }

    /// How many of the latest datagrams from here were sent and lost, as the other end has reported.
    pub fn losses(&self) -> (u64, u64) {
        self.session.as_ref().map_or((0, 0), |session| session.outbound.record.losses())
    }

    /// The share of flows without help, in thousandths: the larger one of those that the two ends state.
    pub fn unhelped(&self) -> u16 {
        let of_peer = self.session.as_ref().map_or(0, |session| session.unhelped);
        self.settings.unhelped.max(of_peer)
    }

    /// States another share of flows without help, with the next report.
    pub fn set_unhelped(&mut self, unhelped: u16) {
        self.settings.unhelped = unhelped;
    }

    /// The totals.
    pub fn counters(&self) -> Counters {
        let (mut fec, mut arq) = self.former;
        let of_session = self.of_classes();
        fec.add(of_session.0);
        arq.add(of_session.1);
        Counters { fec, arq, ..self.counters }
    }

    fn of_classes(&self) -> (FecCounters, ArqCounters) {
        self.session.as_ref().map_or_else(Default::default, Session::counters)
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether numbers run out, and another end should take the place of this one. That takes days.
    pub fn is_worn(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.most_sent() > WORN)
    }

    /// When [`wake`](Tunnel::wake) is to be called, unless something enters before.
    pub fn next_wakeup(&self) -> Time {
        let Some(session) = &self.session else { return self.hello_at };
        if session.silent_from.is_some() {
            return self.hello_at.min(session.report_at);
        }
        let own = [session.reported + self.heartbeat(), session.lives_until(self.settings.patience)];
        own.into_iter().fold(session.next_wakeup().min(self.path_size.next_wakeup()), Time::min)
    }

    /// The longest time without a report: the other end, which may only report itself, must hear that it is heard.
    fn heartbeat(&self) -> Duration {
        Duration::from_nanos(self.settings.patience.as_nanos() / 8)
    }

    /// A packet of a class enters, whose datagram has this octet. It is dropped while the other end is unknown or silent.
    pub fn send(&mut self, now: Time, class: usize, tos: Tos, packet: &[u8], exits: &mut dyn Exits) {
        self.counters.entered += 1;
        let is_up = self.is_up();
        let Some(session) = self.session.as_mut().filter(|_| is_up) else {
            self.counters.dropped += 1;
            return;
        };
        let mut wire = Wire { now, counter: &mut self.counter, datagram: &mut self.datagram, exits };
        session.send(class, tos, packet, &mut wire);
    }

    /// A datagram has arrived from `from`, with this ECN. What is sent there comes from its `local`.
    pub fn receive(
        &mut self,
        now: Time,
        datagram: &mut [u8],
        (from, outer): (Ends, Ecn),
        exits: &mut dyn Exits,
    ) {
        match Header::parse(datagram) {
            Some(Header::Hello { salt, counter }) => {
                self.receive_hello(now, (salt, counter), datagram, from, exits)
            }
            Some(Header::Data { counter }) => self.receive_data(now, counter, datagram, (from, outer), exits),
            None => self.counters.forged += 1,
        }
    }

    fn receive_data(
        &mut self,
        now: Time,
        counter: u64,
        datagram: &mut [u8],
        (from, outer): (Ends, Ecn),
        exits: &mut dyn Exits,
    ) {
        let Some(session) = &mut self.session else {
            self.counters.forged += 1;
            return;
        };
        let Some(body) = session.opening.open(counter, datagram, DATA_HEADER) else {
            self.counters.forged += 1;
            return;
        };
        if !session.window.is_new(counter) {
            self.counters.replayed += 1;
            return;
        }
        if session.hear(now, counter, from) && self.places.is_new(now, from.peer) {
            self.events.push_back(Event::Moved(from.peer));
            self.path_size.begin_anew(now);
        }
        let mut wire = Wire { now, counter: &mut self.counter, datagram: &mut self.datagram, exits };
        match Message::parse(body) {
            Some(Message::OfClass(class, rest)) => {
                let left = &mut self.counters.left;
                let is_read = session.receive(now, class, rest, outer, &mut |packet, outer| {
                    *left += 1;
                    wire.exits.packet(packet, outer);
                });
                self.counters.malformed += u64::from(!is_read);
            }
            Some(Message::Report(unhelped, report)) => {
                session.unhelped = unhelped;
                self.path_size.learn(now, &report);
                if let Some(event) = session.learn(&report, &mut wire) {
                    self.events.push_back(event);
                    self.path_size.begin_anew(now);
                }
                if session.outbound.record.loses_long() {
                    self.path_size.suspect(now);
                }
                if self.settings.adapts {
                    session.adapt();
                }
            }
            Some(Message::Poll) => session.report_at = now,
            Some(Message::Bye) => return self.fall_silent(now),
            None => self.counters.malformed += 1,
        }
        session.plan_report(now);
        if session.report_at <= now {
            session.report(self.settings.unhelped, &mut wire);
        }
    }

    fn receive_hello(
        &mut self,
        now: Time,
        (salt, counter): (Salt, u64),
        datagram: &mut [u8],
        from: Ends,
        exits: &mut dyn Exits,
    ) {
        let is_own = salt == self.salt;
        let opened =
            Cipher::of_hellos(&self.key, &salt).open(counter, datagram, HELLO_HEADER).filter(|_| !is_own);
        let Some(body) = opened else {
            self.counters.forged += 1;
            return;
        };
        let Some(hello) = Hello::parse(body) else {
            self.counters.malformed += 1;
            return;
        };
        let is_fresh = [now, Time::from_nanos(now.as_nanos().saturating_sub(CHALLENGE.as_nanos()))]
            .iter()
            .any(|time| self.challenge(*time) == hello.echo);
        if !is_fresh {
            // Maybe a recorded one: whoever has sent it must echo this end's challenge.
            match self.may_answer(now, salt, counter) {
                true => self.answer(hello.challenge, from, now, exits),
                false => self.counters.replayed += 1,
            }
            return;
        }
        self.retired.retain(|(until, ..)| *until > now);
        // A start that was succeeded may still live, and then sends what has not come before.
        if self.retired.iter().any(|(_, retired, highest)| *retired == salt && counter <= *highest) {
            self.counters.replayed += 1;
            return;
        }
        self.echo = hello.challenge;
        let known = self.session.as_mut().filter(|session| session.salt == salt);
        if let Some(session) = known {
            if !session.window.is_new(counter) {
                self.counters.replayed += 1;
            } else {
                session.unhelped = hello.unhelped;
                if session.hear(now, counter, from) && self.places.is_new(now, from.peer) {
                    self.events.push_back(Event::Moved(from.peer));
                    self.path_size.begin_anew(now);
                }
                if session.report_at <= now {
                    let (counter, datagram) = (&mut self.counter, &mut self.datagram);
                    session.report(self.settings.unhelped, &mut Wire { now, counter, datagram, exits });
                }
            }
            return;
        }
        self.establish(now, salt, counter, &hello, from);
        self.answer(hello.challenge, from, now, exits);
    }

    /// Begins a session with a start of the other end.
    fn establish(&mut self, now: Time, salt: Salt, counter: u64, hello: &Hello, from: Ends) {
        let (fec, arq) = self.of_classes();
        self.former.0.add(fec);
        self.former.1.add(arq);
        if let Some(before) = self.session.take() {
            self.retired.retain(|(_, retired, _)| *retired != before.salt);
            if self.retired.len() == RETIRED {
                self.retired.pop_front();
            }
            self.retired.push_back((now + CHALLENGE * 3, before.salt, before.window.highest()));
        }
        let ciphers =
            [Cipher::of_data(&self.key, &self.salt, &salt), Cipher::of_data(&self.key, &salt, &self.salt)];
        self.session =
            Some(Session::new(now, &self.settings, (salt, ciphers), (self.counter, counter), hello, from));
        self.places = Places::default();
        self.places.is_new(now, from.peer);
        self.events.push_back(Event::Found(from.peer));
        self.path_size.begin_anew(now);
    }

    /// The other end is taken for dead until it shows that it hears this one.
    fn fall_silent(&mut self, now: Time) {
        let Some(session) = self.session.as_mut().filter(|session| session.silent_from.is_none()) else {
            return;
        };
        session.silent_from = Some(self.counter);
        self.events.push_back(Event::Silent);
        if self.settings.peer.is_some() {
            self.hello_at = now;
        }
    }

    /// This end ends: the other one need not wait until it misses it.
    pub fn close(&mut self, now: Time, exits: &mut dyn Exits) {
        let mut wire = Wire { now, counter: &mut self.counter, datagram: &mut self.datagram, exits };
        if let Some(session) = &mut self.session {
            session.close(&mut wire);
        }
    }

    /// Does what is due.
    pub fn wake(&mut self, now: Time, exits: &mut dyn Exits) {
        let patience = self.settings.patience;
        if self.session.as_ref().is_some_and(|session| session.lives_until(patience) <= now) {
            self.fall_silent(now);
        }
        let heartbeat = self.heartbeat();
        if let Some(session) = &mut self.session {
            let mut wire =
                Wire { now, counter: &mut self.counter, datagram: &mut self.datagram, exits: &mut *exits };
            let is_up = session.silent_from.is_none();
            if is_up {
                session.wake(&mut wire, &mut self.counters.left);
                let record = &session.outbound.record;
                // A probe may wait behind others of its size.
                let sending = self.settings.rate.map_or(Duration::ZERO, |rate| {
                    rate.time_for(Bytes(4 * *self.settings.sizes.end() as u64))
                });
                let measured = Measured { wait: record.patience() + sending, losses: record.losses() };
                if let Some(size) = self.path_size.wake(now, measured) {
                    self.path_size.note(session.probe(size, &mut wire), size);
                }
            }
            if session.report_at <= now || is_up && session.reported + heartbeat <= now {
                session.report(self.settings.unhelped, &mut wire);
            }
        }
        self.tell_size();
        if !self.is_up() && self.hello_at <= now {
            self.hello_at = now + HELLO;
            // The other end may have moved back.
            let known = self.peer().filter(|known| Some(*known) != self.settings.peer);
            for address in self.settings.peer.into_iter().chain(known) {
                self.send_hello(address.into(), now, exits);
            }
        }
    }

    /// What the other end must echo, to show that it has sent a hello now.
    fn challenge(&self, now: Time) -> Salt {
        let epoch = now.as_nanos() / CHALLENGE.as_nanos();
        self.key.derive(&[b"challenge", &self.salt, &epoch.to_be_bytes()])
    }

    /// Whether to answer a hello without proof: once each, as far as starts are remembered, and only so many a second, since
    /// each answer takes a counter.
    fn may_answer(&mut self, now: Time, salt: Salt, counter: u64) -> bool {
        let known = self.answered.iter().position(|(answered, _)| *answered == salt);
        let is_repeated = known.is_some_and(|known| counter <= self.answered[known].1);
        if is_repeated || self.answers_until > now + ANSWERS {
            return false;
        }
        match known {
            Some(known) => self.answered[known].1 = counter,
            None => {
                if self.answered.len() == ANSWERED {
                    self.answered.pop_front();
                }
                self.answered.push_back((salt, counter));
            }
        }
        self.answers_until = self.answers_until.max(now) + ANSWER;
        true
    }

    fn answer(&mut self, challenge: Salt, to: Ends, now: Time, exits: &mut dyn Exits) {
        let before = std::mem::replace(&mut self.echo, challenge);
        self.send_hello(to, now, exits);
        if self.session.is_some() {
            // Whoever was answered may not be the other end.
            self.echo = before;
        }
    }

    fn send_hello(&mut self, to: Ends, now: Time, exits: &mut dyn Exits) {
        let form = |help: &Help| match help {
            Help::None => ClassForm::Plain,
            Help::Fec(scheme) => ClassForm::Fec {
                k: scheme.k,
                interleave: scheme.interleave,
                in_order: scheme.in_order,
                hold: scheme.hold(self.settings.rate()),
            },
            Help::Arq { in_order, .. } => ClassForm::Arq { in_order: *in_order },
        };
        let hello = Hello {
            challenge: self.challenge(now),
            echo: self.echo,
            unhelped: self.settings.unhelped,
            classes: self.settings.classes.iter().map(form).collect(),
        };
        let counter = self.counter;
        self.counter += 1;
        Header::Hello { salt: self.salt, counter }.write(&mut self.datagram);
        hello.write(&mut self.datagram);
        self.hellos.seal(counter, &mut self.datagram, HELLO_HEADER);
        exits.datagram(to, Tos::default(), &self.datagram, None);
        if let Some(session) = &mut self.session {
            session.note_hello(now);
        }
    }
}
