//! What was sent, and what became of it: the record of datagrams, round-trip times, and the loss of the path.

use std::collections::VecDeque;

use lasthop_base::{Duration, Time};
use lasthop_proto::Dscp;
use lasthop_proto::arq::Attempt;

use crate::window::Report;

/// A datagram counts as lost when the one that was sent so many later has arrived (RFC 9002 section 6.1.1), or any later one after
/// the patience. Both must have the same DSCP: queues let those of others overtake, by any time.
const REORDERING: u64 = 3;

/// The most datagrams on record.
const LEN: usize = 16_384;

/// The shortest wait for a report before it is asked for.
const LEAST_WAIT: Duration = Duration::from_millis(20);

/// So many lost datagrams, while none as long as any of them has arrived, are more than losses by chance.
const SUSPICIOUS: u32 = 10;

/// The number of latest datagrams of which the loss is measured.
const MEASURED: u64 = 2000;

/// A datagram of which the outcome is unknown, or known and not yet in order.
#[derive(Clone, Copy, Debug)]
struct Record {
    sent: Time,
    dscp: Dscp,
    len: usize,
    /// Its number among those of its DSCP.
    number: u64,
    /// The class and the attempt, of one with ARQ.
    attempt: Option<(u8, Attempt)>,
    is_settled: bool,
}

/// What became of the datagrams of one DSCP.
#[derive(Clone, Copy, Debug, Default)]
struct OfDscp {
    /// Number of those that were sent.
    sent: u64,
    /// The highest number that has arrived.
    arrived: u64,
    /// Number of attempts without an outcome.
    open: usize,
}

/// The record of one session.
#[derive(Debug)]
pub(crate) struct SentRecord {
    /// The counter of the first.
    first: u64,
    records: VecDeque<Record>,
    of_dscp: [OfDscp; 64],
    /// Number of attempts without an outcome, and the time of the last one, or of the last poll.
    open: usize,
    asked: Time,
    /// Number of polls since the last report.
    polls: u32,
    rtt: Option<Duration>,
    /// The highest counter of a report.
    reported: Option<u64>,
    loss: Loss,
    long_losses: LongLosses,
}

/// Lost datagrams since one has arrived that was as long as the shortest of them.
#[derive(Clone, Copy, Debug, Default)]
struct LongLosses {
    count: u32,
    shortest: usize,
}

impl LongLosses {
    fn note(&mut self, len: usize, is_lost: bool) {
        if is_lost {
            self.shortest = if self.count == 0 { len } else { self.shortest.min(len) };
            self.count += 1;
        } else if len >= self.shortest {
            self.count = 0;
        }
    }
}

/// The losses of the latest datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Loss {
    sent: u64,
    lost: u64,
    /// Those of the time before, which count as long as there are few of this one.
    before: (u64, u64),
}

impl Loss {
    fn note(&mut self, is_lost: bool) {
        self.sent += 1;
        self.lost += u64::from(is_lost);
        if self.sent == MEASURED {
            *self = Loss { before: (self.sent, self.lost), ..Loss::default() };
        }
    }

    fn counts(&self) -> (u64, u64) {
        (self.sent + self.before.0, self.lost + self.before.1)
    }
}

impl SentRecord {
    /// The first datagram will have this counter.
    pub(crate) fn new(first: u64) -> SentRecord {
        SentRecord {
            first,
            records: VecDeque::new(),
            of_dscp: [OfDscp::default(); 64],
            open: 0,
            asked: Time::ZERO,
            polls: 0,
            rtt: None,
            reported: None,
            loss: Loss::default(),
            long_losses: LongLosses::default(),
        }
    }

    /// Whether long datagrams seem to be lost for their length. It is told once.
    pub(crate) fn loses_long(&mut self) -> bool {
        let is_suspicious = self.long_losses.count >= SUSPICIOUS;
        if is_suspicious {
            self.long_losses.count = 0;
        }
        is_suspicious
    }

    /// The smoothed round-trip time, once known.
    pub(crate) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// How many of the latest datagrams were sent and lost, as far as the other end has reported.
    pub(crate) fn losses(&self) -> (u64, u64) {
        self.loss.counts()
    }

