//! BBR, version 1 (Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00), as in Linux. Pacing
//! rate and window follow a model of the path (bottleneck bandwidth and minimum round-trip time), not losses.

use alloc::boxed::Box;

use lasthop_base::{Duration, Stream, Streams, Time};

use super::{
    AckInfo, Chosen, Control, Controller, Demand, Limit, Loss, RateSample, RttInfo, SegmentWindow, Sending,
    Window,
};
use crate::tcp::action::Action;
use crate::tcp::filter::Maximum;
use crate::tcp::settings::{IdleRestart, Settings};

pub(super) const CONTROL: Control = Control {
    limit: Limit::Model,
    needs_samples: true,
    needs_pacing: true,
    ignores: |action| match action {
        Action::Judge => Some("BBR does not reduce its window for a loss"),
        _ => None,
    },
    linux: Some("bbr"),
    cost: Some("may take bandwidth from other flows in the same queue"),
    ..Control::new("bbr", "BBR", "BBR, version 1, as in Linux", |settings, flow| {
        Chosen::Bbr(Box::new(Bbr::new(settings, u64::from(flow.0))))
    })
};

/// Startup gain: 2 / ln 2, the smallest gain that doubles the rate each round.
const HIGH_GAIN: f64 = 2885.0 / 1000.0;
/// Drain gain: drains the queue built by Startup within one round.
const DRAIN_GAIN: f64 = 1000.0 / 2885.0;
/// Window gain: two bandwidth-delay products, for delayed and aggregated acknowledgements.
const CWND_GAIN: f64 = 2.0;
/// Pacing gains of the ProbeBW phases.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// Window of the bandwidth max filter, in rounds.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Window of the minimum round-trip time filter.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);
/// Minimum time at [`LEAST_WINDOW`] in ProbeRTT.
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// Minimum window in segments.
const LEAST_WINDOW: u32 = 4;
/// Startup ends when the bandwidth grows by less than this factor for [`FULL_ROUNDS`] rounds.
const FULL_GROWTH: f64 = 1.25;
const FULL_ROUNDS: u32 = 3;
/// Pacing rate relative to the bandwidth estimate, so that queues drain.
const PACING_MARGIN: f64 = 0.99;
/// Rounds per half of the ACK aggregation filter, and the maximum aggregation in time.
const AGGREGATION_ROUNDS: u32 = 5;
const MOST_AGGREGATION: Duration = Duration::from_millis(100);
/// An aggregation epoch ends after this many segments.
const AGGREGATION_RESET: u32 = 1 << 20;
/// Below this rate, in bytes per second, the stack sends single segments.
const SINGLE_SEGMENT_RATE: f64 = 1_200_000.0 / 8.0;
/// Maximum burst of the stack in bytes.
const MOST_AT_ONCE: f64 = 65_535.0 - 320.0;

/// BBR version 1.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Bbr {
    window: SegmentWindow,
    initial_window: u32,
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// Pacing rate in bytes per second, and the burst size of the stack at that rate in segments.
    pacing_rate: Option<f64>,
    burst: u32,
    /// Bandwidth max filter over rounds, in bytes per second.
    bandwidth: Maximum<f64>,
    rounds: u64,
    /// Value of `delivered` at which the current round ends.
    round_ends: u64,
    round_started: bool,
    min_rtt: Option<Duration>,
    min_rtt_at: Time,
    /// Bandwidth estimate of Startup, and the number of rounds without growth.
    full_bandwidth: f64,
    full_rounds: u32,
    full: bool,
    cycle: usize,
    cycle_began: Time,
    /// End of ProbeRTT, and whether a round has passed in it.
    probe_rtt_ends: Option<Time>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    /// Window before recovery or ProbeRTT.
    prior_cwnd: u32,
    trouble: Trouble,
    packet_conservation: bool,
    aggregation: Aggregation,
    policer: Policer,
    random: Stream,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Recovery state of the sender at the last acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Trouble {
    None,
    Recovery,
    Loss,
}

