//! Plain TCP over a link with ARQ.
//!
//! **What it does.** The wireless link retransmits lost units by its ARQ. TCP is not aware of it.
//! **Source.** TR-96-014 section 4.2.1 ("local recovery").
//! **Parameters.** None. The ARQ is that of the scenario; a link without one gets selective repeat with its
//! defaults. `arq` does the same with an ARQ of choice.

use serde::{Deserialize, Serialize};

use super::{ArqUse, Installer, Scheme};
use crate::arq::{Config, selective_repeat};

/// Plain TCP over a link with ARQ; no parameters.
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

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Supplied(Config::SelectiveRepeat(selective_repeat::Params::default())));
    }
}
