//! Veno (Fu and Liew 2003), as in Linux: Reno that distinguishes congestion losses from wireless losses by
//! the queueing delay.

use super::reno::Reno;
use super::vegas::Rounds;
use super::{AckInfo, Chosen, Control, Controller, Loss, RttInfo, Window};
use crate::tcp::settings::Settings;

pub(super) const CONTROL: Control = Control {
    linux: Some("veno"),
    ..Control::new("veno", "Veno", "Veno (Fu and Liew 2003, as in Linux)", |settings, _| {
        Chosen::other(Veno::new(settings))
    })
};

/// The path is congested above this number of queued half segments: 3 segments.
const CONGESTED: u64 = 6;
/// Decrease factor for a loss on an uncongested path.
const RANDOM_LOSS: f64 = 0.8;
/// Samples required since the last loss; with fewer, Reno applies.
const SAMPLES: u32 = 3;

/// Additive increase, every other round trip while the path is congested; a loss on an uncongested path
/// reduces the window by a fifth.
#[derive(Clone, Debug)]
pub(super) struct Veno {
    reno: Reno,
    rounds: Rounds,
    /// Queued half segments.
    queued: u64,
    /// Whether to skip the next increase on a congested path.
    skip: bool,
}

impl Veno {
    /// A controller for a connection with these settings.
    pub(super) fn new(settings: &Settings) -> Veno {
        Veno { reno: Reno::new(settings), rounds: Rounds::new(settings.iss), queued: 0, skip: false }
    }
}

impl Controller for Veno {
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
        if !self.rounds.enabled || self.rounds.samples < SAMPLES {
            return self.reno.on_ack(ack);
        }
        let cwnd = self.reno.window.cwnd();
        if let Some(least) = self.rounds.least {
            self.queued = self.rounds.queued(2 * cwnd, least);
        }
        let acked = self.reno.window.acked_segments(ack.acked);
        let left = if self.reno.window.in_slow_start() { self.reno.window.slow_start(acked) } else { acked };
        if left > 0 {
            self.avoid(left);
        }
        // As in Linux, the delay is that of the latest samples, not of a round.
        self.rounds.least = None;
    }

    fn on_rtt(&mut self, info: &RttInfo) -> bool {
        self.rounds.on_rtt(info);
        true
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        let own = (self.queued < CONGESTED).then_some(RANDOM_LOSS);
        self.rounds.enabled = false;
        self.reno.on_loss(loss, factor.or(own));
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        let own = (self.queued < CONGESTED).then_some(RANDOM_LOSS);
        self.rounds.enabled = false;
        self.reno.on_timeout(loss, factor.or(own));
    }
}

impl Veno {
    fn avoid(&mut self, acked: u32) {
        let before = self.reno.window.cwnd();
        if self.queued < CONGESTED {
            self.reno.window.avoid(before, acked);
        } else if self.reno.window.is_due(before, acked) {
            if !self.skip {
                self.reno.window.set_cwnd(before + 1);
            }
            self.skip = !self.skip;
        }
    }
}
