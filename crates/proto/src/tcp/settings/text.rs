//! Text formats of settings: words, or numbers with a unit.

use alloc::format;
use core::fmt;
use core::str::FromStr;

use lasthop_base::{Amount, Bytes, FromNumber, Number, UnitError, inline_schema, number, schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Serialize};

use super::{InitialThreshold, InitialWindow, WindowSize};

const INITIAL_WINDOW: &str = "\"rfc6928\", \"rfc5681\" or a number such as \"2 segments\"";
const INITIAL_THRESHOLD: &str = "\"unlimited\", \"window\" or a number such as \"20 segments\"";
const WINDOW: &str = "a size such as \"64 KiB\", or a number such as \"10 packets\"";

impl fmt::Display for InitialWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitialWindow::Rfc5681 => f.write_str("rfc5681"),
            InitialWindow::Rfc6928 => f.write_str("rfc6928"),
            InitialWindow::Segments(n) => write_count(f, *n, "segment"),
        }
    }
}

impl FromStr for InitialWindow {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<InitialWindow, UnitError> {
        match text {
            "rfc5681" => Ok(InitialWindow::Rfc5681),
            "rfc6928" => Ok(InitialWindow::Rfc6928),
            _ => count(text, "segment", INITIAL_WINDOW).map(InitialWindow::Segments),
        }
    }
}

impl fmt::Display for InitialThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitialThreshold::Unlimited => f.write_str("unlimited"),
            InitialThreshold::Window => f.write_str("window"),
            InitialThreshold::Segments(n) => write_count(f, *n, "segment"),
        }
    }
}

impl FromStr for InitialThreshold {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<InitialThreshold, UnitError> {
        match text {
            "unlimited" => Ok(InitialThreshold::Unlimited),
            "window" => Ok(InitialThreshold::Window),
            _ => count(text, "segment", INITIAL_THRESHOLD).map(InitialThreshold::Segments),
        }
    }
}

impl fmt::Display for WindowSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowSize::Bytes(size) => write!(f, "{size}"),
            WindowSize::Packets(n) => write_count(f, *n, "packet"),
        }
    }
}

impl FromStr for WindowSize {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<WindowSize, UnitError> {
        if text.contains("packet") {
            return count(text, "packet", WINDOW).map(WindowSize::Packets);
        }
        text.parse().map(WindowSize::Bytes).map_err(|error: UnitError| error.expecting(WINDOW))
    }
}

impl FromNumber for InitialWindow {
    fn from_number(number: &Number) -> Result<InitialWindow, UnitError> {
        stated_count(number, "segment", INITIAL_WINDOW).map(InitialWindow::Segments)
    }
}

impl FromNumber for InitialThreshold {
    fn from_number(number: &Number) -> Result<InitialThreshold, UnitError> {
        stated_count(number, "segment", INITIAL_THRESHOLD).map(InitialThreshold::Segments)
    }
}

impl InitialWindow {
    /// The amount and its unit, if it is a number.
    fn number(&self) -> Option<(u64, &'static str)> {
        match self {
            InitialWindow::Segments(n) => Some((u64::from(*n), "segments")),
            InitialWindow::Rfc5681 | InitialWindow::Rfc6928 => None,
        }
    }
}

impl InitialThreshold {
    /// As [`InitialWindow::number`].
    fn number(&self) -> Option<(u64, &'static str)> {
        match self {
            InitialThreshold::Segments(n) => Some((u64::from(*n), "segments")),
            InitialThreshold::Unlimited | InitialThreshold::Window => None,
        }
    }
}

impl WindowSize {
    /// As [`InitialWindow::number`].
    fn number(&self) -> Option<(u64, &'static str)> {
        match self {
            WindowSize::Bytes(size) => Some((size.0, "B")),
            WindowSize::Packets(n) => Some((u64::from(*n), "packets")),
        }
    }
}

/// A number of packets or a size; a bare number may be either, and is refused.
impl FromNumber for WindowSize {
    fn from_number(number: &Number) -> Result<WindowSize, UnitError> {
        match number.unit.as_deref() {
            None => Err(UnitError::of_number(number, WINDOW)),
            Some("packet" | "packets") => stated_count(number, "packet", WINDOW).map(WindowSize::Packets),
            Some(_) => {
                Bytes::from_number(number).map(WindowSize::Bytes).map_err(|error| error.expecting(WINDOW))
            }
        }
    }
}

fn write_count(f: &mut fmt::Formatter<'_>, n: u32, of: &str) -> fmt::Result {
    write!(f, "{n} {of}{}", if n == 1 { "" } else { "s" })
}

/// Parses a count such as `"2 segments"`, where `of` is `"segment"`.
///
/// # Errors
/// The bounds, if the count is out of range; `expected`, if it is none.
fn count(text: &str, of: &str, expected: &str) -> Result<u32, UnitError> {
    let number = text.strip_suffix('s').unwrap_or(text).strip_suffix(of);
    match number.and_then(|number| number.trim_end().parse::<u32>().ok()) {
        Some(n @ 1..=65_535) => Ok(n),
        Some(_) => Err(UnitError::of_text(text, format!("1 to 65535 {of}s"))),
        None => Err(UnitError::of_text(text, expected)),
    }
}

/// As [`count`], of a number that code states.
fn stated_count(number: &Number, of: &str, expected: &str) -> Result<u32, UnitError> {
    let is_count = number.unit.as_deref().is_none_or(|unit| unit.strip_suffix('s').unwrap_or(unit) == of);
    match number.amount {
        Amount::Whole(n @ 1..=65_535) if is_count => Ok(n as u32),
        Amount::Whole(_) if is_count => Err(UnitError::of_number(number, format!("1 to 65535 {of}s"))),
        _ => Err(UnitError::of_number(number, expected)),
    }
}

macro_rules! serde_by_text {
    ($type:ty, $expecting:expr, |$generator:ident| $schema:expr) => {
        inline_schema!($type, |$generator| $schema);

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self.number() {
                    Some((amount, unit)) if !serializer.is_human_readable() => {
                        number::write(Amount::Whole(amount.into()), Some(unit), serializer)
                    }
                    _ => serializer.collect_str(self),
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Stated;
                impl<'de> Visitor<'de> for Stated {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_newtype_struct<D: serde::Deserializer<'de>>(
                        self,
                        number: D,
                    ) -> Result<$type, D::Error> {
                        number::read(number)
                    }
                }
                deserializer.deserialize_any(Stated)
            }
        }
    };
}

serde_by_text!(InitialWindow, INITIAL_WINDOW, |_generator| schema::any([
    schema::words(&["rfc6928", "rfc5681"]),
    schema::count("segment", "2 segments"),
]));
serde_by_text!(InitialThreshold, INITIAL_THRESHOLD, |_generator| schema::any([
    schema::words(&["unlimited", "window"]),
    schema::count("segment", "20 segments"),
]));
serde_by_text!(WindowSize, WINDOW, |generator| schema::any([
    generator.subschema_for::<Bytes>(),
    schema::count("packet", "10 packets"),
]));
