//! A connection of two hosts, split into two parts by a [`Proxy`](crate::Proxy).

use std::collections::VecDeque;

use lasthop_base::Time;
use lasthop_proto::tcp::{Flags, Segment};
use lasthop_proto::{Ecn, Notice, Port, Reach};
use lasthop_wire::{Icmp, TcpHeader};

use crate::endpoint::{End, Endpoint};
use crate::packet::{Incoming, Outgoing, refuse};
use crate::split::{Hosts, Parts, ProxyStats, index};
use crate::state::StateName;

/// A split connection. The proxy has one endpoint towards each host, with the address of the other host.
///
/// ```text
///  host 0 ──────── ends[0] ──> bytes held ──> ends[1] ──────── host 1
///         <─────── ends[0] <── bytes held <── ends[1] <───────
/// ```
///
/// Invariants of each direction: the bytes held and the window offered to their source together do not exceed
/// the buffer; the window's right edge never moves back; FIN follows the last byte; a connection that has
/// failed on one side is reset on the other.
#[derive(Debug)]
pub(crate) struct Relay<T> {
    pub(crate) hosts: Hosts,
    pub(crate) tag: T,
    state: State,
    /// Bytes from each host that were taken from its endpoint while the window stays closed for them.
    unopened: [u64; 2],
    /// Whether the failure of one side was passed on.
    has_failed: bool,
    packets: VecDeque<(Port, u8, Outgoing)>,
}

#[derive(Debug)]
enum State {
    /// The other host has not accepted the connection: the SYN of the host at side `opener` waits.
    Opening { opener: usize, syn: WaitingSyn, far: Box<Endpoint> },
    /// The other host has accepted.
    Open(Box<[Endpoint; 2]>),
    /// The other host has not accepted, or the opener has given up.
    Over,
}

/// A SYN that is answered later. Its data, if any, are ignored: the host will retransmit them.
#[derive(Clone, Copy, Debug)]
struct WaitingSyn {
    ecn: Ecn,
    header: TcpHeader,
}

impl WaitingSyn {
    fn of(packet: &Incoming<'_>) -> WaitingSyn {
        WaitingSyn { ecn: packet.ecn, header: packet.header }
    }

    fn as_incoming(&self, opener: usize, hosts: &Hosts) -> Incoming<'static> {
        let WaitingSyn { ecn, header } = *self;
        Incoming { local: hosts[1 - opener], remote: hosts[opener], ecn, header, payload: &[] }
    }
}

fn is_syn(segment: &Segment) -> bool {
    segment.flags & (Flags::SYN | Flags::ACK | Flags::RST) == Flags::SYN
}

/// Whether nothing is left to send: the connection is closed, or lingers in TIME-WAIT.
fn is_done(end: &Endpoint) -> bool {
    matches!(end.state(), StateName::Closed | StateName::TimeWait)
}

/// Whether the host has reset or lost the connection. A handshake that fails returns to LISTEN.
fn has_failed(end: &Endpoint) -> bool {
    end.state() == StateName::Listen || end.end().is_some_and(|end| end != End::Closed)
}

impl<T> Relay<T> {
    /// A connection opened by a SYN from the host at side `from`: connects to the other host.
    pub(crate) fn open(now: Time, from: Port, packet: &Incoming<'_>, tag: T, parts: &Parts) -> Relay<T> {
        let opener = index(from);
        let mut hosts = [packet.remote, packet.local];
        hosts.rotate_left(opener);
        let far = Box::new(parts.connect(now, 1 - opener, &hosts));
        let state = State::Opening { opener, syn: WaitingSyn::of(packet), far };
        Relay { hosts, tag, state, unopened: [0; 2], has_failed: false, packets: VecDeque::new() }
    }

    /// The endpoint towards the host at side `side`, if there is one.
    pub(crate) fn end(&self, side: usize) -> Option<&Endpoint> {
        match &self.state {
            State::Opening { opener, far, .. } => (*opener != side).then_some(far),
            State::Open(ends) => Some(&ends[side]),
            State::Over => None,
        }
    }

    fn end_mut(&mut self, side: usize) -> Option<&mut Endpoint> {
        match &mut self.state {
            State::Opening { opener, far, .. } => (*opener != side).then_some(far),
            State::Open(ends) => Some(&mut ends[side]),
            State::Over => None,
        }
    }

