//! Taking back a reduction of the window that no loss justified (RFC 3522, 3708, 4015; RFC 5682 is in
//! [`Prr`](super::Prr)).

use lasthop_base::Time;

use crate::tcp::cc::Window;
use crate::tcp::seq::SeqNum;

/// What is known of the reduction that may have to be undone.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The left edge at the reduction, and the window before it; nothing if there is nothing to undo.
    episode: Option<(SeqNum, Window)>,
    /// Retransmissions not yet reported to be duplicates; nothing if there were none.
    unexplained: Option<u32>,
    /// When the first of the retransmissions was sent.
    first_resent_at: Option<Time>,
}

impl Undo {
    /// The window `before` is about to be reduced, while `una` is the left edge and some retransmissions may be
    /// in the network.
    pub(super) fn begin(&mut self, una: SeqNum, before: Window, retransmissions: u32) {
        self.episode = Some((una, before));
        self.unexplained = Some(retransmissions).filter(|&count| count > 0);
        if retransmissions == 0 {
            self.first_resent_at = None;
        }
    }

    /// A segment was retransmitted.
    pub(super) fn on_resent(&mut self, now: Time) {
        self.first_resent_at.get_or_insert(now);
        self.unexplained = Some(self.unexplained.unwrap_or(0) + 1);
    }

    /// The receiver reports that `segments` beginning at `start` came twice (RFC 3708).
    pub(super) fn on_duplicate_report(&mut self, start: SeqNum, segments: u32) {
        if let (Some((una, _)), Some(count)) = (self.episode, &mut self.unexplained)
            && start >= una
        {
            *count = count.saturating_sub(segments);
        }
    }

    /// Whether every retransmission was needless, or `original` says that the acknowledgement was caused by an
    /// original transmission.
    pub(super) fn is_due(&self, original: bool) -> bool {
        self.episode.is_some() && (self.all_explained() || original)
    }

    /// Whether every retransmission was reported to be a duplicate.
    pub(super) fn all_explained(&self) -> bool {
        self.episode.is_some() && self.unexplained == Some(0)
    }

    /// When the first retransmission of the episode was sent (RFC 3522: what echoes an earlier timestamp was
    /// caused by an original).
    pub(super) fn first_resent_at(&self) -> Option<Time> {
        self.episode.and(self.first_resent_at)
    }

    /// Ends the episode; returns the window to restore.
    pub(super) fn take(&mut self) -> Option<Window> {
        let (_, before) = core::mem::take(self).episode?;
        Some(before)
    }
}
