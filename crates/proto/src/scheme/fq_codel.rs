//! FQ-CoDel before the wireless link.
//!
//! **What it does.** In each direction of the wireless link, every flow has its own queue under CoDel. Flows take turns, a flow
//! with few packets does not wait for the others, and packets of a flow that wait for longer than `target` are dropped or
//! marked. The setting `radio.queue = { fq-codel = {} }` does the same; the scheme can be compared and combined with other
//! remedies: `"snoop + fq-codel"`.
//! **Source.** RFC 8290; the discipline is that of `[radio.queue.fq-codel]`.
//! **Parameters.** `target` and `interval` of CoDel: 5 ms and 100 ms (RFC 8289 section 4). A slow link needs a target of more than
//! the transmission time of a packet. Over Wi-Fi, Linux (mac80211) has a target of 20 ms: `scheme.fq-codel.target = "20 ms"`.
//! **Differences from the RFC.** The capacity is that of the scenario's queue, if it has a limit; 10,240 packets otherwise.

use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, QueueUse, Scheme};
use crate::tcp::Settings;

/// FQ-CoDel before the wireless link.
///
/// Replaces the queues of wireless links, in both directions; their capacity stays, if it is limited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FqCodel {
    /// Acceptable standing queueing delay.
    pub target: Duration,
    /// How long the delay may exceed the target.
    pub interval: Duration,
}

impl Default for FqCodel {
    fn default() -> FqCodel {
        FqCodel { target: Duration::from_millis(5), interval: Duration::from_millis(100) }
    }
}

impl Scheme for FqCodel {
    fn name(&self) -> &'static str {
        "fq-codel"
    }

    fn summary(&self) -> &'static str {
        "each flow has a queue of its own before the wireless link, which is kept short"
    }

    fn source(&self) -> &'static str {
        "RFC 8290"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let keys = [("target", self.target), ("interval", self.interval)];
        let zero = keys.into_iter().filter(|(_, duration)| duration.is_zero());
        zero.map(|(key, _)| (key.into(), "found \"0 s\", expected more than zero".into())).collect()
    }

    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.queue(QueueUse::FqCodel { target: self.target, interval: self.interval });
    }
}
