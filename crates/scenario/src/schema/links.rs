//! The schema of links: `[wired]`, `[radio]` and `[link.NAME]`.

use lasthop_base::{BitRate, Bytes, Duration, Power, Unread};
use lasthop_channel::{Model, Outages};
use lasthop_link::queue::Queue;
use lasthop_link::varying::{Delay, Grants, Rate};
use lasthop_link::wlan::AboveMac;
use lasthop_link::{Expansion, Exposed};
use lasthop_proto::arq;
use lasthop_proto::fec::BlockCode;
use lasthop_proto::frag::{Fragments, Mtu};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::serde_words;
use super::topology::Edge;
use super::wifi::StationOverride;

/// The wired links. They are full duplex with independent directions. Optional if there are no wired links,
/// or if each states its own rate.
///
/// **Queue disciplines** are available on wired and wireless links. CoDel, FQ-CoDel, PIE and RED (active queue
/// management) keep queues short: they mark ECN-capable packets and drop others (`ecn_marks` and `aqm_drops`
/// in metrics). A policer drops what exceeds its rate (`aqm_drops`). On a link with an ARQ, packets whose
/// transmission has started do not count as queued. The queues of cells are drop-tail, or have
/// `cell.priority`.
///
/// ```toml
/// [wired]
/// rate = "10 Mbps"
/// queue.codel = { target = "5 ms", interval = "100 ms" }
///
/// [link.base-mobile]
/// queue.fq-codel = {}
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the key rate")]
pub struct Wired {
    /// Rate of each direction, or a variable rate.
    pub rate: Rate,
    /// Propagation delay, one way, or a variable delay. By default zero: the EBSN paper neglects it.
    #[serde(default)]
    pub delay: Delay,
    /// Capacity of the drop-tail queue of each direction, without the packet in transmission: `"unlimited"`,
    /// `"50 packets"` or `"64 KiB"`. Or a queue discipline.
    #[serde(default)]
    pub queue: Queue,
    /// A path-MTU black hole: packets above this size vanish, and no message tells their sender (`link_discards` in metrics). See
    /// `tcp.mtu_probing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub black_hole: Option<Bytes>,
}

