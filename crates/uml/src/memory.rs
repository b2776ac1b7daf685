//! The memory of a guest, as far as it shows it to devices.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::broken;

/// A range of a guest's memory, which is a file. It is read and written by system calls: a guest that changes or
/// truncates it meanwhile spoils its own frames, and nothing else.
#[derive(Debug)]
pub(crate) struct Memory {
    file: File,
    /// The first address.
    begin: u64,
    len: u64,
    /// Where it is in the file.
    offset: u64,
}

impl Memory {
    /// The `len` bytes from `offset` of a file as the addresses from `begin` on.
    ///
    /// # Errors
    /// If the range is not within the file.
    pub(crate) fn new(file: File, begin: u64, len: u64, offset: u64) -> io::Result<Memory> {
        let size = file.metadata()?.len();
        let fits = offset.checked_add(len).is_some_and(|end| end <= size);
        if !fits || begin.checked_add(len).is_none() {
            return Err(broken(format!(
                "a memory of {len} bytes at {begin:#x} and {offset:#x} of a file of {size}"
            )));
        }
        Ok(Memory { file, begin, len, offset })
    }

    /// Where `len` bytes at an address are in the file.
    fn place(&self, at: u64, len: usize) -> io::Result<u64> {
        let inside = at
            .checked_sub(self.begin)
            .filter(|&from| from.checked_add(len as u64).is_some_and(|end| end <= self.len));
        let from = inside.ok_or_else(|| broken(format!("{len} bytes at {at:#x}, outside of its memory")))?;
        Ok(self.offset + from)
    }

    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(into, self.place(at, into.len())?)
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.place(at, bytes.len())?)
    }

    pub(crate) fn read_u16(&self, at: u64) -> io::Result<u16> {
        let mut word = [0; 2];
        self.read(at, &mut word)?;
        Ok(u16::from_le_bytes(word))
    }
}
