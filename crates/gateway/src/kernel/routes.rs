//! The route by which packets marked local reach the sockets of the gateway, whatever their destination (rtnetlink(7)).

use std::io;

use nix::sys::socket::SockProtocol;

use super::Marks;
use super::netlink::{ACK, CREATE, EXCLUSIVE, Message, Netlink};

const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
const NEW_RULE: u16 = 32;
const DELETE_RULE: u16 = 33;

/// Families: IPv4 and IPv6.
const FAMILIES: [u8; 2] = [2, 10];

/// The place of the rule: before those of users, behind that of this host's addresses.
const PRIORITY: u32 = 100;

/// The interface of the route, which each namespace has with this number.
const LOOPBACK: u32 = 1;

/// The rule and the route for packets with a mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Routes {
    pub(crate) marks: Marks,
    /// The routing table.
    pub(crate) table: u16,
}

impl Routes {
    /// Adds them, and returns whether any was missing. Without IPv6 in the kernel, those of IPv4 suffice.
    pub(crate) fn install(self) -> io::Result<bool> {
        let mut was_missing = false;
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
        for family in FAMILIES {
            for message in [self.rule(NEW_RULE, family), self.route(NEW_ROUTE, family)] {
                match netlink.request(message) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                    Err(_) if family != FAMILIES[0] => {}
                    Err(error) => return Err(io::Error::new(error.kind(), format!("routes: {error}"))),
                    Ok(()) => was_missing = true,
                }
            }
        }
        Ok(was_missing)
    }

    /// Removes them, as far as they are there.
    pub(crate) fn remove(self) -> io::Result<()> {
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
        for family in FAMILIES {
            for message in [self.rule(DELETE_RULE, family), self.route(DELETE_ROUTE, family)] {
                // Whoever flushed them before has done our work.
                let _ = netlink.request(message);
            }
        }
        Ok(())
    }

    /// `ip rule add fwmark LOCAL/MASK lookup TABLE`.
    fn rule(self, kind: u16, family: u8) -> Message {
        const TO_TABLE: u8 = 1;
        let header = [family, 0, 0, 0, 0, 0, 0, TO_TABLE, 0, 0, 0, 0];
        Message::new(kind, self.flags(kind == NEW_RULE), &header)
            .put(6, &PRIORITY.to_ne_bytes())
            .put(10, &self.marks.local().to_ne_bytes())
            .put(16, &self.marks.mask().to_ne_bytes())
            .put(15, &u32::from(self.table).to_ne_bytes())
    }

    /// `ip route add local default dev lo table TABLE`.
    fn route(self, kind: u16, family: u8) -> Message {
        const STATIC: u8 = 4;
        const HOST: u8 = 254;
        const LOCAL: u8 = 2;
        let header = [family, 0, 0, 0, 0, STATIC, HOST, LOCAL, 0, 0, 0, 0];
        Message::new(kind, self.flags(kind == NEW_ROUTE), &header)
            .put(15, &u32::from(self.table).to_ne_bytes())
            .put(4, &LOOPBACK.to_ne_bytes())
    }

    fn flags(self, is_new: bool) -> u16 {
        if is_new { ACK | CREATE | EXCLUSIVE } else { ACK }
    }

    /// The commands that would do the same.
    pub(crate) fn text(self) -> String {
        let (local, mask, table) = (self.marks.local(), self.marks.mask(), self.table);
        let each = |ip: &str| {
            format!(
                "{ip} rule add priority {PRIORITY} fwmark {local:#x}/{mask:#x} lookup {table}\n\
                 {ip} route add local default dev lo table {table}\n"
            )
        };
        each("ip") + &each("ip -6")
    }
}
