//! States, windows and rates from samples by hand, over a path of 100 ms. The numbers follow from the draft.

use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

use super::*;
use crate::packet::SeqNum;

mod undo;

const MSS: f64 = 1000.0;
const RTT: Duration = Duration::from_millis(100);
/// 1000 segments per second: 100 per round-trip time.
const RATE: f64 = 1e6;
const BDP: f64 = 1e5;

/// A flow with one acknowledgement per round trip.
struct Flow {
    bbr: Bbr3,
    now: Time,
    delivered: u64,
    /// The round-trip time, which falls a little with each sample, so that ProbeRTT is not due.
    rtt: Duration,
    /// One past the last sequence number that was lost.
    lost: SeqNum,
    demand: Demand,
}

impl Flow {
    fn new() -> Flow {
        let settings = Settings { packet_size: Bytes(1040), ..Settings::default() };
        let mut flow = Flow {
            bbr: Bbr3::new(&settings, 1),
            now: Time::ZERO,
            delivered: 0,
            rtt: RTT + Duration::from_nanos(500),
            lost: SeqNum(0),
            demand: Demand::Full,
        };
        let una = SeqNum(0);
        flow.bbr.on_rtt(&RttInfo { now: flow.now, rtt: flow.rtt, una, max: una });
        flow
    }

    /// The sample of a round trip at `rate` with `in_flight` bytes before and after it.
    fn sample(&mut self, rate: f64, in_flight: f64) -> RateSample {
        self.now += RTT;
        self.rtt = self.rtt.saturating_sub(Duration::from_nanos(1));
        let newly_delivered = (rate * RTT.as_secs_f64()) as u64;
        let prior_delivered = self.delivered;
        self.delivered += newly_delivered;
        RateSample {
            now: self.now,
            newly_delivered,
            delivered: self.delivered,
            prior_delivered,
            delivery_rate: Some(rate),
            interval: RTT,
            rtt: Some(self.rtt),
            prior_in_flight: in_flight as u64,
            in_flight: in_flight as u64,
            in_flight_at_sending: in_flight as u64,
            ..RateSample::default()
        }
    }

    fn feed(&mut self, sample: &RateSample) -> State {
        self.demand = self.bbr.on_sample(sample);
        self.bbr.state
    }

    /// A round trip at `rate` with `in_flight` bytes.
    fn round(&mut self, rate: f64, in_flight: f64) -> State {
        let sample = self.sample(rate, in_flight);
        self.feed(&sample)
    }

    /// Recovery begins.
    fn recover(&mut self) {
        let loss = Loss { now: self.now, flight: 0, rwnd: 0, again: false, max: SeqNum(0) };
        self.bbr.on_loss(&loss, None);
    }

    /// A segment is marked lost; of the `in_flight` bytes at its transmission, `lost_since` are lost.
    fn lose(&mut self, lost_since: u64, in_flight: f64) {
        let start = self.lost + 1000;
        self.lost = start + 1000;
        let lost = LostSegment {
            now: self.now,
            start,
            end: self.lost,
            in_flight_at_sending: in_flight as u64,
            lost_since,
            application_limited: false,
            delivered: self.delivered,
        };
        self.bbr.on_lost_segment(&lost);
    }

    fn pacing_rate(&self) -> f64 {
        self.bbr.pacing_rate(RTT)
    }

    fn longterm(&self) -> f64 {
        self.bbr.congestion.inflight_longterm
    }

    /// In Drain, after four rounds at [`RATE`].
    fn full() -> Flow {
        let mut flow = Flow::new();
        let states: Vec<State> = (0..4).map(|_| flow.round(RATE, 2.0 * BDP)).collect();
        assert_eq!(states[..3], [State::Startup; 3]);
        assert_eq!(states[3], State::Drain { since: 4 });
        flow
    }

    /// Cruising at [`RATE`]: an empty queue is what Drain and [`State::Down`] wait for.
    fn cruising() -> Flow {
        let mut flow = Flow::full();
        assert_eq!(flow.round(RATE, BDP), State::Cruise);
        flow
    }

    /// Continues until the state changes.
    fn next_state(&mut self, in_flight: f64) -> State {
        let before = self.bbr.state;
        (0..70).map(|_| self.round(RATE, in_flight)).find(|&state| state != before).expect("no state lasts")
    }

