//! Transmission by grants of a cellular base station.
//!
//! *What it does.* Time is divided into intervals, in each of which the base station serves one user: the one with the highest ratio of its
//! rate to the average of what it got (proportional fairness). Neighbours always have data and a rate that does not vary. In an interval of
//! ours, as many bits are sent as its rate allows, of several packets or of a part of one. On the way up, packets that come when nothing is
//! queued wait for an opportunity to request a grant, and then for that; a packet that comes before the interval after the last one of ours
//! goes on in it, without a request. A block that fails is sent again a round trip later, in the place of new data; packets behind it wait
//! until it has arrived, as PDCP keeps the order. No interval is ours during a hand-over, which repetitions wait for, too, and nothing is
//! lost by it, as the old base station forwards what it has.
//!
//! *Source.* Proportional fairness: Jalali, Padovani and Pankaj, "Data throughput of CDMA-HDR", VTC 2000. Requests and grants: 3GPP TS 36.321,
//! section 5.4.4, and TS 36.213, sections 8 and 10.1.5; the times are those of LTE (TR 36.881, delays of the uplink). HARQ: TS 36.321, section 5.3.2,
//! with a round trip of 8 subframes.
//!
//! *Left out.* Resource blocks, so several users in an interval; fast fading, so the gain of choosing users in their good moments; small first grants,
//! which the base station gives before it knows how much is queued; soft combining of attempts, so each fails with the same probability;
//! discontinuous reception; losses after the last attempt, which are those of the channel, as a link's ARQ
//! repairs them (RLC in acknowledged mode).

use std::collections::VecDeque;

use lasthop_base::{Duration, Invalid, Probability, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::rate::RateReader;

/// Most retransmissions of a block by HARQ: four attempts, as in LTE.
const RETRANSMISSIONS: u64 = 3;

/// Averages of the neighbours are those of a steady state after this many averaging times without data of ours.
const FORGETTING: u64 = 16;

/// Transmission by grants of a cellular base station, with the times of LTE: `grants = {}`. The link's `rate` is what would arrive if the user were
/// alone and always had data.
///
/// The base station serves one user in each interval, by proportional fairness. On the way up, packets wait for a request and its grant
/// unless some are queued. Blocks that fail are repeated, in order (HARQ, PDCP); with `arq.rlp` above, the link has RLC in acknowledged mode.
/// The rate must be fixed or one of `series`, `signal` and `lognormal`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { neighbours = 3, request = \"10 ms\" }")]
pub struct Grants {
    /// Length of an interval. By default `"1 ms"`, a subframe of LTE; 5G has slots of `"0.5 ms"` at 30 kHz.
    pub interval: Duration,
    /// Users beside this one in each direction that always have data, up to 64.
    #[schemars(range(max = 64))]
    pub neighbours: u8,
    /// Time over which proportional fairness averages what a user got. By default `"100 ms"`.
    pub average: Duration,
    /// Time from one opportunity for a request to the next, on the way up; `"0 s"` for grants without requests. By default `"10 ms"`, one of LTE's
    /// periods (TS 36.213, table 10.1.5-1). The first is at a random time.
    pub request: Duration,
    /// Time from a request to the transmission that it allows. By default `"8 ms"`: 1 ms for the request, 3 ms until the base station has decoded it, 1 ms
    /// for the grant, 3 ms until the host has prepared the block (TR 36.881).
    pub grant: Duration,
    /// The probability that an attempt of a block fails. By default 0.1, at which link adaptation aims. The fourth succeeds.
    pub loss: Probability,
    /// Time from an attempt to the next, rounded up to intervals. By default `"8 ms"`.
    pub harq: Duration,
    /// Time from one hand-over to the next, the first at a random time. By default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handover: Option<Duration>,
    /// Length of a hand-over. By default `"50 ms"`, as TR 36.881 has it, rounded (49.5 ms).
    pub gap: Duration,
}

impl Default for Grants {
    fn default() -> Grants {
        let ms = Duration::from_millis;
        Grants {
            interval: ms(1),
            neighbours: 0,
            average: ms(100),
            request: ms(10),
            grant: ms(8),
            loss: Probability::new(0.1).expect("it is a probability"),
            harq: ms(8),
            handover: None,
            gap: ms(50),
        }
    }
}

impl Grants {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn validate(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid { field, problem });
        let second = Duration::from_secs(1);
        if self.interval < Duration::from_micros(50) || self.interval > Duration::from_millis(100) {
            return wrong("interval", "expected \"50 us\" to \"100 ms\", such as \"1 ms\"");
        }
        if self.neighbours > 64 {
            return wrong("neighbours", "found more than 64 neighbours, expected up to 64");
        }
        if self.average < self.interval || self.average > second * 10 {
            return wrong("average", "expected a time from the interval to \"10 s\", such as \"100 ms\"");
        }
        for (field, time) in [("request", self.request), ("grant", self.grant), ("gap", self.gap)] {
            if time > second * 10 {
                return wrong(field, "expected at most \"10 s\", such as \"10 ms\"");
            }
        }
        if self.loss.get() > 0.9 {
            return wrong(
                "loss",
                "found more than 0.9, expected the share of failures at which a link works",
            );
        }
        if self.harq.is_zero() || self.harq > second {
            return wrong("harq", "expected a time above zero, at most \"1 s\", such as \"8 ms\"");
        }
        if self.handover.is_none() && self.gap != Grants::default().gap {
            return wrong(
                "gap",
                "found it without hand-overs, so that it has no effect; add handover, or leave it out",
            );
        }
        if self.handover.is_some_and(|every| every < self.gap * 2 || every < self.interval * 100) {
            let problem = "found hand-overs that take more than half of the time, expected fewer, such as one each \"60 s\"";
            return wrong("handover", problem);
        }
        Ok(())
    }
}

