//! Congestion control: how much to send.
//!
//! Each control is a file, or a few in a directory, with a [`Controller`], which owns its [`Window`] and is notified of
//! events by the sender, and with the [`Control`] that describes it. It is registered by one line below.

mod classic_queue;
mod hystart;
mod marked_share;
mod ns2;
mod registry;
mod window;

use alloc::boxed::Box;
use core::fmt::Debug;
use core::ops::{Deref, DerefMut};

use lasthop_base::{Duration, Time};

pub use window::{SegmentWindow, Window};

use super::action::Action;
pub use super::delivery::{LostSegment, RateSample};
use super::ecn::EcnMode;
use super::settings::{IdleRestart, Settings};
use crate::packet::{Ecn, FlowId, SeqNum};

registry::register! {
    aimd: Aimd,
    net3: Net3,
    reno: Reno,
    cubic: Cubic,
    bbr: Bbr,
    bbr3: Bbr3,
    vegas: Vegas,
    veno: Veno,
    westwood: Westwood,
    hybla: Hybla,
    none: None,
    dctcp: Dctcp,
    prague: Prague,
}

/// A congestion control: its names, and its demands on a connection.
#[derive(Debug)]
pub struct Control {
    /// The name in scenario files.
    pub name: &'static str,
    /// The name in reports.
    pub title: &'static str,
    /// A one-line description with its source.
    pub summary: &'static str,
    /// What limits the data in flight.
    pub limit: Limit,
    /// Whether it takes the delivery rate [samples](Controller::on_sample), which need records of segments
    /// ([`Settings::keeps_records`]).
    pub needs_samples: bool,
    /// Whether it [paces](Controller::pacing_rate) regardless of the settings.
    pub needs_pacing: bool,
    /// The feedback of ECN marks that it asks for, whatever the [settings](Settings::ecn).
    pub needs_ecn: EcnMode,
    /// Whether it answers a loss although its window still comes down for a mark: a mark takes less from it than a loss.
    pub answers_loss_after_mark: bool,
    /// The code point of its ECN-capable packets: ECT(1) asks for the treatment of L4S (RFC 9331).
    pub codepoint: Ecn,
    /// Whether its initial slow start ends by [`Settings::slow_start_exit`].
    pub exits_slow_start: bool,
    /// The name in released Linux kernels, by which a sysctl selects it.
    pub linux: Option<&'static str>,
    /// Where else servers get it.
    pub origin: Option<&'static str>,
    /// The drawback of its deployment.
    pub cost: Option<&'static str>,
    /// Why an action of a scheme has no effect on it; `None` if it has.
    pub ignores: fn(Action) -> Option<&'static str>,
    build: Build,
}

/// Builds the controller of a connection with these settings.
type Build = fn(&Settings, FlowId) -> Chosen;

impl Control {
    /// A control by a window that needs neither samples nor pacing.
    const fn new(name: &'static str, title: &'static str, summary: &'static str, build: Build) -> Control {
        Control {
            name,
            title,
            summary,
            limit: Limit::Window,
            needs_samples: false,
            needs_pacing: false,
            needs_ecn: EcnMode::Off,
            answers_loss_after_mark: false,
            codepoint: Ecn::Ect0,
            exits_slow_start: false,
            linux: None,
            origin: None,
            cost: None,
            ignores: |_| None,
            build,
        }
    }

    /// The controller of a connection with these settings.
    pub(super) fn build(&self, settings: &Settings, flow: FlowId) -> Chosen {
        (self.build)(settings, flow)
    }
}

/// The controller of a connection. What the frequent kinds do for each acknowledgement is called without indirection, all
/// else by a virtual call.
#[derive(Debug)]
pub(super) enum Chosen {
    Aimd(aimd::Aimd),
    Cubic(Box<cubic::Cubic>),
    Bbr(Box<bbr::Bbr>),
    Other(Box<dyn Controller>),
}

/// Calls a method without indirection.
macro_rules! call {
    ($self:expr, $control:ident => $call:expr) => {
        match $self {
            Chosen::Aimd($control) => $call,
            Chosen::Cubic($control) => $call,
            Chosen::Bbr($control) => $call,
            Chosen::Other($control) => $call,
        }
    };
}

impl Chosen {
    /// A controller that is called by virtual calls.
    fn other(controller: impl Controller + 'static) -> Chosen {
        Chosen::Other(Box::new(controller))
    }

