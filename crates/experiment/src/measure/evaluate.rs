//! Metrics computed from counters.

use std::iter;
use std::ops::{Add, Range};

use lasthop_base::{Bytes, Duration, Time};
use lasthop_link::queue::Waits;
use lasthop_proto::traffic::voip::{Impairments, PlayoutStats, Voip, mos};
use lasthop_proto::traffic::{Config, HEADERS};
use lasthop_sim::LinkStats;

use super::agents::AgentCounters;
use super::applications::{ApplicationCounters, ApplicationRun};
use super::counters::{BssCounters, Counters, DropCounters, TrafficCounters};
use super::energy::RadioUse;
use super::metrics::{ConnectionMetrics, Metrics, NetworkMetrics, TrafficMetrics, sum_of_known};

/// The counters at the end of a run, and at the end of the warm-up.
pub(crate) struct Measured<'a> {
    pub(crate) end: &'a Counters,
    pub(crate) warmup: &'a Counters,
}

impl Measured<'_> {
    /// Metrics of connection number `index`, a transfer of `size` scheduled at `start`.
    pub(crate) fn connection(&self, index: usize, size: Option<Bytes>, start: Time) -> MeasuredConnection {
        let end = &self.end.connections[index];
        let before = self.warmup.connections.get(index).copied().unwrap_or_default();
        let (total, received) = (end.sender.counters, end.receiver.counters);
        let (sender, receiver) =
            (total.since(&before.sender.counters), received.since(&before.receiver.counters));
        let relayed = end.relayed.since(&before.relayed);
        // Data in flight at the end of the warm-up are delivered afterwards, and therefore count as sent
        // afterwards.
        let payload_sent = sender.payload_sent.map(|sent| sent + before.under_way(size));
        let acknowledged = end.sender.acknowledged.unwrap_or_default();
        let undelivered = acknowledged.0.saturating_sub(received.delivered.0);
        let drops = self.drops(index);
        let finished = size == Some(received.delivered);
        let start = total.started.unwrap_or(start);
        let end = if finished { received.last_delivery } else { self.end.at };
        let span = self.span(start, end);
        let rtts = (sender.rtt_samples.unwrap_or(0), sender.rtt_sum.unwrap_or_default());
        let metrics = ConnectionMetrics {
            throughput_bps: rate(receiver.delivered, span.length()),
            goodput: payload_sent.and_then(|sent| share(receiver.delivered, sent)),
            completion_time_s: finished.then(|| end.since(start).as_secs_f64()),
            finished,
            aborted: total.aborted.or(received.aborted).is_some() || relayed.aborted,
            delivered_bytes: receiver.delivered.0,
            segments_sent: sender.packets_sent,
            retransmitted_segments: sender.retransmitted_packets,
            retransmitted_bytes: sender.retransmitted_bytes.map(|bytes| bytes.0),
            declared_lost: sender.declared_lost,
            timeouts: sender.timeouts,
            fast_retransmits: sender.detected_losses,
            tail_loss_probes: sender.probes,
            spurious_timeouts: sender.spurious_timeouts,
            undone_reductions: sender.undone_reductions,
            ecn_echoes: sender.echoes,
            ecn_marked_packets: receiver.marks,
            mean_rtt_s: mean_rtt(rtts),
            pacing_wait_s: sender.pacing_wait.map(|wait| wait.as_secs_f64()),
            notices: sender.notices,
            reactions: sender.reactions + receiver.reactions + relayed.reactions,
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
            aqm_drops: drops.active_queue,
        };
        MeasuredConnection { metrics, span, ends: size.is_some(), payload_sent, rtts }
    }

    /// Metrics of traffic source number `index` with these parameters.
    pub(crate) fn traffic(&self, index: usize, config: &Config, voip: Option<&Voip>) -> TrafficMetrics {
        let end = &self.end.traffic[index];
        let since = self.warmup.traffic.get(index).map(|before| end.since(before));
        let TrafficCounters { source, sink, delays, playout } = since.as_ref().unwrap_or(end);
        let drops = self.drops(self.end.connections.len() + index);
        // The loss may have come before the warm-up ended.
        let lost_packets = drops.lost().saturating_sub(drops.repaired);
        let mean = |total: Duration| (sink.packets > 0).then(|| total.as_secs_f64() / sink.packets as f64);
        let quantile = |q| delays.quantile(q).map(|delay| delay.as_secs_f64());
        let stop = config.stop.max(sink.last_arrival).min(self.end.at);
        let call = voip.and_then(|voip| Call::of(voip, playout, lost_packets));
        TrafficMetrics {
            sent_packets: source.packets,
            delivered_packets: sink.packets,
            lost_packets,
            throughput_bps: rate(sink.bytes, self.span(config.start, stop).length()),
            mean_delay_s: mean(sink.total_delay),
            p50_delay_s: quantile(0.5),
            p95_delay_s: quantile(0.95),
            p99_delay_s: quantile(0.99),
            jitter_s: mean(sink.total_jitter),
            late_packets: playout.late,
            burst_ratio: playout.burst_ratio(),
            mouth_to_ear_s: call.and_then(|call| call.mouth_to_ear).map(|delay| delay.as_secs_f64()),
            r_factor: call.map(|call| call.rating),
            mos: call.map(|call| mos(call.rating)),
        }
    }

    /// What was measured of application number `index`, whose connections are these flows.
    pub(crate) fn application(&self, index: usize, flows: Range<usize>) -> ApplicationRun {
        let none = ApplicationCounters::default();
        let before = self.warmup.applications.get(index).unwrap_or(&none);
        let lost = flows.map(|flow| self.drops(flow).lost()).sum();
        self.end.applications[index].since(before, lost)
    }

    /// The counters of each agent.
    pub(crate) fn agents(&self) -> Vec<AgentCounters> {
        let agents = self.end.agents.iter().zip(&self.warmup.agents);
        agents.map(|(end, before)| end.since(before)).collect()
    }

    /// Metrics of all connections together.
    pub(crate) fn total(&self, connections: &[MeasuredConnection], radios: RadioUse) -> Metrics {
        let metrics = || connections.iter().map(|each| &each.metrics);
        let totals = ConnectionMetrics::total(metrics());
        let with_an_end = || connections.iter().filter(|each| each.ends).map(|each| &each.metrics);
        let delivered = Bytes(totals.delivered_bytes);
        // Of none, if one does not know what it sent.
        let sent = connections.iter().map(|each| each.payload_sent).sum::<Option<Bytes>>();
        let span = connections.iter().map(|each| each.span).reduce(Interval::and).unwrap_or_default();
        let times = with_an_end().map(|each| each.completion_time_s);
        let there = connections.iter().filter(|each| !each.span.length().is_zero());
        Metrics {
            connections: ConnectionMetrics {
                throughput_bps: rate(delivered, span.length()),
                goodput: sent.and_then(|sent| share(delivered, sent)),
                completion_time_s: times.reduce(|a, b| Some(a?.max(b?))).flatten(),
                finished: with_an_end().count() > 0 && with_an_end().all(|each| each.finished),
                relay_peak_bytes: metrics().map(|each| each.relay_peak_bytes).max().unwrap_or(0),
                pacing_wait_s: sum_of_known(metrics().map(|each| each.pacing_wait_s)),
                reactions: totals.reactions + self.reactions_of_applications(),
                mean_rtt_s: mean_rtt((
                    connections.iter().map(|each| each.rtts.0).sum(),
                    connections.iter().map(|each| each.rtts.1).fold(Duration::ZERO, Add::add),
                )),
                ..totals
            },
            network: NetworkMetrics {
                link_attempts: self.on_air(|radio| radio.attempts) + self.in_bsses(|bss| bss.attempts),
                link_failures: self.on_air(|radio| radio.failed_attempts)
                    + self.in_bsses(|bss| bss.failed_attempts),
                link_bits: self.on_air(|radio| radio.bits_on_air),
                ecn_marks: self.end.marked - self.warmup.marked
                    + self.on_air(|radio| radio.marked)
                    + self.in_bsses(|bss| bss.marked),
                l_queue_wait_s: self.waits(0).mean_s(),
                c_queue_wait_s: self.waits(1).mean_s(),
                collisions: self.in_bsses(|bss| bss.collisions),
                busy_time_s: Duration::from_nanos(self.in_bsses(|bss| bss.busy.as_nanos())).as_secs_f64(),
                fairness: jain(there.map(|each| each.metrics.throughput_bps)),
                air_time_s: self.air_times().fold(Duration::ZERO, Add::add).as_secs_f64(),
                uplink_air_time_s: radios.uplink_air_time.as_secs_f64(),
                mobile_energy_j: radios.mobile_energy_j,
                energy_per_bit_j: radios
                    .mobile_energy_j
                    .filter(|_| radios.delivered != Bytes::ZERO)
                    .map(|energy| energy / radios.delivered.bits() as f64),
            },
        }
    }

    fn reactions_of_applications(&self) -> u64 {
        let total =
            |counts: &Counters| counts.applications.iter().map(ApplicationCounters::reactions).sum::<u64>();
        total(self.end) - total(self.warmup)
    }

    /// Payload of the datagrams that were delivered.
    pub(crate) fn delivered_by_datagrams(&self) -> Bytes {
        let payload = |counts: &Counters| {
            counts.traffic.iter().map(|each| each.sink.bytes - HEADERS * each.sink.packets).sum::<Bytes>()
        };
        payload(self.end) - payload(self.warmup)
    }

    /// The time from the end of the warm-up until the end.
    pub(super) fn length(&self) -> Duration {
        self.end.at.since(self.warmup.at)
    }

    /// The air time of each direction of a radio.
    pub(super) fn air_times(&self) -> impl Iterator<Item = Duration> {
        let before =
            self.warmup.radios.iter().map(|radio| radio.air_time).chain(iter::repeat(Duration::ZERO));
        self.end.radios.iter().zip(before).map(|(end, before)| end.air_time - before)
    }

    /// Packets lost of a flow; connections come first.
    fn drops(&self, flow: usize) -> DropCounters {
        let before = self.warmup.drops.flows.get(flow).copied().unwrap_or_default();
        self.end.drops.flows[flow].since(&before)
    }

    fn on_air(&self, count: fn(&LinkStats) -> u64) -> u64 {
        let total = |counts: &Counters| counts.radios.iter().map(count).sum::<u64>();
        total(self.end) - total(self.warmup)
    }

    /// The waits in the queue of DualPI2 for scalable traffic, 0, or in the other one, 1, of all links.
    fn waits(&self, queue: usize) -> Waits {
        let of_radios = |counts: &Counters| {
            counts.radios.iter().map(|radio| radio.waits[queue]).fold(counts.waits[queue], Waits::and)
        };
        of_radios(self.end).since(of_radios(self.warmup))
    }

    fn in_bsses(&self, count: fn(&BssCounters) -> u64) -> u64 {
        let total = |counts: &Counters| counts.bsses.iter().map(count).sum::<u64>();
        total(self.end) - total(self.warmup)
    }

    /// The time from `start`, or the end of the warm-up if later, until `end`; empty if `end` is earlier.
    fn span(&self, start: Time, end: Time) -> Interval {
        let start = start.max(self.warmup.at);
        Interval { start, end: end.max(start) }
    }
}

