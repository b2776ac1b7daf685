//! What help gains, by comparing the flows that the kernel chose for it with those that it left alone.
//!
//! ```text
//! rows ──> speed of a flow, less that of earlier flows like it ──> mean per host and ten seconds ──> confidence sequences
//!          └─ by the arm that the kernel chose, whatever became of the flow                      └─> wager on harm
//! ```
//!
//! The speed of a flow is its acknowledged bytes per second of activity; gains are ratios of geometric means, since speeds
//! differ by orders of magnitude, and twice as fast for one flow should outweigh half as fast for another. The kernel
//! chooses by a keyed hash, as if by lot. If help has no effect, each flow's term has an expectation of zero given all
//! others' speeds and times, however these depend on each other: this is what the error of the wager rests on, and nothing
//! else. If help has one, the terms estimate the mean effect on the flows observed, provided that one flow's arm does not
//! change another's speed. Flows of a host that begin within ten seconds are one observation.
//!
//! What predicts a flow's speed must not be an effect of help. The size of a flow is what was asked for, unless its end was
//! not seen: what a long flow carries in a minute is its speed. So flows whose end was not seen, and those that are long
//! enough for that, have one size.

pub mod rows;
mod sequence;
mod words;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use rows::{Arm, FlowRow, Line, Settings};
use sequence::{Sequence, Wager};
pub use words::summary;

/// How long a flow is observed, in seconds.
pub const OBSERVED_S: f64 = 60.0;

/// Flows of a host that begin within this time are one observation, in seconds.
const TOGETHER_S: f64 = 10.0;

/// How much later than its end a flow may be reported, in seconds.
const LATE_S: f64 = 5.0;

/// The probability with which an interval ever misses.
const ERROR: f64 = 0.05;

/// The fewest observations, and flows of each arm, of which an interval is stated.
const FEWEST: u64 = 50;

/// The logarithm of the largest ratio of speeds between a flow and earlier ones like it; larger ones count as 16.
const LARGEST: f64 = 4.0 * std::f64::consts::LN_2;

/// Flows like a new one that must precede it.
const FEWEST_ALIKE: f64 = 3.0;

/// Observations in whose place a mean of few ones is zero.
const FEW: f64 = 5.0;

/// Classes of flows that are told apart; others are one.
const CLASSES: usize = 16;
const OTHERS: &str = "other ports";

/// Hosts whose speeds are told apart.
const HOSTS: usize = 4096;

/// Latest flows that are kept for display.
const LATEST: usize = 30;

/// Points of the gain over time that are kept; when there are more, every other one is dropped.
const POINTS: usize = 400;

/// A range of sizes.
#[derive(Debug)]
struct Range {
    name: &'static str,
    /// The fewest bytes, and those that are too many.
    least: u64,
    below: Option<u64>,
}

/// Sizes of flows in order. The last one is also that of flows whose data were under way at the end of their observation.
const SIZES: [Range; 3] = [
    Range { name: "below 100 KB", least: 0, below: Some(SHORT) },
    Range { name: "100 KB to 1 MB", least: SHORT, below: Some(LONG) },
    Range { name: "above 1 MB", least: LONG, below: None },
];

/// The bytes below which a flow is a short one.
const SHORT: u64 = 100_000;

/// The bytes from which on sizes are not told apart.
const LONG: u64 = 1_000_000;

/// A ratio of speeds, with the interval that contains it at all times at once with 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The estimate.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper one.
    pub high: f64,
}

/// The gain of flows that are alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// The rule or port of the flows; none for all.
    pub class: Option<String>,
    /// Their size; none for all.
    pub size: Option<String>,
    /// The fewest bytes of flows of this size.
    pub least_bytes: u64,
    /// The bytes that are too many for it; none without a limit.
    pub below_bytes: Option<u64>,
    /// Flows with a speed, of both arms.
    pub flows: u64,
    /// Those that the kernel left alone.
    pub unhelped: u64,
    /// Observations: flows of a host that began within ten seconds.
    pub observations: u64,
    /// The geometric mean of the speeds of helped flows, in bits per second.
    pub helped_bps: Option<f64>,
    /// That of unhelped ones.
    pub unhelped_bps: Option<f64>,
    /// How much faster helped flows are; none while there are too few.
    pub gain: Option<Gain>,
}

