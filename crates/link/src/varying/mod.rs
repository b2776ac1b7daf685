//! Links whose rate or delay varies over time.
//!
//! ```text
//! Rate, Delay (scenario) ──streams──> Timing ──> when a transmission begins and ends, when its packet arrives
//! ```
//!
//! A link with a fixed rate and delay has no [`Timing`], is a line and looks ahead; one that has is served packet by
//! packet. The rate and the delay at an instant depend on the files and the random streams alone, never on the traffic:
//! runs of different schemes with the same seed meet the same ones. Delays of single packets are in their order, a token bucket is what
//! the traffic has left, and grants follow from what was sent.

mod delay;
mod grants;
mod lognormal;
mod mahimahi;
mod netem;
mod rate;
mod timing;
mod token_bucket;

pub use delay::{Delay, DelayList, DelaySteps, VaryingDelay};
pub use grants::Grants;
pub use lognormal::{LognormalDelay, LognormalRate};
pub use mahimahi::{OPPORTUNITY, Opportunities};
pub use netem::Netem;
pub use rate::{OfFile, Rate, RateSteps, Signal, SignalSteps, VaryingRate};
pub use timing::{Timing, TimingStreams};
pub use token_bucket::TokenBucket;
