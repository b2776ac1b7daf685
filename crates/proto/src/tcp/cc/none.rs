//! No congestion control.

use super::{AckInfo, Controller, Loss, Window};
use crate::tcp::settings::Settings;

/// A constant window, independent of acknowledgements and losses.
#[derive(Clone, Copy, Debug)]
pub struct NoControl {
    window: Window,
}

impl NoControl {
    /// A window as large as the receiver's.
    pub fn new(settings: &Settings) -> NoControl {
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

    fn on_idle(&mut self) {}

    /// Recovery does not change the window either.
    fn governs_recovery(&self) -> bool {
        true
    }
}
