//! Many runs of scenarios on many threads.
//!
//! A [`Pool`] takes [batches](Batch) of runs and returns [rows](Row) of metrics. It keeps all cores busy and
//! makes no decisions: its user (`lasthop.engine` in Python) chooses the points and the numbers of runs.
//!
//! ```text
//! Batch (scenario, scheme, seed, runs) ──> queue ──> workers ──> rows ──> collect
//! ```
//!
//! [Chunks](Chunk) are rows by columns, as a study's store keeps them.

mod cells;
mod chunk;
mod pool;

pub use cells::{Cells, Column, Malformed};
pub use chunk::Chunk;
pub use pool::{Batch, Failure, Pool, Row};
