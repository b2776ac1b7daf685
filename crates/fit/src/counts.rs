//! The likelihood of packets counted per interval, whose order within an interval is unknown.
//!
//! The packets of an interval are evenly spaced, and the channel may change its state between any two. With the
//! transition matrix T between packets and the diagonal matrix E(z) of 1 − p + p z, where p is the loss probability in
//! each state, the probability of k losses among n packets, by the states at the first and the last packet, is the
//! coefficient of zᵏ in
//!
//! > A(z) = E(z) (T E(z))ⁿ⁻¹.
//!
//! Cauchy's integral over a circle of radius r, as a discrete Fourier transform, has all coefficients from the same
//! powers (Abate and Whitt 1992), so intervals with equal spacing share them. Its rounding error is relative to
//! A(r) / rᵏ, at r = 1 to a probability of one. Less probable counts take the radius of the saddle point, where A(r) / rᵏ is
//! least.
//!
//! A power of the 2×2 matrix C = T E is v + u (C − s) with the mean s of the eigenvalues and (C − s)² = δ, so that powers are
//! those of pairs (v, u), and need neither eigenvectors nor roots.

use core::ops::{Add, Mul};

use num_complex::Complex64;

use crate::likelihood::{Pair, TwoState, apply};

/// Intervals share powers if the time between their packets is longer by at most this share.
const TOLERANCE: f64 = 0.02;

/// Coefficients below this share of A(r) / rᵏ, and probabilities below it, are computed at the saddle point.
const LEAST: f64 = 1e-7;

/// Bound of the share of the coefficients beyond the points of the transform.
const ALIASED: f64 = 1e-13;

/// With more coefficients than this, a fast Fourier transform is faster than a sum for each.
const FEW: usize = 12;

/// Complex numbers that are computed together.
const LANES: usize = 4;

/// Limit of the points at a saddle point. The counts of such an interval lie well within, see `Losses::of_counts`.
const MOST_POINTS: u64 = 4096;

/// The intervals of a record, prepared for the likelihood.
#[derive(Debug)]
pub(crate) struct Counted {
    /// Seconds from the last packet of the interval before to the first packet, and the index of the kind.
    intervals: Vec<(f64, usize)>,
    /// The different intervals, in the order of the groups.
    kinds: Vec<Kind>,
    groups: Vec<Group>,
    /// The logarithm of the number of orders of all packets, left out as for single packets.
    orders: f64,
}

/// Packets that are missing at the end of an interval for less than this share of it may be late, not lost.
const LATE: f64 = 0.1;

/// The starts of intervals, and their lengths, packets sent and packets lost, without empty ones, of a record whose intervals
/// count the packets of a constant rate up to the last arrival.
///
/// In an outage over the end of an interval, the last packet that the interval counts arrived. The packets due after it are the
/// first ones counted next, and all are lost. If they are few, they may be late, and nothing is known of the end.
pub(crate) fn until_arrivals(
    times: &[f64],
    counts: &[(f64, u32, u32)],
    spacing: f64,
) -> Vec<(f64, f64, u32, u32)> {
    let mut pieces = Vec::with_capacity(3 * counts.len());
    // Packets due before the interval that are not counted yet.
    let mut behind = 0.0;
    for (&begin, &(length, sent, lost)) in times.iter().zip(counts) {
        let few = 1.0 + LATE * length / spacing;
        let ahead = libm::round(behind + length / spacing - f64::from(sent)).max(0.0);
        if sent > 0 {
            let outage = behind > few && behind <= f64::from(lost) + 1.0;
            let overdue = if outage { (behind as u32).min(lost) } else { 0 };
            let (rest, missing) = (sent - overdue, lost - overdue);
            let early = f64::from(overdue) * spacing;
            pieces.push((begin - early, early, overdue, overdue));
            let between = f64::min(spacing, length / (f64::from(rest) + ahead).max(1.0));
            let arrived = u32::from(rest > missing && ahead > few);
            let body = f64::from(rest - arrived) * between;
            pieces.push((begin, body, rest - arrived, missing));
            pieces.push((begin + body, between, arrived, 0));
        }
        behind = ahead;
    }
    pieces.retain(|&(_, _, sent, _)| sent > 0);
    pieces
}

/// Intervals that differ only in their gaps.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    /// Seconds between packets.
    spacing: f64,
    sent: u32,
    lost: u32,
}

/// Kinds with equal spacing.
#[derive(Debug)]
struct Group {
    first: usize,
    end: usize,
    circle: Circle,
}

