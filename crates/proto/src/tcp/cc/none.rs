//! No congestion control.

use super::{AckInfo, Controller, Loss, Window};

/// Leaves the window as it is: what arrives and what is lost says nothing about it.
#[derive(Clone, Copy, Debug)]
pub struct NoControl;

impl Controller for NoControl {
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckInfo) {}

    fn on_loss(&mut self, _window: &mut Window, _loss: &Loss, _factor: Option<f64>) {}

    fn on_timeout(&mut self, _window: &mut Window, _loss: &Loss, _factor: Option<f64>) {}

    fn on_interruption(&mut self, _window: &mut Window, _mss: u32, _again: bool) {}

    fn on_recovered(&mut self, _window: &mut Window, _limit: u32) {}

    fn on_undo(&mut self, _window: &mut Window, _before: &Window) {}

    fn on_idle(&mut self, _window: &mut Window, _restart: u32) {}
}
