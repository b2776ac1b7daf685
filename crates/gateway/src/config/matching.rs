//! Rules for flows.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::net::IpAddr;
use std::str::FromStr;

use lasthop_base::{Bytes, inline_schema, schema};
use lasthop_proto::scheme::parameters::PacketFec;
use lasthop_scenario::Fault;
use schemars::JsonSchema;
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::schemes::{SchemeName, TunnelScheme, code_faults};

/// A rule. It matches a flow that meets all its conditions; without any, every flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Match {
    /// Ports of the server, single or ranges such as `"8000-8999"`. One of them must be the flow's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Ports>,
    /// Networks such as `"192.0.2.0/24"`. One of them must have the client's or the server's address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<Prefix>,
    /// Hosts: addresses, or names in /etc/hosts. One of them must be the client or the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Host>,
    /// DSCP of the first packet, from 0 to 63.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<u8>,
    /// The largest packet, IP header included. Such a rule is for packets in the tunnel, and not for flows: what a user types
    /// can be told from what a server sends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_size: Option<Bytes>,
    /// The scheme of these flows.
    pub scheme: SchemeName,
    /// Parameters of `packet-fec` for them, in place of `[scheme.packet-fec]`. What is not stated has the scheme's default.
    #[serde(default, rename = "packet-fec", skip_serializing_if = "Option::is_none")]
    pub packet_fec: Option<PacketFec>,
    /// With `arq`: whether their packets leave the tunnel in the order in which they have entered. By default they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_order: Option<bool>,
}

impl Match {
    pub(super) fn faults(&self, path: &str, faults: &mut Vec<Fault>) {
        for (index, dscp) in self.dscp.iter().enumerate().filter(|(_, dscp)| **dscp > 63) {
            let problem = format!("found {dscp}, expected 0 to 63, such as 46 for expedited forwarding");
            faults.push(Fault::new(&format!("{path}.dscp.{index}"), problem));
        }
        let is_of = |scheme| self.scheme == SchemeName::Tunnel(scheme);
        let mut fault = |key: &str, problem: &str| faults.push(Fault::new(&format!("{path}.{key}"), problem));
        if self.max_size.is_some() && !matches!(self.scheme, SchemeName::Tunnel(_) | SchemeName::Basic) {
            fault(
                "max_size",
                "found a size, expected none: only schemes of the tunnel, and \"basic\", tell packets apart",
            );
        }
        if self.packet_fec.is_some() && !is_of(TunnelScheme::PacketFec) {
            fault("packet-fec", "found parameters, expected none: the scheme of this rule is another");
        }
        if self.in_order.is_some() && !is_of(TunnelScheme::Arq) {
            fault(
                "in_order",
                "found an order, expected none: it is for \"arq\"; that of packet-fec is among its parameters",
            );
        }
        if let Some(code) = &self.packet_fec {
            faults.extend(code_faults(code, &format!("{path}.packet-fec")));
        }
    }

    /// Whether a flow from `client` to port `port` of `server` matches.
    pub(crate) fn matches(&self, client: IpAddr, server: IpAddr, port: u16, dscp: u8) -> bool {
        self.max_size.is_none() && self.has_hosts([client, server], dscp) && self.has_port(&[port])
    }

    /// Whether a packet between these hosts matches, whichever of them has opened its flow. A packet without ports has none.
    pub(crate) fn matches_packet(&self, ends: [IpAddr; 2], ports: &[u16], dscp: u8, size: u64) -> bool {
        self.max_size.is_none_or(|most| size <= most.0) && self.has_hosts(ends, dscp) && self.has_port(ports)
    }

    fn has_port(&self, ports: &[u16]) -> bool {
        self.ports.is_empty() || self.ports.iter().any(|each| ports.iter().any(|port| each.contains(*port)))
    }

    fn has_hosts(&self, ends: [IpAddr; 2], dscp: u8) -> bool {
        (self.prefixes.is_empty()
            || self.prefixes.iter().any(|prefix| ends.iter().any(|end| prefix.contains(*end))))
            && (self.hosts.is_empty()
                || self.hosts.iter().any(|host| ends.iter().any(|end| host.addresses.contains(end))))
            && (self.dscp.is_empty() || self.dscp.contains(&dscp))
    }
}

/// A type of values that are written as text: its parser, its form, and its schema.
macro_rules! written {
    ($type:ty, $expecting:literal, |$generator:ident| $schema:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$type, D::Error> {
                struct Written;
                impl Visitor<'_> for Written {
                    type Value = $type;
                    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: Error>(self, text: &str) -> Result<$type, E> {
                        text.parse()
                            .map_err(|()| E::custom(format!("found \"{text}\", expected {}", $expecting)))
                    }
                    fn visit_u64<E: Error>(self, number: u64) -> Result<$type, E> {
                        number
                            .to_string()
                            .parse()
                            .map_err(|()| E::custom(format!("found {number}, expected {}", $expecting)))
                    }
                    fn visit_i64<E: Error>(self, number: i64) -> Result<$type, E> {
                        number
                            .to_string()
                            .parse()
                            .map_err(|()| E::custom(format!("found {number}, expected {}", $expecting)))
                    }
                }
                from.deserialize_any(Written)
            }
        }

        inline_schema!($type, |$generator| $schema);
    };
}