/// Probability of an interval's losses with the states at its ends, up to a factor.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    /// By the state at the last packet, then at the first.
    matrix: [Pair; 2],
    /// The logarithm of the factor left out.
    scale: f64,
    /// Results below this sum are inaccurate.
    least: f64,
}

impl Counted {
    /// Prepares the intervals, given by their starts, lengths, packets sent and packets lost.
    pub(crate) fn new(known: &[(f64, f64, u32, u32)]) -> Counted {
        let spacings = shared_spacings(known.iter().map(|&(_, length, sent, _)| length / f64::from(sent)));
        // Time of the last packet, and spacing before it.
        let mut last: Option<(f64, f64)> = None;
        let mut orders = 0.0;
        let ln_factorial = |count: u32| libm::lgamma(f64::from(count) + 1.0);
        let mut all: Vec<(f64, Kind)> = Vec::with_capacity(known.len());
        for (&(begin, _, sent, lost), spacing) in known.iter().zip(spacings) {
            // Packets of overlapping intervals are as far apart as others, so that the state may change.
            let gap = last.map_or(0.0, |(last, before)| f64::max(begin - last, spacing.min(before)));
            last = Some((begin + f64::from(sent - 1) * spacing, spacing));
            orders += ln_factorial(sent) - ln_factorial(lost) - ln_factorial(sent - lost);
            all.push((gap, Kind { spacing, sent, lost }));
        }
        let key = |kind: &Kind| (kind.spacing.to_bits(), kind.sent, kind.lost);
        let mut kinds: Vec<Kind> = all.iter().map(|&(_, kind)| kind).collect();
        kinds.sort_by_key(key);
        kinds.dedup();
        let place = |kind: &Kind| kinds.binary_search_by_key(&key(kind), key).expect("every kind is there");
        let intervals = all.iter().map(|(gap, kind)| (*gap, place(kind))).collect();
        let mut groups = Vec::new();
        let mut first = 0;
        for group in kinds.chunk_by(|a, b| a.spacing == b.spacing) {
            let mixed = || group.iter().filter(|kind| kind.lost > 0 && kind.lost < kind.sent);
            let most_sent = mixed().map(|kind| u64::from(kind.sent)).max().unwrap_or(0);
            let most_lost = mixed().map(|kind| u64::from(kind.lost)).max().unwrap_or(0);
            // Either all coefficients, or a circle so small that those beyond vanish.
            let (points, radius) = match most_sent < 3 * most_lost + 32 {
                true => (most_sent + 1, 1.0),
                false => {
                    let points = 3 * most_lost + 32;
                    (points, libm::pow(ALIASED, 1.0 / points as f64))
                }
            };
            let circle = Circle::new(points, radius, mixed().count() > FEW);
            groups.push(Group { first, end: first + group.len(), circle });
            first += group.len();
        }
        Counted { intervals, kinds, groups, orders }
    }

    /// The log-likelihood, up to the number of orders of the packets; minus infinity for impossible records.
    pub(crate) fn log_likelihood(&self, chain: &TwoState) -> f64 {
        let mut steps = Vec::with_capacity(self.kinds.len());
        for group in &self.groups {
            steps_of(chain, &self.kinds[group.first..group.end], &group.circle, &mut steps);
        }
        let mut state = chain.stationary();
        let mut logarithm = -self.orders;
        let (mut before, mut changes) = (0.0, [0.0; 2]);
        for &(gap, kind) in &self.intervals {
            // Most gaps are equal but for rounding.
            if (gap - before).abs() > 1e-9 * before {
                (before, changes) = (gap, chain.changes(gap));
            }
            let [leave_good, leave_bad] = changes;
            state = [
                (1.0 - leave_good) * state[0] + leave_bad * state[1],
                leave_good * state[0] + (1.0 - leave_bad) * state[1],
            ];
            let step: &mut Step = &mut steps[kind];
            let mut next = apply(&step.matrix, state);
            if next[0] + next[1] < step.least {
                *step = at_saddle_point(chain, &self.kinds[kind]);
                next = apply(&step.matrix, state);
            }
            let sum = next[0] + next[1];
            // Also for NaN.
            if sum.is_nan() || sum <= 0.0 {
                return f64::NEG_INFINITY;
            }
            state = [next[0] / sum, next[1] / sum];
            logarithm += libm::log(sum) + step.scale;
        }
        logarithm
    }
}

/// The spacing of each interval, rounded down to one of a few.
fn shared_spacings(spacings: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut shared: Vec<f64> = spacings.collect();
    let mut order: Vec<usize> = (0..shared.len()).collect();
    order.sort_by(|&a, &b| shared[a].total_cmp(&shared[b]));
    let mut least = 0.0;
    for index in order {
        if shared[index] > (1.0 + TOLERANCE) * least {
            least = shared[index];
        }
        shared[index] = least;
    }
    shared
}

