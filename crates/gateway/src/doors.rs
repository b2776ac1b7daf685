//! Whether clients reach this host, and get its answers.
//!
//! A firewall of this host may drop or reject what is for its own sockets, and with it the packets of clients whose flows are
//! split. So the first SYN at a door that is not known to be open is a trial: it goes to this host with a wrong
//! checksum, which nobody answers, and its client soon asks again. Where trials do not arrive, flows are left alone.
//!
//! ```text
//! untried ── a trial arrives ──> open ── some SYN has not arrived ──> in doubt: the next is a trial
//!    └────── it does not ──────> closed for five minutes; after a few such doors of a side, all of them
//! ```

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::setup::Side;

/// The clients of one side, of IPv4 or not, who ask for one port: a firewall treats them alike.
pub(crate) type Door = (Side, bool, u16);

/// How often a client asks again that has no answer: the first time, the radio may have lost it.
pub(crate) const REPEATS: u32 = 2;

/// So many closed doors or clients without an answer, one after the other, close all doors of a side.
const FEW: u32 = 3;

/// How long a closed door stays so until there is a trial.
const AGAIN: Duration = Duration::from_secs(300);

/// The largest number of doors that are closed or in doubt. Others count as open.
const LARGEST: usize = 4096;

/// What becomes of a SYN at a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Its flow may be split.
    Open,
    /// It is a trial.
    Trial,
    /// Its flow is left alone.
    Closed,
}

/// Why a door may not be open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doubt {
    /// A SYN may not have arrived.
    Suspected,
    /// A trial has not, and there is no other until then.
    Closed(Instant),
    /// After one that has not, one has.
    Reopened,
}

/// The doors of one side, of IPv4 or not.
#[derive(Clone, Copy, Debug)]
struct Wall {
    /// Whether some client or trial has come through.
    is_tried: bool,
    /// The doors found closed, and the clients without an answer, since one had any.
    failures: u32,
    /// With a few of them, when there is a trial.
    again: Instant,
    /// Whether it was told that there were a few.
    is_told: bool,
}

/// The doors through which clients may not come.
#[derive(Debug)]
pub(crate) struct Doors {
    has_firewall: bool,
    walls: HashMap<(Side, bool), Wall>,
    doubts: HashMap<Door, Doubt>,
}

impl Doors {
    /// Those of a host whose firewall has rules for what is its own, or has none.
    pub(crate) fn new(has_firewall: bool) -> Doors {
        Doors { has_firewall, walls: HashMap::new(), doubts: HashMap::new() }
    }

    fn wall(&mut self, (side, is_ipv4, _): Door, now: Instant) -> &mut Wall {
        let is_tried = !self.has_firewall;
        self.walls.entry((side, is_ipv4)).or_insert(Wall {
            is_tried,
            failures: 0,
            again: now,
            is_told: false,
        })
    }

    /// What becomes of a SYN at `now`.
    pub(crate) fn way(&mut self, door: Door, now: Instant) -> Way {
        let doubt = self.doubts.get(&door).copied();
        let wall = self.wall(door, now);
        if wall.failures >= FEW {
            if now < wall.again {
                return Way::Closed;
            }
            wall.again = now + AGAIN;
            return Way::Trial;
        }
        match doubt {
            Some(Doubt::Closed(until)) if now < until => Way::Closed,
            Some(Doubt::Reopened) => Way::Open,
            None if wall.is_tried => Way::Open,
            _ => Way::Trial,
        }
    }

    /// Notes whether a trial has arrived; returns whether this closes what was not closed before.
    pub(crate) fn tried(&mut self, door: Door, has_arrived: bool, now: Instant) -> bool {
        let wall = self.wall(door, now);
        if has_arrived {
            // Whether clients get answers is seen by those that follow.
            (wall.is_tried, wall.failures) = (true, wall.failures.min(FEW - 1));
            if let Some(Doubt::Closed(_)) = self.doubts.remove(&door) {
                self.doubts.insert(door, Doubt::Reopened);
            }
            return false;
        }
        (wall.failures, wall.again) = (wall.failures.saturating_add(1), now + AGAIN);
        wall.is_told |= wall.failures >= FEW;
        self.set(door, Doubt::Closed(now + AGAIN)).is_none_or(|before| before == Doubt::Suspected)
    }

    /// Notes a client without an answer; returns whether this closes all doors of its side.
    pub(crate) fn unheard(&mut self, door: Door, now: Instant) -> bool {
        let wall = self.wall(door, now);
        (wall.failures, wall.again) = (wall.failures.saturating_add(1), now + AGAIN);
        let is_closed = wall.failures == FEW;
        wall.is_told |= is_closed;
        is_closed
    }

