//! Slow start and congestion avoidance of ns-2's `TcpAgent`.

use super::{AckInfo, Controller, Loss, Window};
use crate::packet::SeqNum;
use crate::tcp::settings::Settings;

/// Multiplicative decrease factor (`decrease_num_`).
const HALF: f64 = 0.5;

/// The window in segments: each acknowledgement counts as one segment regardless of the bytes acknowledged,
/// and a loss halves the smaller of the congestion window and the receiver's, the threshold in whole segments
/// (`slowdown`).
#[derive(Clone, Debug)]
pub(super) struct Ns2 {
    window: Window,
    halve_exactly: bool,
    /// The first acknowledgement, if it is of the first segment alone, opens the initial window
    /// (`delay_growth_`).
    opens_with: Option<SeqNum>,
}

impl Ns2 {
    /// A controller for a connection with these settings.
    pub(super) fn new(settings: &Settings) -> Ns2 {
        let mut window = Window::new(settings);
        if settings.delay_growth && settings.handshake {
            window.cwnd = f64::from(settings.mss());
        }
        Ns2 {
            window,
            halve_exactly: settings.halve_exactly,
            opens_with: settings.delay_growth.then(|| settings.first_end()),
        }
    }

    /// Half of min(cwnd, rwnd), or the fraction `factor`; exact, and in whole segments of at least two.
    fn part_of_window(&self, loss: &Loss, factor: Option<f64>) -> (f64, f64) {
        let in_use = self.window.cwnd.min(f64::from(loss.rwnd));
        let in_use = if self.halve_exactly { in_use } else { self.whole_segments(in_use) };
        let part = in_use * factor.unwrap_or(HALF);
        let whole = self.whole_segments(part);
        (if self.halve_exactly { part } else { whole }, whole.max(2.0 * self.window.mss))
    }

    fn whole_segments(&self, bytes: f64) -> f64 {
        f64::from((bytes / self.window.mss) as u32) * self.window.mss
    }
}

impl Controller for Ns2 {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        let Window { cwnd, mss, .. } = self.window;
        self.window.cwnd += if self.window.in_slow_start() { mss } else { mss * mss / cwnd };
        if self.opens_with == Some(ack.una) {
            self.window.cwnd = f64::from(self.window.initial());
        }
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        (self.window.cwnd, self.window.ssthresh) = self.part_of_window(loss, factor);
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.window.ssthresh = self.part_of_window(loss, factor).1;
        self.window.cwnd = self.window.mss;
    }
}