/// Points of a discrete Fourier transform on a circle.
#[derive(Debug)]
struct Circle {
    /// The logarithm of the radius.
    ln_radius: f64,
    /// The points of the upper half-plane and the real axis; the others have conjugate values.
    points: Vec<Complex64>,
    /// All roots of unity of the order of the number of points.
    roots: Vec<Complex64>,
}

impl Circle {
    /// A circle with at least `points` points; for `fast` transforms, their number is a power of two.
    fn new(points: u64, radius: f64, fast: bool) -> Circle {
        let order =
            if fast { points.next_power_of_two() } else { points.next_multiple_of(2) }.max(2) as usize;
        let roots: Vec<Complex64> = (0..order)
            .map(|index| {
                let (sin, cos) = libm::sincos(core::f64::consts::TAU * index as f64 / order as f64);
                Complex64::new(cos, sin)
            })
            .collect();
        let points = roots[..=order / 2].iter().map(|root| root * radius).collect();
        Circle { ln_radius: libm::log(radius), points, roots }
    }

    fn is_fast(&self) -> bool {
        self.roots.len().is_power_of_two()
    }

    /// The coefficients of zᵏ of functions given at the points, times rᵏ.
    fn coefficients(&self, k: u32, values: &[[Complex64; 3]]) -> [f64; 3] {
        let order = self.roots.len();
        let step = k as usize % order;
        let mut sums = [0.0; 3];
        let mut place = 0;
        for (index, value) in values.iter().enumerate() {
            let root = self.roots[place];
            // The points on the real axis have no conjugates.
            let weight = if index == 0 || index == order / 2 { 1.0 } else { 2.0 };
            for (sum, value) in sums.iter_mut().zip(value) {
                *sum += weight * (value.re * root.re + value.im * root.im);
            }
            place += step;
            if place >= order {
                place -= order;
            }
        }
        sums.map(|sum| sum / order as f64)
    }

    /// The coefficients of all powers.
    fn all_coefficients(&self, values: &[[Complex64; 3]]) -> Vec<[f64; 3]> {
        let order = self.roots.len();
        let times_i = |value: Complex64| Complex64::new(-value.im, value.re);
        // The coefficients are real, so one transform has those of two functions.
        let mut pair = vec![Complex64::ZERO; order];
        let mut single = pair.clone();
        for (index, [first, second, third]) in values.iter().enumerate() {
            pair[index] = first + times_i(*second);
            single[index] = *third;
            if index > 0 && index < order / 2 {
                pair[order - index] = first.conj() + times_i(second.conj());
                single[order - index] = third.conj();
            }
        }
        self.transform(&mut pair);
        self.transform(&mut single);
        let over = 1.0 / order as f64;
        pair.iter()
            .zip(&single)
            .map(|(pair, single)| [pair.re * over, pair.im * over, single.re * over])
            .collect()
    }

    /// The discrete Fourier transform in place (Cooley and Tukey 1965).
    fn transform(&self, values: &mut [Complex64]) {
        let order = values.len();
        let shift = usize::BITS - order.ilog2();
        for index in 1..order - 1 {
            let reversed = index.reverse_bits() >> shift;
            if index < reversed {
                values.swap(index, reversed);
            }
        }
        let mut half = 1;
        while half < order {
            for block in values.chunks_exact_mut(2 * half) {
                let (low, high) = block.split_at_mut(half);
                let roots = self.roots.iter().step_by(order / (2 * half));
                for ((low, high), root) in low.iter_mut().zip(high).zip(roots) {
                    let turned = *high * root.conj();
                    (*low, *high) = (*low + turned, *low - turned);
                }
            }
            half *= 2;
        }
    }
}

/// Complex numbers in an arrangement that compilers turn into vector instructions.
#[derive(Clone, Copy, Debug)]
struct Lanes {
    re: [f64; LANES],
    im: [f64; LANES],
}

impl Lanes {
    const ONE: Lanes = Lanes { re: [1.0; LANES], im: [0.0; LANES] };
    const ZERO: Lanes = Lanes { re: [0.0; LANES], im: [0.0; LANES] };

    /// At most `LANES` numbers, and zeros.
    fn of(numbers: &[Complex64]) -> Lanes {
        let mut lanes = Lanes::ZERO;
        for (lane, number) in numbers.iter().enumerate() {
            (lanes.re[lane], lanes.im[lane]) = (number.re, number.im);
        }
        lanes
    }

