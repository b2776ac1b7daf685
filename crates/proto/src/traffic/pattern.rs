//! Traffic patterns.

use lasthop_base::{BitRate, Bytes, Duration, Invalid, Stream};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pattern of packet departures of a source. All rates count whole packets, headers included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pattern {
    /// Constant bit rate (CBR): equal gaps between packets; the first packet leaves at the start time.
    Constant {
        /// The rate.
        rate: BitRate,
    },
    /// A Poisson process: independent exponential gaps between packets, and before the first packet.
    Poisson {
        /// The mean rate.
        rate: BitRate,
    },
    /// Bursts at a constant rate, separated by silences, starting with a burst. The first packet leaves at
    /// the start of the burst, so the mean rate is slightly above `rate` · `on` / (`on` + `off`): by half a
    /// packet per burst with exponential lengths.
    OnOff {
        /// The rate within a burst: the peak rate of the source.
        rate: BitRate,
        /// Length of a burst, or its mean; above zero.
        on: Duration,
        /// Length of a silence, or its mean; above zero.
        off: Duration,
        /// Distribution of the lengths. By default exponential, which avoids synchronisation with other
        /// periodic processes in a scenario.
        #[serde(default)]
        periods: Periods,
    },
}

/// Distribution of the lengths of bursts and silences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Periods {
    /// Independent and exponential.
    #[default]
    Exponential,
    /// Always the same.
    Fixed,
}

impl Periods {
    /// Draws a length. Uses one variate of `stream`, or none if fixed.
    pub(super) fn draw(self, mean: Duration, stream: &mut Stream) -> Duration {
        match self {
            Periods::Exponential => stream.exponential(mean),
            Periods::Fixed => mean,
        }
    }
}

impl Pattern {
    /// Checks what the parameters' types cannot express, for packets of this size.
    ///
    /// # Errors
    /// Packets that are sent less than a nanosecond apart, or a period of length zero.
    pub fn validate(&self, size: Bytes) -> Result<(), Invalid> {
        match *self {
            Pattern::Constant { rate } => slow_enough("constant.rate", rate, size),
            Pattern::Poisson { rate } => slow_enough("poisson.rate", rate, size),
            Pattern::OnOff { rate, on, off, .. } => {
                slow_enough("on-off.rate", rate, size)?;
                above_zero("on-off.on", on)?;
                above_zero("on-off.off", off)
            }
        }
    }
}

/// Transmission time of a packet at one bit per second, the dividend of its time at a given rate, so that the
/// remainder can be kept.
pub(super) fn at_one_bps(size: Bytes) -> Duration {
    Duration::from_secs(1) * size.bits()
}

fn slow_enough(field: &'static str, rate: BitRate, size: Bytes) -> Result<(), Invalid> {
    if rate.as_bps() > at_one_bps(size).as_nanos() {
        let problem = "found a rate at which packets leave less than 1 ns apart, the resolution of simulated \
                       time; expected a lower one, such as \"400 kbps\"";
        return Err(Invalid { field, problem });
    }
    Ok(())
}

fn above_zero(field: &'static str, length: Duration) -> Result<(), Invalid> {
    if length.is_zero() {
        let problem = "found a length of zero, expected one above zero, such as \"500 ms\"; \
                       a source that is never silent is \"constant\"";
        return Err(Invalid { field, problem });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer, StrDeserializer};
    use serde::de::{IntoDeserializer, value};

    /// The table of the pattern `name`, as a deserializer yields it.
    fn read(name: &str, keys: &[(&str, &str)]) -> Result<Pattern, String> {
        let keys = keys.iter().map(|&(key, text)| {
            let text: StrDeserializer<'_, Error> = text.into_deserializer();
            (key, text)
        });
        let table = MapAccessDeserializer::new(MapDeserializer::new(keys));
        let laws = MapDeserializer::new([(name, table)].into_iter());
        Pattern::deserialize(MapAccessDeserializer::new(laws))
            .map_err(|error: value::Error| error.to_string())
    }

    fn bps(bps: u64) -> BitRate {
        BitRate::from_bps(bps).unwrap()
    }

    #[test]
    fn what_a_file_says_is_what_is_meant() {
        let rate = bps(400_000);
        let (on, off) = (Duration::from_millis(500), Duration::from_secs(2));
        let on_off = |periods| Pattern::OnOff { rate, on, off, periods };
        let keys = [("rate", "400 kbps"), ("on", "500 ms"), ("off", "2 s"), ("periods", "fixed")];
        assert_eq!(read("constant", &keys[..1]), Ok(Pattern::Constant { rate }));
        assert_eq!(read("poisson", &keys[..1]), Ok(Pattern::Poisson { rate }));
        assert_eq!(read("on-off", &keys[..3]), Ok(on_off(Periods::Exponential)));
        assert_eq!(read("on-off", &keys), Ok(on_off(Periods::Fixed)));
    }

    #[test]
    fn a_wrong_file_is_refused_with_the_reason() {
        let rate = ("rate", "400 kbps");
        for (name, keys, reason) in [
            ("poison", &[rate][..], "unknown variant `poison`, expected one of"),
            ("poisson", &[rate, ("on", "1 s")], "unknown field `on`, expected `rate`"),
            ("constant", &[], "missing field `rate`"),
            ("on-off", &[rate, ("on", "1 s")], "missing field `off`"),
            ("on-off", &[("periods", "pareto")], "unknown variant `pareto`"),
            ("constant", &[("rate", "0 bps")], "expected a rate above zero"),
        ] {
            let error = read(name, keys).expect_err(name);
            assert!(error.contains(reason), "{name} {keys:?} said {error:?}, not {reason:?}");
        }
    }

    #[test]
    fn a_period_has_a_length() {
        let (some, none) = (Duration::from_nanos(1), Duration::ZERO);
        let check = |on, off| {
            let pattern = Pattern::OnOff { rate: bps(1_000), on, off, periods: Periods::Fixed };
            pattern.validate(Bytes(1_000)).map_err(|invalid| invalid.field)
        };
        assert_eq!(check(some, some), Ok(()));
        assert_eq!(check(none, some), Err("on-off.on"));
        assert_eq!(check(some, none), Err("on-off.off"));
    }

    #[test]
    fn packets_leave_a_nanosecond_apart_at_least() {
        let fastest = 28 * 8 * 1_000_000_000;
        let (on, off, periods) = (Duration::from_secs(1), Duration::from_secs(1), Periods::Fixed);
        for (pattern, field) in [
            ((|rate| Pattern::Constant { rate }) as fn(BitRate) -> Pattern, "constant.rate"),
            (|rate| Pattern::Poisson { rate }, "poisson.rate"),
        ] {
            assert_eq!(pattern(bps(fastest)).validate(Bytes(28)), Ok(()));
            assert_eq!(pattern(bps(fastest + 1)).validate(Bytes(28)).unwrap_err().field, field);
            assert_eq!(pattern(bps(fastest + 1)).validate(Bytes(29)), Ok(()));
        }
        let burst = Pattern::OnOff { rate: bps(fastest + 1), on, off, periods };
        assert_eq!(burst.validate(Bytes(28)).unwrap_err().field, "on-off.rate");
        assert_eq!(burst.validate(Bytes(1_000_000_000_000_000_000)), Ok(()), "the largest that can be read");
    }
}
