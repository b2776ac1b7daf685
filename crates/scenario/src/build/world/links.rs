//! The links, wired and wireless: each direction with its queue, channel, ARQ and random streams.

use lasthop_base::{Bytes, Duration, Stream, Streams, Time};
use lasthop_channel::{Channel, Presence};
use lasthop_link::queue::{Discipline, DropTail, Queue};
use lasthop_link::varying::{Timing, TimingStreams};
use lasthop_proto::fec::Covers;
use lasthop_proto::scheme::{Combination, LinkEnd, LinkUse};
use lasthop_proto::{HostId, arq};
use lasthop_sim::network::{LinkId, SharedId};
use lasthop_sim::{
    Fec, ManagedLink, Node, RadioConfig, RadioLink, SharedLink, SharedRadio, VaryingLink, WiredLink,
};

use super::super::network::{LastHop, Network, NetworkLink};
use super::Layout;
use crate::schema::{LinkProtection, Radio, Wired};

impl Layout {
    /// The direction of a wired link that leads away from its end `from`.
    pub(super) fn wired(&self, wired: &Wired, link: LinkId, from: usize, streams: Streams) -> Node {
        let (rate, delay, queue) = (wired.rate.nominal(), wired.delay.nominal(), wired.queue);
        if wired.rate.varies() || wired.delay.varies() {
            return self.varying(wired, link, from, streams);
        }
        match queue {
            Queue::DropTail(limit) => WiredLink::new(rate, delay, limit).into(),
            Queue::Managed(management) => {
                let ends = self.network.graph.ends(link);
                let [here, there] = [from, 1 - from].map(|end| &self.network.names[usize::from(ends[end].0)]);
                let random = streams.stream(&["queue:", here, "-", there].concat());
                let queue = management.build(|size| rate.time_for(size), random);
                ManagedLink::new(rate, delay, queue).into()
            }
        }
    }

    /// Like [`wired`](Layout::wired), where rate or delay vary.
    fn varying(&self, wired: &Wired, link: LinkId, from: usize, streams: Streams) -> Node {
        let timing = wired_timing(&self.network, wired, link, from, streams);
        let ends = self.network.graph.ends(link).map(|end| &self.network.names[usize::from(end.0)]);
        let random = streams.stream(&["queue:", ends[from], "-", ends[1 - from]].concat());
        VaryingLink::new(timing, discipline(wired.queue, |size| wired.rate.nominal().time_for(size), random))
            .into()
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
            let NetworkLink::Radio(hop) = &links[usize::from(link.0)] else {
                unreachable!("a wireless link shares a radio")
            };
            let hosts = self.wiring.reached_over(*link, 0).iter().copied().collect();
            hop.shared(hosts, combination.link(), &self.network, streams)
        });
        SharedRadio::new(*dispatch, links.collect())
    }
}

impl LastHop {
    /// The direction that leads away from one of its ends.
    pub(super) fn direction(
        &self,
        from: usize,
        link: LinkUse,
        network: &Network,
        streams: Streams,
    ) -> RadioLink {
        let (radio, direction) = match from == self.mobile {
            true => (&self.up, "up"),
            false => (&self.down, "down"),
        };
        let channel = self.channel(from, network, streams);
        let stream = |name: &str| streams.stream(&[name, &self.suffix, ":", direction].concat());
        let config = RadioConfig { arq: self.arq(from, link), ..config(radio, link) };
        let (bits, backoff) = (stream("bits"), stream("backoff"));
        let air_time = |size: Bytes| config.rate.time_for_bits(radio.expansion.on_air(size.bits()));
        let link = match radio.queue {
            queue if radio.rate.varies() || radio.delay.varies() => {
                let timing = self.timing(radio, direction, streams, network.limit);
                let queue = discipline(queue, air_time, stream("queue"));
                RadioLink::varying(config, timing, queue, channel, bits, backoff)
            }
            Queue::DropTail(_) => RadioLink::new(config, channel, bits, backoff),
            Queue::Managed(management) => {
                let queue = management.build(air_time, stream("queue"));
                RadioLink::managed(config, queue, channel, bits, backoff)
            }
        };
        link.until(network.limit).of_station(self.place.map_or(0, |(_, station)| station))
    }

