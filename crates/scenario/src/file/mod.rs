//! Scenario files: TOML parsing, error messages with locations, and expansion of sweeps; and changes by typed values.
//!
//! ```text
//! text ──parse──> Document ──changes──> Document ──serde──> Scenario ──[sweep]──> points
//!                    └── diagnostics ──> ScenarioError (message, line, snippet)
//! ```

mod data;
mod document;
mod grid;
mod load;
mod node;
mod range;
mod source;
mod to_value;
mod value;

pub(crate) use node::{Kind, Problem, Table, table_of};
pub(crate) use source::Source;
pub use value::{Change, Value};
