//! The gateway's rules in the kernel's packet filter, as a table of its own.
//!
//! The kernel is told by netlink, so that no program must be installed, and the table has an owner (Linux 5.12): when the
//! gateway's process ends, in whatever way, the kernel removes it, and all new connections pass untouched.
//!
//! ```text
//! prerouting, before conntrack                          prerouting, after it        output, before conntrack
//! early: segments of client parts: local, untracked     late: SYNs marked local ──> tproxy ──> input: counted
//!        SYNs across the radio ──> select: share ──> queue     segments of server parts: local   client parts: untracked
//! ```
//!
//! The observer gets the headers of the flows that it observes from rules of the same table: the SYN from `select`, with the
//! arm that the kernel has chosen; packets of either host behind NAT, where `prerouting` has undone it; packets for the
//! radio before NAT, in `postrouting`.
//!
//! No packet is held, none is diverted, and none enters a tunnel, unless the thread for it has [lately](super::heartbeat) told
//! that it works.
//!
//! Both parts of a split connection have the same addresses and ports, of which conntrack knows one connection. It sees the
//! part towards the server, so that NAT and firewalls treat it as they would have treated the client's own.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use nix::sys::socket::SockProtocol;

use super::Marks;
use super::heartbeat::{BY_GATEWAY, BY_TUNNEL, TIMEOUT};
use super::netlink::{ACK, APPEND, Attributes, CREATE, Message, Netlink};
use super::statements::Statement::{
    Accept, Beat, Count, Divert, Drop, ForThisHost, FromInterface, Goto, Handshake, HashBelow, Icmp, Icmpv6,
    InSet, Ipv4, Ipv6, Leaving, Log, Marked, NoTrack, OfSocketMarked, OfTransparentSocket, Queue, SetMark,
    Stalled, SymmetricHashBelow, Syn, Tcp, ToInterface, ToTcpPort, ToUdpPort, Tproxy, WholeIpv4Tcp,
    WholeIpv6Tcp,
};
use super::statements::{Statement, expressions, text_of};

/// The name of the table, and of that of the radio's interfaces.
pub(crate) const TABLE: &str = "lasthop_gateway";
const DIVERSION: &str = "lasthop_agents";

/// Netfilter's numbers for rules of both versions of IP, and for those of interfaces.
pub(super) const INET: u8 = 1;
const NETDEV: u8 = 5;

pub(super) const SUBSYSTEM: u8 = 10;

const NEW_TABLE: u8 = 0;
const DELETE_TABLE: u8 = 2;
const NEW_CHAIN: u8 = 3;
const NEW_RULE: u8 = 6;
const NEW_SET: u8 = 9;
const NEW_ELEMENT: u8 = 12;
const DELETE_ELEMENT: u8 = 14;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

const OWNER: u32 = 2;

/// The most flows that a transaction adds or removes: each has an acknowledgement, for which the socket must have room.
const FLOWS_AT_ONCE: usize = 64;

/// A rule; counted ones have a name.
#[derive(Clone, Debug, PartialEq)]
struct Rule {
    name: &'static str,
    statements: Vec<Statement>,
}

/// A list of rules, attached to a hook of the kernel with a priority, maybe that of one interface.
#[derive(Clone, Debug, PartialEq)]
struct Chain {
    name: &'static str,
    hook: Option<(Hook, i32)>,
    device: Option<String>,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Hook {
    Prerouting,
    Input,
    Output,
    /// As `Output`; packets whose mark is changed have another route.
    Rerouting,
    Postrouting,
    Ingress,
    Egress,
}

impl Hook {
    /// The kernel's number, and the name for nft(8).
    fn kernel(self) -> (u32, &'static str) {
        match self {
            Hook::Prerouting => (0, "prerouting"),
            Hook::Input => (1, "input"),
            Hook::Output | Hook::Rerouting => (3, "output"),
            Hook::Postrouting => (4, "postrouting"),
            Hook::Ingress => (0, "ingress"),
            Hook::Egress => (1, "egress"),
        }
    }

