//! Loss detection by rows of duplicate acknowledgements, for recovery without records.

use core::fmt::Debug;

use super::ns2::Ns2;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::seq::SeqNum;
use crate::tcp::settings::{Rules, Settings};

/// What counts as a duplicate acknowledgement, and which row of them shows a new loss.
pub(super) trait DuplicateRules: Debug + Sync {
    /// Whether an acknowledgement of nothing new is a duplicate.
    fn is_duplicate(&self, repeat: &Repeat) -> bool;

    /// Whether a loss of the segment at `una` is a new one, and not a consequence of the loss that was found when
    /// `recover` was `snd_max`. `first_end` is where the first segment of the connection ends.
    fn is_new(&self, una: SeqNum, recover: SeqNum, first_end: SeqNum) -> bool;

    /// What `recover` is before any loss, in a connection that begins at `iss`.
    fn initial_recover(&self, _iss: SeqNum) -> Option<SeqNum> {
        None
    }

    /// Whether limited transmit answers the duplicate with number `count` of a row; `resending` if something
    /// waits to be resent (RFC 3042 section 2: the first two, by new data).
    fn limited_transmit(&self, count: u32, resending: bool) -> bool {
        count <= 2 && !resending
    }
}

/// An acknowledgement of nothing new.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Repeat<'a> {
    pub(in crate::tcp) segment: &'a Segment,
    /// It changes the receiver's window.
    pub(in crate::tcp) window_changed: bool,
    /// Something is outstanding.
    pub(in crate::tcp) outstanding: bool,
}

impl Repeat<'_> {
    /// Whether it carries nothing but the acknowledgement.
    pub(super) fn is_bare(&self) -> bool {
        let flags = self.segment.flags;
        let alone = self.segment.len == 0 && !flags.has(Flags::SYN) && !flags.has(Flags::FIN);
        alone && !self.window_changed
    }
}

/// RFC 5681 section 2; a loss is new beyond `recover` (RFC 6582 section 3.2 step 2, section 4.1: an acknowledgement
/// of `recover` itself may come from a needless retransmission).
#[derive(Debug)]
struct Rfc5681;

impl DuplicateRules for Rfc5681 {
    fn is_duplicate(&self, repeat: &Repeat) -> bool {
        repeat.is_bare() && repeat.outstanding
    }

    fn is_new(&self, una: SeqNum, recover: SeqNum, _first_end: SeqNum) -> bool {
        una > recover
    }
}

/// RFC 6675 section 2: what reports something by SACK is a duplicate, whatever else it carries. A loss is new from
/// `recover` on (section 5.1), for reports show what was needless.
#[derive(Debug)]
struct Rfc6675;

impl DuplicateRules for Rfc6675 {
    fn is_duplicate(&self, repeat: &Repeat) -> bool {
        !repeat.segment.sack.is_empty()
    }

    fn is_new(&self, una: SeqNum, recover: SeqNum, _first_end: SeqNum) -> bool {
        una >= recover
    }
}

/// Every acknowledgement is of interest to recovery that knows by records or timestamps what has arrived; rows mean
/// nothing to it.
#[derive(Debug)]
struct Every;

impl DuplicateRules for Every {
    fn is_duplicate(&self, _repeat: &Repeat) -> bool {
        true
    }

    fn is_new(&self, una: SeqNum, recover: SeqNum, _first_end: SeqNum) -> bool {
        una > recover
    }
}

fn rules(settings: &Settings) -> &'static dyn DuplicateRules {
    if settings.keeps_records() || settings.tells_copies() {
        return &Every;
    }
    match settings.rules {
        Rules::Ns2 => &Ns2,
        Rules::Rfc if settings.sack() => &Rfc6675,
        Rules::Rfc => &Rfc5681,
    }
}

/// A row of duplicate acknowledgements.
#[derive(Debug)]
pub(in crate::tcp) struct Duplicates {
    rules: &'static dyn DuplicateRules,
    /// How many there are in the row.
    pub(in crate::tcp) count: u32,
    /// A repair has answered this row.
    answered: bool,
    /// `snd_max` when the last loss was found, until it is acknowledged.
    recover: Option<SeqNum>,
    /// Losses are told from consequences of the last one ([`Settings::careful`]).
    careful: bool,
    first_end: SeqNum,
}

impl Duplicates {
    pub(in crate::tcp) fn new(settings: &Settings) -> Duplicates {
        let rules = rules(settings);
        Duplicates {
            rules,
            count: 0,
            answered: false,
            recover: rules.initial_recover(SeqNum(settings.iss)),
            careful: settings.careful,
            first_end: settings.first_end(),
        }
    }

    /// Whether an acknowledgement of nothing new is a duplicate.
    pub(in crate::tcp) fn is_duplicate(&self, repeat: &Repeat) -> bool {
        self.rules.is_duplicate(repeat)
    }

    /// Whether a loss of the segment at `una` is a new one, and not a consequence of the last.
    pub(in crate::tcp) fn loss_is_new(&self, una: SeqNum) -> bool {
        let new = |recover| self.rules.is_new(una, recover, self.first_end);
        !self.careful || self.recover.is_none_or(new)
    }

    /// Whether the row is too short to mean a loss.
    pub(in crate::tcp) fn are_early(&self, dupthresh: u32) -> bool {
        self.count > 0 && !self.answered && self.count < dupthresh
    }

    /// Whether the row shows a new loss of the segment at `una`.
    pub(in crate::tcp) fn reveal_loss(&self, una: SeqNum, dupthresh: u32) -> bool {
        !self.answered && self.count >= dupthresh && self.loss_is_new(una)
    }

    /// Whether limited transmit answers the last of the row.
    pub(in crate::tcp) fn permit_limited_transmit(&self, resending: bool) -> bool {
        self.rules.limited_transmit(self.count, resending)
    }

    /// A repair answers the row.
    pub(in crate::tcp) fn answer(&mut self, max: SeqNum) {
        self.recover = Some(max);
        self.answered = true;
    }

    /// A timeout was the last loss, when `max` was `snd_max`.
    pub(in crate::tcp) fn note_timeout(&mut self, max: SeqNum) {
        self.recover = Some(max);
    }

    /// The row has ended.
    pub(in crate::tcp) fn end_row(&mut self) {
        self.count = 0;
        self.answered = false;
    }

    /// `snd_max` when the last loss was found, if that is not acknowledged yet.
    pub(in crate::tcp) fn recover(&self) -> Option<SeqNum> {
        self.recover
    }

    /// Whether `ack` acknowledges less than was outstanding when the last loss was found.
    pub(in crate::tcp) fn is_partial(&self, ack: SeqNum) -> bool {
        self.recover.is_some_and(|recover| ack < recover)
    }

    /// All before `ack` is acknowledged. Kept for longer, `recover` would seem to lie ahead after 2 GiB without a
    /// loss.
    pub(in crate::tcp) fn acknowledge(&mut self, ack: SeqNum) {
        self.recover = self.recover.filter(|&recover| ack <= recover);
    }

    /// The last loss no longer counts.
    pub(in crate::tcp) fn forget_loss(&mut self) {
        self.recover = None;
    }
}
