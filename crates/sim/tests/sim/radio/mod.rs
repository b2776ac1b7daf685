//! The radio link: by hand, against closed forms, and under all small loss patterns.

mod closed_forms;
mod coding;
mod every_pattern;
mod harness;
mod in_the_engine;
mod rlp;
mod timing;
