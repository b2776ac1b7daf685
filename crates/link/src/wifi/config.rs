//! Parameters of a BSS and of its stations.

use lasthop_base::{Bytes, Decibels, Duration, Invalid, Probability};
use lasthop_proto::Dscp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fading::Fading;
use super::interference::Interference;
use super::phy::{LONGEST_PPDU, PpduFormat, SIFS, SLOT};
use super::power_save::PowerSave;
use super::rate::RateSelection;
use super::roaming::Roaming;
use crate::queue::{Queue, QueueLimit};
use crate::wlan::{Cw, RetryLimit};

/// An access category of EDCA, from the last to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// AC_BK.
    Background,
    /// AC_BE.
    BestEffort,
    /// AC_VI.
    Video,
    /// AC_VO.
    Voice,
}

impl Category {
    /// All categories, from the last to the first.
    pub const ALL: [Category; 4] =
        [Category::Background, Category::BestEffort, Category::Video, Category::Voice];

    /// The category of packets with this code point: voice for EF, VA, CS6 and CS7; video for CS3 to CS5, AF3x and AF4x;
    /// background for CS1; best effort otherwise, as in RFC 8325 (section 4) and Linux since 2024, which goes by the first three
    /// bits of code points without a name. LE is background by RFC 8622; Linux has it in best effort.
    pub fn of(dscp: Dscp) -> Category {
        match dscp.get() {
            44 | 46 | 48 | 56 => Category::Voice,
            24 | 26 | 28 | 30 | 32 | 34 | 36 | 38 | 40 => Category::Video,
            1 | 8 => Category::Background,
            _ => Category::BestEffort,
        }
    }
}

/// The largest TXOP limit: 65535 units of 32 µs (IEEE 802.11-2020 section 9.4.2.28).
const LONGEST_TXOP: Duration = Duration::from_micros(65_535 * 32);

/// How a category gets the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { aifsn = 3, cw = { min = 15, max = 1023 }, txop = \"0 s\" }"
)]
pub struct Access {
    /// Idle slots after SIFS before the backoff, 1 to 15.
    pub aifsn: u8,
    /// The contention window.
    pub cw: Cw,
    /// The time for which it may send once it has the medium, at most 2.09712 s; `"0 s"` for one PPDU. An early end is announced by
    /// a CF-End.
    pub txop: Duration,
}

/// Channel access by category, for access point and stations alike: enhanced distributed channel access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Edca {
    /// AC_VO, the code points EF, VA, CS6 and CS7. By default 2 slots, CW 3 to 7, TXOP 2.08 ms.
    pub voice: Access,
    /// AC_VI, the code points CS3 to CS5, AF3x and AF4x. By default 2 slots, CW 7 to 15, TXOP 4.096 ms.
    pub video: Access,
    /// AC_BE. By default 3 slots, CW 15 to 1023, one PPDU.
    pub best_effort: Access,
    /// AC_BK, the code points CS1 and LE. By default 7 slots, CW 15 to 1023, one PPDU.
    pub background: Access,
}

impl Default for Edca {
    fn default() -> Edca {
        let access = |aifsn, min, max, txop_us| {
            let (cw, txop) = (Cw { min, max }, Duration::from_micros(txop_us));
            Access { aifsn, cw, txop }
        };
        Edca {
            voice: access(2, 3, 7, 2_080),
            video: access(2, 7, 15, 4_096),
            best_effort: access(3, 15, 1023, 0),
            background: access(7, 15, 1023, 0),
        }
    }
}

