//! Recordings of real packets: metrics and traces of TCP connections, by the definitions of a simulation, and the
//! lateness of each packet.
//!
//! Segments are recorded where they enter and leave the network, so internal events of hosts, such as timeouts, are
//! missing. The data received in order are those that the receiver acknowledges.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;

use crate::emulation::Side;
use lasthop_base::Time;
use lasthop_experiment::Events;
use lasthop_proto::DropReason;
use lasthop_proto::tcp::{Flags, SeqNum};
use lasthop_wire::{IpPacket, TcpHeader};
use serde::Serialize;

use crate::log::Log;

/// Maximum number of recorded connections; later ones are not recorded. Only port scans have more.
const MAX_CONNECTIONS: usize = 4_096;

/// Maximum number of rows in traces, and in the record of lateness, as in a simulation.
const MAX_ROWS: usize = 4_000_000;

/// The two ends of a connection; the end on the source's side comes first.
type Ends = [(IpAddr, u16); 2];

/// Recordings of an emulation.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    index: HashMap<Ends, u32>,
    connections: Vec<Connection>,
    /// The events of all connections, in order; `None` if they are not recorded.
    rows: Option<Log<Row>>,
    /// The lateness of packets; `None` if it is not recorded.
    lateness: Option<Log<Late>>,
}

/// When a packet entered and left the network.
#[derive(Debug)]
struct Late {
    entered: Time,
    time: Time,
    to: Side,
    size: u64,
    late_s: f64,
}

/// When each packet entered and left the network, as columns: row *i* of each column belongs to one packet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatenessRecord {
    /// When the packet entered, in seconds of the emulation's clock.
    pub entered_s: Vec<f64>,
    /// When it left the last link.
    pub time_s: Vec<f64>,
    /// The end that received it, as an index of [`Report::ends`](crate::Report).
    pub end: Vec<u8>,
    /// Size as an IP packet.
    pub size_bytes: Vec<i64>,
    /// The time from `time_s` to its write, plus how much later than it arrived it entered.
    pub late_s: Vec<f64>,
}

impl LatenessRecord {
    fn of(rows: &Log<Late>) -> LatenessRecord {
        LatenessRecord {
            entered_s: rows.iter().map(|row| row.entered.as_secs_f64()).collect(),
            time_s: rows.iter().map(|row| row.time.as_secs_f64()).collect(),
            end: rows.iter().map(|row| row.to as u8).collect(),
            size_bytes: rows.iter().map(|row| row.size as i64).collect(),
            late_s: rows.iter().map(|row| row.late_s).collect(),
        }
    }
}

/// One TCP connection.
#[derive(Debug)]
struct Connection {
    ends: Ends,
    start: Time,
    /// The data of each side.
    data: [Data; 2],
    drops: Drops,
}

/// The data that one side sent.
#[derive(Debug, Default)]
struct Data {
    /// Sequence number of the SYN, if it was seen.
    syn: Option<SeqNum>,
    /// Sequence number of the first byte.
    first: Option<SeqNum>,
    /// End of what was sent, and of what was acknowledged, relative to `first`.
    sent: u32,
    acknowledged: u32,
    /// When `acknowledged` reached its value.
    acknowledged_at: Time,
    /// `sent` with FIN.
    fin: Option<u32>,
    /// Modulo 2^32, `sent` and `acknowledged` wrap: whole bytes.
    delivered: u64,
    segments: u64,
    payload: u64,
    retransmitted_segments: u64,
    retransmitted_bytes: u64,
    /// Segments without data.
    acks: u64,
    largest: u32,
}

/// Packets of a connection that links dropped, by reason.
#[derive(Clone, Copy, Debug, Default)]
struct Drops {
    queue_full: u64,
    active_queue: u64,
    corrupted: u64,
    discarded: u64,
}

/// What happens to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Sent,
    Arrived,
    Lost,
    Suppressed,
}

/// An event of a segment.
#[derive(Clone, Copy, Debug)]
struct Row {
    time: Time,
    connection: u32,
    from: Side,
    what: What,
    is_reset: bool,
    seq: SeqNum,
    ack: SeqNum,
    len: u32,
    size: u32,
    reason: &'static str,
}

