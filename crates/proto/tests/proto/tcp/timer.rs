//! The retransmission timer (RFC 6298).

use lasthop_base::{Duration, Time};
use lasthop_proto::tcp::{Flavour, RttArithmetic, RttEstimator, Settings};

use crate::tcp::dialogue::{Client, ms, settings};

const FLAVOURS: [Flavour; 4] = [Flavour::Tahoe, Flavour::Reno, Flavour::NewReno, Flavour::Sack];

fn one() -> Settings {
    settings(Flavour::NewReno, 1)
}

/// The RTO in milliseconds after each of these samples, in milliseconds.
fn timeouts(settings: &Settings, samples: &[u64]) -> Vec<u64> {
    let mut rtt = RttEstimator::new(settings);
    let timeout = |sample: &u64| {
        rtt.sample(Time::ZERO, ms(*sample));
        rtt.rto().as_nanos() / 1_000_000
    };
    samples.iter().map(timeout).collect()
}

/// Before the first sample the RTO is one second (section 2.1).
// Rule: RTO of one second before the first sample. [6298 2.1; rtt.rs]
#[test]
fn the_initial_timeout_is_one_second() {
    Client::start(&one()).sends_full(0..1).timer_at(1000);
}

/// The first sample R gives SRTT = R, RTTVAR = R/2, RTO = SRTT + 4·RTTVAR (section 2.2).
// Rule: First and later samples, granularity. [6298 2.2, 2.3; rtt.rs]
#[test]
fn the_first_sample() {
    let mut tcp = Client::start(&one());
    tcp.sends_full(0..1).at(400).ack(1000).srtt(Some(400)).rto(1200).timer_at(1600).sends_full(1..3);
    assert_eq!(tcp.sender.rtt().rttvar(), Duration::from_millis(200));
}

/// Later samples: RTTVAR moves by a quarter of |SRTT − R|, computed before SRTT moves by an eighth of R −
/// SRTT (section 2.3).
// Rule: as the_first_sample
#[test]
fn later_samples() {
    assert_eq!(timeouts(&one(), &[400, 800]), [1200, 450 + 4 * 250]);
    let mut rtt = RttEstimator::new(&one());
    for sample in [400, 800, 50] {
        rtt.sample(Time::ZERO, ms(sample));
    }
    // 250 · 3/4 + |450 − 50| / 4 = 287.5; 450 · 7/8 + 50/8 = 400.
    assert_eq!(
        (rtt.srtt(), rtt.rttvar()),
        (Some(Duration::from_millis(400)), Duration::from_micros(287_500))
    );
    assert_eq!(rtt.rto(), Duration::from_millis(1550));
}

/// The variance term is at least one clock tick (sections 2.2, 2.3: G).
// Rule: as the_first_sample
#[test]
fn the_clock_granularity_counts() {
    let settings = Settings { tick: Duration::from_millis(500), rto_min: Duration::ZERO, ..one() };
    assert_eq!(timeouts(&settings, &[100, 100]), [600, 600]);
    let settings = Settings { tick: Duration::from_millis(1), rto_min: Duration::ZERO, ..one() };
    assert_eq!(timeouts(&settings, &[100]), [300]);
}

/// The RTO is at least one second and, with backoff, at most sixty (sections 2.4, 2.5).
// Rule: Minimum and maximum RTO. [6298 2.4, 2.5; rtt.rs]
#[test]
fn the_timeout_is_bounded() {
    assert_eq!(timeouts(&one(), &[100]), [1000]);
    assert_eq!(timeouts(&one(), &[30_000]), [60_000]);
    let mut rtt = RttEstimator::new(&one());
    for expected in [2, 4, 8, 16, 32, 60, 60, 60] {
        rtt.back_off();
        assert_eq!(rtt.rto(), Duration::from_secs(expected));
    }
    assert_eq!(rtt.backoff(), 64);
}

/// Before the first sample, the RTO of every arithmetic is the initial one, doubled up to the maximum (section 2.1).
// Rule: as the_timeout_is_bounded
#[test]
fn the_initial_timeout_is_bounded_in_every_arithmetic() {
    for rtt_arithmetic in [RttArithmetic::Exact, RttArithmetic::Ticks, RttArithmetic::Linux] {
        let mut rtt = RttEstimator::new(&Settings { rtt_arithmetic, ..one() });
        for expected in [1, 2, 4, 8, 16, 32, 60] {
            assert_eq!(rtt.rto(), Duration::from_secs(expected), "{rtt_arithmetic:?}");
            rtt.back_off();
        }
    }
}

