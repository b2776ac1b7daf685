//! Errors for parameter values that a model rejects.

use core::fmt;

/// A parameter value that its type can hold and its model rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// Path of the parameter within its table, as in a scenario file.
    pub field: &'static str,
    /// The value found and the value expected.
    pub problem: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl core::error::Error for Invalid {}
