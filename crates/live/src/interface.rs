//! Network interfaces, as sockets that read and write frames.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use lasthop_ring::{Frame, Ring, Truncation, VIRTIO_HEADER};
use lasthop_wire::IpPacket;
use lasthop_wire::offload::{self, Cwr, SuperPacket};
use lasthop_wire::virtio::{self, Offload};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::sys::socket::{
    self, AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::clock;

/// Options of packet sockets (packet(7)), which nix does not define.
mod options {
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Whether each frame is preceded by a virtio header, which describes offloaded work.
        VirtioHeader, SetOnly, libc::SOL_PACKET, libc::PACKET_VNET_HDR, bool
    );
    sockopt_impl!(
        /// Whether frames that this host sends over the interface are left out.
        IgnoreOutgoing, SetOnly, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, bool
    );
    sockopt_impl!(
        /// Whether each frame comes with the VLAN tag that the kernel has removed from it.
        Auxiliary, SetOnly, libc::SOL_PACKET, libc::PACKET_AUXDATA, bool
    );
    sockopt_impl!(
        /// Promiscuous mode, for as long as the socket is open.
        Membership, SetOnly, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, libc::packet_mreq
    );
}

/// Receive and send buffers of a socket, in bytes. Packets wait there while the thread is busy.
const BUFFER: usize = 4 << 20;

/// Length of the two hardware addresses, which VLAN tags follow.
const ADDRESSES: usize = 12;

/// An interface that reads and writes whole Ethernet frames.
#[derive(Debug)]
pub struct Interface {
    socket: OwnedFd,
    control: Vec<u8>,
    /// Whether frames are preceded by a virtio header.
    has_virtio_header: bool,
    /// Whether super-packets of UDP, and of TCP, may be written. Linux takes the first since 6.2.
    takes_super_packets: [bool; 2],
    /// The ring by which frames come, if not by the socket's queue.
    ring: Option<Ring>,
    /// Frames for which the socket's queue had no room, without a ring.
    overflowed: u32,
    /// Frames that were dropped since there is a ring.
    dropped: u64,
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Length in the buffer.
    pub(crate) len: usize,
    /// When the frame arrived, according to the kernel, in nanoseconds of the monotonic clock.
    pub(crate) arrived_ns: u64,
    /// Time for which it waited to be read, in nanoseconds.
    pub(crate) waited_ns: u64,
    /// Whether the frame exceeded the buffer, or is a super-packet of a kind that the kernel cannot describe.
    pub(crate) is_cut: bool,
    /// Offloaded work.
    pub(crate) offload: Offload,
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The frame was delivered.
    Delivered,
    /// The other end has no room for it.
    NoRoom,
    /// The other end has left, with its namespace.
    Gone,
}

impl Interface {
    /// Opens the network interface `name` of this network namespace. All its frames are read; written frames bypass the
    /// kernel's IP. Needs `CAP_NET_RAW` in the namespace.
    ///
    /// # Errors
    /// If there is no such interface, or the privilege is missing.
    pub fn open(name: &str) -> io::Result<Interface> {
        Ok(Interface { takes_super_packets: [true; 2], ..Interface::bind(name)?.0 })
    }

