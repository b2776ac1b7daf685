//! BBR, version 3 (draft-ietf-ccwg-bbr): a model of the path sets rate and window. Unlike version 1 it answers
//! losses: those found while it probes for bandwidth bound what it keeps in flight for long, others what it sends
//! until the next probe.
//!
//! Names are the draft's, without its prefixes. Where it differs from the draft's pseudo-code:
//! - It answers no marks: the draft has no response to ECN but that a mark counts as congestion, and the sender
//!   negotiates none.
//! - What was in flight while it probed is what was in flight before an acknowledgement, in whole segments: after it,
//!   the window is never full.
//! - The long-term bound does not hold in Drain: there the draft's table and its pseudo-code disagree.
//! - An acknowledgement without a delivery rate says nothing of whether the pipe is full.
//! - Losses beyond the threshold before the segment at hand take nothing from what was in flight before it.

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
use super::{AckInfo, Controller, Loss, LostSegment, RateSample, RttInfo, Sending, Window};
use crate::tcp::filter::Windowed;
use crate::tcp::settings::Settings;

/// Pacing stays below the bandwidth by this factor, so that queues drain.
const PACING_MARGIN: f64 = 0.99;
/// Segments that a window holds at least, so that delayed acknowledgements do not stop the flow.
const LEAST_WINDOW: f64 = 4.0;
/// Segments that a probe for bandwidth may have in flight beyond the model.
const PROBE_ROOM: f64 = 2.0;
/// Rounds over which the greatest aggregation counts, before and after the pipe was full.
const AGGREGATION_ROUNDS_AT_START: u64 = 1;
const AGGREGATION_ROUNDS: u64 = 10;
/// What may leave at once is sent in so many seconds, but is at least so many segments and at most so many bytes.
const QUANTUM_TIME: f64 = 0.001;
const LEAST_QUANTUM: f64 = 2.0;
const MOST_QUANTUM: f64 = 65_536.0;
/// Quanta in flight that a full rate needs: in the sender's queue, in its hardware, and at the receiver.
const QUANTA_IN_FLIGHT: f64 = 3.0;

/// BBR version 3.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    /// Bytes of payload in a segment.
    mss: f64,
    window: Window,
    /// Bytes.
    initial_window: f64,
    state: State,
    /// Bytes per second; nothing before the first round-trip time.
    pacing_rate: Option<f64>,
    /// The greatest delivery rates of the last cycle of ProbeBW and of this one, bytes per second.
    max_bandwidth: [f64; 2],
    /// What rate and window go by, bytes per second: the model's bandwidth as far as losses allow.
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
    /// The last window, in bytes, that neither a recovery nor ProbeRTT has cut.
    prior_cwnd: f64,
    /// The last acknowledgement found the sender repairing losses.
    recovering: bool,
    random: Stream,
}

/// The states, each with the [gains](State::pacing_gain) that it sends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    /// Since a number of rounds.
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
    /// The rate in terms of the bandwidth.
    fn pacing_gain(self) -> f64 {
        match self {
            // 4 ln 2: the least gain that lets the rate double each round.
            State::Startup => 2.77,
            State::Drain { .. } => 0.5,
            State::Down => 0.9,
            State::Cruise | State::Refill | State::ProbeRtt => 1.0,
            State::Up => 1.25,
        }
    }

    /// The window in terms of the bandwidth-delay product.
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

    /// Whether losses are what a probe for more bandwidth has to expect.
    fn accelerates(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }
}

/// Rounds, each from the sending of a segment until the acknowledgement of one sent after it was acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u64,
    /// A round ends when a segment is acknowledged that was sent after so much was delivered.
    ends: u64,
    /// The acknowledgement at hand begins a round.
    started: bool,
}

/// How far acknowledgements come in lumps: bytes beyond what the bandwidth explains.
#[derive(Clone, Copy, Debug)]
struct Aggregation {
    extra: Windowed<f64>,
    began: Time,
    acked: f64,
}

/// Whether the window was full at some time of this round and of the one before.
#[derive(Clone, Copy, Debug, Default)]
struct Usage {
    now: bool,
    before: bool,
}

impl Bbr3 {
    /// A controller for a connection with these settings. `flow` decides when it probes.
    pub fn new(settings: &Settings, flow: u64) -> Bbr3 {
        Bbr3 {
            mss: f64::from(settings.mss()),
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
            aggregation: Aggregation {
                extra: Windowed::new(0, 0.0, |a, b| a >= b),
                began: Time::ZERO,
                acked: 0.0,
            },
            congestion: Congestion::default(),
            usage: Usage::default(),
            idle_restart: false,
            prior_cwnd: 0.0,
            recovering: false,
            random: Streams::new(flow, 0).stream("bbr3"),
        }
    }

    fn max_bandwidth(&self) -> f64 {
        self.max_bandwidth[0].max(self.max_bandwidth[1])
    }

    /// The bandwidth-delay product, bytes; the initial window before the first round-trip time.
    fn bdp(&self, bandwidth: f64, gain: f64) -> f64 {
        self.min_rtt.map_or(self.initial_window, |min_rtt| gain * bandwidth * min_rtt.rtt.as_secs_f64())
    }

    /// `volume` bytes, or more if so little in flight would not let segments leave and be acknowledged in lumps.
    fn with_budget(&self, volume: f64) -> f64 {
        let rate = self.pacing_rate.unwrap_or(0.0);
        let quantum = (rate * QUANTUM_TIME).min(MOST_QUANTUM).max(LEAST_QUANTUM * self.mss);
        let volume = volume.max(QUANTA_IN_FLIGHT * quantum).max(self.least_window());
        if self.state == State::Up { volume + PROBE_ROOM * self.mss } else { volume }
    }