/// Above a factor of 64, backoff continues only until the RTO reaches its maximum.
// Rule: as the_timeout_is_bounded
#[test]
fn backoff_reaches_the_maximum_timeout() {
    let mut rtt = RttEstimator::new(&Settings { rto_min: Duration::from_millis(200), ..one() });
    rtt.sample(Time::ZERO, ms(100));
    (0..5).for_each(|_| rtt.back_off());
    for (factor, expected) in [(64, 19_200), (128, 38_400), (256, 60_000), (256, 60_000)] {
        rtt.back_off();
        assert_eq!((rtt.backoff(), rtt.rto()), (factor, Duration::from_millis(expected)));
    }
}

/// Backoff doubles the RTO after its minimum is applied (section 5.5).
// Rule: as the_timeout_is_bounded
#[test]
fn backoff_doubles_the_minimum_timeout() {
    let mut rtt = RttEstimator::new(&one());
    rtt.sample(Time::ZERO, ms(10));
    rtt.back_off();
    assert_eq!(rtt.rto(), Duration::from_secs(2));
    rtt.sample(Time::ZERO, ms(10));
    assert_eq!(rtt.rto(), Duration::from_secs(1));
}

/// The settings may limit the backoff factor.
// Rule: as the_timeout_is_bounded
#[test]
fn backoff_may_be_limited() {
    let mut rtt = RttEstimator::new(&Settings { backoff_max: 4, ..one() });
    (0..5).for_each(|_| rtt.back_off());
    assert_eq!((rtt.backoff(), rtt.rto()), (4, Duration::from_secs(4)));
}

/// The estimator of Linux, by hand, in quarters of a millisecond: the deviation in use is the largest of a
/// round trip and at least 200 ms; it grows at once, and decays by a quarter of the excess at the end of a
/// round trip.
// Rule: as the_first_sample
#[test]
fn the_deviation_of_linux_decays_once_per_round_trip() {
    let settings = Settings {
        rtt_arithmetic: RttArithmetic::Linux,
        rto_min: Duration::from_millis(200),
        tick: Duration::from_millis(1),
        ..one()
    };
    assert_eq!(timeouts(&settings, &[100]), [100 + 200]);
    let mut rtt = RttEstimator::new(&settings);
    // Of 400, half is the deviation, or 800 quarters. Equal samples reduce it to 600, 450 and 337.5; the
    // deviation in use is 800, then 800 − 200/4 = 750, 750 − 300/4 = 675 and 675 − 337.5/4 = 590.625.
    for (sample, shown, shrunk) in [
        (400, 200_000_000, 200_000_000),
        (400, 200_000_000, 187_500_000),
        (400, 187_500_000, 168_750_000),
        (400, 168_750_000, 147_656_250),
    ] {
        rtt.sample(Time::ZERO, ms(sample));
        assert_eq!(rtt.rttvar(), Duration::from_nanos(shown));
        rtt.end_round();
        assert_eq!(rtt.rttvar(), Duration::from_nanos(shrunk));
    }
    assert_eq!(rtt.rto(), Duration::from_millis(400 + 591));
    // A sample 300 below the average has an eighth of its weight: 337.5 + (300 − 337.5/4) / 8 quarters.
    rtt.sample(Time::ZERO, ms(100));
    rtt.end_round();
    assert_eq!(rtt.srtt(), Some(Duration::from_micros(362_500)));
    // 337.5 + 26.953125 = 364.453125; 590.625 − (590.625 − 364.453125)/4, rounded, is 534.082032.
    assert_eq!(rtt.rttvar(), Duration::from_nanos(534_082_032 / 4));
    // A sample 637.5 above the average has its full weight, at once: 364.453125 + 637.5 − 364.453125/4.
    rtt.sample(Time::ZERO, ms(1000));
    assert_eq!(rtt.rttvar(), Duration::from_nanos(910_839_844 / 4));
}

/// Transmission does not restart a running timer (section 5.1).
// Rule: Starts on transmission if it is not running; stops when all is acknowledged; restarts on new ACKs.
// [6298 5.1-5.3; state.rs state/output.rs]
#[test]
fn sending_does_not_restart_a_running_timer() {
    let mut tcp = Client::start(&Settings { limited_transmit: true, ..settings(Flavour::NewReno, 4) });
    tcp.sends_full(0..4).timer_at(1000).at(300).ack(0).sends_full(4..5).timer_at(1000);
}

