//! CUBIC (RFC 9438), with the integer arithmetic and conventions of Linux.

use alloc::boxed::Box;

use lasthop_base::{Duration, Time};

use super::hystart::HyStart;
use super::{AckInfo, Chosen, Control, Controller, Loss, RttInfo, SegmentWindow, Sending, Window};
use crate::tcp::settings::Settings;

pub(super) const CONTROL: Control = Control {
    exits_slow_start: true,
    linux: Some("cubic"),
    ..Control::new("cubic", "CUBIC", "CUBIC (RFC 9438, as in Linux), with HyStart", |settings, _| {
        Chosen::Cubic(Box::new(Cubic::new(settings)))
    })
};

/// Multiplicative decrease factor 0.7, in units of 1/1024.
const BETA: u64 = 717;
const BETA_SCALE: u64 = 1024;
/// C = 0.4 segments per cubic second, in units of 1/1024.
const CUBE_RTT_SCALE: u64 = 410;
/// Cubic time units per segment.
const CUBE_FACTOR: u64 = (1 << 40) / CUBE_RTT_SCALE;
/// Time unit: 1/1024 s.
const UNITS_PER_SECOND: u64 = 1024;
/// Acknowledged segments per segment of Reno-friendly growth, in eighths of cwnd: 8 (1 + β) / 3 (1 - β) (RFC
/// 9438 section 4.3).
const RENO_SHARE: u64 = 15;
/// Minimum interval between computations of the curve while the window is constant.
const LEAST_INTERVAL: Duration = Duration::from_nanos(1_000_000_000 / 32);

/// CUBIC: the window is a cubic function of the time since the last loss.
///
/// Where Linux differs from RFC 9438, this follows Linux: the Reno-friendly window keeps its slope beyond the
/// last maximum (the RFC raises it to one segment per round trip), and time counts from the first
/// acknowledgement after the loss, plus the minimum round-trip time.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Cubic {
    window: SegmentWindow,
    hystart: HyStart,
    curve: Curve,
    delay_min: Option<Duration>,
}

/// State of the cubic curve. Windows are in segments.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// The window at the last loss.
    last_max: u32,
    /// Window and time of the last computation.
    last_cwnd: u32,
    last_time: Time,
    /// Acknowledged segments per increase.
    per: u32,
    /// Window at the plateau (W_max), and the time K from the start of the epoch to the plateau, in time
    /// units.
    origin: u32,
    k: u64,
    /// Start of the epoch; `None` until the first acknowledgement after a loss.
    epoch: Option<Time>,
    /// Acknowledged segments since the Reno-friendly window last grew, and that window.
    acked: u32,
    reno: u32,
}

impl Cubic {
    /// A controller for a connection with these settings.
    pub(super) fn new(settings: &Settings) -> Cubic {
        Cubic {
            window: SegmentWindow::new(settings),
            hystart: HyStart::new(settings.slow_start_exit, settings.pacing, settings.iss),
            curve: Curve::default(),
            delay_min: None,
        }
    }

    fn in_use(&self, loss: &Loss) -> u32 {
        (f64::from(loss.flight) / self.window.mss()) as u32
    }

    /// Resets the state after a timeout.
    fn reset(&mut self, loss: &Loss) {
        self.curve = Curve::default();
        self.delay_min = None;
        self.hystart.restart(loss.now, loss.max);
        self.window.reset();
    }
}

impl Curve {
    /// Computes the number of acknowledged segments per segment of growth.
    fn update(&mut self, now: Time, cwnd: u32, acked: u32, delay_min: Duration) {
        self.acked += acked;
        if self.last_cwnd == cwnd && now.since(self.last_time) <= LEAST_INTERVAL {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = now;
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(now, cwnd, acked),
        };
        self.per = self.follow(now.since(epoch) + delay_min, cwnd);
        self.befriend_reno(cwnd);
        // At most one segment per two acknowledged.
        self.per = self.per.max(2);
    }

