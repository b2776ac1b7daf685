//! Numbers that code states in place of texts with units, and what they are in serde's data model.
//!
//! A person writes a quantity as text, `"30 ms"`. Code states a [`Number`]: in the SI unit of the key, or with a unit of
//! its own. A format for code presents it to a visitor as a newtype struct, which no text has, so that a bare number in a
//! file remains an error. A quantity is serialized as text to formats that people read, and as a number to others.

use alloc::string::{String, ToString};
use core::fmt;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;

/// A number, and its unit if it is not the SI unit of its key: seconds, bytes, bits per second, watts.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// How many.
    pub amount: Amount,
    /// Any unit that texts have, such as `ms` or `packets`.
    pub unit: Option<String>,
}

/// A whole number, which is exact, or a real one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A whole number.
    Whole(i128),
    /// A real number.
    Real(f64),
}

impl Amount {
    /// The nearest real number.
    pub fn real(self) -> f64 {
        match self {
            Amount::Whole(amount) => amount as f64,
            Amount::Real(amount) => amount,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Whole(amount) => amount.fmt(f),
            Amount::Real(amount) => amount.fmt(f),
        }
    }
}

impl Number {
    /// The same quantity in the SI unit of its key: nanoseconds become seconds, microwatts watts. Other units are those that
    /// a key needs, such as packets.
    pub fn in_si(self) -> Number {
        let scaled = |by: f64| Number { amount: Amount::Real(self.amount.real() / by), unit: None };
        match self.unit.as_deref() {
            Some("ns") => scaled(1e9),
            Some("uW") => scaled(1e6),
            _ => self,
        }
    }
}

/// What was found in place of a quantity.
#[derive(Clone, Copy)]
pub(crate) enum Found<'a> {
    Text(&'a str),
    Number(&'a Number),
}

impl fmt::Display for Found<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Text(text) => write!(f, "\"{text}\""),
            Found::Number(number) => number.fmt(f),
        }
    }
}

/// An invalid quantity: what was found, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    found: String,
    expected: String,
    near: Option<String>,
}

impl UnitError {
    /// The error for `found`, in quotes if it is text.
    pub(crate) fn new(found: Found<'_>, expected: impl Into<String>) -> UnitError {
        UnitError { found: found.to_string(), expected: expected.into(), near: None }
    }

    /// The error for a number that code states.
    pub fn of_number(number: &Number, expected: impl Into<String>) -> UnitError {
        UnitError::new(Found::Number(number), expected)
    }

    /// The error for a text.
    pub fn of_text(text: &str, expected: impl Into<String>) -> UnitError {
        UnitError::new(Found::Text(text), expected)
    }

    /// The same error, where something else may stand besides the quantity.
    pub fn expecting(self, expected: impl Into<String>) -> UnitError {
        UnitError { expected: expected.into(), ..self }
    }

    /// The same error with the most similar quantity.
    pub(crate) fn near(self, near: Option<String>) -> UnitError {
        UnitError { near, ..self }
    }

    /// The same error of a number without a unit.
    pub(crate) fn without_unit(self) -> UnitError {
        UnitError { found: self.found + " without a unit", ..self }
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnitError { found, expected, near } = self;
        write!(f, "found {found}, expected {expected}")?;
        near.iter().try_for_each(|near| write!(f, "; did you mean \"{near}\"?"))
    }
}

impl core::error::Error for UnitError {}

/// A quantity that code may state as a number.
pub trait FromNumber: Sized {
    /// The quantity.
    ///
    /// # Errors
    /// If the number has another unit, or is out of range.
    fn from_number(number: &Number) -> Result<Self, UnitError>;
}

/// Reads a quantity from what [`Visitor::visit_newtype_struct`] gets.
///
/// # Errors
/// If the number is no such quantity.
pub fn read<'de, Q: FromNumber, D: Deserializer<'de>>(number: D) -> Result<Q, D::Error> {
    Q::from_number(&Number::deserialize(number)?).map_err(de::Error::custom)
}

/// The name of the enum as which a number with a unit is serialized; the unit is the variant.
pub const NAME: &str = "$lasthop_base::Number";

/// Serializes `amount` for a format that people do not read, in `unit` if that is not the SI unit of every such quantity.
///
/// # Errors
/// Those of the serializer.
pub fn write<S: Serializer>(amount: Amount, unit: Option<&'static str>, to: S) -> Result<S::Ok, S::Error> {
    match (amount, unit) {
        (Amount::Whole(amount), Some(unit)) => to.serialize_newtype_variant(NAME, 0, unit, &amount),
        (Amount::Real(amount), Some(unit)) => to.serialize_newtype_variant(NAME, 0, unit, &amount),
        (Amount::Whole(amount), None) => to.serialize_i128(amount),
        (Amount::Real(amount), None) => to.serialize_f64(amount),
    }
}

/// From a number, or from a pair of a number and its unit.
impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Number, D::Error> {
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a number and its unit")
            }
            fn visit_i64<E: de::Error>(self, amount: i64) -> Result<Number, E> {
                self.visit_i128(amount.into())
            }
            fn visit_u64<E: de::Error>(self, amount: u64) -> Result<Number, E> {
                self.visit_i128(amount.into())
            }
            fn visit_i128<E: de::Error>(self, amount: i128) -> Result<Number, E> {
                Ok(Number { amount: Amount::Whole(amount), unit: None })
            }
            fn visit_f64<E: de::Error>(self, amount: f64) -> Result<Number, E> {
                Ok(Number { amount: Amount::Real(amount), unit: None })
            }
            fn visit_seq<S: SeqAccess<'de>>(self, mut pair: S) -> Result<Number, S::Error> {
                let missing = |length| de::Error::invalid_length(length, &Stated);
                let Number { amount, .. } = pair.next_element()?.ok_or_else(|| missing(0))?;
                let unit: String = pair.next_element()?.ok_or_else(|| missing(1))?;
                Ok(Number { amount, unit: Some(unit) })
            }
        }
        deserializer.deserialize_any(Stated)
    }
}