/// Defines [`Radio`]; [`LinkOverride`], in which every key is optional; and the application of one to the other.
///
/// Each entry has attributes, key, type, and the serde module of its optional form if needed. Its default is
/// that of its type. There is a group `queue` because links list `delay` and `queue` first.
macro_rules! radio_schema {
    (
        unit { $($(#[doc = $unit_doc:literal])* $(#[serde($unit_serde:meta)])? $unit:ident: $unit_type:ty $(, optional as $unit_words:literal)?;)* }
        queue { $($(#[doc = $queue_doc:literal])* $queue:ident: $queue_type:ty;)* }
        rest { $($(#[doc = $rest_doc:literal])* $(#[serde($rest_serde:meta)])? $rest:ident: $rest_type:ty $(, optional as $rest_words:literal)?;)* }
    ) => {
        /// The wireless links. The settings apply to both directions, which meet the same fades;
        /// `[radio.uplink]` overrides them for the uplink. Optional if there are no wireless links, or if
        /// each states its own rate.
        ///
        /// ```toml
        /// [radio]
        /// rate = "2 Mbps"
        /// delay = "5 ms"
        /// queue = "50 packets"
        /// channel.two-state = { good = "4 s", bad = "400 ms" }
        /// arq.selective-repeat = { retransmissions = 3 }
        /// ```
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, expecting = "a table with the key rate")]
        pub struct Radio {
            /// Raw rate of each direction, at which expanded bits are sent, or a variable rate.
            pub rate: Rate,
            $($(#[doc = $unit_doc])* #[serde(default $(, $unit_serde)?)] pub $unit: $unit_type,)*
            $($(#[doc = $queue_doc])* #[serde(default)] pub $queue: $queue_type,)*
            $($(#[doc = $rest_doc])* #[serde(default $(, $rest_serde)?)] pub $rest: $rest_type,)*
        }

        impl Radio {
            /// A link with this rate and default parameters.
            pub(crate) fn new(rate: Rate) -> Radio {
                Radio {
                    rate,
                    $($unit: Default::default(),)*
                    $($queue: Default::default(),)*
                    $($rest: Default::default(),)*
                }
            }
        }

        /// Overrides of `[wired]` or `[radio]` for one link, or of `[cell]` or `[wifi]` for one station. `NAME`
        /// is the name of the link, such as `R1-R2`. A wired link has only the first three keys and `black_hole`. A link of a
        /// cell, such as `ap-MH1`, has only `channel`, `drop` and, with `[wifi]`, `station`; other links have
        /// none of the last two.
        ///
        /// ```toml
        /// [link.R1-R2]
        /// rate = "256 kbps"
        /// queue = "20 packets"
        ///
        /// [link.base2-laptop]
        /// channel.iid.ber = 1e-6
        ///
        /// [link.ap-MH1]
        /// drop = { down = 0.01, up = 0.005 }
        /// ```
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default, expecting = "a table")]
        pub struct LinkOverride {
            /// Rate of each direction, fixed or varying.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rate: Option<Rate>,
            $(
                $(#[doc = $queue_doc])*
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $queue: Option<$queue_type>,
            )*
            $(
                $(#[doc = $unit_doc])*
                #[serde(skip_serializing_if = "Option::is_none" $(, with = $unit_words)?)]
                pub $unit: Option<$unit_type>,
            )*
            $(
                $(#[doc = $rest_doc])*
                #[serde(skip_serializing_if = "Option::is_none" $(, with = $rest_words)?)]
                pub $rest: Option<$rest_type>,
            )*
            /// Losses above the MAC of this station.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub drop: Option<AboveMac>,
            /// Rates and losses of this station of a cell with `[wifi]`.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub station: Option<StationOverride>,
        }

        impl LinkOverride {
            /// The wireless link with these overrides; `None` if its rate is not stated.
            pub(crate) fn radio(&self, usual: Option<&Radio>) -> Option<Radio> {
                let usual = usual.cloned().or_else(|| self.rate.clone().map(Radio::new))?;
                let own = self.clone();
                Some(Radio {
                    rate: own.rate.unwrap_or(usual.rate),
                    $($unit: own.$unit.unwrap_or(usual.$unit),)*
                    $($queue: own.$queue.unwrap_or(usual.$queue),)*
                    $($rest: own.$rest.unwrap_or(usual.$rest),)*
                })
            }

            /// The keys, each with whether it is stated.
            fn keys(&self) -> Vec<(&'static str, bool)> {
                vec![
                    ("rate", self.rate.is_some()),
                    $((stringify!($queue), self.$queue.is_some()),)*
                    $((stringify!($unit), self.$unit.is_some()),)*
                    $((stringify!($rest), self.$rest.is_some()),)*
                    ("drop", self.drop.is_some()),
                    ("station", self.station.is_some()),
                ]
            }
        }
    };
}

radio_schema! {
    unit {
        /// Bits on the air per bit of a packet: the overhead of the lower layers.
        expansion: Expansion;
        /// Largest unit on the air, like the MTU of IP. Larger packets are fragmented, and lost if a fragment
        /// is lost.
        #[serde(with = "serde_words::UnitSize")]
        mtu: Option<Mtu>, optional as "serde_words::Stated::<serde_words::UnitSize>";
        /// Fixed size of units on the air, instead of `mtu`: the last unit of a packet is padded.
        #[serde(with = "serde_words::UnitSize")]
        unit: Option<Mtu>, optional as "serde_words::Stated::<serde_words::UnitSize>";
    }
    queue {
        /// Propagation delay, one way, or a variable delay. By default zero: a last hop of 1 km takes 3 µs.
        delay: Delay;
        /// Capacity of the drop-tail queue of each direction, without the packet in transmission, or a queue
        /// discipline, as in `[wired]`.
        queue: Queue;
    }
    rest {
        /// A path-MTU black hole: packets above this size vanish, as in `[wired]`. Unlike `mtu`, nothing fragments them.
        #[serde(skip_serializing_if = "Option::is_none")]
        black_hole: Option<Bytes>;
        /// Which bits are exposed to errors: `"on-air"`, all of them, or `"payload"`, only as many as before
        /// expansion.
        errors_on: Exposed;
        /// The loss model: `"perfect"`, or a table such as `[radio.channel.two-state]`.
        channel: Model;
        /// Overrides for the direction from the mobile host to the base station: `rate`, `delay`, `queue`,
        /// `black_hole`, `expansion`, `mtu`, `unit`, `errors_on`, `channel`, `grants`, `arq`, `fec` and `protect`, each as in
        /// `[radio]`. Keys that are not stated are the same as downlink. A `channel` stated here has
        /// independent fades. `[link.NAME.uplink]` replaces this table for one link.
        ///
        /// ```toml
        /// [radio.uplink]
        /// rate = "64 kbps"
        /// channel = "perfect"
        /// ```
        #[serde(skip_serializing_if = "Option::is_none")]
        uplink: Option<Box<LinkOverride>>;
        /// Transmission by grants of a cellular base station, in both directions: `{}` has the times of LTE. By default, packets are sent when the link is free.
        #[serde(skip_serializing_if = "Option::is_none")]
        grants: Option<Grants>;
        /// Outages at given times.
        #[serde(skip_serializing_if = "Option::is_none")]
        outage: Option<Outages>;
        /// The power consumption of the mobile host's radio.
        #[serde(skip_serializing_if = "Option::is_none")]
        power: Option<RadioPower>;
        /// Link-layer retransmission: `"none"`, or a table such as `[radio.arq.selective-repeat]`.
        arq: arq::Config;
        /// Forward error correction: `"none"`, or a block code, given as the name of a BCH code,
        /// `"bch-255-131-18"`, or as `{ n = 255, k = 131, t = 18 }`: codewords of `n` bits with `k` data
        /// bits, in which up to `t` bit errors are corrected. A `unit` must hold at least one codeword, and
        /// holds whole codewords only; without `unit`, check bits are added to the packet, and the last
        /// codeword is shortened.
        #[serde(with = "serde_words::Code")]
        fec: Option<BlockCode>, optional as "serde_words::Stated::<serde_words::Code>";
        /// What the code protects: `"scheme"`, the packets selected by the scheme; or, with every scheme,
        /// `"repeats"`, the units that the link retransmits, or `"all"`.
        protect: LinkProtection;
        /// Name of a link preset, which sets the keys that are not stated.
        ///
        /// `lasthop links` lists named links from measurements and specifications, with the sources of their
        /// numbers and our own choices. `lasthop links NAME` shows one with all keys.
        ///
        /// ```toml
        /// [radio]
        /// preset = "starlink"
        /// queue = "200 packets"        # takes precedence over the preset's
        /// ```
        ///
        /// A preset sets the keys that `[radio]` or `[link.NAME]` does not state. Keys of `uplink` are set
        /// individually: with your own `rate` in `[radio]`, the uplink keeps the rate of the preset. `lasthop
        /// check` prints all keys; in this canonical form, all keys are stated, so changing the preset has no
        /// effect. A study may sweep `radio.preset`.
        #[serde(skip_serializing_if = "Option::is_none")]
        preset: Option<String>;
    }
}

/// Power consumption of the mobile host's radio, such as `"1.3 W"` or `"900 mW"`. It enables the metrics of
/// energy.
///
/// There is no default, since devices differ by more than schemes save. Published values:
///
/// | radio | `transmit` | `receive` | `idle` |
/// |---|---|---|---|
/// | WaveLAN, 2 Mb/s | 1327 mW | 967 mW | 844 mW |
/// | WaveLAN, 11 Mb/s | 1346 mW | 901 mW | 739 mW |
/// | LTE, 6 Mb/s up and 13 Mb/s down | 3918 mW | 1964 mW | 1288 mW |
///
/// The first two are 280, 204 and 178 mA, and 284, 190 and 156 mA, at 4.74 V: L. M. Feeney and M. Nilsson,
/// "Investigating the energy consumption of a wireless network interface in an ad hoc networking
/// environment", INFOCOM 2001. The third is for the median rates of J. Huang et al., "A close examination of
/// performance and power characteristics of 4G LTE networks", MobiSys 2012, whose model of a connected phone
/// is 1288.04 mW, and 438.39 mW for each Mb/s up and 51.97 mW for each Mb/s down; compute yours from the
/// rates of your link. For 3G, they have 817.88, 868.98 and 122.12 mW; for Wi-Fi 132.86, 283.17 and 137.01
/// mW.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the keys transmit, receive and idle")]
pub struct RadioPower {
    /// Power while sending.
    pub transmit: Power,
    /// Power while receiving from the base station.
    pub receive: Power,
    /// Power at other times, including background consumption such as the tail of a cellular connection.
    pub idle: Power,
}

/// The packets or units that a link protects with its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LinkProtection {
    /// The selection of the scheme, if any.
    #[default]
    Scheme,
    /// Retransmitted units, whatever the scheme.
    Repeats,
    /// Everything, whatever the scheme.
    All,
}

impl Wired {
    /// A link with this rate and default parameters.
    pub(crate) fn new(rate: Rate) -> Wired {
        Wired { rate, delay: Delay::default(), queue: Queue::default(), black_hole: None }
    }
}

/// Calls `each` with the data files of a channel, and the keys that lead to them.
pub(super) fn files_of_channel<'a>(
    table: &[&'a str],
    channel: &mut Model,
    each: &mut dyn FnMut(&[&'a str], &mut dyn Unread),
) {
    for (keys, file) in channel.files() {
        each(&[table, &["channel"], keys].concat(), file);
    }
}

/// The same for a rate and a delay.
fn files_of_timing<'a>(
    table: &[&'a str],
    rate: Option<&mut Rate>,
    delay: Option<&mut Delay>,
    each: &mut dyn FnMut(&[&'a str], &mut dyn Unread),
) {
    let of_rate = rate.and_then(Rate::files).map(|file| ("rate", file));
    let of_delay = delay.and_then(Delay::files).map(|file| ("delay", file));
    for (key, (keys, file)) in of_rate.into_iter().chain(of_delay) {
        each(&[table, &[key], keys].concat(), file);
    }
}

impl Wired {
    /// As [`Radio::each_file`].
    pub(super) fn each_file<'a>(
        &mut self,
        table: &[&'a str],
        each: &mut dyn FnMut(&[&'a str], &mut dyn Unread),
    ) {
        files_of_timing(table, Some(&mut self.rate), Some(&mut self.delay), each);
    }
}

impl Radio {
    /// Whether the time of a packet's transmission depends on when it is sent.
    pub fn varies(&self) -> bool {
        self.rate.varies() || self.delay.varies() || self.grants.is_some()
    }

    /// The mean rate of who always has data: beside the neighbours of [`grants`](Radio::grants), an equal share.
    pub fn nominal_rate(&self) -> BitRate {
        let users = 1 + self.grants.map_or(0, |grants| u64::from(grants.neighbours));
        let bps = self.rate.nominal().as_bps() / users;
        BitRate::from_bps(bps.max(1)).expect("it is not zero")
    }

    /// The number of units of a packet, the number of bits exposed to errors, and the total air time.
    pub fn on_air(&self, size: Bytes) -> (u32, u64, Duration) {
        let units = match self.unit {
            None => Fragments::of(size, self.mtu),
            // The last unit is padded.
            Some(unit) => {
                let count = u64::from(Fragments::of(size, Some(unit)).count());
                Fragments::of(unit.get() * count, Some(unit))
            }
        };
        let (mut exposed, mut time) = (0, Duration::ZERO);
        for index in 0..units.count() {
            let bits = units.size(index).bits();
            exposed += self.errors_on.of(bits, self.expansion);
            time += self.rate.nominal().time_for_bits(self.expansion.on_air(bits));
        }
        (units.count(), exposed, time)
    }

    /// Calls `each` with its data files, and the keys that lead to them; `table` are those that lead to it.
    pub(super) fn each_file<'a>(
        &mut self,
        table: &[&'a str],
        each: &mut dyn FnMut(&[&'a str], &mut dyn Unread),
    ) {
        files_of_timing(table, Some(&mut self.rate), Some(&mut self.delay), each);
        files_of_channel(table, &mut self.channel, each);
        if let Some(uplink) = &mut self.uplink {
            uplink.each_file(&[table, &["uplink"]].concat(), each);
        }
    }
}

impl LinkOverride {
    /// As [`Radio::each_file`].
    pub(super) fn each_file<'a>(
        &mut self,
        table: &[&'a str],
        each: &mut dyn FnMut(&[&'a str], &mut dyn Unread),
    ) {
        files_of_timing(table, self.rate.as_mut(), self.delay.as_mut(), each);
        if let Some(channel) = &mut self.channel {
            files_of_channel(table, channel, each);
        }
        if let Some(Some(uplink)) = &mut self.uplink {
            uplink.each_file(&[table, &["uplink"]].concat(), each);
        }
    }

    /// The wired link with these overrides; `None` if its rate is not stated.
    pub(crate) fn wired(&self, usual: Option<&Wired>) -> Option<Wired> {
        let usual = usual.cloned().or_else(|| self.rate.clone().map(Wired::new))?;
        Some(Wired {
            rate: self.rate.clone().unwrap_or(usual.rate),
            delay: self.delay.clone().unwrap_or(usual.delay),
            queue: self.queue.unwrap_or(usual.queue),
            black_hole: self.black_hole.unwrap_or(usual.black_hole),
        })
    }

    /// The first stated key that does not apply to the kind of link, and the kinds to which it applies.
    pub(crate) fn first_strange_key(&self, edge: &Edge) -> Option<(&'static str, &'static str)> {
        let stated = self.keys().into_iter().filter_map(|(key, stated)| stated.then_some(key));
        let home = |key: &str| match key {
            "rate" | "delay" | "queue" | "black_hole" => "wired and wireless ones",
            "channel" => "wireless ones and those of cells",
            "drop" | "station" => "those of cells",
            _ => "wireless ones",
        };
        let fits = |key: &str| match (edge.in_cell, edge.mobile) {
            (true, _) => matches!(key, "channel" | "drop" | "station"),
            (false, None) => matches!(key, "rate" | "delay" | "queue" | "black_hole"),
            (false, Some(_)) => !matches!(key, "drop" | "station"),
        };
        stated.filter(|key| !fits(key)).map(|key| (key, home(key))).next()
    }

    /// Whether `key` is stated.
    pub(crate) fn states(&self, key: &str) -> bool {
        self.keys().contains(&(key, true))
    }
}
