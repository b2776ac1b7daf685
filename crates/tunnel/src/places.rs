//! Where the other end was heard lately.

use std::net::SocketAddr;

use lasthop_base::{Duration, Time};

/// How long an address is remembered, and how many.
const LATELY: Duration = Duration::from_secs(60);
const LEN: usize = 8;

/// The addresses from which the other end was heard, each with the time of the last move to it.
#[derive(Debug, Default)]
pub(crate) struct Places {
    heard: Vec<(Time, SocketAddr)>,
}

impl Places {
    /// The other end has moved to `peer`; returns whether it was not there lately. Of a path that spreads datagrams over several
    /// addresses, the first [`LEN`] are news, and no more until these are forgotten.
    pub(crate) fn is_new(&mut self, now: Time, peer: SocketAddr) -> bool {
        self.heard.retain(|(moved, _)| now < *moved + LATELY);
        if let Some((moved, _)) = self.heard.iter_mut().find(|(_, known)| *known == peer) {
            *moved = now;
            return false;
        }
        let has_room = self.heard.len() < LEN;
        if has_room {
            self.heard.push((now, peer));
        }
        has_room
    }
}
