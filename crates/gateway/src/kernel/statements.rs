//! The statements of rules: what the kernel compares and does, and the same in the language of nft(8).

use super::netlink::Attributes;

/// Where values are computed: a register of 16 bytes, the first of four bytes, and the next.
const REGISTER: u32 = 1;
const WORDS: u32 = 8;

/// A statement of a rule: a condition or an action.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Tcp,
    ToTcpPort(u16),
    ToUdpPort(u16),
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
    Marked {
        mask: u32,
        value: u32,
        is_equal: bool,
    },
    Ipv4,
    Ipv6,
    HashBelow {
        is_ipv4: bool,
        seed: u32,
        permille: u32,
    },
    SymmetricHashBelow(u32),
    SetMark {
        mask: u32,
        value: u32,
    },
    NoTrack,
    Count,
    Log {
        group: u16,
        prefix: &'static str,
        is_prompt: bool,
    },
    Tproxy(u16),
    Queue(u16),
    Goto(&'static str),
    Accept,
    Drop,
    /// A heartbeat is remembered, in the set of this name.
    Beat(&'static str),
    /// None is remembered any more.
    Stalled(&'static str),
    /// TCP over IPv4, and no fragment; in tables of a device.
    WholeIpv4Tcp,
    /// TCP directly after the header of IPv6; in tables of a device.
    WholeIpv6Tcp,
    /// Of a flow in the set: by its end behind the radio, which is the destination of packets that leave, and its other end.
    InSet {
        set: &'static str,
        is_ipv4: bool,
        is_leaving: bool,
    },
    /// Goes on by another interface, as if sent there.
    Divert {
        name: String,
        index: u32,
    },
}

use Statement::{
    Accept, Beat, Count, Divert, Drop, ForThisHost, FromInterface, Goto, Handshake, HashBelow, Icmp, Icmpv6,
    InSet, Ipv4, Ipv6, Leaving, Log, Marked, NoTrack, OfSocketMarked, OfTransparentSocket, Queue, SetMark,
    Stalled, SymmetricHashBelow, Syn, Tcp, ToInterface, ToTcpPort, ToUdpPort, Tproxy, WholeIpv4Tcp,
    WholeIpv6Tcp,
};

/// The bytes of a packet that are logged: those of the headers.
const HEADERS: u32 = 128;

pub(crate) fn text_of(statements: &[Statement]) -> String {
    statements.iter().map(Statement::text).collect::<Vec<_>>().join(" ")
}

impl Statement {
    /// In the language of nft(8).
    fn text(&self) -> String {
        match self {
            Tcp => "meta l4proto tcp".to_owned(),
            ToTcpPort(port) => format!("tcp dport {port}"),
            ToUdpPort(port) => format!("udp dport {port}"),
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
            Drop => "drop".to_owned(),
            Beat(set) => format!("update @{set} {{ meta mark & 0x00000000 }}"),
            Stalled(set) => format!("meta mark & 0x00000000 != @{set}"),
            WholeIpv4Tcp => "meta protocol ip meta l4proto tcp ip frag-off & 0x3fff == 0".to_owned(),
            WholeIpv6Tcp => "meta protocol ip6 ip6 nexthdr tcp".to_owned(),
            InSet { set, is_ipv4, is_leaving } => {
                let version = if *is_ipv4 { "ip" } else { "ip6" };
                let [mobile, fixed] = if *is_leaving { ["d", "s"] } else { ["s", "d"] };
                let addresses = format!("{version} {mobile}addr . {version} {fixed}addr");
                format!("{addresses} . tcp {mobile}port . tcp {fixed}port @{set}")
            }
            Divert { name, .. } => format!("fwd to \"{name}\""),
        }
    }
}

/// The kernel's expressions for a statement, each with its name (`enum nft_*_attributes` of linux/netfilter/nf_tables.h).
pub(super) fn expressions(statement: &Statement, by_iptables: bool) -> Vec<(&'static str, Attributes)> {
    const META_PROTOCOL: u32 = 1;
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
    let to_port = |number: u8, port: u16| {
        let place = [payload(REGISTER, TRANSPORT_HEADER, 2, 2), compare(EQUAL, &port.to_be_bytes())];
        protocol(number).into_iter().chain(place).collect()
    };
    let version = |number: u8| vec![meta(META_NFPROTO), compare(EQUAL, &[number])];
    let socket = |key: u32| ("socket", new().number(1, key).number(2, REGISTER));
    // Comparison is by bytes, the highest first.
    let to_network_order = || {
        let registers = new().number(1, REGISTER).number(2, REGISTER).number(3, 1);
        ("byteorder", registers.number(4, 4).number(5, 4))
    };
    // A set of heartbeats has one element, 0, which any packet finds.
    let nothing = || [meta(META_MARK), mask(4, &[0; 4], &[0; 4])];
    let route =
        |result: u32, flags: u32| ("fib", new().number(2, result).number(3, flags).number(1, REGISTER));
    match statement {
        Tcp => protocol(6),
        ToTcpPort(port) => to_port(6, *port),
        ToUdpPort(port) => to_port(17, *port),
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
        WholeIpv4Tcp => {
            let fragment = [payload(REGISTER, NETWORK_HEADER, 6, 2), mask(2, &[0x3f, 0xff], &[0; 2])];
            let mut all = vec![meta(META_PROTOCOL), compare(EQUAL, &[0x08, 0x00]), meta(META_L4PROTO)];
            all.extend([compare(EQUAL, &[6])].into_iter().chain(fragment).chain([compare(EQUAL, &[0; 2])]));
            all
        }
        WholeIpv6Tcp => vec![
            meta(META_PROTOCOL),
            compare(EQUAL, &[0x86, 0xdd]),
            payload(REGISTER, NETWORK_HEADER, 6, 1),
            compare(EQUAL, &[6]),
        ],
        InSet { set, is_ipv4, is_leaving } => {
            let (source, len) = if *is_ipv4 { (12, 4) } else { (8, 16) };
            let (mobile, fixed) = if *is_leaving { (1, 0) } else { (0, 1) };
            let words = len / 4;
            vec![
                payload(WORDS, NETWORK_HEADER, source + mobile * len, len),
                payload(WORDS + words, NETWORK_HEADER, source + fixed * len, len),
                payload(WORDS + 2 * words, TRANSPORT_HEADER, mobile * 2, 2),
                payload(WORDS + 2 * words + 1, TRANSPORT_HEADER, fixed * 2, 2),
                ("lookup", new().text(1, set).number(2, WORDS)),
            ]
        }
        Divert { index, .. } => vec![immediate(&index.to_ne_bytes()), ("fwd", new().number(1, REGISTER))],
        Goto(chain) => vec![verdict(-4, Some(chain))],
        Accept => vec![verdict(1, None)],
        Drop => vec![verdict(0, None)],
        Beat(set) => {
            const UPDATE: u32 = 1;
            let [load, zero] = nothing();
            vec![load, zero, ("dynset", new().text(1, set).number(3, UPDATE).number(4, REGISTER))]
        }
        Stalled(set) => {
            const INVERTED: u32 = 1;
            let [load, zero] = nothing();
            vec![load, zero, ("lookup", new().text(1, set).number(2, REGISTER).number(5, INVERTED))]
        }
    }
}
