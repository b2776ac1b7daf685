//! Tests of TCP rules without the simulator: one conversation per rule, each citing the rule. A test defines
//! the arriving segments with their times and checks the segments sent.

#![allow(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may hold one")]

mod accurate_ecn;
mod acknowledgements;
mod autotuning;
mod changes;
mod ecn;
mod fast_recovery;
mod giving_up;
mod handshake;
mod hostile;
mod karn;
mod linux;
mod no_control;
mod one_hop;
mod paws;
mod rack;
mod reactions;
mod reading;
mod reassembly;
mod receiver;
mod receiver_sack;
mod records;
mod reset;
mod rows_of_timeouts;
mod sack_recovery;
mod supply;
mod ticks;
mod timer;
mod timestamps;
mod undo;
mod windows;
mod wrap;
mod zero_window;

use lasthop_testing::dialogue;
