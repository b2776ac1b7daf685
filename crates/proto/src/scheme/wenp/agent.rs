//! The base station's agent.
//!
//! **Connections.** A connection is added to the [table](crate::scheme::connections) with the first data segment
//! towards the wireless link, and identified by its addresses and flow. It is removed when its FIN is acknowledged,
//! on a reset, on a SYN, and after a long idle time.
//! **Segments.** Each segment is cached once, however often it passes, and removed when it is fully
//! acknowledged. If data are resegmented, the latest boundaries count. If the cache is full, the last
//! segments in sequence are evicted or not cached: earlier ones are requested first, and by then others have
//! been removed.
//! **Duplicates.** As in RFC 5681 section 2: the same acknowledgement number and window again, no data, no
//! SYN or FIN, and data outstanding, which here means segments that have passed. The first acknowledgement
//! seen counts as a duplicate if it acknowledges none of these. A receiver with a closed window discards
//! data, so what it requests then was not lost. With SACK, no other duplicates (RFC 6675 section 2) are
//! marked.
//! **Cost.** At most two binary searches per packet, one in each table, and a few more to add or remove a
//! connection.

use alloc::collections::VecDeque;

use lasthop_base::Time;

use super::Wenp;
use crate::component::{Component, LinkOutcome, Out, Port, Tally};
use crate::packet::{Body, Packet};
use crate::scheme::connections::{ConnectionState, ConnectionTable};
use crate::tcp::{Connection, Flags, Segment, SeqNum};

/// Marks passing acknowledgements.
#[derive(Debug)]
pub(super) struct Agent {
    scheme: Wenp,
    /// Connections with data towards the wireless link.
    connections: ConnectionTable<WenpState>,
    counts: CostCounters,
}

/// Cost counters since the start.
#[derive(Debug, Default)]
struct CostCounters {
    packets: u64,
    /// Table lookups.
    lookups: u64,
    marked: u64,
}

impl Agent {
    pub(super) fn new(scheme: &Wenp) -> Agent {
        let connections = ConnectionTable::new(scheme.connections, scheme.idle);
        Agent { scheme: scheme.clone(), connections, counts: CostCounters::default() }
    }

    /// A segment passes towards the wireless link.
    fn on_downlink(&mut self, now: Time, connection: Connection, segment: &Segment) {
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            self.look_up_and_remove(connection);
        } else if segment.len > 0 {
            self.counts.lookups += 2;
            let slot = self.connections.find_or_add(now, connection, segment);
            let most = self.scheme.cache as usize;
            self.connections.update(now, slot, |state| state.cache(segment, most));
        } else if segment.flags.has(Flags::FIN) {
            self.counts.lookups += 1;
            if let Some(slot) = self.connections.find(now, connection) {
                self.connections.update(now, slot, |state| state.record_fin(segment));
            }
        }
    }

    fn look_up_and_remove(&mut self, connection: Connection) {
        self.counts.lookups += 1;
        self.connections.remove_connection(connection);
    }

    /// A segment from the wireless link may acknowledge data of `connection`. Returns whether it requests a
    /// segment that was lost on the air.
    fn indicates_loss(&mut self, now: Time, connection: Connection, segment: &Segment) -> bool {
        if segment.flags.has(Flags::RST) {
            self.look_up_and_remove(connection);
            return false;
        }
        if !segment.flags.has(Flags::ACK) {
            return false;
        }
        self.counts.lookups += 1;
        let Some(slot) = self.connections.find(now, connection) else { return false };
        self.counts.lookups += 1;
        let requests_lost = self.connections.update(now, slot, |state| state.acknowledge(segment));
        if self.connections[slot].has_ended() {
            self.connections.remove(slot);
        }
        requests_lost
    }
}

/// State of a connection.
#[derive(Debug)]
struct WenpState {
    /// Segments that have passed, in sequence order, without overlaps.
    segments: VecDeque<CachedSegment>,
    /// The highest acknowledgement number seen, and the window in the latest segment with it.
    acked: Option<(SeqNum, u32)>,
    /// End of the FIN, if it was seen.
    end: Option<SeqNum>,
}

