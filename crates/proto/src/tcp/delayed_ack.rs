//! Which segments are acknowledged at once, and which may wait (RFC 9293 section 3.8.6.3).

use super::settings::{Rules, Settings};

/// How a segment with data or FIN has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// It is the first of the connection.
    pub(super) is_first: bool,
    /// It begins with the byte that was expected next.
    pub(super) in_order: bool,
    /// It ends where all that has arrived in order ends now.
    pub(super) at_edge: bool,
    /// Something lay behind a gap before it came.
    pub(super) had_gap: bool,
    /// Something lies behind a gap still.
    pub(super) has_gap: bool,
    /// All of it had arrived before.
    pub(super) repeated: bool,
}

/// RFC 5681 section 4.2: what is out of order, fills a gap or comes again is acknowledged at once; so is what lies
/// beyond the window in part (RFC 9293 section 3.10.7.4).
fn may_wait_rfc(arrival: &Arrival) -> bool {
    arrival.in_order && arrival.at_edge && !arrival.had_gap
}

/// ns-2's `DelAckSink`: what fills the last gap may wait, and so may the last segment if it comes again; the first
/// segment is acknowledged at once.
fn may_wait_ns2(arrival: &Arrival) -> bool {
    arrival.at_edge && !arrival.has_gap && !arrival.is_first
}

/// Counts the segments that wait for an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct DelayedAck {
    may_wait: fn(&Arrival) -> bool,
    /// So many segments are acknowledged together.
    every: u32,
    owed: u32,
    /// So many segments are acknowledged at once whatever they are, at the beginning and after a repeat (Linux:
    /// quick acknowledgements).
    quick: u32,
    quick_left: u32,
}

impl DelayedAck {
    pub(super) fn new(settings: &Settings) -> DelayedAck {
        let may_wait = match settings.rules {
            Rules::Rfc => may_wait_rfc,
            Rules::Ns2 => may_wait_ns2,
        };
        let (every, quick) = (settings.ack_every, settings.quick_acks);
        DelayedAck { may_wait, every, owed: 0, quick, quick_left: quick }
    }

    /// A segment has arrived; whether to acknowledge at once.
    pub(super) fn is_due(&mut self, arrival: &Arrival) -> bool {
        if !(self.may_wait)(arrival) {
            if arrival.repeated {
                self.quick_left = self.quick;
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

    /// An acknowledgement goes out, for whatever reason.
    pub(super) fn on_acknowledged(&mut self) {
        self.owed = 0;
    }
}
