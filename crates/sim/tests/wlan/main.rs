//! The 802.11 wireless LAN: by hand, against closed forms and Bianchi's model, against a simulator that takes the
//! standard a microsecond at a time, and in random worlds.

mod bianchi;
mod config;
mod harness;
mod in_the_engine;
mod literal;
mod retries;
mod timeline;
mod worlds;
