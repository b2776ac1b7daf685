//! Sizes, rates, power, probabilities and decibels, with their text formats.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub};
use core::str::FromStr;

use schemars::json_schema;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::number::{self, Amount, Found, FromNumber, Number, UnitError};
use crate::parse::{self, Quantity};
use crate::time::Duration;
use crate::{inline_schema, schema};

/// A size in bytes. Packet sizes include headers unless the field says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// A positive rate in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

/// Electric power in whole microwatts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Power(u64);

/// A number in [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

/// A power ratio in decibels; always finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Decibels(f64);

impl Bytes {
    /// Zero bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// The size in bits.
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
}

impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        self.0 += other.0;
    }
}

/// # Panics
/// If `other` is larger than `self`.
impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.checked_sub(other.0).expect("a size cannot be negative"))
    }
}

impl Mul<u64> for Bytes {
    type Output = Bytes;
    fn mul(self, times: u64) -> Bytes {
        Bytes(self.0 * times)
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(sizes: I) -> Bytes {
        sizes.fold(Bytes::ZERO, Add::add)
    }
}

impl BitRate {
    /// `bps` bits per second, or `None` for zero.
    pub const fn from_bps(bps: u64) -> Option<BitRate> {
        if bps == 0 { None } else { Some(BitRate(bps)) }
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Transmission time of `size`, rounded up to a whole nanosecond.
    pub fn time_for(self, size: Bytes) -> Duration {
        self.time_for_bits(size.bits())
    }

    /// Transmission time of `bits`, rounded up to a whole nanosecond.
    pub fn time_for_bits(self, bits: u64) -> Duration {
        // 64 bits suffice for 2 GB at a time; a 128-bit division costs several times as much.
        let ns = match bits.checked_mul(1_000_000_000) {
            Some(scaled) => scaled.div_ceil(self.0),
            None => (u128::from(bits) * 1_000_000_000).div_ceil(u128::from(self.0)) as u64,
        };
        Duration::from_nanos(ns)
    }
}

impl Power {
    /// `uw` microwatts.
    pub(crate) const fn from_microwatts(uw: u64) -> Power {
        Power(uw)
    }

    /// The power in watts.
    pub fn as_watts(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Probability {
    /// `p`, or `None` outside [0, 1].
    pub fn new(p: f64) -> Option<Probability> {
        (0.0..=1.0).contains(&p).then_some(Probability(p))
    }

    /// The value.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Decibels {
    /// `db` decibels, or `None` if `db` is not finite.
    pub fn new(db: f64) -> Option<Decibels> {
        db.is_finite().then_some(Decibels(db))
    }

    /// The value in decibels.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// The linear ratio: 10 for 10 dB.
    pub fn ratio(self) -> f64 {
        libm::pow(10.0, self.0 / 10.0)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B", self.0)
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_scaled(
            f,
            self.0,
            &[(1_000_000_000, "Gbps"), (1_000_000, "Mbps"), (1_000, "kbps"), (1, "bps")],
        )
    }
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        parse::write_scaled(f, self.0, &[(1_000_000, "W"), (1_000, "mW"), (1, "uW")])
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for Decibels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} dB", self.0)
    }
}

const SIZE: Quantity<'_> = Quantity {
    what: "a size",
    example: "576 B",
    units: &[
        ("B", 1.0),
        ("kB", 1e3),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
    ],
    si: 1.0,
};
const RATE: Quantity<'_> = Quantity {
    what: "a rate",
    example: "2 Mbps",
    units: &[
        ("bps", 1.0),
        ("kbps", 1e3),
        ("Mbps", 1e6),
        ("Gbps", 1e9),
        ("bit/s", 1.0),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
        ("bit", 1.0),
        ("kbit", 1e3),
        ("Mbit", 1e6),
        ("Gbit", 1e9),
        ("b/s", 1.0),
        ("kb/s", 1e3),
        ("Mb/s", 1e6),
        ("Gb/s", 1e9),
        ("Kbps", 1e3),
        ("B/s", 8.0),
        ("kB/s", 8e3),
        ("MB/s", 8e6),
    ],
    si: 1.0,
};
const POWER: Quantity<'_> = Quantity {
    what: "a power",
    example: "900 mW",
    units: &[("W", 1e6), ("mW", 1e3), ("uW", 1.0), ("µW", 1.0), ("kW", 1e9)],
    si: 1e6,
};
const RATIO: Quantity<'_> =
    Quantity { what: "a ratio in decibels", example: "5 dB", units: &[("dB", 1.0)], si: 1.0 };

impl Bytes {
    /// Sizes of an exabyte and more would overflow when converted to bits.
    fn checked(size: u64, found: Found<'_>) -> Result<Bytes, UnitError> {
        match size < 1_000_000_000_000_000_000 {
            true => Ok(Bytes(size)),
            false => Err(UnitError::new(found, "a size below 1 EB, such as \"576 B\"")),
        }
    }
}

