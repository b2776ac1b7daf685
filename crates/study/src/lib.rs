//! Many runs of scenarios on many threads.
//!
//! A [`Pool`] takes [batches](Batch) of runs and hands back [rows](Row) of metrics. It keeps all cores busy and
//! decides nothing: which points to run, and how often, is the business of its user (`lasthop.study` in Python).
//!
//! ```text
//! Batch (scenario, scheme, seed, runs) ──> queue ──> workers ──> rows ──> collect
//! ```

mod pool;

pub use pool::{Batch, Failure, Pool, Row};
