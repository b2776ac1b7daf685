//! JSON Schemas of values that scenario files write as text, or as text or a number. Those of tables are derived.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

#[doc(hidden)]
pub use alloc::borrow::Cow;

use schemars::{Schema, json_schema};

/// A text that matches the regular expression `pattern`. `title` names the kind of value in editors and in the reference.
pub fn text(title: &str, pattern: &str, examples: &[&str]) -> Schema {
    json_schema!({"type": "string", "title": title, "pattern": format!("^\\s*{pattern}\\s*$"), "examples": examples})
}

/// A count of `things`, such as `"50 packets"`; `thing` is their name in the singular.
pub fn count(thing: &str, example: &str) -> Schema {
    text(&format!("number of {thing}s"), &format!("\\d+\\s*{thing}s?"), &[example])
}

/// One of several words.
pub fn words(words: &[&str]) -> Schema {
    json_schema!({"type": "string", "enum": words})
}

/// One of several words, each with its description.
pub fn described<'a>(words: impl IntoIterator<Item = (&'a str, &'a str)>) -> Schema {
    let each =
        |(word, description)| json_schema!({"type": "string", "const": word, "description": description});
    json_schema!({"oneOf": words.into_iter().map(each).collect::<Vec<Schema>>()})
}

/// A value of any of these forms.
pub fn any(forms: impl IntoIterator<Item = Schema>) -> Schema {
    json_schema!({"anyOf": forms.into_iter().collect::<Vec<Schema>>()})
}

/// The pattern of a decimal number, as quantities have.
pub(crate) const NUMBER: &str = "(\\d+\\.?\\d*|\\.\\d+)";

/// The pattern of a share: a number from 0 to 1, or a percentage from 0 to 100.
pub(crate) const SHARE: &str =
    "0*((1(\\.0*)?|0(\\.\\d*)?|\\.\\d+)|(100(\\.0*)?|\\d{1,2}(\\.\\d*)?|\\.\\d+)\\s*%)";

/// The alternatives of a regular expression, of which every one stands for itself.
pub(crate) fn alternatives<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(ToOwned::to_owned).collect::<Vec<_>>().join("|")
}

/// Defines the schema of a type whose values are written in place, without a definition of their own.
#[macro_export]
macro_rules! inline_schema {
    ($type:ty $(, <$parameter:ident>)?, |$generator:ident| $schema:expr) => {
        impl $(<$parameter>)? $crate::schemars::JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> $crate::schema::Cow<'static, str> {
                stringify!($type).into()
            }

            fn schema_id() -> $crate::schema::Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($type)).into()
            }

            fn json_schema($generator: &mut $crate::schemars::SchemaGenerator) -> $crate::schemars::Schema {
                $schema
            }
        }
    };
}
