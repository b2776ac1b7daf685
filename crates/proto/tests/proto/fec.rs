//! Block codes, against exact arithmetic, enumeration of all error patterns, and values in the selective FEC
//! paper.
//!
//! The tables were computed with mpmath 1.4 at 60 digits from the exact double values listed, and truncated
//! to 14 digits: a tail as `fsum(binomial(n, i) * p**i * (1 - p)**(n - i) for i in range(t + 1, n + 1))`, and
//! a codeword in several parts as the product of (1 − p + p·x) over its bits, each with the rate of the part
//! that contains its middle, in fractions.

use lasthop_base::{Bytes, Streams};
use lasthop_proto::fec::{BlockCode, Decoder, Interval, units};
use lasthop_proto::frag::Mtu;

/// A code that corrects `t` errors in `n` bits.
fn correcting(n: u32, t: u32) -> BlockCode {
    BlockCode::new(n, 1, t).unwrap()
}

fn paper() -> BlockCode {
    "bch-255-131-18".parse().unwrap()
}

fn parts(parts: &[(f64, f64)]) -> Vec<Interval> {
    parts.iter().map(|&(share, ber)| Interval { share, ber }).collect()
}

fn throughout(ber: f64) -> [Interval; 1] {
    [Interval { share: 1.0, ber }]
}

/// The probability that a codeword is not decoded: that of a unit of one codeword.
fn codeword_error(code: BlockCode, ber: f64) -> f64 {
    Decoder::new(code).unit_error(code.n().into(), &throughout(ber))
}

fn close(what: &str, found: f64, expected: f64, relative: f64) {
    assert!((found - expected).abs() <= relative * expected, "{what}: {found:e}, not {expected:e}");
}

#[test]
fn codeword_error_rates_equal_exact_arithmetic() {
    for (n, t, ber, expected) in [
        (255, 18, 1e-12, 2.1909183596806e-200),
        (255, 18, 1e-10, 2.1909183110515e-162),
        (255, 18, 1e-05, 2.1860118139235e-67),
        (255, 18, 0.001, 1.7508081510318e-29),
        (255, 18, 0.01, 2.3187343630801e-11),
        (255, 18, 0.03, 2.9835827843283e-4),
        (255, 18, 0.05, 5.5595968871664e-2),
        (255, 18, 0.0725, 4.8497988459769e-1),
        (255, 18, 0.1, 9.3307722685721e-1),
        (255, 18, 0.5, 1.0),
        (255, 18, 0.99, 1.0),
        (7, 1, 0.25, 5.550537109375e-1),
        (23, 3, 1e-70, 8.855e-277),
        (15, 7, 0.999, 1.0),
        (1023, 0, 1e-200, 1.023e-197),
    ] {
        let what = format!("{t} of {n} at {ber}");
        close(&what, codeword_error(correcting(n, t), ber), expected, 2e-12);
    }
    // Logarithms of factorials of this size have ten decimal places.
    for (n, t, ber, expected) in [
        (65_535, 12, 1e-06, 6.2077831457858e-26),
        (65_535, 12, 0.0001, 1.6998504123164e-2),
        (65_535, 700, 0.01, 3.9261450634816e-2),
        (65_535, 1000, 0.01, 1.341820857788e-36),
    ] {
        close(&format!("{t} of {n} at {ber}"), codeword_error(correcting(n, t), ber), expected, 1e-9);
    }
}

#[test]
fn error_rates_of_zero_and_one_are_exact() {
    for (n, t) in [(255, 18), (7, 0), (2, 0), (65_535, 32_767)] {
        let code = correcting(n, t);
        assert_eq!((codeword_error(code, 0.0), codeword_error(code, 1.0)), (0.0, 1.0));
        let mut decoder = Decoder::new(code);
        for (ber, survival) in [(0.0, 1.0), (1.0, 0.0)] {
            assert_eq!(decoder.unit_survival(10 * u64::from(n), &throughout(ber)), survival);
            assert_eq!(decoder.message_survival(10 * u64::from(n), &throughout(ber)), survival);
            assert_eq!(decoder.unit_error(10 * u64::from(n), &throughout(ber)), 1.0 - survival);
        }
    }
    assert!(Decoder::new(paper()).unit_error(3840, &throughout(0.0)).is_sign_positive());
}

