//! Quantities whose kind only their unit tells: their numbers, and their text.

use alloc::string::String;
use core::fmt;

use crate::number::{Amount, Number};
use crate::time::Duration;
use crate::units::{BitRate, Bytes, Power};

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

/// The number of a text in the SI unit of its kind, and that unit: `s`, `B`, `bps`, or empty for a plain number or a
/// percentage. Of any other unit, such as `packets`, it is the word in the singular. `None` if the text is no quantity.
pub fn parse_quantity(text: &str) -> Option<(f64, String)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::FromNumber;
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
        assert_eq!(parse_quantity("19.2 kbps"), known(19_200.0, "bps"));
        assert_eq!(parse_quantity("4KiB"), known(4_096.0, "B"));
        assert_eq!(parse_quantity("1.1 ms"), known(0.0011, "s"));
        assert_eq!(parse_quantity("1e-6"), known(1e-6, ""));
        assert_eq!(parse_quantity("2%"), known(0.02, ""));
        assert_eq!(
            (parse_quantity("1 segment"), parse_quantity("20 packets")),
            (known(1.0, "segment"), known(20.0, "packet"))
        );
        assert_eq!(parse_quantity("-2.5 dB"), known(-2.5, "dB"));
        assert_eq!(
            [
                parse_quantity("tahoe"),
                parse_quantity("inf"),
                parse_quantity(""),
                parse_quantity("{ from = 1 }")
            ],
            [None, None, None, None]
        );
    }
}
