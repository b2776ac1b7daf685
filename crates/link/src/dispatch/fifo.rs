//! First in, first out: while the oldest packet is retransmitted, all others wait (head-of-line blocking).

use lasthop_base::Time;

use super::{Choice, Dispatcher, Offer};

/// Serves the packet that arrived first.
pub(super) struct Fifo;

impl Dispatcher for Fifo {
    fn choose(&mut self, now: Time, offers: &[Offer]) -> Choice {
        let waiting = offers.iter().enumerate().filter_map(|(mobile, offer)| Some((offer.oldest?, mobile)));
        match waiting.min() {
            Some((_, mobile)) if offers[mobile].ready <= now => Choice::Serve(mobile),
            Some((_, mobile)) => Choice::Wait(offers[mobile].ready),
            None => Choice::Wait(Time::NEVER),
        }
    }

    fn has_one_queue(&self) -> bool {
        true
    }
}
