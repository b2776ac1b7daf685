//! The loop that carries frames between two interfaces.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::PathBuf;

use crate::emulation::{Carried, Emulation, EmulationCounters, Entering, Side};
use lasthop_base::{Bytes, Duration, Histogram, Time};
use lasthop_capture::EndCapture;
use lasthop_proto::{Dscp, Ecn, Handle};
use lasthop_wire::virtio::Offload;
use lasthop_wire::{Checksum, IpPacket, LinkType, Transport, checksum, offload};

use crate::burst::{Burst, Leaving};
use crate::clock::{self, monotonic_ns, thread_cpu_ns};
use crate::connections::{Connections, Flows};
use crate::frames::{ETHERNET, Mergeable, Origin, ip_packet};
use crate::interface::{Interface, Received, Sent};
use crate::moderation::Moderation;
use crate::recorder::Recorder;
use crate::report::{Lateness, Report, SideReport, Unforwarded};
use crate::segments;
use crate::split::{BaseStation, SharedFrames};

/// Length of a VLAN tag, by which a frame may exceed the MTU.
const VLAN_TAG: usize = 4;

/// The longest time between two calls of `keep_going`, in nanoseconds.
const WATCH_NS: u64 = 20_000_000;

/// Maximum number of frames that a host reads before it looks at its timers.
pub(crate) const BATCH: usize = 32;

/// Length of the longest headers of IPv4 and TCP.
const LONGEST_HEADERS: usize = 120;

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
    /// Whether the clock stands still while a thread runs, so that reading it once per wake-up is enough.
    pub virtual_time: bool,
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
            virtual_time: false,
        }
    }
}

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

