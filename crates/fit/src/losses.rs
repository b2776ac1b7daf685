//! Measured losses: the result of each probe, or counts for each interval.

use core::fmt;

use lasthop_base::Stream;

use crate::model::{Model, Trajectory};

/// Intervals are over the same time if their ends differ by less than this share of their length.
const SAME: f64 = 0.01;

/// A record of losses in time order.
#[derive(Clone, Debug, PartialEq)]
pub struct Losses {
    /// Times of probes, or starts of intervals, in seconds from the first one.
    pub(crate) times: Vec<f64>,
    pub(crate) outcomes: Outcomes,
    /// Whether each interval counts the packets up to the last arrival in it, at a constant rate.
    pub(crate) until_arrival: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcomes {
    /// Whether each probe was lost.
    Probes(Vec<bool>),
    /// For each interval: (length in seconds, packets sent, packets lost). Packets are evenly spaced. Only a record up to
    /// arrivals has intervals without packets.
    Counts(Vec<(f64, u32, u32)>),
}

/// Why a record of losses cannot be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// There are fewer than two probes or intervals.
    Short,
    /// The lists differ in length.
    Uneven,
    /// The time at this index is not finite, or earlier than the previous one.
    Disorder(usize),
    /// The midpoint of the interval at this index is earlier than that of the previous one.
    Overlap(usize),
    /// At this index, more packets were lost than sent, no packets or too many were sent, or the length is not positive.
    Count(usize),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unusable::Short => f.write_str("found fewer than two probes, expected at least two"),
            Unusable::Uneven => {
                f.write_str("found lists of different lengths, expected a result for each time")
            }
            Unusable::Disorder(index) => {
                write!(f, "found a time out of order at index {index}, expected finite times in order")
            }
            Unusable::Overlap(index) => {
                write!(
                    f,
                    "found an interval within an earlier one at index {index}, expected one after the other"
                )
            }
            Unusable::Count(index) => write!(
                f,
                "found an impossible count at index {index}, expected packets sent, at most as many lost, and a length \
                 above zero"
            ),
        }
    }
}

impl core::error::Error for Unusable {}

impl Losses {
    /// The record of probes sent at `times` in seconds, with the lost ones marked by `lost`.
    ///
    /// # Errors
    /// If the lists differ in length, are too short, or times are not finite and in order.
    pub fn of_probes(times: Vec<f64>, lost: Vec<bool>) -> Result<Losses, Unusable> {
        if times.len() != lost.len() {
            return Err(Unusable::Uneven);
        }
        Losses::new(times, Outcomes::Probes(lost))
    }

    /// The record of packets counted per interval: `times` are the starts in seconds, `counts` the length in
    /// seconds, packets sent and packets lost. Packets are assumed to be evenly spaced from the start of the interval.
    /// Leave out intervals without packets. Intervals over the same time, such as those of parallel streams, are added up.
    ///
    /// # Errors
    /// As [`Losses::of_probes`], and if the counts of an interval are impossible, or it lies within an earlier one.
    pub fn of_counts(times: Vec<f64>, counts: Vec<(f64, u32, u32)>) -> Result<Losses, Unusable> {
        if times.len() != counts.len() {
            return Err(Unusable::Uneven);
        }
        let impossible = |&(length, sent, lost): &(f64, u32, u32)| {
            sent == 0 || lost > sent || !length.is_finite() || length <= 0.0
        };
        if let Some(index) = counts.iter().position(impossible) {
            return Err(Unusable::Count(index));
        }
        let (mut begins, mut sums): (Vec<f64>, Vec<(f64, u32, u32)>) = (Vec::new(), Vec::new());
        for (index, (&begin, &(length, sent, lost))) in times.iter().zip(&counts).enumerate() {
            if let (Some(&last), Some(sum)) = (begins.last(), sums.last_mut()) {
                let close = SAME * sum.0;
                if (begin - last).abs() <= close && (length - sum.0).abs() <= close {
                    // A sum would hide impossible counts.
                    let all = sum.1.checked_add(sent).zip(sum.2.checked_add(lost)).filter(|_| lost <= sent);
                    let (all_sent, all_lost) = all.ok_or(Unusable::Count(index))?;
                    *sum = (sum.0, all_sent, all_lost);
                    continue;
                }
                if begin + length / 2.0 < last + sum.0 / 2.0 {
                    return Err(Unusable::Overlap(index));
                }
            }
            begins.push(begin);
            sums.push((length, sent, lost));
        }
        Losses::new(begins, Outcomes::Counts(sums))
    }

    /// The record of a receiver which notices losses only by the next arrival, of packets at a constant rate: each interval
    /// counts the packets from the last arrival before it to the last arrival in it.
    pub fn until_arrivals(self) -> Losses {
        let Outcomes::Counts(counts) = &self.outcomes else { return self };
        let (mut times, mut all) = (Vec::new(), Vec::new());
        let mut end = 0.0;
        for (&begin, &count) in self.times.iter().zip(counts) {
            // Nothing arrived in an interval that was left out.
            if begin > end + count.0 / 2.0 {
                times.push(end);
                all.push((begin - end, 0, 0));
            }
            times.push(begin);
            all.push(count);
            end = begin + count.0;
        }
        Losses { times, outcomes: Outcomes::Counts(all), until_arrival: true }
    }

