//! Event times, calculated by hand in microseconds for 802.11b: slot 20, SIFS 10, DIFS 50, EIFS 364. Air
//! times: 192 + 1536·8/11 = 1310 for a packet of 1500 B, 192 + 100·8/11 = 265 for one of 64 B, 304 for ACK
//! and CTS frames at 1 Mb/s, 352 for an RTS frame. Random numbers are drawn separately from the same streams.

use lasthop_base::{Bytes, Duration, Streams, Time};
use lasthop_channel::Model;
use lasthop_proto::{DropReason, LinkOutcome, Port};
use lasthop_sim::QueueLimit;
use lasthop_sim::wlan::{
    AboveMac, ApQueue, BssConfig, Cw, DirectionStats, Dsss, DsssRate, Phy, Preamble, RetryLimit,
};

use crate::wlan::harness::{Bench, Did, Draws, SERVER, frame_loss, host, packet, port, stations, us};
use Did::{Deliver, Drop, Signal};
use DropReason::{AttemptsExhausted, Corrupted, QueueFull};
use LinkOutcome::{AttemptFailed, Delivered, Discarded};

const LONG: u64 = 1310;
const SHORT: u64 = 265;
const ACK: u64 = 304;
const RTS: u64 = 352;
const SIFS: u64 = 10;
const DIFS: u64 = 50;
const EIFS: u64 = 364;
const SLOT: u64 = 20;

/// A contention window of zero.
fn no_backoff() -> BssConfig {
    BssConfig { cw: Some(Cw { min: 0, max: 0 }), ..BssConfig::default() }
}

fn dsss(data_rate: DsssRate, control_rate: DsssRate, preamble: Preamble) -> BssConfig {
    BssConfig { phy: Phy::Dsss(Dsss { data_rate, control_rate, preamble }), ..BssConfig::default() }
}

/// A long packet from the access point to station `to`, and a short one from station `from`.
fn down(id: u64, to: u32) -> (Port, lasthop_proto::Packet) {
    (Port::WIRED, packet(id, host(to), 1500))
}

fn up(id: u64, from: u32) -> (Port, lasthop_proto::Packet) {
    (port(from), packet(id, SERVER, 64))
}

/// Runs with packets arriving at these times.
fn play(bench: &mut Bench, arrivals: &[(u64, (Port, lasthop_proto::Packet))]) -> Vec<(Time, Did)> {
    for &(at, (port, packet)) in arrivals {
        bench.send(us(at), port, packet);
    }
    bench.finish().to_vec()
}

#[test]
fn an_idle_medium_is_used_at_once() {
    let mut bench = Bench::perfect(BssConfig::default(), 1, 2);
    let end = 7 + LONG;
    let log = play(&mut bench, &[(7, down(0, 1))]);
    assert_eq!(log, [(us(end), Deliver(port(1), 0)), (us(end + SIFS + ACK), Signal(0, Delivered, 1))]);
    // The post-backoff takes at most 31 slots; afterwards there is no wait.
    let start = end + SIFS + ACK + DIFS + 31 * SLOT;
    let log = play(&mut bench, &[(start, down(1, 0))]);
    assert_eq!(log[2], (us(start + LONG), Deliver(port(0), 1)));
}

