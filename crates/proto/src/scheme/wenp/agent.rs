//! The base station's agent.
//!
//! **Connections.** A connection is added with the first data segment towards the wireless link, and
//! identified by its addresses and flow. It is removed when its FIN is acknowledged, on a reset, on a SYN,
//! and after a long idle time. If the table is full, a new connection replaces the one that was idle longest.
//! **Segments.** Each segment is cached once, however often it passes, and removed when it is fully
//! acknowledged. If data are resegmented, the latest boundaries count. If the cache is full, the last
//! segments in sequence are evicted or not cached: earlier ones are requested first, and by then others have
//! been removed.
//! **Duplicates.** As in RFC 5681 section 2: the same acknowledgement number and window again, no data, no
//! SYN or FIN, and data outstanding, which here means segments that have passed. The first acknowledgement
//! seen counts as a duplicate if it acknowledges none of these. A receiver with a closed window discards
//! data, so what it requests then was not lost. With SACK, no other duplicates (RFC 6675 section 2) are
//! marked.
//! **Cost.** At most two binary searches per packet, one in each table; a scan of the connection table for
//! each new connection.

use alloc::collections::{BTreeMap, VecDeque};

use lasthop_base::Time;

use super::Wenp;
use crate::component::{Component, Out, Port, Probe};
use crate::packet::{Body, Packet};
use crate::tcp::{Connection, Flags, Segment, SeqNum};

/// Marks passing acknowledgements.
#[derive(Debug)]
pub(super) struct Agent {
    scheme: Wenp,
    /// Connections with data towards the wireless link.
    connections: BTreeMap<Connection, ConnectionState>,
    counts: CostCounters,
}

/// Cost counters since the start.
#[derive(Debug, Default)]
struct CostCounters {
    packets: u64,
    /// Table lookups.
    lookups: u64,
    marked: u64,
    /// Currently cached segments of all connections, and their peak.
    cached: usize,
    peak: usize,
}

impl CostCounters {
    /// Updates the counters after a connection's number of segments changed from `before` to `after`.
    fn update_cached(&mut self, before: usize, after: usize) {
        self.cached = self.cached - before + after;
        self.peak = self.peak.max(self.cached);
    }
}

impl Agent {
    pub(super) fn new(scheme: &Wenp) -> Agent {
        Agent { scheme: scheme.clone(), connections: BTreeMap::new(), counts: CostCounters::default() }
    }

    /// A segment passes towards the wireless link.
    fn on_downlink(&mut self, now: Time, connection: Connection, segment: &Segment) {
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            self.look_up_and_remove(connection);
        } else if segment.len > 0 {
            self.cache_data(now, connection, segment);
        } else if segment.flags.has(Flags::FIN) {
            self.counts.lookups += 1;
            if let Some(state) = self.connections.get_mut(&connection) {
                state.record_fin(segment);
            }
        }
    }

    fn cache_data(&mut self, now: Time, connection: Connection, segment: &Segment) {
        self.counts.lookups += 2;
        let state = match self.connections.get_mut(&connection) {
            Some(state) if !state.is_outdated(now, segment, &self.scheme) => state,
            _ => {
                self.remove(connection);
                self.make_room(now);
                self.connections.entry(connection).or_insert_with(|| ConnectionState::new(now))
            }
        };
        let before = state.segments.len();
        state.cache(now, segment, self.scheme.cache as usize);
        self.counts.update_cached(before, state.segments.len());
    }

    /// Makes room for another connection: removes those that are idle, or else the one that was idle longest.
    fn make_room(&mut self, now: Time) {
        let Agent { scheme, connections, counts } = self;
        connections.retain(|_, state| {
            let stays = !state.is_idle(now, scheme);
            if !stays {
                counts.update_cached(state.segments.len(), 0);
            }
            stays
        });
        if connections.len() >= scheme.connections as usize {
            let longest = connections.iter().min_by_key(|(_, state)| state.last_active);
            let longest = longest.map(|(&connection, _)| connection);
            longest.into_iter().for_each(|connection| self.remove(connection));
        }
    }

    fn look_up_and_remove(&mut self, connection: Connection) {
        self.counts.lookups += 1;
        self.remove(connection);
    }

    fn remove(&mut self, connection: Connection) {
        if let Some(state) = self.connections.remove(&connection) {
            self.counts.update_cached(state.segments.len(), 0);
        }
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
        let Some(state) = self.connections.get_mut(&connection) else { return false };
        if state.is_idle(now, &self.scheme) {
            self.remove(connection);
            return false;
        }
        let before = state.segments.len();
        self.counts.lookups += 1;
        let requests_lost = state.acknowledge(now, segment);
        self.counts.update_cached(before, state.segments.len());
        if state.has_ended() {
            self.remove(connection);
        }
        requests_lost
    }
}

/// State of a connection.
#[derive(Debug)]
struct ConnectionState {
    /// Segments that have passed, in sequence order, without overlaps.
    segments: VecDeque<CachedSegment>,
    /// The highest acknowledgement number seen, and the window in the latest segment with it.
    acked: Option<(SeqNum, u32)>,
    /// End of the FIN, if it was seen.
    end: Option<SeqNum>,
    /// When data or an acknowledgement last passed.
    last_active: Time,
}

/// The data of a segment: from `start` (inclusive) to `end` (exclusive).
#[derive(Clone, Copy, Debug)]
struct CachedSegment {
    start: SeqNum,
    end: SeqNum,
}

impl ConnectionState {
    fn new(now: Time) -> ConnectionState {
        ConnectionState { segments: VecDeque::new(), acked: None, end: None, last_active: now }
    }

    fn is_idle(&self, now: Time, scheme: &Wenp) -> bool {
        now.since(self.last_active) > scheme.idle
    }

    /// Whether the state is outdated: `segment` is in a different window, or the connection was idle too
    /// long.
    fn is_outdated(&self, now: Time, segment: &Segment, scheme: &Wenp) -> bool {
        let ends = [self.segments.front(), self.segments.back()].into_iter().flatten().map(|span| span.start);
        let mut known = ends.chain(self.acked.map(|(ack, _)| ack));
        self.is_idle(now, scheme) || known.any(|seq| seq.is_far_from(segment.seq))
    }

    fn record_fin(&mut self, segment: &Segment) {
        self.end = Some(segment.seq + segment.seq_len());
    }

    /// Caches a data segment, besides at most `most` others.
    fn cache(&mut self, now: Time, segment: &Segment, most: usize) {
        self.last_active = now;
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
    fn acknowledge(&mut self, now: Time, segment: &Segment) -> bool {
        self.last_active = now;
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

    /// Cached segments and connections, the peak of cached segments, and the totals of packets, table lookups
    /// and marked acknowledgements. Idle connections count until another packet causes their removal.
    fn show(&self, probe: &mut dyn Probe) {
        let CostCounters { packets, lookups, marked, cached, peak } = self.counts;
        probe.value("cached_segments", cached as f64);
        probe.value("cached_segments_peak", peak as f64);
        probe.value("connections", self.connections.len() as f64);
        probe.value("packets", packets as f64);
        probe.value("lookups", lookups as f64);
        probe.value("marked_acks", marked as f64);
    }
}
