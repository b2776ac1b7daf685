//! Links without an ARQ.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::{DropReason, Out, Packet, Port};

use super::air::Air;
use super::fragmenter::{Coding, Fragmenter};
use super::{RadioConfig, RadioStats};
use crate::line::{Arrivals, DropTail, Fate, Line};
use crate::managed::ManagedPipeline;
use crate::ring::Ring;
use crate::varying::VaryingPipeline;
use lasthop_link::pace::{Fixed, OnAir, Pace};
use lasthop_link::queue::Discipline;
use lasthop_link::varying::Timing;

/// Sends each unit once. The remaining fragments of a packet are sent even after one is lost (the "basic TCP"
/// of TR-96-014, sections 4.2.1 and 5).
// In this order: in a large network, a packet finds nothing of the link in the cache, and what it needs fills fewer lines
// if it is side by side.
#[repr(C)]
pub(super) struct OneShot {
    pace: Fixed,
    queue: DropTail,
    arrivals: Arrivals,
    /// Packets that have not reached the other end, with their arrival times.
    uncounted: Ring<(Time, Transmission)>,
    transmitter: Transmitter,
}

/// The transmission of a packet, counted when the packet reaches the other end.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    air_time: Duration,
    bits_on_air: u64,
    units: u32,
    lost_units: u32,
}

/// Like [`OneShot`], with a queue discipline.
pub(super) struct ManagedOneShot {
    transmitter: Transmitter,
    pipeline: ManagedPipeline<Transmission>,
}

/// Like [`ManagedOneShot`], over a link whose rate or delay varies.
pub(super) struct VaryingOneShot {
    transmitter: Transmitter,
    pipeline: VaryingPipeline<Transmission>,
}

/// Puts packets on the air.
// In the order of use, as above.
#[repr(C)]
struct Transmitter {
    stats: RadioStats,
    /// Survival is not drawn for units that start later.
    horizon: Time,
    fragmenter: Fragmenter,
    air: Air,
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

    /// Sends a packet from `start` on. Returns the end of its last unit.
    #[inline(always)]
    fn send(&mut self, pace: &mut impl Pace, packet: &Packet, start: Time) -> (Time, Transmission) {
        let mut sent = Transmission { air_time: Duration::ZERO, bits_on_air: 0, units: 0, lost_units: 0 };
        let mut end = start;
        if self.fragmenter.sends_whole() {
            self.put_on_air(pace, packet.size, Coding::Uncoded, &mut end, &mut sent);
        } else {
            let units = self.fragmenter.fragment(packet);
            for index in 0..units.count() {
                self.put_on_air(pace, units.size(index), units.coding(), &mut end, &mut sent);
            }
        }
        (end, sent)
    }

    /// Sends a unit from `end` on, and moves `end` to its end.
    #[inline(always)]
    fn put_on_air(
        &mut self,
        pace: &mut impl Pace,
        size: Bytes,
        coding: Coding,
        end: &mut Time,
        sent: &mut Transmission,
    ) {
        let unit = self.air.unit(size, coding);
        let OnAir { begin: start, end: ended, time } = pace.transmit(*end, unit.on_air, unit.time);
        *end = ended;
        sent.units += 1;
        sent.air_time += time;
        sent.bits_on_air += unit.on_air;
        let lost = start <= self.horizon && !self.air.survives(unit, start, *end);
        sent.lost_units += u32::from(lost);
    }

    /// Counts a packet that has reached the other end, and hands it over or drops it.
    fn leave(&mut self, packet: &Packet, sent: &Transmission, out: &mut Out) {
        self.count(sent);
        match sent.lost_units {
            0 => out.send(Port::ONLY, *packet),
            _ => out.drop(*packet, DropReason::Corrupted),
        }
    }

    /// Counts a packet that has reached the other end.
    #[inline(always)]
    fn count(&mut self, sent: &Transmission) {
        let stats = &mut self.stats;
        stats.attempts += u64::from(sent.units);
        stats.failed_attempts += u64::from(sent.lost_units);
        stats.bits_on_air += sent.bits_on_air;
        stats.air_time += sent.air_time;
        *(if sent.lost_units == 0 { &mut stats.delivered } else { &mut stats.corrupted }) += 1;
    }
}

impl OneShot {
    pub(super) fn new(config: &RadioConfig, air: Air) -> OneShot {
        OneShot {
            transmitter: Transmitter::new(config, air),
            pace: Fixed { delay: config.delay },
            queue: DropTail::new(config.queue),
            arrivals: Arrivals::default(),
            uncounted: Ring::default(),
        }
    }