/// A comparison, as far as it has come.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The verdict in a sentence.
    pub verdict: String,
    /// Since when flows are compared, in seconds since 1970.
    pub since_s: f64,
    /// Until when.
    pub until_s: f64,
    /// The scheme of helped flows.
    pub scheme: String,
    /// Whether flows are helped; otherwise both arms are left alone, and must not differ.
    pub is_helping: bool,
    /// When harm was found, in seconds since 1970.
    pub stopped_s: Option<f64>,
    /// Hosts with flows.
    pub hosts: usize,
    /// All flows, and then those of each class and size.
    pub groups: Vec<Group>,
    /// The share of helped flows that did not get through.
    pub helped_failed: Option<f64>,
    /// That of unhelped ones.
    pub unhelped_failed: Option<f64>,
    /// The probability of so much evidence of harm at any time if help has no effect.
    pub harm_error: f64,
    /// The difference between unhelped flows chosen by lot, which must be none.
    pub same: Group,
}

/// A flow that waits for the others of its time.
#[derive(Clone, Debug)]
struct Sample {
    host: IpAddr,
    class: usize,
    size: Size,
    /// The logarithm of its speed in bits per second, if it has one.
    log_speed: Option<f64>,
    arm: Arm,
    unhelped: f64,
    coin: bool,
    has_failed: bool,
}

/// What a flow was asked for, as far as that can be known whether it was helped or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Size {
    /// Bytes below [`LONG`], all of which were carried.
    Short(u64),
    /// More, or an unknown number.
    Long,
}

impl Size {
    fn of(row: &FlowRow) -> Size {
        match row.bytes() {
            bytes if bytes < LONG && !row.is_cut_off() => Size::Short(bytes),
            _ => Size::Long,
        }
    }

    /// Its index in [`SIZES`].
    fn group(self) -> usize {
        match self {
            Size::Short(bytes) => SIZES.iter().rposition(|size| bytes >= size.least).unwrap_or(0),
            Size::Long => SIZES.len() - 1,
        }
    }

    /// The binary logarithm of a short one.
    fn log2(self) -> Option<u32> {
        if let Size::Short(bytes) = self { bytes.checked_ilog2() } else { None }
    }
}

/// Sums of one group.
#[derive(Clone, Debug, Default)]
struct Sums {
    gain: Sequence,
    speeds: [Sequence; 2],
}

impl Sums {
    fn of(&self, class: Option<String>, size: Option<&Range>) -> Group {
        let [helped, unhelped] = self.speeds;
        let mean = |speeds: Sequence| (speeds.count > 0.0).then(|| speeds.mean.exp());
        let fewest = helped.count.min(unhelped.count).min(self.gain.count);
        let gain = (fewest >= FEWEST as f64).then(|| {
            let half = self.gain.half_width(ERROR);
            let [ratio, low, high] = [0.0, -half, half].map(|from| (self.gain.mean + from).exp());
            Gain { ratio, low, high }
        });
        Group {
            class,
            size: size.map(|size| size.name.to_owned()),
            least_bytes: size.map_or(0, |size| size.least),
            below_bytes: size.and_then(|size| size.below),
            flows: (helped.count + unhelped.count) as u64,
            unhelped: unhelped.count as u64,
            observations: self.gain.count as u64,
            helped_bps: mean(helped),
            unhelped_bps: mean(unhelped),
            gain,
        }
    }
}

/// The speeds of earlier flows, by which the speed of the next is predicted.
#[derive(Clone, Debug, Default)]
struct Earlier {
    /// By class and the binary logarithm of the size, none for long flows.
    alike: HashMap<(usize, Option<u32>), Sequence>,
    /// What flows of a host differ by from those.
    hosts: HashMap<IpAddr, Sequence>,
}

impl Earlier {
    fn predicted(&self, sample: &Sample) -> Option<f64> {
        let alike =
            self.alike.get(&(sample.class, sample.size.log2())).filter(|mean| mean.count >= FEWEST_ALIKE)?;
        Some(alike.mean + self.hosts.get(&sample.host).map_or(0.0, |rest| rest.shrunk(FEW)))
    }

    /// Adds a flow's speed as it would have been unhelped.
    fn add(&mut self, sample: &Sample, log_speed: f64) {
        let alike = self.alike.entry((sample.class, sample.size.log2())).or_default();
        let rest = log_speed - alike.mean;
        if alike.count >= FEWEST_ALIKE && (self.hosts.len() < HOSTS || self.hosts.contains_key(&sample.host))
        {
            self.hosts.entry(sample.host).or_default().add(rest);
        }
        alike.add(log_speed);
    }
}

/// A class and a size, each by its index; none for all.
type Key = (Option<usize>, Option<usize>);

/// A comparison of two arms.
#[derive(Clone, Debug, Default)]
struct Comparison {
    earlier: Earlier,
    groups: BTreeMap<Key, Sums>,
    failures: Sequence,
    failed: [Sequence; 2],
    slower: Wager,
    failing: Wager,
}