/// The timer stops when nothing is outstanding (section 5.2), and starts with the next transmission (5.1).
// Rule: as sending_does_not_restart_a_running_timer
#[test]
fn the_timer_stops_when_all_is_acknowledged() {
    let mut tcp = Client::start_with(&settings(Flavour::NewReno, 4), Some(3000));
    tcp.sends_full(0..3).at(100).ack(2000).timer_at(1100).at(200).ack(3000).no_timer().is_finished();
}

/// An acknowledgement of new data restarts the timer (section 5.3); a duplicate does not.
// Rule: as sending_does_not_restart_a_running_timer
#[test]
fn acknowledged_data_restart_the_timer() {
    for flavour in FLAVOURS {
        let mut tcp = Client::start(&settings(flavour, 4));
        tcp.sends_full(0..4).at(300).ack(1000).timer_at(300 + 1000).sends_full(4..6);
        tcp.at(500).sack(1000, &[2000..3000]).timer_at(1300).at(600).ack(2000).timer_at(600 + 1000);
    }
}

/// On expiry the earliest segment is retransmitted, the RTO doubles and the timer restarts (sections
/// 5.4-5.6); the window becomes one segment and ssthresh half the flight, and ssthresh is kept if the same
/// segment times out again (RFC 5681 section 3.1 and equation 4).
// Rule: Timeout: the earliest segment is retransmitted, the RTO doubles, the window is one segment; a
// repeated timeout keeps ssthresh. [6298 5.4-5.6, 5681 3.1; state/loss.rs cc/aimd.rs]
#[test]
fn a_timeout_retransmits_and_backs_off() {
    for flavour in FLAVOURS {
        let mut tcp = Client::start(&settings(flavour, 10));
        tcp.sends_full(0..10).wakes_at(1000).sends_full(0..1).cwnd(1000.0).ssthresh(5000.0);
        tcp.wakes_at(3000).sends_full(0..1).ssthresh(5000.0);
        tcp.wakes_at(7000).sends_full(0..1).cwnd(1000.0).ssthresh(5000.0).timer_at(15_000);
    }
}

/// Half the flight, but at least two segments (RFC 5681 equation 4).
// Rule: as windows::limited_transmit
#[test]
fn ssthresh_is_at_least_two_segments() {
    let mut tcp = Client::start(&settings(Flavour::NewReno, 3));
    tcp.sends_full(0..3).wakes_at(1000).sends_full(0..1).ssthresh(2000.0);
}

/// After a timeout all unacknowledged data are retransmitted in slow start up to ssthresh. A timeout of
/// another segment halves again (RFC 5681 sections 3.1, 4.3).
// Rule: as a_timeout_retransmits_and_backs_off
#[test]
fn slow_start_after_a_timeout() {
    for flavour in FLAVOURS {
        let mut tcp = Client::start(&settings(flavour, 8));
        tcp.sends_full(0..8).wakes_at(1000).sends_full(0..1).ssthresh(4000.0);
        tcp.at(1100).ack(1000).cwnd(2000.0).sends_full(1..3);
        tcp.at(1200).ack(2000).cwnd(3000.0).sends_full(3..5).ack(3000).cwnd(4000.0).sends_full(5..7);
        tcp.at(1300).ack(4000).cwnd(4250.0).sends_full(7..8);
        tcp.wakes_at(3300).sends_full(4..5).cwnd(1000.0).ssthresh(2000.0).timer_at(7300);
    }
}

/// A late backoff restarts the timer before it doubles the RTO: the first retransmission waits for the undoubled
/// one, and each further one for what the timeout before would have set.
// Rule: With the late backoff the timer of a retransmission is set before the backoff doubles, so that
// doubling begins with the second timeout. [TR-96-014, reading of its traces; state/loss.rs]
#[test]
fn a_late_backoff_doubles_from_the_second_timeout_on() {
    for (late_backoff, timeouts) in [(false, [1000, 3000, 7000]), (true, [1000, 2000, 4000])] {
        for flavour in [Flavour::Tahoe, Flavour::NewReno] {
            let mut tcp = Client::start(&Settings { late_backoff, ..settings(flavour, 4) });
            tcp.sends_full(0..4);
            for at in timeouts {
                tcp.wakes_at(at).sends_full(0..1);
            }
        }
    }
}
