//! Agents on the packets of real flows, with a real radio behind them: a bump in the wire.
//!
//! ```text
//! kernel: flows that are helped ──> inner end of a veth pair ──> Bump: agents of the flow ──> radio's interface
//!         before IP, as received  <──                            └─ bytes, timers ─┘      <── (diverted on arrival)
//! ```
//!
//! A [`Bump`] has no I/O: frames, the time and an [`Admission`] come in, frames go out. A [`BumpDriver`] runs one between two
//! interfaces. Each flow has agents of its own, so that a flow that ends leaves nothing behind, and all that they hold is
//! counted against one [`BUDGET`].

mod agents;
mod driver;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;

use lasthop_base::{Duration, Time};
use lasthop_proto::tcp::{Flags, SeqNum};
use lasthop_proto::{Component, Tally};
use lasthop_wire::{Checksum, IpPacket, TcpHeader};

use self::agents::{Arrival, FlowAgents, Work};
use crate::connections::Connection;
use crate::emulation::Side;
use crate::frames::{ETHERNET, ip_packet};
use crate::segments;

pub use self::driver::BumpDriver;

/// Bytes of memory for the frames of all flows, above which packets pass agents by.
pub const BUDGET: usize = 128 << 20;

/// How long a flow may take to open.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Idle time after which a flow is given up, as by NATs (RFC 5382 section 5).
const IDLE: Duration = Duration::from_secs(2 * 3600 + 4 * 60);

/// Idle time after which a flow's unused memory is given back.
const PAUSE: Duration = Duration::from_secs(1);

/// The length of a hardware address.
const ADDRESS: usize = 6;

/// A TCP flow by its two ends, as its packets have them at the radio, where NAT may have changed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RadioFlow {
    /// The end behind the radio.
    pub mobile: SocketAddr,
    /// The end before it.
    pub fixed: SocketAddr,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Over the radio.
    ToRadio = 0,
    /// From the radio to the wired network.
    FromRadio = 1,
}

/// Receives the frames that leave.
type Emit<'a> = &'a mut dyn FnMut(Direction, &[u8]);

/// A packet of a flow that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstPacket {
    /// The sequence number of the packet that opens the flow.
    pub opened_by: SeqNum,
    /// Whether this is that packet; otherwise it answers it.
    pub is_opening: bool,
    /// Where it comes from, and where it goes.
    pub ends: [SocketAddr; 2],
}

/// A flow that is to be helped.
#[allow(missing_debug_implementations, reason = "agents are functions")]
pub struct Admitted {
    /// The flow.
    pub flow: RadioFlow,
    /// The name of the scheme, for counters.
    pub scheme: &'static str,
    /// Its agents for this flow, the first nearest to the wired network.
    pub agents: Vec<Box<dyn Component>>,
    /// Whether the end behind the radio opens it.
    pub mobile_opens: bool,
    /// The window scale in the packet that opens it.
    pub scale: Option<u8>,
}

/// Who decides which flows are helped, and is told of their ends.
pub trait Admission {
    /// The agents for the flow of a packet; `None` if it is not to be helped.
    fn admit(&mut self, packet: &FirstPacket) -> Option<Admitted>;

    /// The flow that a packet with this sequence number has opened is open, or has failed to.
    fn settle(&mut self, opened_by: SeqNum);

    /// The flows have ended, and their packets shall no longer come.
    fn dismiss(&mut self, flows: &[RadioFlow]);
}

/// What a bump has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BumpCounters {
    /// Flows with agents now.
    pub flows: u64,
    /// Packets that agents saw.
    pub packets: u64,
    /// Packets that passed agents by: the first ones, damaged ones, and those for which there was no memory.
    pub passed: u64,
    /// Packets that agents dropped.
    pub suppressed: u64,
    /// Segments without a flow, which pass, and packets that agents sent without having received them.
    pub strays: u64,
    /// The counters of agents, as `SCHEME.COUNTER`.
    pub schemes: BTreeMap<String, u64>,
}

/// A flow.
struct Flow {
    key: RadioFlow,
    scheme: &'static str,
    connection: Connection,
    agents: FlowAgents,
    /// The sequence number by which it is being opened.
    opened_by: Option<SeqNum>,
    /// Whether packets of both directions pass here. Until then agents see none, since routes may be asymmetric.
    is_seen: [bool; 2],
    /// Its deadline in [`Bump::deadlines`].
    deadline: Time,
    /// Whether its end was told: it is kept for packets that are under way.
    is_dismissed: bool,
}

/// Agents of many flows.
#[allow(missing_debug_implementations, reason = "agents are functions")]
#[derive(Default)]
pub struct Bump {
    numbers: HashMap<RadioFlow, usize>,
    /// By number.
    flows: Vec<Option<Flow>>,
    free: Vec<usize>,
    deadlines: BTreeSet<(Time, usize)>,
    /// The memory for the frames of all flows.
    memory: usize,
    /// The hardware address of the radio's interface.
    radio: [u8; ADDRESS],
    work: Work,
    counters: BumpCounters,
}

