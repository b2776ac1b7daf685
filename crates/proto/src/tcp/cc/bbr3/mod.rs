//! BBR, version 3 (draft-ietf-ccwg-bbr). Pacing rate and window follow a model of the path. Unlike version 1
//! it responds to losses: those found while probing for bandwidth set long-term bounds on the data in flight,
//! others short-term bounds until the next probe.
//!
//! Names are those of the draft without its prefixes. Differences from the draft's pseudocode:
//! - A mark is congestion, which the draft demands without specifying the response. Classic ECN reports one mark per
//!   round trip, so no rate of marks can be tolerated: a mark has the response of a loss rate above the threshold.
//! - The data in flight during a probe are those before the acknowledgement, in whole segments: after it, the
//!   window is never full.
//! - The long-term bound does not apply in Drain, where the draft's table and its pseudocode disagree.
//! - An acknowledgement without a delivery rate sample does not affect the full-pipe estimate.
//! - Losses above the threshold that precede the segment do not reduce the data in flight before it.
//! - The state for an undo is saved when recovery begins, as the draft's text has it, not in each round with losses.

#[cfg(test)]
mod cases;
mod congestion;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;

use lasthop_base::{Duration, Stream, Streams, Time};

use self::congestion::Congestion;
use self::probe_bw::Probe;
use self::probe_rtt::MinRtt;
use self::startup::FullPipe;
use super::{
    AckInfo, Chosen, Control, Controller, Demand, Limit, Loss, LostSegment, RateSample, RttInfo, Sending,
    Window,
};
use crate::tcp::filter::Maximum;
use crate::tcp::settings::{IdleRestart, Settings};

pub(super) const CONTROL: Control = Control {
    limit: Limit::Model,
    needs_samples: true,
    needs_pacing: true,
    origin: Some("a kernel of its authors"),
    cost: Some("may take bandwidth from other flows in the same queue"),
    ..Control::new("bbr3", "BBR version 3", "BBR, version 3 (draft-ietf-ccwg-bbr)", |settings, flow| {
        Chosen::other(Bbr3::new(settings, u64::from(flow.0)))
    })
};

/// Pacing rate relative to the bandwidth estimate, so that queues drain.
const PACING_MARGIN: f64 = 0.99;
/// Minimum window in segments, so that delayed ACKs do not stall the flow.
const LEAST_WINDOW: f64 = 4.0;
/// Additional segments in flight while probing for bandwidth.
const PROBE_ROOM: f64 = 2.0;
/// Window of the ACK aggregation max filter in rounds, before and after the pipe is full.
const AGGREGATION_ROUNDS_AT_START: u64 = 1;
const AGGREGATION_ROUNDS: u64 = 10;
/// Burst size: what is sent in this many seconds, with a minimum in segments and a maximum in bytes.
const QUANTUM_TIME: f64 = 0.001;
const LEAST_QUANTUM: f64 = 2.0;
const MOST_QUANTUM: f64 = 65_536.0;
/// Quanta in flight at full rate: in the sender's queue, in its hardware, and at the receiver.
const QUANTA_IN_FLIGHT: f64 = 3.0;

/// BBR version 3.
#[derive(Clone, Debug)]
pub(super) struct Bbr3 {
    window: Window,
    /// Bytes.
    initial_window: f64,
    state: State,
    /// Pacing rate in bytes per second; `None` before the first round-trip time.
    pacing_rate: Option<f64>,
    /// Maximum delivery rates of the previous and the current ProbeBW cycle, in bytes per second.
    max_bandwidth: [f64; 2],
    /// Bandwidth in use, in bytes per second: that of the model, bounded by losses.
    bandwidth: f64,
    /// Bytes delivered so far.
    delivered: u64,
    rounds: Rounds,
    full_pipe: FullPipe,
    probe: Probe,
    min_rtt: Option<MinRtt>,
    aggregation: Aggregation,
    congestion: Congestion,
    usage: Usage,
    idle_restart: bool,
    /// The last window in bytes before a reduction by recovery or ProbeRTT.
    prior_cwnd: f64,
    /// Whether the sender was in recovery at the last acknowledgement.
    recovering: bool,
    random: Stream,
}

