//! The schema of shared radios: `[shared]`.

use lasthop_link::Dispatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A base station whose radio is shared by several mobile hosts: it sends one unit at a time, without
/// contention. Each mobile host has its own link parameters, fades and ARQ from `[radio]` and `[link.NAME]`.
/// The ARQ is required. Uplinks are separate channels, as with other wireless links. A scheme has one agent
/// at the base station for all mobile hosts. Rates and delays must be constant, and mobile hosts cannot move
/// between base stations.
///
/// ```toml
/// [topology.shared-radio]
/// mobiles = 4
///
/// [shared]
/// dispatch.channel-state.wait = "100 ms"
///
/// [radio]
/// rate = "2 Mbps"
/// arq.stop-and-wait = {}
/// ```
///
/// A mobile host whose ARQ waits is skipped, except by FIFO. If all mobile hosts with packets are deferred,
/// one of them is served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Shared {
    /// The dispatcher, which selects the mobile host to serve next.
    pub dispatch: Dispatch,
}