    /// Notes a client that had an answer; returns whether its door was closed before.
    pub(crate) fn heard(&mut self, door: Door, now: Instant) -> bool {
        let was_closed = self.doubts.remove(&door).is_some_and(|doubt| doubt != Doubt::Suspected);
        let wall = self.wall(door, now);
        (wall.is_tried, wall.failures) = (true, 0);
        std::mem::take(&mut wall.is_told) || was_closed
    }

    /// Notes that a SYN may not have arrived.
    pub(crate) fn doubt(&mut self, door: Door) {
        if !matches!(self.doubts.get(&door), Some(Doubt::Closed(_))) {
            self.set(door, Doubt::Suspected);
        }
    }

    /// Sets the doubt about a door, if there is room; returns the one before.
    fn set(&mut self, door: Door, doubt: Doubt) -> Option<Doubt> {
        if self.doubts.len() >= LARGEST {
            self.doubts.retain(|_, doubt| matches!(doubt, Doubt::Closed(_)));
        }
        let has_room = self.doubts.len() < LARGEST || self.doubts.contains_key(&door);
        has_room.then(|| self.doubts.insert(door, doubt)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOOR: Door = (Side::Radio, true, 443);
    const NEXT: Door = (Side::Radio, true, 80);
    const OTHER_SIDE: Door = (Side::Wired, true, 443);

    #[test]
    fn without_a_firewall_a_door_is_open_until_a_few_have_no_answer() {
        let (mut doors, now) = (Doors::new(false), Instant::now());
        assert!(!doors.unheard(DOOR, now) && !doors.unheard(NEXT, now));
        assert_eq!(doors.way(DOOR, now), Way::Open);
        assert!(!doors.heard(DOOR, now), "one in between had an answer");
        assert!(!doors.unheard(DOOR, now) && !doors.unheard(NEXT, now) && doors.unheard(DOOR, now));
        assert_eq!((doors.way(DOOR, now), doors.way(OTHER_SIDE, now)), (Way::Closed, Way::Open));
        let later = now + AGAIN;
        assert_eq!([0, 1].map(|_| doors.way(DOOR, later)), [Way::Trial, Way::Closed]);
        assert!(!doors.tried(DOOR, true, later) && doors.way(DOOR, later) == Way::Open);
        assert!(doors.unheard(DOOR, later), "its answers do not leave");
        assert!(doors.heard(DOOR, later) && !doors.heard(DOOR, later), "the firewall was opened");
    }

    #[test]
    fn with_a_firewall_the_first_is_a_trial() {
        let (mut doors, now) = (Doors::new(true), Instant::now());
        assert_eq!(doors.way(DOOR, now), Way::Trial);
        assert!(!doors.tried(DOOR, true, now));
        assert_eq!((doors.way(DOOR, now), doors.way(NEXT, now)), (Way::Open, Way::Open));
        assert_eq!(doors.way(OTHER_SIDE, now), Way::Trial);
    }

    #[test]
    fn a_door_that_stops_trials_is_closed_and_after_a_few_all_are() {
        let (mut doors, now) = (Doors::new(false), Instant::now());
        doors.doubt(DOOR);
        assert_eq!((doors.way(DOOR, now), doors.way(NEXT, now)), (Way::Trial, Way::Open));
        assert!(doors.tried(DOOR, false, now), "news");
        assert_eq!((doors.way(DOOR, now), doors.way(NEXT, now)), (Way::Closed, Way::Open));
        doors.doubt(DOOR);
        assert_eq!(doors.way(DOOR, now), Way::Closed, "known to be closed");
        let later = now + AGAIN;
        assert_eq!(doors.way(DOOR, later), Way::Trial);
        assert!(!doors.tried(DOOR, false, later) && doors.tried(NEXT, false, later));
        assert_eq!(doors.way((Side::Radio, true, 22), later), Way::Closed);
        assert_eq!(doors.way(DOOR, later + AGAIN), Way::Trial);
        assert!(!doors.tried(DOOR, true, later + AGAIN));
        assert_eq!(doors.way(DOOR, later + AGAIN), Way::Open);
        assert!(doors.heard(DOOR, later + AGAIN) && !doors.heard(DOOR, later + AGAIN), "told once");
        let others = [22, 25, 53].map(|port| doors.tried((Side::Radio, true, port), false, later));
        assert_eq!(others, [true; 3], "news");
        assert!(doors.heard(DOOR, later), "all of its side were closed");
    }

    #[test]
    fn doubts_are_bounded() {
        let (mut doors, now) = (Doors::new(false), Instant::now());
        for port in 0..5000 {
            doors.doubt((Side::Radio, true, port));
            doors.tried((Side::Wired, true, port), false, now);
        }
        assert!((1..=LARGEST).contains(&doors.doubts.len()));
    }
}