/// The duration of an exchange with 1472 B of UDP, from the standard's constants.
#[test]
fn an_exchange_takes_its_frames_and_interframe_spaces() {
    use DsssRate::{Mbps1, Mbps2, Mbps5_5, Mbps11};
    use Preamble::{Long, Short};
    for (config, data, ack, rts) in [
        (dsss(Mbps11, Mbps1, Long), 192 + 1118, 304, 352),
        (dsss(Mbps11, Mbps2, Long), 192 + 1118, 192 + 56, 192 + 80),
        (dsss(Mbps11, Mbps2, Short), 96 + 1118, 96 + 56, 96 + 80),
        // At 1 Mb/s the preamble is long.
        (dsss(Mbps11, Mbps1, Short), 96 + 1118, 304, 352),
        (dsss(Mbps5_5, Mbps5_5, Short), 96 + 2235, 96 + 21, 96 + 30),
        (dsss(Mbps2, Mbps1, Long), 192 + 6144, 304, 352),
        (dsss(Mbps1, Mbps1, Short), 192 + 12_288, 304, 352),
    ] {
        let mut bench = Bench::perfect(config, 1, 1);
        let mut draws = Draws::of(1, "ap");
        let second = data + SIFS + ack + DIFS + draws.next(31);
        let expected = [
            (us(data), Deliver(port(0), 0)),
            (us(data + SIFS + ack), Signal(0, Delivered, 1)),
            (us(second + data), Deliver(port(0), 1)),
            (us(second + data + SIFS + ack), Signal(1, Delivered, 1)),
        ];
        assert_eq!(play(&mut bench, &[(0, down(0, 0)), (0, down(1, 0))]), expected);

        // The threshold is the longest frame sent without RTS.
        for (threshold, before) in [(1535, rts + SIFS + ack + SIFS), (1536, 0)] {
            let config = BssConfig { rts_threshold: Some(Bytes(threshold)), ..config };
            let log = play(&mut Bench::perfect(config, 1, 1), &[(0, down(0, 0))]);
            assert_eq!(log[0].0, us(before + data));
            assert_eq!(log[1].0, us(before + data + SIFS + ack));
        }
    }
}

/// The mean backoff is 15.5 slots, over 20,000 packets: within five standard errors, which a correct BSS
/// exceeds once in 1.7 million seeds.
#[test]
fn a_lone_station_waits_the_mean_backoff_per_packet() {
    use DsssRate::{Mbps1, Mbps2, Mbps11};
    let n = 20_000;
    for (config, exchange) in [
        (dsss(Mbps11, Mbps1, Preamble::Long), 50 + 1310 + 10 + 304),
        (dsss(Mbps11, Mbps2, Preamble::Short), 50 + 1214 + 10 + 152),
        (
            BssConfig { rts_threshold: Some(Bytes(500)), ..BssConfig::default() },
            50 + 352 + 10 + 304 + 10 + 1310 + 10 + 304,
        ),
    ] {
        let mut bench = Bench::perfect(config, 1, 1);
        (0..n).for_each(|id| bench.enter(port(0), packet(id, SERVER, 1500)));
        let log = bench.finish();
        let found = log[log.len() - 1].0.since(log[0].0).as_nanos() as f64 / 1e3;
        let exact = (n - 1) as f64 * (exchange as f64 + 15.5 * 20.0);
        // A uniform draw from 32 slots has variance (32² − 1)/12.
        let error = 20.0 * ((32.0f64.powi(2) - 1.0) / 12.0 * n as f64).sqrt();
        println!(
            "{:.4} Mb/s by hand, {:.4} Mb/s found",
            1472.0 * 8.0 * (n - 1) as f64 / exact,
            1472.0 * 8.0 * (n - 1) as f64 / found,
        );
        assert!((found - exact).abs() < 5.0 * error, "{found} µs, not {exact} ± {error}");
    }
}

/// Station 0 transmits while two others sense the medium busy. The one with the shorter backoff goes first;
/// the other resumes with its remaining slots.
#[test]
fn a_backoff_is_frozen_while_others_send() {
    let mut decided = 0;
    for seed in 0..20 {
        let mut bench = Bench::perfect(BssConfig::default(), seed, 3);
        let [one, two] = ["1", "2"].map(|name| Draws::of(seed, name).next(31));
        let log = play(&mut bench, &[(0, up(0, 0)), (100, up(1, 1)), (400, up(2, 2))]);
        if one == two {
            continue;
        }
        let (first, second) = if one < two { ((1, one), (2, two)) } else { ((2, two), (1, one)) };
        let begin = SHORT + SIFS + ACK + DIFS + first.1;
        let next = begin + SHORT + SIFS + ACK + DIFS + (second.1 - first.1);
        let expected = [
            (us(SHORT), Deliver(Port::WIRED, 0)),
            (us(begin + SHORT), Deliver(Port::WIRED, first.0)),
            (us(next + SHORT), Deliver(Port::WIRED, second.0)),
        ];
        assert_eq!(log, expected);
        decided += 1;
    }
    assert!(decided > 15);
}

