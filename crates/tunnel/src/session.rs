//! What the two ends share from a hello on, until one of them starts anew.

use std::collections::VecDeque;

use lasthop_base::{Duration, Time};
use lasthop_proto::arq::Attempt;
use lasthop_proto::scheme::parameters::PacketFec;
use lasthop_proto::{Dscp, Ecn};

use crate::arq::{ArqCounters, ArqReceiver, ArqSender};
use crate::cipher::{Cipher, Salt};
use crate::exits::{Deliver, Event, Exits, Group};
use crate::fec::{FecCounters, FecReceiver, FecSender};
use crate::message::{self, ArqHeader, ClassForm, CodedHeader, DATA_HEADER, Header, Hello};
use crate::outer::{Ends, Tos};
use crate::plan;
use crate::sent::SentRecord;
use crate::settings::{Help, Settings};
use crate::window::{REPORTED, Report, Window};

/// The longest delay of a report: while an ARQ waits for it, and otherwise.
const REPORT_SOON: Duration = Duration::from_millis(10);
const REPORT_LATE: Duration = Duration::from_millis(100);

/// Messages with packets after which a report is due, while an ARQ waits for it.
const REPORT_EVERY: u32 = 16;

/// Counters after which a report is due in any case: two reports tell of each.
const REPORT_COUNTERS: u64 = REPORTED / 2;

/// The shortest time between reports of gaps.
const REPORT_LEAST: Duration = Duration::from_millis(2);

/// Lost attempts that are settled in one turn, and the time until the next ones.
const LOSSES: usize = 64;
const PAUSE: Duration = Duration::from_millis(1);

/// The way of datagrams out of an end.
pub(crate) struct Wire<'a> {
    pub(crate) now: Time,
    /// The counter of the next one.
    pub(crate) counter: &'a mut u64,
    pub(crate) datagram: &'a mut Vec<u8>,
    pub(crate) exits: &'a mut dyn Exits,
}

/// What it takes to send a datagram to the other end.
#[derive(Debug)]
pub(crate) struct Outbound {
    sealing: Cipher,
    pub(crate) ends: Ends,
    pub(crate) record: SentRecord,
    /// Attempts that are lost, or too old to be on record, which their classes are to be told.
    lost: VecDeque<(u8, Attempt)>,
}

impl Outbound {
    /// Sends a message.
    fn seal(
        &mut self,
        wire: &mut Wire<'_>,
        tos: Tos,
        attempt: Option<(u8, Attempt)>,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        self.seal_of(wire, tos, (attempt, None), write);
    }

    /// Sends a message with a packet of a block.
    fn seal_coded(
        &mut self,
        wire: &mut Wire<'_>,
        tos: Tos,
        (class, header, most): (u8, CodedHeader, usize),
        body: &[u8],
    ) {
        let group = Group { block: (class, header.block), most };
        self.seal_of(wire, tos, (None, Some(group)), |to| write_coded(class, header, body, to));
    }

    fn seal_of(
        &mut self,
        wire: &mut Wire<'_>,
        tos: Tos,
        (attempt, group): (Option<(u8, Attempt)>, Option<Group>),
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        let Wire { now, counter, datagram, exits } = wire;
        Header::Data { counter: **counter }.write(datagram);
        write(datagram);
        self.sealing.seal(**counter, datagram, DATA_HEADER);
        **counter += 1;
        let place = (tos.dscp, datagram.len());
        self.record.note(*now, place, attempt, |class, attempt| self.lost.push_back((class, attempt)));
        exits.datagram(self.ends, tos, datagram, group);
    }
}

/// The sending state of a class.
#[derive(Debug)]
enum Sender {
    Plain,
    Fec { sender: Box<FecSender>, scheme: PacketFec },
    Arq(Box<ArqSender>),
}

/// The receiving state of a class.
#[derive(Debug)]
enum Receiver {
    Plain,
    Fec(Box<FecReceiver>),
    Arq(Box<ArqReceiver>),
}

