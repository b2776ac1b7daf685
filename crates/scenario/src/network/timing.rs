//! Rates and delays of links over time, in the run of a seed and a number.

use lasthop_base::{Stream, Streams, Time};
use lasthop_link::graph::LinkId;
use lasthop_link::varying::{Timing, TimingStreams};

use super::{LastHop, Network, NetworkLink};

impl Network {
    /// Rate and delay over time of one direction of a link: to the base station (`up`) or from it; of a wired link, to
    /// its first end or from it. `None` for the links of a cell. Slots of both directions change together.
    pub fn timing(&self, link: LinkId, up: bool, streams: Streams) -> Option<Timing> {
        match &self.links[link.index()] {
            NetworkLink::Wired(wired) => {
                let [first, second] = self.graph.ends(link).map(|end| &self.names[end.index()]);
                let [from, to] = if up { [second, first] } else { [first, second] };
                let slots = streams.stream(&["slots:", first, "-", second].concat());
                let named = |name: &str| streams.stream(&[name, ":", from, "-", to].concat());
                Some(Timing::new(&wired.rate, &wired.delay, timing_streams(named, slots), self.limit))
            }
            NetworkLink::Radio(hop) => Some(hop.timing(up, streams, self.limit)),
            NetworkLink::Station(_) => None,
        }
    }
}

impl LastHop {
    /// Rate and delay over time of the direction to the base station (`up`), or from it, until `limit`.
    pub fn timing(&self, up: bool, streams: Streams, limit: Time) -> Timing {
        let (radio, direction) = if up { (&self.up, "up") } else { (&self.down, "down") };
        let named = |name: &str| streams.stream(&[name, &self.suffix, ":", direction].concat());
        let slots = streams.stream(&["slots", &self.suffix].concat());
        let timing = Timing::new(&radio.rate, &radio.delay, timing_streams(named, slots), limit);
        match radio.grants {
            None => timing,
            Some(grants) => {
                let shared = streams.stream(&["grants", &self.suffix].concat());
                timing.granted(grants, up, named("grants"), shared)
            }
        }
    }
}

/// The streams of a rate and a delay, by their names, and that of their slots.
fn timing_streams(stream: impl Fn(&str) -> Stream, phase: Stream) -> TimingStreams {
    TimingStreams {
        rate: [stream("rate"), stream("rate-slots")],
        delay: [stream("delay"), stream("delay-slots")],
        phase,
    }
}
