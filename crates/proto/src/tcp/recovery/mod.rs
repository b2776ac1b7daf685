//! Loss recovery: what to retransmit, and when.
//!
//! Each flavour is a small file with its response to new acknowledgements, duplicate ACKs and timeouts.
//! Flavours share the operations of [`SenderState`] and the functions here.

mod go_back_n;
mod newreno;
mod ns2;
mod prr;
mod reno;
mod sack;
mod selective_repeat;
mod tahoe;

use alloc::boxed::Box;
use core::fmt::Debug;
use core::ops::{Deref, DerefMut};

use lasthop_base::Time;

use self::newreno::NewReno;
use self::prr::Prr;

use super::action::Action;
use super::reaction::Evidence;
use super::settings::{Flavour, Rules, Settings};
use super::state::SenderState;
use super::timers::Timer;
use crate::component::Out;
use crate::packet::Segment;

/// The state of congestion avoidance, with the names of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LossStage {
    /// No loss, no reordering.
    #[default]
    Open,
    /// Segments arrived out of order or twice.
    Disorder,
    /// The window is being reduced for a mark.
    Reduced,
    /// Losses are being repaired.
    Recovery,
    /// After a timeout.
    Loss,
}

/// The state of loss recovery with per-segment records; other flavours report the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LossReport {
    /// The congestion avoidance state.
    pub stage: LossStage,
    /// Unacknowledged segments that were marked lost, retransmitted or not.
    pub lost: u32,
    /// The reordering observed on the path in segments, at least the duplicate ACK threshold.
    pub reordering: u32,
}

/// Loss recovery: decides what is retransmitted, and when.
pub trait Recovery: Debug + Send {
    /// Called when `segment` acknowledges `acked` outstanding bytes.
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out);

    /// Called when `segment` acknowledges no new data (RFC 5681 section 2: duplicate acknowledgement).
    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out);

    /// The estimate of bytes in the network that limits sending.
    fn pipe(&self, tcp: &SenderState) -> u32 {
        tcp.sent_since_step_back()
    }

    /// Called when the retransmission timer expires; [`send`](Recovery::send) then retransmits.
    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        tcp.duplicates.end_row();
        tcp.time_out(now);
    }

    /// Called before an acknowledgement that echoes a mark is processed: reduces the window once per window
    /// of data (RFC 3168 section 6.1.2).
    fn on_mark(&mut self, tcp: &mut SenderState, now: Time) {
        tcp.respond_to_mark(now);
    }

    /// Why an action of a scheme has no effect on this recovery; `None` if it has.
    fn ignores(&self, action: Action) -> Option<&'static str>;

    /// Called after a retransmission requested by a reaction.
    fn on_reaction_resent(&mut self, _now: Time) {}

    /// Called when one of the recovery's own timers expires; [`send`](Recovery::send) follows.
    fn on_timer(&mut self, _tcp: &mut SenderState, _now: Time, _timer: Timer, _out: &mut Out) {}

    /// Whether the receiver's window blocks the next segment.
    fn window_is_shut(&self, tcp: &SenderState) -> bool {
        tcp.window_is_shut()
    }

    /// The state of loss recovery.
    fn report(&self, _tcp: &SenderState) -> LossReport {
        LossReport::default()
    }

    /// Sends what the windows allow, after an acknowledgement or a timeout was processed.
    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        tcp.send_window(now, tcp.settings.max_burst, out);
    }
}

/// The recovery of a connection. What the frequent kinds do for each acknowledgement is called without indirection, all else
/// by a virtual call.
#[derive(Debug)]
pub(super) enum Chosen {
    NewReno(NewReno),
    Prr(Box<Prr>),
    Other(Box<dyn Recovery>),
}

impl Chosen {
    /// [`Recovery::on_ack`].
    #[inline(always)]
    pub(super) fn on_ack(
        &mut self,
        tcp: &mut SenderState,
        now: Time,
        segment: &Segment,
        acked: u32,
        out: &mut Out,
    ) {
        match self {
            Chosen::NewReno(recovery) => recovery.on_ack(tcp, now, segment, acked, out),
            Chosen::Prr(recovery) => recovery.on_ack(tcp, now, segment, acked, out),
            Chosen::Other(recovery) => recovery.on_ack(tcp, now, segment, acked, out),
        }
    }

    /// [`Recovery::send`].
    #[inline(always)]
    pub(super) fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        match self {
            Chosen::NewReno(recovery) => recovery.send(tcp, now, out),
            Chosen::Prr(recovery) => recovery.send(tcp, now, out),
            Chosen::Other(recovery) => recovery.send(tcp, now, out),
        }
    }
}