    /// Bytes in flight that fill a path of `bandwidth`, and no queue.
    fn inflight(&self, bandwidth: f64) -> f64 {
        self.with_budget(self.bdp(bandwidth, 1.0))
    }

    /// What is to be in flight: the bandwidth-delay product, unless congestion has cut the window.
    fn target_inflight(&self) -> f64 {
        self.bdp(self.bandwidth, 1.0).min(self.window.cwnd)
    }

    fn least_window(&self) -> f64 {
        LEAST_WINDOW * self.mss
    }

    // ---- the model ------------------------------------------------------------------------------------

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
        self.usage.now |= sample.prior_in_flight as f64 + self.mss > self.window.cwnd;
    }

    /// Whether the window was full in the last round.
    fn is_cwnd_limited(&self) -> bool {
        self.usage.now || self.usage.before
    }

    fn update_max_bandwidth(&mut self, sample: &RateSample) {
        let Some(rate) = sample.delivery_rate else { return };
        if rate >= self.max_bandwidth() || !sample.application_limited {
            self.max_bandwidth[1] = self.max_bandwidth[1].max(rate);
        }
    }

    /// A cycle of ProbeBW is over, and its bandwidth counts for one more.
    fn advance_max_bandwidth(&mut self) {
        // Without a sample there is nothing to go on with.
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
        let extra = (self.aggregation.acked - expected).min(self.window.cwnd);
        let memory = if self.full_pipe.reached { AGGREGATION_ROUNDS } else { AGGREGATION_ROUNDS_AT_START };
        self.aggregation.extra.update(memory, self.rounds.count, extra);
    }

    // ---- what follows from it ---------------------------------------------------------------------------

    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = gain * self.bandwidth * PACING_MARGIN;
        if self.full_pipe.reached || self.pacing_rate.is_none_or(|before| rate > before) {
            self.pacing_rate = Some(rate);
        }
    }

    fn save_cwnd(&mut self) {
        let calm = !self.recovering && self.state != State::ProbeRtt;
        self.prior_cwnd = if calm { self.window.cwnd } else { self.prior_cwnd.max(self.window.cwnd) };
    }

    fn restore_cwnd(&mut self) {
        self.window.cwnd = self.window.cwnd.max(self.prior_cwnd);
    }

    /// Losses are being repaired, or no more.
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
            self.window.cwnd = (self.window.cwnd + acked).min(most);
        } else if self.window.cwnd < most || (sample.delivered as f64) < self.initial_window {
            self.window.cwnd += acked;
        }
        self.window.cwnd = self.window.cwnd.max(self.least_window());
        if self.state == State::ProbeRtt {
            self.window.cwnd = self.window.cwnd.min(self.probe_rtt_cwnd());
        }
        self.window.cwnd = self.window.cwnd.min(self.most_by_congestion());
    }

    /// The window that losses allow, bytes.
    fn most_by_congestion(&self) -> f64 {
        let longterm = match self.state {
            State::Down | State::Refill | State::Up => self.congestion.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain { .. } => f64::INFINITY,
        };
        longterm.min(self.congestion.inflight_shortterm).max(self.least_window())
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

    /// The first round-trip time, which may be that of SYN, begins the model.
    fn on_rtt(&mut self, info: &RttInfo) {
        if self.min_rtt.is_none() {
            self.min_rtt = Some(MinRtt::new(info.now, info.rtt));
            self.aggregation.began = info.now;
            let nominal = self.initial_window / info.rtt.as_secs_f64();
            self.pacing_rate = Some(State::Startup.pacing_gain() * nominal);
        }
    }

    fn on_sample(&mut self, sample: &RateSample) {
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
        self.bandwidth = self.max_bandwidth().min(self.congestion.bandwidth_shortterm);
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(sample);
    }

    fn on_lost_segment(&mut self, lost: &LostSegment) {
        self.handle_lost_segment(lost);
    }

    /// The segments lost are answered one by one; a scheme may say in addition how far the window is cut.
    fn on_loss(&mut self, _loss: &Loss, factor: Option<f64>) {
        self.save_cwnd();
        self.save_for_undo();
        if let Some(factor) = factor {
            self.window.cwnd *= factor;
        }
    }

    /// The window itself is the recovery's affair: one segment more than what is in flight.
    fn on_timeout(&mut self, _loss: &Loss, _factor: Option<f64>) {
        self.save_cwnd();
        self.save_for_undo();
        self.recovering = true;
    }

    fn on_interruption(&mut self, _mss: u32, _again: bool) {
        self.save_cwnd();
        self.recovering = true;
    }

    /// The window comes back with the next [sample](Controller::on_sample), as far as the model allows.
    fn on_recovered(&mut self, _limit: u32) {}

    fn on_undo(&mut self, _before: &Window) {
        self.restore_cwnd();
        self.undo();
    }

    /// An idle time changes nothing of the model.
    fn on_idle(&mut self) {}

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

    fn needs_pacing(&self) -> bool {
        true
    }

    fn governs_recovery(&self) -> bool {
        true
    }

    /// The low rates of ProbeRTT say nothing about the path.
    fn limits_itself(&self) -> bool {
        self.state == State::ProbeRtt
    }
}