/// The totals of agents.
struct Totals<'a>(&'static str, &'a mut BTreeMap<String, u64>);

impl Tally for Totals<'_> {
    fn total(&mut self, name: &'static str, value: u64) {
        *self.1.entry(format!("{}.{name}", self.0)).or_default() += value;
    }

    fn level(&mut self, _name: &'static str, _value: u64) {}

    fn peak(&mut self, _name: &'static str, _value: u64) {}
}

impl Bump {
    /// A bump before a radio whose interface has this hardware address: it tells the direction of packets without a flow.
    pub fn new(radio: [u8; 6]) -> Bump {
        Bump { radio, ..Bump::default() }
    }

    /// Changes the hardware address of the radio's interface.
    pub fn set_radio(&mut self, radio: [u8; 6]) {
        self.radio = radio;
    }

    /// Handles an Ethernet frame of a flow; flows that are new are admitted or passed.
    pub fn receive(
        &mut self,
        now: Time,
        frame: &[u8],
        admission: &mut dyn Admission,
        emit: &mut dyn FnMut(Direction, &[u8]),
    ) {
        // Other frames are the kernel's own, about its end of the pair.
        let Some((packet, header)) = segment_of(frame) else { return };
        let is_intact = packet.transport_checksum() == Checksum::Correct;
        // A damaged segment opens nothing.
        let found = match is_intact {
            true => self.find(now, &packet, &header, admission),
            false => self.known(&packet, &header),
        };
        let Some((number, direction)) = found else {
            self.counters.strays += 1;
            return self.pass(frame, emit);
        };
        if !is_intact {
            self.counters.passed += 1;
            return emit(direction, frame);
        }
        let Some(flow) = &mut self.flows[number] else { return };
        let side = match direction {
            Direction::ToRadio => Side::Source,
            Direction::FromRadio => Side::Destination,
        };
        let scale = flow.connection.update(now, side, &header, false);
        flow.is_seen[side as usize] = true;
        let opened_by = if header.segment.flags.has(Flags::SYN) { opener(&header) } else { None };
        if flow.opened_by != opened_by
            && let Some(before) = std::mem::replace(&mut flow.opened_by, opened_by)
        {
            admission.settle(before);
        }
        let is_seen = flow.is_seen == [true; 2];
        if !is_seen || self.memory + frame.len() > BUDGET {
            self.counters.passed += 1;
            return emit(direction, frame);
        }
        self.counters.packets += 1;
        let segment = segments::read(&header, scale);
        let arrival = Arrival { direction, frame, packet: &packet, segment, scale };
        let before = flow.agents.memory();
        flow.agents.receive(now, arrival, &mut self.work, emit);
        self.memory = self.memory + flow.agents.memory() - before;
        self.schedule(number);
    }

    /// Lets a frame without a flow go on, in the direction that it has: hosts expect it, whatever this bump knows.
    fn pass(&self, frame: &[u8], emit: Emit<'_>) {
        let (destination, source) = (&frame[..ADDRESS], &frame[ADDRESS..2 * ADDRESS]);
        if source == self.radio {
            emit(Direction::ToRadio, frame);
        } else if destination == self.radio {
            emit(Direction::FromRadio, frame);
        }
    }

    /// The number of a packet's flow, and the packet's direction, if the flow is known.
    fn known(&self, packet: &IpPacket<'_>, header: &TcpHeader) -> Option<(usize, Direction)> {
        let source = SocketAddr::new(packet.ip.src, header.src_port);
        let destination = SocketAddr::new(packet.ip.dst, header.dst_port);
        let to_radio = RadioFlow { mobile: destination, fixed: source };
        let from_radio = RadioFlow { mobile: source, fixed: destination };
        [(to_radio, Direction::ToRadio), (from_radio, Direction::FromRadio)]
            .into_iter()
            .find_map(|(key, direction)| Some((*self.numbers.get(&key)?, direction)))
    }

    /// The number of a packet's flow, and the packet's direction. A new flow is added if it is admitted.
    fn find(
        &mut self,
        now: Time,
        packet: &IpPacket<'_>,
        header: &TcpHeader,
        admission: &mut dyn Admission,
    ) -> Option<(usize, Direction)> {
        let flags = header.segment.flags;
        let is_opening = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
        if let Some((number, direction)) = self.known(packet, header) {
            let is_over = self.flows[number].as_ref().is_none_or(|flow| flow.is_dismissed);
            if !(flags.has(Flags::SYN) && is_over) {
                return Some((number, direction));
            }
            // Its ports are used again.
            self.remove(number);
        }
        let opened_by = opener(header)?;
        let source = SocketAddr::new(packet.ip.src, header.src_port);
        let destination = SocketAddr::new(packet.ip.dst, header.dst_port);
        let first = FirstPacket { opened_by, is_opening, ends: [source, destination] };
        let Admitted { flow: key, scheme, agents, mobile_opens, scale } = admission.admit(&first)?;
        let direction = if key.mobile == destination { Direction::ToRadio } else { Direction::FromRadio };
        if agents.is_empty() {
            return None;
        }
        let ends = [key.fixed, key.mobile].map(|end| (end.ip(), end.port()));
        let mut connection = Connection::new(ends, now);
        connection.note_scale(if mobile_opens { Side::Destination } else { Side::Source }, scale);
        let flow = Flow {
            key,
            scheme,
            connection,
            agents: FlowAgents::new(agents),
            opened_by: Some(opened_by),
            is_seen: [false; 2],
            deadline: Time::NEVER,
            is_dismissed: false,
        };
        let number = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() - 1
        });
        self.flows[number] = Some(flow);
        self.numbers.insert(key, number);
        Some((number, direction))
    }

    /// Keeps the flow's deadline in the order of deadlines.
    fn schedule(&mut self, number: usize) {
        let Some(flow) = &mut self.flows[number] else { return };
        let next = flow.agents.next_wakeup();
        if next != flow.deadline {
            self.deadlines.remove(&(flow.deadline, number));
            flow.deadline = next;
            if next < Time::NEVER {
                self.deadlines.insert((next, number));
            }
        }
    }

    /// When agents next want to be woken.
    pub fn next_wakeup(&self) -> Time {
        self.deadlines.first().map_or(Time::NEVER, |(deadline, _)| *deadline)
    }

    /// Wakes the agents whose deadlines have come.
    pub fn wake(&mut self, now: Time, emit: &mut dyn FnMut(Direction, &[u8])) {
        let due: Vec<usize> =
            self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now).map(|due| due.1).collect();
        for number in due {
            let Some(flow) = &mut self.flows[number] else { continue };
            let before = flow.agents.memory();
            flow.agents.wake(now, &mut self.work, emit);
            self.memory = self.memory + flow.agents.memory() - before;
            self.schedule(number);
        }
    }

    /// Gives up flows that have ended or are idle; to be called about once a second. Flows whose end was told before are
    /// removed, since none of their packets is under way any more.
    pub fn maintain(&mut self, now: Time, admission: &mut dyn Admission) {
        let mut over = Vec::new();
        for number in 0..self.flows.len() {
            let Some(flow) = &mut self.flows[number] else { continue };
            if flow.is_dismissed {
                self.remove(number);
                continue;
            }
            let idle = if flow.opened_by.is_some() { HANDSHAKE } else { IDLE };
            if flow.connection.has_lasted(now, idle) {
                flow.is_dismissed = true;
                over.push(flow.key);
                if let Some(opened_by) = flow.opened_by.take() {
                    admission.settle(opened_by);
                }
            } else if now.since(flow.connection.last_active) > PAUSE && flow.agents.memory() > 0 {
                let before = flow.agents.memory();
                flow.agents.rest();
                self.memory = self.memory + flow.agents.memory() - before;
            }
        }
        if !over.is_empty() {
            admission.dismiss(&over);
        }
    }

    fn remove(&mut self, number: usize) {
        let Some(flow) = self.flows[number].take() else { return };
        flow.agents.count(&mut Totals(flow.scheme, &mut self.counters.schemes));
        self.memory -= flow.agents.memory();
        self.deadlines.remove(&(flow.deadline, number));
        self.numbers.remove(&flow.key);
        self.free.push(number);
    }

    /// Bytes of memory for the frames of all flows, at most about [`BUDGET`].
    pub fn memory(&self) -> usize {
        self.memory
    }

    /// The flows that are helped now.
    pub fn flows(&self) -> impl Iterator<Item = &RadioFlow> {
        self.flows.iter().flatten().filter(|flow| !flow.is_dismissed).map(|flow| &flow.key)
    }

    /// Everything that was counted, with the agents of flows that have ended.
    pub fn counters(&self) -> BumpCounters {
        let mut counters = self.counters.clone();
        for flow in self.flows.iter().flatten() {
            flow.agents.count(&mut Totals(flow.scheme, &mut counters.schemes));
        }
        counters.flows = self.flows().count() as u64;
        counters.suppressed = self.work.suppressed;
        counters.strays += self.work.unsendable;
        counters
    }
}

/// The sequence number of the packet that opens a flow, by that packet or an answer to it.
fn opener(header: &TcpHeader) -> Option<SeqNum> {
    let segment = &header.segment;
    match (segment.flags.has(Flags::SYN), segment.flags.has(Flags::ACK)) {
        (_, true) => Some(SeqNum(segment.ack.0.wrapping_sub(1))),
        (true, false) => Some(segment.seq),
        (false, false) => None,
    }
}

/// The packet in a frame, and its TCP header, unless it is a fragment or something else.
fn segment_of(frame: &[u8]) -> Option<(IpPacket<'_>, TcpHeader)> {
    if frame.len() <= ETHERNET {
        return None;
    }
    let packet = ip_packet(frame).filter(|packet| packet.fragment.is_none() && !packet.is_cut())?;
    let header = packet.tcp()?.header;
    Some((packet, header))
}
