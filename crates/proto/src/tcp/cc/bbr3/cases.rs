//! The example test cases of draft-ietf-ccwg-bbr, in its order, over a path of packets: 10 Mb/s and 40 ms unless a case says
//! otherwise. Bandwidth estimates are held to 2 % of the path's.

use alloc::collections::VecDeque;

use lasthop_base::{Bytes, Duration, Time};

use super::*;
use crate::packet::SeqNum;
use crate::tcp::delivery::{DeliveryRate, Snapshot};
use crate::tcp::settings::InitialWindow;

const MSS: u32 = 1000;
/// 10 Mb/s, in bytes per second.
const RATE: f64 = 1.25e6;
const RTT: Duration = Duration::from_millis(40);
const BDP: f64 = 50_000.0;

/// A segment in flight; it was lost if it never arrives.
#[derive(Clone, Copy, Debug)]
struct Sent {
    start: SeqNum,
    at: Time,
    snapshot: Snapshot,
    acked_at: Option<Time>,
}

/// A connection over a bottleneck whose queue takes everything, by segments.
struct Path {
    bbr: Bbr3,
    estimator: DeliveryRate,
    demand: Demand,
    now: Time,
    sent: VecDeque<Sent>,
    next: SeqNum,
    lost: u32,
    /// What had been sent when recovery began, and when what it repairs has arrived.
    recovery: Option<(SeqNum, Time)>,
    /// The bottleneck's rate, and when it has sent its queue.
    rate: f64,
    free_at: Time,
    rtt: Duration,
    /// Of this many segments one is lost; none if zero.
    one_lost_in: u32,
    /// Longest queue in bytes; packets beyond it are lost.
    buffer: f64,
    /// A policer: its rate, its burst, its tokens in bytes, and when it got the last of them.
    policer: Option<(f64, f64, f64, Time)>,
    /// Acknowledgements arrive together, at multiples of this time.
    batch: Duration,
    /// The rate of the application, if it has not always data, and from when on its next segment exists.
    application: Option<f64>,
    supplied_at: Time,
    departs_at: Time,
}

impl Path {
    fn new() -> Path {
        let settings = Settings {
            packet_size: Bytes(u64::from(MSS) + 40),
            initial_window: InitialWindow::Segments(10),
            ..Settings::default()
        };
        let mut path = Path {
            bbr: Bbr3::new(&settings, 1),
            estimator: DeliveryRate::default(),
            demand: Demand::Full,
            now: Time::ZERO,
            sent: VecDeque::new(),
            next: SeqNum(0),
            lost: 0,
            recovery: None,
            rate: RATE,
            free_at: Time::ZERO,
            rtt: RTT,
            one_lost_in: 0,
            buffer: f64::INFINITY,
            policer: None,
            batch: Duration::ZERO,
            application: None,
            supplied_at: Time::ZERO,
            departs_at: Time::ZERO,
        };
        let rtt = path.rtt;
        path.bbr.on_rtt(&RttInfo { now: path.now, rtt, una: SeqNum(0), max: SeqNum(0) });
        path
    }

    /// In ProbeBW, in the state `state`.
    fn at(state: State) -> Path {
        let mut path = Path::new();
        path.until(20.0, |path| path.bbr.state == state);
        path
    }

    fn segments(&self) -> u32 {
        self.sent.len() as u32
    }

    fn in_flight(&self) -> f64 {
        f64::from(self.segments() * MSS)
    }

    /// The bottleneck has another rate from now on, also for what is queued before it.
    fn set_rate(&mut self, rate: f64) {
        (self.rate, self.free_at) = (rate, self.now);
        for at in self.sent.iter_mut().filter_map(|sent| sent.acked_at.as_mut()) {
            if *at > self.now + self.rtt {
                self.free_at += Duration::from_secs_f64(f64::from(MSS) / rate);
                *at = self.free_at + self.rtt;
            }
        }
    }

