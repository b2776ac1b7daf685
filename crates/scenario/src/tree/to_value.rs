//! The serializer of [`Value`]s.

use indexmap::IndexMap;
use lasthop_base::{Amount, Number, number};
use serde::ser::{
    Error, Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, Serializer,
};

use super::node::ReadError;
use super::value::Value;

/// Serializes to a value; `None` is what a file does not state. The serializer of all forms that a scenario is given in, so
/// that there is one copy of the code of each type.
#[derive(Clone, Copy)]
pub(super) struct ToValue {
    /// Quantities are texts with a unit, as in a file; numbers otherwise.
    pub(super) readable: bool,
}

type Stated = Result<Option<Value>, ReadError>;

fn whole(amount: impl Into<i128>) -> Stated {
    Ok(Some(Value::Number(Number { amount: Amount::Whole(amount.into()), unit: None })))
}

/// The table of a choice: `name` with its parameters.
fn choice(name: &str, parameters: Option<Value>) -> Option<Value> {
    parameters.map(|parameters| Value::Table(IndexMap::from([(name.to_owned(), parameters)])))
}

fn unsupported(what: &str) -> ReadError {
    ReadError::custom(format!("{what} has no place in a scenario"))
}

macro_rules! whole {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, number: $type) -> Stated {
            whole(number)
        })*
    };
}

impl Serializer for ToValue {
    type Ok = Option<Value>;
    type Error = ReadError;
    type SerializeSeq = Items;
    type SerializeTuple = Items;
    type SerializeTupleStruct = Items;
    type SerializeTupleVariant = Impossible<Option<Value>, ReadError>;
    type SerializeMap = Entries;
    type SerializeStruct = Entries;
    type SerializeStructVariant = Entries;

    fn is_human_readable(&self) -> bool {
        self.readable
    }

    whole! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64) serialize_i128(i128)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
    }

    fn serialize_bool(self, value: bool) -> Stated {
        Ok(Some(Value::Bool(value)))
    }

    fn serialize_f32(self, number: f32) -> Stated {
        self.serialize_f64(number.into())
    }

    fn serialize_f64(self, number: f64) -> Stated {
        Ok(Some(number.into()))
    }

    fn serialize_char(self, letter: char) -> Stated {
        Ok(Some(Value::Text(letter.into())))
    }

    fn serialize_str(self, text: &str) -> Stated {
        Ok(Some(text.into()))
    }

    fn serialize_bytes(self, _bytes: &[u8]) -> Stated {
        Err(unsupported("a string of bytes"))
    }

    fn serialize_none(self) -> Stated {
        Ok(None)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Stated {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Stated {
        Ok(None)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Stated {
        Ok(None)
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Stated {
        Ok(Some(variant.into()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Stated {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Stated {
        let value = value.serialize(self)?;
        Ok(match value {
            Some(Value::Number(Number { amount, .. })) if name == number::NAME => {
                Some(Value::quantity(amount, variant))
            }
            value => choice(variant, value),
        })
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Items, ReadError> {
        Ok(Items { to: self, items: Vec::new() })
    }

    fn serialize_tuple(self, _length: usize) -> Result<Items, ReadError> {
        Ok(Items { to: self, items: Vec::new() })
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Items, ReadError> {
        Ok(Items { to: self, items: Vec::new() })
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleVariant, ReadError> {
        Err(unsupported("a choice with several values"))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Entries, ReadError> {
        Ok(Entries::new(self, None))
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Entries, ReadError> {
        Ok(Entries::new(self, None))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Entries, ReadError> {
        Ok(Entries::new(self, Some(variant)))
    }
}

/// The items of a list.
pub(super) struct Items {
    to: ToValue,
    items: Vec<Value>,
}

impl Items {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ReadError> {
        self.items.extend(value.serialize(self.to)?);
        Ok(())
    }
}

impl SerializeSeq for Items {
    type Ok = Option<Value>;
    type Error = ReadError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ReadError> {
        self.push(value)
    }

    fn end(self) -> Stated {
        Ok(Some(Value::List(self.items)))
    }
}

impl SerializeTuple for Items {
    type Ok = Option<Value>;
    type Error = ReadError;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ReadError> {
        self.push(value)
    }

    fn end(self) -> Stated {
        SerializeSeq::end(self)
    }
}

impl SerializeTupleStruct for Items {
    type Ok = Option<Value>;
    type Error = ReadError;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ReadError> {
        self.push(value)
    }

    fn end(self) -> Stated {
        SerializeSeq::end(self)
    }
}

/// The entries of a table, which may be one of several.
pub(super) struct Entries {
    to: ToValue,
    variant: Option<&'static str>,
    key: String,
    table: IndexMap<String, Value>,
}

impl Entries {
    fn new(to: ToValue, variant: Option<&'static str>) -> Entries {
        Entries { to, variant, key: String::new(), table: IndexMap::new() }
    }

    fn insert<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Result<(), ReadError> {
        value.serialize(self.to).map(|value| self.put(key, value))
    }

    fn put(&mut self, key: &str, value: Option<Value>) {
        self.table.extend(value.map(|value| (key.to_owned(), value)));
    }
}

impl SerializeMap for Entries {
    type Ok = Option<Value>;
    type Error = ReadError;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), ReadError> {
        match key.serialize(self.to)? {
            Some(Value::Text(key)) => self.key = key,
            _ => return Err(unsupported("a key that is not text")),
        }
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), ReadError> {
        let key = std::mem::take(&mut self.key);
        self.insert(&key, value)
    }

    fn end(self) -> Stated {
        Ok(Some(Value::Table(self.table)))
    }
}

impl SerializeStruct for Entries {
    type Ok = Option<Value>;
    type Error = ReadError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), ReadError> {
        self.insert(key, value)
    }

    fn end(self) -> Stated {
        SerializeMap::end(self)
    }
}

impl SerializeStructVariant for Entries {
    type Ok = Option<Value>;
    type Error = ReadError;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), ReadError> {
        self.insert(key, value)
    }

    fn end(self) -> Stated {
        let variant = self.variant.expect("a variant has a name");
        Ok(choice(variant, Some(Value::Table(self.table))))
    }
}
