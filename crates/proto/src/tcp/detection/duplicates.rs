//! Loss detection by consecutive duplicate ACKs, for recovery without records.

use core::fmt::Debug;

use super::ns2::Ns2;
use crate::packet::{Flags, Segment, SeqNum};
use crate::tcp::settings::{Rules, Settings};

/// Which acknowledgements count as duplicate ACKs, and which losses are new.
pub(super) trait DuplicateRules: Debug + Sync {
    /// Whether an acknowledgement of no new data is a duplicate ACK.
    fn is_duplicate(&self, repeat: &Repeat) -> bool;

    /// Whether a loss of the segment at `una` is new, and not a consequence of the last loss, at which
    /// `snd_max` was `recover`. `first_end` is the end of the first segment of the connection.
    fn is_new(&self, una: SeqNum, recover: SeqNum, first_end: SeqNum) -> bool;

    /// The value of `recover` before any loss, in a connection with initial sequence number `iss`.
    fn initial_recover(&self, _iss: SeqNum) -> Option<SeqNum> {
        None
    }

    /// Whether limited transmit responds to consecutive duplicate ACK number `count`; `resending` if
    /// retransmissions are pending (RFC 3042 section 2: new data for the first two).
    fn limited_transmit(&self, count: u32, resending: bool) -> bool {
        count <= 2 && !resending
    }
}

/// An acknowledgement of no new data.
#[derive(Clone, Copy, Debug)]
pub(in crate::tcp) struct Repeat<'a> {
    pub(in crate::tcp) segment: &'a Segment,
    /// Whether it changes the receiver's window.
    pub(in crate::tcp) window_changed: bool,
    /// Whether data are outstanding.
    pub(in crate::tcp) outstanding: bool,
}

impl Repeat<'_> {
    /// Whether it is a pure ACK without a window update.
    pub(super) fn is_bare(&self) -> bool {
        let flags = self.segment.flags;
        let alone = self.segment.len == 0 && !flags.has(Flags::SYN) && !flags.has(Flags::FIN);
        alone && !self.window_changed
    }
}

/// RFC 5681 section 2; a loss is new beyond `recover` (RFC 6582 section 3.2 step 2, section 4.1: an
/// unnecessary retransmission may cause an acknowledgement of `recover` itself).
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

/// RFC 6675 section 2: any segment with SACK blocks is a duplicate ACK. A loss is new from `recover` on
/// (section 5.1), since SACK reveals unnecessary retransmissions.
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

/// Passes every acknowledgement to recovery that tracks deliveries by records or timestamps and does not
/// count duplicate ACKs.
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
    if settings.keeps_records() || settings.timestamps_are_unique() {
        return &Every;
    }
    match settings.rules {
        Rules::Ns2 => &Ns2,
        Rules::Rfc if settings.sack() => &Rfc6675,
        Rules::Rfc => &Rfc5681,
    }
}

/// The count of consecutive duplicate ACKs.
#[derive(Debug)]
pub(in crate::tcp) struct Duplicates {
    rules: &'static dyn DuplicateRules,
    /// Number of consecutive duplicate ACKs.
    pub(in crate::tcp) count: u32,
    /// Whether these duplicate ACKs have already triggered a repair.
    answered: bool,
    /// `snd_max` at the last loss, until it is acknowledged.
    recover: Option<SeqNum>,
    /// Whether new losses are distinguished from consequences of the last one ([`Settings::careful`]).
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

    /// Whether an acknowledgement of no new data is a duplicate ACK.
    pub(in crate::tcp) fn is_duplicate(&self, repeat: &Repeat) -> bool {
        self.rules.is_duplicate(repeat)
    }

    /// Whether a loss of the segment at `una` is new, and not a consequence of the last loss.
    pub(in crate::tcp) fn loss_is_new(&self, una: SeqNum) -> bool {
        let new = |recover| self.rules.is_new(una, recover, self.first_end);
        !self.careful || self.recover.is_none_or(new)
    }

    /// Whether enough duplicate ACKs for the segment at `seq` would reveal a loss; `una` is the current left
    /// edge.
    pub(in crate::tcp) fn may_reveal_loss(&self, seq: SeqNum, una: SeqNum) -> bool {
        (seq != una || !self.answered) && self.loss_is_new(seq)
    }

    /// Whether there are too few duplicate ACKs to indicate a loss.
    pub(in crate::tcp) fn are_early(&self, dupthresh: u32) -> bool {
        self.count > 0 && !self.answered && self.count < dupthresh
    }

    /// Whether the duplicate ACKs reveal a new loss of the segment at `una`.
    pub(in crate::tcp) fn reveal_loss(&self, una: SeqNum, dupthresh: u32) -> bool {
        !self.answered && self.count >= dupthresh && self.loss_is_new(una)
    }

    /// Whether limited transmit responds to the last duplicate ACK.
    pub(in crate::tcp) fn permit_limited_transmit(&self, resending: bool) -> bool {
        self.rules.limited_transmit(self.count, resending)
    }

    /// Records a repair triggered by these duplicate ACKs.
    pub(in crate::tcp) fn answer(&mut self, max: SeqNum) {
        self.recover = Some(max);
        self.answered = true;
    }

    /// Records a timeout as the last loss, with `max` as `snd_max`.
    pub(in crate::tcp) fn note_timeout(&mut self, max: SeqNum) {
        self.recover = Some(max);
    }

    /// Resets the count.
    pub(in crate::tcp) fn end_row(&mut self) {
        self.count = 0;
        self.answered = false;
    }

    /// `snd_max` at the last loss; `None` once it is acknowledged.
    pub(in crate::tcp) fn recover(&self) -> Option<SeqNum> {
        self.recover
    }

    /// Whether `ack` covers only part of the data outstanding at the last loss.
    pub(in crate::tcp) fn is_partial(&self, ack: SeqNum) -> bool {
        self.recover.is_some_and(|recover| ack < recover)
    }

    /// Clears `recover` once `ack` is past it; otherwise it would appear to be ahead after 2 GiB without a
    /// loss.
    pub(in crate::tcp) fn acknowledge(&mut self, ack: SeqNum) {
        self.recover.take_if(|&mut recover| recover < ack);
    }

    /// Forgets the last loss.
    pub(in crate::tcp) fn forget_loss(&mut self) {
        self.recover = None;
    }
}
