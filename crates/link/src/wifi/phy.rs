//! Rates and air times of 802.11n, 802.11ac and 802.11ax, in the formats for one user (HT-mixed, VHT SU, HE SU).

use core::fmt;

use lasthop_base::{BitRate, Bytes, Duration, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// MAC header with QoS control (26 B), LLC and SNAP headers (8 B) and frame check sequence (4 B) of an MPDU, without
/// encryption.
pub const MPDU_OVERHEAD: Bytes = Bytes(38);

/// Delimiter before each MPDU of an A-MPDU.
const DELIMITER: u64 = 4;

/// Gap between the frames of an exchange at 5 GHz. At 2.4 GHz it is 10 µs, and each OFDM frame has a signal extension of 6
/// µs, which is the same time.
pub const SIFS: Duration = Duration::from_micros(16);

/// Slot time.
pub const SLOT: Duration = Duration::from_micros(9);

/// The time after a PPDU when a sender without a response gives up waiting: SIFS, a slot and the start of a preamble.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_micros(16 + 9 + 20);

/// What a station that detects a frame with errors adds to its AIFS: SIFS and an Ack at 6 Mb/s.
pub const EIFS_EXTENSION: Duration = Duration::from_micros(16 + 44);

/// The longest PPDU, by the length field of its legacy preamble.
pub const LONGEST_PPDU: Duration = Duration::from_micros(5484);

const RTS: u64 = 20;
const CTS: u64 = 14;
const ACK: u64 = 14;
const BLOCK_ACK_REQUEST: u64 = 24;
const CF_END: u64 = 20;

/// A generation of 802.11.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Standard {
    /// 802.11n (HT, Wi-Fi 4): MCS 0 to 7 per spatial stream.
    #[serde(rename = "802.11n")]
    N,
    /// 802.11ac (VHT, Wi-Fi 5): MCS 0 to 9.
    #[serde(rename = "802.11ac")]
    Ac,
    /// 802.11ax (HE, Wi-Fi 6): MCS 0 to 11.
    #[default]
    #[serde(rename = "802.11ax")]
    Ax,
}

/// The width of the channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "a width is what its name says")]
pub enum Width {
    #[serde(rename = "20 MHz")]
    Mhz20,
    #[serde(rename = "40 MHz")]
    Mhz40,
    #[default]
    #[serde(rename = "80 MHz")]
    Mhz80,
    #[serde(rename = "160 MHz")]
    Mhz160,
}

/// The guard interval between symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "an interval is what its name says")]
pub enum GuardInterval {
    #[serde(rename = "400 ns")]
    Ns400,
    #[default]
    #[serde(rename = "800 ns")]
    Ns800,
    #[serde(rename = "1600 ns")]
    Ns1600,
    #[serde(rename = "3200 ns")]
    Ns3200,
}

/// The rate of a PPDU: a modulation and coding scheme, and a number of spatial streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// The modulation and coding scheme of each stream; that of 802.11n counts up to 7 here.
    pub mcs: u8,
    /// Spatial streams, 1 to 4.
    pub streams: u8,
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCS {} × {}", self.mcs, self.streams)
    }
}

/// Coded bits per tone, and the code rate, by MCS.
const MODULATIONS: [(u64, u64, u64); 12] = [
    (1, 1, 2),
    (2, 1, 2),
    (2, 3, 4),
    (4, 1, 2),
    (4, 3, 4),
    (6, 2, 3),
    (6, 3, 4),
    (6, 5, 6),
    (8, 3, 4),
    (8, 5, 6),
    (10, 3, 4),
    (10, 5, 6),
];

/// The format of PPDUs: the same for all stations of a BSS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PpduFormat {
    /// The standard.
    pub standard: Standard,
    /// The channel width.
    pub width: Width,
    /// The guard interval.
    pub guard_interval: GuardInterval,
}

impl Standard {
    /// The highest MCS.
    pub const fn highest_mcs(self) -> u8 {
        match self {
            Standard::N => 7,
            Standard::Ac => 9,
            Standard::Ax => 11,
        }
    }

    /// The longest A-MPDU.
    pub const fn longest_ampdu(self) -> Bytes {
        match self {
            Standard::N => Bytes(65_535),
            Standard::Ac => Bytes(1_048_575),
            Standard::Ax => Bytes(6_500_631),
        }
    }

