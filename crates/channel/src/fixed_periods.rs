//! Good and bad periods of constant length.

use alloc::boxed::Box;

use lasthop_base::{Duration, Invalid, Probability, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::alternating::{Alternating, PerState};
use crate::mean_loss::{Unit, instants, loss_at_rates, mean_loss};
use crate::model::has_length;
use crate::{Channel, ChannelModel, ClosedForm, State};

/// Alternating good and bad periods of constant length, starting with a good one. With the defaults, exactly
/// the units that overlap a bad period are lost.
///
/// Alternating good and bad periods of constant length, starting with a good one at time zero (EBSN paper,
/// TR-96-014, section 4.2.1, where every experiment meets exactly the same fades).
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
    /// Bit error rate in bad periods.
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
    fn periods(&self) -> PerState<Duration> {
        PerState { good: self.good, bad: self.bad }
    }

    fn rates(&self) -> PerState<Probability> {
        PerState { good: self.good_ber, bad: self.bad_ber }
    }
}

impl ChannelModel for FixedPeriods {
    fn examples() -> &'static [&'static str] {
        &["good = \"10 s\", bad = \"4 s\", good_ber = 0.0, bad_ber = 1.0"]
    }

    fn validate(&self) -> Result<(), Invalid> {
        has_length("fixed-periods.good", self.good)?;
        has_length("fixed-periods.bad", self.bad)
    }

    fn channel(&self, _stream: Stream) -> Box<dyn Channel> {
        let periods = self.periods();
        Box::new(Alternating::new(State::Good, self.rates(), move |state| periods.of(state)))
    }

    fn availability(&self) -> f64 {
        self.periods().availability()
    }

    fn mean_cycle_s(&self) -> Option<f64> {
        Some(self.good.as_secs_f64() + self.bad.as_secs_f64())
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }
}

impl ClosedForm for FixedPeriods {
    fn loss_probability(&self, _frames: u32, bits: u64, on_air: Duration) -> f64 {
        // Each period is a `Unit` that is left with certainty.
        let unit = |length| Unit { length, leave: 1.0 };
        let units = PerState { good: unit(self.good), bad: unit(self.bad) };
        loss_at_rates(self.rates(), bits, |worse, exponent| {
            mean_loss(units.with_bad(worse), exponent, on_air)
        })
    }

    fn loss_instants(&self, on_air: Duration) -> f64 {
        instants(on_air, self.good).max(1.0) * instants(on_air, self.bad).max(1.0)
    }
}