    /// Probing for bandwidth at [`RATE`].
    fn probing() -> Flow {
        let mut flow = Flow::cruising();
        assert_eq!(flow.next_state(BDP), State::Refill);
        assert_eq!(flow.round(RATE, BDP), State::Up);
        flow
    }
}

fn assert_close(found: f64, expected: f64) {
    // The round-trip time falls by some nanoseconds.
    assert!((found - expected).abs() < 1e-5 * expected, "found {found}, expected {expected}");
}

#[test]
fn bbr3_requires_per_segment_records() {
    let settings = Settings { congestion: crate::tcp::Congestion::Bbr3, ..Settings::default() };
    assert!(settings.faults().iter().any(|(key, _)| *key == "congestion"));
    let settings = Settings { flavour: crate::tcp::Flavour::Prr, ..settings };
    assert!(settings.faults().is_empty());
}

// ---- Startup and Drain ----------------------------------------------------------------------------------

#[test]
fn startup_paces_the_initial_window_first() {
    assert_close(Flow::new().pacing_rate(), 2.77 * 10_000.0 / 0.1);
}

#[test]
fn startup_sends_at_277_percent_of_the_bandwidth_and_never_slower_than_before() {
    let mut flow = Flow::new();
    flow.round(RATE, 10_000.0);
    assert_close(flow.pacing_rate(), 2.77 * 0.99 * RATE);
    flow.round(RATE / 2.0, 10_000.0);
    assert_close(flow.pacing_rate(), 2.77 * 0.99 * RATE);
}

#[test]
fn startup_grows_the_window_by_the_acknowledged_bytes_up_to_twice_the_bdp() {
    let mut flow = Flow::new();
    let windows: Vec<f64> = (0..3)
        .map(|_| {
            flow.round(0.09 * RATE, 9000.0);
            flow.bbr.window.cwnd
        })
        .collect();
    // The limit of twice the product of 9 kB, plus 9 kB of aggregation, is exceeded.
    assert_eq!(windows, [19_000.0, 28_000.0, 28_000.0]);
}

#[test]
fn the_pipe_is_full_after_three_rounds_with_less_than_25_percent_growth() {
    let mut flow = Flow::new();
    for rate in [1e5, 1.25e5, 1.5e5, 1.56e5] {
        assert_eq!(flow.round(rate, BDP), State::Startup);
    }
    assert_eq!(flow.bbr.full_pipe.rounds, 2);
    // 25 % above the baseline of 125 kB/s.
    assert_eq!(flow.round(1.5625e5, BDP), State::Startup);
    assert_eq!(flow.bbr.full_pipe.rounds, 0);
    for _ in 0..2 {
        assert_eq!(flow.round(1.9e5, BDP), State::Startup);
    }
    assert_eq!(flow.round(1.9e5, BDP), State::Drain { since: 8 });
    assert_close(flow.pacing_rate(), 0.5 * 0.99 * 1.9e5);
}

#[test]
fn application_limited_rounds_do_not_fill_the_pipe() {
    let mut flow = Flow::new();
    for _ in 0..20 {
        let sample = RateSample { application_limited: true, ..flow.sample(RATE, BDP) };
        assert_eq!(flow.feed(&sample), State::Startup);
    }
}

/// A round of recovery in Startup with this number of loss events.
fn lossy_startup(flow: &mut Flow, losses: u64, in_flight: f64) -> State {
    flow.round(RATE, in_flight);
    flow.recover();
    (1..=losses).for_each(|n| flow.lose(1000 * n, in_flight));
    let lost_since = 1000 * losses;
    let sample = RateSample { in_recovery: true, lost_since, ..flow.sample(2.0 * RATE, in_flight) };
    flow.feed(&sample)
}

#[test]
fn startup_ends_after_a_round_of_recovery_with_six_gaps_and_more_than_2_percent_lost() {
    let mut flow = Flow::new();
    assert_eq!(lossy_startup(&mut flow, 6, 2.9e5), State::Drain { since: 2 });
    // The data delivered in the round: the bandwidth-delay product at twice the rate.
    assert_close(flow.longterm(), 2.0 * BDP);
    assert_eq!(lossy_startup(&mut Flow::new(), 5, 2e5), State::Startup, "five gaps");
    assert_eq!(lossy_startup(&mut Flow::new(), 6, 3e5), State::Startup, "2 percent");
}

