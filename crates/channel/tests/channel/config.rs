//! Models in the format of scenario files.

use lasthop_base::{Decibels, Duration, Invalid, Probability, Streams};
use lasthop_channel::{
    ErrorsPer, FixedPeriods, FrameLoss, Iid, Model, NguyenNoble, RayleighGilbert, Start, TwoState,
};
use serde::{Deserialize, Serialize};

/// The part of a scenario that holds a channel.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Radio {
    channel: Model,
}

fn p(probability: f64) -> Probability {
    Probability::new(probability).unwrap()
}

fn read(text: &str) -> Result<Model, String> {
    toml::from_str::<Radio>(text).map(|radio| radio.channel).map_err(|error| error.message().to_string())
}

fn two_state(good: Duration, bad: Duration) -> TwoState {
    TwoState { good, bad, good_ber: p(1e-6), bad_ber: p(1e-2), start: Start::Good }
}

fn fixed_periods(good: Duration, bad: Duration) -> FixedPeriods {
    FixedPeriods { good, bad, good_ber: p(0.0), bad_ber: p(1.0) }
}

fn rayleigh_gilbert(margin_db: f64, doppler: f64, step: Duration) -> RayleighGilbert {
    RayleighGilbert {
        fading_margin: Decibels::new(margin_db).unwrap(),
        doppler,
        step,
        good_ber: p(1e-10),
        bad_ber: p(1e-2),
        start: Start::Stationary,
    }
}

fn nguyen_noble(leave_error: f64, leave_error_free: f64) -> NguyenNoble {
    NguyenNoble {
        leave_error: p(leave_error),
        leave_error_free: p(leave_error_free),
        error_rate: p(0.005),
        errors_per: ErrorsPer::Byte,
        error_unit: Duration::from_micros(200),
        error_free_unit: Duration::from_micros(22_400),
        start: Start::Good,
    }
}

#[test]
fn omitted_fields_have_documented_defaults() {
    let (ten, four) = (Duration::from_secs(10), Duration::from_secs(4));
    for (text, model) in [
        ("channel = \"perfect\"", Model::Perfect),
        ("[channel.iid]\nber = 1e-6", Model::Iid(Iid { ber: p(1e-6) })),
        ("[channel.frame-loss]\nloss = \"2%\"", Model::FrameLoss(FrameLoss { loss: p(0.02) })),
        ("[channel.two-state]\ngood = \"10 s\"\nbad = \"4 s\"", Model::TwoState(two_state(ten, four))),
        (
            "[channel.two-state]\ngood = \"10 s\"\nbad = \"4 s\"\ngood_ber = 0\nbad_ber = 0.5\nstart = \"stationary\"",
            Model::TwoState(TwoState {
                good_ber: p(0.0),
                bad_ber: p(0.5),
                start: Start::Stationary,
                ..two_state(ten, four)
            }),
        ),
        (
            "[channel.fixed-periods]\ngood = \"10 s\"\nbad = \"4 s\"",
            Model::FixedPeriods(fixed_periods(ten, four)),
        ),
        (
            "[channel.rayleigh-gilbert]\nfading_margin = \"5 dB\"\ndoppler = 0.1\nstep = \"10 ms\"",
            Model::RayleighGilbert(rayleigh_gilbert(5.0, 0.1, Duration::from_millis(10))),
        ),
        (
            "[channel.rayleigh-gilbert]\nfading_margin = \"-2.5 dB\"\ndoppler = 1\nstep = \"4 s\"\n\
             good_ber = 0\nbad_ber = \"0.001%\"\nstart = \"good\"",
            Model::RayleighGilbert(RayleighGilbert {
                good_ber: p(0.0),
                bad_ber: p(1e-5),
                start: Start::Good,
                ..rayleigh_gilbert(-2.5, 1.0, four)
            }),
        ),
        (
            "[channel.nguyen-noble]\nleave_error = 0.2\nleave_error_free = 0.7\nerror_rate = \"0.5%\"",
            Model::NguyenNoble(nguyen_noble(0.2, 0.7)),
        ),
        (
            "[channel.nguyen-noble]\nleave_error = 1\nleave_error_free = \"50%\"\nerror_rate = 0\n\
             errors_per = \"bit\"\nerror_unit = \"4 s\"\nerror_free_unit = \"10 s\"\nstart = \"stationary\"",
            Model::NguyenNoble(NguyenNoble {
                error_rate: p(0.0),
                errors_per: ErrorsPer::Bit,
                error_unit: four,
                error_free_unit: ten,
                start: Start::Stationary,
                ..nguyen_noble(1.0, 0.5)
            }),
        ),
    ] {
        assert_eq!(read(text), Ok(model.clone()), "{text}");
        assert_eq!(model.validate(), Ok(()));
        let written = toml::to_string(&Radio { channel: model.clone() }).unwrap();
        assert_eq!(read(&written), Ok(model), "{written}");
    }
    assert_eq!(Model::default(), Model::Perfect);
}

