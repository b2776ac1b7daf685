//! Loss detection: which segments are lost.
//!
//! Recovery with a record of each segment uses a [`LossDetector`], which marks segments as lost. Older
//! recovery detects losses without records: by consecutive [duplicate ACKs](Duplicates), by SACK reports
//! above [a gap](Gap), or by timestamps that distinguish [copies](Copies). [Congestion control](super::cc)
//! determines the window after a loss, and [recovery](super::recovery) what to send next.

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

/// The connection state that a detector needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) now: Time,
    pub(super) srtt: Option<Duration>,
    pub(super) min_rtt: Option<Duration>,
    /// Whether the sender is repairing losses.
    pub(super) in_recovery: bool,
    /// Number of segments that may arrive before an earlier one, given the reordering observed on the path.
    pub(super) dupthresh: u32,
}

/// The acknowledgement that delivers segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgement {
    pub(super) now: Time,
    /// The minimum round-trip time before it.
    pub(super) min_rtt: Option<Duration>,
    /// The echoed timestamp, for what it acknowledges cumulatively: of data beyond a gap, the echo is that of an earlier
    /// segment (RFC 7323 section 4.3).
    pub(super) echo: Option<u32>,
}

/// The result of loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Segments newly marked as lost.
    pub(super) lost: u32,
    /// Whether any of them had been retransmitted before.
    pub(super) retransmission: bool,
    /// When to run the detector again, if nothing arrives earlier.
    pub(super) look_again: Option<Time>,
}

/// Loss detection: marks the segments in flight that are lost.
pub(super) trait LossDetector: Debug + Send {
    /// Called for each segment newly delivered by an acknowledgement.
    fn on_delivered(&mut self, _ack: &Acknowledgement, _segment: &SentSegment) {}

    /// Called when reordering is observed on the path.
    fn on_reordering(&mut self) {}

    /// Called when a retransmission is reported as a duplicate (RFC 2883). Returns whether the detector responds, with
    /// the next [delivery](LossDetector::on_delivery_after_report).
    fn on_duplicate_report(&mut self) -> bool {
        false
    }

    /// Called for the first acknowledgement that delivers data since the detector responded to a report: `delivered`
    /// bytes so far, `prior` of them before the newest segment of this acknowledgement was sent.
    fn on_delivery_after_report(&mut self, _prior: u64, _delivered: u64) {}

    /// Called when recovery ends.
    fn on_recovered(&mut self) {}

    /// Marks the segments that are lost at this time.
    fn detect(&mut self, context: &Context, sent: &mut SentSegments) -> Found;

    /// Whether a timeout marks `segment` as lost; the first segment is always marked.
    fn is_lost_by_timeout(&self, _context: &Context, _segment: &SentSegment) -> bool {
        true
    }
}

/// The detector selected by the settings.
pub(super) fn of(settings: &Settings) -> Box<dyn LossDetector> {
    match settings.detection {
        Detection::Rack => Box::new(rack::Rack::new()),
        Detection::Sack => Box::new(sack::SackThreshold),
    }
}
