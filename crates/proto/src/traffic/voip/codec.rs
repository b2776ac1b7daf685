//! Speech codecs.

use lasthop_base::{Bytes, Duration};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A speech codec. Known are those with an equipment impairment factor Ie and a packet-loss robustness factor Bpl in
/// ITU-T G.113, Appendix I (2007). It has no values for Opus; wideband codecs have a scale of their own. The
/// Recommendation itself was not at hand: other public implementations of the E-model have the same values
/// for G.711 and G.729A; none was found with those of GSM-EFR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Codec {
    /// 64 kbit/s without packet loss concealment, in packets of 200 B: Ie 0, Bpl 4.3 (for packets of 10 ms).
    G711,
    /// 64 kbit/s with the concealment of G.711 Appendix I, in packets of 200 B: Ie 0, Bpl 25.1 (for packets of
    /// 10 ms).
    G711Plc,
    /// 8 kbit/s, with its own concealment and a look-ahead of 5 ms, in packets of 60 B: Ie 11, Bpl 19.0.
    G729a,
    /// 12.2 kbit/s, with its own concealment, in packets of 71 B: the enhanced full rate of GSM, and the highest rate
    /// of AMR. Ie 5, Bpl 10.0.
    GsmEfr,
}

impl Codec {
    /// Speech in a packet of 20 ms (RFC 3551).
    pub fn payload(self) -> Bytes {
        match self {
            Codec::G711 | Codec::G711Plc => Bytes(160),
            Codec::G729a => Bytes(20),
            Codec::GsmEfr => Bytes(31),
        }
    }

    /// How much of the speech after a packet the encoder waits for (ITU-T G.114, annex A).
    pub fn look_ahead(self) -> Duration {
        match self {
            Codec::G729a => Duration::from_millis(5),
            Codec::G711 | Codec::G711Plc | Codec::GsmEfr => Duration::ZERO,
        }
    }

    /// The equipment impairment factor Ie without losses (G.113 Appendix I).
    pub fn impairment(self) -> f64 {
        match self {
            Codec::G711 | Codec::G711Plc => 0.0,
            Codec::G729a => 11.0,
            Codec::GsmEfr => 5.0,
        }
    }

    /// The packet-loss robustness factor Bpl (G.113 Appendix I); that of G.711 is for packets of 10 ms.
    pub fn robustness(self) -> f64 {
        match self {
            Codec::G711 => 4.3,
            Codec::G711Plc => 25.1,
            Codec::G729a => 19.0,
            Codec::GsmEfr => 10.0,
        }
    }
}
