//! Measured loss: a series of loss rates over time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use lasthop_base::{
    Contents, DataFile, Invalid, LineError, Probability, Steps, StepsReader, Stream, Time, Unread,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Channel, ChannelModel, Sojourn};

/// Independent losses of units with a measured probability over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossSeries {
    /// A file with the columns `time_s` (or `time_ms`) and `loss` (0 to 1, or `loss_percent`). A value
    /// applies until the next row; the series repeats. The value at the start of its transmission applies to
    /// a unit.
    pub file: DataFile<LossSteps>,
}

/// The contents of such a file: loss probabilities over time.
#[derive(Clone, PartialEq)]
pub struct LossSteps(Arc<Steps>);

impl fmt::Debug for LossSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LossSteps({} values)", self.0.len())
    }
}

impl Contents for LossSteps {
    fn parse(text: &str) -> Result<LossSteps, LineError> {
        let wrong = |loss: f64| {
            let problem = "found a loss that is not a probability, expected 0 to 1 in a column \"loss\", or 0 to 100 in a \
                           column \"loss_percent\"";
            (!(0.0..=1.0).contains(&loss)).then_some(problem)
        };
        Steps::parse(text, &[("loss", 1.0), ("loss_percent", 0.01)], wrong)
            .map(|steps| LossSteps(Arc::new(steps)))
    }
}

impl ChannelModel for LossSeries {
    fn examples() -> &'static [&'static str] {
        &["file = \"losses.csv\""]
    }

    fn validate(&self) -> Result<(), Invalid> {
        match self.file.contents() {
            Some(_) => Ok(()),
            None => {
                let problem =
                    "found a file that has not been read, expected a scenario that was loaded from a file";
                Err(Invalid { field: "loss-series.file", problem })
            }
        }
    }

    fn channel(&self, _stream: Stream) -> Box<dyn Channel> {
        let LossSteps(steps) = &**self.file.contents().expect("the file has been read");
        Box::new(Follower { loss: StepsReader::new(Arc::clone(steps)) })
    }

    fn files(&mut self) -> Vec<(&'static [&'static str], &mut dyn Unread)> {
        vec![(&["loss-series", "file"], &mut self.file)]
    }
}

/// Looks up the loss probability at the start of each transmission.
struct Follower {
    loss: StepsReader,
}

impl Channel for Follower {
    fn survival(&mut self, start: Time, _end: Time, _bits: u64) -> f64 {
        1.0 - self.loss.at(start).0
    }

    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, Probability::default());
        self.survival(start, end, 0)
    }

    fn sojourn(&mut self, _at: Time) -> Sojourn {
        Sojourn::FOREVER
    }
}
