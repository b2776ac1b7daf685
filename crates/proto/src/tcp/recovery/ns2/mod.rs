//! Recovery of ns-2's agents, where it differs from the RFCs.

mod sack;

use alloc::boxed::Box;

use lasthop_base::Time;

use super::newreno::NewReno;
use super::{Recovery, acknowledge_and_open, retransmit_or_inflate, send_unless_early_duplicate};
use crate::component::Out;
use crate::packet::{Segment, SeqNum};
use crate::tcp::action::Action;
use crate::tcp::settings::{Flavour, Settings};
use crate::tcp::state::SenderState;

/// Maximum number of segments that NewReno sends per acknowledgement while it counts duplicates.
const BURST: u32 = 2;

/// The ns-2 recovery of the flavour, if it differs.
pub(super) fn of(settings: &Settings) -> Option<Box<dyn Recovery>> {
    match settings.flavour {
        Flavour::Reno => Some(Box::new(RenoNs2)),
        Flavour::NewReno => Some(Box::new(NewRenoNs2::default())),
        Flavour::Sack => Some(Box::new(sack::SackNs2::new(SeqNum(settings.iss)))),
        _ => None,
    }
}

/// Ends recovery, if any, on a new acknowledgement, which grows the window like any other.
fn end_and_open(tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32) {
    tcp.recovering = false;
    tcp.inflation = 0;
    acknowledge_and_open(tcp, now, segment, acked);
}

/// `Agent/TCP/Reno`.
#[derive(Debug)]
struct RenoNs2;

impl Recovery for RenoNs2 {
    fn ignores(&self, _action: Action) -> Option<&'static str> {
        None
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, _out: &mut Out) {
        end_and_open(tcp, now, segment, acked);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, _segment: &Segment, out: &mut Out) {
        retransmit_or_inflate(tcp, now, out);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        send_unless_early_duplicate(tcp, now, tcp.settings.max_burst, out);
    }
}

/// `Agent/TCP/Newreno`. The acknowledgement of data sent during recovery ends the backoff, but gives no
/// sample.
#[derive(Debug, Default)]
struct NewRenoNs2(NewReno);

impl Recovery for NewRenoNs2 {
    fn ignores(&self, _action: Action) -> Option<&'static str> {
        None
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, out: &mut Out) {
        if NewReno::is_partial(tcp, segment) {
            self.0.advance(tcp, now, segment);
            tcp.end_backoff_if_timed(segment.ack);
            return NewReno::repair(tcp, now, acked, out);
        }
        self.0.end();
        end_and_open(tcp, now, segment, acked);
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, _segment: &Segment, out: &mut Out) {
        retransmit_or_inflate(tcp, now, out);
    }

    fn on_timeout(&mut self, tcp: &mut SenderState, now: Time) {
        self.0.on_timeout(tcp, now);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        let burst = if tcp.dupacks() > 0 { BURST } else { tcp.settings.max_burst };
        send_unless_early_duplicate(tcp, now, burst, out);
    }
}
