//! Channel-state dependent packet scheduling (CSDP).
//!
//! **What it does.** The base station has a queue for each mobile host and serves them round robin. If a link-level
//! acknowledgement does not come, the mobile host is taken to be in a fade, and its queue is marked. Marked queues are
//! skipped for a time. The next attempt to the mobile host then shows whether the fade is over.
//! **Source.** Bhagwat, Bhattacharya, Krishna and Tripathi, "Enhancing throughput over wireless LANs using channel state
//! dependent packet scheduling", INFOCOM 1996.
//! **Differences from the paper.** If all mobile hosts with packets are deferred, the one whose time ends first is
//! served: nobody else could use the air.

use lasthop_base::{Duration, Time};

use super::{Choice, Dispatcher, Offer, Turn};

/// Round robin over the mobile hosts that are not deferred.
pub(super) struct ChannelState {
    wait: Duration,
    turn: Turn,
    /// Until when each mobile host is deferred.
    deferred: Vec<Time>,
}

impl ChannelState {
    pub(super) fn new(wait: Duration, mobiles: usize) -> ChannelState {
        ChannelState { wait, turn: Turn::default(), deferred: vec![Time::ZERO; mobiles] }
    }
}

impl Dispatcher for ChannelState {
    fn choose(&mut self, now: Time, offers: &[Offer]) -> Choice {
        let ready = self.turn.find(now, offers, |mobile, _| self.deferred[mobile] <= now);
        let deferred = || {
            let ready = (0..offers.len()).filter(|&mobile| offers[mobile].ready <= now);
            ready.min_by_key(|&mobile| self.deferred[mobile])
        };
        let chosen = ready.or_else(deferred);
        self.turn.pass(chosen, offers)
    }

    fn ended(&mut self, now: Time, mobile: usize, arrived: bool) {
        self.deferred[mobile] = if arrived { Time::ZERO } else { now + self.wait };
    }
}
