//! Undo of spurious window reductions (RFC 3522, 3708, 4015; RFC 5682 is in [`Prr`](super::Prr)).

use lasthop_base::Time;

use crate::packet::SeqNum;
use crate::tcp::cc::Window;

/// The state of a reduction that may be undone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The left edge at the reduction, and the window before it; `None` if there is nothing to undo.
    episode: Option<(SeqNum, Window)>,
    /// Retransmissions not yet reported as duplicates; `None` without retransmissions.
    unexplained: Option<u32>,
    /// Transmission time of the first retransmission.
    first_resent_at: Option<Time>,
}

impl Undo {
    /// Starts an episode: saves the window `before` a reduction, with left edge `una` and `retransmissions`
    /// in flight.
    pub(super) fn begin(&mut self, una: SeqNum, before: Window, retransmissions: u32) {
        self.episode = Some((una, before));
        self.unexplained = Some(retransmissions).filter(|&count| count > 0);
        if retransmissions == 0 {
            self.first_resent_at = None;
        }
    }

    /// Records a retransmission.
    pub(super) fn on_resent(&mut self, now: Time) {
        self.first_resent_at.get_or_insert(now);
        self.unexplained = Some(self.unexplained.unwrap_or(0) + 1);
    }

    /// Records a report that `segments` segments from `start` arrived twice (RFC 3708).
    pub(super) fn on_duplicate_report(&mut self, start: SeqNum, segments: u32) {
        if let (Some((una, _)), Some(count)) = (self.episode, &mut self.unexplained)
            && start >= una
        {
            *count = count.saturating_sub(segments);
        }
    }

    /// Whether the reduction was spurious: every retransmission was unnecessary, or an original transmission
    /// caused the acknowledgement (`original`).
    pub(super) fn is_due(&self, original: bool) -> bool {
        self.episode.is_some() && (self.all_explained() || original)
    }

    /// Whether every retransmission was reported as a duplicate.
    pub(super) fn all_explained(&self) -> bool {
        self.episode.is_some() && self.unexplained == Some(0)
    }

    /// Transmission time of the first retransmission of the episode (RFC 3522: an original transmission
    /// caused an acknowledgement that echoes an earlier timestamp).
    pub(super) fn first_resent_at(&self) -> Option<Time> {
        self.episode.and(self.first_resent_at)
    }

    /// Ends the episode; returns the window to restore.
    pub(super) fn take(&mut self) -> Option<Window> {
        let (_, before) = core::mem::take(self).episode?;
        Some(before)
    }
}
