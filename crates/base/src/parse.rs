//! Parsing and formatting of numbers with units.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use schemars::Schema;

use crate::number::{Amount, Found, Number, UnitError};
use crate::schema;

/// A physical quantity: its name for error messages, its units with their factors to the base unit, and that of the SI
/// unit.
#[derive(Clone, Copy)]
pub(crate) struct Quantity<'a> {
    pub(crate) what: &'a str,
    pub(crate) example: &'a str,
    pub(crate) units: &'a [(&'a str, f64)],
    pub(crate) si: f64,
}

impl Quantity<'_> {
    /// The JSON Schema of a text with this quantity, whose number may begin with `sign`, a regular expression.
    pub(crate) fn schema(self, sign: &str) -> Schema {
        let Quantity { what, example, units, .. } = self;
        let unit = schema::alternatives(units.iter().map(|(unit, _)| *unit));
        let title = what.strip_prefix("a ").unwrap_or(what);
        schema::text(title, &format!("{sign}{}\\s*({unit})", schema::NUMBER), &[example])
    }

    fn error(self, found: Found<'_>, which: &str) -> UnitError {
        let Quantity { what, example, .. } = self;
        UnitError::new(found, format!("{what}{which} such as \"{example}\""))
    }

    /// The factor of `unit` to the base unit.
    fn factor(self, found: Found<'_>, number: &str, unit: &str) -> Result<f64, UnitError> {
        let named = |(name, factor): &(&str, f64)| (*name == unit).then_some(*factor);
        self.units.iter().find_map(named).ok_or_else(|| {
            let near = nearest(unit, self.units.iter().map(|(name, _)| *name));
            self.error(found, "").near(near.map(|near| format!("{number} {near}")))
        })
    }

    /// A whole number of base units, from a number and the factor of its unit.
    fn whole(self, found: Found<'_>, number: f64, factor: f64) -> Result<u64, UnitError> {
        if number.is_sign_negative() && number != 0.0 {
            return Err(self.error(found, " that is not negative,"));
        }
        let value = number * factor;
        if value.is_nan() || value >= u64::MAX as f64 {
            return Err(self.error(found, " within range,"));
        }
        Ok(libm::round(value) as u64)
    }
}

/// Parses a decimal number, an optional space and a unit, such as `"30 ms"`, into a whole number of base
/// units.
pub(crate) fn quantity(text: &str, quantity: Quantity<'_>) -> Result<u64, UnitError> {
    let (number, factor) = number_and_factor(text, quantity)?;
    quantity.whole(Found::Text(text), number, factor)
}

/// As [`quantity`], for quantities that may be negative or fractional.
pub(crate) fn signed_quantity(text: &str, quantity: Quantity<'_>) -> Result<f64, UnitError> {
    let (number, factor) = number_and_factor(text, quantity)?;
    signed(Found::Text(text), number * factor, quantity)
}

/// As [`quantity`], of a number that code states.
pub(crate) fn stated(number: &Number, quantity: Quantity<'_>) -> Result<u64, UnitError> {
    let (found, factor) = (Found::Number(number), stated_factor(number, quantity)?);
    match number.amount {
        // Exact beyond 2^53.
        Amount::Whole(amount @ 0..) if factor == 1.0 => {
            u64::try_from(amount).map_err(|_| quantity.error(found, " within range,"))
        }
        amount => quantity.whole(found, amount.real(), factor),
    }
}

/// As [`signed_quantity`], of a number that code states.
pub(crate) fn signed_stated(number: &Number, quantity: Quantity<'_>) -> Result<f64, UnitError> {
    let factor = stated_factor(number, quantity)?;
    signed(Found::Number(number), number.amount.real() * factor, quantity)
}

fn stated_factor(number: &Number, quantity: Quantity<'_>) -> Result<f64, UnitError> {
    let amount = || number.amount.to_string();
    let factor = |unit: &String| quantity.factor(Found::Number(number), &amount(), unit);
    number.unit.as_ref().map_or(Ok(quantity.si), factor)
}

fn signed(found: Found<'_>, value: f64, quantity: Quantity<'_>) -> Result<f64, UnitError> {
    if value.is_finite() { Ok(value) } else { Err(quantity.error(found, " within range,")) }
}

/// The number and the factor of its unit to the base unit.
fn number_and_factor(text: &str, quantity: Quantity<'_>) -> Result<(f64, f64), UnitError> {
    let (found, trimmed) = (Found::Text(text), text.trim());
    let is_numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
    let split = trimmed.find(|c| !is_numeric(c)).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    let Ok(number) = number.parse::<f64>() else { return Err(quantity.error(found, "")) };
    if unit.is_empty() {
        return Err(quantity.error(found, "").without_unit());
    }
    Ok((number, quantity.factor(found, &format!("{number}"), unit)?))
}

/// The candidate nearest to `word`, at most one letter apart (ignoring case).
fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distance = |candidate: &str| {
        let same = |(a, b): (char, char)| a.eq_ignore_ascii_case(&b);
        let prefix = word.chars().zip(candidate.chars()).take_while(|&p| same(p)).count();
        let suffix = word.chars().rev().zip(candidate.chars().rev()).take_while(|&p| same(p)).count();
        let longer = word.chars().count().max(candidate.chars().count());
        longer.saturating_sub(prefix + suffix)
    };
    candidates.map(|c| (distance(c), c)).filter(|&(d, _)| d <= 1).min_by_key(|&(d, _)| d).map(|(_, c)| c)
}

/// Formats `value` in the largest of `units` (sorted in descending order) that represents it exactly with
/// three decimals.
pub(crate) fn write_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(u64, &str)]) -> fmt::Result {
    let exact = |scale: u64| scale < 1000 || value.is_multiple_of(scale / 1000);
    let fits = |&&(scale, _): &&(u64, &str)| value >= scale && exact(scale);
    let Some(&(scale, unit)) = units.iter().find(fits) else {
        return write!(f, "{value} {}", if value == 0 { units[0].1 } else { units[units.len() - 1].1 });
    };
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return write!(f, "{whole} {unit}");
    }
    let decimals = format!("{:03}", rest * 1000 / scale);
    write!(f, "{whole}.{} {unit}", decimals.trim_end_matches('0'))
}
