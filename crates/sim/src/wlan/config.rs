//! What a BSS is made of.

use core::fmt;
use core::num::NonZeroU32;

use lasthop_base::{Bytes, Invalid, Probability, Stream, Streams};
use lasthop_channel::Channel;
use lasthop_proto::HostId;
use serde::de::{self, Deserializer, Unexpected, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::phy::{Dsss, Phy, Timing};
use crate::line::QueueLimit;

/// The parameters that an access point and its stations have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BssConfig {
    /// The physical layer.
    pub phy: Phy,
    /// The contention window; without it, that of the physical layer.
    pub cw: Option<Cw>,
    /// Data frames longer than this, from MAC header to frame check sequence, are sent after an exchange of
    /// RTS and CTS (dot11RTSThreshold); without it, none are.
    pub rts_threshold: Option<Bytes>,
    /// How often an RTS frame, or a data frame that is sent without one, may fail (dot11ShortRetryLimit).
    pub short_retry_limit: RetryLimit,
    /// How often a data frame that is sent after an RTS frame may fail (dot11LongRetryLimit).
    pub long_retry_limit: RetryLimit,
    /// What waits at the access point.
    pub ap_queue: ApQueue,
    /// What may wait at each station, not counting the packet that the MAC has taken.
    pub station_queue: QueueLimit,
}

/// 802.11b at 11 Mb/s as its standard has it: no RTS, retry limits of 7 and 4; and queues without bounds,
/// one for each station.
impl Default for BssConfig {
    fn default() -> BssConfig {
        BssConfig {
            phy: Phy::Dsss(Dsss::default()),
            cw: None,
            rts_threshold: None,
            short_retry_limit: RetryLimit::at_most(7),
            long_retry_limit: RetryLimit::at_most(4),
            ap_queue: ApQueue::PerStation(QueueLimit::Unlimited),
            station_queue: QueueLimit::Unlimited,
        }
    }
}

impl BssConfig {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// A control rate above the data rate, or a contention window that is not one.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.phy.validate()?;
        self.cw.map_or(Ok(()), |cw| cw.validate())
    }

    /// The constants by which turns are taken.
    pub fn timing(&self) -> Timing {
        let timing = self.phy.timing();
        Timing { cw: self.cw.unwrap_or(timing.cw), ..timing }
    }
}

/// The contention window: a backoff is drawn from 0 to CW slots. CW starts at its minimum, and each failed
/// attempt doubles CW + 1 up to the maximum (IEEE 802.11-1999 section 9.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as { min = 31, max = 1023 }")]
pub struct Cw {
    /// aCWmin: one less than a power of two.
    pub min: u32,
    /// aCWmax: one less than a power of two.
    pub max: u32,
}

impl Cw {
    fn validate(&self) -> Result<(), Invalid> {
        let possible = |cw: u32| cw < 1 << 16 && (cw + 1).is_power_of_two();
        let problem = "expected one less than a power of two, up to 65535, such as 31";
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

    /// The window after an attempt that failed with window `cw`.
    pub(super) fn after_failure(self, cw: u32) -> u32 {
        (2 * cw + 1).min(self.max)
    }
}

/// After how many failures a MAC gives a packet up. In a file a number, or `"unlimited"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryLimit {
    /// After this many: a limit of 7 is seven attempts.
    AtMost(NonZeroU32),
    /// Never, as in Bianchi's model (IEEE JSAC 18(3), 2000).
    Unlimited,
}

impl RetryLimit {
    /// A limit of `attempts`.
    ///
    /// # Panics
    /// If that is zero: a packet that is never sent.
    pub const fn at_most(attempts: u32) -> RetryLimit {
        RetryLimit::AtMost(NonZeroU32::new(attempts).expect("at least one attempt"))
    }

    /// Whether it is reached with so many failures.
    pub(super) fn is_reached(self, failures: u32) -> bool {
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

impl<'de> Deserialize<'de> for RetryLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RetryLimit, D::Error> {
        struct NumberOrUnlimited;
        impl Visitor<'_> for NumberOrUnlimited {
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

/// What waits at an access point, not counting the packet that its MAC has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApQueue {
    /// A queue for each station, each with this limit; the stations for which something waits take turns,
    /// packet by packet.
    PerStation(QueueLimit),
    /// One queue for all, first come, first served.
    Shared(QueueLimit),
}

/// A station of a BSS.
#[allow(missing_debug_implementations)]
pub struct Station {
    /// The hosts that are reached through it.
    pub hosts: Vec<HostId>,
    /// What becomes of data frames between it and the access point, in both directions.
    pub channel: Box<dyn Channel>,
    /// What is lost of what the MAC has delivered.
    pub above_mac: AboveMac,
    /// Its randomness.
    pub streams: StationStreams,
}

/// With which probability a packet is dropped that a MAC has received and acknowledged: no retry repairs
/// it (WENP paper, section V: "dropped at the MAC layer of MH clients, using a uniform probability
/// distribution").
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { down = 0.01, up = 0.0 }")]
pub struct AboveMac {
    /// On the way to the station.
    pub down: Probability,
    /// On the way to the access point.
    pub up: Probability,
}

/// The random streams of a station: none is shared, so that what one station does never shifts what
/// another draws.
#[derive(Clone, Debug)]
pub struct StationStreams {
    /// Its backoffs.
    pub backoff: Stream,
    /// Whether a data frame to it survives: a number for each that did not collide.
    pub bits_down: Stream,
    /// Whether a data frame from it survives.
    pub bits_up: Stream,
    /// Whether what arrived at it is dropped above its MAC: a number for each packet.
    pub above_down: Stream,
    /// Whether what arrived from it is dropped above the access point's MAC.
    pub above_up: Stream,
}

impl StationStreams {
    /// The streams of the station called `name`.
    pub fn named(streams: &Streams, name: &str) -> StationStreams {
        let stream = |what: &str| streams.stream(&format!("{what}:{name}"));
        StationStreams {
            backoff: stream("backoff"),
            bits_down: stream("bits:down"),
            bits_up: stream("bits:up"),
            above_down: stream("above-mac:down"),
            above_up: stream("above-mac:up"),
        }
    }
}
