//! The source's part.
//!
//! **Bits.** For each outstanding message: lhack seen, fhack seen, since it was last sent.
//! **A loss.** With the lhack of what is missing: corruption. Without, but also without its fhack, at a
//! source that gets fhacks: lost on the first hop, or in a hand-off (section 6), so corruption as well.
//! Else congestion; if both ends are mobile, an lhack that was itself lost makes it so (section 4).
//! **The window.** While a loss by corruption is repaired, it is extended by the messages beyond the hole
//! of which an lhack came, instead of by duplicates; a source that never got an lhack goes by duplicates.
//! **The first hop.** It delivers in order: an fhack for a message that was sent after the last sending
//! of one that has none shows that this one, or its fhack, was lost. It is sent again at once, and the
//! window stays as it is. If copies of the later message may be confused, its first counts. Nothing sent
//! later, no sign: then the timer has to see it. What went out between the lost copy and the repair
//! overtakes the repair and makes duplicates at the destination, so that many more mean a loss of the
//! repair. With SACK they do so for every hole, while this one is at the left edge. A repair whose loss
//! was only that of its fhack reaches the destination twice, and the duplicate that this makes counts.

use alloc::collections::VecDeque;

use lasthop_base::Time;

use super::{FIRST_HOP, LAST_HOP};
use crate::packet::Notice;
use crate::tcp::{Hole, Reaction, Response, Segment, SenderState, SeqNum};

/// What is known of an outstanding message.
#[derive(Clone, Copy, Debug)]
struct Message {
    start: SeqNum,
    end: SeqNum,
    lhack: bool,
    fhack: bool,
    /// Its last sending. Sendings are counted over all messages.
    sent: u64,
    /// The first of its sendings that an fhack may be about.
    heard_from: u64,
    /// The first of its sendings that were lost on the first hop and repaired; the last, if none were.
    lost_since: u64,
    /// How many messages overtook its repair.
    overtaken: u32,
}

impl Message {
    fn new(start: SeqNum, end: SeqNum, sent: u64) -> Message {
        let (lhack, fhack) = (false, false);
        Message { start, end, lhack, fhack, sent, heard_from: sent, lost_since: sent, overtaken: 0 }
    }
}

/// Tells congestion from corruption.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// What is outstanding, by sequence numbers, without gaps or overlaps.
    line: VecDeque<Message>,
    sendings: u64,
    /// Sendings that come next and repair losses on the first hop.
    repairs: usize,
    /// An lhack has come: the destination is mobile.
    heard_lhack: bool,
    /// An fhack has come: the source is mobile.
    heard_fhack: bool,
}

impl Judge {
    fn forget_before(&mut self, edge: SeqNum) {
        while self.line.front().is_some_and(|message| message.end <= edge) {
            self.line.pop_front();
        }
    }

    /// The message that `seq` is in.
    fn around(&self, seq: SeqNum) -> Option<&Message> {
        let index = self.line.partition_point(|message| message.end <= seq);
        self.line.get(index).filter(|message| message.start <= seq)
    }

    /// The message that begins with `seq`, as a notice names it.
    fn named(&mut self, seq: SeqNum) -> Option<&mut Message> {
        let index = self.line.partition_point(|message| message.start < seq);
        self.line.get_mut(index).filter(|message| message.start == seq)
    }

    fn on_lhack(&mut self, seq: SeqNum) {
        self.heard_lhack = true;
        if let Some(message) = self.named(seq) {
            message.lhack = true;
        }
    }

    fn on_fhack(&mut self, seq: SeqNum, sender: &mut SenderState) {
        self.heard_fhack = true;
        let Some(message) = self.named(seq) else { return };
        message.fhack = true;
        let passed = message.heard_from;
        // A message that was sent again in part has left a piece that is acknowledged.
        self.forget_before(sender.snd_una());
        for message in self.line.iter().filter(|message| !message.fhack && message.sent < passed) {
            self.repairs += usize::from(sender.resend(message.start.max(sender.snd_una())));
        }
    }

    /// Makes a boundary at `seq`; says which message is the first behind it.
    fn cut(&mut self, seq: SeqNum) -> usize {
        let index = self.line.partition_point(|message| message.end <= seq);
        match self.line.get_mut(index) {
            Some(message) if message.start < seq => {
                let rest = Message { start: seq, ..*message };
                message.end = seq;
                self.line.insert(index + 1, rest);
                index + 1
            }
            _ => index,
        }
    }

    /// `message` was sent in place of the messages from `first` up to `after`: what it keeps of theirs.
    fn note_copies(&self, message: &mut Message, first: usize, after: usize, repair: bool) {
        let Some(old) = self.line.get(first).filter(|old| old.start < message.end) else { return };
        if repair {
            message.lost_since = old.lost_since;
            let beyond = self.line.range(after..);
            message.overtaken = beyond.filter(|other| other.sent > old.lost_since).count() as u32;
        } else if !old.fhack {
            message.heard_from = old.heard_from;
        }
    }
}

impl Reaction for Judge {
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

    fn on_sent(&mut self, start: SeqNum, end: SeqNum, again: bool) {
        self.sendings += 1;
        let mut message = Message::new(start, end, self.sendings);
        if !again {
            return self.line.push_back(message);
        }
        let first = self.cut(start);
        let after = self.cut(end);
        let repair = self.repairs > 0;
        self.repairs -= usize::from(repair);
        self.note_copies(&mut message, first, after, repair);
        self.line.drain(first..after);
        self.line.insert(first, message);
    }

    fn dupthresh(&self, set: u32, sender: &SenderState) -> u32 {
        set + self.around(sender.snd_una()).map_or(0, |message| message.overtaken)
    }

    fn extension(&self, sender: &SenderState) -> Option<u32> {
        let under_way = |message: &&Message| {
            message.start > sender.snd_una() && message.start < sender.snd_nxt() && message.lhack
        };
        let beyond = self.line.iter().filter(under_way);
        self.heard_lhack.then(|| beyond.map(|message| message.end - message.start).sum())
    }

    fn judge(&mut self, hole: Hole, _sender: &mut SenderState) -> Response {
        let corrupted = |message: &Message| message.lhack || (self.heard_fhack && !message.fhack);
        match self.around(hole.seq) {
            Some(message) if corrupted(message) => Response::Corruption,
            _ => Response::Congestion,
        }
    }
}
