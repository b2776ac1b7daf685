//! The parts of a connection: one, or several if base stations or routers split it.

use lasthop_link::FlowPath;
use lasthop_link::graph::Graph;
use lasthop_proto::{ComponentId, HostId, Port};
use lasthop_scenario::network::Crossing;
use lasthop_sim::network::{PortRef, Wiring};

/// The sender or the receiver of a part.
#[derive(Clone, Copy, Debug)]
pub struct PartEnd {
    /// The component.
    pub id: ComponentId,
    port: Port,
    /// Whether it is a side of a proxy, which has such a port at each base station of a moving host.
    is_proxy: bool,
}

impl PartEnd {
    /// Whether packets of the part leave or enter the component there.
    pub fn is(self, (id, port): PortRef) -> bool {
        id == self.id && if self.is_proxy { port.side() == self.port } else { port == self.port }
    }
}

/// A connection, or one part of a split connection, in path order.
#[derive(Clone, Debug)]
pub struct ConnectionPart {
    /// First and last node of the part.
    pub nodes: [HostId; 2],
    /// Whether the part uses the TCP settings of the wireless part.
    pub wireless: bool,
    /// Where its data begin.
    pub sender: PartEnd,
    /// Where its data end.
    pub receiver: PartEnd,
    /// The components on the way that may drop packets: the links crossed, in both directions, and their agents.
    pub links: Vec<ComponentId>,
}

impl ConnectionPart {
    /// Whether a port of an agent or of a proxy is on the way of the part.
    pub fn includes(&self, port: PortRef) -> bool {
        self.sender.is(port) || self.receiver.is(port) || self.links.contains(&port.0)
    }
}

/// The parts of the connection that is flow number `index`, which proxies split at the crossings of its path. If one end
/// moves, each part includes the links over all of its base stations; these paths have equally many crossings.
pub(super) fn parts(
    graph: &Graph,
    wiring: &Wiring,
    index: usize,
    path: &FlowPath,
    crossings: impl Fn(&[HostId]) -> Vec<Crossing>,
) -> Vec<ConnectionPart> {
    let mut all = path.all().map(|nodes| parts_of(graph, wiring, index, nodes, &crossings(nodes)));
    let mut parts = all.next().expect("a flow has a path");
    for others in all {
        for (part, other) in parts.iter_mut().zip(others) {
            let new: Vec<_> = other.links.into_iter().filter(|id| !part.links.contains(id)).collect();
            part.links.extend(new);
        }
    }
    parts
}

/// The parts on one path.
fn parts_of(
    graph: &Graph,
    wiring: &Wiring,
    index: usize,
    nodes: &[HostId],
    crossings: &[Crossing],
) -> Vec<ConnectionPart> {
    let end = |(id, port): PortRef| PartEnd { id, port, is_proxy: false };
    let ends = wiring.flows[index];
    let begin = |node, wireless, sender| ConnectionPart {
        nodes: [node, node],
        wireless,
        sender,
        receiver: end(ends.sink),
        links: Vec::new(),
    };
    let mut left = crossings.iter().peekable();
    let mut parts = Vec::new();
    let mut part = begin(nodes[0], false, end(ends.source));
    for step in nodes.windows(2) {
        let link = graph.link(step[0], step[1]).expect("a path follows links");
        let away = usize::from(graph.ends(link)[0] != step[0]);
        let directions = [away, 1 - away].map(|from| wiring.link(graph, link, from));
        let crossing = left.next_if(|crossing| crossing.0 == link);
        // The proxy is the agent nearest to its node.
        let proxy = crossing.map(|&(link, from)| {
            let end = if from == Port::WIRED { away } else { 1 - away };
            (wiring.agents(graph, link, end)[0].id, from)
        });
        let agents = [0, 1].into_iter().flat_map(|end| wiring.agents(graph, link, end)).map(|agent| agent.id);
        let agents = agents.filter(|agent| proxy.is_none_or(|(proxy, _)| proxy != *agent));
        let on_the_way = directions.into_iter().chain(agents);
        let side = |id, port| PartEnd { id, port, is_proxy: true };
        match proxy {
            None => part.links.extend(on_the_way),
            // The proxy is at the first end of the link.
            Some((proxy, Port::WIRED)) => {
                part.nodes[1] = step[0];
                part.receiver = side(proxy, Port::WIRED);
                parts.push(part);
                part = begin(step[0], true, side(proxy, Port::RADIO));
                part.links.extend(on_the_way);
            }
            // The proxy is at the second end of the link.
            Some((proxy, from)) => {
                part.wireless = true;
                part.links.extend(on_the_way);
                part.nodes[1] = step[1];
                part.receiver = side(proxy, from);
                parts.push(part);
                part = begin(step[1], false, side(proxy, from.across()));
            }
        }
    }
    part.nodes[1] = *nodes.last().expect("a path has nodes");
    parts.push(part);
    parts
}
