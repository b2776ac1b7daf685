//! The state of one connection at the base station: buffer, window to the mobile host, timer.
//!
//! Invariants: the buffer has no data that the mobile host has acknowledged; a segment leaves it when it is
//! acknowledged, when an earlier one needs its place, or when the connection is removed; if the source's timestamps do
//! not decrease, those sent to the mobile host do not either, pure acknowledgements included.

use alloc::collections::VecDeque;

use lasthop_base::{Duration, Time};

use super::WtcpTimestamps;
use crate::packet::{Body, Packet};
use crate::tcp::{Flags, Segment, SeqNum};

/// Totals of the agent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) copies: u64,
    pub(super) timeouts: u64,
    pub(super) suppressed_dupacks: u64,
    pub(super) suppressed_segments: u64,
    pub(super) hidden: Duration,
}

/// A segment in the buffer.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    packet: Packet,
    start: SeqNum,
    end: SeqNum,
    arrived: Time,
    /// Time of the last transmission to the mobile host.
    sent: Option<Time>,
    /// Whether it was sent more than once.
    is_copied: bool,
}

impl Buffered {
    /// Whether it was ever sent to the mobile host.
    fn was_sent(&self) -> bool {
        self.sent.is_some() || self.is_copied
    }
}

/// The handling of a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fate {
    Forwarded,
    /// Added to the buffer, maybe in the place of a later segment that was never sent.
    Buffered(Option<Packet>),
    /// The buffer already has it.
    Suppressed,
    /// The buffer is full.
    Refused,
}

/// A connection with data towards the mobile host.
#[derive(Debug)]
pub(super) struct State {
    /// Unacknowledged segments, in sequence order: starts and ends both ascend.
    buffer: VecDeque<Buffered>,
    /// End of the highest data seen.
    last_seen: SeqNum,
    /// Highest acknowledgement number of the mobile host, and its last window.
    acked: SeqNum,
    wnd: Option<u32>,
    /// Whether only one segment may be outstanding: after a timeout, until the next new acknowledgement.
    is_narrow: bool,
    /// During the repair of a loss: one past the highest sequence number sent before the loss was detected.
    recovery: Option<SeqNum>,
    /// Smoothed round-trip time of the last hop.
    srtt: Option<Duration>,
    /// Number of timeouts since the last new acknowledgement.
    backoff: u32,
    /// Deadline of the retransmission timer.
    pub(super) deadline: Time,
    /// Number of duplicate ACKs to forward, for duplicate segments of the source.
    owed: u32,
    /// Whether timestamps are adjusted.
    hides: bool,
    /// The latest timestamp sent to the mobile host.
    stamp: Option<u32>,
    /// Whether FIN is acknowledged.
    pub(super) has_ended: bool,
}

/// Backoff beyond which the timeout does not grow.
const MOST_BACKOFF: u32 = 6;

impl State {
    /// The state before the first segment.
    pub(super) fn new(segment: &Segment, hides: bool) -> State {
        State {
            buffer: VecDeque::new(),
            last_seen: segment.seq,
            acked: segment.seq,
            wnd: None,
            is_narrow: false,
            recovery: None,
            srtt: None,
            backoff: 0,
            deadline: Time::NEVER,
            owed: 0,
            hides,
            stamp: None,
            has_ended: false,
        }
    }

    /// Whether `segment` is outside of any window of this connection.
    pub(super) fn is_outdated(&self, segment: &Segment) -> bool {
        const FAR: u32 = 1 << 30;
        segment.seq.0.wrapping_sub(self.acked.0).wrapping_add(FAR) > 2 * FAR
    }

    /// Whether an acknowledgement contradicts the state: it acknowledges data that have not passed.
    pub(super) fn is_contradicted(&self, ack: SeqNum) -> bool {
        ack > self.last_seen || self.last_seen.is_far_from(ack)
    }