impl Comparison {
    /// Adds the flows that began within the same time, with the arm of each and the share of the first arm.
    fn add(&mut self, samples: &[Sample], arm: impl Fn(&Sample) -> (Arm, f64)) {
        let all = (None, None);
        let effect = self.groups.get(&all).map_or(0.0, |sums| sums.gain.shrunk(FEWEST as f64));
        let effect = effect.clamp(-LARGEST, LARGEST);
        let usual = self.failures.shrunk(FEW);
        let mut means: BTreeMap<(Key, IpAddr), Sequence> = BTreeMap::new();
        let mut failing: BTreeMap<IpAddr, Sequence> = BTreeMap::new();
        let mut bound: f64 = 0.0;
        for sample in samples {
            let (arm, unhelped) = arm(sample);
            // Weighted so that the expectation over the lot is the difference between helped and unhelped.
            let weighted = |helped: f64, other: f64| match arm {
                Arm::Helped => helped / (1.0 - unhelped),
                Arm::Unhelped => -other / unhelped,
            };
            bound = bound.max(1.0 / unhelped.min(1.0 - unhelped));
            let failed = f64::from(u8::from(sample.has_failed));
            failing.entry(sample.host).or_default().add(weighted(failed - usual, failed - usual));
            self.failed[arm as usize].add(failed);
            self.failures.add(failed);
            let Some(log_speed) = sample.log_speed else { continue };
            let size = Some(sample.size.group());
            let groups = [all, (Some(sample.class), None), (None, size), (Some(sample.class), size)];
            for group in groups {
                self.groups.entry(group).or_default().speeds[arm as usize].add(log_speed);
            }
            let Some(predicted) = self.earlier.predicted(sample) else { continue };
            let rest = (log_speed - predicted).clamp(-LARGEST, LARGEST);
            let term = effect + weighted(rest - effect, rest);
            for group in groups {
                means.entry((group, sample.host)).or_default().add(term);
            }
        }
        for ((group, _), mean) in means {
            self.groups.entry(group).or_default().gain.add(mean.mean);
            if group == all {
                self.slower.add(mean.mean, 3.0 * LARGEST * bound);
            }
        }
        for mean in failing.into_values() {
            self.failing.add(-mean.mean, bound);
        }
        // Only now, so that flows of one time do not predict each other.
        for sample in samples {
            if let Some(log_speed) = sample.log_speed {
                let gained = if arm(sample).0 == Arm::Helped { effect } else { 0.0 };
                self.earlier.add(sample, log_speed - gained);
            }
        }
    }

    /// The capital of the wager that helped flows are slower or fail more often.
    fn harm(&self) -> f64 {
        f64::midpoint(self.slower.capital(), self.failing.capital())
    }

    fn group(&self, key: Key, classes: &[String]) -> Group {
        let sums = self.groups.get(&key).cloned().unwrap_or_default();
        sums.of(key.0.and_then(|class| classes.get(class).cloned()), key.1.map(|size| &SIZES[size]))
    }
}

/// The evidence so far.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    settings: Settings,
    stopped_s: Option<f64>,
    classes: Vec<String>,
    /// Flows by the ten seconds in which they began.
    waiting: BTreeMap<u64, Vec<Sample>>,
    /// The first of these times that is still open.
    open: u64,
    until_s: f64,
    hosts: HashSet<IpAddr>,
    main: Comparison,
    same: Comparison,
    /// The time, the gain and its interval.
    history: Vec<(f64, Gain)>,
    latest: VecDeque<FlowRow>,
}

impl Evidence {
    /// Reads the lines of a file.
    ///
    /// # Errors
    /// If there is no such file, or it cannot be read.
    pub fn read(path: &std::path::Path) -> std::io::Result<Evidence> {
        let mut evidence = Evidence::default();
        rows::read(path, |line| evidence.add(line))?;
        Ok(evidence)
    }

    /// Adds a line.
    pub fn add(&mut self, line: &Line) {
        match line {
            Line::Start(settings) => {
                let (own, other) = (&self.settings, settings);
                if (&own.scheme, own.is_helping, &own.keys) != (&other.scheme, other.is_helping, &other.keys)
                {
                    self.begin(settings);
                }
            }
            Line::Reload(settings) => self.begin(settings),
            Line::Clock(settings) => {
                let stopped_s = self.stopped_s;
                self.begin(settings);
                self.stopped_s = stopped_s;
            }
            Line::Stop { time_s } => self.stopped_s = Some(*time_s),
            Line::Flow(row) => self.add_flow(row),
        }
    }

    fn begin(&mut self, settings: &Settings) {
        let latest = std::mem::take(&mut self.latest);
        *self =
            Evidence { settings: settings.clone(), until_s: settings.time_s, latest, ..Evidence::default() };
    }

