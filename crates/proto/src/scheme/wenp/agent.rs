//! The base station's part.
//!
//! **Connections.** One is noted with the first segment with data that comes for the air, and told from others
//! by its addresses and flow. It is forgotten when its FIN is acknowledged, when either end resets it, with a
//! SYN, and after a long silence. If the table is full, a new one takes the place of the one that was silent
//! the longest.
//! **Segments.** Each is noted once, however often it comes, and leaves when all of it is acknowledged. Of data
//! that are cut anew the latest cut counts. If there are too many, the last in sequence leave or are not noted:
//! those before them are asked for first, and by then others have left.
//! **Duplicates.** As RFC 5681 section 2 has them: the same acknowledgement number and window again, no data,
//! neither SYN nor FIN, and something outstanding, which here means what has passed. The first acknowledgement
//! that is seen is one if it acknowledges nothing that has passed. A receiver without a window refuses what
//! comes: what it asks for then was not lost. With SACK, no other duplicates (RFC 6675 section 2) are marked.
//! **Cost.** At most two searches for a packet, one in each table, both binary; where a connection begins, a look
//! at all that are noted.

use alloc::collections::{BTreeMap, VecDeque};

use lasthop_base::Time;

use super::Wenp;
use crate::component::{Component, Out, Port, Probe};
use crate::packet::{Body, Packet};
use crate::tcp::{Connection, Flags, Segment, SeqNum};

/// No window is larger (RFC 7323 section 2.3), so that numbers farther apart are of different windows.
const LARGEST_WINDOW: u32 = 1 << 30;

/// Marks acknowledgements as they pass.
#[derive(Debug)]
pub(super) struct Agent {
    scheme: Wenp,
    /// Connections whose data come for the air.
    connections: BTreeMap<Connection, Noted>,
    counts: Counts,
}

/// What it costs, since the beginning.
#[derive(Debug, Default)]
struct Counts {
    packets: u64,
    /// Searches in a table.
    lookups: u64,
    marked: u64,
    /// Segments that are noted now, of all connections, and the most at once.
    cached: usize,
    peak: usize,
}

impl Counts {
    /// There were `before` segments of some connection; there are `after`.
    fn note_cached(&mut self, before: usize, after: usize) {
        self.cached = self.cached - before + after;
        self.peak = self.peak.max(self.cached);
    }
}

impl Agent {
    pub(super) fn new(scheme: &Wenp) -> Agent {
        Agent { scheme: scheme.clone(), connections: BTreeMap::new(), counts: Counts::default() }
    }

    /// A segment comes for the air.
    fn note(&mut self, now: Time, connection: Connection, segment: &Segment) {
        if segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST) {
            self.forget(connection);
        } else if segment.len > 0 {
            self.note_data(now, connection, segment);
        } else if segment.flags.has(Flags::FIN) {
            self.counts.lookups += 1;
            if let Some(noted) = self.connections.get_mut(&connection) {
                noted.note_end(segment);
            }
        }
    }

    fn note_data(&mut self, now: Time, connection: Connection, segment: &Segment) {
        self.counts.lookups += 2;
        let noted = match self.connections.get_mut(&connection) {
            Some(noted) if !noted.is_over(now, segment, &self.scheme) => noted,
            _ => {
                self.forget_noted(connection);
                self.make_room(now);
                self.connections.entry(connection).or_insert_with(|| Noted::new(now))
            }
        };
        let before = noted.segments.len();
        noted.note(now, segment, self.scheme.cache as usize);
        self.counts.note_cached(before, noted.segments.len());
    }

    /// Makes room for one more connection: what was silent for too long goes, or else what was so the longest.
    fn make_room(&mut self, now: Time) {
        let Agent { scheme, connections, counts } = self;
        connections.retain(|_, noted| {
            let stays = !noted.is_silent(now, scheme);
            if !stays {
                counts.note_cached(noted.segments.len(), 0);
            }
            stays
        });
        if connections.len() >= scheme.connections as usize {
            let longest = connections.iter().min_by_key(|(_, noted)| noted.heard);
            let longest = longest.map(|(&connection, _)| connection);
            longest.into_iter().for_each(|connection| self.forget_noted(connection));
        }
    }

    fn forget(&mut self, connection: Connection) {
        self.counts.lookups += 1;
        self.forget_noted(connection);
    }

    fn forget_noted(&mut self, connection: Connection) {
        if let Some(noted) = self.connections.remove(&connection) {
            self.counts.note_cached(noted.segments.len(), 0);
        }
    }

    /// A segment has come over the air that may acknowledge data of `connection`: whether what it asks for was
    /// lost there.
    fn tells_of_loss(&mut self, now: Time, connection: Connection, segment: &Segment) -> bool {
        if segment.flags.has(Flags::RST) {
            self.forget(connection);
            return false;
        }
        if !segment.flags.has(Flags::ACK) {
            return false;
        }
        self.counts.lookups += 1;
        let Some(noted) = self.connections.get_mut(&connection) else { return false };
        if noted.is_silent(now, &self.scheme) {
            self.forget_noted(connection);
            return false;
        }
        let before = noted.segments.len();
        self.counts.lookups += 1;
        let asks = noted.acknowledge(now, segment);
        self.counts.note_cached(before, noted.segments.len());
        if noted.has_ended() {
            self.forget_noted(connection);
        }
        asks
    }
}

