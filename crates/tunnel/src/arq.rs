//! Packets of a class with ARQ: the laboratory's selective repeat, with bytes and real feedback.
//!
//! The sending end is the component: it says what is sent next, what again, and what is given up. Outcomes come with the
//! reports of the other end. The receiving end is that of a link: packets leave in the order in which they were sent, without
//! those that were given up, or as they arrive.

use std::collections::BTreeMap;

use lasthop_base::{Duration, Time};
use lasthop_proto::Ecn;
use lasthop_proto::arq::selective_repeat::Params;
use lasthop_proto::arq::{Arq, Attempt, Next, Retransmissions, SelectiveRepeat, Verdict};

use crate::exits::Deliver;
use crate::message::ArqHeader;
use crate::outer::Tos;

/// The most bytes of packets that wait at an end: at the sending one for the report of their arrival, at the receiving one behind
/// a gap.
const BYTES: usize = 4 << 20;

/// How long packets wait behind a gap, and how old one may be that is retransmitted: about five round trips of a satellite.
const HOLD: Duration = Duration::from_secs(3);

/// Takes a message of the class: its header, the packet with its outer octet, and the attempt, whose outcome is to be told.
/// Without a packet, it tells what was given up.
pub(crate) type Emit<'a> = &'a mut dyn FnMut(ArqHeader, &[u8], Tos, Option<Attempt>);

/// A packet without an outcome.
#[derive(Debug)]
struct Waiting {
    entered: Time,
    tos: Tos,
    bytes: Vec<u8>,
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct ArqSender {
    arq: SelectiveRepeat,
    next: u64,
    packets: BTreeMap<u64, Waiting>,
    bytes: usize,
    counters: ArqCounters,
}

/// What a sending end has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArqCounters {
    /// Packets that were retransmitted, each time counted.
    pub retransmitted: u64,
    /// Packets that were given up.
    pub given_up: u64,
}

impl ArqCounters {
    pub(crate) fn add(&mut self, other: ArqCounters) {
        self.retransmitted += other.retransmitted;
        self.given_up += other.given_up;
    }
}

impl ArqSender {
    pub(crate) fn new(retransmissions: Retransmissions) -> ArqSender {
        let params = Params { retransmissions, feedback_delay: Duration::ZERO, slot: Duration::ZERO };
        ArqSender {
            arq: SelectiveRepeat::new(params),
            next: 0,
            packets: BTreeMap::new(),
            bytes: 0,
            counters: ArqCounters::default(),
        }
    }

    /// Number of packets.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    pub(crate) fn counters(&self) -> ArqCounters {
        self.counters
    }

    pub(crate) fn send(&mut self, now: Time, tos: Tos, packet: &[u8], emit: Emit<'_>) {
        while self.bytes + packet.len() > BYTES
            && let Some((&oldest, _)) = self.packets.first_key_value()
        {
            self.give_up(oldest);
        }
        self.arq.begin(self.next, 1);
        self.bytes += packet.len();
        self.packets.insert(self.next, Waiting { entered: now, tos, bytes: packet.to_vec() });
        self.next += 1;
        self.pump(now, emit);
    }

    /// The outcome of an attempt.
    pub(crate) fn learn(&mut self, now: Time, attempt: Attempt, has_arrived: bool, emit: Emit<'_>) {
        if has_arrived {
            self.remove(attempt.packet);
        } else if self.packets.contains_key(&attempt.packet) {
            let before = self.packets.len();
            if self.arq.report_lost(now, attempt) == Verdict::GiveUp {
                self.give_up(attempt.packet);
            }
            // After an outage nobody waits for what was sent before it.
            while let Some((&oldest, _)) =
                self.packets.first_key_value().filter(|(_, waiting)| waiting.entered + HOLD <= now)
            {
                self.give_up(oldest);
            }
            if self.packets.len() < before {
                // Packets that wait behind those need not.
                let oldest = self.oldest();
                emit(ArqHeader { attempt: 0, number: oldest, oldest }, &[], Tos::default(), None);
            }
            self.pump(now, emit);
        }
    }

    /// All packets before it have arrived or were given up.
    fn oldest(&self) -> u32 {
        self.packets.first_key_value().map_or(self.next, |(&oldest, _)| oldest) as u32
    }

    fn give_up(&mut self, number: u64) {
        self.counters.given_up += 1;
        self.remove(number);
    }

    fn remove(&mut self, number: u64) {
        if let Some(Waiting { bytes, .. }) = self.packets.remove(&number) {
            self.bytes -= bytes.len();
        }
    }

    /// Sends what the component selects.
    fn pump(&mut self, now: Time, emit: Emit<'_>) {
        while let Next::Send(attempt) = self.arq.next(now, false) {
            // How it ended is known later.
            self.arq.ended(now, attempt, true);
            // One that was given up for want of room may still be due.
            let Some(Waiting { tos, bytes, .. }) = self.packets.get(&attempt.packet) else { continue };
            self.counters.retransmitted += u64::from(attempt.number > 1);
            let header = ArqHeader {
                attempt: attempt.number.min(255) as u8,
                number: attempt.packet as u32,
                oldest: self.oldest(),
            };
            emit(header, bytes, *tos, Some(attempt));
        }
    }
}

