//! Links with an ARQ: the sending end learns the outcome of each unit and retransmits lost ones.
//!
//! A unit that arrives and is followed by the next unit of its packet changes nothing but counters, unless someone is told.
//! The link then looks ahead: it starts the next unit in the same step, at its later time, and wakes up only at the end of
//! a unit that is lost or is the last of its packet. Results are the same.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Time};
use lasthop_proto::arq::{Arq, Attempt, EndedFrame, Form, Next, Verdict};
use lasthop_proto::frag::{Reassembled, Reassembly};
use lasthop_proto::{DropReason, FrameEvent, LinkEvent, LinkOutcome, Out, Packet, Signal};

use super::air::{Air, Unit};
use super::fragmenter::{Coding, Fragmenter, Units};
use super::{RadioConfig, RadioStats};
use lasthop_link::pace::{OnAir, Pace};
use lasthop_link::queue::{Discipline, QueueLimit};

/// Sends units as the ARQ decides.
pub(super) struct WithArq<P> {
    pace: P,
    queue: Queue,
    fragmenter: Fragmenter,
    arq: Box<dyn Arq>,
    air: Air,
    /// All packets held, in order of arrival: first those that the sender has completed and that are still
    /// propagating, then those in transmission, then the queue if it is drop-tail.
    packets: VecDeque<PendingPacket>,
    /// Number of packets that the sender has completed, still propagating.
    completed: usize,
    /// Number of packets in transmission.
    started: usize,
    /// ARQ number of the first packet that is not completed.
    first: u64,
    /// Bytes in the drop-tail queue.
    waiting: Bytes,
    /// The attempt on the air.
    sending: Option<Sending>,
    /// When that attempt ends; without one, when the ARQ is to be polled again.
    until: Time,
    /// Earlier attempts of the same step that have not been counted, each with its end.
    passed: Vec<(Time, Unit)>,
    /// The link does not look ahead beyond this time; zero if it never does.
    horizon: Time,
    /// Whether the ARQ has [`Statuses`](lasthop_proto::arq::Statuses).
    has_statuses: bool,
    /// Whether the mobile host is elsewhere.
    is_away: bool,
    stats: RadioStats,
}

/// The queue of the sending end.
pub(super) enum Queue {
    /// Drop-tail: the tail of `packets`, up to this limit.
    DropTail(QueueLimit),
    /// A queue with a discipline.
    Managed(Box<dyn Discipline>),
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

/// A packet with its transmission state.
struct PendingPacket {
    packet: Packet,
    units: Units,
    reassembly: Reassembly,
    /// Arrival time at the other end, once the sender has completed the packet.
    arrival: Time,
}

impl PendingPacket {
    fn waiting(packet: Packet, fragmenter: &Fragmenter) -> PendingPacket {
        let units = fragmenter.fragment(&packet);
        let reassembly = Reassembly::of(units.count());
        PendingPacket { packet, units, reassembly, arrival: Time::NEVER }
    }
}

impl<P: Pace> WithArq<P> {
    pub(super) fn new(
        config: &RadioConfig,
        pace: P,
        air: Air,
        mut arq: Box<dyn Arq>,
        queue: Queue,
    ) -> WithArq<P> {
        WithArq {
            pace,
            queue,
            fragmenter: Fragmenter::new(config),
            has_statuses: arq.statuses().is_some(),
            horizon: if arq.is_sequential() { Time::NEVER } else { Time::ZERO },
            arq,
            air,
            packets: VecDeque::new(),
            completed: 0,
            started: 0,
            first: 0,
            waiting: Bytes::ZERO,
            sending: None,
            until: Time::NEVER,
            passed: Vec::new(),
            is_away: false,
            stats: RadioStats::default(),
        }
    }

    pub(super) fn stats(&self) -> &RadioStats {
        &self.stats
    }

    /// Packets in the queue, and their bytes.
    pub(super) fn queued(&self) -> (usize, Bytes) {
        match &self.queue {
            Queue::DropTail(_) => (self.backlog(), self.waiting),
            Queue::Managed(queue) => queue.queued(),
        }
    }

