//! When slow start has found what the path holds: HyStart as in Linux (Ha and Rhee 2011) and HyStart++ (RFC 9406).

use lasthop_base::{Duration, Time};

use super::RttInfo;
use crate::tcp::seq::SeqNum;
use crate::tcp::settings::SlowStartExit;

/// Linux looks at windows of so many segments or more.
const LOW_WINDOW: u32 = 16;
/// Acknowledgements that come no further apart than this are a train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// What the stack's own batches may add to a train.
const TRAIN_SLACK: Duration = Duration::from_millis(1);
/// Samples of a round before its least round-trip time means anything (RFC 9406: N_RTT_SAMPLE).
const SAMPLES: u32 = 8;
/// Bounds of the rise of the round-trip time that means a queue (RFC 9406: MIN_RTT_THRESH, MAX_RTT_THRESH).
const LEAST_RISE: Duration = Duration::from_millis(4);
const MOST_RISE: Duration = Duration::from_millis(16);
/// Conservative slow start grows by one segment for so many acknowledged (RFC 9406: CSS_GROWTH_DIVISOR).
const CONSERVATIVE_SHARE: u32 = 4;
/// Rounds of conservative slow start before it is final (RFC 9406: CSS_ROUNDS).
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Finds out when slow start should end, from acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    exit: SlowStartExit,
    paced: bool,
    /// The current round ends when this is acknowledged, and began then.
    round_ends: SeqNum,
    round_began: Time,
    /// The last acknowledgement of the train.
    last_of_train: Time,
    /// The least round-trip time of this round, from how many samples, and that of the round before.
    least: Option<Duration>,
    samples: u32,
    least_before: Option<Duration>,
    /// The least round-trip time at all.
    least_ever: Option<Duration>,
    conservative: Option<Conservative>,
    found: bool,
}

/// Conservative slow start (RFC 9406 section 4.2).
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
    /// Acknowledged segments that do not make up a segment of growth yet.
    credit: u32,
}

impl HyStart {
    pub(super) fn new(exit: SlowStartExit, paced: bool, iss: u32) -> HyStart {
        HyStart {
            exit,
            paced,
            round_ends: SeqNum(iss),
            round_began: Time::ZERO,
            last_of_train: Time::ZERO,
            least: None,
            samples: 0,
            least_before: None,
            least_ever: None,
            conservative: None,
            found: false,
        }
    }

    /// Slow start begins anew at `now`; what was sent up to `max` belongs to its first round.
    pub(super) fn restart(&mut self, now: Time, max: SeqNum) {
        *self = HyStart::new(self.exit, self.paced, max.0);
        (self.round_began, self.last_of_train) = (now, now);
    }

    /// A round-trip time was measured in slow start, with a window of `cwnd` segments: whether slow start ends.
    pub(super) fn ends_slow_start(&mut self, info: &RttInfo, cwnd: u32) -> bool {
        self.least_ever = Some(self.least_ever.map_or(info.rtt, |least| least.min(info.rtt)));
        // As Linux has it, smaller windows do not even begin rounds.
        let is_small = self.exit == SlowStartExit::Hystart && cwnd < LOW_WINDOW;
        if self.exit == SlowStartExit::Loss || self.found || is_small {
            return false;
        }
        if info.una > self.round_ends {
            self.begin_round(info);
        }
        self.found = match self.exit {
            SlowStartExit::Loss => false,
            SlowStartExit::Hystart => self.train_is_long(info) || self.delay_has_risen(info),
            SlowStartExit::HystartPlusPlus => self.conservative_has_ended(info),
        };
        self.found
    }

    /// How many segments slow start may grow by for `acked` ones.
    pub(super) fn growth(&mut self, acked: u32) -> u32 {
        let Some(conservative) = &mut self.conservative else { return acked };
        conservative.credit += acked;
        let growth = conservative.credit / CONSERVATIVE_SHARE;
        conservative.credit %= CONSERVATIVE_SHARE;
        growth
    }

    fn begin_round(&mut self, info: &RttInfo) {
        (self.round_began, self.last_of_train, self.round_ends) = (info.now, info.now, info.max);
        (self.least_before, self.least, self.samples) = (self.least, None, 0);
        if let Some(conservative) = &mut self.conservative {
            conservative.rounds += 1;
        }
    }

    /// Acknowledgements without a gap for half the least round-trip time: the path is full in one direction.
    fn train_is_long(&mut self, info: &RttInfo) -> bool {
        if info.now.since(self.last_of_train) > TRAIN_GAP {
            return false;
        }
        self.last_of_train = info.now;
        let threshold = self.least_ever.unwrap_or_default() + TRAIN_SLACK;
        let threshold = if self.paced { threshold } else { Duration::from_nanos(threshold.as_nanos() / 2) };
        info.now.since(self.round_began) > threshold
    }

    /// The least round-trip time of a round is higher than before: a queue has formed.
    fn delay_has_risen(&mut self, info: &RttInfo) -> bool {
        let least = self.least.map_or(info.rtt, |least| least.min(info.rtt));
        self.least = Some(least);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let ever = self.least_ever.unwrap_or_default();
        least > ever + rise(ever)
    }

    /// RFC 9406 section 4.2.
    fn conservative_has_ended(&mut self, info: &RttInfo) -> bool {
        let least = self.least.map_or(info.rtt, |least| least.min(info.rtt));
        self.least = Some(least);
        self.samples += 1;
        if let Some(conservative) = self.conservative {
            if self.samples >= SAMPLES && least < conservative.baseline {
                self.conservative = None;
            }
            return conservative.rounds >= CONSERVATIVE_ROUNDS;
        }
        let Some(before) = self.least_before.filter(|_| self.samples >= SAMPLES) else { return false };
        if least >= before + rise(before) {
            self.conservative = Some(Conservative { baseline: least, rounds: 0, credit: 0 });
        }
        false
    }
}

/// The rise above `least` that means a queue.
fn rise(least: Duration) -> Duration {
    Duration::from_nanos(least.as_nanos() / 8).max(LEAST_RISE).min(MOST_RISE)
}
