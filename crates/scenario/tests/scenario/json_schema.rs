//! The JSON Schema of scenario files.

use lasthop_scenario::Scenario;
use serde_json::{Map, Value, json};

/// Calls `each` with every object of the document.
fn visit(value: &Value, each: &mut dyn FnMut(&Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            each(object);
            object.values().for_each(|value| visit(value, each));
        }
        Value::Array(values) => values.iter().for_each(|value| visit(value, each)),
        _ => {}
    }
}

#[test]
fn every_key_and_word_has_a_meaning() {
    let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    let root = String::from("root");
    let tables = schema["definitions"].as_object().unwrap().iter().chain([(&root, &schema)]);
    let mut keys = 0;
    for (table, schema) in tables {
        for (key, meaning) in schema["properties"].as_object().into_iter().flatten() {
            assert!(meaning["description"].is_string(), "{table}.{key}");
            keys += 1;
        }
    }
    assert!(keys > 400, "{keys}");
}

#[test]
fn toml_has_neither_null_nor_integers_of_a_format() {
    let schema: Value = serde_json::from_str(&Scenario::json_schema()).unwrap();
    visit(&schema, &mut |object| {
        assert!(!object.contains_key("format"), "{object:?}");
        assert!(object.get("type") != Some(&json!("null")) && object.get("default") != Some(&Value::Null));
    });
}
