//! The loop that carries frames between two interfaces.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;

use lasthop_base::{Bytes, Duration, Histogram, Time};
use lasthop_proto::{Dscp, Ecn, Handle, Packet};
use lasthop_scenario::{Carried, Emulation, EmulationCounters, Entering, Side};
use lasthop_wire::{Checksum, Error, IpPacket, LinkType, checksum, edit, offload};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use crate::capture::Capture;
use crate::clock::{monotonic_ns, thread_cpu_ns};
use crate::connections::{Connections, Flows};
use crate::frames::{Frame, Origin};
use crate::interface::{Interface, Received, Sent};
use crate::recorder::Recorder;
use crate::report::{Lateness, Report, SideReport, Unforwarded};
use crate::segments;
use crate::split::{BaseStation, SharedFrames};

/// Length of an Ethernet header.
pub(crate) const ETHERNET: usize = 14;

/// Length of a VLAN tag, by which a frame may exceed the MTU.
const VLAN_TAG: usize = 4;

/// The longest time between two calls of `keep_going`, in nanoseconds.
const WATCH_NS: u64 = 20_000_000;

/// Maximum number of frames read from one interface before the other is served.
pub(crate) const BATCH: usize = 32;

/// Below this spacing of events, the thread pauses for [`PAUSE_NS`] and handles the due events together: a
/// wake-up costs more than a packet, for the sender as well.
const DENSE_NS: u64 = 20_000;

/// The length of a pause.
const PAUSE_NS: u64 = 50_000;

/// The longest frame.
pub(crate) const BUFFER: usize = 1 << 17;

/// Settings of an emulation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The MTU of both interfaces: larger packets are refused.
    pub mtu: usize,
    /// Maximum wait of a packet before it is read; later packets are dropped, since this machine is overloaded.
    pub longest_wait: Duration,
    /// Paths of the two pcapng files: the source's, with losses, and the destination's.
    pub capture: Option<[PathBuf; 2]>,
    /// Whether frames of all protocols are carried, as by a wire; otherwise IP packets between the two ends.
    pub whole_frames: bool,
    /// Whether to record a [trace](Report::traces) of each TCP connection.
    pub trace: bool,
    /// Whether to [record](Report::packets) how late each packet is.
    pub record_lateness: bool,
}

impl Default for Settings {
    /// IP packets of Ethernet's size, without recordings.
    fn default() -> Settings {
        Settings {
            mtu: 1500,
            longest_wait: Duration::from_millis(50),
            capture: None,
            whole_frames: false,
            trace: false,
            record_lateness: false,
        }
    }
}

/// The network of a scenario between two interfaces.
#[allow(missing_debug_implementations)]
pub struct Emulator {
    emulation: Emulation,
    interfaces: [Interface; 2],
    settings: Settings,
    /// The captures of the source, with losses, and of the destination.
    capture: Option<[Capture; 2]>,
    frames: SharedFrames,
    recorder: Recorder,
    /// Lanes for queues.
    flows: Flows,
    /// Lanes for agents; `None` without agents.
    connections: Option<Connections>,
    /// Buffer for a frame that was changed in the network.
    changed: Vec<u8>,
    /// The monotonic clock when the emulation's clock was zero; `None` before the first packet.
    origin_ns: Option<u64>,
    carried: Vec<Carried>,
    /// Whether the next event is expected within [`DENSE_NS`].
    is_dense: bool,
    lateness: Histogram,
    ends: [SideReport; 2],
    unforwarded: Unforwarded,
    lost: u64,
    suppressed: u64,
    marked: u64,
    opaque: u64,
    segmented: u64,
    undelivered: u64,
    overload: u64,
    cpu_ns: u64,
}

