//! Plain TCP over a link with ARQ.
//!
//! **What it does.** The wireless link retransmits lost units by the ARQ in the scenario's `[radio.arq]`. TCP
//! is not aware of it.
//! **Source.** TR-96-014 section 4.2.1 ("local recovery").

use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};

/// Plain TCP over a link with ARQ; the ARQ's parameters belong to the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LocalRecovery {}

impl Scheme for LocalRecovery {
    fn name(&self) -> &'static str {
        "local-recovery"
    }

    fn summary(&self) -> &'static str {
        "the wireless link retransmits lost units (ARQ); TCP is not notified"
    }

    fn source(&self) -> &'static str {
        "TR-96-014 section 4.2.1"
    }

    fn link(&self) -> LinkUse {
        LinkUse::RECOVERING
    }
}
