//! Links with an ARQ: the sending end learns the outcome of each unit and retransmits lost ones.
//!
//! A unit that arrives and is followed by the next unit of its packet changes nothing but counters, unless someone is told.
//! The link then looks ahead: it starts the next unit in the same step, at its later time, and wakes up only at the end of
//! a unit that is lost or is the last of its packet. Results are the same.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Time};
use lasthop_link::pace::{OnAir, Pace};
use lasthop_link::queue::Discipline;
use lasthop_proto::arq::{Arq, Attempt, EndedFrame, Form, Next, Verdict};
use lasthop_proto::frag::{Reassembled, Reassembly};
use lasthop_proto::{DropReason, FrameEvent, LinkEvent, LinkOutcome, Out, Packet, Signal};

use super::air::{Air, Unit};
use super::fragmenter::{Coding, Fragmenter, Units};
use super::line::End;
use super::queued::{QueuedLink, Service};
use super::{LinkStats, RadioConfig};

/// Sends units as the ARQ decides.
pub(crate) struct WithArq {
    fragmenter: Fragmenter,
    arq: Box<dyn Arq>,
    air: Air,
    /// The packets in transmission, in the order in which they started.
    packets: VecDeque<InTransmission>,
    /// ARQ number of the first of them.
    first: u64,
    /// The attempt on the air. Without one, the link is due when the ARQ is to be polled again.
    sending: Option<Sending>,
    /// Earlier attempts of the same step that have not been counted, each with its end.
    passed: Vec<(Time, Unit)>,
    /// The link does not look ahead beyond this time; zero if it never does.
    horizon: Time,
    /// Whether the ARQ has [`Statuses`](lasthop_proto::arq::Statuses).
    has_statuses: bool,
    /// The number of its base station among those of a moving host.
    station: u16,
    /// Whether the mobile host is elsewhere.
    is_away: bool,
    stats: LinkStats,
}

/// An attempt on the air.
#[derive(Clone, Copy)]
struct Sending {
    attempt: Attempt,
    unit: Unit,
    start: Time,
    end: Time,
    /// Whether it is known to be lost; otherwise the channel has not been queried.
    is_lost: bool,
}

/// A packet in transmission.
struct InTransmission {
    packet: Packet,
    units: Units,
    reassembly: Reassembly,
}

impl WithArq {
    pub(super) fn new(config: &RadioConfig, air: Air, mut arq: Box<dyn Arq>) -> WithArq {
        WithArq {
            fragmenter: Fragmenter::new(config),
            has_statuses: arq.statuses().is_some(),
            horizon: if arq.is_sequential() { Time::NEVER } else { Time::ZERO },
            arq,
            air,
            packets: VecDeque::new(),
            first: 0,
            sending: None,
            passed: Vec::new(),
            station: 0,
            is_away: false,
            stats: LinkStats::default(),
        }
    }

    /// Index of the packet with this ARQ number.
    fn place(&self, number: u64) -> usize {
        (number - self.first) as usize
    }

    /// Signals the status messages that follow from the end of an attempt; for an ARQ that cuts frames, also ends the frame.
    /// Returns whether it does.
    #[cold]
    fn end_with_statuses(&mut self, number: u32, verdict: Verdict, out: &mut Out) -> bool {
        let statuses = self.arq.statuses().expect("an ARQ with status messages");
        for _ in 0..statuses.take_messages() {
            out.signal(Signal::Status);
        }
        let Some(EndedFrame { sizes, shares }) = statuses.ended_frame() else { return false };
        for share in shares {
            let InTransmission { packet, reassembly, .. } =
                &mut self.packets[(share.packet - self.first) as usize];
            match share.outcome {
                LinkOutcome::Delivered => reassembly.arrived_together(share.units),
                LinkOutcome::AttemptFailed => {}
                LinkOutcome::Discarded => reassembly.abandon(),
            }
            let event = LinkEvent { outcome: share.outcome, packet: *packet, attempt: number };
            out.signal(Signal::Link(event));
            if share.outcome == LinkOutcome::Discarded {
                out.drop(*packet, DropReason::AttemptsExhausted);
                self.stats.discarded += 1;
            }
        }
        let outcome = match verdict {
            Verdict::Delivered => LinkOutcome::Delivered,
            Verdict::Again => LinkOutcome::AttemptFailed,
            Verdict::GiveUp => LinkOutcome::Discarded,
        };
        out.signal(Signal::Frame(FrameEvent { outcome, sizes }));
        true
    }