    /// Sends the next segment.
    fn send(&mut self) {
        if self.sent.is_empty() {
            let idle = self.now.since(self.departs_at.min(self.now));
            let limited = self.estimator.is_application_limited();
            self.bbr.on_flight(&Sending { now: self.now, idle, application_limited: limited });
            self.estimator.restart(self.now);
        }
        if self.demand == Demand::Limited {
            self.estimator.note_application_limited(self.in_flight() as u64);
        }
        let size = f64::from(MSS);
        let queued = self.free_at.since(self.free_at.min(self.now)).as_secs_f64() * self.rate;
        let number = self.next.0 / MSS;
        let is_lost = self.one_lost_in > 0 && number.is_multiple_of(self.one_lost_in);
        let mut arrives = queued <= self.buffer && !is_lost;
        if let Some((rate, burst, tokens, at)) = &mut self.policer {
            *tokens = (*tokens + *rate * self.now.since(*at).as_secs_f64()).min(*burst);
            *at = self.now;
            arrives &= *tokens >= size;
            *tokens -= if arrives { size } else { 0.0 };
        }
        let acked_at = arrives.then(|| {
            self.free_at = self.free_at.max(self.now) + Duration::from_secs_f64(size / self.rate);
            let at = self.free_at + self.rtt;
            let batch = self.batch.as_nanos().max(1);
            Time::from_nanos(at.as_nanos().div_ceil(batch) * batch)
        });
        let snapshot = self.estimator.snapshot(self.segments() + 1, self.lost);
        self.sent.push_back(Sent { start: self.next, at: self.now, snapshot, acked_at });
        self.next += MSS;
        let pace = size / self.bbr.pacing_rate(self.rtt);
        self.departs_at = self.now.max(self.departs_at) + Duration::from_secs_f64(pace);
        if let Some(rate) = self.application {
            self.supplied_at += Duration::from_secs_f64(size / rate);
        }
    }

    /// Takes the acknowledgements that arrive now; what was sent before them and does not arrive is lost.
    fn acknowledge(&mut self) {
        let prior_in_flight = self.in_flight() as u64;
        let (mut rtt, mut lost, mut newest) = (None, alloc::vec::Vec::new(), None);
        let covered = self.sent.iter().rposition(|sent| sent.acked_at.is_some_and(|at| at <= self.now));
        for sent in self.sent.drain(..=covered.expect("an acknowledgement")) {
            let Some(_) = sent.acked_at else {
                lost.push(sent);
                continue;
            };
            self.estimator.on_delivered(self.now, MSS, sent.at, &sent.snapshot);
            rtt = Some(self.now.since(sent.at));
            newest = Some(sent);
        }
        let newest = newest.expect("a segment that arrived");
        self.recovery.take_if(|(high, repaired_at)| newest.start >= *high && self.now >= *repaired_at);
        if !lost.is_empty() && self.recovery.is_none() {
            self.recovery = Some((self.next, self.now));
            self.bbr.on_loss(&self.loss(), None);
        }
        for sent in lost {
            if let Some((high, repaired_at)) = &mut self.recovery
                && sent.start < *high
            {
                *repaired_at = self.free_at.max(self.now) + self.rtt;
            }
            self.lose(&sent);
        }
        let mut sample = RateSample {
            now: self.now,
            rtt,
            prior_in_flight,
            in_flight: self.in_flight() as u64,
            in_flight_at_sending: u64::from(newest.snapshot.in_flight * MSS),
            lost_since: u64::from((self.lost - newest.snapshot.lost) * MSS),
            in_recovery: self.recovery.is_some(),
            ..RateSample::default()
        };
        let least = self.bbr.min_rtt.map_or(self.rtt, |min_rtt| min_rtt.rtt);
        self.estimator.complete(&mut sample, least);
        self.demand = self.bbr.on_sample(&sample);
    }

    fn loss(&self) -> Loss {
        Loss { now: self.now, flight: self.in_flight() as u32, rwnd: u32::MAX, again: false, max: self.next }
    }

