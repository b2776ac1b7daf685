//! Good and bad periods of constant length.

use lasthop_base::{Duration, Probability};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::alternating::{Alternating, PerState};
use crate::mean_loss::{Unit, loss_at_rates, mean_loss};
use crate::{Channel, State};

/// Alternating good and bad periods of constant length, starting with a good one at time zero (EBSN paper,
/// TR-96-014, section 4.2.1, where every experiment meets exactly the same fades). Deterministic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FixedPeriods {
    /// Length of each good period, above zero.
    pub good: Duration,
    /// Length of each bad period, above zero.
    pub bad: Duration,
    /// Bit error rate in good periods. By default 0: with the default of `bad_ber`, exactly the frames that
    /// overlap a bad period are lost, and the run is deterministic.
    #[serde(default = "never")]
    pub good_ber: Probability,
    /// Bit error rate in bad periods. By default 1.
    #[serde(default = "always")]
    pub bad_ber: Probability,
}

fn never() -> Probability {
    Probability::new(0.0).expect("a probability")
}

fn always() -> Probability {
    Probability::new(1.0).expect("a probability")
}

impl FixedPeriods {
    pub(crate) fn periods(&self) -> PerState<Duration> {
        PerState { good: self.good, bad: self.bad }
    }

    pub(crate) fn loss_probability(&self, bits: u64, on_air: Duration) -> f64 {
        // Each period is a `Unit` that is left with certainty.
        let unit = |length| Unit { length, leave: 1.0 };
        let units = PerState { good: unit(self.good), bad: unit(self.bad) };
        loss_at_rates(self.rates(), bits, |worse, exponent| {
            mean_loss(units.with_bad(worse), exponent, on_air)
        })
    }

    fn rates(&self) -> PerState<Probability> {
        PerState { good: self.good_ber, bad: self.bad_ber }
    }

    pub(crate) fn channel(self) -> impl Channel {
        let periods = self.periods();
        Alternating::new(State::Good, self.rates(), move |state| periods.of(state))
    }
}
