//! From a network to the components that play it, and the places in the engine to look at
//! afterwards. Runs, metrics and traces know only [`World`].

use lasthop_base::{Streams, Time};
use lasthop_channel::{Channel, Sojourn, State};
use lasthop_proto::scheme::{LinkUse, Scheme};
use lasthop_proto::{ComponentId, FlowId, HostId, arq, tcp, traffic};
use lasthop_sim::network::{LinkId, Part, Plan};
use lasthop_sim::{Builder, Node, RadioConfig, RadioLink, WireId, WiredLink};

use crate::network::{Load, Network, NetworkLink};
use crate::scenario::Radio;

/// When the first wireless link's channel is bad in a run: the spans that begin before `until`, each
/// from its first to its last instant. A channel's states depend on the run's number and on nothing
/// that is sent.
pub(crate) fn bad_periods(network: &Network, streams: Streams, until: Time) -> Vec<(Time, Time)> {
    let first = network.links.iter().find_map(|link| match link {
        NetworkLink::Radio { radio, suffix, .. } => Some((radio, suffix)),
        NetworkLink::Wired(_) => None,
    });
    let Some((radio, suffix)) = first else { return Vec::new() };
    let mut channel = channel(radio, suffix, true, streams);
    let mut periods = Vec::new();
    let mut now = Time::ZERO;
    while now < until {
        let Sojourn { state, until: end } = channel.sojourn(now);
        if state == State::Bad {
            periods.push((now, end));
        }
        now = end;
    }
    periods
}

/// What all runs of a scenario with a scheme have in common: which component is where.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    network: Network,
    plan: Plan,
}

/// Everything that is simulated.
pub(crate) struct World {
    pub(crate) builder: Builder,
    /// The connections.
    pub(crate) flows: Vec<Flow>,
    /// The ends of other traffic.
    pub(crate) traffic: Vec<(ComponentId, ComponentId)>,
    pub(crate) radios: Vec<ComponentId>,
}

/// Where a connection meets the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) id: FlowId,
    /// The host that sends the data.
    pub(crate) source: HostId,
    pub(crate) sender: ComponentId,
    pub(crate) receiver: ComponentId,
    /// From the sender into the network.
    pub(crate) sent: WireId,
    /// From the network into the receiver.
    pub(crate) delivered: WireId,
    /// From the receiver into the network.
    pub(crate) answered: WireId,
    /// From the network into the sender.
    pub(crate) returned: WireId,
}

impl Layout {
    pub(crate) fn new(network: Network, scheme: &dyn Scheme) -> Layout {
        let has_agent = scheme.agent().is_some();
        let agents: Vec<Option<HostId>> = network
            .links
            .iter()
            .enumerate()
            .map(|(index, link)| match link {
                NetworkLink::Radio { mobile, .. } if has_agent => {
                    Some(network.graph.ends(LinkId(index as u16))[1 - mobile])
                }
                _ => None,
            })
            .collect();
        let paths: Vec<_> = network.flows.iter().map(|flow| flow.path.clone()).collect();
        let plan = Plan::new(&network.graph, &agents, &paths);
        Layout { network, plan }
    }

    pub(crate) fn network(&self) -> &Network {
        &self.network
    }

    /// The components of one run.
    pub(crate) fn world(&self, scheme: &dyn Scheme, settings: &tcp::Settings, streams: Streams) -> World {
        let mut builder = Builder::new();
        let mut radios = Vec::new();
        for part in &self.plan.parts {
            let node = self.component(part, scheme, settings, streams);
            let is_radio = matches!(node, Node::Radio(_));
            let id = builder.add(node);
            if is_radio {
                radios.push(id);
            }
        }
        let wires: Vec<WireId> =
            self.plan.wires.iter().map(|&(from, to)| builder.connect(from, to)).collect();
        for &(watched, watcher) in &self.plan.watches {
            builder.watch(watched, watcher);
        }
        let from = |id: ComponentId| {
            wires[self.plan.wires.iter().position(|wire| wire.0.0 == id).expect("it sends")]
        };
        let to = |id: ComponentId| {
            wires[self.plan.wires.iter().position(|wire| wire.1.0 == id).expect("it receives")]
        };
        let (connections, traffic) = self.plan.flows.split_at(self.network.connections);
        let flows = connections.iter().enumerate().map(|(index, ends)| Flow {
            id: FlowId(index as u16),
            source: self.network.flows[index].source(),
            sender: ends.source,
            receiver: ends.sink,
            sent: from(ends.source),
            delivered: to(ends.sink),
            answered: from(ends.sink),
            returned: to(ends.source),
        });
        let traffic = traffic.iter().map(|ends| (ends.source, ends.sink));
        World { flows: flows.collect(), traffic: traffic.collect(), builder, radios }
    }