#[test]
fn drain_ends_when_the_flight_has_fallen_to_the_bdp() {
    let mut flow = Flow::full();
    assert_close(flow.pacing_rate(), 0.5 * 0.99 * RATE);
    assert!(matches!(flow.round(RATE, BDP + 1.0), State::Drain { .. }));
    assert_eq!(flow.round(RATE, BDP), State::Cruise, "there is nothing to go down from");
}

#[test]
fn drain_ends_after_three_rounds_at_the_latest() {
    let mut flow = Flow::full();
    for _ in 0..3 {
        assert!(matches!(flow.round(RATE, 2.0 * BDP), State::Drain { .. }));
    }
    assert_eq!(flow.round(RATE, 2.0 * BDP), State::Down);
}

// ---- ProbeBW --------------------------------------------------------------------------------------------

#[test]
fn the_cycle_of_probe_bw_has_its_gains() {
    let mut flow = Flow::full();
    assert_eq!(flow.next_state(2.0 * BDP), State::Down);
    assert_close(flow.pacing_rate(), 0.9 * 0.99 * RATE);
    assert_eq!(flow.round(RATE, 1.5 * BDP), State::Down, "there is a queue");
    assert_eq!(flow.next_state(BDP), State::Cruise);
    assert_close(flow.pacing_rate(), 0.99 * RATE);
    assert_eq!(flow.next_state(BDP), State::Refill);
    assert_close(flow.pacing_rate(), 0.99 * RATE);
    assert_eq!(flow.next_state(BDP), State::Up);
    assert_close(flow.pacing_rate(), 1.25 * 0.99 * RATE);
    for _ in 0..2 {
        assert_eq!(flow.round(RATE, BDP), State::Up);
    }
    assert_eq!(flow.round(RATE, BDP), State::Down, "three rounds without growth");
}

/// The window is a multiple of the bandwidth-delay product, plus the aggregation of one acknowledgement per round.
#[test]
fn windows_are_twice_the_bdp_and_larger_in_a_probe() {
    let flow = Flow::cruising();
    let extra = flow.bbr.aggregation.extra.get();
    assert_close(flow.bbr.window.cwnd, 2.0 * BDP + extra);
    let mut flow = Flow::probing();
    flow.round(RATE, BDP);
    assert_close(flow.bbr.window.cwnd, 2.25 * BDP + extra + 2.0 * MSS);
}

#[test]
fn probes_come_after_two_to_three_seconds() {
    let mut waits = Vec::new();
    for _ in 0..2 {
        let mut flow = Flow::full();
        flow.bbr.random = Streams::new(waits.len() as u64, 7).stream("bbr3");
        flow.next_state(BDP);
        let down_at = flow.now;
        assert_eq!(flow.next_state(BDP), State::Refill);
        waits.push(flow.now.since(down_at));
    }
    let between = |wait: &Duration| *wait > Duration::from_secs(2) && *wait <= Duration::from_millis(3100);
    assert!(waits.iter().all(between), "{waits:?}");
    assert_ne!(waits[0], waits[1], "the time is random");
}

/// With 9.5 segments in flight Reno regains its window after 10 rounds, the first of which may have begun before.
#[test]
fn probes_come_after_as_many_rounds_as_there_are_segments_in_flight() {
    let mut flow = Flow::new();
    let rate = 0.095 * RATE;
    while flow.bbr.state != State::Cruise {
        flow.round(rate, 6000.0);
    }
    let rounds = (1..20).find(|_| flow.round(rate, 6000.0) == State::Refill).expect("a probe");
    assert!(rounds == 9 || rounds == 10, "{rounds}");
}

#[test]
fn the_bandwidth_of_a_cycle_is_kept_for_another_cycle() {
    let mut flow = Flow::cruising();
    let half = RATE / 2.0;
    while flow.round(half, BDP / 2.0) != State::Down {
        assert_close(flow.bbr.max_bandwidth(), RATE);
    }
    // Samples of the probe arrive for another round.
    flow.round(half, BDP / 2.0);
    assert_close(flow.bbr.max_bandwidth(), half);
}

