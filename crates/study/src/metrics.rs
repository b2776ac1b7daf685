//! What a run is measured by.

use lasthop_base::{Bytes, Duration, Time};
use lasthop_proto::application::ClientStats;
use lasthop_proto::split::Relay;
use lasthop_proto::tcp::{ReceiverStats, SenderStats};
use lasthop_proto::traffic::{SinkStats, SourceStats};
use lasthop_proto::{ComponentId, DropReason, Packet};
use lasthop_sim::{RadioStats, Tap};
use serde::Serialize;

use crate::cell::CellCounts;

/// One metric of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A quantity in the unit of its name; none if the run does not have it.
    Real(Option<f64>),
    /// A number of things.
    Count(u64),
    /// Yes or no.
    Truth(bool),
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(Some(value))
    }
}

impl From<Option<f64>> for Value {
    fn from(value: Option<f64>) -> Value {
        Value::Real(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Count(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Truth(value)
    }
}

/// Defines structs of metrics, so that names and values are listed once.
macro_rules! metrics {
    ($($(#[$of:meta])* struct $set:ident { $($(#[$doc:meta])* $name:ident: $type:ty,)* })*) => {
        $(
            $(#[$of])*
            #[derive(Clone, Debug, PartialEq, Serialize)]
            pub struct $set {
                $($(#[$doc])* pub $name: $type,)*
            }

            impl $set {
                /// The metrics' names, in their order.
                pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

                /// The metrics' values, in the order of their [names]($set::NAMES).
                pub fn values(&self) -> impl ExactSizeIterator<Item = Value> + use<> {
                    [$(Value::from(self.$name)),*].into_iter()
                }
            }
        )*
    };
}

metrics! {
    /// What a connection is measured by, or several together. Names carry units; bytes of packets
    /// include their headers. All counts are from the end of the warm-up on.
    struct ConnectionMetrics {
        /// Payload delivered in order, in bits, over the time from the transfer's start, or the end of
        /// the warm-up if that is later, until its last byte reached the destination, or until the run
        /// ended if it did not. Of several connections, all that they delivered, over the time from the
        /// first one's beginning until the last one's end.
        throughput_bps: f64,
        /// Payload delivered in order over payload sent by the source, copies included: 1 if nothing was
        /// sent twice or lost. After a warm-up, what was under way at its end counts as delivered only.
        /// Null if nothing was sent.
        goodput: Option<f64>,
        /// Time from the transfer's start until its last byte reached the destination. Null if it did not.
        /// Of several connections that of the slowest with an end.
        completion_time_s: Option<f64>,
        /// Whether the last byte reached the destination, of all that have one.
        finished: bool,
        /// Whether the source, or a base station that sends on for it, gave up or was reset. Of several
        /// connections, whether any was.
        aborted: bool,
        /// Payload that reached the destination's application, in order.
        delivered_bytes: u64,
        /// Segments that the source sent, of any kind, copies included.
        segments_sent: u64,
        /// Those of them that had been sent before, in whole or in part.
        retransmitted_segments: u64,
        /// Their bytes, headers included, except payload that was new.
        retransmitted_bytes: u64,
        /// Retransmission timeouts of the source.
        timeouts: u64,
        /// Losses that the source found by duplicate acknowledgements.
        fast_retransmits: u64,
        /// Control messages of the scheme that reached the source.
        notices: u64,
        /// Acknowledgements that the destination sent, and resets.
        acks_sent: u64,
        /// Segments that base stations sent of a connection that they split, copies included. Zero if none
        /// does, as all metrics of relays.
        relay_segments_sent: u64,
        /// Payload in them.
        relay_payload_bytes: u64,
        /// Those of them that had been sent before, in whole or in part.
        relay_retransmitted_segments: u64,
        /// Retransmission timeouts of base stations.
        relay_timeouts: u64,
        /// The most bytes that base stations held at once, each as far as it has taken over what the next
        /// has not acknowledged; from the beginning of the run. Of several connections that of the one with
        /// the most.
        relay_peak_bytes: u64,
        /// Bytes that base stations held when the run ended.
        relay_held_bytes: u64,
        /// Payload that was acknowledged to the source, and had not reached the destination when the run
        /// ended. More than zero only if a base station acknowledges in the destination's place.
        acknowledged_undelivered_bytes: u64,
        /// Packets of both directions that a link gave up after its last permitted attempt.
        link_discards: u64,
        /// Packets of both directions that arrived damaged over a link that does not recover errors, or were
        /// dropped above the MAC of a cell.
        lost_on_air: u64,
        /// Packets of both directions that found a queue full.
        queue_drops: u64,
    }

    /// What a run is measured by beside its connections.
    struct NetworkMetrics {
        /// Units sent over the air, in both directions, each as often as it was sent; in a cell, data frames.
        link_attempts: u64,
        /// Those of them that did not survive; in a cell, also those that collided.
        link_failures: u64,
        /// Bits put on the air, in both directions, after expansion and coding; those of cells are not counted.
        link_bits: u64,
        /// Times that frames collided in cells.
        collisions: u64,
        /// How long there were frames on the air of cells.
        busy_time_s: f64,
        /// Jain's index of the throughputs of the connections that were there after the warm-up: 1 if they
        /// are equal, 1/n if one of n has all. Null if nothing was delivered.
        fairness: Option<f64>,
    }

    /// What a source of other traffic is measured by, from the end of the warm-up on.
    struct TrafficMetrics {
        /// Packets that it sent.
        sent_packets: u64,
        /// Packets that arrived.
        delivered_packets: u64,
        /// Packets that were lost anywhere.
        lost_packets: u64,
        /// What arrived, headers included, in bits, over the time from the source's start, or the end of
        /// the warm-up if that is later, until it had stopped and the last one arrived, or the run ended.
        throughput_bps: f64,
        /// Mean time from sending to arrival. Null if nothing arrived.
        mean_delay_s: Option<f64>,
    }

    /// What an application is measured by, from the end of the warm-up on.
    struct ApplicationMetrics {
        /// Requests that the client made.
        requests: u64,
        /// Responses that reached the client as a whole.
        responses: u64,
        /// Mean time from when the client handed a request to TCP until the last byte of its response was
        /// there. Null if no response was.
        mean_response_time_s: Option<f64>,
        /// The longest of these times. Null likewise.
        greatest_response_time_s: Option<f64>,
        /// Payload that reached the server, in order.
        request_bytes: u64,
        /// Payload that reached the client, in order.
        response_bytes: u64,
        /// Segments of both that had been sent before, in whole or in part.
        retransmitted_segments: u64,
        /// Retransmission timeouts of both.
        timeouts: u64,
        /// Packets of both that were lost anywhere.
        lost_packets: u64,
    }
}

/// What a run is measured by: all its connections together, and its network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metrics {
    /// The connections.
    #[serde(flatten)]
    pub connections: ConnectionMetrics,
    /// The network.
    #[serde(flatten)]
    pub network: NetworkMetrics,
}

impl Metrics {
    /// The metrics' names, in their order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ConnectionMetrics::NAMES.iter().chain(NetworkMetrics::NAMES).copied()
    }

    /// The metrics' values, in the order of their [names](Metrics::names).
    pub fn values(&self) -> impl Iterator<Item = Value> + use<> {
        self.connections.values().chain(self.network.values())
    }
}

/// What the parts of a run have counted by some instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// The instant.
    pub(crate) at: Time,
    pub(crate) connections: Vec<Ends>,
    pub(crate) traffic: Vec<(SourceStats, SinkStats)>,
    pub(crate) applications: Vec<Dialogue>,
    pub(crate) radios: Vec<RadioStats>,
    pub(crate) cells: Vec<CellCounts>,
    pub(crate) drops: Drops,
}

/// What the ends of a connection have counted, and what is between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) sender: SenderStats,
    pub(crate) receiver: ReceiverStats,
    /// Payload that was acknowledged to the sender.
    pub(crate) acknowledged: Bytes,
    pub(crate) relayed: Relayed,
}

/// What the two ends of an application have counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Dialogue {
    pub(crate) client: ClientStats,
    /// The sending ends of its connections: the client's and the server's.
    pub(crate) senders: [SenderStats; 2],
    /// Payload that reached the server.
    pub(crate) asked: Bytes,
    /// Payload that reached the client.
    pub(crate) answered: Bytes,
}

/// What the base stations that split a connection have counted, and what they hold.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Relayed {
    segments_sent: u64,
    payload_sent: Bytes,
    retransmitted_segments: u64,
    timeouts: u64,
    aborted: bool,
    peak: Bytes,
    held: Bytes,
}

impl Relayed {
    pub(crate) fn add(&mut self, relay: &Relay) {
        let sender = relay.sender().stats();
        self.segments_sent += sender.segments_sent;
        self.payload_sent += sender.payload_sent;
        self.retransmitted_segments += sender.retransmitted_segments;
        self.timeouts += sender.timeouts;
        self.aborted |= relay.sender().is_aborted();
        self.peak = self.peak.max(relay.peak());
        self.held += relay.held();
    }

