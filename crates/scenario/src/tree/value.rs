//! Typed values of settings: what code states in place of text, and a scenario in numbers.

use std::fmt;

use indexmap::IndexMap;
use lasthop_base::{Amount, Number};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::node::{Kind, Node, ReadError};
use super::to_value::ToValue;

/// The value of a setting. A number is in the SI unit of its key (seconds, bytes, bits per second, watts) or has a unit of
/// its own; a text is what a file has there, quantities included.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// A table.
    Table(IndexMap<String, Value>),
}

/// A change of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The value at a dotted path of keys, or `None` to remove what is stated there.
    Key(String, Option<Value>),
    /// An assignment in the syntax of `--set`, such as `radio.rate=2 Mbps`.
    Assignment(String),
}

impl Value {
    /// The number `amount` of `unit`.
    pub fn quantity(amount: Amount, unit: &str) -> Value {
        Value::Number(Number { amount, unit: Some(unit.to_owned()) })
    }

    /// What `value` serializes to, with quantities as numbers in the smallest unit that it can represent.
    pub(crate) fn of(value: &impl Serialize) -> Value {
        Value::serialized(value, false)
    }

    fn serialized(value: &impl Serialize, readable: bool) -> Value {
        let value = value.serialize(ToValue { readable }).expect("a scenario has plain values");
        value.unwrap_or(Value::Table(IndexMap::new()))
    }

    /// Deserializes it as a `T`.
    pub(crate) fn read<T: DeserializeOwned>(self) -> Result<T, ReadError> {
        T::deserialize(&Node::of(self, &mut || 0..0))
    }

    fn into_toml(self) -> toml::Value {
        Kind::of(self, &mut || 0..0).to_toml()
    }

    /// The keys of a table; none of another value.
    pub(crate) fn into_table(self) -> IndexMap<String, Value> {
        match self {
            Value::Table(table) => table,
            _ => IndexMap::new(),
        }
    }

    /// The value at a dotted path of keys.
    pub fn at(&self, path: &str) -> Option<&Value> {
        path.split('.').try_fold(self, |value, key| match value {
            Value::Table(table) => table.get(key),
            _ => None,
        })
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(Number { amount: Amount::Whole(value.into()), unit: None })
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Number(Number { amount: Amount::Real(value), unit: None })
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl<V: Into<Value>> From<Vec<V>> for Value {
    fn from(values: Vec<V>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

/// What `value` serializes to in a file.
///
/// # Panics
/// If it is not a table of plain values.
pub(crate) fn to_toml(value: &impl Serialize) -> toml::Table {
    match Value::serialized(value, true).into_toml() {
        toml::Value::Table(table) => table,
        other => panic!("expected a table, found {other}"),
    }
}

/// In the syntax of `--set`: strings without quotes, all else as TOML.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(text),
            Value::Number(number) => number.fmt(f),
            value => value.clone().into_toml().fmt(f),
        }
    }
}
