//! Forward error correction: block codes, as exact odds.
//!
//! Nothing is encoded here. A code is its three numbers ([`BlockCode`]), and what they mean for a unit
//! on the air is arithmetic: how many units a packet takes ([`units`]), and with which probability a
//! unit is decoded ([`Decoder`]), given the bit error rates that it meets on its way.
//!
//! *Source.* Chiasserini, Garetto, Meo: "Improving TCP over Wireless by Selectively Protecting Packet
//! Transmissions", section III, equation (2).

mod code;
mod errors;

use lasthop_base::Bytes;

pub use code::BlockCode;

use crate::frag::{Fragments, Mtu};
use crate::packet::Dscp;
use errors::Errors;

/// How many units of size `unit` a packet of size `packet` takes: ⌈`packet`/`unit`⌉, and with a code as
/// many as its bits need, of which a unit of b bits has k in each of its ⌊b/n⌋ codewords; one at least.
///
/// Where we differ from the paper: its ⌈`packet`·n/(`unit`·k)⌉ (section III) counts the bits of a unit
/// that no whole codeword fills as if they were coded, too. For its own sizes both give the same.
///
/// # Panics
/// If there are more than `u32::MAX`, or if a unit has no room for a codeword.
pub fn units(packet: Bytes, unit: Mtu, code: Option<BlockCode>) -> u32 {
    let Some(code) = code else { return Fragments::of(packet, Some(unit)).count() };
    let data = unit.get().bits() / u64::from(code.n()) * u64::from(code.k());
    assert!(data > 0, "a unit of {} has no room for a codeword of {code}", unit.get());
    u32::try_from(packet.bits().div_ceil(data).max(1)).expect("fewer units than 2^32")
}

/// What a link protects by a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Covers {
    /// Packets with this code point.
    Marked(Dscp),
    /// Units that the link sends again.
    Repeats,
    /// Everything.
    All,
}

/// A stretch of a unit's time on the air, at one bit error rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Which share of the unit's time it is.
    pub share: f64,
    /// The probability with which each bit is wrong in it, independently of all others.
    pub ber: f64,
}

/// The receiving end of a code, as odds.
///
/// It keeps room to reckon in, and the latest results for codewords at one bit error rate: after the
/// first, a channel with a few states costs one exponential for each unit.
#[derive(Clone, Debug)]
pub struct Decoder {
    code: BlockCode,
    errors: Errors,
    known: [Known; 8],
    /// Which of those goes next.
    oldest: usize,
}

/// What was found for codewords of this length at this rate.
#[derive(Clone, Copy, Debug)]
struct Known {
    bits: u32,
    ber: f64,
    ln_decoded: f64,
}

impl Decoder {
    /// For the code `code`.
    pub fn new(code: BlockCode) -> Decoder {
        // No codeword is without a bit, so this is found for none.
        let nothing = Known { bits: 0, ber: 0.0, ln_decoded: 0.0 };
        Decoder { code, errors: Errors::new(code.t()), known: [nothing; 8], oldest: 0 }
    }

    /// The code.
    pub const fn code(&self) -> BlockCode {
        self.code
    }

    /// The probability that a unit of `bits` bits on the air is decoded, all of its ⌊`bits`/n⌋
    /// codewords, when it meets `parts` in this order: the complement of the selective FEC paper's
    /// equation (2), which has one part.
    ///
    /// Codewords follow each other on the air, not interleaved, and so do the bits of each. A bit
    /// belongs to the part in which its middle lies; the last part ends with the unit, whatever the
    /// shares' sum is after rounding. The bits that no whole codeword fills carry nothing.
    ///
    /// Where we differ from the paper: a unit shorter than a codeword, which by equation (2) would
    /// always arrive, is a codeword shortened to its length, with as many errors corrected.
    ///
    /// A codeword in several parts costs about t²/2 steps for each part.
    ///
    /// # Panics
    /// Without any part.
    pub fn unit_survival(&mut self, bits: u64, parts: &[Part]) -> f64 {
        libm::exp(self.ln_unit_survival(bits, parts))
    }

    /// The same where no unit has to be filled: what no whole codeword fills is a shortened one
    /// ([`BlockCode::coded`]), and has to be decoded too.
    ///
    /// # Panics
    /// As [`unit_survival`](Decoder::unit_survival).
    pub fn message_survival(&mut self, bits: u64, parts: &[Part]) -> f64 {
        libm::exp(self.ln_survival(bits, bits, parts))
    }

    /// The probability that such a unit is not decoded: equation (2) itself, exact also where it is
    /// far smaller than what is missing from 1 in a survival.
    ///
    /// # Panics
    /// As [`unit_survival`](Decoder::unit_survival).
    pub fn unit_error(&mut self, bits: u64, parts: &[Part]) -> f64 {
        // The logarithm is at most zero; with a minus sign, zero would become negative.
        libm::expm1(self.ln_unit_survival(bits, parts)).abs()
    }

    fn ln_unit_survival(&mut self, bits: u64, parts: &[Part]) -> f64 {
        let n = u64::from(self.code.n());
        let coded = if bits < n { bits } else { bits - bits % n };
        self.ln_survival(bits, coded, parts)
    }

    /// ln of the probability that the codewords in the first `coded` of `bits` bits are decoded.
    fn ln_survival(&mut self, bits: u64, coded: u64, parts: &[Part]) -> f64 {
        let (last, before) = parts.split_last().expect("a unit is on the air in one part at least");
        let (mut sum, mut at, mut share) = (0.0, 0, 0.0);
        for part in before {
            share += part.share;
            // Bit b's middle is before x if b < x − ½: that holds for the first ⌈x − ½⌉ bits. What is
            // negative becomes zero.
            let end = libm::ceil(share * bits as f64 - 0.5) as u64;
            sum += self.ln_decoded_until(end.min(coded), &mut at, coded, part.ber);
        }
        sum + self.ln_decoded_until(coded, &mut at, coded, last.ber)
    }

    /// Bits `at` to `end` of `coded` have the error rate `ber`: ln of the probability that the codewords
    /// that end in them are decoded. Leaves `at` behind them.
    fn ln_decoded_until(&mut self, end: u64, at: &mut u64, coded: u64, ber: f64) -> f64 {
        let n = u64::from(self.code.n());
        let mut sum = 0.0;
        while *at < end {
            let begun = *at % n;
            // The last codeword may be a shortened one.
            let length = n.min(coded - (*at - begun));
            let bits = (end - *at).min(length - begun);
            if bits == length {
                let alike = ((end - *at) / length).max(1);
                sum += alike as f64 * self.ln_decoded(length as u32, ber);
                *at += alike * length;
                continue;
            }
            if begun == 0 {
                self.errors.clear();
            }
            self.errors.add(bits as u32, ber);
            *at += bits;
            if begun + bits == length {
                sum += self.errors.ln_decoded();
            }
        }
        sum
    }

    /// ln of the probability that a codeword of `bits` bits is decoded at the error rate `ber`.
    fn ln_decoded(&mut self, bits: u32, ber: f64) -> f64 {
        let known = self.known.iter().find(|known| known.bits == bits && known.ber == ber);
        if let Some(known) = known {
            return known.ln_decoded;
        }
        self.errors.clear();
        self.errors.add(bits, ber);
        let ln_decoded = self.errors.ln_decoded();
        self.known[self.oldest] = Known { bits, ber, ln_decoded };
        self.oldest = (self.oldest + 1) % self.known.len();
        ln_decoded
    }
}
