//! The ends of flows: senders and receivers, sources and sinks, clients and servers, and the proxies of split
//! connections.

use lasthop_base::Streams;
use lasthop_proto::application::{ConnectionEnd, TcpConnections};
use lasthop_proto::scheme::Combination;
use lasthop_proto::split::Proxy;
use lasthop_proto::tcp::{Reactions, ReceiverReactions};
use lasthop_proto::{FlowId, Port, application, tcp, traffic};
use lasthop_scenario::network::{NetworkLink, Workload};
use lasthop_sim::Node;
use lasthop_sim::network::LinkId;

use super::Layout;

impl Layout {
    /// The connection of a flow, as its ends know it.
    pub(super) fn connection(&self, id: FlowId) -> tcp::Connection {
        let flow = &self.network.flows[id.index()];
        tcp::Connection { src: flow.source(), dst: flow.destination(), flow: id }
    }

    /// The proxy of a link, which splits the connections that cross the link and whose flows are `simulated`.
    pub(super) fn proxy(
        &self,
        link: LinkId,
        combination: &Combination<'_>,
        simulated: impl Fn(FlowId) -> bool,
    ) -> Proxy {
        let crossed = self.split_at.get(&link).map_or(&[][..], Vec::as_slice);
        let mut proxy = match (&self.network.links[link.index()], crossed.first()) {
            (NetworkLink::Radio(hop), Some((flow, _))) if let Some((moving, _)) = hop.place => {
                let split = self.splits[flow.index()].as_ref();
                let transfer = split.map(|split| split.transfer).unwrap_or_default();
                Proxy::roaming(transfer, self.movement.between[moving].clone())
            }
            _ => Proxy::new(),
        };
        for &(flow, from) in crossed.iter().filter(|(flow, _)| simulated(*flow)) {
            let Some(split) = &self.splits[flow.index()] else { continue };
            let reactions = match from == Port::WIRED {
                true => (combination.reactions(), ReceiverReactions::default()),
                false => (Reactions::default(), combination.receiver_reactions()),
            };
            let index = flow.index();
            let (whole, is_awaited) = (&self.network.flows[index].tcp, self.awaits_relays(index));
            proxy.join(self.connection(flow), (whole, split), from, is_awaited, reactions);
        }
        proxy
    }

    /// TCP settings and reactions at the source of a flow; no reactions if `plain`.
    fn sender_parameters(
        &self,
        id: FlowId,
        combination: &Combination<'_>,
        plain: bool,
    ) -> (&tcp::Settings, Reactions) {
        let index = id.index();
        let part = &self.parts[index][0];
        let knows = !plain && (self.splits[index].is_none() || part.wireless);
        (self.settings(index, part), if knows { combination.reactions() } else { Reactions::default() })
    }

    /// TCP settings at the destination of a flow.
    fn receiver_settings(&self, id: FlowId) -> &tcp::Settings {
        let part = self.parts[id.index()].last().expect("a connection has a part");
        self.settings(id.index(), part)
    }

    /// The reactions at the destination of a flow; none if `plain`.
    fn receiver_reactions(
        &self,
        id: FlowId,
        combination: &Combination<'_>,
        plain: bool,
    ) -> ReceiverReactions {
        let index = id.index();
        let is_wireless = self.parts[index].last().is_some_and(|part| part.wireless);
        let knows = !plain && (self.splits[index].is_none() || is_wireless);
        if knows { combination.receiver_reactions() } else { ReceiverReactions::default() }
    }

    /// The component at which a flow begins.
    pub(super) fn source(&self, id: FlowId, combination: &Combination<'_>, streams: Streams) -> Node {
        let flow = &self.network.flows[id.index()];
        let connection = self.connection(id);
        match &flow.workload {
            Workload::Transfer { plain, .. } => {
                let transfer = Layout::transfer(flow, streams).expect("the flow is a transfer");
                let (settings, reactions) = self.sender_parameters(id, combination, *plain);
                tcp::Sender::new(connection, settings, transfer, reactions).into()
            }
            Workload::Traffic { config, .. } => {
                let stream = streams.stream_of(format_args!("traffic:{}", flow.name));
                traffic::Source::new(connection, *config, stream).into()
            }
            Workload::Application(config) => {
                let numbers = 0..config.activity.connections();
                let connections = numbers.map(|number| self.connection_end(id, number, true, combination));
                let exchange = TcpConnections::new(connections, config.tls);
                application::Client::new(config, exchange, streams, &flow.name).into()
            }
            Workload::Joined(_) => unreachable!("its source is that of the application's first flow"),
        }
    }

    /// The component at which a flow ends.
    pub(super) fn sink(&self, id: FlowId, combination: &Combination<'_>) -> Node {
        let flow = &self.network.flows[id.index()];
        match &flow.workload {
            Workload::Transfer { plain, .. } => {
                let mut receiver = tcp::Receiver::new(self.connection(id), self.receiver_settings(id));
                if let Some(mode) = flow.receiver_ecn {
                    receiver = receiver.with_ecn(mode);
                }
                receiver.with_reactions(self.receiver_reactions(id, combination, *plain)).into()
            }
            Workload::Traffic { voip: None, .. } => traffic::Sink::new().into(),
            Workload::Traffic { voip: Some(voip), .. } => {
                let buffer = traffic::voip::PlayoutBuffer::new(voip.playout_buffer);
                traffic::Sink::with_playout(buffer).into()
            }
            Workload::Application(config) => {
                let numbers = 0..config.activity.connections();
                let connections = numbers.map(|number| self.connection_end(id, number, false, combination));
                application::Server::new(connections).into()
            }
            Workload::Joined(_) => unreachable!("its sink is that of the application's first flow"),
        }
    }

    /// One end of connection number `number` of the application whose first flow is `first`.
    fn connection_end(
        &self,
        first: FlowId,
        number: u8,
        at_client: bool,
        combination: &Combination<'_>,
    ) -> ConnectionEnd<'_> {
        let requests = FlowId(first.0 + 2 * u32::from(number));
        let responses = FlowId(requests.0 + 1);
        let (sends, receives) = if at_client { (requests, responses) } else { (responses, requests) };
        let (sending, reactions) = self.sender_parameters(sends, combination, false);
        ConnectionEnd {
            requests: self.connection(requests),
            responses: self.connection(responses),
            sending,
            receiving: self.receiver_settings(receives),
            ecn: self.network.flows[receives.index()].receiver_ecn,
            reactions,
            receiver_reactions: self.receiver_reactions(receives, combination, false),
        }
    }
}
