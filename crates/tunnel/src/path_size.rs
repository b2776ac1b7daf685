//! The largest datagram that the path carries, found by probes (RFC 8899).
//!
//! A probe is a poll with padding, and the report that it asks for acknowledges it. What a router says of sizes is not believed:
//! anyone could have sent it.
//!
//! ```text
//!              arrives                     arrives: the largest, then halves of what is open
//! unconfirmed ─────────> confirmed, search ─────────────────────────────> at rest, a minute
//!      ^  │ is lost, repeatedly: the next smaller step                          │
//!      └──┴<──────────── a probe of the size in use is lost, repeatedly ────────┘
//! ```
//!
//! Losses of a fade come together, and small datagrams pass it more easily. So probes of the size in use are spread over 7 s, and of
//! one that was confirmed over 15 s, before it is given up.

use lasthop_base::{Duration, Time};

use crate::window::Report;

/// The size in use before anything is known: with headers, what networks with tunnels, PPPoE or mobile links carry.
const START: usize = 1352;

/// Sizes that are tried if larger ones do not arrive: with which packets of 1280 bytes pass, and one for paths that carry less.
const STEPS: [usize; 2] = [1280 + crate::message::OVERHEAD, 528];

/// Sizes are told apart by so many bytes.
const PRECISION: usize = 8;

/// The time between probes of the size in use, and between searches for a larger one.
const CONFIRM: Duration = Duration::from_secs(60);
const SEARCH: Duration = Duration::from_secs(600);

/// The shortest wait for the arrival of a probe (RFC 8899 section 5.1.1, PROBE_TIMER).
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// The shortest time after which the size in use is given up, unconfirmed and confirmed.
const SPREAD: [Duration; 2] = [Duration::from_secs(7), Duration::from_secs(15)];

/// The most and the fewest probes of a size.
const TRIES: std::ops::RangeInclusive<u32> = 3..=10;

/// The probability with which all probes of a size are lost that the path carries.
const ERROR: f64 = 1e-3;

/// Probes whose arrival, though late, is of use.
const KNOWN: usize = 16;

/// What is measured of the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// How long the report of an arrival takes.
    pub(crate) wait: Duration,
    /// The latest datagrams that were sent, and those of them that were lost.
    pub(crate) losses: (u64, u64),
}

/// A size that is probed.
#[derive(Clone, Copy, Debug)]
struct Probe {
    size: usize,
    /// Further ones of this size.
    tries: u32,
    wait: Duration,
    due: Time,
}

/// The largest datagram, without the headers of IP and UDP.
#[derive(Clone, Debug)]
pub(crate) struct PathSize {
    least: usize,
    most: usize,
    size: usize,
    is_confirmed: bool,
    /// Whether the size in use does not arrive, and is the smallest.
    is_oversized: bool,
    /// The smallest that did not arrive, or one more than the largest.
    too_large: usize,
    probe: Option<Probe>,
    /// The counters and sizes of the latest probes.
    sent: Vec<(u64, usize)>,
    /// Whether something has arrived that was sent after the last one: otherwise its loss tells nothing of sizes.
    is_alive: bool,
    next_at: Time,
    search_at: Time,
}

impl PathSize {
    /// Datagrams may have `least` to `most` bytes.
    pub(crate) fn new(now: Time, least: usize, most: usize) -> PathSize {
        PathSize {
            least,
            most,
            size: START.clamp(least, most),
            is_confirmed: false,
            is_oversized: false,
            too_large: most + 1,
            probe: None,
            sent: Vec::new(),
            is_alive: false,
            next_at: now,
            search_at: Time::NEVER,
        }
    }

    /// The size in use.
    pub(crate) fn get(&self) -> usize {
        self.size
    }

