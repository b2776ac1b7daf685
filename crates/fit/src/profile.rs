//! The profile likelihood of the burst length, independent of the chosen model.

use crate::blocks::Evidence;
use crate::likelihood::TwoState;
use crate::losses::Losses;
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
