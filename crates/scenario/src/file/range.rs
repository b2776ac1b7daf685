//! Ranges of values: `{ from = "1 s", to = "4 s", step = "1 s" }`.

use std::fmt;
use std::str::FromStr;

use crate::error::Fault;
use crate::tree::Kind;
use lasthop_base::{Amount, BitRate, Bytes, Duration, FromNumber, Number};
use serde::Deserialize;
use serde::de::{self, Deserializer, Visitor};

/// Maximum number of values on an axis; more are probably a mistake.
const MAX_VALUES: u64 = 10_000;

/// The keys of a range. A table with one of them at a place where no table is expected is a range.
pub(crate) const KEYS: [&str; 5] = ["from", "to", "step", "count", "scale"];

/// A range as written, with either `step` or `count`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a range such as { from = \"1 s\", to = \"4 s\", step = \"1 s\" }")]
pub(crate) struct Range {
    /// The first value.
    from: End,
    /// The last value; with a step, an upper bound.
    to: End,
    /// Increment.
    step: Option<End>,
    /// Number of values.
    count: Option<u64>,
    /// Whether `count` values have equal differences (the default) or equal ratios.
    #[serde(default)]
    scale: Scale,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Scale {
    #[default]
    Linear,
    Log,
}

/// A bound or a step: a number or a text.
#[derive(Debug)]
struct End(Kind);

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_toml().fmt(f)
    }
}

impl<'de> Deserialize<'de> for End {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<End, D::Error> {
        struct NumberOrText;
        impl<'de> Visitor<'de> for NumberOrText {
            type Value = End;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a quantity, such as \"1 s\"")
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<End, E> {
                Ok(End(Kind::Written(Amount::Whole(number.into()))))
            }
            fn visit_f64<E: de::Error>(self, number: f64) -> Result<End, E> {
                Ok(End(Kind::Written(Amount::Real(number))))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<End, E> {
                Ok(End(Kind::Text(text.to_owned())))
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<End, D::Error> {
                Number::deserialize(number).map(|number| End(Kind::Stated(number)))
            }
        }
        deserializer.deserialize_any(NumberOrText)
    }
}

/// The unit of the values.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Unit {
    Number,
    /// The unit of the key, which code does not state.
    Stated,
    Nanoseconds,
    Bytes,
    BitsPerSecond,
    /// Any other unit, such as `packets` or `%`.
    Word(String),
}

impl Range {
    /// The values from `from` to `to`.
    pub(crate) fn values(&self) -> Result<Vec<Kind>, Fault> {
        let (unit, from, to) = self.ends()?;
        let number = |index: u64, count: u64| match self.scale {
            _ if index == 0 => from,
            _ if index == count - 1 => to,
            Scale::Linear => from + (to - from) * index as f64 / (count - 1) as f64,
            // Rounded to four digits, which also hides differences between platforms.
            Scale::Log => rounded(from * libm::pow(to / from, index as f64 / (count - 1) as f64), 4),
        };
        let numbers: Vec<f64> = match (&self.step, self.count) {
            (Some(step), None) => self.steps(&unit, from, to, step)?,
            (None, Some(count)) => {
                self.check_count(count, from)?;
                (0..count).map(|index| number(index, count)).collect()
            }
            (Some(_), Some(_)) => {
                return Err(Fault::new("count", "found it together with step, expected only one of them"));
            }
            (None, None) => {
                let problem = String::from("found neither step nor count, expected one of them");
                return Err(Fault { path: Vec::new(), problem });
            }
        };
        Ok(numbers.into_iter().map(|number| unit.value(number)).collect())
    }

    /// The unit of the bounds, and their values.
    fn ends(&self) -> Result<(Unit, f64, f64), Fault> {
        let expected = "expected a number or a quantity, such as \"1 s\"";
        let unknown = || Fault::new("from", format!("found {}, {expected}", self.from));
        let (unit, from) = Unit::of(&self.from).ok_or_else(unknown)?;
        let to = self.alike(&unit, "to", &self.to)?;
        if to <= from {
            return Err(Fault::new("to", format!("found {}, expected more than {}", self.to, self.from)));
        }
        Ok((unit, from, to))
    }

    /// The value at `key`, in the same unit as `from`.
    fn alike(&self, unit: &Unit, key: &str, value: &End) -> Result<f64, Fault> {
        let problem = || format!("found {value}, expected the same unit as {}", self.from);
        unit.read(value).ok_or_else(|| Fault::new(key, problem()))
    }

