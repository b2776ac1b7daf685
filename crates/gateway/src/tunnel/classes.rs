//! The class of a packet that enters the tunnel.

use std::net::{IpAddr, SocketAddr};

use lasthop_wire::{IpPacket, Transport};

use crate::arms::Arms;
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

/// Whether a packet is a datagram of UDP for this address, or the first fragment of one.
pub(crate) fn is_for(packet: &[u8], peer: SocketAddr) -> bool {
    const UDP: u8 = 17;
    let Some(first) = packet.first() else { return false };
    let (protocol, destination, header) = match (first >> 4, peer.ip()) {
        (4, IpAddr::V4(_)) => (9, 16..20, usize::from(first & 15) * 4),
        (6, IpAddr::V6(_)) => (6, 24..40, 40),
        _ => return false,
    };
    let is_of_host = match peer.ip() {
        IpAddr::V4(address) => packet.get(destination) == Some(&address.octets()),
        IpAddr::V6(address) => packet.get(destination) == Some(&address.octets()),
    };
    is_of_host
        && packet.get(protocol) == Some(&UDP)
        && packet.get(header + 2..header + 4) == Some(&peer.port().to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tunnels_own_datagrams_are_known() {
        let mut ipv4 = vec![0; 28];
        ipv4[0] = 0x45;
        ipv4[9] = 17;
        ipv4[16..20].copy_from_slice(&[192, 0, 2, 1]);
        ipv4[22..24].copy_from_slice(&9332u16.to_be_bytes());
        let mut ipv6 = vec![0; 48];
        ipv6[0] = 0x60;
        ipv6[6] = 17;
        ipv6[39] = 1;
        ipv6[42..44].copy_from_slice(&9332u16.to_be_bytes());
        let peers = ["192.0.2.1:9332", "[::1]:9332"].map(|peer| peer.parse().expect("an address"));
        for (own, packet) in [ipv4, ipv6].iter().enumerate() {
            for (number, peer) in peers.into_iter().enumerate() {
                assert_eq!(is_for(packet, peer), number == own, "{packet:?}, {peer}");
            }
            assert!(!is_for(packet, SocketAddr::new(peers[own].ip(), 9333)));
            (0..packet.len() - 4).for_each(|len| assert!(!is_for(&packet[..len], peers[own]), "{len}"));
            let mut tcp = packet.clone();
            tcp[[9, 6][own]] = 6;
            assert!(!is_for(&tcp, peers[own]));
        }
    }
}
