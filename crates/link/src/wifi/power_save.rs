//! Power save of stations: frames for a dozing station wait at the access point.

use lasthop_base::{Duration, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Power save of stations. A station dozes while it has nothing to send and nothing is sent to it; the access point buffers what
/// arrives for it, and announces that in the next beacon to which the station listens (IEEE 802.11-2020, section 11.2.3).
///
/// The air time of beacons, PS-Polls, null frames and QoS-null triggers is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table such as { timeout = \"100 ms\" }")]
pub struct PowerSave {
    /// What releases the frames that the access point has buffered. It matters only with `timeout = "0 s"`: a station that
    /// stays awake after its own frame has them released at once.
    pub delivery: Delivery,
    /// How long a station stays awake after its last frame in either direction. The default, `"100 ms"`, is that of Linux's
    /// mac80211; with `"0 s"`, it dozes at once.
    pub timeout: Duration,
    /// Time between beacons, the same for all stations. The default, `"102.4 ms"`, is 100 time units, as access points have.
    pub beacon: Duration,
    /// The station listens to each beacon of this number: the listen interval, or the DTIM period. By default 1.
    #[schemars(range(min = 1))]
    pub listen: u8,
}

/// What releases buffered frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// The beacon; also a frame of the station, if it then stays awake.
    #[default]
    Beacon,
    /// The beacon, and each frame of the station: U-APSD, or WMM power save.
    UApsd,
}

impl Default for PowerSave {
    fn default() -> PowerSave {
        PowerSave {
            delivery: Delivery::Beacon,
            timeout: Duration::from_millis(100),
            beacon: Duration::from_micros(102_400),
            listen: 1,
        }
    }
}

impl PowerSave {
    /// Whether a frame of the station releases what is buffered for it.
    pub fn is_triggered(&self) -> bool {
        self.delivery == Delivery::UApsd || !self.timeout.is_zero()
    }

    /// Time between the beacons to which the station listens.
    pub fn listen_interval(&self) -> Duration {
        self.beacon * u64::from(self.listen)
    }

    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.beacon < Duration::from_millis(1) || self.beacon > Duration::from_secs(10) {
            let problem = "expected \"1 ms\" to \"10 s\", such as \"102.4 ms\"";
            return Err(Invalid { field: "power_save.beacon", problem });
        }
        if self.listen == 0 {
            let problem = "expected 1 to 255 beacons";
            return Err(Invalid { field: "power_save.listen", problem });
        }
        if self.timeout > Duration::from_secs(60) {
            let problem = "expected at most \"60 s\", such as \"100 ms\"";
            return Err(Invalid { field: "power_save.timeout", problem });
        }
        Ok(())
    }
}
