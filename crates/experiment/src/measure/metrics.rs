//! Names, definitions and order of the metrics.

use std::iter::Sum;

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

/// A count that may be lacking.
impl From<Option<u64>> for Value {
    fn from(value: Option<u64>) -> Value {
        value.map_or(Value::Real(None), Value::Count)
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

/// The unit of a metric, and what its values may be. Names of metrics end with their unit: `throughput_bps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    Rate,
    /// Bytes.
    Bytes,
    /// Bits.
    Bits,
    /// Seconds.
    Time,
    /// Joules.
    Energy,
    /// A number of things.
    Count,
    /// A truth value, whose mean is a share of runs.
    Truth,
    /// A share of a whole, from 0 to 1, shown as a percentage.
    Share,
    /// An index from 0 to 1.
    Index,
    /// A number without a unit.
    Number,
}

impl Unit {
    /// The units that end names, with their endings.
    const ENDINGS: [(&str, Unit); 5] = [
        ("_bps", Unit::Rate),
        ("_bytes", Unit::Bytes),
        ("_bits", Unit::Bits),
        ("_s", Unit::Time),
        ("_j", Unit::Energy),
    ];

    /// Its name: the symbol of a unit, or the kind of a number without one.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Rate => "bps",
            Unit::Bytes => "B",
            Unit::Bits => "bit",
            Unit::Time => "s",
            Unit::Energy => "J",
            Unit::Count => "count",
            Unit::Truth => "truth",
            Unit::Share => "share",
            Unit::Index => "index",
            Unit::Number => "number",
        }
    }

    /// The unit of the metric or counter called `name`; that of an unknown counter is by the ending of its name.
    pub fn of(name: &str) -> Unit {
        let defined = DEFINITIONS.iter().find(|metric| metric.name == name);
        defined.map_or_else(|| Unit::by_ending(name).unwrap_or(Unit::Count), |metric| metric.unit)
    }

    fn by_ending(name: &str) -> Option<Unit> {
        Unit::ENDINGS.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, unit)| unit)
    }
}

/// The definition of a metric, from which its documents, tables and axes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The set of metrics that it belongs to: `ConnectionMetrics`.
    pub set: &'static str,
    /// The name; it means the same in all sets that have it.
    pub name: &'static str,
    /// The unit.
    pub unit: Unit,
    /// Whether runs may lack it.
    pub optional: bool,
    /// Which values are better.
    pub better: Better,
    /// The definition in words.
    pub doc: &'static str,
}

/// Whether higher or lower values of the metric called `name` are better. Names mean the same in all sets of
/// metrics. [`Better::Depends`] for unknown names.
pub(super) fn direction(name: &str) -> Better {
    DEFINITIONS.iter().find(|metric| metric.name == name).map_or(Better::Depends, |metric| metric.better)
}

/// A type of metrics.
trait Measure: Into<Value> + Copy {
    /// Whether runs may lack it.
    const OPTIONAL: bool = false;

    /// That of several connections together, unless the metric has a rule of its own.
    fn total(each: impl Iterator<Item = Self>) -> Self;
}

impl Measure for u64 {
    fn total(each: impl Iterator<Item = u64>) -> u64 {
        each.sum()
    }
}

impl Measure for f64 {
    fn total(each: impl Iterator<Item = f64>) -> f64 {
        each.sum()
    }
}

/// Whether it is true of any.
impl Measure for bool {
    fn total(mut each: impl Iterator<Item = bool>) -> bool {
        each.any(|truth| truth)
    }
}

impl Measure for Option<u64> {
    const OPTIONAL: bool = true;

    fn total(each: impl Iterator<Item = Option<u64>>) -> Option<u64> {
        sum_of_known(each)
    }
}

/// The sum over those that have a value; `None` if there are some, and none has one.
pub(super) fn sum_of_known<T: Sum>(each: impl Iterator<Item = Option<T>>) -> Option<T> {
    let mut each = each.peekable();
    let (mut any, is_empty) = (false, each.peek().is_none());
    let sum = each.flatten().inspect(|_| any = true).sum();
    (any || is_empty).then_some(sum)
}

/// Without a rule of its own, a quantity that may be lacking has no total.
impl Measure for Option<f64> {
    const OPTIONAL: bool = true;