/// ACK aggregation: segments acknowledged beyond what the bandwidth estimate explains.
#[derive(Clone, Copy, Debug, Default)]
struct Aggregation {
    extra: [u32; 2],
    half: usize,
    rounds: u32,
    epoch_began: Time,
    acked: u32,
}

/// Detection of token-bucket policers (Linux: long-term bandwidth).
#[derive(Clone, Copy, Debug, Default)]
struct Policer {
    sampling: bool,
    /// The policed bandwidth, in use or tentative.
    bandwidth: Option<f64>,
    in_use: bool,
    rounds: u32,
    began: Time,
    delivered: u64,
    lost: u64,
    lost_so_far: u64,
}

impl Policer {
    /// Minimum rounds of a sampling interval, and maximum rounds for which its result is used.
    const INTERVAL_ROUNDS: u32 = 4;
    const USE_ROUNDS: u32 = 48;
    /// Loss rate that suggests a policer: 50 / 256.
    const LOSS_SHARE: f64 = 50.0 / 256.0;
    /// Two intervals agree if they differ by less than this fraction, or by less than this many bytes per
    /// second.
    const AGREEMENT: f64 = 1.0 / 8.0;
    const AGREEMENT_RATE: f64 = 500.0;

    fn restart_interval(&mut self, now: Time, delivered: u64) {
        (self.began, self.delivered, self.lost, self.rounds) = (now, delivered, self.lost_so_far, 0);
    }

    fn reset(&mut self, now: Time, delivered: u64) {
        *self = Policer { lost_so_far: self.lost_so_far, ..Policer::default() };
        self.restart_interval(now, delivered);
    }

    /// Ends an interval with bandwidth `found`; returns whether two intervals agree.
    fn finish_interval(&mut self, now: Time, delivered: u64, found: f64) -> bool {
        if let Some(before) = self.bandwidth {
            let difference = (found - before).abs();
            if difference <= Policer::AGREEMENT * before || difference <= Policer::AGREEMENT_RATE {
                self.bandwidth = Some((found + before) / 2.0);
                (self.in_use, self.rounds) = (true, 0);
                return true;
            }
        }
        self.bandwidth = Some(found);
        self.restart_interval(now, delivered);
        false
    }
}

impl Bbr {
    /// A controller for a connection with these settings. `flow` selects the initial phase of ProbeBW.
    pub(super) fn new(settings: &Settings, flow: u64) -> Bbr {
        Bbr {
            window: SegmentWindow::new(settings),
            initial_window: settings.initial_window.bytes(settings.mss()) / settings.mss(),
            mode: Mode::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: None,
            burst: 1,
            bandwidth: Maximum::new(0, 0.0),
            rounds: 0,
            round_ends: 0,
            round_started: false,
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            full_bandwidth: 0.0,
            full_rounds: 0,
            full: false,
            cycle: 0,
            cycle_began: Time::ZERO,
            probe_rtt_ends: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            prior_cwnd: 0,
            trouble: Trouble::None,
            packet_conservation: false,
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            random: Streams::new(flow, 0).stream("bbr"),
        }
    }

    /// The bandwidth estimate in use, in bytes per second.
    fn bandwidth(&self) -> f64 {
        self.policer.bandwidth.filter(|_| self.policer.in_use).unwrap_or(self.bandwidth.get())
    }

    /// Burst size of the stack at a pacing rate, in segments.
    fn burst_at(&self, rate: f64) -> u32 {
        let least = if rate < SINGLE_SEGMENT_RATE { 1 } else { 2 };
        let bytes = (rate / 1024.0).min(MOST_AT_ONCE);
        ((bytes / self.window.mss()) as u32).max(least).min(127)
    }

    fn pace_at(&mut self, rate: f64) {
        self.pacing_rate = Some(rate);
        self.burst = self.burst_at(rate);
    }

    /// The bandwidth-delay product times `gain`, in segments.
    fn bdp(&self, bandwidth: f64, gain: f64) -> u32 {
        let Some(min_rtt) = self.min_rtt else { return self.initial_window };
        let segments = bandwidth * min_rtt.as_secs_f64() * gain / self.window.mss();
        let whole = segments as u32;
        whole.saturating_add(u32::from(f64::from(whole) < segments))
    }