    fn lose(&mut self, sent: &Sent) {
        self.lost += 1;
        self.bbr.on_lost_segment(&LostSegment {
            now: self.now,
            start: sent.start,
            end: sent.start + MSS,
            in_flight_at_sending: u64::from(sent.snapshot.in_flight * MSS),
            lost_since: u64::from((self.lost - sent.snapshot.lost) * MSS),
            application_limited: sent.snapshot.application_limited,
            delivered: self.estimator.delivered(),
        });
    }

    /// The next event: an acknowledgement, or the departure of a segment.
    fn step(&mut self) {
        let acked_at = self.sent.iter().find_map(|sent| sent.acked_at).unwrap_or(Time::NEVER);
        let has_room = self.in_flight() + f64::from(MSS) <= self.bbr.window.cwnd || self.sent.is_empty();
        let departs_at = if has_room { self.departs_at.max(self.now) } else { Time::NEVER };
        let supplied_at = if self.application.is_some() { self.supplied_at } else { Time::ZERO };
        if has_room && supplied_at > departs_at {
            self.estimator.note_application_limited(self.in_flight() as u64);
        }
        let sends_at = if has_room { departs_at.max(supplied_at) } else { Time::NEVER };
        self.now = acked_at.min(sends_at);
        if acked_at <= sends_at { self.acknowledge() } else { self.send() }
    }

    /// Steps until `holds`, within so many seconds; returns how long it took.
    fn until(&mut self, seconds: f64, holds: impl Fn(&Path) -> bool) -> f64 {
        let began = self.now;
        while !holds(self) {
            self.step();
            let passed = self.now.since(began).as_secs_f64();
            let (state, rate) = (self.bbr.state, self.bbr.max_bandwidth());
            assert!(
                passed < seconds,
                "not within {seconds} s: {state:?}, {rate} B/s, {} B",
                self.in_flight()
            );
        }
        self.now.since(began).as_secs_f64()
    }

    /// Steps for so many seconds; returns the rate of deliveries in bytes per second, and the share of segments lost.
    fn pass(&mut self, seconds: f64) -> (f64, f64) {
        let (delivered, lost) = (self.estimator.delivered(), self.lost);
        let end = self.now + Duration::from_secs_f64(seconds);
        self.until(seconds + 1.0, |path| path.now >= end);
        let delivered = (self.estimator.delivered() - delivered) as f64;
        let lost = f64::from((self.lost - lost) * MSS);
        (delivered / seconds, lost / (delivered + lost))
    }

    /// Steps until the state changes; returns the new one.
    fn next_state(&mut self, seconds: f64) -> State {
        let before = core::mem::discriminant(&self.bbr.state);
        self.until(seconds, |path| core::mem::discriminant(&path.bbr.state) != before);
        self.bbr.state
    }

    /// The application supplies so many bytes per second from now on.
    fn limit_application(&mut self, rate: f64) {
        self.application = Some(rate);
        self.supplied_at = self.now;
    }

    fn longterm(&self) -> f64 {
        self.bbr.congestion.inflight_longterm
    }

    #[track_caller]
    fn assert_bandwidth(&self, expected: f64) {
        let found = self.bbr.max_bandwidth();
        assert!((found / expected - 1.0).abs() < 0.02, "{found} B/s, expected {expected}");
    }
}

#[test]
fn startup_ends_on_a_plateau_of_bandwidth() {
    let mut path = Path::new();
    path.until(5.0, |path| path.bbr.full_pipe.rounds > 0);
    assert_eq!((path.bbr.state, path.bbr.full_pipe.now), (State::Startup, false));
    assert!(matches!(path.next_state(5.0), State::Drain { .. }));
    assert!(path.bbr.full_pipe.rounds == 3 && path.bbr.full_pipe.now && path.bbr.full_pipe.reached);
    path.assert_bandwidth(RATE);
}

