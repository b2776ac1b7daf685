//! Enhanced distributed channel access: who sends next.

use std::collections::VecDeque;

use lasthop_base::{Duration, Stream, Time};
use lasthop_link::wifi::{Access, SIFS, SLOT};
use lasthop_link::wlan::{Cw, RetryLimit};

/// The EDCA function of a contender for one category.
pub(super) struct Function {
    /// SIFS and the idle slots before the backoff.
    aifs: Duration,
    cw: Cw,
    retry_limit: RetryLimit,
    /// The time that it may send for; zero for one PPDU.
    pub(super) txop: Duration,
    window: u32,
    /// Failed accesses in a row.
    failures: u32,
    slots: u32,
    /// The backoff slots start no earlier.
    start: Time,
    /// The agreements with frames, in the order of service.
    pub(super) ready: VecDeque<usize>,
    /// The agreements whose receivers answered an RTS in the TXOP.
    pub(super) protected: Vec<usize>,
}

/// Contention state common to the functions of the access point, of a station or of a neighbouring BSS.
pub(super) struct Contender {
    /// Who hears it: the contenders of its area; all if it is 0.
    pub(super) area: usize,
    /// Until when it waits for a response, or longer than others after a collision.
    pub(super) hold: Time,
    pub(super) backoff: Stream,
}

impl Contender {
    pub(super) fn new(area: usize, backoff: Stream) -> Contender {
        Contender { area, hold: Time::ZERO, backoff }
    }
}

impl Function {
    pub(super) fn new(access: &Access, retry_limit: RetryLimit) -> Function {
        Function {
            aifs: SIFS + SLOT * u64::from(access.aifsn),
            cw: access.cw,
            retry_limit,
            txop: access.txop,
            window: access.cw.min,
            failures: 0,
            slots: 0,
            start: Time::ZERO,
            ready: VecDeque::new(),
            protected: Vec::new(),
        }
    }

    /// The contention window.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// When its backoff slots start on a medium that is idle since `idle_from`.
    fn slots_from(&self, idle_from: Time) -> Time {
        self.start.max(idle_from + self.aifs)
    }

    /// When it transmits unless the medium becomes busy before; never without frames.
    pub(super) fn due(&self, idle_from: Time) -> Time {
        if self.ready.is_empty() {
            return Time::NEVER;
        }
        self.slots_from(idle_from) + SLOT * u64::from(self.slots)
    }

    /// The medium becomes busy at `now`, or its backoff is brought up to date: one slot ends with the AIFS, and another
    /// with each idle slot.
    pub(super) fn count_down(&mut self, now: Time, idle_from: Time) {
        let from = self.slots_from(idle_from);
        if from <= now && self.slots > 0 {
            let ended = now.since(from).as_nanos() / SLOT.as_nanos() + 1;
            let ended = ended.min(u64::from(self.slots)) as u32;
            self.slots -= ended;
            self.start = from + SLOT * u64::from(ended);
        }
    }

    /// Its first frame arrives at `now`, while the medium is idle since `idle_from` or busy.
    pub(super) fn wake(&mut self, now: Time, idle_from: Option<Time>, backoff: &mut Stream) {
        let Some(idle_from) = idle_from else {
            if self.slots == 0 {
                self.draw(now, backoff);
            }
            return;
        };
        self.count_down(now, idle_from);
        let first = idle_from + self.aifs;
        if self.slots == 0 && now > first {
            // Functions act at slot boundaries.
            let slots = now.since(first).as_nanos() / SLOT.as_nanos() + 1;
            self.start = self.start.max(first + SLOT * slots);
        }
    }

    fn draw(&mut self, now: Time, backoff: &mut Stream) {
        self.slots = backoff.below(u64::from(self.window) + 1) as u32;
        self.start = now;
    }

    /// An access ended at `now`.
    pub(super) fn succeed(&mut self, now: Time, backoff: &mut Stream) {
        (self.window, self.failures) = (self.cw.min, 0);
        self.protected.clear();
        self.draw(now, backoff);
    }

    /// An access failed, which is known at `now`. At the retry limit the window begins anew (IEEE 802.11-2020, section 10.23.2.2).
    pub(super) fn fail(&mut self, now: Time, backoff: &mut Stream) {
        self.protected.clear();
        self.failures = self.failures.saturating_add(1);
        self.window = self.cw.after_failure(self.window);
        if self.retry_limit.is_reached(self.failures) {
            (self.window, self.failures) = (self.cw.min, 0);
        }
        self.draw(now, backoff);
    }
}
