//! The base station's agent.

use lasthop_base::{Bytes, Time};

use super::{FIRST_HOP, LAST_HOP, Lhack};
use crate::component::{Component, LinkOutcome, Out, Port, Tally};
use crate::packet::{Notice, NoticeCode, Packet};

/// Acknowledges passing messages, without state of connections.
#[derive(Debug)]
pub(super) struct Agent {
    size: Bytes,
    /// The notice code for messages that arrive through each port.
    codes: [Option<NoticeCode>; 2],
    /// Number of acknowledgements sent through each port.
    answers: [u64; 2],
}

impl Agent {
    pub(super) fn new(scheme: &Lhack) -> Agent {
        let mut codes = [None; 2];
        codes[Port::WIRED.index()] = scheme.last_hop.then_some(LAST_HOP);
        codes[Port::RADIO.index()] = scheme.first_hop.then_some(FIRST_HOP);
        Agent { size: scheme.size, codes, answers: [0; 2] }
    }

    /// The acknowledgement of a data segment that arrived through `port`.
    fn answer(&self, packet: &Packet, port: Port) -> Option<Packet> {
        Notice::about(packet, self.codes[port.index()]?, self.size)
    }
}

impl Component for Agent {
    /// The message is forwarded first. Its acknowledgement leaves through the other port, so the order has no
    /// effect.
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        out.send(port.across(), *packet);
        if let Some(answer) = self.answer(packet, port) {
            out.send(port, answer);
            self.answers[port.index()] += 1;
        }
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    /// Totals of acknowledgements sent to hosts on the wired side and to the mobile host.
    fn count(&self, tally: &mut dyn Tally) {
        let [last_hop, first_hop] = self.answers;
        tally.total("last_hop_acks", last_hop);
        tally.total("first_hop_acks", first_hop);
    }
}