/// The network of a scenario between two interfaces.
#[allow(missing_debug_implementations)]
pub struct Emulator {
    emulation: Emulation,
    ports: [Port; 2],
    settings: Settings,
    /// The captures of the source, with losses, and of the destination.
    capture: Option<[EndCapture; 2]>,
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
    /// The time which the network has reached, on the emulation's clock.
    reached: Time,
    carried: Vec<Carried>,
    /// Packets to be written to each end before any other, at the latest when all due events have been handled.
    bursts: [Burst; 2],
    moderation: Moderation,
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
            Ok::<_, io::Error>([
                EndCapture::create(source, from, true)?,
                EndCapture::create(destination, to, false)?,
            ])
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
            ports: interfaces.map(Port::new),
            recorder: Recorder::new(settings.trace, settings.record_lateness),
            settings,
            frames,
            flows: Flows::default(),
            changed: Vec::new(),
            origin_ns: None,
            reached: Time::ZERO,
            carried: Vec::new(),
            bursts: [Burst::default(), Burst::default()],
            moderation: Moderation::new(),
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
        if self.settings.virtual_time {
            clock::read_once_per_wait();
        }
        let begin_ns = thread_cpu_ns();
        let mut watched_ns = 0;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= watched_ns {
                self.cpu_ns = thread_cpu_ns() - begin_ns;
                if !keep_going() {
                    return Ok(());
                }
                self.ports.iter_mut().try_for_each(|port| port.interface.mend_ring())?;
                watched_ns = monotonic_ns() + WATCH_NS;
            }
            self.catch_up()?;
            self.moderation.wake(monotonic_ns());
            if let Some(pause) = self.moderation.pause() {
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
        let end = self.since_origin(monotonic_ns());
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
            overload_drops: self.overload
                + self.ports.iter().map(|port| port.interface.overflowed()).sum::<u64>(),
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

    /// A time of the monotonic clock on the emulation's clock.
    fn since_origin(&self, monotonic_ns: u64) -> Time {
        Time::from_nanos(self.origin_ns.map_or(0, |origin| monotonic_ns.saturating_sub(origin)))
    }

    /// The next deadline on the monotonic clock, in nanoseconds.
    fn due_ns(&self) -> u64 {
        let next = self.emulation.next_wakeup();
        match self.origin_ns {
            Some(origin) if next < Time::NEVER => origin.saturating_add(next.as_nanos()),
            _ => u64::MAX,
        }
    }

    /// Waits for the next deadline, a frame, or the time `until_ns`.
    fn wait(&mut self, until_ns: u64) -> io::Result<()> {
        let has_frame = self.ports.iter().any(|port| port.first.is_some());
        let until_ns = if has_frame { 0 } else { self.due_ns().min(until_ns) };
        clock::wait(self.ports.each_ref().map(|port| port.interface.as_fd()), until_ns)?;
        Ok(())
    }

    /// Lets the frames that have arrived until now enter the network in order of arrival, each at the time of its
    /// arrival, and handles the events that are due. So frames that waited to be read keep their distances, and enter
    /// late only if the network has gone on meanwhile.
    fn catch_up(&mut self) -> io::Result<()> {
        let now_ns = monotonic_ns();
        while let Some(side) = self.oldest(now_ns)? {
            let port = &mut self.ports[side as usize];
            let Some(received) = port.first.take() else { break };
            let mut buffer = std::mem::take(&mut port.buffer);
            self.accept(side, &mut buffer[..received.len.min(BUFFER)], received)?;
            self.ports[side as usize].buffer = buffer;
        }
        self.advance(now_ns)?;
        Side::BOTH.into_iter().try_for_each(|side| self.write_burst(side))
    }

    /// The side of the first of the frames that arrived until `until_ns`.
    fn oldest(&mut self, until_ns: u64) -> io::Result<Option<Side>> {
        let [one, two] = &mut self.ports;
        Ok(match (one.first_arrival(until_ns)?, two.first_arrival(until_ns)?) {
            (None, None) => None,
            (Some(first), Some(second)) if second < first => Some(Side::BOTH[1]),
            (None, Some(_)) => Some(Side::BOTH[1]),
            (Some(_), _) => Some(Side::BOTH[0]),
        })
    }

    /// Lets a frame enter the network, or the segments of a super-packet.
    fn accept(&mut self, side: Side, frame: &mut [u8], received: Received) -> io::Result<()> {
        if received.is_cut {
            self.unforwarded.oversized += 1;
            return Ok(());
        }
        let accept = |frame: &[u8]| self.accept_frame(side, frame, received);
        let is_segmented = each_packet(frame, received.offload, accept)?;
        self.segmented += u64::from(is_segmented);
        Ok(())
    }

    /// Lets a frame enter the network, if it is for the other end.
    fn accept_frame(&mut self, side: Side, frame: &[u8], received: Received) -> io::Result<()> {
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
            self.reached = start;
            self.origin_ns = Some(received.arrived_ns.saturating_sub(start.as_nanos()));
        }
        self.moderation.count();
        let end = &mut self.ends[side as usize];
        (end.sent_packets, end.sent_bytes) = (end.sent_packets + 1, end.sent_bytes + len as u64);
        if received.waited_ns > self.settings.longest_wait.as_nanos() || !self.has_room(frame.len()) {
            self.overload += 1;
            return Ok(());
        }
        let arrival = self.since_origin(received.arrived_ns);
        let now = arrival.max(self.reached);
        self.emulation.advance(now);
        self.reached = now;
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
        let kept = frames.insert(bytes, now.since(arrival).as_nanos(), entering, scale, origin);
        if let Some(packet) = &packet
            && matches!(checksum, Checksum::Correct | Checksum::Partial)
            && packet.header_checksum() != Checksum::Wrong
        {
            kept.mergeable = match packet.transport {
                Transport::Udp(_) => Mergeable::Datagram,
                Transport::Tcp(_) => Mergeable::Segment,
                _ => Mergeable::No,
            };
        }
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

    /// Handles the events due until `now_ns`, and writes the packets that leave the network.
    fn advance(&mut self, now_ns: u64) -> io::Result<()> {
        let now = self.since_origin(now_ns);
        if self.origin_ns.is_some() && now > self.reached {
            self.emulation.advance(now);
            self.reached = now;
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
        let frames = self.frames.clone();
        let mut frames = frames.lock();
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
        let mut changed = std::mem::take(&mut self.changed);
        let bytes = if frame.is_changed(&packet) {
            changed.clone_from(&frame.bytes);
            // No link or agent changes a packet of another protocol than IP.
            let is_done = frame.change(&mut changed[ETHERNET..], &packet);
            debug_assert!(is_done.is_ok());
            &changed
        } else {
            &frame.bytes
        };
        if let Some(captures) = &mut self.capture {
            captures[side as usize].cross(time, bytes)?;
        }
        if let Some(number) = frame.origin.connection {
            self.recorder.arrive(time, number, frame.origin.side, &bytes[ETHERNET..])?;
        }
        let (entered, size) = (frame.origin.at, packet.size.0);
        let leaving = Leaving { entered, time, size, delayed_ns: frame.delayed_ns };
        let interface = &self.ports[side as usize].interface;
        let may_wait = match frame.mergeable {
            Mergeable::No => false,
            Mergeable::Datagram => interface.takes_super_packets(false),
            Mergeable::Segment => interface.takes_super_packets(true) && self.moderation.pause().is_some(),
        };
        if !(may_wait && self.bursts[side as usize].push(bytes, leaving)) {
            self.write_burst(side)?;
            if !(may_wait && self.bursts[side as usize].push(bytes, leaving)) {
                let sent = self.ports[side as usize].interface.send(bytes)?;
                self.written(side, leaving, sent)?;
            }
        }
        // Later copies leave at times of their own.
        frame.delayed_ns = 0;
        self.changed = changed;
        Ok(())
    }

    /// Writes the packets to the end at `side` that wait for others to leave with them.
    fn write_burst(&mut self, side: Side) -> io::Result<()> {
        let burst = &mut self.bursts[side as usize];
        if burst.is_empty() {
            return Ok(());
        }
        let sent = burst.write(&mut self.ports[side as usize].interface)?;
        let packets = burst.clear();
        for &leaving in &packets {
            self.written(side, leaving, sent)?;
        }
        self.bursts[side as usize].recycle(packets);
        Ok(())
    }

    /// Counts a packet that was written to the interface of the end at `side`.
    fn written(&mut self, side: Side, leaving: Leaving, sent: Sent) -> io::Result<()> {
        let Leaving { entered, time, size, delayed_ns } = leaving;
        match sent {
            Sent::Delivered => {
                let end = &mut self.ends[side as usize];
                end.received_packets += 1;
                end.received_bytes += size;
            }
            Sent::NoRoom => self.overload += 1,
            Sent::Gone => self.undelivered += 1,
        }
        self.moderation.count();
        let due_ns = self.origin_ns.unwrap_or(0) + time.as_nanos();
        let late = Duration::from_nanos(monotonic_ns().saturating_sub(due_ns) + delayed_ns);
        self.lateness.record(late);
        self.recorder.late(entered, time, side, size, late.as_secs_f64())
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

/// Whether an address is confined to the link.
fn is_link_local(address: IpAddr) -> bool {
    address.is_multicast()
        || address.is_unspecified()
        || match address {
            IpAddr::V4(address) => address.is_broadcast() || address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        }
}
