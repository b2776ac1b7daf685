//! Acknowledgements of a relay that wait for the far side.

use alloc::collections::VecDeque;

use lasthop_base::{Duration, Time};

use crate::component::Reach;
use crate::tcp::{Flags, Receiver, Segment, SeqNum};

/// The acknowledgements to the near side of a relay, if data are acknowledged only after the far side has
/// acknowledged them, and the last byte even later ([`Split::holds`](super::Split::holds)).
///
/// Invariants: an acknowledgement never exceeds what the far side has acknowledged; acknowledgements and,
/// while the far side is within reach, right edges of the window never decrease.
#[derive(Debug)]
pub struct Withholding {
    hold: Duration,
    /// Whether the mobile host is on the far side. Otherwise no byte is withheld, and the window stays open.
    is_outward: bool,
    /// Bytes acknowledged by the far side.
    released: u64,
    /// Whether the far side has acknowledged FIN.
    is_finished: bool,
    /// The last acknowledgement sent.
    sent: Option<SeqNum>,
    sent_at: Time,
    /// Released bytes up to here are acknowledged without withholding the last one.
    complete: u64,
    /// Deadline of the acknowledgement of the withheld byte.
    deadline: Time,
    /// Whether the mobile host is out of reach.
    is_away: bool,
    /// Suppressed duplicates of the first gap.
    duplicates: u32,
    /// Ends and timestamps of segments not acknowledged yet.
    stamps: VecDeque<(SeqNum, u32)>,
}

/// Maximum size of a window probe (RFC 9293 section 3.8.6.1). Larger segments were in flight when the window
/// closed; acknowledging them would give duplicate ACKs.
const PROBE: u32 = 1;

/// The default duplicate ACK threshold of all senders.
const DUPLICATES: u32 = 3;

/// Limit of the segments whose timestamps are remembered, since a source may send any number of them.
const MAX_STAMPS: usize = 1 << 14;

/// The state of a receiver.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    /// The next sequence number that it expects.
    next: SeqNum,
    /// Bytes received in order.
    delivered: u64,
    /// Whether FIN and all data before it were received.
    has_fin: bool,
    has_gap: bool,
}

impl From<&Receiver> for Received {
    fn from(receiver: &Receiver) -> Received {
        Received {
            next: receiver.rcv_nxt(),
            delivered: receiver.stats().delivered.0,
            has_fin: receiver.has_ended(),
            has_gap: receiver.has_gap(),
        }
    }
}

impl Withholding {
    /// Acknowledgements to the near side. The last byte of a stream to the mobile host (`is_outward`) waits for `hold`.
    pub fn new(hold: Duration, is_outward: bool) -> Withholding {
        Withholding {
            hold,
            is_outward,
            released: 0,
            is_finished: false,
            sent: None,
            sent_at: Time::ZERO,
            complete: 0,
            deadline: Time::NEVER,
            is_away: false,
            duplicates: 0,
            stamps: VecDeque::new(),
        }
    }

    /// Deadline of the acknowledgement of the withheld byte.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Records that the far side has acknowledged `released` bytes in total, and FIN if `is_finished`.
    pub fn release(&mut self, now: Time, released: u64, is_finished: bool) {
        if released > self.released && self.is_outward && !self.is_away {
            self.deadline = now + self.hold;
        }
        (self.released, self.is_finished) = (released, is_finished);
        if is_finished {
            self.deadline = Time::NEVER;
        }
    }

    /// Releases the withheld byte if its deadline has passed.
    pub fn wake(&mut self, now: Time) {
        if self.deadline <= now {
            (self.complete, self.deadline) = (self.released, Time::NEVER);
        }
    }

    /// Processes a change of the mobile host's radio signal; returns whether to send an acknowledgement to
    /// the near side.
    pub fn reach(&mut self, reach: Reach) -> bool {
        let is_away = self.is_outward && reach == Reach::Lost;
        if reach == Reach::Fading || is_away == self.is_away {
            return false;
        }
        self.is_away = is_away;
        (self.complete, self.deadline) = (self.released, Time::NEVER);
        true
    }