/// A packet that arrives during the post-backoff waits for its remainder; one that arrives before the ACK of
/// the previous packet draws no second backoff.
#[test]
fn a_packet_waits_for_the_post_backoff() {
    let mut none = 0;
    for seed in 0..100 {
        let backoff = Draws::of(seed, "0").next(31);
        none += u32::from(backoff == 0);
        let slots_from = SHORT + SIFS + ACK + DIFS;
        for comes in [SHORT, SHORT + 100, SHORT + SIFS + ACK, slots_from, slots_from + 1, slots_from + 300] {
            let mut bench = Bench::perfect(BssConfig::default(), seed, 1);
            let log = play(&mut bench, &[(0, up(0, 0)), (comes, up(1, 0))]);
            let start = comes.max(slots_from + backoff);
            assert_eq!(log[1], (us(start + SHORT), Deliver(Port::WIRED, 1)), "{seed} {comes}");
        }
    }
    assert!(none > 0, "no post-backoff is of no slot");
}

/// Another station's exchange during a post-backoff: finished slots are not repeated.
#[test]
fn a_post_backoff_without_a_packet_is_frozen_too() {
    let seed = (0..).find(|&seed| Draws::of(seed, "0").slots(31) == 9).unwrap();
    let slots_from = SHORT + SIFS + ACK + DIFS;
    // Slots end at 20, 40 and 60; the next one has begun.
    let interruption = slots_from + 3 * SLOT + 1;
    let free = interruption + SHORT + SIFS + ACK + DIFS;
    for (comes, left) in [(interruption + 100, 5), (free + 1, 5), (free + 6 * SLOT, 6)] {
        let mut bench = Bench::perfect(BssConfig::default(), seed, 2);
        let log = play(&mut bench, &[(0, up(0, 0)), (interruption, up(1, 1)), (comes, up(2, 0))]);
        // The slot in progress ends before the carrier is sensed: nine less four remain.
        assert_eq!(log[2], (us(free + left * SLOT + SHORT), Deliver(Port::WIRED, 2)), "{comes}");
    }
}

#[test]
fn an_arrival_on_an_idle_medium_waits_for_difs_only() {
    for comes in [SHORT + SIFS + ACK, SHORT + SIFS + ACK + 49] {
        let mut bench = Bench::perfect(BssConfig::default(), 1, 2);
        let log = play(&mut bench, &[(0, up(0, 0)), (comes, up(1, 1))]);
        let start = SHORT + SIFS + ACK + DIFS;
        let backoff = Draws::of(1, "0").next(31);
        assert!(backoff > 0);
        assert_eq!(log[1], (us(start + SHORT), Deliver(Port::WIRED, 1)));
    }
    // One nanosecond earlier the medium is busy.
    let mut bench = Bench::perfect(BssConfig::default(), 1, 2);
    bench.send(us(0), up(0, 0).0, up(0, 0).1);
    bench.send(Time::from_nanos((SHORT + SIFS + ACK) * 1000 - 1), up(1, 1).0, up(1, 1).1);
    let start = SHORT + SIFS + ACK + DIFS + Draws::of(1, "1").next(31);
    assert_eq!(bench.finish()[1], (us(start + SHORT), Deliver(Port::WIRED, 1)));
}

/// A carrier is not sensed within the slot in which it starts.
#[test]
fn transmissions_within_one_slot_collide() {
    let config = BssConfig { short_retry_limit: RetryLimit::at_most(1), ..BssConfig::default() };
    let mut bench = Bench::perfect(config, 1, 2);
    bench.send(us(0), up(0, 0).0, up(0, 0).1);
    bench.send(Time::from_nanos(SLOT * 1000 - 1), up(1, 1).0, up(1, 1).1);
    let (first, second) = (SHORT * 1000, SHORT * 1000 + SLOT * 1000 - 1);
    let answer = (SIFS + ACK) * 1000;
    let expected = [
        (Time::from_nanos(first + answer), Drop(0, AttemptsExhausted)),
        (Time::from_nanos(second + answer), Drop(1, AttemptsExhausted)),
    ];
    assert_eq!(bench.finish(), expected);
    let stats = bench.bss.stats();
    assert_eq!((stats.exchanges, stats.collisions), (0, 1));
    assert_eq!(stats.busy_time, Duration::from_nanos(second));

    let mut bench = Bench::perfect(config, 1, 2);
    let log = play(&mut bench, &[(0, up(0, 0)), (SLOT, up(1, 1))]);
    let start = SHORT + SIFS + ACK + DIFS + Draws::of(1, "1").next(31);
    assert_eq!(log[1], (us(start + SHORT), Deliver(Port::WIRED, 1)));
}

