//! Delayed acknowledgements: which segments are acknowledged immediately, and which may wait (RFC 9293 section
//! 3.8.6.3).

use super::settings::{Rules, Settings};

/// The position of an arriving segment with data or FIN relative to the data received so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Whether it is the first of the connection.
    pub(super) is_first: bool,
    /// Whether it starts with the next expected byte.
    pub(super) in_order: bool,
    /// Whether it ends at the new right edge of the in-order data.
    pub(super) at_edge: bool,
    /// Whether out-of-order data were present before it arrived.
    pub(super) had_gap: bool,
    /// Whether out-of-order data are still present.
    pub(super) has_gap: bool,
    /// Whether all of it was received before.
    pub(super) repeated: bool,
}

/// RFC 5681 section 4.2: a segment that is out of order, fills a gap or is a duplicate is acknowledged at
/// once; so is a segment partly beyond the window (RFC 9293 section 3.10.7.4).
fn may_wait_rfc(arrival: &Arrival) -> bool {
    arrival.in_order && arrival.at_edge && !arrival.had_gap
}

/// ns-2's `DelAckSink`: a segment that fills the last gap may wait, and so may a duplicate of the last
/// segment; the first segment is acknowledged immediately.
fn may_wait_ns2(arrival: &Arrival) -> bool {
    arrival.at_edge && !arrival.has_gap && !arrival.is_first
}

/// Counts the segments that wait for an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayedAck {
    rules: Rules,
    /// Number of segments per delayed ACK.
    every: u32,
    owed: u32,
    /// Number of segments acknowledged immediately at the start of the connection and after a duplicate (Linux:
    /// quick acknowledgements).
    quick: u32,
    quick_left: u32,
}

impl DelayedAck {
    pub(super) fn new(settings: &Settings) -> DelayedAck {
        let (rules, every, quick) = (settings.rules, settings.ack_every, settings.quick_acks);
        DelayedAck { rules, every, owed: 0, quick, quick_left: quick }
    }

    /// Records the arrival of a segment; returns whether to acknowledge immediately.
    #[inline]
    pub(super) fn is_due(&mut self, arrival: &Arrival) -> bool {
        let may_wait = match self.rules {
            Rules::Rfc => may_wait_rfc(arrival),
            Rules::Ns2 => may_wait_ns2(arrival),
        };
        if !may_wait {
            if arrival.repeated {
                self.on_duplicate();
            }
            return true;
        }
        if self.quick_left > 0 {
            self.quick_left -= 1;
            return true;
        }
        self.owed += 1;
        self.owed >= self.every
    }

    /// Called when data arrive again: the next segments are acknowledged immediately.
    pub(super) fn on_duplicate(&mut self) {
        self.quick_left = self.quick;
    }

    /// Called before [`is_due`](DelayedAck::is_due) for a segment that opens the window: it is acknowledged
    /// immediately, as in Linux. If the number of quick acknowledgements was even, it does not count among them.
    pub(super) fn on_opened_window(&mut self) {
        self.quick_left |= 1;
    }

    /// Called when any acknowledgement is sent.
    pub(super) fn on_acknowledged(&mut self) {
        self.owed = 0;
    }
}