#[test]
fn an_application_limited_rate_does_not_lower_the_bandwidth() {
    let mut flow = Flow::cruising();
    let sample = RateSample { application_limited: true, ..flow.sample(1.5 * RATE, BDP) };
    flow.feed(&sample);
    assert_close(flow.bbr.max_bandwidth(), 1.5 * RATE);
    let sample = RateSample { application_limited: true, ..flow.sample(1.2 * RATE, BDP) };
    flow.feed(&sample);
    assert_close(flow.bbr.max_bandwidth[1], 1.5 * RATE);
}

// ---- losses ---------------------------------------------------------------------------------------------

#[test]
fn losses_while_cruising_reduce_rate_and_window_to_the_delivered() {
    let mut flow = Flow::cruising();
    flow.round(0.95 * RATE, BDP);
    let cwnd = flow.bbr.window.cwnd;
    flow.lose(1000, BDP);
    flow.round(0.95 * RATE, BDP);
    // The greater of the delivered and 0.7 of the previous bound.
    assert_close(flow.bbr.bandwidth, 0.95 * RATE);
    assert_close(flow.bbr.window.cwnd, 0.7 * cwnd);
    assert_close(flow.pacing_rate(), 0.99 * 0.95 * RATE);
}

#[test]
fn a_round_of_losses_reduces_the_bounds_by_at_most_30_percent() {
    let mut flow = Flow::cruising();
    let (cwnd, mut least) = (flow.bbr.window.cwnd, 1.0);
    flow.round(0.1 * RATE, BDP);
    for _ in 0..3 {
        flow.lose(1000, BDP);
        flow.round(0.1 * RATE, BDP);
        least *= 0.7;
        assert_close(flow.bbr.bandwidth, least * RATE);
        assert_close(flow.bbr.congestion.inflight_shortterm, least * cwnd);
    }
    // A round without losses changes nothing.
    flow.round(0.1 * RATE, BDP);
    assert_close(flow.bbr.bandwidth, least * RATE);
    // The next probe resets the bounds.
    assert_eq!(flow.next_state(BDP), State::Refill);
    assert_close(flow.bbr.bandwidth, RATE);
}

#[test]
fn a_probe_that_loses_more_than_2_percent_ends_and_bounds_what_is_in_flight() {
    let mut flow = Flow::probing();
    flow.lose(1000, 1.25 * BDP);
    flow.lose(2000, 1.25 * BDP);
    assert_eq!(flow.bbr.state, State::Up, "2000 of 125,000 bytes are 1.6 percent");
    flow.lose(3000, 1.25 * BDP);
    assert_eq!(flow.bbr.state, State::Down);
    // (2000 + x) / (124,000 + x) = 0.02
    assert_close(flow.longterm(), 124_000.0 + 480.0 / 0.98);
    // One response per probe.
    flow.lose(9000, BDP);
    assert_close(flow.longterm(), 124_000.0 + 480.0 / 0.98);
}

#[test]
fn the_bound_of_a_probe_is_at_least_70_percent_of_the_bdp() {
    let mut flow = Flow::probing();
    flow.lose(1000, 20_000.0);
    assert_close(flow.longterm(), 0.7 * BDP);
}

/// In [`State::Down`] after a probe with excessive loss at 125 segments in flight.
fn bounded() -> Flow {
    let mut flow = Flow::probing();
    flow.recover();
    flow.lose(3000, 1.25 * BDP);
    flow
}

#[test]
fn cruising_leaves_headroom() {
    let mut flow = bounded();
    let bound = flow.longterm();
    assert_eq!(flow.round(RATE, 0.9 * BDP), State::Cruise);
    assert_close(flow.bbr.window.cwnd, 0.85 * bound);
    assert_eq!(flow.next_state(0.9 * BDP), State::Refill);
    flow.round(RATE, 0.9 * BDP);
    assert_close(flow.bbr.window.cwnd, bound);
}

