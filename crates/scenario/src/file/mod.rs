//! Scenario files: what a document says of a scenario, expansion of sweeps, changes by typed values, and the canonical form.
//!
//! ```text
//! text ──parse──> Document ──changes──> Document ──serde──> Scenario ──[sweep]──> points
//!                    └── diagnostics ──> ScenarioError (message, line, snippet)
//! ```

mod data;
mod grid;
mod load;
mod range;

pub(crate) use self::load::read_text;