    /// Opens an interface as a port of a wire: also frames for other hardware addresses are read (promiscuous mode), with
    /// their VLAN tags, and those that this host sends are not.
    ///
    /// # Errors
    /// As [`open`](Interface::open).
    pub fn open_port(name: &str) -> io::Result<Interface> {
        let (mut interface, address) = Interface::bind(name)?;
        socket::setsockopt(&interface.socket, options::IgnoreOutgoing, &true)?;
        socket::setsockopt(&interface.socket, options::Auxiliary, &true)?;
        let everything = libc::packet_mreq {
            mr_ifindex: address.ifindex() as i32,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        socket::setsockopt(&interface.socket, options::Membership, &everything)?;
        interface.control = cmsg_space!(TimeSpec, u32, [u32; 5]);
        Ok(interface)
    }

    /// Opens an interface for frames that are sent over it, as those of this host: all its hooks and queues see them, with this
    /// mark. None is read.
    ///
    /// # Errors
    /// As [`open`](Interface::open), and if the interface is not one of Ethernet frames, as those of many modems and tunnels.
    pub fn open_exit(name: &str, mark: u32) -> io::Result<Interface> {
        let address = link_address(name)?;
        if address.hatype() != libc::ARPHRD_ETHER {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("the interface {name} carries IP packets without Ethernet's header"),
            ));
        }
        let interface = Interface::bound(&address, None)?;
        socket::setsockopt(&interface.socket, sockopt::Mark, &mark)?;
        Ok(Interface { takes_super_packets: [true; 2], ..interface })
    }

    fn bind(name: &str) -> io::Result<(Interface, LinkAddr)> {
        let address = link_address(name)?;
        Ok((Interface::bound(&address, Some(SockProtocol::EthAll))?, address))
    }

    /// A socket for the frames of an interface; it reads none without a protocol.
    fn bound(address: &LinkAddr, protocol: Option<SockProtocol>) -> io::Result<Interface> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket::socket(AddressFamily::Packet, SockType::Raw, flags, protocol)?;
        socket::setsockopt(&socket, options::VirtioHeader, &true)?;
        socket::bind(socket.as_raw_fd(), address)?;
        Ok(Interface { has_virtio_header: true, ..Interface::new(socket)? })
    }

    /// An interface that is a datagram socket: each datagram is a frame.
    ///
    /// # Errors
    /// If the socket lacks an option.
    pub fn new(socket: OwnedFd) -> io::Result<Interface> {
        // Exceeding the system's limit requires privileges.
        if socket::setsockopt(&socket, sockopt::RcvBufForce, &BUFFER).is_err() {
            socket::setsockopt(&socket, sockopt::RcvBuf, &BUFFER)?;
        }
        socket::setsockopt(&socket, sockopt::SndBuf, &BUFFER)?;
        socket::setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        socket::setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        let control = cmsg_space!(TimeSpec, u32);
        Ok(Interface {
            socket,
            control,
            has_virtio_header: false,
            takes_super_packets: [false; 2],
            ring: None,
            overflowed: 0,
            dropped: 0,
        })
    }

    /// Lets frames come by a [ring](Ring) from now on, if the kernel has rings; otherwise they go on to be read from the
    /// socket. Those that wait are lost.
    pub fn with_ring(mut self) -> Interface {
        self.ring = Ring::new(&self.socket).ok();
        self
    }

    /// Gives up a ring that is stuck. To be called now and then.
    pub(crate) fn mend_ring(&mut self) -> io::Result<()> {
        let Some(ring) = &mut self.ring else { return Ok(()) };
        let dropped = Ring::dropped(&self.socket)?;
        self.dropped += u64::from(dropped);
        if ring.is_stuck(dropped)
            && let Some(ring) = self.ring.take()
        {
            // The frame that stopped it may come again. The queue passes over it.
            ring.close(&self.socket)?;
        }
        Ok(())
    }

    /// Reads a frame; `None` if there is none.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let Some(ring) = &mut self.ring else { return self.receive_queued(buffer) };
        while let Some(read) = ring.read(|frame| match frame.truncation {
            Truncation::None => Ok(copy(frame, buffer)),
            other => Err(other),
        }) {
            match read {
                Ok(received) => return Ok(Some(received)),
                Err(Truncation::Queued) => {
                    let queued = self.receive_queued(buffer)?;
                    // A pending error of the socket is reported once, before its frames.
                    return if queued.is_some() { Ok(queued) } else { self.receive_queued(buffer) };
                }
                Err(_) => self.dropped += 1,
            }
        }
        Ok(None)
    }

    /// Reads a frame from the socket's queue.
    fn receive_queued(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut header = [0; VIRTIO_HEADER];
        let header_len = if self.has_virtio_header { VIRTIO_HEADER } else { 0 };
        let mut slices = [IoSliceMut::new(&mut header[..header_len]), IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message =
            match socket::recvmsg::<()>(self.socket.as_raw_fd(), &mut slices, Some(&mut self.control), flags)
            {
                Ok(message) => message,
                // The other end has left, with its namespace.
                Err(Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV | Errno::ECONNRESET) => return Ok(None),
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                // The header cannot describe this super-packet, such as one of SCTP. It is gone.
                Err(Errno::EINVAL) if self.has_virtio_header => {
                    let (arrived_ns, offload) = (clock::monotonic_ns(), Offload::default());
                    return Ok(Some(Received { len: 0, arrived_ns, waited_ns: 0, is_cut: true, offload }));
                }
                Err(error) => return Err(error.into()),
            };
        let (mut waited_ns, mut tag) = (0, None);
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(time) => {
                    let ns = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
                    waited_ns = clock::age_of_timestamp(ns);
                }
                // With a ring, the socket counts them otherwise.
                ControlMessageOwned::RxqOvfl(total) if self.ring.is_none() => self.overflowed = total,
                ControlMessageOwned::Unknown(other) => tag = vlan_tag(&other.data_bytes),
                _ => {}
            }
        }
        let is_cut = message.flags.contains(MsgFlags::MSG_TRUNC);
        let mut len = message.bytes.saturating_sub(header_len);
        let mut offload = if self.has_virtio_header { Offload::parse(&header) } else { Offload::default() };
        if let Some(tag) = tag.filter(|_| !is_cut && len >= ADDRESSES && len + 4 <= buffer.len()) {
            buffer.copy_within(ADDRESSES..len, ADDRESSES + 4);
            buffer[ADDRESSES..ADDRESSES + 4].copy_from_slice(&tag);
            len += 4;
            offload.checksum = offload.checksum.map(|(start, at)| (start + 4, at + 4));
        }
        let arrived_ns = clock::monotonic_ns().saturating_sub(waited_ns);
        Ok(Some(Received { len, arrived_ns, waited_ns, is_cut, offload }))
    }

    /// Writes a frame.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<Sent> {
        self.send_parts(frame, &[])
    }

    /// Writes a frame that is in two parts.
    pub(crate) fn send_parts(&self, link_header: &[u8], packet: &[u8]) -> io::Result<Sent> {
        self.write(&[0; VIRTIO_HEADER], link_header, packet)
    }

    /// Whether [super-packets](Interface::send_super_packet) of TCP, or of UDP, may be written.
    pub(crate) fn takes_super_packets(&self, is_tcp: bool) -> bool {
        self.takes_super_packets[usize::from(is_tcp)]
    }

    /// Writes a super-packet, or its packets if the kernel does not take it; the outcome is then that of the last one.
    pub(crate) fn send_super_packet(
        &mut self,
        link_header: &[u8],
        packet: &SuperPacket<'_>,
    ) -> io::Result<Sent> {
        match self.write(&virtio::header(packet, link_header.len()), link_header, packet.bytes) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                self.takes_super_packets[usize::from(packet.is_tcp)] = false;
            }
            sent => return sent,
        }
        let whole = IpPacket::parse(packet.bytes).map_err(io::Error::other)?;
        let packets =
            offload::segments(&whole, packet.segment_size, Cwr::FirstOnly).map_err(io::Error::other)?;
        let mut outcome = Sent::Delivered;
        for packet in packets {
            outcome = self.send_parts(link_header, &packet)?;
        }
        Ok(outcome)
    }

    fn write(
        &self,
        virtio_header: &[u8; VIRTIO_HEADER],
        link_header: &[u8],
        packet: &[u8],
    ) -> io::Result<Sent> {
        let virtio_len = if self.has_virtio_header { VIRTIO_HEADER } else { 0 };
        let parts = [&virtio_header[..virtio_len], link_header, packet];
        let slices = parts.map(IoSlice::new);
        let flags = MsgFlags::MSG_DONTWAIT;
        loop {
            return match socket::sendmsg::<()>(self.socket.as_raw_fd(), &slices, &[], flags, None) {
                Ok(_) => Ok(Sent::Delivered),
                Err(Errno::EINTR) => continue,
                // Nor is a frame sent that exceeds the interface's MTU.
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EMSGSIZE) => Ok(Sent::NoRoom),
                Err(Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV | Errno::ECONNREFUSED | Errno::EPIPE) => {
                    Ok(Sent::Gone)
                }
                Err(error) => Err(error.into()),
            };
        }
    }

    /// Frames for which the socket's queue, or the ring, had no room. To be called once, at the end.
    pub(crate) fn overflowed(&self) -> u64 {
        let dropped = if self.ring.is_some() { Ring::dropped(&self.socket).unwrap_or_default() } else { 0 };
        u64::from(self.overflowed) + self.dropped + u64::from(dropped)
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The hardware address of an interface of this network namespace, with its number.
fn link_address(name: &str) -> io::Result<LinkAddr> {
    let address = getifaddrs()?
        .filter(|each| each.interface_name == name)
        .find_map(|each| each.address?.as_link_addr().copied());
    address.ok_or_else(|| match nix::net::if_::if_nametoindex(name) {
        Ok(_) => io::Error::new(
            io::ErrorKind::Unsupported,
            format!("the network interface {name} has no addresses of Ethernet, which its frames need"),
        ),
        Err(_) => io::Error::new(io::ErrorKind::NotFound, format!("there is no network interface {name}")),
    })
}

/// Copies a frame of the ring.
fn copy(frame: Frame<'_>, buffer: &mut [u8]) -> Received {
    let len = frame.bytes.len().min(buffer.len());
    buffer[..len].copy_from_slice(&frame.bytes[..len]);
    let waited_ns = clock::age_of_timestamp(frame.arrived_ns);
    let arrived_ns = clock::monotonic_ns().saturating_sub(waited_ns);
    let (is_cut, offload) = (len < frame.bytes.len(), Offload::parse(frame.virtio_header));
    Received { len, arrived_ns, waited_ns, is_cut, offload }
}

/// The VLAN tag in the auxiliary data of a frame (`struct tpacket_auxdata`).
fn vlan_tag(data: &[u8]) -> Option<[u8; 4]> {
    let status = u32::from_ne_bytes(data.get(..4)?.try_into().ok()?);
    let word = |at: usize| Some(u16::from_ne_bytes(data.get(at..at + 2)?.try_into().ok()?));
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID == 0 { 0x8100 } else { word(18)? };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), word(16)?.to_be_bytes());
    Some([a, b, c, d])
}

/// Drops all capabilities of this thread and of the programs that it executes. Open files stay open.
///
/// # Errors
/// If the kernel refuses.
pub fn drop_privileges() -> io::Result<()> {
    use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
    let none = CapabilitySet::empty();
    nix::sys::prctl::set_no_new_privs()?;
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_where_the_kernel_says_that_there_is_one() {
        let data = |status: u32| {
            let mut data = [0; 20];
            data[..4].copy_from_slice(&status.to_ne_bytes());
            data[16..18].copy_from_slice(&0x2064_u16.to_ne_bytes());
            data[18..].copy_from_slice(&0x88a8_u16.to_ne_bytes());
            data
        };
        let (tagged, named) = (libc::TP_STATUS_VLAN_VALID, libc::TP_STATUS_VLAN_TPID_VALID);
        assert_eq!(vlan_tag(&data(0)), None);
        assert_eq!(vlan_tag(&data(named)), None);
        assert_eq!(vlan_tag(&data(tagged)), Some([0x81, 0x00, 0x20, 0x64]));
        assert_eq!(vlan_tag(&data(tagged | named)), Some([0x88, 0xa8, 0x20, 0x64]));
        assert_eq!(vlan_tag(&data(tagged)[..10]), None, "cut short");
    }
}