impl FromStr for Bytes {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Bytes, UnitError> {
        Bytes::checked(parse::quantity(text, SIZE)?, Found::Text(text))
    }
}

impl FromNumber for Bytes {
    fn from_number(number: &Number) -> Result<Bytes, UnitError> {
        Bytes::checked(parse::stated(number, SIZE)?, Found::Number(number))
    }
}

impl BitRate {
    fn checked(bps: u64, found: Found<'_>) -> Result<BitRate, UnitError> {
        let zero = || UnitError::new(found, "a rate above zero, such as \"2 Mbps\"");
        BitRate::from_bps(bps).ok_or_else(zero)
    }
}

impl FromStr for BitRate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<BitRate, UnitError> {
        BitRate::checked(parse::quantity(text, RATE)?, Found::Text(text))
    }
}

impl FromNumber for BitRate {
    fn from_number(number: &Number) -> Result<BitRate, UnitError> {
        BitRate::checked(parse::stated(number, RATE)?, Found::Number(number))
    }
}

impl FromStr for Power {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Power, UnitError> {
        parse::quantity(text, POWER).map(Power)
    }
}

impl FromNumber for Power {
    fn from_number(number: &Number) -> Result<Power, UnitError> {
        parse::stated(number, POWER).map(Power)
    }
}

impl Probability {
    const EXPECTED: &'static str = "a probability from 0 to 1, such as 0.01 or \"1%\"";

    /// `share`, or a percentage if it is in percent.
    fn checked(share: f64, is_percent: bool, found: Found<'_>) -> Result<Probability, UnitError> {
        let share = if is_percent { share / 100.0 } else { share };
        Probability::new(share).ok_or_else(|| UnitError::new(found, Self::EXPECTED))
    }
}

impl FromStr for Probability {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Probability, UnitError> {
        let (found, trimmed) = (Found::Text(text), text.trim());
        let (number, is_percent) =
            trimmed.strip_suffix('%').map_or((trimmed, false), |number| (number.trim(), true));
        let number = number.parse().map_err(|_| UnitError::new(found, Self::EXPECTED))?;
        Probability::checked(number, is_percent, found)
    }
}

impl FromNumber for Probability {
    fn from_number(number: &Number) -> Result<Probability, UnitError> {
        let found = Found::Number(number);
        match number.unit.as_deref() {
            None => Probability::checked(number.amount.real(), false, found),
            Some("%") => Probability::checked(number.amount.real(), true, found),
            Some(_) => Err(UnitError::new(found, Self::EXPECTED)),
        }
    }
}

impl FromStr for Decibels {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Decibels, UnitError> {
        parse::signed_quantity(text, RATIO).map(Decibels)
    }
}

impl FromNumber for Decibels {
    fn from_number(number: &Number) -> Result<Decibels, UnitError> {
        parse::signed_stated(number, RATIO).map(Decibels)
    }
}

/// Scenario files hold quantities as strings with a unit. A bare number there is rejected because its unit is
/// ambiguous; code may state one.
macro_rules! serde_as_text {
    ($type:ty, $schema:expr, $expecting:literal, |$quantity:ident| $amount:expr, $unit:expr) => {
        inline_schema!($type, |_generator| $schema);

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let $quantity = self;
                match serializer.is_human_readable() {
                    true => serializer.collect_str(self),
                    false => number::write($amount, $unit, serializer),
                }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Stated;
                impl<'de> Visitor<'de> for Stated {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                    fn visit_newtype_struct<D: Deserializer<'de>>(
                        self,
                        number: D,
                    ) -> Result<$type, D::Error> {
                        number::read(number)
                    }
                }
                deserializer.deserialize_any(Stated)
            }
        }
    };
}

serde_as_text!(
    Bytes,
    SIZE.schema("\\+?"),
    "a size with its unit, such as \"576 B\" or \"4 KiB\"",
    |size| Amount::Whole(size.0.into()),
    None
);
serde_as_text!(
    BitRate,
    RATE.schema("\\+?"),
    "a rate with its unit, such as \"2 Mbps\" or \"19.2 kbps\"",
    |rate| Amount::Whole(rate.0.into()),
    None
);
serde_as_text!(
    Power,
    POWER.schema("\\+?"),
    "a power with its unit, such as \"1.3 W\" or \"900 mW\"",
    |power| Amount::Whole(power.0.into()),
    Some("uW")
);
serde_as_text!(
    Duration,
    crate::time::DURATION.schema("\\+?"),
    "a duration with its unit, such as \"30 ms\" or \"1.5 s\"",
    |span| Amount::Whole(span.as_nanos().into()),
    Some("ns")
);
serde_as_text!(
    Decibels,
    RATIO.schema("[+-]?"),
    "a ratio with its unit, such as \"5 dB\"",
    |ratio| Amount::Real(ratio.0),
    None
);

