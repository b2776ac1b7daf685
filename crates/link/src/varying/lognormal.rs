//! Rates and delays that vary at random.
//!
//! *What it does.* The value is median · e^(σX + τZ). X changes at each step: it is normal, and its correlation over a
//! time t is e^(−t/c) (an autoregression of first order, sampled at the steps). Z is normal too, and drawn anew in each
//! slot, independently: the level of a satellite or a cell until the next reconfiguration. Both are stationary from the
//! beginning. The mean of the value is median · e^((σ² + τ²)/2).
//!
//! *Why.* The throughput of cellular and satellite links is roughly lognormal over seconds, and Starlink assigns
//! satellites anew every 15 s (see the presets of links, which name their sources).

use lasthop_base::{BitRate, Duration, Invalid, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines the parameters of a quantity.
macro_rules! lognormal {
    ($(#[$meta:meta])* $name:ident, $type:ty, $key:literal, { $($(#[$extra_meta:meta])* $extra:ident: $extra_type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[$extra_meta])* #[serde(default)] pub $extra: $extra_type,)*
            /// The median; state either this or `mean`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub median: Option<$type>,
            /// The mean: median · e^((sigma² + slot_sigma²) / 2).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub mean: Option<$type>,
            /// Standard deviation of the logarithm, 0 to 5.
            pub sigma: f64,
            /// Time between changes.
            #[serde(default = "default_step")]
            pub step: Duration,
            /// Time in which the correlation falls to 1/e; `"0 s"` for independent steps.
            #[serde(default = "default_correlation")]
            pub correlation: Duration,
            /// Length of a slot. It changes nothing without `slot_sigma`.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            pub slot: Option<Duration>,
            /// Standard deviation of the logarithm of the slot level, 0 to 5.
            #[serde(default)]
            pub slot_sigma: f64,
        }

        impl $name {
            pub(super) fn validate(&self) -> Result<(), Invalid> {
                let wrong = |field, problem| Err(Invalid { field, problem });
                if self.median.is_some() == self.mean.is_some() {
                    return wrong($key, "expected either the median or the mean, and not both");
                }
                self.shape().validate($key)
            }

            pub(super) fn shape(&self) -> Shape {
                let $name { sigma, step, correlation, slot, slot_sigma, .. } = *self;
                Shape { sigma, step, correlation, slot, slot_sigma }
            }
        }
    };
}

lognormal! {
    /// A rate that varies at random.
    LognormalRate, BitRate, "lognormal", {}
}

lognormal! {
    /// A delay that varies at random above a least one.
    LognormalDelay, Duration, "lognormal", {
        /// The part of the delay that does not vary. By default zero.
        least: Duration,
    }
}

fn default_step() -> Duration {
    Duration::from_millis(100)
}

fn default_correlation() -> Duration {
    Duration::from_secs(1)
}

impl LognormalRate {
    pub(super) fn median_bps(&self) -> f64 {
        let shape = self.shape();
        match (self.median, self.mean) {
            (Some(median), _) => median.as_bps() as f64,
            (None, Some(mean)) => mean.as_bps() as f64 / shape.mean_over_median(),
            (None, None) => unreachable!("the rate is valid"),
        }
    }

    pub(super) fn mean_bps(&self) -> f64 {
        self.median_bps() * self.shape().mean_over_median()
    }
}

impl LognormalDelay {
    pub(super) fn median_s(&self) -> f64 {
        let shape = self.shape();
        match (self.median, self.mean) {
            (Some(median), _) => median.as_secs_f64(),
            (None, Some(mean)) => mean.as_secs_f64() / shape.mean_over_median(),
            (None, None) => unreachable!("the delay is valid"),
        }
    }

    pub(super) fn mean_s(&self) -> f64 {
        self.least.as_secs_f64() + self.median_s() * self.shape().mean_over_median()
    }
}

/// How a quantity varies about its median.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    sigma: f64,
    pub(super) step: Duration,
    correlation: Duration,
    slot: Option<Duration>,
    slot_sigma: f64,
}

impl Shape {
    fn validate(&self, table: &'static str) -> Result<(), Invalid> {
        let check =
            |holds: bool, field, problem| if holds { Ok(()) } else { Err(Invalid { field, problem }) };
        debug_assert_eq!(table, "lognormal");
        let sigma = "found a standard deviation out of range, expected 0 to 5, such as 0.5";
        check((0.0..=5.0).contains(&self.sigma), "lognormal.sigma", sigma)?;
        check((0.0..=5.0).contains(&self.slot_sigma), "lognormal.slot_sigma", sigma)?;
        let zero = "found a length of zero, expected one above zero, such as \"100 ms\"";
        check(!self.step.is_zero(), "lognormal.step", zero)?;
        check(self.slot.is_none_or(|slot| !slot.is_zero()), "lognormal.slot", zero)?;
        let lonely = "found it without slots, expected slot = \"15 s\" beside it";
        check(self.slot.is_some() || self.slot_sigma == 0.0, "lognormal.slot_sigma", lonely)
    }

    fn mean_over_median(&self) -> f64 {
        libm::exp((self.sigma * self.sigma + self.slot_sigma * self.slot_sigma) / 2.0)
    }

    /// The shortest time between two changes.
    pub(super) fn shortest(&self) -> Duration {
        self.slot.map_or(self.step, |slot| slot.min(self.step))
    }
}

/// The factor of the median over time.
#[derive(Clone, Debug)]
pub(super) struct Fluctuation {
    shape: Shape,
    /// Correlation of neighbouring steps.
    kept: f64,
    stream: Stream,
    slots: Stream,
    /// X of the current step, and the end of that step.
    x: f64,
    step_end: Time,
    /// Z of the current slot, and the end of that slot.
    z: f64,
    slot_end: Time,
}

impl Fluctuation {
    /// A process with a stream for its steps and one for its slots, of which the first ends after the share `phase` of
    /// its length.
    pub(super) fn new(shape: Shape, mut stream: Stream, mut slots: Stream, phase: f64) -> Fluctuation {
        let kept = match shape.correlation.is_zero() {
            true => 0.0,
            false => libm::exp(-shape.step.as_secs_f64() / shape.correlation.as_secs_f64()),
        };
        let slot_end = match shape.slot {
            Some(slot) => Time::ZERO + Duration::from_secs_f64(slot.as_secs_f64() * phase),
            None => Time::NEVER,
        };
        let (x, z) = (stream.normal(), slots.normal());
        Fluctuation { shape, kept, stream, slots, x, step_end: Time::ZERO + shape.step, z, slot_end }
    }

    /// The factor at `at`, and until when it holds, exclusive. `at` must be no earlier than that of previous calls.
    pub(super) fn at(&mut self, at: Time) -> (f64, Time) {
        while self.step_end <= at {
            let noise = libm::sqrt(1.0 - self.kept * self.kept);
            self.x = self.kept * self.x + noise * self.stream.normal();
            self.step_end += self.shape.step;
        }
        while self.slot_end <= at {
            self.z = self.slots.normal();
            self.slot_end += self.shape.slot.unwrap_or(Duration::MAX);
        }
        let Shape { sigma, slot_sigma, .. } = self.shape;
        (libm::exp(sigma * self.x + slot_sigma * self.z), self.step_end.min(self.slot_end))
    }
}
