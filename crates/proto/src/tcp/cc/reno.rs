//! Reno by bytes (RFC 5681 with appropriate byte counting, RFC 3465), in whole segments as Linux has it.

use super::{AckInfo, Controller, Increase, Loss, Window};
use crate::tcp::settings::Settings;

/// What remains of the window after a loss (RFC 5681 equation 4).
const HALF: f64 = 0.5;

/// Slow start by what is acknowledged, then one segment per window; a loss halves.
#[derive(Clone, Debug)]
pub struct Reno {
    mss: f64,
    increase: Increase,
}

impl Reno {
    /// A controller for segments as the settings have them.
    pub fn new(settings: &Settings) -> Reno {
        Reno { mss: f64::from(settings.mss()), increase: Increase::new(settings.mss()) }
    }

    /// How the window grows.
    pub(super) fn increase(&self) -> &Increase {
        &self.increase
    }

    /// How the window grows.
    pub(super) fn increase_mut(&mut self) -> &mut Increase {
        &mut self.increase
    }

    fn part(&self, loss: &Loss, factor: Option<f64>) -> u32 {
        (f64::from(loss.flight) / self.mss * factor.unwrap_or(HALF)) as u32
    }
}

impl Controller for Reno {
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let mut acked = self.increase.acked_segments(ack.acked);
        if window.in_slow_start() {
            acked = self.increase.slow_start(window, acked);
        }
        if acked > 0 {
            let per = self.increase.segments(window);
            self.increase.avoid(window, per, acked);
        }
    }

    fn on_loss(&mut self, window: &mut Window, loss: &Loss, factor: Option<f64>) {
        self.increase.reset();
        self.increase.set_threshold(window, self.part(loss, factor));
        window.cwnd = window.ssthresh;
    }

    fn on_timeout(&mut self, window: &mut Window, loss: &Loss, factor: Option<f64>) {
        self.increase.reset();
        // RFC 5681 section 3.1: the threshold is held when the timer runs out again.
        if !loss.again {
            self.increase.set_threshold(window, self.part(loss, factor));
        }
        window.cwnd = self.mss;
    }
}
