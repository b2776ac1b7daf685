//! A radio that a base station shares between several mobile hosts, without contention.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Stream, Time};
use lasthop_channel::Channel;
use lasthop_link::dispatch::{Choice, Dispatch, Dispatcher, Offer};
use lasthop_link::pace::Fixed;
use lasthop_link::queue::{Discipline, LinkQueue, QueueLimit};
use lasthop_proto::{Component, HostId, Out, Packet, Port, Probe};

use super::air::Air;
use super::queued::{QueuedLink, Service};
use super::with_arq::WithArq;
use super::{LinkStats, RadioConfig};

/// The direction from a base station to its mobile hosts. Each mobile host has a queue, a channel and an ARQ of its own,
/// and one unit at a time is on the air; a dispatcher chooses whose. Packets enter by [`Port::WIRED`], and those for
/// mobile host i leave by `Port(1 + i)`.
///
/// # Queues
/// The capacity of a mobile host's queue does not count the packet that is served next. A dispatcher with one queue, such
/// as FIFO, admits a packet if all packets that wait, not counting the oldest one, are within that capacity.
///
/// # Losses, signals, randomness
/// As of a [`Link`](crate::Link) with an ARQ. Watchers get the signals of all mobile hosts.
///
/// # Cost
/// Each attempt polls the ARQs of all mobile hosts. With one queue, each arriving packet sums the sizes of those that wait.
#[allow(missing_debug_implementations)]
pub struct SharedRadio {
    mobiles: Vec<Mobile>,
    /// Index of the mobile host through which each host is reached.
    places: Vec<Option<usize>>,
    dispatcher: Box<dyn Dispatcher>,
    /// The mobile host to which a unit is on the air.
    serving: Option<usize>,
    /// When the unit on the air ends, or when the dispatcher is to be asked again.
    due: Time,
    /// Number of packets that have arrived.
    arrived: u64,
    /// Reused by each choice.
    offers: Vec<Offer>,
}

/// A mobile host and its radio link, in the direction to it.
#[allow(missing_debug_implementations)]
pub struct SharedLink {
    /// The hosts that are reached through it.
    pub hosts: Vec<HostId>,
    /// Parameters of the link, with an ARQ.
    pub config: RadioConfig,
    /// Its queue.
    pub queue: LinkQueue,
    /// Its channel.
    pub channel: Box<dyn Channel>,
    /// The stream `bits` of a [`Link`](crate::Link).
    pub bits: Stream,
    /// The stream `backoff` of a [`Link`](crate::Link).
    pub backoff: Stream,
}

/// The state of a mobile host.
struct Mobile {
    link: QueuedLink<Box<dyn Discipline>, Fixed, WithArq>,
    /// Capacity of the one queue, if all packets wait in one.
    limit: QueueLimit,
    /// The numbers of the packets that are not completed, in the order of arrival, with their sizes; only if all packets
    /// wait in one queue.
    order: VecDeque<(u64, Bytes)>,
}

impl SharedRadio {
    /// An idle radio.
    ///
    /// # Panics
    /// If a link has no valid ARQ, if a host is reached through two links, or if a link's queue has a discipline and
    /// the dispatcher has one queue.
    pub fn new(dispatch: Dispatch, links: Vec<SharedLink>) -> SharedRadio {
        let dispatcher = dispatch.build(links.len());
        let (mut mobiles, mut places) = (Vec::new(), Vec::new());
        for (index, link) in links.into_iter().enumerate() {
            let SharedLink { hosts, config, queue, channel, bits, backoff } = link;
            let (queue, limit) = match queue {
                LinkQueue::DropTail(limit) if dispatcher.has_one_queue() => {
                    (QueueLimit::Unlimited.into(), limit)
                }
                queue => (queue, QueueLimit::Unlimited),
            };
            assert!(
                matches!(queue, LinkQueue::DropTail(_)) || !dispatcher.has_one_queue(),
                "one queue has no further disciplines"
            );
            let air = Air::new(&config, channel, bits);
            let arq = config.arq.build(backoff).expect("links that share a radio have an ARQ");
            let (pace, recovery) = (Fixed { delay: config.delay }, WithArq::new(&config, air, arq));
            let link =
                QueuedLink::new(queue.into_discipline(), pace, recovery).leaving_by(Port(1 + index as u32));
            mobiles.push(Mobile { link, limit, order: VecDeque::new() });
            for host in hosts.into_iter().map(HostId::index) {
                places.resize(places.len().max(host + 1), None);
                assert!(places[host].is_none(), "host {host} is reached through two links");
                places[host] = Some(index);
            }
        }
        SharedRadio {
            offers: Vec::with_capacity(mobiles.len()),
            mobiles,
            places,
            dispatcher,
            serving: None,
            due: Time::NEVER,
            arrived: 0,
        }
    }

