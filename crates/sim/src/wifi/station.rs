//! A station of a BSS, and its random streams.

use lasthop_base::{Stream, Streams};
use lasthop_channel::Channel;
use lasthop_link::wifi::StationRadio;
use lasthop_link::wlan::AboveMac;
use lasthop_proto::HostId;

/// A station of a BSS.
#[allow(missing_debug_implementations)]
pub struct WifiStation {
    /// The hosts reached through this station.
    pub hosts: Vec<HostId>,
    /// Rates, and losses by noise.
    pub radio: StationRadio,
    /// Further bit errors between station and access point, in both directions.
    pub channel: Box<dyn Channel>,
    /// Losses of packets that the MAC has delivered.
    pub above_mac: AboveMac,
    /// Random streams.
    pub streams: WifiStreams,
}

/// Random streams of a station. None is shared between stations, so the activity of one does not affect the draws of
/// another.
#[derive(Clone, Debug)]
pub struct WifiStreams {
    /// Backoffs.
    pub backoff: Stream,
    /// For each direction, down first: survival of MPDUs.
    pub bits: [Stream; 2],
    /// Drops above the receiver's MAC: one number per packet.
    pub above_mac: [Stream; 2],
    /// Choices of the rate control.
    pub rate: [Stream; 2],
    /// Choices of queue disciplines.
    pub queue: [Stream; 2],
    /// Which beacons it listens to; of the first station that dozes, also when the access point sends them.
    pub beacon: Stream,
    /// When it first roams.
    pub roam: Stream,
    /// How its signal fades.
    pub fading: Stream,
}

impl WifiStreams {
    /// The streams of the station called `name`.
    pub fn named(streams: &Streams, name: &str) -> WifiStreams {
        let both =
            |what: &str| ["down", "up"].map(|way| streams.stream_of(format_args!("{what}:{way}:{name}")));
        WifiStreams {
            backoff: streams.stream_of(format_args!("backoff:{name}")),
            bits: both("bits"),
            above_mac: both("above-mac"),
            rate: both("rate"),
            queue: both("queue"),
            beacon: streams.stream_of(format_args!("beacon:{name}")),
            roam: streams.stream_of(format_args!("roam:{name}")),
            fading: streams.stream_of(format_args!("fading:{name}")),
        }
    }
}

/// Random streams of the access point, and of a neighbouring BSS.
#[derive(Clone, Debug)]
pub struct BssStreams {
    /// The access point's backoffs.
    pub backoff: Stream,
    /// Arrivals and backoffs of the neighbouring BSS.
    pub neighbour: [Stream; 2],
    /// When the first burst of interference starts.
    pub interference: Stream,
}

impl BssStreams {
    /// The streams of the BSS whose access point is called `ap`.
    pub fn named(streams: &Streams, ap: &str) -> BssStreams {
        let stream = |what: &str| streams.stream_of(format_args!("{what}:{ap}"));
        BssStreams {
            backoff: stream("ap-backoff"),
            neighbour: [stream("neighbour"), stream("neighbour-backoff")],
            interference: stream("interference"),
        }
    }
}