    fn at(&self, lane: usize) -> Complex64 {
        Complex64::new(self.re[lane], self.im[lane])
    }

    /// `self · factor + more`.
    fn scaled(self, factor: f64, more: f64) -> Lanes {
        let mut scaled = self;
        for lane in 0..LANES {
            scaled.re[lane] = self.re[lane] * factor + more;
            scaled.im[lane] = self.im[lane] * factor;
        }
        scaled
    }
}

impl Add for Lanes {
    type Output = Lanes;

    fn add(self, other: Lanes) -> Lanes {
        let mut sum = self;
        for lane in 0..LANES {
            sum.re[lane] += other.re[lane];
            sum.im[lane] += other.im[lane];
        }
        sum
    }
}

impl Mul for Lanes {
    type Output = Lanes;

    fn mul(self, other: Lanes) -> Lanes {
        let mut product = self;
        for lane in 0..LANES {
            product.re[lane] = self.re[lane] * other.re[lane] - self.im[lane] * other.im[lane];
            product.im[lane] = self.re[lane] * other.im[lane] + self.im[lane] * other.re[lane];
        }
        product
    }
}

/// The chain between packets of a spacing, at several points z.
struct At {
    /// 1 − p + p z in the good and in the bad state, over the scale.
    emissions: [Lanes; 2],
    /// Mean of the eigenvalues of T E.
    middle: Lanes,
    /// Half the difference of its diagonal elements.
    half_apart: Lanes,
    /// Square of half the difference of the eigenvalues.
    delta: Lanes,
    /// The power so far: (v, u).
    power: [Lanes; 2],
}

impl At {
    fn new(chain: &TwoState, changes: Pair, z: Lanes, scale: f64) -> At {
        let good = z.scaled(chain.loss_good / scale, (1.0 - chain.loss_good) / scale);
        let bad = z.scaled(chain.loss_bad / scale, (1.0 - chain.loss_bad) / scale);
        let half_good = good.scaled((1.0 - changes[0]) / 2.0, 0.0);
        let half_bad = bad.scaled((1.0 - changes[1]) / 2.0, 0.0);
        let half_apart = half_good + half_bad.scaled(-1.0, 0.0);
        At {
            emissions: [good, bad],
            middle: half_good + half_bad,
            half_apart,
            delta: half_apart * half_apart + (good * bad).scaled(changes[0] * changes[1], 0.0),
            power: [Lanes::ONE, Lanes::ZERO],
        }
    }

    /// The product of two powers.
    fn product(&self, a: [Lanes; 2], b: [Lanes; 2]) -> [Lanes; 2] {
        [a[0] * b[0] + self.delta * (a[1] * b[1]), a[0] * b[1] + a[1] * b[0]]
    }

    /// Multiplies the power by another `exponent` factors.
    fn raise(&mut self, exponent: u32) {
        if exponent == 0 {
            return;
        }
        let mut power = [self.middle, Lanes::ONE];
        for bit in (0..exponent.ilog2()).rev() {
            let [v, u] = power;
            let both = u * v;
            power = [v * v + self.delta * (u * u), both + both];
            if exponent >> bit & 1 == 1 {
                let [v, u] = power;
                power = [v * self.middle + self.delta * u, v + u * self.middle];
            }
        }
        self.power = self.product(self.power, power);
    }

    /// A(z) from good to good and from bad to bad, and the common factor of the two others: A(z) from good to bad over the
    /// probability of leaving the good state, and the reverse.
    fn matrix(&self) -> [Lanes; 3] {
        let [v, u] = self.power;
        let [good, bad] = self.emissions;
        let apart = u * self.half_apart;
        [(v + apart) * good, (v + apart.scaled(-1.0, 0.0)) * bad, u * good * bad]
    }
}

/// The chain at all points of a circle.
struct Course {
    points: Vec<At>,
    count: usize,
}

impl Course {
    fn new(chain: &TwoState, changes: Pair, circle: &Circle, scale: f64) -> Course {
        let points = circle.points.chunks(LANES).map(|z| At::new(chain, changes, Lanes::of(z), scale));
        Course { points: points.collect(), count: circle.points.len() }
    }

    fn raise(&mut self, exponent: u32) {
        self.points.iter_mut().for_each(|at| at.raise(exponent));
    }

    /// [`At::matrix`] at each point.
    fn matrices(&self) -> Vec<[Complex64; 3]> {
        let mut matrices = Vec::with_capacity(self.points.len() * LANES);
        for at in &self.points {
            let [good, bad, across] = at.matrix();
            matrices.extend((0..LANES).map(|lane| [good.at(lane), bad.at(lane), across.at(lane)]));
        }
        matrices.truncate(self.count);
        matrices
    }
}