    /// The type of its chains.
    fn of_chain(self) -> &'static str {
        if matches!(self, Hook::Rerouting) { "route" } else { "filter" }
    }
}

/// A set with a name.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Set {
    /// Flows, at most so many, by addresses and ports of both ends.
    Flows { name: &'static str, is_ipv4: bool, size: u32 },
    /// The heartbeat of a thread, until it times out.
    Heartbeat { name: &'static str, timeout: Duration },
}

impl Set {
    fn name(&self) -> &'static str {
        match self {
            Set::Flows { name, .. } | Set::Heartbeat { name, .. } => name,
        }
    }
}

/// The sets of heartbeats: of the thread to which the packets of a table go, and of that of the tunnel.
const ALIVE: &str = "alive";
const TUNNEL_ALIVE: &str = "tunnel_alive";

/// More heartbeats than one are there only until the kernel has removed those that have timed out.
const HEARTBEATS: u32 = 16;

/// The sets of flows that are diverted, by version of IP.
const DIVERTED: [(&str, bool); 2] = [("flows4", true), ("flows6", false)];

/// What the rules depend on.
#[derive(Clone, Debug)]
pub(crate) struct Parameters<'a> {
    pub(crate) radio: &'a [String],
    /// Whether connections may be helped that hosts behind the radio open, and others.
    pub(crate) clients: [bool; 2],
    pub(crate) marks: Marks,
    /// The number of the queue, and of the log of observed flows.
    pub(crate) number: u16,
    /// Whether the first packets of flows are held in the queue.
    pub(crate) holds: bool,
    /// The ports of the listeners: for clients before the radio, and for those behind it.
    pub(crate) ports: [u16; 2],
    /// The share of flows that is left alone, in thousandths.
    pub(crate) unhelped: u32,
    /// The key of the hash by which it is chosen.
    pub(crate) seed: u32,
    /// The share of flows that is observed, in thousandths.
    pub(crate) observed: u32,
    /// With a tunnel, how long it may stand still.
    pub(crate) patience: Option<Duration>,
    /// The interfaces by which packets that agents have passed reach the kernel.
    pub(crate) bumps: &'a [String],
}

/// The names of counted rules: of the share that is left alone, of the flows that ask for help, which wait in the queue
/// unless the gateway only observes, of those that pass since its process stands still, of SYNs that firewalls let reach this
/// host, of later packets of split connections, of those of them that firewalls let reach it, and of its answers to SYNs that
/// firewalls let leave.
pub(crate) const UNHELPED: &str = "unhelped";
pub(crate) const QUEUED: &str = "queued";
pub(crate) const STALLED: &str = "stalled";
pub(crate) const ARRIVED: &str = "arrived";
pub(crate) const CARRIED: &str = "carried";
pub(crate) const FOLLOWED: &str = "followed";
pub(crate) const ANSWERED: &str = "answered";

/// The prefixes by which the log names the arm of a flow that opens.
pub(crate) const HELPED_SYN: &str = "helped";
pub(crate) const UNHELPED_SYN: &str = "unhelped";

/// The rules of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules {
    family: u8,
    table: String,
    sets: Vec<Set>,
    chains: Vec<Chain>,
}

/// The name of the table of radio interface number `radio` in the file.
fn diversion_table(radio: usize) -> String {
    format!("{DIVERSION}{radio}")
}