    pub(super) fn stats(&self) -> &RadioStats {
        &self.transmitter.stats
    }

    pub(super) fn queued(&self) -> (usize, Bytes) {
        self.queue.queued(self.held())
    }

    pub(super) fn held(&self) -> usize {
        self.arrivals.len()
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.arrivals.next()
    }

    pub(super) fn until(&mut self, horizon: Time) {
        self.transmitter.horizon = horizon;
    }
}

impl Line for OneShot {
    // The frame of a function would cost as much as a fifth of what is done here.
    #[inline(always)]
    fn pass(&mut self, now: Time, at: Time, packet: &Packet) -> Fate {
        self.settle(now, false);
        let Some(start) = self.queue.admit(at, packet.size) else { return Fate::Refused };
        let (end, sent) = self.transmitter.send(&mut self.pace, packet, start);
        self.queue.serve(at, packet.size, start, end);
        let arrival = self.pace.arrival(end);
        self.uncounted.push((arrival, sent));
        if sent.lost_units == 0 { Fate::Arrives(arrival) } else { Fate::Lost(arrival) }
    }

    #[inline]
    fn arrivals(&mut self) -> &mut Arrivals {
        &mut self.arrivals
    }

    fn count_refused(&mut self) {
        self.transmitter.stats.overflowed += 1;
    }

    #[inline]
    fn settle(&mut self, now: Time, inclusive: bool) {
        while let Some((arrival, sent)) = self.uncounted.front() {
            if *arrival > now || (*arrival == now && !inclusive) {
                break;
            }
            self.transmitter.count(sent);
            self.uncounted.pop();
        }
    }
}

impl ManagedOneShot {
    pub(super) fn new(config: &RadioConfig, air: Air, queue: Box<dyn Discipline>) -> ManagedOneShot {
        let pipeline = ManagedPipeline::new(config.delay, queue);
        ManagedOneShot { transmitter: Transmitter::new(config, air), pipeline }
    }

    pub(super) fn stats(&self) -> &RadioStats {
        &self.transmitter.stats
    }

    pub(super) fn queued(&self) -> (usize, Bytes) {
        self.pipeline.queued()
    }

    pub(super) fn held(&self) -> usize {
        self.pipeline.len()
    }

    pub(super) fn receive(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let ManagedOneShot { transmitter, pipeline } = self;
        pipeline.receive(
            now,
            packet,
            |packet, start| transmitter.send(&mut Fixed::default(), packet, start),
            out,
        );
        transmitter.stats.note_queue(pipeline.stats());
    }

    pub(super) fn wake(&mut self, now: Time, out: &mut Out) {
        let ManagedOneShot { transmitter, pipeline } = self;
        pipeline.advance(now, |packet, start| transmitter.send(&mut Fixed::default(), packet, start), out);
        transmitter.stats.note_queue(pipeline.stats());
        pipeline.hand_over(now, |packet, sent| transmitter.leave(packet, &sent, out));
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.pipeline.next_wakeup()
    }
}

impl VaryingOneShot {
    pub(super) fn new(
        config: &RadioConfig,
        timing: Timing,
        air: Air,
        queue: Box<dyn Discipline>,
    ) -> VaryingOneShot {
        let transmitter = Transmitter { horizon: timing.horizon(), ..Transmitter::new(config, air) };
        VaryingOneShot { transmitter, pipeline: VaryingPipeline::new(timing, queue) }
    }

    pub(super) fn stats(&self) -> &RadioStats {
        &self.transmitter.stats
    }

    pub(super) fn queued(&self) -> (usize, Bytes) {
        self.pipeline.queued()
    }

    pub(super) fn held(&self) -> usize {
        self.pipeline.len()
    }

    pub(super) fn receive(&mut self, now: Time, packet: Packet, out: &mut Out) {
        let VaryingOneShot { transmitter, pipeline } = self;
        pipeline.receive(now, packet, |timing, packet, start| transmitter.send(timing, packet, start), out);
        transmitter.stats.note_queue(pipeline.stats());
    }

    pub(super) fn wake(&mut self, now: Time, out: &mut Out) {
        let VaryingOneShot { transmitter, pipeline } = self;
        pipeline.advance(now, |timing, packet, start| transmitter.send(timing, packet, start), out);
        transmitter.stats.note_queue(pipeline.stats());
        pipeline.hand_over(now, |packet, sent| transmitter.leave(packet, &sent, out));
    }

    pub(super) fn next_wakeup(&self) -> Time {
        self.pipeline.next_wakeup()
    }
}
