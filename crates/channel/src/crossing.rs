//! Probability that a Rayleigh-fading signal falls below a threshold between two samples.
//!
//! Two samples of the complex amplitude, of mean power 1, are jointly Gaussian with correlation ρ. Given that
//! the power of the first is at least t, the power of the second is below t with probability
//!
//! > Q(θ, ρθ) − Q(ρθ, θ), θ² = 2t/(1 − ρ²),
//!
//! where Q is Marcum's function of first order (M. Zorzi, R. R. Rao and L. B. Milstein, "ARQ error control
//! for fading mobile radio channels", IEEE Transactions on Vehicular Technology 46(2), 1997).
//!
//! In slow fading, or far below the mean power, the two values of Q are nearly equal and their difference
//! loses most of its digits. Written as integrals over an angle (M. K. Simon, "A new twist on the Marcum
//! Q-function and its application", IEEE Communications Letters 2(2), 1998), both contain the same
//! exponential, and the rest of the integrands differs by Poisson's kernel (1 − ρ²)/D, whose mean is 1. The
//! result,
//!
//! > (1/π) ∫ (1 − ρ²)/D · (1 − e^(−cD)) dφ from 0 to π, c = t/(1 − ρ²),
//! > D = 1 + ρ² − 2|ρ| cos φ = (1 − |ρ|)² + 4|ρ| sin²(φ/2),
//!
//! needs no such difference. The sign of ρ has no effect.

use core::f64::consts::PI;

/// An exponent x at which 1 − e^(−x) rounds to 1.
const LARGE: f64 = 40.0;

/// P(second sample below `threshold` | first sample above it), for mean power 1 and correlation J₀(`angle`)
/// with `angle` = 2π f_D τ. The relative error is below 10⁻¹³ for thresholds from 10⁻¹⁵ to 10^1.5 and angles
/// of at least 10⁻⁹, the range that the channel model accepts.
pub(crate) fn crossing(threshold: f64, angle: f64) -> f64 {
    let one_minus_rho = one_minus_correlation(angle);
    let correlation = 1.0 - one_minus_rho;
    let c = threshold / (one_minus_rho * (2.0 - one_minus_rho));
    // The exponent cD rises from `minimum` to `minimum + swing`.
    let (minimum, swing) = (c * one_minus_rho * one_minus_rho, 4.0 * correlation * c);
    // Beyond this angle the exponent is large and the integrand is Poisson's kernel alone.
    let (reach, beyond) = if swing <= LARGE {
        (PI, 0.0)
    } else {
        let reach = 2.0 * libm::asin(libm::sqrt(LARGE / swing));
        let slope = (1.0 + correlation) * libm::tan(reach / 2.0);
        (reach, 2.0 / PI * libm::atan(one_minus_rho / slope))
    };
    let integrand = |angle: f64| {
        let sine = libm::sin(angle / 2.0);
        let exponent = minimum + swing * sine * sine;
        -libm::expm1(-exponent) / exponent
    };
    let within = threshold / PI * integral_to(reach, integrand);
    within + beyond
}

/// 1 − |J₀(x)| for x ≥ 0, without cancellation for small x.
fn one_minus_correlation(x: f64) -> f64 {
    if x >= 1.0 {
        return 1.0 - libm::fabs(libm::j0(x));
    }
    // The power series of J₀ without its leading 1; the last term is below 10⁻¹⁸ of the first.
    let quarter = x * x / 4.0;
    let horner = |sum: f64, k: f64| 1.0 - quarter / ((k + 1.0) * (k + 1.0)) * sum;
    quarter * [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0].into_iter().fold(1.0, horner)
}

/// The integral of `f` from 0 to `end` by 32-point Gauss-Legendre quadrature.
fn integral_to(end: f64, f: impl Fn(f64) -> f64) -> f64 {
    let half = end / 2.0;
    let both = |&(node, weight): &(f64, f64)| weight * (f(half * (1.0 - node)) + f(half * (1.0 + node)));
    half * RULE.iter().map(both).sum::<f64>()
}

/// Nodes above the middle of [−1, 1], with their weights.
const RULE: [(f64, f64); 16] = [
    (0.048_307_665_687_738_32, 0.096_540_088_514_727_8),
    (0.144_471_961_582_796_5, 0.095_638_720_079_274_86),
    (0.239_287_362_252_137_06, 0.093_844_399_080_804_57),
    (0.331_868_602_282_127_67, 0.091_173_878_695_763_89),
    (0.421_351_276_130_635_33, 0.087_652_093_004_403_81),
    (0.506_899_908_932_229_4, 0.083_311_924_226_946_75),
    (0.587_715_757_240_762_3, 0.078_193_895_787_070_31),
    (0.663_044_266_930_215_2, 0.072_345_794_108_848_5),
    (0.732_182_118_740_289_7, 0.065_822_222_776_361_85),
    (0.794_483_795_967_942_4, 0.058_684_093_478_535_544),
    (0.849_367_613_732_57, 0.050_998_059_262_376_175),
    (0.896_321_155_766_052_1, 0.042_835_898_022_226_68),
    (0.934_906_075_937_739_7, 0.034_273_862_913_021_43),
    (0.964_762_255_587_506_4, 0.025_392_065_309_262_06),
    (0.985_611_511_545_268_4, 0.016_274_394_730_905_67),
    (0.997_263_861_849_481_6, 0.007_018_610_009_470_096),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The rule is exact for polynomials of degree 63 and lower.
    #[test]
    fn quadrature_is_exact_for_polynomials() {
        for degree in 0..64 {
            let found = integral_to(1.0, |x| libm::pow(x, f64::from(degree)));
            let expected = 1.0 / f64::from(degree + 1);
            assert!((found / expected - 1.0).abs() < 1e-14, "degree {degree}: {found}, not {expected}");
        }
    }

    /// Values of mpmath 1.4.1 with 60 digits: `1 - abs(besselj(0, x))`.
    #[test]
    fn correlation_has_no_cancellation() {
        for (x, expected) in CORRELATIONS {
            let found = one_minus_correlation(x);
            assert!((found / expected - 1.0).abs() < 1e-15, "at {x}: {found}, not {expected}");
        }
    }
    const CORRELATIONS: [(f64, f64); 9] = [
        (1e-9, 2.5e-19),
        (1e-3, 2.499_999_843_750_004e-7),
        (0.3, 0.022_373_753_461_703_91),
        (0.999_999, 0.234_801_873_391_610_27),
        (1.0, 0.234_802_313_442_033_45),
        (2.0, 0.776_109_220_858_764_3),
        (2.5, 0.951_616_223_531_802),
        (20.0, 0.832_975_335_659_416_8),
        (1e6, 0.999_668_956_986_260_1),
    ];
}
