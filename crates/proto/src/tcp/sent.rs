//! One record per outstanding segment: the scoreboard of senders that detect losses by time or by
//! selective acknowledgements, and the source of their delivery rate samples.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use lasthop_base::{Duration, Time};

use super::delivery::{DeliveryRate, LostSegment, RateSample, Snapshot};
use crate::packet::{SackBlock, SeqNum};

/// The state of an outstanding segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentState {
    /// In the network.
    InFlight,
    /// Reported by a selective acknowledgement.
    Sacked,
    /// Lost, or due for retransmission for another reason, and not retransmitted yet.
    Lost,
}

/// The record of one outstanding segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentSegment {
    /// First sequence number.
    pub(super) start: SeqNum,
    /// One past the last sequence number.
    pub(super) end: SeqNum,
    /// When it was last sent.
    pub(super) sent_at: Time,
    /// Number of transmissions, at least one.
    pub(super) transmissions: u32,
    pub(super) state: SegmentState,
    /// Whether it was marked lost and has not been reported since, retransmitted or not.
    found_lost: bool,
    /// Whether its last transmission was found lost in time order, which then has no more of it: not found again, even
    /// if the loss mark is undone.
    untimed: bool,
    /// The delivery state at its last transmission.
    pub(super) snapshot: Snapshot,
}

impl SentSegment {
    /// Whether it was sent more than once.
    pub(super) fn is_retransmission(&self) -> bool {
        self.transmissions > 1
    }

    /// Whether it was marked lost and its retransmission is in flight.
    fn is_repair(&self) -> bool {
        self.found_lost && self.state == SegmentState::InFlight
    }

    /// Length in sequence numbers.
    pub(super) fn len(&self) -> u32 {
        self.end - self.start
    }
}

/// Counts of outstanding segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) in_flight: u32,
    pub(super) sacked: u32,
    pub(super) lost: u32,
    /// Segments in flight that were marked lost before.
    pub(super) repairs: u32,
}

impl Counts {
    /// All segments that are not acknowledged cumulatively.
    pub(super) fn outstanding(self) -> u32 {
        self.in_flight + self.sacked + self.lost
    }

    fn of(&mut self, state: SegmentState) -> &mut u32 {
        match state {
            SegmentState::InFlight => &mut self.in_flight,
            SegmentState::Sacked => &mut self.sacked,
            SegmentState::Lost => &mut self.lost,
        }
    }
}

/// The outstanding segments in the order of their sequence numbers, without gaps.
#[derive(Debug, Default)]
pub(super) struct SentSegments {
    segments: VecDeque<SentSegment>,
    /// Transmissions in time order. Stale entries, of segments sacked, acknowledged, lost or retransmitted
    /// since, are dropped when they reach the front.
    transmissions: VecDeque<Transmission>,
    /// Number of transmissions dropped from the front.
    dropped: u64,
    /// Transmissions known to be stale, numbered from the first one ever.
    stale: Range<u64>,
    counts: Counts,
    /// Sequence numbers in flight.
    bytes_in_flight: u32,
    /// Lower bound on the sequence number of the first lost segment.
    first_lost: SeqNum,
    /// Number of losses; a segment counts once for each loss.
    losses: u32,
    /// Lost segments not yet [reported](Records::take_losses), each with the number of losses up to it.
    unreported: Vec<(SentSegment, u32)>,
}

/// The records of outstanding segments, and the delivery rate estimator that uses them.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) segments: SentSegments,
    pub(super) rate: DeliveryRate,
}

impl Records {
    /// Records the transmission of `start..end` at `now`.
    #[inline(always)]
    pub(super) fn on_sent(&mut self, now: Time, start: SeqNum, end: SeqNum) {
        let in_flight = self.segments.counts.in_flight;
        if in_flight == 0 {
            self.rate.restart(now);
        }
        let losses = self.segments.losses;
        if self.segments.last().is_none_or(|last| last.end <= start) {
            return self.segments.push(now, start, end, self.rate.snapshot(in_flight + 1, losses));
        }
        self.on_resent(now, start, end);
    }