    fn total(_each: impl Iterator<Item = Option<f64>>) -> Option<f64> {
        None
    }
}

/// Defines structs of metrics, so that their names, types, units, directions and documents are stated only once.
macro_rules! metrics {
    ($($(#[doc = $of:literal])* struct $set:ident {
        $($(#[doc = $doc:literal])* $name:ident: $type:ty, $unit:ident => $better:ident,)*
    })*) => {
        /// All metrics, in the order of their sets.
        pub const DEFINITIONS: &[Definition] = &[$($(
            Definition {
                set: stringify!($set),
                name: stringify!($name),
                unit: Unit::$unit,
                optional: <$type as Measure>::OPTIONAL,
                better: Better::$better,
                doc: concat!($($doc),*).trim_ascii_start(),
            },
        )*)*];

        $(
            $(#[doc = $of])*
            #[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
            pub struct $set {
                $($(#[doc = $doc])* pub $name: $type,)*
            }

            impl $set {
                /// The names of the metrics, in order.
                pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

                /// The values of the metrics, in the order of their [names]($set::NAMES).
                pub fn values(&self) -> impl ExactSizeIterator<Item = Value> + use<> {
                    [$(Value::from(self.$name)),*].into_iter()
                }

                /// Totals over several parts: counts and times are summed, those that some parts lack over the others;
                /// booleans are or-ed. Other optional values have no total.
                pub fn total<'a>(each: impl Iterator<Item = &'a $set> + Clone) -> $set {
                    $set { $($name: Measure::total(each.clone().map(|each| each.$name)),)* }
                }
            }
        )*
    };
}

metrics! {
    /// Metrics of a connection, or of several together. Names include units; bytes of packets include
    /// headers. All counters start at the end of the warm-up. A counter that the stack of the source does not keep is null;
    /// of several connections, it is that of those that keep it.
    struct ConnectionMetrics {
        /// Payload delivered in order, divided by time: from the transfer's start, or the end of the warm-up
        /// if that is later, until its last byte reached the destination, or the run ended. For several
        /// connections: their total payload, divided by the time from the first start to the last end.
        throughput_bps: f64, Rate => Higher,
        /// Payload delivered in order, divided by payload that the source sent, retransmissions included: 1
        /// if nothing was retransmitted or lost. Payload in flight at the end of the warm-up counts as sent.
        /// Null if nothing was sent.
        goodput: Option<f64>, Share => Higher,
        /// Time from the transfer's start until its last byte reached the destination, including the warm-up.
        /// Null if it did not. For several connections: that of the slowest finite one; null if one did not
        /// finish.
        completion_time_s: Option<f64>, Time => Lower,
        /// Whether the last byte reached the destination. For several connections: whether all finite ones
        /// finished.
        finished: bool, Truth => Higher,
        /// Whether the source, or a base station that relays its connection, gave up or was reset. For
        /// several connections: whether any was.
        aborted: bool, Truth => Lower,
        /// Payload that reached the destination's application, in order.
        delivered_bytes: u64, Bytes => Higher,
        /// Segments of any kind that the source sent, retransmissions included; for QUIC, datagrams.
        segments_sent: u64, Count => Depends,
        /// Segments of the source with data that had been sent before, in whole or in part.
        retransmitted_segments: Option<u64>, Count => Lower,
        /// The bytes of retransmitted segments, headers included, except new payload.
        retransmitted_bytes: Option<u64>, Bytes => Lower,
        /// Packets that the source declared lost (RFC 9002 section 6): what QUIC counts in place of retransmissions. Null
        /// for TCP.
        declared_lost: Option<u64>, Count => Lower,
        /// Retransmission timeouts of the source.
        timeouts: Option<u64>, Count => Lower,
        /// Losses that the source detected from acknowledgements: duplicate ACKs or RACK.
        fast_retransmits: Option<u64>, Count => Lower,
        /// Tail loss probes of the source (RFC 8985 section 7). Zero without `tlp`.
        tail_loss_probes: Option<u64>, Count => Lower,
        /// `timeouts` that the source detected as spurious, by F-RTO, timestamps or DSACK, and undid. Zero
        /// without `undo`.
        spurious_timeouts: Option<u64>, Count => Lower,
        /// Reductions of the congestion window that the source undid, spurious timeouts included. Zero
        /// without `undo`.
        undone_reductions: Option<u64>, Count => Depends,
        /// ACKs that reported a mark to the source. With classic feedback (RFC 3168), the receiver sets ECN-Echo on every ACK
        /// until the source responds with CWR; with accurate feedback (RFC 9768), an ACK reports new marks. Zero without `ecn`.
        ecn_echoes: Option<u64>, Count => Depends,
        /// Packets that reached the destination with a mark (CE), retransmissions included. Zero without `ecn`.
        ecn_marked_packets: Option<u64>, Count => Depends,
        /// Mean of the round-trip times that the source measured, which include the delay of acknowledgements. For
        /// several connections: the mean of all samples. Null without samples.
        mean_rtt_s: Option<f64>, Time => Lower,
        /// Time for which pacing delayed segments of the source that the windows allowed. For several
        /// connections: the sum. Zero without `pacing`, BBR or Prague.
        pacing_wait_s: Option<f64>, Time => Depends,
        /// Control messages of the scheme that reached the source.
        notices: u64, Count => Depends,
        /// Times that the schemes' reactions at the ends of the connection, and at base stations that split it, changed what
        /// these do: a request of a reaction that changes the state of the sender or, for its timer, whether it expires; a loss
        /// that it classifies with an effect on the window, or that its threshold reveals early; a segment with its DSCP; an
        /// acknowledgement that it withholds, changes or, for a sender that counts duplicate ACKs, repeats. For
        /// the run: with those of applications. Zero without reactions.
        reactions: u64, Count => Depends,
        /// ACKs and resets that the destination sent; for QUIC, ACK frames.
        acks_sent: Option<u64>, Count => Depends,
        /// Segments of any kind that base stations sent for connections that they split, retransmissions
        /// included. All relay metrics are zero without split connections.
        relay_segments_sent: u64, Count => Depends,
        /// Payload in the segments of `relay_segments_sent`.
        relay_payload_bytes: u64, Bytes => Depends,
        /// Segments of `relay_segments_sent` with data that had been sent before, in whole or in part.
        relay_retransmitted_segments: u64, Count => Lower,
        /// Retransmission timeouts of base stations.
        relay_timeouts: u64, Count => Lower,
        /// Peak of the payload that base stations held: received on one part, and not acknowledged on the
        /// next. Includes the warm-up. For several connections: the largest peak.
        relay_peak_bytes: u64, Bytes => Lower,
        /// Payload that base stations held when the run ended.
        relay_held_bytes: u64, Bytes => Lower,
        /// Payload that was acknowledged to the source and had not reached the destination when the run
        /// ended. Zero unless a base station acknowledges on behalf of the destination.
        acknowledged_undelivered_bytes: u64, Bytes => Lower,
        /// Packets of both directions that a link discarded after its last permitted attempt, as its `black_hole`, or because its station
        /// was between access points.
        link_discards: u64, Count => Lower,
        /// Packets of both directions that arrived corrupted over a link without error recovery, or were
        /// dropped above the MAC of a cell.
        lost_on_air: u64, Count => Lower,
        /// Packets of both directions dropped at any full queue.
        queue_drops: u64, Count => Lower,
        /// Packets of both directions that the discipline of a queue dropped to signal congestion, before the
        /// queue was full.
        aqm_drops: u64, Count => Lower,
    }

    /// Metrics of the network.
    struct NetworkMetrics {
        /// Transmissions of units over the air, in both directions, retransmissions and other traffic
        /// included. In a cell: attempts to send a data frame, with its RTS, or with `[wifi]` an MPDU.
        link_attempts: u64, Count => Lower,
        /// Link attempts that failed; in a cell, collided attempts too.
        link_failures: u64, Count => Lower,
        /// Bits transmitted over the air, in both directions, after expansion and coding. Cells are not
        /// counted.
        link_bits: u64, Bits => Lower,
        /// Packets that queue disciplines marked instead of dropping them, in both directions, other traffic
        /// included.
        ecn_marks: u64, Count => Depends,
        /// Mean time for which packets waited in the L queue of DualPI2, that for scalable traffic, on all links and in
        /// both directions. Null if none did. Queues of cells are not counted.
        l_queue_wait_s: Option<f64>, Time => Lower,
        /// The same in the C queue of DualPI2, that for other traffic.
        c_queue_wait_s: Option<f64>, Time => Lower,
        /// Simultaneous starts of transmission in a cell; the sum over all cells. Zero without cells.
        collisions: u64, Count => Lower,
        /// Time for which at least one frame was on the air of a cell; the sum over all cells. A data frame
        /// counts when it begins. Zero without cells.
        busy_time_s: f64, Time => Lower,
        /// Jain's index of the throughputs x of the connections that were active after the warm-up: (Σx)² /
        /// (n Σx²). 1 if all are equal, 1/n if one of n has everything. Null if nothing was delivered.
        fairness: Option<f64>, Index => Higher,
        /// Transmission time of all radios, in both directions, retransmissions and coding included. Cells
        /// are not counted: they have `busy_time_s`.
        air_time_s: f64, Time => Lower,
        /// Transmission time of mobile hosts.
        uplink_air_time_s: f64, Time => Lower,
        /// Energy consumed by the radios of mobile hosts, from the end of the warm-up until the run ended.
        /// Null unless their power is stated.
        mobile_energy_j: Option<f64>, Energy => Lower,
        /// `mobile_energy_j` divided by the payload bits delivered, of connections, applications and other
        /// traffic. Null if nothing was delivered.
        energy_per_bit_j: Option<f64>, Energy => Lower,
    }

    /// Metrics of a source of other traffic, from the end of the warm-up on.
    struct TrafficMetrics {
        /// Packets sent.
        sent_packets: u64, Count => Depends,
        /// Packets delivered.
        delivered_packets: u64, Count => Higher,
        /// Packets lost anywhere, and neither recovered by `packet-fec` nor sent again by `sidekick`.
        lost_packets: u64, Count => Lower,
        /// Bits delivered, headers included, divided by time: from the source's start, or the end of the
        /// warm-up if that is later, until the source had stopped and its last packet arrived, or the run
        /// ended.
        throughput_bps: f64, Rate => Higher,
        /// Mean time from sending to arrival. Null, like the other delays, if nothing arrived.
        mean_delay_s: Option<f64>, Time => Lower,
        /// The median of these times. Quantiles are the nearest rank, exact to 0.4 %.
        p50_delay_s: Option<f64>, Time => Lower,
        /// The time that 95 % of the packets do not exceed.
        p95_delay_s: Option<f64>, Time => Lower,
        /// The time that 99 % of the packets do not exceed.
        p99_delay_s: Option<f64>, Time => Lower,
        /// Interarrival jitter: the difference between the delays of packets that follow each other, smoothed
        /// as in RFC 3550, section 6.4.1; the mean over all packets.
        jitter_s: Option<f64>, Time => Lower,
        /// Packets of a call that arrived too late to be played. Zero of other sources.
        late_packets: u64, Count => Lower,
        /// Mean length of a run of packets that were not played, divided by that of independent losses at the
        /// same rate. Null without losses. This and the following metrics are null for other sources.
        burst_ratio: Option<f64>, Number => Depends,
        /// Mean delay from the speaker's mouth to the listener's ear, over the packets played. Null if none
        /// was.
        mouth_to_ear_s: Option<f64>, Time => Lower,
        /// The rating R of the call: 93.2 at best, satisfying above 80, unacceptable below 50. The rating
        /// factor R of the E-model (ITU-T G.107).
        r_factor: Option<f64>, Number => Higher,
        /// The mean opinion score, from 1 to 4.5.
        mos: Option<f64>, Number => Higher,
    }

    /// Metrics of the messages of an application, from the end of the warm-up on.
    struct ApplicationMetrics {
        /// Requests made by the client.
        requests: u64, Count => Depends,
        /// Complete responses received by the client.
        responses: u64, Count => Higher,
        /// Mean time from when the client handed a request to its transport until it had the last byte of the response;
        /// the first includes the handshake. Null without responses.
        mean_response_time_s: Option<f64>, Time => Lower,
        /// The median of these times; quantiles are interpolated between the two nearest values, as in NumPy.
        /// Null without responses.
        p50_response_time_s: Option<f64>, Time => Lower,
        /// The time that 95 % of them do not exceed. Null if there are none.
        p95_response_time_s: Option<f64>, Time => Lower,
        /// The time that 99 % of them do not exceed. Null if there are none.
        p99_response_time_s: Option<f64>, Time => Lower,
        /// The longest of these times. Null if there are none.
        greatest_response_time_s: Option<f64>, Time => Lower,
        /// Payload delivered to the server, in order, with the messages of TLS over TCP; over QUIC, in the order of each
        /// stream, and without those of its handshake.
        request_bytes: u64, Bytes => Depends,
        /// Payload delivered to the client, likewise.
        response_bytes: u64, Bytes => Higher,
        /// Segments of client and server with data that had been sent before, in whole or in part. Null for QUIC.
        retransmitted_segments: Option<u64>, Count => Lower,
        /// Packets that client and server declared lost (RFC 9002 section 6), also of ACKs alone: what QUIC counts in place of
        /// retransmissions. Null for TCP.
        declared_lost: Option<u64>, Count => Lower,
        /// Retransmission timeouts of client and server. Null for QUIC.
        timeouts: Option<u64>, Count => Lower,
        /// Packets of client and server lost anywhere, including ACKs and control messages.
        lost_packets: u64, Count => Lower,
    }

    /// Metrics of an application that loads pages, from the end of the warm-up on.
    struct PageMetrics {
        /// Pages loaded.
        pages: u64, Count => Higher,
        /// Mean time from the opening of a page until the last byte of its last object arrived. Null if none
        /// was loaded.
        mean_page_time_s: Option<f64>, Time => Lower,
        /// The median of these times. Null if there are none.
        p50_page_time_s: Option<f64>, Time => Lower,
        /// The time that 95 % of them do not exceed. Null if there are none.
        p95_page_time_s: Option<f64>, Time => Lower,
        /// The time that 99 % of them do not exceed. Null if there are none.
        p99_page_time_s: Option<f64>, Time => Lower,
        /// The longest of these times. Null if there are none.
        greatest_page_time_s: Option<f64>, Time => Lower,
    }

    /// Metrics of an application that plays a video, from the end of the warm-up on.
    struct VideoMetrics {
        /// Time from the start until playback began, warm-up included. Null if it did not begin.
        startup_delay_s: Option<f64>, Time => Lower,
        /// Playing time shown.
        played_s: f64, Time => Higher,
        /// Stalls: times that the buffer ran empty after playback had begun.
        stalls: u64, Count => Lower,
        /// Total length of the stalls.
        stalled_s: f64, Time => Lower,
        /// Mean bitrate of the fetched segments, by their playing time. Null without segments.
        mean_bitrate_bps: Option<f64>, Rate => Higher,
        /// Changes of the bitrate from one segment to the next.
        bitrate_switches: u64, Count => Lower,
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
        for metric in DEFINITIONS {
            assert_eq!(direction(metric.name), metric.better, "{}", metric.name);
            assert_eq!(Unit::of(metric.name), metric.unit, "{}", metric.name);
        }
        assert_eq!(direction("throughput_bps"), Better::Higher);
        assert_eq!(direction("lost_packets"), Better::Lower);
        assert_eq!(direction("notices"), Better::Depends);
        assert_eq!(Unit::of("held_bytes"), Unit::Bytes);
        assert_eq!(Unit::of("quenches_sent"), Unit::Count);
    }

    /// A name ends with the unit of its metric, and only then.
    #[test]
    fn names_include_units() {
        for metric in DEFINITIONS {
            let by_ending = Unit::by_ending(metric.name);
            let stated = Unit::ENDINGS.iter().any(|(_, unit)| *unit == metric.unit);
            assert_eq!(by_ending, stated.then_some(metric.unit), "{}", metric.name);
        }
    }

    #[test]
    fn every_metric_is_defined_in_words() {
        for metric in DEFINITIONS {
            assert!(
                metric.doc.ends_with('.') && !metric.doc.contains("  "),
                "{}: {}",
                metric.name,
                metric.doc
            );
        }
    }
}
