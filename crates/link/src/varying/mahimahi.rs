//! Capacity as mahimahi's link shell records and replays it: a list of transmission opportunities.
//!
//! *What it does.* Each line of a file is the time of an opportunity to send 1504 bytes, in milliseconds. Several packets
//! share an opportunity, and a packet may need several; the packet arrives with the last one. Bytes for which no packet
//! waits are lost. At the end the file begins anew: its last time is that of the beginning of the next round. A packet
//! that comes at the very time of an opportunity is too late for it.
//!
//! *Source.* `LinkQueue` of mahimahi (github.com/ravinet/mahimahi at ae477d4, src/frontend/link_queue.cc). There a packet
//! above 1504 bytes is an error; here it takes several opportunities.

use std::fmt;
use std::sync::Arc;

use lasthop_base::{Bytes, Contents, Duration, LineError, Time, shortened};

/// Bytes delivered per opportunity.
pub const OPPORTUNITY: Bytes = Bytes(1504);

/// Maximum time of an opportunity: eleven days.
const MAX_MS: u64 = 1_000_000_000;

/// The transmission opportunities of one round.
#[derive(Clone, PartialEq, Eq)]
pub struct Opportunities(Vec<u32>);

impl fmt::Debug for Opportunities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opportunities({} in {} ms)", self.0.len(), self.period().as_nanos() / 1_000_000)
    }
}

impl Contents for Opportunities {
    fn parse(text: &str) -> Result<Opportunities, LineError> {
        let mut times: Vec<u32> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let time = match line.parse::<u64>() {
                Ok(time) if time <= MAX_MS => time as u32,
                Ok(time) => {
                    return Err(LineError::at(
                        number,
                        format!("found {time}, expected at most {MAX_MS} milliseconds"),
                    ));
                }
                Err(_) => {
                    let problem = format!(
                        "found \"{}\", expected a whole number: the time of a transmission opportunity in milliseconds",
                        shortened(line)
                    );
                    return Err(LineError::at(number, problem));
                }
            };
            if let Some(&last) = times.last().filter(|&&last| last > time) {
                let problem =
                    format!("found {time} after {last}, expected times that do not decrease; sort the file");
                return Err(LineError::at(number, problem));
            }
            times.push(time);
        }
        match times.last() {
            None => Err(LineError::whole(
                "found nothing, expected transmission opportunities, a time in ms on each line",
            )),
            Some(0) => Err(LineError::whole("found no time above 0, expected a trace of some length")),
            Some(_) => Ok(Opportunities(times)),
        }
    }
}

impl Opportunities {
    /// The length of a round.
    pub fn period(&self) -> Duration {
        Duration::from_millis(u64::from(self.0[self.0.len() - 1]))
    }

    /// The mean rate in bits per second.
    pub fn mean_bps(&self) -> f64 {
        self.0.len() as f64 * OPPORTUNITY.bits() as f64 / self.period().as_secs_f64()
    }

    fn time(&self, index: usize) -> Duration {
        Duration::from_millis(u64::from(self.0[index]))
    }
}

/// Takes opportunities in order.
#[derive(Clone, Debug)]
pub(super) struct Taker {
    all: Arc<Opportunities>,
    /// The beginning of the current round.
    begin: Time,
    /// The next opportunity.
    next: usize,
    /// The time of the last one taken, and the bits of it that are left.
    last: Time,
    left: u64,
}

impl Taker {
    pub(super) fn new(all: Arc<Opportunities>) -> Taker {
        Taker { all, begin: Time::ZERO, next: 0, last: Time::ZERO, left: 0 }
    }

    /// Nothing waited before `now`: what there was up to then, and at `now` itself, is lost.
    pub(super) fn idle(&mut self, now: Time) {
        self.left = 0;
        self.skip(now + Duration::from_nanos(1));
    }

    /// The first time from `start` on, at which something waits, at which bits can be sent.
    pub(super) fn ready(&mut self, start: Time) -> Time {
        if self.left > 0 && self.last == start {
            return start;
        }
        self.left = 0;
        self.skip(start);
        self.upcoming()
    }

    /// Sends `bits` from `start` on, which [`ready`](Taker::ready) returned; returns the end.
    pub(super) fn send(&mut self, start: Time, mut bits: u64, horizon: Time) -> Time {
        loop {
            let part = self.left.min(bits);
            self.left -= part;
            bits -= part;
            if bits == 0 {
                return self.last.max(start);
            }
            self.last = self.upcoming();
            if self.last > horizon {
                return Time::NEVER;
            }
            self.left = OPPORTUNITY.bits();
            self.advance();
        }
    }

    /// Takes those before `until`, and returns how many they were.
    pub(super) fn count_until(&mut self, until: Time) -> usize {
        let mut count = 0;
        while self.upcoming() < until {
            self.advance();
            count += 1;
        }
        count
    }

    fn upcoming(&self) -> Time {
        self.begin + self.all.time(self.next)
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next == self.all.0.len() {
            self.next = 0;
            self.begin += self.all.period();
        }
    }

    /// Leaves out what is before `until`.
    fn skip(&mut self, until: Time) {
        if self.upcoming() >= until {
            return;
        }
        let period = self.all.period();
        // The end of a round may be that of several opportunities and the beginning of the next round.
        let rounds = until.since(self.begin).as_nanos() / period.as_nanos();
        if rounds > 1 {
            self.begin += period * (rounds - 1);
            self.next = 0;
        }
        while self.upcoming() < until {
            let end = self.begin + period;
            if end < until {
                (self.begin, self.next) = (end, 0);
            } else {
                let into = until.since(self.begin);
                let first = self.all.0.partition_point(|&ms| Duration::from_millis(u64::from(ms)) < into);
                self.next = self.next.max(first);
            }
        }
    }
}
