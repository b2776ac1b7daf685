//! Distribution of the number of bit errors in a codeword.
//!
//! All sums here have positive terms and start at the largest, so there is no cancellation: a probability of
//! 1e-200 has as many correct digits as one of 0.1. The precision is limited by the largest term, a
//! difference of logarithms of factorials: about 12 digits for 255 bits, 10 for 65,535.

use alloc::vec;
use alloc::vec::Vec;

/// Number of errors among `n` bits, each with probability `p`, independently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binomial {
    n: u32,
    p: f64,
    q: f64,
}

impl Binomial {
    pub(super) fn new(n: u32, p: f64) -> Binomial {
        debug_assert!((0.0..=1.0).contains(&p), "{p} is not a probability");
        Binomial { n, p, q: 1.0 - p }
    }

    /// The most probable number.
    fn mode(&self) -> u32 {
        // The cast truncates; for p = 1 the product is n + 1.
        (((f64::from(self.n) + 1.0) * self.p) as u32).min(self.n)
    }

    /// P(X = `i`).
    fn exactly(&self, i: u32) -> f64 {
        // For zero bits the probability is 1, even where the logarithm of p or 1 − p is infinite.
        let power = |ln: f64, times: u32| if times == 0 { 0.0 } else { f64::from(times) * ln };
        let ln_bits = power(libm::log(self.p), i) + power(libm::log1p(-self.p), self.n - i);
        libm::exp(ln_choose(self.n, i) + ln_bits)
    }

    /// P(X = `i` + 1), given P(X = `i`).
    fn up(&self, i: u32, term: f64) -> f64 {
        term * (f64::from(self.n - i) / f64::from(i + 1) * (self.p / self.q))
    }

    /// P(X = `i` − 1), given P(X = `i`).
    fn down(&self, i: u32, term: f64) -> f64 {
        term * (f64::from(i) / f64::from(self.n - i + 1) * (self.q / self.p))
    }

    /// P(X > `t`).
    pub(super) fn more_than(&self, t: u32) -> f64 {
        if t >= self.n {
            return 0.0;
        }
        // Terms below this relative size are negligible compared with rounding.
        const NEGLIGIBLE: f64 = 1e-20;
        let start = self.mode().max(t + 1);
        let largest = self.exactly(start);
        let (mut sum, mut term) = (largest, largest);
        for i in start..self.n {
            term = self.up(i, term);
            sum += term;
            if term <= sum * NEGLIGIBLE {
                break;
            }
        }
        term = largest;
        for i in (t + 2..=start).rev() {
            term = self.down(i, term);
            sum += term;
            if term <= sum * NEGLIGIBLE {
                break;
            }
        }
        sum.min(1.0)
    }

    /// Writes P(X = 0), P(X = 1), ... to `terms`.
    fn fill(&self, terms: &mut [f64]) {
        terms.fill(0.0);
        let last = (terms.len() as u32 - 1).min(self.n);
        let start = self.mode().min(last);
        let largest = self.exactly(start);
        terms[start as usize] = largest;
        let mut term = largest;
        for i in start..last {
            term = self.up(i, term);
            terms[i as usize + 1] = term;
        }
        term = largest;
        for i in (1..=start).rev() {
            term = self.down(i, term);
            terms[i as usize - 1] = term;
        }
    }
}

/// ln of the binomial coefficient C(`n`, `i`).
pub(super) fn ln_choose(n: u32, i: u32) -> f64 {
    let ln_factorial = |m: u32| libm::lgamma(f64::from(m) + 1.0);
    ln_factorial(n) - (ln_factorial(i) + ln_factorial(n - i))
}

/// Distribution of the number of bit errors in a codeword: exact up to the number that the decoder corrects,
/// with all larger numbers combined.
#[derive(Clone, Debug)]
pub(super) struct Errors {
    /// The probability of each correctable number.
    exactly: Vec<f64>,
    /// The probability of a larger number.
    more: f64,
    /// Buffer for the distribution of the bits to add.
    next: Vec<f64>,
}

impl Errors {
    /// For a decoder that corrects up to `t` errors; an empty codeword has none.
    pub(super) fn new(t: u32) -> Errors {
        let room = vec![0.0; t as usize + 1];
        let mut errors = Errors { exactly: room.clone(), more: 0.0, next: room };
        errors.clear();
        errors
    }

    /// Starts a codeword.
    pub(super) fn clear(&mut self) {
        self.exactly.fill(0.0);
        self.exactly[0] = 1.0;
        self.more = 0.0;
    }

    /// Adds `bits` bits, each in error with probability `ber`.
    pub(super) fn add(&mut self, bits: u32, ber: f64) {
        let law = Binomial::new(bits, ber);
        law.fill(&mut self.next);
        // After i errors, more than t − i among the next bits are too many: t, then t − 1, and so on.
        let mut too_many = law.more_than(self.exactly.len() as u32 - 1);
        for (before, next) in self.exactly.iter().zip(self.next.iter().rev()) {
            self.more += before * too_many;
            too_many += next;
        }
        // From the top, so that no entry is overwritten while it is still needed.
        for i in (0..self.exactly.len()).rev() {
            let ways = self.exactly[..=i].iter().rev().zip(&self.next);
            self.exactly[i] = ways.map(|(before, next)| before * next).sum();
        }
    }

    /// ln of the probability that the bits so far can be corrected.
    pub(super) fn ln_decoded(&self) -> f64 {
        // Uses the smaller of the two probabilities for precision.
        if self.more < 0.5 { libm::log1p(-self.more) } else { libm::log(self.exactly.iter().sum()) }
    }
}
