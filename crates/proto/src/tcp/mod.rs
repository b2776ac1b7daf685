//! One byte-stream TCP, cut at three seams: how much to send ([congestion control](cc)), what to
//! resend ([recovery]), when to give up ([round-trip estimation](rtt)).

mod segment;
mod seq;

pub use segment::{Flags, SackBlock, SackBlocks, Segment, Timestamps};
pub use seq::SeqNum;
