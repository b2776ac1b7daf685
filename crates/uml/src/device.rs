//! The network card of a guest: the back end of vhost-user, as far as Linux's `arch/um/drivers/virtio_uml.c` speaks it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use crate::memory::Memory;
use crate::queue::Queue;
use crate::{broken, patient};

/// Requests of a guest.
mod request {
    pub(super) const GET_FEATURES: u32 = 1;
    pub(super) const SET_FEATURES: u32 = 2;
    pub(super) const SET_OWNER: u32 = 3;
    pub(super) const SET_MEMORY: u32 = 5;
    pub(super) const SET_SIZE: u32 = 8;
    pub(super) const SET_ADDRESSES: u32 = 9;
    pub(super) const SET_BASE: u32 = 10;
    pub(super) const GET_PROTOCOL_FEATURES: u32 = 15;
    pub(super) const SET_PROTOCOL_FEATURES: u32 = 16;
    pub(super) const ENABLE: u32 = 18;
    pub(super) const SET_INTERRUPTS: u32 = 21;
    pub(super) const KICK: u32 = 35;
}

/// Features: a modern device, whose received frames may fill several buffers, and that has features of the protocol.
/// Guests compute checksums and cut segments themselves, as those of a network card without offloading.
const FEATURES: u64 = 1 << 32 | MERGE_BUFFERS | 1 << 30;
const MERGE_BUFFERS: u64 = 1 << 15;

/// Features of the protocol: each request is confirmed; interrupts and kicks are messages.
const PROTOCOL_FEATURES: u64 = 1 << 3 | 1 << 5 | 1 << 14;

/// Length of the header before each frame (virtio 1.2 section 5.1.6).
const HEADER: usize = 12;

/// The queues of received and of sent frames.
pub(crate) const RECEIVED: usize = 0;
const SENT: usize = 1;

/// What became of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Handled {
    /// The answer, which other requests than those for a value have only if the guest asks for it.
    pub(crate) value: Option<u64>,
    /// Whether the guest has frames to be [sent](Device::take_sent).
    pub(crate) is_kick: bool,
}

/// The network card of one guest.
#[derive(Debug, Default)]
pub(crate) struct Device {
    memory: Option<Memory>,
    queues: [Queue; 2],
    merges_buffers: bool,
    /// Whether each queue has an interrupt that the guest was not told of.
    pub(crate) interrupts: [bool; 2],
    /// Where interrupts are sent.
    pub(crate) interrupt_socket: Option<UnixStream>,
    buffer: Vec<u8>,
}

/// The numbers of a request.
struct Words<'a>(&'a [u8]);

impl Words<'_> {
    fn u32(&self, at: usize) -> io::Result<u32> {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u32::from_le_bytes(*bytes)).ok_or_else(|| self.short())
    }

    fn u64(&self, at: usize) -> io::Result<u64> {
        let bytes = self.0.get(at..).and_then(|rest| rest.first_chunk());
        bytes.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(|| self.short())
    }

    fn short(&self) -> io::Error {
        broken(format!("a request of {} bytes", self.0.len()))
    }
}

impl Device {
    /// Handles a request.
    ///
    /// # Errors
    /// If it is not one of a network card.
    pub(crate) fn handle(&mut self, request: u32, body: &[u8], files: Vec<OwnedFd>) -> io::Result<Handled> {
        let words = Words(body);
        let mut files = files.into_iter();
        let mut handled = Handled::default();
        match request {
            request::GET_FEATURES => handled.value = Some(FEATURES),
            request::GET_PROTOCOL_FEATURES => handled.value = Some(PROTOCOL_FEATURES),
            request::SET_FEATURES => self.merges_buffers = words.u64(0)? & MERGE_BUFFERS != 0,
            request::SET_OWNER | request::SET_PROTOCOL_FEATURES => {}
            request::SET_MEMORY => {
                // A second region is memory beyond 4 GB, in kernels of 32 bits.
                if words.u32(0)? != 1 {
                    return Err(broken(format!("{} regions of memory", words.u32(0)?)));
                }
                let file = File::from(files.next().ok_or_else(|| broken("memory without a file".into()))?);
                let (begin, len, offset) = (words.u64(8)?, words.u64(16)?, words.u64(32)?);
                self.memory = Some(Memory::new(file, begin, len, offset)?);
            }
            request::SET_SIZE => self.queue(words.u32(0)?)?.set_size(words.u32(4)?)?,
            request::SET_BASE => self.queue(words.u32(0)?)?.set_base(words.u32(4)?)?,
            request::SET_ADDRESSES => {
                let (table, used, offered) = (words.u64(8)?, words.u64(16)?, words.u64(24)?);
                self.queue(words.u32(0)?)?.set_addresses(table, offered, used);
            }
            request::ENABLE => self.queue(words.u32(0)?)?.is_enabled = words.u32(4)? != 0,
            request::SET_INTERRUPTS => {
                self.interrupt_socket = files.next().map(|file| patient(file.into())).transpose()?;
            }
            request::KICK => {
                self.queue(words.u32(0)?)?;
                handled.is_kick = words.u32(0)? as usize == SENT;
            }
            other => return Err(broken(format!("the request {other} of vhost-user"))),
        }
        Ok(handled)
    }

