//! What both versions of Minstrel-HT share: statistics by rate, the best rates, and the chain of attempts.
//!
//! *Source.* The rules of Linux's `net/mac80211/rc80211_minstrel_ht.c`. Probabilities have 12 fractional bits there and here.
//!
//! *Differences.* Rates have the width and the guard interval of the BSS; Linux tries narrower and longer ones, too. A group is the rates with
//! one number of streams. Linux has no such rates of 802.11ax; here they follow the same rules.

use core::cmp::Ordering;
use core::ops::Range;

use lasthop_base::{Bytes, Duration, Stream};

use super::Selection;
use crate::wifi::phy::{PpduFormat, Rate};

/// Fractional bits of probabilities.
const SCALE: u32 = 12;

/// A fraction as a scaled probability.
pub(super) const fn share(part: u32, whole: u32) -> i32 {
    ((part << SCALE) / whole) as i32
}

/// Best rates that are kept.
const BEST: usize = 4;

/// The packets whose air time stands for a rate's.
const AVERAGE_PACKET: Bytes = Bytes(1200);

/// Overhead of a PPDU in microseconds: an empty frame and an Ack at 6 Mb/s.
const OVERHEAD_US: u32 = 108;

/// The same with RTS and CTS.
const PROTECTED_OVERHEAD_US: u32 = OVERHEAD_US + 2 * 60;

/// Length of the attempts at one rate of a chain, in microseconds.
const SEGMENT_US: u32 = 6_000;

/// Most attempts at one rate of a chain.
const MOST_ATTEMPTS: u32 = 7;

/// What versions of Minstrel-HT do differently.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Best rates in a chain, before the most reliable one.
    pub(super) stages: usize,
    /// Whether a probe is a single MPDU, at each rate of its chain.
    pub(super) probes_alone: bool,
    /// Whether a best rate with these attempts and successes gives way at once to one with fewer streams.
    pub(super) dies: fn(u32, u32) -> bool,
}

/// Statistics of one rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) rate: Rate,
    /// Air time of an average packet in nanoseconds.
    pub(super) duration: u32,
    /// MPDUs since the last update.
    pub(super) attempts: u32,
    /// Those acknowledged.
    pub(super) successes: u32,
    /// Whether it was ever used.
    pub(super) was_tried: bool,
    /// Averages of the success probability: the current, and the one before.
    pub(super) probability: [i32; 2],
    /// Updates since it was last used.
    pub(super) idle_updates: u32,
}

/// Statistics of all rates, and what follows from them.
#[derive(Clone, Debug)]
pub(super) struct Table {
    rules: Rules,
    pub(super) entries: Vec<Entry>,
    /// The entries with each number of streams.
    pub(super) groups: Vec<Range<usize>>,
    /// The best by throughput.
    pub(super) best: [usize; BEST],
    best_of_group: Vec<[usize; BEST]>,
    /// The most reliable.
    pub(super) reliable: usize,
    /// The average number of MPDUs of a PPDU, scaled.
    length: i32,
    /// MPDUs and PPDUs since the last update.
    counted: (u32, u32),
    chain: Chain,
}

/// Attempts at a rate of the chain.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    /// The rate to try before the others, once.
    probe: Option<usize>,
    stage: usize,
    failures: u32,
}

impl Table {
    pub(super) fn new(format: PpduFormat, streams: u8, rules: Rules) -> Table {
        let entry = |rate| Entry {
            rate,
            duration: (AVERAGE_PACKET.bits() * 1_000_000_000 / format.bit_rate(rate).as_bps()) as u32,
            attempts: 0,
            successes: 0,
            was_tried: false,
            probability: [0; 2],
            idle_updates: 0,
        };
        let entries: Vec<Entry> = format.rates(streams).map(entry).collect();
        let group = |streams| {
            let first = entries.partition_point(|entry| entry.rate.streams < streams);
            first..entries.partition_point(|entry| entry.rate.streams <= streams)
        };
        let groups: Vec<Range<usize>> = (1..=streams).map(group).collect();
        Table {
            rules,
            best_of_group: groups.iter().map(|group| [group.start; BEST]).collect(),
            groups,
            entries,
            best: [0; BEST],
            reliable: 0,
            length: share(1, 1),
            counted: (0, 0),
            chain: Chain::default(),
        }
    }

