//! The schema of links: `[wired]`, `[radio]` and `[link.NAME]`.

use lasthop_base::{Bytes, Duration, Power, Unread};
use lasthop_channel::{Model, Outages};
use lasthop_link::queue::Queue;
use lasthop_link::varying::{Delay, Rate};
use lasthop_link::wlan::AboveMac;
use lasthop_link::{Expansion, Exposed};
use lasthop_proto::arq;
use lasthop_proto::fec::BlockCode;
use lasthop_proto::frag::{Fragments, Mtu};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::serde_words;
use super::topology::Edge;

/// Full-duplex wired links: the table `[wired]`. Both directions have the same parameters and are
/// independent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the key rate")]
pub struct Wired {
    /// Rate of each direction, fixed or varying.
    pub rate: Rate,
    /// Propagation delay, one way, fixed or varying. By default zero: the EBSN paper neglects it.
    #[serde(default)]
    pub delay: Delay,
    /// Queue capacity of each direction, not counting the packet in transmission. By default unlimited.
    #[serde(default)]
    pub queue: Queue,
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
        /// Wireless links: the table `[radio]`. Both directions have the same parameters, except for
        /// `uplink`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, expecting = "a table with the key rate")]
        pub struct Radio {
            /// Raw bit rate of each direction, fixed or varying; expanded bits are sent at this rate.
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

        /// Overrides for a single link: the table `[link.NAME]` for `[wired]`, `[radio]` or a station of
        /// `[cell]`, or `uplink` for the direction to the base station. Wired links have the first three keys
        /// only, links of a cell `channel` and `drop`, wireless links all but `drop`.
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
                ]
            }
        }
    };
}

radio_schema! {
    unit {
        /// Ratio of bits on the air to bits of the packet. By default 1.
        expansion: Expansion;
        /// Maximum unit size, as counted by IP: larger packets are fragmented. By default none.
        #[serde(with = "serde_words::UnitSize")]
        mtu: Option<Mtu>, optional as "serde_words::Stated::<serde_words::UnitSize>";
        /// Fixed unit size; the last unit of a packet is padded. Excludes `mtu`. By default none.
        #[serde(with = "serde_words::UnitSize")]
        unit: Option<Mtu>, optional as "serde_words::Stated::<serde_words::UnitSize>";
    }
    queue {
        /// Propagation delay, one way, fixed or varying. By default zero: a last hop of 1 km takes 3 µs.
        delay: Delay;
        /// Queue capacity of each direction. By default unlimited.
        queue: Queue;
    }
    rest {
        /// The bits that the channel's error rates apply to. By default all bits on the air.
        errors_on: Exposed;
        /// Channel model. Both directions meet the same fades. By default without errors.
        channel: Model;
        /// Overrides for the direction to the base station. Its own channel, if given, has independent fades.
        /// By default none.
        #[serde(skip_serializing_if = "Option::is_none")]
        uplink: Option<Box<LinkOverride>>;
        /// Outages: times at which everything is lost in both directions. By default none.
        #[serde(skip_serializing_if = "Option::is_none")]
        outage: Option<Outages>;
        /// The power that the radio of the mobile host takes. By default unknown.
        #[serde(skip_serializing_if = "Option::is_none")]
        power: Option<RadioPower>;
        /// ARQ, for schemes that use it. By default none.
        arq: arq::Config;
        /// Error-correcting code. By default none.
        #[serde(with = "serde_words::Code")]
        fec: Option<BlockCode>, optional as "serde_words::Stated::<serde_words::Code>";
        /// What the code protects. By default determined by the scheme.
        protect: LinkProtection;
        /// Name of the preset that gives the keys that are not stated; they are settled when a file is read. By default
        /// none.
        #[serde(skip_serializing_if = "Option::is_none")]
        preset: Option<String>;
    }
}

/// The power that the radio of a mobile host takes: the table `[radio.power]`. Other states, such as the tail of a cellular
/// connection, are part of `idle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with the keys transmit, receive and idle")]
pub struct RadioPower {
    /// While it sends.
    pub transmit: Power,
    /// While the base station sends to it.
    pub receive: Power,
    /// Otherwise.
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
        Wired { rate, delay: Delay::default(), queue: Queue::default() }
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
        })
    }

    /// The first stated key that does not apply to the kind of link, and the kinds to which it applies.
    pub(crate) fn first_strange_key(&self, edge: &Edge) -> Option<(&'static str, &'static str)> {
        let stated = self.keys().into_iter().filter_map(|(key, stated)| stated.then_some(key));
        let home = |key: &str| match key {
            "rate" | "delay" | "queue" => "wired and wireless ones",
            "channel" => "wireless ones and those of cells",
            "drop" => "those of cells",
            _ => "wireless ones",
        };
        let fits = |key: &str| match (edge.in_cell, edge.mobile) {
            (true, _) => matches!(key, "channel" | "drop"),
            (false, None) => matches!(key, "rate" | "delay" | "queue"),
            (false, Some(_)) => key != "drop",
        };
        stated.filter(|key| !fits(key)).map(|key| (key, home(key))).next()
    }

    /// Whether `key` is stated.
    pub(crate) fn states(&self, key: &str) -> bool {
        self.keys().contains(&(key, true))
    }
}
