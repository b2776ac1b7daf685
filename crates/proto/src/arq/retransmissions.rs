//! The retransmission limit of an ARQ.

use core::fmt;

use lasthop_base::{inline_schema, schema};
use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

/// Maximum number of retransmissions after the first transmission of a unit (RTmax). In scenario files a
/// number, or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retransmissions {
    /// At most this many retransmissions, hence one more attempt.
    AtMost(u32),
    /// No limit.
    Unlimited,
}

impl Retransmissions {
    /// Whether another attempt is allowed after `failed` failed attempts.
    pub const fn allow_after(self, failed: u32) -> bool {
        match self {
            Retransmissions::AtMost(most) => failed <= most,
            Retransmissions::Unlimited => true,
        }
    }
}

impl Serialize for Retransmissions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Retransmissions::AtMost(most) => serializer.serialize_u32(most),
            Retransmissions::Unlimited => serializer.serialize_str("unlimited"),
        }
    }
}

inline_schema!(Retransmissions, |generator| schema::any([
    generator.subschema_for::<u32>(),
    schema::words(&["unlimited"]),
]));

impl<'de> Deserialize<'de> for Retransmissions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Retransmissions, D::Error> {
        struct NumberOrUnlimited;
        impl<'de> Visitor<'de> for NumberOrUnlimited {
            type Value = Retransmissions;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number such as 13, or \"unlimited\"")
            }
            fn visit_u64<E: de::Error>(self, most: u64) -> Result<Retransmissions, E> {
                u32::try_from(most)
                    .map(Retransmissions::AtMost)
                    .map_err(|_| E::invalid_value(Unexpected::Unsigned(most), &self))
            }
            fn visit_i64<E: de::Error>(self, most: i64) -> Result<Retransmissions, E> {
                u64::try_from(most)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(most), &self))
                    .and_then(|most| self.visit_u64(most))
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                number: D,
            ) -> Result<Retransmissions, D::Error> {
                number.deserialize_u64(self)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Retransmissions, E> {
                match text {
                    "unlimited" => Ok(Retransmissions::Unlimited),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(NumberOrUnlimited)
    }
}
