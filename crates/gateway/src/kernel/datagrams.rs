//! The socket of a tunnel: datagrams with their addresses at both ends, DSCP and ECN.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use lasthop_tunnel::{Ends, Tos};
use nix::errno::Errno;
use nix::libc::{in_addr, in_pktinfo, in6_addr, in6_pktinfo};
use nix::sys::socket::sockopt::{
    IpRecvTos, Ipv4PacketInfo, Ipv6RecvPacketInfo, Ipv6RecvTClass, Mark, RcvBufForce, SndBufForce,
    UdpGroSegment,
};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg,
    sendmsg, setsockopt,
};
use rustix::net::sockopt::set_ipv6_v6only;
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto};

/// Options of sockets, which nix does not define.
mod options {
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// What becomes of datagrams that are longer than the path carries (ip(7)).
        MtuDiscovery, SetOnly, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::c_int
    );
    sockopt_impl!(
        /// As IP_MTU_DISCOVER, for IPv6.
        Ipv6MtuDiscovery, SetOnly, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::c_int
    );
}

/// Datagrams wait there while the thread is busy.
const BUFFER: usize = 4 << 20;

/// A socket for datagrams at a port of all addresses of this host, with a mark, and never in fragments.
#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: OwnedFd,
    /// Whether it is one of IPv6, which has the addresses of IPv4 as well.
    is_ipv6: bool,
    ancillary: Vec<u8>,
}

/// Datagrams that have arrived, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Length of all of them.
    pub(crate) len: usize,
    /// Length of each but the last, which may be shorter.
    pub(crate) size: usize,
    /// Where they came from, and the address of this host to which they were sent.
    pub(crate) ends: Ends,
    pub(crate) tos: Tos,
}

