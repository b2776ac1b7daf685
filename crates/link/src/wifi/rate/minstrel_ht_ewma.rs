//! Minstrel-HT with the moving average that earlier Linux had, and that ns-3 has.
//!
//! *What it does.* As its [successor](super::minstrel_ht), but it averages the success of each rate by an exponentially weighted moving average, in
//! which the past weighs 75 %, takes a rate for useless until it was tried, and probes one rate of a random order after every 16 PPDUs and two for each MPDU of the
//! average PPDU. Slower rates than those in use are probed only if they were not for 20 updates. A chain has one rate less, a probe is aggregated, and a number of streams
//! dies below 20 % instead of 25.
//!
//! *Source.* `net/mac80211/rc80211_minstrel_ht.c` before its average was a filter of two poles, and before probes had classes. That counts packets between probes, ns-3 PPDUs,
//! and so do we.

use lasthop_base::{Duration, Stream, Time};

use super::minstrel::{Entry, Rules, Table, share};
use super::{Parameters, RateControl, Selection};
use crate::wifi::noise::NoiseErrors;
use crate::wifi::phy::{PpduFormat, Rate};

pub(super) const SUMMARY: &str =
    "Minstrel-HT with the moving average that earlier Linux had, and that ns-3 has.";

/// Chains of three rates, and probes as ns-3 sends them.
pub(super) const RULES: Rules = Rules {
    stages: 2,
    probes_alone: false,
    dies: |attempts, successes| share(successes, attempts) < share(20, 100),
};

const UPDATE_INTERVAL: Duration = Duration::from_millis(50);

/// Random orders of the rates of a group.
const COLUMNS: usize = 10;

/// The selection of this control.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinstrelHtEwma;

impl Parameters for MinstrelHtEwma {
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
    group: usize,
    orders: Vec<Vec<usize>>,
    places: Vec<usize>,
    /// PPDUs to wait before the next probe.
    wait: u32,
    /// Probes until the next wait.
    tries: u32,
    /// Waits until the next update.
    count: u32,
    /// Probes of slower rates since the last update.
    slow: u32,
}

impl Control {
    fn new(format: PpduFormat, streams: u8, mut random: Stream) -> Control {
        let table = Table::new(format, streams, RULES);
        let orders = table.random_orders(COLUMNS, &mut random);
        let places = vec![0; orders.len()];
        // More probes at first, without a wait.
        Control {
            table,
            updated: Time::ZERO,
            group: 0,
            orders,
            places,
            wait: 0,
            tries: 4,
            count: 16,
            slow: 0,
        }
    }

    /// The rate to probe now, if any.
    fn sample(&mut self) -> Option<usize> {
        if !self.table.begins_chain() {
            return None;
        }
        if self.wait > 0 {
            self.wait -= 1;
            return None;
        }
        if self.tries == 0 {
            return None;
        }
        let index = self.next_in_order();
        let table = &self.table;
        let (entry, duration) = (&table.entries[index], table.duration(index));
        let reliable = table.duration(table.reliable);
        let [first, second] = [0, 1].map(|place| table.duration(table.best[place]));
        let is_used = index == table.best[0] || index == table.reliable;
        let is_known = duration >= first.min(second) && entry.attempts > 0;
        if is_used || is_known || entry.probability[0] > share(95, 100) || 3 * reliable < duration {
            return None;
        }
        let fastest = if first > second { table.best[1] } else { table.best[0] };
        let streams = table.entries[fastest].rate.streams;
        let is_slow =
            duration >= first.max(second) && (streams <= entry.rate.streams || duration >= reliable);
        if is_slow {
            let is_recent = entry.idle_updates < 20;
            self.slow += u32::from(!is_recent);
            if is_recent || self.slow > 3 {
                return None;
            }
        }
        self.tries -= 1;
        Some(index)
    }

    fn next_in_order(&mut self) -> usize {
        let index = self.orders[self.group][self.places[self.group]];
        self.group = (self.group + 1) % self.orders.len();
        self.places[self.group] = (self.places[self.group] + 1) % self.orders[self.group].len();
        index
    }
}

fn average(entry: &mut Entry, new: i32) {
    let [last, _] = entry.probability;
    entry.probability[0] = if entry.was_tried { last + (new - last) / 4 } else { new };
}

impl RateControl for Control {
    fn associate(&mut self, now: Time) {
        self.updated = now;
    }

    fn select(&mut self, _now: Time) -> Selection {
        let probe = self.sample();
        self.table.select(probe)
    }

    fn report(&mut self, now: Time, rate: Rate, sent: u32, acknowledged: u32) {
        self.table.count(rate, sent, acknowledged);
        if self.wait == 0 && self.tries == 0 && self.count > 0 {
            (self.wait, self.tries) = (16 + 2 * self.table.length(), 1);
            self.count -= 1;
        }
        if now > self.updated + UPDATE_INTERVAL {
            self.table.update(false, average);
            self.updated = now;
            (self.slow, self.count) = (0, 8 * self.table.groups.len() as u32);
        }
    }
}
