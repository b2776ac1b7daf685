//! A router with static routes.

use std::sync::Arc;

use lasthop_base::Time;
use lasthop_proto::{Component, FlowId, HostId, Out, Packet, Port};

/// Forwards each packet by its flow and destination, in zero time. Queues belong to the outgoing links.
///
/// The table is immutable, and shared by the copies of a router in different runs. Packets are forwarded as they are.
/// [Look-ahead](crate::look_ahead) relies on both: a router whose routes change has to be another component.
#[derive(Clone, Debug, Default)]
pub struct Router {
    /// The lowest flow with a route.
    first: u32,
    /// The outgoing ports of the flows from `first` on.
    ports: Arc<[FlowPorts]>,
}

/// The outgoing ports of a flow.
#[derive(Clone, Copy, Debug)]
struct FlowPorts {
    dst: HostId,
    /// Towards the destination of the flow.
    forward: Port,
    /// Towards the source of the flow.
    reverse: Port,
}

/// The route of the packets of a flow in one direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) flow: FlowId,
    /// The destination of the flow.
    pub(super) dst: HostId,
    /// Whether the route leads towards the destination of the flow; otherwise it leads towards its source.
    pub(super) forward: bool,
    /// The outgoing port.
    pub(super) port: Port,
}

/// A port without a wire; sending to it is a routing bug.
const NOWHERE: Port = Port(u32::MAX);

impl Router {
    /// A router with these routes.
    pub(super) fn new(routes: Vec<Route>) -> Router {
        let flows = || routes.iter().map(|route| route.flow.0);
        let (Some(first), Some(last)) = (flows().min(), flows().max()) else { return Router::default() };
        let none = FlowPorts { dst: HostId(0), forward: NOWHERE, reverse: NOWHERE };
        let mut ports = vec![none; (last - first) as usize + 1];
        for Route { flow, dst, forward, port } in routes {
            let entry = &mut ports[(flow.0 - first) as usize];
            entry.dst = dst;
            *(if forward { &mut entry.forward } else { &mut entry.reverse }) = port;
        }
        Router { first, ports: ports.into() }
    }

    /// The port by which a packet leaves.
    #[inline]
    pub(crate) fn port(&self, packet: &Packet) -> Port {
        let entry = &self.ports[(packet.flow.0 - self.first) as usize];
        if packet.dst == entry.dst { entry.forward } else { entry.reverse }
    }
}

impl Component for Router {
    fn receive(&mut self, _now: Time, packet: &Packet, _port: Port, out: &mut Out) {
        out.send(self.port(packet), *packet);
    }
}