    /// The most MPDUs that a Block Ack covers.
    pub const fn largest_window(self) -> u16 {
        match self {
            Standard::N | Standard::Ac => 64,
            Standard::Ax => 256,
        }
    }
}

impl PpduFormat {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// If the standard does not have the width or the guard interval.
    pub fn validate(&self) -> Result<(), Invalid> {
        let is_wide = matches!(self.width, Width::Mhz80 | Width::Mhz160);
        if self.standard == Standard::N && is_wide {
            let problem = "802.11n has no such width, expected \"20 MHz\" or \"40 MHz\"";
            return Err(Invalid { field: "width", problem });
        }
        let is_short = self.guard_interval == GuardInterval::Ns400;
        let is_usual = self.guard_interval == GuardInterval::Ns800;
        let problem = match self.standard {
            Standard::Ax if is_short => {
                "802.11ax has no such interval, expected \"800 ns\", \"1600 ns\" or \"3200 ns\""
            }
            Standard::N | Standard::Ac if !is_short && !is_usual => {
                "only 802.11ax has such an interval, expected \"400 ns\" or \"800 ns\""
            }
            _ => return Ok(()),
        };
        Err(Invalid { field: "guard_interval", problem })
    }

    /// Whether the format has a rate: not those whose symbols hold no whole number of bits (802.11ac).
    pub fn has(&self, rate: Rate) -> bool {
        let excluded = match (self.standard, self.width) {
            (Standard::Ac, Width::Mhz20) => rate.mcs == 9 && rate.streams != 3,
            (Standard::Ac, Width::Mhz80) => rate.mcs == 6 && rate.streams == 3,
            (Standard::Ac, Width::Mhz160) => rate.mcs == 9 && rate.streams == 3,
            _ => false,
        };
        rate.mcs <= self.standard.highest_mcs() && (1..=4).contains(&rate.streams) && !excluded
    }

    /// The rates with up to `streams` streams, by streams and MCS.
    pub fn rates(self, streams: u8) -> impl Iterator<Item = Rate> {
        let all = (1..=streams).flat_map(|streams| (0..12).map(move |mcs| Rate { mcs, streams }));
        all.filter(move |rate| self.has(*rate))
    }

    const fn tones(&self) -> u64 {
        match (self.standard, self.width) {
            (Standard::N | Standard::Ac, Width::Mhz20) => 52,
            (Standard::N | Standard::Ac, Width::Mhz40) => 108,
            (Standard::N | Standard::Ac, Width::Mhz80) => 234,
            (Standard::N | Standard::Ac, Width::Mhz160) => 468,
            (Standard::Ax, Width::Mhz20) => 234,
            (Standard::Ax, Width::Mhz40) => 468,
            (Standard::Ax, Width::Mhz80) => 980,
            (Standard::Ax, Width::Mhz160) => 1960,
        }
    }

    /// Data bits per symbol.
    pub fn bits_per_symbol(&self, rate: Rate) -> u64 {
        let (bits, numerator, denominator) = MODULATIONS[usize::from(rate.mcs)];
        self.tones() * bits * u64::from(rate.streams) * numerator / denominator
    }

    fn symbol(&self) -> Duration {
        let data = if self.standard == Standard::Ax { 12_800 } else { 3_200 };
        let guard = match self.guard_interval {
            GuardInterval::Ns400 => 400,
            GuardInterval::Ns800 => 800,
            GuardInterval::Ns1600 => 1_600,
            GuardInterval::Ns3200 => 3_200,
        };
        Duration::from_nanos(data + guard)
    }

    /// The rate of the data bits of long PPDUs.
    pub fn bit_rate(&self, rate: Rate) -> BitRate {
        let bps = self.bits_per_symbol(rate) * 1_000_000_000 / self.symbol().as_nanos();
        BitRate::from_bps(bps).expect("rates are positive")
    }

