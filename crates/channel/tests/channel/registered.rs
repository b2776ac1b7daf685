//! What holds for every registered model.

use std::collections::BTreeSet;

use lasthop_base::{Duration, Streams, Time};
use lasthop_channel::{Channel, Model};

/// Rows for the data files of all examples.
const FILES: [&str; 2] = ["time_s,loss\n0,0.1\n1,0.3\n", "length_s\n0.5\n2\n"];

fn read(name: &str, table: &str) -> Result<Model, toml::de::Error> {
    let text = format!("channel.{name} = {{ {table} }}");
    let mut outer: toml::Table = toml::from_str(&text)?;
    outer.remove("channel").expect("it is there").try_into()
}

/// Each example with its files read.
fn examples() -> Vec<(String, Model)> {
    let all = Model::examples().flat_map(|(name, tables)| {
        assert!(!tables.is_empty(), "{name}");
        tables.iter().map(move |table| {
            let mut model = read(&name, table).unwrap_or_else(|error| panic!("{name}: {error}"));
            for (path, file) in model.files() {
                assert_eq!(path[0], name);
                assert!(FILES.iter().any(|text| file.read(text).is_ok()), "{name}");
            }
            (format!("{name} with {table}"), model)
        })
    });
    all.collect()
}

#[test]
fn examples_are_valid_and_have_all_keys() {
    for (name, model) in examples() {
        assert_eq!(model.validate(), Ok(()), "{name}");
    }
    for (name, tables) in Model::examples() {
        let keys = tables.iter().flat_map(|table| {
            let table: toml::Table = toml::from_str(&format!("it = {{ {table} }}")).unwrap();
            table["it"].as_table().unwrap().keys().cloned().collect::<Vec<_>>()
        });
        let error = read(&name, "nonsense = 0").expect_err("no model has this key").to_string();
        let listed = error.split_once("expected ").expect("the keys are listed").1;
        let known = listed.split('`').skip(1).step_by(2).map(str::to_owned);
        assert_eq!(keys.collect::<BTreeSet<_>>(), known.collect(), "{name}");
    }
}

/// Two copies of a channel agree: survival is what the exposure of the same frame adds up to, and probabilities are
/// probabilities.
#[test]
fn exposure_and_survival_agree() {
    for (name, model) in examples() {
        let build = || model.build(Streams::new(7, 0).stream("channel"));
        let (mut survives, mut exposes): (Box<dyn Channel>, Box<dyn Channel>) = (build(), build());
        let mut states = build();
        for frame in 0..2_000 {
            let start = Time::ZERO + Duration::from_millis(7) * frame;
            let (end, bits) = (start + Duration::from_millis(5), 4_000);
            let survival = survives.survival(start, end, bits);
            let (mut all, mut product) = (0.0, 1.0);
            product *= exposes.exposure(start, end, &mut |share, rate| {
                all += share;
                product *= (1.0 - rate.get()).powf(share * bits as f64);
            });
            assert!((0.0..=1.0).contains(&survival), "{name}: {survival}");
            assert!((all - 1.0).abs() < 1e-12, "{name}: shares of {all}");
            assert!((survival - product).abs() < 1e-9, "{name}: {survival}, not {product}");
            assert!(states.sojourn(start).until > start, "{name}");
        }
    }
}

/// The long-run share of time in the good state is that of a trajectory, to a twentieth.
#[test]
fn availability_is_that_of_a_trajectory() {
    for (name, model) in examples() {
        let Some(cycle_s) = model.mean_cycle_s() else { continue };
        let mut channel = model.build(Streams::new(7, 0).stream("channel"));
        let (mut now, mut good_s) = (Time::ZERO, 0.0);
        let end = Time::ZERO + Duration::from_secs_f64(4_000.0 * cycle_s);
        while now < end {
            let sojourn = channel.sojourn(now);
            let until = sojourn.until.min(end);
            if sojourn.state == lasthop_channel::State::Good {
                good_s += until.since(now).as_secs_f64();
            }
            now = until;
        }
        let share = good_s / end.since(Time::ZERO).as_secs_f64();
        assert!((share - model.availability()).abs() < 0.05, "{name}: {share}, not {}", model.availability());
    }
}

#[test]
fn closed_forms_are_probabilities() {
    for (name, model) in examples().into_iter().filter(|(_, model)| model.has_closed_form()) {
        for (frames, bits, ms) in [(1, 0, 1), (1, 4_000, 2), (3, 12_000, 30)] {
            let on_air = Duration::from_millis(ms);
            let loss = model.loss_probability(frames, bits, on_air);
            assert!((0.0..=1.0).contains(&loss), "{name}: {loss}");
            assert!(model.loss_instants(on_air) >= 0.0, "{name}");
        }
    }
}
