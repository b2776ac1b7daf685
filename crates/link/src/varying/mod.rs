//! Links whose rate or delay varies over time.
//!
//! ```text
//! Rate, Delay (scenario) ──streams──> Timing ──> when a transmission begins and ends, when its packet arrives
//! ```
//!
//! A link with a fixed rate and delay has no [`Timing`], is a line and looks ahead; one that has is served packet by
//! packet. The rate and the delay at an instant depend on the files and the random streams alone, never on the traffic:
//! runs of different schemes with the same seed meet the same ones.

mod delay;
mod lognormal;
mod mahimahi;
mod rate;
mod timing;

pub use delay::{Delay, DelayList, DelaySteps, VaryingDelay};
pub use lognormal::{LognormalDelay, LognormalRate};
pub use mahimahi::{OPPORTUNITY, Opportunities};
pub use rate::{OfFile, Rate, RateSteps, Signal, SignalSteps, VaryingRate};
pub use timing::{Timing, TimingStreams};
