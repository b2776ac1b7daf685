//! TOML files other than scenarios.

use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::document::Document;
use crate::error::{Fault, ScenarioError};
use crate::file::read_text;
use crate::tree;

/// A TOML file with the syntax of scenarios: quantities with units, and errors with cause, place and remedy.
#[derive(Clone, Debug)]
pub struct TomlFile(Document);

impl TomlFile {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, or is not TOML.
    pub fn load(path: &Path) -> Result<TomlFile, ScenarioError> {
        let (name, text) = read_text(path, "a file of settings")?;
        TomlFile::parse(&text, &name)
    }

    /// Parses `text`; messages call it `name`.
    ///
    /// # Errors
    /// If it is not TOML.
    pub fn parse(text: &str, name: &str) -> Result<TomlFile, ScenarioError> {
        Document::parse(text, name).map(TomlFile)
    }

    /// Whether the file has the top-level table `table`, which tells its kind.
    pub fn has(&self, table: &str) -> bool {
        self.0.without(table).is_some()
    }

    /// The settings in the file.
    ///
    /// # Errors
    /// If a key is unknown or missing, or has a value of another type or form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ScenarioError> {
        match self.0.unprintable() {
            Some(error) => Err(error),
            None => self.0.read(),
        }
    }

    /// The error for `fault`, with its place in the file.
    pub fn error(&self, fault: &Fault) -> ScenarioError {
        self.0.fault(fault)
    }
}

/// The canonical form of the settings in a file.
///
/// # Panics
/// If they are not a table of plain values.
pub fn to_toml<T: Serialize>(settings: &T) -> String {
    tree::to_toml(settings).to_string()
}
