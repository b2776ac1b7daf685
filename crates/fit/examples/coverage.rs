//! How often the bootstrap's 95 % intervals cover the truth, and which family is chosen, over a grid of truths.
//!
//! ```sh
//! cargo run --release -p lasthop-fit --example coverage -- 400
//! ```
//! The number is that of records for each truth, by default 100.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use lasthop_base::Streams;
use lasthop_fit::{Family, Law, Losses, Model, Periods, bootstrap, fit};

const REPLICATES: usize = 200;

struct Truth {
    name: &'static str,
    spacing_s: f64,
    duration_s: f64,
    model: Model,
    family: Family,
}

fn main() {
    let records: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(100);
    for truth in truths() {
        let begun = std::time::Instant::now();
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, NonZeroUsize::get) {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= records {
                            return;
                        }
                        let row = one(&truth, number as u64);
                        found.lock().expect("no thread panics").push(row);
                    }
                });
            }
        });
        let rows = found.into_inner().expect("no thread panics");
        print!("{:44}", truth.name);
        for (index, name) in
            ["loss", "good", "bad", "loss_good", "loss_bad", "sigma_good", "sigma_bad"].iter().enumerate()
        {
            let known: Vec<_> = rows.iter().filter_map(|row| row.covered[index]).collect();
            if !known.is_empty() {
                let share = known.iter().filter(|&&covered| covered).count() as f64 / known.len() as f64;
                print!("  {name} {:.1} %", 100.0 * share);
            }
        }
        let right = rows.iter().filter(|row| row.chosen == Some(truth.family)).count();
        let mut tally: Vec<(&str, usize)> = Family::ALL
            .iter()
            .map(|family| (family.name(), rows.iter().filter(|row| row.chosen == Some(*family)).count()))
            .collect();
        tally.retain(|each| each.1 > 0);
        println!("  chosen {right}/{records} {tally:?}  {:.1} s", begun.elapsed().as_secs_f64());
    }
}

struct Row {
    covered: [Option<bool>; 7],
    chosen: Option<Family>,
}

fn values(model: &Model) -> [f64; 7] {
    let sigma = |law| match law {
        Law::Exponential(_) => f64::NAN,
        Law::Lognormal { sigma, .. } => sigma,
    };
    match *model {
        Model::Independent(loss) => [loss, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN, f64::NAN],
        Model::Periods(p) => [
            model.loss(),
            p.good.mean_s(),
            p.bad.mean_s(),
            p.loss_good,
            p.loss_bad,
            sigma(p.good),
            sigma(p.bad),
        ],
    }
}

fn one(truth: &Truth, number: u64) -> Row {
    let probes = (truth.duration_s / truth.spacing_s) as usize;
    let mut stream = Streams::new(7, number).stream("coverage");
    let times: Vec<f64> =
        (0..probes).map(|k| (k as f64 + 0.2 * stream.uniform()) * truth.spacing_s).collect();
    let record = Losses::of_model(times, &truth.model, &mut stream);
    let fits: Vec<_> = Family::ALL.into_iter().filter_map(|family| fit(&record, family)).collect();
    let chosen = fits.iter().min_by(|a, b| a.bic(&record).total_cmp(&b.bic(&record))).map(|fit| fit.family);
    let mut covered = [None; 7];
    if let Some(found) = fits.iter().find(|fit| fit.family == truth.family) {
        let replicates = bootstrap(&record, found, number, REPLICATES, NonZeroUsize::MIN);
        let (truth, found) = (values(&truth.model), values(&found.model));
        for index in 0..7 {
            if truth[index].is_nan() || (index > 2 && (truth[index] == 0.0 || truth[index] == 1.0)) {
                continue;
            }
            let scale = |value: f64| match index {
                0 | 3 | 4 => (value / (1.0 - value)).ln(),
                _ => value.ln(),
            };
            let mut drawn: Vec<f64> = replicates
                .iter()
                .map(|replicate| replicate.model.map_or(f64::NAN, |model| values(&model)[index]))
                .map(|value| if value.is_nan() { f64::INFINITY } else { scale(value) })
                .collect();
            drawn.sort_by(f64::total_cmp);
            let at = |share: f64| drawn[((share * drawn.len() as f64) as usize).min(drawn.len() - 1)];
            let centre = scale(found[index]);
            let (low, high) = (2.0 * centre - at(0.975), 2.0 * centre - at(0.025));
            covered[index] = Some((low..=high).contains(&scale(truth[index])));
        }
    }
    Row { covered, chosen }
}

fn truths() -> Vec<Truth> {
    let markov = |good: f64, bad: f64, loss_good: f64, loss_bad: f64| {
        Model::Periods(Periods {
            good: Law::Exponential(good),
            bad: Law::Exponential(bad),
            loss_good,
            loss_bad,
        })
    };
    let of =
        |name, spacing_s, duration_s, model, family| Truth { name, spacing_s, duration_s, model, family };
    let lognormal = |median, sigma| Law::Lognormal { median, sigma };
    vec![
        of("independent 2 %, 20 ms, 300 s", 0.02, 300.0, Model::Independent(0.02), Family::Independent),
        of("gilbert 4 s/0.4 s, 20 ms, 300 s", 0.02, 300.0, markov(4.0, 0.4, 0.0, 1.0), Family::Gilbert),
        of("gilbert 2 s/0.05 s, 10 ms, 300 s", 0.01, 300.0, markov(2.0, 0.05, 0.0, 1.0), Family::Gilbert),
        of(
            "3: 4 s/0.4 s, .9, 20 ms, 300 s",
            0.02,
            300.0,
            markov(4.0, 0.4, 0.0, 0.9),
            Family::GilbertElliott3,
        ),
        of(
            "3: 2 s/0.05 s, .6, 10 ms, 300 s",
            0.01,
            300.0,
            markov(2.0, 0.05, 0.0, 0.6),
            Family::GilbertElliott3,
        ),
        of(
            "3: 4 s/0.4 s, .9, 100 ms, 300 s",
            0.1,
            300.0,
            markov(4.0, 0.4, 0.0, 0.9),
            Family::GilbertElliott3,
        ),
        of("3: 4 s/0.4 s, .9, 1 s, 300 s", 1.0, 300.0, markov(4.0, 0.4, 0.0, 0.9), Family::GilbertElliott3),
        of(
            "4: 5 s/1 s, .01, .5, 20 ms, 300 s",
            0.02,
            300.0,
            markov(5.0, 1.0, 0.01, 0.5),
            Family::GilbertElliott,
        ),
        of(
            "4: 20 s/2 s, .003, .3, 20 ms, 600 s",
            0.02,
            600.0,
            markov(20.0, 2.0, 0.003, 0.3),
            Family::GilbertElliott,
        ),
        of(
            "semi: good logn 3 s 1.5, bad exp 0.3, 20 ms, 600 s",
            0.02,
            600.0,
            Model::Periods(Periods {
                good: lognormal(3.0, 1.5),
                bad: Law::Exponential(0.3),
                loss_good: 0.0,
                loss_bad: 1.0,
            }),
            Family::SemiMarkov,
        ),
        of(
            "semi: good exp 4, bad logn .2 1.2, 10 ms, 600 s",
            0.01,
            600.0,
            Model::Periods(Periods {
                good: Law::Exponential(4.0),
                bad: lognormal(0.2, 1.2),
                loss_good: 0.0,
                loss_bad: 1.0,
            }),
            Family::SemiMarkov,
        ),
    ]
}
