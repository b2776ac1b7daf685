//! The bytes of the packets in the network, by their handles.

use crate::emulation::{Entering, Side};
use lasthop_base::Time;
use lasthop_proto::{Handle, Packet};
use lasthop_wire::{Error, IpPacket, LinkType, edit};

use crate::segments;

/// Length of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

/// Where and when a frame entered the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) at: Time,
    pub(crate) side: Side,
    /// The recorded TCP connection to which it belongs.
    pub(crate) connection: Option<u32>,
}

/// Whether a packet may be merged with others that leave with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mergeable {
    /// No, such as the packets of a split connection's base station.
    No,
    /// A datagram of UDP, which sockets receive as it was.
    Datagram,
    /// A segment of TCP, while packets are dense: receivers acknowledge super-packets less often.
    Segment,
}

/// Maximum number of bytes in the network, since unbounded queues grow with an unbounded sender.
const MAX_BYTES: usize = 256 << 20;

/// A frame in the network.
#[derive(Debug)]
pub(crate) struct Frame {
    handle: Handle,
    /// The frame as it entered the network, with its Ethernet header.
    pub(crate) bytes: Vec<u8>,
    /// Delay between arrival and entry, in nanoseconds.
    pub(crate) delayed_ns: u64,
    /// `No` unless the frame is an untagged IP packet with valid checksums.
    pub(crate) mergeable: Mergeable,
    /// The packet as it entered, without its handle.
    pub(crate) entered: Entering,
    /// The window scale applied to its segment.
    pub(crate) scale: u8,
    pub(crate) origin: Origin,
}

impl Frame {
    /// Whether a packet was changed in the network.
    pub(crate) fn is_changed(&self, packet: &Packet) -> bool {
        let Entering { ecn, dscp, segment, .. } = &self.entered;
        (packet.ecn, packet.dscp) != (*ecn, *dscp)
            || segment.as_ref().is_some_and(|it| packet.segment() != Some(it))
    }

    /// Writes the changes into `bytes`, a copy of those of the packet as it entered.
    pub(crate) fn change(&self, bytes: &mut [u8], packet: &Packet) -> Result<(), Error> {
        edit::set_ecn(bytes, packet.ecn)?;
        edit::set_dscp(bytes, packet.dscp)?;
        match (&self.entered.segment, packet.segment()) {
            (Some(before), Some(after)) => segments::write(bytes, before, after, self.scale),
            _ => Ok(()),
        }
    }
}

/// The IP packet of a frame without a VLAN tag.
pub(crate) fn ip_packet(frame: &[u8]) -> Option<IpPacket<'_>> {
    let bytes = LinkType::ETHERNET.network_layer(frame).ok()?;
    let is_untagged = frame.len() - bytes.len() == ETHERNET;
    IpPacket::parse(bytes).ok().filter(|_| is_untagged)
}

/// Frames by handle. Slots and their memory are reused.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    slots: Vec<Frame>,
    free: Vec<usize>,
    bytes: usize,
    /// The memory of the bytes in all slots, in use or free.
    capacity: usize,
}

impl Frames {
    /// Stores a copy of a frame that enters the network as `entering`, with a new handle; returns the stored frame.
    ///
    /// # Panics
    /// If [all slots](Handle::MAX_SLOT) are in use.
    pub(crate) fn insert(
        &mut self,
        bytes: &[u8],
        delayed_ns: u64,
        entering: Entering,
        scale: u8,
        origin: Origin,
    ) -> &mut Frame {
        self.bytes += bytes.len();
        if let Some(index) = self.free.pop() {
            let frame = &mut self.slots[index];
            let generation = (frame.handle.0 >> Handle::MAX_SLOT.count_ones()).wrapping_add(1);
            frame.handle = Handle::new(index + 1, generation);
            self.capacity -= frame.bytes.capacity();
            frame.bytes.clear();
            frame.bytes.extend_from_slice(bytes);
            self.capacity += frame.bytes.capacity();
            (frame.delayed_ns, frame.scale, frame.origin) = (delayed_ns, scale, origin);
            frame.mergeable = Mergeable::No;
            frame.entered = Entering { handle: frame.handle, ..entering };
            return frame;
        }
        let index = self.slots.len();
        let handle = Handle::new(index + 1, 0);
        let entered = Entering { handle, ..entering };
        let (bytes, mergeable) = (bytes.to_vec(), Mergeable::No);
        self.capacity += bytes.capacity();
        self.slots.push(Frame { handle, bytes, delayed_ns, mergeable, entered, scale, origin });
        &mut self.slots[index]
    }

