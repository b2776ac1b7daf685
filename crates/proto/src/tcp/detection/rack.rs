//! RACK: loss detection by time (RFC 8985 section 6).

use lasthop_base::{Duration, Time};

use super::{Context, Found, LossDetector};
use crate::tcp::sent::{SentSegment, SentSegments};
use crate::tcp::seq::SeqNum;

/// Recoveries for which a widened reordering window is kept (RFC 8985 section 6.2 step 4).
const WIDENED_FOR: u32 = 16;
/// The most quarters of the least round-trip time in the reordering window; srtt limits it as well.
const MAX_STEPS: u32 = 255;

/// A segment is lost if one that was sent later was delivered, and a round-trip time and the reordering window
/// have passed since it was sent. Retransmissions are segments like others.
#[derive(Debug)]
pub(super) struct Rack {
    /// When the most recently sent of the delivered segments was sent, and where it ends; before the first
    /// delivery, nothing.
    newest: Option<(Time, SeqNum)>,
    /// Its round-trip time.
    rtt: Duration,
    reordering_seen: bool,
    /// The reordering window in quarters of the least round-trip time.
    steps: u32,
    /// A duplicate was reported that no step has answered yet.
    reported: bool,
    /// Recoveries left until the window is narrow again.
    widened_for: u32,
    /// No second step before segments sent after so much was delivered are acknowledged.
    stepped_at: u64,
}

impl Rack {
    pub(super) fn new() -> Rack {
        Rack {
            newest: None,
            rtt: Duration::ZERO,
            reordering_seen: false,
            steps: 1,
            reported: false,
            widened_for: 0,
            stepped_at: 0,
        }
    }

    /// RFC 8985 section 6.2 step 4: how long a segment may be late by reordering.
    fn reordering_window(&self, context: &Context, sacked: u32) -> Duration {
        let enough = context.in_recovery || sacked >= context.dupthresh;
        if !self.reordering_seen && enough {
            return Duration::ZERO;
        }
        let least = context.min_rtt.unwrap_or_default().as_nanos();
        let window = Duration::from_nanos(least / 4 * u64::from(self.steps));
        context.srtt.map_or(window, |srtt| window.min(srtt))
    }
}

/// Whether what was sent at `a`, up to `a_end`, was sent before what was sent at `b`, up to `b_end`.
fn was_sent_before((a, a_end): (Time, SeqNum), (b, b_end): (Time, SeqNum)) -> bool {
    a < b || (a == b && a_end < b_end)
}

impl LossDetector for Rack {
    /// RFC 8985 section 6.2 steps 1 and 2.
    fn on_delivered(&mut self, context: &Context, segment: &SentSegment) {
        let rtt = context.now.since(segment.sent_at);
        // Sooner than anything could arrive: an earlier transmission has.
        if segment.is_retransmission() && context.min_rtt.is_some_and(|least| rtt < least) {
            return;
        }
        let key = (segment.sent_at, segment.end);
        self.rtt = rtt;
        if self.newest.is_none_or(|newest| was_sent_before(newest, key)) {
            self.newest = Some(key);
        }
    }

    fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// As in Linux, it says something only of a path that was seen to reorder.
    fn on_duplicate_report(&mut self) {
        self.reported |= self.reordering_seen;
    }

    /// RFC 8985 section 6.2 step 4: a step once per round trip. A report of a duplicate delivers nothing itself, and waits
    /// for what does.
    fn on_deliveries(&mut self, prior: u64, delivered: u64) {
        if !core::mem::take(&mut self.reported) || prior < self.stepped_at {
            return;
        }
        self.steps = (self.steps + 1).min(MAX_STEPS);
        self.widened_for = WIDENED_FOR;
        self.stepped_at = delivered;
    }

    fn on_recovered(&mut self) {
        self.widened_for = self.widened_for.saturating_sub(1);
        if self.widened_for == 0 {
            self.steps = 1;
        }
    }

    /// RFC 8985 section 6.2 step 5.
    fn detect(&mut self, context: &Context, sent: &mut SentSegments) -> Found {
        let Some(newest) = self.newest else { return Found::default() };
        let allowance = self.rtt + self.reordering_window(context, sent.counts().sacked);
        let mut retransmission = false;
        let (lost, next) = sent.lose_in_time_order(|segment| {
            let before = was_sent_before((segment.sent_at, segment.end), newest);
            let overdue = before && segment.sent_at + allowance <= context.now;
            retransmission |= overdue && segment.is_retransmission();
            overdue
        });
        // Once the last of those that may be late is overdue, one look finds them all.
        let waits = next.is_some_and(|segment| was_sent_before((segment.sent_at, segment.end), newest));
        let last = if waits { sent.last_sent_before(newest.0, newest.1) } else { None };
        Found { lost, retransmission, look_again: last.map(|sent_at| sent_at + allowance) }
    }

    /// RFC 8985 section 6.3.
    fn is_lost_by_timeout(&self, context: &Context, segment: &SentSegment) -> bool {
        segment.sent_at + self.rtt <= context.now
    }
}
