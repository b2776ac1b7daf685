//! Stop-and-wait with random backoff: local recovery in the EBSN paper.
//!
//! *What it does.* The first unit is sent until it arrives, with a random wait between attempts during which
//! nothing else is sent. When its last permitted attempt has failed, the whole packet is given up, including
//! unsent units, and the next packet starts immediately. Link acknowledgements take no time and are never lost.
//!
//! *Source.* TR-96-014, section 4.2.1: "aggressive retransmission with packet discards", after the link layer
//! of CDPD.
//!
//! *Parameters.* See [`Params`].
//!
//! *Differences from the paper.* The paper sets RTmax to 13 and does not specify the backoff distribution.
//! With exponential bad periods we found no distribution with which 14 attempts outlast most of them without
//! wasting much of the following good period, yet the paper reports no source timeouts; so the limit is off
//! by default. With the paper's constant periods of 4 s (same section) a limit of 13 works with a uniform
//! backoff of up to 600 to 800 ms.

use alloc::boxed::Box;

use lasthop_base::{Duration, Invalid, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arq, Attempt, Backoff, Next, Protocol, Retransmissions, Verdict};

/// One unit at a time, retransmitted until it arrives or its packet is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(rename = "StopAndWait")]
pub struct Params {
    /// Maximum number of retransmissions of a unit; then the whole packet is discarded. By default unlimited:
    /// the only interpretation under which the paper's figures 8 to 11 show no timeouts.
    pub retransmissions: Retransmissions,
    /// The wait after a failed attempt. By default uniform up to 100 ms: about one full fragment of the
    /// paper's wide-area link (80 ms), so that little of a good period is wasted. About 20 ms suits its
    /// local-area link, which is a hundred times as fast.
    pub backoff: Backoff,
}

impl Default for Params {
    fn default() -> Params {
        let backoff = Backoff::Uniform(Duration::from_millis(100));
        Params { retransmissions: Retransmissions::Unlimited, backoff }
    }
}

impl Protocol for Params {
    fn validate(&self) -> Result<(), Invalid> {
        let field = match self.backoff {
            Backoff::Uniform(Duration::ZERO) => "stop-and-wait.backoff.uniform",
            Backoff::Exponential(Duration::ZERO) => "stop-and-wait.backoff.exponential",
            _ => return Ok(()),
        };
        let problem = "found a length of zero, expected one above zero, such as \"100 ms\"; \
                       to try again at once is \"backoff.fixed\" of \"0 s\"";
        Err(Invalid { field, problem })
    }

    fn build(&self, backoff: Stream) -> Box<dyn Arq> {
        Box::new(StopAndWait::new(*self, backoff))
    }

    fn retries(&self) -> (Retransmissions, Duration) {
        (self.retransmissions, self.backoff.mean())
    }
}

/// One unit at a time, until it arrives or its packet is given up.
#[derive(Clone, Debug)]
pub struct StopAndWait {
    params: Params,
    stream: Stream,
    /// The current packet.
    packet: u64,
    units: u32,
    /// The current unit; `units` if the packet is finished.
    unit: u32,
    /// Failed attempts of the current unit.
    failed: u32,
    not_before: Time,
}

impl StopAndWait {
    /// An ARQ with nothing to send; waits are drawn from `stream`.
    pub fn new(params: Params, stream: Stream) -> StopAndWait {
        StopAndWait { params, stream, packet: 0, units: 0, unit: 0, failed: 0, not_before: Time::ZERO }
    }
}

impl Arq for StopAndWait {
    fn begin(&mut self, packet: u64, units: u32) {
        (self.packet, self.units, self.unit, self.failed) = (packet, units, 0, 0);
    }

    fn next(&self, now: Time, backlog: bool) -> Next {
        if self.unit == self.units {
            return if backlog { Next::Begin } else { Next::Wait(Time::NEVER) };
        }
        if now < self.not_before {
            return Next::Wait(self.not_before);
        }
        Next::Send(Attempt { packet: self.packet, unit: self.unit, number: self.failed + 1 })
    }

    fn is_sequential(&self) -> bool {
        true
    }

    fn ended(&mut self, now: Time, _attempt: Attempt, arrived: bool) -> Verdict {
        if arrived {
            self.unit += 1;
            self.failed = 0;
            return Verdict::Delivered;
        }
        self.failed += 1;
        if !self.params.retransmissions.allow_after(self.failed) {
            self.unit = self.units;
            return Verdict::GiveUp;
        }
        self.not_before = now + self.params.backoff.draw(&mut self.stream);
        Verdict::Again
    }

    fn give_up_all(&mut self) {
        (self.unit, self.failed, self.not_before) = (self.units, 0, Time::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_base::Streams;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn scheme(retransmissions: Retransmissions, backoff: Backoff) -> StopAndWait {
        StopAndWait::new(Params { retransmissions, backoff }, Streams::new(1, 0).stream("backoff"))
    }

    fn attempt(packet: u64, unit: u32, number: u32) -> Attempt {
        Attempt { packet, unit, number }
    }

    #[test]
    fn a_unit_is_sent_again_after_the_wait_and_the_count_starts_anew_with_the_next() {
        let mut arq = scheme(Retransmissions::AtMost(2), Backoff::Fixed(Duration::from_millis(5)));
        assert_eq!(arq.next(at(0), true), Next::Begin);
        arq.begin(0, 2);
        for (now, number) in [(0, 1), (15, 2)] {
            assert_eq!(arq.next(at(now), true), Next::Send(attempt(0, 0, number)));
            assert_eq!(arq.ended(at(now + 10), attempt(0, 0, number), false), Verdict::Again);
            assert_eq!(arq.next(at(now + 10), true), Next::Wait(at(now + 15)));
            assert_eq!(arq.next(at(now + 14), true), Next::Wait(at(now + 15)));
        }
        assert_eq!(arq.next(at(30), true), Next::Send(attempt(0, 0, 3)));
        assert_eq!(arq.ended(at(40), attempt(0, 0, 3), true), Verdict::Delivered);
        assert_eq!(arq.next(at(40), true), Next::Send(attempt(0, 1, 1)));
        assert_eq!(arq.ended(at(50), attempt(0, 1, 1), true), Verdict::Delivered);
        assert_eq!(arq.next(at(50), false), Next::Wait(Time::NEVER));
    }

    #[test]
    fn the_packet_is_given_up_with_the_last_attempt_and_the_next_starts_at_once() {
        for most in [0, 1, 13] {
            let mut arq = scheme(Retransmissions::AtMost(most), Backoff::Fixed(Duration::ZERO));
            arq.begin(0, 5);
            for number in 1..=most {
                assert_eq!(arq.ended(at(1), attempt(0, 0, number), false), Verdict::Again);
            }
            assert_eq!(arq.next(at(1), true), Next::Send(attempt(0, 0, most + 1)));
            assert_eq!(arq.ended(at(2), attempt(0, 0, most + 1), false), Verdict::GiveUp);
            assert_eq!(arq.next(at(2), true), Next::Begin);
            arq.begin(1, 1);
            assert_eq!(arq.next(at(2), true), Next::Send(attempt(1, 0, 1)));
        }
    }

    #[test]
    fn without_a_limit_nothing_is_given_up() {
        let mut arq = scheme(Retransmissions::Unlimited, Backoff::Fixed(Duration::ZERO));
        arq.begin(0, 1);
        assert!((1..10_000).all(|n| arq.ended(at(n), attempt(0, 0, n as u32), false) == Verdict::Again));
    }
}
