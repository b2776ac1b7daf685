//! Voice over IP: one direction of a telephone call.
//!
//! ```text
//! codec ──> packets of RTP ──> network ──> playout buffer ──> losses, delay ──> E-model: R, MOS
//! ```

mod codec;
mod e_model;
mod playout;

use lasthop_base::{BitRate, Bytes, Duration, Invalid};
use serde::{Deserialize, Serialize};

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

/// One direction of a call: the table `[traffic.NAME.voip]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the key codec")]
pub struct Voip {
    /// The codec. It sends a packet every 20 ms.
    pub codec: Codec,
    /// Whether nothing is sent in pauses, with exponential talk spurts and pauses whose means are those of ITU-T P.59. By
    /// default false.
    #[serde(default)]
    pub silence_suppression: bool,
    /// Depth of the playout buffer: a packet is played at the least delay so far plus this time, and is lost if it arrives
    /// later. By default 60 ms, three packets: the nominal playout delay of Cisco's voice gateways.
    #[serde(default = "default_playout_buffer")]
    pub playout_buffer: Duration,
}

const fn default_playout_buffer() -> Duration {
    Duration::from_millis(60)
}

impl Voip {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// A playout buffer of more than a second.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.playout_buffer > LONGEST_BUFFER {
            let problem =
                "found more than \"1 s\", too long for a conversation; expected a time such as \"60 ms\"";
            return Err(Invalid { field: "playout_buffer", problem });
        }
        Ok(())
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
