//! The queue before the radio.

use lasthop_base::BitRate;
use lasthop_scenario::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Config;

/// The highest rate, which the kernel has in bytes per second, in 32 bits.
const MOST: u64 = 30_000_000_000;

/// A queue before each radio, for all packets towards it, that is the narrowest place of the path: packets wait here, and are marked
/// or dropped here, and not in the radio's own queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Shaper {
    /// The rate at which packets leave: a little less than what the radio carries.
    pub rate: BitRate,
    /// The queue discipline.
    #[serde(default)]
    pub queue: QueueDiscipline,
    /// With `"cake"`: whether an acknowledgement is dropped that waits before a later one of its flow, as for narrow uplinks.
    #[serde(default)]
    pub ack_filter: bool,
}

/// The discipline of a queue, by the name that it has in scenarios, where it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueDiscipline {
    /// FQ-CoDel (RFC 8290), which marks packets of flows with ECN: a queue for each flow, and each is kept short.
    #[default]
    FqCodel,
    /// CAKE of Linux: as FQ-CoDel, and hosts share the rate equally.
    Cake,
    /// One queue for all, which drops what does not fit.
    DropTail,
}

impl QueueDiscipline {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            QueueDiscipline::FqCodel => "fq-codel",
            QueueDiscipline::Cake => "cake",
            QueueDiscipline::DropTail => "drop-tail",
        }
    }
}

impl Config {
    pub(super) fn shaper_faults(&self, faults: &mut Vec<Fault>) {
        let Some(Shaper { rate, queue, ack_filter }) = &self.shaper else { return };
        if rate.as_bps() > MOST {
            faults.push(Fault::new("shaper.rate", format!("found {rate}, expected at most 30 Gbps")));
        }
        if *ack_filter && *queue != QueueDiscipline::Cake {
            let problem = format!(
                "found true with the queue \"{}\", expected false, or shaper.queue = \"cake\"",
                queue.name()
            );
            faults.push(Fault::new("shaper.ack_filter", problem));
        }
        if self.gateway.radio.is_empty() {
            let problem = "found a shaper, expected one with interfaces in gateway.radio, before which it is";
            faults.push(Fault::new("shaper", problem));
        }
    }
}
