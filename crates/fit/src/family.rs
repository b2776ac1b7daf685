//! Families of models, and their maximum-likelihood fits.

use lasthop_base::Streams;

use crate::evidence::Evidence;
use crate::likelihood::TwoState;
use crate::losses::Losses;
use crate::model::{Law, Model, Periods};
use crate::periods::{Laws, choose_lognormal, gains, known_lognormal};
use crate::search::minimise;

/// Number of records simulated to find the gains of lognormal distributions by chance. The probability that one of
/// two gains exceeds all of them is about 5 %.
const RECORDS_BY_CHANCE: u64 = 39;

/// A family of models, in the order of the number of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Independent losses: one parameter.
    Independent,
    /// Exponential periods; bad periods lose every packet, good periods none: two parameters.
    Gilbert,
    /// Exponential periods; bad periods lose a share, good periods no packet (Gilbert 1960): three
    /// parameters.
    GilbertElliott3,
    /// Exponential periods with a loss rate in each state (Elliott 1963): four parameters.
    GilbertElliott,
    /// Lognormal lengths of good periods, bad periods or both, with the losses of the best family with
    /// exponential periods: one more parameter for each lognormal distribution.
    SemiMarkov,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 5] = [
        Family::Independent,
        Family::Gilbert,
        Family::GilbertElliott3,
        Family::GilbertElliott,
        Family::SemiMarkov,
    ];

    /// The families with exponential periods.
    const MARKOV: [Family; 3] = [Family::Gilbert, Family::GilbertElliott3, Family::GilbertElliott];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Family::Independent => "independent",
            Family::Gilbert => "gilbert",
            Family::GilbertElliott3 => "gilbert-elliott-3",
            Family::GilbertElliott => "gilbert-elliott",
            Family::SemiMarkov => "semi-markov",
        }
    }
}

/// The maximum-likelihood model of a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The family.
    pub family: Family,
    /// The model.
    pub model: Model,
    /// The log-likelihood, up to a constant of the record.
    pub log_likelihood: f64,
    /// The number of parameters.
    pub parameters: u32,
    /// The Bayesian information criterion; the model with the smallest value is chosen. A parameter costs the
    /// logarithm of the number of packets or intervals; a parameter of a lognormal distribution, at least that of
    /// the number of periods.
    pub bic: f64,
    /// The Akaike information criterion, by which models are weighted. A parameter costs 2; if probes do not determine
    /// their state, a parameter of a lognormal distribution costs as much as in the BIC.
    pub aic: f64,
}

impl Fit {
    /// A fit without lognormal distributions.
    fn markov(losses: &Losses, family: Family, model: Model, log_likelihood: f64, parameters: u32) -> Fit {
        let bic = f64::from(parameters) * libm::log(losses.len() as f64) - 2.0 * log_likelihood;
        let aic = 2.0 * f64::from(parameters) - 2.0 * log_likelihood;
        Fit { family, model, log_likelihood, parameters, bic, aic }
    }
}

/// Fits `family` to a record. `None` if no packet or every packet was lost, if no model of the family can
/// produce the record, or if it has too few periods for a distribution of their lengths.
pub fn fit(losses: &Losses, family: Family) -> Option<Fit> {
    match family {
        Family::Independent => Some(independent(losses)),
        Family::SemiMarkov => semi_markov(losses, &fit_each(losses, &Family::MARKOV)),
        family => fit_each(losses, &[family]).pop(),
    }
}

/// The fits of all families that [`fit`] finds, in their order. Faster than one by one, since semi-Markov models begin with
/// the fits of the others.
pub fn fit_all(losses: &Losses) -> Vec<Fit> {
    let markov = fit_each(losses, &Family::MARKOV);
    let semi_markov = semi_markov(losses, &markov);
    [independent(losses)].into_iter().chain(markov).chain(semi_markov).collect()
}

/// Fits families with exponential periods.
fn fit_each(losses: &Losses, families: &[Family]) -> Vec<Fit> {
    let (sent, lost) = losses.sent_and_lost();
    if lost == 0 || lost == sent {
        return Vec::new();
    }
    let evidence = Evidence::of(losses);
    let starts = starts(losses, &evidence, lost as f64 / sent as f64);
    families.iter().filter_map(|&family| fit_markov(losses, &evidence, family, &starts)).collect()
}

/// Fits lognormal lengths of periods to those that the best of the `markov` fits tells apart.
fn semi_markov(losses: &Losses, markov: &[Fit]) -> Option<Fit> {
    let best = *markov.iter().min_by(|a, b| a.bic.total_cmp(&b.bic))?;
    // The most general family, unless its search failed.
    let likeliest = markov.iter().max_by(|a, b| a.log_likelihood.total_cmp(&b.log_likelihood))?;
    let Model::Periods(periods) = best.model else { return None };
    let by_chance = || gains_by_chance(losses, likeliest, best.family);
    let laws = choose_lognormal(losses, &two_state(&periods), by_chance)?;
    Some(with_laws(best, periods, laws))
}

