//! The routes by which packets enter a tunnel (rtnetlink(7), ip-rule(8)).
//!
//! They are in a table of their own, to which rules lead that stay while the gateway runs. The routes are there only while the
//! other gateway answers, and are gone with the interface: an empty table is passed over.

use std::io;
use std::net::IpAddr;

use nix::sys::socket::SockProtocol;

use super::Marks;
use super::netlink::{ACK, CREATE, EXCLUSIVE, Message, Netlink};
use crate::config::{Config, Prefix, Tunnel};

const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const NEW_RULE: u16 = 32;
const DELETE_RULE: u16 = 33;

const MAIN: u32 = 254;

/// The place of the first rule: behind those for split connections.
const PRIORITY: u32 = 101;

/// The rules and the routes of a tunnel.
#[derive(Clone, Debug)]
pub(crate) struct TunnelRoutes {
    marks: Marks,
    table: u32,
    tunnel: Tunnel,
}

/// A rule.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// Packets to the other gateway, so that it is reached without the tunnel, whoever checks the way to it.
    ToPeer,
    /// Routes that are nearer than a default.
    Nearer,
    /// Routes of this host that are nearer than a default.
    NearerOfHost,
    /// All routes.
    All,
}

impl TunnelRoutes {
    /// Those of a file, if it has a tunnel.
    pub(crate) fn of(config: &Config) -> Option<TunnelRoutes> {
        let tunnel = config.tunnel.clone()?;
        let table = u32::from(config.gateway.number) + 1;
        Some(TunnelRoutes { marks: Marks::new(config.gateway.mark_bit), table, tunnel })
    }

    /// The rules, each with its place, for a version of IP that has routes.
    fn rules(&self, is_ipv4: bool) -> Vec<(u32, Rule)> {
        let routes: Vec<u8> =
            self.routes().filter(|(address, _)| address.is_ipv4() == is_ipv4).map(|(_, len)| len).collect();
        let is_of_peer = self.tunnel.peer.is_some_and(|peer| peer.is_ipv4() == is_ipv4);
        let mut rules = Vec::new();
        if routes.is_empty() {
            return rules;
        }
        if is_of_peer {
            rules.push((PRIORITY, Rule::ToPeer));
        }
        if routes.iter().any(|len| *len > 0) {
            rules.push((PRIORITY + 1, Rule::Nearer));
        }
        if routes.contains(&0) {
            rules.extend([(PRIORITY + 2, Rule::NearerOfHost), (PRIORITY + 3, Rule::All)]);
        }
        rules
    }

    fn routes(&self) -> impl Iterator<Item = (IpAddr, u8)> {
        self.tunnel.routes.iter().map(Prefix::parts)
    }

