//! Two states whose dwell times are whole multiples of a unit.

use alloc::boxed::Box;
use core::mem;

use lasthop_base::{Duration, Invalid, Probability, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::alternating::{Alternating, PerState, Start};
use crate::bit_errors::BitErrors;
use crate::mean_loss::{Unit, instants, mean_loss};
use crate::model::above_zero;
use crate::{Channel, ChannelModel, ClosedForm, State};

/// Alternating error and error-free states of a whole number of time units, left with a constant probability
/// at the end of each unit (VS-TCP paper, section V-A.2, with time units from Nguyen and Noble's measurements
/// of a wireless LAN). The paper varies the first three keys over the ranges below, which gives loss rates of
/// 1.4 % to 11.7 % for packets of 512 bytes at 2 Mb/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NguyenNoble {
    /// Probability of leaving the error state at the end of a unit: P_EG, 0.1 to 0.4, above zero. The mean
    /// length of an error state is `error_unit` / `leave_error`.
    pub leave_error: Probability,
    /// Probability of leaving the error-free state at the end of a unit: P_GE, 0.5 to 0.9, above zero.
    pub leave_error_free: Probability,
    /// Probability that a byte, or a bit, in the error state is wrong: e, 0.003 to 0.01. The error-free state
    /// has no errors.
    pub error_rate: Probability,
    /// Whether `error_rate` applies to a `"byte"` or a `"bit"`. The paper says bits, but then at least 4.4 %
    /// of its packets would be lost at 2 Mb/s, where it states 1 %. The bits of a byte are wrong
    /// independently, at a rate of 1 − (1 − e)^(1/8). By default per byte, although the paper calls it a bit
    /// error rate: the paper reports losses of 1 % to 13 % for packets of 512 bytes, and at 2 Mb/s, without
    /// headers, its parameters lose 1.4 % to 11.7 % with bytes and 4.4 % to 14.7 % with bits.
    #[serde(default)]
    pub errors_per: ErrorsPer,
    /// Time unit of error states, above zero. By default 0.2 ms: τ_E in the paper.
    #[serde(default = "paper_error_unit")]
    pub error_unit: Duration,
    /// Time unit of error-free states, above zero. By default 22.4 ms: τ_G in the paper.
    #[serde(default = "paper_error_free_unit")]
    pub error_free_unit: Duration,
    /// Initial state: `"good"`, the start of an error-free state; `"bad"`, the start of an error state; or
    /// `"stationary"`, within a unit of either state with the stationary probabilities. By default good: at
    /// the start of an error-free state.
    #[serde(default)]
    pub start: Start,
}

/// The unit of an error rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorsPer {
    /// Per byte. A byte is in error if one of its bits is, with independent bit errors: at a byte error rate
    /// e the bit error rate is 1 − (1 − e)^(1/8). This fixes the bit errors that codes need; it does not
    /// affect the survival of uncoded frames.
    #[default]
    Byte,
    /// Per bit.
    Bit,
}

fn paper_error_unit() -> Duration {
    Duration::from_micros(200)
}

fn paper_error_free_unit() -> Duration {
    Duration::from_micros(22_400)
}

impl NguyenNoble {
    /// Mean length of an error state in seconds: τ_E/P_EG (VS-TCP paper, section V-A.2).
    pub fn mean_error_s(&self) -> f64 {
        self.error_unit.as_secs_f64() / self.leave_error.get()
    }

    /// Mean length of an error-free state in seconds: τ_G/P_GE.
    pub fn mean_error_free_s(&self) -> f64 {
        self.error_free_unit.as_secs_f64() / self.leave_error_free.get()
    }

    /// Bit error rate in the error state.
    pub fn bit_error_rate(&self) -> Probability {
        let e = self.error_rate.get();
        match self.errors_per {
            ErrorsPer::Byte => Probability::new(-libm::expm1(libm::log1p(-e) / 8.0)).expect("a probability"),
            ErrorsPer::Bit => self.error_rate,
        }
    }