/// Maximum and minimum of numbers that are never NaN: one instruction each, where [`f64::max`] and [`f64::min`] take six.
trait Bounds {
    /// The greater of the two.
    fn at_least(self, least: f64) -> f64;

    /// The smaller of the two.
    fn at_most(self, most: f64) -> f64;
}

impl Bounds for f64 {
    fn at_least(self, least: f64) -> f64 {
        if self > least { self } else { least }
    }

    fn at_most(self, most: f64) -> f64 {
        if self < most { self } else { most }
    }
}

/// States, each with its [pacing gain](State::pacing_gain).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    /// Entered at this round.
    Drain {
        since: u64,
    },
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// Pacing rate relative to the bandwidth.
    fn pacing_gain(self) -> f64 {
        match self {
            // 4 ln 2: the smallest gain that doubles the rate each round.
            State::Startup => 2.77,
            State::Drain { .. } => 0.5,
            State::Down => 0.9,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
            State::Up => 1.25,
        }
    }

    /// Window relative to the bandwidth-delay product.
    fn cwnd_gain(self) -> f64 {
        match self {
            State::Up => 2.25,
            State::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }

    fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    /// Whether the state probes for bandwidth, so that it may cause losses.
    fn accelerates(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// Round counter. A round lasts from the sending of a segment to the acknowledgement of one sent after it was
/// acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// The round ends with the acknowledgement of a segment sent at or after this value of `delivered`.
    ends: u64,
    /// Whether the current acknowledgement starts a round.
    started: bool,
}

/// ACK aggregation: bytes acknowledged beyond what the bandwidth estimate explains.
#[derive(Clone, Copy, Debug)]
struct Aggregation {
    extra: Maximum<f64>,
    began: Time,
    acked: f64,
}

/// Whether the window was full at any time in the current and in the previous round.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    now: bool,
    before: bool,
}

impl Bbr3 {
    /// A controller for a connection with these settings. `flow` seeds the times of probes.
    pub(super) fn new(settings: &Settings, flow: u64) -> Bbr3 {
        Bbr3 {
            window: Window::new(settings),
            initial_window: f64::from(settings.initial_window.bytes(settings.mss())),
            state: State::Startup,
            pacing_rate: None,
            max_bandwidth: [0.0; 2],
            bandwidth: 0.0,
            delivered: 0,
            rounds: Rounds::default(),
            full_pipe: FullPipe::default(),
            probe: Probe::default(),
            min_rtt: None,
            aggregation: Aggregation { extra: Maximum::new(0, 0.0), began: Time::ZERO, acked: 0.0 },
            congestion: Congestion::default(),
            usage: Usage::default(),
            idle_restart: false,
            prior_cwnd: 0.0,
            recovering: false,
            random: Streams::new(flow, 0).stream("bbr3"),
        }
    }

    fn max_bandwidth(&self) -> f64 {
        self.max_bandwidth[0].at_least(self.max_bandwidth[1])
    }

