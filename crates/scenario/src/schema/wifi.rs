//! The schema of Wi-Fi cells: `[wifi]`.

use lasthop_base::{Bytes, Decibels, Duration};
use lasthop_channel::Model;
use lasthop_link::queue::{Queue, QueueLimit};
use lasthop_link::wifi::rate::RateSelection;
use lasthop_link::wifi::{
    Edca, Fading, GuardInterval, Interference, LONGEST_PPDU, MpduLoss, Neighbour, PowerSave, PpduFormat,
    Roaming, Scheduler, Standard, StationRadio, Width, WifiConfig,
};
use lasthop_link::wlan::{AboveMac, RetryLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Cells of 802.11n, 802.11ac or 802.11ax, in place of `[cell]`: access points and stations share a medium by EDCA, send
/// aggregates of packets (A-MPDU), and repeat those that a Block Ack does not acknowledge. All hear each other, but for stations of
/// different areas. All keys have
/// defaults. All cells of a scenario have the same settings, except for stations overridden by `[link.NAME]`. The guide's page
/// on Wi-Fi describes the model.
///
/// ```toml
/// [topology.cell]
/// stations = 2
///
/// [wifi]
/// standard = "802.11ac"
/// streams = 2
/// rate = "ideal"
/// snr = "35 dB"
/// queue = "1000 packets"
///
/// [link.ap-MH2]
/// station = { snr = "12 dB" }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Wifi {
    /// The generation: `"802.11n"`, `"802.11ac"` or `"802.11ax"`.
    pub standard: Standard,
    /// Width of the channel: `"20 MHz"`, `"40 MHz"`, `"80 MHz"` or `"160 MHz"`. By default 20 MHz with 802.11n, otherwise 80
    /// MHz.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<Width>,
    /// The guard interval: `"800 ns"`; `"400 ns"` with 802.11n and 802.11ac; `"1600 ns"` and `"3200 ns"` with 802.11ax.
    pub guard_interval: GuardInterval,
    /// The greatest number of spatial streams, 1 to 4.
    #[schemars(range(min = 1, max = 4))]
    pub streams: u8,
    /// The rate control of both ends: `"ideal"`, or a table such as `rate.fixed = { mcs = 7, streams = 1 }`.
    pub rate: RateSelection,
    /// The signal-to-noise ratio at both ends, per stream and over the width, such as `"25 dB"`: it decides how many MPDUs are
    /// lost at each rate. Without it, noise loses none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snr: Option<Decibels>,
    /// How the signal fades about `snr`, `{ doppler_hz = 6 }`; `{}` is Rayleigh fading. By default it does not. Stations fade apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fading: Option<Fading>,
    /// Shares of MPDUs lost whatever the rate, `{ down = 0.1, up = 0.0 }`.
    pub loss: MpduLoss,
    /// Further errors of MPDUs, such as interference: `"perfect"`, or one of the tables of `[radio.channel]`, from `two-state`
    /// on.
    pub channel: Model,
    /// Losses above the MAC.
    pub drop: AboveMac,
    /// Channel access by category. The code point of a packet decides its category.
    pub edca: Edca,
    /// The longest A-MPDU of best effort and background; `"0 B"` for none. By default that of the standard: 65535 B with
    /// 802.11n, 1048575 B with 802.11ac, 6500631 B with 802.11ax. Video has at most 65535 B, and voice is not aggregated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ampdu: Option<Bytes>,
    /// The longest PPDU, at most 5484 µs. Linux limits it to 4 ms.
    pub longest_ppdu: Duration,
    /// The window of the Block Ack in MPDUs. By default 64, and 256 with 802.11ax.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 256))]
    pub window: Option<u16>,
    /// Attempts of an MPDU until it is given up; or `"unlimited"`. By default 30, as Linux's ath9k has.
    pub retry_limit: RetryLimit,
    /// Whether a sender that misses a Block Ack requests it, before it sends the MPDUs again.
    pub requests_block_ack: bool,
    /// How long a receiver holds MPDUs behind a missing one before it goes on without, `"100 ms"` in Linux's mac80211
    /// (`HT_RX_REORDER_BUF_TIMEOUT`): for a sender that does not tell what it gives up. One that comes later is dropped above the MAC.
    /// By default the sender tells it at once, as by a BlockAckReq that takes no air.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder_timeout: Option<Duration>,
    /// Whether RTS and CTS precede each PPDU, or the first for a receiver in a TXOP.
    pub rts: bool,
    /// Whether stations that hear a collision wait for EIFS. Otherwise they detect no frame in it.
    pub eifs: bool,
    /// The queues of the access point, one for each category: a capacity, which counts packets until they are acknowledged or
    /// given up, or a queue discipline as in `[wired]`. With `scheduler = "fifo"` all stations share it.
    pub queue: Queue,
    /// Which station the access point serves next: `"fifo"`, `"round-robin"` or `"airtime"`.
    pub scheduler: Scheduler,
    /// The queues of a station, one for each category, as `queue`.
    pub station_queue: Queue,
    /// A neighbouring BSS in the same channel, `{ share = 0.3, exchange = "2 ms" }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub neighbour: Option<Neighbour>,
    /// Bursts of what is not Wi-Fi, such as a microwave oven, which is `{}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interference: Option<Interference>,
    /// Power save of the stations, `{ timeout = "100 ms" }`. By default they are always awake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_save: Option<PowerSave>,
    /// Roaming of the stations, `{ every = "30 s" }`. By default they stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roaming: Option<Roaming>,
    /// Name of a preset of Wi-Fi, which sets the keys that are not stated.
    ///
    /// `lasthop links` lists the presets; those of Wi-Fi are for this table. `lasthop links NAME` shows one with all keys. As with
    /// [`preset` of `[radio]`](#radio), keys stated beside it take precedence, and a study may sweep `wifi.preset`.
    ///
    /// ```toml
    /// [topology.cell]
    /// stations = 1
    ///
    /// [wifi]
    /// preset = "wifi-ac-crowded"
    /// ```
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
}