/// The metrics of a connection, with what their sum over several connections requires.
pub(crate) struct MeasuredConnection {
    pub(crate) metrics: ConnectionMetrics,
    span: Interval,
    /// Whether its transfer is finite.
    ends: bool,
    /// Payload sent, including data in flight at the end of the warm-up; `None` if its sender does not count it.
    payload_sent: Option<Bytes>,
    /// The number of round-trip times measured, and their sum.
    rtts: (u64, Duration),
}

/// The mean of a number of round-trip times with this sum.
fn mean_rtt((samples, sum): (u64, Duration)) -> Option<f64> {
    (samples > 0).then(|| sum.as_secs_f64() / samples as f64)
}

/// The quality of one direction of a call.
#[derive(Clone, Copy)]
struct Call {
    rating: f64,
    /// The mean; `None` if nothing was played.
    mouth_to_ear: Option<Duration>,
}

impl Call {
    /// `None` if nothing was played or lost.
    fn of(voip: &Voip, playout: &PlayoutStats, lost_packets: u64) -> Option<Call> {
        let PlayoutStats { played, late, total_delay, .. } = *playout;
        let unplayed = late + lost_packets;
        if played == 0 {
            return (unplayed > 0).then_some(Call { rating: 0.0, mouth_to_ear: None });
        }
        let delay = voip.mouth_to_ear(Duration::from_nanos(total_delay.as_nanos() / played));
        let impairments = Impairments {
            codec: voip.codec,
            delay,
            loss: unplayed as f64 / (played + unplayed) as f64,
            burst_ratio: playout.burst_ratio().unwrap_or(1.0),
        };
        Some(Call { rating: impairments.rating(), mouth_to_ear: Some(delay) })
    }
}

