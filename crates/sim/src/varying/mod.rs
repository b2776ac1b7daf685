//! Links whose rate or delay varies over time.
//!
//! A link with a fixed rate and delay has no [`Timing`](lasthop_link::varying::Timing), is a line and looks ahead; one that
//! has is served packet by packet.

mod link;
mod pipeline;

pub use link::VaryingLink;

pub(crate) use pipeline::VaryingPipeline;
