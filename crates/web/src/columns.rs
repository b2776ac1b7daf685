//! Columns of numbers after the JSON of a reply.

use serde::Serialize;

/// Where a column is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Column {
    /// The index of its first number, counted in numbers of eight bytes from the first of all columns.
    first: usize,
    /// How many numbers it has.
    length: usize,
}

/// The columns of a reply, one after the other: numbers of 64 bits, little-endian.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns(Vec<f64>);

impl Columns {
    /// Appends a column.
    pub(crate) fn push(&mut self, values: impl IntoIterator<Item = f64>) -> Column {
        let first = self.0.len();
        self.0.extend(values);
        Column { first, length: self.0.len() - first }
    }

    /// A reply of `document` and these columns: the length of the document in four bytes, little-endian; the
    /// document, padded with spaces to a multiple of eight bytes; and the columns.
    pub(crate) fn behind<D: Serialize>(&self, document: &D) -> Vec<u8> {
        let mut json = serde_json::to_vec(document).expect("a reply is plain data");
        while !(json.len() + 4).is_multiple_of(8) {
            json.push(b' ');
        }
        let length = u32::try_from(json.len()).expect("a reply fits the memory of a page");
        let mut reply = Vec::with_capacity(4 + json.len() + 8 * self.0.len());
        reply.extend(length.to_le_bytes());
        reply.append(&mut json);
        reply.extend(self.0.iter().flat_map(|value| value.to_le_bytes()));
        reply
    }
}
