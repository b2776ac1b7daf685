//! Voice over IP: one direction of a telephone call.
//!
//! ```text
//! codec ──> packets of RTP ──> network ──> playout buffer ──> losses, delay ──> E-model: R, MOS
//! ```

mod adaptive;
mod codec;
mod e_model;
mod playout;

use core::fmt;

use lasthop_base::{BitRate, Bytes, Duration, Invalid, inline_schema, number, schema};
use schemars::JsonSchema;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::pattern::{Pattern, Periods};

pub use codec::Codec;
pub use e_model::{Impairments, mos};
pub use playout::{PlayoutBuffer, PlayoutStats};

/// Headers of a voice packet: 20 B of IPv4, 8 B of UDP and 12 B of RTP (RFC 3550).
pub const HEADERS: Bytes = Bytes(40);

/// Speech per packet, the default of RFC 3551 for these codecs.
pub const PACKET_INTERVAL: Duration = Duration::from_millis(20);

/// The longest playout buffer. The window of [`PlayoutBuffer`] holds 1.28 s.
const LONGEST_BUFFER: Duration = Duration::from_secs(1);

/// Mean talk spurt and pause of a party to a conversation (ITU-T P.59, table 1).
const TALK_SPURT: Duration = Duration::from_millis(1_004);
const PAUSE: Duration = Duration::from_millis(1_587);

/// Voice over IP: one direction of a telephone call. Every 20 ms a packet leaves with 20 ms of speech and
/// headers of 40 B (RTP, UDP, IPv4). The receiver has a playout buffer; packets that miss their playout time
/// count as lost. The metrics include delay, losses, R and MOS.
///
/// A call consists of two sources, one for each direction:
///
/// ```toml
/// [traffic.call-down]
/// from = "fixed"
/// to = "mobile"
/// voip.codec = "g711-plc"
///
/// [traffic.call-up]
/// from = "mobile"
/// to = "fixed"
/// voip.codec = "g711-plc"
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the key codec")]
pub struct Voip {
    /// The codec: `"g711"`, `"g711-plc"`, `"g729a"` or `"gsm-efr"`.
    pub codec: Codec,
    /// Whether transmission stops in pauses. Talk spurts and pauses are then exponential with means of 1.004
    /// s and 1.587 s (ITU-T P.59, table 1), independently for each direction.
    #[serde(default)]
    pub silence_suppression: bool,
    /// Playout delay above the minimum delay so far; at most 1 s. `"adaptive"`: set anew at each talk spurt,
    /// which needs `silence_suppression`. By default fixed at 60 ms, three packets: the nominal playout delay
    /// of Cisco's voice gateways.
    #[serde(default)]
    pub playout_buffer: Playout,
}

/// The playout delay of a call: a time or `"adaptive"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playout {
    /// The least delay so far plus this time, the depth of the buffer.
    Fixed(Duration),
    /// Set anew at each talk spurt by the delays before it.
    Adaptive,
}

const ADAPTIVE: &str = "adaptive";

impl Default for Playout {
    fn default() -> Playout {
        Playout::Fixed(Duration::from_millis(60))
    }
}

impl Serialize for Playout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Playout::Fixed(depth) => depth.serialize(serializer),
            Playout::Adaptive => serializer.serialize_str(ADAPTIVE),
        }
    }
}

inline_schema!(Playout, |generator| schema::any([
    generator.subschema_for::<Duration>(),
    schema::words(&[ADAPTIVE]),
]));

impl<'de> Deserialize<'de> for Playout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Playout, D::Error> {
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Playout;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration with its unit, such as \"60 ms\", or \"adaptive\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Playout, E> {
                match text {
                    ADAPTIVE => Ok(Playout::Adaptive),
                    _ => text.parse().map(Playout::Fixed).map_err(E::custom),
                }
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<Playout, D::Error> {
                number::read(number).map(Playout::Fixed)
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

impl Voip {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// A playout buffer of more than a second, or an adaptive one for speech without pauses.
    pub fn validate(&self) -> Result<(), Invalid> {
        let problem = match self.playout_buffer {
            Playout::Fixed(depth) if depth > LONGEST_BUFFER => {
                "found more than \"1 s\", too long for a conversation; expected a time such as \"60 ms\""
            }
            Playout::Adaptive if !self.silence_suppression => {
                "found \"adaptive\" without silence_suppression, in whose pauses the delay changes; expected \
                 silence_suppression = true, or a time such as \"60 ms\""
            }
            _ => return Ok(()),
        };
        Err(Invalid { field: "playout_buffer", problem })
    }

    /// Size of a packet, headers included.
    pub fn packet_size(&self) -> Bytes {
        self.codec.payload() + HEADERS
    }

    /// The departures of packets.
    pub fn pattern(&self) -> Pattern {
        let packets_per_s = Duration::from_secs(1).as_nanos() / PACKET_INTERVAL.as_nanos();
        let rate =
            BitRate::from_bps(self.packet_size().bits() * packets_per_s).expect("packets have headers");
        match self.silence_suppression {
            false => Pattern::Constant { rate },
            true => Pattern::OnOff { rate, on: TALK_SPURT, off: PAUSE, periods: Periods::Exponential },
        }
    }

    /// Mouth-to-ear delay of speech whose packets are played `playout` after they were sent. Besides, a packet waits for
    /// its speech, and for the look-ahead of the codec; processing takes no time.
    pub fn mouth_to_ear(&self, playout: Duration) -> Duration {
        PACKET_INTERVAL + self.codec.look_ahead() + playout
    }
}
