//! The schema of shared radios: `[shared]`.

use lasthop_link::Dispatch;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Radios that base stations share between their mobile hosts: the table `[shared]`. The parameters of each link are those
/// of `[radio]` and `[link.NAME]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub struct Shared {
    /// Which mobile host the base station serves next. By default FIFO.
    pub dispatch: Dispatch,
}
