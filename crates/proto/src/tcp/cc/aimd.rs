//! The standard: slow start, then additive increase; multiplicative decrease (Jacobson 1988, RFC 5681).

use super::{AckInfo, Controller, Loss, Window};
use crate::tcp::settings::{Rules, Settings};

/// What remains of the data in use after a loss (RFC 5681 equation 4).
const HALF: f64 = 0.5;

/// Slow start and congestion avoidance.
#[derive(Clone, Debug)]
pub struct Aimd {
    mss: f64,
    rules: Rules,
    halve_exactly: bool,
}

impl Aimd {
    /// A controller for segments as the settings have them.
    pub fn new(settings: &Settings) -> Aimd {
        let mss = f64::from(settings.mss());
        Aimd { mss, rules: settings.rules, halve_exactly: settings.halve_exactly }
    }

    /// RFC 5681 equation 4: half the flight or another part, no less than two segments.
    fn part_of_flight(&self, loss: &Loss, factor: f64) -> f64 {
        (f64::from(loss.flight) * factor).max(2.0 * self.mss)
    }

    /// ns-2: half of min(cwnd, rwnd) or another part, and the same in whole segments, no less than two.
    fn part_of_window(&self, window: &Window, loss: &Loss, factor: f64) -> (f64, f64) {
        let in_use = window.cwnd.min(f64::from(loss.rwnd));
        let in_use = if self.halve_exactly { in_use } else { self.whole_segments(in_use) };
        let part = in_use * factor;
        let whole = self.whole_segments(part);
        (if self.halve_exactly { part } else { whole }, whole.max(2.0 * self.mss))
    }

    fn whole_segments(&self, bytes: f64) -> f64 {
        f64::from((bytes / self.mss) as u32) * self.mss
    }
}

impl Controller for Aimd {
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        window.cwnd += if window.cwnd >= window.ssthresh {
            self.mss * self.mss / window.cwnd
        } else if self.rules == Rules::Ns2 {
            self.mss
        } else {
            f64::from(ack.acked).min(self.mss)
        };
    }

    fn on_loss(&mut self, window: &mut Window, loss: &Loss, factor: Option<f64>) {
        let factor = factor.unwrap_or(HALF);
        (window.cwnd, window.ssthresh) = match self.rules {
            Rules::Rfc => (self.part_of_flight(loss, factor), self.part_of_flight(loss, factor)),
            Rules::Ns2 => self.part_of_window(window, loss, factor),
        };
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss, factor: Option<f64>) {
        let factor = factor.unwrap_or(HALF);
        match self.rules {
            // RFC 5681 section 3.1: the threshold is held when the timer runs out again.
            Rules::Rfc if loss.again => {}
            Rules::Rfc => window.ssthresh = self.part_of_flight(loss, factor),
            Rules::Ns2 => window.ssthresh = self.part_of_window(window, loss, factor).1,
        }
        window.cwnd = self.mss;
    }
}
