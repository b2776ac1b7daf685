//! When transmissions begin and end over a link whose rate or delay varies.

use std::sync::Arc;

use lasthop_base::{Duration, Stream, Time};

use super::delay::{Delay, DelayReader};
use super::grants::{Grants, Scheduler};
use super::lognormal::Fluctuation;
use super::mahimahi::{OPPORTUNITY, Taker};
use super::rate::{Rate, RateReader, VaryingRate};
use super::token_bucket::Shaper;
use crate::pace::{OnAir, Pace};

/// The random streams of one direction of a link.
#[derive(Clone, Debug)]
pub struct TimingStreams {
    /// The steps and the slots of the rate.
    pub rate: [Stream; 2],
    /// The steps and the slots of the delay, or its jitter and its reordering.
    pub delay: [Stream; 2],
    /// The time of the first change of slots, which rate and delay of both directions share: copies of one
    /// stream.
    pub phase: Stream,
}

/// Rate and delay of one direction of a link over time.
#[derive(Clone, Debug)]
pub struct Timing {
    rate: Capacity,
    delay: DelayReader,
    /// The end of the run. Nothing is computed for later times.
    horizon: Time,
    /// Arrival of the last packet.
    last: Time,
}

#[derive(Clone, Debug)]
enum Capacity {
    Steps(RateReader),
    Opportunities(Taker),
    Tokens(Shaper),
    Grants(Box<Scheduler>),
}

impl Timing {
    /// A link at time zero, for a run that ends at `horizon`.
    ///
    /// # Panics
    /// If rate or delay are not [valid](Rate::validate).
    pub fn new(rate: &Rate, delay: &Delay, streams: TimingStreams, horizon: Time) -> Timing {
        let TimingStreams { rate: [rate_steps, rate_slots], delay: delay_random, mut phase } = streams;
        // In (0, 1]: the first slot has some length.
        let phase = 1.0 - phase.uniform();
        let rate = match rate {
            Rate::Varying(VaryingRate::Mahimahi(trace)) => {
                let trace = trace.file.contents().expect("the file has been read");
                Capacity::Opportunities(Taker::new(Arc::clone(trace)))
            }
            Rate::Varying(VaryingRate::TokenBucket(bucket)) => Capacity::Tokens(Shaper::new(*bucket)),
            rate => Capacity::Steps(RateReader::new(rate, |law| {
                Fluctuation::new(law.shape(), rate_steps, rate_slots, phase)
            })),
        };
        let delay = DelayReader::new(delay, delay_random, phase);
        Timing { rate, delay, horizon, last: Time::ZERO }
    }

    /// The same link with a base station that grants intervals: to it (`up`), or from it. `random` is a stream of its own, `shared` a copy of that
    /// of the opposite direction.
    ///
    /// # Panics
    /// If the rate is one of opportunities or a shaper.
    pub fn granted(self, grants: Grants, up: bool, random: Stream, shared: Stream) -> Timing {
        let Capacity::Steps(rate) = self.rate else {
            panic!("a rate that depends on the traffic is granted")
        };
        let scheduler = Scheduler::new(grants, rate, up, random, shared);
        Timing { rate: Capacity::Grants(Box::new(scheduler)), ..self }
    }

    /// The end of the run.
    pub fn horizon(&self) -> Time {
        self.horizon
    }

