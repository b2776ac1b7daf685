//! Tahoe: fast retransmit, then slow start (Jacobson 1988).

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open, reveals_loss};
use crate::component::Out;
use crate::packet::Segment;
use crate::tcp::action::Action;
use crate::tcp::reaction::Evidence;
use crate::tcp::state::SenderState;

/// Any loss reduces the window to one segment and retransmits everything from the hole on. If a reaction
/// prevents the reduction, only the first segment of the hole is retransmitted.
#[derive(Debug)]
pub(super) struct Tahoe;

impl Recovery for Tahoe {
    fn ignores(&self, _action: Action) -> Option<&'static str> {
        None
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, _out: &mut Out) {
        acknowledge_and_open(tcp, now, segment, acked);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, _segment: &Segment, out: &mut Out) {
        if reveals_loss(tcp, now, out) {
            tcp.answer_loss(now, Evidence::Duplicates);
            if tcp.cut {
                tcp.close_window();
                tcp.go_back();
            } else {
                tcp.resend_first(now, out);
            }
        }
    }

    /// As in BSD before 4.4, a timeout does not reset the duplicate ACK count. This has no other effect,
    /// since no loss is new until all outstanding data are acknowledged.
    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        tcp.time_out(now);
    }
}
