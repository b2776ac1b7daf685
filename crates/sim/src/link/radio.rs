//! The medium of wireless links without an ARQ: units survive or not, and nobody retransmits them.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_link::pace::{OnAir, Pace};
use lasthop_proto::Packet;

use super::air::Air;
use super::fragmenter::{Coding, Fragmenter};
use super::medium::{Medium, Passage};
use super::narrowing_deque::NarrowingDeque;
use super::{LinkStats, RadioConfig};

/// The transmission of a packet, counted when the packet reaches the other end.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    air_time: Duration,
    bits_on_air: u64,
    units: u32,
    lost_units: u32,
}

/// Sends each unit once. The remaining fragments of a packet are sent even after one is lost (the "basic TCP"
/// of TR-96-014, sections 4.2.1 and 5).
// Fields are in order of use: in a large network the link is not cached, and adjacent fields take fewer cache lines.
#[repr(C)]
pub(crate) struct Radio {
    /// Packets that have not reached the other end, with their arrival times.
    uncounted: NarrowingDeque<(Time, Transmission)>,
    stats: LinkStats,
    /// Survival is not drawn for units that start later.
    horizon: Time,
    fragmenter: Fragmenter,
    air: Air,
}

impl Radio {
    pub(super) fn new(config: &RadioConfig, air: Air) -> Radio {
        Radio {
            uncounted: NarrowingDeque::default(),
            stats: LinkStats::default(),
            horizon: Time::NEVER,
            fragmenter: Fragmenter::new(config),
            air,
        }
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
}

impl Medium for Radio {
    const IS_RADIO: bool = true;

    #[inline(always)]
    fn send<P: Pace>(&mut self, pace: &mut P, packet: &Packet, start: Time) -> Passage {
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
        let arrival = pace.arrival(end);
        if P::KEEPS_ORDER {
            self.uncounted.push((arrival, sent));
        } else {
            self.uncounted.push_sorted((arrival, sent), |&(arrival, _)| arrival);
        }
        Passage { end, arrival, is_lost: sent.lost_units > 0 }
    }

    #[inline]
    fn settle(&mut self, now: Time, inclusive: bool) {
        while let Some((arrival, sent)) = self.uncounted.front() {
            if *arrival > now || (*arrival == now && !inclusive) {
                break;
            }
            count(&mut self.stats, sent);
            self.uncounted.pop();
        }
    }

    fn until(&mut self, horizon: Time) {
        self.horizon = self.horizon.min(horizon);
    }

    fn stats(&self) -> LinkStats {
        self.stats
    }
}

/// Counts a packet that has reached the other end.
#[inline(always)]
fn count(stats: &mut LinkStats, sent: &Transmission) {
    stats.attempts += u64::from(sent.units);
    stats.failed_attempts += u64::from(sent.lost_units);
    stats.bits_on_air += sent.bits_on_air;
    stats.air_time += sent.air_time;
    *(if sent.lost_units == 0 { &mut stats.delivered } else { &mut stats.corrupted }) += 1;
}
