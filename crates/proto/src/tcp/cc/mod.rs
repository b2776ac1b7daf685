//! How much to send: congestion control.
//!
//! A controller is a small file. It alone writes the [`Window`]; the sender tells it what happened, in the
//! words of [`Controller`].

mod aimd;
mod bbr;
mod bbr3;
mod cubic;
mod hybla;
mod hystart;
mod none;
mod ns2;
mod reno;
mod vegas;
mod veno;
mod westwood;
mod window;

use alloc::boxed::Box;
use core::fmt::Debug;

use lasthop_base::{Duration, Time};

pub use aimd::Aimd;
pub use bbr::Bbr;
pub use bbr3::Bbr3;
pub use cubic::Cubic;
pub use hybla::Hybla;
pub use none::NoControl;
pub use ns2::Ns2;
pub use reno::Reno;
pub use vegas::Vegas;
pub use veno::Veno;
pub use westwood::Westwood;
pub use window::{SegmentWindow, Window};

pub use super::delivery::{LostSegment, RateSample};
use super::seq::SeqNum;
use super::settings::{Congestion, Rules, Settings};
use crate::packet::FlowId;

/// What a controller is told of an acknowledgement of new data outside of recovery.
#[derive(Clone, Copy, Debug)]
pub struct AckInfo {
    /// When it arrived.
    pub now: Time,
    /// Bytes that it newly acknowledges; with SACK, cumulatively or selectively.
    pub acked: u32,
    /// Bytes sent and not acknowledged after it (RFC 5681: FlightSize).
    pub flight: u32,
    /// The round-trip time that it shows, if it shows one.
    pub rtt: Option<Duration>,
    /// The first sequence number not acknowledged: a round ends when it passes what was `max` at its start.
    pub una: SeqNum,
    /// One past the highest sequence number sent.
    pub max: SeqNum,
    /// Nothing outstanding is known to have arrived out of order or to be lost.
    pub undisturbed: bool,
}

/// What a controller is told of a round-trip time.
#[derive(Clone, Copy, Debug)]
pub struct RttInfo {
    /// When it was measured.
    pub now: Time,
    /// The round-trip time.
    pub rtt: Duration,
    /// The first sequence number not acknowledged.
    pub una: SeqNum,
    /// One past the highest sequence number sent.
    pub max: SeqNum,
}

/// What a controller is told when a loss is found.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When it was found.
    pub now: Time,
    /// Bytes in use: those thought to be in the network, which are those sent since the last step back to the
    /// left edge, less those that limited transmit sent. Without a step back this is FlightSize as RFC 5681
    /// section 3.2 wants it. With window validation (RFC 7661) it is the congestion window, which never
    /// grows beyond what is used.
    pub flight: u32,
    /// The receiver's window, bytes.
    pub rwnd: u32,
    /// The timer has run out for this data before.
    pub again: bool,
    /// One past the highest sequence number sent.
    pub max: SeqNum,
}

/// What a controller is told when segments go out after nothing was in flight.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// When.
    pub now: Time,
    /// How long ago the last segment had been sent.
    pub idle: Duration,
    /// The application had left room in the window before this (RFC 7661: not validated).
    pub application_limited: bool,
}

/// A congestion controller: it owns the window, and decides how it opens, how far a loss closes it and how fast
/// segments leave. What is resent and when is [recovery](super::recovery)'s affair.
///
/// One acknowledgement is told in this order: the round-trip time ([`on_rtt`](Controller::on_rtt)), a loss or a mark
/// ([`on_loss`](Controller::on_loss), [`on_mark`](Controller::on_mark)), growth ([`on_ack`](Controller::on_ack)), each
/// segment that was found lost ([`on_lost_segment`](Controller::on_lost_segment)), the delivery rate
/// ([`on_sample`](Controller::on_sample)). Recovery without records tells of the first three.
pub trait Controller: Debug + Send {
    /// The window.
    fn window(&self) -> &Window;

    /// The window, for what changes it besides the controller: recovery, which fills it by and by, and a scheme's
    /// [reaction](super::Reaction).
    fn window_mut(&mut self) -> &mut Window;

    /// New data were acknowledged outside of recovery.
    fn on_ack(&mut self, ack: &AckInfo);

    /// The handshake took `info.rtt`. As in Linux, most controllers ignore it: the transmission time of a SYN is less
    /// than that of data.
    fn on_established(&mut self, _info: &RttInfo) {}

    /// The round-trip time of data was measured, in recovery or out of it.
    fn on_rtt(&mut self, _info: &RttInfo) {}

