//! The size of a link's frames, chosen at run time from the fate of earlier ones.
//!
//! *What it does.* Frames are multiples of a step, and each has a fixed overhead. Long frames have little
//! overhead and are lost often; short ones the opposite. If each byte survives with probability exp(−λ), a
//! frame of `S` bytes with an overhead of `h` bytes carries
//!
//! ```text
//! G(S) = (1 − h/S) · exp(−λ S)
//! ```
//!
//! bytes of data per byte on the air, which is greatest at `S* = (h + √(h² + 4h/λ)) / 2`. The policy
//! estimates λ from the outcomes of frames and chooses the multiple of the step for which G is greatest. A
//! change must raise G by at least 1 % ([`GAIN`]), so that the size does not follow noise.
//!
//! *The estimate.* Recent outcomes count more: each outcome reduces the weight of those before it by the
//! factor 1 − 1/`memory`. With `l` bytes in lost frames of mean size `s`, and `a` bytes in frames that
//! arrived, `λ = ln(1 + l/a) / s`, which is the maximum-likelihood estimate if all frames have the same size.
//! Half a lost frame is added, so that a link without losses moves to larger frames step by step: each size
//! must prove itself first.
//!
//! *Source.* Ludwig, Konrad, Joseph and Katz (MobiCom 1999; only the abstract was at hand) found that GSM's
//! link would gain by larger frames, and suggest that their length adapt to the channel. They are not known
//! to state an algorithm: this one is ours. The optimum follows from the formula by differentiation.

use lasthop_base::Bytes;

/// The least relative gain in goodput for which the size changes.
pub const GAIN: f64 = 0.01;

/// Weight of the lost frame that is added to the outcomes.
const PRIOR: f64 = 0.5;

/// The current size of frames, and what is known about their losses.
#[derive(Clone, Debug)]
pub struct FrameSize {
    step: Bytes,
    largest: Bytes,
    overhead: Bytes,
    /// The factor by which an outcome reduces the weight of those before it.
    decay: f64,
    current: Bytes,
    /// Lost frames, by weight, and their bytes.
    lost: f64,
    lost_bytes: f64,
    /// Bytes in frames that arrived, by weight.
    arrived_bytes: f64,
}

impl FrameSize {
    /// Frames of `step` bytes at first, and of multiples of it up to `largest` later, of which `overhead` are not data.
    /// `memory` is the number of outcomes that count.
    pub fn new(step: Bytes, largest: Bytes, overhead: Bytes, memory: u32) -> FrameSize {
        debug_assert!(overhead < step && step <= largest && memory > 0);
        FrameSize {
            step,
            largest,
            overhead,
            decay: 1.0 - 1.0 / f64::from(memory),
            current: step,
            lost: 0.0,
            lost_bytes: 0.0,
            arrived_bytes: 0.0,
        }
    }

    /// The size of full frames that are sent now, overhead included.
    pub fn current(&self) -> Bytes {
        self.current
    }

    /// The smallest size for `data` bytes, at most the current one.
    pub fn fitting(&self, data: u64) -> Bytes {
        let steps = (data + self.overhead.0).div_ceil(self.step.0).max(1);
        self.current.min(self.step * steps)
    }

    /// Learns whether a frame of `size` bytes arrived.
    pub fn learn(&mut self, size: Bytes, arrived: bool) {
        if self.step == self.largest {
            return;
        }
        for sum in [&mut self.lost, &mut self.lost_bytes, &mut self.arrived_bytes] {
            *sum *= self.decay;
        }
        if arrived {
            self.arrived_bytes += size.0 as f64;
        } else {
            self.lost += 1.0;
            self.lost_bytes += size.0 as f64;
        }
        let lambda = self.lambda();
        let best = self.best(lambda);
        if self.log_goodput(best, lambda) - self.log_goodput(self.current, lambda) > libm::log1p(GAIN) {
            self.current = best;
        }
    }

    /// The estimated rate of losses per byte: a byte survives with probability exp(−λ).
    fn lambda(&self) -> f64 {
        let lost_bytes = self.lost_bytes + PRIOR * self.current.0 as f64;
        if self.arrived_bytes <= 0.0 {
            return f64::INFINITY;
        }
        libm::log1p(lost_bytes / self.arrived_bytes) * (self.lost + PRIOR) / lost_bytes
    }

    /// The size with the greatest goodput.
    fn best(&self, lambda: f64) -> Bytes {
        let h = self.overhead.0 as f64;
        let optimum = (h + libm::sqrt(h * h + 4.0 * h / lambda)) / 2.0;
        let (least, most) = (1, self.largest.0 / self.step.0);
        let below = (libm::floor(optimum / self.step.0 as f64) as u64).clamp(least, most);
        let [below, above] = [below, (below + 1).min(most)].map(|steps| self.step * steps);
        if self.log_goodput(above, lambda) > self.log_goodput(below, lambda) { above } else { below }
    }

