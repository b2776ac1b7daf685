//! A token-bucket shaper: packets wait for tokens, where a [policer](crate::queue::policer) drops them.
//!
//! *What it does.* A bucket of `burst`, full at the start, fills at `rate`. A packet at the head of the queue waits until there are
//! as many tokens as it has bits, with its `overhead`, takes them, and is sent at `peak`.
//!
//! *Source.* `tbf_dequeue` of Linux (net/sched/sch_tbf.c). Its `limit` is the queue of the link here, and `peak` its `peakrate`
//! with the bucket of one packet, or the line behind it. There a packet above `burst` is dropped; here a scenario with such packets
//! is refused, and where they are not known in advance, one waits for all its tokens. `overhead` is that of CAKE (net/sched/sch_cake.c) and of tc-stab.

use lasthop_base::{BitRate, Bytes, Duration, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token-bucket shaper, whose `burst` holds at least a packet with its `overhead`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenBucket {
    /// Rate at which tokens arrive, which is the rate of the link in the long run. On a wireless link, tokens count bits on the air.
    pub rate: BitRate,
    /// Size of the bucket.
    pub burst: Bytes,
    /// Rate at which packets that have their tokens are sent, at least `rate`.
    pub peak: BitRate,
    /// What each packet costs beyond its size, in tokens and at `peak`: headers that the line adds, as CAKE's `overhead`. By default zero.
    #[serde(default)]
    pub overhead: Bytes,
}

impl TokenBucket {
    pub(super) fn validate(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid { field, problem });
        match self.burst {
            Bytes(0) => wrong("token-bucket.burst", "found \"0 B\", expected the size of at least a packet"),
            Bytes(1_000_000_001..) => {
                wrong("token-bucket.burst", "found a larger one, expected at most 1 GB")
            }
            _ if self.overhead > Bytes(1_000) => {
                wrong("token-bucket.overhead", "found more than 1 kB, expected the size of headers")
            }
            _ if self.peak < self.rate => {
                wrong("token-bucket.peak", "found a rate below token-bucket.rate, expected at least that")
            }
            _ => Ok(()),
        }
    }
}

/// The tokens of a shaper.
#[derive(Clone, Debug)]
pub(super) struct Shaper {
    params: TokenBucket,
    /// Tokens at `counted`, as the time in which they arrive.
    tokens: Duration,
    counted: Time,
}

impl Shaper {
    /// A full bucket.
    pub(super) fn new(params: TokenBucket) -> Shaper {
        Shaper { params, tokens: params.rate.time_for(params.burst), counted: Time::ZERO }
    }

    /// The rate in the long run, in bits per second.
    pub(super) fn bps(&self) -> u64 {
        self.params.rate.as_bps()
    }

    /// Begin and end of the transmission of `bits` that wait from `start` on.
    pub(super) fn send(&mut self, start: Time, bits: u64) -> (Time, Time) {
        let TokenBucket { rate, burst, peak, overhead } = self.params;
        let bits = bits + overhead.bits();
        let cost = rate.time_for_bits(bits);
        let full = rate.time_for(burst).max(cost);
        let available = (self.tokens + start.since(self.counted)).min(full);
        let begin = start + cost.saturating_sub(available);
        (self.counted, self.tokens) = (begin, available.saturating_sub(cost));
        (begin, begin + peak.time_for_bits(bits))
    }
}