    /// [`Controller::window`].
    #[inline]
    pub(super) fn window(&self) -> &Window {
        call!(self, control => control.window())
    }

    /// [`Controller::on_ack`].
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &AckInfo) {
        call!(self, control => control.on_ack(ack));
    }

    /// [`Controller::on_sample`].
    #[inline]
    pub(super) fn on_sample(&mut self, sample: &RateSample) -> Demand {
        call!(self, control => control.on_sample(sample))
    }
}

impl Deref for Chosen {
    type Target = dyn Controller;
    fn deref(&self) -> &(dyn Controller + 'static) {
        match self {
            Chosen::Aimd(control) => control,
            Chosen::Cubic(control) => &**control,
            Chosen::Bbr(control) => &**control,
            Chosen::Other(control) => &**control,
        }
    }
}

impl DerefMut for Chosen {
    fn deref_mut(&mut self) -> &mut (dyn Controller + 'static) {
        match self {
            Chosen::Aimd(control) => control,
            Chosen::Cubic(control) => &mut **control,
            Chosen::Bbr(control) => &mut **control,
            Chosen::Other(control) => &mut **control,
        }
    }
}

/// What limits the data in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A window with a slow-start threshold, reduced by proportional rate reduction during recovery.
    Window,
    /// A window with a slow-start threshold that the controller itself moves during recovery, too, and below which pacing goes.
    PacedWindow,
    /// A model of the path. It sets the window during recovery, too, and has no threshold.
    Model,
    /// The receive window only.
    Receiver,
}

/// An acknowledgement of new data outside of recovery.
#[derive(Clone, Copy, Debug)]
pub struct AckInfo {
    /// Arrival time.
    pub now: Time,
    /// Bytes newly acknowledged; with SACK, cumulatively or selectively.
    pub acked: u32,
    /// The first sequence number not acknowledged (SND.UNA): a round ends when it passes the value of `max`
    /// at the start of the round.
    pub una: SeqNum,
    /// One past the highest sequence number sent.
    pub max: SeqNum,
    /// Whether no outstanding segment is known to be out of order or lost.
    pub undisturbed: bool,
}

/// A round-trip sample.
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

/// A loss, mark or timeout.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When it was found.
    pub now: Time,
    /// Bytes in use: those sent since the sender last went back to the left edge, less those sent by limited
    /// transmit. Unless the sender went back, this is FlightSize as in RFC 5681 section 3.2. With window
    /// validation (RFC 7661), it is the congestion window, which never grows beyond what is used.
    pub flight: u32,
    /// The receiver's window, bytes.
    pub rwnd: u32,
    /// For a timeout: whether ssthresh was already reduced for this data and is kept (RFC 5681 section 3.1),
    /// by an earlier timeout or, with a record of each segment, by any reduction of this episode.
    pub again: bool,
    /// One past the highest sequence number sent.
    pub max: SeqNum,
}

/// What an acknowledgement reports with accurate ECN feedback (RFC 9768).
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// Arrival time.
    pub now: Time,
    /// Packets newly delivered.
    pub delivered: u32,
    /// Packets newly reported as marked: more than delivered if control packets were marked.
    pub marked: u32,
    /// The first sequence number not acknowledged, by this acknowledgement.
    pub una: SeqNum,
    /// One past the highest sequence number sent.
    pub max: SeqNum,
}

/// How much a controller asks of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// As much as it believes the path to carry.
    Full,
    /// Deliberately less, so that segments sent now count as limited by the application.
    Limited,
}

/// The start of a flight: a transmission while nothing is in flight.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    /// Time of the transmission.
    pub now: Time,
    /// Time since the last transmission.
    pub idle: Duration,
    /// Whether the application had left room in the window before (RFC 7661: not validated).
    pub application_limited: bool,
}

/// A congestion controller: it owns the window, and decides how it grows, how far a loss reduces it and how
/// fast segments leave. [Recovery](super::recovery) decides what to retransmit and when.
///
/// For one acknowledgement, the hooks are called in this order: accurate ECN feedback
/// ([`on_feedback`](Controller::on_feedback)), the round-trip time
/// ([`on_rtt`](Controller::on_rtt)), a loss or a mark ([`on_loss`](Controller::on_loss),
/// [`on_mark`](Controller::on_mark)), growth ([`on_ack`](Controller::on_ack)), each lost segment
/// ([`on_lost_segment`](Controller::on_lost_segment)), the delivery rate
/// ([`on_sample`](Controller::on_sample)). Recovery without records calls only the first four.
pub trait Controller: Debug + Send + Sync {
    /// The window.
    fn window(&self) -> &Window;

