//! Presets of wireless links: keys that a table [radio] or [link.NAME] takes over if it does not state them.
//!
//! The table of all presets is `presets.toml` beside this file.

use std::sync::OnceLock;

use toml::Value;
use toml::de::DeTable;

use crate::diagnostics::alternatives;
use crate::tree::{Kind, Table, table_of};

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
        let table: toml::Table = TEXT.parse().expect("the presets are TOML");
        let preset = |(name, preset): (&String, &Value)| {
            let text = |key: &str| match preset.get(key) {
                Some(Value::String(text)) => text.clone(),
                _ => panic!("the preset {name} has no {key}"),
            };
            let (summary, source, choice) = (text("summary"), text("source"), text("choice"));
            let link = preset["link"].as_table().expect("a preset has a link");
            Preset { summary, source, choice, toml: link.to_string(), name: name.clone() }
        };
        table.iter().map(preset).collect()
    }
}

fn document() -> &'static Table {
    static DOCUMENT: OnceLock<Table> = OnceLock::new();
    DOCUMENT.get_or_init(|| table_of(DeTable::parse(TEXT).expect("the presets are TOML").into_inner()))
}

/// The keys of the preset `name`.
///
/// # Errors
/// If there is no such preset: what was found and what was expected.
pub(crate) fn keys_of_preset(name: &str) -> Result<&'static Table, String> {
    let preset = document().get(name).and_then(|(_, preset)| preset.kind.as_table()?.get("link"));
    match preset.map(|(_, link)| &link.kind) {
        Some(Kind::Table(link)) => Ok(link),
        _ => {
            let all = Preset::all();
            let alternatives = alternatives(name, all.iter().map(|preset| preset.name.as_str()));
            Err(format!("found \"{name}\", {alternatives}; lasthop links shows them"))
        }
    }
}
