//! The log by which the kernel reports the headers of observed flows (`NFLOG`).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::sys::socket::{SockProtocol, setsockopt, sockopt};

use super::netlink::{ACK, Message, Netlink, answers, attribute, number};

const SUBSYSTEM: u8 = 4;
const CONFIGURE: u8 = 1;

/// The number of the hook after routing (`NF_INET_POST_ROUTING`).
const POSTROUTING: u8 = 4;

/// The buffer of the socket, in bytes. Packets wait there while the thread is busy.
const BUFFER: usize = 4 << 20;

/// A packet that the kernel reports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged<'a> {
    /// What its rule calls it.
    pub(crate) prefix: &'a str,
    /// Whether it leaves; otherwise it has arrived.
    pub(crate) is_leaving: bool,
    /// The number of the interface by which it arrived, 0 if it has not.
    pub(crate) interface: u32,
    /// When it arrived, or was reported, in nanoseconds of the real-time clock.
    pub(crate) at_ns: u64,
    /// Its IP packet, as far as it was copied.
    pub(crate) bytes: &'a [u8],
    /// Packets before it of which the report was lost.
    pub(crate) lost: u32,
}

/// The log of a group.
#[derive(Debug)]
pub(crate) struct Log {
    netlink: Netlink,
    numbers: Numbers,
}

/// The numbers of reports.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    next: Option<u32>,
}

impl Numbers {
    /// How many reports are missing before the one with this number.
    fn missing(&mut self, number: u32) -> u32 {
        let next = self.next.replace(number.wrapping_add(1));
        next.map_or(0, |next| number.wrapping_sub(next))
    }
}

impl AsFd for Log {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.netlink.as_fd()
    }
}

impl Log {
    /// Opens the log `group`. Packets are reported together, after 10 ms at the latest, or at once if their rule says so.
    pub(crate) fn open(group: u16) -> io::Result<Log> {
        const BIND: u8 = 1;
        const COPY_PACKETS: u8 = 2;
        let mut netlink = Netlink::open(SockProtocol::NetlinkNetFilter)?;
        netlink.ignore_overflows()?;
        // Exceeding the system's limit needs CAP_NET_ADMIN, which the gateway has.
        setsockopt(&netlink, sockopt::RcvBufForce, &BUFFER)?;
        // While a socket has this option, the kernel notes when packets arrive.
        setsockopt(&netlink, sockopt::ReceiveTimestamp, &true)?;
        let configure = || Message::netfilter(SUBSYSTEM, CONFIGURE, ACK, 0, group);
        netlink
            .request(configure().put(1, &[BIND]))
            .map_err(|error| io::Error::new(error.kind(), format!("netfilter log {group}: {error}")))?;
        netlink.request(configure().put(2, &[0, 0, 0xff, 0xff, COPY_PACKETS, 0]))?;
        // The buffer in bytes, the longest wait in hundredths of a second, and the number of packets.
        for (key, value) in [(3, 16_384u32), (4, 1), (5, 64)] {
            netlink.request(configure().put(key, &value.to_be_bytes()))?;
        }
        const NUMBERED: u16 = 1;
        netlink.request(configure().put(6, &NUMBERED.to_be_bytes()))?;
        Ok(Log { netlink, numbers: Numbers::default() })
    }

    /// Passes the packets of a datagram to `each`. Returns false if there are none.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        mut each: impl FnMut(Logged<'_>),
    ) -> io::Result<bool> {
        let Some(len) = self.netlink.try_receive(buffer)? else { return Ok(false) };
        answers(&buffer[..len])
            .filter_map(|answer| logged(answer.body, &mut self.numbers))
            .for_each(&mut each);
        Ok(true)
    }
}

/// The packet that a message of the log reports.
fn logged<'a>(body: &'a [u8], numbers: &mut Numbers) -> Option<Logged<'a>> {
    let attributes = body.get(4..)?;
    let lost = attribute(attributes, 12).and_then(number).map_or(0, |number| numbers.missing(number));
    let prefix = attribute(attributes, 10).unwrap_or_default();
    Some(Logged {
        prefix: std::str::from_utf8(prefix.strip_suffix(&[0]).unwrap_or(prefix)).unwrap_or_default(),
        is_leaving: *attribute(attributes, 1)?.get(2)? == POSTROUTING,
        interface: attribute(attributes, 4).and_then(number).unwrap_or(0),
        at_ns: attribute(attributes, 3).and_then(stamp_ns).unwrap_or_else(real_time_ns),
        bytes: attribute(attributes, 9)?,
        lost,
    })
}

/// Seconds and microseconds, 64 bits each.
fn stamp_ns(value: &[u8]) -> Option<u64> {
    let (seconds, rest) = value.split_first_chunk()?;
    let micros = rest.first_chunk()?;
    u64::from_be_bytes(*seconds).checked_mul(1_000_000_000)?.checked_add(u64::from_be_bytes(*micros) * 1000)
}

/// The real-time clock in nanoseconds.
pub(crate) fn real_time_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_numbers_are_counted() {
        let mut numbers = Numbers::default();
        let missing = [7, 8, 11, u32::MAX, 0, 2].map(|number| numbers.missing(number));
        assert_eq!(missing, [0, 0, 2, u32::MAX - 12, 0, 1]);
    }
}
