//! SMART: acknowledgements that report the segment that triggered them.
//!
//! **What it does.** In addition to the cumulative acknowledgement, each ACK of an out-of-order segment
//! reports that segment. Every gap below a reported segment counts as a loss immediately, without waiting for
//! three duplicate ACKs, and all gaps are retransmitted. The first gap halves the window, like any loss. A
//! retransmission is repeated if a report a round-trip time later still shows the gap. Without further
//! reports, only the retransmission timer repairs it.
//! **Source.** Keshav and Morgan, "SMART Retransmission: Performance with Overload and Random Losses",
//! INFOCOM 1997, as used by Balakrishnan, Padmanabhan, Seshan and Katz, IEEE/ACM ToN 5(6), 1997, sections 2
//! and 3.1 (E2E-SMART). With `i-tcp` it serves the wireless part (SPLIT-SMART).
//! **Parameters.** `tick`: granularity of the round-trip time that the source waits for before it repeats a
//! retransmission: that of BSD's clock is 500 ms, the default is exact. SMART suits paths that do not reorder, and senders
//! with the recovery of Reno, which it extends.
//! **Differences from the paper.** A report has the form of a SACK block of one segment (RFC 2018), 12 B with
//! its padding, so that common tools decode it; the paper gives no format. ACKs of segments in order need
//! none. The round-trip time is the latest sample of a segment sent once; the paper does not specify it. A
//! timeout discards the reports, and everything outstanding is retransmitted, as in Reno.

use alloc::collections::VecDeque;
use alloc::string::String;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reports::Reports;
use super::{Installer, Scheme};
use crate::tcp::{
    Action, Evidence, Flavour, Hole, Reaction, Response, SackBlock, Segment, SenderState, SeqNum, Settings,
};

/// Acknowledgements that report the segment that triggered them, and a sender that uses them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Smart {
    /// Granularity of the clock by which the source measures the round-trip time, rounded up, that it waits for before it
    /// repeats a retransmission. That of BSD is 500 ms; `"0 s"` is exact.
    pub tick: Duration,
}

impl Scheme for Smart {
    fn name(&self) -> &'static str {
        "smart"
    }

    fn summary(&self) -> &'static str {
        "ACKs report the segment that caused them; the source retransmits every gap at once"
    }

    fn source(&self) -> &'static str {
        "Keshav and Morgan, INFOCOM 1997"
    }

    fn mismatch(&self, tcp: &Settings) -> Option<String> {
        let problem = "extends the loss recovery of Reno; set flavour = \"reno\"";
        (tcp.flavour != Flavour::Reno).then(|| String::from(problem))
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.at_receiver(&[Action::ChangeAck], Reports::default);
        installer
            .at_sender(&[Action::Resend, Action::Threshold], || Gaps { tick: self.tick, ..Gaps::default() });
    }
}

/// The outstanding segments that were not reported.
#[derive(Debug, Default)]
struct Gaps {
    /// In sequence order, without overlaps.
    missing: VecDeque<Missing>,
    /// End of the highest reported segment.
    highest: Option<SeqNum>,
    /// Granularity of the clock that measures the round-trip time; zero if it is exact.
    tick: Duration,
    /// The latest sample of the round-trip time.
    rtt: Option<Duration>,
    /// Whether the latest acknowledgement requests a segment that is [due](Gaps::is_due).
    first_is_due: bool,
}

/// A segment that was not reported.
#[derive(Clone, Copy, Debug)]
struct Missing {
    start: SeqNum,
    end: SeqNum,
    /// When it was last sent.
    sent: Time,
    /// Whether it was retransmitted.
    again: bool,
}

impl Gaps {
    /// Removes the segment at `index`, which has arrived.
    fn arrive(&mut self, now: Time, index: usize) {
        let arrived = self.missing.remove(index).filter(|segment| !segment.again);
        self.rtt = arrived.map(|segment| self.measured(now.since(segment.sent))).or(self.rtt);
    }