#[test]
fn invalid_files_are_rejected_with_the_reason() {
    for (text, reason) in [
        ("[channel.iid]\nbre = 1e-6", "unknown field `bre`, expected `ber`"),
        ("[channel.frame-loss]\nloss = 0.1\nsize = 1", "unknown field `size`"),
        ("[channel.two-state]\ngood = \"10 s\"", "missing field `bad`"),
        ("[channel.two-state]\ngood = \"10 s\"\nbad = \"4 s\"\nber = 0", "unknown field `ber`"),
        ("[channel.two-state]\ngood = 10\nbad = \"4 s\"", "a duration with its unit"),
        ("[channel.fixed-periods]\ngood = \"10 s\"\nbad = \"4 s\"\nstart = \"bad\"", "unknown field `start`"),
        ("[channel.iid]\nber = 1.5", "a probability from 0 to 1"),
        ("[channel.rayleigh-gilbert]\ndoppler = 0.1\nstep = \"10 ms\"", "missing field `fading_margin`"),
        (
            "[channel.rayleigh-gilbert]\nfading_margin = 5\ndoppler = 0.1\nstep = \"10 ms\"",
            "a ratio with its unit, such as \"5 dB\"",
        ),
        (
            "[channel.rayleigh-gilbert]\nfading_margin = \"5 db\"\ndoppler = 0.1\nstep = \"10 ms\"",
            "did you mean \"5 dB\"?",
        ),
        ("[channel.nguyen-noble]\nleave_error = 0.2\nerror_rate = 0.01", "missing field `leave_error_free`"),
        ("[channel.nguyen-noble]\nleave_error = 2", "a probability from 0 to 1"),
        (
            "[channel.nguyen-noble]\nerrors_per = \"packet\"",
            "unknown variant `packet`, expected `byte` or `bit`",
        ),
        ("[channel.nguyen-noble]\nerror_unit = 0.2", "a duration with its unit"),
        ("[channel.nguyen-noble]\nber = 0.01", "unknown field `ber`, expected one of `leave_error`"),
        ("[channel.rayleigh-gilbert]\nmargin = \"5 dB\"", "unknown field `margin`"),
        ("[channel.gilberd]\ngood = \"10 s\"", "unknown variant `gilberd`"),
    ] {
        let error = read(text).expect_err(text);
        assert!(error.contains(reason), "{text:?} said {error:?}, not {reason:?}");
    }
}

#[test]
fn zero_length_periods_are_rejected() {
    let (ten, none) = (Duration::from_secs(10), Duration::ZERO);
    for (model, field) in [
        (Model::TwoState(two_state(none, ten)), "two-state.good"),
        (Model::TwoState(two_state(ten, none)), "two-state.bad"),
        (Model::FixedPeriods(fixed_periods(none, ten)), "fixed-periods.good"),
        (Model::FixedPeriods(fixed_periods(ten, none)), "fixed-periods.bad"),
    ] {
        let invalid: Invalid = model.validate().unwrap_err();
        assert_eq!(invalid.field, field);
        assert!(invalid.to_string().starts_with(&format!("{field}: found a length of zero")));
    }
}