    /// Whether the handshake with one of the hosts is incomplete.
    pub(crate) fn is_half_open(&self) -> bool {
        match &self.state {
            State::Opening { .. } => true,
            State::Open(ends) => ends.iter().any(|end| end.state() == StateName::SynReceived),
            State::Over => false,
        }
    }

    /// Whether both parts have ended.
    pub(crate) fn is_over(&self) -> bool {
        match &self.state {
            State::Opening { .. } => false,
            State::Open(ends) => ends.iter().all(|end| end.state() == StateName::Closed),
            State::Over => true,
        }
    }

    /// Whether all that is left is TIME-WAIT.
    pub(crate) fn is_lingering(&self) -> bool {
        matches!(&self.state, State::Open(ends) if ends.iter().all(is_done))
    }

    /// Whether a packet begins a new incarnation of the connection.
    pub(crate) fn may_be_succeeded_by(&self, now: Time, from: Port, packet: &Incoming<'_>) -> bool {
        let State::Open(ends) = &self.state else { return false };
        let end = &ends[index(from)];
        let is_closed = end.state() == StateName::Closed;
        self.is_lingering()
            && is_syn(&packet.header.segment)
            && (is_closed || end.may_be_succeeded_by(now, packet))
    }

    pub(crate) fn receive(&mut self, now: Time, from: Port, packet: &Incoming<'_>) {
        let side = index(from);
        let segment = &packet.header.segment;
        match &mut self.state {
            State::Opening { opener, far, .. } if *opener != side => far.receive(now, packet),
            // A retransmission has the latest timestamp.
            State::Opening { syn, .. } if is_syn(segment) => *syn = WaitingSyn::of(packet),
            State::Opening { syn, far, .. } => {
                if segment.flags.has(Flags::RST) && segment.seq == syn.header.segment.seq + 1 {
                    far.abort(now);
                }
            }
            // The SYN of a new incarnation waits until the old one has ended on both sides.
            State::Open(ends) if is_syn(segment) && ends[side].state() == StateName::Closed => {}
            State::Open(ends) => ends[side].receive(now, packet),
            State::Over => {}
        }
    }

    /// Processes an ICMP message that quotes a packet to the host at side `from`.
    pub(crate) fn receive_icmp(&mut self, now: Time, from: Port, icmp: &Icmp<'_>) {
        if let Some(end) = self.end_mut(index(from)) {
            end.receive_icmp(now, icmp);
        }
    }

    /// Processes a scheme's message from side `from`.
    pub(crate) fn on_notice(&mut self, now: Time, from: Port, notice: &Notice) {
        if let Some(end) = self.end_mut(index(from)) {
            end.on_notice(now, notice);
        }
    }

    /// The radio signal of the mobile host has changed.
    pub(crate) fn on_reach(&mut self, now: Time, reach: Reach) {
        if let Some(end) = self.end_mut(index(Port::WIRED)) {
            end.on_far_reach(now, reach);
        }
        if let Some(end) = self.end_mut(index(Port::RADIO)) {
            end.on_reach(now, reach);
        }
    }

    pub(crate) fn wake(&mut self, now: Time) {
        for side in 0..2 {
            if let Some(end) = self.end_mut(side) {
                end.wake(now);
            }
        }
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        let ends = (0..2).filter_map(|side| self.end(side));
        ends.map(Endpoint::next_wakeup).min().unwrap_or(Time::NEVER)
    }

    /// The next packet to send: the side, the scale of its window, and the packet.
    pub(crate) fn poll(&mut self) -> Option<(Port, u8, Outgoing)> {
        self.packets.pop_front()
    }

    /// Acts on the other part after an event on one part.
    pub(crate) fn settle(&mut self, now: Time, parts: &Parts, stats: &mut ProxyStats, scratch: &mut [u8]) {
        self.answer_opener(now, parts, stats);
        if let State::Open(ends) = &mut self.state {
            for side in 0..2 {
                let unopened = &mut self.unopened[side];
                if parts.withholds() {
                    release(now, ends, side);
                }
                pass_on(now, ends, side, unopened, parts, stats, scratch);
            }
            if !self.has_failed && ends.iter().any(has_failed) {
                self.has_failed = true;
                fail(now, ends, parts, stats);
            }
        }
        for side in [Port::WIRED, Port::RADIO] {
            self.collect(side);
        }
    }

