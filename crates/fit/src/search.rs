//! Minimisation.

use argmin::core::{CostFunction, Error, Executor};
use argmin::solver::neldermead::NelderMead;

/// The search ends when the values at the corners of the simplex have this standard deviation. Differences of
/// a log-likelihood below about 1 do not matter.
const TOLERANCE: f64 = 1e-5;

const MOST_STEPS: u64 = 600;

struct Cost<F>(F);

impl<F: Fn(&[f64]) -> f64> CostFunction for Cost<F> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, place: &Vec<f64>) -> Result<f64, Error> {
        Ok((self.0)(place))
    }
}

/// A local minimum of `cost` and its value, by the simplex method of Nelder and Mead (1965), from `start` and
/// the points at a distance of `step` along each axis. The cost may be infinite, except at the start.
pub(crate) fn minimise(cost: impl Fn(&[f64]) -> f64, start: &[f64], step: f64) -> (Vec<f64>, f64) {
    // If the search does not improve on its start.
    let stay = |value| (start.to_vec(), value);
    let at_start = cost(start);
    if !at_start.is_finite() {
        return stay(f64::INFINITY);
    }
    let corners = (0..=start.len()).map(|corner| {
        let mut place = start.to_vec();
        if let Some(axis) = corner.checked_sub(1) {
            place[axis] += step;
        }
        place
    });
    let finite = Cost(|place: &[f64]| cost(place).min(f64::MAX / 1e10));
    let found = NelderMead::new(corners.collect()).with_sd_tolerance(TOLERANCE).and_then(|solver| {
        Executor::new(finite, solver).configure(|state| state.max_iters(MOST_STEPS)).run()
    });
    match found {
        Ok(mut found) => {
            let value = found.state().get_best_cost();
            match found.state.take_best_param() {
                Some(place) if value <= at_start => (place, value),
                _ => stay(at_start),
            }
        }
        Err(_) => stay(at_start),
    }
}