/// Two stations collide. With control frames at 1 Mb/s they and a third one resume their slots together, EIFS
/// after the collision; at 2 Mb/s the ACK timeout of 10 + 248 plus DIFS is 56 µs shorter.
#[test]
fn stations_wait_for_eifs_after_a_collision() {
    for (control_rate, answered) in [(DsssRate::Mbps1, 314), (DsssRate::Mbps2, 258)] {
        let config = dsss(DsssRate::Mbps11, control_rate, Preamble::Long);
        for seed in 0..10 {
            let mut bench = Bench::perfect(config, seed, 3);
            let [one, two] = ["0", "1"].map(|name| Draws::of(seed, name).next(63));
            // Both later than the third station, and at different times.
            if one.min(two) < 100 || one == two {
                continue;
            }
            let log = play(&mut bench, &[(0, up(0, 0)), (0, up(1, 1)), (300, up(2, 2))]);
            let third = SHORT + EIFS;
            let ended = (third + SLOT - 1 - (SHORT + answered + DIFS)) / SLOT * SLOT;
            let free = third + SHORT + answered + DIFS;
            let ((id, least), most) = if one < two { ((0, one), two) } else { ((1, two), one) };
            let second = free + least - ended;
            let last = second + SHORT + answered + DIFS + most - least;
            let expected = [
                (us(third + SHORT), Deliver(Port::WIRED, 2)),
                (us(second + SHORT), Deliver(Port::WIRED, id)),
                (us(last + SHORT), Deliver(Port::WIRED, 1 - id)),
            ];
            assert_eq!(log, expected);
        }
    }
}

/// The access point's long frame collides with a short one of station 0, whose ACK timeout expires before the
/// medium is idle.
#[test]
fn the_longest_frame_determines_the_end_of_a_collision() {
    let config = BssConfig { cw: Some(Cw { min: 0, max: 1 }), ..BssConfig::default() };
    for seed in 0..20 {
        let mut bench = Bench::perfect(config, seed, 2);
        let station = Draws::of(seed, "0").next(1);
        let log = play(&mut bench, &[(0, down(0, 1)), (0, up(1, 0))]);
        // The station is ahead by the access point's ACK timeout.
        let begin = LONG + DIFS + station;
        let free = begin + SHORT + SIFS + ACK + DIFS;
        // The access point expects an ACK when the station transmits, so its backoff is frozen.
        let again = free + Draws::of(seed, "ap").next(1);
        let expected = [
            (us(begin + SHORT), Deliver(Port::WIRED, 1)),
            (us(LONG + SIFS + ACK), Signal(0, AttemptFailed, 1)),
            (us(again + LONG), Deliver(port(1), 0)),
            (us(again + LONG + SIFS + ACK), Signal(0, Delivered, 2)),
        ];
        let mut sorted = expected;
        sorted.sort_by_key(|&(at, _)| at);
        assert_eq!(log, sorted);
        let way = DirectionStats {
            attempts: 2,
            retries: 1,
            collided: 1,
            delivered: 1,
            ..DirectionStats::default()
        };
        assert_eq!(bench.bss.station(1).down, DirectionStats { delivered_bytes: Bytes(1500), ..way });
        assert_eq!(bench.bss.stats().busy_time, us(2 * LONG + SHORT + 2 * ACK).since(Time::ZERO));
    }
}

