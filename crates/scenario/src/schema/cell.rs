//! The schema of 802.11 cells: `[cell]`.

use lasthop_base::Bytes;
use lasthop_channel::Model;
use lasthop_link::QueueLimit;
use lasthop_link::wlan::{AboveMac, ApQueue, BssConfig, Cw, Dsss, Phy, RetryLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// 802.11 cells: the table `[cell]`. All cells are alike, except for stations with a table `[link.NAME]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Cell {
    /// The physical layer and its rates. By default 802.11b at 11 Mb/s.
    pub phy: Phy,
    /// The contention window. By default that of the physical layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cw: Option<Cw>,
    /// Data frames longer than this, MAC header included, are preceded by RTS/CTS. By default none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rts_threshold: Option<Bytes>,
    /// Retry limit of RTS frames and of data frames without RTS. By default 7.
    pub short_retry_limit: RetryLimit,
    /// Retry limit of data frames after RTS. By default 4.
    pub long_retry_limit: RetryLimit,
    /// Queue capacity at the access point: per station, or in total. By default unlimited.
    pub queue: QueueLimit,
    /// Whether the access point has a single queue. By default each station has its own, served round robin.
    pub shared_queue: bool,
    /// Queue capacity at a station. By default unlimited.
    pub station_queue: QueueLimit,
    /// Frame errors. By default only collisions lose frames.
    pub channel: Model,
    /// Losses of packets that a MAC has received and acknowledged. By default none.
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
            ap_queue: match self.shared_queue {
                true => ApQueue::Shared(self.queue),
                false => ApQueue::PerStation(self.queue),
            },
            station_queue: self.station_queue,
        }
    }
}
