//! Fixed-size and coded units: their number and air time by hand, and their survival against closed forms and
//! against the decoder itself.
//!
//! On the test link a byte takes a millisecond. The small code is (63, 45, 3): 63 bits on the air for 45 bits
//! of data, 1.4 times as many.

use std::sync::mpsc::{self, Sender};

use lasthop_base::{BitRate, Duration, Probability, Streams, Time};
use lasthop_channel::{Channel, FixedPeriods, FrameLoss, Iid, Model, Outages, Sojourn, State};
use lasthop_proto::arq::{Backoff, Config, Retransmissions};
use lasthop_proto::fec::{BlockCode, Covers, Decoder, Interval};
use lasthop_proto::{DropReason, Dscp, Packet};
use lasthop_sim::{Expansion, Exposed, Fec, LinkStats, RadioConfig};

use crate::radio::harness::{
    Bench, Did, Odds, ms, mtu, packet, plain, scripted, selective_repeat, stop_and_wait,
};

const MARK: Dscp = Dscp::new(0b10_0111);

fn marked(id: u32, size: u64) -> Packet {
    Packet { dscp: MARK, ..packet(id, size) }
}

fn small(covers: Covers) -> Option<Fec> {
    Some(Fec { code: BlockCode::new(63, 45, 3).unwrap(), covers })
}

fn papers(covers: Covers) -> Option<Fec> {
    Some(Fec { code: "bch-255-131-18".parse().unwrap(), covers })
}

/// The selective FEC paper's link: a unit of 480 bytes takes 10 ms.
fn papers_link() -> RadioConfig {
    RadioConfig { rate: BitRate::from_bps(384_000).unwrap(), unit: mtu(480), ..plain() }
}

/// Each kind of ARQ, and selective repeat with slots; backoffs and delays of 5 ms.
fn arqs(retransmissions: Retransmissions) -> [Config; 4] {
    [
        Config::None,
        stop_and_wait(retransmissions, Backoff::Fixed(Duration::from_millis(5))),
        selective_repeat(retransmissions, 5, 0),
        selective_repeat(retransmissions, 0, 1),
    ]
}

/// A link's query of its channel about a unit.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Asked {
    /// Survival of this many bits.
    Bits(u64),
    /// Bit error rates, for a coded unit.
    Exposure,
}

/// Records the queries. Units survive as listed; later ones survive.
struct Witness<I>(Sender<(Time, Time, Asked)>, I);

impl<I: Iterator<Item = bool>> Witness<I> {
    fn fate(&mut self, start: Time, end: Time, asked: Asked) -> f64 {
        self.0.send((start, end, asked)).unwrap();
        f64::from(u8::from(self.1.next().unwrap_or(true)))
    }
}

impl<I: Iterator<Item = bool> + Send> Channel for Witness<I> {
    fn survival(&mut self, start: Time, end: Time, bits: u64) -> f64 {
        self.fate(start, end, Asked::Bits(bits))
    }

    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, Probability::default());
        self.fate(start, end, Asked::Exposure)
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn { state: State::Good, until: Time::NEVER }
    }
}

/// Air times in microseconds of the units of these packets, and whether they are coded; the first units
/// survive as listed. All packets are enqueued at time zero.
fn on_the_air(
    config: RadioConfig,
    packets: &[Packet],
    fates: &'static [bool],
) -> (Vec<(u64, Asked)>, LinkStats) {
    let (asked, questions) = mpsc::channel();
    let mut bench = Bench::new(config, Box::new(Witness(asked, fates.iter().copied())));
    packets.iter().for_each(|&packet| bench.send(Time::ZERO, packet));
    bench.finish();
    let stats = bench.link.stats();
    let questions: Vec<_> = questions.try_iter().collect();
    let total = questions.iter().fold(Duration::ZERO, |sum, (start, end, _)| sum + end.since(*start));
    assert_eq!((stats.attempts, stats.air_time), (questions.len() as u64, total));
    let micros = |(start, end, asked): (Time, Time, Asked)| (end.since(start).as_nanos() / 1000, asked);
    (questions.into_iter().map(micros).collect(), stats)
}

