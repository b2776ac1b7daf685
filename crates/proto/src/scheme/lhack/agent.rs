//! The base station's agent.

use lasthop_base::{Bytes, Time};

use super::{FIRST_HOP, LAST_HOP, Lhack};
use crate::component::{Component, Out, Port};
use crate::packet::{Notice, NoticeCode, Packet};

/// Acknowledges passing messages; stateless.
#[derive(Debug)]
pub(super) struct Agent {
    size: Bytes,
    /// The notice code for messages that arrive through each port.
    codes: [Option<NoticeCode>; 2],
}

impl Agent {
    pub(super) fn new(scheme: &Lhack) -> Agent {
        let mut codes = [None; 2];
        codes[usize::from(Port::WIRED.0)] = scheme.last_hop.then_some(LAST_HOP);
        codes[usize::from(Port::RADIO.0)] = scheme.first_hop.then_some(FIRST_HOP);
        Agent { size: scheme.size, codes }
    }

    /// The acknowledgement of a data segment that arrived through `port`.
    fn answer(&self, packet: &Packet, port: Port) -> Option<Packet> {
        Notice::about(packet, self.codes[usize::from(port.0)]?, self.size)
    }
}

impl Component for Agent {
    /// The message is forwarded first. Its acknowledgement leaves through the other port, so the order has no
    /// effect.
    fn receive(&mut self, _now: Time, packet: &Packet, port: Port, out: &mut Out) {
        out.send(port.across(), *packet);
        if let Some(answer) = self.answer(packet, port) {
            out.send(port, answer);
        }
    }
}
