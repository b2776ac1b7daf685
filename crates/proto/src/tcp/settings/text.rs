//! Settings that are written as words or numbers with a unit.

use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{InitialThreshold, InitialWindow};

impl fmt::Display for InitialWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitialWindow::Rfc5681 => f.write_str("rfc5681"),
            InitialWindow::Rfc6928 => f.write_str("rfc6928"),
            InitialWindow::Segments(n) => write_segments(f, *n),
        }
    }
}

impl FromStr for InitialWindow {
    type Err = String;
    fn from_str(text: &str) -> Result<InitialWindow, String> {
        match text {
            "rfc5681" => Ok(InitialWindow::Rfc5681),
            "rfc6928" => Ok(InitialWindow::Rfc6928),
            _ => segments(text).map(InitialWindow::Segments).ok_or_else(|| {
                format!(
                    "found \"{text}\", expected \"rfc6928\", \"rfc5681\" or a number such as \"2 segments\""
                )
            }),
        }
    }
}

impl fmt::Display for InitialThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InitialThreshold::Unlimited => f.write_str("unlimited"),
            InitialThreshold::Window => f.write_str("window"),
            InitialThreshold::Segments(n) => write_segments(f, *n),
        }
    }
}

impl FromStr for InitialThreshold {
    type Err = String;
    fn from_str(text: &str) -> Result<InitialThreshold, String> {
        match text {
            "unlimited" => Ok(InitialThreshold::Unlimited),
            "window" => Ok(InitialThreshold::Window),
            _ => segments(text).map(InitialThreshold::Segments).ok_or_else(|| {
                format!(
                    "found \"{text}\", expected \"unlimited\", \"window\" or a number such as \"20 segments\""
                )
            }),
        }
    }
}

fn write_segments(f: &mut fmt::Formatter<'_>, n: u32) -> fmt::Result {
    write!(f, "{n} segment{}", if n == 1 { "" } else { "s" })
}

fn segments(text: &str) -> Option<u32> {
    let number = text.strip_suffix("segments").or_else(|| text.strip_suffix("segment"))?;
    number.trim_end().parse().ok().filter(|n| (1..=65_535).contains(n))
}

macro_rules! serde_by_text {
    ($type:ty) => {
        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

serde_by_text!(InitialWindow);
serde_by_text!(InitialThreshold);
