//! The messages of virtual time (Linux's `include/uapi/linux/um_timetravel.h`), and the memory that replaces most of them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;

use lasthop_base::Time;
use rustix::fs::{MemfdFlags, memfd_create};

/// Operations of messages.
pub(crate) mod operation {
    /// Confirms a message.
    pub(crate) const ACK: u32 = 0;
    /// A guest has begun.
    pub(crate) const START: u32 = 1;
    /// A guest asks to run at a time.
    pub(crate) const REQUEST: u32 = 2;
    /// A guest waits until it may run.
    pub(crate) const WAIT: u32 = 3;
    /// A guest asks for the time.
    pub(crate) const GET: u32 = 4;
    /// A guest has reached a time.
    pub(crate) const UPDATE: u32 = 5;
    /// A guest may run, at this time.
    pub(crate) const RUN: u32 = 6;
    /// A guest may run on before this time.
    pub(crate) const FREE_UNTIL: u32 = 7;
    /// A guest asks for the time of day.
    pub(crate) const GET_TIME_OF_DAY: u32 = 8;
    /// A guest says a number to all.
    pub(crate) const BROADCAST: u32 = 9;
}

/// A message: numbers in the byte order of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) operation: u32,
    pub(crate) sequence: u32,
    pub(crate) time_ns: u64,
}

impl Message {
    /// Length in bytes.
    pub(crate) const LEN: usize = 16;

    pub(crate) fn parse(bytes: &[u8; Message::LEN]) -> Message {
        let [a, b, c, d, e, f, g, h, time @ ..] = *bytes;
        Message {
            operation: u32::from_ne_bytes([a, b, c, d]),
            sequence: u32::from_ne_bytes([e, f, g, h]),
            time_ns: u64::from_ne_bytes(time),
        }
    }

    pub(crate) fn bytes(self) -> [u8; Message::LEN] {
        let mut bytes = [0; Message::LEN];
        bytes[..4].copy_from_slice(&self.operation.to_ne_bytes());
        bytes[4..8].copy_from_slice(&self.sequence.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.time_ns.to_ne_bytes());
        bytes
    }
}

/// The version of the memory's layout.
const VERSION: u32 = 2;

/// Where fields are, and where the records of clients begin, and their length.
const FREE_UNTIL: u64 = 8;
const NOW: u64 = 16;
const RUNNING: u64 = 24;
const CLIENTS: u64 = 4096;
const CLIENT: u64 = 128;

/// Fields of a client's record.
const FLAGS: u64 = 4;
const REQUEST: u64 = 8;

/// Flag of a client's abilities: it uses this memory.
const SHARES_TIME: u32 = 1;

/// Flag of a client: it asks to run.
const WANTS_TO_RUN: u32 = 1;

/// The client that is the calendar itself.
pub(crate) const CALENDAR: u16 = 0;

/// Memory that the calendar shares with its guests, since Linux 6.12. It is a file, and is read and written by system
/// calls, as [`Memory`](crate::memory::Memory) is.
#[derive(Debug)]
pub(crate) struct Shared(File);

impl Shared {
    /// Memory for a calendar and `guests` guests.
    pub(crate) fn new(guests: u16) -> io::Result<Shared> {
        let file = File::from(memfd_create("lasthop-calendar", MemfdFlags::CLOEXEC)?);
        let len = CLIENTS + CLIENT * u64::from(guests + 1);
        file.set_len(len)?;
        let shared = Shared(file);
        shared.put(0, &VERSION.to_ne_bytes())?;
        shared.put(4, &(len as u32).to_ne_bytes())?;
        shared.put(RUNNING + 2, &(guests + 1).to_ne_bytes())?;
        shared.put(CLIENTS, &SHARES_TIME.to_ne_bytes())?;
        Ok(shared)
    }

    fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn get<const N: usize>(&self, at: u64) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Lets `client` run from `now` on, before `free_until`.
    pub(crate) fn run(&self, client: u16, now: Time, free_until: Time) -> io::Result<()> {
        let mut bytes = [0; 18];
        bytes[..8].copy_from_slice(&free_until.as_nanos().to_ne_bytes());
        bytes[8..16].copy_from_slice(&now.as_nanos().to_ne_bytes());
        bytes[16..].copy_from_slice(&client.to_ne_bytes());
        self.put(FREE_UNTIL, &bytes)
    }

    /// Lets the guest that runs go on before another time.
    pub(crate) fn set_free_until(&self, time: Time) -> io::Result<()> {
        self.put(FREE_UNTIL, &time.as_nanos().to_ne_bytes())
    }

    /// The time that the guest that runs has reached.
    pub(crate) fn now(&self) -> io::Result<Time> {
        Ok(Time::from_nanos(u64::from_ne_bytes(self.get(NOW)?)))
    }

    /// Whether a client uses this memory.
    pub(crate) fn is_used(&self, client: u16) -> io::Result<bool> {
        let abilities = u32::from_ne_bytes(self.get(CLIENTS + CLIENT * u64::from(client))?);
        Ok(abilities & SHARES_TIME != 0)
    }

    /// When a client asks to run.
    pub(crate) fn request(&self, client: u16) -> io::Result<Option<Time>> {
        let record: [u8; 16] = self.get(CLIENTS + CLIENT * u64::from(client))?;
        let (head, time) = record.split_at(REQUEST as usize);
        let flags = head[FLAGS as usize..].first_chunk().map_or(0, |flags| u32::from_ne_bytes(*flags));
        let time = time.first_chunk().map_or(0, |time| u64::from_ne_bytes(*time));
        Ok((flags & WANTS_TO_RUN != 0).then_some(Time::from_nanos(time)))
    }
}

impl AsFd for Shared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
