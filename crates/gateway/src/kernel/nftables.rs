//! The gateway's rules in the kernel's packet filter, as a table of its own.
//!
//! The kernel is told by netlink, so that no program must be installed, and the table has an owner (Linux 5.12): when the
//! gateway's process ends, in whatever way, the kernel removes it, and all new connections pass untouched.
//!
//! ```text
//! prerouting, before conntrack                          prerouting, after it        output, before conntrack
//! early: segments of client parts: local, untracked     late: SYNs marked local ──> tproxy
//!        SYNs across the radio ──> select: share ──> queue     segments of server parts: local   client parts: untracked
//! ```
//!
//! The observer gets the headers of the flows that it observes from rules of the same table: the SYN from `select`, with the
//! arm that the kernel has chosen; packets of either host behind NAT, where `prerouting` has undone it; packets for the
//! radio before NAT, in `postrouting`.
//!
//! Both parts of a split connection have the same addresses and ports, of which conntrack knows one connection. It sees the
//! part towards the server, so that NAT and firewalls treat it as they would have treated the client's own.

use std::io;

use super::Marks;
use super::netlink::{ACK, APPEND, Attributes, CREATE, DUMP, Message, Netlink, attribute, attributes};

/// The name of the table.
pub(crate) const TABLE: &str = "lasthop_gateway";

/// Netfilter's number for rules of both versions of IP.
const FAMILY: u8 = 1;
const SUBSYSTEM: u8 = 10;

const NEW_TABLE: u8 = 0;
const DELETE_TABLE: u8 = 2;
const NEW_CHAIN: u8 = 3;
const NEW_RULE: u8 = 6;
const GET_RULE: u8 = 7;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;

const OWNER: u32 = 2;

/// Where values are computed: a register of 16 bytes, the first of four bytes, and the next.
const REGISTER: u32 = 1;
const WORDS: u32 = 8;

/// A statement of a rule: a condition or an action.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Tcp,
    Icmp,
    Icmpv6,
    Syn(bool),
    Handshake,
    FromInterface(String),
    ToInterface(String),
    Leaving(String),
    ForThisHost,
    OfTransparentSocket,
    OfSocketMarked(u32),
    Marked { mask: u32, value: u32, is_equal: bool },
    Ipv4,
    Ipv6,
    HashBelow { is_ipv4: bool, seed: u32, permille: u32 },
    SymmetricHashBelow(u32),
    SetMark { mask: u32, value: u32 },
    NoTrack,
    Count,
    Log { group: u16, prefix: &'static str, is_prompt: bool },
    Tproxy(u16),
    Queue(u16),
    Goto(&'static str),
    Accept,
}

use Statement::{
    Accept, Count, ForThisHost, FromInterface, Goto, Handshake, HashBelow, Icmp, Icmpv6, Ipv4, Ipv6, Leaving,
    Log, Marked, NoTrack, OfSocketMarked, OfTransparentSocket, Queue, SetMark, SymmetricHashBelow, Syn, Tcp,
    ToInterface, Tproxy,
};

/// A rule; counted ones have a name.
#[derive(Clone, Debug)]
struct Rule {
    name: &'static str,
    statements: Vec<Statement>,
}

/// A list of rules, attached to a hook of the kernel with a priority.
#[derive(Clone, Debug)]
struct Chain {
    name: &'static str,
    hook: Option<(Hook, i32)>,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug)]
enum Hook {
    Prerouting = 0,
    Output = 3,
    Postrouting = 4,
}

/// What the rules depend on.
#[derive(Clone, Debug)]
pub(crate) struct Parameters<'a> {
    pub(crate) radio: &'a [String],
    pub(crate) marks: Marks,
    /// The number of the queue, and of the log of observed flows.
    pub(crate) number: u16,
    /// The ports of the listeners: for clients before the radio, and for those behind it.
    pub(crate) ports: [u16; 2],
    /// The share of flows that is left alone, in thousandths.
    pub(crate) unhelped: u32,
    /// The key of the hash by which it is chosen.
    pub(crate) seed: u32,
    /// The share of flows that is observed, in thousandths.
    pub(crate) observed: u32,
}

/// The bytes of a packet that are logged: those of the headers.
const HEADERS: u32 = 128;

/// The names of counted rules.
pub(crate) const UNHELPED: &str = "unhelped";
pub(crate) const QUEUED: &str = "queued";

/// The prefixes by which the log names the arm of a flow that opens.
pub(crate) const HELPED_SYN: &str = "helped";
pub(crate) const UNHELPED_SYN: &str = "unhelped";