#[test]
fn out_of_range_fading_parameters_are_rejected() {
    let (step, dopplers) = (Duration::from_millis(10), [0.1, 1e-9, 1e300]);
    for (margin_db, doppler) in [(-15.0, 0.1), (150.0, 0.1)].into_iter().chain(dopplers.map(|d| (5.0, d))) {
        assert_eq!(Model::RayleighGilbert(rayleigh_gilbert(margin_db, doppler, step)).validate(), Ok(()));
    }
    let margin = "a channel with one state only is \"iid\"";
    let doppler = "a longer step has a larger one";
    for (margin_db, f_d, step, field, remedy) in [
        (-15.1, 0.1, step, "fading_margin", margin),
        (150.1, 0.1, step, "fading_margin", margin),
        (5.0, 0.0, step, "doppler", doppler),
        (5.0, -0.1, step, "doppler", doppler),
        (5.0, 0.9e-9, step, "doppler", doppler),
        (5.0, f64::INFINITY, step, "doppler", doppler),
        (5.0, f64::NAN, step, "doppler", doppler),
        (5.0, 0.1, Duration::ZERO, "step", "above zero, such as"),
    ] {
        let model = rayleigh_gilbert(margin_db, f_d, step);
        let invalid = Model::RayleighGilbert(model).validate().unwrap_err();
        assert_eq!(invalid.field, format!("rayleigh-gilbert.{field}"));
        assert!(invalid.problem.contains(remedy), "{margin_db} dB, {f_d}: {invalid}");
    }
}

#[test]
fn states_without_exit_or_length_are_rejected() {
    let sound = nguyen_noble(0.2, 0.7);
    for (model, field, remedy) in [
        (nguyen_noble(0.0, 0.7), "leave_error", "a channel with one state only is \"iid\""),
        (nguyen_noble(0.2, 0.0), "leave_error_free", "a channel without errors is \"perfect\""),
        (NguyenNoble { error_unit: Duration::ZERO, ..sound }, "error_unit", "such as \"0.2 ms\""),
        (NguyenNoble { error_free_unit: Duration::ZERO, ..sound }, "error_free_unit", "such as \"22.4 ms\""),
    ] {
        let invalid = Model::NguyenNoble(model).validate().unwrap_err();
        assert_eq!(invalid.field, format!("nguyen-noble.{field}"));
        assert!(invalid.problem.starts_with("found ") && invalid.problem.ends_with(remedy), "{invalid}");
    }
    assert_eq!(Model::NguyenNoble(nguyen_noble(1.0, 1e-300)).validate(), Ok(()));
}

#[test]
#[should_panic(expected = "two-state.bad: found a length of zero")]
fn building_an_invalid_model_panics() {
    let model = Model::TwoState(two_state(Duration::from_secs(10), Duration::ZERO));
    model.build(Streams::new(1, 0).stream("channel"));
}

/// The ceiling of the EBSN paper for a mean bad period of 4 s is 12.8 kb/s × 10/14.
#[test]
fn availability_is_the_good_fraction_of_time() {
    let (ten, four) = (Duration::from_secs(10), Duration::from_secs(4));
    assert_eq!(Model::TwoState(two_state(ten, four)).availability(), 10.0 / 14.0);
    assert_eq!(Model::FixedPeriods(fixed_periods(four, ten)).availability(), 4.0 / 14.0);
    assert_eq!(Model::FrameLoss(FrameLoss { loss: p(0.5) }).availability(), 1.0);
    // 0.8 ms with errors, 32 ms without.
    let units = nguyen_noble(0.25, 0.7);
    assert!((Model::NguyenNoble(units).availability() - 32.0 / 32.8).abs() < 1e-15);
    let fading = rayleigh_gilbert(10.0, 0.1, ten);
    assert!((Model::RayleighGilbert(fading).availability() - (-0.1f64).exp()).abs() < 1e-15);
}
