//! The standard: slow start, then additive increase; multiplicative decrease (Jacobson 1988, RFC 5681).

use super::{CongestionControl, Loss, Window};
use crate::tcp::settings::{Rules, Settings};

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

    /// RFC 5681 equation 4: half the flight, no less than two segments.
    fn half_flight(&self, loss: Loss) -> f64 {
        (f64::from(loss.flight) / 2.0).max(2.0 * self.mss)
    }

    /// ns-2: half of min(cwnd, rwnd), and the same in whole segments, no less than two.
    fn half_window(&self, window: &Window, loss: Loss) -> (f64, f64) {
        let in_use = window.cwnd.min(f64::from(loss.rwnd));
        let in_use = if self.halve_exactly { in_use } else { self.whole_segments(in_use) };
        let half = in_use / 2.0;
        let whole = self.whole_segments(half);
        (if self.halve_exactly { half } else { whole }, whole.max(2.0 * self.mss))
    }

    fn whole_segments(&self, bytes: f64) -> f64 {
        f64::from((bytes / self.mss) as u32) * self.mss
    }
}

impl CongestionControl for Aimd {
    fn open(&mut self, window: &mut Window, acked: u32) {
        window.cwnd += if window.cwnd >= window.ssthresh {
            self.mss * self.mss / window.cwnd
        } else if self.rules == Rules::Ns2 {
            self.mss
        } else {
            f64::from(acked).min(self.mss)
        };
    }

    fn on_loss(&mut self, window: &mut Window, loss: Loss) {
        (window.cwnd, window.ssthresh) = match self.rules {
            Rules::Rfc => (self.half_flight(loss), self.half_flight(loss)),
            Rules::Ns2 => self.half_window(window, loss),
        };
    }

    fn on_timeout(&mut self, window: &mut Window, loss: Loss) {
        match self.rules {
            // RFC 5681 section 3.1: the threshold is held when the timer runs out again.
            Rules::Rfc if loss.again => {}
            Rules::Rfc => window.ssthresh = self.half_flight(loss),
            Rules::Ns2 => window.ssthresh = self.half_window(window, loss).1,
        }
        window.cwnd = self.mss;
    }
}
