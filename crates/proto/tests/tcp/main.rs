//! TCP by its rules: one dialogue per rule, each opening with the rule and where it stands. No
//! simulator: a test says what arrives and when, and what must be sent.

#![allow(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may hold one")]

mod acknowledgements;
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