impl Emulator {
    /// An emulator between the interfaces of the two ends.
    ///
    /// # Errors
    /// If the capture cannot be written, or if a trace is requested of connections that are split.
    pub fn new(
        mut emulation: Emulation,
        interfaces: [Interface; 2],
        settings: Settings,
    ) -> io::Result<Emulator> {
        if settings.trace && emulation.splits() {
            let problem = "a trace cannot show split connections, whose two parts have sequence numbers of their own; \
                           capture the packets instead";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let capture = settings.capture.as_ref().map(|[source, destination]| {
            let [from, to] = emulation.hosts();
            Ok::<_, io::Error>([Capture::new(source, from, true)?, Capture::new(destination, to, false)?])
        });
        let frames = SharedFrames::default();
        emulation.split(|site| Box::new(BaseStation::new(site, frames.clone())));
        let ends = emulation.hosts().clone().map(|host| SideReport { host, ..SideReport::default() });
        Ok(Emulator {
            capture: capture.transpose()?,
            connections: emulation
                .has_agents()
                .then(|| Connections::new(emulation.lanes(), emulation.splits())),
            emulation,
            interfaces,
            recorder: Recorder::new(settings.trace, settings.record_lateness),
            settings,
            frames,
            flows: Flows::default(),
            changed: Vec::new(),
            origin_ns: None,
            carried: Vec::new(),
            is_dense: false,
            lateness: Histogram::default(),
            ends,
            unforwarded: Unforwarded::default(),
            lost: 0,
            suppressed: 0,
            marked: 0,
            opaque: 0,
            segmented: 0,
            undelivered: 0,
            overload: 0,
            cpu_ns: 0,
        })
    }

    /// Carries packets until `keep_going` returns false. It is called about fifty times a second. The clock of the
    /// scenario starts with the first packet.
    ///
    /// # Errors
    /// If an interface fails, or the capture.
    pub fn run(&mut self, mut keep_going: impl FnMut() -> bool) -> io::Result<()> {
        // The default timer slack of a thread is 50 microseconds.
        nix::sys::prctl::set_timerslack(1)?;
        let begin_ns = thread_cpu_ns();
        let mut buffer = vec![0; BUFFER];
        let mut watched_ns = 0;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= watched_ns {
                self.cpu_ns = thread_cpu_ns() - begin_ns;
                if !keep_going() {
                    return Ok(());
                }
                watched_ns = monotonic_ns() + WATCH_NS;
            }
            self.advance()?;
            for side in self.wait(watched_ns)? {
                self.read(side, &mut buffer)?;
            }
        }
    }

    /// Ends the emulation.
    ///
    /// # Errors
    /// If the capture cannot be written.
    pub fn finish(mut self) -> io::Result<Report> {
        let end = self.now();
        self.drop_unused(true);
        for capture in self.capture.take().into_iter().flatten() {
            capture.finish()?;
        }
        let duration_s = end.since(self.emulation.start().min(end)).as_secs_f64();
        let simulated_flows = self.emulation.simulated_flows();
        let (in_network, kept) = self.emulation.held();
        let EmulationCounters { links, schemes } = self.emulation.finish();
        let (connections, traces, packets) = self.recorder.finish();
        Ok(Report {
            duration_s,
            cpu_s: Duration::from_nanos(self.cpu_ns).as_secs_f64(),
            ends: self.ends,
            lost_packets: self.lost,
            suppressed_packets: self.suppressed,
            opaque_packets: self.opaque,
            marked_packets: self.marked,
            segmented_packets: self.segmented,
            in_network_packets: in_network as u64,
            kept_packets: kept as u64,
            undelivered_packets: self.undelivered,
            overload_drops: self.overload + self.interfaces.iter().map(Interface::overflowed).sum::<u64>(),
            lateness: Lateness {
                p50_s: self.lateness.quantile(0.5).unwrap_or_default().as_secs_f64(),
                p99_s: self.lateness.quantile(0.99).unwrap_or_default().as_secs_f64(),
                max_s: self.lateness.max().as_secs_f64(),
            },
            unforwarded: self.unforwarded,
            simulated_flows,
            links,
            schemes,
            connections,
            traces,
            packets,
        })
    }

    /// The emulation's clock.
    fn now(&self) -> Time {
        Time::from_nanos(self.origin_ns.map_or(0, |origin| monotonic_ns().saturating_sub(origin)))
    }