impl Default for Wifi {
    fn default() -> Wifi {
        let queue = Queue::DropTail(QueueLimit::Packets(1_000));
        Wifi {
            standard: Standard::default(),
            width: None,
            guard_interval: GuardInterval::default(),
            streams: 1,
            rate: RateSelection::default(),
            snr: None,
            fading: None,
            loss: MpduLoss::default(),
            channel: Model::default(),
            drop: AboveMac::default(),
            edca: Edca::default(),
            ampdu: None,
            longest_ppdu: LONGEST_PPDU,
            window: None,
            retry_limit: RetryLimit::at_most(30),
            requests_block_ack: false,
            reorder_timeout: None,
            rts: false,
            eifs: false,
            queue,
            scheduler: Scheduler::default(),
            station_queue: queue,
            neighbour: None,
            interference: None,
            power_save: None,
            roaming: None,
            preset: None,
        }
    }
}

impl Wifi {
    fn format(&self) -> PpduFormat {
        let usual = if self.standard == Standard::N { Width::Mhz20 } else { Width::Mhz80 };
        let Wifi { standard, guard_interval, .. } = *self;
        PpduFormat { standard, width: self.width.unwrap_or(usual), guard_interval }
    }

    /// Parameters common to the access point and its stations.
    pub(crate) fn config(&self) -> WifiConfig {
        WifiConfig {
            format: self.format(),
            edca: self.edca,
            ampdu: self.ampdu.unwrap_or(self.standard.longest_ampdu()),
            longest_ppdu: self.longest_ppdu,
            window: self.window.unwrap_or(self.standard.largest_window()),
            retry_limit: self.retry_limit,
            requests_block_ack: self.requests_block_ack,
            reorder_timeout: self.reorder_timeout,
            rts: self.rts,
            eifs: self.eifs,
            queue: self.queue,
            scheduler: self.scheduler,
            station_queue: self.station_queue,
            neighbour: self.neighbour,
            interference: self.interference,
        }
    }

    /// The radio of a station with these overrides.
    pub(crate) fn radio(&self, own: &StationOverride) -> StationRadio {
        StationRadio {
            rate: own.rate.unwrap_or(self.rate),
            streams: own.streams.unwrap_or(self.streams),
            snr: own.snr.or(self.snr),
            fading: own.fading.or(self.fading),
            loss: own.loss.unwrap_or(self.loss),
            area: own.area.unwrap_or_default(),
            power_save: own.power_save.or(self.power_save),
            roaming: own.roaming.or(self.roaming),
        }
    }
}

/// Overrides of `[wifi]` for one station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { snr = \"12 dB\" }")]
pub struct StationOverride {
    /// Its rate control, at both ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateSelection>,
    /// Its greatest number of spatial streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams: Option<u8>,
    /// Its signal-to-noise ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snr: Option<Decibels>,
    /// How its signal fades.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fading: Option<Fading>,
    /// Shares of MPDUs lost whatever the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<MpduLoss>,
    /// The number of the area in which it is, by default 0. Stations of different areas are hidden from each other: while one sends, the
    /// others may begin, and all that the access point then hears is lost from there on. RTS and CTS, which all hear, prevent it but for the
    /// time of the RTS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub area: Option<u16>,
    /// Its power save.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_save: Option<PowerSave>,
    /// Its roaming.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roaming: Option<Roaming>,
}

impl StationOverride {
    /// Whether `key` is stated.
    pub(crate) fn states(&self, key: &str) -> bool {
        match key {
            "rate" => self.rate.is_some(),
            "streams" => self.streams.is_some(),
            "snr" => self.snr.is_some(),
            "fading" => self.fading.is_some(),
            "loss" => self.loss.is_some(),
            "area" => self.area.is_some(),
            "power_save" => self.power_save.is_some(),
            "roaming" => self.roaming.is_some(),
            _ => false,
        }
    }
}
