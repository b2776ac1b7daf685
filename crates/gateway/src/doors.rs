//! Whether clients get the gateway's answers.
//!
//! A firewall of this host may drop what is for its own sockets, and with it the packets of clients whose flows are split:
//! their servers have answered, and they ask again and again. Such clients are left alone, but for one now and then.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::setup::Side;

/// The clients of one side, of IPv4 or not, whose packets a firewall treats alike.
pub(crate) type Door = (Side, bool);

/// How often a client asks again that has no answer: the first time, the radio may have lost it.
pub(crate) const REPEATS: u32 = 2;

/// So many clients without an answer, one after the other, close a door.
const FEW: u32 = 3;

/// How long a closed door stays so until a flow is tried.
const AGAIN: Duration = Duration::from_secs(300);

/// The clients without an answer since one had any, and when a flow is tried.
#[derive(Clone, Copy, Debug)]
struct Unheard {
    count: u32,
    again: Instant,
}

/// The doors through which no client has come since one did not.
#[derive(Debug, Default)]
pub(crate) struct Doors(HashMap<Door, Unheard>);

impl Doors {
    /// Whether a flow may be opened at `now`.
    pub(crate) fn admits(&mut self, door: Door, now: Instant) -> bool {
        let Some(unheard) = self.0.get_mut(&door).filter(|unheard| unheard.count >= FEW) else { return true };
        let is_trial = now >= unheard.again;
        if is_trial {
            unheard.again = now + AGAIN;
        }
        is_trial
    }

    /// Notes a client without an answer; returns whether this closes the door.
    pub(crate) fn unheard(&mut self, door: Door, now: Instant) -> bool {
        let unheard = self.0.entry(door).or_insert(Unheard { count: 0, again: now });
        (unheard.count, unheard.again) = (unheard.count.saturating_add(1), now + AGAIN);
        unheard.count == FEW
    }

    /// Notes a client that had an answer; returns whether this opens a closed door.
    pub(crate) fn heard(&mut self, door: Door) -> bool {
        self.0.remove(&door).is_some_and(|unheard| unheard.count >= FEW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_closes_after_a_few_and_is_tried_now_and_then() {
        let (mut doors, now) = (Doors::default(), Instant::now());
        let (door, other) = ((Side::Radio, true), (Side::Wired, true));
        assert!(!doors.unheard(door, now) && !doors.unheard(door, now));
        assert!(doors.admits(door, now) && !doors.heard(door), "one in between had an answer");
        assert!(!doors.unheard(door, now) && !doors.unheard(door, now) && doors.unheard(door, now));
        assert!(!doors.admits(door, now) && doors.admits(other, now));
        assert!(doors.admits(door, now + AGAIN) && !doors.admits(door, now + AGAIN), "one is tried");
        assert!(!doors.unheard(door, now + AGAIN), "it is closed already");
        assert!(!doors.admits(door, now + AGAIN) && doors.admits(door, now + 2 * AGAIN));
        assert!(doors.heard(door) && doors.admits(door, now), "the firewall was opened");
    }
}
