//! Minstrel-HT as Linux has it since 5.12.
//!
//! *What it does.* Every 50 ms it averages the success of each rate by a filter with two poles, and chooses the four with the highest
//! throughput and the most reliable one. A PPDU is tried at the first three of these and at the reliable rate, all but the first with RTS and CTS. Every 20 ms at
//! most, a single MPDU probes another rate: in turn a little faster, any faster, and, once in six, a slower one.
//!
//! *Source.* Linux 6.18, `net/mac80211/rc80211_minstrel_ht.c`; drivers do not aggregate probes (`ath_lookup_rate` of ath9k, `mt76_txq_send_burst` of mt76).

use lasthop_base::{Duration, Stream, Time};

use super::minstrel::{Entry, Rules, Table, share};
use super::{Parameters, RateControl, Selection};
use crate::wifi::noise::NoiseErrors;
use crate::wifi::phy::{PpduFormat, Rate};

pub(super) const SUMMARY: &str =
    "Minstrel-HT as Linux has it since 5.12: a filter of the success at each rate, and probes every 20 ms.";

/// Chains of four rates, as many as drivers take at most.
pub(super) const RULES: Rules =
    Rules { stages: 3, probes_alone: true, dies: |attempts, successes| successes < attempts / 4 };

const UPDATE_INTERVAL: Duration = Duration::from_millis(50);
const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);

/// Rates that wait to be probed, of each kind.
const CANDIDATES: usize = 5;

/// Random orders of the rates of a group.
const COLUMNS: usize = 10;

/// Why a rate is probed.
#[derive(Clone, Copy)]
enum Kind {
    /// The slowest rate of a group that is faster than the best.
    Faster,
    /// Any rate that is faster than the best.
    Jump,
    /// A rate between the best and the most reliable.
    Slower,
}

const SEQUENCE: [Kind; 6] = [Kind::Faster, Kind::Jump, Kind::Faster, Kind::Jump, Kind::Faster, Kind::Slower];

/// The selection of this control.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinstrelHt;

impl Parameters for MinstrelHt {
    fn build(
        &self,
        format: PpduFormat,
        streams: u8,
        _noise: Option<&NoiseErrors>,
        random: Stream,
    ) -> Box<dyn RateControl> {
        Box::new(Control::new(format, streams, random))
    }
}

/// The control of one end for one peer.
#[derive(Clone, Debug)]
struct Control {
    table: Table,
    updated: Time,
    sampled: Time,
    sequence: usize,
    /// The rates to probe, by kind.
    candidates: [Vec<usize>; 3],
    /// The group that was last looked at for faster rates, and for jumps.
    groups: [usize; 2],
    orders: Vec<Vec<usize>>,
    places: Vec<usize>,
}

impl Control {
    fn new(format: PpduFormat, streams: u8, mut random: Stream) -> Control {
        let table = Table::new(format, streams, RULES);
        let orders = table.random_orders(COLUMNS, &mut random);
        let places = vec![0; orders.len()];
        let mut control = Control {
            table,
            updated: Time::ZERO,
            sampled: Time::ZERO,
            sequence: 0,
            candidates: [const { Vec::new() }; 3],
            groups: [0; 2],
            orders,
            places,
        };
        control.refill();
        control
    }

    fn update(&mut self, now: Time) {
        self.table.update(true, filter);
        self.refill();
        (self.updated, self.sampled) = (now, now);
    }

    /// Air times of the fastest and of the slowest of the rates in use.
    fn bounds(&self) -> (u32, u32) {
        let [first, second, ..] = self.table.best;
        let in_use = [first, second, self.table.reliable].map(|index| self.table.duration(index));
        (in_use.into_iter().min().unwrap_or(0), in_use.into_iter().max().unwrap_or(0))
    }

