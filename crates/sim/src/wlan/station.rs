//! A station of a BSS.

use lasthop_base::{Stream, Streams};
use lasthop_channel::Channel;
use lasthop_link::wlan::AboveMac;
use lasthop_proto::HostId;

/// A station of a BSS.
#[allow(missing_debug_implementations)]
pub struct Station {
    /// The hosts reached through this station.
    pub hosts: Vec<HostId>,
    /// Frame errors between station and access point, in both directions.
    pub channel: Box<dyn Channel>,
    /// Losses of packets that the MAC has delivered.
    pub above_mac: AboveMac,
    /// Random streams.
    pub streams: StationStreams,
}

/// Random streams of a station. None is shared between stations, so the activity of one does not affect the
/// draws of another.
#[derive(Clone, Debug)]
pub struct StationStreams {
    /// Backoffs.
    pub backoff: Stream,
    /// Survival of data frames to the station: one number per frame without a collision.
    pub bits_down: Stream,
    /// Survival of data frames from the station.
    pub bits_up: Stream,
    /// Drops above the station's MAC: one number per packet.
    pub above_down: Stream,
    /// Drops above the access point's MAC, of packets from the station.
    pub above_up: Stream,
}

impl StationStreams {
    /// The streams of the station called `name`.
    pub fn named(streams: &Streams, name: &str) -> StationStreams {
        let stream = |what: &str| streams.stream_of(format_args!("{what}:{name}"));
        StationStreams {
            backoff: stream("backoff"),
            bits_down: stream("bits:down"),
            bits_up: stream("bits:up"),
            above_down: stream("above-mac:down"),
            above_up: stream("above-mac:up"),
        }
    }
}
