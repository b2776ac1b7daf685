//! Power sums of identifiers, and the identifiers in which two of them differ.
//!
//! The i-th power sum of a multiset X of identifiers is the sum of xⁱ over all x in X, modulo a prime. If R is part of S, the
//! sums of S minus those of R are the power sums d₁, d₂ ... of the m missing elements. Newton's identities
//!
//! ```text
//! k eₖ = eₖ₋₁ d₁ - eₖ₋₂ d₂ + ... ± e₀ dₖ,   e₀ = 1
//! ```
//!
//! give the polynomial xᵐ - e₁ xᵐ⁻¹ + e₂ xᵐ⁻² - ..., whose roots they are. The candidates that are roots are missing.

use alloc::vec;
use alloc::vec::Vec;

use crate::component::Quack;

/// The greatest threshold.
pub(super) const MOST: usize = Quack::MOST_SUMS;

/// The power sums of a multiset of identifiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PowerSums {
    /// The number of elements, modulo 2¹⁶.
    pub(super) count: u16,
    /// Those beyond the threshold are zero.
    pub(super) sums: [u32; MOST],
}

/// What is known of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Not missing.
    Arrived,
    /// Missing.
    Missing,
    /// Several candidates have this identifier and only some are missing. As many of them as are missing have this fate.
    Ambiguous,
}

/// What both ends have agreed on: the width of identifiers, and how many power sums they keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    bits: u32,
    /// The largest prime below 2^`bits` is that power minus this.
    gap: u64,
    threshold: usize,
}

impl Code {
    /// A code of a number of `bits` that is [valid](Code::is_valid) with at most [`MOST`] power sums.
    pub(super) fn new(bits: u8, threshold: u8) -> Code {
        let gap = match bits {
            16 => 15,
            24 => 3,
            _ => 5,
        };
        Code { bits: u32::from(bits), gap, threshold: usize::from(threshold) }
    }

    /// Whether identifiers may have this number of bits.
    pub(super) fn is_valid(bits: u8) -> bool {
        [16, 24, 32].contains(&bits)
    }

    fn prime(self) -> u64 {
        (1 << self.bits) - self.gap
    }

    /// `number` modulo the prime, without a division: the number is at most the square of the prime.
    fn reduce(self, number: u64) -> u64 {
        let mask = (1 << self.bits) - 1;
        let fold = |number: u64| (number >> self.bits) * self.gap + (number & mask);
        let folded = fold(fold(number));
        if folded >= self.prime() { folded - self.prime() } else { folded }
    }

    fn plus(self, one: u64, other: u64) -> u64 {
        self.reduce(one + other)
    }

    fn minus(self, one: u64, other: u64) -> u64 {
        self.reduce(one + self.prime() - other)
    }

    fn times(self, one: u64, other: u64) -> u64 {
        self.reduce(one * other)
    }

    /// By Fermat's little theorem; `number` is not zero.
    fn inverse(self, number: u64) -> u64 {
        let (mut power, mut square, mut exponent) = (1, number, self.prime() - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = self.times(power, square);
            }
            square = self.times(square, square);
            exponent >>= 1;
        }
        power
    }

    /// The identifier of something with this hash.
    pub(super) fn identifier(self, hash: u64) -> u32 {
        let upper = hash >> (64 - self.bits);
        (if upper >= self.prime() { upper - self.prime() } else { upper }) as u32
    }

    /// Adds an element.
    pub(super) fn add(self, set: &mut PowerSums, id: u32) {
        set.count = set.count.wrapping_add(1);
        self.change(set, id, Code::plus);
    }

    /// Removes an element.
    pub(super) fn remove(self, set: &mut PowerSums, id: u32) {
        set.count = set.count.wrapping_sub(1);
        self.change(set, id, Code::minus);
    }

    fn change(self, set: &mut PowerSums, id: u32, with: impl Fn(Code, u64, u64) -> u64) {
        let mut power = u64::from(id);
        for sum in &mut set.sums[..self.threshold] {
            *sum = with(self, u64::from(*sum), power) as u32;
            power = self.times(power, u64::from(id));
        }
    }

    /// The fate of each candidate, given the sums of what was sent and of what has arrived. `None` if more are missing than
    /// there are power sums, or those that are missing are not all among the candidates.
    pub(super) fn fates(
        self,
        sent: &PowerSums,
        arrived: &PowerSums,
        candidates: &[u32],
    ) -> Option<Vec<Fate>> {
        let missing = usize::from(sent.count.wrapping_sub(arrived.count));
        if missing > self.threshold {
            return None;
        }
        let both = sent.sums.iter().zip(&arrived.sums).take(self.threshold);
        let sums: Vec<u64> = both.map(|(&sent, &arrived)| self.minus(sent.into(), arrived.into())).collect();
        let mut polynomial = self.polynomial(&sums[..missing]);
        // With fewer missing than sums, the others must agree, too.
        let mut left = sums;
        let mut fates = vec![Fate::Arrived; candidates.len()];
        for (index, &candidate) in candidates.iter().enumerate() {
            if polynomial.len() == 1 {
                break;
            }
            let mut roots = 0;
            while let Some(quotient) = self.divide(&polynomial, candidate.into()) {
                (polynomial, roots) = (quotient, roots + 1);
            }
            if roots == 0 {
                continue;
            }
            let equal = |&place: &usize| candidates[place] == candidate;
            let copies = (index..candidates.len()).filter(equal).count();
            let fate = if copies == roots { Fate::Missing } else { Fate::Ambiguous };
            (index..candidates.len()).filter(equal).take(roots).for_each(|place| fates[place] = fate);
            let mut power = u64::from(candidate);
            for sum in &mut left {
                *sum = self.minus(*sum, self.times(power, roots as u64));
                power = self.times(power, candidate.into());
            }
            if copies < roots {
                return None;
            }
        }
        let is_complete = polynomial.len() == 1 && left.iter().all(|&sum| sum == 0);
        is_complete.then_some(fates)
    }

    /// The coefficients of the polynomial with these power sums of its roots, from the highest power to the constant.
    fn polynomial(self, sums: &[u64]) -> Vec<u64> {
        let mut elementary = vec![1];
        for k in 1..=sums.len() {
            let total = (1..=k).fold(0, |total, i| {
                let term = self.times(elementary[k - i], sums[i - 1]);
                if i % 2 == 1 { self.plus(total, term) } else { self.minus(total, term) }
            });
            elementary.push(self.times(total, self.inverse(k as u64)));
        }
        let signed = |(k, coefficient): (usize, u64)| match k % 2 {
            0 => coefficient,
            _ => self.minus(0, coefficient),
        };
        elementary.into_iter().enumerate().map(signed).collect()
    }

    /// The polynomial divided by x - `root`; `None` if `root` is none of its roots.
    fn divide(self, polynomial: &[u64], root: u64) -> Option<Vec<u64>> {
        let (&last, others) = polynomial.split_last().filter(|(_, others)| !others.is_empty())?;
        let mut carry = 0;
        let quotient: Vec<u64> = others
            .iter()
            .map(|&coefficient| {
                carry = self.plus(coefficient, self.times(carry, root));
                carry
            })
            .collect();
        (self.plus(last, self.times(carry, root)) == 0).then_some(quotient)
    }
}
