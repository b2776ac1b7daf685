//! A link that sends each unit once.

use lasthop_base::{Bytes, Time};
use lasthop_proto::{DropReason, Out, Packet, Port};

use super::air::Air;
use super::cut::Cutter;
use super::{RadioConfig, RadioStats};
use crate::line::Line;

/// Each unit once, whatever becomes of the others: the remaining fragments of a packet that has lost
/// one still use the air (the "basic TCP" of TR-96-014, sections 4.2.1 and 5).
pub(super) struct Plain {
    air: Air,
    cutter: Cutter,
    /// Packets with the number of their units that are lost.
    line: Line<u32>,
    /// The channel is not asked about units that begin later.
    horizon: Time,
    stats: RadioStats,
}

impl Plain {
    pub(super) fn new(config: &RadioConfig, air: Air) -> Plain {
        let line = Line::new(config.delay, config.queue);
        Plain { air, cutter: Cutter::new(config), line, horizon: Time::NEVER, stats: RadioStats::default() }
    }

    pub(super) fn stats(&self) -> &RadioStats {
        &self.stats
    }

    pub(super) fn queued(&self) -> (usize, Bytes) {
        self.line.queued()
    }

    pub(super) fn held(&self) -> usize {
        self.line.len()
    }

    pub(super) fn until(&mut self, horizon: Time) {
        self.horizon = horizon;
    }

    pub(super) fn receive(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let Some(start) = self.line.admit(now, packet.size) else {
            self.stats.overflowed += 1;
            return out.drop(packet, DropReason::QueueFull);
        };
        let units = self.cutter.cut(&packet);
        let (mut end, mut lost) = (start, 0);
        for index in 0..units.count() {
            let unit = self.air.unit(units.size(index), units.coding());
            let begin = end;
            end += unit.time;
            lost += u32::from(begin <= self.horizon && !self.air.survives(unit, begin, end));
        }
        self.line.take(now, packet, start, end, lost);
    }

    pub(super) fn wake(&mut self, now: Time, out: &mut Out) {
        let Plain { air, cutter, line, stats, .. } = self;
        line.hand_over(now, |packet, lost| {
            let units = cutter.cut(packet);
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
        });
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.line.next_arrival()
    }
}
