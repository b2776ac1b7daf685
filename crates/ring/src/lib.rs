//! The ring in which the kernel puts the frames that a packet socket receives: reading one takes no call of the kernel.
//!
//! The kernel copies each frame into the next slot of memory that it shares with this process, and then hands the slot
//! over by a word in it (Linux's `Documentation/networking/packet_mmap.rst`, `TPACKET_V2`). This is the only crate with
//! the unsafe code that this takes. Linux only.

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
        /// What the socket has counted since the last time.
        Statistics, GetOnly, libc::SOL_PACKET, libc::PACKET_STATISTICS, libc::tpacket_stats
    );
}

/// Size of a slot in bytes: with the kernel's header, frames of Ethernet's usual size fit.
const SLOT: usize = 2048;

/// Number of slots. At 100,000 frames a second, the ring is full after 80 ms.
const SLOTS: usize = 8192;

/// Size of the pieces of which the kernel makes the ring, in bytes.
const BLOCK: usize = 1 << 16;

/// Size of the kernel's header in a slot, without the address that follows.
const HEADER: usize = size_of::<libc::tpacket2_hdr>();

/// What became of the bytes of a frame that its slot has no room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// There are none: the frame is whole.
    None,
    /// The whole frame is the next one in the socket's queue, to be received from there.
    Queued,
    /// They are lost, since that queue was full.
    Lost,
}

/// A frame in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The virtio header before the frame.
    pub virtio_header: &'a [u8],
    /// The beginning of the frame: all of it, unless it is longer than a slot.
    pub bytes: &'a [u8],
    /// Where the rest is.
    pub rest: Rest,
    /// When the frame arrived, in nanoseconds of the real-time clock.
    pub arrived_ns: u64,
}

/// The ring of received frames of a packet socket.
#[derive(Debug)]
pub struct Ring {
    memory: NonNull<u8>,
    virtio_header: usize,
    /// The slot of the next frame.
    next: usize,
}

// SAFETY: the memory belongs to the process, and is reachable by this value alone.
#[allow(unsafe_code, reason = "memory of the kernel")]
unsafe impl Send for Ring {}

impl Ring {
    /// Lets the frames that the socket receives from now on come by a ring, 16 MB of the kernel's memory; those that
    /// wait in its queue are lost. `virtio_header` is the length of the header that precedes frames, if the socket has
    /// this option: 0 or 10.
    ///
    /// # Errors
    /// If it is no packet socket, or the kernel has no rings or no memory.
    pub fn new(socket: &OwnedFd, virtio_header: usize) -> io::Result<Ring> {
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
        let memory = unsafe {
            mmap(ptr::null_mut(), SLOT * SLOTS, ProtFlags::READ | ProtFlags::WRITE, flags, socket, 0)
        }?;
        let memory = NonNull::new(memory.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { memory, virtio_header, next: 0 })
    }

    /// Passes the next frame to `take`, and frees its slot; `None` if there is none.
    pub fn read<T>(&mut self, take: impl FnOnce(Frame<'_>) -> T) -> Option<T> {
        // SAFETY: the slot is within the memory, which is aligned to pages. Its first word is written by the kernel
        // and here, by atomic operations. As long as it has this flag, the kernel writes to nothing in the slot.
        #[allow(unsafe_code, reason = "memory of the kernel")]
        let (status, header, bytes) = unsafe {
            let slot = self.memory.add(self.next * SLOT);
            let status = AtomicU32::from_ptr(slot.cast().as_ptr());
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return None;
            }
            let header = slot.cast::<libc::tpacket2_hdr>().read();
            (status, header, std::slice::from_raw_parts(slot.add(HEADER).as_ptr(), SLOT - HEADER))
        };
        let begin = usize::from(header.tp_mac).saturating_sub(HEADER).min(bytes.len());
        let (before, frame) = bytes.split_at(begin);
        let len = header.tp_snaplen as usize;
        let taken = take(Frame {
            virtio_header: &before[begin.saturating_sub(self.virtio_header)..],
            bytes: &frame[..len.min(frame.len())],
            rest: if header.tp_status & libc::TP_STATUS_COPY != 0 {
                Rest::Queued
            } else if len < header.tp_len as usize || len > frame.len() {
                Rest::Lost
            } else {
                Rest::None
            },
            arrived_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec),
        });
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % SLOTS;
        Some(taken)
    }

    /// The number of frames for which the socket had no room since the last call.
    ///
    /// # Errors
    /// If it is no packet socket.
    pub fn overflowed(socket: &OwnedFd) -> io::Result<u32> {
        Ok(getsockopt(socket, options::Statistics)?.tp_drops)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the memory is used by this value alone.
        #[allow(unsafe_code, reason = "memory of the kernel")]
        let unmapped = unsafe { munmap(self.memory.as_ptr().cast(), SLOT * SLOTS) };
        debug_assert!(unmapped.is_ok());
    }
}
