//! Many scenarios in one file: the table `[sweep]`.

use std::collections::BTreeSet;

use serde::de::{Deserialize, Deserializer, IgnoredAny};
use toml::{Table, Value};

use super::scenario::Scenario;

/// The parameters that a scenario varies, and their values: the table `[sweep]`.
///
/// ```toml
/// [sweep]
/// tcp.packet_size = ["128 B", "256 B", "512 B"]
/// radio.channel.two-state.bad = { from = "1 s", to = "4 s", step = "1 s" }
/// radio.channel.two-state.bad_ber = { from = 1e-4, to = 1e-2, count = 5, scale = "log" }
/// ```
///
/// A key is a path in the scenario, in quotes or not; it may lead to anything but `title`, `schemes`
/// and the sweep itself. Values are written as they would be there, or as a range: with `step`, from
/// one value to the next until `to` would be passed; with `count`, that many values from `from` to
/// `to`, at equal differences or, on a logarithmic scale, equal ratios (to four digits).
///
/// [`Scenario::points`] gives one scenario for each combination of values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    pub(crate) axes: Vec<Axis>,
    /// The settings of TCP that the scenario states, if its sweep varies the profile, which gives
    /// all others.
    pub(crate) stated: Option<BTreeSet<String>>,
}

/// A parameter and its values in canonical form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) path: String,
    pub(crate) values: Vec<Value>,
}

/// One combination of a sweep's values.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The parameters that the sweep varies, in its order, each by its path and its value as `--set`
    /// takes it.
    pub parameters: Vec<(String, String)>,
    /// The scenario with these values. It has no sweep.
    pub scenario: Scenario,
}

impl Sweep {
    /// The parameters in their order, each by its path and its values as `--set` takes them.
    pub fn axes(&self) -> impl Iterator<Item = (&str, Vec<String>)> {
        self.axes.iter().map(|axis| (axis.path.as_str(), axis.values.iter().map(text).collect()))
    }

    /// Whether nothing is varied.
    pub fn is_empty(&self) -> bool {
        self.axes.is_empty()
    }

    /// Leaves to the profiles of the sweep what is theirs to give, in the canonical form `scenario`.
    pub(crate) fn leave_to_profiles(&self, scenario: &mut Table) {
        if let (Some(stated), Some(Value::Table(tcp))) = (&self.stated, scenario.get_mut("tcp")) {
            tcp.retain(|key, _| key == "profile" || stated.contains(key));
        }
    }

    /// The table as TOML; nothing if it is empty. Values that are tables stay in their lists, as those
    /// set beside the lists would lose their place among the axes.
    pub(crate) fn to_toml(&self) -> String {
        let quoted = |path: &String| Value::String(path.clone());
        let line =
            |Axis { path, values }: &Axis| format!("{} = {}\n", quoted(path), Value::Array(values.clone()));
        let lines: String = self.axes.iter().map(line).collect();
        if lines.is_empty() { lines } else { format!("\n[sweep]\n{lines}") }
    }

    /// For the schema, which knows the key `sweep` and nothing of what it holds: paths are checked
    /// where it is known what stands at them, and in what file.
    pub(crate) fn elsewhere<'de, D: Deserializer<'de>>(from: D) -> Result<Sweep, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Sweep::default())
    }
}

/// The value as `--set` takes it: text without quotes, all else as TOML.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
