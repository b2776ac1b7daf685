//! Selective repeat: only lost units are retransmitted, and the link stays busy meanwhile.
//!
//! *What it does.* Units are sent in order. A unit that did not arrive may be retransmitted once its negative
//! acknowledgement has arrived, and then takes precedence over new units; among several, the one that failed
//! first goes first. Meanwhile later units continue. When the last permitted attempt of a unit has failed,
//! its whole packet is given up, including unsent units and pending retransmissions. The negative
//! acknowledgement arrives after a constant delay and is never lost. The packet is given up without that
//! delay, so units that a real sender would still have sent before the feedback are omitted.
//!
//! *Source.* Chiasserini, Garetto, Meo: "Improving TCP over Wireless by Selectively Protecting Packet
//! Transmissions", section III.
//!
//! *Parameters.* See [`Params`].
//!
//! *Differences from the paper.* The paper does not give the delay of a negative acknowledgement. As in the
//! paper there is no window: any number of units may be outstanding. Its links are slotted with one unit per
//! slot; here slots are optional, and a unit may be shorter or longer than a slot.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use lasthop_base::{Duration, Invalid, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arq, Attempt, Next, Protocol, Retransmissions, Verdict};

/// Units are sent in order while feedback is in transit. Lost units are retransmitted before new ones, in the
/// order of their losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "SelectiveRepeat")]
pub struct Params {
    /// Maximum number of retransmissions of a unit, or `"unlimited"`; then the whole packet is discarded. By
    /// default 5: the paper's six attempts (section IV).
    pub retransmissions: Retransmissions,
    /// Time from the end of a failed attempt until the unit may be retransmitted. By default 60 ms, six units
    /// of the paper's link: below about five, longer error bursts would cause more losses than short ones,
    /// but the paper finds that they cause fewer (section IV, on figure 2).
    pub feedback_delay: Duration,
    /// Attempts start at multiples of this time; with zero, at any time. By default zero, for a link without
    /// slots; 10 ms in the paper.
    pub slot: Duration,
}

impl Default for Params {
    fn default() -> Params {
        let feedback_delay = Duration::from_millis(60);
        Params { retransmissions: Retransmissions::AtMost(5), feedback_delay, slot: Duration::ZERO }
    }
}

impl Protocol for Params {
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }

    fn build(&self, _backoff: Stream) -> Box<dyn Arq> {
        Box::new(SelectiveRepeat::new(*self))
    }

    fn retries(&self) -> (Retransmissions, Duration) {
        (self.retransmissions, self.feedback_delay)
    }
}

/// Failed units in the order in which they failed, with new units in between.
#[derive(Clone, Debug)]
pub struct SelectiveRepeat {
    params: Params,
    /// The packet that started last, the only one with unsent units.
    packet: u64,
    units: u32,
    /// Its first unsent unit; `units` if all were sent.
    fresh: u32,
    /// Units waiting for retransmission, in the order in which they failed and become eligible.
    failed: VecDeque<Failed>,
}

/// A unit waiting for retransmission.
#[derive(Clone, Copy, Debug)]
struct Failed {
    /// The attempt to be made.
    next: Attempt,
    not_before: Time,
}

impl SelectiveRepeat {
    /// Nothing to send.
    pub fn new(params: Params) -> SelectiveRepeat {
        SelectiveRepeat { params, packet: 0, units: 0, fresh: 0, failed: VecDeque::new() }
    }

    /// The first instant from `time` on at which an attempt may start.
    fn aligned(&self, time: Time) -> Time {
        if self.params.slot.is_zero() {
            return time;
        }
        let slots = time.as_nanos().checked_next_multiple_of(self.params.slot.as_nanos());
        slots.map_or(Time::NEVER, Time::from_nanos)
    }

    /// An attempt that [ended](Arq::ended) as if it had arrived, since its outcome was not known then, is lost: a link whose
    /// receiving end is another machine learns that from its reports. The unit may be retransmitted at once.
    pub fn report_lost(&mut self, now: Time, attempt: Attempt) -> Verdict {
        self.fail(attempt, now)
    }

    fn fail(&mut self, attempt: Attempt, not_before: Time) -> Verdict {
        if !self.params.retransmissions.allow_after(attempt.number) {
            self.give_up(attempt.packet);
            return Verdict::GiveUp;
        }
        let next = Attempt { number: attempt.number + 1, ..attempt };
        self.failed.push_back(Failed { next, not_before });
        Verdict::Again
    }