    pub(super) fn duration(&self, index: usize) -> u32 {
        self.entries[index].duration
    }

    /// The rates that are sampled in `columns` random orders, for each group.
    pub(super) fn random_orders(&self, columns: usize, random: &mut Stream) -> Vec<Vec<usize>> {
        let order = |group: &Range<usize>| {
            let mut order = Vec::new();
            for _ in 0..columns {
                let from = order.len();
                order.extend(group.clone());
                for place in (from + 1..order.len()).rev() {
                    order.swap(place, from + random.below((place - from + 1) as u64) as usize);
                }
            }
            order
        };
        self.groups.iter().map(order).collect()
    }

    /// The average number of MPDUs of a PPDU.
    pub(super) fn length(&self) -> u32 {
        (self.length >> SCALE) as u32
    }

    /// The throughput of a rate with success probability `probability`: none below 10 %, and as with 90 % above.
    fn throughput(&self, index: usize, probability: i32) -> i64 {
        if probability < share(10, 100) {
            return 0;
        }
        let nanos = 1_000 * OVERHEAD_US / self.length() + self.duration(index);
        let probability = i64::from(probability.min(share(90, 100)));
        (100 * (probability * 1_000_000 / i64::from(nanos))) >> SCALE
    }

    fn current(&self, index: usize) -> (i64, i32) {
        let probability = self.entries[index].probability[0];
        (self.throughput(index, probability), probability)
    }

    /// Inserts a rate into the best ones, by throughput and then probability.
    fn insert(&self, list: &mut [usize; BEST], index: usize) {
        let own = self.current(index);
        let place = list.iter().rposition(|&other| own.cmp(&self.current(other)) != Ordering::Greater);
        let place = place.map_or(0, |place| place + 1);
        if place < BEST {
            list[place..].rotate_right(1);
            list[place] = index;
        }
    }