/// What is shared with one start of the other end.
#[derive(Debug)]
pub(crate) struct Session {
    /// The other end's salt.
    pub(crate) salt: Salt,
    pub(crate) opening: Cipher,
    pub(crate) window: Window,
    pub(crate) outbound: Outbound,
    pub(crate) heard: Time,
    /// When it last told of something that it had not told of before.
    pub(crate) confirmed: Time,
    /// While it is taken for dead, the counter from which on it must have heard something.
    pub(crate) silent_from: Option<u64>,
    /// The share of flows without help that the other end states.
    pub(crate) unhelped: u16,
    senders: Vec<Sender>,
    receivers: Vec<Receiver>,
    /// The arrival of the highest counter.
    arrived: Time,
    /// When the next report is due, when the last one was, and the packets since then.
    pub(crate) report_at: Time,
    pub(crate) reported: Time,
    unreported: u32,
    /// The highest counter of the last report.
    highest_reported: u64,
    /// Whether an ARQ there waits for reports.
    is_awaited: bool,
    /// When further losses are to be settled.
    settle_at: Time,
}

impl Session {
    /// A session with the start of the other end that has sent `hello`. Its counters, and this end's, begin with `counters`:
    /// this end's, and that of the hello, before which all is refused.
    pub(crate) fn new(
        now: Time,
        settings: &Settings,
        (salt, [sealing, opening]): (Salt, [Cipher; 2]),
        counters: (u64, u64),
        hello: &Hello,
        ends: Ends,
    ) -> Session {
        let senders = settings.classes.iter().map(|help| match help {
            Help::None => Sender::Plain,
            Help::Fec(scheme) => {
                let sender = Box::new(FecSender::new(scheme, settings.rate()));
                Sender::Fec { sender, scheme: scheme.clone() }
            }
            Help::Arq { retransmissions, .. } => Sender::Arq(Box::new(ArqSender::new(*retransmissions))),
        });
        let receivers = hello.classes.iter().map(|form| match *form {
            ClassForm::Plain => Receiver::Plain,
            ClassForm::Fec { k, interleave, in_order, hold } => {
                Receiver::Fec(Box::new(FecReceiver::new(k, interleave, in_order, hold)))
            }
            ClassForm::Arq { in_order } => Receiver::Arq(Box::new(ArqReceiver::new(in_order))),
        });
        let record = SentRecord::new(counters.0);
        Session {
            salt,
            opening,
            window: Window::from(counters.1),
            outbound: Outbound { sealing, ends, record, lost: VecDeque::new() },
            heard: now,
            confirmed: now,
            silent_from: None,
            unhelped: hello.unhelped,
            senders: senders.collect(),
            receivers: receivers.collect(),
            arrived: now,
            report_at: Time::NEVER,
            reported: now,
            unreported: 0,
            highest_reported: counters.1,
            is_awaited: hello.classes.iter().any(|form| matches!(form, ClassForm::Arq { .. })),
            settle_at: Time::NEVER,
        }
    }

    /// An authentic datagram with a new counter has come. The other end is where the newest came from; returns whether it has moved.
    pub(crate) fn hear(&mut self, now: Time, counter: u64, from: Ends) -> bool {
        let is_newest = counter > self.window.highest();
        // Lost or overtaken: an ARQ is told at once.
        let leaves_gap = counter > self.window.highest() + 1;
        self.window.note(counter);
        self.heard = now;
        if leaves_gap && self.is_awaited {
            self.report_at = self.report_at.min(now.max(self.reported + REPORT_LEAST));
        }
        if self.silent_from.is_some() {
            // The other end is told that it is heard.
            self.report_at = self.report_at.min(now.max(self.reported + REPORT_SOON));
        }
        if is_newest {
            self.arrived = now;
        }
        is_newest && std::mem::replace(&mut self.outbound.ends, from).peer != from.peer
    }

    pub(crate) fn counters(&self) -> (FecCounters, ArqCounters) {
        let (mut fec, mut arq) = <(FecCounters, ArqCounters)>::default();
        for receiver in &self.receivers {
            if let Receiver::Fec(receiver) = receiver {
                fec.add(receiver.counters());
            }
        }
        for sender in &self.senders {
            if let Sender::Arq(sender) = sender {
                arq.add(sender.counters());
            }
        }
        (fec, arq)
    }

