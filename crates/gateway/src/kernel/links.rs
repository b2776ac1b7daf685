//! The pair of interfaces by which diverted packets reach agents, and come back to the kernel (rtnetlink(7), veth(4)).

use std::io;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_indextoname};
use nix::sys::socket::SockProtocol;

use super::netlink::{ACK, Attributes, CREATE, EXCLUSIVE, Message, Netlink, attribute};

const NEW_LINK: u16 = 16;
const DELETE_LINK: u16 = 17;
const GET_LINK: u16 = 18;
const SET_LINK: u16 = 19;
const NEW_ADDRESS: u16 = 20;

const INET: u16 = 2;
const INET6: u16 = 10;

/// Flags of interfaces: up, and without ARP.
const UP: u32 = 0x1;
const NO_ARP: u32 = 0x80;

/// The largest MTU of such a pair.
const MTU: u32 = 65_535;

/// The dummy address of IPv4 (RFC 7600 section 5). At an interface without an address, Linux refuses packets of hosts to which
/// other routes lead, unless checks of the source are off for all.
const ADDRESS: [u8; 4] = [192, 0, 0, 8];

/// A pair of virtual Ethernet interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    /// The end whose packets the kernel receives.
    pub(crate) outer: String,
    /// The end of the agents.
    pub(crate) inner: String,
}

/// An interface of Ethernet frames, as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its number.
    pub(crate) index: u32,
    /// Its hardware address.
    pub(crate) address: [u8; 6],
    pub(crate) is_up: bool,
}

impl Link {
    /// The interfaces with these names, those that are there.
    pub(crate) fn find<const N: usize>(names: [&str; N]) -> io::Result<[Option<Link>; N]> {
        let mut found = [None; N];
        for each in getifaddrs()? {
            let Some(at) = names.iter().position(|name| *name == each.interface_name) else { continue };
            let Some(place) = each.address.as_ref().and_then(|address| address.as_link_addr()) else {
                continue;
            };
            let Some(address) = place.addr() else { continue };
            let is_up = each.flags.contains(InterfaceFlags::IFF_UP);
            found[at] = Some(Link { index: place.ifindex() as u32, address, is_up });
        }
        Ok(found)
    }
}

/// The fixed header of messages about interfaces, by name or by number.
fn header(index: u32, flags: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&flags.to_ne_bytes());
    header
}

fn named(kind: u16, flags: u16, name: &str) -> Message {
    Message::new(kind, ACK | flags, &header(0, 0)).text(3, name)
}

/// Whether an interface is up; `None` if it is not there.
pub(crate) fn is_up(name: &str) -> io::Result<Option<bool>> {
    let found = getifaddrs()?.find(|each| each.interface_name == name);
    Ok(found.map(|each| each.flags.contains(InterfaceFlags::IFF_UP)))
}

/// The bridge of which an interface is a port, if it is one.
pub(crate) fn bridge_of(name: &str) -> Option<String> {
    const MASTER: u16 = 10;
    const ABOUT: u16 = 18;
    const KIND_OF_PORT: u16 = 4;
    let mut bridge = None;
    let request = named(GET_LINK, 0, name);
    let listed = Netlink::open(SockProtocol::NetlinkRoute).and_then(|mut netlink| {
        netlink.list(request, |body| {
            let about = body.get(16..).unwrap_or_default();
            let kind = attribute(about, ABOUT).and_then(|about| attribute(about, KIND_OF_PORT));
            if kind == Some(b"bridge\0") {
                let index = attribute(about, MASTER).and_then(|index| index.first_chunk());
                bridge = index.map(|index| u32::from_ne_bytes(*index));
            }
        })
    });
    let name = if_indextoname(listed.ok().and(bridge)?).ok()?;
    Some(name.to_string_lossy().into_owned())
}

