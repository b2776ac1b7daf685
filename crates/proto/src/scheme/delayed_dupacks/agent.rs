//! The agent at the base station, in place of the receiver's reaction.

use lasthop_base::{Duration, Time};

use super::AT_ONCE;
use crate::component::{Component, LinkOutcome, Out, Port, Tally};
use crate::packet::{Body, DropReason, Packet};
use crate::scheme::connections::{ConnectionState, ConnectionTable};
use crate::scheme::held::HeldPackets;
use crate::tcp::{Connection, Flags, Segment, SeqNum};

/// Maximum number of connections. A further one replaces that which was idle longest.
const CONNECTIONS: u32 = 256;

/// Idle time after which a connection is removed: twice the smallest upper bound of the RTO that RFC 6298 permits.
const IDLE: Duration = Duration::from_secs(120);

/// Maximum number of delayed duplicates of a connection. A further one releases them.
const HELD: usize = 1024;

/// The longest delay: the lower bound of the RTO (RFC 6298 section 2.4).
pub(super) const LONGEST: Duration = Duration::from_secs(1);

/// What the agent knows of the data of a connection, and of their acknowledgements.
#[derive(Debug)]
struct Row {
    /// One past the highest sequence number that has passed.
    sent: SeqNum,
    /// The acknowledgement number of the current run of duplicates, at first the beginning of the data.
    ack: SeqNum,
    /// The window of the latest acknowledgement in the run.
    wnd: Option<u32>,
    /// Duplicates in the run.
    count: u32,
    /// When those that are delayed are sent.
    until: Time,
}

impl ConnectionState for Row {
    type Read = Segment;

    fn new(_now: Time, segment: &Segment) -> Row {
        Row { sent: segment.seq, ack: segment.seq, wnd: None, count: 0, until: Time::NEVER }
    }

    fn is_outdated(&self, segment: &Segment) -> bool {
        self.sent.is_far_from(segment.seq)
    }

    fn cached(&self) -> usize {
        0
    }
}

impl Row {
    /// Whether a segment with the acknowledgement number of the run is a duplicate (RFC 5681 section 2), or tells of data beyond
    /// a gap.
    fn is_duplicated_by(&self, segment: &Segment) -> bool {
        let tells_gap = match segment.sack.is_empty() {
            true => self.wnd.is_none_or(|wnd| segment.wnd == wnd),
            false => segment.sack.iter().any(|block| block.start >= segment.ack),
        };
        segment.is_pure_ack() && tells_gap && self.sent > segment.ack
    }

    /// Until when a segment with the acknowledgement number of the run is delayed; `None` if it passes.
    fn on_same_ack(&mut self, now: Time, segment: &Segment, delay: Duration) -> Option<Time> {
        let is_duplicate = self.is_duplicated_by(segment);
        self.wnd = Some(segment.wnd);
        if !is_duplicate {
            return None;
        }
        self.count += 1;
        if self.count <= AT_ONCE || self.until <= now {
            return None;
        }
        self.until = self.until.min(now + delay);
        Some(self.until)
    }
}

/// Delays duplicate acknowledgements that pass a base station, in both directions.
#[derive(Debug)]
pub(super) struct Agent {
    delay: Duration,
    rows: ConnectionTable<Row>,
    held: HeldPackets,
    delayed: u64,
    suppressed: u64,
}

impl Agent {
    pub(super) fn new(delay: Duration) -> Agent {
        let rows = ConnectionTable::new(CONNECTIONS, IDLE);
        Agent { delay, rows, held: HeldPackets::default(), delayed: 0, suppressed: 0 }
    }

    /// Until when an acknowledgement of data of `connection` is delayed; `None` if it passes. What was delayed before it is sent, or
    /// suppressed if it acknowledges more.
    fn on_ack(
        &mut self,
        now: Time,
        connection: Connection,
        segment: &Segment,
        out: &mut Out,
    ) -> Option<Time> {
        let slot = self.rows.find(now, connection)?;
        let Row { sent, ack, until: before, .. } = self.rows[slot];
        if sent.is_far_from(segment.ack) {
            self.remove(now, connection, out);
            return None;
        }
        if segment.ack < ack {
            return None;
        }
        if segment.ack > ack {
            self.rows.update(now, slot, |row| {
                // The window of a SYN is not scaled.
                let wnd = (!segment.flags.has(Flags::SYN)).then_some(segment.wnd);
                *row = Row { sent, ack: segment.ack, wnd, count: 0, until: Time::NEVER };
            });
            for (_, packet) in self.held.take(before, connection) {
                self.suppressed += 1;
                out.drop(packet, DropReason::Suppressed);
            }
            return None;
        }
        let (delay, held) = (self.delay, self.held.of(before, connection));
        let until = self.rows.update(now, slot, |row| row.on_same_ack(now, segment, delay));
        if held == 0 || until.is_some() && held < HELD {
            return until;
        }
        // The third one is sent, so that the source retransmits: the others help nobody by waiting.
        self.held.take(before, connection).into_iter().for_each(|(port, packet)| out.send(port, packet));
        self.rows.update(now, slot, |row| row.until = now);
        None
    }

    /// Sends what is delayed of a connection, and forgets it.
    fn remove(&mut self, now: Time, connection: Connection, out: &mut Out) {
        if let Some(slot) = self.rows.find(now, connection) {
            let until = self.rows[slot].until;
            self.held.take(until, connection).into_iter().for_each(|(port, packet)| out.send(port, packet));
            self.rows.remove(slot);
        }
    }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let Packet { src, dst, flow, .. } = *packet;
        let (of_sender, of_receiver) =
            (Connection { src, dst, flow }, Connection { src: dst, dst: src, flow });
        let Body::Tcp(segment) = &packet.body else { return out.send(port.across(), *packet) };
        let is_ack = segment.flags.has(Flags::ACK);
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            self.remove(now, of_sender, out);
        }
        // A SYN-ACK acknowledges the SYN, with which the other row has begun.
        if segment.flags.has(Flags::RST) || segment.flags.has(Flags::SYN) && !is_ack {
            self.remove(now, of_receiver, out);
        }
        if segment.seq_len() > 0 && !segment.flags.has(Flags::RST) {
            let slot = self.rows.find_or_add(now, of_sender, segment);
            let end = segment.seq + segment.seq_len();
            self.rows.update(now, slot, |row| row.sent = row.sent.max(end));
        }
        match is_ack.then(|| self.on_ack(now, of_receiver, segment, out)).flatten() {
            Some(until) => {
                self.delayed += 1;
                self.held.hold(until, of_receiver, port.across(), *packet);
            }
            None => out.send(port.across(), *packet),
        }
    }

    fn wake(&mut self, now: Time, out: &mut Out) {
        self.held.release(now, |port, packet| out.send(port, packet));
    }

    fn next_wakeup(&self) -> Time {
        self.held.next_release()
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    fn kept(&self, visit: &mut dyn FnMut(&Packet)) {
        self.held.packets().for_each(visit);
    }

    /// Totals of duplicates that were delayed, and of those that were never sent.
    fn count(&self, tally: &mut dyn Tally) {
        tally.total("delayed_dupacks", self.delayed);
        tally.total("suppressed_dupacks", self.suppressed);
    }
}
