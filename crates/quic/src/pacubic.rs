//! PACUBIC: CUBIC (RFC 8312) that answers a loss before an agent on the way as a connection to the agent would.
//!
//! *What it does.* If r is the share of the round trip that is before the agent, a loss there reduces the window by
//! r of what CUBIC reduces it by, and the window grows back as fast as it would in a round trip of that length: β' = 1 - r (1 - β)
//! and C' = C / r³ until the next loss. With r = 1, it is CUBIC.
//! *Source.* The authors' code of Sidekick (Yuan and others, NSDI 2024), a branch of quiche: congestion_event and on_packet_acked in
//! recovery/cubic.rs.
//! *Differences.* There is no HyStart, and a window in recovery is silent, as quinn is, where quiche has proportional rate reduction.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use super::proto::RttEstimator;
use super::proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::near_share::NearShare;

const BETA: f64 = 0.7;
const C: f64 = 0.4;
/// The growth of Reno that reduces as little (RFC 9438 section 4.3), which the authors leave at that of CUBIC.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Packets in the first window (RFC 9002 section 7.2), and in the smallest.
const INITIAL: f64 = 10.0;
const LEAST: f64 = 2.0;

/// Makes controllers.
pub(crate) struct PacubicConfig {
    pub(crate) near_share: Arc<NearShare>,
}

impl ControllerFactory for PacubicConfig {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mtu = f64::from(current_mtu);
        Box::new(Pacubic {
            near_share: Arc::clone(&self.near_share),
            mtu,
            window: INITIAL,
            threshold: f64::INFINITY,
            recovery: None,
            epoch: Epoch { since: None, max: 0.0, k: 0.0, c: C, reno: 0.0, alpha: 1.0 },
        })
    }
}

/// Growth since the last reduction.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Its first acknowledgement or reduction.
    since: Option<Instant>,
    /// The window to which the function returns, after `k` seconds.
    max: f64,
    k: f64,
    c: f64,
    /// The window that Reno would have.
    reno: f64,
    /// What that grows by in a round trip.
    alpha: f64,
}

impl Epoch {
    fn window(&self, seconds: f64) -> f64 {
        self.c * (seconds - self.k).powi(3) + self.max
    }
}

/// Windows are in packets.
#[derive(Clone, Debug)]
struct Pacubic {
    near_share: Arc<NearShare>,
    mtu: f64,
    window: f64,
    threshold: f64,
    /// When the window was last reduced.
    recovery: Option<Instant>,
    epoch: Epoch,
}

impl Pacubic {
    fn is_in_recovery(&self, sent: Instant) -> bool {
        self.recovery.is_some_and(|recovery| sent <= recovery)
    }
}

impl Controller for Pacubic {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        if app_limited || self.is_in_recovery(sent) {
            return;
        }
        let acked = bytes as f64 / self.mtu;
        if self.window < self.threshold {
            self.window += acked;
            return;
        }
        let (window, epoch) = (self.window, &mut self.epoch);
        let since = *epoch.since.get_or_insert(now);
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        epoch.reno += epoch.alpha * acked / window;
        if epoch.reno >= epoch.max {
            epoch.alpha = 1.0;
        }
        self.window = if epoch.window(seconds) < epoch.reno {
            window.max(epoch.reno)
        } else {
            let target = epoch.window(seconds + rtt.min().as_secs_f64());
            window + (target.clamp(window, 1.5 * window) - window) * acked / window
        };
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, _lost_bytes: u64) {
        if !self.is_in_recovery(sent) {
            self.recovery = Some(now);
            let share = self.near_share.get();
            let beta = 1.0 - share * (1.0 - BETA);
            let c = C / share.powi(3);
            let max =
                if self.window < self.epoch.max { self.window * (1.0 + beta) / 2.0 } else { self.window };
            self.window = (self.window * beta).max(LEAST);
            self.threshold = self.window;
            let k = ((max - self.window).max(0.0) / c).cbrt();
            self.epoch = Epoch { since: Some(now), max, k, c, reno: self.window, alpha: ALPHA };
        }
        if is_persistent {
            // As CUBIC of quinn; the loss of a whole path is at no place on it.
            let max = self.window;
            self.threshold = (BETA * max).max(LEAST);
            let k = ((max - self.threshold).max(0.0) / C).cbrt();
            self.epoch = Epoch { since: None, max, k, c: C, reno: self.threshold, alpha: ALPHA };
            (self.window, self.recovery) = (LEAST, None);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = f64::from(new_mtu);
    }

    fn window(&self) -> u64 {
        (self.window * self.mtu) as u64
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.threshold.is_finite().then_some((self.threshold * self.mtu) as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        (INITIAL * self.mtu) as u64
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A loss at which share r of the round trip is before the agent takes r of CUBIC's 30 % from the window, which is back after r^(4/3) of
    /// the time that CUBIC takes: K = cbrt(0.3 r W r³ / C).
    #[test]
    fn a_loss_before_the_agent_costs_what_it_would_on_a_shorter_path() {
        let after_loss = |share: f64| {
            let near_share = Arc::<NearShare>::default();
            near_share.set(share);
            let begin = Instant::now();
            let mut made = Arc::new(PacubicConfig { near_share }).build(begin, 1_000);
            made.on_congestion_event(begin + Duration::from_secs(1), begin, false, 1_000);
            *made.into_any().downcast::<Pacubic>().expect("it is one")
        };
        let cubic = after_loss(1.0);
        assert!((cubic.window - 7.0).abs() < 1e-9 && (cubic.epoch.k - (3.0_f64 / 0.4).cbrt()).abs() < 1e-9);
        for share in [0.5, 1.0 / 26.0] {
            let near = after_loss(share);
            assert!((near.window - (10.0 - 3.0 * share)).abs() < 1e-9, "{share}");
            assert!((near.epoch.k / cubic.epoch.k - share.powf(4.0 / 3.0)).abs() < 1e-9, "{share}");
            assert!((near.epoch.window(near.epoch.k) - 10.0).abs() < 1e-9, "{share}");
            assert!((near.epoch.window(0.0) - near.window).abs() < 1e-9, "{share}");
        }
    }

    /// What a path that was gone leaves grows back as CUBIC's, also after a loss before the agent.
    #[test]
    fn a_path_that_was_gone_begins_anew() {
        let near_share = Arc::<NearShare>::default();
        let begin = Instant::now();
        let mut made = Arc::new(PacubicConfig { near_share: Arc::clone(&near_share) }).build(begin, 1_000);
        near_share.set(0.1);
        made.on_congestion_event(begin + Duration::from_secs(1), begin, false, 1_000);
        near_share.set(1.0);
        made.on_congestion_event(begin + Duration::from_secs(2), begin, true, 1_000);
        let Pacubic { window, threshold, recovery, epoch, .. } =
            *made.into_any().downcast::<Pacubic>().expect("it is one");
        assert_eq!((window, recovery, epoch.since, epoch.c), (LEAST, None, None, C));
        assert!((epoch.max - 9.7).abs() < 1e-9 && (threshold - 0.7 * 9.7).abs() < 1e-9, "{epoch:?}");
        assert!((epoch.window(0.0) - threshold).abs() < 1e-9 && (epoch.window(epoch.k) - 9.7).abs() < 1e-9);
    }
}
