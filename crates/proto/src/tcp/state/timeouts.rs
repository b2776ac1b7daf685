//! Rows of timeouts without progress: their count, and what Linux infers from them.

use lasthop_base::{Duration, Time};

use super::SenderState;
use crate::packet::SeqNum;

/// Black-hole detection begins after so long: three retransmissions with an RTO of 0.2 s, doubled each time
/// (Linux `tcp_retries1`, `tcp_model_timeout`).
pub const BLACK_HOLE_AFTER: Duration = Duration::from_secs(3);
/// The first segment size of black-hole detection (Linux `tcp_base_mss`), bytes of payload.
const BASE_MSS: u32 = 1024;
/// The last one (Linux `tcp_mtu_probe_floor` and `tcp_min_snd_mss`).
const LEAST_MSS: u32 = 48;
/// So many timeouts of a thin stream keep the RTO (Linux `TCP_THIN_LINEAR_RETRIES`).
const LINEAR_TIMEOUTS: u32 = 6;
/// A stream is thin with fewer segments in flight (Linux `tcp_stream_is_thin`).
const THIN: u32 = 4;

/// Timeouts of the same data in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimeoutRow {
    /// `snd_una` at the last timeout.
    pub(super) at: Option<SeqNum>,
    /// Time of the first one, and their number.
    since: Time,
    count: u32,
    /// The segment size that black-hole detection has reached.
    probed_mss: Option<u32>,
}

impl SenderState {
    /// Counts a timeout; returns whether the timer expired for this data before.
    pub(super) fn count_timeout(&mut self, now: Time) -> bool {
        let again = self.row.at == Some(self.snd_una);
        if again {
            self.row.count = self.row.count.saturating_add(1);
        } else {
            (self.row.at, self.row.since, self.row.count) = (Some(self.snd_una), now, 1);
        }
        again
    }

    /// Called at a timeout of data before its response: if the same data have timed out for three seconds, packets may be too large for
    /// a path that drops them without a message. The segment size is then lowered to 1024 bytes, and halved at each further
    /// timeout (RFC 4821 section 7.7; Linux `tcp_mtu_probing`). Windows keep their number of segments, as in Linux.
    pub(in crate::tcp) fn suspect_black_hole(&mut self, now: Time) {
        let lasts = self.row.at == Some(self.snd_una) && now.since(self.row.since) >= BLACK_HOLE_AFTER;
        if self.settings.mtu_probing && lasts {
            let mss = self.row.probed_mss.map_or(BASE_MSS, |mss| (mss / 2).max(LEAST_MSS));
            self.row.probed_mss = Some(mss);
            if mss < self.mss {
                self.replace_mss(mss);
                self.scale_window();
            }
        }
    }

    /// Gives the window of the controller the current segment size.
    fn scale_window(&mut self) {
        if self.settings.is_controlled() {
            let scaled = self.window().in_segments_of(f64::from(self.mss));
            *self.window_mut() = scaled;
        }
    }

    /// Whether a timeout of data, which was counted, keeps the RTO of a thin stream without backoff. Without records of the segments
    /// they count as full ones.
    pub(super) fn keeps_rto(&mut self) -> bool {
        let segments = match self.keeps_records {
            true => self.records.segments.counts().outstanding(),
            false => self.flight_size().div_ceil(self.mss),
        };
        let is_thin = segments < THIN && self.ssthresh() < f64::INFINITY;
        let keeps = self.settings.thin_linear_timeouts && is_thin && self.row.count <= LINEAR_TIMEOUTS;
        if keeps {
            self.rtt.end_backoff();
        }
        keeps
    }
}
