//! A node at which packets part ways.

use lasthop_base::Time;
use lasthop_proto::{Component, FlowId, HostId, Out, Packet, Port};

/// Sends each packet on by its flow and whom it is for, in no time. A router's own queues are those
/// of the links that leave it.
#[derive(Clone, Debug)]
pub struct Router {
    ways: Vec<Ways>,
}

/// Where the packets of a flow go on.
#[derive(Clone, Copy, Debug)]
struct Ways {
    dst: HostId,
    /// Towards the flow's destination.
    forth: Port,
    /// Towards its source.
    back: Port,
}

impl Router {
    /// A router that knows no flow yet.
    pub(super) fn new() -> Router {
        Router { ways: Vec::new() }
    }

    /// Sends the packets of `flow`, whose data go to `dst`, out of `port`: those for `dst` (`forth`), or
    /// those the other way.
    pub(super) fn set(&mut self, flow: FlowId, dst: HostId, forth: bool, port: Port) {
        let place = usize::from(flow.0);
        if self.ways.len() <= place {
            self.ways.resize(place + 1, Ways { dst, forth: NOWHERE, back: NOWHERE });
        }
        let ways = &mut self.ways[place];
        ways.dst = dst;
        *(if forth { &mut ways.forth } else { &mut ways.back }) = port;
    }
}

/// A port without a wire: a packet that is sent there is a fault of the plan's.
const NOWHERE: Port = Port(u16::MAX);

impl Component for Router {
    fn receive(&mut self, _now: Time, packet: Packet, _port: Port, out: &mut Out) {
        let ways = &self.ways[usize::from(packet.flow.0)];
        out.send(if packet.dst == ways.dst { ways.forth } else { ways.back }, packet);
    }
}
