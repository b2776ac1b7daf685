//! A fixed rate.

use lasthop_base::{Invalid, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Parameters, RateControl, Selection};
use crate::wifi::noise::NoiseErrors;
use crate::wifi::phy::{PpduFormat, Rate};

pub(super) const SUMMARY: &str =
    "The same rate always, `rate.fixed = { mcs = 7, streams = 1 }`; an MCS of 802.11n counts up to 7 per stream.";

/// The same rate always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { mcs = 7, streams = 1 }")]
pub struct FixedRate {
    /// The modulation and coding scheme: 0 to 7 with 802.11n, whatever the number of streams; to 9 with 802.11ac; to 11
    /// with 802.11ax.
    #[schemars(range(max = 11))]
    pub mcs: u8,
    /// Spatial streams, 1 to 4.
    #[serde(default = "FixedRate::one_stream")]
    pub streams: u8,
}

impl FixedRate {
    pub(super) const EXAMPLES: &[FixedRate] =
        &[FixedRate { mcs: 7, streams: 1 }, FixedRate { mcs: 0, streams: 1 }];

    fn one_stream() -> u8 {
        1
    }

    fn rate(self) -> Rate {
        Rate { mcs: self.mcs, streams: self.streams }
    }

}

impl Parameters for FixedRate {
    fn validate(&self, format: &PpduFormat, streams: u8) -> Result<(), Invalid> {
        if self.streams > streams {
            let problem = "found more spatial streams than the station has; expected at most `streams`";
            return Err(Invalid { field: "rate.fixed.streams", problem });
        }
        if !format.has(self.rate()) {
            let problem = "there is no such rate; expected an MCS up to 7 with 802.11n, 9 with 802.11ac, or 11 with \
                           802.11ax that the width has, and 1 to 4 streams";
            return Err(Invalid { field: "rate.fixed.mcs", problem });
        }
        Ok(())
    }

    fn build(&self, _: PpduFormat, _: u8, _: Option<&NoiseErrors>, _: Stream) -> Box<dyn RateControl> {
        Box::new(*self)
    }
}

impl RateControl for FixedRate {
    fn select(&mut self, _now: Time) -> Selection {
        Selection::of(self.rate())
    }

    fn report(&mut self, _now: Time, _rate: Rate, _sent: u32, _acknowledged: u32) {}
}
