//! Why a tunnel may not come up, as far as the datagrams tell: another key at the other end, or no answer at all.

use lasthop_base::{Duration, Time};

/// How often it is told: strangers must not fill the log.
const AGAIN: Duration = Duration::from_secs(60);

/// What is to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// So many datagrams have failed authentication since the tunnel was up last, and none has passed.
    Key(u64),
    /// The other gateway has never answered.
    NoAnswer,
}

/// What is known since the tunnel was up last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    patience: Duration,
    /// When the other gateway, if it is known, should have answered; `None` once it has, or that is told.
    answer: Option<Time>,
    /// The forged datagrams when the tunnel was up last.
    forged: u64,
    /// When the first forged one came since then.
    since: Option<Time>,
    /// When it may be told again.
    next: Time,
}

impl Doubt {
    pub(super) fn new(now: Time, patience: Duration, has_peer: bool) -> Doubt {
        let answer = has_peer.then_some(now + patience);
        Doubt { patience, answer, forged: 0, since: None, next: now }
    }

    /// Looks at the state of the tunnel, and the number of its forged datagrams. Those of a former session come for a moment
    /// after this gateway has started anew, and are no cause.
    pub(super) fn look(&mut self, now: Time, is_up: bool, forged: u64) -> Option<Cause> {
        if is_up {
            (self.answer, self.forged, self.since) = (None, forged, None);
            return None;
        }
        if forged > self.forged {
            let since = *self.since.get_or_insert(now);
            if now >= since + self.patience && now >= self.next {
                (self.next, self.answer) = (now + AGAIN, None);
                return Some(Cause::Key(forged - self.forged));
            }
        }
        self.answer.take_if(|answer| now >= *answer).map(|_| Cause::NoAnswer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(3);

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn another_key_is_told_once_a_minute() {
        let mut doubt = Doubt::new(at(10), PATIENCE, false);
        let told: Vec<_> =
            (10..200).filter(|&second| doubt.look(at(second), false, second).is_some()).collect();
        assert_eq!(told, [13, 73, 133, 193]);
    }

    #[test]
    fn the_end_of_a_former_session_is_no_other_key() {
        let mut doubt = Doubt::new(at(0), PATIENCE, true);
        assert_eq!([doubt.look(at(0), false, 5), doubt.look(at(2), false, 9)], [None; 2]);
        assert_eq!([doubt.look(at(3), true, 9), doubt.look(at(9), false, 9)], [None; 2]);
        // Nothing has come since it was up, and it has answered once.
        assert_eq!(doubt.look(at(90), false, 9), None);
        assert_eq!(
            [doubt.look(at(91), false, 10), doubt.look(at(94), false, 14)],
            [None, Some(Cause::Key(5))]
        );
    }

    #[test]
    fn no_answer_is_told_once() {
        let mut doubt = Doubt::new(at(0), PATIENCE, true);
        assert_eq!([0, 2, 3, 4, 900].map(|second| doubt.look(at(second), false, 0)), {
            [None, None, Some(Cause::NoAnswer), None, None]
        });
        let mut finds = Doubt::new(at(0), PATIENCE, false);
        assert_eq!(finds.look(at(900), false, 0), None, "it waits to be found");
    }
}