    /// Records the transmission of `start..end`, some of which was sent before.
    // Not inlined, so that the usual segment pays only for what it needs.
    #[inline(never)]
    fn on_resent(&mut self, now: Time, start: SeqNum, end: SeqNum) {
        let in_flight = self.segments.counts.in_flight + u32::from(!self.segments.is_in_flight(start));
        let snapshot = self.rate.snapshot(in_flight, self.segments.losses);
        self.segments.on_sent(now, start, end, snapshot);
    }

    /// [Completes](DeliveryRate::complete) the sample of the current acknowledgement, with counts converted to segments of
    /// `mss` bytes.
    #[inline]
    pub(super) fn complete_sample(&mut self, sample: &mut RateSample, least: Duration, mss: u32) {
        let mss = u64::from(mss);
        sample.in_flight = u64::from(self.segments.counts.in_flight) * mss;
        if let Some(sent) = self.rate.complete(sample, least) {
            sample.in_flight_at_sending = u64::from(sent.in_flight) * mss;
            sample.lost_since = u64::from(self.segments.losses - sent.lost) * mss;
        }
    }

    /// Calls `visit` for each segment marked lost since the last call, with counts converted to segments of
    /// `mss` bytes. Losses to corruption are neither visited nor counted.
    pub(super) fn take_losses(
        &mut self,
        now: Time,
        mss: u32,
        mut is_corruption: impl FnMut(SeqNum) -> bool,
        mut visit: impl FnMut(&LostSegment),
    ) {
        let (mss, delivered, mut corrupted) = (u64::from(mss), self.rate.delivered(), 0);
        for (segment, losses) in self.segments.unreported.drain(..) {
            if is_corruption(segment.start) {
                corrupted += 1;
                continue;
            }
            let sent = &segment.snapshot;
            visit(&LostSegment {
                now,
                start: segment.start,
                end: segment.end,
                in_flight_at_sending: u64::from(sent.in_flight) * mss,
                lost_since: u64::from(losses - corrupted - sent.lost) * mss,
                application_limited: sent.application_limited,
                delivered,
            });
        }
        self.segments.losses -= corrupted;
    }
}

#[derive(Clone, Copy, Debug)]
struct Transmission {
    start: SeqNum,
    sent_at: Time,
}

impl SentSegments {
    /// Whether segments were marked lost since losses were last taken.
    pub(super) fn has_unreported_losses(&self) -> bool {
        !self.unreported.is_empty()
    }

    /// The number of segments in each state.
    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of sequence numbers in flight.
    pub(super) fn bytes_in_flight(&self) -> u32 {
        self.bytes_in_flight
    }

    /// The segment with the lowest sequence number.
    pub(super) fn first(&self) -> Option<&SentSegment> {
        self.segments.front()
    }

    /// The segment with the highest sequence number.
    pub(super) fn last(&self) -> Option<&SentSegment> {
        self.segments.back()
    }