impl Rules {
    pub(crate) fn new(parameters: &Parameters<'_>) -> Rules {
        let Parameters { radio, marks, number, holds, ports: [wired_port, radio_port], .. } = *parameters;
        let Parameters { clients, unhelped, seed, observed, patience, bumps, .. } = *parameters;
        let mask = marks.mask();
        let set_local = || SetMark { mask, value: marks.local() };
        let is_local = |is_equal| Marked { mask, value: marks.local(), is_equal };
        let rule = |statements: Vec<Statement>| Rule { name: "", statements };
        let from = |name: &String| FromInterface(name.clone());

        let carried = |statements: Vec<Statement>| Rule { name: CARRIED, statements };
        let mut early = vec![
            rule(vec![Tcp, Syn(false), OfTransparentSocket, OfSocketMarked(marks.to_server()), Accept]),
            carried(vec![Tcp, Syn(false), OfTransparentSocket, set_local(), NoTrack, Count, Accept]),
        ];
        let to = |name: &String| ToInterface(name.clone());
        let crossing = [radio.iter().map(from).collect::<Vec<_>>(), radio.iter().map(to).collect()];
        for (ways, _) in crossing.into_iter().zip(clients).filter(|(_, are_helped)| *are_helped) {
            early.extend(ways.into_iter().map(|way| rule(vec![Tcp, Syn(true), way, Goto("select")])));
        }

        // What logs the headers of observed flows, after further conditions. Packets wait to be reported with others, unless
        // the report is prompt.
        let log = |prefix, is_prompt, mut statements: Vec<Statement>| {
            if observed < 1000 {
                // After the first condition, and before any that looks up a route.
                statements.insert(statements.len().min(1), SymmetricHashBelow(observed));
            }
            statements.push(Log { group: number, prefix, is_prompt });
            rule(statements)
        };
        let stalled = Rule { name: STALLED, statements: vec![Stalled(ALIVE), Count, Accept] };
        let mut select = vec![rule(vec![ForThisHost, Accept]), stalled];
        if unhelped > 0 {
            for is_ipv4 in [true, false] {
                let version = if is_ipv4 { Ipv4 } else { Ipv6 };
                let chosen = || vec![version.clone(), HashBelow { is_ipv4, seed, permille: unhelped }];
                if observed > 0 {
                    select.push(log(UNHELPED_SYN, true, chosen()));
                }
                let statements = [chosen(), vec![Count, Accept]].concat();
                select.push(Rule { name: UNHELPED, statements });
            }
        }
        if observed > 0 {
            select.push(log(HELPED_SYN, true, Vec::new()));
        }
        let verdict = if holds { Queue(number) } else { Accept };
        select.push(Rule { name: QUEUED, statements: vec![Count, verdict] });

        let mut late: Vec<Rule> = radio
            .iter()
            .map(|name| rule(vec![Tcp, Syn(true), is_local(true), from(name), Tproxy(radio_port), Accept]))
            .collect();
        late.push(rule(vec![Tcp, Syn(true), is_local(true), Tproxy(wired_port), Accept]));
        let of_servers = [Tcp, Syn(false), is_local(false), OfTransparentSocket, set_local(), Count, Accept];
        late.push(carried(of_servers.to_vec()));
        // Errors about packets of the gateway, such as those by which the path MTU is discovered.
        late.extend([Icmp, Icmpv6].map(|icmp| rule(vec![icmp, OfTransparentSocket, set_local(), Accept])));

        let to_client = Marked { mask, value: marks.to_client(), is_equal: true };
        let answered = Rule { name: ANSWERED, statements: vec![to_client.clone(), Tcp, Handshake, Count] };
        let chain =
            |name, hook, priority, rules| Chain { name, hook: Some((hook, priority)), device: None, rules };
        let arrived = Rule { name: ARRIVED, statements: vec![Tcp, Syn(true), is_local(true), Count, Accept] };
        let followed = Rule { name: FOLLOWED, statements: vec![Tcp, is_local(true), Count, Accept] };
        // Strangers who address a listener itself.
        let strange = |port| rule(vec![ToTcpPort(port), Syn(true), Drop]);
        let arrivals = vec![arrived, followed, strange(wired_port), strange(radio_port)];
        let mut heartbeats = vec![heartbeat(marks, Some(BY_GATEWAY), ALIVE)];
        let mut chains = vec![
            Chain { name: "select", hook: None, device: None, rules: select },
            chain("early", Hook::Prerouting, -310, early),
            chain("untrack", Hook::Prerouting, -300, vec![rule(vec![is_local(true), NoTrack])]),
            chain("late", Hook::Prerouting, -150, late),
            chain("answers", Hook::Output, -300, vec![rule(vec![to_client, NoTrack])]),
            // Behind all others of this host.
            chain("arrived", Hook::Input, i32::MAX - 1, arrivals),
            chain("answered", Hook::Postrouting, i32::MAX - 1, vec![answered]),
        ];
        if observed > 0 {
            let logged = |is_prompt, conditions| {
                let mut rule = log("", is_prompt, conditions);
                rule.statements.push(Accept);
                rule
            };
            let mut received = vec![logged(false, vec![Tcp, is_local(true)])];
            received.extend(radio.iter().chain(bumps).map(|name| logged(false, vec![Tcp, from(name)])));
            received.extend(radio.iter().map(|name| logged(false, vec![Tcp, ToInterface(name.clone())])));
            // The kernel notes when packets arrive, and not when they leave.
            let leaving = |name: &String| Leaving(name.clone());
            let handshakes = radio.iter().map(|name| logged(true, vec![Tcp, Handshake, leaving(name)]));
            let others = radio.iter().map(|name| logged(false, vec![Tcp, leaving(name)]));
            let sent = handshakes.chain(others).collect();
            chains.push(chain("received", Hook::Prerouting, -90, received));
            chains.push(chain("sent", Hook::Postrouting, 90, sent));
        }
        let mut sets = vec![Set::Heartbeat { name: ALIVE, timeout: TIMEOUT }];
        if let Some(timeout) = patience {
            sets.push(Set::Heartbeat { name: TUNNEL_ALIVE, timeout });
            // Packets take the routes beside the tunnel, as its own datagrams do.
            let around = || rule(vec![Stalled(TUNNEL_ALIVE), SetMark { mask, value: marks.of_tunnel() }]);
            let forwarded = vec![rule(vec![is_local(true), Accept]), around()];
            chains.push(chain("tunnelled", Hook::Prerouting, -140, forwarded));
            chains.push(chain("own_tunnelled", Hook::Rerouting, -140, vec![around()]));
            heartbeats.push(heartbeat(marks, Some(BY_TUNNEL), TUNNEL_ALIVE));
        }
        chains.push(chain("heartbeats", Hook::Output, -310, heartbeats));
        Rules { family: INET, table: TABLE.to_owned(), sets, chains }
    }

