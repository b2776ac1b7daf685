//! How losses are repaired on a hop that one has to oneself.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Split;
use crate::tcp::{Changes, Congestion, Flavour, Settings};

/// How losses are repaired where nothing can be congested, and the hop delivers in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recovery {
    /// Everything from the loss on is sent again.
    #[default]
    GoBackN,
    /// Only what is lost is sent again.
    SelectiveRepeat,
}

impl Recovery {
    /// The split with this recovery on its wireless part, and without congestion control.
    pub fn alone(self, split: Split) -> Split {
        let flavour = match self {
            Recovery::GoBackN => Flavour::GoBackN,
            Recovery::SelectiveRepeat => Flavour::SelectiveRepeat,
        };
        Split { wireless: Settings { flavour, congestion: Congestion::None, ..split.wireless }, ..split }
    }

    /// What cannot be of a scheme whose wireless part this is, with the changes that it was asked for: they do
    /// not choose what the scheme chooses.
    pub fn faults(self, split: Option<Split>, asked: &Changes) -> Vec<(String, String)> {
        let mut faults = split.map_or_else(Vec::new, |split| split.faults());
        let chosen = [
            ("flavour", asked.flavour.is_some(), "; choose by recovery"),
            ("congestion", asked.congestion.is_some(), ""),
        ];
        for (key, _, remedy) in chosen.into_iter().filter(|chosen| chosen.1) {
            faults.push((format!("wireless.{key}"), format!("found it, but it is the scheme's{remedy}")));
        }
        faults
    }
}
