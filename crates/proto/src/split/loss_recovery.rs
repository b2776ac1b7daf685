//! Loss recovery on an uncongested hop.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Split;
use crate::tcp::{Changes, Congestion, Flavour, Settings};

/// Loss recovery on a hop that delivers in order and cannot be congested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LossRecovery {
    /// Retransmit everything from the loss on.
    #[default]
    GoBackN,
    /// Retransmit only what is lost.
    SelectiveRepeat,
}

impl LossRecovery {
    /// The split with this loss recovery and without congestion control on its wireless part.
    pub fn without_congestion_control(self, split: Split) -> Split {
        let flavour = match self {
            LossRecovery::GoBackN => Flavour::GoBackN,
            LossRecovery::SelectiveRepeat => Flavour::SelectiveRepeat,
        };
        Split { wireless: Settings { flavour, congestion: Congestion::None, ..split.wireless }, ..split }
    }

    /// Invalid parameters of a scheme with this wireless part, given the changes requested in the scenario:
    /// those may not override what the scheme sets.
    pub fn faults(self, split: &Split, requested: &Changes) -> Vec<(String, String)> {
        let mut faults = split.faults();
        let chosen = [
            ("flavour", requested.flavour.is_some(), "; choose by recovery"),
            ("congestion", requested.congestion.is_some(), ""),
        ];
        for (key, _, remedy) in chosen.into_iter().filter(|chosen| chosen.1) {
            faults.push((format!("wireless.{key}"), format!("found it, but the scheme sets it{remedy}")));
        }
        faults
    }
}