    /// Begin and end of a transmission of `bits` from `start` on, which [`ready`](Pace::ready) returned, and the
    /// time within it for which the rate is zero. The end is [`Time::NEVER`] if it is after the run.
    fn send(&mut self, start: Time, bits: u64) -> (Time, Time, Duration) {
        let (mut begin, mut pauses) = (start, Duration::ZERO);
        let end = match &mut self.rate {
            Capacity::Opportunities(taker) => taker.send(start, bits, self.horizon),
            Capacity::Grants(scheduler) => scheduler.send(start, bits, self.horizon),
            Capacity::Tokens(shaper) => {
                let end;
                (begin, end) = shaper.send(start, bits);
                if end <= self.horizon { end } else { Time::NEVER }
            }
            Capacity::Steps(reader) => 'sent: {
                let mut at = start;
                // In billionths of a bit, so that the sums are exact.
                let mut left = u128::from(bits) * 1_000_000_000;
                while at <= self.horizon {
                    let (bps, until) = reader.at(at);
                    let within = u128::from(bps) * u128::from(until.since(at).as_nanos());
                    if left <= within {
                        break 'sent at + Duration::from_nanos(left.div_ceil(u128::from(bps.max(1))) as u64);
                    }
                    if bps == 0 {
                        pauses += until.since(at);
                    }
                    left -= within;
                    at = until;
                }
                Time::NEVER
            }
        };
        (begin, end, pauses)
    }

    /// The times in milliseconds of all transmission opportunities before `until`, as a mahimahi trace. It
    /// repeats after its last time.
    pub fn opportunities(mut self, until: Time) -> Vec<u64> {
        let mut times = Vec::new();
        let mut at = Time::ZERO;
        loop {
            let ready = self.ready(at);
            let end = if ready == Time::NEVER { ready } else { self.send(ready, OPPORTUNITY.bits()).1 };
            if end > until {
                return times;
            }
            times.push(end.as_nanos().div_ceil(1_000_000));
            at = end;
        }
    }

    /// The steps of rate and delay until `until`: time, rate in bits per second, and delay (`None` if it is
    /// given per packet). The rate of a mahimahi trace is that of the opportunities in bins of length `bin`.
    pub fn trajectory(mut self, until: Time, bin: Duration) -> Vec<(Time, f64, Option<Duration>)> {
        let mut rows = Vec::new();
        let mut at = Time::ZERO;
        while at < until {
            let (bps, rate_until) = match &mut self.rate {
                Capacity::Steps(reader) => {
                    let (bps, until) = reader.at(at);
                    (bps as f64, until)
                }
                Capacity::Opportunities(taker) => {
                    let end = at + bin;
                    (taker.count_until(end) as f64 * OPPORTUNITY.bits() as f64 / bin.as_secs_f64(), end)
                }
                Capacity::Tokens(shaper) => (shaper.bps() as f64, Time::NEVER),
                Capacity::Grants(scheduler) => {
                    let (bps, until) = scheduler.rate().at(at);
                    (bps as f64, until)
                }
            };
            let delay = self.delay.at(at);
            rows.push((at, bps, delay.map(|(delay, _)| delay)));
            let next = delay.map_or(rate_until, |(_, delay_until)| delay_until.min(rate_until));
            // Bins are counted once.
            at = if matches!(self.rate, Capacity::Opportunities(_)) { rate_until } else { next };
        }
        rows
    }
}

impl Pace for Timing {
    const KEEPS_ORDER: bool = false;

    fn idle(&mut self, now: Time) {
        match &mut self.rate {
            Capacity::Opportunities(taker) => taker.idle(now),
            Capacity::Grants(scheduler) => scheduler.idle(now),
            Capacity::Steps(_) | Capacity::Tokens(_) => {}
        }
    }

    fn ready(&mut self, start: Time) -> Time {
        if start > self.horizon {
            return Time::NEVER;
        }
        let ready = match &mut self.rate {
            Capacity::Opportunities(taker) => taker.ready(start),
            Capacity::Tokens(_) => start,
            Capacity::Grants(scheduler) => scheduler.ready(start, self.horizon),
            Capacity::Steps(reader) => {
                let mut at = start;
                loop {
                    let (bps, until) = if at <= self.horizon { reader.at(at) } else { (1, Time::NEVER) };
                    if bps > 0 {
                        break at;
                    }
                    at = until;
                }
            }
        };
        if ready <= self.horizon { ready } else { Time::NEVER }
    }

    fn transmit(&mut self, start: Time, bits: u64, nominal: Duration) -> OnAir {
        let ready = self.ready(start);
        let never = (Time::NEVER, Time::NEVER, Duration::ZERO);
        let (begin, end, pauses) = if ready == Time::NEVER { never } else { self.send(ready, bits) };
        // A transmission that does not end within the run need not start: nothing depends on its outcome.
        let begin = if end == Time::NEVER { end } else { begin };
        let time = match self.rate {
            // Opportunities and intervals are instants without a duration.
            Capacity::Opportunities(_) | Capacity::Grants(_) => nominal,
            Capacity::Steps(_) | Capacity::Tokens(_) => end.since(begin).saturating_sub(pauses),
        };
        OnAir { begin, end, time }
    }

    fn arrival(&mut self, end: Time) -> Time {
        if end > self.horizon {
            return Time::NEVER;
        }
        let arrived = match &mut self.rate {
            Capacity::Grants(scheduler) => scheduler.arrival(end),
            _ => end,
        };
        let at = arrived + self.delay.of_packet(end);
        if !self.delay.keeps_order() {
            return at;
        }
        self.last = self.last.max(at);
        self.last
    }
}
