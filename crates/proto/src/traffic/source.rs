//! The source of background traffic.

use lasthop_base::{Bytes, Invalid, Stream, Time};

use super::departures::Departures;
use super::{HEADERS, Pattern};
use crate::component::{Component, Out, Port};
use crate::counters::counters;
use crate::packet::{Body, Datagram, Dscp, Ecn, Handle, Packet};
use crate::tcp::Connection;

/// Parameters of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Size of each packet, headers included: from [`HEADERS`] to 65,535 B, the IPv4 maximum.
    pub size: Bytes,
    /// Start of the pattern.
    pub start: Time,
    /// Nothing is sent from this instant on; [`Time::NEVER`] for no end. A stop before the start sends
    /// nothing at all.
    pub stop: Time,
    /// Pattern of departures.
    pub pattern: Pattern,
    /// Code point of the packets.
    pub dscp: Dscp,
}

impl Config {
    /// Checks what the fields' types cannot express.
    ///
    /// # Errors
    /// A size that is invalid for a datagram, or an invalid [pattern](Pattern::validate).
    pub fn validate(&self) -> Result<(), Invalid> {
        if !(HEADERS..=Bytes(65_535)).contains(&self.size) {
            let problem = "found an invalid datagram size, expected one from \"28 B\", the size of \
                           its headers, to \"65535 B\"";
            return Err(Invalid { field: "size", problem });
        }
        self.pattern.validate(self.size)
    }
}

counters! {
    /// Counters of a source.
    pub struct SourceStats {
        /// Packets sent.
        pub packets: u64,
        /// Bytes sent, headers included.
        pub bytes: Bytes,
    }
}

/// Sends datagrams out of [`Port::ONLY`] with the parameters of a [`Config`], regardless of losses.
#[derive(Clone, Debug)]
pub struct Source {
    connection: Connection,
    size: Bytes,
    dscp: Dscp,
    stop: Time,
    departures: Departures,
    stats: SourceStats,
}

impl Source {
    /// An idle source; random departures are drawn from `stream`.
    ///
    /// # Panics
    /// If the parameters are not [valid](Config::validate).
    pub fn new(connection: Connection, config: Config, stream: Stream) -> Source {
        if let Err(invalid) = config.validate() {
            panic!("{invalid}");
        }
        let Config { size, start, stop, pattern, dscp } = config;
        let departures = Departures::new(pattern, size, start, stream);
        Source { connection, size, dscp, stop, departures, stats: SourceStats::default() }
    }

    /// The counters.
    pub fn stats(&self) -> &SourceStats {
        &self.stats
    }
}

impl Component for Source {
    fn receive(&mut self, _now: Time, _packet: &Packet, _port: Port, _out: &mut Out) {}

    fn wake(&mut self, now: Time, out: &mut Out) {
        let Connection { src, dst, flow } = self.connection;
        let body = Body::Datagram(Datagram { seq: self.stats.packets, sent: now });
        out.send(
            Port::ONLY,
            Packet {
                src,
                dst,
                flow,
                size: self.size,
                dscp: self.dscp,
                ecn: Ecn::NotEct,
                handle: Handle::NONE,
                body,
            },
        );
        self.stats.packets += 1;
        self.stats.bytes += self.size;
        self.departures.advance();
    }