/// A time, rounded up to intervals.
fn in_intervals(time: Duration, interval: Duration) -> Duration {
    interval * time.as_nanos().div_ceil(interval.as_nanos())
}

/// The intervals of one direction in which it sends.
#[derive(Clone, Debug)]
pub(super) struct Scheduler {
    grants: Grants,
    rate: RateReader,
    /// Failures of blocks.
    random: Stream,
    /// Whether grants are requested: the way up.
    requests: bool,
    /// The first request, and the first hand-over.
    first_request: Duration,
    first_handover: Duration,
    /// The next interval.
    next: Time,
    /// Nothing of ours is granted before.
    granted_from: Time,
    /// Averages of what we got, in bits per second, and of the share of each neighbour.
    got: f64,
    shares: Vec<f64>,
    /// Billionths of a bit that did not fill one.
    fraction: u64,
    /// The last interval taken, and the bits of it that are left.
    last: Time,
    left: u64,
    /// Intervals that repetitions take, in order.
    repetitions: VecDeque<Time>,
    /// Blocks by their intervals, with when they arrive.
    blocks: VecDeque<(Time, Time)>,
    /// When the last block asked for has arrived.
    arrived: Time,
}

impl Scheduler {
    /// A direction whose `shared` stream is a copy of that of the other one.
    pub(super) fn new(
        grants: Grants,
        rate: RateReader,
        up: bool,
        random: Stream,
        mut shared: Stream,
    ) -> Scheduler {
        let mut within = |time: Duration| Duration::from_nanos(shared.below(time.as_nanos().max(1)));
        let (first_request, first_handover) =
            (within(grants.request), within(grants.handover.unwrap_or_default()));
        let neighbours = f64::from(grants.neighbours);
        Scheduler {
            rate,
            random,
            requests: up && !grants.request.is_zero(),
            first_request,
            first_handover,
            next: Time::ZERO,
            granted_from: Time::ZERO,
            got: 0.0,
            shares: vec![1.0 / neighbours; usize::from(grants.neighbours)],
            fraction: 0,
            last: Time::ZERO,
            left: 0,
            repetitions: VecDeque::new(),
            blocks: VecDeque::new(),
            arrived: Time::ZERO,
            grants: Grants { harq: in_intervals(grants.harq, grants.interval), ..grants },
        }
    }

