//! A two-state Markov process in continuous time.

use alloc::boxed::Box;

use lasthop_base::{Duration, Invalid, Probability, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::alternating::{Alternating, PerState, Start};
use crate::mean_loss::{loss_at_rates, mean_loss_exponential};
use crate::model::has_length;
use crate::{Channel, ChannelModel, ClosedForm};

/// Good and bad periods of exponential length, with a bit error rate in each.
///
/// Good and bad periods of exponentially distributed length, each with its own bit error rate (EBSN paper,
/// TR-96-014, section 3.1 and figure 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TwoState {
    /// Mean good period, above zero. Mean good period, above zero (1/λ_gb in the paper).
    pub good: Duration,
    /// Mean bad period, above zero. Mean bad period, above zero (1/λ_bg in the paper).
    pub bad: Duration,
    /// Bit error rate in good periods. By default 10⁻⁶: λ_g in all experiments of the paper.
    #[serde(default = "paper_good_ber")]
    pub good_ber: Probability,
    /// Bit error rate in bad periods. By default 10⁻²: λ_b in all experiments of the paper.
    #[serde(default = "paper_bad_ber")]
    pub bad_ber: Probability,
    /// Initial state: `"good"`, `"bad"`, or `"stationary"` (drawn with the stationary probabilities). By
    /// default good, as in the paper: a connection opens while the mobile is reachable.
    #[serde(default)]
    pub start: Start,
}

fn paper_good_ber() -> Probability {
    Probability::new(1e-6).expect("a probability")
}

fn paper_bad_ber() -> Probability {
    Probability::new(1e-2).expect("a probability")
}

impl TwoState {
    fn means(&self) -> PerState<Duration> {
        PerState { good: self.good, bad: self.bad }
    }

    fn rates(&self) -> PerState<Probability> {
        PerState { good: self.good_ber, bad: self.bad_ber }
    }
}

impl ChannelModel for TwoState {
    fn examples() -> &'static [&'static str] {
        &["good = \"10 s\", bad = \"4 s\", good_ber = 1e-6, bad_ber = 0.01, start = \"good\""]
    }

    fn validate(&self) -> Result<(), Invalid> {
        has_length("two-state.good", self.good)?;
        has_length("two-state.bad", self.bad)
    }

    fn channel(&self, mut stream: Stream) -> Box<dyn Channel> {
        let means = self.means();
        let start = self.start.draw(means.availability(), &mut stream);
        Box::new(Alternating::new(start, self.rates(), move |state| stream.exponential(means.of(state))))
    }

    fn availability(&self) -> f64 {
        self.means().availability()
    }

    fn mean_cycle_s(&self) -> Option<f64> {
        Some(self.good.as_secs_f64() + self.bad.as_secs_f64())
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }
}

impl ClosedForm for TwoState {
    fn loss_probability(&self, _frames: u32, bits: u64, on_air: Duration) -> f64 {
        loss_at_rates(self.rates(), bits, |worse, exponent| {
            mean_loss_exponential(self.means().with_bad(worse), exponent, on_air)
        })
    }
}