    fn refill(&mut self) {
        let (fast, slow) = self.bounds();
        let table = &self.table;
        let [faster, jump, slower] = &mut self.candidates;
        faster.retain(|&index| table.duration(index) < fast);
        jump.retain(|&index| table.duration(index) < fast);
        slower.retain(|&index| table.duration(index) > fast && table.duration(index) < slow);
        while self.candidates[Kind::Faster as usize].len() < CANDIDATES {
            let Some(index) = self.next_faster() else { break };
            self.candidates[Kind::Faster as usize].push(index);
        }
        while self.candidates[Kind::Jump as usize].len() < CANDIDATES {
            let Some(index) = self.next_jump(fast, slow) else { break };
            self.candidates[Kind::Jump as usize].push(index);
        }
    }

    /// The slowest rate of the next group that is faster than the best rate.
    fn next_faster(&mut self) -> Option<usize> {
        let limit = self.table.duration(self.table.best[0]);
        for _ in 0..self.table.groups.len() {
            self.groups[0] = (self.groups[0] + 1) % self.table.groups.len();
            let mut group = self.table.groups[self.groups[0]].clone();
            let found = group.find(|&index| self.table.duration(index) < limit);
            if let Some(index) = found.filter(|index| !self.candidates[Kind::Faster as usize].contains(index))
            {
                return Some(index);
            }
        }
        None
    }

    /// A random rate of the next group that is faster than those in use. Slower ones that come up become candidates of their own.
    fn next_jump(&mut self, fast: u32, slow: u32) -> Option<usize> {
        for _ in 0..self.table.groups.len() {
            let room = self.candidates[Kind::Slower as usize].len() < CANDIDATES;
            let limit = if room { slow } else { fast };
            self.groups[1] = (self.groups[1] + 1) % self.table.groups.len();
            let group = self.groups[1];
            let mut rates = self.table.groups[group].clone();
            let Some(first) = rates.find(|&index| self.table.duration(index) < limit) else { continue };
            let index = self.next_in_order(group, first);
            let duration = self.table.duration(index);
            if duration < fast {
                if !self.candidates[Kind::Jump as usize].contains(&index) {
                    return Some(index);
                }
                continue;
            }
            let is_sure = self.table.entries[index].probability[0] > share(95, 100);
            let slower = &mut self.candidates[Kind::Slower as usize];
            if room && duration < slow && !is_sure && !slower.contains(&index) {
                slower.push(index);
            }
        }
        None
    }

    /// The next rate of a group in its random order, not below `first`.
    fn next_in_order(&mut self, group: usize, first: usize) -> usize {
        loop {
            let index = self.orders[group][self.places[group]];
            self.places[group] = (self.places[group] + 1) % self.orders[group].len();
            if index >= first {
                return index;
            }
        }
    }

    /// The rate to probe now, if any.
    fn sample(&mut self, now: Time) -> Option<usize> {
        if !self.table.begins_chain() || now < self.sampled {
            return None;
        }
        self.sampled = now + SAMPLE_INTERVAL;
        let kind = SEQUENCE[self.sequence];
        self.sequence = (self.sequence + 1) % SEQUENCE.len();
        let candidates = &mut self.candidates[kind as usize];
        (!candidates.is_empty()).then(|| candidates.remove(0))
    }
}

/// A low-pass filter with two poles and a period of 16.
fn filter(entry: &mut Entry, new: i32) {
    const LAST: i32 = 0x1499;
    const BEFORE: i32 = -0x92e;
    const NEW: i32 = share(1, 1) - LAST - BEFORE;
    let [last, before] = entry.probability;
    let new = new.max(1);
    entry.probability = match last {
        0 => [new, new],
        _ => [((NEW * new + LAST * last + BEFORE * before) >> 12).clamp(1, share(1, 1)), last],
    };
}

impl RateControl for Control {
    fn associate(&mut self, now: Time) {
        (self.updated, self.sampled) = (now, now);
    }

    fn select(&mut self, now: Time) -> Selection {
        let probe = self.sample(now);
        self.table.select(probe)
    }

    fn report(&mut self, now: Time, rate: Rate, sent: u32, acknowledged: u32) {
        self.table.count(rate, sent, acknowledged);
        if now > self.updated + UPDATE_INTERVAL {
            self.update(now);
        }
    }
}