    /// The rate that the user would have alone.
    pub(super) fn rate(&mut self) -> &mut RateReader {
        &mut self.rate
    }

    /// Nothing waited before `now`: a new request is needed, and intervals up to `now` are over.
    pub(super) fn idle(&mut self, now: Time) {
        self.left = 0;
        self.granted_from = if self.requests { self.request(now) + self.grants.grant } else { now };
        self.pass(now + Duration::from_nanos(1));
    }

    /// The first opportunity for a request from `now` on.
    fn request(&self, now: Time) -> Time {
        let first = Time::ZERO + self.first_request;
        let passed = if now > first { now.since(first).as_nanos() } else { 0 };
        first + self.grants.request * passed.div_ceil(self.grants.request.as_nanos())
    }

    /// The first interval after the hand-over at `at`, if there is one.
    fn handed_over(&self, at: Time) -> Option<Time> {
        let (every, first) = (self.grants.handover?, Time::ZERO + self.first_handover);
        let passed = (at >= first).then(|| at.since(first))?;
        let begin = first + every * (passed.as_nanos() / every.as_nanos());
        let end = begin + self.grants.gap;
        (at < end).then(|| Time::ZERO + in_intervals(end.since(Time::ZERO), self.grants.interval))
    }

    /// Reserves an interval for a repetition, from `at` on.
    fn repeat(&mut self, at: Time) -> Time {
        let mut at = self.handed_over(at).unwrap_or(at);
        let mut place = self.repetitions.partition_point(|other| *other < at);
        while self.repetitions.get(place) == Some(&at) {
            at += self.grants.interval;
            place += 1;
        }
        self.repetitions.insert(place, at);
        at
    }

    /// Gives the intervals before `until` to others.
    fn pass(&mut self, until: Time) {
        let longest = (self.grants.average * FORGETTING).max(self.grants.interval);
        if until > self.next && (self.shares.is_empty() || until.since(self.next) > longest) {
            let intervals = until.since(self.next).as_nanos().div_ceil(self.grants.interval.as_nanos());
            self.next += self.grants.interval * intervals;
            let share = 1.0 / self.shares.len() as f64;
            self.shares.iter_mut().for_each(|each| *each = share);
            self.got = 0.0;
        }
        while self.next < until {
            self.end(false);
        }
        while self.repetitions.front().is_some_and(|at| *at < until) {
            self.repetitions.pop_front();
        }
    }

    /// The neighbour that got the smallest share.
    fn poorest(&self) -> Option<usize> {
        (0..self.shares.len()).min_by(|&a, &b| self.shares[a].total_cmp(&self.shares[b]))
    }

    fn is_repetition(&self) -> bool {
        self.repetitions.front().is_some_and(|at| *at <= self.next)
    }

    /// Whether the next interval is ours if we have new data, at a rate of `bps`: unless that of a neighbour over its average is higher.
    fn is_ours(&self, bps: u64) -> bool {
        if self.is_repetition() || self.handed_over(self.next).is_some() {
            return false;
        }
        self.poorest().is_none_or(|poorest| bps as f64 * self.shares[poorest] >= self.got)
    }

    /// Ends the next interval, in which we send new data, or a repetition, or a neighbour sends.
    fn end(&mut self, is_ours: bool) {
        let is_repetition = self.is_repetition();
        if is_repetition {
            self.repetitions.pop_front();
        }
        let served = if is_ours || is_repetition { None } else { self.poorest() };
        if !self.shares.is_empty() {
            let weight = self.grants.interval.as_secs_f64() / self.grants.average.as_secs_f64();
            let got = if served.is_none() { self.rate.at(self.next).0 as f64 } else { 0.0 };
            self.got += weight * (got - self.got);
            for (index, share) in self.shares.iter_mut().enumerate() {
                let got = if served == Some(index) { 1.0 } else { 0.0 };
                *share += weight * (got - *share);
            }
        }
        self.next += self.grants.interval;
    }

