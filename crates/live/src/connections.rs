//! Assignment of real flows to lanes, by which queues and agents distinguish them.
//!
//! Queues assign lanes to flows in order of arrival. Agents keep state per connection, so each connection needs a
//! lane of its own, shared by both directions. A lane is reused only for a SYN, which resets the agents'
//! state, and only after its connection has ended or was idle for long. Further connections are carried, but
//! agents do not see their segments.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::emulation::Side;
use lasthop_base::{Duration, Time};
use lasthop_proto::tcp::Flags;
use lasthop_wire::{IpPacket, TcpHeader, Transport};

/// Maximum number of flows with a remembered lane. Only port scans have more.
const MAX_FLOWS: usize = 1 << 16;

/// Time for which packets of an ended connection may still be in flight.
const LINGER: Duration = Duration::from_secs(2);

/// Idle time after which the lane of an open connection may be reused.
const IDLE: Duration = Duration::from_secs(120);

/// The identity of a flow: addresses, protocol and ports, in the direction of the packet.
type FlowKey = (IpAddr, IpAddr, u8, u16, u16);

/// Lanes for queues.
#[derive(Debug, Default)]
pub(crate) struct Flows(HashMap<FlowKey, usize>);

impl Flows {
    /// The lane of a packet: the next one for a new flow, so that few flows never share one.
    pub(crate) fn lane(&mut self, packet: &IpPacket<'_>) -> usize {
        let (src_port, dst_port) = match packet.transport {
            Transport::Tcp(tcp) => (tcp.header.src_port, tcp.header.dst_port),
            Transport::Udp(udp) => (udp.src_port, udp.dst_port),
            _ => (0, 0),
        };
        if self.0.len() >= MAX_FLOWS {
            self.0.clear();
        }
        let next = self.0.len();
        *self.0.entry((packet.ip.src, packet.ip.dst, packet.protocol, src_port, dst_port)).or_insert(next)
    }
}

/// The two ends of a connection; the end on the source's side comes first.
pub(crate) type Ends = [(IpAddr, u16); 2];

/// A connection with a lane.
#[derive(Debug)]
pub(crate) struct Connection {
    ends: Ends,
    pub(crate) last_active: Time,
    /// The window scales in the SYNs of both sides.
    scales: [Option<u8>; 2],
    /// Whether each side has sent FIN.
    fins: [bool; 2],
    is_reset: bool,
}

impl Connection {
    pub(crate) fn new(ends: Ends, now: Time) -> Connection {
        Connection { ends, last_active: now, scales: [None; 2], fins: [false; 2], is_reset: false }
    }

    /// Whether its lane may be reused.
    fn is_over(&self, now: Time) -> bool {
        self.has_lasted(now, IDLE)
    }

    /// Whether nothing more is expected of it: it has ended some time ago, or was silent for longer than `idle`.
    pub(crate) fn has_lasted(&self, now: Time, idle: Duration) -> bool {
        let has_ended = self.is_reset || self.fins == [true; 2];
        now.since(self.last_active) > if has_ended { LINGER } else { idle }
    }

    /// Takes over the window scale in a SYN of this side that did not pass here.
    pub(crate) fn note_scale(&mut self, side: Side, scale: Option<u8>) {
        self.scales[side as usize] = scale;
    }

    /// Processes a segment from `side`; returns its window scale. The ends of a split connection negotiate
    /// scaling independently, with proxies that support it.
    pub(crate) fn update(&mut self, now: Time, side: Side, header: &TcpHeader, is_split: bool) -> u8 {
        let flags = header.segment.flags;
        self.last_active = now;
        self.is_reset |= flags.has(Flags::RST);
        self.fins[side as usize] |= flags.has(Flags::FIN);
        if flags.has(Flags::SYN) {
            (self.is_reset, self.fins[side as usize]) = (false, flags.has(Flags::FIN));
            self.scales[side as usize] = header.window_scale;
            return 0;
        }
        match self.scales {
            _ if is_split => self.scales[side as usize].unwrap_or(0),
            [Some(_), Some(_)] => self.scales[side as usize].unwrap_or(0),
            _ => 0,
        }
    }
}

/// Lanes for agents.
#[derive(Debug)]
pub(crate) struct Connections {
    /// The number of lanes.
    most: usize,
    /// Whether base stations split the connections.
    are_split: bool,
    lanes: HashMap<Ends, usize>,
    /// By lane.
    connections: Vec<Connection>,
}

impl Connections {
    /// An empty table with `most` lanes, for connections that base stations split or do not.
    pub(crate) fn new(most: usize, are_split: bool) -> Connections {
        Connections { most, are_split, lanes: HashMap::new(), connections: Vec::new() }
    }

    /// The lane and the window scale of a segment from `side`; `None` without a lane.
    pub(crate) fn find(
        &mut self,
        now: Time,
        side: Side,
        packet: &IpPacket<'_>,
        header: &TcpHeader,
    ) -> Option<(usize, u8)> {
        let mut ends = [(packet.ip.src, header.src_port), (packet.ip.dst, header.dst_port)];
        ends.rotate_left(side as usize);
        let lane = match self.lanes.get(&ends) {
            Some(&lane) => lane,
            None => self.add(now, ends, header)?,
        };
        Some((lane, self.connections[lane].update(now, side, header, self.are_split)))
    }

