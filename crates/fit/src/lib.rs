//! Models of a channel's losses, fitted to measurements by maximum likelihood.
//!
//! Measurements are irregular: probes have jitter, and packets of a transfer come in bursts. Therefore the
//! models change state in continuous time, and the likelihood uses the actual time between packets.
//!
//! ```text
//! Losses (times and outcomes of probes, or counts) ──> Evidence ──> likelihood ──> fit: one Model of each Family
//!    ^                                                                              │
//!    └──────────────── simulate: the same probes over the fitted channel <──────────┘   (bootstrap, checks)
//! ```
//!
//! [`fit`] finds the parameters of one [`Family`] and [`fit_all`] of all, [`bootstrap`] refits simulated records of the fitted
//! model, and [`Shape`] has histograms for goodness-of-fit checks. [`burst_profile`] gives the likelihood of
//! burst lengths, whatever the model.

mod blocks;
mod bootstrap;
mod counts;
mod evidence;
mod family;
mod likelihood;
mod losses;
mod model;
mod periods;
mod profile;
mod search;
mod shape;

pub use bootstrap::{Replicate, bootstrap};
pub use family::{Family, Fit, fit, fit_all, log_likelihood};
pub use losses::{Losses, Unusable};
pub use model::{Law, Model, Periods};
pub use profile::{BurstProfile, bad_loss_profile, burst_profile};
pub use shape::Shape;
