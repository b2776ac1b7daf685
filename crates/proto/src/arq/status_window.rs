//! Window ARQ with status messages, each of which acknowledges several units.
//!
//! *What it does.* Units are sent in order within a window of unreported units. The receiving end does not
//! acknowledge each unit, but sends status messages with the units that have arrived. Units reported as
//! missing are retransmitted before new ones, in the order of their transmission. When the last permitted
//! attempt of a unit has failed, its whole packet is discarded, as with [selective
//! repeat](super::selective_repeat).
//!
//! Status messages are sent in two ways ([`Reports`]):
//! - *events*: one after a number of arrivals. After a timeout without transmissions, the sending end polls,
//!   and the response reports all unreported units. Only the sending end has timers.
//! - *periodic*: one at each multiple of a period. Units after the last arrival are reported as missing if
//!   the status has not changed for a period. Only the receiving end has timers.
//!
//! After a status message with losses, the sending end [requests the link's code](super::Form), until one
//! without losses.
//!
//! *Source.* Ayanoglu, Paul, LaPorta, Sabnani and Gitlin: "AIRMAIL: A link-layer protocol for wireless
//! networks", Wireless Networks 1, 1995, with events towards the mobile host and periods from the mobile
//! host.
//!
//! *Parameters.* See [`Params`].
//!
//! *Differences from the paper.* Status messages and polls have a constant delay, are never lost, and use no
//! air time. The window counts unreported and missing units; the span of their numbers is not limited.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use lasthop_base::{Duration, Invalid, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arq, Attempt, Form, Next, Protocol, Retransmissions, Statuses, Verdict};

/// The receiving end acknowledges several units in one status message. Units are sent in order within a
/// window of unreported or missing units. Units reported as missing are retransmitted before new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "StatusWindow")]
pub struct Params {
    /// Maximum number of retransmissions of a unit; then the whole packet is discarded.
    pub retransmissions: Retransmissions,
    /// Maximum number of unreported or missing units.
    #[schemars(range(min = 1))]
    pub window: u32,
    /// When the receiving end sends a status message. By default after every eight arrivals.
    pub reports: Reports,
    /// Delay of a status message or poll. Neither is lost or uses air time.
    pub report_delay: Duration,
    /// With `reports.every`: time without transmissions after which the sending end polls for unreported
    /// units.
    pub timeout: Duration,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            retransmissions: Retransmissions::Unlimited,
            window: 32,
            reports: Reports::Every(8),
            report_delay: Duration::from_millis(20),
            timeout: Duration::from_millis(100),
        }
    }
}

impl Protocol for Params {
    /// # Errors
    /// If the window, the number of arrivals or the period is zero, or if the window is smaller than the number of
    /// arrivals.
    fn validate(&self) -> Result<(), Invalid> {
        let invalid = |field, problem| Err(Invalid { field, problem });
        match self.reports {
            _ if self.window == 0 => invalid("window", "found 0 units, expected at least 1"),
            Reports::Every(0) => invalid("reports.every", "found 0 units, expected at least 1"),
            Reports::Every(units) if units > self.window => {
                invalid("reports.every", "found more units than the window has, expected at most as many")
            }
            Reports::Period(Duration::ZERO) => invalid("reports.period", "found 0 s, expected more"),
            Reports::Every(_) | Reports::Period(_) => Ok(()),
        }
    }

    fn build(&self, _backoff: Stream) -> Box<dyn Arq> {
        Box::new(StatusWindow::new(*self))
    }

    fn retries(&self) -> (Retransmissions, Duration) {
        (self.retransmissions, self.report_delay)
    }
}

/// The occasions for status messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reports {
    /// After this many arrivals since the last status message.
    Every(u32),
    /// At multiples of this period.
    Period(Duration),
}