#[test]
fn a_probe_with_excessive_loss_is_followed_by_a_cautious_and_then_a_full_probe() {
    let mut flow = bounded();
    flow.round(RATE, 0.9 * BDP);
    let bound = flow.longterm();
    assert_eq!(flow.next_state(0.9 * BDP), State::Refill);
    assert_eq!(flow.next_state(0.9 * BDP), State::Up);
    assert_eq!(flow.round(RATE, 0.9 * BDP), State::Up);
    assert_eq!(flow.round(RATE, bound), State::Down, "it is where the last one was too high");
    assert_eq!(flow.round(RATE, 0.9 * BDP), State::Refill, "nothing was lost");
    assert_eq!(flow.next_state(0.9 * BDP), State::Up);
    let window = flow.bbr.window.cwnd;
    assert_eq!(flow.round(RATE, window), State::Up);
}

/// By one segment in the first round, then by two, four and eight segments.
#[test]
fn a_bound_that_limits_a_probe_grows_exponentially() {
    let mut flow = Flow::cruising();
    flow.bbr.congestion.inflight_longterm = 50_000.0;
    while flow.bbr.state != State::Up {
        flow.round(RATE, 40_000.0);
    }
    let mut bounds = alloc::vec![flow.longterm() / MSS];
    let mut last_round = flow.bbr.rounds.count;
    while bounds.len() < 5 {
        // One segment of a full window is acknowledged, one window after its transmission.
        let cwnd = flow.bbr.window.cwnd;
        flow.now += Duration::from_millis(1);
        flow.delivered += 1000;
        let sample = RateSample {
            now: flow.now,
            newly_delivered: 1000,
            delivered: flow.delivered,
            prior_delivered: flow.delivered - cwnd as u64,
            delivery_rate: Some(RATE / 2.0),
            prior_in_flight: cwnd as u64,
            in_flight: cwnd as u64 - 1000,
            ..RateSample::default()
        };
        assert_eq!(flow.feed(&sample), State::Up, "the bound limits the rate, not the path");
        if flow.bbr.rounds.count > last_round {
            last_round = flow.bbr.rounds.count;
            bounds.push(flow.longterm() / MSS);
        }
    }
    let grown: Vec<f64> = bounds.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(grown[..3], [1.0, 2.0, 4.0]);
    // The window acknowledged in a round has grown meanwhile.
    assert!((8.0..=10.0).contains(&grown[3]), "{grown:?}");
}

#[test]
fn a_larger_flight_without_losses_raises_the_bound() {
    let mut flow = bounded();
    flow.round(RATE, 2.0 * BDP);
    assert_close(flow.longterm(), 2.0 * BDP);
}

// ---- marks ----------------------------------------------------------------------------------------------

impl Flow {
    fn mark(&mut self) -> State {
        let loss = Loss { now: self.now, flight: 0, rwnd: 0, again: false, max: SeqNum(0) };
        self.bbr.on_mark(&loss, None);
        self.bbr.state
    }
}

#[test]
fn a_mark_ends_startup() {
    let mut flow = Flow::new();
    flow.round(RATE, BDP);
    flow.round(2.0 * RATE, 2.0 * BDP);
    assert_eq!(flow.mark(), State::Startup);
    assert_eq!(flow.round(2.0 * RATE, 3.0 * BDP), State::Drain { since: 3 });
    // The bandwidth-delay product at twice the rate.
    assert_close(flow.longterm(), 2.0 * BDP);
}

#[test]
fn a_mark_ends_a_probe_and_bounds_the_flight_to_its_current_size() {
    let mut flow = Flow::probing();
    flow.round(RATE, 1.25 * BDP);
    assert_eq!(flow.mark(), State::Down);
    assert_close(flow.longterm(), 1.25 * BDP);
    // One response per probe; data sent before the mark arrived do not raise the bound.
    flow.mark();
    flow.round(RATE, 1.5 * BDP);
    assert_close(flow.longterm(), 1.25 * BDP);
    flow.round(RATE, 1.5 * BDP);
    assert_close(flow.longterm(), 1.5 * BDP);
    // An application-limited probe sets no bound.
    let mut flow = Flow::probing();
    let sample = RateSample { application_limited: true, ..flow.sample(RATE, BDP) };
    flow.feed(&sample);
    assert_eq!((flow.mark(), flow.longterm()), (State::Down, f64::INFINITY));
}