    /// The next datagram was sent, of `len` bytes. `forget` gets the attempt of one that is too old to be recorded further.
    pub(crate) fn note(
        &mut self,
        now: Time,
        (dscp, len): (Dscp, usize),
        attempt: Option<(u8, Attempt)>,
        mut forget: impl FnMut(u8, Attempt),
    ) {
        if self.records.len() == LEN {
            self.first += 1;
            let oldest = self.records.pop_front().filter(|record| !record.is_settled);
            if let Some(Record { dscp, attempt: Some((class, attempt)), .. }) = oldest {
                self.open -= 1;
                self.of_dscp[usize::from(dscp.get())].open -= 1;
                forget(class, attempt);
            }
        }
        let of_dscp = &mut self.of_dscp[usize::from(dscp.get())];
        if attempt.is_some() {
            self.open += 1;
            of_dscp.open += 1;
            self.asked = now;
        }
        of_dscp.sent += 1;
        self.records.push_back(Record {
            sent: now,
            dscp,
            len,
            number: of_dscp.sent,
            attempt,
            is_settled: false,
        });
    }

    /// The latest datagram tells nothing of losses and times: a hello may be for another end, a probe too large.
    pub(crate) fn exempt_latest(&mut self) {
        self.records.iter_mut().next_back().into_iter().for_each(|record| record.is_settled = true);
    }

    /// The other end has reported; `learn` gets the outcomes of attempts. Returns whether a later datagram has arrived there
    /// than any report has told of.
    pub(crate) fn report(
        &mut self,
        now: Time,
        report: &Report,
        mut learn: impl FnMut(u8, Attempt, bool),
    ) -> bool {
        let Some(last) = report.highest.checked_sub(self.first) else { return false };
        // Nobody else could have sent a datagram that was not sent yet.
        let Some(newest) = usize::try_from(last).ok().and_then(|last| self.records.get(last)) else {
            return false;
        };
        self.polls = 0;
        if !newest.is_settled {
            let delay = Duration::from_micros(report.delay_us.into());
            let sample = now.since(newest.sent).max(delay) - delay;
            let smooth = |rtt: Duration| Duration::from_nanos((rtt.as_nanos() * 7 + sample.as_nanos()) / 8);
            self.rtt = Some(self.rtt.map_or(sample, smooth));
        }
        let patience = self.patience();
        for (counter, record) in (self.first..=report.highest).zip(&self.records) {
            if !record.is_settled && report.has(counter) == Some(true) {
                let of_dscp = &mut self.of_dscp[usize::from(record.dscp.get())];
                of_dscp.arrived = record.number.max(of_dscp.arrived);
            }
        }
        for (counter, record) in (self.first..=report.highest).zip(&mut self.records) {
            if record.is_settled {
                continue;
            }
            let is_old = now >= record.sent + patience;
            let of_dscp = &mut self.of_dscp[usize::from(record.dscp.get())];
            let has_arrived = report.has(counter);
            let is_over = match has_arrived {
                Some(true) => true,
                Some(false) => of_dscp.arrived >= record.number + if is_old { 1 } else { REORDERING },
                // Reports that would have told were lost. An attempt may still be in an earlier one that was overtaken.
                None => is_old || record.attempt.is_none(),
            };
            if is_over {
                record.is_settled = true;
                if let Some(has_arrived) = has_arrived {
                    self.loss.note(!has_arrived);
                    self.long_losses.note(record.len, !has_arrived);
                }
                let has_arrived = has_arrived == Some(true);
                if let Some((class, attempt)) = record.attempt {
                    self.open -= 1;
                    of_dscp.open -= 1;
                    learn(class, attempt, has_arrived);
                }
            }
        }
        while self.records.front().is_some_and(|record| record.is_settled) {
            self.records.pop_front();
            self.first += 1;
        }
        let is_later = self.reported.is_none_or(|reported| report.highest > reported);
        self.reported = self.reported.max(Some(report.highest));
        is_later
    }

    /// How long an outcome may take.
    pub(crate) fn patience(&self) -> Duration {
        let rtt = self.rtt.unwrap_or(Duration::from_millis(100));
        LEAST_WAIT.max(rtt + Duration::from_nanos(rtt.as_nanos() / 2))
    }

    /// When the other end is to be asked what has arrived; never while no attempt is without an outcome.
    pub(crate) fn asks_at(&self) -> Time {
        if self.open == 0 { Time::NEVER } else { self.asked + self.patience() * (1 << self.polls.min(6)) }
    }

    /// It is asked now; returns the DSCPs of attempts without an outcome. A poll of each is behind them, in whatever queue they are.
    pub(crate) fn asked(&mut self, now: Time) -> Vec<Dscp> {
        self.asked = now;
        self.polls += 1;
        (0..)
            .zip(&self.of_dscp)
            .filter(|(_, of_dscp)| of_dscp.open > 0)
            .map(|(dscp, _)| Dscp::new(dscp))
            .collect()
    }
}