    /// Adds room for bursts at sender and receiver, and rounds up to an even number for delayed ACKs.
    fn with_room(&self, cwnd: u32) -> u32 {
        let cwnd = (cwnd + 3 * self.burst).next_multiple_of(2);
        let probes = self.mode == Mode::ProbeBw && self.cycle == 0;
        if probes { cwnd + 2 } else { cwnd }
    }

    fn inflight(&self, gain: f64) -> u32 {
        self.with_room(self.bdp(self.bandwidth.get(), gain))
    }

    fn count(&self, bytes: u64) -> u32 {
        (bytes / self.window.mss() as u64) as u32
    }

    // ---- the model ------------------------------------------------------------------------------------

    fn update_bandwidth(&mut self, sample: &RateSample) {
        self.round_started = false;
        let Some(rate) = sample.delivery_rate else { return };
        if sample.prior_delivered >= self.round_ends {
            self.round_ends = sample.delivered;
            self.rounds += 1;
            self.round_started = true;
            self.packet_conservation = false;
        }
        self.look_for_policer(
            sample.now,
            sample.delivered,
            sample.newly_lost > 0,
            sample.application_limited,
        );
        if !sample.application_limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(BANDWIDTH_ROUNDS, self.rounds, rate);
        }
    }

    #[inline(always)]
    fn look_for_policer(&mut self, now: Time, delivered: u64, lost: bool, application_limited: bool) {
        let policer = &mut self.policer;
        if policer.in_use {
            if self.mode == Mode::ProbeBw && self.round_started {
                policer.rounds += 1;
                if policer.rounds >= Policer::USE_ROUNDS {
                    policer.reset(now, delivered);
                    self.enter_probe_bw(now);
                }
            }
            return;
        }
        if !policer.sampling {
            if !lost {
                return;
            }
            policer.restart_interval(now, delivered);
            policer.sampling = true;
        }
        if application_limited {
            return policer.reset(now, delivered);
        }
        policer.rounds += u32::from(self.round_started);
        if policer.rounds < Policer::INTERVAL_ROUNDS {
            return;
        }
        if policer.rounds > 4 * Policer::INTERVAL_ROUNDS {
            return policer.reset(now, delivered);
        }
        if !lost {
            return;
        }
        let (lost_bytes, bytes) = (policer.lost_so_far - policer.lost, delivered - policer.delivered);
        let interval = now.since(policer.began);
        let few = bytes == 0 || (lost_bytes as f64) < Policer::LOSS_SHARE * bytes as f64;
        if few || interval < Duration::from_millis(1) {
            return;
        }
        if policer.finish_interval(now, delivered, bytes as f64 / interval.as_secs_f64()) {
            self.pacing_gain = 1.0;
        }
    }

    fn update_aggregation(&mut self, sample: &RateSample, bandwidth: f64, acked: u32) {
        if acked == 0 || sample.delivery_rate.is_none() {
            return;
        }
        let mss = self.window.mss();
        let aggregation = &mut self.aggregation;
        if self.round_started {
            aggregation.rounds += 1;
            if aggregation.rounds >= AGGREGATION_ROUNDS {
                aggregation.rounds = 0;
                aggregation.half ^= 1;
                aggregation.extra[aggregation.half] = 0;
            }
        }
        let elapsed = sample.now.since(aggregation.epoch_began).as_secs_f64();
        let mut expected = (bandwidth * elapsed / mss) as u32;
        if aggregation.acked <= expected || aggregation.acked + acked >= AGGREGATION_RESET {
            (aggregation.acked, aggregation.epoch_began, expected) = (0, sample.now, 0);
        }
        aggregation.acked += acked;
        let (extra, most) = (aggregation.acked - expected, &mut aggregation.extra[aggregation.half]);
        if extra > *most {
            *most = extra.min(self.window.cwnd()).max(*most);
        }
    }

    fn update_cycle(&mut self, sample: &RateSample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let full_length = self.min_rtt.is_some_and(|rtt| sample.now.since(self.cycle_began) > rtt);
        let in_flight = || self.count(sample.prior_in_flight);
        let next = if self.pacing_gain > 1.0 {
            let reached = || in_flight() + self.burst >= self.inflight(self.pacing_gain);
            full_length && (sample.newly_lost > 0 || reached())
        } else if self.pacing_gain < 1.0 {
            full_length || in_flight() <= self.inflight(1.0)
        } else {
            full_length
        };
        if next {
            self.advance_cycle(sample.now);
        }
    }

    fn advance_cycle(&mut self, now: Time) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_began = now;
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        // Any phase except the one that drains.
        self.cycle = CYCLE.len() - 1 - self.random.below(CYCLE.len() as u64 - 1) as usize;
        self.advance_cycle(now);
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.full || !self.round_started || sample.application_limited {
            return;
        }
        if self.bandwidth.get() >= self.full_bandwidth * FULL_GROWTH {
            self.full_bandwidth = self.bandwidth.get();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drain(&mut self, sample: &RateSample) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            self.window.bytes_mut().ssthresh = f64::from(self.inflight(1.0)) * self.window.mss();
        }
        if self.mode == Mode::Drain && self.count(sample.in_flight) <= self.inflight(1.0) {
            self.enter_probe_bw(sample.now);
        }
    }

    fn update_min_rtt(&mut self, sample: &RateSample) {
        let now = sample.now;
        let expired = now > self.min_rtt_at + MIN_RTT_WINDOW;
        if let Some(rtt) = sample.rtt
            && (self.min_rtt.is_none_or(|least| rtt < least) || (expired && !sample.ack_delayed))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = now;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe_rtt_ends = None;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(sample);
        }
        self.idle_restart &= sample.newly_delivered == 0;
    }

    fn probe_rtt(&mut self, sample: &RateSample) {
        if self.probe_rtt_ends.is_some() {
            self.probe_rtt_round_done |= self.round_started;
            if self.probe_rtt_round_done {
                self.end_probe_rtt(sample.now);
            }
        } else if self.count(sample.in_flight) <= LEAST_WINDOW {
            self.probe_rtt_ends = Some(sample.now + PROBE_RTT_TIME);
            self.probe_rtt_round_done = false;
            self.round_ends = sample.delivered;
        }
    }

    fn end_probe_rtt(&mut self, now: Time) {
        if self.probe_rtt_ends.is_none_or(|end| now <= end) {
            return;
        }
        self.min_rtt_at = now;
        let cwnd = self.window.cwnd().max(self.prior_cwnd);
        self.window.set_cwnd(cwnd);
        if self.full {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.in_use => (1.0, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle], CWND_GAIN),
            Mode::ProbeRtt => (1.0, 1.0),
        };
    }

    // ---- pacing rate and window -------------------------------------------------------------------------

    fn set_pacing_rate(&mut self, bandwidth: f64, gain: f64) {
        let rate = bandwidth * gain * PACING_MARGIN;
        if self.pacing_rate == Some(rate) {
            return;
        }
        if rate > 0.0 && (self.full || self.pacing_rate.is_none_or(|before| rate > before)) {
            self.pace_at(rate);
        }
    }

    /// The window in a round-trip time, with the gain of Startup.
    fn initial_rate(&self, rtt: Duration) -> f64 {
        HIGH_GAIN * self.window.bytes().cwnd / rtt.as_secs_f64() * PACING_MARGIN
    }

    fn save_cwnd(&mut self) {
        let cwnd = self.window.cwnd();
        let calm = self.trouble == Trouble::None && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if calm { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// Reduces the window by losses, or restores it after recovery.
    fn recover_or_restore(&mut self, sample: &RateSample, acked: u32, cwnd: u32) -> u32 {
        let lost = if sample.newly_lost == 0 { 0 } else { self.count(sample.newly_lost) };
        let mut cwnd = cwnd.saturating_sub(lost).max(1);
        let trouble = match (sample.in_loss, sample.in_recovery) {
            (true, _) => Trouble::Loss,
            (false, true) => Trouble::Recovery,
            _ => Trouble::None,
        };
        if trouble == Trouble::Recovery && self.trouble != Trouble::Recovery {
            self.packet_conservation = true;
            self.round_ends = sample.delivered;
            cwnd = self.count(sample.in_flight) + acked;
        } else if trouble == Trouble::None && self.trouble != Trouble::None {
            cwnd = cwnd.max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.trouble = trouble;
        if self.packet_conservation { cwnd.max(self.count(sample.in_flight) + acked) } else { cwnd }
    }

    fn set_cwnd(&mut self, sample: &RateSample, bandwidth: f64, acked: u32) {
        let mut cwnd = self.window.cwnd();
        if acked > 0 {
            cwnd = self.recover_or_restore(sample, acked, cwnd);
            if !self.packet_conservation {
                cwnd = self.approach_target(sample, bandwidth, acked, cwnd);
            }
        }
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(LEAST_WINDOW);
        }
        self.window.set_cwnd(cwnd);
    }

    fn approach_target(&self, sample: &RateSample, bandwidth: f64, acked: u32, cwnd: u32) -> u32 {
        let target = self.with_room(self.bdp(bandwidth, self.cwnd_gain) + self.aggregation_room(bandwidth));
        let grown = if self.full {
            (cwnd + acked).min(target)
        } else if cwnd < target || self.count(sample.delivered) < self.initial_window {
            cwnd + acked
        } else {
            cwnd
        };
        grown.max(LEAST_WINDOW)
    }

    fn aggregation_room(&self, bandwidth: f64) -> u32 {
        if !self.full {
            return 0;
        }
        let most = bandwidth * MOST_AGGREGATION.as_secs_f64() / self.window.mss();
        self.aggregation.extra[0].max(self.aggregation.extra[1]).min(most as u32)
    }
}

impl Controller for Bbr {
    fn window(&self) -> &Window {
        self.window.bytes()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.window.bytes_mut()
    }

    fn on_ack(&mut self, _ack: &AckInfo) {}

    fn on_established(&mut self, info: &RttInfo) {
        self.on_rtt(info);
    }

    /// Initialises the model at the start of the connection: the minimum round-trip time filter starts now,
    /// and the pacing rate is the initial window per round-trip time, its lower limit during Startup.
    fn on_rtt(&mut self, info: &RttInfo) -> bool {
        if self.min_rtt.is_none() {
            self.min_rtt_at = info.now;
        }
        if self.pacing_rate.is_none() {
            self.pace_at(self.initial_rate(info.rtt));
        }
        self.min_rtt.is_none()
    }

    fn on_sample(&mut self, sample: &RateSample) -> Demand {
        self.policer.lost_so_far += sample.newly_lost;
        self.update_bandwidth(sample);
        let (bandwidth, acked) = (self.bandwidth(), self.count(sample.newly_delivered));
        self.update_aggregation(sample, bandwidth, acked);
        self.update_cycle(sample);
        self.check_full(sample);
        self.check_drain(sample);
        self.update_min_rtt(sample);
        self.update_gains();
        self.set_pacing_rate(bandwidth, self.pacing_gain);
        self.set_cwnd(sample, bandwidth, acked);
        if self.mode == Mode::ProbeRtt { Demand::Limited } else { Demand::Full }
    }

    /// Detected losses do not reduce the window, so there is no factor to replace.
    fn on_loss(&mut self, _loss: &Loss, _factor: Option<f64>) {
        self.save_cwnd();
    }

    fn on_timeout(&mut self, loss: &Loss, _factor: Option<f64>) {
        self.save_cwnd();
        self.trouble = Trouble::Loss;
        self.full_bandwidth = 0.0;
        self.round_started = true;
        let delivered = self.round_ends.max(self.policer.delivered);
        self.look_for_policer(loss.now, delivered, true, false);
    }

    fn on_interruption(&mut self, _mss: u32, _again: bool) {
        self.save_cwnd();
        self.trouble = Trouble::Loss;
    }

    fn on_recovered(&mut self, _limit: u32) {}

    /// The window is restored when recovery ends; the pipe is no longer considered full.
    fn on_undo(&mut self, _before: &Window) {
        self.full_bandwidth = 0.0;
        self.full_rounds = 0;
        let (began, delivered) = (self.policer.began, self.policer.delivered);
        self.policer.reset(began, delivered);
    }

    /// Idle periods do not affect the model.
    fn on_idle(&mut self, _rule: IdleRestart, _timeouts: u32) {}

    fn on_flight(&mut self, sending: &Sending) {
        if !sending.application_limited {
            return;
        }
        self.idle_restart = true;
        (self.aggregation.epoch_began, self.aggregation.acked) = (sending.now, 0);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(self.bandwidth(), 1.0),
            Mode::ProbeRtt => self.end_probe_rtt(sending.now),
            _ => {}
        }
    }

    fn pacing_rate(&self, srtt: Duration) -> f64 {
        self.pacing_rate.unwrap_or(self.initial_rate(srtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SeqNum;

    #[test]
    fn a_connection_that_begins_late_begins_with_startup() {
        let mut bbr = Bbr::new(&Settings::default(), 1);
        let (now, rtt, una) = (Time::ZERO + Duration::from_secs(20), Duration::from_millis(60), SeqNum(0));
        bbr.on_rtt(&RttInfo { now, rtt, una, max: una });
        let now = now + rtt;
        let (rate, newly_delivered) = (Some(1e6), 1460);
        let sample =
            RateSample { now, rtt: Some(rtt), newly_delivered, delivery_rate: rate, ..RateSample::default() };
        bbr.on_sample(&sample);
        assert_eq!(bbr.mode, Mode::Startup);
    }

    /// A path of 1 MB/s and 50 ms; each acknowledgement ends a round and covers ten segments.
    struct Path {
        bbr: Bbr,
        now: Time,
        delivered: u64,
        rate: f64,
    }

    impl Path {
        fn new() -> Path {
            Path { bbr: Bbr::new(&Settings::default(), 1), now: Time::ZERO, delivered: 0, rate: 1e6 }
        }

        /// An acknowledgement 51 ms later, with `in_flight` segments left in flight.
        fn ack(&mut self, in_flight: u64) -> &mut Path {
            let rtt = Duration::from_millis(if self.delivered == 0 { 50 } else { 51 });
            self.now += rtt;
            let prior_delivered = self.delivered;
            self.delivered += 14_600;
            let bytes = in_flight * 1_460;
            self.bbr.on_sample(&RateSample {
                now: self.now,
                newly_delivered: 14_600,
                delivered: self.delivered,
                prior_delivered,
                delivery_rate: Some(self.rate),
                rtt: Some(rtt),
                in_flight: bytes,
                prior_in_flight: bytes,
                ..RateSample::default()
            });
            self
        }

        fn probing() -> Path {
            let mut path = Path::new();
            (0..4).for_each(|_| _ = path.ack(100));
            path.ack(30);
            path
        }
    }

    /// Startup ends after three rounds without growth of the bandwidth; Drain ends when at most one
    /// bandwidth-delay product is in flight (draft-cardwell-00 sections 4.3.2 and 4.3.3).
    #[test]
    fn startup_ends_when_the_bandwidth_stays_and_drain_when_the_queue_is_gone() {
        let mut path = Path::new();
        let modes: alloc::vec::Vec<_> = (0..6).map(|_| path.ack(100).bbr.mode).collect();
        assert_eq!(modes[..3], [Mode::Startup; 3]);
        assert_eq!(modes[3..], [Mode::Drain; 3]);
        assert_eq!(path.ack(30).bbr.mode, Mode::ProbeBw);
    }

    /// ProbeBW: one phase of eight above the bandwidth and one below, each of one round trip (section
    /// 4.3.4.1), all reduced by 1 %.
    #[test]
    fn one_phase_of_eight_probes() {
        let mut path = Path::probing();
        let rtt = Duration::from_millis(50);
        let shares: alloc::vec::Vec<_> =
            (0..16).map(|_| libm::round(path.ack(60).bbr.pacing_rate(rtt) / 990.0)).collect();
        for (share, phases) in [(1250.0, 2), (750.0, 2), (1000.0, 12)] {
            assert_eq!(shares.iter().filter(|&&found| found == share).count(), phases, "{shares:?}");
        }
    }

    /// ProbeRTT: after ten seconds without a lower sample, four segments for 200 ms; then the previous window
    /// (section 4.3.5).
    #[test]
    fn probe_rtt_lasts_for_200_ms() {
        let mut path = Path::probing();
        let began = path.now;
        while path.ack(60).bbr.mode == Mode::ProbeBw {}
        assert_eq!(path.bbr.mode, Mode::ProbeRtt);
        assert!(path.now.since(began) > Duration::from_secs(9));
        assert_eq!(path.bbr.window.cwnd(), 4);
        let before = path.bbr.prior_cwnd;
        let acks = (1..20).find(|_| path.ack(4).bbr.mode != Mode::ProbeRtt);
        // The first one has four segments in flight; the fourth is 204 ms later.
        assert_eq!((acks, path.bbr.mode), (Some(5), Mode::ProbeBw));
        assert!(path.bbr.window.cwnd() >= before && before > 60);
    }

    /// The bandwidth estimate is the maximum of ten rounds (section 4.1.1.3).
    #[test]
    fn the_bandwidth_is_remembered_for_ten_rounds() {
        let mut path = Path::probing();
        path.rate = 5e5;
        (0..9).for_each(|_| _ = path.ack(60));
        assert_eq!(path.bbr.bandwidth(), 1e6);
        (0..4).for_each(|_| _ = path.ack(60));
        assert_eq!(path.bbr.bandwidth(), 5e5);
    }

    /// The first round of recovery conserves packets: one segment leaves for each one delivered. The window
    /// is restored afterwards (section 4.2.3.4).
    #[test]
    fn the_first_round_of_recovery_conserves_packets() {
        let mut path = Path::probing();
        (0..8).for_each(|_| _ = path.ack(60));
        let before = path.bbr.window.cwnd();
        assert!(before > 60);
        let (now, max) = (path.now, SeqNum(0));
        path.bbr.on_loss(&Loss { now, flight: 60 * 1_460, rwnd: u32::MAX, again: false, max }, None);
        let sample = RateSample {
            now: path.now,
            newly_delivered: 2 * 1_460,
            delivered: path.delivered + 2 * 1_460,
            delivery_rate: Some(1e6),
            in_flight: 20 * 1_460,
            in_recovery: true,
            ..RateSample::default()
        };
        for _ in 0..3 {
            path.bbr.on_sample(&sample);
            assert_eq!(path.bbr.window.cwnd(), 22);
        }
        path.bbr.on_sample(&RateSample { in_recovery: false, ..sample });
        assert!(path.bbr.window.cwnd() >= before, "{}", path.bbr.window.cwnd());
    }

    /// The first acknowledgement covers only a part of the initial window, so its delivery rate is too low:
    /// Startup continues at the rate of the window (Linux: bbr_init_pacing_rate_from_rtt; draft-ietf-ccwg-bbr
    /// section 5.6.2).
    #[test]
    fn the_first_sample_does_not_slow_startup_down() {
        let mut bbr = Bbr::new(&Settings::default(), 1);
        let (rtt, una) = (Duration::from_millis(100), SeqNum(0));
        let now = Time::ZERO + rtt;
        bbr.on_rtt(&RttInfo { now, rtt, una, max: una });
        let rate = Some(1460.0 / 0.1);
        let sample = RateSample {
            now,
            rtt: Some(rtt),
            newly_delivered: 1460,
            delivery_rate: rate,
            ..RateSample::default()
        };
        bbr.on_sample(&sample);
        let expected = HIGH_GAIN * PACING_MARGIN * 14_600.0 / 0.1;
        assert!((bbr.pacing_rate(rtt) / expected - 1.0).abs() < 1e-9, "{}", bbr.pacing_rate(rtt));
    }
}
