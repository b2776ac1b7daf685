//! ICMP source quench on a bad link.
//!
//! **What it does.** When an attempt on the link fails, the base station takes it for the beginning
//! of a queue and asks the source to slow down (RFC 792). The source shrinks its window to one
//! segment and opens it again by slow start (RFC 1122 section 4.2.3.9).
//! **Source.** TR-96-014 section 4.2.2, which tried it and found that it does not prevent timeouts
//! of what is already under way.
//! **Parameters.** `notice_size`: size of a quench as an IP packet; 40 B, as in the scheme that the
//! paper compares it with. `every_attempt`: quench on each failed attempt instead of only the first of
//! a unit. The paper does not say; the first tells the source all that a quench can tell.
//! **Where we differ from the paper.** It names neither the moment of the quench nor the size of
//! the reduction; the RFCs do.

use alloc::boxed::Box;

use lasthop_base::{Bytes, Time};
use serde::{Deserialize, Serialize};

use super::{LinkUse, Scheme};
use crate::component::{Component, LinkOutcome, Out, Port, Signal};
use crate::packet::{Notice, NoticeCode, Packet};
use crate::tcp::{Reaction, SenderState};

/// RFC 792: source quench.
const SOURCE_QUENCH: NoticeCode = NoticeCode { kind: 4, code: 0 };

/// ICMP source quench on a bad link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SourceQuench {
    /// Size of a quench as an IP packet.
    pub notice_size: Bytes,
    /// Quench on every failed attempt, not only on the first of each unit.
    pub every_attempt: bool,
}

impl Default for SourceQuench {
    fn default() -> SourceQuench {
        SourceQuench { notice_size: Bytes(40), every_attempt: false }
    }
}

impl Scheme for SourceQuench {
    fn name(&self) -> &'static str {
        "source-quench"
    }

    fn summary(&self) -> &'static str {
        "the base station quenches the source when an attempt fails; it starts slowly again"
    }

    fn source(&self) -> &'static str {
        "TR-96-014 section 4.2.2, RFC 792"
    }

    fn link(&self) -> LinkUse {
        LinkUse::RECOVERING
    }

    fn agent(&self) -> Option<Box<dyn Component>> {
        Some(Box::new(Agent { notice_size: self.notice_size, every_attempt: self.every_attempt }))
    }

    fn reaction(&self) -> Option<Box<dyn Reaction>> {
        Some(Box::new(SlowStart))
    }
}

#[derive(Debug)]
struct Agent {
    notice_size: Bytes,
    every_attempt: bool,
}

impl Component for Agent {
    fn receive(&mut self, _now: Time, packet: Packet, port: Port, out: &mut Out) {
        out.send(port.across(), packet);
    }

    fn on_signal(&mut self, _now: Time, signal: &Signal, out: &mut Out) {
        let Signal::Link(event) = signal else { return };
        if event.outcome == LinkOutcome::AttemptFailed
            && (self.every_attempt || event.attempt == 1)
            && let Some(notice) = Notice::about(&event.packet, SOURCE_QUENCH, self.notice_size)
        {
            out.send(Port::WIRED, notice);
        }
    }
}

#[derive(Debug)]
struct SlowStart;

impl Reaction for SlowStart {
    fn on_notice(&mut self, _now: Time, notice: &Notice, sender: &mut SenderState) {
        if notice.code == SOURCE_QUENCH {
            sender.shrink_window_to_one_segment();
        }
    }
}
