//! The metrics of a run: their names, meanings and order.

use serde::Serialize;

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
        /// Losses that the source detected from acknowledgements, by duplicates or by time.
        fast_retransmits: u64,
        /// Tail loss probes of the source (RFC 8985 section 7).
        tail_loss_probes: u64,
        /// Timeouts that the source found to be spurious, and undid.
        spurious_timeouts: u64,
        /// Reductions of the congestion window that the source undid, those of spurious timeouts included.
        undone_reductions: u64,
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
        /// Packets of both directions that the discipline of a queue dropped to signal congestion.
        aqm_drops: u64,
    }

    /// What a run is measured by beside its connections.
    struct NetworkMetrics {
        /// Units sent over the air, in both directions, each as often as it was sent; in a cell, data frames.
        link_attempts: u64,
        /// Those of them that did not survive; in a cell, also those that collided.
        link_failures: u64,
        /// Bits put on the air, in both directions, after expansion and coding; those of cells are not counted.
        link_bits: u64,
        /// Packets that the disciplines of queues marked in place of dropping them, of other traffic too.
        ecn_marks: u64,
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
