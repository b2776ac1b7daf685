//! Models of a channel's losses, fitted to measurements by maximum likelihood.
//!
//! Measurements are irregular: probes come at random times, packets of a transfer in bursts. So the models change state in
//! continuous time, and the likelihood takes each interval as it was.
//!
//! ```text
//! Losses (times and fates of probes, or counts) ──> Blocks ──> likelihood ──> fit: one Model of each Family
//!    ^                                                                              │
//!    └──────────────── simulate: the same probes over the fitted channel <──────────┘   (bootstrap, checks)
//! ```
//!
//! [`fit`] finds the parameters of one [`Family`], [`bootstrap`] refits what the fitted model would have shown, and
//! [`Shape`] has the histograms by which a fit is judged. [`burst_profile`] says which lengths of bursts a measurement can
//! tell apart at all.

mod blocks;
mod bootstrap;
mod family;
mod likelihood;
mod losses;
mod model;
mod periods;
mod profile;
mod search;
mod shape;

pub use bootstrap::{Replicate, bootstrap};
pub use family::{Family, Fit, fit};
pub use losses::{Losses, Unusable};
pub use model::{Law, Model, Periods};
pub use profile::{BurstProfile, burst_profile};
pub use shape::Shape;