    /// The bandwidth-delay product in bytes; the initial window before the first round-trip time.
    fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        self.min_rtt.map_or(self.initial_window, |min_rtt| gain * bandwidth * min_rtt.rtt.as_secs_f64())
    }

    /// `volume` in bytes, raised to the minimum that sustains bursts and aggregated acknowledgements.
    fn with_budget(&self, volume: f64) -> f64 {
        let rate = self.pacing_rate.unwrap_or(0.0);
        let quantum = (rate * QUANTUM_TIME).at_most(MOST_QUANTUM).at_least(LEAST_QUANTUM * self.window.mss);
        let volume = volume.at_least(QUANTA_IN_FLIGHT * quantum).at_least(self.least_window());
        if self.state == State::Up { volume + PROBE_ROOM * self.window.mss } else { volume }
    }

    /// Bytes in flight that fill a path of `bandwidth` without a queue.
    fn inflight(&self, bandwidth: f64) -> f64 {
        self.with_budget(self.bdp(bandwidth, 1.0))
    }

    /// Target of bytes in flight: the bandwidth-delay product, or the window if that is smaller after congestion.
    fn target_inflight(&self) -> f64 {
        self.bdp(self.bandwidth, 1.0).at_most(self.window.cwnd)
    }

    fn least_window(&self) -> f64 {
        LEAST_WINDOW * self.window.mss
    }

    // ---- model ------------------------------------------------------------------------------------

    fn start_round(&mut self) {
        self.rounds.ends = self.delivered;
    }

    fn update_round(&mut self, sample: &RateSample) {
        self.delivered = sample.delivered;
        self.rounds.started = sample.newly_delivered > 0 && sample.prior_delivered >= self.rounds.ends;
        if self.rounds.started {
            self.start_round();
            self.rounds.count += 1;
            self.probe.rounds += 1;
            self.usage = Usage { now: false, before: self.usage.now };
        }
        self.usage.now |= sample.prior_in_flight as f64 + self.window.mss > self.window.cwnd;
    }

    /// Whether the window was full in the current or the previous round.
    fn is_cwnd_limited(&self) -> bool {
        self.usage.now || self.usage.before
    }

    fn update_max_bandwidth(&mut self, sample: &RateSample) {
        let Some(rate) = sample.delivery_rate else { return };
        if rate >= self.max_bandwidth() || !sample.application_limited {
            self.max_bandwidth[1] = self.max_bandwidth[1].at_least(rate);
        }
    }

    /// Ends a ProbeBW cycle. The maximum filter covers the last two cycles.
    fn advance_max_bandwidth(&mut self) {
        // A cycle without samples does not advance the filter.
        if self.max_bandwidth[1] > 0.0 {
            self.max_bandwidth = [self.max_bandwidth[1], 0.0];
        }
    }

    fn update_aggregation(&mut self, sample: &RateSample) {
        let elapsed = sample.now.since(self.aggregation.began).as_secs_f64();
        let mut expected = self.bandwidth * elapsed;
        if self.aggregation.acked <= expected {
            (self.aggregation.acked, self.aggregation.began, expected) = (0.0, sample.now, 0.0);
        }
        self.aggregation.acked += sample.newly_delivered as f64;
        let extra = (self.aggregation.acked - expected).at_most(self.window.cwnd);
        let memory = if self.full_pipe.reached { AGGREGATION_ROUNDS } else { AGGREGATION_ROUNDS_AT_START };
        self.aggregation.extra.update(memory, self.rounds.count, extra);
    }

    // ---- pacing rate and window --------------------------------------------------------------------------

    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth * PACING_MARGIN;
        if self.full_pipe.reached || self.pacing_rate.is_none_or(|before| rate > before) {
            self.pacing_rate = Some(rate);
        }
    }

    fn save_cwnd(&mut self) {
        let calm = !self.recovering && self.state != State::ProbeRtt;
        self.prior_cwnd = if calm { self.window.cwnd } else { self.prior_cwnd.at_least(self.window.cwnd) };
    }

    fn restore_cwnd(&mut self) {
        self.window.cwnd = self.window.cwnd.at_least(self.prior_cwnd);
    }

    /// Tracks the start and end of recovery.
    fn note_recovery(&mut self, sample: &RateSample) {
        let recovering = sample.in_recovery || sample.in_loss;
        if self.recovering && !recovering {
            self.restore_cwnd();
        }
        self.recovering = recovering;
    }

    fn set_cwnd(&mut self, sample: &RateSample) {
        let acked = sample.newly_delivered as f64;
        let volume = self.bdp(self.bandwidth, self.state.cwnd_gain()) + self.aggregation.extra.get();
        let most = self.with_budget(volume);
        if self.full_pipe.reached {
            self.window.cwnd = (self.window.cwnd + acked).at_most(most);
        } else if self.window.cwnd < most || (sample.delivered as f64) < self.initial_window {
            self.window.cwnd += acked;
        }
        self.window.cwnd = self.window.cwnd.at_least(self.least_window());
        if self.state == State::ProbeRtt {
            self.window.cwnd = self.window.cwnd.at_most(self.probe_rtt_cwnd());
        }
        self.window.cwnd = self.window.cwnd.at_most(self.most_by_congestion());
    }

    /// The bound on the window set by losses, in bytes.
    fn most_by_congestion(&self) -> f64 {
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.congestion.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain { .. } => f64::INFINITY,
        };
        longterm.at_most(self.congestion.inflight_shortterm).at_least(self.least_window())
    }
}

