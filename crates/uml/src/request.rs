//! Requests of vhost-user as bytes of a socket.

use std::io::{self, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::broken;

/// Header: request, flags, length of the body. Flags: the version, an answer, and that one is expected.
const HEADER: usize = 12;
const VERSION: u32 = 1;
const ANSWER: u32 = 4;
const NEEDS_ANSWER: u32 = 8;

/// The longest body of a request.
const LONGEST_BODY: usize = 512;

/// The request that tells a guest of an interrupt.
const INTERRUPT: u32 = 4;

/// A request of a guest.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) number: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) files: Vec<OwnedFd>,
    needs_answer: bool,
}

impl Request {
    /// Reads a request.
    pub(crate) fn read(mut socket: &UnixStream) -> io::Result<Request> {
        let mut header = [0; HEADER];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let read =
            recvmsg(socket, &mut [IoSliceMut::new(&mut header)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
        if read.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let files = ancillary.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect(),
            _ => Vec::new(),
        });
        let files = files.collect();
        socket.read_exact(&mut header[read.bytes..])?;
        let [number, flags, len] = [0, 4, 8]
            .map(|at| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]));
        if len as usize > LONGEST_BODY {
            return Err(broken(format!("a request of {len} bytes")));
        }
        let mut body = vec![0; len as usize];
        socket.read_exact(&mut body)?;
        Ok(Request { number, body, files, needs_answer: flags & NEEDS_ANSWER != 0 })
    }

    /// Answers it, if it has a value or the guest expects that.
    pub(crate) fn answer(&self, mut socket: &UnixStream, value: Option<u64>) -> io::Result<()> {
        if value.is_none() && !self.needs_answer {
            return Ok(());
        }
        let words = [self.number, VERSION | ANSWER, 8].map(u32::to_ne_bytes).concat();
        socket.write_all(&[&words[..], &value.unwrap_or(0).to_ne_bytes()].concat())
    }
}

/// Tells a guest of an interrupt of a queue. It answers.
pub(crate) fn interrupt(mut socket: &UnixStream, queue: u32) -> io::Result<()> {
    socket.write_all(&[INTERRUPT, VERSION | NEEDS_ANSWER, 8, queue, 0].map(u32::to_ne_bytes).concat())
}

/// Reads the answer to an interrupt.
pub(crate) fn read_answer(mut socket: &UnixStream) -> io::Result<()> {
    socket.read_exact(&mut [0; HEADER + 8])
}
