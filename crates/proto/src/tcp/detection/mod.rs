//! What is lost: loss detection.
//!
//! Recovery that keeps a record of each segment asks a [`LossDetector`], which marks segments as lost. Older
//! recovery asks what shows a loss without records: a row of [duplicate acknowledgements](Duplicates), what is
//! reported above [a gap](Gap), or timestamps that tell [copies](Copies) apart. What a loss does to the window is
//! [congestion control](super::cc)'s affair, and what is sent next is [recovery](super::recovery)'s.

mod copies;
mod duplicates;
mod gaps;
mod ns2;
mod rack;
mod sack;

use alloc::boxed::Box;
use core::fmt::Debug;

use lasthop_base::{Duration, Time};

pub(super) use copies::Copies;
pub(super) use duplicates::{Duplicates, Repeat};
pub(super) use gaps::{Gap, gaps_from_right};

use super::sent::{SentSegment, SentSegments};
use super::settings::{Detection, Settings};

/// What a detector needs to know of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) now: Time,
    pub(super) srtt: Option<Duration>,
    pub(super) min_rtt: Option<Duration>,
    /// Losses are being repaired.
    pub(super) in_recovery: bool,
    /// Segments that may arrive before an earlier one on a path that reorders as much as was seen.
    pub(super) dupthresh: u32,
}

/// What a detector has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Segments newly marked as lost.
    pub(super) lost: u32,
    /// One of them had been retransmitted before.
    pub(super) retransmission: bool,
    /// When to look again, if nothing arrives till then.
    pub(super) look_again: Option<Time>,
}

/// Loss detection: marks the segments in flight that are lost.
pub(super) trait LossDetector: Debug + Send {
    /// `segment` was delivered, as an acknowledgement that came now says for the first time.
    fn on_delivered(&mut self, _context: &Context, _segment: &SentSegment) {}

    /// The path was seen to reorder segments.
    fn on_reordering(&mut self) {}

    /// A retransmission was reported to be a duplicate (RFC 2883).
    fn on_duplicate_report(&mut self) {}

    /// An acknowledgement has delivered something: `delivered` bytes so far, `prior` of them before the newest of its
    /// segments was sent.
    fn on_deliveries(&mut self, _prior: u64, _delivered: u64) {}

    /// A recovery from losses has ended.
    fn on_recovered(&mut self) {}

    /// Marks what is lost now.
    fn detect(&mut self, context: &Context, sent: &mut SentSegments) -> Found;

    /// Whether `segment` is lost once the retransmission timer has run out; the first one is in any case.
    fn is_lost_by_timeout(&self, _context: &Context, _segment: &SentSegment) -> bool {
        true
    }
}

/// The detector that the settings ask for.
pub(super) fn of(settings: &Settings) -> Box<dyn LossDetector> {
    match settings.detection {
        Detection::Rack => Box::new(rack::Rack::new()),
        Detection::Sack => Box::new(sack::SackThreshold),
    }
}