/// The data of a segment: from `start` (inclusive) to `end` (exclusive).
#[derive(Clone, Copy, Debug)]
struct CachedSegment {
    start: SeqNum,
    end: SeqNum,
}

impl ConnectionState for WenpState {
    type Read = Segment;

    fn new(_now: Time, _segment: &Segment) -> WenpState {
        WenpState { segments: VecDeque::new(), acked: None, end: None }
    }

    fn is_outdated(&self, segment: &Segment) -> bool {
        let ends = [self.segments.front(), self.segments.back()].into_iter().flatten().map(|span| span.start);
        let mut known = ends.chain(self.acked.map(|(ack, _)| ack));
        known.any(|seq| seq.is_far_from(segment.seq))
    }

    fn cached(&self) -> usize {
        self.segments.len()
    }
}

impl WenpState {
    fn record_fin(&mut self, segment: &Segment) {
        self.end = Some(segment.seq + segment.seq_len());
    }

    /// Caches a data segment, besides at most `most` others.
    fn cache(&mut self, segment: &Segment, most: usize) {
        if segment.flags.has(Flags::FIN) {
            self.record_fin(segment);
        }
        let new = CachedSegment { start: segment.seq, end: segment.seq + segment.len };
        if self.acked.is_some_and(|(ack, _)| new.end <= ack) {
            return;
        }
        let mut first = self.segments.partition_point(|span| span.end <= new.start);
        let mut after = first;
        while let Some(span) = self.segments.get_mut(after).filter(|span| span.start < new.end) {
            if span.start <= new.start && new.end <= span.end {
                return;
            }
            // Segments within the new one are removed; others keep the part outside of it.
            if span.start < new.start {
                span.end = new.start;
                first += 1;
            } else if span.end > new.end {
                span.start = new.end;
                break;
            }
            after += 1;
        }
        self.segments.drain(first..after);
        self.segments.insert(first, new);
        self.segments.truncate(most);
    }

    /// Processes an acknowledgement; returns whether it is a duplicate that requests a cached segment.
    fn acknowledge(&mut self, segment: &Segment) -> bool {
        let Segment { ack, wnd, .. } = *segment;
        if self.acked.is_some_and(|(acked, _)| ack < acked) {
            return false;
        }
        let bare = segment.seq_len() == 0;
        let front = self.segments.front().map(|span| span.start);
        let repeats = self.acked.map_or(front == Some(ack), |acked| acked == (ack, wnd));
        self.acked = Some((ack, wnd));
        let gone = self.segments.partition_point(|span| span.end <= ack);
        self.segments.drain(..gone);
        bare && wnd > 0 && repeats && self.segments.front().is_some_and(|span| span.start <= ack)
    }

    /// Whether everything is acknowledged, including the FIN.
    fn has_ended(&self) -> bool {
        self.acked.zip(self.end).is_some_and(|((ack, _), end)| ack >= end)
    }
}

impl Component for Agent {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        self.counts.packets += 1;
        let mut packet = *packet;
        let Packet { src, dst, flow, .. } = packet;
        match &mut packet.body {
            Body::Tcp(segment) if !self.scheme.encrypted => {
                if port == Port::WIRED {
                    self.on_downlink(now, Connection { src, dst, flow }, segment);
                } else if self.indicates_loss(now, Connection { src: dst, dst: src, flow }, segment) {
                    segment.flags = segment.flags | self.scheme.flag();
                    self.counts.marked += 1;
                }
            }
            _ => {}
        }
        out.send(port.across(), packet);
    }

    fn needs_outcome(&self, _outcome: LinkOutcome) -> bool {
        false
    }

    /// Cached segments and connections, the peak of cached segments, and the totals of packets, table lookups
    /// and marked acknowledgements. Idle connections count until another packet causes their removal.
    fn count(&self, tally: &mut dyn Tally) {
        let CostCounters { packets, lookups, marked } = self.counts;
        tally.level("cached_segments", self.connections.cached() as u64);
        tally.peak("cached_segments_peak", self.connections.cached_peak() as u64);
        tally.level("connections", self.connections.len() as u64);
        tally.total("packets", packets);
        tally.total("lookups", lookups);
        tally.total("marked_acks", marked);
    }
}
