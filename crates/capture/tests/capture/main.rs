//! Captures, written and read.

mod columns;
mod pcapng;
mod reading;