impl Controller for Bbr3 {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn on_ack(&mut self, _ack: &AckInfo) {}

    fn on_established(&mut self, info: &RttInfo) {
        self.on_rtt(info);
    }

    /// The first round-trip time, possibly that of the SYN, initialises the model.
    fn on_rtt(&mut self, info: &RttInfo) -> bool {
        if self.min_rtt.is_none() {
            self.min_rtt = Some(MinRtt::new(info.now, info.rtt));
            self.aggregation.began = info.now;
            let nominal = self.initial_window / info.rtt.as_secs_f64();
            self.pacing_rate = Some(State::Startup.pacing_gain() * nominal);
        }
        false
    }

    fn on_sample(&mut self, sample: &RateSample) -> Demand {
        self.update_round(sample);
        self.note_recovery(sample);
        self.update_delivery_signals(sample);
        self.update_max_bandwidth(sample);
        self.adapt_to_losses();
        self.update_aggregation(sample);
        self.full_pipe.check(self.rounds.started, sample);
        self.check_startup(sample);
        self.check_drain(sample);
        self.update_probe(sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        self.advance_delivery_signals(sample);
        self.bandwidth = self.max_bandwidth().at_most(self.congestion.bandwidth_shortterm);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(sample);
        // ProbeRTT limits the rate itself, so its samples do not reflect the path.
        if self.state == State::ProbeRtt { Demand::Limited } else { Demand::Full }
    }

    fn on_lost_segment(&mut self, lost: &LostSegment) {
        self.handle_lost_segment(lost);
    }

    /// Lost segments are handled individually; the loss itself does not reduce the window.
    fn on_loss(&mut self, _loss: &Loss, _factor: Option<f64>) {
        self.save_cwnd();
        self.save_for_undo();
    }

    fn on_mark(&mut self, loss: &Loss, factor: Option<f64>) {
        self.on_loss(loss, factor);
        self.handle_mark(loss.now);
    }

    /// Recovery itself sets the window to one segment more than in flight.
    fn on_timeout(&mut self, loss: &Loss, _factor: Option<f64>) {
        self.save_cwnd();
        // Within a recovery, the state before its losses is saved already.
        if !loss.again {
            self.save_for_undo();
        }
        self.recovering = true;
    }

    fn on_interruption(&mut self, _mss: u32, _again: bool) {
        self.save_cwnd();
        self.recovering = true;
    }

    /// The next [sample](Controller::on_sample) restores the window within the bounds of the model.
    fn on_recovered(&mut self, _limit: u32) {}

    fn on_undo(&mut self, _before: &Window) {
        self.restore_cwnd();
        self.undo();
    }

    /// Idle periods do not affect the model.
    fn on_idle(&mut self, _rule: IdleRestart, _timeouts: u32) {}

    fn on_flight(&mut self, sending: &Sending) {
        if !sending.application_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.began = sending.now;
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(sending.now);
        }
    }

    fn pacing_rate(&self, srtt: Duration) -> f64 {
        self.pacing_rate.unwrap_or(State::Startup.pacing_gain() * self.window.cwnd / srtt.as_secs_f64())
    }
}
