//! The tree of a scenario file, in which every key and value has a mark, and its deserialization.

use std::fmt::{self, Display};
use std::ops::Range;

use indexmap::IndexMap;
use lasthop_base::{Amount, Number};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::value::Value;

/// Where a key or value was written: a span of the text, or a distinct empty span beyond its end.
pub(crate) type Mark = Range<usize>;

/// A value and its mark.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) mark: Mark,
    pub(crate) kind: Kind,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Bool(bool),
    /// A number in a text, which is no quantity.
    Written(Amount),
    /// A number that code states.
    Stated(Number),
    Text(String),
    Date(String),
    /// A number in a text that is too large.
    TooLarge(String),
    List(Vec<Node>),
    Table(Table),
}

/// The keys of a table in order, each with its mark.
pub(crate) type Table = IndexMap<String, (Mark, Node)>;

impl Node {
    /// `value` with new marks.
    pub(crate) fn of(value: Value, mark: &mut dyn FnMut() -> Mark) -> Node {
        let kind = Kind::of(value, mark);
        Node { mark: mark(), kind }
    }

    /// The same value with new marks.
    pub(crate) fn marked(&self, mark: &mut dyn FnMut() -> Mark) -> Node {
        let kind = match &self.kind {
            Kind::List(items) => Kind::List(items.iter().map(|item| item.marked(mark)).collect()),
            Kind::Table(table) => Kind::Table(
                table.iter().map(|(key, (_, node))| (key.clone(), (mark(), node.marked(mark)))).collect(),
            ),
            plain => plain.clone(),
        };
        Node { mark: mark(), kind }
    }
}

impl Kind {
    pub(crate) fn of(value: Value, mark: &mut dyn FnMut() -> Mark) -> Kind {
        match value {
            Value::Bool(value) => Kind::Bool(value),
            Value::Number(number) => Kind::Stated(number),
            Value::Text(text) => Kind::Text(text),
            Value::List(items) => Kind::List(items.into_iter().map(|item| Node::of(item, mark)).collect()),
            Value::Table(table) => Kind::Table(
                table.into_iter().map(|(key, value)| (key, (mark(), Node::of(value, mark)))).collect(),
            ),
        }
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match self {
            Kind::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Kind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value in TOML, for people.
    pub(crate) fn to_toml(&self) -> toml::Value {
        let of_amount = |amount: Amount| match amount {
            Amount::Whole(amount) => i64::try_from(amount)
                .map_or_else(|_| toml::Value::String(amount.to_string()), toml::Value::Integer),
            Amount::Real(amount) => toml::Value::Float(amount),
        };
        match self {
            Kind::Bool(value) => toml::Value::Boolean(*value),
            Kind::Written(amount) | Kind::Stated(Number { amount, unit: None }) => of_amount(*amount),
            Kind::Stated(number) => toml::Value::String(number.to_string()),
            Kind::Text(text) | Kind::Date(text) | Kind::TooLarge(text) => toml::Value::String(text.clone()),
            Kind::List(items) => toml::Value::Array(items.iter().map(|item| item.kind.to_toml()).collect()),
            Kind::Table(table) => toml::Value::Table(
                table.iter().map(|(key, (_, node))| (key.clone(), node.kind.to_toml())).collect(),
            ),
        }
    }

    /// What it is, with an article.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Kind::Bool(_) => "a boolean",
            Kind::Written(Amount::Whole(_)) | Kind::Stated(Number { amount: Amount::Whole(_), .. }) => {
                "an integer"
            }
            Kind::Written(_) | Kind::Stated(_) | Kind::TooLarge(_) => "a number",
            Kind::Text(_) => "a string",
            Kind::Date(_) => "a date",
            Kind::List(_) => "a list",
            Kind::Table(_) => "a table",
        }
    }
}

/// From a parsed TOML document: spans become marks.
pub(crate) fn table_of(table: DeTable<'_>) -> Table {
    let entry = |(key, value): (Spanned<_>, Spanned<DeValue<'_>>)| {
        let mark = key.span();
        (std::borrow::Cow::into_owned(key.into_inner()), (mark, Node::from(value)))
    };
    table.into_iter().map(entry).collect()
}

impl From<Spanned<DeValue<'_>>> for Node {
    fn from(value: Spanned<DeValue<'_>>) -> Node {
        let mark = value.span();
        let kind = match value.into_inner() {
            DeValue::String(text) => Kind::Text(text.into_owned()),
            DeValue::Integer(number) => i128::from_str_radix(number.as_str(), number.radix()).map_or_else(
                |_| Kind::TooLarge(number.to_string()),
                |number| Kind::Written(Amount::Whole(number)),
            ),
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(real) if real.is_finite() || number.as_str().contains(['n', 'i']) => {
                    Kind::Written(Amount::Real(real))
                }
                _ => Kind::TooLarge(number.to_string()),
            },
            DeValue::Boolean(value) => Kind::Bool(value),
            DeValue::Datetime(date) => Kind::Date(date.to_string()),
            DeValue::Array(items) => Kind::List(items.into_iter().map(Node::from).collect()),
            DeValue::Table(table) => Kind::Table(table_of(table)),
        };
        Node { mark, kind }
    }
}

