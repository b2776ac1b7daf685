//! The parts of a connection: one, or several if base stations split it.

use lasthop_proto::{ComponentId, HostId, Port};
use lasthop_sim::network::{FlowPath, Graph, LinkId, PortRef, Wiring};

/// A connection, or one part of a split connection, in path order.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPart {
    /// First and last node of the part.
    pub(crate) nodes: [HostId; 2],
    /// Whether the part uses the TCP settings of the wireless part.
    pub(crate) wireless: bool,
    /// Port of the sender.
    pub(crate) sender: PortRef,
    /// Port of the receiver.
    pub(crate) receiver: PortRef,
    /// The components on the way that may drop packets: the links crossed, in both directions, and their agents.
    pub(crate) links: Vec<ComponentId>,
}

/// A link with a proxy on the path of a flow, and the proxy's port through which the data enter.
pub(crate) type Crossing = (LinkId, Port);

/// The links with a proxy on `path`, in path order. `proxies` gives the end of each link at which it has a
/// proxy, the first (0) or the second (1), if any.
pub(crate) fn crossings(graph: &Graph, proxies: &[Option<usize>], path: &FlowPath) -> Vec<Crossing> {
    let links: Vec<LinkId> = path
        .nodes
        .windows(2)
        .map(|step| graph.link(step[0], step[1]).expect("a path follows links"))
        .collect();
    let within = |index: usize| {
        let stays = |a: usize, b: usize| b < links.len() && graph.stays_within(links[a], links[b]);
        stays(index, index + 1) || (index > 0 && stays(index - 1, index))
    };
    // Packets forwarded within a BSS bypass the agent.
    let steps = path.nodes.windows(2).enumerate().filter(|(index, _)| !within(*index));
    let crossings = steps.filter_map(|(index, step)| {
        let at = graph.ends(links[index])[proxies[usize::from(links[index].0)]?];
        Some((links[index], if at == step[0] { Port::WIRED } else { Port::RADIO }))
    });
    crossings.collect()
}

/// The parts of the connection that is flow number `index`, split at `crossings`.
pub(crate) fn parts(
    graph: &Graph,
    wiring: &Wiring,
    index: usize,
    path: &FlowPath,
    crossings: &[Crossing],
) -> Vec<ConnectionPart> {
    let ends = wiring.flows[index];
    let begin = |node, wireless, sender| ConnectionPart {
        nodes: [node, node],
        wireless,
        sender,
        receiver: ends.sink,
        links: Vec::new(),
    };
    let mut left = crossings.iter().peekable();
    let mut parts = Vec::new();
    let mut part = begin(path.nodes[0], false, ends.source);
    for step in path.nodes.windows(2) {
        let link = graph.link(step[0], step[1]).expect("a path follows links");
        let away = usize::from(graph.ends(link)[0] != step[0]);
        let directions = [away, 1 - away].map(|from| wiring.link(graph, link, from));
        let crossing = left.next_if(|crossing| crossing.0 == link);
        // The proxy is the agent nearest to its node.
        let proxy = crossing.map(|&(link, from)| {
            let end = if from == Port::WIRED { away } else { 1 - away };
            (wiring.agents(graph, link, end)[0], from)
        });
        let agents = [0, 1].into_iter().flat_map(|end| wiring.agents(graph, link, end)).copied();
        let agents = agents.filter(|agent| proxy.is_none_or(|(proxy, _)| proxy != *agent));
        let on_the_way = directions.into_iter().chain(agents);
        match proxy {
            None => part.links.extend(on_the_way),
            // The proxy is at the first end of the link.
            Some((proxy, Port::WIRED)) => {
                part.nodes[1] = step[0];
                part.receiver = (proxy, Port::WIRED);
                parts.push(part);
                part = begin(step[0], true, (proxy, Port::RADIO));
                part.links.extend(on_the_way);
            }
            // The proxy is at the second end of the link.
            Some((proxy, from)) => {
                part.wireless = true;
                part.links.extend(on_the_way);
                part.nodes[1] = step[1];
                part.receiver = (proxy, from);
                parts.push(part);
                part = begin(step[1], false, (proxy, from.across()));
            }
        }
    }
    part.nodes[1] = *path.nodes.last().expect("a path has nodes");
    // Connections of a moving host have one part, over any of its base stations.
    for step in path.others.iter().flat_map(|nodes| nodes.windows(2)) {
        let link = graph.link(step[0], step[1]).expect("a path follows links");
        let directions = [0, 1].map(|from| wiring.link(graph, link, from));
        let agents = [0, 1].into_iter().flat_map(|end| wiring.agents(graph, link, end)).copied();
        let new: Vec<_> =
            directions.into_iter().chain(agents).filter(|id| !part.links.contains(id)).collect();
        part.links.extend(new);
    }
    parts.push(part);
    parts
}