/// The receiving end.
#[derive(Debug)]
pub(crate) struct ArqReceiver {
    in_order: bool,
    /// All packets before it have arrived or are given up.
    next: u32,
    /// Those behind it that have arrived; without bytes if they were passed on.
    arrived: BTreeMap<u32, (Ecn, Vec<u8>)>,
    bytes: usize,
    gap_since: Time,
}

impl ArqReceiver {
    pub(crate) fn new(in_order: bool) -> ArqReceiver {
        ArqReceiver { in_order, next: 0, arrived: BTreeMap::new(), bytes: 0, gap_since: Time::NEVER }
    }

    pub(crate) fn next_wakeup(&self) -> Time {
        if self.gap_since == Time::NEVER { Time::NEVER } else { self.gap_since + HOLD }
    }

    /// Takes a packet; `deliver` gets those that leave.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        header: ArqHeader,
        packet: &[u8],
        outer: Ecn,
        deliver: Deliver<'_>,
    ) {
        let ArqHeader { number, oldest, .. } = header;
        if !packet.is_empty() && number >= self.next && !self.arrived.contains_key(&number) {
            if self.in_order {
                self.bytes += packet.len();
                self.arrived.insert(number, (outer, packet.to_vec()));
            } else {
                deliver(packet, outer);
                self.arrived.insert(number, (outer, Vec::new()));
            }
        }
        self.advance(now, oldest.min(number), deliver);
        // Gaps that would take too much memory are given up.
        while self.bytes > BYTES || self.arrived.len() > BYTES / 256 {
            self.skip_gap(now, deliver);
        }
    }

    /// Gives up a gap that is too old.
    pub(crate) fn wake(&mut self, now: Time, deliver: Deliver<'_>) {
        if self.next_wakeup() <= now {
            self.skip_gap(now, deliver);
        }
    }

    fn skip_gap(&mut self, now: Time, deliver: Deliver<'_>) {
        let behind = self.arrived.first_key_value().map_or(self.next, |(&behind, _)| behind);
        self.advance(now, behind, deliver);
    }

    /// Goes on to `oldest` at least, and past all that have arrived.
    fn advance(&mut self, now: Time, oldest: u32, deliver: Deliver<'_>) {
        let before = self.next;
        while let Some(first) =
            self.arrived.first_entry().filter(|first| *first.key() <= self.next.max(oldest))
        {
            let (number, (outer, packet)) = first.remove_entry();
            self.bytes -= packet.len();
            if self.in_order {
                deliver(&packet, outer);
            }
            self.next = number.saturating_add(1);
        }
        self.next = self.next.max(oldest);
        if self.arrived.is_empty() {
            self.gap_since = Time::NEVER;
        } else if self.gap_since == Time::NEVER || self.next != before {
            self.gap_since = now;
        }
    }
}
