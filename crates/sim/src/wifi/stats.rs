//! Counters of a BSS.

use lasthop_base::Duration;

use crate::wlan::DirectionStats;

/// Counters of the medium. All time belongs to one of the durations: their sum is the time until the end of the last
/// busy period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WifiStats {
    /// PPDUs with MPDUs that met no collision.
    pub ppdus: u64,
    /// PPDUs with MPDUs that met a collision.
    pub collided: u64,
    /// PPDUs without a collision of which no MPDU arrived.
    pub unanswered: u64,
    /// Simultaneous starts of transmission.
    pub collisions: u64,
    /// Air time of PPDUs with MPDUs.
    pub data_time: Duration,
    /// Air time of acknowledgements, requests of them, RTS, CTS and CF-End.
    pub control_time: Duration,
    /// Gaps between the frames of an exchange.
    pub gap_time: Duration,
    /// Time of collisions.
    pub collision_time: Duration,
    /// Air time of the neighbouring BSS.
    pub neighbour_time: Duration,
    /// Time of bursts that are heard, as far as no exchange takes it.
    pub interference_time: Duration,
    /// Time of contention, and without anything to send.
    pub idle_time: Duration,
}

impl WifiStats {
    /// Time with at least one frame on the air.
    pub fn busy_time(&self) -> Duration {
        self.data_time + self.control_time + self.collision_time + self.neighbour_time
    }
}

/// Counters of one direction between the access point and a station. Attempts are those of MPDUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayStats {
    /// Packets and their attempts.
    pub packets: DirectionStats,
    /// PPDUs with MPDUs.
    pub ppdus: u64,
    /// Air time of exchanges without a collision, from the start of the PPDU, or of its RTS, to the end of the response.
    pub air_time: Duration,
    /// Packets that no access point could send, as their station had left: those in the queue, and those that came in the gap.
    pub unreachable: u64,
}

/// Counters of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationWays {
    /// From the access point.
    pub down: WayStats,
    /// To the access point.
    pub up: WayStats,
    /// Changes of the access point.
    pub roams: u64,
}
