//! Links without an ARQ.

use lasthop_base::{Bytes, Time};
use lasthop_proto::{DropReason, Out, Packet, Port};

use super::air::Air;
use super::fragmenter::Fragmenter;
use super::{RadioConfig, RadioStats};
use crate::line::Line;
use crate::managed::ManagedLine;
use crate::queue::Discipline;

/// Sends each unit once. The remaining fragments of a packet are sent even after one is lost (the "basic TCP"
/// of TR-96-014, sections 4.2.1 and 5).
pub(super) struct OneShot {
    transmitter: Transmitter,
    /// Packets, each with the number of its units that are lost.
    line: Line<u32>,
}

/// Like [`OneShot`], with a queue discipline.
pub(super) struct ManagedOneShot {
    transmitter: Transmitter,
    line: ManagedLine<u32>,
}

/// Puts packets on the air.
struct Transmitter {
    air: Air,
    fragmenter: Fragmenter,
    /// Survival is not drawn for units that start later.
    horizon: Time,
    stats: RadioStats,
}

impl Transmitter {
    fn new(config: &RadioConfig, air: Air) -> Transmitter {
        Transmitter {
            air,
            fragmenter: Fragmenter::new(config),
            horizon: Time::NEVER,
            stats: RadioStats::default(),
        }
    }

    /// Sends a packet from `start` on. Returns the end of its last unit and the number of lost units.
    #[inline(always)]
    fn send(&mut self, packet: &Packet, start: Time) -> (Time, u32) {
        let units = self.fragmenter.fragment(packet);
        let (mut end, mut lost) = (start, 0);
        for index in 0..units.count() {
            let unit = self.air.unit(units.size(index), units.coding());
            let begin = end;
            end += unit.time;
            lost += u32::from(begin <= self.horizon && !self.air.survives(unit, begin, end));
        }
        (end, lost)
    }

    /// Delivers a packet at the other end, or drops it if units are lost.
    #[inline(always)]
    fn arrive(&mut self, packet: &Packet, lost: u32, out: &mut Out) {
        let Transmitter { air, fragmenter, stats, .. } = self;
        let units = fragmenter.fragment(packet);
        for index in 0..units.count() {
            air.unit(units.size(index), units.coding()).count(stats);
        }
        stats.failed_attempts += u64::from(lost);
        if lost == 0 {
            stats.delivered += 1;
            out.send(Port::ONLY, *packet);
        } else {
            stats.corrupted += 1;
            out.drop(*packet, DropReason::Corrupted);
        }
    }
}

impl OneShot {
    pub(super) fn new(config: &RadioConfig, air: Air) -> OneShot {
        let line = Line::new(config.delay, config.queue);
        OneShot { transmitter: Transmitter::new(config, air), line }
    }

    pub(super) fn stats(&self) -> &RadioStats {
        &self.transmitter.stats
    }

    pub(super) fn queued(&self) -> (usize, Bytes) {
        self.line.queued()
    }

    pub(super) fn held(&self) -> usize {
        self.line.len()
    }

    pub(super) fn until(&mut self, horizon: Time) {
        self.transmitter.horizon = horizon;
    }

    pub(super) fn receive(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let Some(start) = self.line.admit(now, packet.size) else {
            self.transmitter.stats.overflowed += 1;
            return out.drop(packet, DropReason::QueueFull);
        };
        let (end, lost) = self.transmitter.send(&packet, start);
        self.line.take(now, packet, start, end, lost);
    }

    pub(super) fn wake(&mut self, now: Time, out: &mut Out) {
        let OneShot { transmitter, line } = self;
        line.hand_over(now, |packet, lost| transmitter.arrive(packet, lost, out));
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.line.next_arrival()
    }
}

impl ManagedOneShot {
    pub(super) fn new(config: &RadioConfig, air: Air, queue: Box<dyn Discipline>) -> ManagedOneShot {
        let line = ManagedLine::new(config.delay, queue);
        ManagedOneShot { transmitter: Transmitter::new(config, air), line }
    }

    pub(super) fn stats(&self) -> &RadioStats {
        &self.transmitter.stats
    }

    pub(super) fn queued(&self) -> (usize, Bytes) {
        self.line.queued()
    }

    pub(super) fn held(&self) -> usize {
        self.line.len()
    }

    pub(super) fn receive(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let ManagedOneShot { transmitter, line } = self;
        line.receive(now, packet, |packet, start| transmitter.send(packet, start), out);
        transmitter.stats.note_queue(line.stats());
    }

    pub(super) fn wake(&mut self, now: Time, out: &mut Out) {
        let ManagedOneShot { transmitter, line } = self;
        line.advance(now, |packet, start| transmitter.send(packet, start), out);
        transmitter.stats.note_queue(line.stats());
        line.hand_over(now, |packet, lost| transmitter.arrive(packet, lost, out));
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.line.next_wakeup()
    }
}