/// The gains of lognormal distributions in records simulated from a fit with exponential periods, to each of which
/// `family` is fitted; empty if most of them have too few periods.
fn gains_by_chance(losses: &Losses, exponential: &Fit, family: Family) -> Vec<[f64; 2]> {
    let Model::Periods(periods) = exponential.model else { return Vec::new() };
    let gains = (0..RECORDS_BY_CHANCE).filter_map(|number| {
        let record =
            losses.simulate(&exponential.model, &mut Streams::new(1, number).stream("fit.by_chance"));
        let (sent, lost) = record.sent_and_lost();
        if lost == 0 || lost == sent {
            return None;
        }
        let fitted = fit_markov(&record, &Evidence::of(&record), family, &[two_state(&periods)])?;
        let Model::Periods(of_record) = fitted.model else { return None };
        gains(&record, &two_state(&of_record))
    });
    let gains: Vec<[f64; 2]> = gains.collect();
    // So few periods do not determine a distribution.
    if 2 * gains.len() < RECORDS_BY_CHANCE as usize { Vec::new() } else { gains }
}

/// Fits the family of `found` to another record, by a search that starts at `found`. Independent losses if no
/// packet or every packet was lost.
pub(crate) fn refit(losses: &Losses, found: &Fit) -> Option<Fit> {
    let (sent, lost) = losses.sent_and_lost();
    let periods = match found.model {
        Model::Periods(periods) if lost > 0 && lost < sent => periods,
        // Without losses, or with nothing else, only the loss rate is determined.
        _ => return Some(independent(losses)),
    };
    let start = two_state(&periods);
    let family = match found.family {
        Family::SemiMarkov if periods.loss_good > 0.0 => Family::GilbertElliott,
        Family::SemiMarkov if periods.loss_bad < 1.0 => Family::GilbertElliott3,
        Family::SemiMarkov => Family::Gilbert,
        family => family,
    };
    let markov = fit_markov(losses, &Evidence::of(losses), family, &[start])?;
    if found.family != Family::SemiMarkov {
        return Some(markov);
    }
    let Model::Periods(of_markov) = markov.model else { return None };
    let known = [periods.good, periods.bad].map(|law| matches!(law, Law::Lognormal { .. }));
    let laws = known_lognormal(losses, &two_state(&of_markov), known)?;
    Some(with_laws(markov, of_markov, laws))
}

/// The log-likelihood of a model, up to the same constant as [`Fit::log_likelihood`]. `None` for lognormal distributions.
pub fn log_likelihood(losses: &Losses, model: &Model) -> Option<f64> {
    match model {
        Model::Independent(share) => Some(of_share(losses, *share)),
        Model::Periods(periods) => match (periods.good, periods.bad) {
            (Law::Exponential(_), Law::Exponential(_)) => {
                Some(Evidence::of(losses).log_likelihood(&two_state(periods)))
            }
            _ => None,
        },
    }
}

fn with_laws(markov: Fit, periods: Periods, laws: Laws) -> Fit {
    Fit {
        family: Family::SemiMarkov,
        model: Model::Periods(Periods { good: laws.good, bad: laws.bad, ..periods }),
        log_likelihood: markov.log_likelihood + laws.gain,
        parameters: markov.parameters + laws.more_parameters,
        bic: markov.bic + 2.0 * (laws.cost - laws.gain),
        aic: markov.aic + 2.0 * (laws.predictive_cost - laws.gain),
    }
}

fn independent(losses: &Losses) -> Fit {
    let (sent, lost) = losses.sent_and_lost();
    let (sent, lost) = (sent as f64, lost as f64);
    let share = lost / sent;
    let log_likelihood = of_share(losses, share);
    Fit::markov(losses, Family::Independent, Model::Independent(share), log_likelihood, 1)
}

/// The log-likelihood of independent losses.
fn of_share(losses: &Losses, share: f64) -> f64 {
    let (sent, lost) = losses.sent_and_lost();
    let term = |count: u64, share: f64| if count > 0 { count as f64 * libm::log(share) } else { 0.0 };
    term(lost, share) + term(sent - lost, 1.0 - share)
}

/// The model with exponential lengths of the same means.
fn two_state(periods: &Periods) -> TwoState {
    TwoState {
        good: periods.good.mean_s(),
        bad: periods.bad.mean_s(),
        loss_good: periods.loss_good,
        loss_bad: periods.loss_bad,
    }
}

