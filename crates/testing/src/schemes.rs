//! Schemes as a scenario installs them.

use lasthop_base::{BitRate, Duration, Streams};
use lasthop_proto::Component;
use lasthop_proto::scheme::{Combination, Schemes, Site};

/// The combination of schemes called `name`.
pub fn installed<'a>(schemes: &'a Schemes, name: &str) -> Combination<'a> {
    schemes.combination(name).expect("the schemes go together")
}

/// A new instance of the only agent of a scheme.
pub fn agent(schemes: &Schemes, name: &str) -> Box<dyn Component> {
    let installed = installed(schemes, name);
    assert_eq!(installed.agents().len(), 1, "{name} has one agent");
    installed.agent(0, &site())
}

/// A base station with a link of 2 Mb/s and 1 ms.
pub fn site() -> Site<'static> {
    let (rate, delay) = (BitRate::from_bps(2_000_000).expect("not zero"), Duration::from_millis(1));
    Site { node: "BS", link: "BS-MH", rate, delay, streams: Streams::new(1, 0) }
}
