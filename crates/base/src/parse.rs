//! Parsing and formatting of numbers with units.

use alloc::format;
use core::fmt;

use schemars::Schema;

use crate::schema;
use crate::units::UnitError;

/// A physical quantity: its name for error messages, and its units with their factors to the base unit.
#[derive(Clone, Copy)]
pub(crate) struct Quantity<'a> {
    pub(crate) what: &'a str,
    pub(crate) example: &'a str,
    pub(crate) units: &'a [(&'a str, f64)],
}

impl Quantity<'_> {
    /// The JSON Schema of a text with this quantity, whose number may begin with `sign`, a regular expression.
    pub(crate) fn schema(self, sign: &str) -> Schema {
        let Quantity { what, example, units } = self;
        let unit = schema::alternatives(units.iter().map(|(unit, _)| *unit));
        let title = what.strip_prefix("a ").unwrap_or(what);
        schema::text(title, &format!("{sign}{}\\s*({unit})", schema::NUMBER), &[example])
    }
}

pub(crate) fn unexpected(found: &str, expected: &str) -> UnitError {
    UnitError(format!("found \"{found}\", expected {expected}"))
}

/// Parses a decimal number, an optional space and a unit, such as `"30 ms"`, into a whole number of base
/// units.
pub(crate) fn quantity(text: &str, quantity: Quantity<'_>) -> Result<u64, UnitError> {
    let Quantity { what, example, .. } = quantity;
    let (number, factor) = number_and_factor(text, quantity)?;
    if number.is_sign_negative() && number != 0.0 {
        return Err(unexpected(text, &format!("{what} that is not negative, such as \"{example}\"")));
    }
    let value = number * factor;
    if value >= u64::MAX as f64 {
        return Err(too_large(text, quantity));
    }
    Ok(libm::round(value) as u64)
}

/// As [`quantity`], for quantities that may be negative or fractional.
pub(crate) fn signed_quantity(text: &str, quantity: Quantity<'_>) -> Result<f64, UnitError> {
    let (number, factor) = number_and_factor(text, quantity)?;
    let value = number * factor;
    if value.is_finite() { Ok(value) } else { Err(too_large(text, quantity)) }
}

fn too_large(text: &str, Quantity { what, example, .. }: Quantity<'_>) -> UnitError {
    unexpected(text, &format!("{what} within range, such as \"{example}\""))
}

/// The number and the factor of its unit to the base unit.
fn number_and_factor(text: &str, quantity: Quantity<'_>) -> Result<(f64, f64), UnitError> {
    let Quantity { what, example, units } = quantity;
    let trimmed = text.trim();
    let is_numeric = |c: char| c.is_ascii_digit() || matches!(c, '.' | '+' | '-');
    let split = trimmed.find(|c| !is_numeric(c)).unwrap_or(trimmed.len());
    let (number, unit) = (&trimmed[..split], trimmed[split..].trim_start());
    let Ok(number) = number.parse::<f64>() else {
        return Err(unexpected(text, &format!("{what} such as \"{example}\"")));
    };
    if unit.is_empty() {
        return Err(UnitError(format!(
            "found \"{text}\" without a unit, expected {what} such as \"{example}\""
        )));
    }
    let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) else {
        let hint = nearest(unit, units.iter().map(|(name, _)| *name))
            .map(|near| format!("; did you mean \"{number} {near}\"?"));
        return Err(UnitError(format!(
            "found \"{text}\", expected {what} such as \"{example}\"{}",
            hint.unwrap_or_default()
        )));
    };
    Ok((number, factor))
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
