//! From a scenario to the components that play it, and the places in the engine to look at
//! afterwards. A shape of scenario is one function here; runs, metrics and traces know only [`World`].

use lasthop_base::{Streams, Time};
use lasthop_channel::{Sojourn, State};
use lasthop_proto::scheme::{LinkUse, Scheme};
use lasthop_proto::{ComponentId, FlowId, HostId, Port, arq, tcp};
use lasthop_sim::{Builder, RadioConfig, RadioLink, WireId, WiredLink};

use crate::scenario::{Radio, Scenario};

/// The fixed host.
const FIXED: HostId = HostId(0);
/// The mobile host.
const MOBILE: HostId = HostId(1);

/// The stream of the channel's states.
const CHANNEL: &str = "channel";

/// When the channel of a run is bad: the spans that begin before `until`, each from its first to its
/// last instant. A channel's states depend on the run's number and on nothing that is sent.
pub(crate) fn bad_periods(scenario: &Scenario, streams: Streams, until: Time) -> Vec<(Time, Time)> {
    let mut channel = scenario.radio.channel.build(streams.stream(CHANNEL));
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

/// Everything that is simulated.
pub(crate) struct World {
    pub(crate) builder: Builder,
    pub(crate) flows: Vec<Flow>,
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

/// One connection over a wired link and a wireless last hop, with the scheme's agent between them.
pub(crate) fn last_hop(scenario: &Scenario, scheme: &dyn Scheme, streams: Streams) -> World {
    let Scenario { transfer, tcp, wired, radio, .. } = scenario;
    let connection = tcp::Connection { src: FIXED, dst: MOBILE, flow: FlowId(0) };
    let transfer =
        tcp::Transfer { bytes: transfer.size.map(|size| size.0), start: Time::ZERO + transfer.start };
    let wired = || WiredLink::new(wired.rate, wired.delay, wired.queue);

    let mut builder = Builder::new();
    let sender = builder.add(tcp::Sender::new(connection, tcp, transfer, scheme.reaction()));
    let wired_down = builder.add(wired());
    let agent = scheme.agent().map(|agent| builder.add(agent));
    let radio_down = builder.add(radio_link(radio, scheme.link(), streams, "down"));
    let receiver = builder.add(tcp::Receiver::new(connection, tcp));
    let radio_up = builder.add(radio_link(radio, scheme.link(), streams, "up"));
    let wired_up = builder.add(wired());

    let end = |component| (component, Port::ONLY);
    let sent = builder.connect(end(sender), end(wired_down));
    let delivered = builder.connect(end(radio_down), end(receiver));
    let answered = builder.connect(end(receiver), end(radio_up));
    let returned = builder.connect(end(wired_up), end(sender));
    match agent {
        // Without an agent a base station only forwards, which takes no time: it is a wire.
        None => {
            builder.connect(end(wired_down), end(radio_down));
            builder.connect(end(radio_up), end(wired_up));
        }
        Some(agent) => {
            builder.connect(end(wired_down), (agent, Port::WIRED));
            builder.connect((agent, Port::RADIO), end(radio_down));
            builder.connect(end(radio_up), (agent, Port::RADIO));
            builder.connect((agent, Port::WIRED), end(wired_up));
            // The base station knows what became of its own attempts, not of the mobile host's.
            builder.watch(radio_down, agent);
        }
    }
    let tcp::Connection { flow: id, src: source, .. } = connection;
    let flow = Flow { id, source, sender, receiver, sent, delivered, answered, returned };
    World { builder, flows: vec![flow], radios: vec![radio_down, radio_up] }
}

/// One direction of the last hop. Both directions take the channel's stream from its beginning, so
/// that they meet the same fades.
fn radio_link(radio: &Radio, link: LinkUse, streams: Streams, direction: &str) -> RadioLink {
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
    let stream = |name: &str| streams.stream(&format!("{name}:{direction}"));
    let channel = radio.channel.build(streams.stream(CHANNEL));
    RadioLink::new(config, channel, stream("bits"), stream("backoff"))
}
