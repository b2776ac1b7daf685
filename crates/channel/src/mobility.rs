//! Movements of a mobile host between base stations, and the channel to a host that may be absent.
//!
//! An [`Itinerary`] is an iterator over the stays of the host. It depends on its parameters and its random
//! stream only, not on packets. Each direction of a link to a base station has a copy, and loses everything
//! while the host is elsewhere ([`Presence`]). The component that announces movements to the network has
//! another copy.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use lasthop_base::{Decibels, Duration, Probability, Stream, Time};

use crate::{Channel, Sojourn, State};

/// How a mobile host moves. Base stations are numbered; the host begins at number 0, or under
/// [`Strongest`](Moves::Strongest) at the strongest one.
#[derive(Clone, Debug, PartialEq)]
pub enum Moves {
    /// To the next station in order, and from the last to the first, after a constant stay.
    Periodic {
        /// Length of each stay, above zero.
        stay: Duration,
    },
    /// To any other station with equal probability, after a stay of exponentially distributed length.
    Random {
        /// Mean length of a stay, above zero.
        stay: Duration,
    },
    /// To a given station at each of these times, in ascending order.
    Timetable(Vec<(Duration, u16)>),
    /// To the station with the strongest signal.
    Strongest(Strongest),
}

/// A host on a straight road with base stations at equal distances. It drives from the first station to the
/// last one and back at constant speed. At each beacon it compares the signals, and moves to the strongest
/// station if its signal exceeds that of the current one by the hysteresis.
///
/// A signal's level falls with the distance d as d^(−exponent). Shadowing adds a normal variate in decibels,
/// independent for each station, whose correlation falls exponentially with the distance driven (M.
/// Gudmundson, "Correlation model for shadow fading in mobile radio systems", Electronics Letters 27(23),
/// 1991).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strongest {
    /// Time from one base station to the next, above zero.
    pub crossing: Duration,
    /// Path loss exponent: 2 in free space, 3 to 5 in towns.
    pub exponent: f64,
    /// Standard deviation of the shadowing.
    pub shadowing: Decibels,
    /// Time in which the correlation of the shadowing falls to 1/e, above zero.
    pub correlation: Duration,
    /// The host moves if another station's signal is stronger by at least this much.
    pub hysteresis: Decibels,
    /// Time between two comparisons, above zero.
    pub beacon: Duration,
}

/// Distance between the road and a base station, as a fraction of the distance between two stations. It keeps
/// a host that passes a station from being at distance zero.
const ROADSIDE: f64 = 0.05;

/// A stay of the host at one base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// Number of the base station.
    pub station: u16,
    /// When the host became reachable there.
    pub from: Time,
    /// When it leaves; [`Time::NEVER`] if it stays.
    pub until: Time,
}

/// The stays of a mobile host in chronological order.
#[derive(Clone, Debug)]
pub struct Itinerary {
    moves: Moves,
    stations: u16,
    gap: Duration,
    stream: Stream,
    horizon: Time,
    /// The number of past moves of the timetable, or of past beacons.
    past: usize,
    /// The shadowing of each station at the latest beacon, as standard normal variates.
    shadows: Vec<f64>,
    /// Station and start of the next stay.
    next: Option<(u16, Time)>,
}

impl Itinerary {
    /// The itinerary of a host with `stations` base stations, at least one. `gap` is the time between leaving
    /// one and being reachable at the next. Moves after `horizon` do not take place.
    pub fn new(moves: Moves, stations: u16, gap: Duration, mut stream: Stream, horizon: Time) -> Itinerary {
        let (mut first, mut shadows) = (0, Vec::new());
        if let Moves::Strongest(law) = &moves {
            shadows.extend((0..stations).map(|_| stream.normal()));
            first = law.strongest(Time::ZERO, &shadows).0;
        }
        let next = Some((first, Time::ZERO));
        Itinerary { moves, stations, gap, stream, horizon, past: 0, shadows, next }
    }

    /// The end of a stay at `station` from `from` on, and the station after it.
    fn leave(&mut self, station: u16, from: Time) -> Option<(Time, u16)> {
        if self.stations == 1 {
            return None;
        }
        let Itinerary { moves, stations, stream, past, shadows, horizon, .. } = self;
        let others = u64::from(*stations - 1);
        let (until, to) = match moves {
            Moves::Periodic { stay } => (from + *stay, (station + 1) % *stations),
            Moves::Random { stay } => {
                let until = from + stream.exponential(*stay).max(Duration::from_nanos(1));
                let other = stream.below(others) as u16;
                (until, if other < station { other } else { other + 1 })
            }
            Moves::Timetable(moves) => {
                let left = moves[*past..].iter().position(|&(_, to)| to != station)?;
                let (at, to) = moves[*past + left];
                *past += left + 1;
                ((Time::ZERO + at).max(from), to)
            }
            Moves::Strongest(law) => loop {
                *past += 1;
                let at = Time::ZERO + law.beacon * *past as u64;
                if at > *horizon {
                    return None;
                }
                law.drive(shadows, stream);
                let (best, advantage) = law.strongest_but(station, at, shadows);
                if at > from && advantage > law.hysteresis.get() {
                    break (at, best);
                }
            },
        };
        (until <= *horizon).then_some((until, to))
    }
}