    /// The largest number of packets of a class.
    pub(crate) fn most_sent(&self) -> u64 {
        let sent = |sender: &Sender| match sender {
            Sender::Plain => 0,
            Sender::Fec { sender, .. } => sender.sent().into(),
            Sender::Arq(sender) => sender.sent(),
        };
        self.senders.iter().map(sent).max().unwrap_or(0)
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        let senders = self.senders.iter().map(|sender| match sender {
            Sender::Fec { sender, .. } => sender.next_wakeup(),
            Sender::Plain | Sender::Arq(_) => Time::NEVER,
        });
        let receivers = self.receivers.iter().map(|receiver| match receiver {
            Receiver::Plain => Time::NEVER,
            Receiver::Fec(receiver) => receiver.next_wakeup(),
            Receiver::Arq(receiver) => receiver.next_wakeup(),
        });
        senders
            .chain(receivers)
            .fold(self.report_at.min(self.settle_at).min(self.outbound.record.asks_at()), Time::min)
    }

    /// A packet of a class enters; of an unknown one, it has no help.
    pub(crate) fn send(&mut self, class: usize, tos: Tos, packet: &[u8], wire: &mut Wire<'_>) {
        let Session { senders, outbound, .. } = self;
        let code = class as u8;
        match senders.get_mut(class) {
            Some(Sender::Fec { sender, .. }) => {
                let most = sender.redundancy();
                sender.send(wire.now, tos, packet, &mut |header, body, tos| {
                    outbound.seal_coded(wire, tos, (code, header, most), body);
                })
            }
            Some(Sender::Arq(sender)) => {
                sender.send(wire.now, tos, packet, &mut |header, body, tos, attempt| {
                    let attempt = attempt.map(|attempt| (code, attempt));
                    outbound.seal(wire, tos, attempt, |to| write_arq(code, header, body, to));
                })
            }
            Some(Sender::Plain) | None => outbound.seal(wire, tos, None, |to| {
                to.push(if class < senders.len() { code } else { 0 });
                to.extend(packet);
            }),
        }
        self.settle_losses(wire);
    }