impl Edca {
    /// The access of a category.
    pub fn access(&self, category: Category) -> &Access {
        match category {
            Category::Voice => &self.voice,
            Category::Video => &self.video,
            Category::BestEffort => &self.best_effort,
            Category::Background => &self.background,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        const FIELDS: [[&str; 4]; 4] = [
            [
                "edca.background.aifsn",
                "edca.background.cw.min",
                "edca.background.cw.max",
                "edca.background.txop",
            ],
            [
                "edca.best_effort.aifsn",
                "edca.best_effort.cw.min",
                "edca.best_effort.cw.max",
                "edca.best_effort.txop",
            ],
            ["edca.video.aifsn", "edca.video.cw.min", "edca.video.cw.max", "edca.video.txop"],
            ["edca.voice.aifsn", "edca.voice.cw.min", "edca.voice.cw.max", "edca.voice.txop"],
        ];
        for (category, [aifsn, min, max, txop]) in Category::ALL.into_iter().zip(FIELDS) {
            let access = self.access(category);
            if !(1..=15).contains(&access.aifsn) {
                return Err(Invalid { field: aifsn, problem: "expected 1 to 15 slots" });
            }
            if let Err(invalid) = access.cw.validate() {
                let field = if invalid.field == "cw.min" { min } else { max };
                return Err(Invalid { field, ..invalid });
            }
            if access.txop > LONGEST_TXOP {
                let problem = "expected at most \"2.09712 s\", the largest TXOP limit of the standard";
                return Err(Invalid { field: txop, problem });
            }
        }
        Ok(())
    }
}

/// Which station the access point serves next, within a category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// The one whose oldest packet is the oldest. All stations share the capacity of one queue per category.
    #[default]
    Fifo,
    /// Each in turn, for one A-MPDU. Each has queues of its own.
    RoundRobin,
    /// By deficits of air time, as Linux since 4.11 (Høiland-Jørgensen et al., USENIX ATC 2017): each has the same air time
    /// in the long run, sent and received, and queues of its own.
    Airtime,
}

/// Another BSS in the same channel, as one more contender of best effort. It hears all stations and they hear it. Its
/// exchanges arrive at random times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { share = 0.3, exchange = \"2 ms\" }")]
pub struct Neighbour {
    /// The share of the air that it asks for, below the one that its AIFS and backoffs leave to exchanges. Under contention it gets
    /// less, and catches up later.
    pub share: Probability,
    /// Duration of an exchange, responses included.
    #[serde(default = "Neighbour::exchange")]
    pub exchange: Duration,
}

impl Neighbour {
    fn exchange() -> Duration {
        Duration::from_millis(2)
    }

    /// The share of the air that it would get alone: the AIFS and the mean backoff of `access` precede each exchange.
    pub fn largest_share(&self, access: &Access) -> f64 {
        let slots = f64::from(access.aifsn) + f64::from(access.cw.min) / 2.0;
        let exchange = self.exchange.as_secs_f64();
        exchange / (exchange + SIFS.as_secs_f64() + slots * SLOT.as_secs_f64())
    }

    fn validate(&self) -> Result<(), Invalid> {
        if self.share.get() <= 0.0 || self.share.get() >= 1.0 {
            let problem = "expected a share between 0 and 1 exclusively, such as 0.3";
            return Err(Invalid { field: "neighbour.share", problem });
        }
        if self.exchange < Duration::from_micros(50) || self.exchange > Duration::from_millis(10) {
            let problem = "expected \"50 us\" to \"10 ms\", such as \"2 ms\"";
            return Err(Invalid { field: "neighbour.exchange", problem });
        }
        Ok(())
    }
}

/// Shares of MPDUs lost, independently of each other, whatever the rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { down = 0.1, up = 0.0 }")]
pub struct MpduLoss {
    /// Towards the station.
    pub down: Probability,
    /// From the station.
    pub up: Probability,
}

/// The radio of a station: that of both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StationRadio {
    /// How both ends choose the rate.
    pub rate: RateSelection,
    /// The greatest number of spatial streams, 1 to 4.
    pub streams: u8,
    /// The signal-to-noise ratio per stream, which decides losses by rate and length; `None` for no losses by noise.
    pub snr: Option<Decibels>,
    /// How the ratio fades about `snr`; `None` if it does not.
    pub fading: Option<Fading>,
    /// Losses whatever the rate.
    pub loss: MpduLoss,
    /// Where it is: stations of different areas do not hear each other. The access point hears all and is heard by all.
    pub area: u16,
    /// Power save; `None` if it is always awake.
    pub power_save: Option<PowerSave>,
    /// Roaming; `None` if it stays.
    pub roaming: Option<Roaming>,
}

impl StationRadio {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// If there is no such rate, or a parameter is out of range.
    pub fn validate(&self, format: &PpduFormat) -> Result<(), Invalid> {
        if !(1..=4).contains(&self.streams) {
            return Err(Invalid { field: "streams", problem: "expected 1 to 4 spatial streams" });
        }
        if self.fading.is_some() && self.snr.is_none() {
            let problem = "found no `snr` that fades, expected one, such as snr = \"25 dB\"";
            return Err(Invalid { field: "fading", problem });
        }
        self.fading.map_or(Ok(()), |fading| fading.validate())?;
        self.power_save.map_or(Ok(()), |power_save| power_save.validate())?;
        self.roaming.map_or(Ok(()), |roaming| roaming.validate())?;
        self.rate.validate(format, self.streams)
    }
}