/// Why a tree is not what its type expects.
#[derive(Clone, Debug)]
pub(crate) struct ReadError {
    pub(crate) problem: Problem,
    /// The key or value that has the problem.
    pub(crate) mark: Option<Mark>,
}

/// A problem of a key or a value.
#[derive(Clone, Debug)]
pub(crate) enum Problem {
    UnknownKey {
        key: String,
        known: &'static [&'static str],
    },
    MissingKey(&'static str),
    UnknownWord {
        word: String,
        known: &'static [&'static str],
    },
    /// A word names one of several tables, and its parameters are missing.
    Alone,
    /// A value that names none of several tables, or a table that names none or several.
    NoAlternative {
        known: &'static [&'static str],
    },
    /// Another type or value than expected.
    Unexpected {
        found: String,
        expected: String,
    },
    /// A number in place of something else; what was found is known where it is.
    NotNumber {
        expected: String,
    },
    Other(String),
}

impl ReadError {
    fn new(problem: Problem) -> ReadError {
        ReadError { problem, mark: None }
    }

    /// The same error, at `mark` unless it has a place.
    fn or_at(self, mark: &Mark) -> ReadError {
        ReadError { mark: self.mark.or_else(|| Some(mark.clone())), ..self }
    }
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl std::error::Error for ReadError {}

/// What serde found, in plain English.
fn found(unexpected: Unexpected<'_>) -> String {
    match unexpected {
        Unexpected::Map => String::from("a table"),
        Unexpected::Seq => String::from("a list"),
        Unexpected::Str(text) => format!("{text:?}"),
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        // With a decimal point.
        Unexpected::Float(number) if number.fract() == 0.0 => format!("{number:.1}"),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Other(what) => what.to_owned(),
        other => other.to_string(),
    }
}

impl serde::ser::Error for ReadError {
    fn custom<T: Display>(message: T) -> ReadError {
        ReadError::new(Problem::Other(message.to_string()))
    }
}

impl de::Error for ReadError {
    fn custom<T: Display>(message: T) -> ReadError {
        ReadError::new(Problem::Other(message.to_string()))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> ReadError {
        ReadError::new(match unexpected {
            Unexpected::NewtypeStruct => Problem::NotNumber { expected: expected.to_string() },
            Unexpected::UnitVariant => Problem::Alone,
            other => Problem::Unexpected { found: found(other), expected: expected.to_string() },
        })
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> ReadError {
        ReadError::new(Problem::Unexpected { found: found(unexpected), expected: expected.to_string() })
    }

    fn unknown_field(field: &str, known: &'static [&'static str]) -> ReadError {
        ReadError::new(Problem::UnknownKey { key: field.to_owned(), known })
    }

    fn missing_field(field: &'static str) -> ReadError {
        ReadError::new(Problem::MissingKey(field))
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> ReadError {
        ReadError::new(Problem::UnknownWord { word: variant.to_owned(), known })
    }
}

/// Presents a number as the primitive that it is.
fn visit<'de, V: Visitor<'de>>(amount: Amount, visitor: V) -> Result<V::Value, ReadError> {
    match amount {
        Amount::Real(number) => visitor.visit_f64(number),
        Amount::Whole(number) => match (i64::try_from(number), u64::try_from(number)) {
            (Ok(number), _) => visitor.visit_i64(number),
            (_, Ok(number)) => visitor.visit_u64(number),
            _ => visitor.visit_i128(number),
        },
    }
}

/// Deserializes a table as a `T`.
pub(crate) fn deserialize<T: DeserializeOwned>(table: &Table) -> Result<T, ReadError> {
    T::deserialize(MapAccessDeserializer::new(Entries { entries: table.iter(), value: None }))
}

impl Node {
    /// Presents the value; a number that code states as the primitive that it is.
    fn plain<'de, V: Visitor<'de>>(&'de self, visitor: V) -> Result<V::Value, ReadError> {
        let presented = match &self.kind {
            Kind::Bool(value) => visitor.visit_bool(*value),
            Kind::Written(amount) | Kind::Stated(Number { amount, unit: None }) => visit(*amount, visitor),
            Kind::Text(text) => visitor.visit_borrowed_str(text),
            Kind::List(items) => visitor.visit_seq(Items(items.iter())),
            Kind::Table(table) => visitor.visit_map(Entries { entries: table.iter(), value: None }),
            Kind::Stated(_) | Kind::Date(_) | Kind::TooLarge(_) => Err(self.not_plain(&visitor)),
        };
        presented.map_err(|error| error.or_at(&self.mark))
    }

    fn not_plain(&self, expected: &dyn Expected) -> ReadError {
        match &self.kind {
            Kind::Stated(number) => de::Error::invalid_type(Unexpected::Other(&number.to_string()), expected),
            Kind::TooLarge(number) => {
                de::Error::invalid_value(Unexpected::Other(number), &"a number within range")
            }
            other => de::Error::invalid_type(Unexpected::Other(other.what()), expected),
        }
    }
}

macro_rules! plain {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            self.plain(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for &'de Node {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Kind::Stated(number) = &self.kind else { return self.plain(visitor) };
        visitor.visit_newtype_struct(StatedNumber(number)).map_err(|error| {
            let problem = match error.problem {
                Problem::NotNumber { expected } => {
                    Problem::Unexpected { found: number.to_string(), expected }
                }
                other => other,
            };
            ReadError { problem, ..error }.or_at(&self.mark)
        })
    }

    plain! {
        deserialize_bool deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_i8 deserialize_i16
        deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u128 deserialize_f32 deserialize_f64
        deserialize_char deserialize_str deserialize_string deserialize_seq deserialize_bytes deserialize_byte_buf
        deserialize_map deserialize_unit deserialize_identifier
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.plain(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.plain(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.plain(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.plain(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_some(self).map_err(|error| error.or_at(&self.mark))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self).map_err(|error| error.or_at(&self.mark))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let presented = match &self.kind {
            Kind::Text(text) => visitor.visit_enum(StrDeserializer::new(text)),
            Kind::Table(table) if table.len() == 1 => visitor.visit_enum(Choice { table }),
            _ => Err(ReadError::new(Problem::NoAlternative { known })),
        };
        presented.map_err(|error| error.or_at(&self.mark))
    }
}

impl<'de> IntoDeserializer<'de, ReadError> for &'de Node {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// What the visitor of a quantity gets: a number, or a pair of a number and its unit.
#[derive(Clone, Copy)]
struct StatedNumber<'n>(&'n Number);

impl<'de> Deserializer<'de> for StatedNumber<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Number { amount, unit: None } => visit(*amount, visitor),
            Number { amount, unit: Some(unit) } => visitor.visit_seq(Pair(Some(*amount), Some(unit))),
        }
    }

    forward_to_deserialize_any! {
        bool u8 u16 u32 u64 i8 i16 i32 i64 i128 u128 f32 f64 char str string seq bytes byte_buf map unit option
        unit_struct tuple tuple_struct newtype_struct struct enum identifier ignored_any
    }
}

struct Pair<'n>(Option<Amount>, Option<&'n str>);

impl<'de> SeqAccess<'de> for Pair<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        if let Some(amount) = self.0.take() {
            return seed.deserialize(StatedNumber(&Number { amount, unit: None })).map(Some);
        }
        self.1.take().map(|unit| seed.deserialize(StrDeserializer::new(unit))).transpose()
    }
}