    /// What was counted since `earlier`, which was counted before.
    fn since(&self, earlier: &Relayed) -> Relayed {
        Relayed {
            segments_sent: self.segments_sent - earlier.segments_sent,
            payload_sent: self.payload_sent - earlier.payload_sent,
            retransmitted_segments: self.retransmitted_segments - earlier.retransmitted_segments,
            timeouts: self.timeouts - earlier.timeouts,
            aborted: self.aborted,
            peak: self.peak,
            held: self.held,
        }
    }
}

/// Counts what is lost of each flow, by reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drops {
    flows: Vec<FlowDrops>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FlowDrops {
    queue_full: u64,
    corrupted: u64,
    discarded: u64,
}

impl Drops {
    /// Of so many flows.
    pub(crate) fn new(flows: usize) -> Drops {
        Drops { flows: vec![FlowDrops::default(); flows] }
    }
}

impl FlowDrops {
    fn total(&self) -> u64 {
        self.queue_full + self.corrupted + self.discarded
    }

    /// What was counted since `earlier`, which was counted before.
    fn since(&self, earlier: &FlowDrops) -> FlowDrops {
        FlowDrops {
            queue_full: self.queue_full - earlier.queue_full,
            corrupted: self.corrupted - earlier.corrupted,
            discarded: self.discarded - earlier.discarded,
        }
    }
}

impl Tap for Drops {
    fn drop(&mut self, _now: Time, _at: ComponentId, packet: &Packet, reason: DropReason) {
        let flow = &mut self.flows[usize::from(packet.flow.0)];
        match reason {
            DropReason::QueueFull => flow.queue_full += 1,
            DropReason::Corrupted => flow.corrupted += 1,
            DropReason::AttemptsExhausted => flow.discarded += 1,
            DropReason::Scripted => {}
        }
    }
}

/// What a run counted: all of it, and what of it belongs to the warm-up.
pub(crate) struct Measured<'a> {
    pub(crate) end: &'a Counts,
    pub(crate) warmup: &'a Counts,
}

