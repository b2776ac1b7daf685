//! RACK: loss detection by time (RFC 8985 section 6).

use lasthop_base::{Duration, Time};

use super::{Acknowledgement, Context, Found, LossDetector};
use crate::packet::SeqNum;
use crate::tcp::paws::is_before;
use crate::tcp::sent::{SentSegment, SentSegments};

/// Recoveries for which a widened reordering window is kept (RFC 8985 section 6.2 step 4).
const WIDENED_FOR: u32 = 16;
/// Maximum reordering window in quarters of the minimum round-trip time; srtt limits it as well.
const MAX_STEPS: u32 = 255;

/// A segment is lost if a later transmission was delivered, and a round-trip time plus the reordering window
/// have passed since it was sent. Applies to retransmissions as well.
#[derive(Debug)]
pub(super) struct Rack {
    /// Transmission time and end of the most recently sent delivered segment; `None` before the first
    /// delivery.
    newest: Option<(Time, SeqNum)>,
    /// Its round-trip time.
    rtt: Duration,
    reordering_seen: bool,
    /// The reordering window in quarters of the minimum round-trip time.
    steps: u32,
    /// Recoveries left until the window is reset.
    widened_for: u32,
    /// Bytes delivered at the last step; the next step requires the delivery of a segment sent after that.
    stepped_at: u64,
}

impl Rack {
    pub(super) fn new() -> Rack {
        Rack {
            newest: None,
            rtt: Duration::ZERO,
            reordering_seen: false,
            steps: 1,
            widened_for: 0,
            stepped_at: 0,
        }
    }

    /// RFC 8985 section 6.2 step 4: the time by which reordering may delay a segment.
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

/// Whether the segment sent at `a` and ending at `a_end` was sent before the segment sent at `b` and ending
/// at `b_end`.
fn was_sent_before((a, a_end): (Time, SeqNum), (b, b_end): (Time, SeqNum)) -> bool {
    a < b || (a == b && a_end < b_end)
}

impl LossDetector for Rack {
    /// RFC 8985 section 6.2 steps 1 and 2.
    fn on_delivered(&mut self, ack: &Acknowledgement, segment: &SentSegment) {
        let rtt = ack.now.since(segment.sent_at);
        if segment.is_retransmission() {
            // The echo is older than the copy, or it came faster than the path allows: an earlier transmission was
            // delivered.
            let is_older = ack.echo.is_some_and(|echo| is_before(echo, segment.sent_at));
            if is_older || ack.min_rtt.is_some_and(|least| rtt < least) {
                return;
            }
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

    /// As in Linux, a duplicate counts only after reordering was observed on the path.
    fn on_duplicate_report(&mut self) -> bool {
        self.reordering_seen
    }

    /// RFC 8985 section 6.2 step 4: widens the window once per round trip. A report of a duplicate delivers
    /// no data, so it takes effect with the next delivery.
    fn on_delivery_after_report(&mut self, prior: u64, delivered: u64) {
        if prior < self.stepped_at {
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
        // The timer waits for the last of the late segments, so that one run of the detector marks all of
        // them.
        let waits = next.is_some_and(|segment| was_sent_before((segment.sent_at, segment.end), newest));
        let last = if waits { sent.last_sent_before(newest.0, newest.1) } else { None };
        Found { lost, retransmission, look_again: last.map(|sent_at| sent_at + allowance) }
    }

    /// RFC 8985 section 6.3.
    fn is_lost_by_timeout(&self, context: &Context, segment: &SentSegment) -> bool {
        segment.sent_at + self.rtt <= context.now
    }
}
