//! The base station's state of one connection: buffer, window to the mobile host, and the timer.
//!
//! Invariants: what the mobile host has acknowledged is not in the buffer; a segment enters the buffer once, and leaves it
//! acknowledged or with the connection; timestamps towards the mobile host do not decrease from one transmission of a
//! connection to the next, if the source's do not.

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
    /// When it was last sent to the mobile host.
    sent: Option<Time>,
    /// Whether it was sent more than once.
    is_copied: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Forwarded,
    /// In the buffer, or suppressed because it is there already.
    Buffered,
    Suppressed,
    /// The buffer is full.
    Refused,
}

/// A connection with data towards the mobile host.
#[derive(Debug)]
pub(super) struct State {
    /// Unacknowledged segments, in sequence.
    buffer: VecDeque<Buffered>,
    /// The highest acknowledgement of the mobile host, and the last window.
    acked: SeqNum,
    wnd: Option<u32>,
    /// Whether only one segment may be outstanding: after a timeout, until the next new acknowledgement.
    is_narrow: bool,
    /// While a loss is repaired: the end of what was sent before it was noticed.
    recovery: Option<SeqNum>,
    /// Smoothed round-trip time of the last hop.
    srtt: Option<Duration>,
    /// Number of timeouts since the last new acknowledgement.
    backoff: u32,
    /// When the oldest segment times out.
    pub(super) deadline: Time,
    /// Duplicate ACKs that are the source's to see, for segments that it has repeated.
    owed: u32,
    /// Whether timestamps are moved.
    hides: bool,
    /// The latest timestamp sent to the mobile host.
    stamp: Option<u32>,
    /// Whether FIN is acknowledged.
    pub(super) has_ended: bool,
}

/// Backoff beyond which the timeout does not grow.
const MOST_BACKOFF: u32 = 6;

impl State {
    /// The state before `segment`, the first one seen.
    pub(super) fn new(segment: &Segment, hides: bool) -> State {
        State {
            buffer: VecDeque::new(),
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

    /// Whether `segment` cannot be of this connection: it is beyond any window.
    pub(super) fn is_outdated(&self, segment: &Segment) -> bool {
        const FAR: u32 = 1 << 30;
        segment.seq.0.wrapping_sub(self.acked.0).wrapping_add(FAR) > 2 * FAR
    }

    /// Whether nothing is in the buffer.
    pub(super) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Segments in the buffer.
    pub(super) fn len(&self) -> usize {
        self.buffer.len()
    }

    fn timeout(&self, scheme: &WtcpTimestamps) -> Duration {
        let once = self.srtt.map_or(scheme.initial, |srtt| (srtt * 2).max(scheme.min_timeout));
        once * (1 << self.backoff.min(MOST_BACKOFF))
    }

    /// A segment from the source.
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
        if end <= self.acked {
            // The source has missed an acknowledgement; the mobile host repeats it.
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
        if self.buffer.len() >= scheme.buffer as usize {
            return Fate::Refused;
        }
        let (sent, is_copied) = (None, false);
        self.buffer.insert(place, Buffered { packet: *packet, start, end, arrived: now, sent, is_copied });
        self.transmit(now, scheme, counters, send);
        Fate::Buffered
    }

    /// An acknowledgement of the mobile host.
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
            // The missing segment is here: the source need not know.
            Some(oldest) if oldest.start <= ack.ack => {
                counters.suppressed_dupacks += 1;
                if self.recovery.is_none() {
                    self.recovery =
                        self.buffer.iter().rev().find(|each| each.sent.is_some()).map(|each| each.end);
                    self.repair(now, scheme, counters, send);
                }
                Fate::Suppressed
            }
            // Lost on the way to the base station.
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
            // The next segment is missing, too.
            self.repair(now, scheme, counters, send);
        }
        self.transmit(now, scheme, counters, send);
    }

    fn restart(&mut self, now: Time, scheme: &WtcpTimestamps) {
        let is_outstanding = self.buffer.iter().any(|each| each.sent.is_some());
        self.deadline = if is_outstanding { now + self.timeout(scheme) } else { Time::NEVER };
    }

    /// Sends the oldest segment again.
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

    /// The timer: a loss that is typically followed by others. One segment at a time tests the last hop.
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
        // What is behind the oldest is sent anew when that has arrived.
        for each in &mut self.buffer {
            (each.is_copied, each.sent) = (each.is_copied || each.sent.is_some(), None);
        }
        self.deadline = Time::NEVER;
        self.transmit(now, scheme, counters, send);
    }

    /// Sends what the window permits.
    fn transmit(
        &mut self,
        now: Time,
        scheme: &WtcpTimestamps,
        counters: &mut Counters,
        send: &mut impl FnMut(Packet),
    ) {
        let mut is_first = self.buffer.iter().all(|each| each.sent.is_none());
        for index in 0..self.buffer.len() {
            let Buffered { end, sent, .. } = self.buffer[index];
            if sent.is_some() {
                continue;
            }
            // A window probe goes through, too.
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

    /// Sends a segment with its timestamp moved by the time that it was here.
    fn send(&mut self, index: usize, now: Time, counters: &mut Counters, send: &mut impl FnMut(Packet)) {
        let each = &mut self.buffer[index];
        counters.copies += u64::from(each.sent.is_some() || each.is_copied);
        each.is_copied |= each.sent.is_some();
        each.sent = Some(now);
        let (mut packet, here) = (each.packet, now.since(each.arrived));
        if self.hide(&mut packet, here) {
            counters.hidden += here;
        }
        send(packet);
    }

    /// Moves a timestamp by the time that its segment was here, but not behind an earlier one, with which the mobile host would
    /// take the segment for an old one (RFC 7323 section 5). Returns whether there is a timestamp.
    fn hide(&mut self, packet: &mut Packet, here: Duration) -> bool {
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

    /// Empties the buffer. Calls `send` for what was never sent.
    pub(super) fn flush(&mut self, now: Time, mut send: impl FnMut(Packet)) {
        while let Some(each) = self.buffer.pop_front() {
            if each.sent.is_none() && !each.is_copied {
                let mut packet = each.packet;
                self.hide(&mut packet, now.since(each.arrived));
                send(packet);
            }
        }
        self.deadline = Time::NEVER;
    }

    /// Whether a gap that the mobile host reports is to be filled from the buffer.
    pub(super) fn repairs(&self, ack: SeqNum) -> bool {
        self.buffer.front().is_some_and(|oldest| oldest.start <= ack && oldest.sent.is_some())
    }

    /// Whether the mobile host seems to be lost.
    pub(super) fn is_hopeless(&self, scheme: &WtcpTimestamps) -> bool {
        self.backoff >= scheme.attempts
    }
}
