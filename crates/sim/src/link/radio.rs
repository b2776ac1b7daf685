//! The medium of wireless links without an ARQ: units survive or not, and nobody retransmits them.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_link::pace::{OnAir, Pace};
use lasthop_proto::Packet;

use super::air::Air;
use super::fragmenter::{Coding, Fragmenter};
use super::medium::{Medium, Passage};
use super::narrowing_deque::NarrowingDeque;
use super::{LinkStats, RadioConfig};

/// The transmission of a packet.
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
    /// Arrival times and transmissions of packets, among them all that have not reached the other end.
    recent: NarrowingDeque<(Time, Transmission)>,
    /// Packets that arrive before this time are counted.
    counted_until: Time,
    /// Sums over all packets, also those not yet counted.
    sent: Sums,
    /// Survival is not drawn for units that start later.
    horizon: Time,
    fragmenter: Fragmenter,
    air: Air,
}

impl Radio {
    pub(super) fn new(config: &RadioConfig, air: Air) -> Radio {
        Radio {
            recent: NarrowingDeque::default(),
            counted_until: Time::ZERO,
            sent: Sums::default(),
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

impl Radio {
    /// Forgets the oldest packets, as long as they are counted.
    #[inline(never)]
    fn forget_counted(&mut self) {
        while self.recent.front().is_some_and(|&(arrival, _)| arrival < self.counted_until) {
            self.recent.pop();
        }
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
        if self.recent.is_full() {
            self.forget_counted();
        }
        self.recent.push((arrival, sent));
        self.sent.add(&sent);
        Passage { end, arrival, is_lost: sent.lost_units > 0 }
    }

    #[inline(always)]
    fn settle(&mut self, now: Time, inclusive: bool) {
        let until = if inclusive { now + Duration::from_nanos(1) } else { now };
        self.counted_until = self.counted_until.max(until);
    }

    fn until(&mut self, horizon: Time) {
        self.horizon = self.horizon.min(horizon);
    }

    fn stats(&self) -> LinkStats {
        let mut sums = self.sent;
        for (_, sent) in self.recent.iter().filter(|(arrival, _)| *arrival >= self.counted_until) {
            sums.subtract(sent);
        }
        LinkStats {
            attempts: sums.units,
            failed_attempts: sums.lost_units,
            bits_on_air: sums.bits_on_air,
            air_time: Duration::from_nanos(sums.air_time_ns),
            delivered: sums.packets - sums.corrupted,
            corrupted: sums.corrupted,
            ..LinkStats::default()
        }
    }
}

/// Sums over transmissions. They wrap around: with packets that are far in the future they may exceed all numbers, but what
/// is left when these are subtracted does not.
#[derive(Clone, Copy, Default)]
struct Sums {
    packets: u64,
    corrupted: u64,
    units: u64,
    lost_units: u64,
    bits_on_air: u64,
    air_time_ns: u64,
}

impl Sums {
    #[inline(always)]
    fn add(&mut self, sent: &Transmission) {
        self.combine(sent, u64::wrapping_add);
    }

    fn subtract(&mut self, sent: &Transmission) {
        self.combine(sent, u64::wrapping_sub);
    }

    #[inline(always)]
    fn combine(&mut self, sent: &Transmission, combined: impl Fn(u64, u64) -> u64) {
        self.packets = combined(self.packets, 1);
        self.corrupted = combined(self.corrupted, u64::from(sent.lost_units > 0));
        self.units = combined(self.units, u64::from(sent.units));
        self.lost_units = combined(self.lost_units, u64::from(sent.lost_units));
        self.bits_on_air = combined(self.bits_on_air, sent.bits_on_air);
        self.air_time_ns = combined(self.air_time_ns, sent.air_time.as_nanos());
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::{BitRate, Probability, Streams};
    use lasthop_channel::{FrameLoss, Model};
    use lasthop_link::pace::Fixed;
    use lasthop_link::{Expansion, Exposed};
    use lasthop_proto::{Body, Datagram, Dscp, Ecn, FlowId, Handle, HostId, arq};

    use super::*;

    /// Whenever counters are asked for, they include what has arrived: in bursts, when idle, and at the instant of an arrival.
    #[test]
    fn counts_packets_when_they_arrive() {
        let streams = Streams::new(3, 0);
        let (mut random, delay) = (streams.stream("test"), Duration::from_millis(50));
        let config = RadioConfig {
            rate: BitRate::from_bps(1_000_000).unwrap(),
            delay,
            expansion: Expansion::NONE,
            mtu: None,
            unit: None,
            fec: None,
            exposed: Exposed::OnAir,
            arq: arq::Config::None,
        };
        let channel = Model::FrameLoss(FrameLoss { loss: Probability::new(0.3).unwrap() });
        let mut radio = Radio::new(
            &config,
            Air::new(&config, channel.build(streams.stream("channel")), streams.stream("bits")),
        );
        let (mut free, mut now, mut passages) = (Time::ZERO, Time::ZERO, Vec::new());
        for seq in 0..4_000_u64 {
            now += random.up_to(Duration::from_millis(if seq / 100 % 2 == 0 { 1 } else { 30 }));
            let body = Body::Datagram(Datagram { seq, sent: now });
            let (src, dst, flow, size) = (HostId(0), HostId(1), FlowId(0), Bytes(40 + random.below(400)));
            let (dscp, ecn, handle) = (Dscp::DEFAULT, Ecn::NotEct, Handle::NONE);
            radio.settle(now, false);
            let packet = Packet { src, dst, flow, size, dscp, ecn, handle, body };
            let passage = radio.send(&mut Fixed { delay }, &packet, free.max(now));
            free = passage.end;
            passages.push((passage.arrival, passage.is_lost, size.bits()));
            if random.below(4) > 0 {
                continue;
            }
            if random.bernoulli(0.5) {
                let ahead = passages.iter().map(|passage| passage.0).find(|&arrival| arrival >= now);
                now = ahead.expect("the last packet has not arrived");
            }
            let inclusive = random.bernoulli(0.5);
            radio.settle(now, inclusive);
            let arrived = passages.iter().filter(|passage| passage.0 < now || inclusive && passage.0 == now);
            let (mut stats, mut bits) = (LinkStats::default(), 0);
            for &(_, is_lost, size) in arrived {
                stats.attempts += 1;
                stats.failed_attempts += u64::from(is_lost);
                stats.corrupted += u64::from(is_lost);
                stats.delivered += u64::from(!is_lost);
                bits += size;
            }
            (stats.bits_on_air, stats.air_time) = (bits, Duration::from_micros(bits));
            assert_eq!(radio.stats(), stats, "at {now}, {inclusive}");
        }
    }
}