    fn steps(&self, unit: &Unit, from: f64, to: f64, step: &End) -> Result<Vec<f64>, Fault> {
        if self.scale == Scale::Log {
            return Err(Fault::new("scale", "found \"log\" with step, expected it with count"));
        }
        let length = self.alike(unit, "step", step)?;
        if length <= 0.0 {
            return Err(Fault::new("step", format!("found {step}, expected more than zero")));
        }
        // A step that divides the range up to a rounding error counts as dividing it.
        let last = ((to - from) / length + 1e-6).floor();
        if last >= MAX_VALUES as f64 {
            let problem = format!("found {step}, which makes more than {MAX_VALUES} values");
            return Err(Fault::new("step", problem));
        }
        Ok((0..=last as u64).map(|index| from + index as f64 * length).collect())
    }

    fn check_count(&self, count: u64, from: f64) -> Result<(), Fault> {
        if !(2..=MAX_VALUES).contains(&count) {
            return Err(Fault::new("count", format!("found {count}, expected 2 to {MAX_VALUES}")));
        }
        if self.scale == Scale::Log && from <= 0.0 {
            let problem = format!("found {} on a logarithmic scale, expected more than zero", self.from);
            return Err(Fault::new("from", problem));
        }
        Ok(())
    }
}

impl Unit {
    /// The unit of `end`, and its number.
    fn of(end: &End) -> Option<(Unit, f64)> {
        let word = match &end.0 {
            Kind::Text(text) => split(text)?.1.to_owned(),
            Kind::Stated(Number { unit: Some(unit), .. }) => unit.clone(),
            _ => String::new(),
        };
        let units = [
            Unit::Number,
            Unit::Stated,
            Unit::Nanoseconds,
            Unit::Bytes,
            Unit::BitsPerSecond,
            Unit::Word(word),
        ];
        units.into_iter().find_map(|unit| unit.read(end).map(|number| (unit, number)))
    }

    /// `end` as a number of this unit.
    fn read(&self, end: &End) -> Option<f64> {
        match (self, &end.0) {
            (Unit::Number, Kind::Written(number))
            | (Unit::Stated, Kind::Stated(Number { amount: number, unit: None })) => {
                Some(number.real()).filter(|number| number.is_finite())
            }
            (Unit::Nanoseconds, end) => quantity(end).map(|span: Duration| span.as_nanos() as f64),
            (Unit::Bytes, end) => quantity(end).map(|Bytes(size)| size as f64),
            (Unit::BitsPerSecond, end) => quantity(end).map(|rate: BitRate| rate.as_bps() as f64),
            (Unit::Word(word), Kind::Text(text)) => {
                split(text).filter(|(_, unit)| unit == word).map(|(number, _)| number)
            }
            (Unit::Word(word), Kind::Stated(Number { amount, unit: Some(unit) })) => {
                (unit == word).then(|| amount.real())
            }
            _ => None,
        }
    }

    /// `number` of this unit, rounded to the unit's precision.
    fn value(&self, number: f64) -> Kind {
        let tidy = rounded(number, 12);
        // Fractional numbers may be stated as whole ones, but not vice versa.
        let tidy = if tidy.fract() == 0.0 { Amount::Whole(tidy as i128) } else { Amount::Real(tidy) };
        let whole = Amount::Whole(number.round().max(0.0) as i128);
        let quantity = |amount, unit: &str| Kind::Stated(Number { amount, unit: Some(unit.to_owned()) });
        match self {
            Unit::Number => Kind::Written(tidy),
            Unit::Stated => Kind::Stated(Number { amount: tidy, unit: None }),
            Unit::Nanoseconds => quantity(whole, "ns"),
            Unit::Bytes => quantity(whole, "B"),
            Unit::BitsPerSecond => quantity(Amount::Whole(number.round().max(1.0) as i128), "bps"),
            Unit::Word(word) => quantity(tidy, word),
        }
    }
}

/// The quantity that a text or a number with a unit is.
fn quantity<Q: FromStr + FromNumber>(end: &Kind) -> Option<Q> {
    match end {
        Kind::Text(text) => text.parse().ok(),
        Kind::Stated(number @ Number { unit: Some(_), .. }) => Q::from_number(number).ok(),
        _ => None,
    }
}

/// The number and the unit of a quantity.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-')))?;
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

/// `number` rounded to `digits` significant digits.
fn rounded(number: f64, digits: usize) -> f64 {
    format!("{number:.*e}", digits - 1).parse().expect("a number is written as a number")
}
