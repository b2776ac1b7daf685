//! The agents of one flow, and the bytes of the packets that they hold.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Time};
use lasthop_proto::tcp::{Flags, Segment, SeqNum};
use lasthop_proto::{Body, Component, Effect, FlowId, Handle, HostId, Out, Packet, Port};
use lasthop_wire::IpPacket;

use super::{Direction, Emit};
use crate::emulation::{Entering, Side};
use crate::frames::ETHERNET;
use crate::frames::{Frames, Origin};

/// Frames that no agent holds, beyond the number that agents hold, after which they are looked for.
const SPARE: usize = 16;

/// Slots for frames, beyond twice the number of frames that agents hold, above which the memory of free ones is given back.
const SLOTS: usize = 64;

/// The hosts of a flow, as agents see them.
const FIXED: HostId = HostId(0);
const MOBILE: HostId = HostId(1);

/// What the agents of all flows share, one after the other.
#[derive(Debug, Default)]
pub(super) struct Work {
    out: Out,
    /// Packets on their way between agents: the number of the agent that gets it, its port, the packet.
    queue: VecDeque<(usize, Port, Packet)>,
    /// Buffer for a frame that was changed.
    changed: Vec<u8>,
    /// Packets that agents dropped.
    pub(super) suppressed: u64,
    /// Packets that were to be sent without bytes.
    pub(super) unsendable: u64,
}

/// The agents of a flow, the first nearest to the wired network.
pub(super) struct FlowAgents {
    agents: Vec<Box<dyn Component>>,
    frames: Frames,
    /// Frames that agents held when they were last asked.
    kept: usize,
    /// The latest acknowledgement and window that have left in each direction.
    latest: [Option<(SeqNum, u32)>; 2],
    /// Where the data end that have entered in each direction.
    sent: [Option<SeqNum>; 2],
    /// The frame that has entered and is being carried: it leaves with the acknowledgement of its host.
    entering: Handle,
}

/// A packet that enters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'a> {
    pub(super) direction: Direction,
    /// The frame and the packet in it.
    pub(super) frame: &'a [u8],
    pub(super) packet: &'a IpPacket<'a>,
    /// Its segment, with the window scaled.
    pub(super) segment: Segment,
    pub(super) scale: u8,
}

impl FlowAgents {
    pub(super) fn new(agents: Vec<Box<dyn Component>>) -> FlowAgents {
        FlowAgents {
            agents,
            frames: Frames::default(),
            kept: 0,
            latest: [None; 2],
            sent: [None; 2],
            entering: Handle::NONE,
        }
    }

    /// The memory of all frames, with that for further ones.
    pub(super) fn memory(&self) -> usize {
        self.frames.memory()
    }

    /// When an agent next wants to be woken.
    pub(super) fn next_wakeup(&self) -> Time {
        self.agents.iter().map(|agent| agent.next_wakeup()).min().unwrap_or(Time::NEVER)
    }

    /// Lets a packet pass the agents.
    pub(super) fn receive(&mut self, now: Time, arrival: Arrival<'_>, work: &mut Work, emit: Emit<'_>) {
        let Arrival { direction, frame, packet, segment, scale } = arrival;
        let (side, src, dst) = match direction {
            Direction::ToRadio => (Side::Source, FIXED, MOBILE),
            Direction::FromRadio => (Side::Destination, MOBILE, FIXED),
        };
        let entering = Entering {
            handle: Handle::NONE,
            size: Bytes(packet.len as u64),
            dscp: packet.ip.dscp,
            ecn: packet.ip.ecn,
            segment: Some(segment),
        };
        self.note(direction, &segment);
        let origin = Origin { at: now, side, connection: None };
        let handle = self.frames.insert(frame, 0, entering, scale, origin).entered.handle;
        self.entering = handle;
        let Entering { size, dscp, ecn, .. } = entering;
        let body = Body::Tcp(segment);
        let packet = Packet { src, dst, flow: FlowId(0), size, dscp, ecn, handle, body };
        let (first, port) = match direction {
            Direction::ToRadio => (0, Port::WIRED),
            Direction::FromRadio => (self.agents.len().saturating_sub(1), Port::RADIO),
        };
        work.queue.push_back((first, port, packet));
        self.carry(now, work, emit);
        self.entering = Handle::NONE;
    }

    /// Notes what a direction has sent, and forgets a former connection of the same ports.
    fn note(&mut self, direction: Direction, segment: &Segment) {
        let end = segment.seq + segment.seq_len();
        let sent = &mut self.sent[direction as usize];
        if !segment.flags.has(Flags::SYN) {
            *sent = Some(sent.map_or(end, |sent| sent.max(end)));
            return;
        }
        *sent = Some(end);
        self.latest[1 - direction as usize] = None;
        if !segment.flags.has(Flags::ACK) {
            self.sent[1 - direction as usize] = None;
            self.latest[direction as usize] = None;
        }
    }

