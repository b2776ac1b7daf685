//! From bytes to air time: the physical layers of 802.11b, 802.11a and 802.11g.

use lasthop_base::{BitRate, Bytes, Duration, Invalid};
use serde::{Deserialize, Serialize};

use super::config::Cw;

/// MAC header with three addresses (24 B), LLC and SNAP headers (8 B) and frame check sequence (4 B): what
/// every data frame adds to its packet (IEEE 802.11-1999 section 7.2.2, RFC 1042).
pub(super) const DATA_OVERHEAD: Bytes = Bytes(36);
const RTS: Bytes = Bytes(20);
const CTS: Bytes = Bytes(14);
const ACK: Bytes = Bytes(14);

/// A physical layer and its rates, one for all of a BSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phy {
    /// 802.11b.
    Dsss(Dsss),
    /// 802.11a and 802.11g.
    Ofdm(Ofdm),
}

/// 802.11b: direct sequence, with CCK at its two upper rates (IEEE 802.11b-1999 clause 18). A slot of
/// 20 µs, SIFS of 10 µs, CW from 31 to 1023.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dsss {
    /// The rate of data frames. 11 Mb/s by default.
    pub data_rate: DsssRate,
    /// The rate of RTS, CTS and ACK frames, no higher than that of data frames. By default 1 Mb/s, which
    /// every station of a basic service set understands.
    pub control_rate: DsssRate,
    /// The preamble of frames above 1 Mb/s.
    pub preamble: Preamble,
}

impl Default for Dsss {
    fn default() -> Dsss {
        let (data_rate, control_rate) = (DsssRate::Mbps11, DsssRate::Mbps1);
        Dsss { data_rate, control_rate, preamble: Preamble::Long }
    }
}

/// The synchronisation that precedes a frame of 802.11b, with its PLCP header. Frames at 1 Mb/s always
/// have the long one, since the short one has no other rates (IEEE 802.11b-1999 section 18.2.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preamble {
    /// 144 bits and a header of 48, all at 1 Mb/s: 192 µs. The default, for every station has it.
    #[default]
    Long,
    /// 72 bits at 1 Mb/s and a header of 48 at 2 Mb/s: 96 µs.
    Short,
}

/// A rate of 802.11b; in a file a rate such as `"11 Mbps"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "BitRate", into = "BitRate")]
#[allow(missing_docs, reason = "a rate is what its name says")]
pub enum DsssRate {
    Mbps1,
    Mbps2,
    Mbps5_5,
    Mbps11,
}

/// 802.11a and 802.11g: OFDM symbols of 4 µs (IEEE 802.11-2007 clauses 17 and 19). A slot of 9 µs, CW from
/// 15 to 1023. A BSS of 802.11g has no stations of 802.11b in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ofdm {
    /// The rate of data frames. 54 Mb/s by default.
    pub data_rate: OfdmRate,
    /// The rate of RTS, CTS and ACK frames, no higher than that of data frames. 24 Mb/s by default, the
    /// highest that is mandatory.
    pub control_rate: OfdmRate,
    /// Which of the two.
    pub band: Band,
}

impl Default for Ofdm {
    fn default() -> Ofdm {
        Ofdm { data_rate: OfdmRate::Mbps54, control_rate: OfdmRate::Mbps24, band: Band::FiveGhz }
    }
}

/// Where OFDM is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// 802.11a: SIFS of 16 µs. The default.
    #[default]
    FiveGhz,
    /// 802.11g: SIFS of 10 µs, and 6 µs of silence that belong to each frame (the signal extension).
    TwoGhz,
}

/// A rate of 802.11a and 802.11g; in a file a rate such as `"54 Mbps"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "BitRate", into = "BitRate")]
#[allow(missing_docs, reason = "a rate is what its name says")]
pub enum OfdmRate {
    Mbps6,
    Mbps9,
    Mbps12,
    Mbps18,
    Mbps24,
    Mbps36,
    Mbps48,
    Mbps54,
}

macro_rules! rates {
    ($type:ident: $expected:literal, $($variant:ident = $kbps:literal,)*) => {
        impl $type {
            const fn kbps(self) -> u64 {
                match self {
                    $($type::$variant => $kbps,)*
                }
            }
        }

        impl From<$type> for BitRate {
            fn from(rate: $type) -> BitRate {
                BitRate::from_bps(1_000 * rate.kbps()).expect("no rate is zero")
            }
        }

        impl TryFrom<BitRate> for $type {
            type Error = String;
            fn try_from(rate: BitRate) -> Result<$type, String> {
                match rate.as_bps() {
                    $(bps if bps == 1_000 * $kbps => Ok($type::$variant),)*
                    _ => Err(format!("found \"{rate}\", expected {}", $expected)),
                }
            }
        }
    };
}

rates! {
    DsssRate: "1, 2, 5.5 or 11 Mbps, such as \"11 Mbps\"",
    Mbps1 = 1_000,
    Mbps2 = 2_000,
    Mbps5_5 = 5_500,
    Mbps11 = 11_000,
}

