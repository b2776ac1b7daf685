//! How much to send: congestion control.

mod aimd;

use core::fmt::Debug;

pub use aimd::Aimd;

/// The congestion window and where slow start ends, in bytes. Fractions matter: congestion avoidance
/// adds less than a byte at a time to a large window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow-start threshold.
    pub ssthresh: f64,
}

impl Window {
    /// Nothing but time was lost: slow start from one segment leads back to the window that there was.
    /// If the timer has run out for this data before (`again`), the threshold remembers it already.
    pub(super) fn start_slowly_again(&mut self, mss: u32, again: bool) {
        if !again {
            self.ssthresh = self.cwnd.max(2.0 * f64::from(mss));
        }
        self.cwnd = f64::from(mss);
    }
}

/// What a controller is told when a loss is found.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
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
    /// `acked` bytes were newly acknowledged.
    fn open(&mut self, window: &mut Window, acked: u32);

    /// Duplicate or selective acknowledgements revealed a loss: what is in use is cut to `factor` of
    /// it, or as the controller itself has it.
    fn on_loss(&mut self, window: &mut Window, loss: Loss, factor: Option<f64>);

    /// The retransmission timer revealed a loss; `factor` is for the threshold.
    fn on_timeout(&mut self, window: &mut Window, loss: Loss, factor: Option<f64>);
}
