//! What a scheme has between quinn and the network: it keeps datagrams until a report tells what has become of them.

use std::collections::VecDeque;
use std::sync::Arc;

use lasthop_base::Time;
use lasthop_proto::quic::Settings;
use lasthop_proto::stack::{Fate, Sidecar};
use lasthop_proto::{Body, Ecn, EndCounters, FlowId, Packet, Signal, Tally};

use super::division::Division;
use crate::clock;

/// Datagrams up to this size only acknowledge, and are not acknowledged themselves.
const ACKNOWLEDGEMENT: u64 = 64;

/// What a scheme has at an end.
pub(crate) struct Below {
    sidecar: Box<dyn Sidecar>,
    division: Arc<Division>,
    kept: VecDeque<Kept>,
    reports: u64,
    repairs: u64,
}

struct Kept {
    /// The number of the datagram, which increases.
    number: u64,
    /// When quinn has sent it.
    first: Time,
    ecn: Ecn,
    bytes: Vec<u8>,
}

/// The number of a datagram, and when it left.
fn number_of(packet: &Packet) -> Option<(u64, Time)> {
    match packet.body {
        Body::Datagram(datagram) => Some((datagram.seq, datagram.sent)),
        _ => None,
    }
}

impl Below {
    pub(crate) fn new(sidecar: Box<dyn Sidecar>, division: Arc<Division>) -> Below {
        Below { sidecar, division, kept: VecDeque::new(), reports: 0, repairs: 0 }
    }

    /// The connection is over: what its datagrams become is no news to the next one.
    pub(crate) fn forget(&mut self) {
        self.kept.clear();
    }

    /// A datagram leaves that quinn has sent at `first`.
    pub(crate) fn on_sent(&mut self, packet: &Packet, first: Time, bytes: &[u8]) {
        let Some((number, left)) = number_of(packet) else { return };
        self.sidecar.on_sent(packet);
        let length = bytes.len() as u64;
        if first == left && length > ACKNOWLEDGEMENT {
            self.division.on_sent(clock::instant(first), length);
        }
        self.kept.push_back(Kept { number, first, ecn: packet.ecn, bytes: bytes.to_vec() });
        if self.kept.len() > self.sidecar.buffer() {
            self.kept.pop_front();
        }
    }

    pub(crate) fn on_signal(&mut self, flow: FlowId, signal: &Signal) {
        self.sidecar.on_signal(flow, signal);
    }

    /// A control message has arrived. The datagrams that are missing, each with the time at which quinn has sent it.
    pub(crate) fn on_report(&mut self, now: Time, packet: &Packet) -> Vec<(Time, Ecn, Vec<u8>)> {
        let (mut fates, mut missing) = (Vec::new(), Vec::new());
        if self.sidecar.on_report(packet, &mut fates) {
            self.division.forget_report_delay();
        }
        self.reports += 1;
        let instant = clock::instant(now);
        // First, since the answer to a loss depends on the shortest delay.
        let arrived = fates.iter().filter(|(_, fate)| matches!(fate, Fate::Arrived));
        for (_, left) in arrived.filter_map(|(packet, _)| number_of(packet)) {
            self.division.on_report_delay(now.since(left));
        }
        for (packet, fate) in fates {
            let Some((number, left)) = number_of(&packet) else { continue };
            // Of those that left earlier, nothing will be told.
            while self.kept.front().is_some_and(|kept| kept.number < number) {
                self.kept.pop_front();
            }
            let Some(kept) = self.kept.pop_front_if(|kept| kept.number == number) else { continue };
            let bytes = (packet.size - Settings::HEADERS).0;
            let bytes = if bytes > ACKNOWLEDGEMENT { bytes } else { 0 };
            let first = clock::instant(kept.first);
            match fate {
                Fate::Arrived => {
                    // quinn may have declared lost, and sent again, what left for a second time.
                    if self.sidecar.moves_window() && kept.first == left {
                        self.division.on_arrived(instant, first, bytes);
                    }
                }
                Fate::Missing => {
                    // The control has heard of a packet whose repair is missing.
                    if kept.first == left {
                        self.division.on_missing(instant, first, bytes);
                    }
                    missing.push((kept.first, kept.ecn, kept.bytes));
                }
            }
        }
        self.repairs += missing.len() as u64;
        missing
    }

    /// Reports read, and datagrams sent again.
    pub(crate) fn report(&self, counters: &mut EndCounters) {
        counters.notices = self.reports;
        counters.reactions = self.repairs;
    }

    /// The counters of the scheme.
    pub(crate) fn count(&self, tally: &mut dyn Tally) {
        self.sidecar.count(self.repairs, tally);
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::Bytes;
    use lasthop_proto::{Datagram, Dscp, Handle, HostId};

    use super::*;

    /// Tells that whatever left is missing.
    #[derive(Debug, Default)]
    struct AllMissing(Vec<Packet>);

    impl Sidecar for AllMissing {
        fn on_sent(&mut self, packet: &Packet) {
            self.0.push(*packet);
        }

        fn on_signal(&mut self, _flow: FlowId, _signal: &Signal) {}

        fn on_report(&mut self, _packet: &Packet, fates: &mut Vec<(Packet, Fate)>) -> bool {
            fates.extend(self.0.drain(..).map(|packet| (packet, Fate::Missing)));
            false
        }

        fn moves_window(&self) -> bool {
            false
        }

        fn remedy(&self) -> &'static str {
            "none"
        }

        fn buffer(&self) -> usize {
            3
        }

        fn directions(&self) -> [bool; 2] {
            [true; 2]
        }

        fn count(&self, _repairs: u64, _tally: &mut dyn Tally) {}
    }

    fn packet(seq: u64, sent: Time) -> Packet {
        let body = Body::Datagram(Datagram { seq, sent });
        let size = Bytes(1_000) + Settings::HEADERS;
        let (src, dst, flow) = (HostId(0), HostId(1), FlowId(0));
        Packet { src, dst, flow, size, dscp: Dscp::DEFAULT, ecn: Ecn::NotEct, handle: Handle(1), body }
    }

    /// As many datagrams leave again as the scheme remembers, and none of an earlier connection.
    #[test]
    fn datagrams_are_kept_for_one_connection_and_no_longer_than_the_scheme_knows_them() {
        let mut below = Below::new(Box::new(AllMissing::default()), Arc::default());
        let report = packet(0, Time::ZERO);
        let send = |below: &mut Below, numbers: std::ops::Range<u64>| {
            numbers.for_each(|number| below.on_sent(&packet(number, Time::ZERO), Time::ZERO, &[0; 1_000]));
        };
        send(&mut below, 0..5);
        assert_eq!(below.on_report(Time::ZERO, &report).len(), 3);
        send(&mut below, 5..7);
        below.forget();
        send(&mut below, 7..8);
        assert_eq!(below.on_report(Time::ZERO, &report).len(), 1);
    }
}