    /// Forgets all units of a packet. Scans all pending units; since these precede new ones, there are at
    /// most as many as attempts within one feedback delay.
    fn give_up(&mut self, packet: u64) {
        self.failed.retain(|unit| unit.next.packet != packet);
        if self.packet == packet {
            self.fresh = self.units;
        }
    }
}

impl Arq for SelectiveRepeat {
    fn begin(&mut self, packet: u64, units: u32) {
        (self.packet, self.units, self.fresh) = (packet, units, 0);
    }

    fn next(&self, now: Time, backlog: bool) -> Next {
        let start = self.aligned(now);
        let again = self.failed.front().filter(|unit| unit.not_before <= start).map(|unit| unit.next);
        let fresh = || {
            let attempt = Attempt { packet: self.packet, unit: self.fresh, number: 1 };
            (self.fresh < self.units).then_some(attempt)
        };
        match again.or_else(fresh) {
            Some(attempt) if start == now => Next::Send(attempt),
            Some(_) => Next::Wait(start),
            // Starting a packet is not sending it: packets leave the queue between slots too.
            None if backlog => Next::Begin,
            None => Next::Wait(self.failed.front().map_or(Time::NEVER, |unit| self.aligned(unit.not_before))),
        }
    }

    fn ended(&mut self, now: Time, attempt: Attempt, arrived: bool) -> Verdict {
        if attempt.number == 1 {
            self.fresh += 1;
        } else {
            self.failed.pop_front();
        }
        if arrived {
            return Verdict::Delivered;
        }
        self.fail(attempt, now + self.params.feedback_delay)
    }

