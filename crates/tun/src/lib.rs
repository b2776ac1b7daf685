//! A network interface of IP packets whose other end is this process (TUN).
//!
//! The kernel removes the interface, and the routes by it, when the process ends, in whatever way. The unsafe code that two
//! requests to the kernel take is here. Linux only.
//!
//! Before each packet is a virtio header (virtio 1.2 section 5.1.6): the kernel leaves segmentation and checksums to this
//! process, and takes super-packets from it. One of them costs little more than a packet.
//!
//! ```text
//! programs ══ routes ══ interface ══ this process
//!                                        receive: what they send
//!                                        send: what they get
//! ```

#![cfg(target_os = "linux")]

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;

mod requests {
    #![allow(missing_docs, reason = "the macro takes no comment")]

    nix::ioctl_write_int!(set_interface, b'T', 202);
    nix::ioctl_write_int!(set_offload, b'T', 208);
}

/// Length of a virtio header.
pub const VIRTIO_HEADER: usize = 10;

/// What the kernel may leave to this process: checksums, and segmentation of TCP with ECN and, since Linux 6.2, of UDP.
const CHECKSUMS_AND_TCP: libc::c_uint =
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
const UDP: libc::c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// A network interface.
#[derive(Debug)]
pub struct Tun {
    file: File,
    takes_udp: bool,
}

/// The kernel's `struct ifreq`: a name, flags, and room for other requests.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    flags: libc::c_short,
    rest: [u8; 22],
}

impl Tun {
    /// Makes the interface `name`, which is down. Needs `CAP_NET_ADMIN`.
    ///
    /// # Errors
    /// If the kernel has no such interfaces, another process has one of this name, or the privilege is missing.
    pub fn open(name: &str) -> io::Result<Tun> {
        let wrong = |error: io::Error| {
            let remedy = match error.kind() {
                ErrorKind::NotFound => "the kernel needs TUN, and the file /dev/net/tun",
                ErrorKind::ResourceBusy => "another process has an interface of this name",
                _ => "the interface cannot be made",
            };
            io::Error::new(error.kind(), format!("{name}: {remedy} ({error})"))
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let file = file.open("/dev/net/tun").map_err(wrong)?;
        let mut request = Request {
            name: [0; libc::IFNAMSIZ],
            flags: (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_TUN_EXCL | libc::IFF_VNET_HDR)
                as libc::c_short,
            rest: [0; 22],
        };
        let Some(place) = request.name.get_mut(..name.len()).filter(|place| place.len() < libc::IFNAMSIZ)
        else {
            return Err(io::Error::new(ErrorKind::InvalidInput, format!("{name}: the name is too long")));
        };
        place.copy_from_slice(name.as_bytes());
        #[allow(
            unsafe_code,
            reason = "the request has the layout that the kernel reads, and lives as long as the call"
        )]
        unsafe { requests::set_interface(file.as_raw_fd(), &raw mut request as libc::c_ulong) }
            .map_err(|error| wrong(error.into()))?;
        let mut tun = Tun { file, takes_udp: true };
        if tun.set_offload(CHECKSUMS_AND_TCP | UDP).is_err() {
            tun.takes_udp = false;
            tun.set_offload(CHECKSUMS_AND_TCP).map_err(wrong)?;
        }
        Ok(tun)
    }

    /// Whether the kernel knows super-packets of UDP: since Linux 6.2.
    pub fn takes_udp(&self) -> bool {
        self.takes_udp
    }

    fn set_offload(&self, offload: libc::c_uint) -> io::Result<()> {
        #[allow(unsafe_code, reason = "the request has no memory")]
        unsafe { requests::set_offload(self.file.as_raw_fd(), offload.into()) }?;
        Ok(())
    }

    /// Reads a packet that the kernel has routed to the interface, or a super-packet, and its header; returns its length, or `None`
    /// if there is none.
    ///
    /// # Errors
    /// If the interface fails.
    pub fn receive(
        &mut self,
        header: &mut [u8; VIRTIO_HEADER],
        buffer: &mut [u8],
    ) -> io::Result<Option<usize>> {
        match self.file.read_vectored(&mut [IoSliceMut::new(header), IoSliceMut::new(buffer)]) {
            Ok(len) => Ok(Some(len.saturating_sub(VIRTIO_HEADER))),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives the kernel a packet, as if it had arrived by the interface, or a super-packet with its header. Returns false if it does
    /// not take it: what is no IP packet, or of a kind that it does not know, or while the interface is down.
    ///
    /// # Errors
    /// If the interface fails.
    pub fn send(&mut self, header: &[u8; VIRTIO_HEADER], packet: &[u8]) -> io::Result<bool> {
        match self.file.write_vectored(&[IoSlice::new(header), IoSlice::new(packet)]) {
            Ok(len) => Ok(len == VIRTIO_HEADER + packet.len()),
            Err(error) => match error.raw_os_error() {
                Some(
                    libc::EINVAL | libc::EIO | libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR,
                ) => Ok(false),
                _ => Err(error),
            },
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