    /// The rules by which the flows in the sets are diverted from radio interface number `radio`, called `device`, to the
    /// interface called `bump` with the number `index`; and packets marked for it, which open such flows.
    ///
    /// What comes back to the radio has the mark of agents, and passes.
    pub(crate) fn diversion(
        radio: usize,
        device: &str,
        marks: Marks,
        (bump, index): (&str, u32),
        size: u32,
    ) -> Rules {
        let rule = |statements: Vec<Statement>| Rule { name: "", statements };
        let divert = || Divert { name: bump.to_owned(), index };
        let marked = |value| Marked { mask: marks.mask(), value, is_equal: true };
        let whole = |is_ipv4: bool| if is_ipv4 { WholeIpv4Tcp } else { WholeIpv6Tcp };
        let of_flows = |is_leaving: bool| {
            DIVERTED.map(|(set, is_ipv4)| {
                rule(vec![whole(is_ipv4), InSet { set, is_ipv4, is_leaving }, divert()])
            })
        };
        let stalled = || rule(vec![Stalled(ALIVE), Accept]);
        let mut leaving =
            vec![heartbeat(marks, None, ALIVE), rule(vec![marked(marks.passed_agents()), Accept]), stalled()];
        leaving.extend(
            [true, false]
                .map(|is_ipv4| rule(vec![whole(is_ipv4), Syn(true), marked(marks.for_agents()), divert()])),
        );
        leaving.extend(of_flows(true));
        let arriving = std::iter::once(stalled()).chain(of_flows(false)).collect();
        let flows = DIVERTED.map(|(name, is_ipv4)| Set::Flows { name, is_ipv4, size });
        let chain = |name, hook, rules| Chain {
            name,
            hook: Some((hook, -400)),
            device: Some(device.to_owned()),
            rules,
        };
        Rules {
            family: NETDEV,
            table: diversion_table(radio),
            sets: flows.into_iter().chain([Set::Heartbeat { name: ALIVE, timeout: TIMEOUT }]).collect(),
            chains: vec![chain("arriving", Hook::Ingress, arriving), chain("leaving", Hook::Egress, leaving)],
        }
    }

