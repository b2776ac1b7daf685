//! The network of an emulation and the bytes of the packets in it: what all drivers share.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use crate::emulation::{Carried, Emulation, EmulationCounters, Entering, Side};
use lasthop_base::{Bytes, Duration, Histogram, Time};
use lasthop_capture::EndCapture;
use lasthop_proto::{Dscp, Ecn, Handle};
use lasthop_wire::{Checksum, IpPacket, Transport, checksum};

use crate::burst::Leaving;
use crate::connections::{Connections, Flows};
use crate::frames::{ETHERNET, Mergeable, Origin, ip_packet};
use crate::interface::Sent;
use crate::recorder::Recorder;
use crate::report::{Lateness, Report, SideReport, Unforwarded};
use crate::segments;
use crate::split::{BaseStation, SharedFrames};

/// Length of a VLAN tag, by which a frame may exceed the MTU.
const VLAN_TAG: usize = 4;

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

/// Where packets go that leave the network, of a driver.
pub(crate) trait Exit {
    /// Takes a packet that leaves at `side`. What becomes of it is [recorded](Books::left) at once or later.
    fn leave(
        &mut self,
        books: &mut Books,
        side: Side,
        frame: &[u8],
        mergeable: Mergeable,
        leaving: Leaving,
    ) -> io::Result<()>;

    /// A packet enters the network.
    fn on_entry(&mut self) {}
}

/// What is counted and recorded of packets.
#[derive(Debug)]
pub(crate) struct Books {
    recorder: Recorder,
    lateness: Histogram,
    ends: [SideReport; 2],
    undelivered: u64,
    pub(crate) overload: u64,
}

impl Books {
    /// Records what became of a packet that has left at `side`, `late` after it was due.
    pub(crate) fn left(
        &mut self,
        side: Side,
        leaving: Leaving,
        sent: Sent,
        late: Duration,
    ) -> io::Result<()> {
        let Leaving { entered, time, size, .. } = leaving;
        match sent {
            Sent::Delivered => {
                let end = &mut self.ends[side as usize];
                end.received_packets += 1;
                end.received_bytes += size;
            }
            Sent::NoRoom => self.overload += 1,
            Sent::Gone => self.undelivered += 1,
        }
        self.lateness.record(late);
        self.recorder.late(entered, time, side, size, late.as_secs_f64())
    }
}

/// The network of a scenario, and the packets in it. Its driver has a clock of nanoseconds.
pub(crate) struct Core {
    emulation: Emulation,
    settings: Settings,
    /// The captures of the source, with losses, and of the destination.
    capture: Option<[EndCapture; 2]>,
    frames: SharedFrames,
    pub(crate) books: Books,
    /// Lanes for queues.
    flows: Flows,
    /// Lanes for agents; `None` without agents.
    connections: Option<Connections>,
    /// Buffer for a frame that was changed in the network.
    changed: Vec<u8>,
    /// The driver's clock when the emulation began; zero if no packet can have come before.
    began_ns: u64,
    /// The driver's clock when the emulation's clock was zero; `None` before the first packet.
    origin_ns: Option<u64>,
    /// The time which the network has reached, on the emulation's clock.
    reached: Time,
    carried: Vec<Carried>,
    unforwarded: Unforwarded,
    lost: u64,
    suppressed: u64,
    marked: u64,
    opaque: u64,
    segmented: u64,
}

impl Core {
    /// The network of an emulation, before its first packet.
    ///
    /// # Errors
    /// If the capture cannot be written, or if a trace is requested of connections that are split.
    pub(crate) fn new(mut emulation: Emulation, settings: Settings) -> io::Result<Core> {
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
        Ok(Core {
            capture: capture.transpose()?,
            connections: emulation
                .has_agents()
                .then(|| Connections::new(emulation.lanes(), emulation.splits())),
            emulation,
            books: Books {
                recorder: Recorder::new(settings.trace, settings.record_lateness),
                lateness: Histogram::default(),
                ends,
                undelivered: 0,
                overload: 0,
            },
            settings,
            frames,
            flows: Flows::default(),
            changed: Vec::new(),
            began_ns: 0,
            origin_ns: None,
            reached: Time::ZERO,
            carried: Vec::new(),
            unforwarded: Unforwarded::default(),
            lost: 0,
            suppressed: 0,
            marked: 0,
            opaque: 0,
            segmented: 0,
        })
    }

