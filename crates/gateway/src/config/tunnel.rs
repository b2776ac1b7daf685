//! The tunnel to another gateway.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use lasthop_base::{BitRate, Bytes, Duration};
use lasthop_proto::scheme::parameters::PacketFec;
use lasthop_scenario::Fault;
use lasthop_tunnel::{CLASSES, Help, INTERLEAVE, OVERHEAD, most_open_packets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Config, Prefix, SchemeName, TunnelScheme, is_word};

/// Headers of IPv6 and UDP, the longer ones.
const HEADERS: usize = 48;

/// The longest packet that every link of IPv6 carries (RFC 8200 section 5).
const IPV6_MTU: u64 = 1280;

/// The sizes that packets over the path may have.
const LEAST_PACKET_SIZE: usize = 576;
const PACKET_SIZES: RangeInclusive<u64> = LEAST_PACKET_SIZE as u64..=9000;

/// A tunnel between two gateways, over UDP, with one shared key. Packets that the kernel routes to its interface reach the other
/// gateway, and leave its interface there. What help they have on the way, the rules say: `packet-fec`, `arq`, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub struct Tunnel {
    /// The file of the key, which both gateways have: `lasthop-gateway key` makes one.
    pub key: PathBuf,
    /// Address and port of the other gateway. One of the two must know it; the other one learns it, and may be anywhere.
    #[serde(default, deserialize_with = "super::address")]
    pub peer: Option<SocketAddr>,
    /// The UDP port of this gateway.
    #[serde(default = "default_port")]
    pub port: u16,
    /// The name of the interface.
    #[serde(default = "default_interface")]
    pub interface: String,
    /// Networks to which packets go through the tunnel, while the other gateway answers, such as `"0.0.0.0/0"` for all that have
    /// no nearer route. By default there are none, and the host's own routes lead to the interface.
    #[serde(default)]
    pub routes: Vec<Prefix>,
    /// The largest packet of UDP over the path, its IP header included. What the path carries of that, without fragments, is found
    /// by probes.
    #[serde(default = "default_packet_size")]
    pub packet_size: Bytes,
    /// The size of such a packet below which probes do not go. By default 1374 B if `routes` have networks of IPv6, whose packets of
    /// 1280 B must pass; otherwise 576 B. State 1374 B if routes of your own lead IPv6 to the interface: the kernel takes it off one
    /// that carries less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_packet_size: Option<Bytes>,
    /// Whether datagrams with packets of a rule that states one `dscp` have it as well, so that queues on the path may prefer them.
    /// All others have the default one: packets of a rule that overtake others would look like losses.
    #[serde(default = "default_copy_dscp")]
    pub copy_dscp: bool,
    /// The rate of the path. The times of `packet-fec` that are not stated follow from it; without, they have their shortest
    /// values, so that on a slow path a block has few packets, each with a repair packet of its own.
    #[serde(default)]
    pub rate: Option<BitRate>,
    /// Whether `packet-fec` sends only as many repair packets as the loss takes that the other gateway reports: `n` is then the
    /// most that a block has.
    #[serde(default)]
    pub adapt: bool,
    /// How long the other gateway may be silent, or not tell of anything that has arrived there: longer than the round trip.
    /// Packets then take the routes that they have without the tunnel.
    #[serde(default = "default_patience")]
    pub patience: Duration,
}

fn default_port() -> u16 {
    9332
}

fn default_interface() -> String {
    String::from("lasthop-tun")
}

fn default_packet_size() -> Bytes {
    Bytes(1500)
}

fn default_copy_dscp() -> bool {
    true
}

fn default_patience() -> Duration {
    Duration::from_secs(3)
}

impl Tunnel {
    /// The datagrams that the path may carry, without their headers. If packets of IPv6 are to pass, it must carry the longest that
    /// every link does, unless the file says otherwise.
    pub(crate) fn sizes(&self) -> RangeInclusive<usize> {
        let least = match self.min_packet_size {
            Some(size) => size.0 as usize - HEADERS,
            None if self.has_ipv6() => IPV6_MTU as usize + OVERHEAD,
            None => LEAST_PACKET_SIZE - HEADERS,
        };
        least..=self.packet_size.0 as usize - HEADERS
    }

    fn has_ipv6(&self) -> bool {
        self.routes.iter().any(|route| !route.parts().0.is_ipv4())
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let mut fault =
            |key: &str, problem: String| faults.push(Fault::new(&format!("tunnel.{key}"), problem));
        if !is_word(&self.interface, 15) {
            let expected = "expected a name for an interface, such as \"lasthop-tun\"";
            fault("interface", format!("found \"{}\", {expected}", self.interface));
        }
        if self.port == 0 {
            fault("port", String::from("found 0, expected 1 to 65535"));
        }
        if !self.key.is_absolute() {
            let expected = "expected an absolute path, such as \"/etc/lasthop/tunnel.key\"";
            fault("key", format!("found \"{}\", {expected}", self.key.display()));
        }
        let sizes = *PACKET_SIZES.start()..=self.packet_size.0;
        if let Some(size) = self.min_packet_size.filter(|size| !sizes.contains(&size.0)) {
            let expected = format!("expected {} B to packet_size, {}", sizes.start(), self.packet_size);
            fault("min_packet_size", format!("found {size}, {expected}"));
        }
        let least = IPV6_MTU + (HEADERS + OVERHEAD) as u64;
        if !PACKET_SIZES.contains(&self.packet_size.0) {
            fault("packet_size", format!("found {}, expected 576 B to 9000 B", self.packet_size));
        } else if self.packet_size.0 < least && self.has_ipv6() {
            let expected =
                format!("expected at least {least} B, or no routes of IPv6, which needs {IPV6_MTU} B");
            fault("packet_size", format!("found {}, {expected}", self.packet_size));
        }
        if !(Duration::from_millis(500)..=Duration::from_secs(60)).contains(&self.patience) {
            fault("patience", format!("found {}, expected 500 ms to 60 s", self.patience));
        }
        faults
    }
}

