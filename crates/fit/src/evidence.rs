//! The evidence of a record: its form for the likelihood.

use crate::blocks::{Block, blocks};
use crate::counts::{Counted, until_arrivals};
use crate::likelihood::TwoState;
use crate::losses::{Losses, Outcomes};

/// A record prepared for the likelihood.
#[derive(Debug)]
pub(crate) enum Evidence {
    Probes(Vec<Block>),
    Counts(Counted),
}

impl Evidence {
    pub(crate) fn of(losses: &Losses) -> Evidence {
        match &losses.outcomes {
            Outcomes::Probes(outcomes) => Evidence::Probes(blocks(losses, outcomes)),
            Outcomes::Counts(counts) if losses.until_arrival => {
                Evidence::Counts(Counted::new(&until_arrivals(&losses.times, counts, losses.spacing_s())))
            }
            Outcomes::Counts(counts) => {
                let known = losses.times.iter().zip(counts);
                let known = known.map(|(&begin, &(length, sent, lost))| (begin, length, sent, lost));
                Evidence::Counts(Counted::new(&known.collect::<Vec<_>>()))
            }
        }
    }

    /// The log-likelihood, up to a constant of the record; minus infinity for impossible records.
    pub(crate) fn log_likelihood(&self, chain: &TwoState) -> f64 {
        match self {
            Evidence::Probes(blocks) => chain.log_likelihood(blocks),
            Evidence::Counts(counted) => counted.log_likelihood(chain),
        }
    }
}
