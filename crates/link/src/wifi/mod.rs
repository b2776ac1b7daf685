//! Parameters of a basic service set (BSS) of 802.11n, 802.11ac or 802.11ax: rates and air times, losses by noise, channel
//! access, aggregation, and rate control.

mod config;
mod fading;
mod interference;
mod noise;
mod phy;
mod power_save;
pub mod rate;
mod roaming;

pub use config::{Access, Category, Edca, MpduLoss, Neighbour, Scheduler, StationRadio, WifiConfig};
pub use fading::{Fading, FadingSignal};
pub use interference::{Bursts, Interference};
pub use noise::NoiseErrors;
pub use phy::{
    ControlRate, EIFS_EXTENSION, GuardInterval, LONGEST_PPDU, MPDU_OVERHEAD, PpduFormat, RESPONSE_TIMEOUT,
    Rate, SIFS, SLOT, Standard, Width,
};
pub use power_save::{Delivery, PowerSave};
pub use roaming::{Queued, Roaming};
