//! Structs of counters, and their differences.

use lasthop_base::{Bytes, Duration, Time};

/// A field of a struct of counters.
pub(crate) trait Counter: Copy {
    /// Its part since `earlier`: the difference of a count; an instant stays.
    fn since(self, earlier: Self) -> Self;

    /// That of two components together: the sum of counts, the first of optional instants, and the last of others.
    fn plus(self, other: Self) -> Self;
}

macro_rules! counts {
    ($($type:ty),*) => {$(
        impl Counter for $type {
            fn since(self, earlier: $type) -> $type {
                self - earlier
            }

            fn plus(self, other: $type) -> $type {
                self + other
            }
        }
    )*};
}
counts!(u64, Bytes, Duration);

impl Counter for Time {
    fn since(self, _earlier: Time) -> Time {
        self
    }

    fn plus(self, other: Time) -> Time {
        self.max(other)
    }
}

impl Counter for Option<Time> {
    fn since(self, _earlier: Option<Time>) -> Option<Time> {
        self
    }

    fn plus(self, other: Option<Time>) -> Option<Time> {
        known(self, other, Time::min)
    }
}

/// `both` of two values, or the only one that is known.
fn known<T>(one: Option<T>, other: Option<T>, both: impl FnOnce(T, T) -> T) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both(one, other)),
        (one, other) => one.or(other),
    }
}

/// A counter that not everything keeps.
macro_rules! optional {
    ($($type:ty),*) => {$(
        impl Counter for Option<$type> {
            fn since(self, earlier: Option<$type>) -> Option<$type> {
                self.map(|now| now - earlier.unwrap_or_default())
            }

            fn plus(self, other: Option<$type>) -> Option<$type> {
                known(self, other, |one, other| one + other)
            }
        }
    )*};
}
optional!(u64, Bytes, Duration);

/// Defines a struct of counters with its methods `since` and `plus`.
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

            /// Those of two components together: sums, of the one that counts if the other does not; the first of optional
            /// instants, and the last of others.
            pub fn plus(&self, other: &$name) -> $name {
                $name { $($field: $crate::counters::Counter::plus(self.$field, other.$field),)* }
            }
        }
    };
}
pub(crate) use counters;