    /// Answers the SYN that waits, once the other host has answered.
    fn answer_opener(&mut self, now: Time, parts: &Parts, stats: &mut ProxyStats) {
        let State::Opening { opener, syn, far } = &self.state else { return };
        let syn = syn.as_incoming(*opener, &self.hosts);
        if far.sender().is_some() {
            let mut near = parts.listen(*opener, &self.hosts);
            near.receive(now, &syn);
            stats.connections += 1;
            let opener = *opener;
            self.state = match std::mem::replace(&mut self.state, State::Over) {
                State::Opening { far, .. } if opener == 0 => State::Open(Box::new([near, *far])),
                State::Opening { far, .. } => State::Open(Box::new([*far, near])),
                other => other,
            };
        } else if let Some(end) = far.end() {
            let side = Port(*opener as u32);
            if matches!(end, End::Refused | End::Unreachable | End::Reset) {
                stats.refused += 1;
                self.packets.extend(refuse(&syn).map(|reset| (side, 0, reset)));
            }
            self.collect(side.across());
            self.state = State::Over;
        }
    }

    /// Collects the packets of the endpoint at side `side`.
    fn collect(&mut self, side: Port) {
        let mut packets = std::mem::take(&mut self.packets);
        if let Some(end) = self.end_mut(index(side)) {
            let scale = end.window_scale();
            packets.extend(std::iter::from_fn(|| end.poll()).map(|packet| {
                let opens = packet.header.segment.flags.has(Flags::SYN);
                (side, if opens { 0 } else { scale }, packet)
            }));
        }
        self.packets = packets;
    }
}

/// Bytes from the host at side `from` that the other host has not acknowledged.
fn held(ends: &[Endpoint; 2], from: usize) -> u64 {
    (ends[from].readable() + ends[1 - from].unacknowledged()) as u64
}

/// Moves bytes from the host at side `from` to the other part, and the end of the stream after the last byte.
/// Opens the window as far as the buffer is free.
fn pass_on(
    now: Time,
    ends: &mut [Endpoint; 2],
    from: usize,
    unopened: &mut u64,
    parts: &Parts,
    stats: &mut ProxyStats,
    scratch: &mut [u8],
) {
    let [first, second] = ends;
    let (near, far) = if from == 0 { (first, second) } else { (second, first) };
    while near.readable() > 0 && far.writable() > 0 {
        let most = far.writable().min(scratch.len());
        let len = near.take(&mut scratch[..most]);
        far.send(now, &scratch[..len]);
        *unopened += len as u64;
    }
    if near.has_ended() && !has_failed(near) && near.readable() == 0 {
        far.shutdown(now);
    }
    let held = held(ends, from);
    stats.held_bytes_peak = stats.held_bytes_peak.max(held);
    // The window stays closed for the bytes that exceed what the buffer has beyond a whole window.
    let closed = held.saturating_sub((parts.buffer() - parts.window(from)) as u64);
    let room = unopened.saturating_sub(closed);
    *unopened -= room;
    ends[from].open_window(now, room);
}

/// Permits the acknowledgement of what the other host has acknowledged to the host at side `from`.
fn release(now: Time, ends: &mut [Endpoint; 2], from: usize) {
    let (near, far) = (&ends[from], &ends[1 - from]);
    let (bytes, is_finished) = match far.sender() {
        Some(sender) => (sender.acknowledged(), sender.stats().completed.is_some()),
        // The other host has acknowledged everything.
        None if far.end() == Some(End::Closed) => match near.receiver() {
            Some(receiver) => (receiver.stats().delivered.0, receiver.has_ended()),
            None => return,
        },
        None => return,
    };
    ends[from].release(now, bytes, is_finished);
}

/// One side has failed: resets the other side. The bytes held are lost, unless both streams have ended and only
/// the last bytes are on their way.
fn fail(now: Time, ends: &mut [Endpoint; 2], parts: &Parts, stats: &mut ProxyStats) {
    stats.resets += 1;
    for side in 0..2 {
        let is_last =
            matches!(ends[side].state(), StateName::LastAck | StateName::Closing | StateName::TimeWait);
        // The acknowledgement of a stream that the other host has not got will not come.
        if !is_last || ends[side].withholds_fin() {
            stats.undelivered_bytes += if parts.withholds() { 0 } else { held(ends, 1 - side) };
            ends[side].abort(now);
        }
    }
}