    pub(super) fn held(&self) -> usize {
        match &self.queue {
            Queue::DropTail(_) => self.packets.len(),
            Queue::Managed(queue) => self.packets.len() + queue.queued().0,
        }
    }

    /// Number of the current transmission of the unit on the air; zero between units.
    pub(super) fn attempt(&self) -> u32 {
        self.sending.map_or(0, |sending| sending.attempt.number)
    }

    /// Sets the end of the run, beyond which the link does not look ahead.
    pub(super) fn until(&mut self, horizon: Time) {
        self.horizon = self.horizon.min(horizon);
    }

    /// Packets in the queue.
    fn backlog(&self) -> usize {
        match &self.queue {
            Queue::DropTail(_) => self.packets.len() - self.completed - self.started,
            Queue::Managed(queue) => queue.queued().0,
        }
    }

    /// Processes everything that is due by `now`.
    pub(super) fn advance(&mut self, now: Time, out: &mut Out) {
        if !self.passed.is_empty() {
            self.settle(now, true);
        }
        while self.until <= now {
            if let Some(sending) = self.sending {
                self.end_attempt(sending, out);
            }
            self.start_attempt(now, out);
        }
        self.deliver(now, out);
    }

    /// Counts the attempts that had ended before `now`, and at `now` itself if `inclusive`.
    pub(super) fn settle(&mut self, now: Time, inclusive: bool) {
        let WithArq { passed, stats, .. } = self;
        let has_ended = |(end, _): &&(Time, Unit)| *end < now || (*end == now && inclusive);
        let ended = passed.iter().take_while(has_ended).inspect(|(_, unit)| unit.count(stats)).count();
        passed.drain(..ended);
    }

    /// Delivers the packets that have arrived by `now`.
    pub(super) fn deliver(&mut self, now: Time, out: &mut Out) {
        while self.completed > 0 && self.packets[0].arrival <= now {
            self.arrive(out);
        }
    }

    /// Starts the next attempt of the ARQ on the free air interface.
    fn start_attempt(&mut self, now: Time, out: &mut Out) {
        match self.poll(now, out) {
            Ok(attempt) => {
                let first = self.begin_attempt(attempt, now);
                let alone = out.needs(LinkOutcome::Delivered) || first.end > self.horizon;
                let sending = if alone { first } else { self.look_ahead(first) };
                self.send(sending);
            }
            Err(until) => (self.sending, self.until) = (None, until),
        }
    }

    fn send(&mut self, sending: Sending) {
        (self.sending, self.until) = (Some(sending), sending.end);
    }

    /// The attempt after which something happens besides counting: `current` or a later one.
    fn look_ahead(&mut self, mut current: Sending) -> Sending {
        let place = self.place(current.attempt);
        let PendingPacket { units, reassembly, .. } = &self.packets[place];
        let (units, later) = (*units, reassembly.pending() - 1);
        let mut arrived = 0;
        while arrived < later && current.end <= self.horizon {
            let Sending { attempt, unit, start, end, .. } = current;
            current.is_lost = !self.air.survives(unit, start, end);
            if current.is_lost {
                break;
            }
            arrived += 1;
            self.passed.push((end, unit));
            self.arq.ended(end, attempt, true);
            let Next::Send(next) = self.arq.next(end, false) else {
                unreachable!("the ARQ goes on with the next unit")
            };
            let coding = self.fragmenter.coding_of(&units, next.number, false);
            current = self.transmit(next, units.size(next.unit), coding, end);
        }
        self.packets[place].reassembly.arrived_together(arrived);
        current
    }

