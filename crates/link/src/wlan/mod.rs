//! Parameters of an 802.11 basic service set (BSS), and the air time of its frames.

mod config;
mod phy;

pub use config::{AboveMac, ApQueue, BssConfig, Cw, RetryLimit};
pub use phy::{Band, DATA_OVERHEAD, Dsss, DsssRate, Ofdm, OfdmRate, Phy, Preamble, Timing};
