//! Round robin: after each attempt, successful or not, the next mobile host has its turn.

use lasthop_base::Time;

use super::dispatch::{Choice, Dispatcher, Offer, next_ready, wait};

/// Serves the mobile hosts in turn.
#[derive(Default)]
pub(super) struct RoundRobin {
    turn: usize,
}

impl Dispatcher for RoundRobin {
    fn choose(&mut self, now: Time, offers: &[Offer]) -> Choice {
        match next_ready(now, offers, self.turn, |_, _| true) {
            Some(mobile) => {
                self.turn = mobile + 1;
                Choice::Serve(mobile)
            }
            None => wait(offers),
        }
    }
}