    fn add(&mut self, now: Time, ends: Ends, header: &TcpHeader) -> Option<usize> {
        let connection = Connection::new(ends, now);
        let lane = self.connections.len();
        if lane < self.most {
            self.connections.push(connection);
            self.lanes.insert(ends, lane);
            return Some(lane);
        }
        // Reuses the lane that was idle longest.
        let opens = header.segment.flags.has(Flags::SYN) && !header.segment.flags.has(Flags::ACK);
        let over = self.connections.iter().enumerate().filter(|(_, each)| opens && each.is_over(now));
        let (lane, _) = over.min_by_key(|(_, each)| each.last_active)?;
        self.lanes.remove(&self.connections[lane].ends);
        self.connections[lane] = connection;
        self.lanes.insert(ends, lane);
        Some(lane)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lasthop_proto::tcp::Segment;
    use lasthop_proto::{Dscp, Ecn};
    use lasthop_wire::{Ip, write};

    /// Sends a segment between port `port` at the source and port 80 at the destination.
    fn find(
        connections: &mut Connections,
        seconds: u64,
        side: Side,
        port: u16,
        flags: Flags,
        window_scale: Option<u8>,
    ) -> Option<(usize, u8)> {
        let (mut hosts, mut ports) = ([1, 2], [port, 80]);
        hosts.rotate_left(side as usize);
        ports.rotate_left(side as usize);
        let [src, dst] = hosts.map(|host| IpAddr::from([10, 0, 0, host]));
        let (dscp, ecn) = (Dscp::DEFAULT, Ecn::NotEct);
        let ip = Ip { src, dst, dscp, ecn, hop_limit: 64, identification: 0, dont_fragment: true };
        let segment = Segment { flags, ..Segment::default() };
        let [src_port, dst_port] = ports;
        let header = TcpHeader { src_port, dst_port, segment, window_scale, ..TcpHeader::default() };
        let bytes = write::tcp(&ip, &header, &[]).expect("short enough");
        let packet = IpPacket::parse(&bytes).expect("well-formed");
        let now = Time::ZERO + Duration::from_secs(seconds);
        connections.find(now, side, &packet, &packet.tcp().expect("a segment").header)
    }

    const BOTH: Flags = Flags(Flags::SYN.0 | Flags::ACK.0);

    #[test]
    fn both_directions_share_a_lane_and_windows_are_scaled_once_both_ends_said_so() {
        let mut table = Connections::new(4, false);
        let mut at = |side, port, flags, scale| find(&mut table, 0, side, port, flags, scale);
        assert_eq!(at(Side::Source, 1, Flags::SYN, Some(7)), Some((0, 0)));
        assert_eq!(at(Side::Destination, 1, BOTH, Some(3)), Some((0, 0)));
        assert_eq!(at(Side::Source, 1, Flags::ACK, None), Some((0, 7)));
        assert_eq!(at(Side::Destination, 1, Flags::ACK, None), Some((0, 3)));
        // One end of the second connection does not scale, so neither does. The third is joined in the middle.
        assert_eq!(at(Side::Destination, 2, Flags::SYN, Some(7)), Some((1, 0)));
        assert_eq!(at(Side::Source, 2, BOTH, None), Some((1, 0)));
        assert_eq!(at(Side::Destination, 2, Flags::ACK, None), Some((1, 0)));
        assert_eq!(at(Side::Source, 3, Flags::ACK, None), Some((2, 0)));
        // A proxy scales whether the other end does or not.
        let mut table = Connections::new(4, true);
        assert_eq!(find(&mut table, 0, Side::Source, 1, Flags::SYN, Some(7)), Some((0, 0)));
        assert_eq!(find(&mut table, 0, Side::Destination, 1, BOTH, None), Some((0, 0)));
        assert_eq!(find(&mut table, 0, Side::Source, 1, Flags::ACK, None), Some((0, 7)));
        assert_eq!(find(&mut table, 0, Side::Destination, 1, Flags::ACK, None), Some((0, 0)));
    }

    #[test]
    fn a_lane_passes_on_with_a_syn_once_its_connection_is_over() {
        let mut table = Connections::new(2, false);
        let mut at = |seconds, side, port, flags| find(&mut table, seconds, side, port, flags, None);
        let fin = Flags(Flags::FIN.0 | Flags::ACK.0);
        let lane = |found: Option<(usize, u8)>| found.map(|(lane, _)| lane);
        assert_eq!(lane(at(0, Side::Source, 1, Flags::SYN)), Some(0));
        assert_eq!(lane(at(0, Side::Source, 2, Flags::SYN)), Some(1));
        assert_eq!(lane(at(1, Side::Source, 3, Flags::SYN)), None);
        assert_eq!(lane(at(2, Side::Source, 1, fin)), Some(0));
        assert_eq!(lane(at(5, Side::Source, 3, Flags::SYN)), None, "half closed");
        assert_eq!(lane(at(6, Side::Destination, 1, fin)), Some(0));
        assert_eq!(lane(at(7, Side::Source, 3, Flags::SYN)), None, "packets may be under way");
        assert_eq!(lane(at(9, Side::Source, 3, Flags::ACK)), None, "agents would not begin anew");
        assert_eq!(lane(at(9, Side::Source, 3, BOTH)), None);
        assert_eq!(lane(at(9, Side::Source, 3, Flags::SYN)), Some(0));
        assert_eq!(lane(at(9, Side::Destination, 1, fin)), None);
        assert_eq!(lane(at(20, Side::Destination, 3, Flags::ACK)), Some(0));
        // The other connection has been idle for two minutes.
        assert_eq!(lane(at(119, Side::Source, 4, Flags::SYN)), None);
        assert_eq!(lane(at(121, Side::Source, 4, Flags::SYN)), Some(1));
        assert_eq!(lane(at(122, Side::Source, 4, Flags::RST)), Some(1));
        assert_eq!(lane(at(125, Side::Source, 5, Flags::SYN)), Some(1));
    }
}
