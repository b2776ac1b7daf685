//! The source's reaction.
//!
//! **State.** For each outstanding message: whether an lhack and an fhack have arrived since its last
//! transmission.
//! **Classification of a loss.** With an lhack: corruption. Without an lhack and without an fhack, at a
//! source that receives fhacks: lost on the first hop or in a hand-off (section 6), so corruption as well.
//! Otherwise congestion; if both ends are mobile, a lost lhack also leads to this (section 4).
//! **Window.** While a corruption loss is being repaired, the window is extended by the messages beyond the
//! hole for which an lhack arrived, instead of by duplicate ACKs. A source that has never received an lhack
//! uses duplicate ACKs.
//! **First hop**, with `detection = "fhacks"`. It delivers in order. If an fhack arrives for a message sent after
//! the last transmission of another message without an fhack, the latter or its fhack was lost. It is retransmitted immediately with an
//! unchanged window. If copies of the later message cannot be distinguished, the first one counts. If nothing
//! was sent later, only the timer detects the loss. Segments sent between the lost copy and the repair
//! overtake the repair and cause duplicate ACKs at the destination, so the duplicate threshold is raised by
//! their number. With SACK this applies to every hole while the repaired one is at the left edge. If only the
//! fhack was lost, the repair is a duplicate at the destination and the duplicate ACK it causes is counted.

use alloc::collections::VecDeque;

use lasthop_base::Time;

use super::{FIRST_HOP, FirstHopDetection, LAST_HOP};
use crate::packet::Notice;
use crate::tcp::{Hole, Reaction, Response, Segment, SenderState, SeqNum};

/// State of an outstanding message.
#[derive(Clone, Copy, Debug)]
struct Message {
    start: SeqNum,
    end: SeqNum,
    lhack: bool,
    fhack: bool,
    /// Number of its last transmission. Transmissions are counted over all messages.
    sent: u64,
    /// The first of its transmissions that an fhack may refer to.
    earliest_reported: u64,
    /// The first of its transmissions that repaired a first-hop loss; the last transmission if none did.
    lost_since: u64,
    /// Number of messages that overtook its repair.
    overtaken: u32,
}

impl Message {
    fn new(start: SeqNum, end: SeqNum, sent: u64) -> Message {
        let (lhack, fhack) = (false, false);
        Message { start, end, lhack, fhack, sent, earliest_reported: sent, lost_since: sent, overtaken: 0 }
    }
}

/// Classifies losses as congestion or corruption.
#[derive(Debug, Default)]
pub(super) struct LossClassifier {
    /// How a loss on the first hop is detected.
    detection: FirstHopDetection,
    /// Outstanding messages in sequence order, without gaps or overlaps.
    messages: VecDeque<Message>,
    transmissions: u64,
    /// Number of upcoming transmissions that repair first-hop losses.
    repairs: usize,
    /// An lhack has arrived: the destination is mobile.
    has_lhacks: bool,
    /// An fhack has arrived: the source is mobile.
    has_fhacks: bool,
}

impl LossClassifier {
    pub(super) fn new(detection: FirstHopDetection) -> LossClassifier {
        LossClassifier { detection, ..LossClassifier::default() }
    }

    fn forget_before(&mut self, edge: SeqNum) {
        while self.messages.front().is_some_and(|message| message.end <= edge) {
            self.messages.pop_front();
        }
    }

    /// The message that contains `seq`.
    fn containing(&self, seq: SeqNum) -> Option<&Message> {
        let index = self.messages.partition_point(|message| message.end <= seq);
        self.messages.get(index).filter(|message| message.start <= seq)
    }

    /// The message that begins at `seq`, as identified by a notice.
    fn starting_at(&mut self, seq: SeqNum) -> Option<&mut Message> {
        let index = self.messages.partition_point(|message| message.start < seq);
        self.messages.get_mut(index).filter(|message| message.start == seq)
    }

    fn on_lhack(&mut self, seq: SeqNum) {
        self.has_lhacks = true;
        if let Some(message) = self.starting_at(seq) {
            message.lhack = true;
        }
    }

    fn on_fhack(&mut self, seq: SeqNum, sender: &mut SenderState) {
        self.has_fhacks = true;
        let Some(message) = self.starting_at(seq) else { return };
        message.fhack = true;
        let passed = message.earliest_reported;
        if self.detection == FirstHopDetection::Duplicates {
            return;
        }
        // The rest of a partially retransmitted message may be acknowledged already.
        self.forget_before(sender.snd_una());
        for message in self.messages.iter().filter(|message| !message.fhack && message.sent < passed) {
            self.repairs += usize::from(sender.resend(message.start.max(sender.snd_una())));
        }
    }

    /// Splits the message that contains `seq`; returns the index of the first message from `seq` on.
    fn split_at(&mut self, seq: SeqNum) -> usize {
        let index = self.messages.partition_point(|message| message.end <= seq);
        match self.messages.get_mut(index) {
            Some(message) if message.start < seq => {
                let rest = Message { start: seq, ..*message };
                message.end = seq;
                self.messages.insert(index + 1, rest);
                index + 1
            }
            _ => index,
        }
    }

    /// `message` replaces the messages from `first` up to `after`; carries over their state.
    fn note_copies(&self, message: &mut Message, first: usize, after: usize, repair: bool) {
        let Some(old) = self.messages.get(first).filter(|old| old.start < message.end) else { return };
        if repair {
            message.lost_since = old.lost_since;
            let beyond = self.messages.range(after..);
            message.overtaken = beyond.filter(|other| other.sent > old.lost_since).count() as u32;
        } else if !old.fhack {
            message.earliest_reported = old.earliest_reported;
        }
    }
}

impl Reaction for LossClassifier {
    fn on_notice(&mut self, _now: Time, notice: &Notice, sender: &mut SenderState) {
        match notice.code {
            LAST_HOP => self.on_lhack(notice.seq),
            FIRST_HOP => self.on_fhack(notice.seq, sender),
            _ => {}
        }
    }

    fn on_segment(&mut self, _now: Time, segment: &Segment, _sender: &mut SenderState) {
        self.forget_before(segment.ack);
    }

    fn on_sent(&mut self, _now: Time, start: SeqNum, end: SeqNum, again: bool) {
        self.transmissions += 1;
        let mut message = Message::new(start, end, self.transmissions);
        if !again {
            return self.messages.push_back(message);
        }
        let first = self.split_at(start);
        let after = self.split_at(end);
        let repair = self.repairs > 0;
        self.repairs -= usize::from(repair);
        self.note_copies(&mut message, first, after, repair);
        self.messages.drain(first..after);
        self.messages.insert(first, message);
    }

    fn dupthresh(&self, set: u32, sender: &SenderState) -> u32 {
        set + self.containing(sender.snd_una()).map_or(0, |message| message.overtaken)
    }

    fn extension(&self, sender: &SenderState) -> Option<u32> {
        let under_way = |message: &&Message| {
            message.start > sender.snd_una() && message.start < sender.snd_nxt() && message.lhack
        };
        let beyond = self.messages.iter().filter(under_way);
        self.has_lhacks.then(|| beyond.map(|message| message.end - message.start).sum())
    }

    fn judge(&mut self, _now: Time, hole: Hole, _sender: &mut SenderState) -> Response {
        if self.is_corruption(hole.seq) { Response::Corruption } else { Response::Congestion }
    }

    fn is_corruption(&self, seq: SeqNum) -> bool {
        let corrupted = |message: &Message| message.lhack || (self.has_fhacks && !message.fhack);
        self.containing(seq).is_some_and(corrupted)
    }
}
