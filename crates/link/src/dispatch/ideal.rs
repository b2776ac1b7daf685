//! Round robin by a base station that knows the state of every channel: an upper bound for
//! [channel-state dependent](super::channel_state) dispatch.

use lasthop_base::Time;

use super::{Choice, Dispatcher, Offer, Turn};

/// Round robin over the mobile hosts whose channel is in the good state. If there is none, over all.
#[derive(Default)]
pub(super) struct Ideal {
    turn: Turn,
}

impl Dispatcher for Ideal {
    fn choose(&mut self, now: Time, offers: &[Offer]) -> Choice {
        let good = self.turn.find(now, offers, |_, offer| offer.good);
        let chosen = good.or_else(|| self.turn.find(now, offers, |_, _| true));
        self.turn.pass(chosen, offers)
    }

    fn knows_channels(&self) -> bool {
        true
    }
}