    /// Adds the rules. Those that are there already stay.
    pub(crate) fn install(&self) -> io::Result<()> {
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
        for is_ipv4 in [true, false] {
            for (priority, rule) in self.rules(is_ipv4) {
                let new = self.rule(NEW_RULE, ACK | CREATE | EXCLUSIVE, is_ipv4, priority, rule);
                match netlink.request(new) {
                    Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                        return Err(io::Error::new(error.kind(), format!("tunnel.routes: {error}")));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Removes the rules, as far as they are there.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
        for is_ipv4 in [true, false] {
            for (priority, rule) in self.rules(is_ipv4) {
                // Whoever flushed them before has done our work.
                let _ = netlink.request(self.rule(DELETE_RULE, ACK, is_ipv4, priority, rule));
            }
        }
        Ok(())
    }

    /// Adds the routes by the interface with this number, as far as they are not there, or removes them.
    pub(crate) fn lead(&self, interface: u32, into_tunnel: bool) -> io::Result<()> {
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
        let (kind, flags) =
            if into_tunnel { (NEW_ROUTE, ACK | CREATE | EXCLUSIVE) } else { (DELETE_ROUTE, ACK) };
        for (address, len) in self.routes() {
            const STATIC: u8 = 4;
            const UNICAST: u8 = 1;
            // Of the whole network, so that packets of this host have another address than the interface's dummy.
            const WHOLE: u8 = 0;
            let (family, bytes) = match address {
                IpAddr::V4(address) => (2, address.octets().to_vec()),
                IpAddr::V6(address) => (10, address.octets().to_vec()),
            };
            let header = [family, len, 0, 0, 0, STATIC, WHOLE, UNICAST, 0, 0, 0, 0];
            let mut message = Message::new(kind, flags, &header);
            if len > 0 {
                message = message.put(1, &bytes);
            }
            message = message.put(15, &self.table.to_ne_bytes()).put(4, &interface.to_ne_bytes());
            match netlink.request(message) {
                Err(error) if into_tunnel && error.kind() != io::ErrorKind::AlreadyExists => {
                    let problem = format!("tunnel.routes: {address}/{len}: {error}");
                    return Err(io::Error::new(error.kind(), problem));
                }
                // Those that are gone need not be removed.
                _ => {}
            }
        }
        Ok(())
    }

    fn rule(&self, kind: u16, flags: u16, is_ipv4: bool, priority: u32, rule: Rule) -> Message {
        const TO_TABLE: u8 = 1;
        const INVERTED: u8 = 2;
        const DEFAULT: u32 = 0;
        let peer = self.tunnel.peer.filter(|_| matches!(rule, Rule::ToPeer)).map(|peer| match peer.ip() {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        });
        let is_unmarked = matches!(rule, Rule::Nearer | Rule::All);
        let peer_bits = peer.as_ref().map_or(0, |peer| 8 * peer.len() as u8);
        let inverted = if is_unmarked { INVERTED } else { 0 };
        let family = if is_ipv4 { 2 } else { 10 };
        let mut message =
            Message::new(kind, flags, &[family, peer_bits, 0, 0, 0, 0, 0, TO_TABLE, inverted, 0, 0, 0])
                .put(6, &priority.to_ne_bytes());
        if let Some(peer) = peer {
            message = message.put(1, &peer);
        }
        if is_unmarked {
            message = message.put(10, &self.marks.of_tunnel().to_ne_bytes());
            message = message.put(16, &self.marks.mask().to_ne_bytes());
        }
        if matches!(rule, Rule::Nearer | Rule::NearerOfHost) {
            message = message.put(14, &DEFAULT.to_ne_bytes());
        }
        let table = if is_unmarked { self.table } else { MAIN };
        message.put(15, &table.to_ne_bytes())
    }

    /// The commands that would do the same.
    pub(crate) fn text(&self) -> String {
        let (mark, mask, table) = (self.marks.of_tunnel(), self.marks.mask(), self.table);
        let mut text = String::new();
        for is_ipv4 in [true, false] {
            let ip = if is_ipv4 { "ip" } else { "ip -6" };
            for (priority, rule) in self.rules(is_ipv4) {
                let unmarked = format!("not fwmark {mark:#x}/{mask:#x} lookup {table}");
                let peer = self.tunnel.peer.map_or_else(String::new, |peer| peer.ip().to_string());
                let what = match rule {
                    Rule::ToPeer => format!("to {peer} lookup main"),
                    Rule::Nearer => format!("{unmarked} suppress_prefixlength 0"),
                    Rule::NearerOfHost => String::from("lookup main suppress_prefixlength 0"),
                    Rule::All => unmarked,
                };
                text.push_str(&format!("{ip} rule add priority {priority} {what}\n"));
            }
            let interface = &self.tunnel.interface;
            for prefix in self.tunnel.routes.iter().filter(|prefix| prefix.parts().0.is_ipv4() == is_ipv4) {
                text.push_str(&format!(
                    "{ip} route add {prefix} dev {interface} scope global table {table}\n"
                ));
            }
        }
        text
    }
}
