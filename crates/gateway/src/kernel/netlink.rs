//! Netlink: messages of attributes to the kernel, and its answers (netlink(7), RFC 3549).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send, setsockopt,
    socket, sockopt,
};
use nix::sys::time::TimeVal;

/// Options of netlink sockets, which nix does not define.
mod options {
    use nix::{libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Whether losses of messages to this socket pass in silence.
        NoBufferErrors, SetOnly, libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, bool
    );
}

/// Flags of messages.
pub(crate) const REQUEST: u16 = 0x1;
pub(crate) const ACK: u16 = 0x4;
pub(crate) const EXCLUSIVE: u16 = 0x200;
pub(crate) const CREATE: u16 = 0x400;
pub(crate) const APPEND: u16 = 0x800;
pub(crate) const DUMP: u16 = 0x300;

const HEADER: usize = 16;

/// How long the kernel may take to answer, in seconds. It answers before a request returns.
const PATIENCE_S: i64 = 5;

const ERROR: u16 = 2;
const DONE: u16 = 3;
const NESTED: u16 = 0x8000;

/// A message to the kernel.
#[derive(Clone, Debug)]
pub(crate) struct Message(Vec<u8>);

impl Message {
    /// A message of type `kind` with a fixed header after its own.
    pub(crate) fn new(kind: u16, flags: u16, header: &[u8]) -> Message {
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
        bytes.extend(header);
        Message(bytes)
    }

    /// A message of netfilter: `kind` within `subsystem`, about `family` and the resource `id`.
    pub(crate) fn netfilter(subsystem: u8, kind: u8, flags: u16, family: u8, id: u16) -> Message {
        let [high, low] = id.to_be_bytes();
        Message::new(u16::from_be_bytes([subsystem, kind]), flags, &[family, 0, high, low])
    }

    /// Adds an attribute.
    pub(crate) fn put(mut self, kind: u16, value: &[u8]) -> Message {
        put(&mut self.0, kind, value);
        self
    }

    /// Adds an attribute of attributes.
    pub(crate) fn nest(mut self, kind: u16, within: &Attributes) -> Message {
        put(&mut self.0, kind | NESTED, &within.0);
        self
    }

    /// Adds a text with its final zero.
    pub(crate) fn text(self, kind: u16, text: &str) -> Message {
        self.put(kind, &[text.as_bytes(), &[0]].concat())
    }

    pub(super) fn finished(mut self, sequence: u32) -> Vec<u8> {
        let len = (self.0.len() as u32).to_ne_bytes();
        self.0[..4].copy_from_slice(&len);
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// Attributes within one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes(Vec<u8>);

impl Attributes {
    pub(crate) fn put(mut self, kind: u16, value: &[u8]) -> Attributes {
        put(&mut self.0, kind, value);
        self
    }

    /// A number in network order, as netfilter has them.
    pub(crate) fn number(self, kind: u16, value: u32) -> Attributes {
        self.put(kind, &value.to_be_bytes())
    }

    /// As they are sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn text(self, kind: u16, text: &str) -> Attributes {
        self.put(kind, &[text.as_bytes(), &[0]].concat())
    }

    pub(crate) fn nest(mut self, kind: u16, within: &Attributes) -> Attributes {
        put(&mut self.0, kind | NESTED, &within.0);
        self
    }
}

fn put(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend(((value.len() + 4) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The attributes in `bytes`: kinds and values. One that is cut off ends them.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let header: [u8; 4] = *bytes.first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & !NESTED;
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The value of the attribute `kind`.
pub(crate) fn attribute(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find(|(each, _)| *each == kind).map(|(_, value)| value)
}

/// A number in network order.
pub(crate) fn number(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

/// A message of the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    kind: u16,
    sequence: u32,
    /// What follows its header.
    pub(crate) body: &'a [u8],
}

impl Answer<'_> {
    /// The result of a request, if this reports one.
    fn result(&self) -> Option<io::Result<()>> {
        if self.kind != ERROR {
            return None;
        }
        let code = self.body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
        Some(if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(-code)) })
    }
}

/// The messages in a datagram.
pub(crate) fn answers(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let header: [u8; HEADER] = *bytes.first_chunk()?;
        let word =
            |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let len = word(0) as usize;
        let body = bytes.get(HEADER..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some(Answer { kind: u16::from_ne_bytes([header[4], header[5]]), sequence: word(8), body })
    })
}

/// A netlink socket.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl From<OwnedFd> for Netlink {
    fn from(socket: OwnedFd) -> Netlink {
        // Beyond what its former owner used.
        Netlink { socket, sequence: 1 << 31 }
    }
}