    /// The preambles and signal fields of a PPDU. HE-LTFs last 8 µs, as in ns-3, or 16 with the guard interval of 3200 ns, which
    /// needs long ones (IEEE 802.11ax-2021, table 27-1).
    pub fn preamble(&self, streams: u8) -> Duration {
        let training = match streams {
            1 => 1,
            2 => 2,
            _ => 4,
        };
        Duration::from_micros(match self.standard {
            Standard::N => 32 + 4 * training,
            Standard::Ac => 36 + 4 * training,
            Standard::Ax if self.guard_interval == GuardInterval::Ns3200 => 36 + 16 * training,
            Standard::Ax => 36 + 8 * training,
        })
    }

    /// The air time of a PPDU with `psdu` bytes: whole symbols for a 16-bit SERVICE field, the PSDU and 6 tail bits. With
    /// short symbols of 3.6 µs it ends with a multiple of 4 µs.
    pub fn air_time(&self, rate: Rate, psdu: Bytes) -> Duration {
        let symbols = (16 + psdu.bits() + 6).div_ceil(self.bits_per_symbol(rate));
        let data = self.symbol() * symbols;
        let grid = 4_000;
        let data = match self.guard_interval {
            GuardInterval::Ns400 => Duration::from_nanos(data.as_nanos().div_ceil(grid) * grid),
            _ => data,
        };
        self.preamble(rate.streams) + data
    }

    /// The largest PSDU whose air time is at most `limit`; zero if none is.
    pub fn capacity(&self, rate: Rate, limit: Duration) -> Bytes {
        let data = limit.saturating_sub(self.preamble(rate.streams)).as_nanos();
        let data = if self.guard_interval == GuardInterval::Ns400 { data / 4_000 * 4_000 } else { data };
        let bits = data / self.symbol().as_nanos() * self.bits_per_symbol(rate);
        Bytes(bits.saturating_sub(16 + 6) / 8)
    }

    /// The length of an A-MPDU of `length` bytes, 0 if empty, with a further MPDU.
    pub const fn aggregate(length: Bytes, mpdu: Bytes) -> Bytes {
        Bytes(length.0.next_multiple_of(4) + DELIMITER + mpdu.0)
    }

    /// The PSDU of a single MPDU: 802.11n sends it without a delimiter.
    pub const fn single(&self, mpdu: Bytes) -> Bytes {
        match self.standard {
            Standard::N => mpdu,
            Standard::Ac | Standard::Ax => PpduFormat::aggregate(Bytes::ZERO, mpdu),
        }
    }
}

/// The legacy rate of control frames that belong to a PPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlRate {
    bits_per_symbol: u64,
}

impl ControlRate {
    /// 6 Mb/s.
    pub const LOWEST: ControlRate = ControlRate { bits_per_symbol: 24 };

    /// The highest of 6, 12 and 24 Mb/s not above the legacy rate with the modulation of `rate`.
    pub const fn of(rate: Rate) -> ControlRate {
        let bits_per_symbol = match rate.mcs {
            0 => 24,
            1 | 2 => 48,
            _ => 96,
        };
        ControlRate { bits_per_symbol }
    }

    fn time_for(self, bytes: u64) -> Duration {
        let symbols = (16 + 8 * bytes + 6).div_ceil(self.bits_per_symbol);
        Duration::from_micros(20 + 4 * symbols)
    }

    /// Air time of an Ack.
    pub fn ack(self) -> Duration {
        self.time_for(ACK)
    }

    /// Air time of a compressed Block Ack for a window of `window` MPDUs.
    pub fn block_ack(self, window: u16) -> Duration {
        self.time_for(if window <= 64 { 32 } else { 56 })
    }

    /// Air time of a BlockAckReq.
    pub fn block_ack_request(self) -> Duration {
        self.time_for(BLOCK_ACK_REQUEST)
    }

    /// Air time of an RTS frame.
    pub fn rts(self) -> Duration {
        self.time_for(RTS)
    }

    /// Air time of a CTS frame.
    pub fn cts(self) -> Duration {
        self.time_for(CTS)
    }