/// ⌈W/4⌉ units of exactly four bytes, the last one padded; one unit for an empty packet.
#[test]
fn fixed_size_units_round_up() {
    for (size, units) in [(0, 1), (1, 1), (3, 1), (4, 1), (5, 2), (8, 2), (9, 3), (400, 100), (401, 101)] {
        for arq in arqs(Retransmissions::AtMost(0)) {
            let config = RadioConfig { unit: mtu(4), arq, ..plain() };
            let (asked, stats) = on_the_air(config, &[packet(0, size)], &[]);
            assert_eq!(asked, vec![(4_000, Asked::Bits(32)); units], "{size} bytes, {arq:?}");
            assert_eq!((stats.bits_on_air, stats.delivered), (32 * units as u64, 1));
        }
    }
}

/// Expansion applies to whole units, and padding is exposed to bit errors.
#[test]
fn expansion_applies_to_whole_units() {
    let expansion = Expansion::new(1.5).unwrap();
    for (exposed, bits) in [(Exposed::OnAir, 48), (Exposed::Payload, 32)] {
        let config = RadioConfig { unit: mtu(4), expansion, exposed, ..plain() };
        let (asked, stats) = on_the_air(config, &[packet(0, 5)], &[]);
        assert_eq!(asked, [(6_000, Asked::Bits(bits)); 2]);
        assert_eq!(stats.bits_on_air, 96);
    }
}

/// Eight bytes hold one codeword of 63 bits: a packet of W bytes takes ⌈8W/45⌉ units with the code and ⌈W/8⌉
/// without. Only the configured DSCP is coded.
#[test]
fn coded_packets_need_more_fixed_size_units() {
    let config = RadioConfig { unit: mtu(8), fec: small(Covers::Marked(MARK)), ..plain() };
    for (size, bare, coded) in [
        (0, 1, 1),
        (1, 1, 1),
        (5, 1, 1),
        (6, 1, 2),
        (8, 1, 2),
        (9, 2, 2),
        (11, 2, 2),
        (12, 2, 3),
        (45, 6, 8),
        (46, 6, 9),
        (400, 50, 72),
    ] {
        for arq in arqs(Retransmissions::AtMost(0)) {
            let other = Packet { dscp: Dscp::new(0b10_0110), ..packet(1, size) };
            let packets = [packet(0, size), marked(1, size), other, marked(3, size)];
            let (asked, stats) = on_the_air(RadioConfig { arq, ..config }, &packets, &[]);
            let [bare_units, coded_units] =
                [(bare, Asked::Bits(64)), (coded, Asked::Exposure)].map(|(n, asked)| vec![(8_000, asked); n]);
            let expected = [&bare_units[..], &coded_units, &bare_units, &coded_units].concat();
            assert_eq!(asked, expected, "{size} bytes, {arq:?}");
            assert_eq!(stats.bits_on_air, 64 * expected.len() as u64);
        }
    }
}

/// Section IV: three units without the code for 1440 bytes, and six with it, of 10 ms each. For the 1460
/// bytes that the paper states, its formula gives four and six.
#[test]
fn the_papers_segments_need_three_units_or_six_coded_ones() {
    let config = RadioConfig { fec: papers(Covers::Marked(MARK)), ..papers_link() };
    for (size, bare) in [(1440, 3), (1460, 4)] {
        for arq in [Config::None, selective_repeat(Retransmissions::AtMost(5), 60, 10)] {
            let config = RadioConfig { arq, ..config };
            let mut bench = Bench::new(config, scripted([]));
            bench.send(ms(0), packet(0, size));
            bench.send(ms(0), marked(1, size));
            let log = bench.finish();
            for (id, at) in [(0, 10 * bare), (1, 10 * (bare + 6))] {
                assert!(log.contains(&(ms(at), Did::Deliver(id))), "{log:?}");
            }
            let expected = LinkStats {
                attempts: bare + 6,
                bits_on_air: 3840 * (bare + 6),
                air_time: Duration::from_millis(10) * (bare + 6),
                delivered: 2,
                ..LinkStats::default()
            };
            assert_eq!(bench.link.stats(), expected);
        }
    }
}

