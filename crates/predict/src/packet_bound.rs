//! The packets of a run, before it is made.

use std::collections::BTreeMap;

use lasthop_proto::HostId;
use lasthop_scenario::Scenario;
use lasthop_scenario::network::{NetworkLink, Workload, datagrams};

/// An upper bound of the data packets that a run delivers: of each flow its size, what its window allows, or what
/// its narrowest link carries until the time limit at its mean rate, shared with the other flows there. Retransmissions and
/// drops are extra. A scenario with [faults](Scenario::faults) has no packets.
pub fn packet_bound(scenario: &Scenario) -> f64 {
    let Ok(network) = scenario.network() else { return 0.0 };
    let limit_s = scenario.limit.as_secs_f64();
    // Of each link, what it carries, and what its flows send.
    let mut links: BTreeMap<_, (f64, f64)> = BTreeMap::new();
    for flow in &network.flows {
        let narrowest = |nodes: &[HostId]| {
            let rates = nodes.windows(2).filter_map(|step| {
                let id = network.graph.link(step[0], step[1])?;
                let link = &network.links[id.index()];
                let up = match link {
                    NetworkLink::Radio(hop) => network.graph.ends(id)[hop.mobile] == step[0],
                    _ => false,
                };
                // The stations of a cell share a medium.
                let shared = (network.fastest_station(), None);
                Some(link.rate(up).map_or(shared, |rate| (rate, Some((id, step[0])))))
            });
            rates.min_by_key(|&(rate, _)| rate)
        };
        // A host that moves has several paths.
        let paths = flow.path.all().filter_map(|nodes| narrowest(nodes));
        let Some((rate, link)) = paths.max_by_key(|&(rate, _)| rate) else { continue };
        let carried = rate.as_bps() as f64 * limit_s / flow.packet_size().bits() as f64;
        let mss = f64::from(flow.tcp.mss());
        let rounds = 1.0 + limit_s / (2.0 * network.delay(&flow.path.nodes).as_secs_f64());
        let windows = rounds * (f64::from(flow.tcp.window_payload()) / mss);
        let sent = match &flow.workload {
            Workload::Traffic { config, .. } => datagrams(*config, scenario.limit),
            Workload::Transfer { transfer, .. } => {
                transfer.bytes.map_or(windows, |bytes| windows.min((bytes as f64 / mss).ceil()))
            }
            Workload::Application(_) | Workload::Joined(_) => windows,
        };
        let (most, sum) = links.entry(link).or_default();
        *most = most.max(carried);
        *sum += sent.min(carried);
    }
    links.into_values().map(|(carried, sent)| carried.min(sent)).sum()
}
