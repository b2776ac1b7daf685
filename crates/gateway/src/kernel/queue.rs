//! The queue in which the kernel holds the first packet of each connection (`NFQUEUE`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::sys::socket::{SockProtocol, setsockopt, sockopt};

use super::netlink::{ACK, Message, Netlink, answers, attribute, number};

const SUBSYSTEM: u8 = 3;
const VERDICT: u8 = 1;
const CONFIGURE: u8 = 2;

/// The bytes of a packet that are read: those of the headers.
const COPIED: u32 = 256;

/// The memory that the report of a packet takes at most, in bytes.
const ROOM: usize = 2048;

/// The memory that all of them may take.
const LARGEST_ROOM: usize = 64 << 20;

/// A packet that the kernel holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held<'a> {
    /// By which the verdict names it.
    pub(crate) id: u32,
    /// Its mark.
    pub(crate) mark: u32,
    /// The number of the interface by which it came.
    pub(crate) interface: u32,
    /// Its IP packet, as far as it was copied.
    pub(crate) bytes: &'a [u8],
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on with this mark.
    Pass(u32),
    /// It is dropped.
    Drop,
}

/// The queue. When its socket is closed, packets pass.
#[derive(Debug)]
pub(crate) struct Queue {
    netlink: Netlink,
    number: u16,
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

impl Queue {
    /// Opens the queue `number` for at most `limit` packets; the kernel lets further ones pass.
    pub(crate) fn open(number: u16, limit: u32) -> io::Result<Queue> {
        const BIND: u8 = 1;
        const COPY_PACKETS: u8 = 2;
        const FAIL_OPEN: u32 = 1;
        let mut netlink = Netlink::open(SockProtocol::NetlinkNetFilter)?;
        netlink.ignore_overflows()?;
        // Room for the reports of all packets. The kernel takes twice the stated number.
        let room = (limit as usize).saturating_mul(ROOM).min(LARGEST_ROOM);
        setsockopt(&netlink, sockopt::RcvBufForce, &(room / 2))?;
        let configure = || Message::netfilter(SUBSYSTEM, CONFIGURE, ACK, 0, number);
        netlink.request(configure().put(1, &[BIND, 0, 0, 0])).map_err(|error| {
            let reason = match error.kind() {
                io::ErrorKind::ResourceBusy => "it is in use; state another number in gateway.number",
                _ => "the kernel refuses",
            };
            io::Error::new(error.kind(), format!("netfilter queue {number}: {reason} ({error})"))
        })?;
        let [a, b, c, d] = COPIED.to_be_bytes();
        netlink.request(configure().put(2, &[a, b, c, d, COPY_PACKETS]))?;
        netlink.request(configure().put(3, &limit.to_be_bytes()))?;
        let fail_open = FAIL_OPEN.to_be_bytes();
        netlink.request(configure().put(4, &fail_open).put(5, &fail_open))?;
        Ok(Queue { netlink, number })
    }

    /// The queue `number`, which another process has opened.
    pub(crate) fn inherited(socket: OwnedFd, number: u16) -> Queue {
        Queue { netlink: Netlink::from(socket), number }
    }

    /// Passes the packets of a datagram to `each`. Returns false if there are none.
    pub(crate) fn receive(&self, buffer: &mut [u8], mut each: impl FnMut(Held<'_>)) -> io::Result<bool> {
        let Some(len) = self.netlink.try_receive(buffer)? else { return Ok(false) };
        answers(&buffer[..len]).filter_map(|answer| held(answer.body)).for_each(&mut each);
        Ok(true)
    }

    /// Says what becomes of the packet `id`.
    pub(crate) fn decide(&mut self, id: u32, verdict: Verdict) -> io::Result<()> {
        let (code, mark) = match verdict {
            Verdict::Drop => (0, None),
            Verdict::Pass(mark) => (1, Some(mark)),
        };
        let mut message = self.verdict(code, id);
        if let Some(mark) = mark {
            message = message.put(3, &mark.to_be_bytes());
        }
        self.netlink.send(message)
    }

    /// Lets the packet `id` go on with this mark, and these bytes in place of its own.
    pub(crate) fn replace(&mut self, id: u32, mark: u32, bytes: &[u8]) -> io::Result<()> {
        self.netlink.send(self.verdict(1, id).put(3, &mark.to_be_bytes()).put(10, bytes))
    }

    fn verdict(&self, code: u32, id: u32) -> Message {
        let header = [code.to_be_bytes(), id.to_be_bytes()].concat();
        Message::netfilter(SUBSYSTEM, VERDICT, 0, 0, self.number).put(2, &header)
    }
}

/// The packet that a message of the queue reports.
fn held(body: &[u8]) -> Option<Held<'_>> {
    let attributes = body.get(4..)?;
    Some(Held {
        id: number(attribute(attributes, 1)?)?,
        mark: attribute(attributes, 3).and_then(number).unwrap_or(0),
        interface: attribute(attributes, 5).and_then(number).unwrap_or(0),
        bytes: attribute(attributes, 10)?,
    })
}