    /// Air time of a CF-End, which ends a TXOP early.
    pub fn cf_end() -> Duration {
        ControlRate::LOWEST.time_for(CF_END)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HT20: PpduFormat =
        PpduFormat { standard: Standard::N, width: Width::Mhz20, guard_interval: GuardInterval::Ns800 };
    const VHT80: PpduFormat =
        PpduFormat { standard: Standard::Ac, width: Width::Mhz80, guard_interval: GuardInterval::Ns800 };
    const HE80: PpduFormat =
        PpduFormat { standard: Standard::Ax, width: Width::Mhz80, guard_interval: GuardInterval::Ns800 };

    fn ampdu(mpdus: u64) -> Bytes {
        (0..mpdus).fold(Bytes::ZERO, |length, _| PpduFormat::aggregate(length, Bytes(1536)))
    }

    fn us(us: f64) -> Duration {
        Duration::from_nanos(libm::round(1e3 * us) as u64)
    }

    /// By hand from the standard's tables: MPDUs of 1536 B.
    #[test]
    fn air_times_are_those_of_the_standard() {
        let cases = [
            (HT20, 0, 1, Bytes(1536), 1932.0),
            (HT20, 3, 1, ampdu(11), 5252.0),
            (VHT80, 0, 1, ampdu(12), 5096.0),
            (VHT80, 9, 1, ampdu(64), 2064.0),
            (VHT80, 0, 2, ampdu(25), 5312.0),
            (VHT80, 9, 2, ampdu(42), 708.0),
            (HE80, 0, 1, ampdu(15), 5184.8),
            (HE80, 11, 1, ampdu(42), 914.4),
            (HE80, 5, 1, ampdu(127), 5484.0),
        ];
        for (format, mcs, streams, psdu, expected) in cases {
            let rate = Rate { mcs, streams };
            assert_eq!(format.air_time(rate, psdu), us(expected), "{rate}");
            let capacity = format.capacity(rate, us(expected));
            assert!(psdu <= capacity && format.air_time(rate, capacity) == us(expected), "{rate}");
        }
    }

    /// By hand: a legacy preamble, RL-SIG, HE-SIG-A and HE-STF of 36 µs; one, two or four fields of 12.8 µs and the guard interval.
    #[test]
    fn training_fields_are_long_with_the_longest_guard_interval() {
        let format = PpduFormat { guard_interval: GuardInterval::Ns3200, ..HE80 };
        assert_eq!(
            [1, 2, 3].map(|streams| format.preamble(streams)),
            [52, 68, 100].map(Duration::from_micros)
        );
    }

    #[test]
    fn responses_are_sent_at_legacy_rates() {
        let times = |mcs| {
            let rate = ControlRate::of(Rate { mcs, streams: 1 });
            [rate.ack(), rate.block_ack(64), rate.block_ack(256)]
        };
        assert_eq!(times(0), [44, 68, 100].map(Duration::from_micros));
        assert_eq!(times(2), [32, 44, 60].map(Duration::from_micros));
        assert_eq!(times(7), [28, 32, 40].map(Duration::from_micros));
        assert_eq!(ControlRate::cf_end(), Duration::from_micros(52));
    }

    /// Rates in Mb/s: 802.11n and 802.11ac with the short guard interval, and 802.11ax with 800 ns.
    #[test]
    fn rates_are_those_of_the_standard() {
        let short = |format: PpduFormat| PpduFormat { guard_interval: GuardInterval::Ns400, ..format };
        let mbps =
            |format: PpduFormat, mcs, streams| format.bit_rate(Rate { mcs, streams }).as_bps() as f64 / 1e6;
        for (found, expected) in [
            (mbps(HT20, 7, 1), 65.0),
            (mbps(short(HT20), 7, 2), 144.4),
            (mbps(short(VHT80), 9, 2), 866.7),
            (mbps(HE80, 11, 2), 1201.0),
        ] {
            assert!((found - expected).abs() < 0.06, "{found} for {expected}");
        }
        assert_eq!(HT20.rates(2).count(), 16);
        assert_eq!(VHT80.rates(3).count(), 29);
        assert_eq!(PpduFormat { width: Width::Mhz20, ..VHT80 }.rates(2).count(), 18);
    }

    /// The air time rises to whole groups of ten short symbols.
    #[test]
    fn short_symbols_end_on_the_grid_of_long_ones() {
        let format = PpduFormat { guard_interval: GuardInterval::Ns400, ..HT20 };
        let rate = Rate { mcs: 7, streams: 1 };
        // 48 symbols of 3.6 µs are 172.8 µs.
        assert_eq!(format.air_time(rate, Bytes(1536)), Duration::from_micros(36 + 176));
    }
}