    /// A message of a class has come. Returns whether it makes sense.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        class: u8,
        rest: &[u8],
        outer: Ecn,
        deliver: Deliver<'_>,
    ) -> bool {
        self.unreported += 1;
        let is_read = match self.receivers.get_mut(usize::from(class)) {
            Some(Receiver::Plain) => {
                deliver(rest, outer);
                Some(())
            }
            Some(Receiver::Fec(receiver)) => CodedHeader::parse(rest)
                .map(|(header, rest)| receiver.receive(now, header, rest, outer, deliver)),
            Some(Receiver::Arq(receiver)) => ArqHeader::parse(rest)
                .map(|(header, packet)| receiver.receive(now, header, packet, outer, deliver)),
            None => None,
        };
        is_read.is_some()
    }

    /// The other end tells what has arrived. If it was taken for dead, it is not when it has heard this end since then.
    pub(crate) fn learn(&mut self, report: &Report, wire: &mut Wire<'_>) -> Option<Event> {
        let Outbound { record, lost, .. } = &mut self.outbound;
        let mut arrived = Vec::new();
        let is_later = record.report(wire.now, report, |class, attempt, has_arrived| match has_arrived {
            true => arrived.push((class, attempt)),
            false => lost.push_back((class, attempt)),
        });
        if is_later {
            self.confirmed = wire.now;
        }
        let is_heard = is_later && self.silent_from.take_if(|from| report.highest >= *from).is_some();
        for (class, attempt) in arrived {
            self.settle(class, attempt, true, wire);
        }
        self.settle_losses(wire);
        is_heard.then_some(Event::Heard)
    }

    /// Until when the two ends may hear nothing of each other: each must hear the other one, and hear that it is heard.
    pub(crate) fn lives_until(&self, patience: Duration) -> Time {
        self.heard.min(self.confirmed) + patience
    }

    /// Sends a probe of this size; returns its counter.
    pub(crate) fn probe(&mut self, size: usize, wire: &mut Wire<'_>) -> u64 {
        let counter = *wire.counter;
        self.outbound.seal(wire, Tos::default(), None, |to| message::write_probe(size, to));
        self.outbound.record.exempt_latest();
        counter
    }

    /// Tells the other end that this one ends.
    pub(crate) fn close(&mut self, wire: &mut Wire<'_>) {
        self.outbound.seal(wire, Tos::default(), None, message::write_bye);
    }

    /// Tells a class the outcome of an attempt.
    fn settle(&mut self, code: u8, attempt: Attempt, has_arrived: bool, wire: &mut Wire<'_>) {
        let Session { senders, outbound, .. } = self;
        if let Some(Sender::Arq(sender)) = senders.get_mut(usize::from(code)) {
            sender.learn(wire.now, attempt, has_arrived, &mut |header, body, tos, attempt| {
                let attempt = attempt.map(|attempt| (code, attempt));
                outbound.seal(wire, tos, attempt, |to| write_arq(code, header, body, to));
            });
        }
    }

    /// Tells the classes what is lost, so much that other packets need not wait: each may be sent again, and all of an outage are
    /// known at once.
    fn settle_losses(&mut self, wire: &mut Wire<'_>) {
        for _ in 0..LOSSES {
            let Some((code, attempt)) = self.outbound.lost.pop_front() else { break };
            self.settle(code, attempt, false, wire);
        }
        self.settle_at = if self.outbound.lost.is_empty() { Time::NEVER } else { wire.now + PAUSE };
    }

    /// A hello was sent, which has taken a counter.
    pub(crate) fn note_hello(&mut self, now: Time) {
        let Outbound { record, lost, .. } = &mut self.outbound;
        record.note(now, (Dscp::DEFAULT, 0), None, |class, attempt| lost.push_back((class, attempt)));
        record.exempt_latest();
    }

    /// Lets codes have the redundancy that the measured loss takes.
    pub(crate) fn adapt(&mut self) {
        let losses = self.outbound.record.losses();
        for sender in &mut self.senders {
            if let Sender::Fec { sender, scheme } = sender {
                sender.set_n(plan::block_size(scheme.k, scheme.n, losses));
            }
        }
    }

    /// Decides when to report, after something has come.
    pub(crate) fn plan_report(&mut self, now: Time) {
        if self.unreported == 0 {
            return;
        }
        let delay = match self.is_awaited {
            _ if self.window.highest() - self.highest_reported >= REPORT_COUNTERS => Duration::ZERO,
            true if self.unreported >= REPORT_EVERY => Duration::ZERO,
            true => REPORT_SOON,
            false => REPORT_LATE,
        };
        self.report_at = self.report_at.min(now + delay);
    }

    /// Reports what has arrived, and the share of flows without help that this end states.
    pub(crate) fn report(&mut self, unhelped: u16, wire: &mut Wire<'_>) {
        let delay = wire.now.since(self.arrived).as_nanos() / 1000;
        let report = self.window.report(delay.try_into().unwrap_or(u32::MAX));
        self.outbound.seal(wire, Tos::default(), None, |to| message::write_report(unhelped, &report, to));
        (self.report_at, self.reported, self.unreported) = (Time::NEVER, wire.now, 0);
        self.highest_reported = report.highest;
    }

    /// Does what is due, but for reports.
    pub(crate) fn wake(&mut self, wire: &mut Wire<'_>, left: &mut u64) {
        let Session { senders, receivers, outbound, .. } = self;
        let now = wire.now;
        for (code, sender) in (0..).zip(senders) {
            if let Sender::Fec { sender, .. } = sender {
                let most = sender.redundancy();
                sender.wake(now, &mut |header, body, tos| {
                    outbound.seal_coded(wire, tos, (code, header, most), body);
                });
            }
        }
        let mut deliver = |packet: &[u8], outer: Ecn| {
            *left += 1;
            wire.exits.packet(packet, outer);
        };
        for receiver in receivers {
            match receiver {
                Receiver::Plain => {}
                Receiver::Fec(receiver) => receiver.wake(now, &mut deliver),
                Receiver::Arq(receiver) => receiver.wake(now, &mut deliver),
            }
        }
        if outbound.record.asks_at() <= now {
            for dscp in outbound.record.asked(now) {
                outbound.seal(wire, Tos { dscp, ..Tos::default() }, None, message::write_poll);
            }
        }
        self.settle_losses(wire);
    }
}

fn write_coded(class: u8, header: CodedHeader, body: &[u8], to: &mut Vec<u8>) {
    to.push(class);
    header.write(to);
    to.extend(body);
}

fn write_arq(class: u8, header: ArqHeader, body: &[u8], to: &mut Vec<u8>) {
    to.push(class);
    header.write(to);
    to.extend(body);
}