    /// Puts the rules in the place of those that `owner` has installed, if any, all at once.
    ///
    /// # Errors
    /// If the kernel lacks something, or the table is another process's.
    pub(crate) fn install(&self, owner: &mut Netlink) -> io::Result<()> {
        match owner.transact(self.messages(false)) {
            Err((_, error)) if error.kind() == io::ErrorKind::NotFound => owner.transact(self.messages(true)),
            result => result,
        }
        .map_err(|(index, error)| self.explain(index, &error))
    }

    /// The error of the message with this index.
    fn explain(&self, index: usize, error: &io::Error) -> io::Error {
        let of_chain = |chain: &Chain| {
            let rules = chain.rules.iter().map(|rule| format!("the rule `{}`", text_of(&rule.statements)));
            std::iter::once(format!("the chain {}", chain.name)).chain(rules).collect::<Vec<_>>()
        };
        let sets = self.sets.iter().map(|set| format!("the set {}", set.name()));
        let chains = self.chains.iter().map(|chain| format!("the chain {}", chain.name));
        let rules = self.chains.iter().flat_map(|chain| of_chain(chain).into_iter().skip(1));
        let all: Vec<_> = sets.chain(chains).chain(rules).collect();
        let place = index.checked_sub(4).and_then(|index| all.get(index)).map_or("the table", String::as_str);
        let reason = match error.raw_os_error() {
            Some(nix::libc::EPERM) => "it belongs to another running gateway, or CAP_NET_ADMIN is missing",
            Some(nix::libc::ENOENT | nix::libc::EOPNOTSUPP) if self.family == NETDEV => {
                "the kernel lacks what agents need: hooks before interfaces (Linux 5.18, NETFILTER_EGRESS) and nft_fwd_netdev"
            }
            Some(nix::libc::ENOENT) => {
                "the kernel lacks part of nftables: it needs tproxy, socket, fib, hash, log and queue (or nft_compat with NFQUEUE)"
            }
            Some(nix::libc::EOPNOTSUPP) => "the kernel is older than Linux 5.12",
            _ => "the kernel refuses",
        };
        io::Error::new(error.kind(), format!("packet filter: {place}: {reason} ({error})"))
    }

    /// The batch. Old kernels have the queue as an extension of iptables only, with `by_iptables`.
    fn messages(&self, by_iptables: bool) -> Vec<Message> {
        let message = |kind, flags| Message::netfilter(SUBSYSTEM, kind, ACK | flags, self.family, 0);
        let table = || {
            let new = message(NEW_TABLE, CREATE).text(1, &self.table);
            new.put(2, &OWNER.to_be_bytes())
        };
        let delete = message(DELETE_TABLE, 0).text(1, &self.table);
        // To remove a table that may be there, it is made first.
        let mut all = vec![batch(BATCH_BEGIN), table(), delete, table()];
        for (id, set) in (1u32..).zip(&self.sets) {
            // The kernel keeps the type for nft(8) alone: two addresses, and two ports; or a mark.
            const MARK: u32 = 19;
            let (kind, len, size) = match *set {
                Set::Flows { is_ipv4, size, .. } => {
                    let (address, len) = if is_ipv4 { (7, 16) } else { (8, 40) };
                    ([address, address, 13, 13].into_iter().fold(0, |kind, part| kind << 6 | part), len, size)
                }
                Set::Heartbeat { .. } => (MARK, 4u32, HEARTBEATS),
            };
            let mut new = message(NEW_SET, CREATE).text(1, &self.table).text(2, set.name());
            if let Set::Heartbeat { timeout, .. } = set {
                const TIMES_OUT: u32 = 0x10;
                const CHANGED_BY_RULES: u32 = 0x20;
                let timeout = (timeout.as_millis() as u64).to_be_bytes();
                new = new.put(3, &(TIMES_OUT | CHANGED_BY_RULES).to_be_bytes()).put(11, &timeout);
            }
            new = new.put(4, &u32::to_be_bytes(kind)).put(5, &len.to_be_bytes());
            all.push(new.put(10, &id.to_be_bytes()).nest(9, &Attributes::default().number(1, size)));
        }
        for chain in &self.chains {
            let mut new = message(NEW_CHAIN, CREATE).text(1, &self.table).text(3, chain.name);
            if let Some((hook, priority)) = chain.hook {
                let mut place =
                    Attributes::default().number(1, hook.kernel().0).put(2, &priority.to_be_bytes());
                if let Some(device) = &chain.device {
                    place = place.text(3, device);
                }
                new = new.nest(4, &place).text(7, hook.of_chain());
            }
            all.push(new);
        }
        for chain in &self.chains {
            for rule in &chain.rules {
                let expressions = rule.statements.iter().flat_map(|each| expressions(each, by_iptables));
                let list = expressions.fold(Attributes::default(), |list, (name, data)| {
                    let expression = Attributes::default().text(1, name).nest(2, &data);
                    list.nest(1, &expression)
                });
                let new = message(NEW_RULE, CREATE | APPEND).text(1, &self.table).text(2, chain.name);
                let mut new = new.nest(4, &list);
                if !rule.name.is_empty() {
                    new = new.put(7, rule.name.as_bytes());
                }
                all.push(new);
            }
        }
        // The process works when it installs them.
        let heartbeats = self.sets.iter().filter(|set| matches!(set, Set::Heartbeat { .. }));
        all.extend(heartbeats.map(|set| {
            let element = Attributes::default().nest(1, &Attributes::default().put(1, &[0; 4]));
            let new = message(NEW_ELEMENT, CREATE).text(1, &self.table).text(2, set.name());
            new.nest(3, &Attributes::default().nest(1, &element))
        }));
        all.push(batch(BATCH_END));
        all
    }

