//! Itineraries of mobile hosts, and the channel to a host that comes and goes.

use lasthop_base::{Decibels, Duration, Stream, Streams, Time};
use lasthop_channel::{Channel, Itinerary, Model, Moves, Presence, Sojourn, State, Stay, Strongest};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn stream() -> Stream {
    Streams::new(7, 0).stream("mobility")
}

fn itinerary(moves: Moves, stations: u16, gap: u64) -> Itinerary {
    Itinerary::new(moves, stations, ms(gap), stream(), at(100_000))
}

/// Station, beginning and end of each stay in milliseconds; no end is `u64::MAX`.
fn in_ms(stays: impl Iterator<Item = Stay>) -> Vec<(u16, u64, u64)> {
    let in_ms = |time: Time| if time == Time::NEVER { u64::MAX } else { time.as_nanos() / 1_000_000 };
    stays.map(|stay| (stay.station, in_ms(stay.from), in_ms(stay.until))).collect()
}

fn db(db: f64) -> Decibels {
    Decibels::new(db).expect("a finite ratio")
}

/// Without shadowing, on a road with three stations.
fn road(hysteresis: f64, beacon: u64) -> Strongest {
    let (crossing, correlation, beacon) = (ms(10_000), ms(1_000), ms(beacon));
    Strongest { crossing, exponent: 3.5, shadowing: db(0.0), correlation, hysteresis: db(hysteresis), beacon }
}

#[test]
fn periodic_moves_visit_the_stations_in_turn_with_a_gap_between() {
    let stays = in_ms(itinerary(Moves::Periodic { stay: ms(40_000) }, 2, 500));
    assert_eq!(stays, [(0, 0, 40_000), (1, 40_500, 80_500), (0, 81_000, u64::MAX)]);
}

#[test]
fn a_timetable_is_kept_and_moves_to_where_the_host_is_are_none() {
    let moves = [(1_000, 2), (2_000, 2), (3_000, 0), (3_500, 1)].map(|(at, to)| (ms(at), to));
    let stays = in_ms(itinerary(Moves::Timetable(moves.to_vec()), 3, 100));
    assert_eq!(stays, [(0, 0, 1_000), (2, 1_100, 3_000), (0, 3_100, 3_500), (1, 3_600, u64::MAX)]);
}

#[test]
fn a_host_with_one_station_stays() {
    for moves in
        [Moves::Periodic { stay: ms(1) }, Moves::Random { stay: ms(1) }, Moves::Strongest(road(3.0, 100))]
    {
        assert_eq!(in_ms(itinerary(moves, 1, 5)), [(0, 0, u64::MAX)]);
    }
}

/// 40,000 stays of mean 1 s at four stations: mean and second moment of the stays within four standard errors, which
/// are 1/√n and √20/√n of the moments of an exponential variate; each other station is next in a third of the cases
/// within four standard errors. With a right law each fails once in 16,000 seeds; the seed is fixed.
#[test]
fn random_stays_are_exponential_and_the_next_station_is_uniform() {
    let n = 40_000;
    let moves = Moves::Random { stay: ms(1_000) };
    let stays: Vec<_> = Itinerary::new(moves, 4, ms(3), stream(), Time::NEVER).take(n + 1).collect();
    let lengths: Vec<f64> = stays[..n].iter().map(|stay| stay.until.since(stay.from).as_secs_f64()).collect();
    let moment = |power: i32| lengths.iter().map(|x| x.powi(power)).sum::<f64>() / n as f64;
    let error = 4.0 / (n as f64).sqrt();
    assert!((moment(1) - 1.0).abs() < error, "mean {}", moment(1));
    assert!((moment(2) - 2.0).abs() < error * 20f64.sqrt(), "second moment {}", moment(2));
    let mut steps = [0usize; 4];
    for pair in stays.windows(2) {
        assert_eq!(pair[1].from, pair[0].until + ms(3));
        steps[usize::from((pair[1].station + 4 - pair[0].station) % 4)] += 1;
    }
    assert_eq!(steps[0], 0);
    for &count in &steps[1..] {
        let share = count as f64 / n as f64;
        assert!((share - 1.0 / 3.0).abs() < error * (2.0f64 / 9.0).sqrt(), "{steps:?}");
    }
}

