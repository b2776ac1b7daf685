//! The schema of links: `[wired]`, `[radio]` and `[link.NAME]`.

use lasthop_base::{BitRate, Duration};
use lasthop_channel::{Handoff, Model};
use lasthop_proto::arq;
use lasthop_proto::fec::BlockCode;
use lasthop_proto::frag::Mtu;
use lasthop_sim::wlan::AboveMac;
use lasthop_sim::{Expansion, Exposed, QueueLimit};
use serde::{Deserialize, Serialize};

use super::serde_words;
use super::topology::Edge;

/// Full-duplex wired links: the table `[wired]`. Both directions are alike and independent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the key rate")]
pub struct Wired {
    /// Rate of each direction.
    pub rate: BitRate,
    /// Propagation delay, one way. By default none, as in the EBSN paper, which neglects it.
    #[serde(default)]
    pub delay: Duration,
    /// How much may wait before each direction, not counting the packet that is being sent. By
    /// default unlimited: no loss but on the air.
    #[serde(default = "unlimited", with = "serde_words::queue")]
    pub queue: QueueLimit,
}

/// Wireless links, alike in both directions but for what `uplink` says: the table `[radio]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table with the key rate")]
pub struct Radio {
    /// Raw rate of each direction: at which expanded bits are sent.
    pub rate: BitRate,
    /// How many bits the lower layers put on the air for each bit of a packet. By default 1.
    #[serde(default)]
    pub expansion: Expansion,
    /// Largest unit on the air as IP counts it: larger packets are fragmented. None by default.
    #[serde(default, with = "serde_words::mtu")]
    pub mtu: Option<Mtu>,
    /// The size of every unit on the air, in place of a largest one: the last of a packet is filled up.
    /// None by default.
    #[serde(default, with = "serde_words::mtu")]
    pub unit: Option<Mtu>,
    /// Propagation delay, one way. By default none: a last hop of 1 km takes 3 µs.
    #[serde(default)]
    pub delay: Duration,
    /// How much may wait before each direction. By default unlimited: no loss but on the air.
    #[serde(default = "unlimited", with = "serde_words::queue")]
    pub queue: QueueLimit,
    /// Which bits the channel's error rates apply to. By default all on the air.
    #[serde(default)]
    pub errors_on: Exposed,
    /// Which units survive the air. Both directions meet the same fades. By default all survive: errors
    /// are what a scenario adds.
    #[serde(default)]
    pub channel: Model,
    /// How the direction towards the base station differs. A channel of its own has fades of its own. By
    /// default it does not differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Box<Link>>,
    /// When the mobile host changes cells. By default never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// How the link recovers errors, for those schemes that want it to. By default not at all.
    #[serde(default)]
    pub arq: arq::Config,
    /// The code by which the link protects. By default there is none.
    #[serde(default, with = "serde_words::code")]
    pub fec: Option<BlockCode>,
    /// What it protects by it. By default what the scheme wants it to.
    #[serde(default)]
    pub protect: Protect,
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
        Wired { rate, delay: Duration::ZERO, queue: unlimited() }
    }
}

impl Radio {
    /// A link of this rate, and otherwise by default.
    pub(crate) fn new(rate: BitRate) -> Radio {
        Radio {
            rate,
            expansion: Expansion::default(),
            mtu: None,
            unit: None,
            delay: Duration::ZERO,
            queue: unlimited(),
            errors_on: Exposed::default(),
            channel: Model::default(),
            uplink: None,
            handoff: None,
            arq: arq::Config::default(),
            fec: None,
            protect: Protect::default(),
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none", with = "serde_words::queue::optional")]
    pub queue: Option<QueueLimit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expansion: Option<Expansion>,
    #[serde(skip_serializing_if = "Option::is_none", with = "serde_words::mtu::optional")]
    pub mtu: Option<Option<Mtu>>,
    #[serde(skip_serializing_if = "Option::is_none", with = "serde_words::mtu::optional")]
    pub unit: Option<Option<Mtu>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors_on: Option<Exposed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel: Option<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uplink: Option<Box<Link>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arq: Option<arq::Config>,
    #[serde(skip_serializing_if = "Option::is_none", with = "serde_words::code::optional")]
    pub fec: Option<Option<BlockCode>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protect: Option<Protect>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drop: Option<AboveMac>,
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

    /// What a wireless link comes to; none if nothing gives its rate.
    pub(crate) fn radio(&self, usual: Option<&Radio>) -> Option<Radio> {
        let usual = usual.cloned().or_else(|| self.rate.map(Radio::new))?;
        Some(Radio {
            rate: self.rate.unwrap_or(usual.rate),
            expansion: self.expansion.unwrap_or(usual.expansion),
            mtu: self.mtu.unwrap_or(usual.mtu),
            unit: self.unit.unwrap_or(usual.unit),
            delay: self.delay.unwrap_or(usual.delay),
            queue: self.queue.unwrap_or(usual.queue),
            errors_on: self.errors_on.unwrap_or(usual.errors_on),
            channel: self.channel.unwrap_or(usual.channel),
            uplink: self.uplink.clone().or(usual.uplink),
            handoff: self.handoff.or(usual.handoff),
            arq: self.arq.unwrap_or(usual.arq),
            fec: self.fec.unwrap_or(usual.fec),
            protect: self.protect.unwrap_or(usual.protect),
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

    /// Its keys, and which of them are stated.
    fn keys(&self) -> [(&'static str, bool); 14] {
        [
            ("rate", self.rate.is_some()),
            ("delay", self.delay.is_some()),
            ("queue", self.queue.is_some()),
            ("expansion", self.expansion.is_some()),
            ("mtu", self.mtu.is_some()),
            ("unit", self.unit.is_some()),
            ("errors_on", self.errors_on.is_some()),
            ("channel", self.channel.is_some()),
            ("uplink", self.uplink.is_some()),
            ("handoff", self.handoff.is_some()),
            ("arq", self.arq.is_some()),
            ("fec", self.fec.is_some()),
            ("protect", self.protect.is_some()),
            ("drop", self.drop.is_some()),
        ]
    }
}

fn unlimited() -> QueueLimit {
    QueueLimit::Unlimited
}
