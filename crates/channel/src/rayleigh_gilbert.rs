//! Two states of a Rayleigh-fading signal: above and below a threshold.

use alloc::boxed::Box;
use core::f64::consts::TAU;

use lasthop_base::{Decibels, Duration, Invalid, Probability, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::alternating::{Alternating, PerState, Start};
use crate::crossing::crossing;
use crate::mean_loss::{Unit, instants, loss_at_rates, mean_loss};
use crate::model::above_zero;
use crate::{Channel, ChannelModel, ClosedForm, State};

/// Rayleigh fading against a threshold: in each step the channel is bad if the signal power is below the
/// threshold, otherwise good. The states form a Markov chain with the transition probabilities of a fading
/// signal (selective-FEC paper, section III). The state changes only at multiples of the step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RayleighGilbert {
    /// Mean power of the signal relative to the threshold, such as `"5 dB"`; from `"-15 dB"` to `"150 dB"`.
    /// With the ratio F, a share of 1 − e^(−1/F) of the steps is bad.
    pub fading_margin: Decibels,
    /// Normalised Doppler frequency: the Doppler frequency times the step. Below 0.1 bad steps come in long
    /// bursts, above 0.2 steps are almost independent.
    pub doppler: f64,
    /// Length of a step: the air time of a unit, such as `"10 ms"`, above zero.
    pub step: Duration,
    /// Bit error rate in good steps. By default 10⁻¹⁰, as in the paper.
    #[serde(default = "paper_good_ber")]
    pub good_ber: Probability,
    /// Bit error rate in bad steps. The paper prints 10⁻⁵, with which units hardly ever fail; its results
    /// require about 10⁻³ to 3 · 10⁻². By default 10⁻², not the 10⁻⁵ that the paper prints: at 10⁻⁵ only one
    /// of 26 units of 480 bytes would fail in a bad step, and hardly any six times in a row, so the paper's
    /// curves would be flat and its code useless. Between about 10⁻³ and 3 · 10⁻² a unit in a bad step is
    /// almost always lost without the code and almost never with it, as the paper's results state.
    #[serde(default = "usable_bad_ber")]
    pub bad_ber: Probability,
    /// Initial state: `"stationary"` (drawn with the stationary probabilities), `"good"` or `"bad"`.
    #[serde(default = "stationary")]
    pub start: Start,
}

/// The Markov chain of a [`RayleighGilbert`] channel, with one transition per step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chain {
    /// Stationary probability of a bad step: 1 − e^(−1/F).
    pub bad: Probability,
    /// Transition probability from good to bad.
    pub good_to_bad: Probability,
    /// Transition probability from bad to good.
    pub bad_to_good: Probability,
}

fn paper_good_ber() -> Probability {
    Probability::new(1e-10).expect("a probability")
}

fn usable_bad_ber() -> Probability {
    Probability::new(1e-2).expect("a probability")
}

fn stationary() -> Start {
    Start::Stationary
}

impl RayleighGilbert {
    /// The transition probabilities, exact up to rounding (relative error below 10⁻¹²).
    ///
    /// # Panics
    /// If the model is not [valid](crate::Model::validate).
    pub fn chain(&self) -> Chain {
        if let Err(invalid) = self.validate() {
            panic!("{invalid}");
        }
        let threshold = self.threshold();
        // Rounding may exceed 1 where the result is almost certain.
        let probability = |p: f64| Probability::new(p.min(1.0)).expect("a probability");
        let good_to_bad = crossing(threshold, TAU * self.doppler);
        // In the stationary process both transitions are equally frequent, so this is the opposite
        // probability times P(good)/P(bad).
        let bad_to_good = good_to_bad / libm::expm1(threshold);
        Chain {
            bad: probability(-libm::expm1(-threshold)),
            good_to_bad: probability(good_to_bad),
            bad_to_good: probability(bad_to_good),
        }
    }

    /// The threshold relative to the mean power: 1/F.
    fn threshold(&self) -> f64 {
        1.0 / self.fading_margin.ratio()
    }

    fn rates(&self) -> PerState<Probability> {
        PerState { good: self.good_ber, bad: self.bad_ber }
    }

    /// Probability of leaving each state at the end of a step.
    fn leave(&self) -> PerState<f64> {
        let Chain { good_to_bad, bad_to_good, .. } = self.chain();
        PerState { good: good_to_bad.get(), bad: bad_to_good.get() }
    }
}

impl ChannelModel for RayleighGilbert {
    fn examples() -> &'static [&'static str] {
        &["fading_margin = \"10 dB\", doppler = 0.1, step = \"10 ms\", good_ber = 1e-10, bad_ber = 0.01, \
             start = \"stationary\""]
    }

    fn validate(&self) -> Result<(), Invalid> {
        if !(-15.0..=150.0).contains(&self.fading_margin.get()) {
            let field = "rayleigh-gilbert.fading_margin";
            let problem = "found a margin at which one of the states never occurs, expected one from \
                           \"-15 dB\" to \"150 dB\"; a channel with one state only is \"iid\"";
            return Err(Invalid { field, problem });
        }
        if !(1e-9..f64::INFINITY).contains(&self.doppler) {
            let field = "rayleigh-gilbert.doppler";
            let problem = "found a number that is not finite or not at least 1e-9, expected the Doppler \
                           frequency times the step, such as 0.1; a longer step has a larger one";
            return Err(Invalid { field, problem });
        }
        above_zero("rayleigh-gilbert.step", self.step)
    }

    fn channel(&self, mut stream: Stream) -> Box<dyn Channel> {
        let (step, leave) = (self.step, self.leave());
        let start = self.start.draw(self.availability(), &mut stream);
        // Dwell times in a Markov chain are geometric, so steps need not be drawn one by one.
        let dwell = move |state: State| step * stream.geometric(leave.of(state));
        Box::new(Alternating::new(start, self.rates(), dwell))
    }

    fn availability(&self) -> f64 {
        libm::exp(-self.threshold())
    }

    fn mean_cycle_s(&self) -> Option<f64> {
        let leave = self.leave();
        Some(self.step.as_secs_f64() * (1.0 / leave.good + 1.0 / leave.bad))
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }
}

impl ClosedForm for RayleighGilbert {
    fn loss_probability(&self, _frames: u32, bits: u64, on_air: Duration) -> f64 {
        let leave = self.leave();
        let unit = |leave| Unit { length: self.step, leave };
        let units = PerState { good: unit(leave.good), bad: unit(leave.bad) };
        loss_at_rates(self.rates(), bits, |worse, exponent| {
            mean_loss(units.with_bad(worse), exponent, on_air)
        })
    }

    fn loss_instants(&self, on_air: Duration) -> f64 {
        instants(on_air, self.step)
    }
}