rates! {
    OfdmRate: "6, 9, 12, 18, 24, 36, 48 or 54 Mbps, such as \"54 Mbps\"",
    Mbps6 = 6_000,
    Mbps9 = 9_000,
    Mbps12 = 12_000,
    Mbps18 = 18_000,
    Mbps24 = 24_000,
    Mbps36 = 36_000,
    Mbps48 = 48_000,
    Mbps54 = 54_000,
}

/// The constants by which the stations of a BSS take turns, all in the standard's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A slot: the time within which a station notices that another has begun.
    pub slot: Duration,
    /// The gap between the frames of an exchange.
    pub sifs: Duration,
    /// How long the medium must be idle after what was received well: SIFS and two slots.
    pub difs: Duration,
    /// How long it must be idle after what was not: SIFS, an ACK frame at the lowest mandatory rate, and
    /// DIFS (IEEE 802.11-1999 section 9.2.10).
    pub eifs: Duration,
    /// Air time of an RTS frame.
    pub rts: Duration,
    /// Air time of a CTS frame.
    pub cts: Duration,
    /// Air time of an ACK frame.
    pub ack: Duration,
    /// What precedes the bytes of a data frame: preamble and PLCP header.
    pub plcp: Duration,
    /// The contention window.
    pub cw: Cw,
}

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

impl Phy {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// A control rate above the data rate, called by its place among the parameters of a BSS.
    pub fn validate(&self) -> Result<(), Invalid> {
        let (field, problem) = match self {
            Phy::Dsss(phy) if phy.control_rate > phy.data_rate => (
                "phy.dsss.control_rate",
                "found a rate above data_rate, expected one that is not above it, such as \"1 Mbps\"",
            ),
            // Here the default may be too much.
            Phy::Ofdm(phy) if phy.control_rate > phy.data_rate => (
                "phy.ofdm.control_rate",
                "found a rate above data_rate, expected one that is not above it, such as \"6 Mbps\"; \
                 without one it is \"24 Mbps\"",
            ),
            Phy::Dsss(_) | Phy::Ofdm(_) => return Ok(()),
        };
        Err(Invalid { field, problem })
    }

    /// Air time of a data frame with a packet of this size, preamble included.
    pub fn data_time(&self, packet: Bytes) -> Duration {
        let frame = packet + DATA_OVERHEAD;
        match self {
            Phy::Dsss(phy) => phy.time_for(frame, phy.data_rate),
            Phy::Ofdm(phy) => phy.time_for(frame, phy.data_rate),
        }
    }

    /// What errors can hit of a data frame with a packet of this size, and how long that is on the air: all
    /// behind the PLCP header.
    pub fn exposed(&self, packet: Bytes) -> (u64, Duration) {
        ((packet + DATA_OVERHEAD).bits(), self.data_time(packet) - self.timing().plcp)
    }

    /// The constants of this physical layer.
    pub fn timing(&self) -> Timing {
        let (slot, sifs, plcp, cw_min, [rts, cts, ack, slowest_ack]) = match self {
            Phy::Dsss(phy) => {
                let time = |frame| phy.time_for(frame, phy.control_rate);
                let slowest = phy.time_for(ACK, DsssRate::Mbps1);
                let plcp = phy.plcp(phy.data_rate);
                (us(20), us(10), plcp, 31, [time(RTS), time(CTS), time(ACK), slowest])
            }
            Phy::Ofdm(phy) => {
                let time = |frame| phy.time_for(frame, phy.control_rate);
                let slowest = phy.time_for(ACK, OfdmRate::Mbps6);
                let sifs = match phy.band {
                    Band::FiveGhz => us(16),
                    Band::TwoGhz => us(10),
                };
                (us(9), sifs, OFDM_PLCP, 15, [time(RTS), time(CTS), time(ACK), slowest])
            }
        };
        let difs = sifs + slot * 2;
        let cw = Cw { min: cw_min, max: 1023 };
        Timing { slot, sifs, difs, eifs: sifs + slowest_ack + difs, rts, cts, ack, plcp, cw }
    }
}

impl Dsss {
    fn plcp(&self, rate: DsssRate) -> Duration {
        match self.preamble {
            Preamble::Short if rate > DsssRate::Mbps1 => us(96),
            Preamble::Short | Preamble::Long => us(192),
        }
    }

    /// The PLCP header says how long a frame is in microseconds, so that a part of one counts as a whole
    /// (IEEE 802.11b-1999 section 18.3.4).
    fn time_for(&self, frame: Bytes, rate: DsssRate) -> Duration {
        self.plcp(rate) + us((frame.bits() * 1_000).div_ceil(rate.kbps()))
    }
}

/// Training symbols and the SIGNAL field.
const OFDM_PLCP: Duration = us(20);

impl Ofdm {
    /// Whole symbols of 4 µs, for a SERVICE field of 16 bits, the frame and 6 tail bits (IEEE 802.11-2007
    /// sections 17.4.3 and 19.8.3.1).
    fn time_for(&self, frame: Bytes, rate: OfdmRate) -> Duration {
        let bits_per_symbol = rate.kbps() * 4 / 1_000;
        let symbols = (16 + frame.bits() + 6).div_ceil(bits_per_symbol);
        let extension = match self.band {
            Band::FiveGhz => Duration::ZERO,
            Band::TwoGhz => us(6),
        };
        OFDM_PLCP + us(4) * symbols + extension
    }
}