    /// The next deadline on the monotonic clock, in nanoseconds.
    fn due_ns(&self) -> u64 {
        let next = self.emulation.next_wakeup();
        match self.origin_ns {
            Some(origin) if next < Time::NEVER => origin.saturating_add(next.as_nanos()),
            _ => u64::MAX,
        }
    }

    /// Waits for the next deadline, a frame, or the time `until_ns`; returns the interfaces with frames.
    fn wait(&mut self, until_ns: u64) -> io::Result<impl Iterator<Item = Side> + use<>> {
        if self.is_dense {
            std::thread::sleep(std::time::Duration::from_nanos(PAUSE_NS));
            self.advance()?;
        }
        let begin_ns = monotonic_ns();
        let timeout = self.due_ns().min(until_ns).saturating_sub(monotonic_ns());
        let timeout = TimeSpec::new((timeout / 1_000_000_000) as i64, (timeout % 1_000_000_000) as i64);
        let mut fds = self.interfaces.each_ref().map(|each| PollFd::new(each.as_fd(), PollFlags::POLLIN));
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = fds.map(|fd| fd.any().unwrap_or(false));
        self.is_dense = monotonic_ns() - begin_ns < DENSE_NS;
        Ok(Side::BOTH.into_iter().filter(move |side| ready[*side as usize]))
    }

