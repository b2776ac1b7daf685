//! Typed values, and the tree of a document: values with marks that tell where each was written.

mod node;
mod to_value;
mod value;

pub(crate) use node::{Kind, Mark, Node, Problem, ReadError, Table, deserialize, table_of};
pub(crate) use value::to_toml;
pub use value::{Change, Value};
