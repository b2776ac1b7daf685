//! Hybla (Caini and Firrincieli 2004), as in Linux: the window on a long path grows as fast as on a path with
//! a round-trip time of 25 ms.

use lasthop_base::Duration;

use super::{AckInfo, Controller, Loss, Reno, RttInfo, Window};
use crate::tcp::settings::Settings;

/// The reference round-trip time.
const REFERENCE: Duration = Duration::from_millis(25);
/// Maximum growth per acknowledgement in slow start, in segments.
const MOST: f64 = 65_536.0;

/// Reno whose growth is scaled by ρ = RTT / 25 ms, at least one.
#[derive(Clone, Debug)]
pub struct Hybla {
    reno: Reno,
    srtt: f64,
    rho: f64,
    min_rtt: Option<Duration>,
    /// Fractional segments of growth carried over.
    rest: f64,
}

impl Hybla {
    /// A controller for a connection with these settings.
    pub fn new(settings: &Settings) -> Hybla {
        Hybla { reno: Reno::new(settings), srtt: 0.0, rho: 1.0, min_rtt: None, rest: 0.0 }
    }

    fn update_rho(&mut self) {
        self.rho = (self.srtt / REFERENCE.as_secs_f64()).max(1.0);
    }
}

impl Controller for Hybla {
    fn window(&self) -> &Window {
        self.reno.window()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.reno.window_mut()
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        let window = &mut self.reno.window;
        let slow_start = window.in_slow_start();
        let acked = window.acked_segments(ack.acked);
        let cwnd = window.cwnd();
        if acked > 0 {
            // Growth of 2^ρ − 1 segments per acknowledgement in slow start and ρ²/cwnd afterwards, as in
            // Linux.
            self.rest += if slow_start {
                (libm::exp2(self.rho) - 1.0).min(MOST)
            } else {
                self.rho * self.rho / f64::from(cwnd)
            };
        }
        let whole = self.rest as u32;
        self.rest -= f64::from(whole);
        let mut grown = cwnd.saturating_add(whole);
        if slow_start {
            grown = grown.min(window.ssthresh()).max(cwnd);
        }
        window.set_cwnd(grown);
    }

    fn on_rtt(&mut self, info: &RttInfo) {
        let rtt = info.rtt.as_secs_f64();
        self.srtt = if self.srtt == 0.0 { rtt } else { (7.0 * self.srtt + rtt) / 8.0 };
        if self.min_rtt.is_none_or(|least| info.rtt < least) {
            self.min_rtt = Some(info.rtt);
            self.update_rho();
        }
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.reno.on_loss(loss, factor);
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.reno.on_timeout(loss, factor);
    }
}