    /// The probability that a frame of `bits` bits on the air for `on_air` is lost: the packet loss rate by
    /// which the VS-TCP paper (section V-A.2) describes its channels. Exact up to rounding.
    ///
    /// The frame begins at a random instant of the stationary process. Frames whose start depends on the
    /// channel, or is synchronised with its units, have a different loss rate: for example those of a sender
    /// that waits for acknowledgements, or back-to-back frames of 0.2 ms.
    ///
    /// The cost grows with the number of instants in `on_air` at which a unit may end, if one of each state
    /// begins with the frame.
    ///
    /// ```
    /// use lasthop_base::{BitRate, Bytes};
    /// use lasthop_channel::NguyenNoble;
    ///
    /// let text = "leave_error = 0.2\nleave_error_free = 0.7\nerror_rate = 0.005";
    /// let channel: NguyenNoble = toml::from_str(text)?;
    /// let (segment, rate) = (Bytes(512), BitRate::from_bps(2_000_000).unwrap());
    /// let lost = channel.loss_probability(segment.bits(), rate.time_for(segment));
    /// assert_eq!(format!("{:.1} %", 100.0 * lost), "4.5 %");
    /// # Ok::<(), toml::de::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the model is not [valid](crate::Model::validate).
    pub fn loss_probability(&self, bits: u64, on_air: Duration) -> f64 {
        if let Err(invalid) = self.validate() {
            panic!("{invalid}");
        }
        let exponent = -BitErrors::new(self.bit_error_rate()).log_survival(bits as f64);
        mean_loss(self.units(), exponent, on_air)
    }

    fn units(&self) -> PerState<Unit> {
        PerState {
            good: Unit { length: self.error_free_unit, leave: self.leave_error_free.get() },
            bad: Unit { length: self.error_unit, leave: self.leave_error.get() },
        }
    }
}

impl ChannelModel for NguyenNoble {
    fn examples() -> &'static [&'static str] {
        &[
            "leave_error = 0.2, leave_error_free = 0.7, error_rate = 0.005, errors_per = \"byte\", error_unit = \"0.2 ms\", \
             error_free_unit = \"22.4 ms\", start = \"good\"",
        ]
    }

    fn validate(&self) -> Result<(), Invalid> {
        let is_left = |field, leave: Probability, problem| {
            if leave.get() > 0.0 { Ok(()) } else { Err(Invalid { field, problem }) }
        };
        is_left(
            "nguyen-noble.leave_error",
            self.leave_error,
            "found 0, with which an error state never ends, expected a probability above zero, such as \
             0.2; a channel with one state only is \"iid\"",
        )?;
        is_left(
            "nguyen-noble.leave_error_free",
            self.leave_error_free,
            "found 0, with which an error-free state never ends, expected a probability above zero, such \
             as 0.7; a channel without errors is \"perfect\"",
        )?;
        let has_length = |field, length, problem| {
            above_zero(field, length).map_err(|invalid| Invalid { problem, ..invalid })
        };
        has_length(
            "nguyen-noble.error_unit",
            self.error_unit,
            "found a length of zero, expected one above zero, such as \"0.2 ms\"",
        )?;
        has_length(
            "nguyen-noble.error_free_unit",
            self.error_free_unit,
            "found a length of zero, expected one above zero, such as \"22.4 ms\"",
        )
    }

    fn channel(&self, mut stream: Stream) -> Box<dyn Channel> {
        let units = self.units();
        let start = self.start.draw(self.availability(), &mut stream);
        let rates = PerState { good: Probability::default(), bad: self.bit_error_rate() };
        // In the stationary process, time zero is uniform within a unit, and the number of remaining units is
        // geometric.
        let mut elapsed = match self.start {
            Start::Stationary => Duration::from_nanos(stream.below(units.of(start).length.as_nanos())),
            Start::Good | Start::Bad => Duration::ZERO,
        };
        Box::new(Alternating::new(start, rates, move |state: State| {
            let Unit { length, leave } = units.of(state);
            length * stream.geometric(leave) - mem::take(&mut elapsed)
        }))
    }

    fn availability(&self) -> f64 {
        self.units().availability()
    }

    fn mean_cycle_s(&self) -> Option<f64> {
        Some(self.mean_error_s() + self.mean_error_free_s())
    }

    fn closed_form(&self) -> Option<&dyn ClosedForm> {
        Some(self)
    }
}

impl ClosedForm for NguyenNoble {
    fn loss_probability(&self, _frames: u32, bits: u64, on_air: Duration) -> f64 {
        NguyenNoble::loss_probability(self, bits, on_air)
    }

    fn loss_instants(&self, on_air: Duration) -> f64 {
        instants(on_air, self.error_unit).max(1.0) * instants(on_air, self.error_free_unit).max(1.0)
    }
}