/// A port, or a range of ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    first: u16,
    last: u16,
}

impl Ports {
    /// Whether `port` is one of them.
    pub fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl FromStr for Ports {
    type Err = ();

    fn from_str(text: &str) -> Result<Ports, ()> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let parse = |port: &str| port.trim().parse::<u16>().map_err(|_| ());
        let (first, last) = (parse(first)?, parse(last)?);
        if first == 0 || first > last { Err(()) } else { Ok(Ports { first, last }) }
    }
}

impl Display for Ports {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

written!(Ports, "a port from 1 to 65535, or a range such as \"8000-8999\"", |_generator| schema::any([
    schema::text("ports", "\\d+(\\s*-\\s*\\d+)?", &["443", "8000-8999"]),
    schemars::json_schema!({"type": "integer", "minimum": 1, "maximum": 65535}),
]));

/// A network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

/// The bits of an address, with those of IPv4 at the top.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl Prefix {
    /// Its address, and the number of its bits that count.
    #[cfg(target_os = "linux")]
    pub(crate) fn parts(&self) -> (IpAddr, u8) {
        (self.address, self.len)
    }

    /// Whether `address` is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differing = bits(self.address) ^ bits(address);
        self.address.is_ipv4() == address.is_ipv4()
            && differing.checked_shr(128 - u32::from(self.len)).unwrap_or(0) == 0
    }
}

impl FromStr for Prefix {
    type Err = ();

    fn from_str(text: &str) -> Result<Prefix, ()> {
        let (address, len) = text.split_once('/').ok_or(())?;
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let len: u8 = len.parse().ok().filter(|len| *len <= most).ok_or(())?;
        // A host's address with a length, as in `ip addr`, is most likely a mistake.
        let rest = bits(address).checked_shl(u32::from(len)).unwrap_or(0);
        if rest == 0 { Ok(Prefix { address, len }) } else { Err(()) }
    }
}

impl Display for Prefix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.len)
    }
}

written!(
    Prefix,
    "a network such as \"192.0.2.0/24\" or \"2001:db8::/32\", without bits of a host",
    |_generator| schema::text("network", "[0-9a-fA-F.:]+/\\d+", &["192.0.2.0/24", "2001:db8::/32"])
);

/// A host by address or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    written: String,
    addresses: Vec<IpAddr>,
}

impl FromStr for Host {
    type Err = ();

    fn from_str(text: &str) -> Result<Host, ()> {
        let addresses = match text.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => named(text, &fs::read_to_string("/etc/hosts").unwrap_or_default()),
        };
        if addresses.is_empty() { Err(()) } else { Ok(Host { written: text.to_owned(), addresses }) }
    }
}

/// The addresses of `name` in a file with the format of /etc/hosts (hosts(5)).
fn named(name: &str, hosts: &str) -> Vec<IpAddr> {
    let lines = hosts.lines().map(|line| line.split('#').next().unwrap_or_default().split_whitespace());
    lines
        .filter_map(|mut words| {
            let address = words.next()?.parse().ok()?;
            words.any(|word| word.eq_ignore_ascii_case(name)).then_some(address)
        })
        .collect()
}

impl Display for Host {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

written!(Host, "the address of a host, or its name in /etc/hosts", |_generator| {
    schema::text("host", "\\S+", &["192.0.2.1", "camera"])
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_addresses_of_their_version_alone() {
        let contains = |prefix: &str, address: &str| {
            prefix.parse::<Prefix>().unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("192.0.2.0/24", "192.0.2.255") && !contains("192.0.2.0/24", "192.0.3.0"));
        assert!(contains("0.0.0.0/0", "255.1.2.3") && !contains("0.0.0.0/0", "::1"));
        assert!(
            contains("2001:db8::/33", "2001:db8:7fff::1") && !contains("2001:db8::/33", "2001:db8:8000::1")
        );
        assert!(contains("192.0.2.1/32", "192.0.2.1") && !contains("192.0.2.1/32", "192.0.2.0"));
        for wrong in ["192.0.2.1/24", "192.0.2.0/33", "192.0.2.0", "2001:db8::1/64", "a/8"] {
            assert_eq!(wrong.parse::<Prefix>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn names_have_all_their_addresses() {
        let hosts = "127.0.0.1 localhost\n# 192.0.2.9 camera\n192.0.2.1\tcamera Cam # of the mast\n2001:db8::1 camera\n";
        assert_eq!(named("CAM", hosts), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(named("camera", hosts).len(), 2);
        assert!(named("of", hosts).is_empty());
    }

    #[test]
    fn ranges_of_ports_end_where_they_say() {
        let range: Ports = "8000 - 8999".parse().unwrap();
        assert!(range.contains(8000) && range.contains(8999) && !range.contains(9000));
        assert_eq!(range.to_string(), "8000-8999");
        for wrong in ["0", "9-8", "70000", "http"] {
            assert_eq!(wrong.parse::<Ports>(), Err(()), "{wrong}");
        }
    }
}
