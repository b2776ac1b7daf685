//! One direction of a split connection.

use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};

/// A pipe between the two sockets.
#[derive(Debug)]
pub(super) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl Pipe {
    fn new(size: usize) -> io::Result<Pipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Above the limit of fs.pipe-user-pages-soft, a smaller one does.
        let _ = fcntl_setpipe_size(&write, size);
        Ok(Pipe { read, write })
    }
}

/// Empty pipes, to be used again.
#[derive(Debug)]
pub(super) struct Pipes {
    idle: Vec<Pipe>,
    size: usize,
}

impl Pipes {
    /// The number of idle pipes that are kept.
    const KEPT: usize = 32;

    pub(super) fn new(size: usize) -> Pipes {
        Pipes { idle: Vec::new(), size }
    }

    fn take(&mut self) -> io::Result<Pipe> {
        self.idle.pop().map_or_else(|| Pipe::new(self.size), Ok)
    }

    fn put(&mut self, pipe: Pipe) {
        if self.idle.len() < Pipes::KEPT {
            self.idle.push(pipe);
        }
    }
}

/// What a call of [`Direction::carry`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// A socket is not ready; an event will tell.
    Waits,
    /// More can be done at once.
    Continues,
    /// The end of the data was carried over.
    Ended,
    /// One of the connections is broken.
    Broken,
}

/// Data from one socket to the other.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// What waits, and how many bytes.
    pipe: Option<Pipe>,
    waiting: usize,
    /// Whether the source may have data, and the destination room. Events set them; the socket's answer clears them.
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
    /// Whether the source may have an urgent byte: the kernel puts neither it nor what follows into a pipe.
    pub(super) has_urgent: bool,
    /// An urgent byte that has been read and not written.
    urgent: Option<u8>,
    /// Whether the source has no more data, and the destination knows.
    is_read: bool,
    is_ended: bool,
    /// Bytes written since the last look.
    pub(super) carried: u64,
}

/// Calls of the kernel for one direction, before others have their turn.
const TURN: usize = 16;

impl Direction {
    pub(super) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Carries data from `source` to `destination` until one of them is not ready, or its turn is over.
    pub(super) fn carry(&mut self, source: &OwnedFd, destination: &OwnedFd, pipes: &mut Pipes) -> Progress {
        let progress = self.turn(source, destination, pipes);
        if self.waiting == 0
            && let Some(pipe) = self.pipe.take()
        {
            pipes.put(pipe);
        }
        progress
    }

    fn turn(&mut self, source: &OwnedFd, destination: &OwnedFd, pipes: &mut Pipes) -> Progress {
        if self.is_ended {
            return Progress::Ended;
        }
        for _ in 0..TURN {
            let was_read = self.read(source, pipes);
            let was_written = was_read.and_then(|read| Ok(self.write(destination)? || read));
            match was_written {
                Err(_) => return Progress::Broken,
                Ok(_) if self.is_read && self.waiting == 0 && self.urgent.is_none() => {
                    self.is_ended = true;
                    return match shutdown(destination, Shutdown::Write) {
                        Ok(()) => Progress::Ended,
                        Err(_) => Progress::Broken,
                    };
                }
                Ok(false) => return Progress::Waits,
                Ok(true) => {}
            }
        }
        Progress::Continues
    }

    /// Takes data from the source into the pipe. Returns whether there were any.
    fn read(&mut self, source: &OwnedFd, pipes: &mut Pipes) -> io::Result<bool> {
        let room = pipes.size.saturating_sub(self.waiting);
        if !self.is_readable || self.is_read || room == 0 || self.urgent.is_some() {
            return Ok(false);
        }
        if self.pipe.is_none() {
            self.pipe = Some(pipes.take()?);
        }
        let Some(pipe) = &self.pipe else { return Ok(false) };
        match splice(source, None, &pipe.write, None, room, SpliceFlags::MOVE | SpliceFlags::NONBLOCK) {
            // The end, or an urgent byte that the end has followed. What is before either is carried over first.
            Ok(0) if self.waiting == 0 => return self.read_urgent(source),
            Ok(0) => {}
            Err(Errno::AGAIN) if self.has_urgent && self.waiting == 0 => return self.read_urgent(source),
            Ok(len) => {
                self.waiting += len;
                return Ok(true);
            }
            // With data in the pipe, it may be the pipe that has no room: what it holds in pages depends on the sizes of
            // packets. Then the source is asked again once the pipe is empty.
            Err(Errno::AGAIN) => self.is_readable = self.waiting > 0,
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        Ok(false)
    }

    /// Takes an urgent byte that the source has reached, or its end. Returns whether there was either.
    fn read_urgent(&mut self, source: &OwnedFd) -> io::Result<bool> {
        let mut byte = [0];
        match recv(source, &mut byte[..], RecvFlags::DONTWAIT) {
            Ok((0, _)) => self.is_read = true,
            Ok(_) => self.urgent = Some(byte[0]),
            // It is on its way.
            Err(Errno::AGAIN) => {
                self.is_readable = false;
                return Ok(false);
            }
            Err(Errno::INTR) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
        self.has_urgent = false;
        Ok(true)
    }

    /// Gives an urgent byte, or data from the pipe, to the destination. Returns whether it took any.
    fn write(&mut self, destination: &OwnedFd) -> io::Result<bool> {
        if !self.is_writable {
            return Ok(false);
        }
        let written = match (self.urgent, &self.pipe) {
            (Some(byte), _) => {
                send(destination, &[byte], SendFlags::OOB | SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
            }
            (None, Some(pipe)) if self.waiting > 0 => {
                let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
                splice(&pipe.read, None, destination, None, self.waiting, flags)
            }
            (None, _) => return Ok(false),
        };
        match written {
            Ok(len) => {
                if self.urgent.take().is_none() {
                    self.waiting -= len.min(self.waiting);
                }
                self.carried += len as u64;
                Ok(true)
            }
            Err(Errno::AGAIN) => {
                self.is_writable = false;
                Ok(false)
            }
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}