    fn component(
        &self,
        part: &Part,
        scheme: &dyn Scheme,
        settings: &tcp::Settings,
        streams: Streams,
    ) -> Node {
        match part {
            Part::Source(flow) => self.source(*flow, scheme, settings, streams),
            Part::Sink(flow) => self.sink(*flow, settings),
            Part::Link(link, from) => match &self.network.links[usize::from(link.0)] {
                NetworkLink::Wired(wired) => WiredLink::new(wired.rate, wired.delay, wired.queue).into(),
                NetworkLink::Radio { radio, mobile, suffix } => {
                    radio_link(radio, suffix, from != mobile, scheme.link(), streams).into()
                }
            },
            Part::Agent(_) => scheme.agent().expect("the scheme has one").into(),
            Part::Router(router) => router.clone().into(),
        }
    }

    fn source(&self, id: FlowId, scheme: &dyn Scheme, settings: &tcp::Settings, streams: Streams) -> Node {
        let flow = &self.network.flows[usize::from(id.0)];
        let connection = tcp::Connection { src: flow.source(), dst: flow.destination(), flow: id };
        match &flow.load {
            Load::Transfer { transfer, spread, plain } => {
                let mut transfer = *transfer;
                if !spread.is_zero() {
                    transfer.start += streams.stream(&["start:", &flow.name].concat()).up_to(*spread);
                }
                let reaction = if *plain { None } else { scheme.reaction() };
                tcp::Sender::new(connection, settings, transfer, reaction).into()
            }
            Load::Traffic(plan) => {
                let stream = streams.stream(&format!("traffic:{}", flow.name));
                traffic::Source::new(connection, *plan, stream).into()
            }
        }
    }

    fn sink(&self, id: FlowId, settings: &tcp::Settings) -> Node {
        let flow = &self.network.flows[usize::from(id.0)];
        match flow.load {
            Load::Transfer { .. } => {
                let connection = tcp::Connection { src: flow.source(), dst: flow.destination(), flow: id };
                tcp::Receiver::new(connection, settings).into()
            }
            Load::Traffic(_) => traffic::Sink::new().into(),
        }
    }
}

/// The channel of one direction. Both directions take the same stream from its beginning, so that they
/// meet the same fades, unless the scenario gives them channels of their own.
fn channel(radio: &Radio, suffix: &str, down: bool, streams: Streams) -> Box<dyn Channel> {
    let stream = |name: &str| streams.stream(&[name, suffix].concat());
    let channel = match radio.uplink_channel.filter(|_| !down) {
        Some(model) => model.build(stream("uplink-channel")),
        None => radio.channel.build(stream("channel")),
    };
    match radio.handoff {
        Some(handoff) => handoff.interrupt(channel),
        None => channel,
    }
}

/// One direction of a last hop: down to the mobile host, or up.
fn radio_link(radio: &Radio, suffix: &str, down: bool, link: LinkUse, streams: Streams) -> RadioLink {
    let config = RadioConfig {
        rate: radio.rate,
        delay: radio.delay,
        queue: radio.queue,
        expansion: radio.expansion,
        mtu: radio.mtu,
        exposed: radio.errors_on,
        arq: match link {
            LinkUse::Bare => arq::Config::None,
            LinkUse::Recovering => radio.arq,
        },
    };
    let direction = if down { "down" } else { "up" };
    let stream = |name: &str| streams.stream(&[name, suffix, ":", direction].concat());
    RadioLink::new(config, channel(radio, suffix, down, streams), stream("bits"), stream("backoff"))
}
