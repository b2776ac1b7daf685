//! Profile likelihoods: of the burst length, independent of the chosen model, and of the loss in bad periods.

use crate::evidence::Evidence;
use crate::likelihood::TwoState;
use crate::losses::Losses;
use crate::model::{Law, Model, Periods};
use crate::search::minimise;

/// The profile likelihood of the mean length of bad periods that lose every packet, maximised over their
/// share of the time.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstProfile {
    /// Mean lengths in seconds, in order.
    pub bad_s: Vec<f64>,
    /// The log-likelihood at each length.
    pub log_likelihood: Vec<f64>,
    /// The maximum-likelihood share of the time in bad periods at each length.
    pub share: Vec<f64>,
}

/// The profile at the lengths `bad_s`. It is flat for bursts much shorter than the time between probes, which
/// look like independent losses.
pub fn burst_profile(losses: &Losses, bad_s: &[f64]) -> BurstProfile {
    let evidence = Evidence::of(losses);
    let (sent, lost) = losses.sent_and_lost();
    // Half a loss if no packet or every packet was lost, so that the maximum is not at a bound.
    let start = (lost as f64 + 0.5) / (sent as f64 + 1.0);
    let mut profile = BurstProfile { bad_s: bad_s.to_vec(), log_likelihood: Vec::new(), share: Vec::new() };
    for &bad in bad_s {
        let chain = |place: &[f64]| {
            let share = 1.0 / (1.0 + libm::exp(-place[0].clamp(-25.0, 25.0)));
            (share, TwoState { good: bad * (1.0 - share) / share, bad, loss_good: 0.0, loss_bad: 1.0 })
        };
        let cost = |place: &[f64]| -evidence.log_likelihood(&chain(place).1);
        let (place, cost) = minimise(cost, &[libm::log(start / (1.0 - start))], 0.3);
        profile.log_likelihood.push(-cost);
        profile.share.push(chain(&place).0);
    }
    profile
}

/// The profile likelihood of the loss in bad periods: for each of `loss_bad`, the log-likelihood and the most likely periods
/// with that loss, by a search that starts at `found`. A loss in good periods is estimated too, if `found` has one.
///
/// Counts over intervals much longer than bad periods determine the packets lost in a bad period, but not its length: longer
/// periods in which a smaller share is lost are as likely.
pub fn bad_loss_profile(losses: &Losses, found: &Periods, loss_bad: &[f64]) -> Vec<(f64, Model)> {
    let evidence = Evidence::of(losses);
    let longest = libm::log(100.0 * losses.duration_s());
    let shortest = libm::log(1e-3 * losses.spacing_s()).min(longest);
    let of = |&loss_bad: &f64| {
        let chain = |place: &[f64]| {
            let [good, bad] = [0, 1].map(|index| libm::exp(place[index].clamp(shortest, longest)));
            let loss_good = place.get(2).map_or(0.0, |place| loss_bad / (1.0 + libm::exp(-place)));
            TwoState { good, bad, loss_good, loss_bad }
        };
        // The same packets are lost in a bad period.
        let bad = found.bad.mean_s() * found.loss_bad / loss_bad;
        let mut start = vec![libm::log(found.good.mean_s()), libm::log(bad)];
        if found.loss_good > 0.0 {
            let share = (found.loss_good / loss_bad).clamp(1e-7, 1.0 - 1e-7);
            start.push(libm::log(share / (1.0 - share)));
        }
        let (place, cost) = minimise(|place: &[f64]| -evidence.log_likelihood(&chain(place)), &start, 0.3);
        let TwoState { good, bad, loss_good, loss_bad } = chain(&place);
        let (good, bad) = (Law::Exponential(good), Law::Exponential(bad));
        (-cost, Model::Periods(Periods { good, bad, loss_good, loss_bad }))
    };
    loss_bad.iter().map(of).collect()
}