/// After a collision station 0, whose frame was shorter, transmits while the other sender waits for an ACK.
/// At the instant of that timeout, a packet that arrives draws a backoff as on any busy medium; the sender
/// that waited keeps its frozen backoff.
#[test]
fn an_ack_timeout_includes_its_last_instant() {
    let cw = Some(Cw { min: 1, max: 1 });
    // The initial backoffs are zero, so station 0 is first; the next one of the other sender is one slot.
    let seed_for = |other: &str| {
        (0..).find(|&seed| {
            let mut other = Draws::of(seed, other);
            [other.slots(1), other.slots(1), Draws::of(seed, "0").slots(1)] == [0, 1, 0]
        })
    };

    let config = BssConfig { cw, short_retry_limit: RetryLimit::at_most(1), ..BssConfig::default() };
    let mut bench = Bench::perfect(config, seed_for("ap").unwrap(), 2);
    let timeout = LONG + SIFS + ACK;
    let log = play(&mut bench, &[(0, down(0, 1)), (0, up(1, 0)), (0, up(2, 0)), (timeout, down(3, 1))]);
    let begin = LONG + DIFS;
    assert!(log.contains(&(us(begin + SHORT), Deliver(Port::WIRED, 2))));
    assert!(begin < timeout && timeout < begin + SHORT);
    let free = begin + SHORT + SIFS + ACK + DIFS;
    assert!(log.contains(&(us(free + SLOT + LONG), Deliver(port(1), 3))), "{log:?}");

    // A packet of 160 B takes 335: its ACK timeout expires when the carrier of station 0 is sensed.
    let medium = 335;
    let begin = SHORT + SIFS + ACK + DIFS;
    assert_eq!(begin + SLOT, medium + SIFS + ACK);
    let config = BssConfig { cw, ..BssConfig::default() };
    let mut bench = Bench::perfect(config, seed_for("1").unwrap(), 2);
    let log = play(&mut bench, &[(0, up(0, 0)), (0, (port(1), packet(1, SERVER, 160)))]);
    let free = begin + SHORT + SIFS + ACK + DIFS;
    let expected =
        [(us(begin + SHORT), Deliver(Port::WIRED, 0)), (us(free + medium), Deliver(Port::WIRED, 1))];
    assert_eq!(log, expected);
}

/// A frame of station 0 is lost at the access point. Other stations decode it: for them the medium is busy
/// until the end of its ACK. The access point waits for EIFS.
#[test]
fn a_lost_frame_sets_the_nav_of_stations_that_decoded_it() {
    // Control frames at 2 Mb/s make EIFS longer by 56 µs.
    let config = dsss(DsssRate::Mbps11, DsssRate::Mbps2, Preamble::Long);
    let nav = SHORT + SIFS + 248;
    let seed = 3;
    let [sender, other] = [Draws::of(seed, "0").next(63), Draws::of(seed, "1").next(31)];
    assert!(sender > 200 && other > 0);
    let lost = &[false][..];
    for (comes, start) in [(SHORT, nav + DIFS + other), (nav - 1, nav + DIFS + other), (nav, nav + DIFS)] {
        let mut bench = Bench::scripted(config, seed, &[lost, &[]]);
        let log = play(&mut bench, &[(0, up(0, 0)), (comes, up(1, 1))]);
        let first = start.min(nav + DIFS + sender);
        let expected = if first == start { 1 } else { 0 };
        assert_eq!(log[0], (us(first + SHORT), Deliver(Port::WIRED, expected)), "{comes}");
    }
    for comes in [SHORT, nav, SHORT + EIFS - 1, SHORT + EIFS + 1] {
        let mut bench = Bench::scripted(config, seed, &[lost, &[]]);
        let log = play(&mut bench, &[(0, up(0, 0)), (comes, down(1, 1))]);
        assert_eq!(log[0], (us(comes.max(SHORT + EIFS) + LONG), Deliver(port(1), 1)), "{comes}");
    }
}

