//! Plain TCP.
//!
//! **What it does.** Nothing: TCP recovers losses by itself, over the link of the scenario. The baseline.
//! **Source.** TR-96-014 section 4.1 ("basic TCP").
//! **Parameters.** `arq`: false switches off the ARQ of the scenario, as for the paper's baseline.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArqUse, Installer, Scheme};

/// Plain TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Basic {
    /// Whether the wireless links keep the scenario's ARQ. With `false`, plain TCP runs over the bare link,
    /// as in many papers.
    pub arq: bool,
}

impl Default for Basic {
    fn default() -> Basic {
        Basic { arq: true }
    }
}

impl Scheme for Basic {
    fn name(&self) -> &'static str {
        "basic"
    }

    fn summary(&self) -> &'static str {
        "plain TCP over the scenario's link: the baseline"
    }

    fn source(&self) -> &'static str {
        "TR-96-014 section 4.1"
    }

    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        if !self.arq {
            installer.arq(ArqUse::Off);
        }
    }
}