/// Adds the steps of kinds with equal spacing, in order of the packets sent.
fn steps_of(chain: &TwoState, kinds: &[Kind], circle: &Circle, steps: &mut Vec<Step>) {
    let changes = chain.changes(kinds[0].spacing);
    let mut course = None;
    let mut values = Vec::new();
    let mut powers = 0;
    for of_sent in kinds.chunk_by(|a, b| a.sent == b.sent) {
        let sent = of_sent[0].sent;
        if of_sent.iter().any(|kind| kind.lost > 0 && kind.lost < sent) {
            let course = course.get_or_insert_with(|| Course::new(chain, changes, circle, 1.0));
            course.raise(sent - 1 - powers);
            powers = sent - 1;
            values = course.matrices();
        }
        let all = if circle.is_fast() && of_sent.len() > FEW {
            circle.all_coefficients(&values)
        } else {
            Vec::new()
        };
        steps.extend(of_sent.iter().map(|kind| match kind.lost {
            0 => of_equal_outcomes(chain, changes, kind, |loss| 1.0 - loss),
            lost if lost == sent => of_equal_outcomes(chain, changes, kind, |loss| loss),
            lost => {
                let found = all.get(lost as usize).copied();
                let found = found.unwrap_or_else(|| circle.coefficients(lost, &values));
                step(changes, circle.ln_radius, lost, found, &values[0], 0.0)
            }
        }));
    }
}

/// The step with `lost` losses, given their coefficients of A(z) times a power of the radius, A(z) at the radius, and the
/// logarithm of a factor left out of both.
fn step(
    changes: Pair,
    ln_radius: f64,
    lost: u32,
    coefficients: [f64; 3],
    at_radius: &[Complex64; 3],
    scale: f64,
) -> Step {
    let matrix = |[good, bad, across]: [f64; 3]| {
        // Rounding can give negative values.
        let [good, bad, across] = [good.max(0.0), bad.max(0.0), across.max(0.0)];
        [[good, changes[1] * across], [changes[0] * across, bad]]
    };
    let [[gg, bg], [gb, bb]] = matrix(at_radius.map(|value| value.re));
    // Coefficients beyond the points are wrongly added, times rᵏ and at most `ALIASED`.
    let shrunk = f64::from(lost) * ln_radius;
    Step {
        matrix: matrix(coefficients),
        scale: scale - shrunk,
        least: LEAST * gg.max(bg).max(gb).max(bb).max(libm::exp(shrunk)),
    }
}

/// The step of an interval whose packets have the same fate, of probability `emission` of the loss of each state.
fn of_equal_outcomes(chain: &TwoState, changes: Pair, kind: &Kind, emission: fn(f64) -> f64) -> Step {
    let emissions = [emission(chain.loss_good), emission(chain.loss_bad)];
    let one = [
        [(1.0 - changes[0]) * emissions[0], changes[1] * emissions[0]],
        [changes[0] * emissions[1], (1.0 - changes[1]) * emissions[1]],
    ];
    let mut step = Step { matrix: [[emissions[0], 0.0], [0.0, emissions[1]]], scale: 0.0, least: 0.0 };
    // All terms are positive, so powers are accurate whatever their size.
    let mut power = Step { matrix: one, scale: 0.0, least: 0.0 };
    let mut exponent = kind.sent - 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            step = power.after(&step);
        }
        exponent >>= 1;
        if exponent > 0 {
            power = power.after(&power);
        }
    }
    step
}

impl Step {
    /// The step `before` followed by this one.
    fn after(&self, before: &Step) -> Step {
        let columns =
            [0, 1].map(|column| apply(&self.matrix, [before.matrix[0][column], before.matrix[1][column]]));
        let most = columns[0][0].max(columns[0][1]).max(columns[1][0]).max(columns[1][1]);
        let over = if most > 0.0 { 1.0 / most } else { 1.0 };
        let scale = if most > 0.0 { libm::log(most) } else { 0.0 };
        Step {
            matrix: [0, 1].map(|row| [columns[0][row] * over, columns[1][row] * over]),
            scale: self.scale + before.scale + scale,
            least: 0.0,
        }
    }
}