    /// Size and coding of an attempt that starts, for an ARQ with status messages. A frame is coded as the packet of its
    /// first byte. Out of line, as few links have such an ARQ.
    #[cold]
    fn unit_with_statuses(&mut self, attempt: Attempt, start: Time) -> (Bytes, Coding) {
        let statuses = self.arq.statuses().expect("an ARQ with status messages");
        let Form { is_coded, frame } = statuses.start(start);
        let units = &self.packets[self.place(attempt.packet)].units;
        let coding = self.fragmenter.coding_of(units, attempt.number, is_coded);
        (frame.unwrap_or_else(|| units.size(attempt.unit)), coding)
    }
}

impl<Q: Discipline, P: Pace> Service for QueuedLink<Q, P, WithArq> {
    fn is_busy(&self) -> bool {
        self.recovery.sending.is_some()
    }

    /// A packet that the ARQ does not begin yet waits, as what it holds back does: the pace is not idle then.
    fn starts_at_once(&mut self, now: Time) -> bool {
        let at_once = self.would_begin(now);
        if at_once {
            self.pace.idle(now);
        }
        at_once
    }

    fn serve(&mut self, now: Time, out: &mut Out) {
        match self.poll(now, out) {
            Ok(attempt) => {
                let first = self.begin_attempt(attempt, now);
                let alone = out.needs(LinkOutcome::Delivered) || first.end > self.recovery.horizon;
                let sending = if alone { first } else { self.look_ahead(first) };
                self.send(sending);
            }
            Err(until) => (self.recovery.sending, self.due) = (None, until),
        }
    }

    fn advance(&mut self, now: Time, out: &mut Out) {
        if !self.recovery.passed.is_empty() {
            self.settle(now, true);
        }
        while self.due <= now {
            if let Some(sending) = self.recovery.sending {
                self.end_attempt(sending, out);
            }
            self.serve(now, out);
        }
        self.deliver(now, out);
    }

    fn deliver(&mut self, now: Time, out: &mut Out) {
        self.recovery.stats.delivered += self.arrivals.leave(now, self.outlet, out);
    }

    fn turns_away(&mut self, packet: &Packet, out: &mut Out) -> bool {
        if self.recovery.is_away {
            self.recovery.stats.discarded += 1;
            out.drop(*packet, DropReason::Unreachable);
        }
        self.recovery.is_away
    }

    /// The mobile host has come or left. When it leaves, the link gives up all its packets but those that are about to
    /// arrive, and until it returns whatever enters.
    fn notice(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        let is_away = match *signal {
            Signal::Attached { station, .. } => station != self.recovery.station,
            Signal::Detached { .. } => true,
            _ => return,
        };
        self.advance(now, out);
        assert!(self.recovery.passed.is_empty(), "a link is told where its host is before it looks ahead");
        self.recovery.horizon = Time::ZERO;
        self.recovery.is_away = is_away;
        if !is_away {
            return;
        }
        let waiting: Vec<_> = std::iter::from_fn(|| self.queue.dequeue(now, out)).collect();
        self.recovery.first += self.recovery.packets.len() as u64;
        let started = self.recovery.packets.drain(..).map(|started| started.packet);
        for packet in started.chain(waiting) {
            self.recovery.stats.discarded += 1;
            out.drop(packet, DropReason::Unreachable);
        }
        self.recovery.arq.give_up_all();
        (self.recovery.sending, self.due) = (None, Time::NEVER);
    }

