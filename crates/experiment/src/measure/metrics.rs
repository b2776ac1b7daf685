//! Names, definitions and order of the metrics.

use lasthop_proto::application::Activity;
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
            #[derive(Clone, Debug, PartialEq, Serialize)]
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
        /// Goodput: payload delivered in order, in bits, divided by the time from the start of the transfer,
        /// or the end of the warm-up if later, until its last byte reached the destination, or the end of the
        /// run. For several connections, their total over the time from the first start to the last end.
        throughput_bps: f64 => Higher,
        /// Payload delivered in order divided by payload sent by the source, retransmissions included: 1 if
        /// nothing was retransmitted or lost. Data in flight at the end of the warm-up count as delivered
        /// only. Null if nothing was sent.
        goodput: Option<f64> => Higher,
        /// Time from the start of the transfer until its last byte reached the destination. Null if it did
        /// not. For several connections, the time of the slowest finite one.
        completion_time_s: Option<f64> => Lower,
        /// Whether the last byte of every finite transfer reached the destination.
        finished: bool => Higher,
        /// Whether the source, or a base station that relays for it, aborted or was reset. For several
        /// connections, whether any was.
        aborted: bool => Lower,
        /// Payload delivered in order to the destination's application.
        delivered_bytes: u64 => Higher,
        /// Segments of any kind sent by the source, retransmissions included.
        segments_sent: u64 => Depends,
        /// Segments retransmitted by the source, in whole or in part.
        retransmitted_segments: u64 => Lower,
        /// Bytes retransmitted by the source, including the headers of retransmitted segments.
        retransmitted_bytes: u64 => Lower,
        /// Retransmission timeouts of the source.
        timeouts: u64 => Lower,
        /// Losses that the source detected from acknowledgements.
        fast_retransmits: u64 => Lower,
        /// Tail loss probes of the source (RFC 8985 section 7).
        tail_loss_probes: u64 => Lower,
        /// Timeouts that the source found to be spurious and undid.
        spurious_timeouts: u64 => Lower,
        /// Congestion window reductions that the source undid, including those of spurious timeouts.
        undone_reductions: u64 => Depends,
        /// Acknowledgements with ECN-Echo that reached the source (RFC 3168), of which it answers one in each
        /// round trip.
        ecn_echoes: u64 => Depends,
        /// Time for which pacing delayed segments of the source that the windows allowed. For several
        /// connections, the sum.
        pacing_wait_s: f64 => Depends,
        /// Control messages of the scheme received by the source.
        notices: u64 => Depends,
        /// Acknowledgements and resets sent by the destination.
        acks_sent: u64 => Depends,
        /// Segments sent by base stations that split the connection, retransmissions included. Zero if none
        /// does, like all relay metrics.
        relay_segments_sent: u64 => Depends,
        /// Payload of these segments.
        relay_payload_bytes: u64 => Depends,
        /// Segments retransmitted by base stations, in whole or in part.
        relay_retransmitted_segments: u64 => Lower,
        /// Retransmission timeouts of base stations.
        relay_timeouts: u64 => Lower,
        /// Peak of the bytes buffered at a base station (received and not yet acknowledged by the next hop),
        /// since the start of the run. For several connections, the largest.
        relay_peak_bytes: u64 => Lower,
        /// Bytes buffered at base stations at the end of the run.
        relay_held_bytes: u64 => Lower,
        /// Payload acknowledged to the source that had not reached the destination at the end of the run.
        /// Positive only if a base station acknowledges on behalf of the destination.
        acknowledged_undelivered_bytes: u64 => Lower,
        /// Packets of both directions given up by a link after its last permitted attempt.
        link_discards: u64 => Lower,
        /// Packets of both directions that arrived corrupted over a link without ARQ, or were dropped above
        /// the MAC of a cell.
        lost_on_air: u64 => Lower,
        /// Packets of both directions dropped by a full queue.
        queue_drops: u64 => Lower,
        /// Packets of both directions dropped by a queue discipline to signal congestion.
        aqm_drops: u64 => Lower,
    }

    /// Metrics of the network.
    struct NetworkMetrics {
        /// Units sent over the air in both directions, retransmissions included; in a cell, data frames.
        link_attempts: u64 => Lower,
        /// Transmissions of units that were lost; in a cell, including collisions.
        link_failures: u64 => Lower,
        /// Bits sent over the air in both directions, after expansion and coding; without cells.
        link_bits: u64 => Lower,
        /// Packets marked by queue disciplines instead of a drop, including other traffic.
        ecn_marks: u64 => Depends,
        /// Collisions in cells.
        collisions: u64 => Lower,
        /// Time during which frames were on the air in cells.
        busy_time_s: f64 => Lower,
        /// Jain's fairness index of the throughputs of connections active after the warm-up: 1 if all are
        /// equal, 1/n if one of n has everything. Null if nothing was delivered.
        fairness: Option<f64> => Higher,
        /// Time for which radios sent, of both directions; without cells.
        air_time_s: f64 => Lower,
        /// The part of this time for which mobile hosts sent.
        uplink_air_time_s: f64 => Lower,
        /// Energy consumed by the radios of mobile hosts whose power is specified. Null without such radios.
        mobile_energy_j: Option<f64> => Lower,
        /// This energy divided by the payload bits that were delivered, of connections, applications and
        /// other traffic. Null if no power is specified or nothing was delivered.
        energy_per_bit_j: Option<f64> => Lower,
    }

    /// Metrics of a source of other traffic, from the end of the warm-up on.
    struct TrafficMetrics {
        /// Packets sent.
        sent_packets: u64 => Depends,
        /// Packets received.
        delivered_packets: u64 => Higher,
        /// Packets lost.
        lost_packets: u64 => Lower,
        /// Bits received, headers included, divided by the time from the start of the source, or the end of
        /// the warm-up if later, until it stopped and its last packet arrived, or the end of the run.
        throughput_bps: f64 => Higher,
        /// Mean one-way delay. Null if nothing arrived, like the other delays.
        mean_delay_s: Option<f64> => Lower,
        /// Median of the one-way delays of packets, to 0.4 % like the other quantiles.
        p50_delay_s: Option<f64> => Lower,
        /// The delay that 95 % of the packets do not exceed.
        p95_delay_s: Option<f64> => Lower,
        /// The delay that 99 % of the packets do not exceed.
        p99_delay_s: Option<f64> => Lower,
        /// Mean interarrival jitter (RFC 3550, section 6.4.1).
        jitter_s: Option<f64> => Lower,
        /// Packets of a call that arrived too late to be played. Zero without `voip`.
        late_packets: u64 => Lower,
        /// Mean length of a run of packets that were not played, divided by the mean for independent losses.
        /// Null if all were played, and without `voip`, like the following metrics.
        burst_ratio: Option<f64> => Depends,
        /// Mean delay from mouth to ear of the packets played. Null if none was.
        mouth_to_ear_s: Option<f64> => Lower,
        /// The rating factor R of the E-model (ITU-T G.107). Zero if packets were sent and none was played,
        /// null if nothing was lost either.
        r_factor: Option<f64> => Higher,
        /// The mean opinion score for this rating, from 1 to 4.5.
        mos: Option<f64> => Higher,
    }

    /// Metrics of the messages of an application, from the end of the warm-up on.
    struct ApplicationMetrics {
        /// Requests sent.
        requests: u64 => Depends,
        /// Responses received completely.
        responses: u64 => Higher,
        /// Mean time from handing a request to TCP until the last byte of its response was delivered. Null
        /// without responses.
        mean_response_time_s: Option<f64> => Lower,
        /// The median of these times. Null without responses. Quantiles are interpolated linearly between the
        /// two nearest values.
        p50_response_time_s: Option<f64> => Lower,
        /// The time that 95 % of them do not exceed. Null without responses.
        p95_response_time_s: Option<f64> => Lower,
        /// The time that 99 % of them do not exceed. Null without responses.
        p99_response_time_s: Option<f64> => Lower,
        /// The longest of these times. Null without responses.
        greatest_response_time_s: Option<f64> => Lower,
        /// Payload delivered in order to the server.
        request_bytes: u64 => Depends,
        /// Payload delivered in order to the client.
        response_bytes: u64 => Higher,
        /// Segments retransmitted by client and server, in whole or in part.
        retransmitted_segments: u64 => Lower,
        /// Retransmission timeouts of client and server.
        timeouts: u64 => Lower,
        /// Packets of its connections that were lost.
        lost_packets: u64 => Lower,
    }

    /// Metrics of an application that loads pages, from the end of the warm-up on.
    struct PageMetrics {
        /// Pages loaded.
        pages: u64 => Higher,
        /// Mean time from the opening of a page until the last byte of its last object was delivered. Null
        /// without pages.
        mean_page_time_s: Option<f64> => Lower,
        /// The median of these times. Null without pages.
        p50_page_time_s: Option<f64> => Lower,
        /// The time that 95 % of them do not exceed. Null without pages.
        p95_page_time_s: Option<f64> => Lower,
        /// The time that 99 % of them do not exceed. Null without pages.
        p99_page_time_s: Option<f64> => Lower,
        /// The longest of these times. Null without pages.
        greatest_page_time_s: Option<f64> => Lower,
    }

    /// Metrics of an application that plays a video, from the end of the warm-up on.
    struct VideoMetrics {
        /// Time from the start until playback began, warm-up included. Null if it did not begin.
        startup_delay_s: Option<f64> => Lower,
        /// Playing time shown.
        played_s: f64 => Higher,
        /// Stalls of the playback after it had begun.
        stalls: u64 => Lower,
        /// Total time of these stalls.
        stalled_s: f64 => Lower,
        /// Mean bitrate of the fetched segments, weighted by playing time. Null without segments.
        mean_bitrate_bps: Option<f64> => Higher,
        /// Changes of the bitrate from one segment to the next.
        bitrate_switches: u64 => Lower,
    }
}

/// Further metrics of an application, by its kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
