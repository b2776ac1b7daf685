//! From a network to the components that play it, and the places in the engine to look at
//! afterwards. Runs, metrics and traces know only [`World`].

use lasthop_base::{Streams, Time};
use lasthop_channel::{Channel, Sojourn, State};
use lasthop_proto::fec::Covers;
use lasthop_proto::scheme::{LinkUse, Scheme};
use lasthop_proto::{ComponentId, FlowId, HostId, arq, tcp, traffic};
use lasthop_sim::network::{LinkId, Part, Plan};
use lasthop_sim::{Builder, Fec, Node, RadioConfig, RadioLink, WireId, WiredLink};

use crate::network::{LastHop, Load, Network, NetworkLink};
use crate::scenario::{Protect, Radio};

/// When the first wireless link's channel is bad in a run: the spans that begin before `until`, each
/// from its first to its last instant. A channel's states depend on the run's number and on nothing
/// that is sent.
pub(crate) fn bad_periods(network: &Network, streams: Streams, until: Time) -> Vec<(Time, Time)> {
    let first = network.links.iter().find_map(|link| match link {
        NetworkLink::Radio(hop) => Some(hop),
        NetworkLink::Wired(_) => None,
    });
    let Some(hop) = first else { return Vec::new() };
    let mut channel = channel_of(&hop.down, &["channel", &hop.suffix].concat(), streams);
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
                NetworkLink::Radio(hop) if has_agent => {
                    Some(network.graph.ends(LinkId(index as u16))[1 - hop.mobile])
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
                NetworkLink::Radio(hop) => hop.direction(*from, scheme.link(), streams).into(),
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

impl LastHop {
    /// The direction that leads away from one of its ends.
    fn direction(&self, from: usize, link: LinkUse, streams: Streams) -> RadioLink {
        let (radio, direction) = if from == self.mobile { (&self.up, "up") } else { (&self.down, "down") };
        // Both directions take the channel's stream from its beginning, so that they meet the same fades,
        // unless they have channels of their own.
        let own = from == self.mobile && self.up_has_channel;
        let channel = if own { "uplink-channel" } else { "channel" };
        let channel = channel_of(radio, &[channel, &self.suffix].concat(), streams);
        let stream = |name: &str| streams.stream(&[name, &self.suffix, ":", direction].concat());
        RadioLink::new(config(radio, link), channel, stream("bits"), stream("backoff"))
    }
}

/// The channel of one direction, whose states are drawn from the stream called `name`.
fn channel_of(radio: &Radio, name: &str, streams: Streams) -> Box<dyn Channel> {
    let channel = radio.channel.build(streams.stream(name));
    match radio.handoff {
        Some(handoff) => handoff.interrupt(channel),
        None => channel,
    }
}

/// One direction of a last hop as a scheme wants it.
fn config(radio: &Radio, link: LinkUse) -> RadioConfig {
    let covers = match radio.protect {
        Protect::Scheme => link.protects,
        Protect::Repeats => Some(Covers::Repeats),
        Protect::All => Some(Covers::All),
    };
    RadioConfig {
        rate: radio.rate,
        delay: radio.delay,
        queue: radio.queue,
        expansion: radio.expansion,
        mtu: radio.mtu,
        unit: radio.unit,
        fec: covers.zip(radio.fec).map(|(covers, code)| Fec { code, covers }),
        exposed: radio.errors_on,
        arq: if link.recovers { radio.arq } else { arq::Config::None },
    }
}