/// The access point waits for EIFS without a backoff when another station transmits: then it draws one.
#[test]
fn a_station_interrupted_in_eifs_draws_a_backoff() {
    let config = dsss(DsssRate::Mbps11, DsssRate::Mbps2, Preamble::Long);
    let nav = SHORT + SIFS + 248;
    let mut bench = Bench::scripted(config, 3, &[&[false], &[]]);
    // Station 1 starts at NAV plus DIFS, 56 µs before EIFS ends.
    let log = play(&mut bench, &[(0, up(0, 0)), (SHORT + 1, down(1, 1)), (nav, up(2, 1))]);
    let second = nav + DIFS + SHORT + SIFS + 248 + DIFS;
    let ap = second + Draws::of(3, "ap").next(31);
    // The retry counts slots from NAV plus DIFS, of which one has ended before station 1 was sensed.
    let retry = second + Draws::of(3, "0").next(63);
    assert!(ap < retry);
    assert_eq!(log[0], (us(nav + DIFS + SHORT), Deliver(Port::WIRED, 2)));
    assert_eq!(log[1], (us(ap + LONG), Deliver(port(1), 1)));
}

/// Seven attempts, each with a doubled window; the next packet starts with the initial one.
#[test]
fn the_contention_window_doubles_up_to_the_retry_limit() {
    let mut bench = Bench::scripted(BssConfig::default(), 1, &[&[false; 7]]);
    let log = play(&mut bench, &[(0, down(0, 0)), (0, down(1, 0))]);
    let mut draws = Draws::of(1, "ap");
    let (mut at, mut expected) = (0, Vec::new());
    for (attempt, cw) in (1..).zip([63, 127, 255, 511, 1023, 1023, 31]) {
        at += LONG + SIFS + ACK;
        expected.push((us(at), Signal(0, AttemptFailed, attempt)));
        at += DIFS + draws.next(cw);
        if attempt == 7 {
            expected.push((expected[6].0, Signal(0, Discarded, 7)));
            expected.push((expected[6].0, Drop(0, AttemptsExhausted)));
        }
    }
    expected.push((us(at + LONG), Deliver(port(0), 1)));
    expected.push((us(at + LONG + SIFS + ACK), Signal(1, Delivered, 1)));
    assert_eq!(log, expected);
    let way = DirectionStats { attempts: 8, retries: 6, lost: 7, discarded: 1, ..DirectionStats::default() };
    let way = DirectionStats { delivered: 1, delivered_bytes: Bytes(1500), ..way };
    assert_eq!(bench.bss.station(0).down, way);
}

/// A success resets the window.
#[test]
fn a_success_resets_the_contention_window() {
    let mut bench = Bench::scripted(BssConfig::default(), 1, &[&[false, false]]);
    let log = play(&mut bench, &[(0, up(0, 0)), (0, up(1, 0))]);
    let mut draws = Draws::of(1, "0");
    let each = SHORT + SIFS + ACK + DIFS;
    let third = 2 * each + draws.next(63) + draws.next(127);
    let next = third + each + draws.next(31);
    let expected =
        [(us(third + SHORT), Deliver(Port::WIRED, 0)), (us(next + SHORT), Deliver(Port::WIRED, 1))];
    assert_eq!(log, expected);
}

/// Data after RTS fail four times. The CTS before each of them resets the short count, even with a limit of
/// 1.
#[test]
fn data_after_rts_have_the_long_retry_limit() {
    for short in [1, 7] {
        let config = BssConfig {
            rts_threshold: Some(Bytes(500)),
            short_retry_limit: RetryLimit::at_most(short),
            ..BssConfig::default()
        };
        let mut bench = Bench::scripted(config, 1, &[&[false; 4]]);
        let log = play(&mut bench, &[(0, down(0, 0)), (0, down(1, 0))]);
        let mut draws = Draws::of(1, "ap");
        let exchange = RTS + SIFS + ACK + SIFS + LONG + SIFS + ACK;
        let mut at = 0;
        for (attempt, cw) in (1..).zip([63, 127, 255, 31]) {
            at += exchange;
            assert_eq!(log[attempt as usize - 1], (us(at), Signal(0, AttemptFailed, attempt)));
            at += DIFS + draws.next(cw);
        }
        assert_eq!(
            log[4..6].iter().map(|(_, did)| *did).collect::<Vec<_>>(),
            [Signal(0, Discarded, 4), Drop(0, AttemptsExhausted)]
        );
        assert_eq!(log[7], (us(at + exchange), Signal(1, Delivered, 1)));
    }
}

