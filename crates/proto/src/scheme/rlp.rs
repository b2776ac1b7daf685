//! Radio link protocol with frames whose size adapts to the channel.
//!
//! **What it does.** The wireless link retransmits lost frames until they arrive, as `arq` does, but cuts the
//! bytes of packets into frames of its own, whose size follows the losses: long frames with little overhead
//! on a good channel, short ones that survive on a bad channel. TCP sees neither losses nor reordering, only
//! delay.
//! **Source.** Ludwig, Konrad, Joseph and Katz, "Optimizing the end-to-end performance of reliable flows over
//! wireless links", MobiCom 1999; GSM 04.22 (radio link protocol). See `arq/rlp.rs` for what was read, and
//! `arq/frame_size.rs` for the rule that chooses the size.
//! **Parameters.** Those of `[radio.arq.rlp]`: the ARQ of links for which the scenario has none. `largest`,
//! equal to `frame`, makes the size fixed, as in GSM.
//! **Differences from the source.** The paper is a study of recorded losses: it compares fixed sizes and
//! suggests adaptive ones without an algorithm, so that the rule is ours. The recorded losses are not public,
//! and the paper's figures are not reproduced. `radio.mtu` and `radio.unit` have no effect: the frames
//! replace them.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ArqUse, Installer, LinkEnd, Scheme, Site};
use crate::arq::rlp::Params;
use crate::arq::{Config, Protocol};
use crate::component::{Component, FrameEvent, LinkOutcome, Out, Port, Signal, Tally};
use crate::packet::Packet;
use crate::tcp::Settings;

/// The radio link protocol for links without an ARQ.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Rlp {
    /// The ARQ.
    pub arq: Params,
}

impl Scheme for Rlp {
    fn name(&self) -> &'static str {
        "rlp"
    }

    fn summary(&self) -> &'static str {
        "a link protocol that cuts packets into frames, whose size adapts to the channel"
    }

    fn source(&self) -> &'static str {
        "Ludwig et al. 1999"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let fault = self.arq.validate().err();
        fault.map_or_else(Vec::new, |invalid| {
            vec![(String::from(invalid.field), String::from(invalid.problem))]
        })
    }

    fn reads_tcp(&self) -> bool {
        false
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.arq(ArqUse::Supplied(Config::Rlp(self.arq)));
        let observer =
            |site: &Site<'_>| Observer { end: site.end, frames: [0; 3], full: self.arq.frame, changes: 0 };
        installer.at_base_station(observer);
        installer.at_mobile_host(observer);
    }
}

/// Counts the frames that its end of the link sends.
#[derive(Debug)]
struct Observer {
    end: LinkEnd,
    /// Frames by outcome, in the order of [`LinkOutcome::ALL`].
    frames: [u64; 3],
    /// Size of full frames, and how often it has changed.
    full: Bytes,
    changes: u64,
}

impl Component for Observer {
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        out.send(port.across(), *packet);
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn on_signal(&mut self, _now: Time, signal: &Signal, _out: &mut Out) {
        if let Signal::Frame(FrameEvent { outcome, sizes }) = *signal {
            self.frames[outcome as usize] += 1;
            self.changes += u64::from(sizes.full != self.full);
            self.full = sizes.full;
        }
    }

    /// Totals of the frames of both ends by outcome, and of the changes of their size. Of the current sizes, one for each
    /// end.
    fn count(&self, tally: &mut dyn Tally) {
        let [failed, delivered, last] = self.frames;
        tally.total("frames_delivered", delivered);
        tally.total("frames_lost", failed + last);
        tally.total("failures", last);
        tally.total("size_changes", self.changes);
        let is_base_station = self.end == LinkEnd::BaseStation;
        tally.level("downlink_frame_bytes", if is_base_station { self.full.0 } else { 0 });
        tally.level("uplink_frame_bytes", if is_base_station { 0 } else { self.full.0 });
    }
}
