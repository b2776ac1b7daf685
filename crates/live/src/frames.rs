//! The bytes of the packets in the network, by their handles.

use lasthop_proto::Handle;

/// A frame in the network.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    /// With its Ethernet header.
    pub(crate) bytes: Vec<u8>,
    /// Time that it waited to be read, in nanoseconds.
    pub(crate) waited_ns: u64,
}

/// Frames by handle; their memory is used again.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    slots: Vec<Frame>,
    free: Vec<u32>,
    bytes: usize,
}

impl Frames {
    /// Keeps a copy of a frame.
    pub(crate) fn insert(&mut self, bytes: &[u8], waited_ns: u64) -> Handle {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Frame::default());
            self.slots.len() as u32 - 1
        });
        let frame = &mut self.slots[index as usize];
        frame.bytes.clear();
        frame.bytes.extend_from_slice(bytes);
        frame.waited_ns = waited_ns;
        self.bytes += bytes.len();
        Handle(index + 1)
    }

    /// The frame of a handle, which must be in use.
    pub(crate) fn get(&mut self, handle: Handle) -> &mut Frame {
        &mut self.slots[handle.0 as usize - 1]
    }

    /// Forgets a frame.
    pub(crate) fn remove(&mut self, handle: Handle) {
        self.bytes -= self.get(handle).bytes.len();
        self.free.push(handle.0 - 1);
    }

    /// The number of frames.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// The sum of their lengths.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}