#[test]
fn startup_ends_on_losses_when_the_application_limits_it() {
    let mut path = Path { rate: 10.0 * RATE, ..Path::new() };
    path.limit_application(5.0 * RATE);
    path.pass(2.0);
    assert_eq!(path.bbr.state, State::Startup);
    // 12 of 250 segments of a round trip, each by itself. There is no queue to drain.
    path.one_lost_in = 20;
    assert!(path.next_state(0.5).is_probe_bw());
    assert!(path.bbr.full_pipe.now && path.bbr.full_pipe.reached);
}

#[test]
fn drain_ends_by_the_data_in_flight() {
    let mut path = Path::new();
    path.until(5.0, |path| matches!(path.bbr.state, State::Drain { .. }));
    assert_eq!(path.bbr.state.pacing_gain(), 0.5);
    let rounds = path.bbr.rounds.count;
    assert!(path.in_flight() > path.bbr.inflight(path.bbr.bandwidth));
    assert!(path.next_state(1.0).is_probe_bw());
    assert!(path.bbr.rounds.count <= rounds + 3 && path.in_flight() <= path.bbr.inflight(path.bbr.bandwidth));
}

/// The draft decreases the bandwidth by 10 %, with which a pacing gain of 0.5 drains the queue within three rounds.
#[test]
fn drain_ends_by_time() {
    let mut path = Path::new();
    path.until(5.0, |path| matches!(path.bbr.state, State::Drain { .. }));
    path.set_rate(0.4 * RATE);
    let rounds = path.bbr.rounds.count;
    assert!(path.next_state(1.0).is_probe_bw());
    assert_eq!(path.bbr.rounds.count, rounds + 4, "more than three rounds");
    assert!(path.in_flight() > path.bbr.inflight(path.bbr.bandwidth));
}

#[test]
fn a_probe_ends_on_a_plateau_of_bandwidth() {
    let mut path = Path::at(State::Up);
    assert_eq!(path.next_state(1.0), State::Down);
    assert!(path.bbr.full_pipe.rounds == 3 && path.bbr.full_pipe.now);
    path.assert_bandwidth(RATE);
}

/// As the pseudocode of the draft has it, an application-limited probe sets no long-term bound.
#[test]
fn a_probe_ends_on_losses_when_the_application_limits_it() {
    let mut path = Path::at(State::Up);
    path.limit_application(0.9 * RATE);
    path.one_lost_in = 10;
    // There is no queue to drain.
    assert_eq!(path.next_state(0.2), State::Cruise);
    assert!(path.bbr.probe.was_too_high && path.longterm().is_infinite());
}

/// For as long as ProbeRTT is not due, which needs no data.
#[test]
fn neither_startup_nor_a_probe_ends_when_the_application_limits_it() {
    for mut path in [Path::new(), Path::at(State::Up)] {
        let state = path.bbr.state;
        path.limit_application(RATE / 2.0);
        path.pass(1.5);
        assert_eq!(path.bbr.state, state);
    }
}

#[test]
fn down_ends_by_the_data_in_flight() {
    let mut path = Path::at(State::Up);
    assert_eq!(path.next_state(1.0), State::Down);
    assert_eq!(path.bbr.state.pacing_gain(), 0.9);
    assert_eq!(path.next_state(2.0), State::Cruise);
    let most = path.bbr.inflight(path.bbr.max_bandwidth()).min(path.bbr.inflight_with_headroom());
    assert!(path.in_flight() <= most);
}

#[test]
fn down_ends_after_its_longest_time() {
    // More segments than rounds count, so that the time comes first.
    let rate = 2.0 * RATE;
    let mut path = Path { rate, ..Path::new() };
    path.until(20.0, |path| path.bbr.state == State::Up);
    assert_eq!(path.next_state(1.0), State::Down);
    path.set_rate(0.9 * rate);
    // ProbeRTT is not due in time.
    path.bbr.min_rtt = path.bbr.min_rtt.map(|min_rtt| MinRtt::new(path.now, min_rtt.rtt));
    let wait = path.bbr.probe.wait.as_secs_f64();
    let began = path.now;
    assert_eq!(path.next_state(4.0), State::Refill);
    let (passed, rounds) = (path.now.since(began).as_secs_f64(), path.bbr.probe.rounds);
    assert!(passed > wait && rounds < 63, "{passed} s of {wait} s, {rounds} rounds");
}