/// Why a datagram, or a batch, was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsent {
    /// It is longer than the first link of the path carries.
    Oversized,
    /// The kernel has no route, or no room.
    Refused,
    /// Of a batch: the interface cannot cut it, as behind IPsec, or one without checksums before Linux 6.11.
    Uncut,
    /// Of a batch: something is wrong with one of its datagrams, or with batches.
    Unclear,
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Datagrams {
    pub(crate) fn open(port: u16, mark: u32) -> io::Result<Datagrams> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let open = |family| rustix::net::socket_with(family, SocketType::DGRAM, flags, Some(ipproto::UDP));
        let (socket, is_ipv6) = match open(AddressFamily::INET6) {
            Ok(socket) => (socket, true),
            Err(_) => (open(AddressFamily::INET)?, false),
        };
        let any: IpAddr = if is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        if is_ipv6 {
            set_ipv6_v6only(&socket, false)?;
            setsockopt(&socket, options::Ipv6MtuDiscovery, &nix::libc::IPV6_PMTUDISC_PROBE)?;
            setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
            setsockopt(&socket, Ipv6RecvTClass, &true)?;
        } else {
            setsockopt(&socket, Ipv4PacketInfo, &true)?;
        }
        setsockopt(&socket, options::MtuDiscovery, &nix::libc::IP_PMTUDISC_PROBE)?;
        setsockopt(&socket, IpRecvTos, &true)?;
        setsockopt(&socket, Mark, &mark)?;
        setsockopt(&socket, UdpGroSegment, &true)?;
        // Exceeding the system's limits needs CAP_NET_ADMIN, which the gateway has.
        setsockopt(&socket, RcvBufForce, &BUFFER)?;
        setsockopt(&socket, SndBufForce, &BUFFER)?;
        rustix::net::bind(&socket, &SocketAddr::new(any, port))?;
        let ancillary = nix::cmsg_space!(in_pktinfo, in6_pktinfo, u8, i32, i32);
        Ok(Datagrams { socket, is_ipv6, ancillary })
    }

    /// Takes the next datagram, or several that have come together, if there are any.
    ///
    /// # Errors
    /// If the socket fails, or a router or the other host had an error for what was sent.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut pieces = [IoSliceMut::new(buffer)];
        let ancillary = Some(self.ancillary.as_mut_slice());
        let received = match recvmsg::<SockaddrStorage>(
            self.socket.as_raw_fd(),
            &mut pieces,
            ancillary,
            MsgFlags::empty(),
        ) {
            Ok(received) => received,
            Err(Errno::EAGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(peer) = received.address.and_then(address) else { return Ok(None) };
        let (mut local, mut tos, mut size) = (None, Tos::default(), received.bytes);
        for message in received.cmsgs()? {
            match message {
                ControlMessageOwned::Ipv4PacketInfo(info) => local = Some(ipv4(info.ipi_spec_dst)),
                ControlMessageOwned::Ipv6PacketInfo(info) => {
                    local = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).to_canonical());
                }
                ControlMessageOwned::Ipv4Tos(octet) => tos = Tos::from(octet),
                ControlMessageOwned::Ipv6TClass(octet) => tos = Tos::from(octet as u8),
                ControlMessageOwned::UdpGroSegments(len) => size = len as usize,
                _ => {}
            }
        }
        Ok(Some(Received { len: received.bytes, size: size.max(1), ends: Ends { peer, local }, tos }))
    }

    /// Sends a datagram.
    pub(crate) fn send(&self, ends: Ends, tos: Tos, bytes: &[u8]) -> Result<(), Unsent> {
        self.send_from(ends, tos, bytes, None).map_err(|error| match error {
            Errno::EMSGSIZE => Unsent::Oversized,
            _ => Unsent::Refused,
        })
    }

    /// Sends datagrams of `size` bytes, of which the last may be shorter, with one call.
    pub(crate) fn send_batch(&self, ends: Ends, tos: Tos, size: usize, bytes: &[u8]) -> Result<(), Unsent> {
        self.send_from(ends, tos, bytes, Some(size as u16)).map_err(|error| match error {
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM => Unsent::Refused,
            Errno::EIO => Unsent::Uncut,
            _ => Unsent::Unclear,
        })
    }

    /// If the local address is none of this host any more, the routes choose.
    fn send_from(&self, ends: Ends, tos: Tos, bytes: &[u8], size: Option<u16>) -> nix::Result<()> {
        match (self.try_send(ends, tos, bytes, size), ends.local) {
            (Err(Errno::EINVAL | Errno::EADDRNOTAVAIL | Errno::ENETUNREACH), Some(_)) => {
                self.try_send(Ends { local: None, ..ends }, tos, bytes, size)
            }
            (sent, _) => sent,
        }
    }

    fn try_send(
        &self,
        Ends { peer, local }: Ends,
        tos: Tos,
        bytes: &[u8],
        size: Option<u16>,
    ) -> nix::Result<()> {
        let (octet, traffic_class) = (tos.octet(), i32::from(tos.octet()));
        let (mut info4, mut info6) = (PACKET_INFO, PACKET_INFO6);
        let mut messages = [match peer {
            SocketAddr::V4(_) => ControlMessage::Ipv4Tos(&octet),
            SocketAddr::V6(_) => ControlMessage::Ipv6TClass(&traffic_class),
        }; 3];
        let mut count = match local {
            None => 1,
            Some(IpAddr::V4(local)) if !self.is_ipv6 => {
                info4.ipi_spec_dst.s_addr = u32::from_ne_bytes(local.octets());
                messages[1] = ControlMessage::Ipv4PacketInfo(&info4);
                2
            }
            Some(local) => {
                info6.ipi6_addr.s6_addr = mapped(local).octets();
                messages[1] = ControlMessage::Ipv6PacketInfo(&info6);
                2
            }
        };
        if let Some(size) = &size {
            messages[count] = ControlMessage::UdpGsoSegments(size);
            count += 1;
        }
        let (pieces, messages) = ([IoSlice::new(bytes)], &messages[..count]);
        let (socket, none) = (self.socket.as_raw_fd(), MsgFlags::empty());
        match peer {
            SocketAddr::V4(peer) if !self.is_ipv6 => {
                sendmsg(socket, &pieces, messages, none, Some(&SockaddrIn::from(peer)))
            }
            _ => {
                let scope = if let SocketAddr::V6(peer) = peer { peer.scope_id() } else { 0 };
                let peer = SocketAddrV6::new(mapped(peer.ip()), peer.port(), 0, scope);
                sendmsg(socket, &pieces, messages, none, Some(&SockaddrIn6::from(peer)))
            }
        }
        .map(|_| ())
    }
}

/// No address, and no interface.
const PACKET_INFO: in_pktinfo =
    in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: in_addr { s_addr: 0 }, ipi_addr: in_addr { s_addr: 0 } };
const PACKET_INFO6: in6_pktinfo = in6_pktinfo { ipi6_addr: in6_addr { s6_addr: [0; 16] }, ipi6_ifindex: 0 };

fn ipv4(address: in_addr) -> IpAddr {
    Ipv4Addr::from(address.s_addr.to_ne_bytes()).into()
}

fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn address(address: SockaddrStorage) -> Option<SocketAddr> {
    let of_ipv4 = address.as_sockaddr_in().map(|address| SocketAddrV4::from(*address).into());
    let of_ipv6 = address.as_sockaddr_in6().map(|address| SocketAddrV6::from(*address).into());
    let found: SocketAddr = of_ipv4.or(of_ipv6)?;
    match found.ip().to_canonical() {
        ip @ IpAddr::V4(_) => Some(SocketAddr::new(ip, found.port())),
        IpAddr::V6(_) => Some(found),
    }
}