/// Without a fixed unit size, every 45 bits and the remainder get 18 check bits, for fragments and whole
/// packets; expansion applies to all bits. Coded and uncoded units alternate.
#[test]
fn check_bits_lengthen_fragments_and_whole_packets() {
    let (a, b) = (Asked::Bits, Asked::Exposure);
    let code = RadioConfig { fec: small(Covers::Marked(MARK)), ..plain() };
    let packets = [marked(0, 10), packet(1, 10), marked(2, 10), marked(3, 9)];
    for arq in arqs(Retransmissions::AtMost(0)) {
        if let Config::SelectiveRepeat(params) = arq
            && !params.slot.is_zero()
        {
            continue;
        }
        // 80 bits become 116, 72 become 108.
        let (asked, stats) = on_the_air(RadioConfig { arq, ..code }, &packets, &[]);
        assert_eq!(asked, [(14_500, b), (10_000, a(80)), (14_500, b), (13_500, b)], "{arq:?}");
        assert_eq!(stats.bits_on_air, 116 + 80 + 116 + 108);
        // 32 bits become 50, 16 become 34, 8 become 26.
        let config = RadioConfig { mtu: mtu(4), arq, ..code };
        let (asked, stats) = on_the_air(config, &packets, &[]);
        let [full, half, quarter] = [6_250, 4_250, 3_250].map(|us| (us, b));
        let bare = [(4_000, a(32)), (4_000, a(32)), (2_000, a(16))];
        let coded = [full, full, half];
        assert_eq!(asked, [&coded[..], &bare, &coded, &[full, full, quarter]].concat(), "{arq:?}");
        assert_eq!(stats.bits_on_air, 2 * (50 + 50 + 34) + 80 + 50 + 50 + 26);
        // 116 bits become 174, and 80 become 120.
        let config = RadioConfig { expansion: Expansion::new(1.5).unwrap(), arq, ..code };
        let (asked, stats) = on_the_air(config, &packets[..2], &[]);
        assert_eq!(asked, [(21_750, b), (15_000, a(120))], "{arq:?}");
        assert_eq!(stats.bits_on_air, 174 + 120);
    }
}

/// If retransmissions are protected, the DSCP is ignored: the first attempt of each unit is uncoded, later
/// ones are coded.
#[test]
fn coding_of_retransmissions_leaves_first_attempts_uncoded() {
    let (a, b) = (Asked::Bits, Asked::Exposure);
    let repeats = |config: RadioConfig, fec: Option<Fec>| RadioConfig { fec, ..config };
    let wait = Duration::from_millis(5);
    for arq in [
        stop_and_wait(Retransmissions::AtMost(2), Backoff::Fixed(wait)),
        selective_repeat(Retransmissions::AtMost(2), 0, 0),
    ] {
        let config = RadioConfig { arq, ..plain() };
        // The first and the last unit are sent three times, the others once.
        let fates = &[false, false, true, true, false, false, true];
        // With a fixed size both become two units: 64 bits need two codewords, and a unit holds one.
        let in_units = repeats(RadioConfig { unit: mtu(8), ..config }, small(Covers::Repeats));
        let (asked, stats) = on_the_air(in_units, &[marked(0, 12), packet(1, 3)], fates);
        let (first, again) = ((8_000, a(64)), (16_000, b));
        assert_eq!(asked, [first, again, again, first, first, again, again], "{arq:?}");
        assert_eq!((stats.bits_on_air, stats.failed_attempts, stats.delivered), (3 * 64 + 4 * 128, 4, 2));
        // As fragments they grow from 32 to 50 bits, and from 24 to 42.
        let fragments = repeats(RadioConfig { mtu: mtu(4), ..config }, small(Covers::Repeats));
        let packets = [marked(0, 6), packet(1, 3)];
        let (asked, stats) = on_the_air(fragments, &packets, fates);
        let [four, two, three] = [(4_000, a(32)), (2_000, a(16)), (3_000, a(24))];
        let [four_again, three_again] = [(6_250, b), (5_250, b)];
        let expected = [four, four_again, four_again, two, three, three_again, three_again];
        assert_eq!(asked, expected, "{arq:?}");
        assert_eq!(stats.bits_on_air, 72 + 2 * (50 + 42));
        // Exactly three times as long, not four.
        let third = Some(Fec { code: BlockCode::new(15, 5, 3).unwrap(), covers: Covers::Repeats });
        let in_units = RadioConfig { unit: mtu(15), ..in_units };
        let (asked, _) = on_the_air(repeats(in_units, third), &packets[1..], &[false]);
        assert_eq!(asked, [(15_000, a(120)), (45_000, b)], "{arq:?}");
        // A whole packet, from 80 bits to 116.
        let (asked, _) = on_the_air(repeats(config, small(Covers::Repeats)), &[packet(0, 10)], &[false]);
        assert_eq!(asked, [(10_000, a(80)), (14_500, b)], "{arq:?}");
    }
    // Without an ARQ nothing is retransmitted.
    let config = repeats(plain(), small(Covers::Repeats));
    let (asked, _) = on_the_air(config, &[marked(0, 10), packet(1, 10)], &[false]);
    assert_eq!(asked, [(10_000, a(80)); 2]);
}

