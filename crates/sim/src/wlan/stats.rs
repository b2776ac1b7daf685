//! Counters of a BSS.

use lasthop_base::{Bytes, Duration};

/// Counters of the medium. A frame exchange is counted at the end of its data frame or collision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BssStats {
    /// Frame exchanges without a collision.
    pub exchanges: u64,
    /// Collisions.
    pub collisions: u64,
    /// Time with at least one frame on the air.
    pub busy_time: Duration,
}

/// Counters of one direction between an access point and a station. Every packet is eventually counted once:
/// as overflow, delivered, corrupted or discarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// Attempts to send a packet, with or without RTS.
    pub attempts: u64,
    /// Attempts after the first of each packet.
    pub retries: u64,
    /// Attempts that collided.
    pub collided: u64,
    /// Attempts whose data frame was corrupted by the channel.
    pub lost: u64,
    /// Packets forwarded by the receiver.
    pub delivered: u64,
    /// Bytes of delivered packets, including IP headers.
    pub delivered_bytes: Bytes,
    /// Packets delivered by the MAC and dropped above it.
    pub corrupted: u64,
    /// Packets discarded by the MAC.
    pub discarded: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
}

/// Counters of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// From the access point.
    pub down: DirectionStats,
    /// To the access point.
    pub up: DirectionStats,
}
