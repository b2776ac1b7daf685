//! What the ends of a connection report of themselves, whichever stack they belong to, and what clients report of their users.

use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

use crate::counters::counters;

/// What one end of a connection reports. What its stack does not count is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndReport {
    /// What it has counted since its start.
    pub counters: EndCounters,
    /// Payload that the peer has acknowledged.
    pub acknowledged: Option<Bytes>,
    /// Bytes sent and neither acknowledged nor declared lost.
    pub in_flight: Option<Bytes>,
}

counters! {
    /// Counters of one end of a connection. Those of the other end's role are zero or `None`: a sender delivers nothing.
    pub struct EndCounters {
        /// Start of the connection.
        pub started: Option<Time>,
        /// When the end gave up, or was reset by its peer.
        pub aborted: Option<Time>,
        /// Packets sent, of any kind: segments of TCP, datagrams of QUIC.
        pub packets_sent: u64,
        /// Payload sent, retransmissions included.
        pub payload_sent: Option<Bytes>,
        /// Packets with payload that an earlier one carried. QUIC sends lost payload in packets of any kind.
        pub retransmitted_packets: Option<u64>,
        /// Total size of `retransmitted_packets` as IP packets, minus their new payload.
        pub retransmitted_bytes: Option<Bytes>,
        /// Packets that loss detection declared lost (RFC 9002 section 6).
        pub declared_lost: Option<u64>,
        /// Retransmission timeouts.
        pub timeouts: Option<u64>,
        /// Losses detected by acknowledgements.
        pub detected_losses: Option<u64>,
        /// Probes of the tail: those of RFC 8985 section 7, or probe timeouts of QUIC (RFC 9002 section 6.2).
        pub probes: Option<u64>,
        /// Spurious timeouts, which were undone.
        pub spurious_timeouts: Option<u64>,
        /// Window reductions that were undone, those of timeouts included.
        pub undone_reductions: Option<u64>,
        /// Acknowledgements that report a mark.
        pub echoes: Option<u64>,
        /// Packets that arrived with a mark (CE).
        pub marks: Option<u64>,
        /// Round-trip times measured.
        pub rtt_samples: Option<u64>,
        /// The sum of `rtt_samples`.
        pub rtt_sum: Option<Duration>,
        /// Time for which pacing delayed packets that the windows allowed.
        pub pacing_wait: Option<Duration>,
        /// Control messages received.
        pub notices: u64,
        /// Times that a scheme's reaction changed what the end does.
        pub reactions: u64,
        /// Payload received in order, ready for the application.
        pub delivered: Bytes,
        /// Time of the last in-order arrival.
        pub last_delivery: Time,
        /// Acknowledgements sent: segments of TCP, frames of QUIC.
        pub acks_sent: Option<u64>,
    }
}

/// What the client of an application reports of its user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// Requests made. TLS handshakes do not count.
    pub requests: u64,
    /// The response times, in order of arrival: from the request until the last byte of the response was delivered.
    pub waits: Vec<Wait>,
    /// What the user makes of the responses.
    pub experience: Experience,
}

/// A user's wait for a response or a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Time of the request.
    pub since: Time,
    /// Time from the request until the last byte was delivered.
    pub length: Duration,
}

impl Wait {
    /// The end of the wait.
    pub fn until(&self) -> Time {
        self.since + self.length
    }
}

/// The user's experience, beyond the response times.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Experience {
    /// Messages have response times only.
    #[default]
    Messages,
    /// The pages that were loaded, in order.
    Pages(Vec<Wait>),
    /// The playback of a video.
    Video(VideoStats),
}

/// Counters of a playback.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VideoStats {
    /// Segments fetched.
    pub segments: u64,
    /// Playing time of these segments.
    pub fetched: Duration,
    /// Bits of these segments.
    pub bits: u64,
    /// Changes of the bitrate from one segment to the next.
    pub switches: u64,
    /// From the request for the first segment until playback began; `None` before.
    pub startup_delay: Option<Duration>,
    /// Playing time that was shown.
    pub played: Duration,
    /// Stalls after playback began, each from when the buffer was empty.
    pub stalls: u64,
    /// Total length of the stalls.
    pub stalled: Duration,
}

impl VideoStats {
    /// The difference to `earlier` counters; the startup delay is not a difference.
    pub fn since(&self, earlier: &VideoStats) -> VideoStats {
        VideoStats {
            segments: self.segments - earlier.segments,
            fetched: self.fetched - earlier.fetched,
            bits: self.bits - earlier.bits,
            switches: self.switches - earlier.switches,
            startup_delay: self.startup_delay,
            played: self.played - earlier.played,
            stalls: self.stalls - earlier.stalls,
            stalled: self.stalled - earlier.stalled,
        }
    }
}