    fn begin(&mut self, now: Time, cwnd: u32, acked: u32) -> Time {
        self.epoch = Some(now);
        self.acked = acked;
        self.reno = cwnd;
        if self.last_max <= cwnd {
            (self.k, self.origin) = (0, cwnd);
        } else {
            self.k = cube_root(CUBE_FACTOR * u64::from(self.last_max - cwnd));
            self.origin = self.last_max;
        }
        now
    }

    /// RFC 9438 section 4.2: W(t + RTT) = C (t - K)³ + W_max.
    fn follow(&self, elapsed: Duration, cwnd: u32) -> u32 {
        let t = (u128::from(elapsed.as_nanos()) * u128::from(UNITS_PER_SECOND) / 1_000_000_000) as u64;
        let offset = u128::from(t.abs_diff(self.k));
        let delta = (u128::from(CUBE_RTT_SCALE) * offset * offset * offset) >> 40;
        let delta = u32::try_from(delta).unwrap_or(u32::MAX);
        let target =
            if t < self.k { self.origin.saturating_sub(delta) } else { self.origin.saturating_add(delta) };
        let per = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        // Before the first loss, at least 5 % per round trip.
        if self.last_max == 0 { per.min(20) } else { per }
    }

    /// RFC 9438 section 4.3: at least as fast as Reno with the same decrease factor.
    fn befriend_reno(&mut self, cwnd: u32) {
        let per = ((u64::from(cwnd) * RENO_SHARE) >> 3) as u32;
        while self.acked > per {
            self.acked -= per;
            self.reno += 1;
        }
        if self.reno > cwnd {
            self.per = self.per.min(cwnd / (self.reno - cwnd));
        }
    }

    /// RFC 9438 sections 4.6 and 4.7: ssthresh after a loss, with fast convergence.
    fn threshold(&mut self, cwnd: u32, factor: Option<f64>) -> u32 {
        self.epoch = None;
        let wide = u64::from(cwnd);
        let converges = cwnd < self.last_max;
        self.last_max = if converges { (wide * (BETA_SCALE + BETA) / (2 * BETA_SCALE)) as u32 } else { cwnd };
        factor.map_or((wide * BETA / BETA_SCALE) as u32, |factor| (f64::from(cwnd) * factor) as u32)
    }
}

/// The cube root, rounded down.
fn cube_root(a: u64) -> u64 {
    let mut root = 0_u64;
    for bit in (0..22).rev() {
        let candidate = root | (1 << bit);
        if candidate.checked_pow(3).is_some_and(|cube| cube <= a) {
            root = candidate;
        }
    }
    root
}

impl Controller for Cubic {
    fn window(&self) -> &Window {
        self.window.bytes()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.window.bytes_mut()
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        let mut acked = self.window.acked_segments(ack.acked);
        if self.window.in_slow_start() {
            acked = self.hystart.growth(acked);
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
            let cwnd = self.window.cwnd();
            self.curve.update(ack.now, cwnd, acked, self.delay_min.unwrap_or_default());
            self.window.avoid(self.curve.per, acked);
        }
    }

    fn on_rtt(&mut self, info: &RttInfo) -> bool {
        // Samples within a second after a loss may be inflated by a draining queue.
        if self.curve.epoch.is_some_and(|epoch| info.now.since(epoch) < Duration::from_secs(1)) {
            return true;
        }
        self.delay_min = Some(self.delay_min.map_or(info.rtt, |least| least.min(info.rtt)));
        if self.window.in_slow_start() && self.hystart.ends_slow_start(info, self.window.cwnd()) {
            let window = self.window_mut();
            window.ssthresh = window.cwnd;
        }
        true
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        let threshold = self.curve.threshold(self.in_use(loss), factor);
        self.window.reset();
        self.window.set_ssthresh(threshold);
        self.window.set_cwnd(self.window.ssthresh());
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        // RFC 5681 section 3.1: ssthresh is kept at a repeated timeout.
        if !loss.again {
            let threshold = self.curve.threshold(self.in_use(loss), factor);
            self.window.set_ssthresh(threshold);
        }
        self.reset(loss);
        self.window.set_cwnd(1);
    }