    /// Whether the buffer is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The segments in the buffer.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.buffer.iter().map(|each| &each.packet)
    }

    /// Number of segments in the buffer.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    fn timeout(&self, scheme: &WtcpTimestamps) -> Duration {
        let once = self.srtt.map_or(scheme.initial, |srtt| (srtt * 2).max(scheme.min_timeout));
        once * (1 << self.backoff.min(MOST_BACKOFF))
    }

    /// Processes a data segment from the source.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        packet: &Packet,
        scheme: &WtcpTimestamps,
        counters: &mut Counters,
        send: &mut impl FnMut(Packet),
    ) -> Fate {
        let Body::Tcp(segment) = packet.body else { return Fate::Forwarded };
        let (start, end) = (segment.seq, segment.seq + segment.seq_len());
        self.last_seen = self.last_seen.max(end);
        if end <= self.acked {
            // The source has missed an acknowledgement, which the mobile host will repeat.
            self.owed += 1;
            return Fate::Forwarded;
        }
        let place = self.buffer.partition_point(|each| each.start < start);
        let before = place.checked_sub(1).map(|index| &self.buffer[index]);
        let is_there = before.is_some_and(|each| end <= each.end)
            || self.buffer.get(place).is_some_and(|each| each.start == start && end <= each.end);
        if is_there {
            counters.suppressed_segments += 1;
            return Fate::Suppressed;
        }
        // Data that the source has put into segments anew.
        while self.buffer.get(place).is_some_and(|each| each.end <= end) {
            self.buffer.remove(place);
        }
        let mut evicted = None;
        if self.buffer.len() >= scheme.buffer as usize {
            if place == self.buffer.len() && start > self.acked {
                return Fate::Refused;
            }
            // Without the earlier data, the later ones would never be acknowledged, and the buffer stay full.
            let last = self.buffer.pop_back();
            evicted = last.filter(|each| !each.was_sent()).map(|each| each.packet);
        }
        let place = place.min(self.buffer.len());
        let (sent, is_copied) = (None, false);
        self.buffer.insert(place, Buffered { packet: *packet, start, end, arrived: now, sent, is_copied });
        self.transmit(now, scheme, counters, send);
        Fate::Buffered(evicted)
    }

    /// Processes an acknowledgement from the mobile host.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: &Segment,
        scheme: &WtcpTimestamps,
        counters: &mut Counters,
        send: &mut impl FnMut(Packet),
    ) -> Fate {
        if ack.ack > self.acked {
            self.advance(now, ack, scheme, counters, send);
            return Fate::Forwarded;
        }
        let is_duplicate = ack.ack == self.acked
            && ack.seq_len() == 0
            && self.wnd.is_none_or(|wnd| wnd == ack.wnd)
            && self.buffer.front().is_some_and(|each| each.sent.is_some());
        self.wnd = Some(ack.wnd);
        let fate = match self.buffer.front() {
            _ if !is_duplicate || self.owed > 0 => {
                self.owed = self.owed.saturating_sub(u32::from(is_duplicate));
                Fate::Forwarded
            }
            // The missing segment is in the buffer, so the source must not retransmit it.
            Some(oldest) if oldest.start <= ack.ack => {
                counters.suppressed_dupacks += 1;
                if self.recovery.is_none() {
                    self.recovery =
                        self.buffer.iter().rev().find(|each| each.sent.is_some()).map(|each| each.end);
                    self.repair(now, scheme, counters, send);
                }
                Fate::Suppressed
            }
            // Lost upstream of the base station.
            _ => Fate::Forwarded,
        };
        self.transmit(now, scheme, counters, send);
        fate
    }

    fn advance(
        &mut self,
        now: Time,
        ack: &Segment,
        scheme: &WtcpTimestamps,
        counters: &mut Counters,
        send: &mut impl FnMut(Packet),
    ) {
        let mut sample = None;
        while let Some(oldest) = self.buffer.front().filter(|oldest| oldest.end <= ack.ack) {
            // Karn's rule.
            sample = oldest.sent.filter(|_| !oldest.is_copied);
            self.has_ended |= oldest.packet.segment().is_some_and(|segment| segment.flags.has(Flags::FIN));
            self.buffer.pop_front();
        }
        if let Some(sent) = sample {
            let rtt = now.since(sent);
            self.srtt = Some(
                self.srtt
                    .map_or(rtt, |srtt| Duration::from_nanos((7 * srtt.as_nanos() + rtt.as_nanos()) / 8)),
            );
        }
        (self.acked, self.wnd) = (ack.ack, Some(ack.wnd));
        (self.is_narrow, self.backoff, self.owed) = (false, 0, 0);
        self.restart(now, scheme);
        self.recovery = self.recovery.filter(|&recovery| ack.ack < recovery);
        if self.recovery.is_some() {
            // The next segment is also missing.
            self.repair(now, scheme, counters, send);
        }
        self.transmit(now, scheme, counters, send);
    }

    fn restart(&mut self, now: Time, scheme: &WtcpTimestamps) {
        let is_outstanding = self.buffer.iter().any(|each| each.sent.is_some());
        self.deadline = if is_outstanding { now + self.timeout(scheme) } else { Time::NEVER };
    }

    /// Retransmits the oldest segment.
    fn repair(
        &mut self,
        now: Time,
        scheme: &WtcpTimestamps,
        counters: &mut Counters,
        send: &mut impl FnMut(Packet),
    ) {
        if self.buffer.front().is_some_and(|oldest| oldest.sent.is_some()) {
            self.send(0, now, counters, send);
            self.restart(now, scheme);
        }
    }

    /// Processes a timeout, a sign of a burst of losses: sends one segment at a time until the last hop works
    /// again.
    pub(super) fn on_timeout(
        &mut self,
        now: Time,
        scheme: &WtcpTimestamps,
        counters: &mut Counters,
        send: &mut impl FnMut(Packet),
    ) {
        counters.timeouts += 1;
        self.backoff += 1;
        (self.is_narrow, self.recovery) = (true, None);
        // The later segments are retransmitted after the oldest one is acknowledged.
        for each in &mut self.buffer {
            (each.is_copied, each.sent) = (each.is_copied || each.sent.is_some(), None);
        }
        self.deadline = Time::NEVER;
        self.transmit(now, scheme, counters, send);
    }

    /// Sends the segments that the window permits.
    fn transmit(
        &mut self,
        now: Time,
        scheme: &WtcpTimestamps,
        counters: &mut Counters,
        send: &mut impl FnMut(Packet),
    ) {
        // The oldest one fills a gap, or is alone: no acknowledgement comes without it.
        let mut is_first = self.buffer.front().is_some_and(|oldest| oldest.sent.is_none());
        for index in 0..self.buffer.len() {
            let Buffered { end, sent, .. } = self.buffer[index];
            if sent.is_some() {
                continue;
            }
            // Window probes are also sent.
            if !is_first && (self.is_narrow || self.wnd.is_some_and(|wnd| end - self.acked > wnd)) {
                return;
            }
            is_first = false;
            self.send(index, now, counters, send);
            if self.deadline == Time::NEVER {
                self.deadline = now + self.timeout(scheme);
            }
        }
    }

    /// Sends a segment, with the time in the buffer added to its timestamp.
    fn send(&mut self, index: usize, now: Time, counters: &mut Counters, send: &mut impl FnMut(Packet)) {
        let each = &mut self.buffer[index];
        counters.copies += u64::from(each.was_sent());
        each.is_copied |= each.sent.is_some();
        each.sent = Some(now);
        let (mut packet, here) = (each.packet, now.since(each.arrived));
        if self.hide(&mut packet, here) {
            counters.hidden += here;
        }
        send(packet);
    }

    /// Adds the time in the buffer to a timestamp, at least up to the previous timestamp, so that the mobile
    /// host does not discard the segment as outdated (RFC 7323 section 5). Returns whether there is a
    /// timestamp.
    pub(super) fn hide(&mut self, packet: &mut Packet, here: Duration) -> bool {
        if !self.hides {
            return false;
        }
        let Body::Tcp(Segment { timestamps: Some(timestamps), .. }) = &mut packet.body else { return false };
        let moved = timestamps.value.wrapping_add((here.as_nanos() / 1_000) as u32);
        let is_later = |stamp: u32| moved.wrapping_sub(stamp) < 1 << 31;
        timestamps.value = self.stamp.filter(|&stamp| !is_later(stamp)).unwrap_or(moved);
        self.stamp = Some(timestamps.value);
        true
    }

    /// Empties the buffer; calls `send` for each segment that was never sent.
    pub(super) fn flush(&mut self, now: Time, mut send: impl FnMut(Packet)) {
        while let Some(each) = self.buffer.pop_front() {
            if !each.was_sent() {
                let mut packet = each.packet;
                self.hide(&mut packet, now.since(each.arrived));
                send(packet);
            }
        }
        self.deadline = Time::NEVER;
    }

    /// Whether the segment at `ack` is repaired from the buffer.
    pub(super) fn repairs(&self, ack: SeqNum) -> bool {
        self.buffer.front().is_some_and(|oldest| oldest.start <= ack && oldest.sent.is_some())
    }

    /// Whether the timeouts have reached the limit of attempts.
    pub(super) fn is_hopeless(&self, scheme: &WtcpTimestamps) -> bool {
        self.backoff >= scheme.attempts
    }
}