    /// Reads frames of one interface, and handles due events in between.
    fn read(&mut self, side: Side, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let Some(received) = self.interfaces[side as usize].receive(buffer)? else { return Ok(()) };
            self.accept(side, &mut buffer[..received.len.min(BUFFER)], received)?;
            if monotonic_ns() >= self.due_ns() {
                self.advance()?;
            }
        }
        // With more frames pending there is no time to pause.
        self.is_dense = false;
        Ok(())
    }

    /// Does the work that the sender left to a network card, and lets the frame enter the network, or the segments of
    /// a super-packet.
    fn accept(&mut self, side: Side, frame: &mut [u8], received: Received) -> io::Result<()> {
        if received.is_cut {
            self.unforwarded.oversized += 1;
            return Ok(());
        }
        if let Some(size) = received.offload.segment_size
            && let Ok(network) = LinkType::Ethernet.network_layer(frame)
            && let Ok(segments) = IpPacket::parse(network).and_then(|packet| offload::segments(&packet, size))
        {
            self.segmented += 1;
            let link_header = &frame[..frame.len() - network.len()];
            let mut framed = Vec::with_capacity(ETHERNET + self.settings.mtu);
            for segment in segments {
                framed.clear();
                framed.extend_from_slice(link_header);
                framed.extend_from_slice(&segment);
                self.accept_frame(side, &framed, received.waited_ns)?;
            }
            return Ok(());
        }
        if let Some((start, at)) = received.offload.checksum {
            // The kernel has checked the places of frames that it describes.
            let _ = checksum::complete(frame, start, at);
        }
        self.accept_frame(side, frame, received.waited_ns)
    }

    /// Lets a frame enter the network, if it is for the other end.
    fn accept_frame(&mut self, side: Side, frame: &[u8], waited_ns: u64) -> io::Result<()> {
        let is_wire = self.settings.whole_frames;
        let packet = ip_packet(frame);
        if packet.is_none() && !(is_wire && frame.len() > ETHERNET) {
            self.unforwarded.not_ip += 1;
            return Ok(());
        }
        let len = packet.map_or(frame.len() - ETHERNET, |packet| packet.len);
        if let Some(packet) = &packet
            && !is_wire
            && (is_link_local(packet.ip.dst) || is_link_local(packet.ip.src))
        {
            self.unforwarded.link_local += 1;
            return Ok(());
        }
        let is_oversized = match &packet {
            Some(packet) => packet.is_super_packet(self.settings.mtu),
            None => len > self.settings.mtu + VLAN_TAG,
        };
        if is_oversized {
            self.unforwarded.oversized += 1;
            return Ok(());
        }
        if self.origin_ns.is_none() {
            // Simulated traffic may start earlier.
            let start = self.emulation.start();
            self.emulation.advance(start);
            self.origin_ns = Some(monotonic_ns().saturating_sub(start.as_nanos()));
        }
        let end = &mut self.ends[side as usize];
        (end.sent_packets, end.sent_bytes) = (end.sent_packets + 1, end.sent_bytes + len as u64);
        if waited_ns > self.settings.longest_wait.as_nanos() || !self.has_room(frame.len()) {
            self.overload += 1;
            return Ok(());
        }
        let now = self.now();
        self.emulation.advance(now);
        let mut origin = Origin { at: now, side, connection: None };
        let (mut lane, mut scale) = (0, 0);
        let mut entering = Entering {
            handle: Handle::NONE,
            size: Bytes(len as u64),
            dscp: Dscp::DEFAULT,
            ecn: Ecn::NotEct,
            segment: None,
        };
        let mut checksum = Checksum::Absent;
        if let Some(packet) = &packet {
            checksum = packet.transport_checksum();
            (lane, entering, scale) = self.classify(now, side, packet, checksum);
            // The parts of a split connection have the same addresses, and numbers of their own.
            if !self.emulation.splits() {
                origin.connection = self.recorder.enter(now, side, packet)?;
            }
        }
        // A trailer is padding of the sender's link, which a wire keeps.
        let bytes = match &packet {
            Some(packet) if !is_wire => &frame[..ETHERNET + packet.bytes.len()],
            _ => frame,
        };
        let mut frames = self.frames.lock();
        let kept = frames.insert(bytes, waited_ns, entering, scale, origin);
        // The sender offloaded the checksum to its network card, which precedes the links.
        if checksum == Checksum::Partial {
            checksum::repair(&mut kept.bytes[ETHERNET..]).expect("the packet has been read");
        }
        if let Some(captures) = &mut self.capture {
            captures[side as usize].cross(now, &kept.bytes)?;
        }
        let entered = kept.entered;
        drop(frames);
        self.emulation.enter(side, lane, &entered);
        self.write()
    }

    /// Whether another frame may be kept, after removing frames that agents released.
    fn has_room(&mut self, len: usize) -> bool {
        let has_room = self.frames.lock().has_room(len);
        if !has_room {
            self.drop_unused(true);
        }
        has_room || self.frames.lock().has_room(len)
    }

    /// The lane of a packet, the packet as it enters, and its window scale. Agents see only segments that the
    /// other end will accept: complete ones with a correct checksum.
    fn classify(
        &mut self,
        now: Time,
        side: Side,
        packet: &IpPacket<'_>,
        checksum: Checksum,
    ) -> (usize, Entering, u8) {
        let mut entering = Entering {
            handle: Handle::NONE,
            size: Bytes(packet.len as u64),
            dscp: packet.ip.dscp,
            ecn: packet.ip.ecn,
            segment: None,
        };
        let is_intact = matches!(checksum, Checksum::Correct | Checksum::Partial);
        if let Some(connections) = &mut self.connections
            && let Some(tcp) = packet.tcp()
        {
            let found = connections.find(now, side, packet, &tcp.header).filter(|_| is_intact);
            if let Some((lane, scale)) = found {
                entering.segment = Some(segments::read(&tcp.header, scale));
                return (lane, entering, scale);
            }
            self.opaque += 1;
        }
        let lane = if self.emulation.lanes() == 1 { 0 } else { self.flows.lane(packet) };
        (lane, entering, 0)
    }

    /// Handles due events, and writes the packets that leave the network.
    fn advance(&mut self) -> io::Result<()> {
        if self.origin_ns.is_some() {
            let now = self.now();
            self.emulation.advance(now);
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        if !self.emulation.has_carried() {
            return Ok(());
        }
        let mut carried = std::mem::take(&mut self.carried);
        carried.extend(self.emulation.take());
        for each in carried.drain(..) {
            self.leave(&each)?;
        }
        self.carried = carried;
        self.drop_unused(false);
        Ok(())
    }

    /// Removes frames that are neither in the network nor held by an agent; a full scan only if `all`.
    fn drop_unused(&mut self, all: bool) {
        let Emulator { emulation, frames, .. } = self;
        let mut frames = frames.lock();
        emulation.take_unused(all, |handle| frames.remove(handle));
    }

    /// Handles a packet that leaves the network or was dropped.
    fn leave(&mut self, &Carried { time, packet, outcome }: &Carried) -> io::Result<()> {
        let mut frames = self.frames.lock();
        let Some(frame) = frames.get(packet.handle) else {
            debug_assert!(false, "an agent sent a packet that it had not kept");
            self.undelivered += 1;
            return Ok(());
        };
        let side = match outcome {
            Ok(side) => side,
            Err((at, reason)) => {
                let is_suppressed = self.emulation.is_agent(at);
                *(if is_suppressed { &mut self.suppressed } else { &mut self.lost }) += 1;
                if let Some([source, _]) = &mut self.capture {
                    source.lose(time, &frame.bytes, at, self.emulation.dropper(at), reason)?;
                }
                if let Some(number) = frame.origin.connection {
                    let (from, scheme) = (frame.origin.side, self.emulation.scheme_of_agent(at));
                    self.recorder.drop(time, number, from, &frame.bytes[ETHERNET..], reason, scheme)?;
                }
                return Ok(());
            }
        };
        self.marked += u64::from(packet.ecn != frame.entered.ecn);
        let bytes = if is_changed(frame, &packet) {
            self.changed.clone_from(&frame.bytes);
            // No link or agent changes a packet of another protocol than IP.
            let is_done = change(&mut self.changed[ETHERNET..], frame, &packet);
            debug_assert!(is_done.is_ok());
            &self.changed
        } else {
            &frame.bytes
        };
        if let Some(captures) = &mut self.capture {
            captures[side as usize].cross(time, bytes)?;
        }
        match self.interfaces[side as usize].send(bytes)? {
            Sent::Delivered => {
                let end = &mut self.ends[side as usize];
                end.received_packets += 1;
                end.received_bytes += packet.size.0;
            }
            Sent::NoRoom => self.overload += 1,
            Sent::Gone => self.undelivered += 1,
        }
        if let Some(number) = frame.origin.connection {
            self.recorder.arrive(time, number, frame.origin.side, &bytes[ETHERNET..])?;
        }
        let due_ns = self.origin_ns.unwrap_or(0) + time.as_nanos();
        let late_ns = monotonic_ns().saturating_sub(due_ns) + frame.waited_ns;
        // Later copies did not wait to be read.
        frame.waited_ns = 0;
        let late = Duration::from_nanos(late_ns);
        self.lateness.record(late);
        self.recorder.late(frame.origin.at, time, side, packet.size.0, late.as_secs_f64())
    }
}

