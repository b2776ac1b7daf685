//! What acknowledgements report beside the acknowledgement number: SACK blocks, and the counters of marks.

use super::Receiver;
use crate::packet::{EcnCounters, SackBlock, SackBlocks, Segment};

/// Space for options in a TCP header.
const OPTION_SPACE: usize = 40;

impl Receiver {
    /// Whether an acknowledgement has SACK blocks, or blocks reported before are to be forgotten.
    pub(super) fn has_reports(&self) -> bool {
        let any = !self.queue.is_empty() || !self.reported.is_empty() || self.duplicate.is_some();
        any && self.settings.sack()
    }

    /// Records a duplicate to report. An earlier one may be unreported, because a reaction withheld its
    /// acknowledgement. It stays: a duplicate that touches or overlaps it extends it, and any other is
    /// discarded, as in Linux.
    #[inline]
    pub(super) fn note_duplicate(&mut self, repeated: Option<SackBlock>) {
        let Some(new) = repeated.filter(|_| self.settings.dsack) else { return };
        self.duplicate = Some(match self.duplicate {
            Some(old) if new.end < old.start || old.end < new.start => old,
            Some(old) => SackBlock { start: old.start.min(new.start), end: old.end.max(new.end) },
            None => new,
        });
    }

    /// The SACK blocks to report: the duplicate part first (RFC 2883), then the block with the latest
    /// segment, then blocks reported before (RFC 2018 section 4). The `counters` of marks give way if fewer than two blocks
    /// would fit beside them (RFC 9768 section 3.2.3.3).
    pub(super) fn report(&mut self, latest: Option<&Segment>, counters: Option<EcnCounters>) -> SackBlocks {
        let ranges = self.queue.iter().take(2).count() + usize::from(self.duplicate.is_some());
        let wanted = if self.settings.sack() { ranges.min(2) } else { 0 };
        let stamps = self.settings.stamps();
        let beside = |counters: EcnCounters| blocks_beside(stamps, counters);
        let counters = counters.filter(|&counters| beside(counters) >= wanted);
        let fit = SackBlocks::MAX - usize::from(stamps);
        let most = fit.min(self.settings.sack_blocks as usize);
        if !self.settings.sack() {
            let mut blocks = SackBlocks::default();
            blocks.set_ecn_counters(counters);
            return blocks;
        }
        let rcv_nxt = self.rcv_nxt;
        let newest =
            latest.filter(|latest| latest.seq >= rcv_nxt).and_then(|latest| self.queue.around(latest.seq));
        self.reported.retain(|old| {
            let covered = newest.is_some_and(|new| new.start <= old.start && old.end <= new.end);
            old.end > rcv_nxt && !covered
        });
        if let Some(newest) = newest {
            self.reported.insert(0, newest);
            self.reported.truncate(most);
        }
        let mut blocks = SackBlocks::default();
        blocks.set_ecn_counters(counters);
        let room = counters.map_or(most, |counters| most.min(beside(counters)));
        let room = room.saturating_sub(usize::from(self.duplicate.is_some()));
        self.duplicate
            .into_iter()
            .chain(self.reported.iter().copied().take(room))
            .for_each(|block| blocks.push(block));
        blocks
    }
}

/// The SACK blocks that fit a header beside the counters of marks, and timestamps if it `stamps`.
pub(crate) fn blocks_beside(stamps: bool, counters: EcnCounters) -> usize {
    let others = counters.padded_len() + if stamps { 12 } else { 0 };
    (OPTION_SPACE - 4 - others) / 8
}