    /// Counts a PPDU.
    pub(super) fn count(&mut self, rate: Rate, sent: u32, acknowledged: u32) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.rate == rate) {
            entry.attempts += sent;
            entry.successes += acknowledged;
        }
        self.counted = (self.counted.0 + sent, self.counted.1 + 1);
        match acknowledged {
            0 => self.advance_chain(),
            _ => self.chain = Chain::default(),
        }
        for place in 0..2 {
            let entry = &self.entries[self.best[place]];
            // Sudden death of a number of streams.
            if entry.attempts > 30 && (self.rules.dies)(entry.attempts, entry.successes) {
                let group = usize::from(entry.rate.streams) - 1;
                if group > 0 {
                    self.best[place] = self.best_of_group[group - 1][place];
                }
            }
        }
    }

    /// Updates statistics, with the average of a rate by `average`, and chooses the best rates. A rate never tried is as probable as the best
    /// faster one of its group if `is_hopeful`.
    pub(super) fn update(&mut self, is_hopeful: bool, average: impl Fn(&mut Entry, i32)) {
        let (mpdus, ppdus) = core::mem::take(&mut self.counted);
        if ppdus > 0 {
            // Of a new average, a quarter.
            self.length += (share(mpdus, ppdus) - self.length) / 4;
        }
        for group in self.groups.clone() {
            let mut faster = 0;
            for index in group.rev() {
                let entry = &mut self.entries[index];
                if entry.attempts > 0 {
                    average(entry, share(entry.successes, entry.attempts));
                    entry.was_tried = true;
                    entry.idle_updates = 0;
                } else {
                    entry.idle_updates += 1;
                }
                (entry.attempts, entry.successes) = (0, 0);
                if entry.was_tried {
                    faster = faster.max(entry.probability[0]);
                } else if is_hopeful {
                    entry.probability[0] = faster.max(entry.probability[0]);
                }
            }
        }
        let mut best = [0; BEST];
        for (group, rates) in self.groups.iter().enumerate() {
            let mut of_group = [rates.start; BEST];
            for index in rates.clone().rev().filter(|&index| self.current(index).0 > 0) {
                self.insert(&mut best, index);
                self.insert(&mut of_group, index);
            }
            self.best_of_group[group] = of_group;
        }
        self.best = best;
        self.find_reliable();
    }

    /// The most reliable rate: the fastest above 75 %, otherwise the most probable; with fewer streams than the best if there
    /// is one.
    fn find_reliable(&mut self) {
        let top = self.entries[self.best[0]];
        let prefer = |best: usize, index: usize| {
            let entry = &self.entries[index];
            // No rate faster than the best and less probable.
            let is_skipped = top.duration > entry.duration && entry.probability[0] < top.probability[0];
            let is_better = match entry.probability[0] > share(75, 100) {
                true => self.current(index).0 > self.current(best).0,
                false => entry.probability[0] > self.entries[best].probability[0],
            };
            if is_better && !is_skipped { index } else { best }
        };
        let of_group: Vec<usize> =
            self.groups.iter().map(|group| group.clone().fold(group.start, prefer)).collect();
        let mut reliable = (0..self.entries.len()).fold(0, prefer);
        let mut most = 0;
        for &index in &of_group {
            let throughput = self.current(index).0;
            if throughput > most && self.entries[index].rate.streams < top.rate.streams {
                (reliable, most) = (index, throughput);
            }
        }
        self.reliable = reliable;
    }

    /// The number of attempts at a rate of the chain: two, and as many more as end within its segment.
    fn attempts_at(&self, index: usize, is_protected: bool) -> u32 {
        if self.entries[index].probability[0] < share(20, 100) {
            return 2;
        }
        let overhead = if is_protected { PROTECTED_OVERHEAD_US } else { OVERHEAD_US };
        let each = overhead + self.duration(index) * self.length() / 1_000;
        let (mut cw, mut time, mut attempts) = (15, 0, 0);
        while attempts < MOST_ATTEMPTS {
            time += 9 * cw / 2 + each;
            cw = (2 * cw + 1).min(1023);
            if attempts >= 2 && time >= SEGMENT_US {
                break;
            }
            attempts += 1;
        }
        attempts
    }

    fn advance_chain(&mut self) {
        let Chain { probe, stage, failures } = self.chain;
        let most = match (stage, probe) {
            (0, Some(_)) => 1,
            (stage, _) => self.attempts_at(self.stage_rate(stage), stage > 0),
        };
        self.chain = match (failures + 1 < most, stage) {
            (true, _) => Chain { failures: failures + 1, ..self.chain },
            (false, stage) if stage < self.rules.stages => {
                Chain { stage: stage + 1, failures: 0, ..self.chain }
            }
            (false, _) => Chain::default(),
        };
    }

    fn stage_rate(&self, stage: usize) -> usize {
        match stage {
            0 => self.chain.probe.unwrap_or(self.best[0]),
            stage if stage < self.rules.stages => self.best[stage],
            _ => self.reliable,
        }
    }

    /// Whether the next PPDU is the first of a chain.
    pub(super) fn begins_chain(&self) -> bool {
        self.chain.stage == 0 && self.chain.failures == 0
    }

    /// The rate of the next PPDU; at the beginning of a chain it may be a probe.
    pub(super) fn select(&mut self, probe: Option<usize>) -> Selection {
        if probe.is_some() {
            self.chain.probe = probe;
        }
        let Chain { probe, stage, .. } = self.chain;
        let rate = self.entries[self.stage_rate(stage)].rate;
        let is_alone = self.rules.probes_alone && probe.is_some();
        let longest = if is_alone { Duration::ZERO } else { Duration::MAX };
        Selection { rate, longest, rts: stage > 0 }
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::{Decibels, Streams, Time};

    use super::*;
    use crate::wifi::noise::NoiseErrors;
    use crate::wifi::rate::{RateSelection, minstrel_ht, minstrel_ht_ewma};
    use crate::wifi::{GuardInterval, Standard, Width};

    const HT20: PpduFormat =
        PpduFormat { standard: Standard::N, width: Width::Mhz20, guard_interval: GuardInterval::Ns800 };

    /// Shares of MPDUs by MCS after `from` ms, with a control that always sends PPDUs of the longest duration.
    fn shares(
        control: RateSelection,
        streams: u8,
        snr_db: impl Fn(u64) -> f64,
        from: u64,
    ) -> Vec<(Rate, f64)> {
        let mut random = Streams::new(1, 0).stream("survival");
        let mut control = control.build(HT20, streams, None, Streams::new(1, 0).stream("rate"));
        let (mut now, mut used) = (Time::ZERO, std::collections::BTreeMap::<Rate, u32>::new());
        while now < Time::ZERO + Duration::from_secs(3) {
            let ms = now.as_nanos() / 1_000_000;
            let Selection { rate, longest, .. } = control.select(now);
            let longest = longest.min(Duration::from_micros(5_484));
            let sent = (HT20.capacity(rate, longest).0 / 1_540).clamp(1, 42) as u32;
            // A further stream takes 3 dB.
            let snr = Decibels::new(snr_db(ms) - 3.0 * f64::from(rate.streams - 1)).unwrap();
            let survival = NoiseErrors::new(snr).survival(rate.mcs, Bytes(1_536));
            let acknowledged = (0..sent).filter(|_| random.bernoulli(survival)).count() as u32;
            now += HT20.air_time(rate, Bytes(1_540 * u64::from(sent))) + Duration::from_micros(158);
            control.report(now, rate, sent, acknowledged);
            if ms >= from {
                *used.entry(rate).or_default() += sent;
            }
        }
        let total = f64::from(used.values().sum::<u32>());
        used.into_iter().map(|(rate, count)| (rate, f64::from(count) / total)).collect()
    }

    /// At a fixed signal, most MPDUs have the rate with the highest goodput. At 9 dB, where half the MPDUs of the next one arrive, two lucky probes of a single MPDU
    /// make that one the best until A-MPDUs show it. At 18 dB it would be no less used: Minstrel takes 99 % for 90 %, and 78 % at the next rate are within 3 %
    /// of that.
    #[test]
    fn minstrel_finds_the_best_rate() {
        for control in [RateSelection::MinstrelHt, RateSelection::MinstrelHtEwma] {
            for (snr_db, mcs) in [(3.0, 0), (8.5, 2), (12.0, 3), (15.0, 4), (17.5, 5), (24.0, 7)] {
                let shares = shares(control, 1, |_| snr_db, 1_000);
                let share = shares.iter().find(|(rate, _)| rate.mcs == mcs).map_or(0.0, |found| found.1);
                assert!(share > 0.6, "{control:?} at {snr_db} dB: {shares:?}");
            }
        }
    }

    /// A better signal is noticed within two seconds, with two streams as well; a worse one within one.
    #[test]
    fn minstrel_follows_the_signal() {
        let control = RateSelection::MinstrelHt;
        let rises = shares(control, 2, |ms| if ms < 1_000 { 10.0 } else { 32.0 }, 2_500);
        let (rate, _) = rises.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("it sends");
        assert_eq!(*rate, Rate { mcs: 7, streams: 2 }, "{rises:?}");
        let falls = shares(control, 2, |ms| if ms < 2_000 { 32.0 } else { 10.0 }, 2_500);
        let (rate, _) = falls.iter().max_by(|a, b| a.1.total_cmp(&b.1)).expect("it sends");
        assert_eq!(*rate, Rate { mcs: 2, streams: 2 }, "{falls:?}");
    }

    /// A table after updates in which each PPDU had `mpdus` MPDUs, all acknowledged.
    fn table(mpdus: u32, updates: u32) -> Table {
        let mut table = Table::new(HT20, 1, minstrel_ht::RULES);
        for _ in 0..updates {
            for index in 0..table.entries.len() {
                table.count(table.entries[index].rate, mpdus, mpdus);
            }
            table.update(true, |entry, new| entry.probability = [new; 2]);
        }
        table
    }

    /// The average starts at one MPDU and moves by a quarter of the difference.
    #[test]
    fn the_length_is_that_of_the_ppdus() {
        assert_eq!([0, 1, 50].map(|updates| table(1, updates).length()), [1, 1, 1]);
        assert_eq!([0, 1, 2].map(|updates| table(17, updates).length()), [1, 5, 8]);
    }

    /// By hand: contention takes 67, 139, 283, 571, 1147 and 2299 µs, and an attempt 1584 µs at MCS 0 and 255 at MCS 7, 375
    /// with RTS. The third at MCS 0 ends after 5241 µs and the fourth after 7396; the fifth at MCS 7 after 3482, with RTS 4082,
    /// and the sixth after 6036, with RTS 6756. With 28 MPDUs, not even the second ends within the segment.
    #[test]
    fn attempts_end_within_their_segment() {
        let single = table(1, 1);
        let found = [(0, false), (7, false), (7, true)].map(|(mcs, rts)| single.attempts_at(mcs, rts));
        assert_eq!(found, [3, 5, 5]);
        assert_eq!(table(28, 50).attempts_at(7, false), 2);
    }

    /// The PPDUs of a probe that fails at every rate: MCS, and whether it is a single MPDU.
    fn failing_probe(rules: Rules) -> Vec<(u8, bool)> {
        let mut table = Table { rules, ..table(1, 1) };
        let mut sent = Vec::new();
        let mut probe = Some(0);
        loop {
            let Selection { rate, longest, rts } = table.select(probe.take());
            assert_eq!(rts, !sent.is_empty());
            sent.push((rate.mcs, longest.is_zero()));
            table.count(rate, 1, 0);
            if table.begins_chain() {
                sent.dedup();
                return sent;
            }
        }
    }

    /// Linux sends a probe alone, once at its rate, and falls back over two best rates to the reliable one; ns-3 over one.
    #[test]
    fn a_probe_is_a_single_mpdu_of_a_chain() {
        assert_eq!(failing_probe(minstrel_ht::RULES), [(0, true), (6, true), (5, true), (7, true)]);
        assert_eq!(failing_probe(minstrel_ht_ewma::RULES), [(0, false), (6, false), (7, false)]);
    }

    /// With 22 % of the MPDUs, a rate with two streams gives way to one with a single stream in newer Linux only.
    #[test]
    fn streams_die_suddenly() {
        let streams = |rules, successes| {
            let mut table = Table::new(HT20, 2, rules);
            let fastest = table.entries.len() - 1;
            for index in 0..table.entries.len() {
                table.count(table.entries[index].rate, 1, 1);
            }
            table.update(true, |entry, new| entry.probability = [new; 2]);
            assert_eq!(table.best[0], fastest);
            table.count(table.entries[fastest].rate, 100, successes);
            table.entries[table.best[0]].rate.streams
        };
        for (successes, newer, older) in [(26, 2, 2), (22, 1, 2), (18, 1, 1)] {
            assert_eq!(streams(minstrel_ht::RULES, successes), newer);
            assert_eq!(streams(minstrel_ht_ewma::RULES, successes), older);
        }
    }
}
