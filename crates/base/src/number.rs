//! Numbers that code states in place of texts with units, and what they are in serde's data model.
//!
//! A person writes a quantity as text, `"30 ms"`. Code states a [`Number`]: in the SI unit of the key, or with a unit of
//! its own. A format for code presents it to a visitor as a newtype struct, which no text has, so that a bare number in a
//! file remains an error. A quantity is serialized as text to formats that people read, and as a number to others.

use alloc::string::String;
use core::fmt;

use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;

use crate::time::Duration;
use crate::units::{BitRate, Bytes, Power, UnitError};

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

/// As a person would write it, if it is in the smallest unit of its kind.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |amount: i128| u64::try_from(amount).ok();
        match (self.amount, self.unit.as_deref()) {
            (amount, None) => amount.fmt(f),
            (amount, Some("%")) => write!(f, "{amount}%"),
            (Amount::Whole(ns), Some("ns")) => Duration::from_nanos(exact(ns).unwrap_or(u64::MAX)).fmt(f),
            (Amount::Whole(bps), Some("bps")) => match exact(bps).and_then(BitRate::from_bps) {
                Some(rate) => rate.fmt(f),
                None => write!(f, "{bps} bps"),
            },
            (Amount::Whole(uw), Some("uW")) => Power::from_microwatts(exact(uw).unwrap_or(u64::MAX)).fmt(f),
            (amount, Some(unit)) => write!(f, "{amount} {unit}"),
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

/// The number of a text in the SI unit of its kind, and that unit: `s`, `B`, `bps`, or empty for a plain number or a
/// percentage. Of any other unit, such as `packets`, it is the word in the singular. `None` if the text is no quantity.
pub fn parse(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-'));
    if !is_number {
        return None;
    }
    if let Ok(number) = text.parse() {
        return Some((number, String::new()));
    }
    let si = |amount, unit: &str| Some((amount, String::from(unit)));
    if let Ok(span) = text.parse::<Duration>() {
        return si(span.as_secs_f64(), "s");
    }
    if let Ok(Bytes(size)) = text.parse() {
        return si(size as f64, "B");
    }
    if let Ok(rate) = text.parse::<BitRate>() {
        return si(rate.as_bps() as f64, "bps");
    }
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))?;
    let (number, unit) = (text[..end].parse::<f64>().ok()?, text[end..].trim_start());
    match unit {
        "%" => si(number / 100.0, ""),
        word => si(number, word.strip_suffix('s').unwrap_or(word)),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn stated(amount: Amount, unit: &str) -> Number {
        Number { amount, unit: Some(String::from(unit)) }
    }

    #[test]
    fn a_number_is_what_its_text_is() {
        let of = |amount, unit| Duration::from_number(&stated(amount, unit));
        assert_eq!(of(Amount::Real(43.1), "ms"), "43.1 ms".parse());
        assert_eq!(of(Amount::Whole(i128::from(u64::MAX - 1)), "ns"), Ok(Duration::from_nanos(u64::MAX - 1)));
        let in_si = Number { amount: Amount::Real(0.0431), unit: None };
        assert_eq!(Duration::from_number(&in_si), "43.1 ms".parse());
        assert_eq!(Power::from_number(&Number { amount: Amount::Real(1.3), unit: None }), "1.3 W".parse());
        for unit in ["", "m", "B", "packets"] {
            let message = of(Amount::Whole(3), unit).expect_err(unit).to_string();
            assert!(message.starts_with(&alloc::format!("found 3 {unit}, expected a duration")), "{message}");
        }
        assert!(of(Amount::Whole(i128::MAX), "ns").is_err());
        assert!(of(Amount::Real(f64::INFINITY), "s").is_err());
    }

    #[test]
    fn an_exact_number_displays_as_people_write_it() {
        let text = |amount, unit| stated(Amount::Whole(amount), unit).to_string();
        assert_eq!(
            [
                text(1_500_000_000, "ns"),
                text(19_200, "bps"),
                text(900_000, "uW"),
                text(20, "packets"),
                text(5, "%")
            ],
            ["1.5 s", "19.2 kbps", "900 mW", "20 packets", "5%"]
        );
    }

    #[test]
    fn texts_of_quantities_have_numbers() {
        let known = |number, unit: &str| Some((number, String::from(unit)));
        assert_eq!(parse("19.2 kbps"), known(19_200.0, "bps"));
        assert_eq!(parse("4KiB"), known(4_096.0, "B"));
        assert_eq!(parse("1.1 ms"), known(0.0011, "s"));
        assert_eq!(parse("1e-6"), known(1e-6, ""));
        assert_eq!(parse("2%"), known(0.02, ""));
        assert_eq!((parse("1 segment"), parse("20 packets")), (known(1.0, "segment"), known(20.0, "packet")));
        assert_eq!(parse("-2.5 dB"), known(-2.5, "dB"));
        assert_eq!(
            [parse("tahoe"), parse("inf"), parse(""), parse("{ from = 1 }")],
            [None, None, None, None]
        );
    }
}