/// Whether a packet was changed in the network.
pub(crate) fn is_changed(frame: &Frame, packet: &Packet) -> bool {
    let Entering { ecn, dscp, segment, .. } = &frame.entered;
    (packet.ecn, packet.dscp) != (*ecn, *dscp)
        || segment.as_ref().is_some_and(|it| packet.segment() != Some(it))
}

/// Writes the changes into the bytes of a packet.
pub(crate) fn change(bytes: &mut [u8], frame: &Frame, packet: &Packet) -> Result<(), Error> {
    edit::set_ecn(bytes, packet.ecn)?;
    edit::set_dscp(bytes, packet.dscp)?;
    match (&frame.entered.segment, packet.segment()) {
        (Some(before), Some(after)) => segments::write(bytes, before, after, frame.scale),
        _ => Ok(()),
    }
}

/// The IP packet of a frame without a VLAN tag.
pub(crate) fn ip_packet(frame: &[u8]) -> Option<IpPacket<'_>> {
    let bytes = LinkType::Ethernet.network_layer(frame).ok()?;
    let is_untagged = frame.len() - bytes.len() == ETHERNET;
    IpPacket::parse(bytes).ok().filter(|_| is_untagged)
}

/// Whether an address is confined to the link.
fn is_link_local(address: IpAddr) -> bool {
    address.is_multicast()
        || address.is_unspecified()
        || match address {
            IpAddr::V4(address) => address.is_broadcast() || address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
}
