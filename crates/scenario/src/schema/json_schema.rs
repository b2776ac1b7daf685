//! The JSON Schema of scenario files, for editors and the reference. It follows from the types of the schema: their keys,
//! doc comments and defaults.

use lasthop_base::schema;
use lasthop_proto::scheme::Schemes;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::scenario::{Scenario, default_tcp, names_of_senders};
use super::sweep::FIXED;
use crate::presets::{Preset, PresetTable};

impl Scenario {
    /// The JSON Schema of scenario files, of draft 7, as a document of many lines.
    pub fn json_schema() -> String {
        let mut schema = root_schema::<Scenario>("Lasthop scenario");
        let definitions = schema.get_mut("definitions").and_then(Value::as_object_mut);
        complete(definitions.expect("a scenario has tables"));
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut).expect("a table");
        let swept = properties.keys().map(String::as_str).filter(|key| !FIXED.contains(key));
        let pattern = format!("^\\s*({})\\s*(\\.|$)", swept.collect::<Vec<_>>().join("|"));
        properties["sweep"]["propertyNames"] = json!({"pattern": pattern});
        serde_json::to_string_pretty(&schema).expect("a schema is a plain document")
    }
}

/// The JSON Schema of files with the syntax of scenarios, of draft 7, as a document of many lines.
///
/// # Panics
/// If the type's schema is no plain document.
pub fn json_schema_of<T: JsonSchema>(title: &str) -> String {
    serde_json::to_string_pretty(&root_schema::<T>(title)).expect("a schema is a plain document")
}

fn root_schema<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft07().with_transform(RecursiveTransform(as_in_toml));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".into(), title.into());
    schema
}

/// Adds what holds in files only: presets and profiles, which give keys that are not stated, and the values of a sweep.
fn complete(definitions: &mut Map<String, Value>) {
    let presets = |table: PresetTable| {
        let own = Preset::all().into_iter().filter(|preset| preset.table == table);
        json!(own.map(|preset| named(&preset.name, &preset.summary)).collect::<Vec<_>>())
    };
    for (definition, table) in
        [("Radio", PresetTable::Radio), ("LinkOverride", PresetTable::Radio), ("Wifi", PresetTable::Wifi)]
    {
        definitions[definition]["properties"]["preset"]["oneOf"] = presets(table);
    }
    let radio = definitions["Radio"].as_object_mut().expect("a table");
    radio.remove("required");
    radio.insert(String::from("anyOf"), json!([{"required": ["rate"]}, {"required": ["preset"]}]));
    let usual = json!(default_tcp());
    let settings = definitions["Settings"]["properties"].as_object_mut().expect("a table");
    for (key, setting) in settings {
        let setting = setting.as_object_mut().expect("a setting is described");
        setting.remove("default");
        setting.extend(usual.get(key).map(|value| (String::from("default"), value.clone())));
    }
    let swept = json!({"$ref": "#/definitions/SweptValue"});
    for scheme in Schemes::default().all() {
        definitions["Schemes"]["properties"][scheme.name()]["description"] = json!(scheme.summary());
    }
    definitions.insert(
        String::from("SweptValue"),
        json!({"anyOf": [
            {"type": "array", "description": "The values.", "minItems": 1},
            {
                "type": "object",
                "description": "A range: with `step`, from `from` up to at most `to`; with `count`, that many values with \
                                equal differences or, on a logarithmic `scale`, equal ratios.",
                "properties": {
                    "from": {}, "to": {}, "step": {},
                    "count": {"type": "integer", "minimum": 1},
                    "scale": {"enum": ["linear", "log"]},
                },
                "required": ["from", "to"],
                "additionalProperties": false,
            },
            {"type": "object", "description": "Values of keys in this table.", "additionalProperties": swept},
        ]}),
    );
}

/// A word with its meaning.
fn named(word: &str, meaning: &str) -> Value {
    json!({"const": word, "description": meaning})
}

/// Names of schemes, and combinations of them.
pub(super) fn schemes(_: &mut SchemaGenerator) -> Schema {
    let schemes = Schemes::default();
    let names = schemes.all().map(|scheme| named(scheme.name(), scheme.summary()));
    // Also of one scheme, with spaces around its name.
    let single = schemes.all().map(|scheme| scheme.name()).collect::<Vec<_>>().join("|");
    let pattern = format!("(.*[+@].*|{single})");
    let combination = schema::text("combination", &pattern, &["ebsn + arq", "snoop@gateway"]);
    let forms: Vec<_> = names.chain([combination.to_value()]).collect();
    json_schema!({"type": "array", "items": {"anyOf": forms}, "minItems": 1})
}

/// Names of senders, which a scenario may extend.
pub(super) fn sender(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "examples": names_of_senders()})
}

/// TOML has no null, and integers of no format but their bounds. Descriptions are doc comments without links to Rust's items.
fn as_in_toml(schema: &mut Schema) {
    let Some(schema) = schema.as_object_mut() else { return };
    if schema.remove("format") == Some(json!("uint32")) {
        schema.entry("maximum").or_insert(json!(u32::MAX));
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = without_links(description);
    }
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = &mut types[..] {
            schema["type"] = only.take();
        }
    }
    if let Some(Value::Array(forms)) = schema.get_mut("anyOf") {
        forms.retain(|form| form.get("type") != Some(&json!("null")));
        if let [only] = &mut forms[..] {
            let only = only.take();
            schema.remove("anyOf");
            match only {
                Value::Object(only) if !only.contains_key("$ref") => {
                    let described = std::mem::take(schema);
                    schema.extend(only);
                    schema.extend(described);
                }
                only => {
                    schema.insert(String::from("allOf"), Value::Array(vec![only]));
                }
            }
        }
    }
}

/// A doc comment in which links to items, such as [`Value`], are the names alone. Links with an address stay.
fn without_links(text: &str) -> String {
    let mut parts = text.split("[`");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |before, part| match part.split_once("`]") {
        Some((item, behind)) if !item.contains('`') && !behind.starts_with('(') => {
            before + "`" + item + "`" + behind
        }
        _ => before + "[`" + part,
    })
}
