//! A guest without a kernel: a script of frames that it sends, and the log of those that it receives.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

/// Operations of virtual time.
const ACK: u32 = 0;
const START: u32 = 1;
pub(crate) const REQUEST: u32 = 2;
const WAIT: u32 = 3;
const GET: u32 = 4;
pub(crate) const UPDATE: u32 = 5;
const RUN: u32 = 6;
const FREE_UNTIL: u32 = 7;
const BROADCAST: u32 = 9;

/// Where its memory begins; it has descriptors, rings and buffers of two queues.
pub(crate) const BASE: u64 = 0x1000;
const LEN: u64 = 1 << 20;
pub(crate) const SIZE: u64 = 8;
/// The table, the ring of offered and that of used buffers, and the buffers, of each queue.
pub(crate) const QUEUE: u64 = 1 << 16;
pub(crate) const OFFERED: u64 = 0x1000;
const USED: u64 = 0x2000;
const BUFFERS: u64 = 0x4000;
const BUFFER: u64 = 2048;

/// What a guest does at a time.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    Send(Vec<u8>),
    Say(u64),
    /// Something that it may not do.
    Break(fn(&mut Guest)),
}

/// When frames were received, on the guest's clock.
pub(crate) type Log = Vec<(u64, Vec<u8>)>;

/// A guest.
pub(crate) struct Guest {
    pub(crate) time: UnixStream,
    pub(crate) card: UnixStream,
    interrupts: UnixStream,
    pub(crate) memory: File,
    shared: Option<File>,
    id: u64,
    sequence: u32,
    /// Its clock, and the calendar's when it began.
    pub(crate) clock: u64,
    offset: u64,
    free_until: Option<u64>,
    /// When it has been interrupted.
    interrupted: Option<u64>,
    told: Option<u64>,
    /// Whether it takes its time to read what the calendar says.
    pub(crate) is_slow: bool,
    /// Counts of the queues.
    pub(crate) sent: u16,
    received: u16,
    log: Log,
}

/// Starts a guest whose clock begins when it may. It ends when the calendar does.
pub(crate) fn start(directory: &Path, script: Vec<(u64, Act)>) -> JoinHandle<Log> {
    let directory = directory.to_owned();
    std::thread::spawn(move || {
        // The calendar may have gone before.
        let Ok(mut guest) = Guest::connect(&directory) else { return Log::new() };
        let _ = guest.live(script);
        guest.log
    })
}

fn message(operation: u32, sequence: u32, time: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..4].copy_from_slice(&operation.to_ne_bytes());
    bytes[4..8].copy_from_slice(&sequence.to_ne_bytes());
    bytes[8..].copy_from_slice(&time.to_ne_bytes());
    bytes
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("of this length"))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("of this length"))
}

