//! Plain TCP over a link with ARQ.
//!
//! **What it does.** The wireless link retransmits lost units by its ARQ. TCP is not aware of it.
//! **Source.** TR-96-014 section 4.2.1 ("local recovery").
//! **Parameters.** None. The ARQ is the scenario's; a link without one gets the default of the scheme
//! [`arq`](super::arq), which does the same with a chosen ARQ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arq::Arq;
use super::{ArqUse, Installer, Scheme};

/// Plain TCP over a link with ARQ; no parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
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

    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Supplied(Arq::default().protocol));
    }
}
