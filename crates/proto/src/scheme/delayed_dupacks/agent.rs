//! The agent at the base station, in place of the receiver's reaction.

use lasthop_base::{Duration, Time};

use super::AT_ONCE;
use crate::component::{Component, LinkOutcome, Out, Port, Tally};
use crate::packet::{Body, DropReason, Packet};
use crate::scheme::connections::{ConnectionState, ConnectionTable, Slot};
use crate::scheme::held::HeldPackets;
use crate::tcp::{Connection, Flags, Segment, SeqNum};

/// Maximum number of connections. A further one replaces that which was idle longest.
const CONNECTIONS: u32 = 256;

/// Idle time after which a connection is removed: twice the smallest upper bound of the RTO that RFC 6298 permits.
const IDLE: Duration = Duration::from_secs(120);

/// Maximum number of delayed duplicates of a connection; further ones pass.
const HELD: usize = 1024;

/// What the agent knows of the data of a connection, and of their acknowledgements.
#[derive(Debug)]
struct Row {
    /// One past the highest sequence number that has passed.
    sent: SeqNum,
    /// The acknowledgement number of the current row of duplicates, and the window.
    ack: Option<(SeqNum, u32)>,
    /// Duplicates in the row.
    count: u32,
    /// When those that are delayed are sent.
    until: Time,
}

impl ConnectionState for Row {
    type Read = Segment;

    fn new(_now: Time, segment: &Segment) -> Row {
        Row { sent: segment.seq, ack: None, count: 0, until: Time::NEVER }
    }

    fn is_outdated(&self, segment: &Segment) -> bool {
        self.sent.is_far_from(segment.seq)
    }

    fn cached(&self) -> usize {
        0
    }
}

impl Row {
    /// Whether a segment with the acknowledgement number of the row is a duplicate (RFC 5681 section 2), or tells of data beyond
    /// a gap.
    fn is_duplicated_by(&self, segment: &Segment, wnd: u32) -> bool {
        let others = Flags::SYN | Flags::FIN | Flags::RST;
        let is_pure = segment.len == 0 && segment.flags & others == Flags::default();
        let tells_gap = match segment.sack.is_empty() {
            true => segment.wnd == wnd,
            false => segment.sack.iter().any(|block| block.start >= segment.ack),
        };
        is_pure && tells_gap && self.sent > segment.ack
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

    /// Whether an acknowledgement of data of `connection` passes; otherwise it is to be delayed until the given time.
    fn on_ack(&mut self, now: Time, connection: Connection, segment: &Segment, out: &mut Out) -> Option<Time> {
        let slot = self.rows.find(now, connection)?;
        if self.rows[slot].sent.is_far_from(segment.ack) {
            self.rows.remove(slot);
            return None;
        }
        match self.rows[slot].ack {
            Some((ack, wnd)) if segment.ack == ack => self.on_same_ack(now, slot, segment, wnd, connection),
            Some((ack, _)) if segment.ack < ack => None,
            _ => {
                let before = self.rows.update(now, slot, |row| {
                    (row.ack, row.count) = (Some((segment.ack, segment.wnd)), 0);
                    core::mem::replace(&mut row.until, Time::NEVER)
                });
                for (_, packet) in self.held.take(before, connection) {
                    self.suppressed += 1;
                    out.drop(packet, DropReason::Suppressed);
                }
                None
            }
        }
    }

    fn on_same_ack(
        &mut self,
        now: Time,
        slot: Slot,
        segment: &Segment,
        wnd: u32,
        connection: Connection,
    ) -> Option<Time> {
        let is_full = self.held.of(self.rows[slot].until, connection) >= HELD;
        let delay = self.delay;
        self.rows.update(now, slot, |row| {
            if !row.is_duplicated_by(segment, wnd) {
                row.ack = Some((segment.ack, segment.wnd));
                return None;
            }
            row.count += 1;
            if row.count <= AT_ONCE || row.until <= now || is_full {
                return None;
            }
            row.until = row.until.min(now + delay);
            Some(row.until)
        })
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
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            [of_sender, of_receiver].iter().for_each(|connection| self.remove(now, *connection, out));
        }
        if segment.seq_len() > 0 && !segment.flags.has(Flags::RST) {
            let slot = self.rows.find_or_add(now, of_sender, segment);
            let end = segment.seq + segment.seq_len();
            self.rows.update(now, slot, |row| row.sent = row.sent.max(end));
        }
        let is_ack = segment.flags.has(Flags::ACK);
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
