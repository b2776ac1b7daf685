//! Text formats of settings: words, or numbers with a unit.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use lasthop_base::{Bytes, inline_schema, schema};
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
    type Err = String;
    fn from_str(text: &str) -> Result<InitialWindow, String> {
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
    type Err = String;
    fn from_str(text: &str) -> Result<InitialThreshold, String> {
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
    type Err = String;
    fn from_str(text: &str) -> Result<WindowSize, String> {
        if text.contains("packet") {
            return count(text, "packet", WINDOW).map(WindowSize::Packets);
        }
        text.parse().map(WindowSize::Bytes).map_err(|error| {
            // The error of a size mentions sizes only, so the expectation is replaced.
            let complaint = format!("{error}");
            let (found, rest) = complaint.split_once(", expected ").unwrap_or((&complaint, ""));
            let near = rest.find("; did you mean ").map_or("", |hint| &rest[hint..]);
            format!("{found}, expected {WINDOW}{near}")
        })
    }
}

fn write_count(f: &mut fmt::Formatter<'_>, n: u32, of: &str) -> fmt::Result {
    write!(f, "{n} {of}{}", if n == 1 { "" } else { "s" })
}

/// Parses a count such as `"2 segments"`, where `of` is `"segment"`.
///
/// # Errors
/// The bounds, if the count is out of range; `expected`, if it is none.
fn count(text: &str, of: &str, expected: &str) -> Result<u32, String> {
    let number = text.strip_suffix('s').unwrap_or(text).strip_suffix(of);
    match number.and_then(|number| number.trim_end().parse::<u32>().ok()) {
        Some(n @ 1..=65_535) => Ok(n),
        Some(_) => Err(format!("found \"{text}\", expected 1 to 65535 {of}s")),
        None => Err(format!("found \"{text}\", expected {expected}")),
    }
}

macro_rules! serde_by_text {
    ($type:ty, $expecting:expr, |$generator:ident| $schema:expr) => {
        inline_schema!($type, |$generator| $schema);

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_any(Text)
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