    /// An acknowledgement was dealt with: what it shows about the path. Only recovery with a record of each
    /// segment tells ([`Settings::keeps_records`]).
    fn on_sample(&mut self, _sample: &RateSample) {}

    /// A segment was found lost, by acknowledgements or the retransmission timer. Comes after
    /// [`on_loss`](Controller::on_loss) or [`on_timeout`](Controller::on_timeout) of the same event, before its
    /// sample. Only recovery with a record of each segment tells.
    fn on_lost_segment(&mut self, _lost: &LostSegment) {}

    /// Duplicate or selective acknowledgements revealed a loss: what is in use is cut to `factor` of it, or as the
    /// controller itself has it. The window is left at what it shall be when recovery has ended; proportional rate
    /// reduction reads that, and brings the window there by and by.
    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>);

    /// The receiver echoed a mark, once per window of data (RFC 3168 section 6.1.2): by default the answer is that to
    /// a loss.
    fn on_mark(&mut self, loss: &Loss, factor: Option<f64>) {
        self.on_loss(loss, factor);
    }

    /// The retransmission timer revealed a loss; `factor` is for the threshold.
    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>);

    /// The timer ran out, and the network is not to blame: slow start from one segment of `mss` bytes
    /// leads back to the window that there was. If it has run out for this data before (`again`), the
    /// threshold remembers that already.
    fn on_interruption(&mut self, mss: u32, again: bool) {
        let window = self.window_mut();
        if !again {
            window.ssthresh = window.cwnd.max(2.0 * f64::from(mss));
        }
        window.cwnd = f64::from(mss);
    }

    /// Recovery from a loss that closed the window has ended: at most `limit` bytes, so as not to send
    /// a burst (RFC 6582 section 3.2 step 3).
    fn on_recovered(&mut self, limit: u32) {
        let window = self.window_mut();
        window.cwnd = window.ssthresh.min(f64::from(limit));
    }

    /// The loss or timeout that closed the window `before` was none (RFC 4015, 5682, 3708): the window is at
    /// least what it was.
    fn on_undo(&mut self, before: &Window) {
        let window = self.window_mut();
        window.cwnd = window.cwnd.max(before.cwnd);
        window.ssthresh = window.ssthresh.max(before.ssthresh);
    }

    /// Nothing was sent for a timeout: the window says nothing about the network any more, and shrinks to the
    /// initial one (RFC 5681 section 4.1).
    fn on_idle(&mut self) {
        let window = self.window_mut();
        window.cwnd = window.cwnd.min(f64::from(window.initial()));
    }

    /// Segments go out after nothing was in flight. Only recovery with a record of each segment tells.
    fn on_flight(&mut self, _sending: &Sending) {}

    /// The rate at which segments may leave, in bytes of payload per second, given the smoothed round-trip
    /// time: by default that of Linux, a window per round-trip time with some room to grow.
    fn pacing_rate(&self, srtt: Duration) -> f64 {
        let window = self.window();
        let room = if window.cwnd < window.ssthresh / 2.0 { 2.0 } else { 1.2 };
        room * window.cwnd / srtt.as_secs_f64()
    }

    /// Whether the controller depends on [pacing](Controller::pacing_rate), whatever the settings say.
    fn needs_pacing(&self) -> bool {
        false
    }

    /// Whether the controller sets the window during recovery as well, so that proportional rate reduction
    /// leaves it alone.
    fn governs_recovery(&self) -> bool {
        false
    }

    /// Whether the sender is short of data on purpose of the controller: samples taken now count as limited by
    /// the application.
    fn limits_itself(&self) -> bool {
        false
    }
}

/// The controller that the settings ask for.
pub(super) fn of(settings: &Settings, flow: FlowId) -> Box<dyn Controller> {
    match settings.congestion {
        Congestion::Aimd if settings.rules == Rules::Ns2 => Box::new(Ns2::new(settings)),
        Congestion::Aimd => Box::new(Aimd::new(settings)),
        Congestion::Reno => Box::new(Reno::new(settings)),
        Congestion::Cubic => Box::new(Cubic::new(settings)),
        Congestion::Bbr => Box::new(Bbr::new(settings, u64::from(flow.0))),
        Congestion::Bbr3 => Box::new(Bbr3::new(settings, u64::from(flow.0))),
        Congestion::Vegas => Box::new(Vegas::new(settings)),
        Congestion::Veno => Box::new(Veno::new(settings)),
        Congestion::Westwood => Box::new(Westwood::new(settings)),
        Congestion::Hybla => Box::new(Hybla::new(settings)),
        Congestion::None => Box::new(NoControl::new(settings)),
    }
}