    /// Ends the emulation at a time of the driver's clock, which has used some processor time.
    ///
    /// # Errors
    /// If the capture cannot be written.
    pub(crate) fn finish(mut self, now_ns: u64, cpu: Duration) -> io::Result<Report> {
        let end = self.since_origin(now_ns);
        self.drop_unused(true);
        for capture in self.capture.take().into_iter().flatten() {
            capture.finish()?;
        }
        let duration_s = end.since(self.emulation.start().min(end)).as_secs_f64();
        let simulated_flows = self.emulation.simulated_flows();
        let (in_network, kept) = self.emulation.held();
        let EmulationCounters { links, schemes } = self.emulation.finish();
        let Books { recorder, lateness, ends, undelivered, overload } = self.books;
        let (connections, traces, packets) = recorder.finish();
        Ok(Report {
            duration_s,
            cpu_s: cpu.as_secs_f64(),
            ends,
            lost_packets: self.lost,
            suppressed_packets: self.suppressed,
            opaque_packets: self.opaque,
            marked_packets: self.marked,
            segmented_packets: self.segmented,
            in_network_packets: in_network as u64,
            kept_packets: kept as u64,
            undelivered_packets: undelivered,
            overload_drops: overload,
            lateness: Lateness {
                p50_s: lateness.quantile(0.5).unwrap_or_default().as_secs_f64(),
                p99_s: lateness.quantile(0.99).unwrap_or_default().as_secs_f64(),
                max_s: lateness.max().as_secs_f64(),
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

    /// Begins at a time of the driver's clock.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.began_ns = now_ns;
    }

    /// A time of the driver's clock on the emulation's clock.
    fn since_origin(&self, ns: u64) -> Time {
        Time::from_nanos(self.origin_ns.map_or(0, |origin| ns.saturating_sub(origin)))
    }

    /// The next deadline on the driver's clock, in nanoseconds; `u64::MAX` before the first packet.
    pub(crate) fn due_ns(&self) -> u64 {
        let next = self.emulation.next_wakeup();
        match self.origin_ns {
            Some(origin) if next < Time::NEVER => origin.saturating_add(next.as_nanos()),
            _ => u64::MAX,
        }
    }

    /// Counts a frame that cannot be carried.
    pub(crate) fn refuse_oversized(&mut self) {
        self.unforwarded.oversized += 1;
    }

    /// Counts a super-packet that was cut into segments.
    pub(crate) fn count_segmented(&mut self) {
        self.segmented += 1;
    }

    /// Lets a frame enter the network, if it is for the other end. It arrived at a time of the driver's clock, and waited to be
    /// read.
    pub(crate) fn accept(
        &mut self,
        side: Side,
        frame: &[u8],
        arrived_ns: u64,
        waited_ns: u64,
        exit: &mut impl Exit,
    ) -> io::Result<()> {
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
        let is_late = waited_ns > self.settings.longest_wait.as_nanos();
        if is_late && arrived_ns < self.began_ns {
            self.unforwarded.early += 1;
            return Ok(());
        }
        if self.origin_ns.is_none() {
            // Simulated traffic may start earlier.
            let start = self.emulation.start();
            self.emulation.advance(start);
            self.reached = start;
            self.origin_ns = Some(arrived_ns.saturating_sub(start.as_nanos()));
        }
        exit.on_entry();
        let end = &mut self.books.ends[side as usize];
        (end.sent_packets, end.sent_bytes) = (end.sent_packets + 1, end.sent_bytes + len as u64);
        if is_late || !self.has_room(frame.len()) {
            self.books.overload += 1;
            return Ok(());
        }
        let arrival = self.since_origin(arrived_ns);
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
                origin.connection = self.books.recorder.enter(now, side, packet)?;
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
        self.write(exit)
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

    /// Whether the network has not reached a time of the driver's clock.
    pub(crate) fn is_before(&self, now_ns: u64) -> bool {
        self.origin_ns.is_some() && self.since_origin(now_ns) > self.reached
    }

    /// Handles the events due until `now_ns`, when the first packet has entered, and lets the packets out that leave the network.
    pub(crate) fn advance(&mut self, now_ns: u64, exit: &mut impl Exit) -> io::Result<()> {
        let now = self.since_origin(now_ns);
        self.emulation.advance(now);
        self.reached = now;
        self.write(exit)
    }

    fn write(&mut self, exit: &mut impl Exit) -> io::Result<()> {
        if !self.emulation.has_carried() {
            return Ok(());
        }
        let mut carried = std::mem::take(&mut self.carried);
        carried.extend(self.emulation.take());
        for each in carried.drain(..) {
            self.leave(&each, exit)?;
        }
        self.carried = carried;
        self.drop_unused(false);
        Ok(())
    }

    /// Removes frames that are neither in the network nor held by an agent; a full scan only if `all`.
    fn drop_unused(&mut self, all: bool) {
        let Core { emulation, frames, .. } = self;
        let mut frames = frames.lock();
        emulation.take_unused(all, |handle| frames.remove(handle));
    }

    /// Handles a packet that leaves the network or was dropped.
    fn leave(
        &mut self,
        &Carried { time, packet, outcome }: &Carried,
        exit: &mut impl Exit,
    ) -> io::Result<()> {
        let frames = self.frames.clone();
        let mut frames = frames.lock();
        let Some(frame) = frames.get(packet.handle) else {
            debug_assert!(false, "an agent sent a packet that it had not kept");
            self.books.undelivered += 1;
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
                    self.books.recorder.drop(time, number, from, &frame.bytes[ETHERNET..], reason, scheme)?;
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
            self.books.recorder.arrive(time, number, frame.origin.side, &bytes[ETHERNET..])?;
        }
        let (entered, size) = (frame.origin.at, packet.size.0);
        let due_ns = self.origin_ns.unwrap_or(0) + time.as_nanos();
        let leaving = Leaving { entered, time, due_ns, size, delayed_ns: frame.delayed_ns };
        exit.leave(&mut self.books, side, bytes, frame.mergeable, leaving)?;
        // Later copies leave at times of their own.
        frame.delayed_ns = 0;
        self.changed = changed;
        Ok(())
    }
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
