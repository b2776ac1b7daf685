//! Sequence numbers modulo 2³² (RFC 9293 section 3.4).

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// The largest window (RFC 7323 section 2.3).
const LARGEST_WINDOW: u32 = 1 << 30;

/// A TCP sequence number. Comparison is modular, and valid only between numbers less than 2³¹ apart, such as
/// those of one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SeqNum(pub u32);

impl SeqNum {
    /// The later of two.
    pub fn max(self, other: SeqNum) -> SeqNum {
        if other > self { other } else { self }
    }

    /// The earlier of two.
    pub fn min(self, other: SeqNum) -> SeqNum {
        if other < self { other } else { self }
    }

    /// Whether the two are farther apart than the largest window, in either order: they cannot belong to the same
    /// window.
    pub fn is_far_from(self, other: SeqNum) -> bool {
        let ahead = self.0.wrapping_sub(other.0);
        ahead.min(ahead.wrapping_neg()) > LARGEST_WINDOW
    }
}

impl Add<u32> for SeqNum {
    type Output = SeqNum;
    fn add(self, bytes: u32) -> SeqNum {
        SeqNum(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for SeqNum {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for SeqNum {
    type Output = SeqNum;
    fn sub(self, bytes: u32) -> SeqNum {
        SeqNum(self.0.wrapping_sub(bytes))
    }
}

/// Distance from `earlier` in bytes.
///
/// # Panics
/// In debug builds, if `earlier` is later.
impl Sub for SeqNum {
    type Output = u32;
    fn sub(self, earlier: SeqNum) -> u32 {
        debug_assert!(earlier <= self, "{earlier} is not before {self}");
        self.0.wrapping_sub(earlier.0)
    }
}

impl PartialOrd for SeqNum {
    fn partial_cmp(&self, other: &SeqNum) -> Option<Ordering> {
        Some((self.0.wrapping_sub(other.0) as i32).cmp(&0))
    }
}

impl fmt::Display for SeqNum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        let last = SeqNum(u32::MAX);
        assert!(last < last + 1);
        assert!(last + 1 > last);
        assert_eq!((last + 10) - last, 10);
        assert_eq!(last.max(SeqNum(5)), SeqNum(5));
        assert_eq!(last.min(SeqNum(5)), last);
    }

    #[test]
    fn one_window_ends_at_a_gibibyte_in_either_direction() {
        for base in [SeqNum(0), SeqNum(u32::MAX), SeqNum(1 << 31)] {
            for (distance, far) in [(0, false), (1 << 30, false), ((1 << 30) + 1, true), (1 << 31, true)] {
                assert_eq!(
                    (base.is_far_from(base + distance), (base + distance).is_far_from(base)),
                    (far, far)
                );
            }
        }
    }
}
