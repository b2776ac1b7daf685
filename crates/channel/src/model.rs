//! What a channel model consists of.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Duration, Invalid, Stream, Unread};

use crate::{Bursts, Channel, Model};

/// A channel model with its parameters, the keys of its table in a scenario file.
pub trait ChannelModel {
    /// Examples of its table in a scenario file, which together have all of its keys, for documents and random tests.
    fn examples() -> &'static [&'static str]
    where
        Self: Sized;

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first parameter that is out of its range, with the name of the model: `two-state.good`.
    fn validate(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// The channel of this valid model at time zero, as [`Model::build`] returns it.
    fn channel(&self, stream: Stream) -> Box<dyn Channel>;

    /// The long-run fraction of time in the good state; 1 without states.
    fn availability(&self) -> f64 {
        1.0
    }

    /// Mean length of a good and a bad state together, in seconds; `None` without states in time.
    fn mean_cycle_s(&self) -> Option<f64> {
        None
    }

    /// The closed form of its losses, if there is one.
    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        None
    }

    /// The losses by packets and by time of a chain of two states, for packets every `interval`.
    fn bursts(&self, _interval: Duration) -> Option<Bursts> {
        None
    }

    /// The data files, each with the path of its key in the model.
    fn files(&mut self) -> Vec<(&'static [&'static str], &mut dyn Unread)> {
        Vec::new()
    }
}

/// The losses of a channel in closed form.
pub trait ClosedForm {
    /// The probability that a packet is lost, as [`Model::loss_probability`] describes it.
    fn loss_probability(&self, frames: u32, bits: u64, on_air: Duration) -> f64;

    /// The number of instants within `on_air` at which the state may change, if it has a cost.
    fn loss_instants(&self, _on_air: Duration) -> f64 {
        0.0
    }
}

impl Model {
    /// The names of the models with parameters, in the order of registration, each with examples of its table in a scenario
    /// file.
    pub fn examples() -> impl Iterator<Item = (String, &'static [&'static str])> {
        Model::EXAMPLES.iter().map(|(module, examples)| (module.replace('_', "-"), examples()))
    }

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first parameter that is out of its range: a period of length zero, a state that is never left, or
    /// a fading parameter beyond its limits.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.as_model().validate()
    }

    /// Builds the channel at time zero, with `stream` as its source of randomness. The copy for the other
    /// direction of a link takes the same named stream from its start.
    ///
    /// # Panics
    /// If the model is not [valid](Model::validate).
    pub fn build(&self, stream: Stream) -> Box<dyn Channel> {
        self.valid().channel(stream)
    }

    /// The long-run fraction of time in the good state; 1 for channels without states. Multiplied by the rate
    /// of an error-free link, it is the upper bound that the EBSN paper (section 5.1) plots beside its
    /// curves: λ_bg/(λ_bg + λ_gb).
    pub fn availability(&self) -> f64 {
        self.as_model().availability()
    }

    /// Mean length of a good and a bad state together, in seconds; `None` for channels without states. The
    /// cost of a channel grows with the number of such cycles.
    pub fn mean_cycle_s(&self) -> Option<f64> {
        self.as_model().mean_cycle_s()
    }

    /// Mean length of the bad state, if hardly a packet survives it; `None` without states in time.
    pub fn mean_fade(&self) -> Option<Duration> {
        let mean_s = self.mean_cycle_s()? * (1.0 - self.availability());
        let is_total = self.bursts(Duration::from_millis(1)).is_none_or(|bursts| bursts.loss_bad > 0.9);
        is_total.then(|| Duration::from_secs_f64(mean_s))
    }

    /// Whether [`loss_probability`](Model::loss_probability) is defined.
    pub fn has_closed_form(&self) -> bool {
        self.as_model().closed_form().is_some()
    }

    /// The losses of a Gilbert or Gilbert-Elliott channel, by packets and by time, for packets every `interval`; `None` for
    /// other models.
    ///
    /// # Panics
    /// If the model is not [valid](Model::validate).
    pub fn bursts(&self, interval: Duration) -> Option<Bursts> {
        self.valid().bursts(interval)
    }

    /// The data files of the model, each with the path of its key in the model.
    pub fn files(&mut self) -> Vec<(&'static [&'static str], &mut dyn Unread)> {
        self.as_model_mut().map_or_else(Vec::new, |model| model.files())
    }

    /// The number of instants within `on_air` at which the state may change if a unit begins with the packet:
    /// the cost of [`loss_probability`](Model::loss_probability). Zero for models with a closed form.
    pub fn loss_instants(&self, on_air: Duration) -> f64 {
        self.as_model().closed_form().map_or(0.0, |form| form.loss_instants(on_air))
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
        let form = self.valid().closed_form().expect("the model has a closed form");
        form.loss_probability(frames, bits, on_air)
    }

    /// # Panics
    /// If the model is not valid.
    fn valid(&self) -> &dyn ChannelModel {
        if let Err(invalid) = self.validate() {
            panic!("{invalid}");
        }
        self.as_model()
    }
}

/// Rejects a length of zero.
pub(crate) fn above_zero(field: &'static str, length: Duration) -> Result<(), Invalid> {
    let problem = "found a length of zero, expected one above zero, such as \"10 s\"";
    if length.is_zero() { Err(Invalid { field, problem }) } else { Ok(()) }
}

/// Rejects a mean or constant period of length zero.
pub(crate) fn has_length(field: &'static str, length: Duration) -> Result<(), Invalid> {
    let hint = "found a length of zero, expected one above zero, such as \"10 s\"; \
                a channel with one state only is \"iid\"";
    above_zero(field, length).map_err(|invalid| Invalid { problem: hint, ..invalid })
}