/// Metrics of a connection in the direction of most of its data, with the definitions of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionReport {
    /// The end that sent most of the data, as an index of [`Report::ends`](crate::Report).
    #[serde(skip)]
    pub from: usize,
    /// Address and port of the sender and of the receiver of the data.
    pub source: String,
    /// The receiver.
    pub destination: String,
    /// Payload that the receiver acknowledged, divided by the time from the connection's first segment until then.
    pub throughput_bps: f64,
    /// Payload acknowledged, divided by payload sent; `None` if nothing was sent.
    pub goodput: Option<f64>,
    /// Time until all data and the FIN were acknowledged.
    pub completion_time_s: Option<f64>,
    /// Whether all data and the FIN were acknowledged.
    pub finished: bool,
    /// Payload that the receiver acknowledged.
    pub delivered_bytes: u64,
    /// Segments of any kind that the sender sent.
    pub segments_sent: u64,
    /// Segments with data that had been sent before.
    pub retransmitted_segments: u64,
    /// Bytes of retransmitted segments with headers, except new payload.
    pub retransmitted_bytes: u64,
    /// Segments without data, and resets, that the receiver sent.
    pub acks_sent: u64,
    /// Packets of both directions that an ARQ gave up.
    pub link_discards: u64,
    /// Packets lost by errors on the air.
    pub lost_on_air: u64,
    /// Packets dropped by full queues.
    pub queue_drops: u64,
    /// Packets dropped by queue disciplines.
    pub aqm_drops: u64,
}

/// The trace of a connection.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionTrace {
    /// The ends, as `ADDRESS.PORT-ADDRESS.PORT`, the sender of most data first.
    pub name: String,
    /// The events, as in a simulation, without those of the sender itself.
    pub events: Events,
}

impl Recorder {
    pub(crate) fn new(trace: bool, lateness: bool) -> Recorder {
        Recorder { rows: trace.then(Log::new), lateness: lateness.then(Log::new), ..Recorder::default() }
    }

    /// Records a segment that enters at `side`; returns the number of its connection.
    pub(crate) fn enter(&mut self, now: Time, side: Side, packet: &IpPacket<'_>) -> io::Result<Option<u32>> {
        let Some(tcp) = packet.tcp() else { return Ok(None) };
        let mut ends = [(packet.ip.src, tcp.header.src_port), (packet.ip.dst, tcp.header.dst_port)];
        ends.rotate_left(side as usize);
        let Some(number) = self.find(now, side, ends, &tcp.header) else { return Ok(None) };
        self.connections[number as usize].update(now, side, &tcp.header, packet.len);
        self.push(now, number, side, What::Sent, packet, "")?;
        Ok(Some(number))
    }

    /// Records a segment that leaves the network; it came from `from`.
    pub(crate) fn arrive(&mut self, time: Time, number: u32, from: Side, bytes: &[u8]) -> io::Result<()> {
        self.push_bytes(time, number, from, What::Arrived, bytes, "")
    }

    /// Records a segment that was dropped by a link, or suppressed by an agent of the scheme `suppressed_by`.
    pub(crate) fn drop(
        &mut self,
        time: Time,
        number: u32,
        from: Side,
        bytes: &[u8],
        reason: DropReason,
        suppressed_by: Option<&'static str>,
    ) -> io::Result<()> {
        if let Some(scheme) = suppressed_by {
            return self.push_bytes(time, number, from, What::Suppressed, bytes, scheme);
        }
        let drops = &mut self.connections[number as usize].drops;
        let (count, name) = match reason {
            DropReason::QueueFull => (&mut drops.queue_full, "queue-full"),
            DropReason::ActiveQueue => (&mut drops.active_queue, "active-queue"),
            DropReason::Corrupted => (&mut drops.corrupted, "corrupted"),
            DropReason::AttemptsExhausted => (&mut drops.discarded, "attempts-exhausted"),
            DropReason::Unreachable => (&mut drops.discarded, "unreachable"),
            DropReason::TooLarge => (&mut drops.discarded, "too-large"),
            DropReason::Unrecovered => (&mut drops.corrupted, "unrecovered"),
            DropReason::Suppressed | DropReason::Scripted => return Ok(()),
        };
        *count += 1;
        self.push_bytes(time, number, from, What::Lost, bytes, name)
    }