impl Netlink {
    pub(crate) fn open(protocol: SockProtocol) -> io::Result<Netlink> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::new(PATIENCE_S, 0))?;
        Ok(Netlink { socket, sequence: 0 })
    }

    /// Lets the kernel drop messages that the socket has no room for, without an error.
    pub(crate) fn ignore_overflows(&self) -> io::Result<()> {
        Ok(setsockopt(self, options::NoBufferErrors, &true)?)
    }

    /// Sends a message without waiting for an answer.
    pub(crate) fn send(&mut self, message: Message) -> io::Result<()> {
        self.sequence += 1;
        let bytes = message.finished(self.sequence);
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
        Ok(())
    }

    /// Sends a message, and waits until the kernel has carried it out.
    pub(crate) fn request(&mut self, message: Message) -> io::Result<()> {
        self.transact(vec![message]).map_err(|(_, error)| error)
    }

    /// Sends messages at once, and waits until the kernel has carried out all that ask for an acknowledgement. The socket must
    /// have room for all of these: some hundreds, unless its buffer was enlarged.
    ///
    /// # Errors
    /// The first error, with the index of its message. If answers are lost, whether the kernel has carried out anything is
    /// unknown.
    pub(crate) fn transact(&mut self, messages: Vec<Message>) -> Result<(), (usize, io::Error)> {
        let first = self.sequence + 1;
        let mut awaited = 0;
        let mut bytes = Vec::new();
        for message in messages {
            self.sequence += 1;
            let flags = u16::from_ne_bytes([message.0[6], message.0[7]]);
            awaited += usize::from(flags & ACK != 0);
            bytes.extend(message.finished(self.sequence));
        }
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty()).map_err(|error| (0, error.into()))?;
        let mut failed: Option<(usize, io::Error)> = None;
        let mut buffer = vec![0; 1 << 16];
        while awaited > 0 {
            // After an error the kernel need not answer the rest, and what it answers has arrived with the error.
            let flags = if failed.is_some() { MsgFlags::MSG_DONTWAIT } else { MsgFlags::empty() };
            let len = match recv(self.socket.as_raw_fd(), &mut buffer, flags) {
                Ok(len) => len,
                Err(Errno::EINTR) => continue,
                Err(error) => {
                    self.drain(&mut buffer);
                    let error = match error {
                        Errno::EAGAIN => {
                            io::Error::new(io::ErrorKind::TimedOut, "the kernel does not answer")
                        }
                        error => error.into(),
                    };
                    return Err(failed.unwrap_or((0, error)));
                }
            };
            for answer in answers(&buffer[..len]).filter(|answer| answer.sequence >= first) {
                match answer.result() {
                    Some(Ok(())) => awaited -= 1,
                    Some(Err(error)) => {
                        awaited = awaited.saturating_sub(1);
                        failed.get_or_insert(((answer.sequence - first) as usize, error));
                    }
                    None => {}
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Discards what has arrived, which would take the room of later answers.
    fn drain(&self, buffer: &mut [u8]) {
        while matches!(self.try_receive(buffer), Ok(Some(_))) {}
    }

    /// Sends the request for a list, and passes each of its items to `each`.
    pub(crate) fn list(&mut self, message: Message, mut each: impl FnMut(&[u8])) -> io::Result<()> {
        self.send(message)?;
        let mut buffer = vec![0; 1 << 16];
        loop {
            let len = self.receive(&mut buffer)?;
            for answer in answers(&buffer[..len]).filter(|answer| answer.sequence == self.sequence) {
                match answer.result() {
                    Some(result) => return result,
                    None if answer.kind == DONE => return Ok(()),
                    None => each(answer.body),
                }
            }
        }
    }

    /// Receives a datagram of messages.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.socket.as_raw_fd(), buffer, MsgFlags::empty())?)
    }

    /// As [`receive`](Netlink::receive); `None` if there is none.
    pub(crate) fn try_receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(self.socket.as_raw_fd(), buffer, MsgFlags::MSG_DONTWAIT) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::EAGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let inner = Attributes::default().number(7, 1).text(8, "abc");
        let message = Message::netfilter(10, 3, ACK, 1, 0x1234).put(1, &[9; 5]).nest(2, &inner).finished(5);
        let answer = answers(&message).next().expect("a message");
        assert_eq!((answer.kind, answer.sequence), (0x0a03, 5));
        assert_eq!(answer.body[..4], [1, 0, 0x12, 0x34]);
        let all: Vec<_> = attributes(&answer.body[4..]).collect();
        assert_eq!(all[0], (1, &[9; 5][..]));
        assert_eq!(attribute(all[1].1, 8), Some(&b"abc\0"[..]));
        assert_eq!(attribute(all[1].1, 7).and_then(number), Some(1));
    }

    #[test]
    fn messages_that_are_cut_off_end() {
        let whole = Message::new(3, 0, &[]).put(1, &[9; 5]).finished(1);
        for len in 0..whole.len() {
            assert!(answers(&whole[..len]).all(|answer| attributes(answer.body).count() == 0), "{len}");
        }
        assert_eq!(attributes(&[3, 0, 1, 0, 1, 2, 3, 4]).count(), 0, "shorter than its header");
    }
}
