//! Forward error correction: block codes as exact decoding probabilities.
//!
//! No bits are encoded. A code is described by three numbers ([`BlockCode`]), from which follow the number of
//! units of a packet ([`units`]) and the probability that a unit is decoded at given bit error rates
//! ([`Decoder`]).
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

/// Number of units of size `unit` for a packet of size `packet`: ⌈`packet`/`unit`⌉ without a code. With a
/// code, a unit of b bits carries k data bits in each of its ⌊b/n⌋ codewords. At least one.
///
/// Differs from the paper's ⌈`packet`·n/(`unit`·k)⌉ (section III), which counts the bits of a unit beyond its
/// last whole codeword as if they were coded. Both agree for the paper's sizes.
///
/// # Panics
/// If there are more than `u32::MAX` units, or a unit is smaller than a codeword.
pub fn units(packet: Bytes, unit: Mtu, code: Option<BlockCode>) -> u32 {
    let Some(code) = code else { return Fragments::of(packet, Some(unit)).count() };
    let data = unit.get().bits() / u64::from(code.n()) * u64::from(code.k());
    assert!(data > 0, "a unit of {} has no room for a codeword of {code}", unit.get());
    u32::try_from(packet.bits().div_ceil(data).max(1)).expect("fewer units than 2^32")
}

/// The packets or units that a link protects with its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Covers {
    /// Packets with this code point.
    Marked(Dscp),
    /// Units that the link retransmits.
    Repeats,
    /// Units that the ARQ [wants coded](crate::arq::Form::is_coded).
    Requested,
    /// Everything.
    All,
}

/// A part of a unit's air time with a constant bit error rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Share of the unit's air time.
    pub share: f64,
    /// Bit error probability, independent for each bit.
    pub ber: f64,
}

/// Decoding probabilities of a code.
///
/// Caches the most recent results for whole codewords at one bit error rate: after the first units, a channel
/// with few states costs one exponential per unit.
#[derive(Clone, Debug)]
pub struct Decoder {
    code: BlockCode,
    errors: Errors,
    known: [Known; 8],
    /// Index of the cache entry to replace next.
    oldest: usize,
}

/// The result for a codeword length and bit error rate.
#[derive(Clone, Copy, Debug)]
struct Known {
    bits: u32,
    ber: f64,
    ln_decoded: f64,
}

impl Decoder {
    /// A decoder for `code`.
    pub fn new(code: BlockCode) -> Decoder {
        // No codeword has zero bits, so this entry never matches.
        let nothing = Known { bits: 0, ber: 0.0, ln_decoded: 0.0 };
        Decoder { code, errors: Errors::new(code.t()), known: [nothing; 8], oldest: 0 }
    }

    /// The code.
    pub const fn code(&self) -> BlockCode {
        self.code
    }

    /// The probability that a unit of `bits` bits is decoded, that is all of its ⌊`bits`/n⌋ codewords, when
    /// it meets `parts` in order. With one part this is the complement of equation (2) of the selective FEC
    /// paper.
    ///
    /// Codewords are sent one after the other without interleaving. A bit belongs to the part that contains
    /// its middle; the last part extends to the end of the unit regardless of rounding. Bits beyond the last
    /// whole codeword carry no data.
    ///
    /// Differs from the paper for a unit shorter than a codeword, which by equation (2) would always arrive:
    /// here it is a shortened codeword with the same number of correctable errors.
    ///
    /// A codeword that spans several parts costs about t²/2 steps per part.
    ///
    /// # Panics
    /// If `parts` is empty.
    pub fn unit_survival(&mut self, bits: u64, parts: &[Interval]) -> f64 {
        libm::exp(self.ln_unit_survival(bits, parts))
    }

    /// Like [`unit_survival`](Decoder::unit_survival), but the bits beyond the last whole codeword form a
    /// shortened codeword ([`BlockCode::coded`]) that must be decoded too.
    ///
    /// # Panics
    /// As [`unit_survival`](Decoder::unit_survival).
    pub fn message_survival(&mut self, bits: u64, parts: &[Interval]) -> f64 {
        libm::exp(self.ln_survival(bits, bits, parts))
    }

    /// The probability that such a unit is not decoded: equation (2), accurate even where it is far smaller
    /// than the rounding error of a survival near 1.
    ///
    /// # Panics
    /// As [`unit_survival`](Decoder::unit_survival).
    pub fn unit_error(&mut self, bits: u64, parts: &[Interval]) -> f64 {
        // The logarithm is at most zero; negating it would turn 0 into −0.
        libm::expm1(self.ln_unit_survival(bits, parts)).abs()
    }

    fn ln_unit_survival(&mut self, bits: u64, parts: &[Interval]) -> f64 {
        let n = u64::from(self.code.n());
        let coded = if bits < n { bits } else { bits - bits % n };
        self.ln_survival(bits, coded, parts)
    }

    /// ln of the probability that the codewords in the first `coded` of `bits` bits are decoded.
    fn ln_survival(&mut self, bits: u64, coded: u64, parts: &[Interval]) -> f64 {
        let (last, before) = parts.split_last().expect("a unit has at least one part");
        let (mut sum, mut at, mut share) = (0.0, 0, 0.0);
        for part in before {
            share += part.share;
            // Bit b's middle is before x if b < x − ½, which holds for the first ⌈x − ½⌉ bits. Negative
            // numbers become zero.
            let end = libm::ceil(share * bits as f64 - 0.5) as u64;
            sum += self.ln_decoded_until(end.min(coded), &mut at, coded, part.ber);
        }
        sum + self.ln_decoded_until(coded, &mut at, coded, last.ber)
    }

    /// ln of the probability that the codewords that end within bits `at` to `end` of `coded` are decoded, at
    /// the error rate `ber`. Advances `at`.
    fn ln_decoded_until(&mut self, end: u64, at: &mut u64, coded: u64, ber: f64) -> f64 {
        let n = u64::from(self.code.n());
        let mut sum = 0.0;
        while *at < end {
            let begun = *at % n;
            // The last codeword may be shortened.
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
