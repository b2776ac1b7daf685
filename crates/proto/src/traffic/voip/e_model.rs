//! The E-model: the quality of a call from its delay and losses (ITU-T G.107).

use lasthop_base::Duration;

use super::Codec;

/// Defaults of G.107, table 2: loudness ratings in dB, the side tone, room noise in dB(A), noise of the circuit in
/// dBm0p, echo losses in dB and the number of quantisation distortion units.
const SLR: f64 = 8.0;
const RLR: f64 = 2.0;
const STMR: f64 = 15.0;
const D_FACTOR: f64 = 3.0;
const LSTR: f64 = 18.0;
const TELR: f64 = 65.0;
const WEPL: f64 = 110.0;
const QDU: f64 = 1.0;
const ROOM_NOISE: f64 = 35.0;
const CIRCUIT_NOISE: f64 = -70.0;
const NOISE_FLOOR: f64 = -64.0;

/// The impairments of a call by the network. All other parameters of the E-model have their defaults, including an echo loss
/// of 65 dB; the advantage factor is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairments {
    /// The codec.
    pub codec: Codec,
    /// One-way delay from mouth to ear. The echo takes as long to return.
    pub delay: Duration,
    /// Share of the packets that are not played.
    pub loss: f64,
    /// The mean length of a run of lost packets, over that of independent losses with the same share.
    pub burst_ratio: f64,
}

impl Impairments {
    /// The rating factor R (G.107, equation 7-1): 93.2 without impairments, above 80 satisfied users, below 50 not
    /// recommended; negative at worst. The Recommendation is for losses up to 20 % and delays up to 500 ms.
    pub fn rating(&self) -> f64 {
        let basic = basic_ratio();
        basic - simultaneous(basic, self.delay_ms()) - self.of_delay() - self.of_equipment()
    }

    /// The effective equipment impairment factor Ie,eff (7-29).
    pub fn of_equipment(&self) -> f64 {
        let (none, percent) = (self.codec.impairment(), 100.0 * self.loss);
        none + (95.0 - none) * percent / (percent / self.burst_ratio + self.codec.robustness())
    }

    /// The delay impairment factor Id (7-18): echo of the talker, echo of the listener, and loss of interactivity.
    pub fn of_delay(&self) -> f64 {
        let ms = self.delay_ms();
        talker_echo(ms) + listener_echo(2.0 * ms) + lost_interactivity(ms)
    }

    fn delay_ms(&self) -> f64 {
        1e3 * self.delay.as_secs_f64()
    }
}

/// The mean opinion score of a rating factor, from 1 to 4.5 (G.107, annex B). Its cubic falls below 1 for small ratings.
pub fn mos(rating: f64) -> f64 {
    let r = rating.clamp(0.0, 100.0);
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0)
}

/// The sum of all noise in dBm0p, at the point with 0 dBr (7-3 to 7-7).
fn noise() -> f64 {
    let at_sender =
        ROOM_NOISE - SLR - D_FACTOR - 100.0 + 0.004 * square(ROOM_NOISE - SLR - RLR - D_FACTOR - 14.0);
    let heard = ROOM_NOISE + 10.0 * libm::log10(1.0 + power((10.0 - LSTR) / 10.0));
    let at_receiver = RLR - 121.0 + heard + 0.008 * square(heard - 35.0);
    let all = [CIRCUIT_NOISE, at_sender, at_receiver, NOISE_FLOOR + RLR];
    10.0 * libm::log10(all.into_iter().map(|level| power(level / 10.0)).sum())
}

/// The basic signal-to-noise ratio Ro (7-2).
fn basic_ratio() -> f64 {
    15.0 - 1.5 * (SLR + noise())
}

