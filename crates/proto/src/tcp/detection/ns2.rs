//! The duplicate ACK rules of ns-2's `TcpAgent`.

use super::duplicates::{DuplicateRules, Repeat};
use crate::packet::SeqNum;

/// Duplicate ACKs count even if nothing is outstanding, since ns-2's receivers never change their windows.
/// The first segment is never fast-retransmitted (`recover_` starts there), and the second always may be.
#[derive(Debug)]
pub(super) struct Ns2;

impl DuplicateRules for Ns2 {
    fn is_duplicate(&self, repeat: &Repeat) -> bool {
        repeat.is_bare()
    }

    fn is_new(&self, una: SeqNum, recover: SeqNum, first_end: SeqNum) -> bool {
        una > recover || una == first_end
    }

    fn initial_recover(&self, iss: SeqNum) -> Option<SeqNum> {
        Some(iss)
    }

    /// Every counted duplicate ACK sends the next segment, of any kind (`send_one`).
    fn limited_transmit(&self, _count: u32, _resending: bool) -> bool {
        true
    }
}
