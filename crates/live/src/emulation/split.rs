//! Base stations that split the connections of real hosts.
//!
//! The caller supplies the proxies, which read and write the bytes of real packets. Simulated connections that cross the
//! same base station are split as in a simulation.

use std::fmt;

use lasthop_base::{Bytes, Duration, Stream, Streams};
use lasthop_experiment::Setup;
use lasthop_experiment::assemble::Layout;
use lasthop_proto::scheme::Combination;
use lasthop_proto::split::Split;
use lasthop_proto::tcp::{Detection, Flavour, Reactions, ReceiverReactions, Rules, Settings};
use lasthop_proto::{Component, FlowId};
use lasthop_scenario::Scenario;
use lasthop_scenario::network::Network;

use super::{Agent, AgentCounters, Emulation};

/// A base station that splits connections of real hosts, for the component that does.
pub struct SplitSite {
    /// The name of the node.
    pub node: String,
    /// TCP settings of the proxy on the wired and on the wireless part.
    pub parts: [Settings; 2],
    /// Capacity for each direction of a connection.
    pub buffer: Bytes,
    /// Whether acknowledgements wait for the other host ([`Split::holds`]).
    pub holds: Option<Duration>,
    /// Makes the reactions of the proxy's end of a wireless part.
    pub reactions: Box<dyn Fn() -> (Reactions, ReceiverReactions) + Send>,
    /// Random numbers of this base station.
    pub random: Stream,
    /// The flows of real packets, in order. Others belong to `simulated`.
    pub flows: Vec<FlowId>,
    /// Splits the simulated connections.
    pub simulated: Option<Box<dyn Component>>,
}

impl fmt::Debug for SplitSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SplitSite").field(&self.node).finish()
    }
}

/// The settings of the proxy's end of the wireless part. Selective repeat relies on an echo of each segment's timestamp,
/// which real receivers do not send. RACK (RFC 8985) detects the same losses by SACK and the times at which segments
/// were sent.
fn towards_real_host(wireless: &Settings) -> Settings {
    match wireless.flavour {
        Flavour::SelectiveRepeat => {
            Settings { flavour: Flavour::Prr, detection: Detection::Rack, ..wireless.clone() }
        }
        _ => wireless.clone(),
    }
}

/// What the split of a combination needs that real hosts do not have, as a sentence.
pub(super) fn beyond_proxies(combination: &Combination<'_>, network: &Network) -> Option<String> {
    let wired = &network.flows[0].tcp;
    let (name, Split { wireless, .. }) = combination.splitter().zip(combination.split(wired))?;
    let flavour = |settings: &Settings| match settings.flavour {
        Flavour::GoBackN => Some("go-back-n"),
        Flavour::SelectiveRepeat => Some("selective-repeat"),
        _ => None,
    };
    if network.flows[0].path.all().count() > 1 && combination.split_node().is_none() {
        Some(format!("\"{name}\" moves connections with a mobile host, which the proxy of real hosts cannot"))
    } else if let Some(flavour) = flavour(wired) {
        Some(format!("\"{name}\" needs standard TCP on the wired part, and tcp.flavour is \"{flavour}\""))
    } else if wireless.flavour == Flavour::GoBackN {
        Some(format!(
            "\"{name}\" retransmits everything from a loss on, which it detects by an echo of each segment's timestamp; \
             real receivers do not send it (RFC 7323 section 4.3)"
        ))
    } else if [wired, &wireless].iter().any(|tcp| tcp.rules == Rules::Ns2) {
        Some(format!("\"{name}\" needs the rules of RFCs towards real hosts, and those of tcp are ns-2's"))
    } else {
        None
    }
}

/// The base stations at which the combination splits connections; `real` are the flows of real packets.
pub(super) fn sites(
    scenario: &Scenario,
    setup: &Setup<'_>,
    layout: &Layout,
    real: &[FlowId],
    streams: Streams,
) -> Vec<(Agent, Option<SplitSite>)> {
    let combination = setup.combination();
    let wired = &layout.network().flows[0].tcp;
    let Some((scheme, split)) = combination.splitter().zip(combination.split(wired)) else {
        return Vec::new();
    };
    let sites = layout.proxies().map(|(id, node)| {
        let (schemes, combined) = (scenario.scheme.clone(), String::from(combination.name()));
        let site = SplitSite {
            node: String::from(node),
            parts: [wired.clone(), towards_real_host(&split.wireless)],
            buffer: split.buffer,
            holds: split.holds,
            reactions: Box::new(move || {
                let combination = schemes.combination(&combined).expect("it has been set up");
                (combination.reactions(), combination.receiver_reactions())
            }),
            random: streams.stream(&["proxy:", node].concat()),
            flows: real.to_vec(),
            simulated: None,
        };
        let name = format!("{scheme} at {node}");
        (Agent { id, scheme, name, counters: AgentCounters::default() }, Some(site))
    });
    sites.collect()
}

impl Emulation {
    /// Whether the scheme splits connections.
    pub fn splits(&self) -> bool {
        !self.proxies.is_empty()
    }

    /// Installs the proxies that split connections, before the first packet. Each receives the packets of all flows that
    /// cross the base station, with the ports [`WIRED`](lasthop_proto::Port::WIRED) and
    /// [`RADIO`](lasthop_proto::Port::RADIO). Each packet it sends has a new handle, or that of a received
    /// packet that it has not forwarded.
    pub fn split(&mut self, mut proxy: impl FnMut(SplitSite) -> Box<dyn Component>) {
        for (agent, site) in &mut self.proxies {
            let Some(mut site) = site.take() else { continue };
            self.engine.replace(agent.id, |simulated| {
                site.simulated = Some(simulated.into_component());
                proxy(site).into()
            });
            agent.counters = AgentCounters::of(self.engine.node(agent.id));
        }
    }
}