/// RTS frames that collide count towards the short limit, and cost only their own air time.
#[test]
fn rts_frames_have_the_short_retry_limit() {
    let config = BssConfig {
        cw: Some(Cw { min: 0, max: 0 }),
        rts_threshold: Some(Bytes(0)),
        short_retry_limit: RetryLimit::at_most(3),
        long_retry_limit: RetryLimit::at_most(1),
        ..BssConfig::default()
    };
    let mut bench = Bench::perfect(config, 1, 2);
    let log = play(&mut bench, &[(0, up(0, 0)), (0, up(1, 1))]);
    let last = 2 * (RTS + SIFS + ACK + DIFS) + RTS + SIFS + ACK;
    assert_eq!(log, [(us(last), Drop(0, AttemptsExhausted)), (us(last), Drop(1, AttemptsExhausted))]);
    assert_eq!(bench.bss.stats().busy_time, Duration::from_micros(3 * RTS));
}

/// Two RTS frames collide twice, then one is alone and its data are lost once. Each limit is one more than
/// the failures that count towards it.
#[test]
fn a_cts_resets_the_short_retry_count() {
    let config = BssConfig {
        cw: Some(Cw { min: 0, max: 3 }),
        rts_threshold: Some(Bytes(0)),
        short_retry_limit: RetryLimit::at_most(2),
        long_retry_limit: RetryLimit::at_most(2),
        ..BssConfig::default()
    };
    // The first draws, from 0 to 1, differ; station 0 is first, and its frame is lost; the draws from 0 to 3
    // are equal, which is the second failed RTS of station 0.
    let fits = |seed: &u64| {
        let (mut zero, mut one) = (Draws::of(*seed, "0"), Draws::of(*seed, "1"));
        let (first, other) = (zero.slots(1), one.slots(1));
        first < other && other - first == zero.slots(3)
    };
    let seed = (0..).find(fits).unwrap();
    let mut bench = Bench::scripted(config, seed, &[&[false], &[]]);
    let log = play(&mut bench, &[(0, up(0, 0)), (0, up(1, 1))]);
    // Station 1 failed twice in a row and discards its packet; station 0 did not.
    let dropped: Vec<_> = log.iter().map(|(_, did)| *did).collect();
    assert_eq!(dropped, [Drop(1, AttemptsExhausted), Deliver(Port::WIRED, 0)]);
    assert_eq!(bench.bss.station(0).up.attempts, 4);
}

#[test]
fn packets_dropped_above_the_mac_are_acknowledged() {
    let sure = lasthop_base::Probability::new(1.0).unwrap();
    let none = lasthop_base::Probability::default();
    let streams = Streams::new(1, 0);
    for (above_mac, dropped) in
        [(AboveMac { down: sure, up: none }, 0), (AboveMac { down: none, up: sure }, 1)]
    {
        let all = stations(streams, 1, Model::Perfect, above_mac);
        let mut bench = Bench::new(no_backoff(), 1, all);
        let log = play(&mut bench, &[(0, down(0, 0)), (LONG + SIFS + ACK + 1000, up(1, 0))]);
        let fate = |id, to| if dropped == id { Drop(id, Corrupted) } else { Deliver(to, id) };
        let expected = [
            (us(LONG), fate(0, port(0))),
            (us(LONG + SIFS + ACK), Signal(0, Delivered, 1)),
            (us(LONG + SIFS + ACK + 1000 + SHORT), fate(1, Port::WIRED)),
        ];
        assert_eq!(log, expected);
        let stats = bench.bss.station(0);
        assert_eq!((stats.down.attempts, stats.up.attempts), (1, 1));
        assert_eq!((stats.down.corrupted, stats.up.corrupted), (1 - dropped, dropped));
        assert_eq!((stats.down.delivered, stats.up.delivered), (dropped, 1 - dropped));
    }
}