inline_schema!(Probability, |_generator| schema::any([
    json_schema!({"type": "number", "minimum": 0, "maximum": 1}),
    schema::text("probability", schema::SHARE, &["1%"]),
]));

impl Serialize for Probability {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0)
    }
}

impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Probability, D::Error> {
        struct Stated;
        impl<'de> Visitor<'de> for Stated {
            type Value = Probability;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Probability::EXPECTED)
            }
            fn visit_newtype_struct<D: Deserializer<'de>>(self, number: D) -> Result<Probability, D::Error> {
                number::read(number)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Probability, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, p: f64) -> Result<Probability, E> {
                Probability::new(p).ok_or_else(|| E::invalid_value(de::Unexpected::Float(p), &self))
            }
            fn visit_i64<E: de::Error>(self, p: i64) -> Result<Probability, E> {
                self.visit_f64(p as f64)
            }
            fn visit_u64<E: de::Error>(self, p: u64) -> Result<Probability, E> {
                self.visit_f64(p as f64)
            }
        }
        deserializer.deserialize_any(Stated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn serialisation_time_rounds_up_once() {
        let rate: BitRate = "384 kbps".parse().unwrap();
        assert_eq!(rate.time_for(Bytes(1500)).as_nanos(), 31_250_000);
        assert_eq!(rate.time_for(Bytes(40)).as_nanos(), 833_334);
        assert_eq!(
            rate.time_for(Bytes(u64::MAX / 16)).as_nanos(),
            Duration::MAX
                .as_nanos()
                .min(((u128::from(u64::MAX / 16) * 8_000_000_000).div_ceil(384_000)) as u64)
        );
    }

    #[test]
    fn quantities_parse_and_format() {
        assert_eq!("4 KiB".parse(), Ok(Bytes(4096)));
        assert_eq!("100KB".parse(), Ok(Bytes(100_000)));
        assert_eq!("19.2 kbps".parse::<BitRate>().unwrap().as_bps(), 19_200);
        assert_eq!("1%".parse(), Ok(Probability(0.01)));
        assert_eq!("19.2 kbps".parse::<BitRate>().unwrap().to_string(), "19.2 kbps");
        assert_eq!("56 kbit/s".parse::<BitRate>().unwrap().to_string(), "56 kbps");
        assert_eq!(("1.3 W".parse(), "900mW".parse()), (Ok(Power(1_300_000)), Ok(Power(900_000))));
        assert_eq!(
            ["0 W", "1.3 W", "900 mW", "17 uW"].map(|text| text.parse::<Power>().unwrap().to_string()),
            ["0 W", "1.3 W", "900 mW", "17 uW"]
        );
        assert_eq!("739.44 mW".parse::<Power>().unwrap().as_watts(), 0.739_44);
        assert_eq!("-2.5dB".parse(), Ok(Decibels(-2.5)));
        assert_eq!(Decibels(-2.5).to_string(), "-2.5 dB");
    }

    #[test]
    fn decibels_convert_to_ratios() {
        for (db, ratio) in [(-10.0, 0.1), (0.0, 1.0), (10.0, 10.0), (150.0, 1e15)] {
            assert_eq!(Decibels(db).ratio(), ratio, "{db} dB");
        }
        assert!((Decibels(3.0).ratio() - 1.995_262_314_968_879_5).abs() < 1e-15);
        assert_eq!((Decibels::new(f64::NAN), Decibels::new(f64::INFINITY)), (None, None));
    }

    #[test]
    fn parse_errors_name_the_found_and_the_expected_text() {
        let message = |r: Result<BitRate, UnitError>| r.unwrap_err().to_string();
        assert_eq!(
            message("2 Mbs".parse()),
            "found \"2 Mbs\", expected a rate such as \"2 Mbps\"; did you mean \"2 Mbps\"?"
        );
        assert_eq!(message("2".parse()), "found \"2\" without a unit, expected a rate such as \"2 Mbps\"");
        assert_eq!(
            message("-2 Mbps".parse()),
            "found \"-2 Mbps\", expected a rate that is not negative, such as \"2 Mbps\""
        );
        assert_eq!(
            message("0 bps".parse()),
            "found \"0 bps\", expected a rate above zero, such as \"2 Mbps\""
        );
        assert_eq!(
            "1.5".parse::<Probability>().unwrap_err().to_string(),
            "found \"1.5\", expected a probability from 0 to 1, such as 0.01 or \"1%\""
        );
        let endless = "9".repeat(400) + " dB";
        for (text, problem) in [
            ("5", "without a unit, expected a ratio in decibels such as \"5 dB\""),
            ("5 db", "expected a ratio in decibels such as \"5 dB\"; did you mean \"5 dB\"?"),
            (&endless, "expected a ratio in decibels within range, such as \"5 dB\""),
        ] {
            let message = text.parse::<Decibels>().unwrap_err().to_string();
            assert!(message.ends_with(problem), "{message}");
        }
    }
}