impl Measured<'_> {
    /// The connection with number `index`, whose transfer of `size` was to begin at `start`.
    pub(crate) fn connection(&self, index: usize, size: Option<Bytes>, start: Time) -> Connection {
        let end = &self.end.connections[index];
        let before = self.warmup.connections.get(index).copied().unwrap_or_default();
        let Ends { sender: total, receiver: received, .. } = *end;
        let (sender, receiver) = (total.since(&before.sender), received.since(&before.receiver));
        let relayed = end.relayed.since(&before.relayed);
        let undelivered = end.acknowledged.0.saturating_sub(received.delivered.0);
        let drops = self.drops(index);
        let finished = size == Some(received.delivered);
        let start = total.started.unwrap_or(start);
        let end = if finished { received.last_delivery } else { self.end.at };
        let span = self.span(start, end);
        let metrics = ConnectionMetrics {
            throughput_bps: rate(receiver.delivered, span.length()),
            goodput: share(receiver.delivered, sender.payload_sent),
            completion_time_s: finished.then(|| end.since(start).as_secs_f64()),
            finished,
            aborted: total.aborted.is_some() || relayed.aborted,
            delivered_bytes: receiver.delivered.0,
            segments_sent: sender.segments_sent,
            retransmitted_segments: sender.retransmitted_segments,
            retransmitted_bytes: sender.retransmitted_bytes.0,
            timeouts: sender.timeouts,
            fast_retransmits: sender.fast_retransmits,
            notices: sender.notices,
            acks_sent: receiver.acks_sent,
            relay_segments_sent: relayed.segments_sent,
            relay_payload_bytes: relayed.payload_sent.0,
            relay_retransmitted_segments: relayed.retransmitted_segments,
            relay_timeouts: relayed.timeouts,
            relay_peak_bytes: relayed.peak.0,
            relay_held_bytes: relayed.held.0,
            acknowledged_undelivered_bytes: undelivered,
            link_discards: drops.discarded,
            lost_on_air: drops.corrupted,
            queue_drops: drops.queue_full,
        };
        Connection { metrics, span, ends: size.is_some(), payload_sent: sender.payload_sent }
    }

    /// The source of traffic with number `index`, which was to send from `start` until `stop`.
    pub(crate) fn traffic(&self, index: usize, start: Time, stop: Time) -> TrafficMetrics {
        let (source, sink) = self.end.traffic[index];
        let (sent_before, arrived_before) = self.warmup.traffic.get(index).copied().unwrap_or_default();
        let (source, sink) = (source.since(&sent_before), sink.since(&arrived_before));
        let drops = self.drops(self.end.connections.len() + index);
        let delay = sink.total_delay.as_secs_f64();
        let end = stop.max(sink.last_arrival).min(self.end.at);
        TrafficMetrics {
            sent_packets: source.packets,
            delivered_packets: sink.packets,
            lost_packets: drops.total(),
            throughput_bps: rate(sink.bytes, self.span(start, end).length()),
            mean_delay_s: (sink.packets > 0).then(|| delay / sink.packets as f64),
        }
    }

    /// The application with number `index`.
    pub(crate) fn application(&self, index: usize) -> ApplicationMetrics {
        let end = &self.end.applications[index];
        let before = self.warmup.applications.get(index).copied().unwrap_or_default();
        let client = end.client.since(&before.client);
        let senders = [0, 1].map(|sender| end.senders[sender].since(&before.senders[sender]));
        // Two flows for each application, behind all others.
        let first = self.end.connections.len() + self.end.traffic.len() + 2 * index;
        let lost = [first, first + 1].map(|flow| self.drops(flow).total());
        let answered = client.responses > 0;
        let mean = client.total_response_time.as_secs_f64() / client.responses as f64;
        ApplicationMetrics {
            requests: client.requests,
            responses: client.responses,
            mean_response_time_s: answered.then_some(mean),
            greatest_response_time_s: answered.then(|| client.greatest_response_time.as_secs_f64()),
            request_bytes: (end.asked - before.asked).0,
            response_bytes: (end.answered - before.answered).0,
            retransmitted_segments: senders.iter().map(|sender| sender.retransmitted_segments).sum(),
            timeouts: senders.iter().map(|sender| sender.timeouts).sum(),
            lost_packets: lost.iter().sum(),
        }
    }

    /// All of them together.
    pub(crate) fn total(&self, connections: &[Connection]) -> Metrics {
        let metrics = || connections.iter().map(|each| &each.metrics);
        let sum = |count: fn(&ConnectionMetrics) -> u64| metrics().map(count).sum();
        let with_an_end = || connections.iter().filter(|each| each.ends).map(|each| &each.metrics);
        let delivered = Bytes(sum(|each| each.delivered_bytes));
        let sent = Bytes(connections.iter().map(|each| each.payload_sent.0).sum());
        let span = connections.iter().map(|each| each.span).reduce(Span::and).unwrap_or_default();
        let times = with_an_end().map(|each| each.completion_time_s);
        let there = connections.iter().filter(|each| !each.span.length().is_zero());
        Metrics {
            connections: ConnectionMetrics {
                throughput_bps: rate(delivered, span.length()),
                goodput: share(delivered, sent),
                completion_time_s: times.reduce(|a, b| Some(a?.max(b?))).flatten(),
                finished: with_an_end().count() > 0 && with_an_end().all(|each| each.finished),
                aborted: metrics().any(|each| each.aborted),
                delivered_bytes: delivered.0,
                segments_sent: sum(|each| each.segments_sent),
                retransmitted_segments: sum(|each| each.retransmitted_segments),
                retransmitted_bytes: sum(|each| each.retransmitted_bytes),
                timeouts: sum(|each| each.timeouts),
                fast_retransmits: sum(|each| each.fast_retransmits),
                notices: sum(|each| each.notices),
                acks_sent: sum(|each| each.acks_sent),
                relay_segments_sent: sum(|each| each.relay_segments_sent),
                relay_payload_bytes: sum(|each| each.relay_payload_bytes),
                relay_retransmitted_segments: sum(|each| each.relay_retransmitted_segments),
                relay_timeouts: sum(|each| each.relay_timeouts),
                relay_peak_bytes: metrics().map(|each| each.relay_peak_bytes).max().unwrap_or(0),
                relay_held_bytes: sum(|each| each.relay_held_bytes),
                acknowledged_undelivered_bytes: sum(|each| each.acknowledged_undelivered_bytes),
                link_discards: sum(|each| each.link_discards),
                lost_on_air: sum(|each| each.lost_on_air),
                queue_drops: sum(|each| each.queue_drops),
            },
            network: NetworkMetrics {
                link_attempts: self.on_air(|radio| radio.attempts) + self.in_cells(|cell| cell.attempts),
                link_failures: self.on_air(|radio| radio.failed_attempts)
                    + self.in_cells(|cell| cell.failed_attempts),
                link_bits: self.on_air(|radio| radio.bits_on_air),
                collisions: self.in_cells(|cell| cell.collisions),
                busy_time_s: Duration::from_nanos(self.in_cells(|cell| cell.busy.as_nanos())).as_secs_f64(),
                fairness: jain(there.map(|each| each.metrics.throughput_bps)),
            },
        }
    }

    /// What was lost of a flow; connections come first.
    fn drops(&self, flow: usize) -> FlowDrops {
        let before = self.warmup.drops.flows.get(flow).copied().unwrap_or_default();
        self.end.drops.flows[flow].since(&before)
    }

    fn on_air(&self, count: fn(&RadioStats) -> u64) -> u64 {
        let total = |counts: &Counts| counts.radios.iter().map(count).sum::<u64>();
        total(self.end) - total(self.warmup)
    }

    fn in_cells(&self, count: fn(&CellCounts) -> u64) -> u64 {
        let total = |counts: &Counts| counts.cells.iter().map(count).sum::<u64>();
        total(self.end) - total(self.warmup)
    }

    /// From `start`, or the end of the warm-up, until `end`; of no length if that is earlier.
    fn span(&self, start: Time, end: Time) -> Span {
        let start = start.max(self.warmup.at);
        Span { start, end: end.max(start) }
    }
}