    /// The logarithm of the data per byte on the air with frames of `size` bytes.
    fn log_goodput(&self, size: Bytes, lambda: f64) -> f64 {
        let size = size.0 as f64;
        libm::log1p(-(self.overhead.0 as f64) / size) - lambda * size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_base::{Stream, Streams};

    fn frames(largest: u64) -> FrameSize {
        FrameSize::new(Bytes(30), Bytes(largest), Bytes(6), 100)
    }

    /// Data per byte on the air, by the formula.
    fn goodput(size: u64, ber: f64) -> f64 {
        (1.0 - 6.0 / size as f64) * (1.0 - ber).powi(8 * size as i32)
    }

    /// Sends frames of the current size over independent bit errors; the mean goodput of the last half.
    fn goodput_of(frames: &mut FrameSize, ber: f64, count: u32, random: &mut Stream) -> f64 {
        let (mut data, mut air) = (0.0, 0.0);
        for number in 0..count {
            let size = frames.current();
            let arrived = random.bernoulli((1.0 - ber).powi(8 * size.0 as i32));
            frames.learn(size, arrived);
            if number >= count / 2 {
                air += size.0 as f64;
                data += if arrived { size.0 as f64 - 6.0 } else { 0.0 };
            }
        }
        data / air
    }

    #[test]
    fn the_formula_has_its_maximum_among_all_sizes() {
        let frames = frames(3_000);
        for exponent in 10..60 {
            let ber = libm::pow(10.0, -f64::from(exponent) / 10.0);
            let lambda = -8.0 * libm::log1p(-ber);
            let best = (1..=100).map(|steps| 30 * steps).max_by(|&one, &other| {
                let [one, other] = [one, other].map(|size| frames.log_goodput(Bytes(size), lambda));
                one.total_cmp(&other)
            });
            assert_eq!(Some(frames.best(lambda).0), best, "{ber}");
        }
        assert_eq!((frames.best(0.0), frames.best(f64::INFINITY)), (Bytes(3_000), Bytes(30)));
    }

    /// The estimate of λ is exact for frames of one size, but for the half frame that is added.
    #[test]
    fn the_estimate_is_the_share_of_lost_frames() {
        let mut frames = FrameSize { decay: 1.0, ..frames(60) };
        for number in 0..10_000 {
            frames.learn(Bytes(60), number % 10 != 0);
        }
        let expected = -libm::log(0.9) / 60.0;
        assert!((frames.lambda() / expected - 1.0).abs() < 0.001, "{}, not {expected}", frames.lambda());
    }

    /// Within 2 % of the best size at bit error rates from 1e-6 to 1e-2, whichever it came from.
    #[test]
    fn the_goodput_is_close_to_that_of_the_best_size() {
        let mut random = Streams::new(1, 0).stream("frames");
        let mut frames = frames(1_500);
        for ber in [1e-5, 3e-3, 1e-6, 1e-2, 1e-3, 1e-4, 3e-5, 1e-2, 3e-4] {
            let best = (1..=50).map(|steps| goodput(30 * steps, ber)).fold(0.0, f64::max);
            let found = goodput_of(&mut frames, ber, 40_000, &mut random);
            // The noise of 20,000 frames is below 1 % of the goodput, except at 1e-2.
            let noise = if ber == 1e-2 { 0.07 } else { 0.01 };
            assert!((found / best - 1.0).abs() < 0.02 + noise, "{ber}: {found}, at best {best}");
        }
    }

    /// The size is within 3 % of the optimum 400 frames after a change, and rests while the channel does.
    #[test]
    fn the_size_follows_the_channel_and_rests_in_between() {
        let mut random = Streams::new(2, 0).stream("frames");
        let mut frames = frames(1_500);
        for ber in [1e-5, 1e-3, 1e-5, 1e-2, 1e-4, 1e-7, 3e-3] {
            let best = (1..=50).map(|steps| goodput(30 * steps, ber)).fold(0.0, f64::max);
            goodput_of(&mut frames, ber, 400, &mut random);
            let ratio = goodput(frames.current().0, ber) / best;
            assert!(ratio > 0.97, "{ber}: {} reaches {ratio} of the best", frames.current());
        }
        let mut changes = 0;
        for _ in 0..10_000 {
            let before = frames.current();
            goodput_of(&mut frames, 1e-4, 1, &mut random);
            changes += u32::from(frames.current() != before);
        }
        assert!(changes < 200, "{changes} changes in 10,000 frames");
    }

    #[test]
    fn a_short_end_has_the_smallest_frame_that_fits() {
        let mut frames = frames(300);
        assert_eq!([0, 24, 25, 500].map(|data| frames.fitting(data)), [Bytes(30); 4]);
        frames.current = Bytes(150);
        assert_eq!(
            [1, 24, 25, 54, 55, 144, 145].map(|data| frames.fitting(data).0),
            [30, 30, 60, 60, 90, 150, 150]
        );
    }

    #[test]
    fn a_fixed_size_stays() {
        let mut frames = frames(30);
        (0..1_000).for_each(|number| frames.learn(Bytes(30), number % 3 == 0));
        assert_eq!(frames.current(), Bytes(30));
    }
}
