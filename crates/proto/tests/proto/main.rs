//! Tests of the protocols without the simulator.

mod fec;
mod since;
mod tcp;
mod wtcp_timestamps;
