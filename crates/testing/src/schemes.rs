//! Schemes as a scenario installs them.

use std::collections::BTreeMap;

use lasthop_base::{BitRate, Duration, Streams};
use lasthop_proto::scheme::{Combination, LinkEnd, Scheme, Schemes, Site};
use lasthop_proto::tcp::Settings;
use lasthop_proto::{Component, Tally};

/// The schemes with the parameters in a table of TOML for each.
pub fn schemes_of(tables: &str) -> Schemes {
    toml::from_str(tables).unwrap_or_else(|error| panic!("{tables}: {error}"))
}

/// The combination of schemes called `name`.
pub fn installed<'a>(schemes: &'a Schemes, name: &str) -> Combination<'a> {
    schemes.combination(name).expect("the schemes go together")
}

/// The schemes that can extend connections with these TCP settings.
pub fn extending<'a>(schemes: &'a Schemes, tcp: &Settings) -> impl Iterator<Item = &'a dyn Scheme> {
    schemes.all().filter(move |scheme| installed(schemes, scheme.name()).mismatch(tcp).is_none())
}

/// A new instance of a scheme's only agent at the base station.
pub fn agent(schemes: &Schemes, name: &str) -> Box<dyn Component> {
    let installed = installed(schemes, name);
    assert_eq!(installed.agents(LinkEnd::BaseStation).count(), 1, "{name} has one agent");
    installed.agent(0, &site())
}

/// A new instance of a scheme's only agent at base station number `station` of a moving host, before the first signal of
/// where the host is.
pub fn agent_of_station(schemes: &Schemes, name: &str, station: u16) -> Box<dyn Component> {
    installed(schemes, name).agent(0, &Site { station: Some(station), ..site() })
}

/// A base station with a link of 2 Mb/s and 1 ms.
pub fn site() -> Site<'static> {
    let (rate, delay) = (BitRate::from_bps(2_000_000).expect("not zero"), Duration::from_millis(1));
    let (end, streams) = (LinkEnd::BaseStation, Streams::new(1, 0));
    let (arriving_rate, hosts, peers) = (rate, None, &[][..]);
    Site {
        end,
        is_router: false,
        node: "BS",
        station: None,
        link: "BS-MH",
        rate,
        delay,
        arriving_rate,
        hosts,
        peers,
        streams,
    }
}

/// The counters of an agent by name.
#[derive(Clone, Debug, Default)]
pub struct Counters(pub BTreeMap<&'static str, u64>);

impl Tally for Counters {
    fn total(&mut self, name: &'static str, value: u64) {
        self.0.insert(name, value);
    }

    fn level(&mut self, name: &'static str, value: u64) {
        self.0.insert(name, value);
    }

    fn peak(&mut self, name: &'static str, value: u64) {
        self.0.insert(name, value);
    }
}