/// The step of an interval, some of whose packets are lost, accurate whatever its probability.
fn at_saddle_point(chain: &TwoState, kind: &Kind) -> Step {
    let changes = chain.changes(kind.spacing);
    let radius = saddle_point(chain, changes, kind);
    let points = (u64::from(kind.sent) + 1).min(MOST_POINTS.max(3 * u64::from(kind.lost) + 32));
    let circle = Circle::new(points, radius, false);
    // The largest eigenvalue and emission at the radius, so that powers neither vanish nor overflow.
    let (largest, _) = eigenvalue(chain, changes, radius);
    let mut course = Course::new(chain, changes, &circle, largest);
    course.raise(kind.sent - 1);
    let values = course.matrices();
    let scale = f64::from(kind.sent) * libm::log(largest);
    let found = circle.coefficients(kind.lost, &values);
    Step { least: 0.0, ..step(changes, circle.ln_radius, kind.lost, found, &values[0], scale) }
}

/// The radius at which the mean number of losses, weighted by powers of the radius, is that of the interval.
fn saddle_point(chain: &TwoState, changes: Pair, kind: &Kind) -> f64 {
    let share = f64::from(kind.lost) / f64::from(kind.sent);
    let (mut low, mut high) = (-60.0, 60.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        let (_, slope) = eigenvalue(chain, changes, libm::exp(middle));
        if slope < share { low = middle } else { high = middle }
    }
    libm::exp((low + high) / 2.0)
}

/// The largest eigenvalue of T E at a radius, and the derivative of its logarithm by the logarithm of the radius.
fn eigenvalue(chain: &TwoState, changes: Pair, radius: f64) -> (f64, f64) {
    let losses = [chain.loss_good, chain.loss_bad];
    let emissions = losses.map(|loss| 1.0 - loss + loss * radius);
    let stay = [0, 1].map(|state| (1.0 - changes[state]) * emissions[state]);
    let half_apart = (stay[0] - stay[1]) / 2.0;
    let root = libm::sqrt(half_apart * half_apart + changes[0] * changes[1] * emissions[0] * emissions[1]);
    let largest = (stay[0] + stay[1]) / 2.0 + root;
    // The share of time in each state, by the left and right eigenvectors of the largest eigenvalue.
    let bad = if root > 0.0 { (1.0 - half_apart / root) / 2.0 } else { 0.5 };
    let slopes = [0, 1].map(|state| losses[state] * radius / emissions[state]);
    (largest, (1.0 - bad) * slopes[0] + bad * slopes[1])
}

#[cfg(test)]
mod tests {
    use lasthop_base::{Stream, Streams};

    use super::*;
    use crate::evidence::Evidence;
    use crate::losses::Losses;

    fn random_chain(stream: &mut Stream) -> TwoState {
        let mut log_uniform = |least: f64, most: f64| least * libm::pow(most / least, stream.uniform());
        TwoState {
            good: log_uniform(0.01, 100.0),
            bad: log_uniform(0.001, 10.0),
            loss_good: [0.0, log_uniform(1e-6, 0.2)][usize::from(log_uniform(0.1, 10.0) > 0.3)],
            loss_bad: [1.0, log_uniform(0.05, 0.999)][usize::from(log_uniform(0.1, 10.0) > 0.3)],
        }
    }

    /// The probabilities of every number of losses among `sent` packets, by recursion over the packets: all terms are
    /// positive. By the state at the last packet, for the state distribution `first` at the first one.
    fn by_recursion(chain: &TwoState, spacing: f64, first: Pair, sent: u32) -> Vec<Pair> {
        let [leave_good, leave_bad] = chain.changes(spacing);
        let losses = [chain.loss_good, chain.loss_bad];
        let mut found = vec![[0.0; 2]; sent as usize + 1];
        found[0] = first;
        for packet in 0..sent as usize {
            for count in (0..=packet + 1).rev() {
                let moved = |[good, bad]: Pair| match packet {
                    0 => [good, bad],
                    _ => [
                        good * (1.0 - leave_good) + bad * leave_bad,
                        good * leave_good + bad * (1.0 - leave_bad),
                    ],
                };
                let received = moved(found[count]);
                let lost = if count > 0 { moved(found[count - 1]) } else { [0.0; 2] };
                found[count] =
                    [0, 1].map(|state| received[state] * (1.0 - losses[state]) + lost[state] * losses[state]);
            }
        }
        found
    }

