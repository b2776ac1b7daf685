//! Structs of counters, and their differences.

use lasthop_base::{Bytes, Duration, Time};

/// A field of a struct of counters.
pub(crate) trait Counter: Copy {
    /// Its part since `earlier`: the difference of a count; an instant stays.
    fn since(self, earlier: Self) -> Self;
}

macro_rules! counts {
    ($($type:ty),*) => {$(
        impl Counter for $type {
            fn since(self, earlier: $type) -> $type {
                self - earlier
            }
        }
    )*};
}
counts!(u64, Bytes, Duration);

macro_rules! instants {
    ($($type:ty),*) => {$(
        impl Counter for $type {
            fn since(self, _earlier: $type) -> $type {
                self
            }
        }
    )*};
}
instants!(Time, Option<Time>);

/// A counter that not everything keeps.
macro_rules! optional {
    ($($type:ty),*) => {$(
        impl Counter for Option<$type> {
            fn since(self, earlier: Option<$type>) -> Option<$type> {
                self.map(|now| now - earlier.unwrap_or_default())
            }
        }
    )*};
}
optional!(u64, Bytes, Duration);

/// Defines a struct of counters with its method `since`.
macro_rules! counters {
    ($(#[$of:meta])* pub struct $name:ident { $($(#[$doc:meta])* pub $field:ident: $type:ty,)* }) => {
        $(#[$of])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $name {
            /// The difference to `earlier` counters. Instants stay.
            pub fn since(&self, earlier: &$name) -> $name {
                $name { $($field: $crate::counters::Counter::since(self.$field, earlier.$field),)* }
            }
        }
    };
}
pub(crate) use counters;
