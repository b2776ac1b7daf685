//! The schema of links: `[wired]`, `[radio]` and `[link.NAME]`.

use lasthop_base::{BitRate, Duration};
use lasthop_channel::{Handoff, Model};
use lasthop_proto::arq;
use lasthop_proto::fec::BlockCode;
use lasthop_proto::frag::Mtu;
use lasthop_sim::queue::Queue;
use lasthop_sim::wlan::AboveMac;
use lasthop_sim::{Expansion, Exposed};
use serde::{Deserialize, Serialize};

use super::serde_words;
use super::topology::Edge;

/// Full-duplex wired links: the table `[wired]`. Both directions are alike and independent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the key rate")]
pub struct Wired {
    /// Rate of each direction.
    pub rate: BitRate,
    /// Propagation delay, one way. By default none, as in the EBSN paper, which neglects it.
    #[serde(default)]
    pub delay: Duration,
    /// How much may wait before each direction, not counting the packet that is being sent. By
    /// default unlimited: no loss but on the air.
    #[serde(default)]
    pub queue: Queue,
}

/// Defines [`Radio`]; [`Link`], in which each of its keys may be left out; and how one is laid over the other. A
/// parameter is named here and where it is used, and nowhere else.
///
/// Each is its attributes, key and type, and the module that reads it where it may be left out if serde cannot. Its
/// default is its type's. The groups are there since links list `delay` and `queue` first.
macro_rules! radio_schema {
    (
        unit { $($(#[$unit_meta:meta])* $unit:ident: $unit_type:ty $(, optional as $unit_words:literal)?;)* }
        queue { $($(#[$queue_meta:meta])* $queue:ident: $queue_type:ty $(, optional as $queue_words:literal)?;)* }
        rest { $($(#[$rest_meta:meta])* $rest:ident: $rest_type:ty $(, optional as $rest_words:literal)?;)* }
    ) => {
        /// Wireless links, alike in both directions but for what `uplink` says: the table `[radio]`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, expecting = "a table with the key rate")]
        pub struct Radio {
            /// Raw rate of each direction: at which expanded bits are sent.
            pub rate: BitRate,
            $($(#[$unit_meta])* #[serde(default)] pub $unit: $unit_type,)*
            $($(#[$queue_meta])* #[serde(default)] pub $queue: $queue_type,)*
            $($(#[$rest_meta])* #[serde(default)] pub $rest: $rest_type,)*
        }

        impl Radio {
            /// A link of this rate, and otherwise by default.
            pub(crate) fn new(rate: BitRate) -> Radio {
                Radio {
                    rate,
                    $($unit: Default::default(),)*
                    $($queue: Default::default(),)*
                    $($rest: Default::default(),)*
                }
            }
        }

        /// How one link differs from `[wired]` or `[radio]`: the table `[link.NAME]`; or how the direction of a
        /// wireless link differs that leads to the base station: `uplink`; or how a station differs from `[cell]`. A
        /// wired link has the first three keys only, a link of a cell `channel` and `drop`, and all others all but
        /// `drop`.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default, expecting = "a table")]
        #[allow(missing_docs, reason = "they are those of Wired and Radio")]
        pub struct Link {
            #[serde(skip_serializing_if = "Option::is_none")]
            pub rate: Option<BitRate>,
            $(
                #[serde(skip_serializing_if = "Option::is_none" $(, with = $queue_words)?)]
                pub $queue: Option<$queue_type>,
            )*
            $(
                #[serde(skip_serializing_if = "Option::is_none" $(, with = $unit_words)?)]
                pub $unit: Option<$unit_type>,
            )*
            $(
                #[serde(skip_serializing_if = "Option::is_none" $(, with = $rest_words)?)]
                pub $rest: Option<$rest_type>,
            )*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub drop: Option<AboveMac>,
        }

        impl Link {
            /// What a wireless link comes to; none if nothing gives its rate.
            pub(crate) fn radio(&self, usual: Option<&Radio>) -> Option<Radio> {
                let usual = usual.cloned().or_else(|| self.rate.map(Radio::new))?;
                let own = self.clone();
                Some(Radio {
                    rate: own.rate.unwrap_or(usual.rate),
                    $($unit: own.$unit.unwrap_or(usual.$unit),)*
                    $($queue: own.$queue.unwrap_or(usual.$queue),)*
                    $($rest: own.$rest.unwrap_or(usual.$rest),)*
                })
            }

            /// Its keys, and which of them are stated.
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
        /// How many bits the lower layers put on the air for each bit of a packet. By default 1.
        expansion: Expansion;
        /// Largest unit on the air as IP counts it: larger packets are fragmented. None by default.
        #[serde(with = "serde_words::mtu")]
        mtu: Option<Mtu>, optional as "serde_words::mtu::optional";
        /// The size of every unit on the air, in place of a largest one: the last of a packet is filled up.
        /// None by default.
        #[serde(with = "serde_words::mtu")]
        unit: Option<Mtu>, optional as "serde_words::mtu::optional";
    }
    queue {
        /// Propagation delay, one way. By default none: a last hop of 1 km takes 3 µs.
        delay: Duration;
        /// How much may wait before each direction. By default unlimited: no loss but on the air.
        queue: Queue;
    }
    rest {
        /// Which bits the channel's error rates apply to. By default all on the air.
        errors_on: Exposed;
        /// Which units survive the air. Both directions meet the same fades. By default all survive: errors
        /// are what a scenario adds.
        channel: Model;
        /// How the direction towards the base station differs. A channel of its own has fades of its own. By
        /// default it does not differ.
        #[serde(skip_serializing_if = "Option::is_none")]
        uplink: Option<Box<Link>>;
        /// When the mobile host changes cells. By default never.
        #[serde(skip_serializing_if = "Option::is_none")]
        handoff: Option<Handoff>;
        /// How the link recovers errors, for those schemes that want it to. By default not at all.
        arq: arq::Config;
        /// The code by which the link protects. By default there is none.
        #[serde(with = "serde_words::code")]
        fec: Option<BlockCode>, optional as "serde_words::code::optional";
        /// What it protects by it. By default what the scheme wants it to.
        protect: Protect;
    }
}

/// What a link protects by its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protect {
    /// What the scheme wants it to, if anything.
    #[default]
    Scheme,
    /// Units that it sends again, whatever the scheme.
    Repeats,
    /// Everything, whatever the scheme.
    All,
}

impl Wired {
    /// A link of this rate, and otherwise by default.
    pub(crate) fn new(rate: BitRate) -> Wired {
        Wired { rate, delay: Duration::ZERO, queue: Queue::default() }
    }
}

impl Link {
    /// What a wired link comes to; none if nothing gives its rate.
    pub(crate) fn wired(&self, usual: Option<&Wired>) -> Option<Wired> {
        let usual = usual.cloned().or_else(|| self.rate.map(Wired::new))?;
        Some(Wired {
            rate: self.rate.unwrap_or(usual.rate),
            delay: self.delay.unwrap_or(usual.delay),
            queue: self.queue.unwrap_or(usual.queue),
        })
    }

    /// The first of its keys that means nothing on such a link, and on which others it does.
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

    /// Whether it says something of `key`.
    pub(crate) fn states(&self, key: &str) -> bool {
        self.keys().contains(&(key, true))
    }
}
