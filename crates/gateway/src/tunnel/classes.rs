//! The class of a packet that enters the tunnel.

use std::net::{IpAddr, SocketAddr};

use lasthop_wire::{IpPacket, Transport};

use crate::arms::Arms;
use crate::config::{Class, Config, Match, SchemeName};

/// How a packet enters the tunnel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) class: usize,
    /// Whether its datagram has its DSCP: all packets of its rule have the same, so that none overtakes another one, which a code
    /// or an order would take for lost.
    pub(crate) copies_dscp: bool,
}

/// The rules of a file, as packets meet them.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    rules: Vec<Match>,
    of_rule: Vec<Entry>,
    /// That of other packets.
    otherwise: Entry,
    arms: Arms,
}

impl Classes {
    pub(crate) fn new(config: &Config, arms: Arms) -> Classes {
        let classes = config.tunnel_classes();
        let copies = config.tunnel.as_ref().is_some_and(|tunnel| tunnel.copy_dscp);
        let of_rule = |(number, rule): (usize, &Match)| {
            let is_own = |class: &Class| class.rule == Some(number);
            let class = classes.iter().position(is_own).unwrap_or(0);
            Entry { class, copies_dscp: copies && rule.dscp.len() == 1 }
        };
        let is_of_tunnel = matches!(config.gateway.scheme, SchemeName::Tunnel(_));
        Classes {
            of_rule: config.rules.iter().enumerate().map(of_rule).collect(),
            rules: config.rules.clone(),
            otherwise: Entry { class: usize::from(is_of_tunnel), copies_dscp: false },
            arms,
        }
    }

    /// How a packet enters; in the class without help if its flow is of this share, in thousandths.
    pub(crate) fn of(&self, bytes: &[u8], unhelped: u16) -> Entry {
        let Ok(packet) = IpPacket::parse(bytes) else { return Entry::default() };
        let ports = match &packet.transport {
            Transport::Tcp(tcp) => Some([tcp.header.src_port, tcp.header.dst_port]),
            Transport::Udp(udp) => Some([udp.src_port, udp.dst_port]),
            _ => None,
        };
        let hosts = [packet.ip.src, packet.ip.dst];
        let is_unhelped = unhelped >= 1000
            || ports.is_some_and(|[from, to]| {
                let ends = [SocketAddr::new(hosts[0], from), SocketAddr::new(hosts[1], to)];
                self.arms.is_unhelped(ends, unhelped)
            });
        let (ports, dscp) = (ports.as_ref().map_or(&[][..], |ports| ports), packet.ip.dscp.get());
        let found =
            self.rules.iter().position(|rule| rule.matches_packet(hosts, ports, dscp, bytes.len() as u64));
        let entry = found.map_or(self.otherwise, |rule| self.of_rule[rule]);
        // Arms differ in the help alone.
        if is_unhelped { Entry { class: 0, ..entry } } else { entry }
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
    use lasthop_tunnel::Key;

    use super::*;

    #[test]
    fn packets_of_rules_with_one_dscp_keep_it() {
        let classes = |copies: bool| {
            let text = format!(
                "[gateway]\nscheme = \"packet-fec\"\n[tunnel]\nkey = \"/key\"\ncopy_dscp = {copies}\n\
                 [[match]]\ndscp = [46]\nscheme = \"basic\"\n[[match]]\ndscp = [34]\nscheme = \"arq\"\n\
                 [[match]]\ndscp = [8, 10]\nscheme = \"arq\"\n"
            );
            let config = Config::parse(&text, "gateway.toml").unwrap_or_else(|error| panic!("{error}"));
            Classes::new(&config, Arms::new(&Key::new([3; 32])))
        };
        let packet = |dscp: u8| {
            let mut packet = [0x45, dscp << 2, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 10, 1, 0, 2, 10, 9, 0, 1];
            let words = packet.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
            let sum: u32 = words.sum();
            let checksum = !((sum >> 16) + (sum & 0xffff)) as u16;
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            packet
        };
        for (dscp, class, is_alone) in [(46, 0, true), (34, 2, true), (8, 3, false), (0, 1, false)] {
            for copies in [true, false] {
                let copies_dscp = copies && is_alone;
                let of = |unhelped| classes(copies).of(&packet(dscp), unhelped);
                assert_eq!(of(0), Entry { class, copies_dscp }, "{dscp}");
                assert_eq!(of(1000), Entry { class: 0, copies_dscp }, "{dscp}");
            }
        }
    }

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
