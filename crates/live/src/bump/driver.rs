//! The loop that runs a bump between two interfaces.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use lasthop_base::{Duration, Time};

use super::{ADDRESS, Admission, Bump, Direction};
use crate::burst::Burst;
use crate::clock::{self, monotonic_ns};
use crate::emulator::{BATCH, BUFFER, each_packet};
use crate::interface::{Interface, Sent};

/// The time between two calls of [`Bump::maintain`].
const MAINTENANCE: Duration = Duration::from_secs(1);

/// A side of the bump: where frames leave, and those that leave together.
#[derive(Debug)]
struct Exit {
    burst: Burst<()>,
    dropped: u64,
}

impl Exit {
    /// Writes a frame, or lets it wait for others of its flow.
    fn push(&mut self, interface: &mut Interface, frame: &[u8]) -> io::Result<()> {
        if self.burst.push(frame, ()) {
            return Ok(());
        }
        self.flush(interface)?;
        if !self.burst.push(frame, ()) {
            let sent = interface.send(frame)?;
            self.dropped += u64::from(sent != Sent::Delivered);
        }
        Ok(())
    }

    fn flush(&mut self, interface: &mut Interface) -> io::Result<()> {
        if self.burst.is_empty() {
            return Ok(());
        }
        let sent = self.burst.write(interface)?;
        let packets = self.burst.clear();
        self.dropped += if sent == Sent::Delivered { 0 } else { packets.len() as u64 };
        self.burst.recycle(packets);
        Ok(())
    }
}

/// A bump between the kernel and the interface of a radio.
#[allow(missing_debug_implementations, reason = "agents are functions")]
pub struct BumpDriver {
    bump: Bump,
    /// Where diverted frames come from, and where those go that the kernel is to receive.
    inner: Interface,
    /// Where frames for the radio go.
    radio: Interface,
    /// The hardware address at which the kernel receives.
    own: [u8; ADDRESS],
    to_radio: Exit,
    from_radio: Exit,
    buffer: Vec<u8>,
    /// A frame for the kernel.
    readdressed: Vec<u8>,
    maintained: Time,
}

impl BumpDriver {
    /// A bump between `inner`, at whose other end the kernel receives at the hardware address `own`, and `radio`, whose own
    /// hardware address comes with it.
    pub fn new(inner: Interface, own: [u8; 6], (radio, address): (Interface, [u8; 6])) -> BumpDriver {
        let exit = || Exit { burst: Burst::default(), dropped: 0 };
        BumpDriver {
            bump: Bump::new(address),
            inner,
            radio,
            own,
            to_radio: exit(),
            from_radio: exit(),
            buffer: vec![0; BUFFER],
            readdressed: Vec::new(),
            maintained: Time::ZERO,
        }
    }

    /// The flows and their agents.
    pub fn bump(&self) -> &Bump {
        &self.bump
    }

    /// Frames for which the kernel had no room.
    pub fn dropped(&self) -> u64 {
        self.to_radio.dropped + self.from_radio.dropped
    }

    /// Uses another interface for the radio, which has come back with this hardware address.
    pub fn replace_radio(&mut self, radio: Interface, address: [u8; 6]) {
        self.radio = radio;
        self.bump.set_radio(address);
    }

    /// Uses another pair of interfaces, as [`new`](BumpDriver::new) describes it.
    pub fn replace_inner(&mut self, inner: Interface, own: [u8; 6]) {
        self.inner = inner;
        self.own = own;
    }

    /// The radio's interface has another hardware address now.
    pub fn set_radio_address(&mut self, address: [u8; 6]) {
        self.bump.set_radio(address);
    }

    /// Waits for frames, a deadline of agents, or `bell`, for at most `longest`, and handles what there is.
    ///
    /// # Errors
    /// If an interface fails.
    pub fn turn(
        &mut self,
        bell: BorrowedFd<'_>,
        longest: Duration,
        admission: &mut dyn Admission,
    ) -> io::Result<()> {
        let until = self.bump.next_wakeup().min(now() + longest);
        clock::wait([self.inner.as_fd(), bell], until.as_nanos())?;
        for _ in 0..BATCH {
            let Some(received) = self.inner.receive(&mut self.buffer)? else { break };
            if received.is_cut {
                continue;
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let outcome = each_packet(&mut buffer[..received.len.min(BUFFER)], received.offload, |frame| {
                self.handle(|bump, emit| bump.receive(now(), frame, admission, emit))
            });
            self.buffer = buffer;
            outcome?;
        }
        self.handle(|bump, emit| bump.wake(now(), emit))?;
        self.to_radio.flush(&mut self.radio)?;
        self.from_radio.flush(&mut self.inner)?;
        if now() >= self.maintained + MAINTENANCE {
            self.maintained = now();
            self.inner.mend_ring()?;
            self.bump.maintain(self.maintained, admission);
        }
        Ok(())
    }

    /// Lets the bump do something, and writes the frames that leave it.
    fn handle(&mut self, action: impl FnOnce(&mut Bump, &mut dyn FnMut(Direction, &[u8]))) -> io::Result<()> {
        let BumpDriver { bump, inner, radio, own, to_radio, from_radio, readdressed, .. } = self;
        let mut outcome = Ok(());
        action(bump, &mut |direction, frame| {
            let written = match direction {
                Direction::ToRadio => to_radio.push(radio, frame),
                Direction::FromRadio => {
                    readdressed.clear();
                    readdressed.extend_from_slice(frame);
                    readdressed[..ADDRESS].copy_from_slice(own);
                    from_radio.push(inner, readdressed)
                }
            };
            if outcome.is_ok() {
                outcome = written;
            }
        });
        outcome
    }
}

fn now() -> Time {
    Time::from_nanos(monotonic_ns())
}
