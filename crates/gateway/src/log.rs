//! Events as lines of JSON on standard error.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

/// Logs an event with its facts.
pub(crate) fn event(name: &str, facts: Value) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut line = Map::new();
    line.insert(String::from("time_s"), json!((now.as_secs_f64() * 1000.0).round() / 1000.0));
    line.insert(String::from("event"), json!(name));
    if let Value::Object(facts) = facts {
        line.extend(facts);
    }
    // Whoever reads it may be gone.
    let _ = writeln!(io::stderr(), "{}", Value::Object(line));
}
