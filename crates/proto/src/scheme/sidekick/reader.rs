//! The source's end: knows each packet that leaves, and tells by a quACK of an agent on the way what became of it.
//!
//! A missing packet counts as sent no longer: what is sent in its place is another packet, with an identifier of its own. A quACK
//! that cannot be decoded, and the first one of another agent, replace the sums: of packets that left before, nothing is told.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::power_sums::{Code, Fate as Decoded, PowerSums};
use super::repairer::Counters;
use super::{Sidekick, UNDER_WAY, agent_of, identifier, number_of};
use crate::component::{Quack, Signal, Tally};
use crate::packet::{FlowId, Packet};
use crate::scheme::{Directions, LinkEnd};
use crate::stack::{Fate, Sidecar};

/// The reader of one end's packets.
#[derive(Debug)]
pub(super) struct Reader {
    code: Code,
    buffer: usize,
    moves_window: bool,
    directions: Directions,
    /// The agent whose quACK was read last.
    agent: Option<u16>,
    /// Sums of what has arrived there, as far as is known.
    sums: PowerSums,
    /// Sent after the latest packet that a quACK has named, in order, with their identifiers.
    in_flight: VecDeque<(Packet, u32)>,
    /// The contents of quACKs that are under way.
    under_way: VecDeque<Quack>,
    counters: Counters,
    in_flight_peak: usize,
}

impl Reader {
    pub(super) fn new(scheme: &Sidekick) -> Reader {
        Reader {
            code: Code::new(scheme.bits, scheme.threshold),
            buffer: scheme.buffer as usize,
            moves_window: scheme.moves_window,
            directions: scheme.directions,
            agent: None,
            sums: PowerSums::default(),
            in_flight: VecDeque::new(),
            under_way: VecDeque::new(),
            counters: Counters::default(),
            in_flight_peak: 0,
        }
    }

    /// Whether it is of another agent than the last one.
    fn read(&mut self, quack: &Quack, fates: &mut Vec<(Packet, Fate)>) -> bool {
        let mut places = self.in_flight.iter().enumerate().filter(|(_, (_, id))| *id == quack.last);
        // Otherwise it is an old one, or its identifier is not unique.
        let (Some((last, _)), None) = (places.next(), places.next()) else {
            self.counters.unread += 1;
            return false;
        };
        self.counters.quacks_read += 1;
        let named: Vec<(Packet, u32)> = self.in_flight.drain(..=last).collect();
        let arrived = PowerSums { count: quack.count, sums: quack.sums };
        let is_same = self.agent.replace(agent_of(quack.number)) == Some(agent_of(quack.number));
        let Reader { code, sums, counters, .. } = self;
        named.iter().for_each(|(_, id)| code.add(sums, *id));
        let ids: Vec<u32> = named.iter().map(|(_, id)| *id).collect();
        let decoded = is_same.then(|| code.fates(sums, &arrived, &ids)).flatten();
        counters.undecodable += u64::from(is_same && decoded.is_none());
        *sums = arrived;
        for ((packet, _), fate) in named.into_iter().zip(decoded.into_iter().flatten()) {
            match fate {
                Decoded::Arrived => fates.push((packet, Fate::Arrived)),
                Decoded::Missing => fates.push((packet, Fate::Missing)),
                Decoded::Ambiguous => counters.ambiguous += 1,
            }
        }
        !is_same
    }
}

impl Sidecar for Reader {
    fn on_sent(&mut self, packet: &Packet) {
        let id = self.code.identifier(identifier::hash(packet));
        self.in_flight.push_back((*packet, id));
        if self.in_flight.len() > self.buffer
            && let Some((_, oldest)) = self.in_flight.pop_front()
        {
            self.code.add(&mut self.sums, oldest);
            // Of an end whose packets no agent reports, every one is.
            self.counters.pushed_out += u64::from(self.agent.is_some());
        }
        self.in_flight_peak = self.in_flight_peak.max(self.in_flight.len());
    }

    fn on_signal(&mut self, flow: FlowId, signal: &Signal) {
        if let Signal::Quack(quack) = signal
            && quack.flow == flow
        {
            self.under_way.push_back(*quack);
            if self.under_way.len() > UNDER_WAY {
                self.under_way.pop_front();
            }
        }
    }

    fn on_report(&mut self, packet: &Packet, fates: &mut Vec<(Packet, Fate)>) -> bool {
        let Some(number) = number_of(packet) else { return false };
        let Some(place) = self.under_way.iter().position(|quack| quack.number == number) else {
            return false;
        };
        let quack = self.under_way[place];
        // Earlier ones are lost or out of date.
        self.under_way.drain(..=place);
        self.read(&quack, fates)
    }

    fn moves_window(&self) -> bool {
        self.moves_window
    }

    fn remedy(&self) -> &'static str {
        if self.moves_window { "set moves_window = false" } else { "set reader = \"link\"" }
    }

    fn buffer(&self) -> usize {
        self.buffer
    }

    fn directions(&self) -> [bool; 2] {
        [LinkEnd::BaseStation, LinkEnd::MobileHost].map(|from| self.directions.include_from(from))
    }

    fn count(&self, repairs: u64, tally: &mut dyn Tally) {
        let kept = self.agent.map_or([0; 2], |_| [self.in_flight.len(), self.in_flight_peak]);
        self.counters.count(repairs, kept, false, tally);
    }
}
