//! Captures, written and read.

mod pcapng;
mod reading;
