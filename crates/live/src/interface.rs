//! Network interfaces, as sockets that read and write frames.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    self, AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, sockopt,
};
use nix::sys::time::TimeSpec;

use crate::clock;

/// Receive and send buffers of a socket, in bytes. Packets wait there while the thread is busy.
const BUFFER: usize = 4 << 20;

/// An interface that reads and writes whole Ethernet frames.
#[derive(Debug)]
pub struct Interface {
    socket: OwnedFd,
    control: Vec<u8>,
    /// Frames that overflowed the buffer of the socket.
    overflowed: u32,
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    /// Length in the buffer.
    pub(crate) len: usize,
    /// Time for which the frame waited to be read, in nanoseconds.
    pub(crate) waited_ns: u64,
    /// Whether the frame exceeded the buffer.
    pub(crate) is_cut: bool,
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
        // An address with the interface's number.
        let address = getifaddrs()?
            .filter(|each| each.interface_name == name)
            .find_map(|each| each.address?.as_link_addr().copied());
        let address = address.ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no network interface {name}"))
        })?;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket::socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        socket::bind(socket.as_raw_fd(), &address)?;
        Interface::new(socket)
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
        Ok(Interface { socket, control: cmsg_space!(TimeSpec, u32), overflowed: 0 })
    }

    /// Reads a frame; `None` if there is none.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<Received>> {
        let mut slices = [IoSliceMut::new(buffer)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let message =
            match socket::recvmsg::<()>(self.socket.as_raw_fd(), &mut slices, Some(&mut self.control), flags)
            {
                Ok(message) => message,
                // The other end has left, with its namespace.
                Err(Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV | Errno::ECONNRESET) => return Ok(None),
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
        let mut waited_ns = 0;
        for control in message.cmsgs()? {
            match control {
                ControlMessageOwned::ScmTimestampns(time) => {
                    let ns = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
                    waited_ns = clock::age_of_timestamp(ns);
                }
                ControlMessageOwned::RxqOvfl(total) => self.overflowed = total,
                _ => {}
            }
        }
        let is_cut = message.flags.contains(MsgFlags::MSG_TRUNC);
        Ok(Some(Received { len: message.bytes, waited_ns, is_cut }))
    }

    /// Writes a frame.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<Sent> {
        loop {
            return match socket::send(self.socket.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT) {
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

    /// Frames lost because the socket's receive buffer overflowed.
    pub(crate) fn overflowed(&self) -> u64 {
        self.overflowed.into()
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
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
