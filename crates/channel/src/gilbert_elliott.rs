//! Losses of packets by a chain of two states with a loss in each.

use alloc::boxed::Box;

use lasthop_base::{Duration, Invalid, Probability, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::alternating::{PerState, Start};
use crate::markov::{Bursts, Chain, Law, Span};
use crate::{Channel, ChannelModel, ClosedForm};

/// Like `gilbert`, with a loss probability in each state: four parameters. State either `p` and `r`, or
/// `good` and `bad` (E. O. Elliott, "Estimates of error rates for codes on burst-noise channels", Bell System
/// Technical Journal 42(5), 1963).
///
/// ```toml
/// [radio.channel.gilbert-elliott]
/// good = "4 s"
/// bad = "400 ms"
/// loss_good = 0.001
/// loss_bad = 0.9
/// ```
///
/// The loss rate is (r · `loss_good` + p · `loss_bad`) / (p + r). Burst lengths are not geometric. Their
/// mean, printed by `lasthop check`, is the loss rate divided by the probability that a packet is lost and
/// the next one is not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of a change from good to bad before a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<Probability>,
    /// Probability of a change from bad to good before a unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r: Option<Probability>,
    /// Mean sojourn in the good state, in units (1 / p) or in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<Span>,
    /// Mean sojourn in the bad state, in units (1 / r) or in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad: Option<Span>,
    /// Loss probability of a unit in the good state: 1 − k in `tc netem loss gemodel`.
    #[serde(default)]
    pub loss_good: Probability,
    /// Loss probability of a unit in the bad state: 1 − h in `tc netem loss gemodel`.
    #[serde(default = "certain")]
    pub loss_bad: Probability,
    /// State of the first unit, or at time zero: `"stationary"`, `"good"` or `"bad"`.
    #[serde(default = "stationary")]
    pub start: Start,
}

fn stationary() -> Start {
    Start::Stationary
}

fn certain() -> Probability {
    Probability::new(1.0).expect("a probability")
}

impl GilbertElliott {
    fn chain(&self) -> Chain {
        let law = match (self.p.zip(self.r), self.good, self.bad) {
            (Some((p, r)), ..) => Law::Packets { p: p.get(), r: r.get() },
            (_, Some(Span::Packets(good)), Some(Span::Packets(bad))) => {
                Law::Packets { p: 1.0 / good, r: 1.0 / bad }
            }
            (_, Some(Span::Time(good)), Some(Span::Time(bad))) => Law::Time(PerState { good, bad }),
            _ => unreachable!("the model is valid"),
        };
        let loss = PerState { good: self.loss_good.get(), bad: self.loss_bad.get() };
        Chain { law, loss, start: self.start }
    }
}

impl ChannelModel for GilbertElliott {
    fn examples() -> &'static [&'static str] {
        &[
            "p = 0.02, r = 0.4, loss_good = 0.001, loss_bad = 0.5, start = \"stationary\"",
            "good = 50, bad = 3",
            "good = \"2 s\", bad = \"40 ms\"",
        ]
    }

    fn validate(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid { field, problem });
        let GilbertElliott { p, r, good, bad, .. } = *self;
        match (p, r, good, bad) {
            (Some(p), Some(r), None, None) => {
                let problem = "found 0, expected a probability above 0: a state that is never left makes the other one \
                               pointless; use frame-loss for independent losses";
                for (field, probability) in [("gilbert-elliott.p", p), ("gilbert-elliott.r", r)] {
                    if probability.get() == 0.0 {
                        return wrong(field, problem);
                    }
                }
                Ok(())
            }
            (None, None, Some(Span::Packets(_)), Some(Span::Packets(_))) => Ok(()),
            (None, None, Some(Span::Time(good)), Some(Span::Time(bad))) => {
                for (field, length) in [("gilbert-elliott.good", good), ("gilbert-elliott.bad", bad)] {
                    if length.is_zero() {
                        return wrong(
                            field,
                            "found a length of zero, expected one above zero, such as \"10 s\"",
                        );
                    }
                }
                Ok(())
            }
            (None, None, Some(_), Some(_)) => wrong(
                "gilbert-elliott.bad",
                "found good in packets and bad in time, or the reverse, expected both in packets or both in time",
            ),
            _ => wrong(
                "gilbert-elliott",
                "expected either p and r, or good and bad, each pair complete and only one pair",
            ),
        }
    }

    fn channel(&self, stream: Stream) -> Box<dyn Channel> {
        self.chain().channel(stream)
    }

    fn availability(&self) -> f64 {
        self.chain().availability()
    }

    fn mean_cycle_s(&self) -> Option<f64> {
        self.chain().mean_cycle_s()
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }

    fn bursts(&self, interval: Duration) -> Option<Bursts> {
        Some(self.chain().bursts(interval))
    }
}

impl ClosedForm for GilbertElliott {
    fn loss_probability(&self, frames: u32, _bits: u64, on_air: Duration) -> f64 {
        self.chain().loss_probability(frames, on_air)
    }
}
