//! Round robin by a base station that knows the state of every channel: an upper bound for
//! [channel-state dependent](super::channel_state) dispatch.

use lasthop_base::Time;

use super::dispatch::{Choice, Dispatcher, Offer, next_ready, wait};

/// Round robin over the mobile hosts whose channel is in the good state. If there is none, over all.
#[derive(Default)]
pub(super) struct Ideal {
    turn: usize,
}

impl Dispatcher for Ideal {
    fn choose(&mut self, now: Time, offers: &[Offer]) -> Choice {
        let good = next_ready(now, offers, self.turn, |_, offer| offer.good);
        match good.or_else(|| next_ready(now, offers, self.turn, |_, _| true)) {
            Some(mobile) => {
                self.turn = mobile + 1;
                Choice::Serve(mobile)
            }
            None => wait(offers),
        }
    }

    fn knows_channels(&self) -> bool {
        true
    }
}
