//! Text formats of values that are a quantity or a word: `"64 KiB"` or `"unlimited"`. Each is a type for serde's `with`;
//! [`Stated`] is for an optional key.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;
use std::str::FromStr;

use lasthop_base::{Bytes, FromNumber, Number, UnitError, inline_schema, schema};
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

/// Deserializes `word` as `None`, or else a quantity; other types are rejected with `expected` as the expectation, which
/// replaces that of the quantity.
fn quantity_or<'de, Q, D>(from: D, word: &'static str, expected: &'static str) -> Result<Option<Q>, D::Error>
where
    Q: FromStr<Err = UnitError> + FromNumber,
    D: Deserializer<'de>,
{
    struct Stated<Q> {
        word: &'static str,
        expected: &'static str,
        quantity: PhantomData<Q>,
    }
    impl<'de, Q: FromStr<Err = UnitError> + FromNumber> Visitor<'de> for Stated<Q> {
        type Value = Option<Q>;
        fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
            f.write_str(self.expected)
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<Option<Q>, E> {
            if text == self.word {
                return Ok(None);
            }
            text.parse().map(Some).map_err(|error: UnitError| E::custom(error.expecting(self.expected)))
        }
        fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<Option<Q>, D::Error> {
            let quantity = Q::from_number(&Number::deserialize(number)?);
            quantity.map(Some).map_err(|error| D::Error::custom(error.expecting(self.expected)))
        }
    }
    from.deserialize_any(Stated { word, expected, quantity: PhantomData })
}

/// The amount of data to send.
pub(crate) struct Amount;

impl Amount {
    const EXPECTED: &'static str = "a size such as \"100 KB\", or \"unlimited\"";

    pub(crate) fn serialize<S: Serializer>(amount: &Option<Bytes>, to: S) -> Result<S::Ok, S::Error> {
        match amount {
            None => to.serialize_str("unlimited"),
            Some(size) => size.serialize(to),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
        quantity_or(from, "unlimited", Self::EXPECTED)
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
            Some(mtu) => mtu.serialize(to),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mtu>, D::Error> {
        let size: Option<Bytes> = quantity_or(from, "none", Self::EXPECTED)?;
        size.map(Mtu::try_from).transpose().map_err(D::Error::custom)
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
