//! ICMP source quench on a bad link.
//!
//! **What it does.** When an attempt on the link fails, the base station expects a queue to build up and asks
//! the source to slow down (RFC 792). The source reduces its window to one segment and re-enters slow start
//! (RFC 1122 section 4.2.3.9).
//! **Source.** TR-96-014 section 4.2.2, which found that it does not prevent timeouts of packets already in
//! flight.
//! **Parameters.** `notice_size`: size of a quench as an IP packet; 40 B, as in EBSN, with which the paper
//! compares it. `every_attempt`: quench on each failed attempt instead of only the first of a unit. The paper
//! does not specify this; the first quench already reduces the window as far as possible.
//! **Differences from the paper.** The paper specifies neither when to quench nor how far to reduce the
//! window; the RFCs do.

use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArqUse, Installer, Scheme};
use crate::component::{Component, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::{Notice, NoticeCode, Packet};
use crate::tcp::{Action, Reaction, SenderState, Settings};

/// RFC 792: source quench.
const SOURCE_QUENCH: NoticeCode = NoticeCode { kind: 4, code: 0 };

/// ICMP source quench on a bad link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
        "the base station sends a source quench for a failed attempt; the source re-enters slow start"
    }

    fn source(&self) -> &'static str {
        "TR-96-014 section 4.2.2, RFC 792"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        Notice::fault("notice_size", self.notice_size).into_iter().collect()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        let SourceQuench { notice_size, every_attempt } = *self;
        installer.arq(ArqUse::Required);
        installer.at_base_station(move |_| Agent { notice_size, every_attempt, quenches: 0 });
        installer.at_sender(&[Action::SetWindow], || SlowStart);
    }
}

#[derive(Debug)]
struct Agent {
    notice_size: Bytes,
    every_attempt: bool,
    /// Number of quenches sent.
    quenches: u64,
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
            && (self.every_attempt || event.attempt == 1)
            && let Some(notice) = Notice::about(&event.packet, SOURCE_QUENCH, self.notice_size)
        {
            out.send(Port::WIRED, notice);
            self.quenches += 1;
        }
    }

    /// Total of quenches sent.
    fn count(&self, tally: &mut dyn Tally) {
        tally.total("quenches_sent", self.quenches);
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
