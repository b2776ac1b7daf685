//! A two-state Markov process in continuous time.

use lasthop_base::{Duration, Probability, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Channel;
use crate::alternating::{Alternating, PerState, Start};
use crate::mean_loss::{loss_at_rates, mean_loss_exponential};

/// Good and bad periods of exponentially distributed length, each with its own bit error rate (EBSN paper,
/// TR-96-014, section 3.1 and figure 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TwoState {
    /// Mean good period, above zero (1/λ_gb in the paper).
    pub good: Duration,
    /// Mean bad period, above zero (1/λ_bg in the paper).
    pub bad: Duration,
    /// Bit error rate in the good state. By default 10⁻⁶: λ_g in all experiments of the paper.
    #[serde(default = "paper_good_ber")]
    pub good_ber: Probability,
    /// Bit error rate in the bad state. By default 10⁻²: λ_b in all experiments of the paper.
    #[serde(default = "paper_bad_ber")]
    pub bad_ber: Probability,
    /// State at time zero. By default good, as in the paper: a connection opens while the mobile is
    /// reachable.
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
    pub(crate) fn means(&self) -> PerState<Duration> {
        PerState { good: self.good, bad: self.bad }
    }

    pub(crate) fn loss_probability(&self, bits: u64, on_air: Duration) -> f64 {
        loss_at_rates(self.rates(), bits, |worse, exponent| {
            mean_loss_exponential(self.means().with_bad(worse), exponent, on_air)
        })
    }

    fn rates(&self) -> PerState<Probability> {
        PerState { good: self.good_ber, bad: self.bad_ber }
    }

    pub(crate) fn channel(self, mut stream: Stream) -> impl Channel {
        let means = self.means();
        let start = self.start.draw(means.availability(), &mut stream);
        let rates = self.rates();
        Alternating::new(start, rates, move |state| stream.exponential(means.of(state)))
    }
}