    fn queue(&mut self, index: u32) -> io::Result<&mut Queue> {
        let queue = self.queues.get_mut(index as usize);
        queue.ok_or_else(|| broken(format!("the queue {index} of a network card with two")))
    }

    /// Takes the next frame that the guest sends; `None` if there is no other.
    ///
    /// # Errors
    /// If its queue is broken.
    pub(crate) fn take_sent(&mut self, frame: &mut Vec<u8>) -> io::Result<bool> {
        let (Some(memory), queue) = (&self.memory, &mut self.queues[SENT]) else { return Ok(false) };
        if !queue.is_ready() || queue.waiting(memory)? == 0 {
            return Ok(false);
        }
        let chain = queue.chain(memory, 0, true)?;
        chain.read(memory, frame)?;
        if frame.len() < HEADER {
            return Err(broken(format!("a frame of {} bytes with its header", frame.len())));
        }
        frame.drain(..HEADER);
        queue.give_back(memory, &chain, 0)?;
        self.interrupts[SENT] |= queue.publish(memory)?;
        Ok(true)
    }

    /// Puts a frame where the guest receives it; returns whether there was room.
    ///
    /// # Errors
    /// If its queue is broken.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> io::Result<bool> {
        let (Some(memory), queue) = (&self.memory, &mut self.queues[RECEIVED]) else { return Ok(false) };
        if !queue.is_ready() {
            return Ok(false);
        }
        let waiting = queue.waiting(memory)?;
        let most = if self.merges_buffers { waiting } else { waiting.min(1) };
        let mut chains = Vec::with_capacity(1);
        let mut room = 0;
        while room < HEADER + frame.len() {
            if chains.len() == usize::from(most) {
                return Ok(false);
            }
            let chain = queue.chain(memory, chains.len() as u16, false)?;
            room += chain.len();
            chains.push(chain);
        }
        self.buffer.clear();
        self.buffer.resize(HEADER, 0);
        self.buffer[HEADER - 2..].copy_from_slice(&(chains.len() as u16).to_le_bytes());
        self.buffer.extend_from_slice(frame);
        let mut rest = &self.buffer[..];
        for chain in &chains {
            let written = chain.write(memory, rest)?;
            queue.give_back(memory, chain, written)?;
            rest = &rest[written..];
        }
        self.interrupts[RECEIVED] |= queue.publish(memory)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    /// Queues with any bytes changed give frames or errors.
    #[test]
    fn memory_may_have_any_contents() {
        const LEN: usize = 4096;
        let mut state = 1u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize
        };
        let (mut sent, mut received, mut errors) = (0, 0, 0);
        for _ in 0..500 {
            let mut bytes = vec![0; LEN];
            let mut device = Device { merges_buffers: random() % 2 > 0, ..Device::default() };
            for (number, queue) in device.queues.iter_mut().enumerate() {
                let [table, offered, used] = [0, 256, 512].map(|at| at + 1024 * number);
                for slot in 0..8 {
                    let at = table + 16 * slot;
                    bytes[at..at + 8].copy_from_slice(&(2048 + 128 * slot as u64).to_le_bytes());
                    let next = u8::from(random() % 4 == 0);
                    let flags = if number == RECEIVED { 2 } else { 0 };
                    bytes[at + 8..at + 16].copy_from_slice(&[
                        128,
                        0,
                        0,
                        0,
                        flags | next,
                        0,
                        slot as u8 + 1,
                        0,
                    ]);
                    bytes[offered + 4 + 2 * slot] = slot as u8;
                }
                bytes[offered + 2] = 8;
                queue.set_size(8).expect("a power of two");
                queue.set_addresses(table as u64, offered as u64, used as u64);
                queue.is_enabled = true;
            }
            for _ in 0..random() % 8 {
                bytes[random() % 2048] = random() as u8;
            }
            let file = File::from(memfd_create("any", MemfdFlags::CLOEXEC).expect("a file in memory"));
            std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).expect("room");
            device.memory = Some(Memory::new(file, 0, LEN as u64, 0).expect("of this length"));
            let mut frame = Vec::new();
            for _ in 0..10 {
                for outcome in
                    [device.take_sent(&mut frame), device.receive(&[1; 200])].into_iter().enumerate()
                {
                    match outcome {
                        (0, Ok(true)) => sent += 1,
                        (_, Ok(true)) => received += 1,
                        (_, Ok(false)) => {}
                        (_, Err(_)) => errors += 1,
                    }
                }
            }
        }
        assert!(sent > 250 && received > 250 && errors > 250, "{sent} {received} {errors}");
    }
}
