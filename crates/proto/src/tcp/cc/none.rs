//! No congestion control.

use super::{AckInfo, Chosen, Control, Controller, Limit, Loss, Window};
use crate::tcp::action::Action;
use crate::tcp::settings::{IdleRestart, Settings};

pub(super) const CONTROL: Control = Control {
    limit: Limit::Receiver,
    ignores: |action| match action {
        Action::Judge | Action::SetWindow => Some("without congestion control, no window shrinks"),
        _ => None,
    },
    ..Control::new(
        "none",
        "no congestion control",
        "No congestion control: only the receive window limits the data in flight. For a dedicated hop that cannot be congested",
        |settings, _| Chosen::other(NoControl::new(settings)),
    )
};

/// A constant window, independent of acknowledgements and losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoControl {
    window: Window,
}

impl NoControl {
    /// A window as large as the receiver's.
    pub(super) fn new(settings: &Settings) -> NoControl {
        NoControl { window: Window::new(settings) }
    }
}

impl Controller for NoControl {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    fn on_ack(&mut self, _ack: &AckInfo) {}

    fn on_loss(&mut self, _loss: &Loss, _factor: Option<f64>) {}

    fn on_timeout(&mut self, _loss: &Loss, _factor: Option<f64>) {}

    fn on_interruption(&mut self, _mss: u32, _again: bool) {}

    fn on_recovered(&mut self, _limit: u32) {}

    fn on_undo(&mut self, _before: &Window) {}

    fn on_idle(&mut self, _rule: IdleRestart, _timeouts: u32) {}
}
