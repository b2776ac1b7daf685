//! A router with static routes.

use lasthop_base::Time;
use lasthop_proto::{Component, FlowId, HostId, Out, Packet, Port};

/// Forwards each packet by its flow and destination, in zero time. Queues belong to the outgoing links.
#[derive(Clone, Debug)]
pub struct Router {
    ways: Vec<Ways>,
}

/// The outgoing ports of a flow.
#[derive(Clone, Copy, Debug)]
struct Ways {
    dst: HostId,
    /// Towards the destination of the flow.
    forth: Port,
    /// Towards the source of the flow.
    back: Port,
}

impl Router {
    /// A router without routes.
    pub(super) fn new() -> Router {
        Router { ways: Vec::new() }
    }

    /// Sets the route of `flow`, whose destination is `dst`: packets towards `dst` (`forth`) or towards the
    /// source leave through `port`.
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

/// A port without a wire; sending to it is a routing bug.
const NOWHERE: Port = Port(u16::MAX);

impl Component for Router {
    fn receive(&mut self, _now: Time, packet: Packet, _port: Port, out: &mut Out) {
        let ways = &self.ways[usize::from(packet.flow.0)];
        out.send(if packet.dst == ways.dst { ways.forth } else { ways.back }, packet);
    }
}
