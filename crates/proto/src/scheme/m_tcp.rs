//! M-TCP: a split connection that keeps the end-to-end semantics, and freezes the source while the mobile
//! host is away.
//!
//! **What it does.** The supervisory host, here the base station, splits the connection. It acknowledges to
//! the source only data that the mobile host has acknowledged, and withholds the acknowledgement of the last
//! byte. When the mobile host is disconnected, it acknowledges that byte with a zero window: the source
//! probes the window instead of timing out, and keeps its congestion window. After the reconnection, an
//! acknowledgement reopens the window. On the wireless part, losses during a disconnection do not reduce the
//! congestion window, and all data in flight are retransmitted as soon as the signal is back.
//! **Source.** Brown and Singh, "M-TCP: TCP for mobile cellular networks", Computer Communication Review
//! 27(5), 1997.
//! **Parameters.** `hold`: how long the acknowledgement of the last byte is withheld without further
//! acknowledgements of the mobile host; 100 ms, less than any minimum RTO, so that a source without more data
//! does not time out. The paper relates it to the source's timer, which the supervisory host does not know.
//! `buffer`, `wireless` and `handoff` as in `i-tcp`.
//! **Differences from the paper.** The base station detects immediately that the signal is lost or back; in
//! the paper the supervisory host infers it from missing acknowledgements and from a message of the mobile
//! host. The wireless part uses TCP congestion control instead of a constant share of the cell's bandwidth,
//! and its timers continue during a disconnection. Each base station is a supervisory host of its own, and the connections
//! move between them as in `i-tcp`; in the paper several base stations share one, so that hand-offs between them move
//! nothing. `"m-tcp@NODE"` at a router in front of them does that.
//! If the window stays closed for long with data outstanding, the source retransmits them on the wired part
//! when it reopens, although the supervisory host has them. Data of the mobile host are acknowledged to it
//! once the destination has acknowledged them.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::component::Reach;
use crate::split::{Split, StateTransfer};
use crate::tcp::{
    Action, Changes, Evidence, Hole, Reaction, Response, Segment, SenderState, SeqNum, Settings,
};

/// A split connection that keeps the end-to-end semantics.
///
/// As `i-tcp`, but data are acknowledged only after the other side has acknowledged them:
/// `acknowledged_undelivered_bytes` is 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MTcp {
    /// How long the acknowledgement of the last byte is withheld without further acknowledgements of the
    /// mobile host.
    pub hold: Duration,
    /// Buffer of the base station per connection: bytes acknowledged to one side and not yet by the other.
    /// Limits the window of the source.
    pub buffer: Bytes,
    /// TCP overrides for the wireless part.
    pub wireless: Changes,
    /// How the connections move with a moving host.
    pub handoff: StateTransfer,
}

impl Default for MTcp {
    fn default() -> MTcp {
        let (hold, buffer) = (Duration::from_millis(100), Bytes(65_536));
        let (wireless, handoff) = (Changes::default(), StateTransfer::default());
        MTcp { hold, buffer, wireless, handoff }
    }
}

impl MTcp {
    fn split(&self, tcp: &Settings) -> Split {
        let split = Split::new(&self.wireless, tcp, self.buffer, self.handoff);
        Split { holds: Some(self.hold), ..split }
    }
}

impl Scheme for MTcp {
    fn name(&self) -> &'static str {
        "m-tcp"
    }

    fn summary(&self) -> &'static str {
        "a split connection that acknowledges only what has arrived, and freezes the source during disconnections"
    }

    fn source(&self) -> &'static str {
        "Brown and Singh 1997"
    }

    fn faults(&self, tcp: &Settings) -> Vec<(String, String)> {
        let mut faults = self.split(tcp).faults();
        if self.hold.is_zero() {
            let problem = "found 0 s, expected more: the byte must be held until a disconnection";
            faults.extend(vec![(String::from("hold"), String::from(problem))]);
        }
        faults
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.split(|tcp| self.split(tcp));
        installer.watch_signal(Duration::ZERO);
        installer.at_sender(&[Action::SetWindow, Action::RestartTimer], Resume::default);
    }
}

/// Ignores losses during a disconnection, and resumes at its end.
#[derive(Debug, Default)]
struct Resume {
    is_away: bool,
    /// The congestion window before the disconnection.
    window: f64,
    /// End of the data sent before the end of the last disconnection, until they are acknowledged.
    until: Option<SeqNum>,
}

impl Reaction for Resume {
    fn on_reach(&mut self, now: Time, reach: Reach, sender: &mut SenderState) {
        if reach == Reach::Lost && !self.is_away {
            self.window = sender.cwnd();
        }
        let was_away = self.is_away;
        self.is_away = reach == Reach::Lost || (self.is_away && reach == Reach::Fading);
        if was_away && reach == Reach::Back {
            if sender.cwnd() < self.window && sender.settings().is_controlled() {
                sender.set_window(self.window as u32);
            }
            self.until = Some(sender.snd_max());
            sender.restart_timer(now);
            // All data in flight are lost.
            let mut seq = sender.snd_una();
            while seq < sender.snd_max() {
                sender.resend(seq);
                seq += sender.mss();
            }
        }
    }

    fn on_segment(&mut self, _now: Time, _segment: &Segment, sender: &mut SenderState) {
        self.until = self.until.filter(|&until| sender.snd_una() < until);
    }

    fn judge(&mut self, _now: Time, hole: Hole, _sender: &mut SenderState) -> Response {
        let is_mark = hole.evidence == Evidence::Mark;
        let is_disconnection = self.is_away || self.until.is_some_and(|until| hole.seq < until);
        if is_disconnection && !is_mark { Response::Corruption } else { Response::Congestion }
    }
}
