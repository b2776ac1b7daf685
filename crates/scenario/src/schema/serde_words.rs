//! Text formats of values that are a quantity or a word: `"64 KiB"` or `"unlimited"`. Each is a type for serde's `with`;
//! [`Stated`] is for an optional key.

use std::fmt::{self, Display, Formatter};
use std::marker::PhantomData;
use std::str::FromStr;

use lasthop_base::{Bytes, inline_schema, schema};
use lasthop_proto::fec::BlockCode;
use lasthop_proto::frag::Mtu;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// The format `F` of an optional key.
pub(crate) struct Stated<F>(PhantomData<F>);

/// Defines the schema of a format, and [`Stated`] for it.
macro_rules! format_of {
    ($type:ty, $format:ident, |$generator:ident| $schema:expr) => {
        inline_schema!($format, |$generator| $schema);
        inline_schema!(Stated<$format>, |$generator| $schema);

        impl Stated<$format> {
            pub(crate) fn serialize<S: Serializer>(value: &Option<$type>, to: S) -> Result<S::Ok, S::Error> {
                match value {
                    Some(value) => $format::serialize(value, to),
                    None => to.serialize_none(),
                }
            }

            pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<$type>, D::Error> {
                $format::deserialize(from).map(Some)
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
pub(crate) struct Amount;

impl Amount {
    const EXPECTED: &'static str = "a size such as \"100 KB\", or \"unlimited\"";

    pub(crate) fn serialize<S: Serializer>(amount: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        match amount {
            None => to.serialize_str("unlimited"),
            Some(size) => to.collect_str(size),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
        match text(from, Self::EXPECTED)?.as_str() {
            "unlimited" => Ok(None),
            size => quantity(size, Self::EXPECTED).map(Some),
        }
    }
}

format_of!(Option<Bytes>, Amount, |generator| schema::any([
    schema::words(&["unlimited"]),
    generator.subschema_for::<Bytes>()
]));

/// The maximum unit size on the air.
pub(crate) struct UnitSize;

impl UnitSize {
    const EXPECTED: &'static str = "a size such as \"128 B\", or \"none\"";

    pub(crate) fn serialize<S: Serializer>(mtu: &Option<Mtu>, to: S) -> Result<S::Ok, S::Error> {
        match mtu {
            None => to.serialize_str("none"),
            Some(mtu) => to.collect_str(&mtu.get()),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mtu>, D::Error> {
        match text(from, Self::EXPECTED)?.as_str() {
            "none" => Ok(None),
            size => {
                Mtu::try_from(quantity::<Bytes, _>(size, Self::EXPECTED)?).map(Some).map_err(D::Error::custom)
            }
        }
    }
}

format_of!(Option<Mtu>, UnitSize, |generator| schema::any([
    schema::words(&["none"]),
    generator.subschema_for::<Mtu>()
]));

/// The error-correcting code of a link.
pub(crate) struct Code;

impl Code {
    pub(crate) fn serialize<S: Serializer>(code: &Option<BlockCode>, to: S) -> Result<S::Ok, S::Error> {
        match code {
            None => to.serialize_str("none"),
            Some(code) => code.serialize(to),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<BlockCode>, D::Error> {
        struct NameOrNumbers;
        impl<'de> Visitor<'de> for NameOrNumbers {
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
        from.deserialize_any(NameOrNumbers)
    }
}

format_of!(Option<BlockCode>, Code, |generator| schema::any([
    schema::words(&["none"]),
    generator.subschema_for::<BlockCode>()
]));