    /// The log-likelihood of intervals by recursion over all packets.
    fn recursive(chain: &TwoState, intervals: &[(f64, f64, u32, u32)]) -> f64 {
        let (mut state, mut logarithm, mut last) = (chain.stationary(), 0.0, None);
        for &(begin, length, sent, lost) in intervals {
            let spacing = length / f64::from(sent);
            let [leave_good, leave_bad] = chain.changes(last.map_or(0.0, |last| begin - last));
            state = [
                state[0] * (1.0 - leave_good) + state[1] * leave_bad,
                state[0] * leave_good + state[1] * (1.0 - leave_bad),
            ];
            last = Some(begin + f64::from(sent - 1) * spacing);
            let [good, bad] = by_recursion(chain, spacing, state, sent)[lost as usize];
            logarithm += libm::log(good + bad);
            state = [good / (good + bad), bad / (good + bad)];
            logarithm -= [sent, lost, sent - lost]
                .map(|count| libm::lgamma(f64::from(count) + 1.0))
                .into_iter()
                .reduce(|a, b| a - b)
                .expect("three of them");
        }
        logarithm
    }

    fn record(intervals: &[(f64, f64, u32, u32)]) -> Losses {
        let counts = intervals.iter().map(|&(_, length, sent, lost)| (length, sent, lost));
        let begins = intervals.iter().map(|&(begin, ..)| begin);
        Losses::of_counts(begins.collect(), counts.collect()).expect("valid counts")
    }

    /// The likelihood of counts is the sum of those of all sequences of outcomes with these counts.
    #[test]
    fn equals_the_sum_over_all_orders() {
        let mut stream = Streams::new(1, 0).stream("counts");
        for _ in 0..60 {
            let chain = random_chain(&mut stream);
            let mut begin = 0.0;
            let intervals: Vec<_> = (0..4)
                .map(|_| {
                    begin += [0.0, 0.0, 0.7][stream.below(3) as usize];
                    let (sent, length) =
                        (1 + stream.below(3) as u32, [0.01, 0.1, 1.0][stream.below(3) as usize]);
                    let interval = (begin, length, sent, stream.below(u64::from(sent) + 1) as u32);
                    begin += length;
                    interval
                })
                .collect();
            let times: Vec<f64> = intervals
                .iter()
                .flat_map(|&(begin, length, sent, _)| {
                    (0..sent).map(move |k| begin + f64::from(k) * length / f64::from(sent))
                })
                .collect();
            let (mut sum, mut orders) = (0.0, 0);
            for outcomes in 0..1_u32 << times.len() {
                let lost: Vec<bool> = (0..times.len()).map(|packet| outcomes >> packet & 1 == 1).collect();
                let mut rest = &lost[..];
                let counted = intervals.iter().all(|&(.., sent, count)| {
                    let (of_interval, others) = rest.split_at(sent as usize);
                    rest = others;
                    of_interval.iter().filter(|&&lost| lost).count() == count as usize
                });
                if counted {
                    let probes = Losses::of_probes(times.clone(), lost).expect("times in order");
                    sum += libm::exp(Evidence::of(&probes).log_likelihood(&chain));
                    orders += 1;
                }
            }
            let expected = libm::log(sum) - libm::log(f64::from(orders));
            let found = Evidence::of(&record(&intervals)).log_likelihood(&chain);
            assert!(
                found == expected || (found - expected).abs() < 1e-6,
                "{chain:?} {intervals:?}: {found} for {expected}"
            );
        }
    }

    fn assert_equal(chain: &TwoState, intervals: &[(f64, f64, u32, u32)], tolerance: f64) -> f64 {
        let expected = recursive(chain, intervals);
        let found = Evidence::of(&record(intervals)).log_likelihood(chain);
        assert!(
            found == expected || (found - expected).abs() < tolerance,
            "{chain:?} {intervals:?}: {found} for {expected}"
        );
        expected
    }

    /// Intervals of many packets agree with the recursion, likely ones as well as those of a probability of 1e-100.
    #[test]
    fn equals_the_recursion_over_all_packets() {
        let mut stream = Streams::new(2, 0).stream("counts");
        let mut unlikely = 0;
        for _ in 0..150 {
            let chain = random_chain(&mut stream);
            let usual = [2, 20, 100, 800][stream.below(4) as usize];
            let intervals: Vec<_> = (0..3)
                .map(|index| {
                    let sent = usual + stream.below(3) as u32;
                    let lost = match stream.below(4) {
                        0 => 0,
                        1 => stream.below(u64::from(sent) + 1),
                        _ => stream.below(1 + u64::from(sent) / 20),
                    };
                    (2.0 * f64::from(index), f64::from(sent) / f64::from(usual), sent, lost as u32)
                })
                .collect();
            // Doubles end at 1e-308, so the recursion is exact above.
            if recursive(&chain, &intervals) > -700.0 {
                unlikely += u32::from(assert_equal(&chain, &intervals, 1e-5) < -200.0);
            }
        }
        assert!(unlikely > 7, "{unlikely}");
    }