    /// RFC 9438 section 5.8: application-limited periods do not count.
    fn on_flight(&mut self, sending: &Sending) {
        self.curve.epoch = self.curve.epoch.map(|epoch| (epoch + sending.idle).min(sending.now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SeqNum;
    use crate::tcp::settings::{InitialThreshold, InitialWindow};

    const MSS: u32 = 1000;

    /// A sender limited by its window, which receives a window of acknowledgements every `rtt`.
    struct Flow {
        cubic: Cubic,
        now: Time,
        rtt: Duration,
        una: u32,
    }

    impl Flow {
        fn new(rtt: Duration, segments: u32) -> Flow {
            let header = Settings::default().header;
            let packet_size = header + lasthop_base::Bytes(u64::from(MSS));
            let settings = Settings {
                packet_size,
                initial_window: InitialWindow::Segments(segments),
                initial_ssthresh: InitialThreshold::Segments(segments),
                ..Settings::default()
            };
            Flow { cubic: Cubic::new(&settings), now: Time::ZERO, rtt, una: 0 }
        }

        fn segments(&self) -> f64 {
            self.cubic.window().cwnd / f64::from(MSS)
        }

        /// Acknowledges one segment and advances time by its share of a round trip.
        fn ack(&mut self) {
            let share = self.rtt.as_secs_f64() / self.segments();
            self.now += Duration::from_secs_f64(share);
            self.una += 1;
            let (una, max) = (SeqNum(self.una), SeqNum(self.una + self.segments() as u32));
            self.cubic.on_rtt(&RttInfo { now: self.now, rtt: self.rtt, una, max });
            let ack = AckInfo { now: self.now, acked: MSS, una, max, undisturbed: true };
            self.cubic.on_ack(&ack);
        }

        fn lose(&mut self) {
            let flight = self.cubic.window().cwnd as u32;
            let loss = Loss { now: self.now, flight, rwnd: u32::MAX, again: false, max: SeqNum(self.una) };
            self.cubic.on_loss(&loss, None);
        }
    }

    /// A loss resets the count of acknowledged segments towards the next increase (Linux
    /// `tcp_init_cwnd_reduction`).
    #[test]
    fn a_loss_forgets_the_count_towards_an_increase() {
        let mut flow = Flow::new(Duration::from_millis(100), 4);
        flow.ack();
        flow.lose();
        assert!((flow.segments() - 2.0).abs() < 0.01);
        // At most one segment for every two acknowledged.
        flow.ack();
        assert!((flow.segments() - 2.0).abs() < 0.01);
    }

    /// RFC 9438 section 4.2: W(t) = C (t - K)³ + W_max, with K the cube root of W_max (1 - β) / C. The window
    /// deviates from the curve by at most one round trip of growth plus two segments of rounding, or is the
    /// Reno-friendly window.
    #[test]
    fn the_window_follows_the_curve() {
        for rtt in [50_u64, 100, 200, 400] {
            let rtt = Duration::from_millis(rtt);
            let mut flow = Flow::new(rtt, 1_000);
            flow.lose();
            let k = libm::cbrt(1_000.0 * 0.3 / 0.4);
            let begin = flow.now;
            while flow.now < begin + Duration::from_secs(14) {
                flow.ack();
                let t = flow.now.since(begin).as_secs_f64();
                let at = |t: f64| 0.4 * (t - k) * (t - k) * (t - k) + 1_000.0;
                let reno = 700.0 + 3.0 * 0.3 / 1.7 * t / rtt.as_secs_f64();
                let (least, most) = (at(t - rtt.as_secs_f64()), at(t + rtt.as_secs_f64()).max(reno));
                let found = flow.segments();
                // Rounding errors accumulate to one segment over more than 280 round trips.
                assert!(found > least - 2.0 && found < most + 2.0, "{found} at {t} s: {least}..{most}");
            }
        }
    }

    /// The average window, when every `per_loss`-th segment is lost for long and the first loss came at
    /// `segments`.
    fn average_window(rtt: Duration, per_loss: u64, segments: u32) -> f64 {
        let mut flow = Flow::new(rtt, segments);
        flow.lose();
        let (mut acked, mut losses, mut begin) = (0_u64, 0, flow.now);
        while losses < 60 {
            flow.ack();
            acked += 1;
            if acked.is_multiple_of(per_loss) {
                flow.lose();
                losses += 1;
                // Twenty cycles to reach the steady state.
                if losses == 20 {
                    begin = flow.now;
                }
            }
        }
        (40 * per_loss) as f64 / (flow.now.since(begin).as_secs_f64() / rtt.as_secs_f64())
    }

    /// RFC 9438, tables 1 and 2: the larger of the cubic and the Reno-friendly window. In the integer
    /// arithmetic of Linux, the curve is flat for more than a second around its plateau, and every window
    /// whose cycle ends there is stable: starting from below and from above converges to the ends of that
    /// range, with the RFC's value inside.
    #[test]
    fn deterministic_losses_give_the_windows_of_the_rfc() {
        for (milliseconds, per_loss, expected) in
            [(100, 10_000, 187.0), (100, 100_000, 1_054.0), (10, 10_000, 120.0)]
        {
            let rtt = Duration::from_millis(milliseconds);
            let [below, above] =
                [0.5, 2.0].map(|share| average_window(rtt, per_loss, (share * expected) as u32));
            let middle = (below + above) / 2.0;
            let message = alloc::format!("{below} to {above} for {expected} at {milliseconds} ms");
            assert!((middle / expected - 1.0).abs() < 0.05, "{message}");
            assert!(below > 0.84 * expected && above < 1.17 * expected, "{message}");
        }
    }

    /// With frequent losses the window is the Reno-friendly one: 1.2 / sqrt(p) (RFC 9438 section 5.1).
    /// Windows are whole segments here: a loss rounds down, growth waits for a whole segment, follows the
    /// Reno-friendly window one round trip later, and is computed at most 32 times per second. Therefore the
    /// average is up to three segments lower, 7 % of 38.
    #[test]
    fn frequent_losses_give_renos_window_in_whole_segments() {
        let rtt = Duration::from_millis(10);
        for (per_loss, expected) in [(300, 20.8), (1_000, 37.9), (3_000, 65.7)] {
            for share in [0.5, 1.0, 2.0] {
                let found = average_window(rtt, per_loss, (share * expected) as u32);
                assert!(found <= expected && found > expected - 3.0, "{found} for {expected}");
            }
        }
    }

    /// Idle time does not count (RFC 9438 section 5.8): growth continues from where it stopped.
    #[test]
    fn an_idle_time_moves_the_curve() {
        let [mut idle, mut busy] = [0, 1].map(|_| Flow::new(Duration::from_millis(100), 200));
        for flow in [&mut idle, &mut busy] {
            flow.lose();
            (0..500).for_each(|_| flow.ack());
        }
        let pause = Duration::from_secs(20);
        idle.now += pause;
        idle.cubic.on_flight(&Sending { now: idle.now, idle: pause, application_limited: false });
        for flow in [&mut idle, &mut busy] {
            (0..2_000).for_each(|_| flow.ack());
        }
        assert_eq!(idle.segments(), busy.segments());
    }

    /// However far the curve is ahead, the window grows by at most one segment for every two acknowledged.
    #[test]
    fn the_window_grows_by_half_of_what_is_acknowledged() {
        let mut flow = Flow::new(Duration::from_millis(100), 100);
        flow.lose();
        flow.ack();
        flow.now += Duration::from_secs(60);
        let before = flow.segments();
        (0..100).for_each(|_| flow.ack());
        let grown = flow.segments() - before;
        assert!((49.0..=51.0).contains(&grown), "{grown}");
    }

    #[test]
    fn cube_roots_are_rounded_down() {
        for (a, root) in [(0, 0), (1, 1), (7, 1), (8, 2), (26, 2), (27, 3), (u64::MAX >> 1, 2_097_151)] {
            assert_eq!(cube_root(a), root);
        }
    }
}
