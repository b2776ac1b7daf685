//! Reno: fast recovery until the first new acknowledgement (RFC 5681 section 3.2).

use lasthop_base::Time;

use super::{Recovery, acknowledge_and_open, retransmit_or_inflate, send_unless_early_duplicate};
use crate::component::Out;
use crate::packet::Segment;
use crate::tcp::action::Action;
use crate::tcp::state::SenderState;

/// Fast retransmit and fast recovery; the first acknowledgement of new data ends it.
#[derive(Debug)]
pub(super) struct Reno;

impl Recovery for Reno {
    fn ignores(&self, _action: Action) -> Option<&'static str> {
        None
    }

    fn on_ack(&mut self, tcp: &mut SenderState, now: Time, segment: &Segment, acked: u32, _out: &mut Out) {
        let ends = core::mem::take(&mut tcp.recovering);
        let inflation = core::mem::take(&mut tcp.inflation);
        if ends {
            let more = inflation > tcp.settings.dupthresh * tcp.mss;
            if !tcp.settings.deflation.takes_back(more) {
                tcp.keep_inflation(inflation);
            }
            // RFC 5681 section 3.2 step 6: the window stays at ssthresh for this acknowledgement.
            tcp.acknowledge(now, segment);
        } else {
            acknowledge_and_open(tcp, now, segment, acked);
        }
    }

    fn on_duplicate(&mut self, tcp: &mut SenderState, now: Time, _segment: &Segment, out: &mut Out) {
        retransmit_or_inflate(tcp, now, out);
    }

    fn send(&mut self, tcp: &mut SenderState, now: Time, out: &mut Out) {
        send_unless_early_duplicate(tcp, now, tcp.settings.max_burst, out);
    }
}
