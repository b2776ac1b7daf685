//! The directions in which a scheme acts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LinkEnd;

/// Directions of a wireless link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Directions {
    /// Both.
    Both,
    /// Towards the mobile host.
    Down,
    /// From the mobile host.
    Up,
}

impl Directions {
    /// Whether what the node at `end` of a wireless link sends over it is among them.
    pub fn include_from(self, end: LinkEnd) -> bool {
        match self {
            Directions::Both => true,
            Directions::Down => end == LinkEnd::BaseStation,
            Directions::Up => end == LinkEnd::MobileHost,
        }
    }
}
