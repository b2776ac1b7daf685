//! Standard congestion control: slow start and congestion avoidance (Jacobson 1988, RFC 5681).

use super::ns2::Ns2;
use super::{AckInfo, Chosen, Control, Controller, Loss, Window};
use crate::tcp::settings::{Rules, Settings};

pub(super) const CONTROL: Control = Control::new(
    "aimd",
    "AIMD",
    "Slow start and additive increase, multiplicative decrease (Jacobson 1988, RFC 5681)",
    |settings, _| match settings.rules {
        Rules::Rfc => Chosen::Aimd(Aimd::new(settings)),
        Rules::Ns2 => Chosen::other(Ns2::new(settings)),
    },
);

/// Multiplicative decrease factor (RFC 5681 equation 4).
const HALF: f64 = 0.5;

/// Slow start and congestion avoidance.
#[derive(Clone, Debug)]
pub(in crate::tcp) struct Aimd {
    window: Window,
    /// Further growth per acknowledgement in congestion avoidance, segments.
    constant: f64,
}

impl Aimd {
    /// A controller for a connection with these settings.
    pub(super) fn new(settings: &Settings) -> Aimd {
        Aimd { window: Window::new(settings), constant: 0.0 }
    }

    /// A controller whose window grows in congestion avoidance by `share` of a segment per acknowledgement as well.
    pub(super) fn with_constant(settings: &Settings, share: f64) -> Aimd {
        Aimd { constant: share, ..Aimd::new(settings) }
    }

    /// RFC 5681 equation 4: FlightSize times `factor`, by default a half, but at least two segments.
    fn part_of_flight(&self, loss: &Loss, factor: Option<f64>) -> f64 {
        (f64::from(loss.flight) * factor.unwrap_or(HALF)).max(2.0 * self.window.mss)
    }
}

impl Controller for Aimd {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        let mss = self.window.mss;
        self.window.cwnd += if self.window.in_slow_start() {
            f64::from(ack.acked).min(mss)
        } else {
            mss * mss / self.window.cwnd + mss * self.constant
        };
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.window.ssthresh = self.part_of_flight(loss, factor);
        self.window.cwnd = self.window.ssthresh;
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        // RFC 5681 section 3.1: ssthresh is kept at a repeated timeout.
        if !loss.again {
            self.window.ssthresh = self.part_of_flight(loss, factor);
        }
        self.window.cwnd = self.window.mss;
    }
}
