//! The models, and simulated channel trajectories.

use lasthop_base::{Duration, Stream};

/// The distribution of the lengths of periods.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Exponential with this mean, in seconds.
    Exponential(f64),
    /// Lognormal.
    Lognormal {
        /// The median, in seconds.
        median: f64,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
}

impl Law {
    /// The lognormal distribution with this mean in seconds.
    pub fn lognormal_with_mean(mean: f64, sigma: f64) -> Law {
        Law::Lognormal { median: mean * libm::exp(-sigma * sigma / 2.0), sigma }
    }

    /// The mean in seconds.
    pub fn mean_s(self) -> f64 {
        match self {
            Law::Exponential(mean) => mean,
            Law::Lognormal { median, sigma } => median * libm::exp(sigma * sigma / 2.0),
        }
    }

    fn draw(self, stream: &mut Stream) -> f64 {
        match self {
            Law::Exponential(mean) => -libm::log(1.0 - stream.uniform()) * mean,
            Law::Lognormal { median, sigma } => median * libm::exp(sigma * stream.normal()),
        }
    }

    /// The residual life of a period at a random time.
    fn residual(self, stream: &mut Stream) -> f64 {
        match self {
            Law::Exponential(_) => self.draw(stream),
            // The period at a random time is length-biased.
            Law::Lognormal { median, sigma } => {
                let met = Law::Lognormal { median: median * libm::exp(sigma * sigma), sigma };
                met.draw(stream) * stream.uniform()
            }
        }
    }
}

/// Alternating good and bad periods, with a loss probability in each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Periods {
    /// Lengths of good periods.
    pub good: Law,
    /// Lengths of bad periods.
    pub bad: Law,
    /// Probability that a packet is lost in a good period.
    pub loss_good: f64,
    /// Probability that a packet is lost in a bad period.
    pub loss_bad: f64,
}

/// A model of losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Every packet is lost with this probability.
    Independent(f64),
    /// Good and bad periods.
    Periods(Periods),
}

impl Model {
    /// The long-run loss probability.
    pub fn loss(&self) -> f64 {
        match self {
            Model::Independent(loss) => *loss,
            Model::Periods(periods) => {
                let (good, bad) = (periods.good.mean_s(), periods.bad.mean_s());
                (good * periods.loss_good + bad * periods.loss_bad) / (good + bad)
            }
        }
    }
}

/// A trajectory of channel states, simulated forward in time.
pub(crate) struct Trajectory<'a> {
    model: Model,
    bad: bool,
    /// End of the current period, in seconds.
    until: f64,
    stream: &'a mut Stream,
}

impl<'a> Trajectory<'a> {
    /// A trajectory that is stationary at time zero.
    pub(crate) fn new(model: &Model, stream: &'a mut Stream) -> Trajectory<'a> {
        let (bad, until) = match model {
            Model::Independent(_) => (false, f64::INFINITY),
            Model::Periods(periods) => {
                let (good, bad) = (periods.good.mean_s(), periods.bad.mean_s());
                let is_bad = stream.bernoulli(bad / (good + bad));
                let law = if is_bad { periods.bad } else { periods.good };
                (is_bad, law.residual(stream))
            }
        };
        Trajectory { model: *model, bad, until, stream }
    }

    /// Whether a packet sent at `time` is lost. `time` must not decrease between calls.
    pub(crate) fn loses(&mut self, time: f64) -> bool {
        let loss = match self.model {
            Model::Independent(loss) => loss,
            Model::Periods(periods) => {
                while self.until <= time {
                    self.bad = !self.bad;
                    let law = if self.bad { periods.bad } else { periods.good };
                    // As in the simulator, no period is shorter than a nanosecond.
                    self.until += law.draw(self.stream).max(Duration::from_nanos(1).as_secs_f64());
                }
                if self.bad { periods.loss_bad } else { periods.loss_good }
            }
        };
        loss > 0.0 && self.stream.bernoulli(loss)
    }
}
