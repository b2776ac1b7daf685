//! Values that a type allows and a model does not.

use core::fmt;

/// A parameter whose type allows a value that what it belongs to does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The parameter's path inside what it belongs to, as in a scenario file.
    pub field: &'static str,
    /// What was found and what was expected.
    pub problem: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.problem)
    }
}

impl core::error::Error for Invalid {}
