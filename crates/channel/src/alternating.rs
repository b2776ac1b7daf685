//! Channels that alternate between a good and a bad state. A model supplies only the dwell times.

use alloc::collections::VecDeque;

use lasthop_base::{Duration, Probability, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bit_errors::FrameSurvival;
use crate::{Channel, Sojourn, State};

/// One value per state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerState<T> {
    pub(crate) good: T,
    pub(crate) bad: T,
}

impl<T: Copy> PerState<T> {
    pub(crate) fn of(&self, state: State) -> T {
        match state {
            State::Good => self.good,
            State::Bad => self.bad,
        }
    }

    fn of_mut(&mut self, state: State) -> &mut T {
        match state {
            State::Good => &mut self.good,
            State::Bad => &mut self.bad,
        }
    }

    /// A copy with `bad` as the value of the bad state.
    pub(crate) fn with_bad(self, bad: State) -> PerState<T> {
        PerState { good: self.of(bad.other()), bad: self.of(bad) }
    }
}

impl PerState<Duration> {
    /// The long-run fraction of time in the good state, for these mean dwell times.
    pub(crate) fn availability(&self) -> f64 {
        let (good, bad) = (self.good.as_secs_f64(), self.bad.as_secs_f64());
        good / (good + bad)
    }
}

/// Initial state of a random two-state channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// At the start of a good period.
    #[default]
    Good,
    /// At the start of a bad period.
    Bad,
    /// Stationary: in either state with its long-run probability.
    Stationary,
}

impl Start {
    /// Draws the initial state; `availability` is the long-run probability of the good one.
    pub(crate) fn draw(self, availability: f64, stream: &mut Stream) -> State {
        match self {
            Start::Good => State::Good,
            Start::Bad => State::Bad,
            Start::Stationary if stream.bernoulli(availability) => State::Good,
            Start::Stationary => State::Bad,
        }
    }
}

/// A channel whose dwell times come from `dwell`, called once per sojourn in chronological order.
pub(crate) struct Alternating<D> {
    dwell: D,
    frames: PerState<FrameSurvival>,
    /// Time of the latest query.
    queried: Time,
    /// The sojourn that contains this time.
    current: Sojourn,
    /// Later sojourns already drawn, up to the end of the latest frame.
    ahead: VecDeque<Sojourn>,
    /// The last sojourn drawn.
    newest: Sojourn,
}

impl<D: FnMut(State) -> Duration> Alternating<D> {
    pub(crate) fn new(start: State, rate: PerState<Probability>, mut dwell: D) -> Alternating<D> {
        let first = Sojourn { state: start, until: Time::ZERO + dwell(start) };
        Alternating {
            dwell,
            frames: PerState { good: FrameSurvival::new(rate.good), bad: FrameSurvival::new(rate.bad) },
            queried: Time::ZERO,
            current: first,
            ahead: VecDeque::new(),
            newest: first,
        }
    }

    fn draw(&mut self) -> Sojourn {
        let state = self.newest.state.other();
        self.newest = Sojourn { state, until: self.newest.until + (self.dwell)(state) };
        self.newest
    }

    fn advance(&mut self, to: Time) -> Sojourn {
        assert!(to >= self.queried, "the channel was queried for {to} after {}", self.queried);
        assert!(to < Time::NEVER, "the channel was queried for Time::NEVER");
        self.queried = to;
        while self.current.until <= to {
            self.current = match self.ahead.pop_front() {
                Some(next) => next,
                None => self.draw(),
            };
        }
        self.current
    }

    /// Calls `each` with the state and length of every part of a frame that outlasts the current sojourn, in
    /// order.
    fn parts(&mut self, start: Time, end: Time, mut each: impl FnMut(State, Duration)) {
        while self.newest.until < end {
            let next = self.draw();
            self.ahead.push_back(next);
        }
        let mut from = start;
        for sojourn in core::iter::once(&self.current).chain(&self.ahead) {
            let to = sojourn.until.min(end);
            each(sojourn.state, to.since(from));
            if to == end {
                break;
            }
            from = to;
        }
    }
}

impl<D: FnMut(State) -> Duration + Send> Channel for Alternating<D> {
    fn survival(&mut self, start: Time, end: Time, bits: u64) -> f64 {
        assert!(start <= end, "a frame ended at {end}, before its start at {start}");
        let current = self.advance(start);
        if end <= current.until {
            return self.frames.of_mut(current.state).of(bits);
        }
        let frames = self.frames;
        let bits_per_nano = bits as f64 / end.since(start).as_nanos() as f64;
        let mut log_survival = 0.0;
        self.parts(start, end, |state, length| {
            log_survival += frames.of(state).errors.log_survival(bits_per_nano * length.as_nanos() as f64);
        });
        libm::exp(log_survival)
    }

    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        assert!(start <= end, "a frame ended at {end}, before its start at {start}");
        let current = self.advance(start);
        if end <= current.until {
            each(1.0, self.frames.of(current.state).errors.rate);
            return 1.0;
        }
        let frames = self.frames;
        let whole = end.since(start).as_nanos() as f64;
        self.parts(start, end, |state, length| {
            each(length.as_nanos() as f64 / whole, frames.of(state).errors.rate);
        });
        1.0
    }

    fn sojourn(&mut self, at: Time) -> Sojourn {
        self.advance(at)
    }
}

/// Losses of whole packets by the state in which their transmission starts.
pub(crate) struct ByTime<D> {
    states: Alternating<D>,
    loss: PerState<f64>,
}

impl<D: FnMut(State) -> Duration> ByTime<D> {
    /// A channel that starts in `start`; `dwell` gives the lengths of the periods, and `loss` the losses in
    /// each state.
    pub(crate) fn new(start: State, loss: PerState<f64>, dwell: D) -> ByTime<D> {
        let none = PerState { good: Probability::default(), bad: Probability::default() };
        ByTime { states: Alternating::new(start, none, dwell), loss }
    }
}

impl<D: FnMut(State) -> Duration + Send> Channel for ByTime<D> {
    fn survival(&mut self, start: Time, _end: Time, _bits: u64) -> f64 {
        1.0 - self.loss.of(self.states.sojourn(start).state)
    }

    fn exposure(&mut self, start: Time, end: Time, each: &mut dyn FnMut(f64, Probability)) -> f64 {
        each(1.0, Probability::default());
        self.survival(start, end, 0)
    }

    fn sojourn(&mut self, at: Time) -> Sojourn {
        self.states.sojourn(at)
    }
}
