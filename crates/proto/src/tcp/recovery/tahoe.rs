//! Tahoe: fast retransmit, then slow start (Jacobson 1988).

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open, reveals_loss};
use crate::component::Out;
use crate::tcp::segment::Segment;
use crate::tcp::state::SenderState;

/// Any loss closes the window to one segment; everything from the hole on is sent again.
#[derive(Debug)]
pub(super) struct Tahoe;

impl Recovery for Tahoe {
    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, _out: &mut Out) {
        acknowledge_and_open(tcp, now, segment, acked);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, _segment: &Segment, out: &mut Out) {
        if reveals_loss(tcp, now, out) {
            tcp.close_window_on_loss(now);
            tcp.shrink_window_to_one_segment();
            tcp.go_back();
        }
    }

    /// The count of duplicates outlives a timeout, as in BSD before 4.4; no loss is new until all that
    /// was outstanding is acknowledged, so it changes nothing else.
    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        tcp.time_out(now);
    }
}
