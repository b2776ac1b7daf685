//! The source's part.
//!
//! **Which duplicates.** Those of a row that bear the bit, wherever in it they stand: as soon as there are
//! `threshold`, the loss is one on the air. The paper waits for as many although the first says it all, since
//! the base station cannot know what is only late. Duplicates without the bit count as they always do, and if a
//! loss shows before there are as many with it, it is any other. So is one that comes to light by fewer
//! duplicates than that: with SACK a single report of three segments does, as of a repair that is on its way.
//! A segment that comes through the base station after others asked for it has the rest of the row marked.
//! **After that.** What a row says once its loss was answered is about the repair, which has passed as well. TCP
//! looks for no other loss in it, and with SACK counts no more of it: nothing changes, nor which other holes
//! count as lost.
//! **Several holes.** The duplicates that reveal the first one decide for all of the window, which is cut once.
//! Partial acknowledgements, being no duplicates, bear no bit. So congestion behind a loss on the air costs no
//! more than that one; and a loss on the air behind one by congestion no less.
//! **Rows.** One ends when something new is acknowledged or TCP counts its duplicates anew.

use lasthop_base::Time;

use super::Wenp;
use crate::tcp::{Evidence, Flags, Hole, Reaction, Response, Segment, SenderState};

/// Answers losses as the feedback explains them. A row is the duplicates that ask for what is at the left edge.
#[derive(Debug)]
pub(super) struct Feedback {
    alpha: f64,
    threshold: u32,
    bit: Flags,
    /// Of the row, those that bear the bit, without what came last.
    marked: u32,
    /// What came last bears it, and this is how many duplicates there were before it: whether it is one itself
    /// is up to TCP.
    last: Option<u32>,
}

impl Feedback {
    pub(super) fn new(scheme: &Wenp) -> Feedback {
        let Wenp { alpha, threshold, .. } = *scheme;
        Feedback { alpha, threshold, bit: scheme.flag(), marked: 0, last: None }
    }

    /// Duplicates of the row that bear the bit.
    fn marked(&self, sender: &SenderState) -> u32 {
        self.marked + u32::from(self.last.is_some_and(|before| sender.dupacks() > before))
    }
}

impl Reaction for Feedback {
    fn on_segment(&mut self, _now: Time, segment: &Segment, sender: &mut SenderState) {
        let goes_on = segment.ack <= sender.snd_una() && sender.dupacks() > 0;
        self.marked = if goes_on { self.marked(sender) } else { 0 };
        let speaks = segment.ack == sender.snd_una() && segment.flags.has(self.bit);
        self.last = speaks.then(|| sender.dupacks());
    }

    fn dupthresh(&self, set: u32, sender: &SenderState) -> u32 {
        if self.marked(sender) >= self.threshold { self.threshold } else { set }
    }

    fn judge(&mut self, hole: Hole, sender: &mut SenderState) -> Response {
        let on_the_air = hole.evidence != Evidence::Timeout && self.marked(sender) >= self.threshold;
        if on_the_air { Response::Reduce(self.alpha) } else { Response::Congestion }
    }
}
