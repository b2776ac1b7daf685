//! The class of a packet that enters the tunnel.

use std::net::SocketAddr;

use lasthop_wire::{IpPacket, Transport};

use super::arms::Arms;
use crate::config::{Class, Config, Match, SchemeName};

/// The rules of a file, as packets meet them.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    rules: Vec<Match>,
    /// The class of each rule.
    of_rule: Vec<usize>,
    /// That of other packets.
    otherwise: usize,
    arms: Arms,
}

impl Classes {
    pub(crate) fn new(config: &Config, arms: Arms) -> Classes {
        let classes = config.tunnel_classes();
        let of_rule = |rule| {
            let place = |class: &Class| class.rule == Some(rule);
            classes.iter().position(place).unwrap_or(0)
        };
        let is_of_tunnel = matches!(config.gateway.scheme, SchemeName::Tunnel(_));
        Classes {
            of_rule: (0..config.rules.len()).map(of_rule).collect(),
            rules: config.rules.clone(),
            otherwise: usize::from(is_of_tunnel),
            arms,
        }
    }

    /// The class of a packet; that without help if its flow is of this share, in thousandths.
    pub(crate) fn of(&self, bytes: &[u8], unhelped: u16) -> usize {
        if unhelped >= 1000 {
            return 0;
        }
        let Ok(packet) = IpPacket::parse(bytes) else { return 0 };
        let ports = match &packet.transport {
            Transport::Tcp(tcp) => Some([tcp.header.src_port, tcp.header.dst_port]),
            Transport::Udp(udp) => Some([udp.src_port, udp.dst_port]),
            _ => None,
        };
        let hosts = [packet.ip.src, packet.ip.dst];
        if let Some([from, to]) = ports {
            let ends = [SocketAddr::new(hosts[0], from), SocketAddr::new(hosts[1], to)];
            if self.arms.is_unhelped(ends, unhelped) {
                return 0;
            }
        }
        let (ports, dscp) = (ports.as_ref().map_or(&[][..], |ports| ports), packet.ip.dscp.get());
        let found =
            self.rules.iter().position(|rule| rule.matches_packet(hosts, ports, dscp, bytes.len() as u64));
        found.map_or(self.otherwise, |rule| self.of_rule[rule])
    }
}