impl Deref for Chosen {
    type Target = dyn Recovery;
    fn deref(&self) -> &(dyn Recovery + 'static) {
        match self {
            Chosen::NewReno(recovery) => recovery,
            Chosen::Prr(recovery) => &**recovery,
            Chosen::Other(recovery) => &**recovery,
        }
    }
}

impl DerefMut for Chosen {
    fn deref_mut(&mut self) -> &mut (dyn Recovery + 'static) {
        match self {
            Chosen::NewReno(recovery) => recovery,
            Chosen::Prr(recovery) => &mut **recovery,
            Chosen::Other(recovery) => &mut **recovery,
        }
    }
}

/// The recovery selected by the settings.
pub(super) fn of(settings: &Settings) -> Chosen {
    let own = if settings.rules == Rules::Ns2 { ns2::of(settings) } else { None };
    if let Some(own) = own {
        return Chosen::Other(own);
    }
    Chosen::Other(match settings.flavour {
        Flavour::NewReno => return Chosen::NewReno(NewReno::default()),
        Flavour::Prr => return Chosen::Prr(Box::new(Prr::new(settings))),
        Flavour::Tahoe => Box::new(tahoe::Tahoe),
        Flavour::Reno => Box::new(reno::Reno),
        Flavour::Sack => Box::new(sack::Sack::default()),
        Flavour::GoBackN => Box::new(go_back_n::GoBackN::default()),
        Flavour::SelectiveRepeat => Box::new(selective_repeat::SelectiveRepeat),
    })
}

impl Settings {
    /// Why an action of a scheme has no effect on connections with these settings; `None` if it has.
    pub fn ignored(&self, action: Action) -> Option<&'static str> {
        of(self).ignores(action).or_else(|| (self.congestion.control().ignores)(action))
    }
}

/// [`Recovery::ignores`] of recovery that detects losses by SACK.
fn ignores_bare_duplicates(action: Action) -> Option<&'static str> {
    match action {
        Action::RepeatAck => Some("its recovery detects losses by SACK, which repeated ACKs do not report"),
        _ => None,
    }
}

/// [`Recovery::ignores`] of recovery by unique timestamps.
fn ignores_duplicates(action: Action) -> Option<&'static str> {
    match action {
        Action::Threshold | Action::RepeatAck => Some("its recovery detects losses without duplicate ACKs"),
        _ => None,
    }
}

/// Counts a duplicate ACK; returns `true` if it indicates a new loss (RFC 5681 section 3.2 step 2). Earlier
/// ones trigger limited transmit if it is enabled.
fn reveals_loss(tcp: &mut SenderState, now: Time, out: &mut Out) -> bool {
    tcp.duplicates.count += 1;
    if tcp.is_early_duplicate() && tcp.settings.limited_transmit {
        tcp.send_limited(now, out);
    }
    tcp.duplicates_reveal_loss()
}

/// Fast retransmit (RFC 5681 section 3.2 steps 2 and 3): responds to the loss, retransmits the first segment,
/// and inflates the window by the segments that have left the network according to the duplicate ACKs.
fn fast_retransmit(tcp: &mut SenderState, now: Time, out: &mut Out) {
    tcp.answer_loss(now, Evidence::Duplicates);
    tcp.resend_first(now, out);
    tcp.inflation = tcp.dupacks() * tcp.mss;
}

/// Reno's response to a duplicate ACK: one that indicates a new loss starts recovery, later ones inflate the
/// window (RFC 5681 section 3.2 steps 2 to 4).
fn retransmit_or_inflate(tcp: &mut SenderState, now: Time, out: &mut Out) {
    if reveals_loss(tcp, now, out) {
        tcp.recovering = true;
        fast_retransmit(tcp, now, out);
    } else if tcp.recovering {
        tcp.inflation += tcp.mss;
    }
}

/// Sends after an acknowledgement as Reno does: an early duplicate ACK releases only limited transmit.
#[inline]
fn send_unless_early_duplicate(tcp: &mut SenderState, now: Time, burst: u32, out: &mut Out) {
    if !tcp.is_early_duplicate() {
        tcp.send_window(now, burst, out);
    }
}

/// Processes a new acknowledgement outside recovery, which grows the window.
#[inline(always)]
fn acknowledge_and_open(tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32) {
    let rtt = tcp.acknowledge(now, segment);
    if !tcp.echoes_mark(segment) {
        tcp.open_window(now, acked, rtt);
    }
}
