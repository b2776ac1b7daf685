//! Tests of the protocols without the simulator.

mod conformance_table;
mod fec;
mod since;
mod tcp;
