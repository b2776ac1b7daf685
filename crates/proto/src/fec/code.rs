//! Block codes and their validity.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use lasthop_base::{inline_schema, schema};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::errors::ln_choose;

/// A binary block code (n, k, t): codewords of n bits, of which k are data. Up to t bit errors are corrected,
/// wherever they are; more are never corrected (selective FEC paper, section III).
///
/// In scenario files the name of a BCH code, `"bch-255-131-18"`, or a table for any code, `{ n = 255, k =
/// 131, t = 18 }`. A name must denote a primitive BCH code with this designed distance. A table is only
/// checked against the Hamming bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockCode {
    n: u32,
    k: u32,
    t: u32,
}

/// Longer than any code in use: the BCH codes of DVB-S2 are shortened from 2¹⁶ − 1 bits.
const MAX_CODEWORD: u32 = 65_535;

impl BlockCode {
    /// A code with codewords of `n` bits and `k` data bits that corrects up to `t` errors.
    ///
    /// # Errors
    /// If there is no such code. Requires 0 < k < n ≤ 65535 and the Hamming bound: spheres of radius t around
    /// the 2^k codewords must not overlap, so the number of words with up to t errors, C(n, 0) + ... + C(n,
    /// t), is at most 2^(n − k). The error names what was found and expected.
    pub fn new(n: u32, k: u32, t: u32) -> Result<BlockCode, String> {
        if !(2..=MAX_CODEWORD).contains(&n) {
            return Err(format!("found n = {n}, expected codewords of 2 to {MAX_CODEWORD} bits"));
        }
        if !(1..n).contains(&k) {
            return Err(format!("found k = {k}, expected 1 to {} data bits in codewords of {n}", n - 1));
        }
        if !spheres_fit(n, k, t) {
            let most = (0..t.min(n)).rev().find(|&fewer| spheres_fit(n, k, fewer)).unwrap_or(0);
            return Err(format!(
                "found t = {t}, expected at most {most}: no code with {} check bits in {n} corrects more \
                 (Hamming bound)",
                n - k
            ));
        }
        Ok(BlockCode { n, k, t })
    }

    /// Bits in a codeword.
    pub const fn n(self) -> u32 {
        self.n
    }

    /// Data bits in a codeword.
    pub const fn k(self) -> u32 {
        self.k
    }

    /// Number of correctable bit errors in a codeword.
    pub const fn t(self) -> u32 {
        self.t
    }

    /// Size of `data` bits after coding: ⌈`data`/k⌉ codewords, the last one shortened to the remaining data
    /// bits plus all its check bits.
    pub const fn coded(self, data: u64) -> u64 {
        data + data.div_ceil(self.k as u64) * (self.n - self.k) as u64
    }

    fn is_bch(self) -> bool {
        bch_data_bits(self.n, self.t) == Some(self.k)
    }
}

/// Whether the Hamming bound holds. Computed in logarithms with a tolerance of 10⁻⁶ for rounding, ample for
/// perfect codes, where both sides are equal.
fn spheres_fit(n: u32, k: u32, t: u32) -> bool {
    // Two codewords differ in at least 2t + 1 of n bits.
    if t >= n.div_ceil(2) {
        return false;
    }
    // Relative to the largest term, C(n, t); the terms decrease from there.
    let (mut sum, mut term) = (1.0, 1.0);
    for i in (1..=t).rev() {
        term *= f64::from(i) / f64::from(n - i + 1);
        sum += term;
        if term < 1e-9 * sum {
            break;
        }
    }
    ln_choose(n, t) + libm::log(sum) <= f64::from(n - k) * core::f64::consts::LN_2 + 1e-6
}

/// Data bits of the primitive narrow-sense BCH code of `n` bits with designed correction `t`; `None` if there
/// is no such code. Its generator has the roots α, α², ..., α^2t and their conjugates, α^i with α^2i: one
/// check bit for each (Lin, Costello: Error Control Coding, chapter 6).
fn bch_data_bits(n: u32, t: u32) -> Option<u32> {
    if !(3..=MAX_CODEWORD).contains(&n) || !(n + 1).is_power_of_two() || t == 0 || t >= n.div_ceil(2) {
        return None;
    }
    let conjugates = |root: u32| {
        let others = core::iter::successors(Some(root * 2 % n), move |other| Some(other * 2 % n));
        others.take_while(move |&other| other != root)
    };
    // Each set of conjugates is counted at its smallest exponent, which is odd: half of an even exponent is
    // in the same set.
    let check_bits: usize = (1..2 * t)
        .step_by(2)
        .filter(|&root| conjugates(root).all(|other| other > root))
        .map(|root| 1 + conjugates(root).count())
        .sum();
    Some(n - check_bits as u32)
}

/// The name of a BCH code; for other codes the three numbers.
impl fmt::Display for BlockCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BlockCode { n, k, t } = self;
        if self.is_bch() { write!(f, "bch-{n}-{k}-{t}") } else { write!(f, "({n}, {k}, {t})") }
    }
}

/// Parses the name of a BCH code.
impl FromStr for BlockCode {
    type Err = String;
    fn from_str(name: &str) -> Result<BlockCode, String> {
        let mut numbers = name.strip_prefix("bch-").into_iter().flat_map(|rest| rest.split('-'));
        let mut number = || numbers.next().and_then(|text| text.parse::<u32>().ok());
        let (Some(n), Some(k), Some(t), None) = (number(), number(), number(), numbers.next()) else {
            return Err(format!("found \"{name}\", expected {EXPECTED}"));
        };
        match bch_data_bits(n, t) {
            Some(right) if right == k => Ok(BlockCode { n, k, t }),
            Some(right) => Err(format!(
                "found \"{name}\", expected \"bch-{n}-{right}-{t}\": BCH codewords of {n} bits, of which \
                 {t} can be corrected, hold {right} data bits"
            )),
            None => Err(format!(
                "found \"{name}\", expected a BCH code, of 2^m - 1 bits with up to half of them corrected; \
                 another code is a table such as {{ n = {n}, k = {k}, t = {t} }}"
            )),
        }
    }
}

const EXPECTED: &str =
    "a BCH code such as \"bch-255-131-18\", or a table such as { n = 255, k = 131, t = 18 }";

/// The numbers of a code.
#[derive(serde::Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "BlockCode")]
struct Table {
    /// Bits in a codeword.
    n: u32,
    /// Data bits in a codeword.
    k: u32,
    /// Number of correctable bit errors in a codeword.
    t: u32,
}

impl Serialize for BlockCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let BlockCode { n, k, t } = *self;
        if self.is_bch() {
            serializer.serialize_str(&self.to_string())
        } else {
            Table { n, k, t }.serialize(serializer)
        }
    }
}

inline_schema!(BlockCode, |generator| schema::any([
    schema::text("BCH code", "bch-\\d+-\\d+-\\d+", &["bch-255-131-18"]),
    generator.subschema_for::<Table>(),
]));

impl<'de> Deserialize<'de> for BlockCode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<BlockCode, D::Error> {
        struct NameOrTable;
        impl<'de> Visitor<'de> for NameOrTable {
            type Value = BlockCode;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<BlockCode, E> {
                name.parse().map_err(E::custom)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<BlockCode, A::Error> {
                let Table { n, k, t } = Table::deserialize(MapAccessDeserializer::new(map))?;
                BlockCode::new(n, k, t).map_err(de::Error::custom)
            }
        }
        deserializer.deserialize_any(NameOrTable)
    }
}
