//! Resolution and checks of flows: connections, other traffic and applications.

use std::collections::{HashMap, HashSet};

use lasthop_base::{Duration, Time};
use lasthop_link::{FlowPath, Join};
use lasthop_proto::application::{self, Activity, Messages, Pages, Viewing};
use lasthop_proto::{Dscp, FlowId, HostId, Port, tcp, traffic};

use super::Resolver;
use super::mobility::Paths;
use super::routes::Keys;
use crate::diagnostics::alternatives;
use crate::network::{Flow, Workload};
use crate::schema::{Application, ConnectionOverride, Pair, Traffic, Transfer};
use crate::stacks::StackSender;

impl Resolver<'_> {
    pub(super) fn add_connections(&mut self) {
        let scenario = self.scenario;
        let Some(transfer) = &scenario.transfer else {
            let has_flows = !(scenario.traffic.is_empty() && scenario.application.is_empty());
            if !has_flows || !scenario.connection.is_empty() {
                self.fault(&[], "missing key transfer, expected a table with the key size");
            }
            return;
        };
        let pairs = scenario.topology.pairs();
        let named = pairs.iter().filter(|_| !scenario.connection.is_empty());
        let by_name: HashMap<&str, &Pair> = named.map(|pair| (pair.name.as_str(), pair)).collect();
        let usual = ConnectionOverride::default();
        let own = |name: &str| scenario.connection.get(name).unwrap_or(&usual);
        let ends_are_stated = transfer.from.is_some() || transfer.to.is_some();
        let only_pairs = scenario.connection.keys().all(|name| by_name.contains_key(name.as_str()));
        if only_pairs && !(ends_are_stated && scenario.connection.is_empty()) {
            for pair in &pairs {
                self.add_connection(&pair.name, transfer, own(&pair.name), Some(pair));
            }
        } else if scenario.connection.is_empty() {
            self.add_connection(&pairs[0].name, transfer, &usual, pairs.first().filter(|_| pairs.len() == 1));
        } else {
            for name in scenario.connection.keys() {
                let only = pairs.first().filter(|_| pairs.len() == 1);
                let pair = by_name.get(name.as_str()).copied().or(only);
                self.add_connection(name, transfer, own(name), pair);
            }
        }
        self.network.connections = self.network.flows.len();
    }

    /// Adds the connection `name` with the settings `usual` of `[transfer]`, overridden by its table `own`. `pair` gives the
    /// ends where neither states them.
    fn add_connection(
        &mut self,
        name: &str,
        usual: &Transfer,
        own: &ConnectionOverride,
        pair: Option<&Pair>,
    ) {
        // The path of the key that states a value, for error messages.
        let key = |key, is_own| if is_own { vec!["connection", name, key] } else { vec!["transfer", key] };
        let start = own.start.unwrap_or(usual.start);
        let spread = own.spread.unwrap_or(usual.spread);
        self.check_start(&key("start", own.start.is_some()), start);
        self.check_start(&key("spread", own.spread.is_some()), start + spread);
        let size = own.size.unwrap_or(usual.size);
        if size.is_some_and(|size| size.0 == 0) {
            self.fault(&key("size", own.size.is_some()), "found \"0 B\", expected at least \"1 B\"");
        }
        let from = own.from.as_ref().or(usual.from.as_ref()).or(pair.map(|pair| &pair.from));
        let to = own.to.as_ref().or(usual.to.as_ref()).or(pair.map(|pair| &pair.to));
        let via = own.via.as_ref().or(usual.via.as_ref());
        let keys = Keys {
            from: key("from", own.from.is_some()),
            to: key("to", own.to.is_some()),
            via: key("via", own.via.is_some()),
        };
        let (from, to) = (from.map_or("", String::as_str), to.map_or("", String::as_str));
        if let Some(Paths { first: nodes, others }) = self.path(from, to, via.map(Vec::as_slice), &keys) {
            let transfer = tcp::Transfer { bytes: size.map(|size| size.0), start: Time::ZERO + start };
            let workload = Workload::Transfer { transfer, spread, plain: own.plain };
            let path = FlowPath { nodes, others, one_way: false, joins: None };
            let (tcp, stack) = self.transport(&path.nodes, name, own);
            let receiver_ecn = self.receiver_ecn(&path.nodes).filter(|_| own.tcp.ecn.is_none());
            self.add_flow(Flow { name: name.to_owned(), path, workload, tcp, receiver_ecn, stack });
        }
    }

    fn add_flow(&mut self, flow: Flow) {
        if !(self.scenario.traffic.is_empty() && self.scenario.application.is_empty()) {
            self.flow_names.insert(flow.name.clone());
        }
        if flow.path.all().map(Vec::len).all(|nodes| self.check_steps(nodes)) {
            self.network.flows.push(flow);
        }
    }

    /// TCP settings of a connection along `nodes`, and its stack if that is another one: those of its own sender, or else of
    /// the scenario's.
    fn transport(
        &mut self,
        nodes: &[HostId],
        name: &str,
        own: &ConnectionOverride,
    ) -> (tcp::Settings, Option<StackSender>) {
        let scenario = self.scenario;
        let of_stack = |sender| Some((sender, scenario.stack_of_sender(sender)?));
        if let Some((sender, stack)) = own.sender.as_deref().or(scenario.sender.as_deref()).and_then(of_stack)
        {
            let unused = [("tcp", "TCP settings", !own.tcp.is_none()), ("plain", "plain TCP", own.plain)];
            for (key, found, _) in unused.into_iter().filter(|(.., is_stated)| *is_stated) {
                let problem =
                    format!("found {found} beside the sender \"{sender}\", which is not TCP; remove one");
                self.fault(&["connection", name, key], problem);
            }
            return (scenario.tcp.clone(), Some(stack));
        }
        let Some(sender) = own.sender.as_deref() else {
            return (self.tcp(nodes, &scenario.tcp, Some((name, &own.tcp))), None);
        };
        let Some(tcp) = scenario.tcp_of_sender(sender) else {
            self.fault(&["connection", name, "sender"], scenario.unknown_sender(sender));
            return (scenario.tcp.clone(), None);
        };
        for (key, problem) in tcp.faults() {
            let problem = format!("found \"{sender}\", whose {key} is invalid: {problem}");
            self.fault(&["connection", name, "sender"], problem);
        }
        (self.tcp(nodes, &tcp, Some((name, &own.tcp))), None)
    }

    /// Checks the settings of QUIC.
    pub(super) fn check_stacks(&mut self) {
        for (key, problem) in self.scenario.quic.iter().flat_map(|quic| quic.faults()) {
            self.fault(&["quic", key], problem);
        }
    }

    /// TCP settings of a connection along `nodes`: `usual`, overridden by the hosts at its ends, then by the connection's
    /// table in `own`, which also has its name.
    fn tcp(
        &mut self,
        nodes: &[HostId],
        usual: &tcp::Settings,
        own: Option<(&str, &tcp::Override)>,
    ) -> tcp::Settings {
        let [from, to] = [nodes.first(), nodes.last()].map(|node| self.host_tcp(*node?));
        let sender = from.map_or_else(|| usual.clone(), |from| from.of(usual));
        let mut settings = match to {
            Some(to) => to.agreed(sender.with_receiver(&to.of(usual))),
            None => sender.with_receiver(usual),
        };
        // A sender's header may not fit into a receiver's packets.
        let cramped = settings.faults().into_iter().find(|(key, _)| to.is_some() && *key == "packet_size");
        if let Some(((key, problem), node)) = cramped.zip(nodes.last()) {
            let name = self.network.names[node.index()].clone();
            self.fault(&["host", &name, "tcp", key], problem);
        }
        if let Some((name, own)) = own.filter(|(_, own)| !own.is_none()) {
            settings = own.of(&settings);
            let unused = own.stated().filter_map(|key| Some((key, settings.unused(key)?)));
            for (key, problem) in settings.faults().into_iter().chain(unused) {
                self.fault(&["connection", name, "tcp", key], problem);
            }
        }
        settings
    }

    /// The overrides of `[host.NAME.tcp]` for a node.
    fn host_tcp(&self, node: HostId) -> Option<&tcp::Override> {
        Some(&self.scenario.host.get(&self.network.names[node.index()])?.tcp)
    }

    /// The feedback of ECN marks that the host at the end of `nodes` states. Hosts that state none answer whatever they are
    /// asked for.
    fn receiver_ecn(&self, nodes: &[HostId]) -> Option<tcp::EcnMode> {
        self.host_tcp(*nodes.last()?)?.ecn
    }

    /// Checks that the hosts of `[host.NAME]` exist, and their TCP settings.
    pub(super) fn check_hosts(&mut self) {
        for (name, host) in &self.scenario.host {
            if !self.nodes.contains_key(name) {
                let names = self.network.names.iter().map(String::as_str);
                let problem = format!("found no such host, {}", alternatives(name, names));
                self.fault(&["host", name], problem);
            }
            for (key, problem) in host.tcp.of(&self.scenario.tcp).faults() {
                self.fault(&["host", name, "tcp", key], problem);
            }
        }
    }

    /// Checks that the settings of `[host.NAME.tcp]` have an effect at that end of the host's connections.
    pub(super) fn check_roles_of_hosts(&mut self) {
        let scenario = self.scenario;
        if scenario.host.is_empty() {
            return;
        }
        let ends = |end: fn(&Flow) -> HostId| {
            self.network.flows.iter().filter(|flow| flow.is_tcp()).map(end).collect::<HashSet<_>>()
        };
        let (senders, receivers) = (ends(Flow::source), ends(Flow::destination));
        // Other stacks than TCP leave what the file states.
        if senders.is_empty() {
            return;
        }
        for (name, host) in &scenario.host {
            let Some(node) = self.nodes.get(name) else { continue };
            let (sends, receives) = (senders.contains(node), receivers.contains(node));
            let settings = host.tcp.of(&scenario.tcp);
            for key in host.tcp.stated() {
                if let Some(problem) = settings.unused_at(key, sends, receives) {
                    self.fault(&["host", name, "tcp", key], problem);
                }
            }
        }
    }

    fn check_start(&mut self, path: &[&str], start: Duration) {
        let limit = self.scenario.limit;
        if start >= limit && !limit.is_zero() {
            let problem =
                format!("found \"{start}\", expected an instant before the limit, which is \"{limit}\"");
            self.fault(path, problem);
        }
    }

    pub(super) fn add_traffic(&mut self) {
        for (name, traffic) in &self.scenario.traffic {
            let key = |key| vec!["traffic", name, key];
            if self.flow_names.contains(name) {
                self.fault(&["traffic", name], "found the name of a connection, expected a different name");
            }
            let keys = Keys { from: key("from"), to: key("to"), via: key("via") };
            let config = self.traffic_config(name, traffic);
            let paths = self.path(&traffic.from, &traffic.to, traffic.via.as_deref(), &keys);
            if let Some((Paths { first: nodes, others }, config)) = paths.zip(config) {
                let path = FlowPath { nodes, others, one_way: true, joins: None };
                let workload = Workload::Traffic { config, voip: traffic.voip };
                let tcp = self.scenario.tcp.clone();
                self.add_flow(Flow {
                    name: name.clone(),
                    path,
                    workload,
                    tcp,
                    receiver_ecn: None,
                    stack: None,
                });
            }
        }
    }

    /// Validated start and stop times.
    fn times(&mut self, table: [&str; 2], start: Duration, stop: Option<Duration>) -> (Time, Time) {
        self.check_start(&[table[0], table[1], "start"], start);
        if let Some(stop) = stop.filter(|stop| *stop <= start) {
            let problem =
                format!("found \"{stop}\", expected an instant after the start, which is \"{start}\"");
            self.fault(&[table[0], table[1], "stop"], problem);
        }
        (Time::ZERO + start, stop.map_or(Time::NEVER, |stop| Time::ZERO + stop))
    }

    /// The parameters of a traffic source; `None` if any is missing, which is reported.
    fn traffic_config(&mut self, name: &str, traffic: &Traffic) -> Option<traffic::Config> {
        let Traffic { packet_size, start, stop, law, voip, dscp, .. } = *traffic;
        let dscp = dscp.unwrap_or_default();
        if dscp > 63 {
            let problem = format!("found {dscp}, expected 0 to 63, such as 46 for expedited forwarding");
            self.fault(&["traffic", name, "dscp"], problem);
        }
        let dscp = Dscp::new(dscp.min(63));
        let (start, stop) = self.times(["traffic", name], start, stop);
        if let Some(voip) = voip {
            for (key, _) in
                [("packet_size", packet_size.is_some()), ("law", law.is_some())].iter().filter(|key| key.1)
            {
                self.fault(
                    &["traffic", name, key],
                    "found this key beside voip, whose codec decides it; remove one",
                );
            }
            if let Err(invalid) = voip.validate() {
                self.fault(&["traffic", name, "voip", invalid.field], invalid.problem);
            }
            return Some(traffic::Config {
                size: voip.packet_size(),
                start,
                stop,
                pattern: voip.pattern(),
                dscp,
            });
        }
        for (key, usual, _) in [
            ("packet_size", "packet_size = \"500 B\"", packet_size.is_some()),
            ("law", "law.poisson.rate = \"400 kbps\"", law.is_some()),
        ]
        .iter()
        .filter(|key| !key.2)
        {
            let problem = format!("missing key {key}, such as {usual}; a call has voip.codec in its place");
            self.fault(&["traffic", name], problem);
        }
        let config = traffic::Config { size: packet_size?, start, stop, pattern: law?, dscp };
        if let Err(invalid) = config.validate() {
            let keys: Vec<&str> = match invalid.field {
                "size" => vec!["packet_size"],
                law => ["law"].into_iter().chain(law.split('.')).collect(),
            };
            self.fault(&[vec!["traffic", name], keys].concat(), invalid.problem);
        }
        Some(config)
    }

    pub(super) fn add_applications(&mut self) {
        for (name, application) in &self.scenario.application {
            let key = |key| vec!["application", name, key];
            if self.flow_names.contains(name) {
                let problem = "found the name of a connection or of other traffic, expected a different name";
                self.fault(&["application", name], problem);
            }
            let keys = Keys { from: key("from"), to: key("to"), via: key("via") };
            let Application { from, to, via, .. } = application;
            let stack = self.scenario.sender.as_deref().and_then(|name| self.scenario.stack_of_sender(name));
            let config = self.application_config(name, application).map(|config| match stack {
                Some(_) => application::Config { activity: config.activity.over_streams(), ..config },
                None => config,
            });
            let Some((paths, config)) = self.path(from, to, via.as_deref(), &keys).zip(config) else {
                continue;
            };
            let back = paths.reversed();
            let first = FlowId(self.network.flows.len() as u32);
            for number in 0..2 * u32::from(config.activity.connections()) {
                let Paths { first: nodes, others } = if number % 2 == 0 { &paths } else { &back };
                let joins = (number > 0).then_some(Join { flow: first, port: Port(number) });
                let workload = match joins {
                    None => Workload::Application(Box::new(config.clone())),
                    Some(_) => Workload::Joined(first),
                };
                let (nodes, others) = (nodes.clone(), others.clone());
                let path = FlowPath { nodes, others, one_way: false, joins };
                let tcp = self.tcp(&path.nodes, &self.scenario.tcp, None);
                let receiver_ecn = self.receiver_ecn(&path.nodes);
                self.add_flow(Flow { name: name.clone(), path, workload, tcp, receiver_ecn, stack });
            }
        }
    }

    /// The parameters of an application; `None` if any is missing, which is reported.
    fn application_config(&mut self, name: &str, stated: &Application) -> Option<application::Config> {
        let (start, stop) = self.times(["application", name], stated.start, stated.stop);
        let activity = self.activity(name, stated)?;
        let config = application::Config { start, stop, tls: stated.tls, activity };
        if let Err((key, invalid)) = config.validate() {
            let keys = key.split('.').chain(invalid.field.split('.')).filter(|key| !key.is_empty());
            let path: Vec<&str> = ["application", name].into_iter().chain(keys).collect();
            self.fault(&path, invalid.problem);
        }
        Some(config)
    }

    fn activity(&mut self, name: &str, stated: &Application) -> Option<Activity> {
        let Application { request, response, think, waits, requests, .. } = *stated;
        let what = match (&stated.page, &stated.video) {
            (Some(_), Some(_)) => {
                let problem = "found both a page and a video, expected one of them; write two applications";
                self.fault(&["application", name, "video"], problem);
                return None;
            }
            (Some(_), None) => "a page",
            (None, Some(_)) => "a video",
            (None, None) => "messages",
        };
        let web = stated.page.is_some() || stated.video.is_some();
        let unused = [
            ("response", web && response.is_some()),
            ("waits", web && waits.is_some()),
            ("think", stated.video.is_some() && think.is_some()),
            ("requests", stated.video.is_some() && requests.is_some()),
        ];
        for (key, _) in unused.into_iter().filter(|(_, unused)| *unused) {
            let problem = format!("found {key}, which {what} does not have; remove it");
            self.fault(&["application", name, key], problem);
        }
        let laws = [
            ("request", "constant = \"350 B\"", request.is_some()),
            ("response", "exponential = \"10 KB\"", response.is_some() || web),
            ("think", "exponential = \"30 s\"", think.is_some() || stated.video.is_some()),
        ];
        for (key, usual, _) in laws.into_iter().filter(|law| !law.2) {
            let problem = format!(
                "missing key {key}, expected a distribution such as {key}.{usual}, or a kind such as \"http\""
            );
            self.fault(&["application", name], problem);
        }
        let request = request?;
        Some(match (&stated.page, &stated.video) {
            (Some(page), _) => {
                Activity::Pages(Pages { page: page.clone(), request, reading: think?, pages: requests })
            }
            (_, Some(video)) => Activity::Video(Viewing { video: video.clone(), request }),
            _ => Activity::Messages(Messages {
                request,
                response: response?,
                think: think?,
                waits: waits.unwrap_or(true),
                requests,
            }),
        })
    }
}
