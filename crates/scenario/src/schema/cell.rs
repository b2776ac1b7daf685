//! The schema of 802.11 cells: `[cell]`.

use lasthop_base::Bytes;
use lasthop_channel::Model;
use lasthop_sim::QueueLimit;
use lasthop_sim::wlan::{AboveMac, ApQueue, BssConfig, Cw, Dsss, Phy, RetryLimit};
use serde::{Deserialize, Serialize};

/// 802.11 cells, all alike but for what `[link.NAME]` says of single stations: the table `[cell]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Cell {
    /// The physical layer and its rates. By default 802.11b at 11 Mb/s.
    pub phy: Phy,
    /// The contention window. By default that of the physical layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cw: Option<Cw>,
    /// Data frames longer than this, MAC header included, are sent after RTS and CTS. By default none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rts_threshold: Option<Bytes>,
    /// How often a data frame that is sent without RTS, or an RTS, may fail. 7 by default.
    pub short_retry_limit: RetryLimit,
    /// How often a data frame that is sent after RTS may fail. 4 by default.
    pub long_retry_limit: RetryLimit,
    /// How much may wait at the access point: for each station, or for all together. By default unlimited.
    pub queue: QueueLimit,
    /// Whether what waits at the access point for different stations waits in one queue. By default each
    /// station has its own, and they take turns.
    pub shared_queue: bool,
    /// How much may wait at a station. By default unlimited.
    pub station_queue: QueueLimit,
    /// Which data frames survive the air. By default all that do not collide.
    pub channel: Model,
    /// What is lost of what a MAC has received and acknowledged. By default nothing.
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
    /// What the access point and its stations have in common.
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
