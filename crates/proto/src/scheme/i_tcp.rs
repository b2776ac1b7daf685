//! Indirect TCP: two connections in place of one.
//!
//! **What it does.** The base station ends the connection of the source and goes on to the mobile host with
//! one of its own. Both are TCP as usual: losses on the air are repaired from nearby, and the source never
//! hears of them.
//! **Source.** Bakre and Badrinath, "I-TCP: Indirect TCP for Mobile Hosts", ICDCS 1995; "two" in Park, Park and
//! Park, "Enhancing TCP Performance over Wireless Network with Variable Segment Size", section V-A.
//! **Parameters.** `buffer`: most bytes that the base station holds of a connection; 64 KiB, the largest
//! window without scaling, so that the wired part may have as much under way as ever. `wireless`: how TCP on the
//! wireless part differs from `[tcp]`: any of its keys. By default it does not, but for a `user_timeout` of
//! 100 s if that has none: what no mobile host takes is not held for ever.
//! **Where we differ from the paper.** No handover of a connection from one base station to the next. The
//! sources give no buffer.

use lasthop_base::Bytes;
use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};
use crate::split::Split;
use crate::tcp::{Changes, Settings};

/// Indirect TCP.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ITcp {
    /// Most bytes that the base station holds of a connection.
    pub buffer: Bytes,
    /// How TCP on the wireless part differs.
    pub wireless: Changes,
}

impl Default for ITcp {
    fn default() -> ITcp {
        ITcp { buffer: Bytes(65_536), wireless: Changes::default() }
    }
}

impl Scheme for ITcp {
    fn name(&self) -> &'static str {
        "i-tcp"
    }

    fn summary(&self) -> &'static str {
        "the base station splits the connection; TCP on both parts"
    }

    fn source(&self) -> &'static str {
        "Bakre and Badrinath 1995"
    }

    fn link(&self) -> LinkUse {
        LinkUse::BARE
    }

    fn split(&self, tcp: &Settings) -> Option<Split> {
        Some(Split::new(&self.wireless, tcp, self.buffer))
    }
}