    /// Records how late a packet left.
    pub(crate) fn late(
        &mut self,
        entered: Time,
        time: Time,
        to: Side,
        size: u64,
        late_s: f64,
    ) -> io::Result<()> {
        let Some(rows) = &mut self.lateness else { return Ok(()) };
        if rows.len() >= MAX_ROWS {
            return Err(too_long("record of lateness"));
        }
        rows.push(Late { entered, time, to, size, late_s });
        Ok(())
    }

    /// The metrics of all connections with data, those with most first; their traces; and the lateness.
    pub(crate) fn finish(self) -> (Vec<ConnectionReport>, Vec<ConnectionTrace>, Option<LatenessRecord>) {
        let mut order: Vec<usize> = (0..self.connections.len()).collect();
        let payload = |number: &usize| self.connections[*number].data.iter().map(|data| data.payload).sum();
        order.sort_by_key(|number| std::cmp::Reverse::<u64>(payload(number)));
        order.retain(|number| payload(number) > 0);
        let reports = order.iter().map(|&number| self.connections[number].report()).collect();
        let lateness = self.lateness.as_ref().map(LatenessRecord::of);
        let Some(rows) = &self.rows else { return (reports, Vec::new(), lateness) };
        let mut tracers: Vec<Tracer<'_>> = self.connections.iter().map(Tracer::new).collect();
        for row in rows.iter() {
            tracers[row.connection as usize].record(row);
        }
        let trace = |&number: &usize| ConnectionTrace {
            name: self.connections[number].name(),
            events: std::mem::take(&mut tracers[number].events),
        };
        (reports, order.iter().map(trace).collect(), lateness)
    }

    fn find(&mut self, now: Time, side: Side, ends: Ends, header: &TcpHeader) -> Option<u32> {
        if let Some(&number) = self.index.get(&ends)
            && !self.connections[number as usize].is_reused(side, header)
        {
            return Some(number);
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            return None;
        }
        let number = self.connections.len() as u32;
        let (data, drops) = (Default::default(), Drops::default());
        self.connections.push(Connection { ends, start: now, data, drops });
        self.index.insert(ends, number);
        Some(number)
    }

    fn push_bytes(
        &mut self,
        time: Time,
        number: u32,
        from: Side,
        what: What,
        bytes: &[u8],
        reason: &'static str,
    ) -> io::Result<()> {
        if self.rows.is_none() {
            return Ok(());
        }
        let Ok(packet) = IpPacket::parse(bytes) else { return Ok(()) };
        self.push(time, number, from, what, &packet, reason)
    }

    fn push(
        &mut self,
        time: Time,
        connection: u32,
        from: Side,
        what: What,
        packet: &IpPacket<'_>,
        reason: &'static str,
    ) -> io::Result<()> {
        let (Some(rows), Some(tcp)) = (&mut self.rows, packet.tcp()) else { return Ok(()) };
        if rows.len() >= MAX_ROWS {
            return Err(too_long("trace"));
        }
        let segment = &tcp.header.segment;
        let (is_reset, size) = (segment.flags.has(Flags::RST), packet.len as u32);
        let (seq, ack, len) = (segment.seq, segment.ack, segment.len);
        rows.push(Row { time, connection, from, what, is_reset, seq, ack, len, size, reason });
        Ok(())
    }
}

fn too_long(what: &str) -> io::Error {
    io::Error::other(format!(
        "the {what} has more than {MAX_ROWS} rows; emulate without it, or for a shorter time"
    ))
}

impl Connection {
    /// Whether a segment begins a new connection between the same ports.
    fn is_reused(&self, side: Side, header: &TcpHeader) -> bool {
        let flags = header.segment.flags;
        let is_first = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
        is_first && self.data[side as usize].syn.is_some_and(|syn| syn != header.segment.seq)
    }

