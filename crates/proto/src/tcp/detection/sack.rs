//! Loss detection by a threshold of selective acknowledgements (RFC 6675 section 4: IsLost).

use super::{Context, Found, LossDetector};
use crate::tcp::sent::SentSegments;

/// A segment is lost when `dupthresh` segments above it have arrived. A lost retransmission is left to the
/// retransmission timer.
#[derive(Debug)]
pub(super) struct SackThreshold;

impl LossDetector for SackThreshold {
    fn detect(&mut self, context: &Context, sent: &mut SentSegments) -> Found {
        let dupthresh = context.dupthresh;
        let lost = sent.lose_while(|segment, above| above >= dupthresh && !segment.is_retransmission());
        Found { lost, ..Found::default() }
    }
}
