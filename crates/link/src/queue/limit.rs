//! Drop-tail: the capacity of a queue, and how scenario files write it.

use std::fmt;
use std::str::FromStr;

use lasthop_base::{Amount, Bytes, FromNumber, Number, UnitError, inline_schema, number, schema};
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
    type Err = UnitError;

    fn from_str(text: &str) -> Result<QueueLimit, UnitError> {
        if text == "unlimited" {
            return Ok(QueueLimit::Unlimited);
        }
        let number = text.strip_suffix("packets").or_else(|| text.strip_suffix("packet"));
        match number.map(|number| number.trim_end().parse()) {
            Some(Ok(most)) => Ok(QueueLimit::Packets(most)),
            Some(Err(_)) => Err(UnitError::of_text(text, EXPECTED)),
            None => text.parse().map(QueueLimit::Bytes).map_err(|error: UnitError| error.expecting(EXPECTED)),
        }
    }
}

/// A number of packets or a size; a bare number may be either, and is refused.
impl FromNumber for QueueLimit {
    fn from_number(number: &Number) -> Result<QueueLimit, UnitError> {
        let unexpected = || UnitError::of_number(number, EXPECTED);
        match (number.unit.as_deref(), number.amount) {
            (Some("packet" | "packets"), Amount::Whole(most)) => {
                u32::try_from(most).map(QueueLimit::Packets).map_err(|_| unexpected())
            }
            (None | Some("packet" | "packets"), _) => Err(unexpected()),
            (Some(_), _) => {
                Bytes::from_number(number).map(QueueLimit::Bytes).map_err(|error| error.expecting(EXPECTED))
            }
        }
    }
}

impl Serialize for QueueLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            QueueLimit::Packets(most) if !serializer.is_human_readable() => {
                number::write(Amount::Whole((*most).into()), Some("packets"), serializer)
            }
            QueueLimit::Bytes(most) if !serializer.is_human_readable() => {
                number::write(Amount::Whole(most.0.into()), Some("B"), serializer)
            }
            limit => serializer.collect_str(limit),
        }
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
        impl<'de> Visitor<'de> for Limit {
            type Value = QueueLimit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<QueueLimit, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<QueueLimit, D::Error> {
                number::read(number)
            }
        }
        deserializer.deserialize_any(Limit)
    }
}