    /// The window, for changes from outside the controller: by recovery, which fills it gradually, and by a
    /// scheme's [reaction](super::Reaction).
    fn window_mut(&mut self) -> &mut Window;

    /// Called for each acknowledgement of new data outside of recovery.
    fn on_ack(&mut self, ack: &AckInfo);

    /// Called with the round-trip time of the handshake. As in Linux, most controllers ignore it, since a SYN
    /// has a shorter transmission time than data.
    fn on_established(&mut self, _info: &RttInfo) {}

    /// Called for each round-trip sample of data, in recovery or outside. Returns whether later samples are of interest,
    /// too; otherwise it is not called again.
    fn on_rtt(&mut self, _info: &RttInfo) -> bool {
        false
    }

    /// Called with the rate sample of each acknowledgement after its processing, if the control
    /// [needs them](Control::needs_samples). Only recovery with a record of each segment calls this
    /// ([`Settings::keeps_records`]).
    fn on_sample(&mut self, _sample: &RateSample) -> Demand {
        Demand::Full
    }

    /// Called for each segment marked lost, by acknowledgements or the retransmission timer, after
    /// [`on_loss`](Controller::on_loss) or [`on_timeout`](Controller::on_timeout) of the same event and
    /// before its sample. Only recovery with a record of each segment calls this.
    fn on_lost_segment(&mut self, _lost: &LostSegment) {}

    /// Called for a loss revealed by duplicate or selective acknowledgements: reduces the bytes in use to
    /// `factor` of them, or by the controller's own rule. Sets the window to its target at the end of
    /// recovery; proportional rate reduction reads this target and approaches it gradually.
    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>);

    /// Called for each acknowledgement with accurate ECN feedback, before [`on_mark`](Controller::on_mark).
    fn on_feedback(&mut self, _feedback: &Feedback) {}

    /// Called when the receiver echoes a mark, once per window of data (RFC 3168 section 6.1.2). By default,
    /// responds as to a loss.
    fn on_mark(&mut self, loss: &Loss, factor: Option<f64>) {
        self.on_loss(loss, factor);
    }

    /// Called for a loss revealed by the retransmission timer; `factor` applies to the threshold.
    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>);

    /// Called for a timeout that congestion did not cause: slow start from one segment of `mss` bytes leads
    /// back to the previous window. The threshold already holds that window if this is not the first response
    /// to the loss of this data (`again`, as in [`Loss`]).
    fn on_interruption(&mut self, mss: u32, again: bool) {
        let window = self.window_mut();
        if !again {
            window.ssthresh = window.cwnd.max(2.0 * f64::from(mss));
        }
        window.cwnd = f64::from(mss);
    }

    /// Called at the end of recovery from a loss that reduced the window: limits the window to `limit` bytes
    /// to avoid a burst (RFC 6582 section 3.2 step 3).
    fn on_recovered(&mut self, limit: u32) {
        let window = self.window_mut();
        window.cwnd = window.ssthresh.min(f64::from(limit));
    }

    /// Called when the reduction of the window `before` was spurious (RFC 4015, 5682, 3708): restores at
    /// least the previous window.
    fn on_undo(&mut self, before: &Window) {
        let window = self.window_mut();
        window.cwnd = window.cwnd.max(before.cwnd);
        window.ssthresh = window.ssthresh.max(before.ssthresh);
    }

    /// Called after an idle period of one timeout or more: the window no longer reflects the network, and is reduced by the rule
    /// of the connection.
    fn on_idle(&mut self, rule: IdleRestart, timeouts: u32) {
        self.window_mut().restart(rule, timeouts);
    }

    /// Called for a transmission while nothing is in flight. Only recovery with a record of each segment
    /// calls this.
    fn on_flight(&mut self, _sending: &Sending) {}

    /// The rate at which segments may leave, in bytes of payload per second, given the smoothed round-trip
    /// time: by default that of Linux, one window per round-trip time plus room to grow.
    fn pacing_rate(&self, srtt: Duration) -> f64 {
        let window = self.window();
        let room = if window.cwnd < window.ssthresh / 2.0 { 2.0 } else { 1.2 };
        room * window.cwnd / srtt.as_secs_f64()
    }
}
