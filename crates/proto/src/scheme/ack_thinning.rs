//! ACK thinning.
//!
//! **What it does.** At both ends of the wireless link, only one of `every` acknowledgements of a connection goes on, since the next
//! one tells what those before it told. On an uplink that is much slower than the downlink, ACKs then leave room, and downloads no
//! longer wait for them. One that no other follows goes on after `delay`. It is for one narrow direction, and to be chosen by hand:
//! `lasthop advise` does not try it, since it has not been measured, and a gateway has the agent of one end only.
//! **Source.** A variant of ACK filtering (RFC 3449 section 5.2.1), after Balakrishnan, Padmanabhan and Katz, "The effects of
//! asymmetry on TCP performance", MobiCom 1997.
//! **Parameters.** `every`: of how many ACKs one goes on. `delay`: how long one is held at most; at most 200 ms, the least
//! retransmission timeout of Linux. The sources state neither; receivers
//! acknowledge every second segment, so that with 4 the sender hears of eight at a time, and 10 ms is little of the round-trip time of
//! a link that has such an uplink.
//! **Differences from the source.** ACKs are held up to `delay` even if the uplink is idle; the source removes only ACKs that wait in its
//! queue already. Nothing but pure acknowledgements of new data is left out: duplicates, SACK blocks, marks, unknown options and what
//! else has a meaning beside its number pass at once, after what was held. Under AccECN nearly all ACKs carry counts of marks, so
//! that nothing is thinned. A sender that counts ACKs and not bytes grows its window more slowly, and any sends larger bursts.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use lasthop_base::{Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::connections::{ConnectionState, ConnectionTable};
use super::held::HeldPackets;
use super::{Installer, Scheme};
use crate::component::{Component, LinkOutcome, Out, Port, Tally};
use crate::packet::{Body, DropReason, Packet};
use crate::tcp::{Connection, Flags, Segment, SeqNum, Settings};

/// Maximum number of connections. A further one replaces that which was idle longest.
const CONNECTIONS: u32 = 256;

/// Idle time after which a connection is removed: twice the smallest upper bound of the RTO that RFC 6298 permits.
const IDLE: Duration = Duration::from_secs(120);

/// The longest delay: the least retransmission timeout of Linux (`TCP_RTO_MIN`).
const LONGEST: Duration = Duration::from_millis(200);

/// ACK thinning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AckThinning {
    /// Of how many successive acknowledgements of new data one goes on.
    pub every: u32,
    /// How long an acknowledgement waits at most for those that make it superfluous; at most 200 ms.
    pub delay: Duration,
}

impl Default for AckThinning {
    fn default() -> AckThinning {
        AckThinning { every: 4, delay: Duration::from_millis(10) }
    }
}

impl Scheme for AckThinning {
    fn name(&self) -> &'static str {
        "ack-thinning"
    }

    fn summary(&self) -> &'static str {
        "of several acknowledgements of new data only the last one enters the wireless link"
    }

    fn source(&self) -> &'static str {
        "RFC 3449 section 5.2.1"
    }

    fn faults(&self, _tcp: &Settings) -> Vec<(String, String)> {
        let every = (self.every < 2).then(|| ("every", format!("found {}, expected at least 2", self.every)));
        let delay = match self.delay {
            Duration::ZERO => Some(String::from("found 0 s, expected more than zero")),
            delay if delay > LONGEST => Some(format!(
                "found {delay}, expected at most {LONGEST}: senders of Linux would time out while ACKs wait"
            )),
            _ => None,
        };
        let delay = delay.map(|fault| ("delay", fault));
        every.into_iter().chain(delay).map(|(key, fault)| (String::from(key), fault)).collect()
    }

    fn install<'a>(&'a self, installer: &mut Installer<'a>) {
        installer.at_base_station(|_| Thinner::new(self));
        installer.at_mobile_host(|_| Thinner::new(self));
    }
}

/// What is known of the acknowledgements of a connection.
#[derive(Debug)]
struct Row {
    /// The highest acknowledgement number.
    ack: SeqNum,
    /// Acknowledgements that are held or superseded since the last one that went on.
    count: u32,
    /// When the one that is held goes on.
    until: Time,
}

impl ConnectionState for Row {
    type Read = Segment;

    fn new(_now: Time, segment: &Segment) -> Row {
        Row { ack: segment.ack, count: 0, until: Time::NEVER }
    }

    fn is_outdated(&self, segment: &Segment) -> bool {
        self.ack.is_far_from(segment.ack)
    }

    fn cached(&self) -> usize {
        0
    }
}

/// Leaves out acknowledgements that enter the link.
#[derive(Debug)]
struct Thinner {
    every: u32,
    delay: Duration,
    /// By the connection of the acknowledgements.
    rows: ConnectionTable<Row>,
    held: HeldPackets,
    omitted: u64,
}

impl Thinner {
    fn new(scheme: &AckThinning) -> Thinner {
        let AckThinning { every, delay } = *scheme;
        let rows = ConnectionTable::new(CONNECTIONS, IDLE);
        Thinner { every, delay, rows, held: HeldPackets::default(), omitted: 0 }
    }

    /// Until when an acknowledgement waits; `None` if it goes on. One that was held goes on before it, unless it is superseded.
    fn on_ack(
        &mut self,
        now: Time,
        connection: Connection,
        segment: &Segment,
        out: &mut Out,
    ) -> Option<Time> {
        let known = self.rows.find(now, connection).filter(|slot| !self.rows[*slot].is_outdated(segment));
        let is_new = known.is_some_and(|slot| segment.ack > self.rows[slot].ack);
        let is_new = is_new && segment.is_pure_ack() && segment.sack.is_empty();
        let slot = self.rows.find_or_add(now, connection, segment);
        let held = self.held.take(self.rows[slot].until, connection);
        let (every, delay, holds) = (self.every, self.delay, !held.is_empty());
        let until = self.rows.update(now, slot, |row| {
            row.ack = row.ack.max(segment.ack);
            row.count = if holds { row.count + 1 } else { 1 };
            let first = if holds { row.until } else { now + delay };
            let waits = is_new && row.count < every;
            row.until = if waits { first } else { Time::NEVER };
            waits.then_some(first)
        });
        for (port, packet) in held {
            if is_new {
                self.omitted += 1;
                out.drop(packet, DropReason::Suppressed);
            } else {
                out.send(port, packet);
            }
        }
        until
    }
}

impl Component for Thinner {
    fn receive(&mut self, now: Time, packet: &Packet, port: Port, out: &mut Out) {
        let Packet { src, dst, flow, .. } = *packet;
        if let Body::Tcp(segment) = &packet.body
            && port == Port::WIRED
            && segment.flags.has(Flags::ACK)
        {
            let connection = Connection { src, dst, flow };
            if let Some(until) = self.on_ack(now, connection, segment, out) {
                return self.held.hold(until, connection, port.across(), *packet);
            }
        }
        out.send(port.across(), *packet);
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

    /// Total of acknowledgements that did not go on.
    fn count(&self, tally: &mut dyn Tally) {
        tally.total("omitted_acks", self.omitted);
    }
}