    /// Wakes the agents whose deadlines have come.
    pub(super) fn wake(&mut self, now: Time, work: &mut Work, emit: Emit<'_>) {
        for at in 0..self.agents.len() {
            if self.agents[at].next_wakeup() <= now {
                self.agents[at].wake(now, &mut work.out);
                self.carry_out(at, work, emit);
            }
        }
        self.carry(now, work, emit);
    }

    /// Lets packets pass from agent to agent until all have left.
    fn carry(&mut self, now: Time, work: &mut Work, emit: Emit<'_>) {
        while let Some((at, port, packet)) = work.queue.pop_front() {
            self.agents[at].receive(now, &packet, port, &mut work.out);
            self.carry_out(at, work, emit);
        }
        if self.frames.len() > 2 * self.kept + SPARE {
            self.release();
        }
    }

    /// Carries out what agent number `at` has requested.
    fn carry_out(&mut self, at: usize, work: &mut Work, emit: Emit<'_>) {
        let last = self.agents.len() - 1;
        while let Some((_, effect)) = work.out.take() {
            match effect {
                Effect::Send(Port::WIRED, packet) if at == 0 => {
                    self.leave(Direction::FromRadio, &packet, work, emit);
                }
                Effect::Send(Port::RADIO, packet) if at == last => {
                    self.leave(Direction::ToRadio, &packet, work, emit);
                }
                Effect::Send(Port::WIRED, packet) => work.queue.push_back((at - 1, Port::RADIO, packet)),
                Effect::Send(Port::RADIO, packet) => work.queue.push_back((at + 1, Port::WIRED, packet)),
                Effect::Send(..) => work.unsendable += 1,
                Effect::Drop(..) | Effect::Corrupt(..) => work.suppressed += 1,
                Effect::Signal(_) => {}
            }
        }
    }

    /// Writes out a packet that has passed all agents.
    fn leave(&mut self, direction: Direction, packet: &Packet, work: &mut Work, emit: Emit<'_>) {
        let Some(frame) = self.frames.get(packet.handle) else {
            work.unsendable += 1;
            return;
        };
        let is_copy = packet.handle != self.entering;
        let sent = self.sent[1 - direction as usize];
        let packet = &refreshed(packet, is_copy, sent, &mut self.latest[direction as usize]);
        if !frame.is_changed(packet) {
            return emit(direction, &frame.bytes);
        }
        work.changed.clone_from(&frame.bytes);
        match frame.change(&mut work.changed[ETHERNET..], packet) {
            Ok(()) => emit(direction, &work.changed),
            Err(_) => work.unsendable += 1,
        }
    }

    /// Frees the slots of frames that no agent holds; their memory is given back if it is much more than agents hold.
    fn release(&mut self) {
        self.sweep();
        if self.frames.slots() > SLOTS + 2 * self.kept {
            self.give_back();
        }
    }

    /// Gives back all memory that agents do not need now.
    pub(super) fn rest(&mut self) {
        self.sweep();
        self.give_back();
    }

    fn sweep(&mut self) {
        let mut kept: Vec<Handle> = Vec::new();
        self.agents.iter().for_each(|agent| agent.kept(&mut |packet| kept.push(packet.handle)));
        kept.sort_unstable();
        self.frames.retain(|handle| kept.binary_search(&handle).is_ok());
        self.kept = self.frames.len();
    }

    fn give_back(&mut self) {
        if self.kept == 0 {
            self.frames = Frames::default();
        } else {
            self.frames.trim();
        }
    }

    /// Reports the counters of all agents.
    pub(super) fn count(&self, tally: &mut dyn lasthop_proto::Tally) {
        self.agents.iter().for_each(|agent| agent.count(tally));
    }
}

/// The packet; if it is a copy with data, with the `latest` acknowledgement of its direction in place of an older one: hosts
/// discard data with acknowledgements from before their window (RFC 5961 section 5.2).
///
/// An acknowledgement beyond what the other end has `sent` is none of this connection, and not noted.
fn refreshed(
    packet: &Packet,
    is_copy: bool,
    sent: Option<SeqNum>,
    latest: &mut Option<(SeqNum, u32)>,
) -> Packet {
    let mut packet = *packet;
    if let Body::Tcp(segment) = &mut packet.body
        && segment.flags.has(Flags::ACK)
    {
        match *latest {
            Some((ack, wnd)) if segment.ack < ack && is_copy && segment.len > 0 => {
                (segment.ack, segment.wnd) = (ack, wnd);
            }
            Some((ack, _)) if segment.ack < ack => {}
            _ if sent.is_some_and(|sent| segment.ack <= sent) => *latest = Some((segment.ack, segment.wnd)),
            _ => {}
        }
    }
    packet
}
