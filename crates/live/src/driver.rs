//! An endpoint on a network interface: Lasthop's TCP talks to real hosts.

use std::io;
use std::os::fd::AsFd;

use lasthop_base::{Duration, Time};
use lasthop_endpoint::{Endpoint, Incoming, Outgoing, refuse};
use lasthop_wire::{Checksum, IpPacket, LinkType, Transport};

use crate::clock::{self, monotonic_ns};
use crate::emulator::{BATCH, BUFFER};
use crate::frames::ETHERNET;
use crate::interface::Interface;

/// The monotonic time, which is the clock of a [`Driver`]'s endpoint.
pub fn now() -> Time {
    Time::from_nanos(monotonic_ns())
}

/// A link that carries the frames of a host.
pub trait Link: AsFd {
    /// Reads a frame into `buffer`, and returns its length; `None` if there is none.
    ///
    /// # Errors
    /// If the link fails.
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>>;

    /// Sends a frame. The frame is lost if the link has no room for it.
    ///
    /// # Errors
    /// If the link fails.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;
}

impl Link for Interface {
    fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let received = Interface::receive(self, buffer)?.filter(|received| !received.is_cut);
        Ok(received.map(|received| received.len))
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        Interface::send(self, frame).map(drop)
    }
}

/// An endpoint on a link, where no other host has its address.
///
/// The kernel must not have the same address: it would reset connections that it does not know.
#[derive(Debug)]
pub struct Driver<L = Interface> {
    endpoint: Endpoint,
    link: L,
    /// The Ethernet header of sent frames, without the EtherType.
    addresses: [u8; ETHERNET - 2],
    buffer: Vec<u8>,
}

impl<L: Link> Driver<L> {
    /// A driver that sends between these hardware addresses. The endpoint's clock is [`now`].
    pub fn new(endpoint: Endpoint, link: L, [from, to]: [[u8; 6]; 2]) -> Driver<L> {
        let mut addresses = [0; ETHERNET - 2];
        addresses[..6].copy_from_slice(&to);
        addresses[6..].copy_from_slice(&from);
        Driver { endpoint, link, addresses, buffer: vec![0; BUFFER] }
    }

    /// The endpoint. Its pending packets leave with the next [`turn`](Driver::turn).
    pub fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Sends pending packets, waits at most `longest` for frames or a timer of the endpoint, and processes them.
    ///
    /// # Errors
    /// If the link fails.
    pub fn turn(&mut self, longest: Duration) -> io::Result<()> {
        self.flush()?;
        let until = self.endpoint.next_wakeup().min(now() + longest);
        if clock::wait([self.link.as_fd()], until.as_nanos())? {
            for _ in 0..BATCH {
                let Some(len) = self.link.receive(&mut self.buffer)? else { break };
                self.take(len)?;
            }
        }
        self.endpoint.wake(now());
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some(packet) = self.endpoint.poll() {
            self.send(&packet)?;
        }
        Ok(())
    }

    fn send(&mut self, packet: &Outgoing) -> io::Result<()> {
        let kind: [u8; 2] = if packet.remote.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] };
        let bytes = packet.to_bytes().map_err(io::Error::other)?;
        self.link.send(&[&self.addresses[..], &kind, &bytes].concat())
    }

    /// Processes the frame in the buffer, if it is for this host.
    fn take(&mut self, len: usize) -> io::Result<()> {
        let frame = &self.buffer[..len];
        let Ok(packet) = LinkType::ETHERNET.network_layer(frame).and_then(IpPacket::parse) else {
            return Ok(());
        };
        // On a virtual link, the kernel offloads checksums to a card that does not exist.
        let is_intact = matches!(packet.transport_checksum(), Checksum::Correct | Checksum::Partial);
        if !is_intact || packet.ip.dst != self.endpoint.local().ip() {
            return Ok(());
        }
        if let Transport::Icmp(icmp) = &packet.transport {
            self.endpoint.receive_icmp(now(), icmp);
        } else if let Some(segment) = Incoming::of(&packet) {
            if self.endpoint.is_for(&segment) {
                self.endpoint.receive(now(), &segment);
            } else if let Some(reset) = refuse(&segment) {
                self.send(&reset)?;
            }
        }
        Ok(())
    }
}