/// Lets the kernel receive packets by an interface that come from hosts to which other routes lead.
fn receive_anywhere(netlink: &mut Netlink, name: &str, index: u32) -> io::Result<()> {
    let wrong = |what: &str, error: io::Error| {
        io::Error::new(error.kind(), format!("the interface {name}: {what} ({error})"))
    };
    // Checks of the source are loose.
    const FORWARDING: u16 = 1;
    const SOURCE_CHECK: u16 = 8;
    let settings =
        Attributes::default().put(FORWARDING, &1u32.to_ne_bytes()).put(SOURCE_CHECK, &2u32.to_ne_bytes());
    let ipv4 = Attributes::default().nest(INET, &Attributes::default().nest(1, &settings));
    netlink
        .request(named(SET_LINK, 0, name).nest(26, &ipv4))
        .map_err(|error| wrong("IPv4 cannot be set up", error))?;
    const WHOLE: u8 = 32;
    const SCOPE_LINK: u8 = 253;
    let [a, b, c, d] = index.to_ne_bytes();
    let place = [INET as u8, WHOLE, 0, SCOPE_LINK, a, b, c, d];
    let address = Message::new(NEW_ADDRESS, ACK | CREATE, &place).put(2, &ADDRESS).put(1, &ADDRESS);
    match netlink.request(address) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(wrong("it gets no address", error)),
        _ => Ok(()),
    }
}

/// Sets an interface up, with further flags, and without addresses of its own.
fn set_up(netlink: &mut Netlink, name: &str, flags: u32) -> io::Result<()> {
    // Without IPv6 in the kernel there are none.
    let none = Attributes::default().nest(INET6, &Attributes::default().put(8, &[1]));
    let _ = netlink.request(named(SET_LINK, 0, name).nest(26, &none));
    let up = Message::new(SET_LINK, ACK, &header(0, UP | flags)).text(3, name);
    netlink.request(up).map_err(|error| {
        io::Error::new(error.kind(), format!("the interface {name}: it cannot be set up ({error})"))
    })
}

/// Sets up the interface of a tunnel; returns its number.
///
/// # Errors
/// If it is not there, or the kernel refuses.
pub(crate) fn set_up_tunnel(name: &str, mtu: u16) -> io::Result<u32> {
    let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
    let index = nix::net::if_::if_nametoindex(name)?;
    netlink.request(named(SET_LINK, 0, name).put(4, &u32::from(mtu).to_ne_bytes()))?;
    receive_anywhere(&mut netlink, name, index)?;
    set_up(&mut netlink, name, 0)?;
    Ok(index)
}

impl Pair {
    /// That of radio interface number `radio` in the file.
    pub(crate) fn of(radio: usize) -> Pair {
        Pair { outer: format!("lasthop{radio}"), inner: format!("lasthop{radio}-in") }
    }

    /// Makes the pair, in place of one that a killed gateway has left. Returns the number of its outer end.
    pub(crate) fn make(&self) -> io::Result<u32> {
        let mut netlink = Netlink::open(SockProtocol::NetlinkRoute)?;
        self.delete(&mut netlink);
        let own = |name: &str| Attributes::default().text(3, name).put(4, &MTU.to_ne_bytes());
        let mut peer = header(0, 0).to_vec();
        peer.extend(own(&self.inner).bytes());
        let kind = Attributes::default().text(1, "veth").nest(2, &Attributes::default().put(1, &peer));
        let new = named(NEW_LINK, CREATE | EXCLUSIVE, &self.outer).put(4, &MTU.to_ne_bytes()).nest(18, &kind);
        let wrong = |what: &str, error: io::Error| {
            io::Error::new(error.kind(), format!("the interface {}: {what} ({error})", self.outer))
        };
        netlink.request(new).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => wrong("another interface has its name", error),
            _ => wrong("the kernel makes no pair of kind veth", error),
        })?;
        let index = nix::net::if_::if_nametoindex(self.outer.as_str())?;
        receive_anywhere(&mut netlink, &self.outer, index)?;
        for name in [&self.outer, &self.inner] {
            set_up(&mut netlink, name, NO_ARP)?;
        }
        Ok(index)
    }

    /// Removes the pair, if it is there.
    pub(crate) fn remove(&self) -> io::Result<()> {
        self.delete(&mut Netlink::open(SockProtocol::NetlinkRoute)?);
        Ok(())
    }

    fn delete(&self, netlink: &mut Netlink) {
        // Whoever removed it before has done our work. Another interface of this name has another peer.
        if nix::net::if_::if_nametoindex(self.inner.as_str()).is_ok() {
            let _ = netlink.request(named(DELETE_LINK, 0, &self.outer));
        }
    }
}
