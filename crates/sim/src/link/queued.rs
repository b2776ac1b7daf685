//! Links that are served packet by packet, because the next packet, or its time, may depend on what is yet to happen.

use lasthop_base::Time;
use lasthop_link::pace::Pace;
use lasthop_link::queue::Discipline;
use lasthop_proto::{Component, Out, Packet, Port, Probe, Signal};

use super::LinkStats;
use super::line::{Arrivals, End};
use super::medium::{Medium, Passage};

/// One direction of a link: a queue under a discipline `Q`, a pace `P`, and a way to recover from losses `R`: [`Once`]
/// has none, [`WithArq`](super::with_arq::WithArq) retransmits.
pub(crate) struct QueuedLink<Q, P, R> {
    pub(super) queue: Q,
    pub(super) pace: P,
    pub(super) arrivals: Arrivals,
    /// When the link is served next; [`Time::NEVER`] while it has nothing to do.
    pub(super) due: Time,
    /// The port by which packets leave.
    pub(super) outlet: Port,
    pub(super) recovery: R,
}

impl<Q: Discipline, P: Pace, R> QueuedLink<Q, P, R> {
    /// An idle link.
    pub(super) fn new(queue: Q, pace: P, recovery: R) -> QueuedLink<Q, P, R> {
        let (arrivals, due, outlet) = (Arrivals::default(), Time::NEVER, Port::ONLY);
        QueuedLink { queue, pace, arrivals, due, outlet, recovery }
    }

    /// Packets leave by this port.
    pub(super) fn leaving_by(self, outlet: Port) -> QueuedLink<Q, P, R> {
        QueuedLink { outlet, ..self }
    }

    /// Whether packets wait in the queue.
    pub(super) fn has_backlog(&self) -> bool {
        self.queue.queued().0 > 0
    }
}

/// The part of a [`QueuedLink`] that depends on the recovery.
pub(crate) trait Service: Component {
    /// Whether the link transmits, or waits for the time at which it can.
    fn is_busy(&self) -> bool;

    /// Whether a packet that arrives now is transmitted at once; tells the pace if nothing has waited. Followed by
    /// [`serve`](Service::serve) if the link is not busy.
    fn starts_at_once(&mut self, now: Time) -> bool;

    /// Uses the free link, and sets when it is due next.
    fn serve(&mut self, now: Time, out: &mut Out);

    /// Processes what is due by now. With an ARQ, it also [delivers](Service::deliver).
    fn advance(&mut self, now: Time, out: &mut Out);

    /// Hands over the packets that have arrived by now.
    fn deliver(&mut self, now: Time, out: &mut Out);

    /// Drops a packet that cannot be accepted, whatever the queue; returns whether it did.
    fn turns_away(&mut self, _packet: &Packet, _out: &mut Out) -> bool {
        false
    }

    /// [`Component::on_signal`].
    fn notice(&mut self, _now: Time, _signal: &Signal, _out: &mut Out) {}

    /// Counts what had ended before `now`, and at `now` itself if `inclusive`.
    fn settle(&mut self, _now: Time, _inclusive: bool) {}

    /// Sets the end of the run.
    fn until(&mut self, horizon: Time);

    /// Sets the number of its base station.
    fn set_station(&mut self, _station: u16) {}

    /// Packets that have not arrived, queued or in flight.
    fn held(&self) -> usize;

    /// Number of the current transmission of the unit on the air, zero between units; `None` on a wired link.
    fn attempt(&self) -> Option<u32>;

    /// Counters, with those of the queue.
    fn stats(&self) -> LinkStats;
}

impl<Q: Discipline, P: Pace, R: Send> Component for QueuedLink<Q, P, R>
where
    QueuedLink<Q, P, R>: Service,
{
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        if self.turns_away(packet, out) {
            return;
        }
        // Completes what ends at this instant first, whether or not the link was woken before.
        self.advance(now, out);
        let is_idle = !self.is_busy();
        let at_once = self.starts_at_once(now);
        self.queue.enqueue(now, *packet, at_once, out);
        if is_idle {
            self.serve(now, out);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.advance(now, out);
        self.deliver(now, out);
    }

    fn on_signal(&mut self, now: Time, signal: &Signal, out: &mut Out) {
        self.notice(now, signal, out);
    }

    #[inline(always)]
    fn next_wakeup(&self) -> Time {
        self.due.min(self.arrivals.next())
    }

    fn show(&self, probe: &mut dyn Probe) {
        super::show_queue(self.queue.queued(), probe);
        if let Some(attempt) = self.attempt() {
            probe.value("attempt", f64::from(attempt));
        }
    }
}

/// Packets are sent once: there is no recovery.
pub(crate) struct Once<M> {
    medium: M,
    is_busy: bool,
}

impl<M> Once<M> {
    /// An idle medium.
    pub(super) fn new(medium: M) -> Once<M> {
        Once { medium, is_busy: false }
    }
}

impl<Q: Discipline, P: Pace, M: Medium> Service for QueuedLink<Q, P, Once<M>> {
    fn is_busy(&self) -> bool {
        self.recovery.is_busy
    }

    /// An idle link is then due when it can send; the pace is asked only once, because its times do not go back.
    fn starts_at_once(&mut self, now: Time) -> bool {
        if self.is_busy() {
            return false;
        }
        self.pace.idle(now);
        self.due = self.pace.ready(now);
        self.due == now
    }

    /// A packet leaves the queue when its first bits are sent.
    fn serve(&mut self, now: Time, out: &mut Out) {
        if self.due > now {
            self.recovery.is_busy = self.has_backlog();
            if !self.recovery.is_busy {
                self.due = Time::NEVER;
            }
            return;
        }
        let next = self.queue.dequeue(now, out);
        self.recovery.is_busy = next.is_some();
        self.due = next.map_or(Time::NEVER, |packet| {
            let Passage { end, arrival, is_lost } = self.recovery.medium.send(&mut self.pace, &packet, now);
            self.arrivals.add::<P>(arrival, if is_lost { End::Lost } else { End::Intact }, &packet);
            if end == Time::NEVER { end } else { self.pace.ready(end) }
        });
    }

    fn advance(&mut self, now: Time, out: &mut Out) {
        while self.due <= now {
            self.serve(self.due, out);
        }
    }

    fn deliver(&mut self, now: Time, out: &mut Out) {
        self.recovery.medium.settle(now, true);
        self.arrivals.leave(now, self.outlet, out);
    }

    fn until(&mut self, horizon: Time) {
        self.recovery.medium.until(horizon);
    }

    fn held(&self) -> usize {
        self.queue.queued().0 + self.arrivals.len()
    }

    fn attempt(&self) -> Option<u32> {
        M::IS_RADIO.then_some(0)
    }

    fn stats(&self) -> LinkStats {
        self.recovery.medium.stats().with_queue(self.queue.stats())
    }
}
