//! Parameter sweeps: the table `[sweep]`.

use std::collections::BTreeSet;
use std::sync::Arc;

use lasthop_base::inline_schema;
use schemars::json_schema;
use serde::de::{Deserialize, Deserializer, IgnoredAny};
use toml::{Table, Value};

use super::scenario::Scenario;

/// Keys that cannot be varied.
pub(crate) const FIXED: [&str; 3] = ["title", "schemes", "sweep"];

/// The parameters to vary, with their values: the table `[sweep]`.
///
/// ```toml
/// [sweep]
/// tcp.packet_size = ["128 B", "256 B", "512 B"]
/// radio.channel.two-state.bad = { from = "1 s", to = "4 s", step = "1 s" }
/// radio.channel.two-state.bad_ber = { from = 1e-4, to = 1e-2, count = 5, scale = "log" }
/// ```
///
/// A key is a path in the scenario, quoted or not, except `title`, `schemes` and `sweep`. Values are written
/// as at that path, or as a range: with `step`, from `from` up to at most `to`; with `count`, that many
/// values from `from` to `to` with equal differences or, on a logarithmic scale, equal ratios (rounded to
/// four digits).
///
/// [`Scenario::points`] yields one scenario for each combination of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    pub(crate) axes: Vec<Axis>,
    /// TCP settings stated in the scenario, if the sweep varies the profile; the profiles give all others.
    pub(crate) stated: Option<BTreeSet<String>>,
    /// The links whose preset is varied.
    pub(crate) presets: Vec<SweptPreset>,
    /// One scenario for each combination of values, the last axis fastest.
    pub(crate) points: Arc<[Point]>,
}

/// A link whose preset is varied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SweptPreset {
    /// The path of its table.
    pub(crate) table: Vec<String>,
    /// The keys stated beside it; the preset gives all others.
    pub(crate) stated: BTreeSet<String>,
    /// The keys stated in its table `uplink`.
    pub(crate) uplink: BTreeSet<String>,
}

/// A parameter with its values in canonical form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) path: String,
    pub(crate) values: Vec<Value>,
}

/// One combination of values of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Path and value of each varied parameter, in the order of the sweep; values in the syntax of `--set`.
    pub parameters: Vec<(String, String)>,
    /// The scenario with these values, without a sweep.
    pub scenario: Arc<Scenario>,
}

inline_schema!(
    Sweep,
    |_generator| json_schema!({"type": "object", "additionalProperties": {"$ref": "#/definitions/SweptValue"}})
);

impl Sweep {
    /// The parameters in order, each with its path and its values in the syntax of `--set`.
    pub fn axes(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.axes.iter().map(|axis| (axis.path.as_str(), axis.values.iter().map(text).collect()))
    }

    /// The same sweep with each point's scenario changed by `change`.
    pub(crate) fn try_map<E>(&self, change: impl Fn(&Point) -> Result<Scenario, E>) -> Result<Sweep, E> {
        let points = self.points.iter().map(|point| {
            Ok(Point { parameters: point.parameters.clone(), scenario: Arc::new(change(point)?) })
        });
        Ok(Sweep { points: points.collect::<Result<_, _>>()?, ..self.clone() })
    }

    /// Whether no parameter is varied.
    pub fn is_empty(&self) -> bool {
        self.axes.is_empty()
    }

    /// Removes the settings that the profiles of the sweep determine from the canonical form `scenario`.
    pub(crate) fn leave_to_profiles(&self, scenario: &mut Table) {
        if let (Some(stated), Some(Value::Table(tcp))) = (&self.stated, scenario.get_mut("tcp")) {
            tcp.retain(|key, _| key == "profile" || stated.contains(key));
        }
    }

    /// Removes the settings that the presets of the sweep determine from the canonical form `scenario`.
    pub(crate) fn leave_to_presets(&self, scenario: &mut Table) {
        for SweptPreset { table, stated, uplink } in &self.presets {
            let link = table.iter().try_fold(&mut *scenario, |table, key| table.get_mut(key)?.as_table_mut());
            let Some(link) = link else { continue };
            link.retain(|key, _| stated.contains(key));
            if let Some(Value::Table(own)) = link.get_mut("uplink") {
                own.retain(|key, _| uplink.contains(key));
            }
        }
    }

    /// The table; `None` if nothing is varied.
    pub(crate) fn to_table(&self) -> Option<Table> {
        let axis = |Axis { path, values }: &Axis| (path.clone(), Value::Array(values.clone()));
        (!self.is_empty()).then(|| self.axes.iter().map(axis).collect())
    }

    /// The table as TOML; empty if nothing is varied. Values that are tables are written inline, because
    /// separate tables would change the order of the axes.
    pub(crate) fn to_toml(&self) -> String {
        let quoted = |path: &String| Value::String(path.clone());
        let line =
            |Axis { path, values }: &Axis| format!("{} = {}\n", quoted(path), Value::Array(values.clone()));
        let lines: String = self.axes.iter().map(line).collect();
        if lines.is_empty() { lines } else { format!("\n[sweep]\n{lines}") }
    }

    /// Deserializer for the key `sweep` in the schema, which ignores the contents: paths are checked where
    /// their types and locations are known.
    pub(crate) fn elsewhere<'de, D: Deserializer<'de>>(from: D) -> Result<Sweep, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Sweep::default())
    }
}

/// The value in the syntax of `--set`: strings without quotes, all else as TOML.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