    /// A round-trip time as the source's clock measures it.
    fn measured(&self, rtt: Duration) -> Duration {
        match self.tick.as_nanos() {
            0 => rtt,
            tick => self.tick * rtt.as_nanos().div_ceil(tick).max(1),
        }
    }

    /// The first segment that ends above `seq`.
    fn index_above(&self, seq: SeqNum) -> usize {
        self.missing.partition_point(|segment| segment.end <= seq)
    }

    fn acknowledge(&mut self, now: Time, ack: SeqNum) {
        while self.missing.front().is_some_and(|first| first.end <= ack) {
            self.arrive(now, 0);
        }
        self.highest = self.highest.filter(|&highest| highest > ack);
    }

    fn report(&mut self, now: Time, block: SackBlock) {
        let index = self.missing.partition_point(|segment| segment.start < block.start);
        while self.missing.get(index).is_some_and(|segment| segment.end <= block.end) {
            self.arrive(now, index);
        }
        self.highest = Some(self.highest.map_or(block.end, |highest| highest.max(block.end)));
    }

    /// Whether to retransmit a lost segment: not retransmitted before, or its retransmission had time to
    /// arrive.
    fn is_due(&self, now: Time, lost: &Missing) -> bool {
        !lost.again || self.rtt.is_some_and(|rtt| lost.sent + rtt <= now)
    }
}

impl Reaction for Gaps {
    fn on_segment(&mut self, now: Time, segment: &Segment, sender: &mut SenderState) {
        if segment.ack < sender.snd_una() {
            return;
        }
        self.acknowledge(now, segment.ack);
        self.first_is_due = false;
        let (ack, max) = (segment.ack, sender.snd_max());
        let is_news = |block: &&SackBlock| block.start > ack && block.start < block.end && block.end <= max;
        for block in segment.sack.iter().filter(is_news) {
            // Reports do not cover FIN, which arrives with its data.
            let fin = sender.left_from(block.end) == Some(0) && block.end < max;
            self.report(now, SackBlock { end: block.end + u32::from(fin), ..*block });
        }
        if segment.sack.is_empty() {
            return;
        }
        let is_duplicate = sender.is_duplicate(segment);
        let is_new = sender.loss_is_new(segment.ack);
        let mut first_is_due = false;
        let lost = self.missing.iter().take_while(|gap| self.highest.is_some_and(|end| gap.start < end));
        for gap in lost.filter(|gap| self.is_due(now, gap)) {
            first_is_due |= gap.start <= segment.ack;
            // A new loss is repaired first by a fast retransmit, which reduces the window.
            if !is_new || (is_duplicate && gap.start > segment.ack) {
                sender.resend(gap.start.max(segment.ack));
            }
        }
        self.first_is_due = first_is_due;
    }

    fn on_sent(&mut self, now: Time, start: SeqNum, end: SeqNum, again: bool) {
        let mut index = self.index_above(start);
        // A missing range that overlaps this segment keeps its parts before and after it.
        if let Some(&other) = self.missing.get(index).filter(|other| other.start < start) {
            self.missing.insert(index, Missing { end: start, ..other });
            index += 1;
        }
        while self.missing.get(index).is_some_and(|other| other.end <= end) {
            self.missing.remove(index);
        }
        if let Some(other) = self.missing.get_mut(index) {
            other.start = other.start.max(end);
        }
        self.missing.insert(index, Missing { start, end, sent: now, again });
    }

    /// One duplicate ACK that reports a later segment suffices. During the repair, duplicate ACKs count as
    /// usual: with [`careful`](Settings::careful) they do not reveal a new loss.
    fn dupthresh(&self, set: u32, _sender: &SenderState) -> u32 {
        if self.first_is_due { 1 } else { set }
    }

    fn judge(&mut self, _now: Time, hole: Hole, _sender: &mut SenderState) -> Response {
        if hole.evidence == Evidence::Timeout {
            self.highest = None;
        }
        Response::Congestion
    }
}
