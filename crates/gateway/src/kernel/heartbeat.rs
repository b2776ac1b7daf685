//! The heartbeats, without which the kernel neither holds packets for this process nor diverts any to it.
//!
//! A process that is stopped, or waits for a disk, still owns its rules and its queue. These rules therefore ask for an element
//! of a set that the kernel soon forgets. A packet that a thread sends now and then, and that a rule drops, puts it
//! there again. So the rules end by themselves: no other process must run for that.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use lasthop_live::Interface;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::net::{SendFlags, send};

use super::Marks;

/// How long the kernel remembers a beat. A client that was held asks again after a second, and then passes.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(900);

/// The ports of this host to which the gateway's first thread, and that of a tunnel, send theirs. Nothing arrives there.
pub(crate) const BY_GATEWAY: u16 = 9;
pub(crate) const BY_TUNNEL: u16 = 10;

/// How often a thread beats.
const INTERVAL: Duration = Duration::from_millis(200);

/// What is sent: the header of virtio(7), and a frame without addresses, of the EtherType for local experiments. As a datagram,
/// any would do.
const FRAME: [u8; 70] = {
    let mut frame = [0; 70];
    (frame[22], frame[23]) = (0x88, 0xb5);
    frame
};

/// The heartbeat of a thread.
#[derive(Debug)]
pub(crate) struct Heartbeat<S> {
    socket: S,
    last: Instant,
}

impl Heartbeat<UdpSocket> {
    /// That of a thread for the gateway's table, by its port: datagrams to this host, the latest of which was sent at `last`.
    pub(crate) fn new(marks: Marks, port: u16, last: Instant) -> io::Result<Heartbeat<UdpSocket>> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, sockopt::Mark, &marks.of_heartbeat())?;
        socket.connect((Ipv4Addr::LOCALHOST, port))?;
        Ok(Heartbeat { socket, last })
    }
}

impl Heartbeat<Interface> {
    /// That of the rules that divert flows at a radio: frames that never leave by it.
    pub(crate) fn of_radio(name: &str, marks: Marks) -> io::Result<Heartbeat<Interface>> {
        let socket = Interface::open_exit(name, marks.of_heartbeat())?;
        Ok(Heartbeat { socket, last: Instant::now() })
    }
}

impl<S: AsFd> Heartbeat<S> {
    /// When the next beat is due.
    pub(crate) fn next(&self) -> Instant {
        self.last + INTERVAL
    }

    /// Beats.
    pub(crate) fn beat(&mut self, now: Instant) {
        // The rule drops it, which the kernel reports as an error.
        let _ = send(&self.socket, &FRAME, SendFlags::DONTWAIT);
        self.last = now;
    }

    /// How long this thread has stood still at `now`, if so long that the kernel may have forgotten it.
    pub(crate) fn pause(&self, now: Instant) -> Option<Duration> {
        Some(now.saturating_duration_since(self.last)).filter(|pause| *pause >= TIMEOUT)
    }
}