/// Starting points of the search: short bad periods with high loss, long ones with slightly increased loss,
/// and one between.
fn starts(losses: &Losses, evidence: &Evidence, share: f64) -> [TwoState; 3] {
    let duration = losses.duration_s();
    let burst = match evidence {
        Evidence::Probes(blocks) => {
            let bursts = blocks.windows(2).filter(|pair| !pair[0].lost && pair[1].lost).count().max(1);
            let lost_time: f64 = blocks
                .iter()
                .filter(|block| block.lost)
                .map(|block| block.gap * f64::from(block.probes))
                .sum();
            lost_time / bursts as f64
        }
        Evidence::Counts(_) => losses.dispersion() * losses.spacing_s(),
    };
    let burst = burst.max(losses.spacing_s() / 10.0).max(1e-9 * duration);
    let of = |bad: f64, bad_share: f64, loss_bad: f64, loss_good: f64| TwoState {
        good: bad * (1.0 - bad_share) / bad_share,
        bad,
        loss_good,
        loss_bad,
    };
    [
        of(burst, share.clamp(1e-6, 0.9), 0.9, share / 20.0),
        of(8.0 * burst, (2.0 * share).clamp(1e-6, 0.5), (0.6 + share).min(0.95), share / 10.0),
        of(duration / 20.0, 0.3, (2.5 * share).min(0.9), share / 4.0),
    ]
}

/// The map between the parameters of a family and an unbounded space: logarithms of times, logits of losses.
struct Coordinates {
    family: Family,
    shortest: f64,
    longest: f64,
}

impl Coordinates {
    fn place(&self, at: &TwoState) -> Vec<f64> {
        let times = [libm::log(at.good), libm::log(at.bad)];
        let losses = [logit(at.loss_bad), logit(at.loss_good)];
        times.into_iter().chain(losses).take(self.family_dimensions()).collect()
    }

    fn family_dimensions(&self) -> usize {
        match self.family {
            Family::Gilbert => 2,
            Family::GilbertElliott3 => 3,
            _ => 4,
        }
    }

    /// The chain at a point, and a penalty for leaving the region that the record can determine.
    fn chain(&self, place: &[f64]) -> (TwoState, f64) {
        let mut outside = 0.0;
        let mut within = |value: f64, least: f64, most: f64| {
            let inside = value.clamp(least, most);
            outside += (value - inside) * (value - inside);
            inside
        };
        let mut time = |value| libm::exp(within(value, libm::log(self.shortest), libm::log(self.longest)));
        let (good, bad) = (time(place[0]), time(place[1]));
        let mut loss = |index: usize, fixed: f64| {
            place.get(index).map_or(fixed, |&value| logistic(within(value, -16.0, 16.0)))
        };
        let chain = TwoState { good, bad, loss_bad: loss(2, 1.0), loss_good: loss(3, 0.0) };
        (chain, outside)
    }
}

fn fit_markov(losses: &Losses, evidence: &Evidence, family: Family, starts: &[TwoState]) -> Option<Fit> {
    let longest = 100.0 * losses.duration_s();
    let shortest = (1e-3 * losses.spacing_s()).clamp(1e-9 * longest, longest);
    let coordinates = Coordinates { family, shortest, longest };
    let cost = |place: &[f64]| {
        let (chain, outside) = coordinates.chain(place);
        10.0 * outside - evidence.log_likelihood(&chain)
    };
    let found = starts.iter().map(|start| minimise(cost, &coordinates.place(start), 0.7));
    let (place, _) = found.min_by(|a, b| a.1.total_cmp(&b.1))?;
    // A second search, since the simplex may collapse before it reaches the minimum.
    let (place, value) = minimise(cost, &place, 0.2);
    if !value.is_finite() {
        return None;
    }
    let (chain, _) = coordinates.chain(&place);
    let log_likelihood = evidence.log_likelihood(&chain);
    let TwoState { good, bad, loss_good, loss_bad } = chain;
    let (good, bad) = (Law::Exponential(good), Law::Exponential(bad));
    let periods = if loss_good <= loss_bad {
        Periods { good, bad, loss_good, loss_bad }
    } else {
        Periods { good: bad, bad: good, loss_good: loss_bad, loss_bad: loss_good }
    };
    let parameters = coordinates.family_dimensions() as u32;
    log_likelihood
        .is_finite()
        .then(|| Fit::markov(losses, family, Model::Periods(periods), log_likelihood, parameters))
}

fn logit(share: f64) -> f64 {
    let share = share.clamp(1e-7, 1.0 - 1e-7);
    libm::log(share / (1.0 - share))
}

fn logistic(value: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-value))
}