    /// The frame of a handle; `None` if it was removed.
    pub(crate) fn get(&mut self, handle: Handle) -> Option<&mut Frame> {
        self.slots.get_mut(handle.slot().checked_sub(1)?).filter(|frame| frame.handle == handle)
    }

    /// Removes a frame; stale handles are ignored.
    pub(crate) fn remove(&mut self, handle: Handle) {
        let Some(frame) = self.get(handle) else { return };
        let len = frame.bytes.len();
        // No packet has this handle until the slot is reused.
        frame.handle.0 &= !(Handle::MAX_SLOT as u32);
        self.bytes -= len;
        self.free.push(handle.slot() - 1);
    }

    /// Whether there is room for another frame of `len` bytes.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.bytes + len <= MAX_BYTES && self.len() < Handle::MAX_SLOT
    }

    /// The number of frames.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The number of slots, in use or free.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Removes the frames whose handles `keep` does not hold for.
    pub(crate) fn retain(&mut self, keep: impl Fn(Handle) -> bool) {
        for index in 0..self.slots.len() {
            let handle = self.slots[index].handle;
            // The handle of a free slot has no slot number.
            if handle.slot() > 0 && !keep(handle) {
                self.remove(handle);
            }
        }
    }

    /// The memory of all slots, in use or free.
    pub(crate) fn memory(&self) -> usize {
        self.capacity + self.slots.capacity() * size_of::<Frame>()
    }

    /// Gives back the memory for bytes of free slots.
    pub(crate) fn trim(&mut self) {
        for index in &self.free {
            let bytes = std::mem::take(&mut self.slots[*index].bytes);
            self.capacity -= bytes.capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_base::Bytes;
    use lasthop_proto::{Dscp, Ecn};

    #[test]
    fn a_handle_finds_its_frame_and_no_later_one() {
        let entering = Entering {
            handle: Handle::NONE,
            size: Bytes(1),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            segment: None,
        };
        let mut frames = Frames::default();
        let origin = Origin { at: Time::ZERO, side: Side::Source, connection: None };
        let insert =
            |frames: &mut Frames, byte: u8| frames.insert(&[byte; 3], 0, entering, 0, origin).entered.handle;
        let (one, two) = (insert(&mut frames, 1), insert(&mut frames, 2));
        assert_eq!((frames.len(), frames.bytes), (2, 6));
        frames.remove(one);
        frames.remove(one);
        assert!(frames.get(one).is_none() && frames.get(Handle::NONE).is_none());
        for generation in 1..5_000 {
            let next = insert(&mut frames, 3);
            assert_eq!((next.slot(), next == one), (one.slot(), generation == 4_096));
            assert_eq!(frames.get(next).expect("in use").bytes, [3; 3]);
            frames.remove(next);
        }
        assert_eq!(frames.get(two).expect("in use").bytes, [2; 3]);
        assert_eq!((frames.len(), frames.bytes), (1, 3));
        let slots = frames.slots.capacity() * size_of::<Frame>();
        assert!(frames.memory() >= slots + 6, "with that of free slots");
        frames.trim();
        assert_eq!(frames.memory(), slots + frames.get(two).expect("in use").bytes.capacity());
        let three = insert(&mut frames, 4);
        assert_eq!(frames.get(three).expect("in use").bytes, [4; 3]);
    }
}
