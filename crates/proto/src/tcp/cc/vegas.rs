//! Vegas (Brakmo and Peterson 1995), as in Linux: keeps two to four segments in the queue.

use lasthop_base::Duration;

use super::reno::Reno;
use super::{AckInfo, Chosen, Control, Controller, Loss, RttInfo, Sending, Window};
use crate::packet::SeqNum;
use crate::tcp::settings::Settings;

pub(super) const CONTROL: Control = Control {
    linux: Some("vegas"),
    ..Control::new("vegas", "Vegas", "Vegas (Brakmo and Peterson 1995, as in Linux)", |settings, _| {
        Chosen::other(Vegas::new(settings))
    })
};

/// The window grows below this number of queued segments, and shrinks above [`BETA`].
const ALPHA: u64 = 2;
const BETA: u64 = 4;
/// Slow start ends above this number of queued segments.
const GAMMA: u64 = 1;
/// Samples required per round; with fewer, delayed ACKs may distort the result.
const SAMPLES: u32 = 3;

/// Delay-based control: once per round trip, compares the expected rate without a queue with the actual rate.
/// As in Linux, slow start doubles the window every round, not every other round.
#[derive(Clone, Debug)]
pub(super) struct Vegas {
    reno: Reno,
    rounds: Rounds,
}

/// Round-trip times per round, shared by Vegas and Veno.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rounds {
    /// Minimum round-trip times of the connection and of this round.
    pub(super) base: Option<Duration>,
    pub(super) least: Option<Duration>,
    pub(super) samples: u32,
    ends: SeqNum,
    /// Whether the window is controlled by delay; not during recovery.
    pub(super) enabled: bool,
}

impl Rounds {
    pub(super) fn new(iss: u32) -> Rounds {
        Rounds { base: None, least: None, samples: 0, ends: SeqNum(iss), enabled: true }
    }

    pub(super) fn on_rtt(&mut self, info: &RttInfo) {
        self.base = Some(self.base.map_or(info.rtt, |base| base.min(info.rtt)));
        self.least = Some(self.least.map_or(info.rtt, |least| least.min(info.rtt)));
        self.samples += 1;
    }

    /// Whether `ack` ends a round.
    pub(super) fn ends_with(&mut self, ack: &AckInfo) -> bool {
        let ends = ack.una > self.ends;
        if ends {
            self.ends = ack.max;
        }
        ends
    }

    pub(super) fn begin_round(&mut self) {
        (self.least, self.samples) = (None, 0);
    }

    /// Restarts after a period without meaningful delays.
    pub(super) fn enable(&mut self, ack: &AckInfo) {
        self.enabled = true;
        self.ends = ack.max;
        self.begin_round();
    }

    /// Queued segments out of `cwnd`, computed from the delay above the base, relative to `over`.
    pub(super) fn queued(&self, cwnd: u32, over: Duration) -> u64 {
        let (base, least) =
            (self.base.unwrap_or_default().as_nanos(), self.least.unwrap_or_default().as_nanos());
        let wide = u128::from(cwnd) * u128::from(least.saturating_sub(base));
        (wide / u128::from(over.as_nanos().max(1))) as u64
    }
}

impl Vegas {
    /// A controller for a connection with these settings.
    pub(super) fn new(settings: &Settings) -> Vegas {
        Vegas { reno: Reno::new(settings), rounds: Rounds::new(settings.iss) }
    }

    /// Adjusts the window at the end of a round with enough samples.
    fn adjust(&mut self, acked: u32) {
        let (Some(base), Some(least)) = (self.rounds.base, self.rounds.least) else { return };
        let acked = self.reno.window.acked_segments(acked);
        let cwnd = self.reno.window.cwnd();
        let queued = self.rounds.queued(cwnd, base);
        if self.reno.window.in_slow_start() {
            if queued > GAMMA {
                // The bandwidth-delay product plus one segment.
                let target =
                    u128::from(cwnd) * u128::from(base.as_nanos()) / u128::from(least.as_nanos().max(1));
                self.reno.window.set_cwnd(cwnd.min(target as u32 + 1));
                self.lower_threshold();
            } else {
                self.reno.window.slow_start(acked);
            }
        } else if queued > BETA {
            self.reno.window.set_cwnd(cwnd - 1);
            self.lower_threshold();
        } else if queued < ALPHA {
            self.reno.window.set_cwnd(cwnd + 1);
        }
        let cwnd = self.reno.window.cwnd().max(2);
        self.reno.window.set_cwnd(cwnd);
        let window = self.window_mut();
        window.ssthresh = window.ssthresh.max(current_threshold(window));
    }

    fn lower_threshold(&mut self) {
        let mss = self.reno.window.mss();
        let window = self.window_mut();
        window.ssthresh = window.ssthresh.min(window.cwnd - mss);
    }
}

/// The threshold as in Linux: at least three quarters of the window.
fn current_threshold(window: &Window) -> f64 {
    if window.in_slow_start() { window.ssthresh } else { window.ssthresh.max(window.cwnd * 0.75) }
}

impl Controller for Vegas {
    fn window(&self) -> &Window {
        self.reno.window()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.reno.window_mut()
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        if !ack.undisturbed {
            self.rounds.enabled = false;
        } else if !self.rounds.enabled {
            self.rounds.enable(ack);
        }
        if !self.rounds.enabled {
            return self.reno.on_ack(ack);
        }
        if self.rounds.ends_with(ack) {
            if self.rounds.samples < SAMPLES {
                self.reno.on_ack(ack);
            } else {
                self.adjust(ack.acked);
            }
            self.rounds.begin_round();
        } else if self.reno.window.in_slow_start() {
            let acked = self.reno.window.acked_segments(ack.acked);
            self.reno.window.slow_start(acked);
        }
    }

    fn on_rtt(&mut self, info: &RttInfo) -> bool {
        self.rounds.on_rtt(info);
        true
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.rounds.enabled = false;
        self.reno.on_loss(loss, factor);
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.rounds.enabled = false;
        self.reno.on_timeout(loss, factor);
    }

    fn on_flight(&mut self, sending: &Sending) {
        // The path may have changed during the idle period.
        if sending.application_limited {
            self.rounds.begin_round();
        }
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::Time;

    use super::*;

    /// The SYN has a shorter transmission time than data segments, so its round-trip time is not used.
    #[test]
    fn the_base_is_that_of_data() {
        let mut vegas = Vegas::new(&Settings::default());
        let info = |ms| {
            let rtt = Duration::from_millis(ms);
            RttInfo { now: Time::ZERO, rtt, una: SeqNum(0), max: SeqNum(0) }
        };
        vegas.on_established(&info(60));
        vegas.on_rtt(&info(61));
        vegas.on_rtt(&info(70));
        assert_eq!(vegas.rounds.base, Some(Duration::from_millis(61)));
    }
}