    /// The rules in the language of nft(8).
    pub(crate) fn text(&self) -> String {
        let family = if self.family == NETDEV { "netdev" } else { "inet" };
        let mut text = format!("table {family} {} {{\n", self.table);
        for set in &self.sets {
            let (kind, rest) = match *set {
                Set::Flows { is_ipv4, size, .. } => {
                    let address = if is_ipv4 { "ipv4_addr" } else { "ipv6_addr" };
                    let kind = format!("{address} . {address} . inet_service . inet_service");
                    (kind, format!("size {size}"))
                }
                Set::Heartbeat { timeout, .. } => {
                    let rest = format!("size {HEARTBEATS}\n\t\tflags dynamic,timeout\n\t\ttimeout ");
                    (String::from("mark"), format!("{rest}{}ms", timeout.as_millis()))
                }
            };
            text.push_str(&format!("\tset {} {{\n\t\ttype {kind}\n\t\t{rest}\n\t}}\n", set.name()));
        }
        for chain in &self.chains {
            text.push_str(&format!("\tchain {} {{\n", chain.name));
            if let Some((hook, priority)) = chain.hook {
                let device =
                    chain.device.as_ref().map_or_else(String::new, |name| format!(" device \"{name}\""));
                let (kind, hook) = (hook.of_chain(), hook.kernel().1);
                text.push_str(&format!(
                    "\t\ttype {kind} hook {hook}{device} priority {priority}; policy accept;\n"
                ));
            }
            for rule in &chain.rules {
                text.push_str(&format!("\t\t{}\n", text_of(&rule.statements)));
            }
            text.push_str("\t}\n");
        }
        text + "}\n"
    }
}

/// The rule by which the kernel remembers heartbeats in a set: those to a port, or all.
fn heartbeat(marks: Marks, port: Option<u16>, set: &'static str) -> Rule {
    let is_heartbeat = Marked { mask: marks.mask(), value: marks.of_heartbeat(), is_equal: true };
    let to_port = port.map(ToUdpPort);
    Rule {
        name: "",
        statements: [is_heartbeat].into_iter().chain(to_port).chain([Beat(set), Drop]).collect(),
    }
}

/// The message at the beginning or the end of a transaction.
fn batch(kind: u16) -> Message {
    Message::new(kind, 0, &[0, 0, 0, SUBSYSTEM])
}

