//! Flows that shall get agents and are being opened.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use lasthop_live::bump::RadioFlow;

use crate::flow::Flow;

/// How long a flow may take until its first packet, or the answer, reaches the agents.
const PATIENCE: Duration = Duration::from_secs(10);

/// A flow that is being opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Its ends, as the client has them.
    pub(super) flow: Flow,
    /// The number of its scheme.
    pub(super) scheme: usize,
    /// The window scale that it offers.
    pub(super) scale: Option<u8>,
    /// Whether the client is behind the radio.
    pub(super) mobile_opens: bool,
    /// The flow, and the number of the radio, if its packets are diverted although no agent knows it yet.
    pub(super) diverted: Option<(usize, RadioFlow)>,
}

/// All of them, by the sequence number of the packet that opens each, which NAT leaves as it is.
#[derive(Debug)]
pub(super) struct AllPending {
    all: HashMap<u32, (Pending, Instant)>,
    order: VecDeque<(Instant, u32)>,
    per_client: HashMap<IpAddr, u32>,
    limit: usize,
    limit_per_client: u32,
}

impl AllPending {
    pub(super) fn new(limit: u32, limit_per_client: u32) -> AllPending {
        AllPending {
            all: HashMap::new(),
            order: VecDeque::new(),
            per_client: HashMap::new(),
            limit: limit as usize,
            limit_per_client,
        }
    }

    pub(super) fn set_limits(&mut self, limit: u32, limit_per_client: u32) {
        (self.limit, self.limit_per_client) = (limit as usize, limit_per_client);
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get_mut(&mut self, seq: u32) -> Option<&mut Pending> {
        self.all.get_mut(&seq).map(|(pending, _)| pending)
    }

    /// Adds a flow; returns false if the limits allow no more, or another one has its number. One that is known stays as it is.
    pub(super) fn add(&mut self, seq: u32, pending: Pending, now: Instant) -> bool {
        if let Some((known, _)) = self.all.get(&seq) {
            return known.flow == pending.flow;
        }
        let client = pending.flow.client.ip();
        let of_client = self.per_client.entry(client).or_default();
        if self.all.len() >= self.limit || *of_client >= self.limit_per_client {
            if *of_client == 0 {
                self.per_client.remove(&client);
            }
            return false;
        }
        *of_client += 1;
        self.all.insert(seq, (pending, now));
        self.order.push_back((now + PATIENCE, seq));
        true
    }

    /// Removes a flow, if it is there.
    pub(super) fn remove(&mut self, seq: u32) {
        let Some((pending, _)) = self.all.remove(&seq) else { return };
        let client = pending.flow.client.ip();
        if let Some(count) = self.per_client.get_mut(&client) {
            *count -= 1;
            if *count == 0 {
                self.per_client.remove(&client);
            }
        }
    }

    /// Removes those whose time is over; returns the flows among them whose packets are diverted.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<(usize, RadioFlow)> {
        let mut diverted = Vec::new();
        while let Some((deadline, seq)) = self.order.front().copied().filter(|(deadline, _)| *deadline <= now)
        {
            self.order.pop_front();
            // A later flow may have the same number.
            if let Some((pending, began)) = self.all.get(&seq).copied()
                && began + PATIENCE == deadline
            {
                diverted.extend(pending.diverted);
                self.remove(seq);
            }
        }
        diverted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(client: u8, diverted: bool) -> Pending {
        let end = |host: u8| ([10, 0, 0, host], 80).into();
        let flow = RadioFlow { mobile: end(client), fixed: end(9) };
        Pending {
            flow: Flow { client: end(client), server: end(9) },
            scheme: 0,
            scale: None,
            mobile_opens: diverted,
            diverted: diverted.then_some((0, flow)),
        }
    }

    #[test]
    fn limits_are_for_all_and_for_each_client() {
        let (mut all, now) = (AllPending::new(3, 2), Instant::now());
        assert!(all.add(1, pending(1, false), now) && all.add(2, pending(1, false), now));
        assert!(!all.add(3, pending(1, false), now), "of one client");
        assert!(all.add(1, pending(1, false), now), "it is known");
        assert!(!all.add(1, pending(2, false), now), "the number of another's");
        let mut other = pending(1, true);
        other.flow.server.set_port(81);
        assert!(!all.add(1, other, now), "the number of another flow of the same client");
        assert!(all.add(4, pending(2, false), now));
        assert!(!all.add(5, pending(3, false), now), "of all");
        all.remove(1);
        assert!(all.add(6, pending(1, false), now));
        (1..9).for_each(|seq| all.remove(seq));
        assert!(all.len() == 0 && all.per_client.is_empty());
    }

    #[test]
    fn flows_that_nobody_answers_are_forgotten_and_no_longer_diverted() {
        let (mut all, now) = (AllPending::new(9, 9), Instant::now());
        all.add(1, pending(1, true), now);
        all.add(2, pending(2, true), now);
        all.remove(2);
        all.add(2, pending(3, false), now + PATIENCE / 2);
        assert!(all.expire(now + PATIENCE - Duration::from_nanos(1)).is_empty());
        let over = all.expire(now + PATIENCE);
        assert_eq!(over.len(), 1);
        assert_eq!((over[0].1.mobile.ip(), all.len()), (pending(1, true).flow.client.ip(), 1));
        assert!(all.expire(now + PATIENCE * 2).is_empty());
        assert!(all.len() == 0 && all.per_client.is_empty() && all.order.is_empty());
    }
}