/// All rules.
#[derive(Clone, Debug)]
pub(crate) struct Rules(Vec<Chain>);

impl Rules {
    pub(crate) fn new(parameters: &Parameters<'_>) -> Rules {
        let Parameters { radio, marks, number, ports: [wired_port, radio_port], .. } = *parameters;
        let Parameters { unhelped, seed, observed, .. } = *parameters;
        let mask = marks.mask();
        let set_local = || SetMark { mask, value: marks.local() };
        let is_local = |is_equal| Marked { mask, value: marks.local(), is_equal };
        let rule = |statements: Vec<Statement>| Rule { name: "", statements };
        let from = |name: &String| FromInterface(name.clone());

        let mut early = vec![
            rule(vec![Tcp, Syn(false), OfTransparentSocket, OfSocketMarked(marks.to_server()), Accept]),
            rule(vec![Tcp, Syn(false), OfTransparentSocket, set_local(), NoTrack, Accept]),
        ];
        early.extend(radio.iter().map(|name| rule(vec![Tcp, Syn(true), from(name), Goto("select")])));
        let to = |name: &String| rule(vec![Tcp, Syn(true), ToInterface(name.clone()), Goto("select")]);
        early.extend(radio.iter().map(to));

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
        let mut select = vec![rule(vec![ForThisHost, Accept])];
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
        select.push(Rule { name: QUEUED, statements: vec![Count, Queue(number)] });

        let mut late: Vec<Rule> = radio
            .iter()
            .map(|name| rule(vec![Tcp, Syn(true), is_local(true), from(name), Tproxy(radio_port), Accept]))
            .collect();
        late.push(rule(vec![Tcp, Syn(true), is_local(true), Tproxy(wired_port), Accept]));
        late.push(rule(vec![Tcp, Syn(false), is_local(false), OfTransparentSocket, set_local(), Accept]));
        // Errors about packets of the gateway, such as those by which the path MTU is discovered.
        late.extend([Icmp, Icmpv6].map(|icmp| rule(vec![icmp, OfTransparentSocket, set_local(), Accept])));

        let to_client = Marked { mask, value: marks.to_client(), is_equal: true };
        let chain = |name, hook, priority, rules| Chain { name, hook: Some((hook, priority)), rules };
        let mut chains = vec![
            Chain { name: "select", hook: None, rules: select },
            chain("early", Hook::Prerouting, -310, early),
            chain("untrack", Hook::Prerouting, -300, vec![rule(vec![is_local(true), NoTrack])]),
            chain("late", Hook::Prerouting, -150, late),
            chain("answers", Hook::Output, -300, vec![rule(vec![to_client, NoTrack])]),
        ];
        if observed > 0 {
            let logged = |is_prompt, conditions| {
                let mut rule = log("", is_prompt, conditions);
                rule.statements.push(Accept);
                rule
            };
            let mut received = vec![logged(false, vec![Tcp, is_local(true)])];
            received.extend(radio.iter().map(|name| logged(false, vec![Tcp, from(name)])));
            received.extend(radio.iter().map(|name| logged(false, vec![Tcp, ToInterface(name.clone())])));
            // The kernel notes when packets arrive, and not when they leave.
            let leaving = |name: &String| Leaving(name.clone());
            let handshakes = radio.iter().map(|name| logged(true, vec![Tcp, Handshake, leaving(name)]));
            let others = radio.iter().map(|name| logged(false, vec![Tcp, leaving(name)]));
            let sent = handshakes.chain(others).collect();
            chains.push(chain("received", Hook::Prerouting, -90, received));
            chains.push(chain("sent", Hook::Postrouting, 90, sent));
        }
        Rules(chains)
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
        let chains = self.0.iter().map(|chain| format!("the chain {}", chain.name));
        let rules = self.0.iter().flat_map(|chain| of_chain(chain).into_iter().skip(1));
        let all: Vec<_> = chains.chain(rules).collect();
        let place = index.checked_sub(4).and_then(|index| all.get(index)).map_or("the table", String::as_str);
        let reason = match error.raw_os_error() {
            Some(nix::libc::EPERM) => "it belongs to another running gateway, or CAP_NET_ADMIN is missing",
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
        let message = |kind, flags| Message::netfilter(SUBSYSTEM, kind, ACK | flags, FAMILY, 0);
        let batch = |kind: u16| Message::new(kind, 0, &[0, 0, 0, SUBSYSTEM]);
        let table = || {
            let new = message(NEW_TABLE, CREATE).text(1, TABLE);
            new.put(2, &OWNER.to_be_bytes())
        };
        // To remove a table that may be there, it is made first.
        let mut all = vec![batch(BATCH_BEGIN), table(), message(DELETE_TABLE, 0).text(1, TABLE), table()];
        for chain in &self.0 {
            let mut new = message(NEW_CHAIN, CREATE).text(1, TABLE).text(3, chain.name);
            if let Some((hook, priority)) = chain.hook {
                let place = Attributes::default().number(1, hook as u32).put(2, &priority.to_be_bytes());
                new = new.nest(4, &place).text(7, "filter");
            }
            all.push(new);
        }
        for chain in &self.0 {
            for rule in &chain.rules {
                let expressions = rule.statements.iter().flat_map(|each| expressions(each, by_iptables));
                let list = expressions.fold(Attributes::default(), |list, (name, data)| {
                    let expression = Attributes::default().text(1, name).nest(2, &data);
                    list.nest(1, &expression)
                });
                let mut new =
                    message(NEW_RULE, CREATE | APPEND).text(1, TABLE).text(2, chain.name).nest(4, &list);
                if !rule.name.is_empty() {
                    new = new.put(7, rule.name.as_bytes());
                }
                all.push(new);
            }
        }
        all.push(batch(BATCH_END));
        all
    }

    /// The rules in the language of nft(8).
    pub(crate) fn text(&self) -> String {
        let mut text = format!("table inet {TABLE} {{\n");
        for chain in &self.0 {
            text.push_str(&format!("\tchain {} {{\n", chain.name));
            if let Some((hook, priority)) = chain.hook {
                let hook = match hook {
                    Hook::Prerouting => "prerouting",
                    Hook::Output => "output",
                    Hook::Postrouting => "postrouting",
                };
                text.push_str(&format!("\t\ttype filter hook {hook} priority {priority}; policy accept;\n"));
            }
            for rule in &chain.rules {
                text.push_str(&format!("\t\t{}\n", text_of(&rule.statements)));
            }
            text.push_str("\t}\n");
        }
        text + "}\n"
    }
}

/// Removes the rules of `owner`.
pub(crate) fn remove(owner: &mut Netlink) -> io::Result<()> {
    let batch = |kind: u16| Message::new(kind, 0, &[0, 0, 0, SUBSYSTEM]);
    let delete = Message::netfilter(SUBSYSTEM, DELETE_TABLE, ACK, FAMILY, 0).text(1, TABLE);
    owner.transact(vec![batch(BATCH_BEGIN), delete, batch(BATCH_END)]).map_err(|(_, error)| error)
}

/// The packets that the rules with this name have counted.
pub(crate) fn counted(socket: &mut Netlink, name: &str) -> io::Result<u64> {
    let mut total = 0;
    let request = Message::netfilter(SUBSYSTEM, GET_RULE, DUMP, FAMILY, 0).text(1, TABLE);
    socket.list(request, |body| {
        let rule = body.get(4..).unwrap_or_default();
        if attribute(rule, 7) != Some(name.as_bytes()) {
            return;
        }
        let list = attributes(attribute(rule, 4).unwrap_or_default());
        let packets = list.filter_map(|(_, expression)| {
            let is_counter = attribute(expression, 1)? == b"counter\0";
            let data = attribute(expression, 2).filter(|_| is_counter)?;
            attribute(data, 2)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
        });
        total += packets.sum::<u64>();
    })?;
    Ok(total)
}

fn text_of(statements: &[Statement]) -> String {
    statements.iter().map(Statement::text).collect::<Vec<_>>().join(" ")
}

impl Statement {
    /// In the language of nft(8).
    fn text(&self) -> String {
        match self {
            Tcp => "meta l4proto tcp".to_owned(),
            Icmp => "meta l4proto icmp".to_owned(),
            Icmpv6 => "meta l4proto ipv6-icmp".to_owned(),
            Syn(true) => "tcp flags & (fin | syn | rst | ack) == syn".to_owned(),
            Syn(false) => "tcp flags & (fin | syn | rst | ack) != syn".to_owned(),
            Handshake => "tcp flags & syn == syn".to_owned(),
            FromInterface(name) => format!("iifname \"{name}\""),
            ToInterface(name) => format!("fib daddr . mark oifname \"{name}\""),
            Leaving(name) => format!("oifname \"{name}\""),
            ForThisHost => "fib daddr type != unicast".to_owned(),
            OfTransparentSocket => "socket transparent 1".to_owned(),
            OfSocketMarked(value) => format!("socket mark {value:#010x}"),
            Marked { mask, value, is_equal } => {
                let relation = if *is_equal { "==" } else { "!=" };
                format!("meta mark & {mask:#010x} {relation} {value:#010x}")
            }
            Ipv4 => "meta nfproto ipv4".to_owned(),
            Ipv6 => "meta nfproto ipv6".to_owned(),
            HashBelow { is_ipv4, seed, permille } => {
                let version = if *is_ipv4 { "ip" } else { "ip6" };
                let fields = format!("{version} saddr . {version} daddr . tcp sport . tcp dport");
                format!("jhash {fields} mod 1000 seed {seed:#010x} < {permille}")
            }
            SymmetricHashBelow(permille) => format!("symhash mod 1000 < {permille}"),
            SetMark { mask, value } => format!("meta mark set meta mark & {:#010x} | {value:#010x}", !mask),
            NoTrack => "notrack".to_owned(),
            Count => "counter".to_owned(),
            Log { group, prefix, is_prompt } => {
                let prefix = if prefix.is_empty() { String::new() } else { format!(" prefix \"{prefix}\"") };
                let prompt = if *is_prompt { " queue-threshold 1" } else { "" };
                format!("log{prefix} group {group} snaplen {HEADERS}{prompt}")
            }
            Tproxy(port) => format!("tproxy to :{port}"),
            Queue(number) => format!("queue flags bypass to {number}"),
            Goto(chain) => format!("goto {chain}"),
            Accept => "accept".to_owned(),
        }
    }
}

/// The kernel's expressions for a statement, each with its name (`enum nft_*_attributes` of linux/netfilter/nf_tables.h).
fn expressions(statement: &Statement, by_iptables: bool) -> Vec<(&'static str, Attributes)> {
    const META_MARK: u32 = 3;
    const META_IIFNAME: u32 = 6;
    const META_OIFNAME: u32 = 7;
    const META_NFPROTO: u32 = 15;
    const META_L4PROTO: u32 = 16;
    const EQUAL: u32 = 0;
    const UNEQUAL: u32 = 1;
    const LESS: u32 = 2;
    const NETWORK_HEADER: u32 = 1;
    const TRANSPORT_HEADER: u32 = 2;
    const ROUTE_INTERFACE: u32 = 2;
    const ROUTE_TYPE: u32 = 3;
    const BY_DESTINATION: u32 = 1 << 1;
    const BY_MARK: u32 = 1 << 2;
    const UNICAST: u32 = 1;

    let new = Attributes::default;
    let value = |bytes: &[u8]| new().put(1, bytes);
    let meta = |key| ("meta", new().number(2, key).number(1, REGISTER));
    let compare_at = |register, operation, bytes: &[u8]| {
        ("cmp", new().number(1, register).number(2, operation).nest(3, &value(bytes)))
    };
    let compare = |operation, bytes: &[u8]| compare_at(REGISTER, operation, bytes);
    let mask = |len: u32, and: &[u8], xor: &[u8]| {
        let registers = new().number(1, REGISTER).number(2, REGISTER).number(3, len);
        ("bitwise", registers.nest(4, &value(and)).nest(5, &value(xor)))
    };
    let payload = |register, base, offset, len| {
        ("payload", new().number(1, register).number(2, base).number(3, offset).number(4, len))
    };
    let immediate = |bytes: &[u8]| ("immediate", new().number(1, REGISTER).nest(2, &value(bytes)));
    let verdict = |code: i32, chain: Option<&str>| {
        let mut verdict = new().put(1, &code.to_be_bytes());
        if let Some(chain) = chain {
            verdict = verdict.text(2, chain);
        }
        ("immediate", new().number(1, 0).nest(2, &new().nest(2, &verdict)))
    };
    let interface = |name: &str| {
        let mut padded = [0; 16];
        padded[..name.len()].copy_from_slice(name.as_bytes());
        padded
    };
    let protocol = |number: u8| vec![meta(META_L4PROTO), compare(EQUAL, &[number])];
    let version = |number: u8| vec![meta(META_NFPROTO), compare(EQUAL, &[number])];
    let socket = |key: u32| ("socket", new().number(1, key).number(2, REGISTER));
    // Comparison is by bytes, the highest first.
    let to_network_order = || {
        let registers = new().number(1, REGISTER).number(2, REGISTER).number(3, 1);
        ("byteorder", registers.number(4, 4).number(5, 4))
    };
    let route =
        |result: u32, flags: u32| ("fib", new().number(2, result).number(3, flags).number(1, REGISTER));
    match statement {
        Tcp => protocol(6),
        Icmp => protocol(1),
        Icmpv6 => protocol(58),
        Syn(is_syn) => {
            let operation = if *is_syn { EQUAL } else { UNEQUAL };
            vec![
                payload(REGISTER, TRANSPORT_HEADER, 13, 1),
                mask(1, &[0x17], &[0]),
                compare(operation, &[0x02]),
            ]
        }
        Handshake => {
            vec![payload(REGISTER, TRANSPORT_HEADER, 13, 1), mask(1, &[0x02], &[0]), compare(EQUAL, &[0x02])]
        }
        FromInterface(name) => vec![meta(META_IIFNAME), compare(EQUAL, &interface(name))],
        Leaving(name) => vec![meta(META_OIFNAME), compare(EQUAL, &interface(name))],
        ToInterface(name) => {
            vec![route(ROUTE_INTERFACE, BY_DESTINATION | BY_MARK), compare(EQUAL, &interface(name))]
        }
        ForThisHost => vec![route(ROUTE_TYPE, BY_DESTINATION), compare(UNEQUAL, &UNICAST.to_ne_bytes())],
        OfTransparentSocket => vec![socket(0), compare(EQUAL, &[1])],
        OfSocketMarked(mark) => vec![socket(1), compare(EQUAL, &mark.to_ne_bytes())],
        Marked { mask: bits, value, is_equal } => {
            let operation = if *is_equal { EQUAL } else { UNEQUAL };
            vec![
                meta(META_MARK),
                mask(4, &bits.to_ne_bytes(), &[0; 4]),
                compare(operation, &value.to_ne_bytes()),
            ]
        }
        Ipv4 => version(2),
        Ipv6 => version(10),
        SymmetricHashBelow(permille) => {
            const SYMMETRIC: u32 = 1;
            let hash = new().number(2, REGISTER).number(4, 1000).number(7, SYMMETRIC);
            vec![("hash", hash), to_network_order(), compare(LESS, &permille.to_be_bytes())]
        }
        HashBelow { is_ipv4, seed, permille } => {
            let (offset, addresses) = if *is_ipv4 { (12, 8) } else { (8, 32) };
            let hash = new().number(1, WORDS).number(2, REGISTER).number(3, addresses + 4);
            vec![
                payload(WORDS, NETWORK_HEADER, offset, addresses),
                payload(WORDS + addresses / 4, TRANSPORT_HEADER, 0, 4),
                ("hash", hash.number(4, 1000).number(5, *seed).number(7, 0)),
                to_network_order(),
                compare(LESS, &permille.to_be_bytes()),
            ]
        }
        SetMark { mask: bits, value } => vec![
            meta(META_MARK),
            mask(4, &(!bits).to_ne_bytes(), &value.to_ne_bytes()),
            ("meta", new().number(2, META_MARK).number(3, REGISTER)),
        ],
        NoTrack => vec![("notrack", new())],
        Count => vec![("counter", new())],
        Log { group, prefix, is_prompt } => {
            let mut log = new().put(1, &group.to_be_bytes()).number(3, HEADERS);
            if *is_prompt {
                log = log.put(4, &1u16.to_be_bytes());
            }
            if !prefix.is_empty() {
                log = log.text(2, prefix);
            }
            vec![("log", log)]
        }
        Tproxy(port) => {
            vec![immediate(&port.to_be_bytes()), ("tproxy", new().number(1, 0).number(3, REGISTER))]
        }
        // `bypass`: without a process at the queue, packets go on.
        Queue(number) if by_iptables => {
            let [one, bypass] = [1u16.to_ne_bytes(), 1u16.to_ne_bytes()];
            let information = [number.to_ne_bytes(), one, bypass, [0; 2]].concat();
            vec![("target", new().text(1, "NFQUEUE").number(2, 3).put(3, &information))]
        }
        Queue(number) => {
            let [one, bypass] = [1u16.to_be_bytes(), 1u16.to_be_bytes()];
            vec![("queue", new().put(1, &number.to_be_bytes()).put(2, &one).put(3, &bypass))]
        }
        Goto(chain) => vec![verdict(-4, Some(chain))],
        Accept => vec![verdict(1, None)],
    }
}
