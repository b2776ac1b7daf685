//! Channel models as scenario files describe them.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Duration, Invalid, Probability, Stream, Unread};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bit_errors::BitErrors;
use crate::gilbert::Chain;
use crate::{
    Bursts, Channel, FixedPeriods, FrameBursts, FrameLoss, Gilbert, GilbertElliott, Iid, LossSeries,
    NguyenNoble, RayleighGilbert, SemiMarkov, TwoState,
};

/// A channel model with its parameters.
///
/// In a scenario file the last part of the table's name is the model:
///
/// ```toml
/// [radio.channel.two-state]
/// good = "10 s"
/// bad = "4 s"
/// ```
///
/// A model without parameters is written as a string: `channel = "perfect"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Channel")]
pub enum Model {
    /// No errors. The default.
    #[default]
    Perfect,
    /// Independent bit errors at a constant rate.
    Iid(Iid),
    /// Independent frame losses.
    FrameLoss(FrameLoss),
    /// Bursts of a constant number of lost frames.
    FrameBursts(FrameBursts),
    /// Good and bad periods of exponentially distributed length.
    TwoState(TwoState),
    /// Good and bad periods of constant length.
    FixedPeriods(FixedPeriods),
    /// Losses of packets by their share and mean burst.
    Gilbert(Gilbert),
    /// Losses of packets by a chain of two states.
    GilbertElliott(GilbertElliott),
    /// Good and bad periods of any distribution.
    SemiMarkov(SemiMarkov),
    /// Losses of packets as measured over time.
    LossSeries(LossSeries),
    /// Two states of a Rayleigh-fading signal: above and below a threshold.
    RayleighGilbert(RayleighGilbert),
    /// Error-free and error states that last whole multiples of a unit of time.
    NguyenNoble(NguyenNoble),
}

impl Model {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first parameter that is out of its range: a period of length zero, a state that is never left, or
    /// a fading parameter beyond its limits.
    pub fn validate(&self) -> Result<(), Invalid> {
        match self {
            Model::Perfect | Model::Iid(_) | Model::FrameLoss(_) => Ok(()),
            Model::FrameBursts(model) => model.validate(),
            Model::Gilbert(model) => model.validate(),
            Model::GilbertElliott(model) => model.validate(),
            Model::SemiMarkov(model) => model.validate(),
            Model::LossSeries(model) => match model.file.contents() {
                Some(_) => Ok(()),
                None => {
                    let problem = "found a file that has not been read, expected a scenario that was loaded from a file";
                    Err(Invalid { field: "loss-series.file", problem })
                }
            },
            Model::TwoState(model) => {
                has_length("two-state.good", model.good)?;
                has_length("two-state.bad", model.bad)
            }
            Model::FixedPeriods(model) => {
                has_length("fixed-periods.good", model.good)?;
                has_length("fixed-periods.bad", model.bad)
            }
            Model::RayleighGilbert(model) => model.validate(),
            Model::NguyenNoble(model) => model.validate(),
        }
    }

    /// Builds the channel at time zero, with `stream` as its source of randomness. The copy for the other
    /// direction of a link takes the same named stream from its start.
    ///
    /// # Panics
    /// If the model is not [valid](Model::validate).
    pub fn build(&self, stream: Stream) -> Box<dyn Channel> {
        if let Err(invalid) = self.validate() {
            panic!("{invalid}");
        }
        match self {
            Model::Perfect => Box::new(Iid { ber: Probability::default() }.channel()),
            Model::Iid(model) => Box::new(model.channel()),
            Model::FrameLoss(model) => Box::new(*model),
            Model::FrameBursts(model) => Box::new(model.channel(stream)),
            Model::Gilbert(model) => Chain::from(*model).channel(stream),
            Model::GilbertElliott(model) => Chain::from(*model).channel(stream),
            Model::SemiMarkov(model) => model.channel(stream),
            Model::LossSeries(model) => Box::new(model.channel()),
            Model::TwoState(model) => Box::new(model.channel(stream)),
            Model::FixedPeriods(model) => Box::new(model.channel()),
            Model::RayleighGilbert(model) => Box::new(model.channel(stream)),
            Model::NguyenNoble(model) => Box::new(model.channel(stream)),
        }
    }

    /// The long-run fraction of time in the good state; 1 for channels without states. Multiplied by the rate
    /// of an error-free link, it is the upper bound that the EBSN paper (section 5.1) plots beside its
    /// curves: λ_bg/(λ_bg + λ_gb).
    pub fn availability(&self) -> f64 {
        match self {
            Model::Perfect
            | Model::Iid(_)
            | Model::FrameLoss(_)
            | Model::FrameBursts(_)
            | Model::LossSeries(_) => 1.0,
            Model::Gilbert(model) => Chain::from(*model).availability(),
            Model::GilbertElliott(model) => Chain::from(*model).availability(),
            Model::SemiMarkov(model) => model.availability(),
            Model::TwoState(model) => model.means().availability(),
            Model::FixedPeriods(model) => model.periods().availability(),
            Model::RayleighGilbert(model) => model.availability(),
            Model::NguyenNoble(model) => model.availability(),
        }
    }