    fn give_up_all(&mut self) {
        self.failed.clear();
        self.fresh = self.units;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lasthop_base::{Stream, Streams};

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn scheme(retransmissions: Retransmissions, delay_ms: u64, slot_ms: u64) -> SelectiveRepeat {
        let (feedback_delay, slot) = (Duration::from_millis(delay_ms), Duration::from_millis(slot_ms));
        SelectiveRepeat::new(Params { retransmissions, feedback_delay, slot })
    }

    fn attempt(packet: u64, unit: u32, number: u32) -> Attempt {
        Attempt { packet, unit, number }
    }

    /// Sends the unit that the ARQ selects at `start`; the attempt ends at `end`.
    fn send(arq: &mut SelectiveRepeat, (start, end): (u64, u64), sent: Attempt, arrived: bool) -> Verdict {
        assert_eq!(arq.next(at(start), true), Next::Send(sent));
        arq.ended(at(end), sent, arrived)
    }

    #[test]
    fn a_failed_unit_is_retransmitted_after_the_feedback_delay_and_before_new_units() {
        let mut arq = scheme(Retransmissions::AtMost(2), 25, 0);
        assert_eq!(arq.next(at(0), true), Next::Begin);
        arq.begin(0, 2);
        assert_eq!(send(&mut arq, (0, 10), attempt(0, 0, 1), false), Verdict::Again);
        assert_eq!(send(&mut arq, (10, 20), attempt(0, 1, 1), false), Verdict::Again);
        // The feedback on unit 0 arrives at 35 ms, on unit 1 at 45 ms; until then the next packet is sent.
        assert_eq!(arq.next(at(20), true), Next::Begin);
        arq.begin(1, 4);
        assert_eq!(send(&mut arq, (20, 30), attempt(1, 0, 1), true), Verdict::Delivered);
        assert_eq!(send(&mut arq, (30, 40), attempt(1, 1, 1), true), Verdict::Delivered);
        assert_eq!(send(&mut arq, (40, 50), attempt(0, 0, 2), true), Verdict::Delivered);
        assert_eq!(send(&mut arq, (50, 60), attempt(0, 1, 2), false), Verdict::Again);
        assert_eq!(send(&mut arq, (60, 70), attempt(1, 2, 1), true), Verdict::Delivered);
        assert_eq!(send(&mut arq, (70, 80), attempt(1, 3, 1), true), Verdict::Delivered);
        assert_eq!(arq.next(at(80), false), Next::Wait(at(85)));
        assert_eq!(send(&mut arq, (85, 95), attempt(0, 1, 3), true), Verdict::Delivered);
        assert_eq!(arq.next(at(95), false), Next::Wait(Time::NEVER));
    }

    /// A link that learns outcomes from reports: each attempt ends as if it had arrived.
    #[test]
    fn losses_that_are_reported_later_are_retransmitted_at_once_and_before_new_units() {
        let mut arq = scheme(Retransmissions::AtMost(1), 25, 0);
        for packet in 0..3 {
            arq.begin(packet, 1);
            assert_eq!(send(&mut arq, (0, 0), attempt(packet, 0, 1), true), Verdict::Delivered);
        }
        assert_eq!(arq.next(at(60), false), Next::Wait(Time::NEVER));
        assert_eq!(arq.report_lost(at(60), attempt(2, 0, 1)), Verdict::Again);
        assert_eq!(arq.report_lost(at(60), attempt(0, 0, 1)), Verdict::Again);
        arq.begin(3, 1);
        for sent in [attempt(2, 0, 2), attempt(0, 0, 2), attempt(3, 0, 1)] {
            assert_eq!(send(&mut arq, (60, 60), sent, true), Verdict::Delivered);
        }
        assert_eq!(arq.report_lost(at(120), attempt(2, 0, 2)), Verdict::GiveUp);
        assert_eq!(arq.next(at(120), false), Next::Wait(Time::NEVER));
    }

    #[test]
    fn retransmissions_are_in_the_order_of_failure() {
        let unit = |unit, number| attempt(0, unit, number);
        let mut arq = scheme(Retransmissions::Unlimited, 2, 0);
        arq.begin(0, 3);
        assert_eq!(send(&mut arq, (0, 1), unit(0, 1), false), Verdict::Again);
        assert_eq!(send(&mut arq, (1, 2), unit(1, 1), false), Verdict::Again);
        // All three are eligible at 20 ms.
        assert_eq!(send(&mut arq, (2, 3), unit(2, 1), false), Verdict::Again);
        assert_eq!(send(&mut arq, (20, 21), unit(0, 2), false), Verdict::Again);
        assert_eq!(send(&mut arq, (21, 22), unit(1, 2), true), Verdict::Delivered);
        assert_eq!(send(&mut arq, (22, 23), unit(2, 2), true), Verdict::Delivered);
        assert_eq!(send(&mut arq, (23, 24), unit(0, 3), true), Verdict::Delivered);
    }

    #[test]
    fn attempts_start_at_slots_and_packets_at_any_time() {
        let mut arq = scheme(Retransmissions::AtMost(5), 60, 10);
        assert_eq!(arq.next(at(3), false), Next::Wait(Time::NEVER));
        assert_eq!(arq.next(at(3), true), Next::Begin);
        arq.begin(0, 1);
        assert_eq!(arq.next(at(3), true), Next::Wait(at(10)));
        // One unit shorter than a slot, and one of a slot and a half.
        assert_eq!(send(&mut arq, (10, 14), attempt(0, 0, 1), false), Verdict::Again);
        assert_eq!(arq.next(at(14), true), Next::Begin);
        arq.begin(1, 2);
        assert_eq!(arq.next(at(14), true), Next::Wait(at(20)));
        assert_eq!(send(&mut arq, (20, 35), attempt(1, 0, 1), true), Verdict::Delivered);
        assert_eq!(arq.next(at(35), true), Next::Wait(at(40)));
        assert_eq!(send(&mut arq, (40, 50), attempt(1, 1, 1), true), Verdict::Delivered);
        // The feedback on the failed unit arrives at 74 ms; the next slot starts at 80 ms. From 71 ms on the
        // queue is left alone: that slot belongs to the failed unit.
        assert_eq!(arq.next(at(50), false), Next::Wait(at(80)));
        assert_eq!(arq.next(at(70), true), Next::Begin);
        assert_eq!(arq.next(at(71), true), Next::Wait(at(80)));
        assert_eq!(send(&mut arq, (80, 84), attempt(0, 0, 2), true), Verdict::Delivered);
        assert_eq!(arq.next(at(84), false), Next::Wait(Time::NEVER));
    }

    #[test]
    fn the_last_failure_gives_up_all_units_of_the_packet() {
        let mut arq = scheme(Retransmissions::AtMost(1), 15, 0);
        arq.begin(0, 2);
        assert_eq!(send(&mut arq, (0, 10), attempt(0, 0, 1), false), Verdict::Again);
        assert_eq!(send(&mut arq, (10, 20), attempt(0, 1, 1), false), Verdict::Again);
        assert_eq!(arq.next(at(20), true), Next::Begin);
        arq.begin(1, 3);
        assert_eq!(send(&mut arq, (20, 22), attempt(1, 0, 1), false), Verdict::Again);
        assert_eq!(send(&mut arq, (25, 30), attempt(0, 0, 2), false), Verdict::GiveUp);
        // Unit 1 of packet 0 would be eligible from 35 ms on; packet 1 continues unaffected.
        assert_eq!(arq.next(at(36), true), Next::Send(attempt(1, 1, 1)));
        assert_eq!(send(&mut arq, (37, 40), attempt(1, 0, 2), false), Verdict::GiveUp);
        assert_eq!(arq.next(at(40), true), Next::Begin);
        assert_eq!(arq.next(at(40), false), Next::Wait(Time::NEVER));
        let mut arq = scheme(Retransmissions::AtMost(0), 15, 0);
        arq.begin(0, 2);
        assert_eq!(send(&mut arq, (0, 10), attempt(0, 0, 1), false), Verdict::GiveUp);
        assert_eq!(arq.next(at(10), true), Next::Begin);
    }

    #[test]
    fn slots_and_delays_may_be_arbitrarily_long() {
        let long = Params { slot: Duration::MAX, feedback_delay: Duration::MAX, ..Params::default() };
        let mut arq = SelectiveRepeat::new(long);
        arq.begin(0, 1);
        assert_eq!(send(&mut arq, (0, 10), attempt(0, 0, 1), false), Verdict::Again);
        assert_eq!(arq.next(at(10), false), Next::Wait(Time::NEVER));
    }

    #[test]
    fn a_saturated_link_stops_allocating() {
        let mut arq = scheme(Retransmissions::AtMost(5), 60, 10);
        let mut outcomes = Streams::new(2, 0).stream("outcomes");
        let (mut now, mut packets, mut settled) = (Time::ZERO, 0, 0);
        for step in 0..100_000 {
            match arq.next(now, true) {
                Next::Begin => {
                    arq.begin(packets, 3);
                    packets += 1;
                }
                Next::Send(attempt) => {
                    now += Duration::from_millis(10);
                    arq.ended(now, attempt, outcomes.bernoulli(0.3));
                }
                Next::Wait(_) => panic!("there is always something to send"),
            }
            if step == 1_000 {
                settled = arq.failed.capacity();
            }
        }
        assert_eq!(arq.failed.capacity(), settled);
        assert!(settled <= 8, "six units to a feedback delay, not {settled}");
    }

    /// A packet that arrives at `arrival` ms, in units of the given lengths in ms.
    struct Offered {
        arrival: u64,
        units: Vec<u64>,
    }

    /// Start of each attempt in ms, the attempt, and its verdict.
    type History = Vec<(u64, Attempt, Verdict)>;

    /// The attempts of the ARQ for the packets, on a link that polls as required.
    fn history(params: Params, offered: &[Offered], outcomes: &mut Stream, loss: f64) -> History {
        let (mut arq, mut history, mut begun, mut now) = (SelectiveRepeat::new(params), Vec::new(), 0, 0);
        loop {
            let arrival = offered.get(begun).map_or(Time::NEVER, |packet| at(packet.arrival));
            match arq.next(at(now), arrival <= at(now)) {
                Next::Begin => {
                    arq.begin(begun as u64, offered[begun].units.len() as u32);
                    begun += 1;
                }
                Next::Send(attempt) => {
                    let start = now;
                    now += offered[attempt.packet as usize].units[attempt.unit as usize];
                    let verdict = arq.ended(at(now), attempt, !outcomes.bernoulli(loss));
                    history.push((start, attempt, verdict));
                }
                Next::Wait(until) => {
                    assert!(until > at(now), "no progress at {now}");
                    // A packet already waiting makes no difference.
                    let news = if arrival > at(now) { arrival.min(until) } else { until };
                    if news == Time::NEVER {
                        return history;
                    }
                    now = news.as_nanos() / 1_000_000;
                }
            }
        }
    }

    /// A unit in the reference implementation.
    #[derive(Clone, Default)]
    struct Unit {
        sent: u32,
        failed_at: Option<u64>,
    }

    /// Reference implementation of the rules: in every millisecond in which an attempt may start, it scans
    /// all units, each with its complete state.
    fn reference(params: Params, offered: &[Offered], outcomes: &mut Stream, loss: f64) -> History {
        let ms = |span: Duration| span.as_nanos() / 1_000_000;
        let (delay, slot) = (ms(params.feedback_delay), ms(params.slot).max(1));
        let mut packets: Vec<Option<Vec<Unit>>> =
            offered.iter().map(|packet| Some(alloc::vec![Unit::default(); packet.units.len()])).collect();
        let (mut history, mut free_at) = (Vec::new(), 0);
        for now in 0.. {
            let units = || {
                let packets = packets.iter().enumerate();
                let alive = packets.filter_map(|(packet, units)| Some((packet, units.as_ref()?)));
                alive.flat_map(|(packet, units)| {
                    units.iter().enumerate().map(move |(index, unit)| (packet, index, unit))
                })
            };
            if units().all(|(_, _, unit)| unit.sent > 0 && unit.failed_at.is_none()) {
                break;
            }
            if now < free_at || now % slot != 0 {
                continue;
            }
            let again = units()
                .filter_map(|(packet, index, unit)| Some((unit.failed_at?, packet, index)))
                .filter(|(failed_at, ..)| failed_at + delay <= now)
                .min();
            let fresh = units().find(|(packet, _, unit)| unit.sent == 0 && offered[*packet].arrival <= now);
            let again = again.map(|(_, packet, index)| (packet, index));
            let Some((packet, index)) = again.or(fresh.map(|(packet, index, _)| (packet, index))) else {
                continue;
            };
            free_at = now + offered[packet].units[index];
            let unit = &mut packets[packet].as_mut().unwrap()[index];
            unit.sent += 1;
            let sent = Attempt { packet: packet as u64, unit: index as u32, number: unit.sent };
            let lost = outcomes.bernoulli(loss);
            unit.failed_at = lost.then_some(free_at);
            let last = params.retransmissions == Retransmissions::AtMost(unit.sent - 1);
            let verdict = match (lost, last) {
                (false, _) => Verdict::Delivered,
                (true, false) => Verdict::Again,
                (true, true) => Verdict::GiveUp,
            };
            if verdict == Verdict::GiveUp {
                packets[packet] = None;
            }
            history.push((now, sent, verdict));
        }
        history
    }

    #[test]
    fn agrees_with_the_reference_implementation() {
        let mut draw = Streams::new(4, 0).stream("cases");
        let (mut attempts, mut given_up, mut again) = (0, 0, 0);
        for case in 0..3_000 {
            let retransmissions = match draw.below(6) {
                5 => Retransmissions::Unlimited,
                most => Retransmissions::AtMost(most as u32),
            };
            let params = Params {
                retransmissions,
                feedback_delay: Duration::from_millis(draw.below(2) * draw.below(40)),
                slot: Duration::from_millis(draw.below(2) * draw.below(12)),
            };
            let (loss, spread) = ([0.1, 0.4, 0.8][draw.below(3) as usize], 1 + draw.below(40));
            let mut arrival = 0;
            let offered: Vec<Offered> = (0..20)
                .map(|_| {
                    arrival += draw.below(spread);
                    let units = (0..=draw.below(4)).map(|_| 1 + draw.below(9)).collect();
                    Offered { arrival, units }
                })
                .collect();
            let outcomes = Streams::new(4, case).stream("outcomes");
            let found = history(params, &offered, &mut outcomes.clone(), loss);
            assert_eq!(found, reference(params, &offered, &mut outcomes.clone(), loss), "{params:?}");
            let count = |wanted| found.iter().filter(|(_, _, verdict)| *verdict == wanted).count();
            attempts += found.len();
            given_up += count(Verdict::GiveUp);
            again += count(Verdict::Again);
        }
        // The test is meaningful only if every event occurs frequently.
        assert!(attempts > 100_000 && again > 30_000 && given_up > 10_000, "{attempts} {again} {given_up}");
    }
}
