//! Names, definitions and order of the metrics.

use lasthop_proto::application::Activity;
use schemars::JsonSchema;
use serde::Serialize;

/// Value of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A quantity in the unit of its name; `None` if it does not apply to the run.
    Real(Option<f64>),
    /// A count.
    Count(u64),
    /// A boolean.
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

/// Which values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Higher ones.
    Higher,
    /// Lower ones.
    Lower,
    /// It depends on the question.
    Depends,
}

/// Whether higher or lower values of the metric called `name` are better. Names mean the same in all sets of
/// metrics. [`Better::Depends`] for unknown names.
pub(super) fn direction(name: &str) -> Better {
    DEFINED.iter().find(|(each, ..)| *each == name).map_or(Better::Depends, |(_, _, better)| *better)
}

/// Whether the metric called `name` is a whole number; `None` if there is no such metric.
pub(super) fn counts(name: &str) -> Option<bool> {
    DEFINED.iter().find(|(each, ..)| *each == name).map(|(_, of, _)| *of == "u64")
}

/// Defines structs of metrics, so that names, types and directions are stated only once.
macro_rules! metrics {
    ($($(#[$of:meta])* struct $set:ident {
        $($(#[$doc:meta])* $name:ident: $type:ty => $better:ident,)*
    })*) => {
        /// The type and direction of each metric. A name means the same in all sets that have it.
        const DEFINED: &[(&str, &str, Better)] =
            &[$($((stringify!($name), stringify!($type), Better::$better)),*),*];

        $(
            $(#[$of])*
            #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
            pub struct $set {
                $($(#[$doc])* pub $name: $type,)*
            }

            impl $set {
                /// The names of the metrics, in order.
                pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

                /// The values of the metrics, in the order of their [names]($set::NAMES).
                pub fn values(&self) -> impl ExactSizeIterator<Item = Value> + use<> {
                    [$(Value::from(self.$name)),*].into_iter()
                }
            }
        )*
    };
}

metrics! {
    /// Metrics of a connection, or of several together. Names include units; bytes of packets include
    /// headers. All counters start at the end of the warm-up.
    struct ConnectionMetrics {
        /// Payload delivered in order, divided by time: from the transfer's start, or the end of the warm-up
        /// if that is later, until its last byte reached the destination, or the run ended. For several
        /// connections: their total payload, divided by the time from the first start to the last end.
        throughput_bps: f64 => Higher,
        /// Payload delivered in order, divided by payload that the source sent, retransmissions included: 1
        /// if nothing was retransmitted or lost. Payload in flight at the end of the warm-up counts as sent.
        /// Null if nothing was sent.
        goodput: Option<f64> => Higher,
        /// Time from the transfer's start until its last byte reached the destination, including the warm-up.
        /// Null if it did not. For several connections: that of the slowest finite one; null if one did not
        /// finish.
        completion_time_s: Option<f64> => Lower,
        /// Whether the last byte reached the destination. For several connections: whether all finite ones
        /// finished.
        finished: bool => Higher,
        /// Whether the source, or a base station that relays its connection, gave up or was reset. For
        /// several connections: whether any was.
        aborted: bool => Lower,
        /// Payload that reached the destination's application, in order.
        delivered_bytes: u64 => Higher,
        /// Segments of any kind that the source sent, retransmissions included.
        segments_sent: u64 => Depends,
        /// Segments of the source with data that had been sent before, in whole or in part.
        retransmitted_segments: u64 => Lower,
        /// The bytes of retransmitted segments, headers included, except new payload.
        retransmitted_bytes: u64 => Lower,
        /// Retransmission timeouts of the source.
        timeouts: u64 => Lower,
        /// Losses that the source detected from acknowledgements: duplicate ACKs or RACK.
        fast_retransmits: u64 => Lower,
        /// Tail loss probes of the source (RFC 8985 section 7). Zero without `tlp`.
        tail_loss_probes: u64 => Lower,
        /// `timeouts` that the source detected as spurious, by F-RTO, timestamps or DSACK, and undid. Zero
        /// without `undo`.
        spurious_timeouts: u64 => Lower,
        /// Reductions of the congestion window that the source undid, spurious timeouts included. Zero
        /// without `undo`.
        undone_reductions: u64 => Depends,
        /// ACKs with ECN-Echo that reached the source (RFC 3168). The receiver sets the flag on every ACK
        /// until the source responds with CWR. Zero without `ecn`.
        ecn_echoes: u64 => Depends,
        /// Time for which pacing delayed segments of the source that the windows allowed. For several
        /// connections: the sum. Zero without `pacing` or BBR.
        pacing_wait_s: f64 => Depends,
        /// Control messages of the scheme that reached the source.
        notices: u64 => Depends,
        /// ACKs and resets that the destination sent.
        acks_sent: u64 => Depends,
        /// Segments of any kind that base stations sent for connections that they split, retransmissions
        /// included. All relay metrics are zero without split connections.
        relay_segments_sent: u64 => Depends,
        /// Payload in the segments of `relay_segments_sent`.
        relay_payload_bytes: u64 => Depends,
        /// Segments of `relay_segments_sent` with data that had been sent before, in whole or in part.
        relay_retransmitted_segments: u64 => Lower,
        /// Retransmission timeouts of base stations.
        relay_timeouts: u64 => Lower,
        /// Peak of the payload that base stations held: received on one part, and not acknowledged on the
        /// next. Includes the warm-up. For several connections: the largest peak.
        relay_peak_bytes: u64 => Lower,
        /// Payload that base stations held when the run ended.
        relay_held_bytes: u64 => Lower,
        /// Payload that was acknowledged to the source and had not reached the destination when the run
        /// ended. Zero unless a base station acknowledges on behalf of the destination.
        acknowledged_undelivered_bytes: u64 => Lower,
        /// Packets of both directions that a link discarded after its last permitted attempt.
        link_discards: u64 => Lower,
        /// Packets of both directions that arrived corrupted over a link without error recovery, or were
        /// dropped above the MAC of a cell.
        lost_on_air: u64 => Lower,
        /// Packets of both directions dropped at any full queue.
        queue_drops: u64 => Lower,
        /// Packets of both directions that the discipline of a queue dropped to signal congestion, before the
        /// queue was full.
        aqm_drops: u64 => Lower,
    }

    /// Metrics of the network.
    struct NetworkMetrics {
        /// Transmissions of units over the air, in both directions, retransmissions and other traffic
        /// included. In a cell: attempts to send a data frame, with its RTS.
        link_attempts: u64 => Lower,
        /// Link attempts that failed; in a cell, collided attempts too.
        link_failures: u64 => Lower,
        /// Bits transmitted over the air, in both directions, after expansion and coding. Cells are not
        /// counted.
        link_bits: u64 => Lower,
        /// Packets that queue disciplines marked instead of dropping them, in both directions, other traffic
        /// included.
        ecn_marks: u64 => Depends,
        /// Simultaneous starts of transmission in a cell; the sum over all cells. Zero without cells.
        collisions: u64 => Lower,
        /// Time for which at least one frame was on the air of a cell; the sum over all cells. A data frame
        /// counts when it begins. Zero without cells.
        busy_time_s: f64 => Lower,
        /// Jain's index of the throughputs x of the connections that were active after the warm-up: (Σx)² /
        /// (n Σx²). 1 if all are equal, 1/n if one of n has everything. Null if nothing was delivered.
        fairness: Option<f64> => Higher,
        /// Transmission time of all radios, in both directions, retransmissions and coding included. Cells
        /// are not counted: they have `busy_time_s`.
        air_time_s: f64 => Lower,
        /// Transmission time of mobile hosts.
        uplink_air_time_s: f64 => Lower,
        /// Energy consumed by the radios of mobile hosts, from the end of the warm-up until the run ended.
        /// Null unless their power is stated.
        mobile_energy_j: Option<f64> => Lower,
        /// `mobile_energy_j` divided by the payload bits delivered, of connections, applications and other
        /// traffic. Null if nothing was delivered.
        energy_per_bit_j: Option<f64> => Lower,
    }

    /// Metrics of a source of other traffic, from the end of the warm-up on.
    struct TrafficMetrics {
        /// Packets sent.
        sent_packets: u64 => Depends,
        /// Packets delivered.
        delivered_packets: u64 => Higher,
        /// Packets lost anywhere and not recovered by `packet-fec`.
        lost_packets: u64 => Lower,
        /// Bits delivered, headers included, divided by time: from the source's start, or the end of the
        /// warm-up if that is later, until the source had stopped and its last packet arrived, or the run
        /// ended.
        throughput_bps: f64 => Higher,
        /// Mean time from sending to arrival. Null, like the other delays, if nothing arrived.
        mean_delay_s: Option<f64> => Lower,
        /// The median of these times. Quantiles are the nearest rank, exact to 0.4 %.
        p50_delay_s: Option<f64> => Lower,
        /// The time that 95 % of the packets do not exceed.
        p95_delay_s: Option<f64> => Lower,
        /// The time that 99 % of the packets do not exceed.
        p99_delay_s: Option<f64> => Lower,
        /// Interarrival jitter: the difference between the delays of packets that follow each other, smoothed
        /// as in RFC 3550, section 6.4.1; the mean over all packets.
        jitter_s: Option<f64> => Lower,
        /// Packets of a call that arrived too late to be played. Zero of other sources.
        late_packets: u64 => Lower,
        /// Mean length of a run of packets that were not played, divided by that of independent losses at the
        /// same rate. Null without losses. This and the following metrics are null for other sources.
        burst_ratio: Option<f64> => Depends,
        /// Mean delay from the speaker's mouth to the listener's ear, over the packets played. Null if none
        /// was.
        mouth_to_ear_s: Option<f64> => Lower,
        /// The rating R of the call: 93.2 at best, satisfying above 80, unacceptable below 50. The rating
        /// factor R of the E-model (ITU-T G.107).
        r_factor: Option<f64> => Higher,
        /// The mean opinion score, from 1 to 4.5.
        mos: Option<f64> => Higher,
    }

    /// Metrics of the messages of an application, from the end of the warm-up on.
    struct ApplicationMetrics {
        /// Requests made by the client.
        requests: u64 => Depends,
        /// Complete responses received by the client.
        responses: u64 => Higher,
        /// Mean time from when the client handed a request to TCP until it had the last byte of the response;
        /// the first includes the handshake. Null without responses.
        mean_response_time_s: Option<f64> => Lower,
        /// The median of these times; quantiles are interpolated between the two nearest values, as in NumPy.
        /// Null without responses.
        p50_response_time_s: Option<f64> => Lower,
        /// The time that 95 % of them do not exceed. Null if there are none.
        p95_response_time_s: Option<f64> => Lower,
        /// The time that 99 % of them do not exceed. Null if there are none.
        p99_response_time_s: Option<f64> => Lower,
        /// The longest of these times. Null if there are none.
        greatest_response_time_s: Option<f64> => Lower,
        /// Payload delivered to the server, in order.
        request_bytes: u64 => Depends,
        /// Payload delivered to the client, in order.
        response_bytes: u64 => Higher,
        /// Segments of client and server with data that had been sent before, in whole or in part.
        retransmitted_segments: u64 => Lower,
        /// Retransmission timeouts of client and server.
        timeouts: u64 => Lower,
        /// Packets of client and server lost anywhere, including ACKs and control messages.
        lost_packets: u64 => Lower,
    }

    /// Metrics of an application that loads pages, from the end of the warm-up on.
    struct PageMetrics {
        /// Pages loaded.
        pages: u64 => Higher,
        /// Mean time from the opening of a page until the last byte of its last object arrived. Null if none
        /// was loaded.
        mean_page_time_s: Option<f64> => Lower,
        /// The median of these times. Null if there are none.
        p50_page_time_s: Option<f64> => Lower,
        /// The time that 95 % of them do not exceed. Null if there are none.
        p95_page_time_s: Option<f64> => Lower,
        /// The time that 99 % of them do not exceed. Null if there are none.
        p99_page_time_s: Option<f64> => Lower,
        /// The longest of these times. Null if there are none.
        greatest_page_time_s: Option<f64> => Lower,
    }

    /// Metrics of an application that plays a video, from the end of the warm-up on.
    struct VideoMetrics {
        /// Time from the start until playback began, warm-up included. Null if it did not begin.
        startup_delay_s: Option<f64> => Lower,
        /// Playing time shown.
        played_s: f64 => Higher,
        /// Stalls: times that the buffer ran empty after playback had begun.
        stalls: u64 => Lower,
        /// Total length of the stalls.
        stalled_s: f64 => Lower,
        /// Mean bitrate of the fetched segments, by their playing time. Null without segments.
        mean_bitrate_bps: Option<f64> => Higher,
        /// Changes of the bitrate from one segment to the next.
        bitrate_switches: u64 => Lower,
    }
}

/// Further metrics of an application, by its kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ActivityMetrics {
    /// Messages have no further metrics.
    Messages {},
    /// Of pages.
    Pages(PageMetrics),
    /// Of a video.
    Video(VideoMetrics),
}

impl ActivityMetrics {
    /// The names of the metrics of an activity, in order.
    pub fn names(activity: &Activity) -> &'static [&'static str] {
        match activity {
            Activity::Messages(_) => &[],
            Activity::Pages(_) => PageMetrics::NAMES,
            Activity::Video(_) => VideoMetrics::NAMES,
        }
    }

    /// The names and values of its metrics, in order.
    pub fn named(&self) -> Vec<(&'static str, Value)> {
        fn zip(names: &[&'static str], values: impl Iterator<Item = Value>) -> Vec<(&'static str, Value)> {
            names.iter().copied().zip(values).collect()
        }
        match self {
            ActivityMetrics::Messages {} => Vec::new(),
            ActivityMetrics::Pages(pages) => zip(PageMetrics::NAMES, pages.values()),
            ActivityMetrics::Video(video) => zip(VideoMetrics::NAMES, video.values()),
        }
    }
}

/// Metrics of a run: all connections together, and the network.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Metrics {
    /// The connections.
    #[serde(flatten)]
    pub connections: ConnectionMetrics,
    /// The network.
    #[serde(flatten)]
    pub network: NetworkMetrics,
}

impl Metrics {
    /// The names of the metrics, in order.
    pub fn names() -> impl Iterator<Item = &'static str> {
        ConnectionMetrics::NAMES.iter().chain(NetworkMetrics::NAMES).copied()
    }

    /// The values of the metrics, in the order of their [names](Metrics::names).
    pub fn values(&self) -> impl Iterator<Item = Value> + use<> {
        self.connections.values().chain(self.network.values())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Users ask by the name alone.
    #[test]
    fn the_sets_agree_on_what_a_name_means() {
        for (name, of, better) in DEFINED {
            assert_eq!(direction(name), *better, "{name}");
            assert_eq!(counts(name), Some(*of == "u64"), "{name}");
        }
        assert_eq!(counts("snoop.connections"), None);
        assert_eq!(direction("throughput_bps"), Better::Higher);
        assert_eq!(direction("lost_packets"), Better::Lower);
        assert_eq!(direction("notices"), Better::Depends);
    }
}