/// What is known of a connection.
#[derive(Debug)]
struct Noted {
    /// Segments that have passed, by sequence numbers, without overlaps.
    segments: VecDeque<Span>,
    /// The highest acknowledgement that was seen, and the window in the latest with it.
    acked: Option<(SeqNum, u32)>,
    /// Where FIN ends, if it was seen.
    end: Option<SeqNum>,
    /// When data or an acknowledgement of it last passed.
    heard: Time,
}

/// The data of a segment: from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: SeqNum,
    end: SeqNum,
}

impl Noted {
    fn new(now: Time) -> Noted {
        Noted { segments: VecDeque::new(), acked: None, end: None, heard: now }
    }

    fn is_silent(&self, now: Time, scheme: &Wenp) -> bool {
        now.since(self.heard) > scheme.idle
    }

    /// Whether what is known cannot be of the window that `segment` is in.
    fn is_over(&self, now: Time, segment: &Segment, scheme: &Wenp) -> bool {
        let ends = [self.segments.front(), self.segments.back()].into_iter().flatten().map(|span| span.start);
        let mut known = ends.chain(self.acked.map(|(ack, _)| ack));
        self.is_silent(now, scheme) || known.any(|seq| is_far(seq, segment.seq))
    }

    fn note_end(&mut self, segment: &Segment) {
        self.end = Some(segment.seq + segment.seq_len());
    }

    /// Notes a segment with data, with at most so many others.
    fn note(&mut self, now: Time, segment: &Segment, most: usize) {
        self.heard = now;
        if segment.flags.has(Flags::FIN) {
            self.note_end(segment);
        }
        let new = Span { start: segment.seq, end: segment.seq + segment.len };
        if self.acked.is_some_and(|(ack, _)| new.end <= ack) {
            return;
        }
        let mut first = self.segments.partition_point(|span| span.end <= new.start);
        let mut after = first;
        while let Some(span) = self.segments.get_mut(after).filter(|span| span.start < new.end) {
            if span.start <= new.start && new.end <= span.end {
                return;
            }
            // What lies within the new one goes; others keep what lies outside.
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

    /// Takes an acknowledgement; says whether it is a duplicate that asks for a segment which has passed.
    fn acknowledge(&mut self, now: Time, segment: &Segment) -> bool {
        self.heard = now;
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

    /// Whether all of it was acknowledged, FIN too.
    fn has_ended(&self) -> bool {
        self.acked.zip(self.end).is_some_and(|((ack, _), end)| ack >= end)
    }
}

/// Whether two numbers cannot be of one window, whichever comes first.
fn is_far(one: SeqNum, other: SeqNum) -> bool {
    one.max(other) - one.min(other) > LARGEST_WINDOW
}

impl Component for Agent {
    fn receive(&mut self, now: Time, mut packet: Packet, port: Port, out: &mut Out) {
        self.counts.packets += 1;
        let Packet { src, dst, flow, .. } = packet;
        match &mut packet.body {
            Body::Tcp(segment) if !self.scheme.encrypted => {
                if port == Port::WIRED {
                    self.note(now, Connection { src, dst, flow }, segment);
                } else if self.tells_of_loss(now, Connection { src: dst, dst: src, flow }, segment) {
                    segment.flags = segment.flags | self.scheme.flag();
                    self.counts.marked += 1;
                }
            }
            _ => {}
        }
        out.send(port.across(), packet);
    }

    /// Segments and connections that are noted now, segments at most so far; and since the beginning, packets
    /// that came, searches in the tables, and acknowledgements that were marked. What has been silent for too
    /// long still counts as noted until something else shows that it has.
    fn show(&self, probe: &mut dyn Probe) {
        let Counts { packets, lookups, marked, cached, peak } = self.counts;
        probe.value("cached_segments", cached as f64);
        probe.value("cached_segments_peak", peak as f64);
        probe.value("connections", self.connections.len() as f64);
        probe.value("packets", packets as f64);
        probe.value("lookups", lookups as f64);
        probe.value("marked_acks", marked as f64);
    }
}
