//! Exit from slow start before losses: HyStart as in Linux (Ha and Rhee 2011) and HyStart++ (RFC 9406).

use lasthop_base::{Duration, Time};

use super::RttInfo;
use crate::packet::SeqNum;
use crate::tcp::settings::SlowStartExit;

/// Minimum window in segments for an exit by HyStart in Linux.
const LOW_WINDOW: u32 = 16;
/// Maximum gap between the acknowledgements of a train.
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Slack for batching by the stack.
const TRAIN_SLACK: Duration = Duration::from_millis(1);
/// Samples required per round (RFC 9406: N_RTT_SAMPLE).
const SAMPLES: u32 = 8;
/// Bounds of the delay increase that indicates a queue (RFC 9406: MIN_RTT_THRESH, MAX_RTT_THRESH).
const LEAST_RISE: Duration = Duration::from_millis(4);
const MOST_RISE: Duration = Duration::from_millis(16);
/// Growth divisor of conservative slow start (RFC 9406: CSS_GROWTH_DIVISOR).
const CONSERVATIVE_SHARE: u32 = 4;
/// Rounds of conservative slow start before congestion avoidance (RFC 9406: CSS_ROUNDS).
const CONSERVATIVE_ROUNDS: u32 = 5;

/// Detects the end of slow start from acknowledgements.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    exit: SlowStartExit,
    paced: bool,
    /// End of the current round in sequence space, and its start time.
    round_ends: SeqNum,
    round_began: Time,
    /// Time of the last acknowledgement of the train.
    last_of_train: Time,
    /// Minimum round-trip time of this round, its number of samples, and the minimum of the previous round.
    least: Option<Duration>,
    samples: u32,
    least_before: Option<Duration>,
    /// Minimum round-trip time of the connection.
    least_ever: Option<Duration>,
    conservative: Option<Conservative>,
    found: bool,
}

/// Conservative slow start (RFC 9406 section 4.2).
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
    /// Acknowledged segments not yet converted to growth.
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

    /// Restarts slow start at `now`; its first round covers data sent up to `max`.
    pub(super) fn restart(&mut self, now: Time, max: SeqNum) {
        *self = HyStart::new(self.exit, self.paced, max.0);
        (self.round_began, self.last_of_train) = (now, now);
    }

    /// Processes a round-trip time sample in slow start at a window of `cwnd` segments; returns whether slow
    /// start ends.
    pub(super) fn ends_slow_start(&mut self, info: &RttInfo, cwnd: u32) -> bool {
        self.least_ever = Some(self.least_ever.map_or(info.rtt, |least| least.min(info.rtt)));
        let is_small = cwnd < LOW_WINDOW;
        let has_no_rounds = match self.exit {
            SlowStartExit::Loss => true,
            SlowStartExit::Hystart16 => is_small,
            SlowStartExit::Hystart | SlowStartExit::HystartPlusPlus => false,
        };
        if self.found || has_no_rounds {
            return false;
        }
        if info.una > self.round_ends {
            self.begin_round(info);
        }
        self.found = match self.exit {
            SlowStartExit::HystartPlusPlus => self.conservative_has_ended(info),
            _ => !is_small && (self.train_is_long(info) || self.delay_has_risen(info)),
        };
        self.found
    }

    /// Growth in segments for `acked` acknowledged segments.
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

    /// An ACK train of half the minimum round-trip time: the forward path is full.
    fn train_is_long(&mut self, info: &RttInfo) -> bool {
        if info.now.since(self.last_of_train) > TRAIN_GAP {
            return false;
        }
        self.last_of_train = info.now;
        let threshold = self.least_ever.unwrap_or_default() + TRAIN_SLACK;
        let threshold = if self.paced { threshold } else { Duration::from_nanos(threshold.as_nanos() / 2) };
        info.now.since(self.round_began) > threshold
    }

    /// The minimum round-trip time of a round has increased: a queue has formed.
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

/// The delay increase above `least` that indicates a queue.
fn rise(least: Duration) -> Duration {
    Duration::from_nanos(least.as_nanos() / 8).max(LEAST_RISE).min(MOST_RISE)
}
