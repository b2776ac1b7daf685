//! Freeze-TCP: the mobile host closes its window before a disconnection.
//!
//! **What it does.** The mobile host predicts from its radio signal that it will be disconnected, and
//! advertises a window of zero. The source then neither sends nor reduces its window: it probes the window
//! with its persist timer. When the signal is back, the mobile host repeats its last acknowledgement several
//! times: this reopens the window, and if data were lost, the duplicates trigger a fast retransmit. Only the
//! mobile host is modified.
//! **Source.** Goff, Moronski, Phatak and Gupta, "Freeze-TCP: A true end-to-end TCP enhancement mechanism for
//! mobile environments", INFOCOM 2000.
//! **Parameters.**
//! - `lead`: time from closing the window to the loss of the signal; 100 ms. The paper recommends one
//!   round-trip time: the window update then arrives in time, and little capacity is wasted.
//! - `acks`: number of acknowledgements when the signal is back, 3.
//!
//! **Differences from the paper.** The prediction is perfect: every fade, outage and hand-off is known `lead`
//! ahead. Data sent by the mobile host are not frozen. In some systems, a sender with a closed window and
//! outstanding data continues to retransmit; here it probes the window.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::component::Reach;
use crate::tcp::{AckResponse, Action, Receiver, ReceiverReaction, Segment, Settings};

/// A window that closes ahead of disconnections.
///
/// The mobile host predicts every fade of its channel, outage and hand-off by a time of `lead`. The scheme
/// has no effect on receivers without a wireless link of their own, such as in an 802.11 cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FreezeTcp {
    /// Time from closing the window to the loss of the signal; about one round-trip time.
    pub lead: Duration,
    /// Number of acknowledgements sent when the signal is back.
    pub acks: u32,
}

impl Default for FreezeTcp {
    fn default() -> FreezeTcp {
        FreezeTcp { lead: Duration::from_millis(100), acks: 3 }
    }
}

impl Scheme for FreezeTcp {
    fn name(&self) -> &'static str {
        "freeze-tcp"
    }

    fn summary(&self) -> &'static str {
        "the mobile host closes its window before its signal is lost, and opens it when it is back"
    }

    fn source(&self) -> &'static str {
        "Goff et al., INFOCOM 2000"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        match self.acks {
            0 => vec![(String::from("acks"), String::from("found 0, expected at least 1"))],
            _ => Vec::new(),
        }
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.watch_signal(self.lead);
        installer.at_receiver(&[Action::ChangeAck], || Freeze { acks: self.acks, is_frozen: false });
    }
}

/// Advertises a window of zero while the signal is about to be lost, or lost.
#[derive(Debug)]
struct Freeze {
    acks: u32,
    is_frozen: bool,
}

impl ReceiverReaction for Freeze {
    fn on_reach(&mut self, _now: Time, reach: Reach, receiver: &mut Receiver) {
        self.is_frozen = reach != Reach::Back;
        match reach {
            Reach::Fading => receiver.acknowledge_now(1),
            Reach::Lost => {}
            Reach::Back => receiver.acknowledge_now(self.acks),
        }
    }

    fn on_ack(&mut self, _now: Time, ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        if self.is_frozen {
            ack.wnd = 0;
        }
        AckResponse::Send
    }
}
