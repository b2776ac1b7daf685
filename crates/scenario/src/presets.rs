//! Presets of wireless links: keys that a table [radio], [link.NAME] or [wifi] takes over if it does not state them.
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
    /// The table that may name it.
    pub table: PresetTable,
    /// Its keys, as in that table.
    pub toml: String,
}

/// The tables whose keys a preset has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresetTable {
    /// `[radio]`, and `[link.NAME]` of wireless links.
    Radio,
    /// `[wifi]`.
    Wifi,
}

impl PresetTable {
    const ALL: [PresetTable; 2] = [PresetTable::Radio, PresetTable::Wifi];

    /// The name of the table.
    pub fn name(self) -> &'static str {
        match self {
            PresetTable::Radio => "radio",
            PresetTable::Wifi => "wifi",
        }
    }

    /// That of the table at `path` of a scenario.
    pub(crate) fn at(path: &[&str]) -> PresetTable {
        if path == ["wifi"] { PresetTable::Wifi } else { PresetTable::Radio }
    }
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
            let (table, keys) = PresetTable::ALL
                .iter()
                .find_map(|table| Some((*table, preset.get(table.name())?.as_table()?)))
                .expect("a preset has the keys of a table");
            Preset { summary, source, choice, table, toml: keys.to_string(), name: name.clone() }
        };
        table.iter().map(preset).collect()
    }
}

fn document() -> &'static Table {
    static DOCUMENT: OnceLock<Table> = OnceLock::new();
    DOCUMENT.get_or_init(|| table_of(DeTable::parse(TEXT).expect("the presets are TOML").into_inner()))
}

/// The keys of the preset `name` of a table.
///
/// # Errors
/// If that table has no such preset: what was found and what was expected.
pub(crate) fn keys_of_preset(name: &str, table: PresetTable) -> Result<&'static Table, String> {
    let preset = document().get(name).and_then(|(_, preset)| preset.kind.as_table()?.get(table.name()));
    if let Some((_, keys)) = preset
        && let Kind::Table(keys) = &keys.kind
    {
        return Ok(keys);
    }
    let all = Preset::all();
    if let Some(other) = all.iter().find(|preset| preset.name == name) {
        let (of, expected) = (other.table.name(), table.name());
        return Err(format!(
            "found \"{name}\", which is a preset of [{of}], expected one of [{expected}]; lasthop links shows them"
        ));
    }
    let own = all.iter().filter(|preset| preset.table == table);
    let alternatives = alternatives(name, own.map(|preset| preset.name.as_str()));
    Err(format!("found \"{name}\", {alternatives}; lasthop links shows them"))
}