/// What is known of a connection: its metrics, and what their sum over several needs besides.
pub(crate) struct Connection {
    pub(crate) metrics: ConnectionMetrics,
    span: Span,
    /// Whether its transfer has an end.
    ends: bool,
    payload_sent: Bytes,
}

/// A time that is measured.
#[derive(Clone, Copy, Default)]
struct Span {
    start: Time,
    end: Time,
}

impl Span {
    fn length(self) -> Duration {
        self.end.since(self.start)
    }

    /// From the beginning of the first until the end of the last.
    fn and(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Jain's fairness index (DEC-TR-301, section 2): (Σx)² / (n Σx²).
fn jain(shares: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = shares.clone().count() as f64;
    let squares: f64 = shares.clone().map(|x| x * x).sum();
    let sum: f64 = shares.sum();
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// Bits per second.
fn rate(size: Bytes, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { size.bits() as f64 / time.as_secs_f64() }
}

fn share(part: Bytes, whole: Bytes) -> Option<f64> {
    (whole != Bytes::ZERO).then(|| part.0 as f64 / whole.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_for_equals_and_a_share_for_one_who_has_all() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), Some(1.0));
        assert_eq!(jain([0.0, 5.0, 0.0, 0.0].into_iter()), Some(0.25));
        // By hand: 9² over 3 times 35.
        assert_eq!(jain([1.0, 3.0, 5.0].into_iter()), Some(81.0 / 105.0));
        assert_eq!(jain([0.0, 0.0].into_iter()), None);
    }
}