/// The sending end: unreported and missing units in the order of their last attempts, then new units.
#[derive(Clone, Debug)]
pub struct StatusWindow {
    params: Params,
    /// The packet that started last, the only one with unsent units.
    packet: u64,
    units: u32,
    /// Its first unsent unit; `units` if all were sent.
    fresh: u32,
    /// Finished attempts, oldest first. The sending end knows the outcomes from the front: `known_at`
    /// increases.
    sent: VecDeque<Sent>,
    /// Arrivals since the last status message, for event reports.
    arrived: u32,
    /// End of the last attempt.
    ended: Time,
    /// Whether the sending end polls after a time without reports instead of one without transmissions.
    has_checkpoints: bool,
    /// With checkpoints: start of the time without reports.
    silent_since: Time,
    /// With periodic reports: time of the last status message that changes the state.
    last_tick: Time,
    /// Status messages that have not been [taken](Statuses::take_messages).
    messages: u64,
    /// Whether the last status message received by the sending end reports losses.
    is_lossy: bool,
}

/// A finished attempt.
#[derive(Clone, Copy, Debug)]
struct Sent {
    attempt: Attempt,
    arrived: bool,
    /// When the sending end knows the outcome; [`Time::NEVER`] until a status message reports it.
    known_at: Time,
    /// Whether the sending end knows the outcome.
    is_known: bool,
}

impl StatusWindow {
    /// Nothing to send.
    ///
    /// # Panics
    /// If the parameters are not [valid](Params::validate).
    pub fn new(params: Params) -> StatusWindow {
        if let Err(invalid) = params.validate() {
            panic!("{invalid}");
        }
        StatusWindow {
            params,
            packet: 0,
            units: 0,
            fresh: 0,
            sent: VecDeque::new(),
            arrived: 0,
            ended: Time::ZERO,
            has_checkpoints: false,
            silent_since: Time::ZERO,
            last_tick: Time::ZERO,
            messages: 0,
            is_lossy: false,
        }
    }

    /// The sending end polls when attempts have been unreported for the timeout, although it transmits (a checkpoint).
    pub(super) fn with_checkpoints(self) -> StatusWindow {
        StatusWindow { has_checkpoints: true, ..self }
    }

    /// When the sending end polls if it stays idle; [`Time::NEVER`] with periodic reports.
    fn polls_at(&self) -> Time {
        match self.params.reports {
            Reports::Every(_) if self.has_checkpoints => self.silent_since + self.params.timeout,
            Reports::Every(_) => self.ended + self.params.timeout,
            Reports::Period(_) => Time::NEVER,
        }
    }

    /// When the sending end knows the outcome of an attempt if it stays idle.
    fn known_at(&self, sent: &Sent) -> Time {
        match sent.known_at {
            Time::NEVER => self.polls_at() + self.params.report_delay + self.params.report_delay,
            known_at => known_at,
        }
    }

    /// The first multiple of the period from `time` on.
    fn tick(time: Time, period: Duration) -> Time {
        let tick = time.as_nanos().checked_next_multiple_of(period.as_nanos());
        tick.map_or(Time::NEVER, Time::from_nanos)
    }

    /// Reports all unreported units; the sending end knows them at `known_at` or earlier.
    fn report(&mut self, known_at: Time) {
        self.silent_since = known_at;
        for sent in self.sent.iter_mut().rev().take_while(|sent| sent.known_at > known_at) {
            sent.known_at = known_at;
        }
    }

    /// Processes the end of the last attempt in `sent` at the receiving end.
    fn receive(&mut self, now: Time, arrived: bool) {
        match self.params.reports {
            Reports::Every(units) => {
                self.arrived += u32::from(arrived);
                if self.arrived == units {
                    self.arrived = 0;
                    self.messages += 1;
                    self.report(now + self.params.report_delay);
                }
            }
            Reports::Period(period) => {
                let tick = StatusWindow::tick(now, period);
                // An arrival is in the next status message, a loss in the one after it.
                let reported = if arrived { tick } else { tick + period };
                for tick in [tick, reported] {
                    self.messages += u64::from(tick > self.last_tick);
                    self.last_tick = self.last_tick.max(tick);
                }
                self.report(reported + self.params.report_delay);
            }
        }
    }

