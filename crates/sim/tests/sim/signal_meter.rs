//! Observation of a mobile host's radio signal.

use lasthop_base::{Duration, Probability, Streams, Time};
use lasthop_channel::{Channel, FixedPeriods, Itinerary, Model, Moves, Outages, Presence};
use lasthop_proto::{Component, Effect, Out, Reach, Signal};
use lasthop_sim::SignalMeter;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The signals before `until`, each with its time in milliseconds.
fn signals(channels: Vec<Box<dyn Channel>>, lead: u64, until: u64) -> Vec<(u64, Reach)> {
    let mut meter = SignalMeter::new(channels, ms(lead), Time::ZERO + ms(until));
    let (mut out, mut found) = (Out::default(), Vec::new());
    while meter.next_wakeup() < Time::ZERO + ms(until) {
        let now = meter.next_wakeup();
        meter.wake(now, &mut out);
        while let Some((_, effect)) = out.take() {
            let Effect::Signal(Signal::Reach(reach)) = effect else { panic!("found {effect:?}") };
            found.push((now.as_nanos() / 1_000_000, reach));
        }
    }
    found
}

/// Outages of 100 ms, the first after `first` and then every second.
fn outages(first: u64) -> Box<dyn Channel> {
    let outages = Outages { first: ms(first), every: Some(ms(1_000)), lasts: ms(100) };
    outages.interrupt(Model::Perfect.build(Streams::new(1, 0).stream("channel")))
}

/// The channels to the base stations of a host that moves every second.
fn stations(stations: u16, gap: u64) -> Vec<Box<dyn Channel>> {
    let streams = Streams::new(1, 0);
    let channel = |station| -> Box<dyn Channel> {
        let moves = Moves::Periodic { stay: ms(1_000) };
        let itinerary = Itinerary::new(moves, stations, ms(gap), streams.stream("moves"), Time::NEVER);
        Box::new(Presence::new(station, itinerary, Model::Perfect.build(streams.stream("channel")), ms(0)))
    };
    (0..stations).map(channel).collect()
}

#[test]
fn outages_are_announced_and_end() {
    use Reach::{Back, Fading, Lost};
    let expected = [(500, Lost), (600, Back), (1_500, Lost), (1_600, Back)];
    assert_eq!(signals(vec![outages(500)], 0, 2_000), expected);
    let expected = [(470, Fading), (500, Lost), (600, Back), (1_470, Fading), (1_500, Lost), (1_600, Back)];
    assert_eq!(signals(vec![outages(500)], 30, 2_000), expected);
    // Longer ahead than the signal lasts.
    let expected =
        [(0, Fading), (500, Lost), (600, Back), (600, Fading), (1_500, Lost), (1_600, Back), (1_600, Fading)];
    assert_eq!(signals(vec![outages(500)], 2_000, 2_000), expected);
    // The signal is lost from the start.
    assert_eq!(signals(vec![outages(0)], 30, 900), [(0, Lost), (100, Back)]);
}

#[test]
fn a_hand_off_is_a_loss_even_without_a_gap() {
    use Reach::{Back, Fading, Lost};
    let expected =
        [(980, Fading), (1_000, Lost), (1_000, Back), (1_980, Fading), (2_000, Lost), (2_000, Back)];
    assert_eq!(signals(stations(3, 0), 20, 2_500), expected);
    let expected =
        [(980, Fading), (1_000, Lost), (1_050, Back), (2_030, Fading), (2_050, Lost), (2_100, Back)];
    assert_eq!(signals(stations(2, 50), 20, 2_500), expected);
    assert_eq!(signals(stations(1, 50), 20, 10_000), []);
}

/// A signal that is lost beyond the end of the run, with outages meanwhile: the meter does not search for its return.
#[test]
fn periods_after_the_end_are_not_drawn() {
    let probability = |p| Probability::new(p).unwrap();
    let periods = FixedPeriods {
        good: ms(1_000),
        bad: Duration::from_secs(10_000_000_000),
        good_ber: probability(0.0),
        bad_ber: probability(1.0),
    };
    let outages = Outages { first: ms(500), every: Some(ms(1)), lasts: Duration::from_micros(500) };
    let channel = Model::FixedPeriods(periods).build(Streams::new(1, 0).stream("channel"));
    let found = signals(vec![outages.interrupt(channel)], 0, 2_000);
    // Five hundred outages, and the bad period.
    assert_eq!((found.len(), found.last()), (1_001, Some(&(1_000, Reach::Lost))));
}