/// The simultaneous impairment factor Is (7-8): loudness, side tone and quantisation.
fn simultaneous(basic: f64, ms: f64) -> f64 {
    let loudness = SLR + RLR + 0.2 * (64.0 + noise() - RLR);
    let too_loud = 20.0 * (libm::pow(1.0 + libm::pow(loudness / 8.0, 8.0), 0.125) - loudness / 8.0);
    // An early echo adds to the side tone.
    let side_tone = -10.0 * libm::log10(power(-STMR / 10.0) + libm::exp(-ms / 4.0) * power(-TELR / 10.0));
    let root = |shift: f64, scale: f64, order: f64| {
        libm::pow(1.0 + libm::pow(libm::fabs((side_tone + shift) / scale), order), 1.0 / order)
    };
    let side_tone =
        12.0 * root(-13.0, 6.0, 8.0) - 28.0 * root(1.0, 19.4, 35.0) - 13.0 * root(-3.0, 33.0, 13.0) + 29.0;
    let quality = 37.0 - 15.0 * libm::log10(QDU);
    let g = 1.07 + 0.258 * quality + 0.0602 * square(quality);
    let (y, z) = ((basic - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0, 46.0 / 30.0 - g / 40.0);
    let quantisation = 15.0 * libm::log10(1.0 + power(y) + power(z));
    too_loud + side_tone + quantisation
}

/// Idte (7-19 to 7-22).
fn talker_echo(ms: f64) -> f64 {
    let masked =
        TELR - 40.0 * libm::log10((1.0 + ms / 10.0) / (1.0 + ms / 150.0)) + 6.0 * libm::exp(-0.3 * ms * ms);
    let with_echo = 80.0 + 2.5 * (masked - 14.0);
    let excess = -1.5 * (noise() - RLR) - with_echo;
    (excess / 2.0 + libm::sqrt(square(excess) / 4.0 + 100.0) - 1.0) * (1.0 - libm::exp(-ms))
}

/// Idle (7-25, 7-26).
fn listener_echo(round_trip_ms: f64) -> f64 {
    let with_echo = 10.5 * (WEPL + 7.0) * libm::pow(round_trip_ms + 1.0, -0.25);
    let excess = basic_ratio() - with_echo;
    excess / 2.0 + libm::sqrt(square(excess) / 4.0 + 169.0)
}

/// Idd (7-27, 7-28), which is zero up to 100 ms.
fn lost_interactivity(ms: f64) -> f64 {
    if ms <= 100.0 {
        return 0.0;
    }
    let x = libm::log2(ms / 100.0);
    let root = |x: f64| libm::pow(1.0 + libm::pow(x, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

fn square(x: f64) -> f64 {
    x * x
}

fn power(exponent: f64) -> f64 {
    libm::pow(10.0, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Impairments =
        Impairments { codec: Codec::G711, delay: Duration::ZERO, loss: 0.0, burst_ratio: 1.0 };

    fn close(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within, "found {found}, expected {expected}");
    }

    fn delayed(ms: u64) -> Impairments {
        Impairments { delay: Duration::from_millis(ms), ..CLEAN }
    }

    /// G.107 states R = 93.2 for its defaults.
    #[test]
    fn the_defaults_give_the_published_rating() {
        close(CLEAN.rating(), 93.2, 0.05);
        close(mos(CLEAN.rating()), 4.41, 0.005);
    }

    /// Against an implementation by others, in Go (manucorporat/e-model on GitHub).
    #[test]
    fn ratings_are_those_of_another_implementation() {
        for (ms, rating) in [
            (0, 93.206_207_723_275_71),
            (20, 92.531_343_496_295_79),
            (85, 90.975_356_419_924_75),
            (150, 89.539_131_973_598_97),
            (200, 85.804_718_159_337_82),
            (300, 72.666_360_059_085_95),
            (400, 62.246_826_681_586_62),
        ] {
            close(delayed(ms).rating(), rating, 1e-9);
        }
        let lossy = Impairments { codec: Codec::G729a, loss: 0.02, burst_ratio: 1.5, ..delayed(150) };
        close(lossy.rating(), 70.276_836_891_631_76, 1e-9);
    }

    /// The scores that G.107, table B.1, has for the limits of R of the categories of G.109. It prints 4.03 for 80,
    /// where its formula gives 4.024.
    #[test]
    fn scores_are_those_of_table_b_1() {
        for (rating, score) in [(90.0, 4.34), (80.0, 4.024), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)] {
            close(mos(rating), score, 0.0051);
        }
        assert_eq!([mos(-20.0), mos(0.0), mos(3.0), mos(100.0), mos(120.0)], [1.0, 1.0, 1.0, 4.5, 4.5]);
    }

    /// Cole and Rosenbluth, "Voice over IP performance monitoring" (CCR 31(2), 2001): for the defaults, Id is about
    /// 0.024 d + 0.11 (d - 177.3) H(d - 177.3). Above 300 ms these lines leave the curve: by three at 400 ms.
    #[test]
    fn the_delay_impairment_is_near_its_known_approximation() {
        for ms in (0..=300).step_by(10) {
            let d = ms as f64;
            close(delayed(ms).of_delay(), 0.024 * d + 0.11 * (d - 177.3).max(0.0), 1.0);
        }
    }

    /// Below 100 ms, a conversation is not slowed; at 200 ms, X is 1, by hand.
    #[test]
    fn interactivity_is_lost_above_a_tenth_of_a_second() {
        assert_eq!((lost_interactivity(0.0), lost_interactivity(100.0)), (0.0, 0.0));
        let third = 1.0 + 1.0 / 729.0;
        let by_hand = 25.0 * (libm::pow(2.0, 1.0 / 6.0) - 3.0 * libm::pow(third, 1.0 / 6.0) + 2.0);
        close(lost_interactivity(200.0), by_hand, 1e-12);
    }

    /// By hand: 0 + 95 · 2 / (2 + 4.3), and likewise for the other codecs; bursts make losses worse.
    #[test]
    fn losses_impair_by_the_robustness_of_the_codec() {
        let lossy =
            |codec, loss, burst_ratio| Impairments { codec, loss, burst_ratio, ..CLEAN }.of_equipment();
        close(lossy(Codec::G711, 0.02, 1.0), 30.158_730, 1e-6);
        close(lossy(Codec::G711Plc, 0.02, 1.0), 7.011_070, 1e-6);
        close(lossy(Codec::G729a, 0.02, 1.0), 19.0, 1e-9);
        close(lossy(Codec::GsmEfr, 0.05, 1.0), 35.0, 1e-9);
        close(lossy(Codec::G729a, 0.04, 2.0), 27.0, 1e-9);
        close(lossy(Codec::G729a, 0.0, 1.0), 11.0, 0.0);
        assert!(lossy(Codec::G711Plc, 0.05, 2.0) > lossy(Codec::G711Plc, 0.05, 1.0));
    }
}
