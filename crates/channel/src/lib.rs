//! Bit-error processes of a wireless last hop.
//!
//! A scenario file describes a [`Model`]; a link queries a [`Channel`] for the probability that a frame
//! survives, and draws the outcome from its own stream.
//!
//! ```text
//! Model ──stream "channel"──> Channel ──start, end, bits──> probability of survival
//!                                └─────start, end────────> shares of the frame and their bit error rates
//! ```
//!
//! # Trajectories do not depend on traffic
//!
//! The state of a channel at an instant is a function of its [`Stream`](lasthop_base::Stream) alone: neither
//! the frames sent nor the queries made affect it. This has two uses.
//!
//! - The two directions of a link hold separate copies built from the same named stream. They query at
//!   different instants and still see the same fades.
//! - Two schemes that run with the same seed see the same fades, so their results can be compared in pairs
//!   (common random numbers).
//!
//! [`FrameBursts`] is an exception, and so are [`Gilbert`] and [`GilbertElliott`] by packets: their bursts are counted in
//! frames.
//!
//! State changes are drawn lazily, when a query reaches them: a channel needs no events. Queries move forward
//! in time; see [`Channel`] for how far back they may reach.
//!
//! No clock and no I/O: the crate is `no_std`.

#![no_std]

extern crate alloc;

mod alternating;
mod bit_errors;
mod crossing;
mod markov;
mod mean_loss;
mod mobility;
mod model;
mod outages;
mod perfect;
mod registry;

pub use alternating::Start;
pub use loss_series::LossSteps;
pub use markov::{Bursts, Span};
pub use mobility::{Itinerary, Moves, Presence, Stay, Strongest};
pub use model::{ChannelModel, ClosedForm};
pub use nguyen_noble::ErrorsPer;
pub use outages::Outages;
pub use rayleigh_gilbert::Chain;
pub use semi_markov::{Empirical, Lengths, Lognormal, Sojourns};

registry::register! {
    iid: Iid,
    frame_loss: FrameLoss,
    frame_bursts: FrameBursts,
    two_state: TwoState,
    fixed_periods: FixedPeriods,
    gilbert: Gilbert,
    gilbert_elliott: GilbertElliott,
    semi_markov: SemiMarkov,
    loss_series: LossSeries,
    rayleigh_gilbert: RayleighGilbert,
    nguyen_noble: NguyenNoble,
}

use lasthop_base::{Probability, Time};

/// A bit-error process, as seen by one direction of a link.
///
/// Queries may not go back in time: each `start` or `at` must be no earlier than all previous ones, of any
/// method. `end` is not restricted: a channel keeps its trajectory from the latest `start` on, so a frame may
/// start while an earlier one is still on the air.
pub trait Channel: Send {
    /// The exact probability that a frame of `bits` bits, spread evenly over its air time from `start` to
    /// `end`, arrives without a bit error.
    ///
    /// `bits` counts the bits on the air, after coding. A frame that only touches the boundary of a sojourn
    /// does not overlap it. All bits of a zero-length frame (`start` = `end`) are in the state that begins or
    /// continues at `start`.
    ///
    /// # Panics
    /// A channel with states panics if `start` is [`Time::NEVER`] or before an earlier query, or if `end` is
    /// before `start`.
    fn survival(&mut self, start: Time, end: Time, bits: u64) -> f64;

    /// The bit error rates that a frame meets from `start` to `end`, for error-correcting codes. Calls `each`
    /// for the consecutive parts of the frame, and returns the probability that the frame is not lost as a
    /// whole, independently of its bits.
    ///
    /// Each part has the share of the frame that it covers, and its bit error rate. Shares sum to 1; a
    /// zero-length frame is one part, as in [`survival`](Channel::survival), which equals the value returned
    /// here times the product of (1 − rate)^(share × bits) over the parts.
    ///
    /// Frames are lost as a whole during an outage, and under [`FrameLoss`], which has no other errors.
    ///
    /// # Panics
    /// As [`survival`](Channel::survival).
    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64;

    /// The sojourn that contains `at`. Querying again at its `until` enumerates the trajectory, for plots and
    /// tests.
    ///
    /// A channel without states is always good.
    ///
    /// # Panics
    /// As [`survival`](Channel::survival), with `at` for `start`.
    fn sojourn(&mut self, at: Time) -> Sojourn;
}

/// The time spent in one state without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sojourn {
    /// The state.
    pub state: State,
    /// End of the sojourn, exclusive; [`Time::NEVER`] if it does not end.
    pub until: Time,
}

impl Sojourn {
    /// The trajectory of a channel without states.
    const FOREVER: Sojourn = Sojourn { state: State::Good, until: Time::NEVER };
}

/// State of a channel. The model defines its error rates; the bad state is the fade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Few errors.
    Good,
    /// Many errors.
    Bad,
}

impl State {
    /// The other state.
    const fn other(self) -> State {
        match self {
            State::Good => State::Bad,
            State::Bad => State::Good,
        }
    }
}

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
