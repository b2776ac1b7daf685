//! The loop that carries frames between two interfaces.

use std::io;
use std::os::fd::AsFd;

use crate::emulation::{Emulation, Side};
use lasthop_base::Duration;
use lasthop_wire::virtio::Offload;
use lasthop_wire::{IpPacket, LinkType, checksum, offload};

use crate::burst::{Burst, Leaving};
use crate::clock::{self, monotonic_ns, thread_cpu_ns};
use crate::emulator_core::{Books, Core, Exit, Settings};
use crate::frames::{ETHERNET, Mergeable};
use crate::interface::{Interface, Received, Sent};
use crate::moderation::Moderation;
use crate::report::Report;

/// The longest time between two calls of `keep_going`, in nanoseconds.
const WATCH_NS: u64 = 20_000_000;

/// Maximum number of frames that a host reads before it looks at its timers.
pub(crate) const BATCH: usize = 32;

/// Length of the longest headers of IPv4 and TCP.
const LONGEST_HEADERS: usize = 120;

/// The longest frame.
pub(crate) const BUFFER: usize = 1 << 17;

/// An interface, and the first frame of its queue.
struct Port {
    interface: Interface,
    /// The frame that was read last.
    buffer: Vec<u8>,
    /// What is known of it, until it enters the network.
    first: Option<Received>,
    /// When the interface was last found without frames, in nanoseconds of the monotonic clock.
    empty_ns: u64,
}

impl Port {
    fn new(interface: Interface) -> Port {
        Port { interface, buffer: vec![0; BUFFER], first: None, empty_ns: 0 }
    }

    /// When the first of the frames that arrived until `until_ns` did; `None` if all of these have entered the network.
    fn first_arrival(&mut self, until_ns: u64) -> io::Result<Option<u64>> {
        if self.first.is_none() && self.empty_ns < until_ns {
            let now_ns = monotonic_ns();
            self.first = self.interface.receive(&mut self.buffer)?;
            if self.first.is_none() {
                self.empty_ns = now_ns;
            }
        }
        Ok(self.first.map(|first| first.arrived_ns).filter(|&arrived_ns| arrived_ns <= until_ns))
    }
}

/// The network of a scenario between two interfaces, in real time.
#[allow(missing_debug_implementations)]
pub struct Emulator {
    core: Core,
    ports: Ports,
    is_virtual: bool,
    cpu_ns: u64,
}

/// The interfaces.
struct Ports {
    each: [Port; 2],
    /// Packets to be written to each end before any other, at the latest when all due events have been handled.
    bursts: [Burst; 2],
    moderation: Moderation,
}

impl Emulator {
    /// An emulator between the interfaces of the two ends.
    ///
    /// # Errors
    /// If the capture cannot be written, or if a trace is requested of connections that are split.
    pub fn new(emulation: Emulation, interfaces: [Interface; 2], settings: Settings) -> io::Result<Emulator> {
        let bursts = [Burst::default(), Burst::default()];
        let ports = Ports { each: interfaces.map(Port::new), bursts, moderation: Moderation::new() };
        let is_virtual = settings.virtual_time;
        Ok(Emulator { core: Core::new(emulation, settings)?, ports, is_virtual, cpu_ns: 0 })
    }

    /// Carries packets until `keep_going` returns false. It is called about fifty times a second. The clock of the
    /// scenario starts with the first packet.
    ///
    /// # Errors
    /// If an interface fails, or the capture.
    pub fn run(&mut self, mut keep_going: impl FnMut() -> bool) -> io::Result<()> {
        // The default timer slack of a thread is 50 microseconds.
        nix::sys::prctl::set_timerslack(1)?;
        if self.is_virtual {
            clock::read_once_per_wait();
        }
        self.core.begin(monotonic_ns());
        let begin_ns = thread_cpu_ns();
        let mut watched_ns = 0;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= watched_ns {
                self.cpu_ns = thread_cpu_ns() - begin_ns;
                if !keep_going() {
                    return Ok(());
                }
                self.ports.each.iter_mut().try_for_each(|port| port.interface.mend_ring())?;
                watched_ns = monotonic_ns() + WATCH_NS;
            }
            self.catch_up()?;
            self.ports.moderation.wake(monotonic_ns());
            if let Some(pause) = self.ports.moderation.pause() {
                clock::pause(pause);
            }
            self.wait(watched_ns)?;
        }
    }

    /// Ends the emulation.
    ///
    /// # Errors
    /// If the capture cannot be written.
    pub fn finish(mut self) -> io::Result<Report> {
        let now_ns = monotonic_ns();
        self.core.books.overload +=
            self.ports.each.iter().map(|port| port.interface.overflowed()).sum::<u64>();
        self.core.finish(now_ns, Duration::from_nanos(self.cpu_ns))
    }

    /// Waits for the next deadline, a frame, or the time `until_ns`.
    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let has_frame = self.ports.each.iter().any(|port| port.first.is_some());
        let until_ns = if has_frame { 0 } else { self.core.due_ns().min(until_ns) };
        clock::wait(self.ports.each.each_ref().map(|port| port.interface.as_fd()), until_ns)?;
        Ok(())
    }

    /// Lets the frames that have arrived until now enter the network in order of arrival, each at the time of its
    /// arrival, and handles the events that are due. So frames that waited to be read keep their distances, and enter
    /// late only if the network has gone on meanwhile.
    fn catch_up(&mut self) -> io::Result<()> {
        let now_ns = monotonic_ns();
        while let Some(side) = self.ports.oldest(now_ns)? {
            let port = &mut self.ports.each[side as usize];
            let Some(received) = port.first.take() else { break };
            let mut buffer = std::mem::take(&mut port.buffer);
            self.accept(side, &mut buffer[..received.len.min(BUFFER)], received)?;
            self.ports.each[side as usize].buffer = buffer;
        }
        let Emulator { core, ports, .. } = self;
        if core.is_before(now_ns) {
            core.advance(now_ns, ports)?;
        }
        Side::BOTH.into_iter().try_for_each(|side| ports.write_burst(&mut core.books, side))
    }

    /// Lets a frame enter the network, or the segments of a super-packet.
    fn accept(&mut self, side: Side, frame: &mut [u8], received: Received) -> io::Result<()> {
        let Received { arrived_ns, waited_ns, is_cut, offload, .. } = received;
        let Emulator { core, ports, .. } = self;
        if is_cut {
            core.refuse_oversized();
            return Ok(());
        }
        let accept = |frame: &[u8]| core.accept(side, frame, arrived_ns, waited_ns, ports);
        if each_packet(frame, offload, accept)? {
            core.count_segmented();
        }
        Ok(())
    }
}