    /// Mean length of a good and a bad state together, in seconds; `None` for channels without states. The
    /// cost of a channel grows with the number of such cycles.
    pub fn mean_cycle_s(&self) -> Option<f64> {
        match self {
            Model::Perfect
            | Model::Iid(_)
            | Model::FrameLoss(_)
            | Model::FrameBursts(_)
            | Model::LossSeries(_) => None,
            Model::Gilbert(model) => Chain::from(*model).mean_cycle_s(),
            Model::GilbertElliott(model) => Chain::from(*model).mean_cycle_s(),
            Model::SemiMarkov(model) => Some(model.mean_cycle_s()),
            Model::TwoState(TwoState { good, bad, .. })
            | Model::FixedPeriods(FixedPeriods { good, bad, .. }) => {
                Some(good.as_secs_f64() + bad.as_secs_f64())
            }
            Model::RayleighGilbert(model) => Some(model.mean_cycle_s()),
            Model::NguyenNoble(model) => Some(model.mean_error_s() + model.mean_error_free_s()),
        }
    }

    /// Whether [`loss_probability`](Model::loss_probability) is defined.
    pub fn has_closed_form(&self) -> bool {
        !matches!(self, Model::SemiMarkov(_) | Model::LossSeries(_))
    }

    /// The losses of a Gilbert or Gilbert-Elliott channel, by packets and by time, for packets every `interval`; `None` for
    /// other models.
    ///
    /// # Panics
    /// If the model is not [valid](Model::validate).
    pub fn bursts(&self, interval: Duration) -> Option<Bursts> {
        match self {
            Model::Gilbert(model) => Some(Chain::from(*model).bursts(interval)),
            Model::GilbertElliott(model) => Some(Chain::from(*model).bursts(interval)),
            _ => None,
        }
    }

    /// The data files of the model, each with the path of its key in the model.
    pub fn files(&mut self) -> Vec<(&'static [&'static str], &mut dyn Unread)> {
        match self {
            Model::LossSeries(model) => vec![(&["loss-series", "file"], &mut model.file)],
            Model::SemiMarkov(SemiMarkov { good, bad, .. }) => {
                let good = good.file().map(|file| (&["semi-markov", "good", "empirical", "file"][..], file));
                let bad = bad.file().map(|file| (&["semi-markov", "bad", "empirical", "file"][..], file));
                good.into_iter().chain(bad).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The number of instants within `on_air` at which the state may change if a unit begins with the packet:
    /// the cost of [`loss_probability`](Model::loss_probability). Zero for models with a closed form.
    pub fn loss_instants(&self, on_air: Duration) -> f64 {
        let times = |unit: Duration| on_air.as_secs_f64() / unit.as_secs_f64();
        match self {
            Model::Perfect
            | Model::Iid(_)
            | Model::FrameLoss(_)
            | Model::FrameBursts(_)
            | Model::Gilbert(_)
            | Model::GilbertElliott(_)
            | Model::SemiMarkov(_)
            | Model::LossSeries(_)
            | Model::TwoState(_) => 0.0,
            Model::FixedPeriods(model) => times(model.good).max(1.0) * times(model.bad).max(1.0),
            Model::RayleighGilbert(model) => times(model.step),
            Model::NguyenNoble(model) => {
                times(model.error_unit).max(1.0) * times(model.error_free_unit).max(1.0)
            }
        }
    }

    /// The probability that a packet is lost if a single bit error loses it. The packet is `frames`
    /// back-to-back frames, each spread evenly over its share of `on_air`, with `bits` bits in total. Exact
    /// up to rounding.
    ///
    /// The packet begins at a random instant of the stationary process. Packets whose start depends on the
    /// channel, or is synchronised with it, have a different loss rate: for example those of a sender that
    /// waits for acknowledgements.
    ///
    /// The cost grows with the number of instants in `on_air` at which the state may change, for models whose
    /// dwell times are multiples of a unit.
    ///
    /// # Panics
    /// If the model is not [valid](Model::validate), or has [no closed form](Model::has_closed_form).
    pub fn loss_probability(&self, frames: u32, bits: u64, on_air: Duration) -> f64 {
        if let Err(invalid) = self.validate() {
            panic!("{invalid}");
        }
        match self {
            Model::Perfect => 0.0,
            Model::Iid(model) => -libm::expm1(BitErrors::new(model.ber).log_survival(bits as f64)),
            // Frame losses: as many bits as frames, each lost independently.
            Model::FrameLoss(model) => {
                -libm::expm1(BitErrors::new(model.loss).log_survival(f64::from(frames)))
            }
            Model::FrameBursts(model) => model.loss_probability(frames),
            Model::Gilbert(model) => Chain::from(*model).loss_probability(frames, on_air),
            Model::GilbertElliott(model) => Chain::from(*model).loss_probability(frames, on_air),
            Model::SemiMarkov(_) | Model::LossSeries(_) => panic!("the model has no closed form"),
            Model::TwoState(model) => model.loss_probability(bits, on_air),
            Model::FixedPeriods(model) => model.loss_probability(bits, on_air),
            Model::RayleighGilbert(model) => model.loss_probability(bits, on_air),
            Model::NguyenNoble(model) => model.loss_probability(bits, on_air),
        }
    }
}

fn has_length(field: &'static str, length: Duration) -> Result<(), Invalid> {
    let hint = "found a length of zero, expected one above zero, such as \"10 s\"; \
                a channel with one state only is \"iid\"";
    above_zero(field, length).map_err(|invalid| Invalid { problem: hint, ..invalid })
}

/// Rejects a length of zero.
pub(crate) fn above_zero(field: &'static str, length: Duration) -> Result<(), Invalid> {
    let problem = "found a length of zero, expected one above zero, such as \"10 s\"";
    if length.is_zero() { Err(Invalid { field, problem }) } else { Ok(()) }
}
