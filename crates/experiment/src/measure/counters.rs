//! Counters of a run's components at one instant.

use lasthop_base::{Bytes, Duration, Histogram, Time};
use lasthop_link::queue::Waits;
use lasthop_proto::split::Relay;
use lasthop_proto::traffic::voip::{PlayoutBuffer, PlayoutStats};
use lasthop_proto::traffic::{Sink, SinkStats, Source, SourceStats};
use lasthop_proto::{Body, ComponentId, DropReason, EndReport, FlowId, Packet};
use lasthop_sim::wifi::WifiBss;
use lasthop_sim::wlan::{Bss, DirectionStats};
use lasthop_sim::{LinkStats, Node, Tap};

use super::agents::AgentCounters;
use super::applications::ApplicationCounters;

/// The counters of all components at one instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    /// The time of the counters.
    pub(crate) at: Time,
    pub(crate) connections: Vec<EndpointCounters>,
    pub(crate) traffic: Vec<TrafficCounters>,
    pub(crate) applications: Vec<ApplicationCounters>,
    pub(crate) radios: Vec<LinkStats>,
    /// Packets marked by the queues of wired links.
    pub(crate) marked: u64,
    /// Waits in both queues of DualPI2 on wired links.
    pub(crate) waits: [Waits; 2],
    pub(crate) bsses: Vec<BssCounters>,
    /// Of each agent of the schemes.
    pub(crate) agents: Vec<AgentCounters>,
    pub(crate) drops: DropTap,
}

/// Counters of a connection's endpoints.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EndpointCounters {
    pub(crate) sender: EndReport,
    pub(crate) receiver: EndReport,
    pub(crate) relayed: RelayCounters,
}

impl EndpointCounters {
    /// Payload sent by the source that has not reached the destination, for a transfer of `size`.
    pub(super) fn under_way(&self, size: Option<Bytes>) -> Bytes {
        let EndReport { counters, acknowledged, in_flight } = self.sender;
        if counters.payload_sent.is_none_or(|sent| sent == Bytes::ZERO) {
            return Bytes::ZERO;
        }
        let sent = acknowledged.unwrap_or_default() + in_flight.unwrap_or_default();
        let sent = sent.min(size.unwrap_or(Bytes(u64::MAX)));
        Bytes(sent.0.saturating_sub(self.receiver.counters.delivered.0))
    }
}

/// Counters of a source of other traffic and of its sink.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrafficCounters {
    pub(super) source: SourceStats,
    pub(super) sink: SinkStats,
    pub(super) delays: Histogram,
    pub(super) playout: PlayoutStats,
}

impl TrafficCounters {
    pub(crate) fn of(source: &Source, sink: &Sink) -> TrafficCounters {
        TrafficCounters {
            source: *source.stats(),
            sink: *sink.stats(),
            delays: sink.delays().clone(),
            playout: sink.playout().map(PlayoutBuffer::stats).unwrap_or_default(),
        }
    }

    /// The difference to `earlier` counters.
    pub(super) fn since(&self, earlier: &TrafficCounters) -> TrafficCounters {
        TrafficCounters {
            source: self.source.since(&earlier.source),
            sink: self.sink.since(&earlier.sink),
            delays: self.delays.since(&earlier.delays),
            playout: self.playout.since(&earlier.playout),
        }
    }
}

/// Counters of the base stations that split a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RelayCounters {
    pub(super) segments_sent: u64,
    pub(super) payload_sent: Bytes,
    pub(super) retransmitted_segments: u64,
    pub(super) timeouts: u64,
    pub(super) reactions: u64,
    pub(super) aborted: bool,
    pub(super) peak: Bytes,
    pub(super) held: Bytes,
}

impl RelayCounters {
    pub(crate) fn add(&mut self, relay: &Relay) {
        let sender = relay.sender().stats();
        self.segments_sent += sender.segments_sent;
        self.payload_sent += sender.payload_sent;
        self.retransmitted_segments += sender.retransmitted_segments;
        self.timeouts += sender.timeouts;
        self.reactions += sender.reactions + relay.receiver().stats().reactions;
        self.aborted |= relay.sender().is_aborted();
        self.peak = self.peak.max(relay.peak());
        self.held += relay.held();
    }

    /// The difference to `earlier` counters.
    pub(super) fn since(&self, earlier: &RelayCounters) -> RelayCounters {
        RelayCounters {
            segments_sent: self.segments_sent - earlier.segments_sent,
            payload_sent: self.payload_sent - earlier.payload_sent,
            retransmitted_segments: self.retransmitted_segments - earlier.retransmitted_segments,
            timeouts: self.timeouts - earlier.timeouts,
            reactions: self.reactions - earlier.reactions,
            aborted: self.aborted,
            peak: self.peak,
            held: self.held,
        }
    }
}

/// Counters the packets lost per flow, by reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct DropTap {
    pub(super) flows: Vec<DropCounters>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DropCounters {
    pub(super) queue_full: u64,
    pub(super) active_queue: u64,
    pub(super) corrupted: u64,
    pub(super) discarded: u64,
    /// Drops of packets of a code across packets, included in the counters above; the code may recover them.
    pub(super) coded: u64,
    /// Packets lost beyond recovery by a code across packets.
    pub(super) unrecovered: u64,
    /// Lost packets that an agent has sent again.
    pub(super) repaired: u64,
}

