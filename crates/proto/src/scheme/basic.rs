//! Plain TCP over the bare link.
//!
//! **What it does.** Nothing: TCP alone recovers losses on the wireless link. The baseline.
//! **Source.** TR-96-014 section 4.1 ("basic TCP").

use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};

/// Plain TCP over a link without ARQ; no parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Basic {}

impl Scheme for Basic {
    fn name(&self) -> &'static str {
        "basic"
    }

    fn summary(&self) -> &'static str {
        "plain TCP over a link without ARQ: the baseline"
    }

    fn source(&self) -> &'static str {
        "TR-96-014 section 4.1"
    }

    fn link(&self) -> LinkUse {
        LinkUse::BARE
    }
}
