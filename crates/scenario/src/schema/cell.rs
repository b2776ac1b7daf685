//! The schema of 802.11 cells: `[cell]`.

use lasthop_base::Bytes;
use lasthop_channel::Model;
use lasthop_link::QueueLimit;
use lasthop_link::wlan::{AboveMac, ApQueue, BssConfig, Cw, Dsss, Phy, RetryLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 802.11 cells: an access point and its stations share a medium by the distributed coordination function
/// (DCF), without hidden stations. With every scheme, frames lost by collisions or bit errors are
/// retransmitted by the MAC up to a retry limit. A scheme has one agent per cell, at the access point, which
/// is notified of the access point's own attempts. The cell describes the model. All keys have defaults. All
/// cells of a scenario have the same settings, except for stations overridden by `[link.NAME]`.
///
/// ```toml
/// [topology.cell]
/// stations = 4
///
/// [cell]
/// phy.ofdm = { data_rate = "24 Mbps" }
/// short_retry_limit = 7
/// channel.iid.ber = 1e-6
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Cell {
    /// The physical layer: `dsss` or `ofdm`.
    pub phy: Phy,
    /// The contention window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cw: Option<Cw>,
    /// Data frames longer than this, including 36 B of MAC headers, are preceded by RTS and CTS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rts_threshold: Option<Bytes>,
    /// Failures of a data frame sent without RTS, or of an RTS, until the packet is discarded; or
    /// `"unlimited"`.
    pub short_retry_limit: RetryLimit,
    /// Failures of a data frame sent after RTS and CTS until the packet is discarded; or `"unlimited"`.
    pub long_retry_limit: RetryLimit,
    /// Capacity of the access point's queue, as in `[wired]` (drop-tail only): per station, or in total with
    /// a shared queue.
    pub queue: QueueLimit,
    /// Whether packets for all stations share one queue. Otherwise each station has its own queue, served
    /// round-robin by packets.
    pub shared_queue: bool,
    /// Whether packets with the Expedited Forwarding code point, such as local retransmissions, overtake others
    /// in each queue of the access point.
    pub priority: bool,
    /// Queue limit of a station.
    pub station_queue: QueueLimit,
    /// Errors of data frames that do not collide: `"perfect"`, or one of the tables of `[radio.channel]`,
    /// from `two-state` on. All bits after the preamble are exposed. RTS, CTS and ACK frames are never lost.
    pub channel: Model,
    /// Losses above the MAC.
    pub drop: AboveMac,
}

impl Default for Cell {
    fn default() -> Cell {
        let BssConfig { short_retry_limit, long_retry_limit, .. } = BssConfig::default();
        Cell {
            phy: Phy::Dsss(Dsss::default()),
            cw: None,
            rts_threshold: None,
            short_retry_limit,
            long_retry_limit,
            queue: QueueLimit::Unlimited,
            shared_queue: false,
            priority: false,
            station_queue: QueueLimit::Unlimited,
            channel: Model::default(),
            drop: AboveMac::default(),
        }
    }
}

impl Cell {
    /// Parameters common to the access point and its stations.
    pub(crate) fn config(&self) -> BssConfig {
        BssConfig {
            phy: self.phy,
            cw: self.cw,
            rts_threshold: self.rts_threshold,
            short_retry_limit: self.short_retry_limit,
            long_retry_limit: self.long_retry_limit,
            priority: self.priority,
            ap_queue: match self.shared_queue {
                true => ApQueue::Shared(self.queue),
                false => ApQueue::PerStation(self.queue),
            },
            station_queue: self.station_queue,
        }
    }
}