/// Section V: a retransmitted unit is twice as long, 255/131 rounded up. Feedback on the unit lost at 10 ms
/// arrives at 70 ms, after the other five; its second attempt takes two slots.
#[test]
fn the_papers_retransmitted_units_are_twice_as_long() {
    let arq = selective_repeat(Retransmissions::AtMost(5), 60, 10);
    let config = RadioConfig { fec: papers(Covers::Repeats), arq, ..papers_link() };
    let mut bench = Bench::new(config, scripted([false]));
    (0..2).for_each(|id| bench.send(ms(0), packet(id, 1440)));
    bench.send(ms(65), packet(2, 480));
    let log = bench.finish();
    let deliveries: Vec<_> = log.iter().filter(|(_, did)| matches!(did, Did::Deliver(_))).copied().collect();
    let expected = [(ms(90), Did::Deliver(0)), (ms(90), Did::Deliver(1)), (ms(100), Did::Deliver(2))];
    assert_eq!(deliveries, expected);
    let stats = bench.link.stats();
    assert_eq!((stats.attempts, stats.bits_on_air), (8, 9 * 3840));
    assert_eq!(stats.air_time, Duration::from_millis(90));
}

#[test]
#[should_panic(expected = "a fixed unit size excludes an MTU")]
fn a_unit_size_with_an_mtu_panics() {
    Bench::new(RadioConfig { unit: mtu(4), mtu: mtu(4), ..plain() }, scripted([]));
}

/// The probability of at most `t` errors in `bits` bits: the sum in equation (2).
fn at_most(t: i32, bits: i32, ber: f64) -> f64 {
    let choose = |i: i32| (0..i).fold(1.0, |product, j| product * f64::from(bits - j) / f64::from(j + 1));
    (0..=t).map(|i| choose(i) * ber.powi(i) * (1.0 - ber).powi(bits - i)).sum()
}

fn iid(ber: f64) -> Box<dyn Channel> {
    let ber = Probability::new(ber).unwrap();
    Model::Iid(Iid { ber }).build(Streams::new(5, 0).stream("channel"))
}

/// Within five standard errors, which a correct link exceeds once in 1.7 million seeds; the seed is fixed.
fn close(what: &str, found: f64, expected: f64, sd_of_one: f64, n: u32) {
    let allowed = 5.0 * sd_of_one / f64::from(n).sqrt();
    assert!((found - expected).abs() <= allowed, "{what}: {found}, not {expected} ± {allowed}");
}

