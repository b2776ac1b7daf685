//! Congestion control of BSD up to Net/3.
//!
//! In congestion avoidance the window also grows by a constant per acknowledgement. Many implementations inherited it, and
//! RFC 5681 section 3.1 forbids it.

use super::aimd::Aimd;
use super::{Chosen, Control};

/// The constant, in segments.
const CONSTANT: f64 = 1.0 / 8.0;

pub(super) const CONTROL: Control = Control::new(
    "net3",
    "AIMD of Net/3",
    "AIMD with the additive constant of BSD from Reno to Net/3: an eighth of a segment per acknowledgement (RFC 2525, RFC \
     5681 section 3.1)",
    |settings, _| Chosen::other(Aimd::with_constant(settings, CONSTANT)),
);