    /// Whether it has arrived.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.is_confirmed
    }

    /// Whether it does not arrive, and is the smallest.
    pub(crate) fn is_oversized(&self) -> bool {
        self.is_oversized
    }

    /// Long datagrams seem to be lost: the size in use is confirmed now.
    pub(crate) fn suspect(&mut self, now: Time) {
        if self.probe.is_none() {
            self.next_at = now;
        }
    }

    /// The first link does not carry datagrams of this size, as the kernel of this host says.
    pub(crate) fn refuse(&mut self, now: Time, size: usize) {
        if size < self.too_large {
            self.fail(now, size);
        }
    }

    /// The path may be another one: the size in use is confirmed, and a larger one sought.
    pub(crate) fn begin_anew(&mut self, now: Time) {
        (self.is_confirmed, self.too_large, self.probe, self.next_at) = (false, self.most + 1, None, now);
        self.sent.clear();
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        self.probe.map_or(self.next_at, |probe| probe.due)
    }

    /// The size of a probe that is to be sent now.
    pub(crate) fn wake(&mut self, now: Time, measured: Measured) -> Option<usize> {
        if let Some(probe) = self.probe.filter(|probe| probe.due <= now) {
            if !self.is_alive {
                self.probe = Some(Probe { due: now + probe.wait, ..probe });
                return None;
            }
            if let Some(tries) = probe.tries.checked_sub(1) {
                return self.start(Probe { tries, due: now + probe.wait, ..probe });
            }
            self.fail(now, probe.size);
        }
        if self.probe.is_some() || self.next_at > now {
            return None;
        }
        if self.search_at <= now {
            self.too_large = self.most + 1;
        }
        let (sent, lost) = measured.losses;
        let loss = (lost as f64 + 0.1) / (sent as f64 + 1.0);
        let tries = (ERROR.ln() / loss.min(0.9).ln()).ceil() as u32;
        let size = self.target().unwrap_or(self.size);
        let tries = tries.clamp(*TRIES.start(), *TRIES.end());
        let spread = if size > self.size { Duration::ZERO } else { SPREAD[usize::from(self.is_confirmed)] };
        let wait =
            measured.wait.max(LEAST_WAIT).max(Duration::from_nanos(spread.as_nanos() / u64::from(tries)));
        self.start(Probe { size, tries: tries - 1, wait, due: now + wait })
    }

    fn start(&mut self, probe: Probe) -> Option<usize> {
        self.probe = Some(probe);
        Some(probe.size)
    }

    /// The next size to be probed, if the search is not over.
    fn target(&self) -> Option<usize> {
        match self.too_large - self.size {
            _ if !self.is_confirmed => Some(self.size),
            _ if self.too_large > self.most => Some(self.most).filter(|most| *most > self.size),
            open => Some(self.size + open / 2).filter(|_| open > PRECISION),
        }
    }

    /// A probe was sent.
    pub(crate) fn note(&mut self, counter: u64, size: usize) {
        if self.sent.len() == KNOWN {
            self.sent.remove(0);
        }
        self.sent.push((counter, size));
        self.is_alive = false;
    }

    /// The other end has told what has arrived.
    pub(crate) fn learn(&mut self, now: Time, report: &Report) {
        self.is_alive |= self.sent.last().is_some_and(|(last, _)| report.highest > *last);
        let has_arrived = |(counter, _): &&(u64, usize)| report.has(*counter) == Some(true);
        let Some(largest) = self.sent.iter().filter(has_arrived).map(|(_, size)| *size).max() else { return };
        self.sent.retain(|(counter, _)| report.has(*counter) != Some(true));
        if largest < self.size {
            return;
        }
        // Its probes were lost by chance, or late.
        if self.too_large <= largest {
            self.too_large = self.most + 1;
        }
        (self.size, self.is_confirmed, self.is_oversized) = (largest, true, false);
        self.probe = self.probe.filter(|probe| probe.size > largest);
        self.rest(now);
    }

    /// The path does not carry a size.
    fn fail(&mut self, now: Time, size: usize) {
        (self.probe, self.next_at) = (None, now);
        self.too_large = size;
        if size > self.size {
            return self.rest(now);
        }
        self.is_confirmed = false;
        let smaller = STEPS.into_iter().chain([self.least]).find(|step| (self.least..size).contains(step));
        match smaller {
            Some(smaller) => self.size = smaller,
            None => {
                (self.is_oversized, self.too_large, self.next_at) = (true, self.most + 1, now + CONFIRM);
            }
        }
    }

    /// Goes on with the search; if it is over, waits.
    fn rest(&mut self, now: Time) {
        if self.target().is_some() {
            self.next_at = now;
        } else {
            if self.search_at <= now || self.search_at == Time::NEVER {
                self.search_at = now + SEARCH;
            }
            self.next_at = now + CONFIRM;
        }
    }
}
