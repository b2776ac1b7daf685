//! Interference by bursts, from what is not Wi-Fi.

use lasthop_base::{Duration, Invalid, Probability, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A source of interference that is not Wi-Fi and sends periodic bursts: `{}` is a microwave oven. No access to the medium begins in a
/// burst that is `heard`, though further PPDUs of a TXOP do, and MPDUs that meet one are lost. Responses, RTS and CTS are not.
///
/// The magnetron of a kitchen's oven radiates in one half of each period of the mains, since its supply rectifies one half-wave (Kamerman
/// and Erkoçević, "Microwave oven interference on wireless LANs operating in the 2.4 GHz ISM band", PIMRC 1997): with 60 Hz, `{ period =
/// "16.667 ms", burst = "8.333 ms" }`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table such as { period = \"20 ms\", burst = \"10 ms\" }"
)]
pub struct Interference {
    /// Time from the start of a burst to the next. By default `"20 ms"`, the period of mains of 50 Hz. The first starts at a random time.
    pub period: Duration,
    /// Length of a burst, shorter than the period. By default `"10 ms"`.
    pub burst: Duration,
    /// The probability that an MPDU is lost some of whose bits, or whose preamble, meet a burst. By default 1.
    pub loss: Probability,
    /// Whether access point and stations hear the bursts, as they do above -62 dBm at 20 MHz (IEEE 802.11-2020, section 17.3.10.6).
    /// By default true.
    pub heard: bool,
}

impl Default for Interference {
    fn default() -> Interference {
        Interference {
            period: Duration::from_millis(20),
            burst: Duration::from_millis(10),
            loss: Probability::new(1.0).expect("it is a probability"),
            heard: true,
        }
    }
}

impl Interference {
    /// Checks what the parameters' types cannot express.
    ///
    /// # Errors
    /// The first invalid parameter.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.period < Duration::from_millis(1) || self.period > Duration::from_secs(3600) {
            let problem = "expected \"1 ms\" to \"1 h\", such as \"20 ms\"";
            return Err(Invalid { field: "interference.period", problem });
        }
        if self.burst.is_zero() || self.burst >= self.period {
            let problem = "expected a time above zero and below the period, such as \"10 ms\"";
            return Err(Invalid { field: "interference.burst", problem });
        }
        Ok(())
    }
}

/// The bursts of a source whose first one starts at a given time.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    source: Interference,
    first: Time,
}

impl Bursts {
    /// The bursts of `source`, the first one `after` the start.
    pub fn new(source: Interference, after: Duration) -> Bursts {
        Bursts { source, first: Time::ZERO + after }
    }

    /// Their source.
    pub fn source(&self) -> &Interference {
        &self.source
    }

    /// The start of the last burst that has started by `now`.
    fn started(&self, now: Time) -> Option<Time> {
        let passed = (now >= self.first).then(|| now.since(self.first))?;
        let number = passed.as_nanos() / self.source.period.as_nanos();
        Some(self.first + self.source.period * number)
    }

    /// The end of the burst at `now`, if there is one.
    pub fn end(&self, now: Time) -> Option<Time> {
        let end = self.started(now)? + self.source.burst;
        (end > now).then_some(end)
    }

    /// The start of the first burst after `now`.
    pub fn next(&self, now: Time) -> Time {
        self.started(now).map_or(self.first, |started| started + self.source.period)
    }

    /// Whether a burst meets the time from `begin` to `end`.
    pub fn meet(&self, begin: Time, end: Time) -> bool {
        self.end(begin).is_some() || self.next(begin) < end
    }
}
