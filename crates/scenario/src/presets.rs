//! Presets of wireless links: keys that a table [radio] or [link.NAME] takes over if it does not state them.
//!
//! The table of all presets is `presets.toml` beside this file.

use std::sync::OnceLock;

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use crate::diagnostics::alternatives;

const TEXT: &str = include_str!("presets.toml");

/// A preset of a wireless link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// One-line summary.
    pub summary: String,
    /// Sources of its values.
    pub source: String,
    /// Values that its sources do not give, and are our choice.
    pub choice: String,
    /// Its keys, as in the table `[radio]`.
    pub toml: String,
}

impl Preset {
    /// All presets, in the order of their file.
    pub fn all() -> Vec<Preset> {
        // A table of plain values is sorted by name; the document has the order of the file.
        let mut names: Vec<_> =
            document().iter().map(|(key, _)| (key.span().start, key.get_ref().to_string())).collect();
        names.sort();
        let table: Table = TEXT.parse().expect("the presets are TOML");
        let preset = |(_, name): (usize, String)| {
            let text = |key: &str| match table[&name].get(key) {
                Some(Value::String(text)) => text.clone(),
                _ => panic!("the preset {name} has no {key}"),
            };
            let (summary, source, choice) = (text("summary"), text("source"), text("choice"));
            let link = table[&name]["link"].as_table().expect("a preset has a link");
            Preset { summary, source, choice, toml: link.to_string(), name }
        };
        names.into_iter().map(preset).collect()
    }
}

fn document() -> &'static DeTable<'static> {
    static DOCUMENT: OnceLock<DeTable<'static>> = OnceLock::new();
    DOCUMENT.get_or_init(|| DeTable::parse(TEXT).expect("the presets are TOML").into_inner())
}

/// The keys of the preset `name`.
///
/// # Errors
/// If there is no such preset: what was found and what was expected.
pub(crate) fn keys_of_preset(name: &str) -> Result<&'static DeTable<'static>, String> {
    let table = document().get(name).and_then(|preset| preset.get_ref().get("link"));
    match table.map(|link| link.get_ref()) {
        Some(DeValue::Table(link)) => Ok(link),
        _ => {
            let all = Preset::all();
            let alternatives = alternatives(name, all.iter().map(|preset| preset.name.as_str()));
            Err(format!("found \"{name}\", {alternatives}; lasthop links shows them"))
        }
    }
}