/// A measured time interval.
#[derive(Clone, Copy, Default)]
struct Interval {
    start: Time,
    end: Time,
}

impl Interval {
    fn length(self) -> Duration {
        self.end.since(self.start)
    }

    /// From the earlier start to the later end.
    fn and(self, other: Interval) -> Interval {
        Interval { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// Jain's fairness index (DEC-TR-301, section 2): (Σx)² / (n Σx²).
fn jain(shares: impl Iterator<Item = f64> + Clone) -> Option<f64> {
    let n = shares.clone().count() as f64;
    let squares: f64 = shares.clone().map(|x| x * x).sum();
    let sum: f64 = shares.sum();
    (squares > 0.0).then(|| sum * sum / (n * squares))
}

/// Rate in bits per second.
fn rate(size: Bytes, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { size.bits() as f64 / time.as_secs_f64() }
}

fn share(part: Bytes, whole: Bytes) -> Option<f64> {
    (whole != Bytes::ZERO).then(|| part.0 as f64 / whole.0 as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For wired and wireless links, since the end of the warm-up.
    #[test]
    fn marks_of_all_links_are_summed() {
        let counts = |wired, radios: [u64; 2]| {
            let radios = radios.map(|marked| LinkStats { marked, ..LinkStats::default() });
            Counters { marked: wired, radios: radios.to_vec(), ..Counters::default() }
        };
        let (warmup, end) = (counts(2, [10, 0]), counts(7, [13, 400]));
        let measured = Measured { warmup: &warmup, end: &end };
        assert_eq!(measured.total(&[], RadioUse::default()).network.ecn_marks, 5 + 3 + 400);
    }

    #[test]
    fn jains_index_is_one_for_equals_and_a_share_for_one_who_has_all() {
        assert_eq!(jain([3.0, 3.0, 3.0].into_iter()), Some(1.0));
        assert_eq!(jain([0.0, 5.0, 0.0, 0.0].into_iter()), Some(0.25));
        // By hand: 9² / (3 × 35).
        assert_eq!(jain([1.0, 3.0, 5.0].into_iter()), Some(81.0 / 105.0));
        assert_eq!(jain([0.0, 0.0].into_iter()), None);
    }
}
