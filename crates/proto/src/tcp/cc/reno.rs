//! Reno with appropriate byte counting (RFC 5681, RFC 3465), in whole segments as in Linux.

use super::{AckInfo, Chosen, Control, Controller, Loss, SegmentWindow, Window};
use crate::tcp::settings::Settings;

pub(super) const CONTROL: Control = Control {
    linux: Some("reno"),
    ..Control::new(
        "reno",
        "Reno",
        "AIMD with byte counting, in whole segments (RFC 5681 with RFC 3465, as in Linux)",
        |settings, _| Chosen::other(Reno::new(settings)),
    )
};

/// Multiplicative decrease factor (RFC 5681 equation 4).
const HALF: f64 = 0.5;

/// Slow start by acknowledged bytes, then one segment per window; a loss halves the window. Other controllers
/// build on it.
#[derive(Clone, Debug)]
pub(super) struct Reno {
    pub(super) window: SegmentWindow,
}

impl Reno {
    /// A controller for a connection with these settings.
    pub(super) fn new(settings: &Settings) -> Reno {
        Reno { window: SegmentWindow::new(settings) }
    }

    fn part(&self, loss: &Loss, factor: Option<f64>) -> u32 {
        (f64::from(loss.flight) / self.window.mss() * factor.unwrap_or(HALF)) as u32
    }
}

impl Controller for Reno {
    fn window(&self) -> &Window {
        self.window.bytes()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.window.bytes_mut()
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        let mut acked = self.window.acked_segments(ack.acked);
        if self.window.in_slow_start() {
            acked = self.window.slow_start(acked);
        }
        if acked > 0 {
            self.window.avoid(self.window.cwnd(), acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.window.reset();
        self.window.set_ssthresh(self.part(loss, factor));
        self.window.set_cwnd(self.window.ssthresh());
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.window.reset();
        // RFC 5681 section 3.1: ssthresh is kept at a repeated timeout.
        if !loss.again {
            self.window.set_ssthresh(self.part(loss, factor));
        }
        self.window.set_cwnd(1);
    }
}
