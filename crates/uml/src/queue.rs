//! The device's end of a split virtqueue (virtio 1.2 section 2.7).

use std::io;

use crate::broken;
use crate::memory::Memory;

/// Flags of a descriptor: another follows, and the device writes to it.
const NEXT: u16 = 1;
const WRITE: u16 = 2;

/// Flag of the driver: the device need not interrupt.
const NO_INTERRUPT: u16 = 1;

/// The most descriptors of a queue. Linux has 256.
const MOST: u32 = 1024;

/// The most bytes of a chain: a super-packet with its headers.
const LONGEST: usize = 1 << 17;

/// Buffers of a guest that belong together.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    head: u16,
    /// Addresses and lengths.
    parts: Vec<(u64, usize)>,
}

impl Chain {
    /// How many bytes it has room for.
    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|(_, len)| len).sum()
    }

    /// Reads all its bytes.
    pub(crate) fn read(&self, memory: &Memory, into: &mut Vec<u8>) -> io::Result<()> {
        into.resize(self.len(), 0);
        let mut rest = &mut into[..];
        for &(at, len) in &self.parts {
            let (part, others) = rest.split_at_mut(len);
            memory.read(at, part)?;
            rest = others;
        }
        Ok(())
    }

    /// Writes as many bytes as it has room for; returns how many.
    pub(crate) fn write(&self, memory: &Memory, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        for &(at, len) in &self.parts {
            let (part, others) = rest.split_at(len.min(rest.len()));
            memory.write(at, part)?;
            rest = others;
        }
        Ok(bytes.len() - rest.len())
    }
}

/// A virtqueue of a guest.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Number of descriptors, a power of two.
    size: u16,
    /// Addresses of the table of descriptors, and of the rings of buffers that the guest offers, and that were used.
    table: u64,
    offered: u64,
    used: u64,
    /// Counts of both.
    next_offered: u16,
    next_used: u16,
    pub(crate) is_enabled: bool,
}

impl Queue {
    pub(crate) fn set_size(&mut self, size: u32) -> io::Result<()> {
        if !size.is_power_of_two() || size > MOST {
            return Err(broken(format!("a queue of {size} descriptors")));
        }
        self.size = size as u16;
        Ok(())
    }

    pub(crate) fn set_base(&mut self, base: u32) -> io::Result<()> {
        let base = base.try_into().map_err(|_| broken(format!("a queue that begins at {base}")))?;
        (self.next_offered, self.next_used) = (base, base);
        Ok(())
    }

    pub(crate) fn set_addresses(&mut self, table: u64, offered: u64, used: u64) {
        (self.table, self.offered, self.used) = (table, offered, used);
    }

    /// Whether it may be used.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_enabled && self.size > 0
    }

    /// How many chains wait.
    pub(crate) fn waiting(&self, memory: &Memory) -> io::Result<u16> {
        let count = memory.read_u16(self.offered.wrapping_add(2))?.wrapping_sub(self.next_offered);
        if count > self.size {
            return Err(broken(format!("{count} buffers in a queue of {}", self.size)));
        }
        Ok(count)
    }

    /// The chain `ahead` of those that wait, whose buffers the device reads, or else writes.
    pub(crate) fn chain(&self, memory: &Memory, ahead: u16, is_read: bool) -> io::Result<Chain> {
        let slot = u64::from(self.next_offered.wrapping_add(ahead) & (self.size - 1));
        let head = memory.read_u16(self.offered.wrapping_add(4 + 2 * slot))?;
        let mut chain = Chain { head, parts: Vec::new() };
        let (mut index, mut total) = (head, 0);
        loop {
            if index >= self.size || chain.parts.len() == usize::from(self.size) {
                return Err(broken(format!("descriptor {index} of {} in a chain", self.size)));
            }
            let mut bytes = [0; 16];
            memory.read(self.table.wrapping_add(16 * u64::from(index)), &mut bytes)?;
            let [a, b, c, d, e, f, g, h, i, j, k, l, flags @ .., next_low, next_high] = bytes;
            let (at, len) = (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([i, j, k, l]));
            let flags = u16::from_le_bytes(flags);
            if flags & !NEXT != if is_read { 0 } else { WRITE } {
                return Err(broken(format!("a descriptor with the flags {flags:#x}")));
            }
            total += len as usize;
            if total > LONGEST {
                return Err(broken(format!("a chain of {total} bytes")));
            }
            chain.parts.push((at, len as usize));
            if flags & NEXT == 0 {
                return Ok(chain);
            }
            index = u16::from_le_bytes([next_low, next_high]);
        }
    }

    /// Gives the next of the chains that wait back to the guest, with `written` bytes. It sees them by
    /// [`publish`](Queue::publish).
    pub(crate) fn give_back(&mut self, memory: &Memory, chain: &Chain, written: usize) -> io::Result<()> {
        let slot = u64::from(self.next_used & (self.size - 1));
        let mut element = [0; 8];
        element[..4].copy_from_slice(&u32::from(chain.head).to_le_bytes());
        element[4..].copy_from_slice(&(written as u32).to_le_bytes());
        memory.write(self.used.wrapping_add(4 + 8 * slot), &element)?;
        self.next_offered = self.next_offered.wrapping_add(1);
        self.next_used = self.next_used.wrapping_add(1);
        Ok(())
    }

    /// Shows the guest all that was given back; returns whether it wants an interrupt for that.
    pub(crate) fn publish(&self, memory: &Memory) -> io::Result<bool> {
        memory.write(self.used.wrapping_add(2), &self.next_used.to_le_bytes())?;
        Ok(memory.read_u16(self.offered)? & NO_INTERRUPT == 0)
    }
}
