//! Outages: frames that overlap one are lost, and nothing else changes.

use lasthop_base::{Duration, Invalid, Streams, Time};
use lasthop_channel::{Channel, Model, Outages, Sojourn, State};

fn ms(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

fn outages(first: u64, every: Option<u64>, lasts: u64) -> Outages {
    let span = Duration::from_millis;
    Outages { first: span(first), every: every.map(span), lasts: span(lasts) }
}

fn interrupted(outages: Outages, model: Model) -> Box<dyn Channel> {
    outages.interrupt(model.build(Streams::new(1, 0).stream("channel")))
}

#[test]
fn frames_that_overlap_an_outage_are_lost() {
    for (every, later) in [(None, 1.0), (Some(1_000), 0.0)] {
        let mut channel = interrupted(outages(100, every, 50), Model::Perfect);
        for (start, end, survives) in [
            (0, 100, 1.0),
            (99, 101, 0.0),
            (99, 200, 0.0),
            (100, 100, 0.0),
            (110, 120, 0.0),
            (149, 160, 0.0),
            (150, 150, 1.0),
            (150, 1_100, 1.0),
            (1_099, 1_101, later),
            (1_149, 1_149, later),
            (1_150, 2_100, 1.0),
            (9_100, 9_101, later),
        ] {
            assert_eq!(channel.survival(ms(start), ms(end), 8), survives, "{every:?}: {start} to {end}");
        }
    }
}

#[test]
fn an_outage_may_begin_at_time_zero() {
    let mut channel = interrupted(outages(0, Some(100), 10), Model::Perfect);
    assert_eq!(channel.sojourn(Time::ZERO), Sojourn { state: State::Bad, until: ms(10) });
    assert_eq!(channel.sojourn(ms(10)), Sojourn { state: State::Good, until: ms(100) });
    assert_eq!(channel.sojourn(ms(100)), Sojourn { state: State::Bad, until: ms(110) });
}

/// The trajectory and the survival outside of outages are those of the wrapped channel.
#[test]
fn the_wrapped_channel_is_unaffected() {
    let two_state: Model = toml::from_str("[two-state]\ngood = \"300 ms\"\nbad = \"100 ms\"").unwrap();
    let mut plain = two_state.build(Streams::new(1, 0).stream("channel"));
    let mut channel = interrupted(outages(500, Some(1_000), 50), two_state);
    let mut both = 0;
    for start in (0..20_000).step_by(5) {
        let (at, end) = (ms(start), ms(start + 3));
        let in_outage = (500..550).contains(&(start % 1_000));
        let expected = plain.sojourn(at).state;
        both += u32::from(expected == State::Bad);
        let state = channel.sojourn(at).state;
        assert_eq!(state, if in_outage { State::Bad } else { expected });
        let survival = plain.survival(at, end, 1_000);
        assert_eq!(channel.survival(at, end, 1_000), if in_outage { 0.0 } else { survival }, "{start}");
    }
    assert!(both > 500, "the wrapped channel has bad periods");
}

#[test]
fn invalid_outages_are_rejected() {
    assert_eq!(outages(5, None, 1).validate(), Ok(()));
    let field = |outages: Outages| outages.validate().map_err(|Invalid { field, .. }| field);
    assert_eq!(field(outages(5, None, 0)), Err("lasts"));
    assert_eq!(field(outages(5, Some(10), 10)), Err("every"));
}