impl Guest {
    fn connect(directory: &Path) -> io::Result<Guest> {
        let mut time = UnixStream::connect(directory.join("time"))?;
        time.write_all(&message(START, 1, u64::MAX))?;
        let mut answer = [0; 16];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        recvmsg(&time, &mut [IoSliceMut::new(&mut answer)], &mut ancillary, RecvFlags::empty())?;
        let mut files: Vec<OwnedFd> = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                files.extend(passed);
            }
        }
        let shared = files.into_iter().next().map(File::from);
        let id = long(&answer, 8);
        let mut offset = 0;
        if let Some(shared) = &shared {
            let mut now = [0; 8];
            shared.read_exact_at(&mut now, 16)?;
            offset = u64::from_ne_bytes(now);
            shared.write_all_at(&1u32.to_ne_bytes(), 4096 + 128 * id)?;
        }
        let memory = File::from(memfd_create("guest", MemfdFlags::CLOEXEC)?);
        memory.set_len(LEN)?;
        let (interrupts, theirs) = UnixStream::pair()?;
        let card = UnixStream::connect(directory.join("net"))?;
        let mut guest = Guest {
            time,
            card,
            interrupts,
            memory,
            shared,
            id,
            sequence: 1,
            clock: 0,
            offset,
            free_until: None,
            interrupted: None,
            told: None,
            is_slow: false,
            sent: 0,
            received: 0,
            log: Log::new(),
        };
        guest.set_up(theirs.into())?;
        Ok(guest)
    }

    /// Sets up the card, as a driver does.
    fn set_up(&mut self, interrupts: OwnedFd) -> io::Result<()> {
        for request in [3, 1, 15] {
            self.request(request, &[], None)?;
        }
        self.request(16, &(1u64 << 3 | 1 << 5 | 1 << 14).to_ne_bytes(), None)?;
        self.request(21, &[], Some(interrupts))?;
        self.request(2, &(1u64 << 32 | 1 << 15).to_ne_bytes(), None)?;
        let words: Vec<u8> =
            [1, BASE, LEN, BASE, 0].iter().flat_map(|word: &u64| word.to_ne_bytes()).collect();
        let memory = self.memory.try_clone()?.into();
        self.request(5, &words, Some(memory))?;
        for queue in 0..2u32 {
            let pair = |second: u32| [queue.to_ne_bytes(), second.to_ne_bytes()].concat();
            self.request(8, &pair(SIZE as u32), None)?;
            self.request(10, &pair(0), None)?;
            let at = BASE + QUEUE * u64::from(queue);
            let addresses = [at, at + USED, at + OFFERED, u64::MAX];
            let body: Vec<u8> = addresses.iter().flat_map(|word| word.to_ne_bytes()).collect();
            self.request(9, &[pair(0), body].concat(), None)?;
            self.request(18, &pair(1), None)?;
        }
        for slot in 0..SIZE {
            self.describe(0, slot, BASE + BUFFERS + BUFFER * slot, BUFFER as u32, 2, 0);
            self.put(OFFERED + 4 + 2 * slot, &(slot as u16).to_ne_bytes());
        }
        self.put(OFFERED + 2, &(SIZE as u16).to_ne_bytes());
        // Sent frames need no interrupt.
        self.put(QUEUE + OFFERED, &1u16.to_ne_bytes());
        Ok(())
    }

    pub(crate) fn describe(&mut self, queue: u64, slot: u64, at: u64, len: u32, flags: u16, next: u16) {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&at.to_ne_bytes());
        bytes[8..12].copy_from_slice(&len.to_ne_bytes());
        bytes[12..14].copy_from_slice(&flags.to_ne_bytes());
        bytes[14..].copy_from_slice(&next.to_ne_bytes());
        self.put(QUEUE * queue + 16 * slot, &bytes);
    }

    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) {
        self.memory.write_all_at(bytes, at).expect("its own memory");
    }

    fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        let mut bytes = [0; N];
        self.memory.read_exact_at(&mut bytes, at).expect("its own memory");
        bytes
    }

    /// Makes a request of vhost-user, and waits for its answer.
    pub(crate) fn request(&mut self, request: u32, body: &[u8], file: Option<OwnedFd>) -> io::Result<u64> {
        let header = [request, 1 | 8, body.len() as u32].map(u32::to_ne_bytes).concat();
        let files: Vec<_> = file.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&files));
        }
        let parts = [IoSlice::new(&header), IoSlice::new(body)];
        sendmsg(&self.card, &parts, &mut ancillary, SendFlags::NOSIGNAL)?;
        loop {
            let [answered, time] = self.readable([&self.card, &self.time])?;
            if time {
                if self.is_slow {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    let mut card = [PollFd::new(&self.card, PollFlags::IN)];
                    assert_eq!(poll(&mut card, Some(&Timespec::default()))?, 0, "an answer overtakes a time");
                }
                self.on_time()?;
            } else if answered {
                let mut answer = [0; 20];
                self.card.read_exact(&mut answer)?;
                return Ok(long(&answer, 12));
            }
        }
    }

    fn readable(&self, sockets: [&UnixStream; 2]) -> io::Result<[bool; 2]> {
        let mut polled = sockets.map(|socket| PollFd::new(socket, PollFlags::IN));
        poll(&mut polled, None)?;
        Ok(polled.map(|polled| !polled.revents().is_empty()))
    }

    /// Reads a message of the calendar, and confirms it; returns it.
    fn on_time(&mut self) -> io::Result<(u32, u64)> {
        let mut bytes = [0; 16];
        self.time.read_exact(&mut bytes)?;
        let (operation, time) = (word(&bytes, 0), long(&bytes, 8));
        match operation {
            FREE_UNTIL => self.free_until = Some(time),
            RUN => {
                assert!(time >= self.clock, "time goes back from {} to {time}", self.clock);
                self.clock = time;
            }
            _ => return Ok((operation, time)),
        }
        if self.shared.is_none() {
            self.time.write_all(&message(ACK, word(&bytes, 4), 0))?;
        }
        Ok((operation, time))
    }

    /// Sends a message, and waits until it is confirmed; returns the time in the answer.
    pub(crate) fn tell(&mut self, operation: u32, time: u64) -> io::Result<u64> {
        self.sequence += 1;
        self.time.write_all(&message(operation, self.sequence, time))?;
        loop {
            if let (ACK, time) = self.on_time()? {
                return Ok(time);
            }
        }
    }

    fn share(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.shared.as_ref().map_or(Ok(()), |shared| shared.write_all_at(bytes, at))
    }

    fn shared(&self, at: u64) -> io::Result<Option<u64>> {
        let Some(shared) = &self.shared else { return Ok(None) };
        let mut bytes = [0; 8];
        shared.read_exact_at(&mut bytes, at)?;
        Ok(Some(u64::from_ne_bytes(bytes)))
    }

    /// Asks to run at a time.
    pub(crate) fn ask(&mut self, time: u64) -> io::Result<()> {
        if self.told.replace(time) == Some(time) {
            return Ok(());
        }
        if self.shared.is_none() {
            return self.tell(REQUEST, time).map(drop);
        }
        let at = 4096 + 128 * self.id;
        self.share(at + 4, &1u32.to_ne_bytes())?;
        self.share(at + 8, &(time + self.offset).to_ne_bytes())
    }

    /// Waits until it may run.
    fn wait(&mut self) -> io::Result<()> {
        self.free_until = None;
        if self.shared.is_some() {
            self.sequence += 1;
            self.time.write_all(&message(WAIT, self.sequence, u64::MAX))?;
        } else {
            self.tell(WAIT, u64::MAX)?;
        }
        loop {
            let [time, interrupted] = self.readable([&self.time, &self.interrupts])?;
            if time {
                if let (RUN, _) = self.on_time()? {
                    self.told = None;
                    return self.share(4096 + 128 * self.id + 4, &0u32.to_ne_bytes());
                }
            } else if interrupted {
                let mut request = [0; 20];
                self.interrupts.read_exact(&mut request)?;
                let now = match self.shared(16)? {
                    Some(now) => now - self.offset,
                    None => self.tell(GET, 0)?,
                };
                assert!(now >= self.clock, "time goes back from {} to {now}", self.clock);
                self.clock = now;
                self.interrupted = Some(now);
                self.ask(now)?;
                request[4..8].copy_from_slice(&5u32.to_ne_bytes());
                request[12..].fill(0);
                self.interrupts.write_all(&request)?;
            }
        }
    }

    fn live(&mut self, mut script: Vec<(u64, Act)>) -> io::Result<()> {
        script.reverse();
        loop {
            self.interrupted = None;
            self.receive();
            while let Some((_, act)) = script.pop_if(|(time, _)| *time <= self.clock) {
                self.act(act)?;
            }
            let next = script.last().map_or(i64::MAX as u64, |(time, _)| *time);
            let free_until = match self.shared(8)? {
                Some(time) => Some(time - self.offset),
                None => self.free_until,
            };
            if free_until.is_some_and(|until| next < until) {
                self.clock = next;
                continue;
            }
            self.ask(next)?;
            self.wait()?;
        }
    }

    fn act(&mut self, act: Act) -> io::Result<()> {
        match act {
            Act::Send(frame) => {
                // In two parts, as headers and data.
                let slot = 2 * u64::from(self.sent % (SIZE as u16 / 2));
                let at = QUEUE + BUFFERS + BUFFER * slot;
                self.put(at, &[&[0; 12], &frame[..6]].concat());
                self.put(at + BUFFER, &frame[6..]);
                self.describe(1, slot, BASE + at, 18, 1, slot as u16 + 1);
                self.describe(1, slot + 1, BASE + at + BUFFER, frame.len() as u32 - 6, 0, 0);
                self.offer(slot as u16)
            }
            Act::Say(number) => self.tell(BROADCAST, number).map(drop),
            Act::Break(act) => {
                act(self);
                Ok(())
            }
        }
    }

    /// Offers a chain of the queue of sent frames, and kicks.
    pub(crate) fn offer(&mut self, head: u16) -> io::Result<()> {
        let ring = QUEUE + OFFERED;
        self.put(ring + 4 + 2 * (u64::from(self.sent) % SIZE), &head.to_ne_bytes());
        self.sent += 1;
        let count = self.sent.to_ne_bytes();
        self.put(ring + 2, &count);
        self.kick()
    }

    pub(crate) fn kick(&mut self) -> io::Result<()> {
        if self.shared.is_some() {
            self.share(16, &(self.clock + self.offset).to_ne_bytes())?;
        } else {
            self.tell(UPDATE, self.clock)?;
        }
        self.request(35, &[1u32.to_ne_bytes(), 0u32.to_ne_bytes()].concat(), None).map(drop)
    }

    /// Takes received frames, and offers their buffers again.
    fn receive(&mut self) {
        while u16::from_ne_bytes(self.get(USED + 2)) != self.received {
            let element: [u8; 8] = self.get(USED + 4 + 8 * (u64::from(self.received) % SIZE));
            let (slot, len) = (u64::from(word(&element, 0)), word(&element, 4) as usize);
            let bytes: [u8; BUFFER as usize] = self.get(BUFFERS + BUFFER * slot);
            self.log.push((self.clock, bytes[12..len].to_vec()));
            let at = u64::from(self.received) % SIZE;
            self.put(OFFERED + 4 + 2 * at, &(slot as u16).to_ne_bytes());
            self.received += 1;
            self.put(OFFERED + 2, &(self.received + SIZE as u16).to_ne_bytes());
        }
    }
}