/// Parameters shared by an access point and its stations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WifiConfig {
    /// The format of PPDUs.
    pub format: PpduFormat,
    /// Channel access.
    pub edca: Edca,
    /// The longest A-MPDU of best effort and background, in bytes; zero for no aggregation. Video has at most 65535 B, and
    /// voice is not aggregated.
    pub ampdu: Bytes,
    /// The longest PPDU.
    pub longest_ppdu: Duration,
    /// The window of the Block Ack, in MPDUs.
    pub window: u16,
    /// Attempts of an MPDU until it is given up.
    pub retry_limit: RetryLimit,
    /// Whether a missed Block Ack is requested before the MPDUs are sent again.
    pub requests_block_ack: bool,
    /// How long a receiver holds MPDUs behind a missing one. With `None` until that arrives or is given up, which a sender tells it at
    /// once.
    pub reorder_timeout: Option<Duration>,
    /// Whether RTS and CTS precede each PPDU, or the first for a receiver in a TXOP.
    pub rts: bool,
    /// Whether stations that hear a collision wait for EIFS.
    pub eifs: bool,
    /// The queues of the access point, by category: of each station, or of all with [`Scheduler::Fifo`].
    pub queue: Queue,
    /// Which station is served next.
    pub scheduler: Scheduler,
    /// The queue of a station, by category.
    pub station_queue: Queue,
    /// Another BSS.
    pub neighbour: Option<Neighbour>,
    /// What is not Wi-Fi.
    pub interference: Option<Interference>,
}

/// 802.11ax at 80 MHz with parameters of the standard; drop-tail queues of 1000 packets.
impl Default for WifiConfig {
    fn default() -> WifiConfig {
        let format = PpduFormat::default();
        let queue = Queue::DropTail(QueueLimit::Packets(1_000));
        WifiConfig {
            format,
            edca: Edca::default(),
            ampdu: format.standard.longest_ampdu(),
            longest_ppdu: LONGEST_PPDU,
            window: format.standard.largest_window(),
            retry_limit: RetryLimit::at_most(30),
            requests_block_ack: false,
            reorder_timeout: None,
            rts: false,
            eifs: false,
            queue,
            scheduler: Scheduler::Fifo,
            station_queue: queue,
            neighbour: None,
            interference: None,
        }
    }
}

impl WifiConfig {
    /// The longest A-MPDU of a category; zero for no aggregation.
    pub fn longest_ampdu(&self, category: Category) -> Bytes {
        match category {
            Category::Voice => Bytes::ZERO,
            Category::Video => Bytes(65_535),
            Category::BestEffort | Category::Background => self.ampdu,
        }
    }

    /// Checks what the parameters' types cannot express, but for the queues' own.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.format.validate()?;
        self.edca.validate()?;
        self.neighbour.map_or(Ok(()), |neighbour| neighbour.validate())?;
        self.interference.map_or(Ok(()), |interference| interference.validate())?;
        let wrong = |field, problem| Err(Invalid { field, problem });
        if self.window == 0 || self.window > self.format.standard.largest_window() {
            return wrong("window", "expected 1 to 64 MPDUs, or to 256 with 802.11ax");
        }
        if self.ampdu > self.format.standard.longest_ampdu() {
            let problem =
                "expected at most 65535 B with 802.11n, 1048575 B with 802.11ac, 6500631 B with 802.11ax";
            return wrong("ampdu", problem);
        }
        if self.longest_ppdu > LONGEST_PPDU || self.longest_ppdu < Duration::from_micros(100) {
            return wrong("longest_ppdu", "expected \"100 us\" to \"5484 us\"");
        }
        if self.reorder_timeout.is_some_and(|timeout| timeout.is_zero() || timeout > Duration::from_secs(60))
        {
            return wrong(
                "reorder_timeout",
                "expected a time above zero, at most \"60 s\", such as \"100 ms\"",
            );
        }
        if self.scheduler == Scheduler::Fifo && matches!(self.queue, Queue::Managed(_)) {
            let problem = "found a discipline for the one queue of all stations, expected a capacity; \
                           set scheduler = \"airtime\" or \"round-robin\" for a queue per station";
            return wrong("queue", problem);
        }
        Ok(())
    }
}
