//! Serde modules for values written either as a quantity or as a word: `"64 KiB"` or `"unlimited"`. Use with
//! serde's `with`, or `optional` for an optional key.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use lasthop_base::Bytes;
use serde::de::{Deserializer, Error, Visitor};
use serde::ser::Serializer;

/// Defines the submodule `optional` for a type.
macro_rules! optional {
    ($type:ty) => {
        pub(crate) mod optional {
            use super::*;

            pub(crate) fn serialize<S: Serializer>(value: &Option<$type>, to: S) -> Result<S::Ok, S::Error> {
                match value {
                    Some(value) => super::serialize(value, to),
                    None => to.serialize_none(),
                }
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$type>, D::Error> {
                super::deserialize(from).map(Some)
            }
        }
    };
}

/// Deserializes a string; other types are rejected with `expected` as the expectation.
fn text<'de, D: Deserializer<'de>>(from: D, expected: &'static str) -> Result<String, D::Error> {
    struct Text(&'static str);
    impl Visitor<'_> for Text {
        type Value = String;
        fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
    }
    from.deserialize_any(Text(expected))
}

/// Parses a quantity. The expectation in its error mentions quantities only, so it is replaced by `expected`.
fn quantity<T: FromStr<Err: Display>, E: Error>(text: &str, expected: &str) -> Result<T, E> {
    text.parse().map_err(|error: T::Err| {
        let complaint = error.to_string();
        let (found, rest) = complaint.split_once(", expected ").unwrap_or((&complaint, ""));
        let near = rest.find("; did you mean ").map_or("", |hint| &rest[hint..]);
        E::custom(format!("{found}, expected {expected}{near}"))
    })
}

/// The amount of data to send.
pub(crate) mod amount {
    use super::*;

    const EXPECTED: &str = "a size such as \"100 KB\", or \"unlimited\"";

    pub(crate) fn serialize<S: Serializer>(amount: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        match amount {
            None => to.serialize_str("unlimited"),
            Some(size) => to.collect_str(size),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
        match text(from, EXPECTED)?.as_str() {
            "unlimited" => Ok(None),
            size => quantity(size, EXPECTED).map(Some),
        }
    }

    optional!(Option<Bytes>);
}

/// The maximum unit size on the air.
pub(crate) mod mtu {
    use lasthop_proto::frag::Mtu;

    use super::*;

    const EXPECTED: &str = "a size such as \"128 B\", or \"none\"";

    pub(crate) fn serialize<S: Serializer>(mtu: &Option<Mtu>, to: S) -> Result<S::Ok, S::Error> {
        match mtu {
            None => to.serialize_str("none"),
            Some(mtu) => to.collect_str(&mtu.get()),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mtu>, D::Error> {
        match text(from, EXPECTED)?.as_str() {
            "none" => Ok(None),
            size => Mtu::try_from(quantity::<Bytes, _>(size, EXPECTED)?).map(Some).map_err(D::Error::custom),
        }
    }

    optional!(Option<Mtu>);
}

/// The error-correcting code of a link.
pub(crate) mod code {
    use lasthop_proto::fec::BlockCode;
    use serde::de::value::{MapAccessDeserializer, StrDeserializer};
    use serde::de::{Deserialize, MapAccess};
    use serde::ser::Serialize;

    use super::*;

    pub(crate) fn serialize<S: Serializer>(code: &Option<BlockCode>, to: S) -> Result<S::Ok, S::Error> {
        match code {
            None => to.serialize_str("none"),
            Some(code) => code.serialize(to),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BlockCode>, D::Error> {
        struct Code;
        impl<'de> Visitor<'de> for Code {
            type Value = Option<BlockCode>;
            fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str("a code such as \"bch-255-131-18\", its numbers { n = 255, k = 131, t = 18 }, or \"none\"")
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Option<BlockCode>, E> {
                match text {
                    "none" => Ok(None),
                    name => BlockCode::deserialize(StrDeserializer::new(name)).map(Some),
                }
            }
            fn visit_map<M: MapAccess<'de>>(self, numbers: M) -> Result<Option<BlockCode>, M::Error> {
                BlockCode::deserialize(MapAccessDeserializer::new(numbers)).map(Some)
            }
        }
        from.deserialize_any(Code)
    }

    optional!(Option<BlockCode>);
}
