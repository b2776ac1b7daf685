//! Fast retransmissions after a hand-off.
//!
//! **What it does.** What was on the way during a hand-off is lost, and the source would wait for a timeout. When the
//! mobile host is connected again it makes both ends retransmit immediately: its own senders send the oldest
//! unacknowledged segment again, and its receivers send duplicate ACKs, which cause a fast retransmit at the source.
//! Neither the network nor the fixed host changes.
//! **Source.** Cáceres and Iftode, "Improving the performance of reliable transport protocols in mobile computing
//! environments", IEEE JSAC 13(5), 1995.
//! **Parameters.** `acks`: number of duplicate ACKs; 3, the usual threshold.
//! **Differences from the paper.** The mobile host reacts to every return of its signal: after fades and outages, too. A
//! sender at the mobile host reduces its window to half of what is outstanding, but at least two segments, as after a
//! fast retransmit. The paper was not at hand in full; this follows its abstract and what others write of it.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::component::Reach;
use crate::tcp::{Action, Reaction, Receiver, ReceiverReaction, SenderState, Settings};

/// Fast retransmissions after a hand-off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HandoffRxmt {
    /// Number of duplicate acknowledgements sent when the signal is back.
    pub acks: u32,
}

impl Default for HandoffRxmt {
    fn default() -> HandoffRxmt {
        HandoffRxmt { acks: 3 }
    }
}

impl Scheme for HandoffRxmt {
    fn name(&self) -> &'static str {
        "handoff-rxmt"
    }

    fn summary(&self) -> &'static str {
        "when its signal is back, the mobile host makes both ends retransmit at once"
    }

    fn source(&self) -> &'static str {
        "Cáceres and Iftode, JSAC 1995"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        match self.acks {
            0 => vec![(String::from("acks"), String::from("found 0, expected at least 1"))],
            _ => Vec::new(),
        }
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.watch_signal(Duration::ZERO);
        installer.at_receiver(&[Action::RepeatAck], || Duplicates { acks: self.acks });
        installer.at_sender(&[Action::Resend, Action::SetWindow], || Retransmit);
    }
}

/// Sends duplicate ACKs.
#[derive(Debug)]
struct Duplicates {
    acks: u32,
}

impl ReceiverReaction for Duplicates {
    fn on_reach(&mut self, _now: Time, reach: Reach, receiver: &mut Receiver) {
        if reach == Reach::Back {
            receiver.acknowledge_now(self.acks);
        }
    }
}

/// Retransmits the oldest unacknowledged segment.
#[derive(Debug)]
struct Retransmit;

impl Reaction for Retransmit {
    fn on_reach(&mut self, _now: Time, reach: Reach, sender: &mut SenderState) {
        let outstanding = sender.snd_max() - sender.snd_una();
        if reach == Reach::Back && sender.resend(sender.snd_una()) && sender.settings().is_controlled() {
            sender.set_window((outstanding / 2).max(2 * sender.mss()));
        }
    }
}
