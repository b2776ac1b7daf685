//! Scenario files: TOML parsing, error messages with locations, and expansion of sweeps.
//!
//! ```text
//! text ──parse──> Document ──overrides──> Document ──serde──> Scenario ──[sweep]──> points
//!                    └── diagnostics ──> ScenarioError (message, line, snippet)
//! ```

mod data;
pub(crate) mod diagnostics;
mod document;
mod error;
mod grid;
mod load;
mod presets;
mod range;

pub use error::ScenarioError;
pub use presets::Preset;

pub(crate) use diagnostics::{alternatives, names};
pub(crate) use error::Location;