    fn settle(&mut self, now: Time, inclusive: bool) {
        let WithArq { passed, stats, .. } = &mut self.recovery;
        let has_ended = |(end, _): &&(Time, Unit)| *end < now || (*end == now && inclusive);
        let ended = passed.iter().take_while(has_ended).inspect(|(_, unit)| unit.count(stats)).count();
        passed.drain(..ended);
    }

    /// The link does not look ahead beyond the end of the run.
    fn until(&mut self, horizon: Time) {
        self.recovery.horizon = self.recovery.horizon.min(horizon);
    }

    fn set_station(&mut self, station: u16) {
        self.recovery.station = station;
    }

    fn held(&self) -> usize {
        self.incomplete() + self.arrivals.len()
    }

    fn attempt(&self) -> Option<u32> {
        Some(self.recovery.sending.map_or(0, |sending| sending.attempt.number))
    }

    fn stats(&self) -> LinkStats {
        self.recovery.stats.with_queue(self.queue.stats())
    }
}

impl<Q: Discipline, P: Pace> QueuedLink<Q, P, WithArq> {
    fn send(&mut self, sending: Sending) {
        (self.recovery.sending, self.due) = (Some(sending), sending.end);
    }

    /// The attempt after which something happens besides counting: `current` or a later one.
    fn look_ahead(&mut self, mut current: Sending) -> Sending {
        let place = self.recovery.place(current.attempt.packet);
        let InTransmission { units, reassembly, .. } = &self.recovery.packets[place];
        let (units, later) = (*units, reassembly.pending() - 1);
        let mut arrived = 0;
        while arrived < later && current.end <= self.recovery.horizon {
            let WithArq { arq, air, fragmenter, passed, .. } = &mut self.recovery;
            let Sending { attempt, unit, start, end, .. } = current;
            current.is_lost = !air.survives(unit, start, end);
            if current.is_lost {
                break;
            }
            arrived += 1;
            passed.push((end, unit));
            arq.ended(end, attempt, true);
            let Next::Send(next) = arq.next(end, false) else {
                unreachable!("the ARQ goes on with the next unit")
            };
            let coding = fragmenter.coding_of(&units, next.number, false);
            current = self.transmit(next, units.size(next.unit), coding, end);
        }
        self.recovery.packets[place].reassembly.arrived_together(arrived);
        current
    }

    /// The next attempt of the ARQ, or when it is to be polled again.
    pub(super) fn poll(&mut self, now: Time, out: &mut Out) -> Result<Attempt, Time> {
        loop {
            match self.recovery.arq.next(now, self.has_backlog()) {
                Next::Begin => self.begin_packet(now, out),
                Next::Send(attempt) => return Ok(attempt),
                Next::Wait(until) => {
                    assert!(until > now, "an ARQ polled at {now} to wait until {until}");
                    self.poll_empty_queue(now, out);
                    return Err(until);
                }
            }
        }
    }

    /// Starts an attempt that [`poll`](QueuedLink::poll) has returned, on air that is shared; returns its end.
    pub(super) fn start(&mut self, attempt: Attempt, now: Time) -> Time {
        let sending = self.begin_attempt(attempt, now);
        self.send(sending);
        sending.end
    }

    /// Ends the current attempt; returns whether the unit arrived.
    pub(super) fn finish(&mut self, out: &mut Out) -> bool {
        self.due = Time::NEVER;
        let sending = self.recovery.sending.take().expect("an attempt is on the air");
        self.end_attempt(sending, out)
    }

    /// Whether the channel is in its good state.
    pub(super) fn is_good(&mut self, now: Time) -> bool {
        self.recovery.air.is_good(now)
    }

    /// Packets that the sender has not completed.
    pub(super) fn incomplete(&self) -> usize {
        self.queue.queued().0 + self.recovery.packets.len()
    }

    /// Whether a packet that arrives now is transmitted at once.
    fn would_begin(&mut self, now: Time) -> bool {
        !self.is_busy() && !self.has_backlog() && self.recovery.arq.next(now, true) == Next::Begin
    }

