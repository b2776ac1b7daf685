//! Explicit Bad State Notification.
//!
//! **What it does.** While the link retransmits a unit, the base station notifies the source after every
//! failed attempt that the link is in a bad state. The source restarts its retransmission timer with the
//! current RTO; RTT estimate and window are unchanged. This prevents timeouts for packets that the base
//! station is still trying to deliver.
//! **Source.** TR-96-014 sections 4.2.3 and Appendix.
//! **Parameters.** `notice_size`: size of a notice as an IP packet. The paper does not give one; 40 B, the
//! size of an acknowledgement, fits an ICMP header and its quotation. `timeout`: the new timeout as a multiple of the
//! current one; 1, but footnote 1 considers larger and smaller ones.
//! **Differences from the paper.** None.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArqUse, Installer, Scheme};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{Notice, NoticeCode, Packet};
use crate::tcp::{Action, Reaction, SenderState, Settings};

/// "Bad state": an ICMP message, as the paper's Appendix suggests, of the type for experimental mobility
/// protocols (RFC 4065), which Wireshark decodes by that name.
const BAD_STATE: NoticeCode = NoticeCode { kind: 41, code: 0 };

/// Beyond it, no timer of a run would expire.
const MOST_TIMEOUT: f64 = 1e6;

/// Explicit Bad State Notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ebsn {
    /// Size of a notice as an IP packet.
    pub notice_size: Bytes,
    /// The new timeout, as a multiple of the current one. A small one may expire before the next notice arrives; a large
    /// one delays the repair of a segment that is lost nevertheless.
    pub timeout: f64,
}

impl Default for Ebsn {
    fn default() -> Ebsn {
        Ebsn { notice_size: Bytes(40), timeout: 1.0 }
    }
}

impl Scheme for Ebsn {
    fn name(&self) -> &'static str {
        "ebsn"
    }

    fn summary(&self) -> &'static str {
        "the base station notifies the source of each failed attempt; the source restarts its timer"
    }

    fn source(&self) -> &'static str {
        "TR-96-014 section 4.2.3"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let is_timeout = self.timeout > 0.0 && self.timeout <= MOST_TIMEOUT;
        let problem = || format!("found {}, expected a multiple above 0, up to {MOST_TIMEOUT}", self.timeout);
        let timeout = (!is_timeout).then(|| ("timeout".into(), problem()));
        Notice::fault("notice_size", self.notice_size).into_iter().chain(timeout).collect()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Required);
        installer.at_base_station(|_| Agent { notice_size: self.notice_size, notices: 0 });
        installer.at_sender(&[Action::RestartTimer], || RestartTimer { timeout: self.timeout });
    }
}

/// Sends notices. It has no state of connections, which the paper names as the scheme's main advantage.
#[derive(Debug)]
struct Agent {
    notice_size: Bytes,
    /// Number of notices sent.
    notices: u64,
}

impl Component for Agent {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        out.send(port.across(), *packet);
    }

    fn needs_outcome(&self, outcome: LinkOutcome) -> bool {
        outcome == LinkOutcome::AttemptFailed
    }

    fn on_signal(&mut self, _now: Time, signal: &Signal, out: &mut Out) {
        let Signal::Link(event) = signal else { return };
        if event.outcome == LinkOutcome::AttemptFailed
            && let Some(notice) = Notice::about(&event.packet, BAD_STATE, self.notice_size)
        {
            out.send(Port::WIRED, notice);
            self.notices += 1;
        }
    }

    /// Total of notices sent.
    fn count(&self, tally: &mut dyn Tally) {
        tally.total("notices_sent", self.notices);
    }
}

#[derive(Debug)]
struct RestartTimer {
    timeout: f64,
}

impl Reaction for RestartTimer {
    fn on_notice(&mut self, now: Time, notice: &Notice, sender: &mut SenderState) {
        if notice.code == BAD_STATE {
            sender.restart_timer_times(now, self.timeout);
        }
    }
}
