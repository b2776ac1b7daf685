//! Parameters of a BSS.

use core::fmt;
use core::num::NonZeroU32;

use lasthop_base::{Bytes, Invalid, Probability, inline_schema, schema};
use schemars::JsonSchema;
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::phy::{Dsss, Phy, Timing};
use crate::queue::QueueLimit;

/// Parameters shared by an access point and its stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BssConfig {
    /// The physical layer.
    pub phy: Phy,
    /// The contention window; by default that of the physical layer.
    pub cw: Option<Cw>,
    /// Data frames longer than this, from MAC header to frame check sequence, are preceded by RTS/CTS
    /// (dot11RTSThreshold); `None` disables RTS.
    pub rts_threshold: Option<Bytes>,
    /// Retry limit of RTS frames and of data frames without RTS (dot11ShortRetryLimit).
    pub short_retry_limit: RetryLimit,
    /// Retry limit of data frames after RTS (dot11LongRetryLimit).
    pub long_retry_limit: RetryLimit,
    /// The queues of the access point.
    pub ap_queue: ApQueue,
    /// Whether expedited packets overtake others in each queue of the access point.
    pub priority: bool,
    /// Capacity of each station's queue, not counting the packet held by the MAC.
    pub station_queue: QueueLimit,
}

/// 802.11b at 11 Mb/s with standard parameters: no RTS, retry limits of 7 and 4; unlimited queues, one per
/// station.
impl Default for BssConfig {
    fn default() -> BssConfig {
        BssConfig {
            phy: Phy::Dsss(Dsss::default()),
            cw: None,
            rts_threshold: None,
            short_retry_limit: RetryLimit::at_most(7),
            long_retry_limit: RetryLimit::at_most(4),
            ap_queue: ApQueue::PerStation(QueueLimit::Unlimited),
            priority: false,
            station_queue: QueueLimit::Unlimited,
        }
    }
}

impl BssConfig {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// If the control rate exceeds the data rate, or the contention window is invalid.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.phy.validate()?;
        self.cw.map_or(Ok(()), |cw| cw.validate())
    }

    /// Timing constants of the MAC.
    pub fn timing(&self) -> Timing {
        let timing = self.phy.timing();
        Timing { cw: self.cw.unwrap_or(timing.cw), ..timing }
    }
}

/// The contention window in slots. A backoff is uniform from 0 to the window. Each failure doubles the window
/// and adds one, up to the maximum.
///
/// CW starts at the minimum, and each failed attempt doubles CW + 1 up to the maximum (IEEE 802.11-1999
/// section 9.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { min = 31, max = 1023 }")]
pub struct Cw {
    /// Minimum, one less than a power of two. aCWmin: a power of two minus one.
    pub min: u32,
    /// Maximum, one less than a power of two. aCWmax: a power of two minus one.
    pub max: u32,
}

impl Cw {
    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        let possible = |cw: u32| cw < 1 << 16 && (cw + 1).is_power_of_two();
        let problem = "expected a power of two minus one, up to 65535, such as 31";
        if !possible(self.min) {
            return Err(Invalid { field: "cw.min", problem });
        }
        if !possible(self.max) {
            return Err(Invalid { field: "cw.max", problem });
        }
        if self.max < self.min {
            return Err(Invalid { field: "cw.max", problem: "found less than the minimum" });
        }
        Ok(())
    }

    /// The window after a failed attempt with window `cw`.
    pub fn after_failure(self, cw: u32) -> u32 {
        (2 * cw + 1).min(self.max)
    }
}

/// Number of failures after which the MAC discards a packet. In files a number, or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryLimit {
    /// At most this many attempts: a limit of 7 is seven attempts.
    AtMost(NonZeroU32),
    /// Never, as in Bianchi's model (IEEE JSAC 18(3), 2000).
    Unlimited,
}

impl RetryLimit {
    /// A limit of `attempts`.
    ///
    /// # Panics
    /// If `attempts` is zero.
    pub const fn at_most(attempts: u32) -> RetryLimit {
        RetryLimit::AtMost(NonZeroU32::new(attempts).expect("at least one attempt"))
    }

    /// Whether the limit is reached after `failures`.
    pub fn is_reached(self, failures: u32) -> bool {
        match self {
            RetryLimit::AtMost(most) => failures >= most.get(),
            RetryLimit::Unlimited => false,
        }
    }
}

impl Serialize for RetryLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            RetryLimit::AtMost(most) => serializer.serialize_u32(most.get()),
            RetryLimit::Unlimited => serializer.serialize_str("unlimited"),
        }
    }
}

inline_schema!(RetryLimit, |generator| schema::any([
    generator.subschema_for::<NonZeroU32>(),
    schema::words(&["unlimited"]),
]));

impl<'de> Deserialize<'de> for RetryLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RetryLimit, D::Error> {
        struct NumberOrUnlimited;
        impl<'de> Visitor<'de> for NumberOrUnlimited {
            type Value = RetryLimit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number from 1 such as 7, or \"unlimited\"")
            }
            fn visit_u64<E: de::Error>(self, most: u64) -> Result<RetryLimit, E> {
                let limit = u32::try_from(most).ok().and_then(NonZeroU32::new).map(RetryLimit::AtMost);
                limit.ok_or_else(|| E::invalid_value(Unexpected::Unsigned(most), &self))
            }
            fn visit_i64<E: de::Error>(self, most: i64) -> Result<RetryLimit, E> {
                u64::try_from(most)
                    .map_err(|_| E::invalid_value(Unexpected::Signed(most), &self))
                    .and_then(|most| self.visit_u64(most))
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<RetryLimit, D::Error> {
                number.deserialize_u64(self)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<RetryLimit, E> {
                match text {
                    "unlimited" => Ok(RetryLimit::Unlimited),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }
        deserializer.deserialize_any(NumberOrUnlimited)
    }
}

/// Queues of the access point, not counting the packet held by its MAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApQueue {
    /// One queue with this limit per station, served round robin, packet by packet.
    PerStation(QueueLimit),
    /// A single FIFO for all stations.
    Shared(QueueLimit),
}

/// Losses above the MAC: probability that a packet is dropped after the MAC has received and acknowledged it,
/// so it is not retried (WENP paper, section V). The outcome for packet number k of a station and direction
/// is the same with every scheme.
///
/// Drop probability of packets that a MAC has received and acknowledged; no retry recovers them (WENP paper,
/// section V: "dropped at the MAC layer of MH clients, using a uniform probability distribution").
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { down = 0.01, up = 0.0 }")]
pub struct AboveMac {
    /// Towards a station.
    pub down: Probability,
    /// From a station.
    pub up: Probability,
}