    fn new(mut times: Vec<f64>, outcomes: Outcomes) -> Result<Losses, Unusable> {
        if times.len() < 2 {
            return Err(Unusable::Short);
        }
        let first = times[0];
        for index in 0..times.len() {
            let ordered = index == 0 || times[index] >= times[index - 1];
            if !times[index].is_finite() || !ordered {
                return Err(Unusable::Disorder(index));
            }
        }
        times.iter_mut().for_each(|time| *time -= first);
        Ok(Losses { times, outcomes, until_arrival: false })
    }

    /// The number of probes or intervals.
    pub(crate) fn len(&self) -> usize {
        self.times.len()
    }

    /// Seconds from the first probe to the last, or to the end of the last interval.
    pub fn duration_s(&self) -> f64 {
        match &self.outcomes {
            Outcomes::Probes(_) => self.times[self.times.len() - 1],
            Outcomes::Counts(counts) => self
                .times
                .iter()
                .zip(counts)
                .map(|(&begin, &(length, ..))| begin + length)
                .fold(0.0, f64::max),
        }
    }

    /// Numbers of packets sent and lost.
    pub fn sent_and_lost(&self) -> (u64, u64) {
        match &self.outcomes {
            Outcomes::Probes(lost) => (lost.len() as u64, lost.iter().filter(|&&lost| lost).count() as u64),
            Outcomes::Counts(counts) => {
                counts.iter().fold((0, 0), |(all_sent, all_lost), &(_, sent, lost)| {
                    (all_sent + u64::from(sent), all_lost + u64::from(lost))
                })
            }
        }
    }

    /// Whether each probe was lost; `None` for a record of intervals.
    pub fn outcomes(&self) -> Option<&[bool]> {
        match &self.outcomes {
            Outcomes::Probes(lost) => Some(lost),
            Outcomes::Counts(_) => None,
        }
    }

    /// The median time between probes, or between packets of the intervals.
    pub fn spacing_s(&self) -> f64 {
        median(match &self.outcomes {
            Outcomes::Probes(_) => self.times.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            Outcomes::Counts(counts) => {
                counts.iter().map(|&(length, sent, _)| length / f64::from(sent)).collect()
            }
        })
    }

    /// The median time between probes, or length of intervals.
    pub(crate) fn resolution_s(&self) -> f64 {
        match &self.outcomes {
            Outcomes::Probes(_) => self.spacing_s(),
            Outcomes::Counts(counts) => median(counts.iter().map(|&(length, ..)| length).collect()),
        }
    }

    /// The variance of the losses of intervals over that of independent losses; one for probes.
    pub(crate) fn dispersion(&self) -> f64 {
        let Outcomes::Counts(counts) = &self.outcomes else { return 1.0 };
        let (sent, lost) = self.sent_and_lost();
        let share = lost as f64 / sent as f64;
        let squares = counts.iter().map(|&(_, sent, lost)| {
            let apart = f64::from(lost) - share * f64::from(sent);
            apart * apart
        });
        squares.sum::<f64>() / (sent as f64 * share * (1.0 - share))
    }

    /// The packets lost in each interval; empty for probes.
    #[cfg(test)]
    pub(crate) fn lost_of_intervals(&self) -> Vec<u32> {
        match &self.outcomes {
            Outcomes::Probes(_) => Vec::new(),
            Outcomes::Counts(counts) => counts.iter().map(|&(.., lost)| lost).collect(),
        }
    }

    /// Simulates probes at `times` over a channel with the given model.
    ///
    /// # Errors
    /// As [`Losses::of_probes`].
    pub fn of_model(times: Vec<f64>, model: &Model, stream: &mut Stream) -> Result<Losses, Unusable> {
        let none = vec![false; times.len()];
        Ok(Losses::of_probes(times, none)?.simulate(model, stream))
    }

    /// Simulates the same probes over a channel with the given model.
    pub(crate) fn simulate(&self, model: &Model, stream: &mut Stream) -> Losses {
        let mut states = Trajectory::new(model, stream);
        let outcomes = match &self.outcomes {
            Outcomes::Probes(_) => {
                Outcomes::Probes(self.times.iter().map(|&time| states.loses(time)).collect())
            }
            Outcomes::Counts(counts) => {
                let spacing = self.spacing_s();
                // Packets since the last arrival, and the time of the next one.
                let (mut pending, mut next) = (0, 0.0);
                let again = self.times.iter().zip(counts).map(|(&begin, &(length, sent, _))| {
                    if !self.until_arrival {
                        let between = length / f64::from(sent);
                        let lost =
                            (0..sent).filter(|&k| states.loses(begin + f64::from(k) * between)).count();
                        return (length, sent, lost as u32);
                    }
                    let (mut sent, mut lost) = (0, 0);
                    while next < begin + length - spacing / 2.0 {
                        pending += 1;
                        if !states.loses(next) {
                            sent += pending;
                            lost += pending - 1;
                            pending = 0;
                        }
                        next += spacing;
                    }
                    (length, sent, lost)
                });
                Outcomes::Counts(again.collect())
            }
        };
        Losses { times: self.times.clone(), outcomes, ..*self }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
