//! The ring in which the kernel puts the frames that a packet socket receives: reading one takes no system call.
//!
//! ```text
//! device ──> kernel: copies each frame into the next slot ──> memory, shared ──> Ring::read ──> slot is free again
//!                    └─> socket's queue, if it is longer than a slot
//! ```
//!
//! The kernel hands a slot over by a word in it (Linux's `Documentation/networking/packet_mmap.rst`, `TPACKET_V2`). All
//! unsafe code that this takes is here. Linux only.

#![cfg(target_os = "linux")]

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::libc;
use nix::sys::socket::{getsockopt, setsockopt};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// Options of packet sockets (packet(7)), which nix does not define.
mod options {
    use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// The layout of slots.
        Version, SetOnly, libc::SOL_PACKET, libc::PACKET_VERSION, u32
    );
    sockopt_impl!(
        /// The size of the ring.
        Ring, SetOnly, libc::SOL_PACKET, libc::PACKET_RX_RING, libc::tpacket_req
    );
    sockopt_impl!(
        /// Whether frames that are longer than a slot are queued in the socket as well.
        QueueLongFrames, SetOnly, libc::SOL_PACKET, libc::PACKET_COPY_THRESH, bool
    );
    sockopt_impl!(
        /// Counters since the last read.
        Statistics, GetOnly, libc::SOL_PACKET, libc::PACKET_STATISTICS, libc::tpacket_stats
    );
}

/// Size of a slot in bytes: with the kernel's header, frames of Ethernet's usual size fit. Longer ones come by the queue of
/// the socket, more slowly than without a ring.
const SLOT: usize = 2048;

/// Number of slots. At 100,000 frames a second, the ring is full after 80 ms.
const SLOTS: usize = 8192;

/// Size of the blocks of memory that make up the ring, in bytes.
const BLOCK: usize = 1 << 16;

/// Size of the kernel's header in a slot, without the address that follows.
const HEADER: usize = size_of::<libc::tpacket2_hdr>();

/// Length of a virtio header, which describes work left to a network card (virtio 1.2 section 5.1.6).
pub const VIRTIO_HEADER: usize = 10;

/// What became of the bytes of a frame that its slot has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// The frame is whole.
    None,
    /// The whole frame is the next one in the socket's queue, to be received from there.
    Queued,
    /// The other bytes are lost, since that queue was full.
    Lost,
}

/// A frame in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// What precedes the frame: its virtio header, if the socket has this option (`PACKET_VNET_HDR`).
    pub virtio_header: &'a [u8; VIRTIO_HEADER],
    /// The frame, as far as its slot has room.
    pub bytes: &'a [u8],
    /// Where the rest is.
    pub truncation: Truncation,
    /// When the frame arrived, in nanoseconds of the real-time clock.
    pub arrived_ns: u64,
}

/// The ring of received frames of a packet socket.
#[derive(Debug)]
pub struct Ring {
    memory: NonNull<u8>,
    /// The slot of the next frame.
    next: usize,
    /// Whether no frame was read since the ring was found empty although frames had been dropped.
    is_suspect: bool,
}

// SAFETY: the memory belongs to the process, and is reachable by this value alone.
#[allow(unsafe_code, reason = "memory of the kernel")]
unsafe impl Send for Ring {}

