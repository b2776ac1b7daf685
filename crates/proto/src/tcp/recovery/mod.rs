//! What to resend: loss recovery.
//!
//! A flavour is a small file: how it answers new acknowledgements, duplicate ones and timeouts. What
//! flavours share are the steps of [`SenderState`] and the functions here.

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

use lasthop_base::Time;

use super::reaction::Evidence;
use super::segment::Segment;
use super::settings::{Flavour, Rules, Settings};
use super::state::SenderState;
use super::timers::Timer;
use crate::component::Out;

/// Loss recovery: decides what is sent again, and when.
pub trait Recovery: Debug + Send {
    /// `segment` acknowledges `acked` bytes that were outstanding.
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out);

    /// `segment` acknowledges nothing new (RFC 5681 section 2: duplicate acknowledgement).
    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, out: &mut Out);

    /// Bytes thought to be in the network, as sending goes by them.
    fn pipe(&self, tcp: &SenderState) -> u32 {
        tcp.sent_since_step_back()
    }

    /// The retransmission timer ran out. What is to be resent follows by [`send`](Recovery::send).
    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        tcp.duplicates.end_row();
        tcp.time_out(now);
    }

    /// An acknowledgement, which is about to be processed, echoes a mark: the window is closed once per window of
    /// data (RFC 3168 section 6.1.2).
    fn on_mark(&mut self, tcp: &mut SenderState, now: Time) {
        tcp.answer_mark(now);
    }

    /// A segment went out again because a reaction has asked for it.
    fn on_reaction_resent(&mut self, _now: Time) {}

    /// A timer of the recovery's own ran out. What is to be sent follows by [`send`](Recovery::send).
    fn on_timer(&mut self, _tcp: &mut SenderState, _now: Time, _timer: Timer, _out: &mut Out) {}

    /// Whether the receiver's window keeps in the segment that is due next.
    fn window_is_shut(&self, tcp: &SenderState) -> bool {
        tcp.window_is_shut()
    }

    /// Sends what may be sent, after an acknowledgement or a timeout was dealt with.
    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        tcp.send_window(now, tcp.settings.max_burst, out);
    }
}

/// The recovery that the settings ask for.
pub(super) fn of(settings: &Settings) -> Box<dyn Recovery> {
    let own = if settings.rules == Rules::Ns2 { ns2::of(settings) } else { None };
    own.unwrap_or_else(|| match settings.flavour {
        Flavour::Tahoe => Box::new(tahoe::Tahoe),
        Flavour::Reno => Box::new(reno::Reno),
        Flavour::NewReno => Box::new(newreno::NewReno::default()),
        Flavour::Sack => Box::new(sack::Sack::default()),
        Flavour::GoBackN => Box::new(go_back_n::GoBackN::default()),
        Flavour::SelectiveRepeat => Box::new(selective_repeat::SelectiveRepeat),
        Flavour::Prr => Box::new(prr::Prr::new(settings)),
    })
}

/// Counts a duplicate acknowledgement; `true` on the one that means a new loss (RFC 5681 section 3.2
/// step 2). Earlier ones send by limited transmit if that is on.
fn reveals_loss(tcp: &mut SenderState, now: Time, out: &mut Out) -> bool {
    tcp.duplicates.count += 1;
    if tcp.is_early_duplicate() && tcp.settings.limited_transmit {
        tcp.send_limited(now, out);
    }
    tcp.duplicates_reveal_loss()
}

/// Fast retransmit (RFC 5681 section 3.2 steps 2 and 3): answers the loss, resends the first
/// segment, and lets the window grow by the segments that the duplicates say have left the network.
fn fast_retransmit(tcp: &mut SenderState, now: Time, out: &mut Out) {
    tcp.answer_loss(now, Evidence::Duplicates);
    tcp.resend_first(now, out);
    tcp.inflation = tcp.dupacks() * tcp.mss;
}

/// A duplicate as Reno takes it: one that means a new loss begins recovery, later ones let the window
/// grow (RFC 5681 section 3.2 steps 2 to 4).
fn retransmit_or_inflate(tcp: &mut SenderState, now: Time, out: &mut Out) {
    if reveals_loss(tcp, now, out) {
        tcp.recovering = true;
        fast_retransmit(tcp, now, out);
    } else if tcp.recovering {
        tcp.inflation += tcp.mss;
    }
}

/// Sends after an acknowledgement as Reno does: early duplicates let nothing out but what limited
/// transmit sent.
fn send_unless_early_duplicate(tcp: &mut SenderState, now: Time, burst: u32, out: &mut Out) {
    if !tcp.is_early_duplicate() {
        tcp.send_window(now, burst, out);
    }
}

/// A new acknowledgement outside recovery: the window opens.
fn acknowledge_and_open(tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32) {
    let rtt = tcp.acknowledge(now, segment);
    if !tcp.echoes_mark(segment) {
        tcp.open_window(now, acked, rtt);
    }
}