impl Iterator for Itinerary {
    type Item = Stay;

    fn next(&mut self) -> Option<Stay> {
        let (station, from) = self.next.take()?;
        let left = self.leave(station, from);
        self.next = left.map(|(until, to)| (to, until + self.gap));
        Some(Stay { station, from, until: left.map_or(Time::NEVER, |(until, _)| until) })
    }
}

impl Strongest {
    /// Moves the shadowing on by one beacon: a first-order autoregression.
    fn drive(&self, shadows: &mut [f64], stream: &mut Stream) {
        let kept = libm::exp(-self.beacon.as_secs_f64() / self.correlation.as_secs_f64());
        let fresh = libm::sqrt(1.0 - kept * kept);
        shadows.iter_mut().for_each(|shadow| *shadow = kept * *shadow + fresh * stream.normal());
    }

    /// The level of a station's signal in decibels, up to a constant.
    fn level(&self, station: usize, at: Time, shadows: &[f64]) -> f64 {
        let road = (shadows.len() - 1) as f64;
        let driven = at.as_secs_f64() / self.crossing.as_secs_f64();
        // The position on a drive from the first station to the last and back.
        let lap = driven - 2.0 * road * libm::floor(driven / (2.0 * road).max(f64::MIN_POSITIVE));
        let place = if lap <= road { lap } else { 2.0 * road - lap };
        let away = libm::hypot(place - station as f64, ROADSIDE);
        -10.0 * self.exponent * libm::log10(away) + self.shadowing.get() * shadows[station]
    }

    /// The strongest station, and its level.
    fn strongest(&self, at: Time, shadows: &[f64]) -> (u16, f64) {
        let levels = (0..shadows.len()).map(|station| self.level(station, at, shadows));
        let better = |best: (u16, f64), (station, level): (u16, f64)| {
            if level > best.1 { (station, level) } else { best }
        };
        (0..).zip(levels).fold((0, f64::NEG_INFINITY), better)
    }

    /// The strongest station, and its advantage over `own` in decibels.
    fn strongest_but(&self, own: u16, at: Time, shadows: &[f64]) -> (u16, f64) {
        let (best, level) = self.strongest(at, shadows);
        (best, level - self.level(usize::from(own), at, shadows))
    }
}

/// The channel between a mobile host and one of its base stations: everything is lost while the host is
/// elsewhere. Otherwise losses are those of an inner channel.
pub struct Presence {
    station: u16,
    /// Propagation delay to the host: the host must be there while a frame arrives.
    lag: Duration,
    channel: Box<dyn Channel>,
    itinerary: Itinerary,
    /// Stays at this station that have been drawn and may still be needed.
    stays: VecDeque<Stay>,
    /// All stays before this time have been drawn.
    known: Time,
}

impl Presence {
    /// The channel to or from base station number `station`, which is `channel` while the host is there.
    /// `lag` is the propagation delay of what the host receives, and zero for what it sends.
    pub fn new(station: u16, itinerary: Itinerary, channel: Box<dyn Channel>, lag: Duration) -> Presence {
        Presence { station, lag, channel, itinerary, stays: VecDeque::new(), known: Time::ZERO }
    }

    /// Draws the next stay.
    fn look_further(&mut self) {
        let next = self.itinerary.next();
        self.known = next.map_or(Time::NEVER, |stay| stay.until);
        self.stays.extend(next.filter(|stay| stay.station == self.station));
    }

    /// The first stay that ends after `at`, if there is one that begins before `end`.
    fn stay(&mut self, at: Time, end: Time) -> Option<Stay> {
        while self.known < end || (self.known <= at && at < Time::NEVER) {
            self.look_further();
        }
        while self.stays.front().is_some_and(|stay| stay.until <= at) {
            self.stays.pop_front();
        }
        self.stays.front().copied()
    }

    /// Whether the host is there from `start` to `end`.
    fn is_there(&mut self, start: Time, end: Time) -> bool {
        let (start, end) = (start + self.lag, end + self.lag);
        self.stay(start, end).is_some_and(|stay| stay.from <= start && end <= stay.until)
    }
}

impl Channel for Presence {
    fn survival(&mut self, start: Time, end: Time, bits: u64) -> f64 {
        if self.is_there(start, end) { self.channel.survival(start, end, bits) } else { 0.0 }
    }

    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        let survival = self.channel.exposure(start, end, each);
        if self.is_there(start, end) { survival } else { 0.0 }
    }

    fn sojourn(&mut self, at: Time) -> Sojourn {
        // As the host sees it, regardless of the lag.
        match self.stay(at, at) {
            Some(stay) if stay.from <= at => {
                let Sojourn { state, until } = self.channel.sojourn(at);
                Sojourn { state, until: until.min(stay.until) }
            }
            _ => {
                while self.stays.is_empty() && self.known < Time::NEVER {
                    self.look_further();
                }
                Sojourn { state: State::Bad, until: self.stays.front().map_or(Time::NEVER, |stay| stay.from) }
            }
        }
    }
}
