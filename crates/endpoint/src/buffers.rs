//! The send and receive buffers of a connection.

use std::collections::VecDeque;
use std::io::Read;

use lasthop_proto::tcp::SeqNum;

/// Bytes that the application has written and the peer has not acknowledged.
#[derive(Debug)]
pub(crate) struct SendBuffer {
    bytes: VecDeque<u8>,
    capacity: usize,
    /// Sequence number of the first byte, once known.
    start: SeqNum,
    /// Bytes acknowledged and removed.
    removed: u64,
}

impl SendBuffer {
    pub(crate) fn new(capacity: usize) -> SendBuffer {
        SendBuffer { bytes: VecDeque::new(), capacity, start: SeqNum(0), removed: 0 }
    }

    /// Sets the sequence number of the first byte.
    pub(crate) fn begin_at(&mut self, start: SeqNum) {
        self.start = start;
    }

    /// Free space in bytes.
    pub(crate) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.bytes.len())
    }

    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends as many bytes as fit; returns their number.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> usize {
        let len = bytes.len().min(self.room());
        self.bytes.extend(&bytes[..len]);
        len
    }

    /// Frees acknowledged bytes; `acknowledged` counts from the start of the stream.
    pub(crate) fn acknowledge(&mut self, acknowledged: u64) {
        let len = (acknowledged - self.removed) as usize;
        self.bytes.drain(..len);
        self.start += len as u32;
        self.removed = acknowledged;
    }

    /// Copies the payload `seq..seq + len`; also returns whether it ends at the end of the buffer.
    ///
    /// # Panics
    /// If the range is not in the buffer.
    pub(crate) fn segment(&self, seq: SeqNum, len: u32) -> (Vec<u8>, bool) {
        let (from, len) = ((seq - self.start) as usize, len as usize);
        let mut payload = Vec::with_capacity(len);
        let (front, back) = self.bytes.as_slices();
        let (first, second) = (from.min(front.len()), (from + len).min(front.len()));
        payload.extend_from_slice(&front[first..second]);
        payload.extend_from_slice(
            &back[from.max(front.len()) - front.len()..(from + len).max(front.len()) - front.len()],
        );
        (payload, from + len == self.bytes.len())
    }
}

/// Received bytes that the application has not read.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBuffer {
    /// In-order bytes, then out-of-order bytes with gaps, up to the highest byte received.
    bytes: VecDeque<u8>,
    /// Number of in-order bytes.
    ready: usize,
    /// Whether the application no longer reads.
    closed: bool,
}

impl ReceiveBuffer {
    /// Number of in-order bytes.
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Discards the contents, and everything that arrives later.
    pub(crate) fn close(&mut self) {
        *self = ReceiveBuffer { closed: true, ..ReceiveBuffer::default() };
    }

    /// Stores bytes that start `offset` bytes after the in-order data.
    pub(crate) fn store(&mut self, offset: usize, bytes: &[u8]) {
        let (from, end) = (self.ready + offset, self.ready + offset + bytes.len());
        if from == self.bytes.len() {
            self.bytes.extend(bytes);
            return;
        }
        if bytes.is_empty() {
            return;
        }
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        self.bytes.range_mut(from..end).zip(bytes).for_each(|(slot, byte)| *slot = *byte);
    }

    /// Marks the next `len` stored bytes as in order.
    pub(crate) fn deliver(&mut self, len: usize) {
        self.ready += len;
        debug_assert!(self.ready <= self.bytes.len(), "bytes are stored before they are delivered");
    }

    /// Moves in-order bytes into `buffer`; returns their number.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let len = self.ready.min(buffer.len());
        self.bytes.read_exact(&mut buffer[..len]).expect("there are as many bytes");
        self.ready -= len;
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_cut_from_a_buffer_that_wraps() {
        let mut send_buffer = SendBuffer::new(8);
        send_buffer.begin_at(SeqNum(u32::MAX - 3));
        assert_eq!(send_buffer.push(b"abcdefghij"), 8);
        send_buffer.acknowledge(5);
        assert_eq!((send_buffer.push(b"ijklmn"), send_buffer.room()), (5, 0));
        let all = b"fghijklm";
        for from in 0..8u32 {
            for len in 0..=8 - from {
                let expected = &all[from as usize..(from + len) as usize];
                assert_eq!(send_buffer.segment(SeqNum(1) + from, len), (expected.to_vec(), from + len == 8));
            }
        }
    }

    #[test]
    fn bytes_out_of_order_are_kept_until_the_gap_is_filled() {
        let mut receive_buffer = ReceiveBuffer::default();
        let mut read = [0; 4];
        receive_buffer.store(3, b"def");
        receive_buffer.store(0, b"ab");
        receive_buffer.deliver(2);
        assert_eq!((receive_buffer.read(&mut read), &read[..2]), (2, &b"ab"[..]));
        receive_buffer.store(0, b"c");
        receive_buffer.deliver(4);
        receive_buffer.store(2, b"junk");
        assert_eq!((receive_buffer.read(&mut read), &read), (4, b"cdef"));
        assert_eq!((receive_buffer.ready(), receive_buffer.read(&mut read)), (0, 0));
    }
}