impl Ports {
    /// The side of the first of the frames that arrived until `until_ns`.
    fn oldest(&mut self, until_ns: u64) -> io::Result<Option<Side>> {
        let [one, two] = &mut self.each;
        Ok(match (one.first_arrival(until_ns)?, two.first_arrival(until_ns)?) {
            (None, None) => None,
            (Some(first), Some(second)) if second < first => Some(Side::BOTH[1]),
            (None, Some(_)) => Some(Side::BOTH[1]),
            (Some(_), _) => Some(Side::BOTH[0]),
        })
    }

    /// Writes the packets to the end at `side` that wait for others to leave with them.
    fn write_burst(&mut self, books: &mut Books, side: Side) -> io::Result<()> {
        let burst = &mut self.bursts[side as usize];
        if burst.is_empty() {
            return Ok(());
        }
        let sent = burst.write(&mut self.each[side as usize].interface)?;
        let packets = burst.clear();
        for &leaving in &packets {
            self.written(books, side, leaving, sent)?;
        }
        self.bursts[side as usize].recycle(packets);
        Ok(())
    }

    /// Counts a packet that was written to the interface of the end at `side`.
    fn written(&mut self, books: &mut Books, side: Side, leaving: Leaving, sent: Sent) -> io::Result<()> {
        self.moderation.count();
        let late_ns = monotonic_ns().saturating_sub(leaving.due_ns) + leaving.delayed_ns;
        books.left(side, leaving, sent, Duration::from_nanos(late_ns))
    }
}

impl Exit for Ports {
    fn leave(
        &mut self,
        books: &mut Books,
        side: Side,
        frame: &[u8],
        mergeable: Mergeable,
        leaving: Leaving,
    ) -> io::Result<()> {
        let interface = &self.each[side as usize].interface;
        let may_wait = match mergeable {
            Mergeable::No => false,
            Mergeable::Datagram => interface.takes_super_packets(false),
            Mergeable::Segment => interface.takes_super_packets(true) && self.moderation.pause().is_some(),
        };
        if !(may_wait && self.bursts[side as usize].push(frame, leaving)) {
            self.write_burst(books, side)?;
            if !(may_wait && self.bursts[side as usize].push(frame, leaving)) {
                let sent = self.each[side as usize].interface.send(frame)?;
                self.written(books, side, leaving, sent)?;
            }
        }
        Ok(())
    }

    fn on_entry(&mut self) {
        self.moderation.count();
    }
}

/// Does the work on a frame that its sender left to a network card, and passes it to `each`, or the segments of a
/// super-packet. Returns whether it was one.
pub(crate) fn each_packet(
    frame: &mut [u8],
    offload: Offload,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    if let Some((size, is_tcp)) = offload.segments
        && let Ok(network) = LinkType::ETHERNET.network_layer(frame)
        && let Ok(packet) = IpPacket::parse(network)
        // In a tunnel, the description is that of an inner packet.
        && is_tcp == packet.tcp().is_some()
        && offload.checksum.is_none_or(|(start, _)| start == frame.len() - network.len() + packet.header_len)
        && let Ok(segments) = offload::segments(&packet, size, offload.cwr())
    {
        let link_header = &frame[..frame.len() - network.len()];
        let mut framed = Vec::with_capacity(ETHERNET + size + LONGEST_HEADERS);
        for segment in segments {
            framed.clear();
            framed.extend_from_slice(link_header);
            framed.extend_from_slice(&segment);
            each(&framed)?;
        }
        return Ok(true);
    }
    if let Some((start, at)) = offload.checksum {
        // The kernel has checked the places of frames that it describes.
        let _ = checksum::complete(frame, start, at);
    }
    each(frame)?;
    Ok(false)
}