    /// Calls `dequeue` on an empty discipline whenever a packet could start, as [`Discipline`] requires.
    fn poll_empty_queue(&mut self, now: Time, out: &mut Out) {
        if !self.has_backlog() && self.recovery.arq.next(now, true) == Next::Begin {
            let none = self.queue.dequeue(now, out);
            assert!(none.is_none(), "an empty discipline returned a packet");
        }
    }

    fn begin_packet(&mut self, now: Time, out: &mut Out) {
        let packet = self.queue.dequeue(now, out).expect("a discipline returns one of its packets");
        let WithArq { fragmenter, arq, packets, first, .. } = &mut self.recovery;
        let units = fragmenter.fragment(&packet);
        arq.begin(*first + packets.len() as u64, units.count());
        packets.push_back(InTransmission { packet, units, reassembly: Reassembly::of(units.count()) });
    }

    fn begin_attempt(&mut self, attempt: Attempt, start: Time) -> Sending {
        let (size, coding) = if self.recovery.has_statuses {
            self.recovery.unit_with_statuses(attempt, start)
        } else {
            let units = &self.recovery.packets[self.recovery.place(attempt.packet)].units;
            (units.size(attempt.unit), self.recovery.fragmenter.coding_of(units, attempt.number, false))
        };
        self.transmit(attempt, size, coding, start)
    }

    /// Puts an attempt on the air.
    #[inline]
    fn transmit(&mut self, attempt: Attempt, size: Bytes, coding: Coding, start: Time) -> Sending {
        let mut unit = self.recovery.air.unit(size, coding);
        let OnAir { begin, end, time } = self.pace.transmit(start, unit.on_air, unit.time);
        unit.time = time;
        Sending { attempt, unit, start: begin, end, is_lost: false }
    }

    /// Returns whether the unit arrived.
    fn end_attempt(&mut self, sending: Sending, out: &mut Out) -> bool {
        let Sending { attempt, unit, start, end, is_lost } = sending;
        let recovery = &mut self.recovery;
        let arrived = !is_lost && recovery.air.survives(unit, start, end);
        unit.count(&mut recovery.stats);
        recovery.stats.failed_attempts += u64::from(!arrived);
        let verdict = recovery.arq.ended(end, attempt, arrived);
        if recovery.has_statuses && recovery.end_with_statuses(attempt.number, verdict, out) {
            self.release(end);
            return arrived;
        }
        let place = recovery.place(attempt.packet);
        let WithArq { packets, stats, .. } = recovery;
        let InTransmission { packet, reassembly, .. } = &mut packets[place];
        let mut notify = |outcome| {
            let event = LinkEvent { outcome, packet: *packet, attempt: attempt.number };
            out.signal(Signal::Link(event));
        };
        match verdict {
            Verdict::Delivered => {
                reassembly.arrived();
                notify(LinkOutcome::Delivered);
            }
            Verdict::Again => notify(LinkOutcome::AttemptFailed),
            Verdict::GiveUp => {
                reassembly.abandon();
                notify(LinkOutcome::AttemptFailed);
                notify(LinkOutcome::Discarded);
                out.drop(*packet, DropReason::AttemptsExhausted);
                stats.discarded += 1;
            }
        }
        if reassembly.outcome().is_some() {
            self.release(end);
        }
        arrived
    }

    /// Releases completed packets in order: a completed packet waits for all earlier ones.
    fn release(&mut self, now: Time) {
        while let Some(outcome) = self.recovery.packets.front().and_then(|it| it.reassembly.outcome()) {
            let completed = self.recovery.packets.pop_front().expect("a packet in transmission");
            self.recovery.first += 1;
            if outcome != Reassembled::Abandoned {
                self.arrivals.add::<P>(self.pace.arrival(now), End::Intact, &completed.packet);
            }
        }
    }

    /// Queues a packet, or drops it; for air that is shared.
    pub(super) fn accept(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let at_once = self.would_begin(now);
        self.queue.enqueue(now, *packet, at_once, out);
    }

    /// Drops a packet for which the queue of several links has no room.
    pub(super) fn refuse(&mut self, packet: &Packet, out: &mut Out) {
        self.recovery.stats.overflowed += 1;
        out.drop(*packet, DropReason::QueueFull);
    }
}
