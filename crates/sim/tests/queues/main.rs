//! Sources, a queue and a sink in the engine, against what queueing theory says of them.
//!
//! A statistic must lie within five standard errors of its expectation. If the errors are known, a
//! right program misses that for one seed in 1.7 million. If they are estimated from the 99 stretches
//! of a run, the pattern is Student's with 98 degrees of freedom, and it misses for one in 400,000. Seeds
//! are fixed, so that a test that passes passes always. Where an error is estimated, the test also says
//! how large it may be: an estimate that allows everything shows nothing.

mod arrivals;
mod constant;
mod finite;
mod infinite;
mod net;