    /// Every number of losses, of intervals so far apart that they are independent, by fast transforms.
    #[test]
    fn equals_the_recursion_for_every_count() {
        let mut stream = Streams::new(3, 0).stream("counts");
        for (sent, most) in [(60, 60), (700, 20)] {
            for _ in 0..3 {
                let chain = random_chain(&mut stream);
                let intervals: Vec<_> =
                    (0..=most).map(|lost| (1e4 * f64::from(lost), 1.0, sent, lost)).collect();
                if recursive(&chain, &intervals).is_finite() {
                    assert_equal(&chain, &intervals, 1e-5);
                }
            }
        }
    }

    /// Intervals of one packet are probes.
    #[test]
    fn single_packets_are_probes() {
        let mut stream = Streams::new(4, 0).stream("counts");
        for _ in 0..50 {
            let chain = random_chain(&mut stream);
            let lost: Vec<bool> = (0..200).map(|_| stream.bernoulli(0.2)).collect();
            let times = (0..200).map(|k| f64::from(k) * 0.05).collect();
            let intervals: Vec<_> = (0..200)
                .zip(&lost)
                .map(|(k, &lost)| (f64::from(k) * 0.05, 0.05, 1, u32::from(lost)))
                .collect();
            let probes = Losses::of_probes(times, lost).expect("times in order");
            let expected = Evidence::of(&probes).log_likelihood(&chain);
            let found = Evidence::of(&record(&intervals)).log_likelihood(&chain);
            assert!(
                found == expected || (found / expected - 1.0).abs() < 1e-9,
                "{chain:?}: {found} for {expected}"
            );
        }
    }

    /// The probability of counts agrees with their frequency in simulations, for two intervals in a row and each number of
    /// losses in both; within five standard errors, which chance exceeds in fewer than one of 10,000 tests.
    #[test]
    fn equals_the_frequency_in_simulations() {
        use crate::model::{Law, Model, Periods};
        let (good, bad, loss_good, loss_bad) = (0.8, 0.3, 0.05, 0.7);
        let model = Model::Periods(Periods {
            good: Law::Exponential(good),
            bad: Law::Exponential(bad),
            loss_good,
            loss_bad,
        });
        let chain = TwoState { good, bad, loss_good, loss_bad };
        let draws = 100_000;
        let intervals = |first, second| [(0.0, 1.0, 4, first), (1.1, 0.5, 3, second)];
        let mut seen = [[0_u32; 4]; 5];
        for number in 0..draws {
            let mut stream = Streams::new(5, number).stream("counts");
            let counts = record(&intervals(0, 0)).simulate(&model, &mut stream).lost_of_intervals();
            seen[counts[0] as usize][counts[1] as usize] += 1;
        }
        let mut total = 0.0;
        for (first, row) in seen.iter().enumerate() {
            for (second, &seen) in row.iter().enumerate() {
                let orders = [1.0, 4.0, 6.0, 4.0, 1.0][first] * [1.0, 3.0, 3.0, 1.0][second];
                let record = record(&intervals(first as u32, second as u32));
                let expected = orders * libm::exp(Evidence::of(&record).log_likelihood(&chain));
                let share = f64::from(seen) / draws as f64;
                let error = libm::sqrt(expected / draws as f64);
                assert!((share - expected).abs() < 5.0 * error, "{first} {second}: {share} for {expected}");
                total += expected;
            }
        }
        assert!((total - 1.0).abs() < 1e-9, "{total}");
    }

    /// The packets of an outage over the end of an interval are known to be lost, those that may be late are not.
    #[test]
    fn outages_are_counted_by_the_next_arrival() {
        let times = [0.0, 1.0, 2.0, 3.0, 4.0];
        let counts = [(1.0, 60, 1), (1.0, 0, 0), (1.0, 240, 145), (1.0, 96, 0), (1.0, 104, 2)];
        let expected =
            [(0.0, 59, 1), (0.59, 1, 0), (0.6, 140, 140), (2.0, 100, 5), (3.0, 96, 0), (4.0, 104, 2)];
        let found = until_arrivals(&times, &counts, 0.01);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (&(begin, _, sent, lost), (due, of, gone)) in found.iter().zip(expected) {
            assert!((begin - due).abs() < 0.005 && (sent, lost) == (of, gone), "{found:?}");
        }
    }

    /// Irregular intervals share a spacing, which keeps the time of each interval within a fiftieth.
    #[test]
    fn spacings_are_shared() {
        let spacings = [1.0, 1.01, 1.019, 1.03, 0.5, 2.0];
        assert_eq!(shared_spacings(spacings.into_iter()), [1.0, 1.0, 1.0, 1.03, 0.5, 2.0]);
    }
}