    /// Processes a segment from the near side. Returns whether to acknowledge it again: if it is a window
    /// probe, or was acknowledged before, but not immediately before. Responses to spurious retransmissions
    /// would be duplicate ACKs.
    pub fn note(&mut self, now: Time, segment: &Segment) -> bool {
        if segment.seq_len() == 0 || segment.flags.has(Flags::SYN) {
            return false;
        }
        let end = segment.seq + segment.seq_len();
        let is_old = self.sent.is_some_and(|sent| end <= sent);
        if let Some(timestamps) = segment.timestamps.filter(|_| !is_old && self.stamps.len() < MAX_STAMPS) {
            self.stamps.push_back((end, timestamps.value));
        }
        (is_old && self.sent_at + self.hold <= now) || (self.is_away && segment.len <= PROBE)
    }

    /// Whether everything received is acknowledged, including FIN.
    pub fn is_complete(&self, received: &Received) -> bool {
        self.sent == Some(received.next)
    }

    /// The acknowledgement number that may be sent.
    fn target(&self, received: &Received) -> SeqNum {
        let waiting = received.delivered - self.released + u64::from(received.has_fin && !self.is_finished);
        let is_held =
            self.is_outward && self.released > self.complete && !self.is_finished && !received.has_gap;
        let target = received.next - (waiting as u32 + u32::from(is_held));
        self.sent.map_or(target, |sent| sent.max(target))
    }

    /// Whether an acknowledgement of `target` is new to the near side.
    fn is_news(&self, target: SeqNum, received: &Received) -> bool {
        // The SYN, if any, was already acknowledged.
        let first = || received.next - (received.delivered as u32 + u32::from(received.has_fin));
        target > self.sent.unwrap_or_else(first)
    }

    /// Number of acknowledgements to send for new information: one, plus the suppressed duplicates of a gap
    /// that can now be reported.
    pub fn news(&self, received: &Received) -> u32 {
        let target = self.target(received);
        if !self.is_news(target, received) {
            return 0;
        }
        let is_gap = received.has_gap && target == received.next;
        1 + if is_gap { self.duplicates.min(DUPLICATES) } else { 0 }
    }

    /// Rewrites an acknowledgement of the receiver. Returns whether to send it: if it has new information,
    /// requests a gap, or is due.
    pub fn rewrite(&mut self, now: Time, ack: &mut Segment, received: &Received, is_due: bool) -> bool {
        if ack.flags & (Flags::SYN | Flags::RST) != Flags::default() {
            return true;
        }
        let target = self.target(received);
        let waiting = ack.ack - target;
        let is_gap = received.has_gap && waiting == 0;
        if !(self.is_news(target, received) || is_gap || is_due) {
            self.duplicates = if received.has_gap { self.duplicates + 1 } else { 0 };
            return false;
        }
        if !received.has_gap {
            self.duplicates = 0;
        }
        if waiting > 0 {
            ack.sack.replace_blocks(&[]);
            ack.flags = Flags(ack.flags.0 & !Flags::FIN.0);
        }
        (ack.ack, ack.wnd) = (target, if self.is_away { 0 } else { ack.wnd + waiting });
        self.echo(ack, target);
        (self.sent, self.sent_at) = (Some(target), now);
        true
    }

    /// Echoes the timestamp of the first newly acknowledged segment (RFC 7323 section 4.3).
    fn echo(&mut self, ack: &mut Segment, target: SeqNum) {
        let mut first = None;
        while let Some(&(end, value)) = self.stamps.front()
            && end <= target
        {
            first.get_or_insert(value);
            self.stamps.pop_front();
        }
        let first = first.or_else(|| self.stamps.front().map(|(_, value)| *value));
        if let Some((timestamps, echo)) = ack.timestamps.as_mut().zip(first) {
            timestamps.echo = echo;
        }
    }
}
