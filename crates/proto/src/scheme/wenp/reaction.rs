//! The source's reaction.
//!
//! **Counting duplicates.** A run of duplicates indicates a loss on the air as soon as `threshold` of them
//! are marked, in any position. The paper waits for that many although one mark is sufficient evidence,
//! because the base station cannot distinguish losses from reordering. Unmarked duplicates count as usual; if
//! they reveal a loss before enough are marked, it is handled like any other. So is a loss revealed by fewer
//! than `threshold` duplicates: with SACK a single report of three segments is enough, for example of a
//! repair still in flight. A segment that passes the base station after others have requested it has the rest
//! of the run marked.
//! **After the loss.** Marks that arrive after the loss was answered refer to the retransmission, which has
//! passed as well. TCP looks for no further loss in this run, and with SACK counts no more duplicates:
//! neither the window nor the set of lost segments changes.
//! **Several holes.** The duplicates that reveal the first hole decide for the whole window, which is reduced
//! once. Partial acknowledgements are not duplicates and are never marked. So congestion behind a loss on the
//! air reduces the window no further, and a loss on the air behind a congestion loss no less.
//! **End of a run.** A run ends when new data are acknowledged or TCP resets its duplicate counter.

use lasthop_base::Time;

use super::Wenp;
use crate::tcp::{Evidence, Flags, Hole, Reaction, Response, Segment, SenderState};

/// Responds to losses according to the feedback. A run is a sequence of duplicates for the segment at the
/// left edge.
#[derive(Debug)]
pub(super) struct Feedback {
    alpha: f64,
    threshold: u32,
    bit: Flags,
    /// Marked duplicates of the run, without the latest segment.
    marked: u32,
    /// Number of duplicates before the latest segment if that is marked; TCP decides whether it is a
    /// duplicate.
    last: Option<u32>,
}

impl Feedback {
    pub(super) fn new(scheme: &Wenp) -> Feedback {
        let Wenp { alpha, threshold, .. } = *scheme;
        Feedback { alpha, threshold, bit: scheme.flag(), marked: 0, last: None }
    }

    /// Number of marked duplicates of the run.
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

    fn judge(&mut self, _now: Time, hole: Hole, sender: &mut SenderState) -> Response {
        let on_the_air = hole.evidence != Evidence::Timeout && self.marked(sender) >= self.threshold;
        if on_the_air { Response::Reduce(self.alpha) } else { Response::Congestion }
    }
}