    fn next_wakeup(&self) -> Time {
        let due = self.departures.due();
        if due < self.stop { due } else { Time::NEVER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::component::Effect;
    use crate::packet::{FlowId, HostId};
    use alloc::vec::Vec;
    use lasthop_base::{BitRate, Duration, Streams};

    const CONNECTION: Connection = Connection { src: HostId(2), dst: HostId(1), flow: FlowId(3) };

    /// 1,000 B every millisecond from second 3 to 4.
    fn config() -> Config {
        let pattern = Pattern::Constant { rate: BitRate::from_bps(8_000_000).unwrap() };
        Config { size: Bytes(1_000), start: at(3_000), stop: at(4_000), pattern, dscp: Dscp::DEFAULT }
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    fn source(config: Config) -> Source {
        Source::new(CONNECTION, config, Streams::new(1, 0).stream("traffic"))
    }

    /// All packets that are sent, with their departure times.
    fn sent(config: Config) -> Vec<(Time, Packet)> {
        let (mut source, mut out, mut sent) = (source(config), Out::default(), Vec::new());
        while source.next_wakeup() < Time::NEVER {
            let now = source.next_wakeup();
            source.wake(now, &mut out);
            let Some((_, Effect::Send(Port::ONLY, packet))) = out.take() else {
                panic!("no packet at {now}")
            };
            assert_eq!(out.take(), None);
            sent.push((now, packet));
        }
        assert_eq!(source.stats().packets, sent.len() as u64);
        assert_eq!(source.stats().bytes, config.size * sent.len() as u64);
        sent
    }

    #[test]
    fn packets_are_numbered_and_say_when_they_were_sent() {
        let sent = sent(config());
        assert_eq!(sent.len(), 1_000);
        for (seq, (now, packet)) in (0..).zip(sent) {
            let body = Body::Datagram(Datagram { seq, sent: at(3_000 + seq) });
            let Connection { src, dst, flow } = CONNECTION;
            assert_eq!(
                packet,
                Packet {
                    src,
                    dst,
                    flow,
                    size: Bytes(1_000),
                    dscp: Dscp::DEFAULT,
                    ecn: Ecn::NotEct,
                    handle: Handle::NONE,
                    body
                }
            );
            assert_eq!(now, at(3_000 + seq));
        }
    }

    #[test]
    fn nothing_leaves_at_the_stop_or_after_it() {
        let until = |stop| sent(Config { stop, ..config() }).len();
        let nanosecond = Duration::from_nanos(1);
        for (stop, count) in [
            (at(0), 0),
            (at(2_999), 0),
            (at(3_000), 0),
            (at(3_000) + nanosecond, 1),
            (at(3_001), 1),
            (at(3_001) + nanosecond, 2),
        ] {
            assert_eq!(until(stop), count, "until {stop}");
        }
    }

    #[test]
    fn a_random_source_may_stop_before_its_first_packet() {
        let pattern = Pattern::Poisson { rate: BitRate::from_bps(8).unwrap() };
        assert_eq!(sent(Config { pattern, ..config() }), []);
    }

    #[test]
    fn one_that_never_stops_goes_on() {
        let mut source = source(Config { stop: Time::NEVER, ..config() });
        let mut out = Out::default();
        for ms in 3_000..13_000 {
            assert_eq!(source.next_wakeup(), at(ms));
            source.wake(at(ms), &mut out);
            out.clear();
        }
    }

    #[test]
    fn what_arrives_changes_nothing() {
        let (mut source, mut out) = (source(config()), Out::default());
        let (_, packet) = sent(config())[0];
        source.receive(at(0), &packet, Port::ONLY, &mut out);
        assert!(out.is_empty());
        assert_eq!((source.next_wakeup(), *source.stats()), (at(3_000), SourceStats::default()));
    }

    #[test]
    fn a_packet_has_room_for_its_headers_and_fits_in_ipv4() {
        for (size, valid) in [(0, false), (27, false), (28, true), (65_535, true), (65_536, false)] {
            let checked = Config { size: Bytes(size), ..config() }.validate();
            assert_eq!(checked.map_err(|invalid| invalid.field), if valid { Ok(()) } else { Err("size") });
        }
    }

    #[test]
    #[should_panic(expected = "constant.rate: found a rate at which packets leave less than 1 ns apart")]
    fn an_invalid_config_is_no_source() {
        let pattern = Pattern::Constant { rate: BitRate::from_bps(u64::MAX).unwrap() };
        source(Config { pattern, ..config() });
    }
}