    fn update(&mut self, now: Time, side: Side, header: &TcpHeader, size: usize) {
        let segment = &header.segment;
        let [own, other] = match side {
            Side::Source => {
                let [own, other] = &mut self.data;
                [own, other]
            }
            Side::Destination => {
                let [other, own] = &mut self.data;
                [own, other]
            }
        };
        own.segments += 1;
        own.largest = own.largest.max(segment.len);
        let is_syn = segment.flags.has(Flags::SYN);
        if is_syn {
            own.syn.get_or_insert(segment.seq);
        }
        let first = *own.first.get_or_insert(segment.seq + u32::from(is_syn));
        let from = (segment.seq + u32::from(is_syn)).0.wrapping_sub(first.0);
        if segment.len > 0 {
            own.payload += u64::from(segment.len);
            // Positive if it lies in the half of the sequence space after the highest byte sent.
            let new = from.wrapping_add(segment.len).wrapping_sub(own.sent) as i32;
            let fresh = new.clamp(0, segment.len.min(i32::MAX as u32) as i32) as u32;
            if fresh < segment.len {
                own.retransmitted_segments += 1;
                own.retransmitted_bytes += (size as u64).saturating_sub(fresh.into());
            }
            if new > 0 {
                own.sent = own.sent.wrapping_add(new as u32);
            }
        } else {
            own.acks += 1;
        }
        if segment.flags.has(Flags::FIN) {
            own.fin = Some(from.wrapping_add(segment.len));
        }
        if segment.flags.has(Flags::ACK)
            && let Some(first) = other.first
        {
            let acknowledged = segment.ack.0.wrapping_sub(first.0);
            let new = acknowledged.wrapping_sub(other.acknowledged) as i32;
            let left = other.sent.wrapping_sub(acknowledged) as i32;
            // A FIN has a number of its own.
            if new > 0 && left >= -1 {
                let is_fin = left == -1;
                // Whoever skips sequence numbers, or acknowledges what was not sent, has delivered no more than was sent.
                other.delivered = (other.delivered + new as u64 - u64::from(is_fin)).min(other.payload);
                (other.acknowledged, other.acknowledged_at) = (acknowledged, now);
            }
        }
    }

    /// The side that sent most of the data.
    fn source(&self) -> usize {
        usize::from(self.data[1].payload > self.data[0].payload)
    }

    fn name(&self) -> String {
        let place = |side: usize| format!("{}.{}", self.ends[side].0, self.ends[side].1);
        format!("{}-{}", place(self.source()), place(1 - self.source()))
    }

    fn report(&self) -> ConnectionReport {
        let from = self.source();
        let (data, other) = (&self.data[from], &self.data[1 - from]);
        let place = |side: usize| std::net::SocketAddr::from(self.ends[side]).to_string();
        let time_s = data.acknowledged_at.since(self.start.min(data.acknowledged_at)).as_secs_f64();
        let bits = 8.0 * data.delivered as f64;
        let finished = data.fin.is_some_and(|fin| data.acknowledged == fin.wrapping_add(1));
        ConnectionReport {
            from,
            source: place(from),
            destination: place(1 - from),
            throughput_bps: if time_s > 0.0 { bits / time_s } else { 0.0 },
            goodput: (data.payload > 0).then(|| data.delivered as f64 / data.payload as f64),
            completion_time_s: finished.then_some(time_s),
            finished,
            delivered_bytes: data.delivered,
            segments_sent: data.segments,
            retransmitted_segments: data.retransmitted_segments,
            retransmitted_bytes: data.retransmitted_bytes,
            acks_sent: other.acks,
            link_discards: self.drops.discarded,
            lost_on_air: self.drops.corrupted,
            queue_drops: self.drops.queue_full,
            aqm_drops: self.drops.active_queue,
        }
    }
}

/// Makes the [`Events`] of one connection, in the direction of most of its data.
struct Tracer<'a> {
    connection: &'a Connection,
    source: usize,
    mss: i64,
    /// Offset of the last sequence number seen; others are unwrapped relative to it.
    near: i64,
    /// End of the data sent so far.
    sent: i64,
    /// For each offset, the number of segments beginning there that were sent, and that have ended.
    copies: HashMap<i64, (i64, i64)>,
    events: Events,
}

