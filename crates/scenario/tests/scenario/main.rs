//! Scenario files: what is read, what is refused, and what is written.

mod canonical;
mod changes;
mod common;
mod errors;
mod json_schema;
mod sweep;
mod toml_file;