    /// The direction to the mobile host, on a shared radio.
    fn shared(&self, hosts: Vec<HostId>, link: LinkUse, network: &Network, streams: Streams) -> SharedLink {
        let base = 1 - self.mobile;
        let stream = |name: &str| streams.stream(&[name, &self.suffix, ":down"].concat());
        let config = RadioConfig { arq: self.arq(base, link), ..config(&self.down, link) };
        let air_time = |size: Bytes| config.rate.time_for_bits(self.down.expansion.on_air(size.bits()));
        SharedLink {
            hosts,
            config,
            queue: match self.down.queue {
                Queue::DropTail(_) => None,
                Queue::Managed(management) => Some(management.build(air_time, stream("queue"))),
            },
            channel: self.channel(base, network, streams),
            bits: stream("bits"),
            backoff: stream("backoff"),
        }
    }

    /// The ARQ of the direction that leads away from one of its ends.
    pub(in crate::build) fn arq(&self, from: usize, link: LinkUse) -> arq::Config {
        let (sender, own, opposite) = if from == self.mobile {
            (LinkEnd::MobileHost, &self.up, &self.down)
        } else {
            (LinkEnd::BaseStation, &self.down, &self.up)
        };
        link.arq.of(sender, own.arq, opposite.arq)
    }

    /// The channel of the direction that leads away from one of its ends. Both directions use copies of one random
    /// stream, so that they meet the same fades, unless they have separate channels.
    pub(in crate::build) fn channel(
        &self,
        from: usize,
        network: &Network,
        streams: Streams,
    ) -> Box<dyn Channel> {
        let (radio, name, lag) = match from == self.mobile {
            true if self.up_has_channel => (&self.up, "uplink-channel", Duration::ZERO),
            true => (&self.up, "channel", Duration::ZERO),
            false => (&self.down, "channel", self.down.delay.nominal()),
        };
        let channel = radio.channel.build(streams.stream(&[name, &self.suffix].concat()));
        let channel = match radio.outage {
            Some(outages) => outages.interrupt(channel),
            None => channel,
        };
        match self.place {
            Some((index, station)) => {
                let itinerary = network.moving[index].itinerary(streams, network.limit);
                Box::new(Presence::new(station, itinerary, channel, lag))
            }
            None => channel,
        }
    }

    /// Rate and delay over time of a direction. Slots of both directions change together.
    fn timing(&self, radio: &Radio, direction: &str, streams: Streams, limit: Time) -> Timing {
        let stream = |name: &str| streams.stream(&[name, &self.suffix, ":", direction].concat());
        let slots = streams.stream(&["slots", &self.suffix].concat());
        Timing::new(&radio.rate, &radio.delay, timing_streams(stream, slots), limit)
    }
}

/// Rate and delay over time of the direction of a wired link that leads away from its end `from`. Slots of both
/// directions change together.
fn wired_timing(network: &Network, wired: &Wired, link: LinkId, from: usize, streams: Streams) -> Timing {
    let ends = network.graph.ends(link).map(|end| &network.names[usize::from(end.0)]);
    let direction = [ends[from].as_str(), "-", ends[1 - from]].concat();
    let slots = streams.stream(&["slots:", ends[0], "-", ends[1]].concat());
    let streams = timing_streams(|name| streams.stream(&[name, ":", &direction].concat()), slots);
    Timing::new(&wired.rate, &wired.delay, streams, network.limit)
}

/// Rate and delay over time of a direction of a link; `None` for the links of a cell.
pub(crate) fn link_timing(network: &Network, link: LinkId, up: bool, streams: Streams) -> Option<Timing> {
    match &network.links[usize::from(link.0)] {
        NetworkLink::Wired(wired) => Some(wired_timing(network, wired, link, usize::from(up), streams)),
        NetworkLink::Radio(hop) => {
            let (radio, direction) = if up { (&hop.up, "up") } else { (&hop.down, "down") };
            Some(hop.timing(radio, direction, streams, network.limit))
        }
        NetworkLink::Station(_) => None,
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

/// The queue of a link that is served packet by packet.
fn discipline(queue: Queue, air_time: impl Fn(Bytes) -> Duration, random: Stream) -> Box<dyn Discipline> {
    match queue {
        Queue::DropTail(limit) => Box::new(DropTail::new(limit)),
        Queue::Managed(management) => management.build(air_time, random),
    }
}

/// Parameters of one direction of a last hop under a combination of schemes.
fn config(radio: &Radio, link: LinkUse) -> RadioConfig {
    let covers = match radio.protect {
        LinkProtection::Scheme => link.protects,
        LinkProtection::Repeats => Some(Covers::Repeats),
        LinkProtection::All => Some(Covers::All),
    };
    radio.config(covers.zip(radio.fec).map(|(covers, code)| Fec { code, covers }))
}