impl<'a> Tracer<'a> {
    fn new(connection: &'a Connection) -> Tracer<'a> {
        let source = connection.source();
        let mss = i64::from(connection.data[source].largest.max(1));
        let (copies, events) = (HashMap::new(), Events::default());
        Tracer { connection, source, mss, near: 0, sent: 0, copies, events }
    }

    /// The stream offset of a number of the source: the one nearest to the last offset seen.
    fn offset(&mut self, seq: SeqNum) -> i64 {
        let first = self.connection.data[self.source].first.unwrap_or(seq);
        let near = first + self.near as u32;
        self.near += i64::from(seq.0.wrapping_sub(near.0) as i32);
        self.near
    }

    fn record(&mut self, row: &Row) {
        let (event, packet, transmission) = if row.from as usize == self.source {
            let event = ["sent", "delivered", "lost", "suppressed"][row.what as usize];
            if row.len > 0 {
                let offset = self.offset(row.seq);
                let transmission = self.count(offset, row.what);
                self.sent = self.sent.max(offset + i64::from(row.len));
                (event, offset.div_euclid(self.mss), transmission)
            } else {
                (event, -1, self.count(-1, row.what))
            }
        } else {
            let event = ["ack-sent", "ack-received", "ack-lost", "ack-suppressed"][row.what as usize];
            let next =
                if row.is_reset { -1 } else { (self.offset(row.ack) + self.mss - 1).div_euclid(self.mss) };
            (event, next, 0)
        };
        let events = &mut self.events;
        events.time_s.push(row.time.as_secs_f64());
        events.event.push(event);
        events.packet.push(packet);
        events.transmission.push(transmission);
        events.size_bytes.push(row.size.into());
        events.reason.push(row.reason);
    }

    /// Transmission number of the data at an offset. Copies are delivered or lost in the order in which they were sent.
    fn count(&mut self, offset: i64, what: What) -> i64 {
        let earlier = i64::from(offset >= 0 && offset < self.sent);
        let (sent, ended) = self.copies.entry(offset).or_insert((earlier, earlier));
        let count = if what == What::Sent { sent } else { ended };
        *count += 1;
        *count
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use lasthop_proto::tcp::Segment;

    use super::*;

    fn header(seq: u32, ack: u32, len: u32, flags: Flags) -> TcpHeader {
        let (seq, ack) = (SeqNum(seq), SeqNum(ack));
        let segment = Segment { seq, ack, len, wnd: 65_535, flags, ..Segment::default() };
        TcpHeader {
            src_port: 1,
            dst_port: 2,
            segment,
            urgent_pointer: 0,
            mss: None,
            window_scale: None,
            sack_permitted: false,
        }
    }

    /// Hosts that invent numbers have delivered no more than they have sent.
    #[test]
    fn no_more_is_delivered_than_was_sent() {
        let end = |host| (IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)), 1);
        for jump in [0u32, 1, 1000, 1 << 20, (1 << 31) - 1, 1 << 31, u32::MAX] {
            let mut connection = Connection {
                ends: [end(1), end(2)],
                start: Time::ZERO,
                data: Default::default(),
                drops: Drops::default(),
            };
            let mut say = |ms: u64, side, header| {
                connection.update(Time::from_nanos(ms * 1_000_000), side, &header, 1040)
            };
            say(0, Side::Source, header(99, 0, 0, Flags::SYN));
            say(1, Side::Destination, header(499, 100, 0, Flags::SYN | Flags::ACK));
            say(2, Side::Source, header(100, 500, 1000, Flags::ACK));
            let beyond = 1100u32.wrapping_add(jump);
            say(3, Side::Destination, header(500, beyond, 0, Flags::ACK));
            say(4, Side::Source, header(beyond, 500, 1000, Flags::ACK));
            say(5, Side::Destination, header(500, beyond.wrapping_add(1000), 0, Flags::ACK));
            let report = connection.report();
            assert!(report.delivered_bytes <= 2000, "{jump}: {}", report.delivered_bytes);
            assert!(report.goodput.is_some_and(|share| share <= 1.0), "{jump}: {:?}", report.goodput);
            assert!(jump != 0 || report.delivered_bytes == 2000, "{}", report.delivered_bytes);
        }
    }
}
