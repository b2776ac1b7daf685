//! How many bits of a codeword are wrong.
//!
//! Every sum here is one of positive terms, taken from the largest outwards, so that nothing cancels:
//! a probability of 1e-200 has as many right digits as one of 0.1. How many is decided by the largest
//! term, a difference of logarithms of factorials: about 12 for 255 bits, 10 for 65,535.

use alloc::vec;
use alloc::vec::Vec;

/// How many of `n` bits are wrong, if each is with probability `p`, independently.
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

    /// The likeliest number.
    fn mode(&self) -> u32 {
        // The cast cuts off the fraction; at p = 1 the product is n + 1.
        (((f64::from(self.n) + 1.0) * self.p) as u32).min(self.n)
    }

    /// The probability of exactly `i`.
    fn exactly(&self, i: u32) -> f64 {
        // Of no bits the probability is 1, also where that of one is 0 and its logarithm infinite.
        let power = |ln: f64, times: u32| if times == 0 { 0.0 } else { f64::from(times) * ln };
        let ln_bits = power(libm::log(self.p), i) + power(libm::log1p(-self.p), self.n - i);
        libm::exp(ln_choose(self.n, i) + ln_bits)
    }

    /// The probability of `i` + 1, from that of `i`.
    fn up(&self, i: u32, term: f64) -> f64 {
        term * (f64::from(self.n - i) / f64::from(i + 1) * (self.p / self.q))
    }

    /// The probability of `i` − 1, from that of `i`.
    fn down(&self, i: u32, term: f64) -> f64 {
        term * (f64::from(i) / f64::from(self.n - i + 1) * (self.q / self.p))
    }

    /// The probability of more than `t`.
    pub(super) fn more_than(&self, t: u32) -> f64 {
        if t >= self.n {
            return 0.0;
        }
        // What is left out when the terms have become so small is far less than rounding.
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

    /// The probabilities of 0, 1, 2, ... as far as there is room.
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

/// ln of the number of ways to choose `i` of `n`.
pub(super) fn ln_choose(n: u32, i: u32) -> f64 {
    let ln_factorial = |m: u32| libm::lgamma(f64::from(m) + 1.0);
    ln_factorial(n) - (ln_factorial(i) + ln_factorial(n - i))
}

/// The law of the number of wrong bits in a codeword, as far as a decoder cares: exact up to what it
/// can correct, and the rest in one.
#[derive(Clone, Debug)]
pub(super) struct Errors {
    /// The probability of each number that can be corrected.
    exactly: Vec<f64>,
    /// The probability of more.
    more: f64,
    /// Room for the law of the bits that come next.
    next: Vec<f64>,
}

impl Errors {
    /// Of a decoder that corrects up to `t`. No bit is wrong, since there is none.
    pub(super) fn new(t: u32) -> Errors {
        let room = vec![0.0; t as usize + 1];
        let mut errors = Errors { exactly: room.clone(), more: 0.0, next: room };
        errors.clear();
        errors
    }

    /// A codeword begins.
    pub(super) fn clear(&mut self) {
        self.exactly.fill(0.0);
        self.exactly[0] = 1.0;
        self.more = 0.0;
    }

    /// It goes on with `bits` bits, each wrong with probability `ber`.
    pub(super) fn add(&mut self, bits: u32, ber: f64) {
        let law = Binomial::new(bits, ber);
        law.fill(&mut self.next);
        // With i wrong before, more than t − i of the next are too many: t, then t − 1, and so on.
        let mut too_many = law.more_than(self.exactly.len() as u32 - 1);
        for (before, next) in self.exactly.iter().zip(self.next.iter().rev()) {
            self.more += before * too_many;
            too_many += next;
        }
        // From the top, where no other number still needs what is overwritten.
        for i in (0..self.exactly.len()).rev() {
            let ways = self.exactly[..=i].iter().rev().zip(&self.next);
            self.exactly[i] = ways.map(|(before, next)| before * next).sum();
        }
    }

    /// ln of the probability that the bits so far can be corrected.
    pub(super) fn ln_decoded(&self) -> f64 {
        // Whichever is the smaller says more.
        if self.more < 0.5 { libm::log1p(-self.more) } else { libm::log(self.exactly.iter().sum()) }
    }
}
