//! The sink of background traffic.

use lasthop_base::{Bytes, Duration, Time};

use crate::component::{Component, Out, Port};
use crate::packet::{Body, Packet};

/// Counters of received datagrams. The difference to the source's counters is lost or in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SinkStats {
    /// Packets received.
    pub packets: u64,
    /// Bytes received, headers included.
    pub bytes: Bytes,
    /// Sum of the one-way delays, from sending to complete arrival. Divided by `packets`, the mean delay.
    pub total_delay: Duration,
    /// The longest delay.
    pub greatest_delay: Duration,
    /// Time of the last arrival.
    pub last_arrival: Time,
}

impl SinkStats {
    /// The difference to `earlier` counters; the longest delay and the last arrival are not differences.
    pub fn since(&self, earlier: &SinkStats) -> SinkStats {
        SinkStats {
            packets: self.packets - earlier.packets,
            bytes: self.bytes - earlier.bytes,
            total_delay: self.total_delay - earlier.total_delay,
            greatest_delay: self.greatest_delay,
            last_arrival: self.last_arrival,
        }
    }
}

/// Counts datagrams of any number of sources; sends nothing.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    stats: SinkStats,
}

impl Sink {
    /// A sink without arrivals.
    pub fn new() -> Sink {
        Sink::default()
    }

    /// The counters.
    pub fn stats(&self) -> &SinkStats {
        &self.stats
    }
}

impl Component for Sink {
    fn receive(&mut self, now: Time, packet: &Packet, _port: Port, _out: &mut Out) {
        let Body::Datagram(datagram) = packet.body else { return };
        let delay = now.since(datagram.sent);
        let stats = &mut self.stats;
        stats.packets += 1;
        stats.bytes += packet.size;
        stats.total_delay += delay;
        stats.greatest_delay = stats.greatest_delay.max(delay);
        stats.last_arrival = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Datagram, Dscp, Ecn, FlowId, Handle, HostId};
    use crate::tcp::Segment;

    #[test]
    fn datagrams_are_counted_and_nothing_else() {
        let at = |ns| Time::from_nanos(ns);
        let (mut sink, mut out) = (Sink::new(), Out::default());
        let mut arrive = |now, size, body| {
            let (src, dst, dscp) = (HostId(0), HostId(1), Dscp::DEFAULT);
            let packet = Packet {
                src,
                dst,
                flow: FlowId(0),
                size: Bytes(size),
                dscp,
                ecn: Ecn::NotEct,
                handle: Handle::NONE,
                body,
            };
            sink.receive(at(now), &packet, Port::ONLY, &mut out);
        };
        for (seq, sent, now, size) in [(0, 3, 10, 28), (2, 1, 10, 100), (1, 13, 13, 50)] {
            arrive(now, size, Body::Datagram(Datagram { seq, sent: at(sent) }));
        }
        arrive(20, 40, Body::Tcp(Segment::default()));
        let (total_delay, greatest_delay) = (Duration::from_nanos(16), Duration::from_nanos(9));
        let last_arrival = at(13);
        let expected = SinkStats { packets: 3, bytes: Bytes(178), total_delay, greatest_delay, last_arrival };
        assert_eq!(*sink.stats(), expected);
        assert!(out.is_empty());
        assert_eq!(sink.next_wakeup(), Time::NEVER);
    }
}
