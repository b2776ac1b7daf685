//! Two states that last whole multiples of a unit of time each.

use core::mem;

use lasthop_base::{Duration, Invalid, Probability, Stream};
use serde::{Deserialize, Serialize};

use crate::alternating::{Alternating, PerState, Start};
use crate::bit_errors::BitErrors;
use crate::mean_loss::{Unit, mean_loss};
use crate::model::above_zero;
use crate::{Channel, State};

/// An error state and an error-free one, each of which lasts a whole number of units of time: at
/// the end of a unit the state is left with a constant probability, and otherwise goes on for
/// another unit (VS-TCP paper, section V-A.2, figure 6 and table 2; the units are those of
/// measurements of a wireless LAN by G. T. Nguyen and B. Noble, "A trace-based approach for modeling
/// wireless channel behavior", Winter Simulation Conference, 1996).
///
/// The error state is the [bad](State::Bad) one. In the other there are no errors at all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NguyenNoble {
    /// The probability of leaving the error state at the end of a unit, above zero: the paper's
    /// P_EG, 0.1 to 0.4.
    pub leave_error: Probability,
    /// The probability of leaving the error-free state at the end of a unit, above zero: the
    /// paper's P_GE, 0.5 to 0.9.
    pub leave_error_free: Probability,
    /// How likely it is that a byte, or a bit, in the error state is wrong: the paper's e, 0.003 to
    /// 0.01.
    pub error_rate: Probability,
    /// What `error_rate` is a rate of. By default bytes, although the paper calls it a bit error
    /// rate: it has 1 % to 13 % of packets of 512 bytes lost, and at 2 Mb/s, without headers, its
    /// parameters lose 1.4 % to 11.7 % with bytes, and 4.4 % to 14.7 % with bits.
    #[serde(default)]
    pub errors_per: ErrorsPer,
    /// The unit of which an error state lasts a multiple, above zero. By default 0.2 ms, the
    /// paper's τ_E.
    #[serde(default = "paper_error_unit")]
    pub error_unit: Duration,
    /// The unit of which an error-free state lasts a multiple, above zero. By default 22.4 ms, the
    /// paper's τ_G.
    #[serde(default = "paper_error_free_unit")]
    pub error_free_unit: Duration,
    /// The state at time zero. By default good: a fresh error-free state. A stationary start is in
    /// the midst of a unit.
    #[serde(default)]
    pub start: Start,
}

/// What an error rate is a rate of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorsPer {
    /// Bytes. So that codes, which count wrong bits, can do with it, a byte is wrong if one of its
    /// bits is, and its bits are wrong independently: with e wrong bytes the bit error rate is
    /// 1 − (1 − e)^(1/8). What survives without a code does not depend on that.
    #[default]
    Byte,
    /// Bits.
    Bit,
}

fn paper_error_unit() -> Duration {
    Duration::from_micros(200)
}

fn paper_error_free_unit() -> Duration {
    Duration::from_micros(22_400)
}

impl NguyenNoble {
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
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

    /// The mean length of an error state in seconds: τ_E/P_EG (VS-TCP paper, section V-A.2).
    pub fn mean_error_s(&self) -> f64 {
        self.error_unit.as_secs_f64() / self.leave_error.get()
    }

    /// The mean length of an error-free state in seconds: τ_G/P_GE.
    pub fn mean_error_free_s(&self) -> f64 {
        self.error_free_unit.as_secs_f64() / self.leave_error_free.get()
    }

    /// The rate of wrong bits in the error state.
    pub fn bit_error_rate(&self) -> Probability {
        let e = self.error_rate.get();
        match self.errors_per {
            ErrorsPer::Byte => Probability::new(-libm::expm1(libm::log1p(-e) / 8.0)).expect("a probability"),
            ErrorsPer::Bit => self.error_rate,
        }
    }

    /// The probability that a frame of `bits` bits that is on the air for `on_air` is lost: the
    /// packet loss rate that the VS-TCP paper (section V-A.2) states its channels by. It is exact
    /// but for rounding.
    ///
    /// The frame begins at a random instant, long after the channel's start. Frames whose beginnings
    /// depend on the channel, or keep step with its units, meet another rate: those of a sender that
    /// waits for acknowledgements, for example, or frames of 0.2 ms back to back.
    ///
    /// The work grows with the number of instants in `on_air` at which a unit may end, if one of
    /// each state begins with the frame.
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

    pub(crate) fn availability(&self) -> f64 {
        self.units().availability()
    }

    fn units(&self) -> PerState<Unit> {
        PerState {
            good: Unit { length: self.error_free_unit, leave: self.leave_error_free.get() },
            bad: Unit { length: self.error_unit, leave: self.leave_error.get() },
        }
    }

    pub(crate) fn channel(self, mut stream: Stream) -> impl Channel {
        let units = self.units();
        let start = self.start.draw(self.availability(), &mut stream);
        let rates = PerState { good: Probability::default(), bad: self.bit_error_rate() };
        // A process that has run for ever is found anywhere in a unit, and the number of units still
        // to come is geometric wherever it is.
        let mut elapsed = match self.start {
            Start::Stationary => Duration::from_nanos(stream.below(units.of(start).length.as_nanos())),
            Start::Good | Start::Bad => Duration::ZERO,
        };
        Alternating::new(start, rates, move |state: State| {
            let Unit { length, leave } = units.of(state);
            length * stream.geometric(leave) - mem::take(&mut elapsed)
        })
    }
}
