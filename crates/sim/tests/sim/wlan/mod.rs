//! 802.11 wireless LAN: by hand, against closed forms and Bianchi's model, against a reference implementation
//! of the standard, and in random networks.

mod bianchi;
mod config;
pub(crate) mod harness;
mod in_the_engine;
mod literal;
mod retries;
mod timeline;
mod worlds;
