//! Bit-error processes of a wireless last hop.
//!
//! A [`Model`] is what a scenario file says; a [`Channel`] is what a link asks: with which
//! probability does this frame survive the air? The link then draws, from a stream of its own.
//!
//! ```text
//! Model ──stream "channel"──> Channel ──start, end, bits──> probability of survival
//!                                └─────start, end────────> shares of the frame and their bit error rates
//! ```
//!
//! # One trajectory for everyone
//!
//! A channel's state at an instant is a function of its [`Stream`](lasthop_base::Stream) and of
//! nothing else: not of the frames sent, not of the questions asked. Two uses follow.
//!
//! - The two directions of a link each hold their own copy, built from the same named stream. They
//!   ask at different instants and still see the same fades.
//! - Two schemes that run with the same seed see the same fades, so that their difference is a
//!   paired one (common random numbers).
//!
//! State changes are found lazily, when a question reaches them: a channel needs no events. Like
//! the rest of a run it moves forward only: see [`Channel`] for how far back it can look.
//!
//! No clock and no I/O: the crate is `no_std`.

#![no_std]

extern crate alloc;

mod alternating;
mod bit_errors;
mod crossing;
mod fixed_periods;
mod frame_loss;
mod handoff;
mod iid;
mod mean_loss;
mod model;
mod nguyen_noble;
mod rayleigh_gilbert;
mod two_state;

pub use alternating::Start;
pub use fixed_periods::FixedPeriods;
pub use frame_loss::FrameLoss;
pub use handoff::Handoff;
pub use iid::Iid;
pub use model::Model;
pub use nguyen_noble::{ErrorsPer, NguyenNoble};
pub use rayleigh_gilbert::{Chain, RayleighGilbert};
pub use two_state::TwoState;

use lasthop_base::{Probability, Time};

/// A bit-error process, as one direction of a link sees it.
///
/// Questions may not go back in time: each `start` or `at` must be no earlier than those before
/// it, of any method. Ends are free: a channel remembers everything from the latest start on,
/// so a frame may start while an earlier one is still on the air.
pub trait Channel: Send {
    /// The exact probability that a frame of `bits` bits, spread evenly over its time on the air
    /// from `start` to `end`, arrives without a bit error.
    ///
    /// `bits` counts what is on the air, after any coding. A frame that merely touches a state's
    /// boundary does not overlap that state; one that takes no time (`start` = `end`) has all its
    /// bits in the state that begins or continues at `start`.
    ///
    /// # Panics
    /// A channel with a state panics if `start` is [`Time::NEVER`] or before an earlier question,
    /// or if `end` is before `start`.
    fn survival(&mut self, start: Time, end: Time, bits: u64) -> f64;

    /// What a frame meets on the air from `start` to `end`, for codes that correct errors: calls
    /// `each` with its consecutive parts, in order, and returns the probability that it is not
    /// lost as a whole, whatever its bits are.
    ///
    /// A part is the share of the frame that it covers, and the bit error rate there. Shares
    /// sum to 1; a frame that takes no time is one part, as in
    /// [`survival`](Channel::survival). That is what is returned here times the product of
    /// (1 − rate)^(share × bits) over the parts.
    ///
    /// Lost as a whole are frames in a hand-off, and those of [`FrameLoss`], whose bits are all
    /// right otherwise.
    ///
    /// # Panics
    /// As [`survival`](Channel::survival).
    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64;

    /// The sojourn under way at `at`. Asking again at its `until` enumerates the trajectory, for
    /// plots and tests.
    ///
    /// A channel without states is good for ever.
    ///
    /// # Panics
    /// As [`survival`](Channel::survival), with `at` for `start`.
    fn sojourn(&mut self, at: Time) -> Sojourn;
}

/// A stay in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sojourn {
    /// The state.
    pub state: State,
    /// The first instant after the stay; [`Time::NEVER`] if it does not end.
    pub until: Time,
}

impl Sojourn {
    /// The whole trajectory of a channel without states.
    const FOREVER: Sojourn = Sojourn { state: State::Good, until: Time::NEVER };
}

/// The condition of a channel. What it means for a bit is the model's to say; bad is the fade.
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