/// The level falls by 35 dB per decade, so that another station is stronger by h once the ratio of the distances exceeds
/// 10^(h/35). With the road at 0.05 from the stations that happens at x, where
/// (x² + 0.05²) / ((1 − x)² + 0.05²) = 10^(2h/35).
#[test]
fn without_shadowing_a_host_moves_where_the_distances_have_the_ratio_of_the_hysteresis() {
    for hysteresis in [0.0, 2.0, 6.0] {
        let ratio = 10f64.powf(2.0 * hysteresis / 35.0);
        let square = |x: f64| x * x + 0.05 * 0.05;
        let place =
            (0..1_000_000).map(|i| f64::from(i) * 1e-6).find(|x| square(*x) > ratio * square(1.0 - x));
        let place = place.expect("the next station is stronger when the host stands there") * 10.0;
        let stays: Vec<_> = itinerary(Moves::Strongest(road(hysteresis, 1)), 3, 0).collect();
        let until: Vec<_> = stays[..8].iter().map(|stay| stay.until.as_nanos() as f64 * 1e-9).collect();
        // Forth over stations 1 and 2, back over 1 and 0, and so on; each lap takes 40 s.
        let expected = [
            place,
            10.0 + place,
            20.0 + place,
            30.0 + place,
            40.0 + place,
            50.0 + place,
            60.0 + place,
            70.0 + place,
        ];
        for (until, expected) in until.iter().zip(expected) {
            assert!((until - expected).abs() < 0.002, "{hysteresis} dB: {until} s, not {expected} s");
        }
        let stations: Vec<_> = stays.iter().take(8).map(|stay| stay.station).collect();
        assert_eq!(stations, [0, 1, 2, 1, 0, 1, 2, 1]);
    }
}

/// A host that stands still (a crossing of a million years) between two stations moves by shadowing alone. With shadows
/// independent from beacon to beacon and no hysteresis, each beacon finds either station stronger with probability 1/2:
/// stays last a geometric number of beacons of mean 2. At 50,000 beacons the number of moves is within four standard
/// errors of half of them.
#[test]
fn shadowing_moves_a_host_that_stands_still() {
    let still = Strongest {
        crossing: Duration::from_secs(1_000_000_000),
        shadowing: db(8.0),
        correlation: Duration::from_nanos(1),
        hysteresis: db(0.0),
        exponent: 0.0,
        beacon: ms(1),
    };
    let n = 50_000;
    let count = |law| Itinerary::new(Moves::Strongest(law), 2, ms(0), stream(), at(n)).count() as f64 - 1.0;
    let moves = count(still);
    assert!((moves - n as f64 / 2.0).abs() < 4.0 * (n as f64).sqrt() / 2.0, "{moves}");
    // What is correlated changes less often, and so does what must exceed a hysteresis.
    assert!(count(Strongest { correlation: ms(100), ..still }) < moves / 4.0);
    assert!(count(Strongest { hysteresis: db(20.0), ..still }) < moves / 4.0);
}

/// For random frames, over the stations of a host: a frame survives at most at one of them, and there only if it fits
/// into a stay. Sojourns tell the same story.
#[test]
fn frames_survive_where_the_host_is() {
    let moves = Moves::Random { stay: ms(50) };
    let stays: Vec<_> = itinerary(moves.clone(), 3, 10).collect();
    let links = || {
        (0..3).map(|station| {
            Presence::new(
                station,
                itinerary(moves.clone(), 3, 10),
                Model::Perfect.build(stream()),
                Duration::ZERO,
            )
        })
    };
    let mut random = Streams::new(3, 0).stream("frames");
    let (mut links_asked, mut now) = (links().collect::<Vec<_>>(), Time::ZERO);
    let mut fits = 0;
    for _ in 0..5_000 {
        now += random.up_to(ms(8));
        let end = now + random.up_to(ms(20));
        for (station, link) in (0..).zip(&mut links_asked) {
            let inside = |stay: &&Stay| stay.station == station && stay.from <= now && end <= stay.until;
            let survives = stays.iter().find(inside).is_some();
            assert_eq!(link.survival(now, end, 1_000), f64::from(u8::from(survives)));
            fits += u32::from(survives);
        }
    }
    assert!((2_000..4_800).contains(&fits), "{fits}");
    for (station, mut link) in (0..).zip(links()) {
        let mut here = stays.iter().filter(|stay| stay.station == station);
        let mut now = Time::ZERO;
        while now < at(50_000) {
            let Sojourn { state, until } = link.sojourn(now);
            if state == State::Good {
                let stay = here.next().expect("a stay for each good state");
                assert_eq!((now, until), (stay.from, stay.until));
            }
            now = until;
        }
    }
}
