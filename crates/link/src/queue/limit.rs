//! Drop-tail: the capacity of a queue, and how scenario files write it.

use std::fmt;
use std::str::FromStr;

use lasthop_base::{Bytes, UnitError, inline_schema, schema};
use serde::de::{Deserializer, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize, de};

/// Capacity of a drop-tail queue before a link, not counting the packet in transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// No limit.
    #[default]
    Unlimited,
    /// At most this many packets.
    Packets(u32),
    /// At most this many bytes.
    Bytes(Bytes),
}

impl QueueLimit {
    /// Whether a packet of `size` fits behind `packets` queued packets of `waiting` bytes in total.
    pub fn admits(self, packets: usize, waiting: Bytes, size: Bytes) -> bool {
        match self {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(most) => packets < most as usize,
            QueueLimit::Bytes(most) => waiting + size <= most,
        }
    }
}

const EXPECTED: &str = "\"unlimited\", a number such as \"50 packets\" or a size such as \"64 KiB\"";

/// In the format of scenario files: `unlimited`, `50 packets` or `64 KiB`.
impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Unlimited => f.write_str("unlimited"),
            QueueLimit::Packets(1) => f.write_str("1 packet"),
            QueueLimit::Packets(most) => write!(f, "{most} packets"),
            QueueLimit::Bytes(most) => most.fmt(f),
        }
    }
}

impl FromStr for QueueLimit {
    /// The text found, and the "did you mean" hint: the parts before and after the expectation.
    type Err = (String, String);

    fn from_str(text: &str) -> Result<QueueLimit, (String, String)> {
        if text == "unlimited" {
            return Ok(QueueLimit::Unlimited);
        }
        let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
        match number.map(|number| number.trim_end().parse()) {
            Some(Ok(most)) => Ok(QueueLimit::Packets(most)),
            Some(Err(_)) => Err((format!("found \"{text}\""), String::new())),
            // The error of a size mentions sizes only, so the expectation is replaced.
            None => text.parse().map(QueueLimit::Bytes).map_err(|error: UnitError| {
                let complaint = error.to_string();
                let (found, rest) = complaint.split_once(", expected ").unwrap_or((&complaint, ""));
                let near = rest.find("; did you mean ").map_or("", |hint| &rest[hint..]);
                (found.to_owned(), near.to_owned())
            }),
        }
    }
}

impl QueueLimit {
    /// Parses a limit; an error names what was found and what was `expected`.
    pub(crate) fn parse<E: de::Error>(text: &str, expected: &str) -> Result<QueueLimit, E> {
        text.parse().map_err(|(found, near)| E::custom(format!("{found}, expected {expected}{near}")))
    }
}

impl Serialize for QueueLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

inline_schema!(QueueLimit, |generator| schema::any([
    schema::words(&["unlimited"]),
    schema::count("packet", "50 packets"),
    generator.subschema_for::<Bytes>(),
]));

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QueueLimit, D::Error> {
        struct Limit;
        impl Visitor<'_> for Limit {
            type Value = QueueLimit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<QueueLimit, E> {
                QueueLimit::parse(text, EXPECTED)
            }
        }
        deserializer.deserialize_any(Limit)
    }
}