/// A packet for another station of the BSS is relayed by the access point, which senses the medium busy.
#[test]
fn a_packet_for_another_station_crosses_the_air_twice() {
    let mut bench = Bench::perfect(BssConfig::default(), 1, 2);
    let log = play(&mut bench, &[(0, (port(0), packet(0, host(1), 1500)))]);
    let again = LONG + SIFS + ACK + DIFS + Draws::of(1, "ap").next(31);
    let expected =
        [(us(again + LONG), Deliver(port(1), 0)), (us(again + LONG + SIFS + ACK), Signal(0, Delivered, 1))];
    assert_eq!(log, expected);
    assert_eq!((bench.bss.station(0).up.delivered, bench.bss.station(1).down.delivered), (1, 1));
}

/// Each delivery is followed by the exchange of the next packet. The first packet is not queued.
#[test]
fn the_access_point_has_round_robin_or_shared_queues() {
    let arrivals = [(0, 0), (1, 0), (2, 0), (3, 2), (4, 1), (5, 1), (6, 0), (7, 2)];
    for (ap_queue, expected) in [
        (ApQueue::PerStation(QueueLimit::Unlimited), [0, 4, 3, 1, 5, 7, 2, 6]),
        (ApQueue::Shared(QueueLimit::Unlimited), [0, 1, 2, 3, 4, 5, 6, 7]),
    ] {
        let mut bench = Bench::perfect(BssConfig { ap_queue, ..no_backoff() }, 1, 3);
        let log = play(&mut bench, &arrivals.map(|(id, to)| (0, down(id, to))));
        let deliveries = log.iter().filter_map(|(_, did)| match did {
            Deliver(_, id) => Some(*id),
            _ => None,
        });
        assert_eq!(deliveries.collect::<Vec<_>>(), expected);
        let last = us(8 * LONG + 7 * (SIFS + ACK + DIFS));
        assert_eq!(log[14].0, last);
    }
}

#[test]
fn a_full_queue_drops_arrivals() {
    let two = QueueLimit::Packets(2);
    let counts = |ap_queue, station_queue| {
        let mut bench = Bench::perfect(BssConfig { ap_queue, station_queue, ..no_backoff() }, 1, 2);
        (0..4).for_each(|id| bench.enter(down(id, 0).0, down(id, 0).1));
        (4..8).for_each(|id| bench.enter(down(id, 1).0, down(id, 1).1));
        (8..12).for_each(|id| bench.enter(up(id, 0).0, up(id, 0).1));
        let dropped = bench.log.iter().map(|(at, did)| match did {
            Drop(id, QueueFull) if *at == Time::ZERO => *id,
            _ => panic!("{did:?}"),
        });
        let dropped: Vec<_> = dropped.collect();
        let [zero, one] = [0, 1].map(|index| *bench.bss.station(index));
        assert_eq!(zero.down.overflowed + one.down.overflowed + zero.up.overflowed, dropped.len() as u64);
        dropped
    };
    let unlimited = QueueLimit::Unlimited;
    assert_eq!(counts(ApQueue::PerStation(two), unlimited), [3, 6, 7]);
    assert_eq!(counts(ApQueue::Shared(two), unlimited), [3, 4, 5, 6, 7]);
    assert_eq!(counts(ApQueue::PerStation(QueueLimit::Bytes(Bytes(4499))), two), [3, 6, 7, 11]);
}

#[test]
#[should_panic(expected = "HostId(102) is not in the BSS")]
fn a_packet_for_a_foreign_host_panics() {
    let mut bench = Bench::perfect(BssConfig::default(), 1, 2);
    bench.enter(Port::WIRED, packet(0, host(2), 100));
}

/// Whether a frame survives is queried once for each frame that did not collide.
#[test]
fn control_frames_are_not_exposed_to_errors() {
    let all = stations(Streams::new(1, 0), 1, frame_loss(0.0), AboveMac::default());
    let config = BssConfig { rts_threshold: Some(Bytes(0)), ..BssConfig::default() };
    let mut bench = Bench::new(config, 1, all);
    let log = play(&mut bench, &[(0, up(0, 0))]);
    assert_eq!(log, [(us(RTS + SIFS + ACK + SIFS + SHORT), Deliver(Port::WIRED, 0))]);
    assert_eq!(bench.bss.stats().busy_time, Duration::from_micros(RTS + 2 * ACK + SHORT));
}