    fn add_flow(&mut self, row: &FlowRow) {
        self.latest.push_front(row.clone());
        self.latest.truncate(LATEST);
        self.advance(row.ended_s);
        let time = (row.began_s / TOGETHER_S) as u64;
        // A flow that began before what it would get was settled tells nothing of it.
        let is_before = row.began_s < self.settings.time_s || time < self.open;
        let is_by_lot = row.unhelped > 0.0 && row.unhelped < 1.0;
        if is_before || !is_by_lot || self.stopped_s.is_some() {
            return;
        }
        let class = match self.classes.iter().position(|class| *class == row.class) {
            Some(known) => known,
            None if self.classes.len() < CLASSES => {
                let is_last = self.classes.len() == CLASSES - 1;
                self.classes.push(if is_last { OTHERS.to_owned() } else { row.class.clone() });
                self.classes.len() - 1
            }
            None => CLASSES - 1,
        };
        let speed = row.active_s.map(|active_s| row.bytes() as f64 * 8.0 / active_s);
        let host = row.host();
        if self.hosts.len() < HOSTS {
            self.hosts.insert(host);
        }
        self.waiting.entry(time).or_default().push(Sample {
            host,
            class,
            size: Size::of(row),
            log_speed: speed.filter(|speed| speed.is_finite() && *speed > 0.0).map(f64::ln),
            arm: row.arm,
            unhelped: row.unhelped,
            coin: row.coin,
            has_failed: row.has_failed(),
        });
    }

    /// Takes into account that it is `now_s`: flows are compared when all that began at their time have been observed.
    pub fn advance(&mut self, now_s: f64) {
        self.until_s = self.until_s.max(now_s);
        let last = ((self.until_s - OBSERVED_S - LATE_S) / TOGETHER_S) as u64;
        self.open = self.open.max(last);
        while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() < last) {
            let samples = entry.remove();
            self.main.add(&samples, |sample| (sample.arm, sample.unhelped));
            let alone: Vec<_> = samples.into_iter().filter(|sample| sample.arm == Arm::Unhelped).collect();
            self.same.add(&alone, |sample| (if sample.coin { Arm::Helped } else { Arm::Unhelped }, 0.5));
            if let Some(gain) = self.main.group((None, None), &[]).gain {
                self.history.push((self.until_s, gain));
                if self.history.len() > POINTS {
                    let mut is_kept = false;
                    self.history.retain(|_| {
                        is_kept = !is_kept;
                        is_kept
                    });
                }
            }
        }
    }

    /// Whether there is so much evidence of harm that help without any effect would ever give as much with a probability of at
    /// most `error`.
    pub fn shows_harm(&self, error: f64) -> bool {
        error > 0.0 && self.stopped_s.is_none() && self.settings.is_helping && self.main.harm() >= 1.0 / error
    }

    /// When harm was found, in seconds since 1970.
    pub fn stopped_s(&self) -> Option<f64> {
        self.stopped_s
    }

    /// The gain over time: each time in seconds since 1970, the ratio, and the ends of its interval.
    pub fn history(&self) -> Vec<[f64; 4]> {
        self.history
            .iter()
            .map(|(time_s, Gain { ratio, low, high })| [*time_s, *ratio, *low, *high])
            .collect()
    }

    /// The latest flows, the last one first.
    pub fn latest(&self) -> impl Iterator<Item = &FlowRow> {
        self.latest.iter()
    }

    /// The comparison so far.
    pub fn report(&self) -> Report {
        let group = |key: &Key| self.main.group(*key, &self.classes);
        let all = (None, None);
        let others = self.main.groups.keys().filter(|key| self.is_distinct(**key));
        let groups: Vec<Group> = std::iter::once(&all).chain(others).map(group).collect();
        let [helped_failed, unhelped_failed] =
            self.main.failed.map(|failed| (failed.count > 0.0).then_some(failed.mean));
        let mut report = Report {
            verdict: String::new(),
            since_s: self.settings.time_s,
            until_s: self.until_s,
            scheme: self.settings.scheme.clone(),
            is_helping: self.settings.is_helping,
            stopped_s: self.stopped_s,
            hosts: self.hosts.len(),
            groups,
            helped_failed,
            unhelped_failed,
            harm_error: (1.0 / self.main.harm()).min(1.0),
            same: self.same.group(all, &[]),
        };
        report.verdict = words::verdict(&report);
        report
    }

    /// Whether a group is neither all flows nor the same as a wider one.
    fn is_distinct(&self, (class, size): Key) -> bool {
        let of =
            |key| self.main.groups.get(&key).map_or(0.0, |sums| sums.speeds[0].count + sums.speeds[1].count);
        let has_classes = self.classes.len() > 1;
        match (class, size) {
            (None, None) => false,
            (None, Some(_)) => of((None, size)) < of((None, None)),
            (Some(_), None) => has_classes,
            (Some(_), Some(_)) => has_classes && of((class, size)) < of((class, None)),
        }
    }
}
