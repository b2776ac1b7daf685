//! The sending end: keeps packets until a quACK tells what became of them.
//!
//! ```text
//!             quACK of a later packet            next quACK
//! In flight ──┬── lacks it ──▶ Repaired ──┬── has it ──▶ forgotten
//!             │                  ▲    │   │
//!             └─ has it ▶ forgotten   └───┴── lacks it, and has a packet sent after the repair
//! ```
//!
//! A quACK that cannot be decoded replaces the sums. Repairs that are under way then may have been counted or not: until a
//! later packet has arrived, they stay candidates that may be missing, so that their arrival does not spoil the next quACKs.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lasthop_base::Time;

use super::power_sums::{Code, Fate, PowerSums};
use crate::component::{Quack, Tally};
use crate::packet::Packet;
use crate::scheme::connections::ConnectionState;

/// The packets of one flow that were sent over the link.
#[derive(Debug, Default)]
pub(super) struct Repairer {
    /// Sums of what has arrived, as far as is known, and of `unsettled`.
    sums: PowerSums,
    /// Sent after the latest packet that a quACK has named, in order.
    in_flight: VecDeque<Sent>,
    /// Sent before it, and repaired: missing in the last quACK.
    unsettled: Vec<Unsettled>,
    /// Number of packets sent, without repairs.
    sent: u64,
}

/// A packet and its identifier.
#[derive(Clone, Copy, Debug)]
struct Sent {
    packet: Packet,
    id: u32,
}

#[derive(Clone, Copy, Debug)]
struct Unsettled {
    packet: Packet,
    id: u32,
    /// Number of repairs, and [`Repairer::sent`] at the last one.
    repairs: u32,
    repaired_at: u64,
}

impl Unsettled {
    /// Whether a repair may still arrive, given the number of packets [named](Repairer::named).
    fn is_under_way(&self, named: u64) -> bool {
        self.repairs > 0 && named <= self.repaired_at
    }
}

/// What the repairers of an agent, or the reader of a source, have done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) quacks_read: u64,
    pub(super) unread: u64,
    pub(super) undecodable: u64,
    pub(super) given_up: u64,
    pub(super) ambiguous: u64,
    pub(super) pushed_out: u64,
}

impl Counters {
    /// Reports them, with the number of repairs, of packets kept, and their peak. Only an end that `gives_up` repairing counts that.
    pub(super) fn count(&self, repairs: u64, kept: [usize; 2], gives_up: bool, tally: &mut dyn Tally) {
        tally.total("quacks_read", self.quacks_read);
        tally.total("unread_quacks", self.unread);
        tally.total("undecodable_quacks", self.undecodable);
        tally.total("repairs", repairs);
        if gives_up {
            tally.total("given_up_packets", self.given_up);
        }
        tally.total("ambiguous_packets", self.ambiguous);
        tally.total("pushed_out_packets", self.pushed_out);
        tally.level("kept_packets", kept[0] as u64);
        tally.peak("kept_packets_peak", kept[1] as u64);
    }
}

/// The limits of a repairer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) attempts: u32,
    pub(super) buffer: usize,
}

impl ConnectionState for Repairer {
    type Read = ();

    fn new(_now: Time, (): &()) -> Repairer {
        Repairer::default()
    }

    fn is_outdated(&self, (): &()) -> bool {
        false
    }

    fn cached(&self) -> usize {
        self.in_flight.len() + self.unsettled.len()
    }
}

impl Repairer {
    /// Keeps a packet that is sent. If there are too many, the oldest one is taken for arrived.
    pub(super) fn send(
        &mut self,
        packet: &Packet,
        id: u32,
        code: Code,
        limits: Limits,
        counters: &mut Counters,
    ) {
        self.sent += 1;
        self.in_flight.push_back(Sent { packet: *packet, id });
        if self.in_flight.len() > limits.buffer
            && let Some(oldest) = self.in_flight.pop_front()
        {
            code.add(&mut self.sums, oldest.id);
            counters.pushed_out += 1;
        }
    }

    /// Reads a quACK, and calls `repair` with each packet that is to be sent again.
    pub(super) fn read(
        &mut self,
        quack: &Quack,
        code: Code,
        limits: Limits,
        counters: &mut Counters,
        mut repair: impl FnMut(Packet),
    ) {
        let Some(covered) = self.covered(quack.last) else {
            let is_repair = self.unsettled.iter().any(|each| each.id == quack.last);
            counters.unread += u64::from(!is_repair);
            return;
        };
        counters.quacks_read += 1;
        for Sent { packet, id } in self.in_flight.drain(..covered) {
            code.add(&mut self.sums, id);
            self.unsettled.push(Unsettled { packet, id, repairs: 0, repaired_at: 0 });
        }
        let arrived = PowerSums { count: quack.count, sums: quack.sums };
        if self.sums == arrived {
            self.unsettled.clear();
        } else {
            let ids: Vec<u32> = self.unsettled.iter().map(|each| each.id).collect();
            match code.fates(&self.sums, &arrived, &ids) {
                Some(fates) => self.settle(&fates, code, limits, counters, &mut repair),
                None => {
                    counters.undecodable += 1;
                    self.sums = arrived;
                    let named = self.named();
                    let Repairer { sums, unsettled, .. } = self;
                    unsettled.retain_mut(|each| {
                        let is_under_way = each.is_under_way(named);
                        if is_under_way {
                            code.add(sums, each.id);
                            each.repairs = limits.attempts;
                        }
                        is_under_way
                    });
                }
            }
        }
    }

    /// Number of packets sent up to the latest one that a quACK has named.
    fn named(&self) -> u64 {
        self.sent - self.in_flight.len() as u64
    }

    /// How many packets in flight were sent up to the one called `last`. `None` for a repaired packet, whose arrival does not
    /// tell which others should have arrived, an old quACK, and an identifier that is not unique.
    fn covered(&self, last: u32) -> Option<usize> {
        let mut places = self.in_flight.iter().enumerate().filter(|(_, sent)| sent.id == last);
        let (place, _) = places.next()?;
        let is_unique = places.next().is_none() && self.unsettled.iter().all(|each| each.id != last);
        is_unique.then_some(place + 1)
    }

    fn settle(
        &mut self,
        fates: &[Fate],
        code: Code,
        limits: Limits,
        counters: &mut Counters,
        repair: &mut dyn FnMut(Packet),
    ) {
        let named = self.named();
        let Repairer { sums, unsettled, sent, .. } = self;
        let mut fates = fates.iter();
        unsettled.retain_mut(|each| match fates.next() {
            Some(Fate::Missing) if each.is_under_way(named) => true,
            Some(Fate::Missing) if each.repairs < limits.attempts => {
                (each.repairs, each.repaired_at) = (each.repairs + 1, *sent);
                repair(each.packet);
                true
            }
            Some(Fate::Missing) => {
                counters.given_up += 1;
                code.remove(sums, each.id);
                false
            }
            Some(Fate::Ambiguous) => {
                counters.ambiguous += 1;
                code.remove(sums, each.id);
                false
            }
            Some(Fate::Arrived) | None => false,
        });
    }

    /// Calls `visit` with the packets that may be sent again.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&Packet)) {
        let unsettled = self.unsettled.iter().map(|each| &each.packet);
        unsettled.chain(self.in_flight.iter().map(|sent| &sent.packet)).for_each(visit);
    }
}