struct Items<'de>(std::slice::Iter<'de, Node>);

impl<'de> SeqAccess<'de> for Items<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        self.0.next().map(|item| seed.deserialize(item)).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Entries<'de> {
    entries: indexmap::map::Iter<'de, String, (Mark, Node)>,
    value: Option<&'de Node>,
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        let Some((key, (mark, value))) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        let read = seed.deserialize(de::value::BorrowedStrDeserializer::new(key));
        read.map(Some).map_err(|error: ReadError| error.or_at(mark))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        let value = self.value.take().expect("a value follows its key");
        seed.deserialize(value).map_err(|error| error.or_at(&value.mark))
    }
}

/// One of several tables, named by its only key.
struct Choice<'de> {
    table: &'de Table,
}

impl<'de> EnumAccess<'de> for Choice<'de> {
    type Error = ReadError;
    type Variant = &'de Node;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, &'de Node), ReadError> {
        let (name, (mark, value)) = self.table.first().expect("the table has one key");
        let variant = seed.deserialize(StrDeserializer::new(name));
        Ok((variant.map_err(|error: ReadError| error.or_at(mark))?, value))
    }
}

impl<'de> VariantAccess<'de> for &'de Node {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match &self.kind {
            Kind::Table(table) if table.is_empty() => Ok(()),
            Kind::List(items) if items.is_empty() => Ok(()),
            kind => {
                let (found, expected) = (kind.what().to_owned(), String::from("an empty table"));
                Err(ReadError::new(Problem::Unexpected { found, expected }).or_at(&self.mark))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.plain(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        let unknown = |(key, _): &(&String, &(Mark, Node))| !fields.contains(&key.as_str());
        match self.kind.as_table().and_then(|table| table.iter().find(unknown)) {
            Some((key, (mark, _))) => {
                let error: ReadError = de::Error::unknown_field(key, fields);
                Err(error.or_at(mark))
            }
            None => self.plain(visitor),
        }
    }
}
