//! Scenario files: TOML parsing, error messages with locations, and expansion of sweeps.
//!
//! ```text
//! text ──parse──> Document ──overrides──> Document ──serde──> Scenario ──[sweep]──> points
//!                    └── diagnostics ──> ScenarioError (message, line, snippet)
//! ```

mod data;
mod document;
mod grid;
mod load;
mod range;