impl Ring {
    /// Lets the frames that the socket receives from now on come by a ring, 16 MB of the kernel's memory. Those that wait
    /// in its queue are lost.
    ///
    /// # Errors
    /// If it is no packet socket, or the kernel has no rings or no memory. Frames then come by the queue.
    pub fn new(socket: &OwnedFd) -> io::Result<Ring> {
        setsockopt(socket, options::Version, &(libc::tpacket_versions::TPACKET_V2 as u32))?;
        setsockopt(socket, options::QueueLongFrames, &true)?;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: (SLOT * SLOTS / BLOCK) as u32,
            tp_frame_size: SLOT as u32,
            tp_frame_nr: SLOTS as u32,
        };
        setsockopt(socket, options::Ring, &request)?;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: the kernel chooses a place where there is no memory yet.
        #[allow(unsafe_code, reason = "memory of the kernel")]
        let mapped = unsafe {
            mmap(ptr::null_mut(), SLOT * SLOTS, ProtFlags::READ | ProtFlags::WRITE, flags, socket, 0)
        };
        match mapped.map(|memory| NonNull::new(memory.cast())) {
            Ok(Some(memory)) => Ok(Ring { memory, next: 0, is_suspect: false }),
            failed => {
                remove(socket)?;
                Err(failed.err().map_or_else(|| io::ErrorKind::OutOfMemory.into(), io::Error::from))
            }
        }
    }

    /// Passes the next frame to `take`, and frees its slot; `None` if there is none.
    pub fn read<T>(&mut self, take: impl FnOnce(Frame<'_>) -> T) -> Option<T> {
        if !self.is_filled() {
            return None;
        }
        // SAFETY: the slot is within the memory. Until it is freed, the kernel writes nothing to it.
        #[allow(unsafe_code, reason = "memory of the kernel")]
        let (header, bytes) = unsafe {
            let slot = self.memory.add(self.next * SLOT);
            let header = slot.cast::<libc::tpacket2_hdr>().read();
            (header, std::slice::from_raw_parts(slot.add(HEADER).as_ptr(), SLOT - HEADER))
        };
        let begin = usize::from(header.tp_mac).saturating_sub(HEADER).min(bytes.len());
        let (before, frame) = bytes.split_at(begin);
        let len = header.tp_snaplen as usize;
        let taken = take(Frame {
            virtio_header: before.last_chunk().unwrap_or(&[0; VIRTIO_HEADER]),
            bytes: &frame[..len.min(frame.len())],
            truncation: if header.tp_status & libc::TP_STATUS_COPY != 0 {
                Truncation::Queued
            } else if len < header.tp_len as usize || len > frame.len() {
                Truncation::Lost
            } else {
                Truncation::None
            },
            arrived_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
        });
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        self.is_suspect = false;
        Some(taken)
    }

    /// The number of frames that the socket has dropped since the last call.
    ///
    /// # Errors
    /// If it is no packet socket.
    pub fn dropped(socket: &OwnedFd) -> io::Result<u32> {
        Ok(getsockopt(socket, options::Statistics)?.tp_drops)
    }

    /// Whether the socket has dropped `dropped` frames although the ring was empty, at two calls in a row. It will then
    /// drop all others: Linux does not go on after a frame that a virtio header cannot describe, such as a super-packet of
    /// SCTP, or of UDP before Linux 6.2 (`tpacket_rcv`).
    pub fn is_stuck(&mut self, dropped: u32) -> bool {
        let is_suspect = dropped > 0 && !self.is_filled();
        let was_suspect = self.is_suspect;
        self.is_suspect |= is_suspect;
        was_suspect && is_suspect
    }

    /// Whether the kernel has filled the next slot.
    fn is_filled(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// The word by which the next slot is handed over.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: it is the first of the slot, within the memory, which is aligned to pages. The kernel and this value
        // access it by atomic operations, but for reading while the slot is filled.
        #[allow(unsafe_code, reason = "memory of the kernel")]
        unsafe {
            AtomicU32::from_ptr(self.memory.add(self.next * SLOT).cast().as_ptr())
        }
    }

    /// Lets frames come by the queue of the socket again. Those in the ring are lost.
    ///
    /// # Errors
    /// If it is not the socket of this ring.
    pub fn close(self, socket: &OwnedFd) -> io::Result<()> {
        drop(self);
        Ok(remove(socket)?)
    }
}

/// Removes the ring of a socket, of which no memory is mapped.
fn remove(socket: &OwnedFd) -> nix::Result<()> {
    let nothing = libc::tpacket_req { tp_block_size: 0, tp_block_nr: 0, tp_frame_size: 0, tp_frame_nr: 0 };
    setsockopt(socket, options::Ring, &nothing)
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the memory is used by this value alone.
        #[allow(unsafe_code, reason = "memory of the kernel")]
        let unmapped = unsafe { munmap(self.memory.as_ptr().cast(), SLOT * SLOTS) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use lasthop_testing::namespace;
    use nix::ifaddrs::getifaddrs;
    use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, bind, recv, socket};

    use super::*;

    /// As after a frame that the kernel cannot describe, its next slot is neither free nor filled.
    #[test]
    fn a_ring_that_is_stuck_is_noticed() {
        if !namespace::is_inside("tests::a_ring_that_is_stuck_is_noticed") {
            return;
        }
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().expect("ip runs").success());
        let flags = SockFlag::SOCK_CLOEXEC;
        let packets = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll);
        let packets = packets.expect("a socket");
        let addresses = getifaddrs().expect("addresses").filter(|each| each.interface_name == "lo");
        let address = addresses.filter_map(|each| each.address?.as_link_addr().copied()).next();
        bind(packets.as_raw_fd(), &address.expect("a number")).expect("a device");
        let mut ring = Ring::new(&packets).expect("a kernel with rings");
        let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
        let port = receiver.local_addr().expect("a port");
        // Leaving and arriving, each is a frame.
        let send = || assert_eq!(sender.send_to(&[7; 9], port).expect("room"), 9);
        let read = |ring: &mut Ring| {
            let mut count = 0;
            while ring.read(|frame| count += usize::from(frame.bytes.ends_with(&[7; 9]))).is_some() {}
            count
        };
        let dropped = || Ring::dropped(&packets).expect("a packet socket");
        send();
        assert_eq!(read(&mut ring), 2);
        assert!(!ring.is_stuck(dropped()) && !ring.is_stuck(dropped()));
        // An overflow that is over.
        assert!(!ring.is_stuck(5));
        send();
        assert_eq!(read(&mut ring), 2);
        assert!(!ring.is_stuck(5));
        send();
        assert!(!ring.is_stuck(5), "there are frames to read");
        assert_eq!(read(&mut ring), 2);

        #[allow(unsafe_code, reason = "memory of the kernel")]
        unsafe {
            ring.memory.add(ring.next * SLOT).cast::<u32>().write(libc::TP_STATUS_LOSING);
        }
        send();
        assert_eq!(read(&mut ring), 0);
        assert!(!ring.is_stuck(dropped()), "the first time");
        assert!(!ring.is_stuck(0), "nothing was dropped");
        send();
        assert!(ring.is_stuck(dropped()));
        ring.close(&packets).expect("its socket");
        send();
        let mut buffer = [0; 100];
        let len = recv(packets.as_raw_fd(), &mut buffer, MsgFlags::MSG_DONTWAIT).expect("a frame");
        assert!(buffer[..len].ends_with(&[7; 9]));
    }
}