#[test]
fn a_round_with_a_mark_reduces_rate_and_window_like_losses() {
    let mut flow = Flow::cruising();
    flow.round(0.95 * RATE, BDP);
    let cwnd = flow.bbr.window.cwnd;
    assert_eq!(flow.mark(), State::Cruise);
    flow.round(0.95 * RATE, BDP);
    assert_close(flow.bbr.bandwidth, 0.95 * RATE);
    assert_close(flow.bbr.window.cwnd, 0.7 * cwnd);
}

// ---- ProbeRTT and idle times ----------------------------------------------------------------------------

/// Cruising, just before ProbeRTT is due.
fn before_probe_rtt() -> Flow {
    let mut flow = Flow::cruising();
    // From here on, no round-trip time is a new minimum.
    flow.rtt = Duration::from_nanos(flow.rtt.as_nanos() + 1_000);
    flow.now += Duration::from_secs(5) - RTT;
    assert_ne!(flow.round(RATE, BDP), State::ProbeRtt, "exactly five seconds");
    flow
}

#[test]
fn probe_rtt_keeps_half_a_bdp_in_flight_for_200_ms_and_a_round() {
    let mut flow = before_probe_rtt();
    let cwnd = flow.bbr.window.cwnd;
    assert_eq!(flow.round(RATE, BDP), State::ProbeRtt);
    assert_eq!(flow.demand, Demand::Limited);
    let half = flow.bbr.window.cwnd;
    assert!((half - 0.5 * BDP).abs() < 1.0, "{half}");
    assert_close(flow.pacing_rate(), 0.99 * RATE);
    // The duration counts from the time at which the flight is small enough.
    let reached = flow.now + RTT;
    while flow.round(RATE / 2.0, half) == State::ProbeRtt {
        assert!(flow.now.since(reached) <= Duration::from_millis(200));
    }
    assert_eq!(flow.now.since(reached), Duration::from_millis(300));
    assert_eq!(flow.bbr.state, State::Cruise);
    assert!(flow.bbr.window.cwnd >= cwnd - 1.0);
}

#[test]
fn probe_rtt_detects_a_longer_path() {
    let mut flow = before_probe_rtt();
    let long = RTT + Duration::from_millis(20);
    for _ in 0..60 {
        let sample = RateSample { rtt: Some(long), ..flow.sample(RATE, 0.4 * BDP) };
        flow.feed(&sample);
    }
    assert_eq!(flow.bbr.min_rtt.map(|min_rtt| min_rtt.rtt), Some(long), "after ten seconds");
}

#[test]
fn probe_rtt_returns_to_startup_if_the_pipe_was_never_full() {
    let mut flow = Flow::new();
    flow.now += Duration::from_secs(5);
    flow.rtt += RTT;
    assert_eq!(flow.round(RATE / 10.0, 4000.0), State::ProbeRtt);
    assert_eq!(flow.next_state(4000.0), State::Startup);
}

#[test]
fn after_an_idle_period_the_rate_is_the_bandwidth_and_probe_rtt_is_skipped() {
    let mut flow = Flow::full();
    flow.next_state(2.0 * BDP);
    let idle = Duration::from_secs(6);
    flow.now += idle;
    let sending = Sending { now: flow.now, idle, application_limited: true };
    assert_close(flow.pacing_rate(), 0.9 * 0.99 * RATE);
    flow.bbr.on_flight(&sending);
    assert_close(flow.pacing_rate(), 0.99 * RATE);
    assert_ne!(flow.round(RATE, BDP), State::ProbeRtt);
    assert_ne!(flow.round(RATE, BDP), State::ProbeRtt);
}

/// With a bandwidth-delay product of one segment, the window holds the three quanta of two segments each that offload
/// may delay; under losses it falls to the minimum of four segments.
#[test]
fn small_windows_are_whole_quanta() {
    let mut flow = Flow::new();
    while flow.round(RATE / 100.0, 1000.0) != State::Refill {}
    assert_close(flow.bbr.window.cwnd, 6.0 * MSS);
    for _ in 0..40 {
        flow.lose(1000, 1000.0);
        flow.round(RATE / 100.0, 1000.0);
    }
    assert_close(flow.bbr.window.cwnd, 4.0 * MSS);
}