impl DropTap {
    /// Counters for `flows` flows.
    pub(crate) fn new(flows: usize) -> DropTap {
        DropTap { flows: vec![DropCounters::default(); flows] }
    }

    /// With the packets that an agent has sent again.
    pub(crate) fn add_repairs(&mut self, agent: &Node) {
        for (flow, counters) in (0..).map(FlowId).zip(&mut self.flows) {
            counters.repaired += agent.repaired(flow);
        }
    }
}

impl DropCounters {
    /// Packets that the flow has lost.
    pub(super) fn lost(&self) -> u64 {
        self.queue_full + self.active_queue + self.corrupted + self.discarded + self.unrecovered - self.coded
    }

    /// The difference to `earlier` counters.
    pub(super) fn since(&self, earlier: &DropCounters) -> DropCounters {
        DropCounters {
            queue_full: self.queue_full - earlier.queue_full,
            active_queue: self.active_queue - earlier.active_queue,
            corrupted: self.corrupted - earlier.corrupted,
            discarded: self.discarded - earlier.discarded,
            coded: self.coded - earlier.coded,
            unrecovered: self.unrecovered - earlier.unrecovered,
            repaired: self.repaired - earlier.repaired,
        }
    }
}

impl Tap for DropTap {
    fn drop(&mut self, _now: Time, _at: ComponentId, packet: &Packet, reason: DropReason) {
        // Packets between agents may belong to no flow.
        let Some(flow) = self.flows.get_mut(packet.flow.index()) else { return };
        match reason {
            DropReason::QueueFull => flow.queue_full += 1,
            DropReason::ActiveQueue => flow.active_queue += 1,
            DropReason::Corrupted => flow.corrupted += 1,
            DropReason::AttemptsExhausted | DropReason::Unreachable | DropReason::TooLarge => {
                flow.discarded += 1
            }
            DropReason::Unrecovered => return flow.unrecovered += 1,
            // No loss: the agent has taken charge of what it reports, or a newer acknowledgement reports it.
            DropReason::Suppressed | DropReason::Scripted => return,
        }
        flow.coded += u64::from(matches!(packet.body, Body::Coded(_)));
    }

    fn sees_wire(&self, _wire: &lasthop_sim::Wire) -> bool {
        false
    }

    fn sees_signals(&self) -> bool {
        false
    }

    fn sees_component(&self, _id: ComponentId) -> bool {
        false
    }
}

/// Busy time and collisions of BSSs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BssCounters {
    pub(crate) attempts: u64,
    pub(crate) failed_attempts: u64,
    pub(crate) collisions: u64,
    pub(crate) busy: Duration,
    /// Packets marked by queue disciplines.
    pub(crate) marked: u64,
}

impl BssCounters {
    /// Counters of a BSS with `stations` stations.
    pub(crate) fn of(bss: &Bss, stations: usize) -> BssCounters {
        let stats = bss.stats();
        let mut counts =
            BssCounters { collisions: stats.collisions, busy: stats.busy_time, ..BssCounters::default() };
        for station in (0..stations).map(|index| bss.station(index)) {
            for way in [station.down, station.up] {
                counts.add(&way);
            }
        }
        counts
    }

    /// The same of 802.11n, 802.11ac or 802.11ax, whose attempts are those of MPDUs.
    pub(crate) fn of_wifi(bss: &WifiBss, stations: usize) -> BssCounters {
        let stats = bss.stats();
        let (collisions, busy, marked) = (stats.collisions, stats.busy_time(), bss.marked());
        let mut counts = BssCounters { collisions, busy, marked, ..BssCounters::default() };
        for station in (0..stations).map(|index| bss.station(index)) {
            counts.add(&station.down.packets);
            counts.add(&station.up.packets);
        }
        counts
    }

    fn add(&mut self, way: &DirectionStats) {
        self.attempts += way.attempts;
        self.failed_attempts += way.collided + way.lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each counter is `factor` times its own prime number; the others have their final values.
    fn relayed(factor: u64, end: u64) -> RelayCounters {
        RelayCounters {
            segments_sent: 2 * factor,
            payload_sent: Bytes(3 * factor),
            retransmitted_segments: 5 * factor,
            timeouts: 7 * factor,
            reactions: 11 * factor,
            aborted: end > 50,
            peak: Bytes(end),
            held: Bytes(end + 1),
        }
    }

    #[test]
    fn what_relays_counted_before_is_left_out_and_not_what_they_hold() {
        let [found, expected] = [relayed(10, 100).since(&relayed(3, 50)), relayed(7, 100)];
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }

    #[test]
    fn losses_before_are_left_out_by_reason() {
        let drops = |factor: u64| DropCounters {
            queue_full: 2 * factor,
            corrupted: 3 * factor,
            discarded: 5 * factor,
            active_queue: 7 * factor,
            coded: 4 * factor,
            unrecovered: 11 * factor,
            repaired: 13 * factor,
        };
        let found = drops(10).since(&drops(3));
        assert_eq!((found.queue_full, found.corrupted, found.discarded), (14, 21, 35));
        assert_eq!((found.active_queue, found.coded, found.unrecovered), (49, 28, 77));
        assert_eq!((found.repaired, found.lost()), (91, 119 - 28 + 77));
    }
}