    /// The first time from `start` on, at which something waits, at which bits can be sent; [`Time::NEVER`] after `horizon`.
    pub(super) fn ready(&mut self, start: Time, horizon: Time) -> Time {
        if self.left > 0 && self.last == start {
            return start;
        }
        self.left = 0;
        self.pass(start.max(self.granted_from));
        self.find(horizon)
    }

    /// The next interval that is ours; [`Time::NEVER`] after `horizon`.
    fn find(&mut self, horizon: Time) -> Time {
        while self.next <= horizon {
            let (bps, until) = self.rate.at(self.next);
            if bps == 0 {
                self.pass(until.min(horizon + Duration::from_nanos(1)));
            } else if self.is_ours(bps) {
                return self.next;
            } else {
                self.end(false);
            }
        }
        Time::NEVER
    }

    /// Sends a block in the next interval that is ours.
    fn take(&mut self, horizon: Time) -> Time {
        let at = self.find(horizon);
        if at == Time::NEVER {
            return at;
        }
        // Repetitions take intervals, so blocks have more bits than the rate.
        let loss = self.grants.loss.get();
        let attempts = 1.0 + loss * (1.0 + loss * (1.0 + loss));
        let bps = (self.rate.at(at).0 as f64 * attempts).round() as u64;
        let sum = u128::from(bps) * u128::from(self.grants.interval.as_nanos()) + u128::from(self.fraction);
        (self.left, self.fraction) = ((sum / 1_000_000_000) as u64, (sum % 1_000_000_000) as u64);
        self.last = at;
        let failures = (0..RETRANSMISSIONS).take_while(|_| self.random.bernoulli(loss)).count();
        let last = (0..failures).fold(at, |attempt, _| self.repeat(attempt + self.grants.harq));
        self.blocks.push_back((at, last + self.grants.interval));
        self.end(true);
        at
    }

    /// Sends `bits` from `start` on, which [`ready`](Scheduler::ready) returned; returns the interval of the last ones.
    pub(super) fn send(&mut self, start: Time, mut bits: u64, horizon: Time) -> Time {
        loop {
            let part = self.left.min(bits);
            self.left -= part;
            bits -= part;
            if bits == 0 {
                return self.last.max(start);
            }
            if self.take(horizon) == Time::NEVER {
                return Time::NEVER;
            }
        }
    }