/// `n` packets of `size` bytes, every second one marked, all enqueued at time zero.
fn alternating(config: RadioConfig, channel: Box<dyn Channel>, n: u32, size: u64) -> (LinkStats, Vec<Did>) {
    let mut bench = Bench::seeded(config, channel, 5);
    (0..n).for_each(|id| {
        bench.send(Time::ZERO, if id % 2 == 1 { marked(id, size) } else { packet(id, size) });
    });
    bench.finish();
    (bench.link.stats(), bench.log.into_iter().map(|(_, did)| did).collect())
}

/// Numbers of unmarked and of marked packets that arrived.
fn arrived(log: &[Did]) -> [f64; 2] {
    [0, 1].map(|odd| log.iter().filter(|did| matches!(did, Did::Deliver(id) if id % 2 == odd)).count() as f64)
}

/// The units of a packet of 20 bytes, and their survival uncoded and coded in one attempt: (1 − p)^bits, and
/// equation (2). The last codeword is shortened, except with a fixed unit size.
fn ways(ber: f64) -> [(&'static str, RadioConfig, [Vec<f64>; 2]); 4] {
    let code = RadioConfig { fec: small(Covers::Marked(MARK)), ..plain() };
    let bare = |bits: &[i32]| bits.iter().map(|&bits| at_most(0, bits, ber)).collect();
    let coded = |units: &[&[i32]]| {
        let survival = |words: &&[i32]| words.iter().map(|&bits| at_most(3, bits, ber)).product();
        units.iter().map(survival).collect()
    };
    [
        // 160 data bits are three times 45 plus 25; each block gets 18 check bits.
        ("whole", code, [bare(&[160]), coded(&[&[63, 63, 63, 43]])]),
        // 64 data bits are 45 plus 19.
        (
            "fragments",
            RadioConfig { mtu: mtu(8), ..code },
            [bare(&[64, 64, 32]), coded(&[&[63, 37], &[63, 37], &[50][..]])],
        ),
        // Units of 64 bits hold 45 data bits: a packet needs 2.5 units uncoded and 3.6 coded.
        ("units", RadioConfig { unit: mtu(8), ..code }, [bare(&[64; 3]), coded(&[&[63][..]; 4])]),
        // One unit of 192 bits holds 135 data bits.
        (
            "large units",
            RadioConfig { unit: mtu(24), ..code },
            [bare(&[192]), coded(&[&[63, 63, 63][..]; 2])],
        ),
    ]
}

#[test]
fn survival_matches_decoding_probability() {
    let n = 20_000;
    for ber in [0.01, 0.02, 0.03] {
        for (what, config, survivals) in ways(ber) {
            let (stats, log) = alternating(config, iid(ber), 2 * n, 20);
            for (found, units) in arrived(&log).into_iter().zip(&survivals) {
                let survival: f64 = units.iter().product();
                let sd = (survival * (1.0 - survival)).sqrt();
                close(&format!("{what} at {ber}"), found / f64::from(n), survival, sd, n);
            }
            // Units fail independently.
            let units = || survivals.iter().flatten();
            let failures: f64 = units().map(|survival| 1.0 - survival).sum();
            let variance: f64 = units().map(|survival| survival * (1.0 - survival)).sum();
            let failed = stats.failed_attempts as f64 / f64::from(n);
            close(&format!("{what} at {ber}: failures"), failed, failures, variance.sqrt(), n);
            assert_eq!(stats.attempts, u64::from(n) * units().count() as u64);
            assert_eq!(stats.delivered + stats.corrupted, u64::from(2 * n));
        }
    }
}

/// A packet arrives if none of its units fails M times, with either ARQ: the product of 1 − p^M over its
/// units, where p is a unit's failure probability.
#[test]
fn a_packet_is_discarded_when_a_coded_unit_reaches_the_limit() {
    let (n, most) = (20_000, 2);
    let retransmissions = Retransmissions::AtMost(most);
    for ber in [0.02, 0.03, 0.04] {
        for (what, config, survivals) in ways(ber) {
            for arq in &arqs(retransmissions)[1..] {
                let (stats, log) = alternating(RadioConfig { arq: *arq, ..config }, iid(ber), 2 * n, 20);
                for (found, units) in arrived(&log).into_iter().zip(&survivals) {
                    let arrives = |survival: &f64| 1.0 - (1.0 - survival).powi(most as i32 + 1);
                    let whole: f64 = units.iter().map(arrives).product();
                    let sd = (whole * (1.0 - whole)).sqrt();
                    close(&format!("{what} at {ber}, {arq:?}"), found / f64::from(n), whole, sd, n);
                }
                let gave_up = |did: &&Did| matches!(did, Did::Drop(_, DropReason::AttemptsExhausted));
                assert_eq!(log.iter().filter(gave_up).count() as u64, stats.discarded);
                assert_eq!(stats.delivered + stats.discarded, u64::from(2 * n));
            }
        }
    }
}

/// Without a limit a unit with survival probability s needs 1/s attempts on average.
#[test]
fn unlimited_attempts_of_coded_units_are_geometric() {
    let (n, ber) = (20_000, 0.02);
    for (what, config, survivals) in ways(ber) {
        for arq in &arqs(Retransmissions::Unlimited)[1..] {
            let (stats, _) = alternating(RadioConfig { arq: *arq, ..config }, iid(ber), 2 * n, 20);
            let units = || survivals.iter().flatten();
            let mean: f64 = units().map(|survival| 1.0 / survival).sum();
            let variance: f64 = units().map(|survival| (1.0 - survival) / (survival * survival)).sum();
            let found = stats.attempts as f64 / f64::from(n);
            close(&format!("{what}, {arq:?}"), found, mean, variance.sqrt(), n);
            assert_eq!(stats.delivered, u64::from(2 * n));
        }
    }
}

/// With at most M attempts a unit needs (1 − p^M)/(1 − p) on average and is discarded with probability p^M;
/// packets of one coded unit.
#[test]
fn attempts_of_coded_units_in_selective_repeat_are_truncated_geometric() {
    let (n, most) = (40_000, 3);
    for ber in [0.03, 0.05, 0.08] {
        let p = 1.0 - at_most(3, 63, ber);
        for (delay, slot) in [(0, 0), (60, 10), (7, 0)] {
            let arq = selective_repeat(Retransmissions::AtMost(most), delay, slot);
            let config = RadioConfig { unit: mtu(8), fec: small(Covers::Marked(MARK)), arq, ..plain() };
            let mut bench = Bench::seeded(config, iid(ber), 5);
            (0..n).for_each(|id| bench.send(Time::ZERO, marked(id, 4)));
            bench.finish();
            let stats = bench.link.stats();
            let ends_with = |k: i32| p.powi(k - 1) * if k <= most as i32 { 1.0 - p } else { 1.0 };
            let moment =
                |power| (1..=most as i32 + 1).map(|k| f64::from(k).powi(power) * ends_with(k)).sum::<f64>();
            let (mean, variance) = (moment(1), moment(2) - moment(1) * moment(1));
            close("the sum", mean, (1.0 - p.powi(most as i32 + 1)) / (1.0 - p), 1e-12, 1);
            close("attempts", stats.attempts as f64 / f64::from(n), mean, variance.sqrt(), n);
            let discarded = p.powi(most as i32 + 1);
            let sd = (discarded * (1.0 - discarded)).sqrt();
            close("discards", stats.discarded as f64 / f64::from(n), discarded, sd, n);
            assert_eq!(stats.air_time, Duration::from_millis(8) * stats.attempts);
        }
    }
}

/// The first attempt survives as an uncoded unit of 64 bits, the second as two codewords of 63.
#[test]
fn only_retransmissions_benefit_from_coding() {
    let (n, ber) = (40_000, 0.02);
    for arq in &arqs(Retransmissions::AtMost(1))[1..] {
        let config = RadioConfig { unit: mtu(8), fec: small(Covers::Repeats), arq: *arq, ..plain() };
        let (stats, _) = alternating(config, iid(ber), n, 8);
        let (first, second) = (1.0 - at_most(0, 64, ber), 1.0 - at_most(3, 63, ber).powi(2));
        let sd = |p: f64| (p * (1.0 - p)).sqrt();
        let repeats = stats.attempts - u64::from(n);
        close("repeats", repeats as f64 / f64::from(n), first, sd(first), n);
        close("discards", stats.discarded as f64 / f64::from(n), first * second, sd(first * second), n);
        assert_eq!(stats.bits_on_air, 64 * u64::from(n) + 128 * repeats);
        assert_eq!(stats.failed_attempts, repeats + stats.discarded);
    }
}

/// Outcomes of `n` attempts with these survival probabilities, from the random numbers of the link's stream.
fn by_hand(survivals: impl Iterator<Item = f64>) -> Vec<bool> {
    let mut bits = Streams::new(5, 0).stream("bits");
    survivals.map(|survival| bits.bernoulli(survival)).collect()
}

fn periods(good_ber: f64, bad_ber: f64) -> Box<dyn Channel> {
    let [good_ber, bad_ber] = [good_ber, bad_ber].map(|ber| Probability::new(ber).unwrap());
    let (good, bad) = (Duration::from_millis(10), Duration::from_millis(20));
    let model = Model::FixedPeriods(FixedPeriods { good, bad, good_ber, bad_ber });
    model.build(Streams::new(5, 0).stream("channel"))
}

/// Good for 10 ms and bad for 20 ms, alternating; a unit of 24 bytes takes 24 ms and starts at the same phase
/// of each period. Its codewords meet its parts in order; the mean rate or another order would give other
/// outcomes.
#[test]
fn a_unit_across_states_has_the_exact_decoding_probability() {
    let (good, bad, n) = (0.002, 0.06, 4_000);
    let part = |millis: f64, ber| Interval { share: millis / 24.0, ber };
    let mut survivals = Vec::new();
    for (offset, parts) in [
        (0, vec![part(10.0, good), part(14.0, bad)]),
        (4, vec![part(6.0, good), part(18.0, bad)]),
        (8, vec![part(2.0, good), part(20.0, bad), part(2.0, good)]),
        (20, vec![part(10.0, bad), part(10.0, good), part(4.0, bad)]),
        (26, vec![part(4.0, bad), part(10.0, good), part(10.0, bad)]),
        (10, vec![part(20.0, bad), part(4.0, good)]),
    ] {
        let code = BlockCode::new(63, 45, 3).unwrap();
        let survival = Decoder::new(code).unit_survival(192, &parts);
        let expected = by_hand(std::iter::repeat_n(survival, n));
        for arq in [Config::None, stop_and_wait(Retransmissions::AtMost(0), Backoff::Fixed(Duration::ZERO))] {
            let config = RadioConfig { unit: mtu(24), fec: small(Covers::Marked(MARK)), arq, ..plain() };
            let mut bench = Bench::seeded(config, periods(good, bad), 5);
            // 16 bytes: the data of a unit's three codewords.
            (0..n as u32).for_each(|id| bench.send(ms(30 * u64::from(id) + offset), marked(id, 16)));
            bench.finish();
            let mut found = vec![false; n];
            for (_, did) in &bench.log {
                if let Did::Deliver(id) = *did {
                    found[id as usize] = true;
                }
            }
            assert!(found == expected, "from {offset} ms, {arq:?}");
        }
        let found = expected.iter().filter(|survives| **survives).count();
        close("of these", found as f64 / n as f64, survival, (survival * (1.0 - survival)).sqrt(), n as u32);
        survivals.push(survival);
    }
    // The survival probabilities differ from each other and from that of any mean rate.
    survivals.push(at_most(3, 63, (10.0 * good + 14.0 * bad) / 24.0).powi(3));
    survivals.sort_by(f64::total_cmp);
    assert!(survivals.windows(2).all(|pair| pair[1] - pair[0] > 0.005), "{survivals:?}");
}

/// If the error rate applies to the air time, the bits added by expansion are exposed too; if it applies to
/// the packet, they are not. The same holds for coded bits.
#[test]
fn a_code_protects_the_exposed_bits() {
    let (ber, n) = (0.03, 20_000);
    let expansion = Expansion::new(2.0).unwrap();
    // A unit of 64 bits, and a packet of 40 bits that becomes 58 with check bits; each expanded by two.
    for (exposed, in_unit, whole) in [
        (Exposed::OnAir, at_most(3, 63, ber).powi(2), at_most(3, 63, ber) * at_most(3, 53, ber)),
        (Exposed::Payload, at_most(3, 63, ber), at_most(3, 58, ber)),
    ] {
        let code = RadioConfig { expansion, exposed, fec: small(Covers::Marked(MARK)), ..plain() };
        for (config, survival) in [(RadioConfig { unit: mtu(8), ..code }, in_unit), (code, whole)] {
            let mut bench = Bench::seeded(config, iid(ber), 5);
            (0..n).for_each(|id| bench.send(Time::ZERO, marked(id, 5)));
            bench.finish();
            let found = bench.link.stats().delivered as f64 / f64::from(n);
            close(&format!("{exposed:?}"), found, survival, (survival * (1.0 - survival)).sqrt(), n);
        }
    }
}

/// A unit that overlaps an outage is lost although its bits are correct: here packets 2 and 3, of 10 ms
/// each, in 23 ms to 36 ms.
#[test]
fn hand_offs_lose_coded_units() {
    let outages = Outages { first: Duration::from_millis(23), every: None, lasts: Duration::from_millis(13) };
    let config = RadioConfig { unit: mtu(10), fec: small(Covers::Marked(MARK)), ..plain() };
    for arq in arqs(Retransmissions::AtMost(0)) {
        let mut bench = Bench::new(RadioConfig { arq, ..config }, outages.interrupt(iid(0.0)));
        (0..6).for_each(|id| bench.send(ms(0), marked(id, 5)));
        bench.finish();
        let delivered = |id| bench.log.iter().any(|(_, did)| *did == Did::Deliver(id));
        assert_eq!([0, 1, 2, 3, 4, 5].map(delivered), [true, true, false, false, true, true], "{arq:?}");
        assert_eq!(bench.link.stats().failed_attempts, 2);
    }
}

/// A channel that loses whole units ignores their content: the same units are lost, coded or not.
#[test]
fn coding_does_not_help_against_frame_loss() {
    let loss = Probability::new(0.3).unwrap();
    let losing = || Model::FrameLoss(FrameLoss { loss }).build(Streams::new(5, 0).stream("channel"));
    for arq in arqs(Retransmissions::AtMost(2)) {
        let config = RadioConfig { unit: mtu(100), arq, ..plain() };
        let coded = RadioConfig { fec: small(Covers::Marked(MARK)), ..config };
        let (without, log) = alternating(config, losing(), 2_000, 20);
        assert_eq!(alternating(coded, losing(), 2_000, 20), (without, log));
        assert!(without.failed_attempts > 400);
    }
}

/// Each attempt consumes one random number, coded or not, certain or not, so later outcomes do not depend on
/// it.
#[test]
fn a_coded_attempt_draws_one_random_number() {
    let fates = |first: Packet, survival: f64| {
        let odds = std::iter::once(survival).chain(std::iter::repeat(0.5));
        let config = RadioConfig { unit: mtu(8), fec: small(Covers::Marked(MARK)), ..plain() };
        let mut bench = Bench::new(config, Box::new(Odds(odds)));
        bench.send(Time::ZERO, first);
        (1..100).for_each(|id| bench.send(Time::ZERO, marked(id, 4)));
        bench.finish()[1..].to_vec()
    };
    let expected = fates(marked(0, 4), 0.5);
    for (first, survival) in [(marked(0, 4), 0.0), (marked(0, 4), 1.0), (packet(0, 4), 0.5)] {
        assert_eq!(fates(first, survival), expected);
    }
}