#[test]
fn probe_rtt_is_entered_and_left() {
    let mut path = Path::at(State::Cruise);
    path.until(8.0, |path| path.bbr.state == State::ProbeRtt);
    assert_eq!(path.bbr.state.cwnd_gain(), 0.5);
    let began = path.now;
    assert!(path.next_state(1.0).is_probe_bw());
    let lasted = path.now.since(began).as_secs_f64();
    assert!((0.2..0.4).contains(&lasted), "{lasted}");
    let (rate, _) = path.pass(2.0);
    assert!(rate > 0.97 * RATE, "{rate}");
}

#[test]
fn an_idle_application_replaces_probe_rtt() {
    let mut path = Path::at(State::Cruise);
    path.limit_application(1e9);
    path.supplied_at = path.now + Duration::from_secs(6);
    path.until(7.0, |path| path.segments() == 0);
    path.until(7.0, |path| path.segments() == 1);
    assert!(path.bbr.idle_restart);
    let until = path.now + Duration::from_secs(1);
    path.until(2.0, |path| {
        assert_ne!(path.bbr.state, State::ProbeRtt);
        path.now >= until
    });
}

#[test]
fn startup_finds_the_bandwidth_of_a_path_that_aggregates() {
    let mut path = Path { batch: Duration::from_millis(20), ..Path::new() };
    path.until(5.0, |path| path.bbr.full_pipe.reached);
    assert!(path.bbr.aggregation.extra.get() > 0.2 * BDP && path.bbr.window.cwnd > 2.0 * BDP);
    path.assert_bandwidth(RATE);
}

#[test]
fn cruising_fills_a_path_that_aggregates() {
    let mut path = Path::at(State::Cruise);
    path.batch = Duration::from_millis(20);
    let (rate, _) = path.pass(2.0);
    assert!(path.bbr.aggregation.extra.get() > 0.2 * BDP && path.bbr.window.cwnd > 2.2 * BDP);
    // The pacing margin takes 1 %.
    assert!(rate > 0.97 * RATE, "{rate}");
}

/// The three quanta of two segments hold the window above the minimum of four, which `small_windows_are_whole_quanta` reaches.
#[test]
fn four_segments_sustain_less_than_one() {
    let mut path = Path { rate: 10_000.0, ..Path::new() };
    path.until(60.0, |path| path.bbr.state == State::Cruise);
    path.assert_bandwidth(10_000.0);
    let (rate, _) = path.pass(5.0);
    assert!(path.bbr.window.cwnd >= 4.0 * f64::from(MSS) && rate > 0.97 * 10_000.0, "{rate}");
    let pace = path.bbr.pacing_rate(RTT) / path.bbr.state.pacing_gain();
    assert!((pace / (0.99 * 10_000.0) - 1.0).abs() < 0.02, "{pace}");
}

#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut path = Path::at(State::Cruise);
    path.set_rate(10.0 * RATE);
    path.until(5.0, |path| path.bbr.state == State::Up);
    let rounds = path.bbr.rounds.count;
    path.until(5.0, |path| path.bbr.max_bandwidth() > 0.98 * path.rate);
    let rounds = path.bbr.rounds.count - rounds;
    // A factor of ten is eleven rounds of 25 %, less the margin of pacing.
    assert!((10..=18).contains(&rounds), "{rounds}");
}

