//! Air time of frames: the physical layers of 802.11b, 802.11a and 802.11g.

use lasthop_base::{BitRate, Bytes, Duration, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::Cw;

/// Overhead of a data frame: MAC header with three addresses (24 B), LLC and SNAP headers (8 B) and frame
/// check sequence (4 B) (IEEE 802.11-1999 section 7.2.2, RFC 1042).
pub const DATA_OVERHEAD: Bytes = Bytes(36);
const RTS: Bytes = Bytes(20);
const CTS: Bytes = Bytes(14);
const ACK: Bytes = Bytes(14);

/// A physical layer and its rates, shared by all stations of a BSS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Phy {
    /// 802.11b.
    Dsss(Dsss),
    /// 802.11a and 802.11g.
    Ofdm(Ofdm),
}

/// 802.11b: slots of 20 µs, SIFS of 10 µs, a contention window from 31 to 1023.
///
/// 802.11b: DSSS, with CCK at the two upper rates (IEEE 802.11b-1999 clause 18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Dsss {
    /// The rate of data frames: 1, 2, 5.5 or 11 Mb/s.
    pub data_rate: DsssRate,
    /// The rate of RTS, CTS and ACK, not above that of data frames. By default 1 Mb/s, the lowest mandatory
    /// rate.
    pub control_rate: DsssRate,
    /// The preamble of frames above 1 Mb/s: `"long"`, 192 µs with its header, or `"short"`, 96 µs.
    pub preamble: Preamble,
}

impl Default for Dsss {
    fn default() -> Dsss {
        let (data_rate, control_rate) = (DsssRate::Mbps11, DsssRate::Mbps1);
        Dsss { data_rate, control_rate, preamble: Preamble::Long }
    }
}

/// The PLCP preamble and header of 802.11b frames. Frames at 1 Mb/s always use the long format (IEEE
/// 802.11b-1999 section 18.2.2.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Preamble {
    /// 144 bits and a 48-bit header, all at 1 Mb/s: 192 µs. The default; every station supports it.
    #[default]
    Long,
    /// 72 bits at 1 Mb/s and a 48-bit header at 2 Mb/s: 96 µs.
    Short,
}

/// An 802.11b rate; in files a string such as `"11 Mbps"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "BitRate", into = "BitRate")]
#[allow(missing_docs, reason = "a rate is what its name says")]
pub enum DsssRate {
    Mbps1,
    Mbps2,
    Mbps5_5,
    Mbps11,
}

/// 802.11a and 802.11g: slots of 9 µs, a contention window from 15 to 1023.
///
/// 802.11a and 802.11g: OFDM with 4 µs symbols (IEEE 802.11-2007 clauses 17 and 19).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ofdm {
    /// The rate of data frames: 6, 9, 12, 18, 24, 36, 48 or 54 Mb/s.
    pub data_rate: OfdmRate,
    /// The rate of RTS, CTS and ACK, not above that of data frames. By default 24 Mb/s, the highest mandatory
    /// rate.
    pub control_rate: OfdmRate,
    /// `"five-ghz"`, 802.11a: SIFS of 16 µs; or `"two-ghz"`, 802.11g without 802.11b stations: SIFS of 10 µs,
    /// and a signal extension of 6 µs after each frame.
    pub band: Band,
}

impl Default for Ofdm {
    fn default() -> Ofdm {
        Ofdm { data_rate: OfdmRate::Mbps54, control_rate: OfdmRate::Mbps24, band: Band::FiveGhz }
    }
}

/// Frequency band of OFDM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Band {
    /// 802.11a: SIFS 16 µs. The default.
    #[default]
    FiveGhz,
    /// 802.11g: SIFS 10 µs, and a signal extension of 6 µs after each frame.
    TwoGhz,
}

/// An 802.11a or 802.11g rate; in files a string such as `"54 Mbps"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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
                BitRate::from_bps(1_000 * rate.kbps()).expect("rates are positive")
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

/// Timing constants of the MAC, with the names of the standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Slot time: the time within which a station detects another transmission.
    pub slot: Duration,
    /// Gap between the frames of an exchange.
    pub sifs: Duration,
    /// Idle time required after a correctly received frame: SIFS and two slots.
    pub difs: Duration,
    /// Idle time required after a frame with errors: SIFS, an ACK frame at the lowest mandatory rate, and
    /// DIFS (IEEE 802.11-1999 section 9.2.10).
    pub eifs: Duration,
    /// Air time of an RTS frame.
    pub rts: Duration,
    /// Air time of a CTS frame.
    pub cts: Duration,
    /// Air time of an ACK frame.
    pub ack: Duration,
    /// Air time of the preamble and PLCP header of a data frame.
    pub plcp: Duration,
    /// The contention window.
    pub cw: Cw,
}

const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

impl Phy {
    /// Bit rate of data frames.
    pub fn data_rate(&self) -> BitRate {
        match self {
            Phy::Dsss(dsss) => dsss.data_rate.into(),
            Phy::Ofdm(ofdm) => ofdm.data_rate.into(),
        }
    }

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// If the control rate exceeds the data rate.
    pub fn validate(&self) -> Result<(), Invalid> {
        let (field, problem) = match self {
            Phy::Dsss(phy) if phy.control_rate > phy.data_rate => (
                "phy.dsss.control_rate",
                "found a rate above data_rate, expected at most data_rate, such as \"1 Mbps\"",
            ),
            // The default control rate may exceed an explicit data rate.
            Phy::Ofdm(phy) if phy.control_rate > phy.data_rate => (
                "phy.ofdm.control_rate",
                "found a rate above data_rate, expected at most data_rate, such as \"6 Mbps\"; \
                 without one it is \"24 Mbps\"",
            ),
            Phy::Dsss(_) | Phy::Ofdm(_) => return Ok(()),
        };
        Err(Invalid { field, problem })
    }

    /// Air time of a data frame that carries `packet`, preamble included.
    pub fn data_time(&self, packet: Bytes) -> Duration {
        let frame = packet + DATA_OVERHEAD;
        match self {
            Phy::Dsss(phy) => phy.time_for(frame, phy.data_rate),
            Phy::Ofdm(phy) => phy.time_for(frame, phy.data_rate),
        }
    }

    /// Bits exposed to errors and their air time, for a data frame that carries `packet`: everything after
    /// the PLCP header.
    pub fn exposed(&self, packet: Bytes) -> (u64, Duration) {
        ((packet + DATA_OVERHEAD).bits(), self.data_time(packet) - self.timing().plcp)
    }

    /// Timing constants of this physical layer.
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

    /// The PLCP header gives the frame duration in whole microseconds, rounded up (IEEE 802.11b-1999 section
    /// 18.3.4).
    fn time_for(&self, frame: Bytes, rate: DsssRate) -> Duration {
        self.plcp(rate) + us((frame.bits() * 1_000).div_ceil(rate.kbps()))
    }
}

/// Training symbols and SIGNAL field.
const OFDM_PLCP: Duration = us(20);

impl Ofdm {
    /// Whole symbols of 4 µs for a 16-bit SERVICE field, the frame and 6 tail bits (IEEE 802.11-2007 sections
    /// 17.4.3 and 19.8.3.1).
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
