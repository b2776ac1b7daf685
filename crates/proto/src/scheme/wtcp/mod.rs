//! WTCP of Sinha, Venkitaraman, Sivakumar and Bharghavan: the receiver sets the rate of the source.
//!
//! **What it does.** The source is paced at a rate instead of being limited by a congestion window. The
//! receiver computes the rate: it compares the time between the arrivals of packets with the time between
//! their departures. If packets arrive farther apart than they were sent, a queue grows, and the rate
//! decreases before packets are lost. Losses that are as many as usual on this path are random, and do not
//! change the rate. Acknowledgements carry the rate. There is no retransmission timeout: selective
//! acknowledgements show what is missing, and if none arrive, the source probes. Nothing changes on the way.
//!
//! - *Start.* The source sends two segments back to back. The time between their arrivals gives the first
//!   rate (packet pair).
//! - *Rate.* Of each `epoch` packets, ρ is the time between the arrivals of the first and the last, divided
//!   by the time between their departures. The sum of all such differences is the queueing delay, relative to
//!   the least of the last 32 to 64 epochs. If ρ exceeds `congested`, or if it is 1 at least and the queueing
//!   delay exceeds what such an epoch would add, the rate becomes `decrease`·rate/max(ρ, 1). While a queue
//!   drains, the rate stays. Otherwise it grows by the share `increase` of the first rate, unless the source
//!   has sent at less than half the rate, for lack of data.
//! - *Losses.* The receiver keeps mean and mean deviation of the number of losses in an epoch without
//!   congestion. More losses than the mean plus `deviations` deviations, and one, are congestion too, and
//!   multiply the rate by `decrease`.
//! - *Silence.* If no acknowledgement arrives for SRTT + (RTO − SRTT)/2, the source stops (a blackout) and
//!   retransmits the first missing segment as a probe; and again after each such time. Each probe restarts
//!   the retransmission timer, which never doubles.
//!
//! **Source.** "WTCP: A reliable transport protocol for wireless wide-area networks", MobiCom 1999 and
//! Wireless Networks 8, 2002.
//! **Parameters.** `epoch`: packets per decision, 16. `congested`: the ratio ρ above which a queue grows,
//! 1.1. `increase`: 0.05. `decrease`: 0.75. `deviations`: 2.
//! **Format.** A packet's departure is that of the timestamps option. The rate, in bytes of payload per
//! second, is both edges of the last SACK block of an acknowledgement. An empty block reports nothing, so
//! that a source without the scheme ignores it; it takes the place of the oldest block if there is no room.
//! **Differences from the paper.** Only the abstract was at hand, which names the parts: a rate controlled by
//! the receiver, by inter-packet delays, end to end. The rules are ours where it is silent, and so are all
//! values; the thresholds of the paper and its averages are not known. Without the queueing delay, several
//! sources keep a queue full: packets then arrive as far apart as they were sent, and losses by congestion
//! become the usual ones. That still happens with many sources and a short queue. During recovery, each
//! acknowledgement releases about as much as it reports (PRR), at most at the rate. The source does not tune
//! the frequency of acknowledgements, which is that of the receiver's settings. ECN marks have no effect. A
//! timeout is possible if the round-trip time shrinks suddenly; it neither reduces the rate nor counts as
//! congestion. It needs a source with SACK and timestamps, whose recovery is that of today (RACK, tail loss
//! probes).

mod receiver;
mod sender;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Installer, Scheme};
use crate::tcp::{Action, Flavour, SackBlock, SackBlocks, SeqNum, Settings, blocks_beside};
use receiver::RateControl;
use sender::Pacer;

/// Rate control by the receiver.
///
/// For senders with `flavour = "prr"` and `timestamps = true`, as in the profiles of today, and without BBR.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Wtcp {
    /// Number of packets per decision about the rate, at least 2.
    pub epoch: u32,
    /// The rate is reduced if the time between the arrivals of an epoch, divided by that between the
    /// departures, exceeds this.
    pub congested: f64,
    /// The share of the first rate by which the rate grows.
    pub increase: f64,
    /// The factor by which congestion reduces the rate.
    pub decrease: f64,
    /// Number of mean deviations by which the losses of an epoch may exceed their mean.
    pub deviations: f64,
}

impl Default for Wtcp {
    fn default() -> Wtcp {
        Wtcp { epoch: 16, congested: 1.1, increase: 0.05, decrease: 0.75, deviations: 2.0 }
    }
}

impl Scheme for Wtcp {
    fn name(&self) -> &'static str {
        "wtcp"
    }

    fn summary(&self) -> &'static str {
        "the receiver sets the rate of the source by the spacing of packets; random losses do not count"
    }

    fn source(&self) -> &'static str {
        "Sinha et al., MobiCom 1999"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let Wtcp { epoch, congested, increase, decrease, deviations } = *self;
        let fault = |is_sound: bool, key: &str, value: f64, expected| {
            (!is_sound).then(|| (key.into(), format!("found {value}, expected {expected}")))
        };
        let is_share = increase > 0.0 && increase <= 1.0;
        [
            fault(epoch >= 2, "epoch", epoch.into(), "at least 2 packets"),
            fault(congested > 1.0, "congested", congested, "a ratio above 1, such as 1.1"),
            fault(is_share, "increase", increase, "a share above 0, up to 1"),
            fault(decrease > 0.0 && decrease < 1.0, "decrease", decrease, "a factor between 0 and 1"),
            fault(deviations >= 0.0, "deviations", deviations, "a number from 0, such as 2"),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    fn mismatch(&self, tcp: &Settings) -> Option<String> {
        let problem = if tcp.flavour != Flavour::Prr {
            "extends the recovery with records of segments, which can be paced; set flavour = \"prr\""
        } else if !tcp.timestamps {
            "takes the departures of packets from their timestamps; set timestamps = true"
        } else if tcp.congestion.control().needs_pacing {
            "sets the rate of the source, as BBR does; set congestion = \"reno\""
        } else {
            return None;
        };
        Some(problem.into())
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.at_receiver(&[Action::ChangeAck], || RateControl::new(*self));
        installer.at_sender(ACTIONS, Pacer::default);
    }
}

/// What the source does.
const ACTIONS: &[Action] =
    &[Action::SetWindow, Action::SetRate, Action::Judge, Action::Resend, Action::RestartTimer];

/// SACK blocks with a rate in bytes per second. Without room, it takes the place of the last block. The counters of marks give way
/// to two blocks, the rate among them, as in other acknowledgements.
fn with_rate(blocks: &SackBlocks, rate: u32) -> SackBlocks {
    let wanted = blocks.len().min(1) + 1;
    let beside = |counters| blocks_beside(true, counters);
    let counters = blocks.ecn_counters().filter(|&counters| beside(counters) >= wanted);
    // Three blocks fit beside timestamps alone.
    let fit = counters.map_or(3, beside);
    let mut all = SackBlocks::default();
    all.set_ecn_counters(counters);
    blocks.iter().take(fit - 1).for_each(|block| all.push(*block));
    all.push(SackBlock { start: SeqNum(rate), end: SeqNum(rate) });
    all
}

/// The rate in SACK blocks, if there is one.
fn rate_in(blocks: &SackBlocks) -> Option<u32> {
    let last = blocks.last().filter(|block| block.start == block.end)?;
    Some(last.start.0).filter(|&rate| rate > 0)
}
