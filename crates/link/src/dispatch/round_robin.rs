//! Round robin: after each attempt, successful or not, the next mobile host has its turn.

use lasthop_base::Time;

use super::{Choice, Dispatcher, Offer, Turn};

/// Serves the mobile hosts in turn.
#[derive(Default)]
pub(super) struct RoundRobin {
    turn: Turn,
}

impl Dispatcher for RoundRobin {
    fn choose(&mut self, now: Time, offers: &[Offer]) -> Choice {
        let ready = self.turn.find(now, offers, |_, _| true);
        self.turn.pass(ready, offers)
    }
}