/// Adds flows to the sets of the diversion of radio interface number `radio`, or removes them. Each is given by its end behind
/// the radio, and the other.
///
/// # Errors
/// If the kernel refuses one, and with it others.
pub(crate) fn divert(
    owner: &mut Netlink,
    radio: usize,
    flows: &[[SocketAddr; 2]],
    is_added: bool,
) -> io::Result<()> {
    flows.chunks(FLOWS_AT_ONCE).try_for_each(|flows| divert_at_once(owner, radio, flows, is_added))
}

fn divert_at_once(
    owner: &mut Netlink,
    radio: usize,
    flows: &[[SocketAddr; 2]],
    is_added: bool,
) -> io::Result<()> {
    let (kind, flags) = if is_added { (NEW_ELEMENT, CREATE) } else { (DELETE_ELEMENT, 0) };
    let messages = flows.iter().map(|[mobile, fixed]| {
        let (set, _) = DIVERTED[usize::from(mobile.is_ipv6())];
        let mut key = Vec::with_capacity(40);
        for end in [mobile, fixed] {
            match end.ip() {
                IpAddr::V4(address) => key.extend(address.octets()),
                IpAddr::V6(address) => key.extend(address.octets()),
            }
        }
        for end in [mobile, fixed] {
            key.extend(end.port().to_be_bytes());
            key.extend([0; 2]);
        }
        let element = Attributes::default().nest(1, &Attributes::default().put(1, &key));
        let list = Attributes::default().nest(1, &element);
        let message = Message::netfilter(SUBSYSTEM, kind, ACK | flags, NETDEV, 0);
        message.text(1, &diversion_table(radio)).text(2, set).nest(3, &list)
    });
    let all = std::iter::once(batch(BATCH_BEGIN)).chain(messages).chain([batch(BATCH_END)]);
    owner.transact(all.collect()).map_err(|(_, error)| error)
}

/// Checks that no other process has the diversion of radio interface number `radio`.
///
/// # Errors
/// If one has, or the kernel has no packet filter.
pub(crate) fn claim_diversion(owner: &mut Netlink, radio: usize) -> io::Result<()> {
    let rules = Rules { family: NETDEV, table: diversion_table(radio), sets: Vec::new(), chains: Vec::new() };
    rules.install(owner)
}

/// Checks that no other process has the gateway's rules.
///
/// # Errors
/// If one has, or the kernel has no packet filter.
pub(crate) fn claim(owner: &mut Netlink) -> io::Result<()> {
    let table = TABLE.to_owned();
    Rules { family: INET, table, sets: Vec::new(), chains: Vec::new() }.install(owner)
}

/// Checks that the kernel has what a diversion at `device` needs: installs one that diverts nothing, and removes it.
///
/// # Errors
/// What is missing.
pub(crate) fn check_diversion(device: &str, marks: Marks) -> io::Result<()> {
    let mut rules = Rules::diversion(0, device, marks, ("lo", 0), 1);
    rules.table = format!("{DIVERSION}_check");
    for chain in &mut rules.chains {
        // Sets without flows match none, unlike marks.
        chain.rules.retain(|rule| rule.statements.iter().any(|each| matches!(each, InSet { .. })));
    }
    let mut owner = Netlink::open(SockProtocol::NetlinkNetFilter)?;
    rules.install(&mut owner)?;
    remove_table(&mut owner, NETDEV, &rules.table)
}

/// Removes the diversion of radio interface number `radio`.
pub(crate) fn remove_diversion(owner: &mut Netlink, radio: usize) -> io::Result<()> {
    remove_table(owner, NETDEV, &diversion_table(radio))
}

/// Removes the rules of `owner`.
pub(crate) fn remove(owner: &mut Netlink) -> io::Result<()> {
    remove_table(owner, INET, TABLE)
}

fn remove_table(owner: &mut Netlink, family: u8, table: &str) -> io::Result<()> {
    let delete = Message::netfilter(SUBSYSTEM, DELETE_TABLE, ACK, family, 0).text(1, table);
    owner.transact(vec![batch(BATCH_BEGIN), delete, batch(BATCH_END)]).map_err(|(_, error)| error)
}