/// A class of packets in the tunnel.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// The rule that makes it, as in reports; of the first class `basic`.
    pub name: String,
    /// The rule's index, if it has one.
    pub(crate) rule: Option<usize>,
    /// The help of its packets.
    pub help: Help,
}

impl Config {
    /// The name of the tunnel's interface.
    pub(super) fn tunnel_interface(&self) -> Option<&str> {
        self.tunnel.as_ref().map(|tunnel| &*tunnel.interface)
    }

    pub(super) fn tunnel_faults(&self, faults: &mut Vec<Fault>) {
        let Some(tunnel) = &self.tunnel else {
            for (place, scheme) in self.used_schemes() {
                if matches!(scheme, SchemeName::Tunnel(_)) {
                    let problem = format!(
                        "found \"{}\", which needs a [tunnel] to a gateway at the other end of the radio; the nearest \
                         without one is \"snoop\" or \"i-tcp\"",
                        scheme.name()
                    );
                    faults.push(Fault::new(&place, problem));
                }
            }
            return;
        };
        faults.extend(tunnel.faults());
        let radio = self.gateway.radio.iter().position(|radio| *radio == tunnel.interface);
        if let Some(index) = radio {
            let problem = "found the tunnel's interface, expected others: it is one of the radios by itself";
            faults.push(Fault::new(&format!("gateway.radio.{index}"), problem));
        }
        let classes = self.tunnel_classes().len();
        if classes > CLASSES {
            let problem = format!(
                "found {} rules with schemes of the tunnel, expected at most {}",
                classes - 1,
                CLASSES - 1
            );
            faults.push(Fault::new("match", problem));
        }
        if PACKET_SIZES.contains(&tunnel.packet_size.0) {
            self.code_size_faults(tunnel.packet_size, faults);
        }
    }

    /// The codes of the file, each with its place.
    fn codes(&self) -> impl Iterator<Item = (String, &PacketFec)> {
        let of_rules = self.rules.iter().enumerate().filter_map(|(index, rule)| {
            rule.packet_fec.as_ref().map(|code| (format!("match.{index}.packet-fec"), code))
        });
        std::iter::once((String::from("scheme.packet-fec"), &self.scheme.packet_fec)).chain(of_rules)
    }

    /// Codes whose blocks the other gateway would have no room for.
    fn code_size_faults(&self, packet_size: Bytes, faults: &mut Vec<Fault>) {
        let most = most_open_packets(packet_size.0 as usize);
        for (place, code) in self.codes() {
            let (n, interleave) = (usize::from(code.n), usize::from(code.interleave));
            if n * interleave > most && code.interleave <= INTERLEAVE {
                let problem = format!(
                    "found n = {n} with interleave = {interleave}, for which the other gateway has no room; expected \
                     n * interleave of at most {most} with packets of {packet_size}"
                );
                faults.push(Fault::new(&format!("{place}.n"), problem));
            }
        }
    }

    /// What the tunnel's settings allow, and probably do not mean.
    pub(super) fn tunnel_caveats(&self) -> Vec<String> {
        let Some(Tunnel { rate: None, .. }) = &self.tunnel else { return Vec::new() };
        let is_timed = |class: &Class| matches!(&class.help, Help::Fec(code) if code.wait.is_none());
        let classes = self.tunnel_classes();
        let caveat = |class: &Class| {
            format!(
                "tunnel.rate: found none, so that a block of {} closes 10 ms after its first packet; over a slow path, each packet \
                 then has a repair packet of its own: state the rate of the path",
                class.name
            )
        };
        classes.iter().filter(|class| is_timed(class)).map(caveat).collect()
    }

    /// The classes of packets that enter the tunnel here. Each rule has its own, so that no packet waits for one of another
    /// rule; the first is that of all packets without help.
    pub fn tunnel_classes(&self) -> Vec<Class> {
        let code = self.scheme.packet_fec.clone();
        let retransmissions = self.scheme.retransmissions();
        let help = |scheme, code, in_order: Option<bool>| match (scheme, retransmissions) {
            (SchemeName::Tunnel(TunnelScheme::PacketFec), _) => Some(Help::Fec(code)),
            (SchemeName::Tunnel(TunnelScheme::Arq), Some(retransmissions)) => {
                Some(Help::Arq { retransmissions, in_order: in_order.unwrap_or(true) })
            }
            _ => None,
        };
        let named = |name: &str, rule, help| Class { name: name.to_owned(), rule, help };
        let mut classes = vec![named(SchemeName::Basic.name(), None, Help::None)];
        let otherwise = help(self.gateway.scheme, code.clone(), None);
        classes.extend(otherwise.map(|help| named(self.gateway.scheme.name(), None, help)));
        for (index, rule) in self.rules.iter().enumerate() {
            let own = rule.packet_fec.clone().unwrap_or_else(|| code.clone());
            let help = help(rule.scheme, own, rule.in_order);
            classes.extend(help.map(|help| named(&format!("match[{index}]"), Some(index), help)));
        }
        classes
    }
}
