//! What a BSS counts.

use lasthop_base::{Bytes, Duration};

/// What happened on the medium of a BSS so far. A frame exchange counts when its data frame, or its
/// collision, is over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BssStats {
    /// Frame exchanges that one station had the medium for.
    pub exchanges: u64,
    /// Times that several began at once.
    pub collisions: u64,
    /// How long there was a frame in the air, or several at once.
    pub busy_time: Duration,
}

/// What became of the packets on one of the two ways between an access point and a station. Every packet
/// that comes is over in one of four ways: it overflows, is delivered, is corrupted, or is discarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayStats {
    /// Attempts to send a packet, each with an RTS frame before it or without.
    pub attempts: u64,
    /// Attempts that were not the first of their packet.
    pub retries: u64,
    /// Attempts that met another's.
    pub collided: u64,
    /// Attempts whose data frame the channel destroyed.
    pub lost: u64,
    /// Packets handed on at the other end.
    pub delivered: u64,
    /// Their size, with all headers down to IP.
    pub delivered_bytes: Bytes,
    /// Packets that the MAC delivered, and that were dropped above it.
    pub corrupted: u64,
    /// Packets that the MAC gave up.
    pub discarded: u64,
    /// Packets that found the queue full.
    pub overflowed: u64,
}

/// What became of the packets of one station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// From the access point.
    pub down: WayStats,
    /// To the access point.
    pub up: WayStats,
}
