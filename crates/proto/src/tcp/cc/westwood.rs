//! Westwood+ (Mascolo, Grieco et al. 2004), as in Linux: after a loss the window is set to the estimated
//! bandwidth times the minimum round-trip time.

use lasthop_base::{Duration, Time};

use super::{AckInfo, Controller, Loss, Reno, RttInfo, Window};
use crate::tcp::settings::Settings;

/// Minimum interval of a bandwidth sample; otherwise a round-trip time.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);
/// Weight of the previous value in each of the two filters: 7/8.
const PAST: f64 = 7.0 / 8.0;

/// Reno whose ssthresh is the bandwidth times the minimum round-trip time.
#[derive(Clone, Debug)]
pub struct Westwood {
    reno: Reno,
    /// Bandwidth in bytes per second, filtered once and twice.
    once: f64,
    twice: f64,
    /// Start of the current interval, and the bytes acknowledged in it.
    began: Time,
    acked: u64,
    rtt: Duration,
    min_rtt: Option<Duration>,
    measured: bool,
    /// Whether a scheme determined the reduction at the last loss.
    scaled: bool,
}

impl Westwood {
    /// A controller for a connection with these settings.
    pub fn new(settings: &Settings) -> Westwood {
        Westwood {
            reno: Reno::new(settings),
            once: 0.0,
            twice: 0.0,
            began: Time::ZERO,
            acked: 0,
            rtt: Duration::ZERO,
            min_rtt: None,
            measured: false,
            scaled: false,
        }
    }

    fn count(&mut self, now: Time, acked: u64) {
        let elapsed = now.since(self.began);
        if self.rtt > Duration::ZERO && elapsed > self.rtt.max(LEAST_INTERVAL) {
            let sample = self.acked as f64 / elapsed.as_secs_f64();
            if core::mem::replace(&mut self.measured, true) {
                self.once = PAST * self.once + (1.0 - PAST) * sample;
                self.twice = PAST * self.twice + (1.0 - PAST) * self.once;
            } else {
                (self.once, self.twice) = (sample, sample);
            }
            (self.began, self.acked) = (now, 0);
        }
        self.acked += acked;
    }

    fn set_threshold(&mut self) {
        let bytes = self.twice * self.min_rtt.unwrap_or_default().as_secs_f64();
        let window = &mut self.reno.window;
        window.set_ssthresh((bytes / window.mss()) as u32);
    }
}

impl Controller for Westwood {
    fn window(&self) -> &Window {
        self.reno.window()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.reno.window_mut()
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        self.reno.on_ack(ack);
    }

    fn on_rtt(&mut self, info: &RttInfo) {
        self.rtt = info.rtt;
        self.min_rtt = Some(self.min_rtt.map_or(info.rtt, |least| least.min(info.rtt)));
    }

    fn on_sample(&mut self, sample: &super::RateSample) {
        self.count(sample.now, sample.newly_delivered);
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.scaled = factor.is_some();
        self.reno.on_loss(loss, factor);
    }

    /// As in Linux, half the window until recovery ends, and then the bandwidth-delay product.
    fn on_recovered(&mut self, limit: u32) {
        if !self.scaled {
            self.set_threshold();
        }
        let window = self.reno.window_mut();
        window.cwnd = window.ssthresh.min(f64::from(if self.scaled { limit } else { u32::MAX }));
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.reno.on_timeout(loss, factor);
        if factor.is_none() {
            self.set_threshold();
        }
        // The path may have changed: the minimum round-trip time is measured anew.
        self.min_rtt = None;
    }
}
