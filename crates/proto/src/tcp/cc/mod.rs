//! How much to send: congestion control.
//!
//! A controller is a small file. It alone writes the [`Window`]; the sender tells it what happened, in the
//! words of [`CongestionControl`].

mod aimd;
mod none;

use alloc::boxed::Box;
use core::fmt::Debug;

use lasthop_base::{Duration, Time};

pub use aimd::Aimd;
pub use none::NoControl;

use super::settings::{Congestion, Settings};

/// The congestion window and where slow start ends, in bytes. Fractions matter: congestion avoidance
/// adds less than a byte at a time to a large window. Only controllers and the verbs here write it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    cwnd: f64,
    ssthresh: f64,
}

impl Window {
    pub(super) fn new(cwnd: u32, ssthresh: f64) -> Window {
        Window { cwnd: f64::from(cwnd), ssthresh }
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold, bytes.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Begins with a window of `bytes`; the threshold stays.
    pub(super) fn begin_with(&mut self, bytes: u32) {
        self.cwnd = f64::from(bytes);
    }

    /// Takes `bytes` out of the window, as far as `least` remain, until recovery ends.
    pub(super) fn deflate(&mut self, bytes: u32, least: u32) {
        self.cwnd = (self.cwnd - f64::from(bytes)).max(f64::from(least));
    }
}

/// What a controller is told of an acknowledgement of new data outside of recovery.
#[derive(Clone, Copy, Debug)]
pub struct AckInfo {
    /// When it arrived.
    pub now: Time,
    /// Bytes that it newly acknowledges.
    pub acked: u32,
    /// Bytes sent and not acknowledged after it (RFC 5681: FlightSize).
    pub flight: u32,
    /// The round-trip time that it shows, if it shows one.
    pub rtt: Option<Duration>,
}

/// What a controller is told when a loss is found.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When it was found.
    pub now: Time,
    /// Bytes thought to be in the network: those sent since the last step back to the left edge, less
    /// those that limited transmit sent. Without a step back this is FlightSize as RFC 5681 section 3.2
    /// wants it.
    pub flight: u32,
    /// The receiver's window, bytes.
    pub rwnd: u32,
    /// The timer has run out for this data before.
    pub again: bool,
}

/// A congestion controller: a policy over the window. It decides how the window opens and how far a
/// loss closes it; what is resent and when is [recovery](super::recovery)'s affair.
pub trait CongestionControl: Debug + Send {
    /// New data were acknowledged outside of recovery.
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo);

    /// Duplicate or selective acknowledgements revealed a loss: what is in use is cut to `factor` of
    /// it, or as the controller itself has it.
    fn on_loss(&mut self, window: &mut Window, loss: &Loss, factor: Option<f64>);

    /// The retransmission timer revealed a loss; `factor` is for the threshold.
    fn on_timeout(&mut self, window: &mut Window, loss: &Loss, factor: Option<f64>);

    /// The timer ran out, and the network is not to blame: slow start from one segment of `mss` bytes
    /// leads back to the window that there was. If it has run out for this data before (`again`), the
    /// threshold remembers that already.
    fn on_interruption(&mut self, window: &mut Window, mss: u32, again: bool) {
        if !again {
            window.ssthresh = window.cwnd.max(2.0 * f64::from(mss));
        }
        window.cwnd = f64::from(mss);
    }

    /// Recovery from a loss that closed the window has ended: at most `limit` bytes, so as not to send
    /// a burst (RFC 6582 section 3.2 step 3).
    fn on_recovered(&mut self, window: &mut Window, limit: u32) {
        window.cwnd = window.ssthresh.min(f64::from(limit));
    }

    /// Nothing was sent for a timeout: the window says nothing about the network any more, and shrinks to
    /// `restart` bytes (RFC 5681 section 4.1).
    fn on_idle(&mut self, window: &mut Window, restart: u32) {
        window.cwnd = window.cwnd.min(f64::from(restart));
    }
}

/// The controller that the settings ask for.
pub(super) fn of(settings: &Settings) -> Box<dyn CongestionControl> {
    match settings.congestion {
        Congestion::Aimd => Box::new(Aimd::new(settings)),
        Congestion::None => Box::new(NoControl),
    }
}
