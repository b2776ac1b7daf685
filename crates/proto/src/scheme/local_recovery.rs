//! Plain TCP over a link that recovers its own errors.
//!
//! **What it does.** Lets the wireless link resend what was lost on the air, by the protocol in the
//! scenario's `[radio.arq]`. TCP knows nothing of it.
//! **Source.** TR-96-014 section 4.2.1 ("local recovery").

use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};

/// Plain TCP over a recovering link; the recovery's parameters are the link's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LocalRecovery {}

impl Scheme for LocalRecovery {
    fn name(&self) -> &'static str {
        "local-recovery"
    }

    fn summary(&self) -> &'static str {
        "the wireless link resends what was lost on the air; TCP is not told"
    }

    fn source(&self) -> &'static str {
        "TR-96-014 section 4.2.1"
    }

    fn link(&self) -> LinkUse {
        LinkUse::RECOVERING
    }
}
