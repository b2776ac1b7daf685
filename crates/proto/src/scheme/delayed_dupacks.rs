//! Delayed duplicate acknowledgements.
//!
//! **What it does.** The link recovers losses itself but does not preserve order: while it retransmits a
//! unit, later packets arrive and cause duplicate ACKs. The receiver sends the first two duplicates of a run
//! at once and delays the others by `delay`. If the missing packet arrives meanwhile, they are suppressed,
//! and the source does not retransmit what the link has delivered. Otherwise all of them are sent after the
//! delay. The base station needs no knowledge of TCP.
//! **Source.** Vaidya, Mehta, Perkins and Montenegro, Texas A&M University TR 99-003, 1999; RFC 2757 section 4.8
//! summarises it.
//! **Parameters.** `delay`: delay of the third and later duplicates of a run. It should be long enough for
//! the link to deliver the missing packet; the authors give no rule. 100 ms covers several attempts in a
//! wireless LAN. `agent`: an agent at base stations delays duplicates in place of the receiver, for hosts that cannot be changed; its
//! `delay` is at most 1 s, the lower bound of the retransmission timeout in RFC 6298.
//! **Differences from the paper.** None without `agent`. The agent tells duplicates by RFC 5681, or by SACK blocks, and delays those of
//! both directions; what it suppresses beside duplicates, such as blocks, later acknowledgements tell again. Those with marks or
//! options that it does not know pass at once; under AccECN nearly all ACKs carry counts of marks, so that nothing is delayed. What a
//! host sends behind a delayed duplicate, such as data, releases those before it, and ends the delay.

mod agent;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArqUse, Installer, Scheme};
use crate::tcp::{AckResponse, Action, Receiver, ReceiverReaction, Segment, SeqNum, Settings};

/// Number of duplicates of a run that are sent immediately.
const AT_ONCE: u32 = 2;

/// Delayed duplicate acknowledgements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DelayedDupacks {
    /// Delay of the third and later consecutive duplicate acknowledgements; with `agent`, at most 1 s.
    pub delay: Duration,
    /// Whether agents at base stations delay them instead, in both directions, and receivers stay as they are.
    pub agent: bool,
}

impl Default for DelayedDupacks {
    fn default() -> DelayedDupacks {
        DelayedDupacks { delay: Duration::from_millis(100), agent: false }
    }
}

impl Scheme for DelayedDupacks {
    fn name(&self) -> &'static str {
        "delayed-dupacks"
    }

    fn summary(&self) -> &'static str {
        if self.agent {
            "the base station delays the third and later duplicate ACKs, to give the link time to retransmit"
        } else {
            "the receiver delays the third and later duplicate ACKs, to give the link time to retransmit"
        }
    }

    fn source(&self) -> &'static str {
        "TR 99-003, RFC 2757 section 4.8"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let is_long = self.agent && self.delay > agent::LONGEST;
        let fault = is_long.then(|| {
            let (found, most) = (self.delay, agent::LONGEST);
            format!("found {found}, expected at most {most} with agent = true: senders would time out while duplicates wait")
        });
        fault.into_iter().map(|fault| (String::from("delay"), fault)).collect()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Required);
        if self.agent {
            return installer.at_base_station(|_| agent::Agent::new(self.delay));
        }
        installer.at_receiver(&[Action::ChangeAck], || Delay {
            delay: self.delay,
            row: None,
            count: 0,
            waiting: 0,
            until: Time::NEVER,
        });
    }
}

/// Withholds duplicates.
#[derive(Debug)]
struct Delay {
    delay: Duration,
    /// Acknowledgement number of the current row of duplicates.
    row: Option<SeqNum>,
    /// Duplicates in the row.
    count: u32,
    /// Number of delayed duplicates.
    waiting: u32,
    /// When the delayed duplicates are sent.
    until: Time,
}

impl Delay {
    fn begin_row(&mut self, ack: SeqNum) {
        (self.row, self.count, self.waiting, self.until) = (Some(ack), 0, 0, Time::NEVER);
    }
}

impl ReceiverReaction for Delay {
    fn on_segment(&mut self, _now: Time, _segment: &Segment, receiver: &mut Receiver) {
        // The first acknowledgement may be a duplicate of the one in SYN-ACK.
        self.row.get_or_insert(receiver.rcv_nxt());
    }

    fn on_ack(&mut self, now: Time, ack: &mut Segment, receiver: &mut Receiver) -> AckResponse {
        if self.row != Some(ack.ack) {
            self.begin_row(ack.ack);
        } else if receiver.has_gap() {
            self.count += 1;
        }
        // After the delay, the remaining duplicates of the row are sent immediately.
        let is_over = self.until <= now;
        if self.count <= AT_ONCE || is_over {
            return AckResponse::Send;
        }
        self.waiting += 1;
        if self.until == Time::NEVER {
            self.until = now + self.delay;
        }
        AckResponse::Withhold
    }

    fn next_wakeup(&self) -> Time {
        if self.waiting > 0 { self.until } else { Time::NEVER }
    }

    fn on_timer(&mut self, _now: Time, receiver: &mut Receiver) {
        receiver.acknowledge_now(core::mem::take(&mut self.waiting));
    }
}