#[test]
fn a_tenth_of_the_bandwidth_is_adapted_to() {
    let mut path = Path { rate: 10.0 * RATE, buffer: 4.0 * BDP, ..Path::new() };
    path.until(20.0, |path| path.bbr.state == State::Cruise);
    path.set_rate(RATE);
    // Until queue and path hold what is in flight, and nothing more is lost.
    path.until(1.5, |path| path.bbr.congestion.bandwidth_shortterm < 0.3 * 10.0 * RATE);
    path.until(20.0, |path| path.bbr.max_bandwidth() < 1.02 * RATE);
    path.assert_bandwidth(RATE);
}

#[test]
fn a_policer_is_conformed_to() {
    let mut path = Path::at(State::Cruise);
    path.policer = Some((RATE / 2.0, BDP / 2.0, BDP / 2.0, path.now));
    path.until(1.0, |path| path.bbr.congestion.bandwidth_shortterm.is_finite());
    assert!(path.bbr.congestion.inflight_shortterm.is_finite());
    path.pass(10.0);
    let (rate, lost) = path.pass(20.0);
    assert!(rate > 0.9 * RATE / 2.0 && lost < 0.05, "{rate} B/s, {lost} lost");
}

/// A spurious recovery or timeout ends a probe; the undo restores the bounds and probes again, also if a timeout came within the
/// recovery.
#[test]
fn a_spurious_recovery_or_timeout_is_undone() {
    for (timeout, another) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut path = Path::at(State::Up);
        let before = path.bbr.window;
        let loss = path.loss();
        if timeout {
            path.bbr.on_timeout(&loss, None)
        } else {
            path.bbr.on_loss(&loss, None)
        }
        for late in [0, 2, 4].map(|place| path.sent[place]) {
            path.lose(&late);
        }
        if another {
            path.bbr.on_timeout(&Loss { again: true, ..loss }, None);
        }
        assert_eq!(path.bbr.state, State::Down);
        assert!(path.longterm().is_finite());
        path.bbr.on_undo(&before);
        assert!(path.longterm().is_infinite() && path.bbr.congestion.inflight_shortterm.is_infinite());
        assert_eq!((path.bbr.state, path.next_state(0.2)), (State::Refill, State::Up));
    }
}

#[test]
fn probe_rtt_in_startup_leads_back_to_it() {
    let mut path = Path::new();
    path.limit_application(RATE / 10.0);
    path.until(6.0, |path| path.bbr.state == State::ProbeRtt);
    assert_eq!(path.next_state(1.0), State::Startup);
}

#[test]
fn losses_end_a_probe_that_has_a_bound() {
    let mut path = Path::at(State::Up);
    path.one_lost_in = 20;
    assert_eq!(path.next_state(0.2), State::Down);
    assert!(path.longterm().is_finite());
    path.one_lost_in = 0;
    path.until(5.0, |path| path.bbr.state == State::Up);
    path.one_lost_in = 10;
    let (bound, rounds) = (path.longterm(), path.bbr.rounds.count);
    assert_eq!(path.next_state(0.2), State::Down);
    assert!(path.bbr.rounds.count <= rounds + 2);
    assert!(path.longterm() <= bound && path.longterm() >= 0.7 * path.bbr.target_inflight());
}

/// The maximum of a cycle has seen full rates before Refill, so it is cleared once all samples are limited: none of them counts.
#[test]
fn an_application_that_limits_refill_does_not_lower_the_bandwidth() {
    let mut path = Path::at(State::Refill);
    let bandwidth = path.bbr.max_bandwidth();
    path.limit_application(RATE / 4.0);
    assert_eq!(path.next_state(0.3), State::Up);
    assert_eq!(path.bbr.max_bandwidth(), bandwidth);
    path.pass(1.0);
    assert_eq!((path.bbr.state, path.bbr.max_bandwidth()), (State::Up, bandwidth));
    path.bbr.max_bandwidth = [bandwidth, 0.0];
    path.pass(0.5);
    assert_eq!(path.bbr.max_bandwidth, [bandwidth, 0.0]);
    path.application = None;
    assert_eq!(path.next_state(1.0), State::Down);
    path.assert_bandwidth(RATE);
}
