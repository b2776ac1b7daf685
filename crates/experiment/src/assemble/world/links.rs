//! The links, wired and wireless: each direction with its queue, channel, ARQ and random streams.

use lasthop_base::{Bytes, Stream, Streams};
use lasthop_channel::Channel;
use lasthop_link::graph::{LinkId, SharedId};
use lasthop_link::queue::LinkQueue;
use lasthop_proto::fec::Covers;
use lasthop_proto::scheme::{Combination, LinkUse};
use lasthop_scenario::network::{LastHop, Network, NetworkLink};
use lasthop_scenario::{LinkProtection, Radio, Wired};
use lasthop_sim::{Fec, Link, RadioConfig, SharedLink, SharedRadio};

use super::Layout;

impl Layout {
    /// The direction of a wired link that leads away from its end `from`.
    pub(super) fn wired(&self, wired: &Wired, link: LinkId, from: usize, streams: Streams) -> Link {
        let (rate, delay) = (wired.rate.nominal(), wired.delay.nominal());
        let ends = self.network.graph.ends(link);
        let [here, there] = [from, 1 - from].map(|end| &self.network.names[ends[end].index()]);
        let random = || streams.stream(&["queue:", here, "-", there].concat());
        let queue =
            LinkQueue::new(&wired.queue, |size| rate.time_for(size), random).in_black_hole(wired.black_hole);
        if wired.rate.varies() || wired.delay.varies() {
            let timing = self.network.timing(link, from == 1, streams).expect("a wired link has a rate");
            Link::wired_varying(timing, queue)
        } else {
            Link::wired(rate, delay, queue)
        }
    }

    /// The direction of a shared radio that leads to the mobile hosts.
    pub(super) fn shared(
        &self,
        id: SharedId,
        combination: &Combination<'_>,
        streams: Streams,
    ) -> SharedRadio {
        let Network { graph, links, dispatch, .. } = &self.network;
        let links = graph.shared(id).iter().map(|link| {
            let NetworkLink::Radio(hop) = &links[link.index()] else {
                unreachable!("a wireless link shares a radio")
            };
            let hosts = self.wiring.reached_over(*link, 0).iter().copied().collect();
            let direction = Direction::of(hop, 1 - hop.mobile, combination.link(), &self.network, streams);
            let Direction { config, queue, channel, bits, backoff } = direction;
            SharedLink { hosts, config, queue, channel, bits, backoff }
        });
        SharedRadio::new(*dispatch, links.collect())
    }
}

/// What makes up a direction of a wireless link.
struct Direction {
    config: RadioConfig,
    queue: LinkQueue,
    channel: Box<dyn Channel>,
    bits: Stream,
    backoff: Stream,
}

impl Direction {
    /// The direction that leads away from the end `from`.
    fn of(hop: &LastHop, from: usize, link: LinkUse, network: &Network, streams: Streams) -> Direction {
        let (radio, direction) = if from == hop.mobile { (&hop.up, "up") } else { (&hop.down, "down") };
        let stream = |name: &str| streams.stream(&[name, &hop.suffix, ":", direction].concat());
        let config = RadioConfig { arq: hop.arq(from, link), ..config(radio, link) };
        let air_time = |size: Bytes| radio.nominal_rate().time_for_bits(radio.expansion.on_air(size.bits()));
        Direction {
            queue: LinkQueue::new(&radio.queue, air_time, || stream("queue")).in_black_hole(radio.black_hole),
            config,
            channel: hop.channel(from, network, streams),
            bits: stream("bits"),
            backoff: stream("backoff"),
        }
    }
}

/// The direction of a wireless link that leads away from one of its ends.
pub(super) fn direction(
    hop: &LastHop,
    from: usize,
    link: LinkUse,
    network: &Network,
    streams: Streams,
) -> Link {
    let Direction { config, queue, channel, bits, backoff } =
        Direction::of(hop, from, link, network, streams);
    let up = from == hop.mobile;
    let radio = if up { &hop.up } else { &hop.down };
    let link = if radio.varies() {
        let timing = hop.timing(up, streams, network.limit);
        Link::radio_varying(config, timing, queue, channel, bits, backoff)
    } else {
        Link::radio(config, queue, channel, bits, backoff)
    };
    link.until(network.limit).of_station(hop.place.map_or(0, |(_, station)| station))
}

/// Parameters of one direction of a last hop under a combination of schemes.
fn config(radio: &Radio, link: LinkUse) -> RadioConfig {
    let covers = match radio.protect {
        LinkProtection::Scheme => link.protects,
        LinkProtection::Repeats => Some(Covers::Repeats),
        LinkProtection::All => Some(Covers::All),
    };
    RadioConfig {
        // Rates and delays that vary are built by `direction`.
        rate: radio.rate.nominal(),
        delay: radio.delay.nominal(),
        expansion: radio.expansion,
        mtu: radio.mtu,
        unit: radio.unit,
        fec: covers.zip(radio.fec).map(|(covers, code)| Fec { code, covers }),
        exposed: radio.errors_on,
        arq: radio.arq,
    }
}