    /// All segments in order, from the left edge.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SentSegment> {
        self.segments.iter()
    }

    /// The segments reported by SACK, in order.
    pub(super) fn reported(&self) -> impl Iterator<Item = SackBlock> {
        let reported = |segment: &&SentSegment| segment.state == SegmentState::Sacked;
        self.segments.iter().filter(reported).map(|&SentSegment { start, end, .. }| SackBlock { start, end })
    }

    /// The index of the segment that contains `seq`.
    fn index_of(&self, seq: SeqNum) -> usize {
        // Most segments have the same length, so the length of the first one gives the index in the common
        // case.
        let Some(first) = self.segments.front().filter(|first| first.start <= seq) else { return 0 };
        let guess = ((seq - first.start) / first.len()) as usize;
        match self.segments.get(guess) {
            Some(segment) if segment.start <= seq && seq < segment.end => guess,
            _ => self.segments.partition_point(|segment| segment.end <= seq),
        }
    }

    fn move_to(&mut self, index: usize, state: SegmentState) {
        let segment = &mut self.segments[index];
        self.counts.repairs -= u32::from(segment.is_repair());
        *self.counts.of(segment.state) -= 1;
        *self.counts.of(state) += 1;
        match (segment.state, state) {
            (SegmentState::InFlight, SegmentState::InFlight) => {}
            (SegmentState::InFlight, _) => self.bytes_in_flight -= segment.len(),
            (_, SegmentState::InFlight) => self.bytes_in_flight += segment.len(),
            _ => {}
        }
        segment.state = state;
        match state {
            SegmentState::Lost => segment.found_lost = true,
            SegmentState::Sacked => segment.found_lost = false,
            SegmentState::InFlight => {}
        }
        self.counts.repairs += u32::from(segment.is_repair());
        if state == SegmentState::Lost {
            self.first_lost =
                if self.counts.lost == 1 { segment.start } else { self.first_lost.min(segment.start) };
        }
    }

    /// Splits the segment that contains `seq`, unless `seq` is a segment boundary or the end of the last
    /// segment. Returns the index of the segment that starts at `seq`.
    fn split_at(&mut self, seq: SeqNum) -> usize {
        let index = self.index_of(seq);
        self.split(index, seq)
    }

    /// Like [`split_at`](SentSegments::split_at), with the index of the segment that contains `seq`.
    fn split(&mut self, index: usize, seq: SeqNum) -> usize {
        let Some(segment) = self.segments.get_mut(index).filter(|segment| segment.start < seq) else {
            return index;
        };
        let right = SentSegment { start: seq, ..*segment };
        segment.end = seq;
        *self.counts.of(right.state) += 1;
        self.counts.repairs += u32::from(right.is_repair());
        self.segments.insert(index + 1, right);
        if right.state == SegmentState::InFlight && !right.untimed {
            self.insert_transmission(seq, right.sent_at);
        }
        index + 1
    }

    /// Records the transmission of `start..end` at `now`, which may cover outstanding segments, new data or
    /// both.
    pub(super) fn on_sent(&mut self, now: Time, start: SeqNum, end: SeqNum, snapshot: Snapshot) {
        let edge = self.last().map_or(start, |last| last.end);
        if start < edge {
            self.split_at(start);
            self.split_at(end.min(edge));
            let mut index = self.index_of(start);
            while let Some(segment) = self.segments.get_mut(index).filter(|segment| segment.end <= end) {
                let first = segment.start;
                (segment.sent_at, segment.snapshot, segment.untimed) = (now, snapshot, false);
                segment.transmissions += 1;
                self.transmissions.push_back(Transmission { start: first, sent_at: now });
                if self.segments[index].state != SegmentState::Sacked {
                    self.move_to(index, SegmentState::InFlight);
                }
                index += 1;
            }
        }
        let start = start.max(edge);
        if start < end {
            self.push(now, start, end, snapshot);
        }
    }

    /// Records the first transmission of `start..end`.
    fn push(&mut self, now: Time, start: SeqNum, end: SeqNum, snapshot: Snapshot) {
        self.segments.push_back(SentSegment {
            start,
            end,
            sent_at: now,
            transmissions: 1,
            state: SegmentState::InFlight,
            found_lost: false,
            untimed: false,
            snapshot,
        });
        self.transmissions.push_back(Transmission { start, sent_at: now });
        self.counts.in_flight += 1;
        self.bytes_in_flight += end - start;
    }

    /// Removes everything before `ack`; calls `visit` for each removed segment.
    pub(super) fn acknowledge(&mut self, ack: SeqNum, mut visit: impl FnMut(&SentSegment)) {
        while let Some(segment) = self.segments.front().filter(|segment| segment.start < ack) {
            if segment.end > ack {
                self.split_at(ack);
                continue;
            }
            visit(segment);
            *self.counts.of(segment.state) -= 1;
            self.counts.repairs -= u32::from(segment.is_repair());
            if segment.state == SegmentState::InFlight {
                self.bytes_in_flight -= segment.len();
            }
            self.segments.pop_front();
        }
        while self.transmissions.front().is_some_and(|sent| sent.start < ack) {
            self.drop_transmission();
        }
    }

    /// Marks `start..end` as reported by SACK; calls `visit` for each newly reported segment, with its state
    /// before the report.
    pub(super) fn sack(&mut self, start: SeqNum, end: SeqNum, mut visit: impl FnMut(&SentSegment)) {
        let mut index = self.split_at(start);
        while let Some(segment) = self.segments.get(index).filter(|segment| segment.start < end) {
            if segment.end > end {
                self.split(index, end);
                continue;
            }
            if segment.state != SegmentState::Sacked {
                visit(segment);
                self.move_to(index, SegmentState::Sacked);
            }
            index += 1;
        }
    }

    /// Whether the segment that contains `seq` is in flight.
    fn is_in_flight(&self, seq: SeqNum) -> bool {
        let segment = self.segments.get(self.index_of(seq));
        segment.is_some_and(|segment| segment.state == SegmentState::InFlight)
    }

    /// Marks a segment in flight as lost.
    fn lose(&mut self, index: usize) {
        self.losses += 1;
        self.unreported.push((self.segments[index], self.losses));
        self.move_to(index, SegmentState::Lost);
    }

    /// Marks segments in flight as lost, from the left edge, while `is_lost` holds for a segment and the
    /// number of sacked segments above it. Returns the number of segments marked.
    pub(super) fn lose_while(&mut self, mut is_lost: impl FnMut(&SentSegment, u32) -> bool) -> u32 {
        let (mut above, mut lost) = (self.counts.sacked, 0);
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            match segment.state {
                SegmentState::Sacked => above -= 1,
                SegmentState::Lost => {}
                SegmentState::InFlight if is_lost(segment, above) => {
                    self.lose(index);
                    lost += 1;
                }
                SegmentState::InFlight if segment.is_retransmission() => {}
                SegmentState::InFlight => break,
            }
        }
        lost
    }

    /// Marks segments in flight as lost, in time order of their transmissions, while `is_lost` holds. Returns
    /// the number of segments marked, and the first segment in flight that is not lost.
    pub(super) fn lose_in_time_order(
        &mut self,
        mut is_lost: impl FnMut(&SentSegment) -> bool,
    ) -> (u32, Option<SentSegment>) {
        let mut lost = 0;
        while let Some(&Transmission { start, sent_at }) = self.transmissions.front() {
            let index = self.index_of(start);
            let current = self.segments.get(index).filter(|segment| {
                let same = segment.start <= start && segment.sent_at == sent_at && !segment.untimed;
                same && segment.state == SegmentState::InFlight
            });
            if let Some(segment) = current {
                if !is_lost(segment) {
                    return (lost, Some(*segment));
                }
                self.segments[index].untimed = true;
                self.lose(index);
                lost += 1;
            }
            self.drop_transmission();
        }
        (lost, None)
    }

    fn drop_transmission(&mut self) {
        self.transmissions.pop_front();
        self.dropped += 1;
    }

    /// Adds a transmission of a segment that is in flight, by its time.
    fn insert_transmission(&mut self, start: SeqNum, sent_at: Time) {
        let place = self.transmissions.partition_point(|sent| sent.sent_at <= sent_at);
        self.transmissions.insert(place, Transmission { start, sent_at });
        self.stale = 0..0;
    }

    /// The last transmission time among segments in flight that were sent before the segment sent at `at` and
    /// ending at `end`. Amortised constant: no stale transmission is visited twice.
    pub(super) fn last_sent_before(&mut self, at: Time, end: SeqNum) -> Option<Time> {
        let earlier = self.transmissions.partition_point(|sent| sent.sent_at < at) as u64 + self.dropped;
        let mut number = self.transmissions.partition_point(|sent| sent.sent_at <= at) as u64 + self.dropped;
        let mut found = None;
        while found.is_none() && number > self.dropped {
            if self.stale.contains(&(number - 1)) {
                number = self.stale.start;
                continue;
            }
            let sent = self.transmissions[(number - 1 - self.dropped) as usize];
            let in_flight = self.segments.get(self.index_of(sent.start)).is_some_and(|segment| {
                let current =
                    segment.start <= sent.start && segment.sent_at == sent.sent_at && !segment.untimed;
                let before = sent.sent_at < at || segment.end < end;
                current && before && segment.state == SegmentState::InFlight
            });
            if in_flight {
                found = Some(sent.sent_at);
            } else {
                number -= 1;
            }
        }
        // Others sent at the same time may be in flight.
        if number < earlier {
            self.stale = number..earlier;
        }
        found
    }

    /// Marks every segment in flight for which `is_lost` holds as lost. Returns the number of segments
    /// marked.
    pub(super) fn lose_where(&mut self, mut is_lost: impl FnMut(&SentSegment) -> bool) -> u32 {
        let before = self.counts.lost;
        for index in 0..self.segments.len() {
            let segment = &self.segments[index];
            if segment.state == SegmentState::InFlight && is_lost(segment) {
                self.lose(index);
            }
        }
        self.counts.lost - before
    }

    /// Discards all SACK reports, after the receiver has reneged (RFC 2018 section 8).
    pub(super) fn forget_reports(&mut self) {
        for index in 0..self.segments.len() {
            if self.segments[index].state == SegmentState::Sacked {
                self.move_to(index, SegmentState::Lost);
            }
        }
    }

    /// Schedules everything in flight for retransmission, without counting losses.
    pub(super) fn take_back(&mut self) {
        for index in 0..self.segments.len() {
            if self.segments[index].state == SegmentState::InFlight {
                self.move_to(index, SegmentState::Lost);
            }
        }
    }

    /// Undoes all loss marks: lost segments not yet retransmitted count as in flight again. As in Linux, those found lost
    /// in time order are not found again: `tcp_rack_detect_loss` takes them out of its list, and no undo puts them
    /// back. If they were lost after all, only a timeout tells.
    pub(super) fn unmark_lost(&mut self) {
        for index in 0..self.segments.len() {
            if self.segments[index].state == SegmentState::Lost {
                self.move_to(index, SegmentState::InFlight);
                let segment = self.segments[index];
                if !segment.untimed {
                    self.insert_transmission(segment.start, segment.sent_at);
                }
            }
            self.segments[index].found_lost = false;
        }
        self.counts.repairs = 0;
    }

    /// Start and end of the lost segment with the lowest sequence number.
    #[inline]
    pub(super) fn next_lost(&mut self) -> Option<SackBlock> {
        if self.counts.lost == 0 { None } else { self.find_lost() }
    }

    fn find_lost(&mut self) -> Option<SackBlock> {
        let index = self.index_of(self.first_lost.max(self.segments.front()?.start));
        let lost = |segment: &&SentSegment| segment.state == SegmentState::Lost;
        let &SentSegment { start, end, .. } = self.segments.range(index..).find(lost)?;
        self.first_lost = start;
        Some(SackBlock { start, end })
    }

    /// Asserts that the segments are in order and without gaps, and that the counts are correct.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut counts = Counts::default();
        for segment in &self.segments {
            assert!(segment.start < segment.end);
            *counts.of(segment.state) += 1;
            counts.repairs += u32::from(segment.is_repair());
            if segment.state == SegmentState::Lost {
                assert!(self.first_lost <= segment.start, "a lost segment lies before the first");
            }
        }
        assert_eq!(counts, self.counts);
        let in_flight = self.segments.iter().filter(|segment| segment.state == SegmentState::InFlight);
        assert_eq!(in_flight.map(SentSegment::len).sum::<u32>(), self.bytes_in_flight);
        let pairs = self.segments.iter().zip(self.segments.iter().skip(1));
        pairs.for_each(|(left, right)| assert_eq!(left.end, right.start));
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use lasthop_base::Streams;

    const BASE: SeqNum = SeqNum(u32::MAX - 20_000);

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    /// Ten segments of 1000 bytes, one each nanosecond.
    fn ten() -> SentSegments {
        let mut sent = SentSegments::default();
        for n in 0..10 {
            let start = BASE + n * 1000;
            sent.on_sent(at(u64::from(n)), start, start + 1000, Snapshot::default());
        }
        sent
    }

    fn counts(in_flight: u32, sacked: u32, lost: u32) -> Counts {
        Counts { in_flight, sacked, lost, repairs: 0 }
    }

    #[test]
    fn a_block_within_a_segment_splits_it() {
        let mut sent = ten();
        let mut seen = Vec::new();
        sent.sack(BASE + 1500, BASE + 3200, |segment| seen.push((segment.start, segment.len())));
        assert_eq!(seen, [(BASE + 1500, 500), (BASE + 2000, 1000), (BASE + 3000, 200)]);
        assert_eq!(sent.counts(), counts(9, 3, 0));
        sent.sack(BASE + 1500, BASE + 3200, |_| panic!("reported before"));
        sent.check();
    }

    #[test]
    fn losses_are_found_in_the_order_of_transmissions() {
        let mut sent = ten();
        assert_eq!(sent.lose_in_time_order(|segment| segment.sent_at < at(2)).0, 2);
        let first = sent.next_lost().expect("two are lost");
        assert_eq!(first.start, BASE);
        sent.on_sent(at(20), first.start, first.end, Snapshot::default());
        // The retransmission is now last in time order.
        let (lost, next) = sent.lose_in_time_order(|segment| segment.sent_at < at(20));
        assert_eq!((lost, next.map(|next| (next.start, next.transmissions))), (8, Some((BASE, 2))));
        assert_eq!(sent.counts(), Counts { repairs: 1, ..counts(1, 0, 9) });
        sent.unmark_lost();
        assert_eq!(sent.counts(), counts(10, 0, 0));
        // Nine are not found again; the retransmission is, and one of them that is sent once more.
        assert_eq!(sent.lose_in_time_order(|segment| segment.sent_at < at(20)).0, 0);
        sent.on_sent(at(40), BASE + 1000, BASE + 2000, Snapshot::default());
        let found = sent.lose_in_time_order(|_| true).0;
        assert_eq!((found, sent.counts().lost), (2, 2));
        sent.check();
    }

    /// Of ten segments, the first two are marked lost, the second is retransmitted, then the third is marked
    /// lost.
    #[test]
    fn losses_record_the_flight_and_the_losses_since_transmission() {
        let mut sent = Records::default();
        (0..10).for_each(|n| sent.on_sent(at(n), BASE + 1000 * n as u32, BASE + 1000 * (n as u32 + 1)));
        let mut found = Vec::new();
        let mut take = |sent: &mut Records| {
            sent.take_losses(
                at(30),
                1000,
                |_| false,
                |lost| {
                    found.push((lost.start - BASE, lost.in_flight_at_sending, lost.lost_since));
                },
            );
        };
        sent.segments.lose_in_time_order(|segment| segment.sent_at < at(2));
        sent.on_sent(at(20), BASE + 1000, BASE + 2000);
        sent.segments.lose_in_time_order(|segment| segment.sent_at < at(3));
        sent.segments.lose_where(|segment| segment.start == BASE + 1000);
        take(&mut sent);
        take(&mut sent);
        // Eight segments were in flight when the second one was retransmitted.
        assert_eq!(found, [(0, 1000, 1000), (1000, 2000, 2000), (2000, 3000, 3000), (1000, 9000, 2000)]);
    }

    fn sample_at(sent: &mut Records, now: Time) -> RateSample {
        let mut sample = RateSample { now, ..RateSample::default() };
        sent.complete_sample(&mut sample, Duration::ZERO, 1000);
        sample
    }

    /// Of four losses the second and third are corruption.
    #[test]
    fn corruption_is_not_counted_as_loss() {
        let mut sent = Records::default();
        (0..10).for_each(|n| sent.on_sent(at(n), BASE + 1000 * n as u32, BASE + 1000 * (n as u32 + 1)));
        sent.segments.lose_in_time_order(|segment| segment.sent_at < at(4));
        let mut found = Vec::new();
        let is_corruption = |seq: SeqNum| (1000..3000).contains(&(seq - BASE));
        sent.take_losses(at(30), 1000, is_corruption, |lost| {
            found.push((lost.start - BASE, lost.lost_since))
        });
        assert_eq!(found, [(0, 1000), (3000, 2000)]);
        let Records { segments, rate } = &mut sent;
        segments.sack(BASE + 6000, BASE + 7000, |segment| {
            rate.on_delivered(at(40), segment.len(), segment.sent_at, &segment.snapshot);
        });
        assert_eq!(sample_at(&mut sent, at(40)).lost_since, 2000);
    }

    #[test]
    fn a_sample_has_the_flight_and_the_losses_since_transmission() {
        let mut sent = Records::default();
        (0..10).for_each(|n| sent.on_sent(at(n), BASE + 1000 * n as u32, BASE + 1000 * (n as u32 + 1)));
        sent.segments.lose_in_time_order(|segment| segment.sent_at < at(2));
        let Records { segments, rate } = &mut sent;
        segments.sack(BASE + 6000, BASE + 7000, |segment| {
            rate.on_delivered(at(40), segment.len(), segment.sent_at, &segment.snapshot);
        });
        let sample = sample_at(&mut sent, at(40));
        assert_eq!((sample.in_flight, sample.in_flight_at_sending, sample.lost_since), (7000, 7000, 2000));
    }

    /// Data discarded by the receiver, or kept out by a closed window, do not count as network losses.
    #[test]
    fn discarded_data_are_not_counted_as_loss() {
        let mut sent = Records::default();
        (0..10).for_each(|n| sent.on_sent(at(n), BASE + 1000 * n as u32, BASE + 1000 * (n as u32 + 1)));
        sent.segments.sack(BASE, BASE + 2000, |_| {});
        sent.segments.forget_reports();
        sent.segments.take_back();
        assert_eq!(sent.segments.counts(), counts(0, 0, 10));
        sent.take_losses(at(30), 1000, |_| false, |lost| panic!("{lost:?}"));
        sent.segments.check();
    }

    /// Random transmissions, reports, losses and acknowledgements leave no gaps and correct counts.
    #[test]
    fn counts_are_consistent_in_random_histories() {
        let mut random = Streams::new(1, 0).stream("sent");
        for _ in 0..200 {
            let mut sent = SentSegments::default();
            let (mut una, mut max) = (BASE, BASE);
            for step in 0..60_u64 {
                let mut draw = |n: u32| random.below(u64::from(n)) as u32;
                let span = max - una;
                let (from, to) = (draw(span + 1), draw(span + 1));
                let (from, to) = (una + from.min(to), una + from.max(to));
                match draw(8) {
                    0..3 => {
                        let end = max + 1 + draw(1000);
                        sent.on_sent(at(step), max, end, Snapshot::default());
                        max = end;
                    }
                    3 if from < to => sent.on_sent(at(step), from, to, Snapshot::default()),
                    4 if from < to => sent.sack(from, to, |_| {}),
                    5 => {
                        let is_lost = |segment: &SentSegment| segment.sent_at < at(step / 2);
                        let timed = |segment: &&SentSegment| {
                            segment.state == SegmentState::InFlight && !segment.untimed && is_lost(segment)
                        };
                        let due = sent.iter().filter(timed).count() as u32;
                        assert_eq!(sent.lose_in_time_order(is_lost).0, due);
                    }
                    6 => {
                        sent.acknowledge(from, |_| {});
                        una = from;
                    }
                    7 => match draw(4) {
                        0 => sent.unmark_lost(),
                        1 => sent.forget_reports(),
                        2 if draw(2) == 0 => sent.take_back(),
                        2 => _ = sent.lose_where(|segment| segment.start > from),
                        _ => _ = sent.lose_while(|_, above| above > 2),
                    },
                    _ => {}
                }
                sent.check();
                let (at, end) = (at(step / 2), from);
                let before = |segment: &&SentSegment| {
                    let in_flight = segment.state == SegmentState::InFlight && !segment.untimed;
                    in_flight && (segment.sent_at < at || (segment.sent_at == at && segment.end < end))
                };
                let last = sent.iter().filter(before).map(|segment| segment.sent_at).max();
                assert_eq!(sent.last_sent_before(at, end), last);
                let lowest = sent.iter().find(|segment| segment.state == SegmentState::Lost);
                assert_eq!(lowest.map(|lost| lost.start), sent.next_lost().map(|lost| lost.start));
                assert_eq!(sent.first().map_or(max, |first| first.start), una);
                assert_eq!(sent.last().map_or(max, |last| last.end), max);
            }
        }
    }
}