    /// The next attempt of the ARQ, or when it is to be polled again.
    pub(super) fn poll(&mut self, now: Time, out: &mut Out) -> Result<Attempt, Time> {
        loop {
            match self.arq.next(now, self.backlog() > 0) {
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

    /// Starts an attempt that [`poll`](WithArq::poll) has returned, on air that is shared; returns its end.
    pub(super) fn start(&mut self, attempt: Attempt, now: Time) -> Time {
        let sending = self.begin_attempt(attempt, now);
        self.send(sending);
        sending.end
    }

    /// Ends the current attempt; returns whether the unit arrived.
    pub(super) fn finish(&mut self, out: &mut Out) -> bool {
        self.until = Time::NEVER;
        let sending = self.sending.take().expect("an attempt is on the air");
        self.end_attempt(sending, out)
    }

    /// Whether the channel is in its good state.
    pub(super) fn is_good(&mut self, now: Time) -> bool {
        self.air.is_good(now)
    }

    /// Packets that the sender has not completed.
    pub(super) fn incomplete(&self) -> usize {
        self.held() - self.completed
    }

    /// Calls `dequeue` on an empty discipline whenever a packet could start, as [`Discipline`] requires.
    fn poll_empty_queue(&mut self, now: Time, out: &mut Out) {
        if let Queue::Managed(queue) = &mut self.queue
            && queue.queued().0 == 0
            && self.arq.next(now, true) == Next::Begin
        {
            let none = queue.dequeue(now, out);
            assert!(none.is_none(), "an empty discipline returned a packet");
        }
    }

    fn begin_packet(&mut self, now: Time, out: &mut Out) {
        if let Queue::Managed(queue) = &mut self.queue {
            let packet = queue.dequeue(now, out).expect("a discipline returns one of its packets");
            self.stats.note_queue(queue.stats());
            self.append(packet);
        }
        let pending = self.packets.get_mut(self.completed + self.started);
        let PendingPacket { packet, units, .. } =
            pending.expect("an ARQ starts a packet only if one is queued");
        self.waiting = self.waiting - packet.size;
        self.arq.begin(self.first + self.started as u64, units.count());
        self.started += 1;
    }

    /// Size and coding of an attempt that starts, for an ARQ with status messages. A frame is coded as the packet of its
    /// first byte. Out of line, as few links have such an ARQ.
    #[cold]
    fn unit_with_statuses(&mut self, attempt: Attempt, start: Time) -> (Bytes, Coding) {
        let statuses = self.arq.statuses().expect("an ARQ with status messages");
        let Form { is_coded, frame } = statuses.start(start);
        let units = &self.packets[self.place(attempt)].units;
        let coding = self.fragmenter.coding_of(units, attempt.number, is_coded);
        let size = frame.unwrap_or_else(|| units.size(attempt.unit));
        (size, coding)
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
            let place = self.completed + (share.packet - self.first) as usize;
            let PendingPacket { packet, reassembly, .. } = &mut self.packets[place];
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

    fn begin_attempt(&mut self, attempt: Attempt, start: Time) -> Sending {
        let (size, coding) = if self.has_statuses {
            self.unit_with_statuses(attempt, start)
        } else {
            let units = &self.packets[self.place(attempt)].units;
            (units.size(attempt.unit), self.fragmenter.coding_of(units, attempt.number, false))
        };
        self.transmit(attempt, size, coding, start)
    }

    /// Puts an attempt on the air.
    #[inline]
    fn transmit(&mut self, attempt: Attempt, size: Bytes, coding: Coding, start: Time) -> Sending {
        let mut unit = self.air.unit(size, coding);
        let OnAir { begin, end, time } = self.pace.transmit(start, unit.on_air, unit.time);
        unit.time = time;
        Sending { attempt, unit, start: begin, end, is_lost: false }
    }

    /// Index of the attempt's packet in `packets`.
    fn place(&self, attempt: Attempt) -> usize {
        self.completed + (attempt.packet - self.first) as usize
    }

    /// Returns whether the unit arrived.
    fn end_attempt(&mut self, sending: Sending, out: &mut Out) -> bool {
        let Sending { attempt, unit, start, end, is_lost } = sending;
        let arrived = !is_lost && self.air.survives(unit, start, end);
        unit.count(&mut self.stats);
        self.stats.failed_attempts += u64::from(!arrived);
        let verdict = self.arq.ended(end, attempt, arrived);
        if self.has_statuses && self.end_with_statuses(attempt.number, verdict, out) {
            self.release(end);
            return arrived;
        }
        let place = self.place(attempt);
        let PendingPacket { packet, reassembly, .. } = &mut self.packets[place];
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
                self.stats.discarded += 1;
            }
        }
        if reassembly.outcome().is_some() {
            self.release(end);
        }
        arrived
    }

    /// Releases completed packets in order: a completed packet waits for all earlier ones.
    fn release(&mut self, now: Time) {
        while self.started > 0 {
            let pending = &mut self.packets[self.completed];
            let Some(outcome) = pending.reassembly.outcome() else { break };
            self.started -= 1;
            self.first += 1;
            if outcome == Reassembled::Abandoned {
                self.packets.remove(self.completed);
            } else {
                pending.arrival = self.pace.arrival(now);
                self.completed += 1;
            }
        }
    }

    /// The first packet of `packets` reaches the other end.
    fn arrive(&mut self, out: &mut Out) {
        let pending = self.packets.pop_front().expect("a completed packet");
        self.completed -= 1;
        self.stats.delivered += 1;
        out.send(self.pace.outlet(), pending.packet);
    }

    /// Whether an arriving packet starts transmission at once.
    fn begins_at_once(&self, now: Time) -> bool {
        self.sending.is_none() && self.backlog() == 0 && self.arq.next(now, true) == Next::Begin
    }

    /// Appends a packet to `packets`.
    fn append(&mut self, packet: Packet) {
        self.waiting += packet.size;
        self.packets.push_back(PendingPacket::waiting(packet, &self.fragmenter));
    }

    /// The mobile host has come or left. When it leaves, the link gives up all its packets but those that are about to
    /// arrive, and until it returns whatever enters.
    pub(super) fn set_away(&mut self, now: Time, is_away: bool, out: &mut Out) {
        self.advance(now, out);
        assert!(self.passed.is_empty(), "a link is told where its host is before it looks ahead");
        self.horizon = Time::ZERO;
        self.is_away = is_away;
        if !is_away {
            return;
        }
        if let Queue::Managed(queue) = &mut self.queue {
            while let Some(packet) = queue.dequeue(now, out) {
                self.packets.push_back(PendingPacket::waiting(packet, &self.fragmenter));
            }
            self.stats.note_queue(queue.stats());
        }
        for pending in self.packets.drain(self.completed..) {
            self.stats.discarded += 1;
            out.drop(pending.packet, DropReason::Unreachable);
        }
        self.arq.give_up_all();
        self.first += core::mem::take(&mut self.started) as u64;
        self.waiting = Bytes::ZERO;
        (self.sending, self.until) = (None, Time::NEVER);
    }

    pub(super) fn receive(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        if self.is_away {
            self.stats.discarded += 1;
            return out.drop(*packet, DropReason::Unreachable);
        }
        // Completes an attempt that ends at this instant first, whether or not the link was woken before.
        self.advance(now, out);
        self.accept(now, packet, out);
        if self.sending.is_none() {
            self.pace.idle(now);
            self.start_attempt(now, out);
        }
    }

    /// Queues a packet, or drops it.
    pub(super) fn accept(&mut self, now: Time, packet: &Packet, out: &mut Out) {
        let at_once = self.begins_at_once(now);
        match &mut self.queue {
            Queue::DropTail(limit) => {
                let limit = *limit;
                if !at_once && !limit.admits(self.backlog(), self.waiting, packet.size) {
                    self.stats.overflowed += 1;
                    return out.drop(*packet, DropReason::QueueFull);
                }
                self.append(*packet);
            }
            Queue::Managed(queue) => {
                queue.enqueue(now, *packet, at_once, out);
                self.stats.note_queue(queue.stats());
            }
        }
    }

    /// Drops a packet for which the queue of several links has no room.
    pub(super) fn refuse(&mut self, packet: &Packet, out: &mut Out) {
        self.stats.overflowed += 1;
        out.drop(*packet, DropReason::QueueFull);
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.until.min(self.next_arrival())
    }

    /// When the next packet arrives at the other end.
    pub(super) fn next_arrival(&self) -> Time {
        self.packets.front().map_or(Time::NEVER, |pending| pending.arrival)
    }
}
