//! The sink of background traffic.

use lasthop_base::{Bytes, Duration, Histogram, Time};

use super::voip::PlayoutBuffer;
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
    /// Sum over the packets of the interarrival jitter after each: the smoothed difference between its delay and that of
    /// the packet before it (RFC 3550, section 6.4.1).
    pub total_jitter: Duration,
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
            total_jitter: self.total_jitter - earlier.total_jitter,
            last_arrival: self.last_arrival,
        }
    }
}

/// Counts the datagrams of a source; sends nothing.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    stats: SinkStats,
    delays: Histogram,
    /// The delay of the packet before.
    previous: Option<Duration>,
    /// Sixteen times the jitter in nanoseconds, so that rounding does not add up (RFC 3550, appendix A.8).
    jitter: u64,
    playout: Option<PlayoutBuffer>,
}

impl Sink {
    /// A sink without arrivals.
    pub fn new() -> Sink {
        Sink::default()
    }

    /// A sink that plays the speech of its packets.
    pub fn with_playout(buffer: PlayoutBuffer) -> Sink {
        Sink { playout: Some(buffer), ..Sink::default() }
    }

    /// The counters.
    pub fn stats(&self) -> &SinkStats {
        &self.stats
    }

    /// The one-way delays of all packets.
    pub fn delays(&self) -> &Histogram {
        &self.delays
    }

    /// The playout buffer.
    pub fn playout(&self) -> Option<&PlayoutBuffer> {
        self.playout.as_ref()
    }

    fn smooth_jitter(&mut self, delay: Duration) {
        if let Some(previous) = self.previous.replace(delay) {
            let difference = delay.as_nanos().abs_diff(previous.as_nanos());
            self.jitter = self.jitter - ((self.jitter + 8) >> 4) + difference;
        }
        self.stats.total_jitter += Duration::from_nanos(self.jitter >> 4);
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
        self.delays.record(delay);
        self.smooth_jitter(delay);
        if let Some(playout) = &mut self.playout {
            playout.receive(datagram.seq, datagram.sent, delay);
        }
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
        // Of differences of 2 and of 9 ns: the estimates, times 16, are 0, 2 and 11.
        let (total_jitter, last_arrival) = (Duration::ZERO, at(13));
        let expected = SinkStats {
            packets: 3,
            bytes: Bytes(178),
            total_delay,
            greatest_delay,
            total_jitter,
            last_arrival,
        };
        assert_eq!(*sink.stats(), expected);
        assert_eq!(sink.jitter, 11);
        let delays = [0.0, 0.5, 1.0].map(|q| sink.delays().quantile(q));
        assert_eq!(delays, [0, 7, 9].map(|ns| Some(Duration::from_nanos(ns))));
        assert!(out.is_empty());
        assert_eq!(sink.next_wakeup(), Time::NEVER);
    }

    /// Delays of 10 and 26 ms by turns: the estimate tends to their difference.
    #[test]
    fn the_jitter_is_that_of_rfc_3550() {
        let mut sink = Sink::new();
        let mut expected = 0.0;
        for packet in 0..100 {
            sink.smooth_jitter(Duration::from_millis(10 + 16 * (packet % 2)));
            expected += if packet > 0 { (16e6 - expected) / 16.0 } else { 0.0 };
            assert!((sink.jitter as f64 / 16.0 - expected).abs() < 1.0, "{packet}");
        }
        assert!(expected > 15.9e6);
    }
}
