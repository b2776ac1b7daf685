//! Roaming of stations: scans of other channels, and the gap in which a station changes its access point.

use lasthop_base::{Duration, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A station that roams between access points of one network, `{ every = "30 s" }`. Before each roam it scans other channels, one at a
/// time; meanwhile frames for it are buffered, as for one that dozes. Then it leaves its access point, and for a gap no frame is sent in
/// either direction. At the new access point, rate control begins anew.
///
/// The new access point has the same channel, neighbours and signal as the old one, and the first frame after the gap reaches it. Probes
/// and management frames take no air. The station's own frames wait for the end of the gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table such as { every = \"30 s\", fast_transition = true }")]
pub struct Roaming {
    /// Time from one roam to the next, at most 1 h. The first scan is at a random time within it.
    pub every: Duration,
    /// Channels that it scans before each roam. By default 8: those beside its own of the nine at 5 GHz that need not be watched for radar
    /// (USA).
    #[serde(default = "Roaming::default_channels")]
    pub channels: u8,
    /// Time on each of these channels. By default `"60 ms"`, as mac80211 in Linux: 30 ms before the probe, and 30 ms for responses.
    #[serde(default = "Roaming::default_dwell")]
    pub dwell: Duration,
    /// Time on the own channel after each of them. By default `"200 ms"`, as mac80211 with frames queued; without, it scans two channels
    /// in a row, for 120 ms.
    #[serde(default = "Roaming::default_pause")]
    pub pause: Duration,
    /// Fast transition (802.11r): keys are agreed on in the four frames of authentication and reassociation.
    #[serde(default)]
    pub fast_transition: bool,
    /// From the last frame at the old access point to the first at the new one. By default `"250 ms"`, the middle of 150 to 350 ms for
    /// 802.1X (Bing, ed., "Emerging Technologies in Wireless LANs", 2008, section 6.6 on WPA2), and with `fast_transition` `"8.5 ms"`, as a
    /// capture of an iPad had it over the air (revolutionwifi.blogspot.com, 31 May 2013); over the wires between access points, one of an iPhone
    /// had 34 ms with the requests before the gap (ralpholsen.dk, 9 March 2016).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Duration>,
    /// What becomes of frames that the old access point holds, or gets in the gap.
    #[serde(default)]
    pub queued: Queued,
}

/// What becomes of frames for a station that has left its access point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Queued {
    /// They are dropped: access points that know nothing of each other.
    #[default]
    Lost,
    /// They wait for the end of the gap and are sent by the new access point: access points with a common controller.
    Forwarded,
}

impl Roaming {
    fn default_channels() -> u8 {
        8
    }

    fn default_dwell() -> Duration {
        Duration::from_millis(60)
    }

    fn default_pause() -> Duration {
        Duration::from_millis(200)
    }

    /// The gap in effect.
    pub fn gap(&self) -> Duration {
        self.gap.unwrap_or(Duration::from_micros(if self.fast_transition { 8_500 } else { 250_000 }))
    }

    /// Time from the first scan to the roam.
    pub fn scan(&self) -> Duration {
        (self.dwell + self.pause) * u64::from(self.channels)
    }

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn validate(&self) -> Result<(), Invalid> {
        let wrong = |field, problem| Err(Invalid { field, problem });
        const LONGEST: Duration = Duration::from_secs(60);
        if self.every > Duration::from_secs(3600) || self.every < Duration::from_millis(100) {
            return wrong("roaming.every", "expected \"100 ms\" to \"1 h\", such as \"30 s\"");
        }
        for (field, time) in [
            ("roaming.dwell", self.dwell),
            ("roaming.pause", self.pause),
            ("roaming.gap", self.gap.unwrap_or_default()),
        ] {
            if time > LONGEST {
                return wrong(field, "expected at most \"60 s\", such as \"60 ms\"");
            }
        }
        if self.scan() + self.gap() > self.every {
            let problem =
                "found less than the scans, with their pauses, and the gap take; expected a longer time";
            return wrong("roaming.every", problem);
        }
        Ok(())
    }
}