    /// Packets that have not arrived, queued or in flight.
    pub(crate) fn held(&self) -> usize {
        self.mobiles.iter().map(|mobile| mobile.link.held()).sum()
    }

    /// Counters of the links, in the order of the mobile hosts.
    pub fn stats(&self) -> impl Iterator<Item = LinkStats> {
        self.mobiles.iter().map(|mobile| mobile.link.stats())
    }

    /// Processes everything that is due by `now`.
    fn advance(&mut self, now: Time, out: &mut Out) {
        while self.due <= now {
            if let Some(index) = self.serving.take() {
                let arrived = self.mobiles[index].link.finish(out);
                self.dispatcher.ended(self.due, index, arrived);
            }
            self.choose(now, out);
        }
        self.mobiles.iter_mut().for_each(|mobile| mobile.link.deliver(now, out));
    }

    /// Uses the free air as the dispatcher chooses.
    fn choose(&mut self, now: Time, out: &mut Out) {
        self.offers.clear();
        for Mobile { link, order, .. } in &mut self.mobiles {
            let ready = link.poll(now, out).map_or_else(|until| until, |_| now);
            order.drain(..order.len().saturating_sub(link.incomplete()));
            let good = !self.dispatcher.knows_channels() || link.is_good(now);
            self.offers.push(Offer { ready, oldest: order.front().map(|&(number, _)| number), good });
        }
        match self.dispatcher.choose(now, &self.offers) {
            Choice::Serve(index) => {
                let link = &mut self.mobiles[index].link;
                let attempt = link.poll(now, out).expect("the mobile host is ready");
                (self.serving, self.due) = (Some(index), link.start(attempt, now));
            }
            Choice::Wait(until) => {
                assert!(until > now, "a dispatcher asked at {now} to wait until {until}");
                self.due = until;
            }
        }
    }

    /// Whether there is room in the one queue for a packet of `size` to mobile host `index`.
    fn admits(&self, index: usize, size: Bytes) -> bool {
        let orders = || self.mobiles.iter().map(|mobile| &mobile.order);
        let Some(&(_, oldest)) = orders().filter_map(VecDeque::front).min() else { return true };
        let packets: usize = orders().map(VecDeque::len).sum();
        let bytes: Bytes = orders().flatten().map(|&(_, size)| size).sum();
        self.mobiles[index].limit.admits(packets - 1, bytes - oldest, size)
    }
}

impl Component for SharedRadio {
    /// # Panics
    /// If the destination of the packet is not reached through a mobile host.
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        // Processes events due at this instant first, whether or not the radio was woken before.
        self.advance(now, out);
        let place = self.places.get(packet.dst.index()).copied().flatten();
        let index = place.expect("the destination is reached through a mobile host");
        if self.dispatcher.has_one_queue() {
            if !self.admits(index, packet.size) {
                return self.mobiles[index].link.refuse(packet, out);
            }
            self.mobiles[index].order.push_back((self.arrived, packet.size));
            self.arrived += 1;
        }
        self.mobiles[index].link.accept(now, packet, out);
        if self.serving.is_none() {
            self.choose(now, out);
        } else if self.serving != Some(index) {
            // The first packet to this mobile host is served next, so it no longer counts as queued.
            _ = self.mobiles[index].link.poll(now, out);
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.advance(now, out);
    }

    fn next_wakeup(&self) -> Time {
        let arrivals = self.mobiles.iter().map(|mobile| mobile.link.arrivals.next());
        arrivals.fold(self.due, Time::min)
    }

    /// Packets and bytes in the queues, and the number of the current transmission of the unit on the air (zero between
    /// units).
    fn show(&self, probe: &mut dyn Probe) {
        let queued = self.mobiles.iter().map(|mobile| mobile.link.queue.queued());
        let (packets, bytes) = queued.fold((0, 0), |(n, sum), (packets, size)| (n + packets, sum + size.0));
        let attempt = self.serving.map_or(0, |index| self.mobiles[index].link.attempt().unwrap_or(0));
        probe.value("queue_packets", packets as f64);
        probe.value("queue_bytes", bytes as f64);
        probe.value("attempt", f64::from(attempt));
    }
}