    /// Polls for unreported units if the timeout has passed before the attempt that starts at `now`.
    pub(super) fn poll(&mut self, now: Time) {
        if self.polls_at() <= now && self.sent.back().is_some_and(|sent| sent.known_at == Time::NEVER) {
            self.messages += 1;
            self.arrived = 0;
            self.report(self.polls_at() + self.params.report_delay + self.params.report_delay);
        }
    }

    /// Processes what the sending end knows by `now`; calls `learned` for each attempt whose outcome it did not know
    /// before, in the order of the attempts.
    pub(super) fn learn(&mut self, now: Time, mut learned: impl FnMut(Attempt, bool)) {
        let mut last = Time::ZERO;
        for sent in self.sent.iter_mut().take_while(|sent| sent.known_at <= now) {
            if !sent.is_known {
                self.is_lossy = !sent.arrived || (self.is_lossy && sent.known_at == last);
                (sent.is_known, last) = (true, sent.known_at);
                learned(sent.attempt, sent.arrived);
            }
        }
        while self.sent.front().is_some_and(|sent| sent.is_known && sent.arrived) {
            self.sent.pop_front();
        }
    }

    /// Whether the last status message that the sending end knows reports losses.
    pub(super) fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// Forgets a packet that is given up.
    pub(super) fn give_up(&mut self, packet: u64) {
        self.sent.retain(|sent| sent.attempt.packet != packet);
        if self.packet == packet {
            self.fresh = self.units;
        }
    }
}

impl Arq for StatusWindow {
    fn begin(&mut self, packet: u64, units: u32) {
        (self.packet, self.units, self.fresh) = (packet, units, 0);
    }

    fn next(&self, now: Time, backlog: bool) -> Next {
        let is_known = |sent: &&Sent| self.known_at(sent) <= now;
        let known = self.sent.iter().take_while(is_known);
        if let Some(lost) = known.clone().find(|sent| !sent.arrived) {
            return Next::Send(Attempt { number: lost.attempt.number + 1, ..lost.attempt });
        }
        // All reported units have arrived; the units behind them are unreported.
        let mut unknown = self.sent.iter().skip(known.count());
        let is_full = unknown.len() >= self.params.window as usize;
        if !is_full && self.fresh < self.units {
            return Next::Send(Attempt { packet: self.packet, unit: self.fresh, number: 1 });
        }
        if !is_full && backlog && self.fresh == self.units {
            return Next::Begin;
        }
        let news = unknown.find(|sent| is_full || !sent.arrived);
        Next::Wait(news.map_or(Time::NEVER, |sent| self.known_at(sent)))
    }

    fn ended(&mut self, now: Time, attempt: Attempt, arrived: bool) -> Verdict {
        if attempt.number == 1 {
            self.fresh += 1;
        } else {
            let is_before = |sent: &Sent| {
                (sent.attempt.packet, sent.attempt.unit) == (attempt.packet, attempt.unit) && !sent.arrived
            };
            let before = self.sent.iter().position(is_before).expect("an attempt that has failed");
            self.sent.remove(before);
        }
        self.ended = now;
        if self.sent.back().is_none_or(|last| last.known_at != Time::NEVER) {
            self.silent_since = self.silent_since.max(now);
        }
        self.sent.push_back(Sent { attempt, arrived, known_at: Time::NEVER, is_known: false });
        self.receive(now, arrived);
        if arrived {
            return Verdict::Delivered;
        }
        if !self.params.retransmissions.allow_after(attempt.number) {
            self.give_up(attempt.packet);
            return Verdict::GiveUp;
        }
        Verdict::Again
    }

    fn give_up_all(&mut self) {
        self.sent.clear();
        self.fresh = self.units;
        self.arrived = 0;
    }