    /// When all blocks up to the interval at `end` have arrived.
    pub(super) fn arrival(&mut self, end: Time) -> Time {
        while let Some(&(_, arrived)) = self.blocks.front().filter(|(at, _)| *at <= end) {
            self.arrived = self.arrived.max(arrived);
            self.blocks.pop_front();
        }
        self.arrived.max(end)
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::{BitRate, Streams};

    use super::*;
    use crate::pace::Pace;
    use crate::varying::{Delay, Rate, Timing, TimingStreams};

    const RATE_BPS: u64 = 20_000_000;
    const PACKET_BITS: u64 = 12_000;

    /// Without failures, requests and hand-overs.
    fn plain() -> Grants {
        Grants { loss: Probability::new(0.0).unwrap(), request: Duration::ZERO, ..Grants::default() }
    }

    /// A direction of 20 Mb/s, so of 20,000 bits in an interval of 1 ms, without a delay.
    fn timing(grants: Grants, up: bool, seed: u64) -> Timing {
        assert_eq!(grants.validate(), Ok(()));
        let streams = Streams::new(seed, 0);
        let two = |name: &str| [0, 1].map(|index| streams.stream_of(format_args!("{name}{index}")));
        let all = TimingStreams { rate: two("rate"), delay: two("delay"), phase: streams.stream("slots") };
        let rate = Rate::Fixed(BitRate::from_bps(RATE_BPS).unwrap());
        let horizon = Time::ZERO + Duration::from_secs(10_000);
        let timing = Timing::new(&rate, &Delay::default(), all, horizon);
        timing.granted(grants, up, streams.stream("failures"), streams.stream("grants"))
    }

    fn ms(time: Duration) -> f64 {
        time.as_nanos() as f64 / 1e6
    }

    /// Sends a packet that waits from `start` on: when the last of it is sent, and when it arrives.
    fn send(timing: &mut Timing, start: Time) -> (Time, Time) {
        let end = timing.transmit(start, PACKET_BITS, Duration::ZERO).end;
        (end, timing.arrival(end))
    }

    /// The waits of packets that each meet an idle link, from their arrival to the begin of the interval.
    fn waits(grants: Grants, up: bool) -> Vec<f64> {
        let mut timing = timing(grants, up, 1);
        let wait = |number: u64| {
            let now = Time::ZERO + Duration::from_nanos(number * 1_000_730_011);
            timing.idle(now);
            let ready = timing.ready(now);
            send(&mut timing, ready);
            ms(ready.since(now))
        };
        (1..2_000).map(wait).collect()
    }

    /// An idle link sends in the next interval. Up, it waits for an opportunity to ask, half of their period on average, for the grant, and for the
    /// interval.
    #[test]
    fn a_packet_waits_for_its_request_and_its_grant() {
        let down = waits(Grants::default(), false);
        assert!(down.iter().all(|wait| *wait > 0.0 && *wait <= 1.0));
        let up = waits(Grants::default(), true);
        let mean = up.iter().sum::<f64>() / up.len() as f64;
        assert!(up.iter().all(|wait| *wait >= 8.0 && *wait <= 19.0));
        // Requests and intervals keep the same distance, so the last wait is that of one phase.
        assert!(mean > 13.0 && mean < 14.0, "{mean}");
        let unasked = waits(Grants { request: Duration::ZERO, ..Grants::default() }, true);
        assert_eq!(unasked, down);
    }

    /// The ends of packets that always wait, until `until_s`.
    fn saturated(grants: Grants, until_s: u64) -> Vec<(Time, Time)> {
        let mut timing = timing(grants, false, 2);
        let (mut now, mut all) = (timing.ready(Time::ZERO), Vec::new());
        while now < Time::ZERO + Duration::from_secs(until_s) {
            let sent = send(&mut timing, now);
            all.push(sent);
            now = timing.ready(sent.0);
        }
        all
    }

    /// Each of four users gets a quarter, and one alone everything, to the bit.
    #[test]
    fn users_have_equal_shares() {
        for (neighbours, share) in [(0, 1.0), (1, 0.5), (3, 0.25)] {
            let sent = saturated(Grants { neighbours, ..plain() }, 60).len() as f64;
            let expected = share * 60.0 * RATE_BPS as f64 / PACKET_BITS as f64;
            assert!((sent / expected - 1.0).abs() < 0.005, "{neighbours}: {sent} for {expected}");
        }
    }

    /// One who comes is served alone until it has got as much of the average as each of the n others has left: 1 - x = x / n with x = (1 - 1/100)^k
    /// after k intervals.
    #[test]
    fn a_newcomer_goes_first() {
        for neighbours in [1, 3, 9] {
            let mut timing = timing(Grants { neighbours, ..plain() }, false, 3);
            let now = Time::ZERO + Duration::from_secs(10);
            timing.idle(now);
            let (mut at, mut run) = (timing.ready(now), 0.0);
            loop {
                run += 1.0;
                // The bits of an interval.
                let end = timing.transmit(at, 20_000, Duration::ZERO).end;
                let next = timing.ready(end);
                if next.since(at) > Duration::from_millis(1) {
                    break;
                }
                at = next;
            }
            let n = f64::from(neighbours);
            let expected = libm::log(n / (n + 1.0)) / libm::log(0.99);
            assert!((run - expected).abs() <= 2.0, "{neighbours}: {run} for {expected}");
        }
    }

    /// Blocks have as many more bits as repetitions take intervals, so the rate is what arrives. Each failure delays a block by 8 ms, and nothing
    /// overtakes.
    #[test]
    fn blocks_that_fail_are_repeated() {
        let p: f64 = 0.3;
        let sent = saturated(Grants { loss: Probability::new(p).unwrap(), ..plain() }, 60);
        let expected = 60.0 * RATE_BPS as f64 / PACKET_BITS as f64;
        assert!((sent.len() as f64 / expected - 1.0).abs() < 0.01, "{} for {expected}", sent.len());
        assert!(sent.is_sorted_by_key(|(_, arrived)| *arrived));
        // Of packets that come alone.
        let mut timing = timing(Grants { loss: Probability::new(p).unwrap(), ..plain() }, false, 4);
        let mut late = [0.0; 4];
        for number in 1..=20_000 {
            let now = Time::ZERO + Duration::from_millis(100 * number);
            timing.idle(now);
            let ready = timing.ready(now);
            let (end, arrived) = send(&mut timing, ready);
            let failures = (ms(arrived.since(end)) - 1.0) / 8.0;
            assert_eq!(failures.fract(), 0.0);
            late[failures as usize] += 1.0 / 20_000.0;
        }
        let expected = [1.0 - p, p * (1.0 - p), p * p * (1.0 - p), p * p * p];
        for (found, expected) in late.iter().zip(expected) {
            assert!((found - expected).abs() < 0.01, "{late:?}");
        }
    }

    /// Repetitions wait for the end of a hand-over, each for an interval of its own, whatever the time between attempts.
    #[test]
    fn repetitions_wait_for_a_hand_over() {
        let harq = Duration::from_micros(7_300);
        let every = Some(Duration::from_secs(1));
        let grants = Grants { loss: Probability::new(0.5).unwrap(), harq, handover: every, ..plain() };
        let streams = Streams::new(5, 0);
        let [failures, shared] = ["failures", "grants"].map(|name| streams.stream(name));
        let mut scheduler = Scheduler::new(grants, RateReader::Fixed(RATE_BPS), false, failures, shared);
        let (mut waited, mut places) = (0, std::collections::BTreeSet::new());
        while scheduler.next < Time::ZERO + Duration::from_secs(20) {
            let at = scheduler.take(Time::ZERO + Duration::from_secs(30));
            for &place in &scheduler.repetitions {
                assert_eq!(ms(place.since(Time::ZERO)).fract(), 0.0);
                assert_eq!(scheduler.handed_over(place), None);
            }
            assert!(scheduler.repetitions.iter().is_sorted_by(|one, next| one < next));
            assert!(places.insert(at));
            let &(_, arrived) = scheduler.blocks.back().expect("a block");
            waited += u32::from(arrived.since(at) > Duration::from_millis(3 * 8 + 1));
        }
        // Of about 12 blocks in the 24 ms before each of 20 hand-overs, half have a failure.
        assert!(waited > 50, "{waited}");
    }

    /// Nothing is sent in a hand-over, and both directions have it at the same time.
    #[test]
    fn a_hand_over_is_a_gap() {
        let grants = Grants { handover: Some(Duration::from_secs(7)), ..plain() };
        let sent = saturated(grants, 60);
        let gap = |pair: &[(Time, Time)]| (pair[0].0, ms(pair[1].0.since(pair[0].0)));
        let gaps: Vec<_> = sent.windows(2).map(gap).filter(|(_, length)| *length > 2.0).collect();
        assert!((8..=9).contains(&gaps.len()), "{gaps:?}");
        assert!(gaps.iter().all(|(_, length)| (*length - 50.0).abs() <= 1.0), "{gaps:?}");
        assert!(gaps.windows(2).all(|pair| pair[1].0.since(pair[0].0) == Duration::from_secs(7)), "{gaps:?}");
        let mut up = timing(grants, true, 2);
        let within = gaps[0].0 + Duration::from_millis(10);
        up.idle(within);
        assert!((ms(up.ready(within).since(within)) - 40.0).abs() <= 1.0);
    }
}