#[test]
fn unit_error_rates_with_several_rates_equal_exact_arithmetic() {
    type Case = ((u32, u32), u64, &'static [(f64, f64)], f64, f64);
    let cases: [Case; 10] = [
        ((255, 18), 255, &[(0.5, 0.001), (0.5, 0.2)], 5.1267354940929e-2, 9.4873264505907e-1),
        ((255, 18), 255, &[(0.25, 0.4), (0.5, 1e-10), (0.25, 0.01)], 2.4374200391316e-2, 9.7562579960868e-1),
        ((255, 18), 3840, &[(0.3, 1e-10), (0.7, 0.04)], 9.2782165542792e-1, 7.217834457208e-2),
        (
            (255, 18),
            3840,
            &[(0.1, 0.1), (0.2, 0.06), (0.05, 0.0), (0.65, 0.03)],
            1.4433567508372e-2,
            9.8556643249163e-1,
        ),
        (
            (255, 18),
            3840,
            &[(0.33, 1e-10), (0.01, 0.5), (0.66, 1e-10)],
            8.5947924031873e-1,
            1.4052075968127e-1,
        ),
        ((255, 18), 255, &[(0.875, 1e-11), (0.125, 1e-13)], 1.0, 1.595610090896e-182),
        // A shortened codeword.
        ((255, 18), 100, &[(0.4, 0.05), (0.6, 0.3)], 3.5338275080528e-1, 6.4661724919472e-1),
        ((63, 10), 630, &[(0.15, 0.9), (0.85, 0.1)], 2.0669289532355e-58, 1.0),
        ((7, 1), 70, &[(0.33, 1e-09), (0.33, 0.001), (0.34, 1.0)], 0.0, 1.0),
        ((15, 1), 64, &[(0.5, 1e-160), (0.5, 1e-40)], 1.0, 1.83e-78),
    ];
    for ((n, t), bits, shares, survival, error) in cases {
        let mut decoder = Decoder::new(correcting(n, t));
        let what = format!("{t} of {n} in {bits} bits, {shares:?}");
        // Twice: cached values must not change the result.
        for _ in 0..2 {
            close(&what, decoder.unit_survival(bits, &parts(shares)), survival, 1e-11);
            close(&what, decoder.unit_error(bits, &parts(shares)), error, 1e-11);
        }
    }
}

/// The probability that all codewords of a unit of `bits` bits are decoded, without and with a shortened last
/// codeword. Enumerates all error patterns of every codeword; a bit has the rate of the interval that contains
/// its middle. Intervals are given by their ends, in bits.
fn by_counting(n: u32, t: u32, bits: u32, edges: &[(f64, f64)]) -> [f64; 2] {
    let rate = |bit: u32| edges.iter().find(|(edge, _)| f64::from(bit) + 0.5 < *edge).unwrap().1;
    let decoded = |first: u32, word: u32| -> f64 {
        let patterns = (0..1u32 << word).filter(|pattern| pattern.count_ones() <= t);
        let chance = |pattern: u32| -> f64 {
            let bit = |i| if pattern >> i & 1 == 1 { rate(first + i) } else { 1.0 - rate(first + i) };
            (0..word).map(bit).product()
        };
        patterns.map(chance).sum()
    };
    let word = n.min(bits);
    let coded = bits - bits % word;
    let whole: f64 = (0..bits / word).map(|index| decoded(index * word, word)).product();
    [whole, whole * decoded(coded, bits - coded)]
}

#[test]
fn small_codes_equal_the_enumeration_of_error_patterns() {
    let mut draw = Streams::new(6, 0).stream("codes");
    for _ in 0..400 {
        let n = 2 + draw.below(9) as u32;
        let t = draw.below(u64::from(n.div_ceil(2))) as u32;
        // Shorter than a codeword, or up to four codewords and a remainder.
        let bits = 1 + draw.below(4 * u64::from(n)) as u32;
        let count = 1 + draw.below(4);
        // Edges between quarters of bits, possibly several in one bit; the last is the end of the unit.
        let mut edges: Vec<f64> =
            (1..count).map(|_| draw.below(4 * u64::from(bits)) as f64 / 4.0 + 0.125).collect();
        edges.sort_by(f64::total_cmp);
        edges.push(f64::from(bits));
        let rated: Vec<_> = edges.iter().map(|&edge| (edge, draw.uniform())).collect();
        let mut before = 0.0;
        let shares: Vec<_> = rated
            .iter()
            .map(|&(edge, ber)| {
                let share = (edge - before) / f64::from(bits);
                before = edge;
                Interval { share, ber }
            })
            .collect();
        let mut decoder = Decoder::new(correcting(n, t));
        let [unit, message] = by_counting(n, t, bits, &rated);
        let what = format!("{t} of {n} in {bits} bits, {rated:?}");
        close(&what, decoder.unit_survival(bits.into(), &shares), unit, 1e-11);
        close(&what, decoder.message_survival(bits.into(), &shares), message, 1e-11);
    }
}

#[test]
fn a_bit_has_the_rate_of_the_interval_that_contains_its_middle() {
    // All bits of the first interval are wrong, all others right; up to two of ten are corrected. The middle of
    // the third bit, at 0.25 of the unit, belongs to the interval that begins there.
    let mut decoder = Decoder::new(correcting(10, 2));
    for (share, survival) in [(0.0, 1.0), (0.04, 1.0), (0.24, 1.0), (0.25, 1.0), (0.26, 0.0), (1.0, 0.0)] {
        let found = decoder.unit_survival(10, &parts(&[(share, 1.0), (1.0 - share, 0.0)]));
        assert_eq!(found, survival, "{share}");
    }
    // If the shares add up to less than one, the last interval takes the remainder.
    assert_eq!(decoder.unit_survival(10, &parts(&[(0.2, 0.0), (0.1, 1.0)])), 0.0);
    // If they add up to more than one, the excess is ignored.
    assert_eq!(decoder.unit_survival(10, &parts(&[(2.0, 0.0), (0.1, 1.0)])), 1.0);
}

#[test]
fn bits_behind_the_last_whole_codeword_are_padding() {
    let mut decoder = Decoder::new(correcting(10, 2));
    assert_eq!(decoder.unit_survival(19, &parts(&[(10.0 / 19.0, 0.0), (9.0 / 19.0, 1.0)])), 1.0);
    assert_eq!(decoder.unit_survival(20, &parts(&[(0.5, 0.0), (0.5, 1.0)])), 0.0);
    for ber in [0.01, 0.2, 0.7] {
        let mut survival = |bits| decoder.unit_survival(bits, &throughout(ber));
        assert_eq!(survival(19), survival(10));
        close("two codewords", survival(20), survival(10) * survival(10), 1e-12);
        // A shortened codeword fails less often; one of at most two bits, never.
        assert!(survival(9) > survival(10));
        assert_eq!((survival(2), survival(1), survival(0)), (1.0, 1.0, 1.0));
    }
}

#[test]
fn splitting_an_interval_changes_nothing() {
    let mut draw = Streams::new(7, 0).stream("cuts");
    let mut decoder = Decoder::new(paper());
    for ber in [1e-4, 0.01, 0.05, 0.07, 0.2] {
        let whole = decoder.unit_error(3840, &throughout(ber));
        for _ in 0..50 {
            let (first, second) = (0.5 * draw.uniform(), 0.5 * draw.uniform());
            let cut = parts(&[(first, ber), (second, ber), (1.0 - first - second, ber)]);
            close(&format!("{ber} {cut:?}"), decoder.unit_error(3840, &cut), whole, 1e-11);
        }
    }
}

#[test]
fn error_rates_rise_with_the_bit_error_rate_and_fall_with_the_strength_of_the_code() {
    let rates: Vec<f64> = (-400..=0).map(|tenth| 10f64.powf(f64::from(tenth) / 20.0)).collect();
    let mut decoder = Decoder::new(paper());
    let (mut error, mut unit, mut mixed) = (0.0, 0.0, 0.0);
    for &ber in &rates {
        let next = codeword_error(paper(), ber);
        assert!(next > error || next == 0.0 || next > 0.999, "{ber}");
        // Close to 1 the difference is below the rounding error.
        let more = next * (1.0 + 1e-12);
        assert!(more >= error, "{ber}");
        assert!(more >= codeword_error(correcting(254, 18), ber), "a shorter codeword, at {ber}");
        assert!(more >= codeword_error(correcting(255, 19), ber), "one error more, at {ber}");
        let next_unit = decoder.unit_error(3840, &throughout(ber));
        let next_mixed = decoder.unit_error(3840, &parts(&[(0.43, 1e-3), (0.57, ber)]));
        assert!(next_unit >= unit && next_mixed * (1.0 + 1e-12) >= mixed, "{ber}");
        assert!(next_unit >= next, "fifteen codewords fail more often than one, at {ber}");
        (error, unit, mixed) = (next, next_unit, next_mixed);
    }
    assert_eq!((error, unit, mixed), (1.0, 1.0, 1.0));
}

/// Units of 480 bytes with the paper's code, 15 codewords, and without a code: 1 − (1 − p)^3840, as for a code
/// that corrects nothing.
#[test]
fn the_papers_unit_error_rates_are_those_of_equations_1_and_2() {
    let (mut coded, mut bare) = (Decoder::new(paper()), Decoder::new(BlockCode::new(3840, 3839, 0).unwrap()));
    for (ber, with, without) in [
        (1e-5, 3.2790177208853e-66, 3.7672252046567e-2),
        (1e-3, 2.6262122265476e-28, 9.7854765425746e-1),
        (1e-2, 3.4781015440556e-10, 1.0),
        (3e-2, 4.4660393955569e-3, 1.0),
        (5e-2, 5.7599841259706e-1, 1.0),
    ] {
        close("with", coded.unit_error(3840, &throughout(ber)), with, 2e-12);
        close("without", bare.unit_error(3840, &throughout(ber)), without, 2e-12);
    }
}

#[test]
fn the_number_of_units_per_packet_is_that_of_the_paper() {
    let count = |packet, code| units(Bytes(packet), Mtu::new(Bytes(480)).unwrap(), code);
    // For 1460 bytes without a code the text has 3 and the formula 4; for 1440 bytes they agree.
    for (packet, with, without) in [(1460, 6, 4), (1440, 6, 3), (40, 1, 1), (0, 1, 1)] {
        assert_eq!((count(packet, Some(paper())), count(packet, None)), (with, without), "{packet}");
    }
}

/// (63, 45): 18 check bits for each block of 45 data bits, the last and shorter one included.
#[test]
fn the_last_codeword_is_shortened() {
    let code = BlockCode::new(63, 45, 3).unwrap();
    for (data, coded) in
        [(0, 0), (1, 19), (44, 62), (45, 63), (46, 82), (90, 126), (11_520, 11_520 + 256 * 18)]
    {
        assert_eq!(code.coded(data), coded, "{data}");
    }
}

#[test]
fn units_are_counted_in_whole_numbers() {
    // At rate one half the number of units doubles exactly, and one byte more takes one unit more, even where
    // floating-point division would round it away.
    let half = BlockCode::new(254, 127, 9).unwrap();
    // Whole codewords of 254 bits fill multiples of 127 bytes.
    for unit in [127, 1270, 127 << 30] {
        let mtu = Mtu::new(Bytes(unit)).unwrap();
        for twice in [2, 4, 1000, 4_000_000] {
            let packet = twice / 2 * unit;
            assert_eq!(u64::from(units(Bytes(packet), mtu, Some(half))), twice);
            assert_eq!(u64::from(units(Bytes(packet + 1), mtu, Some(half))), twice + 1);
        }
    }
}

#[test]
fn cached_values_depend_on_length_and_rate() {
    let mut decoder = Decoder::new(correcting(10, 2));
    let questions: Vec<(u64, f64)> =
        [5, 10, 30].into_iter().flat_map(|bits| [0.1, 0.2, 0.3, 0.4, 0.5].map(|ber| (bits, ber))).collect();
    for _ in 0..3 {
        for &(bits, ber) in questions.iter().chain(questions.iter().rev()) {
            let anew = Decoder::new(correcting(10, 2)).unit_survival(bits, &throughout(ber));
            assert_eq!(decoder.unit_survival(bits, &throughout(ber)), anew);
        }
    }
}

mod scenario_file {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct File {
        code: BlockCode,
    }

    fn read(text: &str) -> Result<BlockCode, String> {
        toml::from_str::<File>(text).map(|file| file.code).map_err(|error| error.message().to_string())
    }

    #[test]
    fn a_code_is_a_name_or_a_table() {
        let by_name = read("code = \"bch-255-131-18\"").unwrap();
        assert_eq!((by_name.n(), by_name.k(), by_name.t()), (255, 131, 18));
        assert_eq!(read("code = { n = 255, k = 131, t = 18 }"), Ok(by_name));
        assert_eq!(read("[code]\nn = 200\nk = 76\nt = 18"), BlockCode::new(200, 76, 18));
    }

    #[test]
    fn codes_survive_a_round_trip() {
        for (code, text) in [
            (paper(), "code = \"bch-255-131-18\"\n"),
            (BlockCode::new(200, 76, 18).unwrap(), "[code]\nn = 200\nk = 76\nt = 18\n"),
            (BlockCode::new(255, 130, 18).unwrap(), "[code]\nn = 255\nk = 130\nt = 18\n"),
        ] {
            assert_eq!(toml::to_string(&File { code }).unwrap(), text);
            assert_eq!(read(text), Ok(code));
        }
        assert_eq!(paper().to_string(), "bch-255-131-18");
        assert_eq!(correcting(9, 2).to_string(), "(9, 1, 2)");
    }

    /// Codes of Lin and Costello's table of primitive BCH codes (Error Control Coding, appendix C).
    #[test]
    fn names_of_bch_codes_are_those_of_the_tables() {
        for (n, codes) in [
            (7, &[(4, 1), (1, 3)][..]),
            (15, &[(11, 1), (7, 2), (5, 3), (1, 7)]),
            (31, &[(26, 1), (21, 2), (16, 3), (11, 5), (6, 7)]),
            (63, &[(57, 1), (45, 3), (36, 5), (30, 6), (24, 7), (18, 10), (16, 11), (10, 13), (7, 15)]),
            (127, &[(120, 1), (64, 10), (57, 11), (50, 13), (36, 15), (29, 21), (15, 27), (8, 31)]),
            (255, &[(247, 1), (239, 2), (191, 8), (139, 15), (131, 18), (123, 19), (87, 26), (9, 63)]),
            (1023, &[(1013, 1), (768, 26), (513, 57)]),
        ] {
            for (k, t) in codes {
                let name = format!("bch-{n}-{k}-{t}");
                assert_eq!(read(&format!("code = \"{name}\"")), BlockCode::new(n, *k, *t), "{name}");
                assert_eq!(name.parse::<BlockCode>().unwrap().to_string(), name);
            }
        }
    }

    #[test]
    fn an_impossible_code_is_refused_with_the_reason() {
        let reason = |text: &str| read(text).unwrap_err();
        assert_eq!(
            reason("code = \"bch-255-132-18\""),
            "found \"bch-255-132-18\", expected \"bch-255-131-18\": BCH codewords of 255 bits, of which 18 \
             can be corrected, hold 131 data bits"
        );
        for name in ["bch-256-131-18", "bch-255-1-128", "bch-255-255-0", "bch-1-1-0", "bch-131071-131054-1"] {
            let reason = reason(&format!("code = \"{name}\""));
            assert!(reason.contains("expected a BCH code, of 2^m - 1 bits"), "{reason}");
        }
        for name in
            ["", "bch", "bch-255-131", "bch-255-131-18-2", "bch-255-131-x", "rs-255-223-16", "255-131-18"]
        {
            let reason = reason(&format!("code = \"{name}\""));
            assert!(
                reason.contains("expected a BCH code such as \"bch-255-131-18\", or a table"),
                "{reason}"
            );
        }
        for (n, k, t, expected) in [
            (0, 1, 0, "found n = 0, expected codewords of 2 to 65535 bits"),
            (1, 1, 0, "found n = 1, expected codewords of 2 to 65535 bits"),
            (65_536, 1, 0, "found n = 65536, expected codewords of 2 to 65535 bits"),
            (255, 0, 18, "found k = 0, expected 1 to 254 data bits in codewords of 255"),
            (255, 255, 0, "found k = 255, expected 1 to 254 data bits in codewords of 255"),
            (
                255,
                131,
                40,
                "found t = 40, expected at most 28: no code with 124 check bits in 255 corrects more \
                 (Hamming bound)",
            ),
            (
                7,
                1,
                4_000_000_000_u32,
                "found t = 4000000000, expected at most 3: no code with 6 check bits in 7 corrects more \
                 (Hamming bound)",
            ),
        ] {
            assert_eq!(reason(&format!("code = {{ n = {n}, k = {k}, t = {t} }}")), expected);
        }
        assert!(reason("code = { n = 255, k = 131 }").contains("missing field `t`"));
        assert!(reason("code = { n = 255, k = 131, t = 18, m = 8 }").contains("unknown field `m`"));
        assert!(reason("code = 255").contains("expected a BCH code such as"));
    }

    /// Perfect codes meet the bound with equality: Hamming codes, the Golay code and repetition codes. One more data
    /// bit or one more error exceeds it.
    #[test]
    fn the_hamming_bound_is_exact() {
        let perfect = [(3, 1, 1), (7, 4, 1), (15, 11, 1), (65_535, 65_519, 1), (23, 12, 3), (5, 1, 2)];
        let repetitions = [9, 101, 1001, 32_001].map(|n| (n, 1, n / 2));
        for (n, k, t) in perfect.into_iter().chain(repetitions) {
            assert!(BlockCode::new(n, k, t).is_ok(), "({n}, {k}, {t})");
            assert!(BlockCode::new(n, k + 1, t).is_err(), "({n}, {k} + 1, {t})");
            assert!(BlockCode::new(n, k, t + 1).is_err(), "({n}, {k}, {t} + 1)");
        }
        // All other codes, in integer arithmetic.
        for n in 2..=60_u32 {
            let mut binomial = 1_u128;
            let mut sphere = 1_u128;
            for t in 0..n.div_ceil(2) {
                for k in 1..n {
                    let fits = sphere <= 1 << (n - k);
                    assert_eq!(BlockCode::new(n, k, t).is_ok(), fits, "({n}, {k}, {t})");
                }
                binomial = binomial * u128::from(n - t) / u128::from(t + 1);
                sphere += binomial;
            }
            assert!(BlockCode::new(n, 1, n.div_ceil(2)).is_err());
        }
    }
}