    fn statuses(&mut self) -> Option<&mut dyn Statuses> {
        Some(self)
    }
}

impl Statuses for StatusWindow {
    fn start(&mut self, now: Time) -> Form {
        self.poll(now);
        self.learn(now, |_, _| {});
        Form { is_coded: self.is_lossy, frame: None }
    }

    fn take_messages(&mut self) -> u64 {
        core::mem::take(&mut self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use lasthop_base::{Stream, Streams};

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn at(time: u64) -> Time {
        Time::ZERO + ms(time)
    }

    /// A window of four units; status messages take 20 ms, and the timeout is 100 ms.
    fn arq(reports: Reports) -> StatusWindow {
        StatusWindow::new(Params { window: 4, reports, ..Params::default() })
    }

    fn attempt(unit: u32, number: u32) -> Attempt {
        Attempt { packet: 0, unit, number }
    }

    /// Sends the unit that the ARQ selects at `start`; the attempt ends at `end`.
    fn send(arq: &mut StatusWindow, (start, end): (u64, u64), sent: Attempt, arrived: bool) -> Verdict {
        assert_eq!(arq.next(at(start), true), Next::Send(sent));
        arq.start(at(start));
        arq.ended(at(end), sent, arrived)
    }

    #[test]
    fn a_status_message_reports_several_units_and_what_is_missing_goes_first() {
        let mut arq = arq(Reports::Every(3));
        assert_eq!(arq.next(at(0), true), Next::Begin);
        arq.begin(0, 9);
        assert_eq!(send(&mut arq, (0, 10), attempt(0, 1), true), Verdict::Delivered);
        assert_eq!(send(&mut arq, (10, 20), attempt(1, 1), false), Verdict::Again);
        send(&mut arq, (20, 30), attempt(2, 1), true);
        assert_eq!(arq.take_messages(), 0);
        send(&mut arq, (30, 40), attempt(3, 1), true);
        assert_eq!(arq.take_messages(), 1);
        // The window is full until the status message arrives.
        assert_eq!(arq.next(at(40), true), Next::Wait(at(60)));
        send(&mut arq, (60, 70), attempt(1, 2), true);
        for (start, unit) in [(70, 4), (80, 5)] {
            send(&mut arq, (start, start + 10), attempt(unit, 1), true);
        }
        assert_eq!(arq.take_messages(), 1);
        send(&mut arq, (90, 100), attempt(6, 1), true);
        assert_eq!(arq.next(at(100), true), Next::Wait(at(110)));
    }

    /// With a window of W units of t each, and a status message for n of them that takes d, n units leave in
    /// each max(n t, (2 n - W) t + d).
    #[test]
    fn throughput_without_losses_is_that_of_its_rounds() {
        for (window, every) in [(4, 4), (3, 2), (4, 3), (4, 2), (8, 4), (3, 1), (1, 1), (12, 12)] {
            let params = Params { window, reports: Reports::Every(every), ..Params::default() };
            let offered = [Offered { arrival: 0, units: alloc::vec![10; 2000] }];
            let found = history(params, &offered, &mut Streams::new(1, 0).stream("none"), 0.0);
            let count = found.iter().filter(|(start, ..)| *start < 12_000).count() as f64;
            let (w, n) = (f64::from(window), f64::from(every));
            let expected = 12_000.0 * n / (n * 10.0).max((2.0 * n - w) * 10.0 + 20.0);
            assert!((count - expected).abs() <= w, "{window}, {every}: {count} units, expected {expected}");
        }
    }

    /// The base station's timer: it polls 100 ms after the end of the last unit, and has the response 40 ms
    /// later.
    #[test]
    fn an_idle_sender_asks_for_what_nobody_reports() {
        let mut arq = arq(Reports::Every(4));
        arq.begin(0, 2);
        send(&mut arq, (0, 10), attempt(0, 1), true);
        send(&mut arq, (10, 20), attempt(1, 1), false);
        assert_eq!(arq.next(at(20), false), Next::Wait(at(160)));
        send(&mut arq, (160, 170), attempt(1, 2), false);
        assert_eq!(arq.take_messages(), 1);
        // A packet that arrives during the poll does not delay the response.
        arq.begin(1, 1);
        send(&mut arq, (280, 290), Attempt { packet: 1, unit: 0, number: 1 }, true);
        assert_eq!((arq.next(at(290), false), arq.take_messages()), (Next::Wait(at(310)), 1));
        send(&mut arq, (310, 320), attempt(1, 3), true);
        assert_eq!(arq.next(at(320), false), Next::Wait(Time::NEVER));
    }

    #[test]
    fn periods_report_a_gap_at_once_and_a_missing_end_one_period_later() {
        let mut arq = arq(Reports::Period(ms(50)));
        arq.begin(0, 3);
        send(&mut arq, (0, 10), attempt(0, 1), false);
        assert_eq!(arq.next(at(10), false), Next::Send(attempt(1, 1)));
        send(&mut arq, (10, 20), attempt(1, 1), true);
        send(&mut arq, (20, 30), attempt(2, 1), false);
        // The message at 50 ms reports the gap, the one at 100 ms that no units arrived after unit 1.
        assert_eq!(arq.next(at(30), false), Next::Wait(at(70)));
        send(&mut arq, (70, 80), attempt(0, 2), false);
        assert_eq!(arq.next(at(80), false), Next::Wait(at(120)));
        send(&mut arq, (120, 130), attempt(2, 2), true);
        assert_eq!(arq.next(at(130), false), Next::Wait(at(170)));
        send(&mut arq, (170, 180), attempt(0, 3), true);
        assert_eq!(arq.next(at(180), false), Next::Wait(Time::NEVER));
        assert_eq!(arq.take_messages(), 4, "at 50, 100, 150 and 200 ms");
    }

    #[test]
    fn a_code_is_wanted_from_a_report_of_losses_until_one_without() {
        let mut arq = arq(Reports::Every(2));
        arq.begin(0, 9);
        // The first message, with the loss of unit 1, is known at 50 ms; the next one, about units 3 and 1,
        // at 80 ms.
        for (start, sent, arrived, is_coded) in [
            (0, attempt(0, 1), true, false),
            (10, attempt(1, 1), false, false),
            (20, attempt(2, 1), true, false),
            (30, attempt(3, 1), true, false),
            (50, attempt(1, 2), true, true),
            (60, attempt(4, 1), true, true),
            (70, attempt(5, 1), true, true),
            (80, attempt(6, 1), true, false),
        ] {
            assert_eq!(arq.next(at(start), true), Next::Send(sent));
            assert_eq!(arq.start(at(start)), Form { is_coded, frame: None }, "{sent:?}");
            arq.ended(at(start + 10), sent, arrived);
        }
    }

    #[test]
    fn parameters_that_cannot_work_are_refused() {
        let field = |change: fn(&mut Params)| {
            let mut params = Params::default();
            change(&mut params);
            params.validate().err().map(|invalid| invalid.field)
        };
        assert_eq!(field(|_| ()), None);
        assert_eq!(field(|it| it.window = 0), Some("window"));
        assert_eq!(field(|it| it.window = 7), Some("reports.every"));
        assert_eq!(field(|it| it.reports = Reports::Every(0)), Some("reports.every"));
        assert_eq!(field(|it| it.reports = Reports::Period(Duration::ZERO)), Some("reports.period"));
    }

    /// A packet that arrives at `arrival` ms, in units of the given lengths in ms.
    struct Offered {
        arrival: u64,
        units: Vec<u64>,
    }

    /// Start of each attempt in ms, the attempt, and its verdict.
    type History = Vec<(u64, Attempt, Verdict)>;

    /// The attempts of the ARQ for the packets, on a link that polls as required.
    fn history(params: Params, offered: &[Offered], outcomes: &mut Stream, loss: f64) -> History {
        let (mut arq, mut history, mut begun, mut now) = (StatusWindow::new(params), Vec::new(), 0, 0);
        loop {
            let arrival = offered.get(begun).map_or(Time::NEVER, |packet| at(packet.arrival));
            match arq.next(at(now), arrival <= at(now)) {
                Next::Begin => {
                    arq.begin(begun as u64, offered[begun].units.len() as u32);
                    begun += 1;
                }
                Next::Send(attempt) => {
                    let start = now;
                    arq.start(at(now));
                    now += offered[attempt.packet as usize].units[attempt.unit as usize];
                    let verdict = arq.ended(at(now), attempt, !outcomes.bernoulli(loss));
                    history.push((start, attempt, verdict));
                }
                Next::Wait(until) => {
                    assert!(until > at(now), "no progress at {now}");
                    let news = if arrival > at(now) { arrival.min(until) } else { until };
                    if news == Time::NEVER {
                        return history;
                    }
                    now = news.as_nanos() / 1_000_000;
                }
            }
        }
    }

    /// An attempt in the reference implementation.
    #[derive(Clone, Copy)]
    struct Known {
        attempt: Attempt,
        end: u64,
        arrived: bool,
        /// Whether it is in a status message, in transit or received.
        is_reported: bool,
        /// Whether the sending end knows the outcome.
        is_known: bool,
        /// Whether it was retransmitted, or its packet discarded.
        is_over: bool,
    }

    /// Reference implementation of the rules: both ends, and the messages between them, in every millisecond.
    fn reference(params: Params, offered: &[Offered], outcomes: &mut Stream, loss: f64) -> History {
        let span = |span: Duration| span.as_nanos() / 1_000_000;
        let (delay, timeout) = (span(params.report_delay), span(params.timeout));
        let mut fresh: Vec<_> = (0..offered.len()).map(|_| 0).collect();
        let mut attempts: Vec<Known> = Vec::new();
        let mut messages: Vec<(u64, Vec<usize>)> = Vec::new();
        let (mut history, mut on_air, mut last_end, mut since) = (History::new(), None, 0, 0);
        for now in 0.. {
            let mut message = |attempts: &mut [Known], arrives: u64, until: u64| {
                let has = |known: &Known| !known.is_known && known.end <= until;
                let about: Vec<_> = (0..attempts.len()).filter(|&index| has(&attempts[index])).collect();
                about.iter().for_each(|&index| attempts[index].is_reported = true);
                messages.push((arrives, about));
            };
            // The receiving end.
            if let Some((end, start, attempt)) = on_air
                && end == now
            {
                on_air = None;
                last_end = now;
                let arrived = !outcomes.bernoulli(loss);
                let (is_reported, is_known, is_over) = (false, false, false);
                attempts.push(Known { attempt, end, arrived, is_reported, is_known, is_over });
                since += u32::from(arrived);
                if params.reports == Reports::Every(since) {
                    since = 0;
                    message(&mut attempts, now + delay, now);
                }
                let last = params.retransmissions == Retransmissions::AtMost(attempt.number - 1);
                let verdict = match (arrived, last) {
                    (true, _) => Verdict::Delivered,
                    (false, false) => Verdict::Again,
                    (false, true) => Verdict::GiveUp,
                };
                if verdict == Verdict::GiveUp {
                    fresh[attempt.packet as usize] = offered[attempt.packet as usize].units.len();
                    let of_packet = attempts.iter_mut().filter(|it| it.attempt.packet == attempt.packet);
                    of_packet.for_each(|it| (it.is_over, it.is_reported) = (true, true));
                }
                history.push((start, attempt, verdict));
            }
            if let Reports::Period(period) = params.reports
                && now % span(period) == 0
            {
                let arrivals = attempts.iter().filter(|known| known.arrived).map(|known| known.end);
                match arrivals.max().filter(|&end| end + span(period) > now) {
                    Some(last) => message(&mut attempts, now + delay, last),
                    None => message(&mut attempts, now + delay, now.saturating_sub(span(period))),
                }
            }
            // The sending end.
            let asks = matches!(params.reports, Reports::Every(_)) && now >= last_end + timeout;
            if on_air.is_none() && asks && attempts.iter().any(|known| !known.is_reported) {
                since = 0;
                message(&mut attempts, now + 2 * delay, now);
            }
            for (_, about) in messages.iter().filter(|(arrives, _)| *arrives <= now) {
                about.iter().for_each(|&index| attempts[index].is_known = true);
            }
            messages.retain(|(arrives, _)| *arrives > now);
            let mut lost = attempts.iter_mut().filter(|it| it.is_known && !it.arrived && !it.is_over);
            let next = if on_air.is_some() {
                None
            } else if let Some(lost) = lost.next() {
                lost.is_over = true;
                Some(Attempt { number: lost.attempt.number + 1, ..lost.attempt })
            } else {
                let open = attempts.iter().filter(|known| !known.is_known && !known.is_over).count();
                let packet = (0..offered.len()).find(|&index| fresh[index] < offered[index].units.len());
                let packet = packet.filter(|&index| offered[index].arrival <= now);
                packet.filter(|_| open < params.window as usize).map(|packet| {
                    fresh[packet] += 1;
                    Attempt { packet: packet as u64, unit: fresh[packet] as u32 - 1, number: 1 }
                })
            };
            if let Some(attempt) = next {
                let length = offered[attempt.packet as usize].units[attempt.unit as usize];
                on_air = Some((now + length, now, attempt));
            }
            let is_done = attempts.iter().all(|known| known.arrived || known.is_over);
            let has_sent = (0..offered.len()).all(|index| fresh[index] == offered[index].units.len());
            if is_done && has_sent && on_air.is_none() {
                break;
            }
        }
        history
    }

    #[test]
    fn agrees_with_the_reference_implementation() {
        let mut draw = Streams::new(5, 0).stream("cases");
        let (mut attempts, mut given_up, mut again) = (0, 0, 0);
        for case in 0..2_000 {
            let retransmissions = match draw.below(6) {
                5 => Retransmissions::Unlimited,
                most => Retransmissions::AtMost(most as u32),
            };
            let window = 1 + draw.below(12) as u32;
            let reports = match draw.below(2) {
                0 => Reports::Every(1 + draw.below(u64::from(window)) as u32),
                _ => Reports::Period(ms(1 + draw.below(60))),
            };
            let (report_delay, timeout) = (ms(draw.below(2) * draw.below(30)), ms(1 + draw.below(80)));
            let params = Params { retransmissions, window, reports, report_delay, timeout };
            let (loss, spread) = ([0.1, 0.4, 0.8][draw.below(3) as usize], 1 + draw.below(40));
            let mut arrival = 0;
            let offered: Vec<Offered> = (0..20)
                .map(|_| {
                    arrival += draw.below(spread);
                    let units = (0..=draw.below(4)).map(|_| 1 + draw.below(9)).collect();
                    Offered { arrival, units }
                })
                .collect();
            let outcomes = Streams::new(5, case).stream("outcomes");
            let found = history(params, &offered, &mut outcomes.clone(), loss);
            assert_eq!(found, reference(params, &offered, &mut outcomes.clone(), loss), "{params:?}");
            let count = |wanted| found.iter().filter(|(_, _, verdict)| *verdict == wanted).count();
            attempts += found.len();
            given_up += count(Verdict::GiveUp);
            again += count(Verdict::Again);
        }
        assert!(attempts > 50_000 && again > 20_000 && given_up > 5_000, "{attempts} {again} {given_up}");
    }
}
