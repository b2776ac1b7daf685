//! Prague (draft-briscoe-iccrg-prague-congestion-control-04): the scalable control of L4S (RFC 9330, 9331).
//!
//! **What it does.** The window shrinks by half the share of marked packets, once per round-trip time, as in DCTCP, and grows by one
//! segment per round-trip time, also while it shrinks, in proportion to the packets that were not marked. After 500 rounds a
//! connection with less than 25 ms grows, shrinks and averages as one with 25 ms, so that round-trip times matter less. Segments
//! are paced over the round-trip time. The window for sending has at least two segments; below, and between whole segments, pacing
//! follows the exact window, down to 100 kb/s. A loss halves the window, less what a mark took in the same round-trip time.
//! Packets have ECT(1).
//!
//! **Without accurate feedback** from the peer, no packet is ECN-capable, and it is Reno with pacing.
//!
//! **A classic queue** with ECN is [recognised](super::classic_queue) if `tcp.ecn_fallback` is set, which it is not by default, as in the
//! kernel of its authors, 0.6; 0.7 has no fall-back.
//!
//! **Differences.** From this kernel, 0.7: the share begins with 1 at the first mark, as in the draft, where the kernel halves the window
//! and begins with 0; short round-trip times count as the reference after 500 rounds, as in the draft, where the kernel waits for 4
//! (`DEFAULT_RTT_TRANSITION`); a reduction for marks counts towards that for a loss; after a timeout pacing follows the window of
//! slow start, where the kernel paces by half of the old one; neither does the rate vary by 3 %, nor do segments become shorter
//! below 1 Mb/s.

use alloc::boxed::Box;

use lasthop_base::{Duration, Time};

use super::classic_queue::ClassicQueue;
use super::marked_share::MarkedShare;
use super::{
    AckInfo, Chosen, Control, Controller, Demand, Feedback, Limit, Loss, RateSample, RttInfo, Window,
};
use crate::packet::{Ecn, SeqNum};
use crate::tcp::ecn::EcnMode;
use crate::tcp::settings::{IdleRestart, Settings};

pub(super) const CONTROL: Control = Control {
    limit: Limit::PacedWindow,
    needs_samples: true,
    needs_pacing: true,
    needs_ecn: EcnMode::Accurate,
    answers_loss_after_mark: true,
    codepoint: Ecn::Ect1,
    ..Control::new(
        "prague",
        "Prague",
        "Prague, for L4S: a paced window that shrinks by half the share of marked packets (draft-briscoe-iccrg-prague-congestion-control)",
        |settings, _| Chosen::other(Prague::new(settings)),
    )
};

/// The round-trip time as which shorter ones count.
const REFERENCE_RTT: Duration = Duration::from_millis(25);
/// Rounds after slow start from which they do.
const ROUNDS_BEFORE_REFERENCE: u32 = 500;
/// The window for sending, segments.
const LEAST_SHOWN: f64 = 2.0;
/// Minimum pacing rate in bytes per second.
const LEAST_RATE: f64 = 12_500.0;
/// Multiplicative decrease for a loss.
const HALF: f64 = 0.5;

/// Prague.
#[derive(Clone, Debug)]
struct Prague {
    /// The window for sending, in whole segments, and its last value: a change from outside is taken over.
    window: Window,
    shown: f64,
    /// The exact window in bytes.
    exact: f64,
    srtt: Option<Duration>,
    /// Share of marked packets since the first mark.
    share: Option<MarkedShare>,
    averaged_at: Time,
    /// Rounds since slow start, by accurate feedback.
    rounds: u32,
    round_ends: Option<SeqNum>,
    /// Marked packets of the current acknowledgement.
    marked: u32,
    /// The last reduction for marks: when, and by how many bytes.
    reduction: Option<(Time, f64)>,
    /// Whether a mark came too early after it: the next one that does not is answered.
    is_pending: bool,
    /// Evidence of a classic queue, if it is looked for.
    classic: Option<Box<ClassicQueue>>,
}

impl Prague {
    fn new(settings: &Settings) -> Prague {
        let window = Window::new(settings);
        Prague {
            window,
            shown: window.cwnd,
            exact: window.cwnd,
            srtt: None,
            share: None,
            averaged_at: Time::ZERO,
            rounds: 0,
            round_ends: None,
            marked: 0,
            reduction: None,
            is_pending: false,
            classic: settings.ecn_fallback.then(|| Box::new(ClassicQueue::new())),
        }
    }

    /// Takes over a window that was set from outside.
    fn sync(&mut self) {
        if self.window.cwnd != self.shown {
            (self.shown, self.exact) = (self.window.cwnd, self.window.cwnd);
        }
    }

    fn show(&mut self, bytes: f64) {
        (self.window.cwnd, self.shown) = (bytes, bytes);
    }

    fn in_slow_start(&self) -> bool {
        self.exact < self.window.ssthresh
    }

    /// Whether a shorter round-trip time counts as the reference.
    fn is_independent(&self) -> bool {
        self.rounds >= ROUNDS_BEFORE_REFERENCE
    }

    /// The round-trip time, or the reference in its place.
    fn virtual_rtt(&self) -> Duration {
        let srtt = self.srtt.unwrap_or_default();
        if self.is_independent() { srtt.max(REFERENCE_RTT) } else { srtt }
    }

    /// Growth relative to one segment per round-trip time: such that the rate grows as with the reference.
    fn growth(&self) -> f64 {
        let Some(srtt) = self.srtt else { return 1.0 };
        let ratio = srtt.as_secs_f64() / self.virtual_rtt().as_secs_f64();
        ratio * ratio
    }

    /// Whether the reference, which is longer than the round-trip time, has not passed since the last reduction for marks.
    fn is_early(&self, now: Time) -> bool {
        let rtt = self.virtual_rtt();
        self.srtt.is_some_and(|srtt| srtt < rtt) && self.reduction.is_some_and(|(at, _)| now.since(at) < rtt)
    }

    /// Reduces the window by half the share of marks.
    fn answer_marks(&mut self, now: Time, share: MarkedShare) {
        let least = self.classic.as_ref().map_or(0.0, |classic| classic.least_share());
        let reduction = self.exact * share.alpha().max(least) / 2.0;
        self.shrink_to(self.exact - reduction);
        (self.reduction, self.is_pending) = (Some((now, reduction)), false);
    }

    /// Adapts the averages for a classic queue before a reduction.
    fn adapt_to_window(&mut self) {
        if let Some(classic) = &mut self.classic {
            classic.set_gain(self.window.ssthresh / self.window.mss);
        }
    }

    /// The least exact window, at which the rate has its minimum.
    fn least(&self) -> f64 {
        LEAST_RATE * self.srtt.unwrap_or_default().as_secs_f64()
    }

    fn shrink_to(&mut self, bytes: f64) {
        self.exact = bytes.max(self.least());
        self.window.ssthresh = self.exact;
    }

    /// Grows for `bytes` that were delivered without a mark.
    fn grow(&mut self, mut bytes: f64) {
        if self.in_slow_start() {
            let used = bytes.min(self.window.ssthresh - self.exact);
            self.exact += used;
            bytes -= used;
        }
        self.exact += self.growth() * bytes * self.window.mss / self.exact.max(1.0);
    }

    /// Moves the window for sending to the exact one in whole segments: down by half of the bytes delivered, so that every other
    /// segment is replaced.
    fn approach(&mut self, delivered: f64) {
        let segments = libm::ceil(self.exact / self.window.mss).max(LEAST_SHOWN);
        let wanted = segments * self.window.mss;
        self.show(wanted.max((self.shown - delivered / 2.0).min(self.shown)));
    }
}

impl Controller for Prague {
    fn window(&self) -> &Window {
        &self.window
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.window
    }

    /// All happens in [`on_sample`](Controller::on_sample), in recovery, too.
    fn on_ack(&mut self, _ack: &AckInfo) {}

    fn on_rtt(&mut self, info: &RttInfo) -> bool {
        let rtt = info.rtt.as_nanos();
        let srtt = self.srtt.map_or(rtt, |srtt| srtt.as_nanos() - srtt.as_nanos() / 8 + rtt / 8);
        self.srtt = Some(Duration::from_nanos(srtt));
        if let Some(classic) = &mut self.classic {
            classic.on_rtt(info.now, info.rtt);
        }
        true
    }

    fn on_feedback(&mut self, feedback: &Feedback) {
        self.marked = feedback.marked;
        let (now, max) = (feedback.now, feedback.max);
        if self.round_ends.is_none_or(|end| feedback.una >= end) {
            self.round_ends = Some(max);
            self.rounds += u32::from(!self.in_slow_start());
        }
        let may_end = !self.is_independent() || now.since(self.averaged_at) >= REFERENCE_RTT;
        if let Some(share) = &mut self.share {
            if share.on_feedback(feedback, may_end) {
                self.averaged_at = now;
                if let Some(classic) = &mut self.classic {
                    classic.on_round();
                }
            }
            let share = *share;
            if self.is_pending && feedback.marked > 0 && !self.is_early(now) {
                self.sync();
                self.answer_marks(now, share);
            }
        } else if feedback.marked > 0 {
            (self.share, self.averaged_at) = (Some(MarkedShare::new(1.0, max)), now);
        }
    }

    fn on_mark(&mut self, loss: &Loss, factor: Option<f64>) {
        self.sync();
        let (Some(share), None) = (self.share, factor) else { return self.on_loss(loss, factor) };
        self.adapt_to_window();
        if self.is_early(loss.now) {
            self.is_pending = true;
        } else {
            self.answer_marks(loss.now, share);
        }
    }

    fn on_sample(&mut self, sample: &RateSample) -> Demand {
        self.sync();
        let delivered = sample.newly_delivered as f64;
        let unmarked = delivered - f64::from(core::mem::take(&mut self.marked)) * self.window.mss;
        let is_repairing = sample.in_recovery || sample.in_loss;
        // A window that is not used says nothing about the path (RFC 7661).
        let is_used = !sample.application_limited && 2.0 * sample.prior_in_flight as f64 >= self.exact;
        let may_grow = if sample.in_loss { self.in_slow_start() } else { !is_repairing };
        if unmarked > 0.0 && is_used && may_grow {
            self.grow(unmarked);
        }
        self.approach(delivered);
        Demand::Full
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.sync();
        self.adapt_to_window();
        let recent = |&(at, _): &(Time, f64)| loss.now.since(at) < self.virtual_rtt();
        let credit = self.reduction.filter(recent).map_or(0.0, |(_, bytes)| bytes);
        (self.reduction, self.is_pending) = (None, false);
        let reduced = (self.exact + credit) * factor.unwrap_or(HALF);
        // A timeout may have taken more than the mark.
        self.shrink_to(reduced.min(self.exact));
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.sync();
        if !loss.again {
            self.window.ssthresh = (self.exact * factor.unwrap_or(HALF)).max(LEAST_SHOWN * self.window.mss);
        }
        (self.exact, self.is_pending) = (self.window.mss, false);
        self.show(self.window.mss);
    }

    fn on_interruption(&mut self, mss: u32, again: bool) {
        self.sync();
        if !again {
            self.window.ssthresh = self.exact.max(LEAST_SHOWN * self.window.mss);
        }
        self.exact = f64::from(mss);
        self.show(self.exact);
    }

    /// The window does not depend on the data in flight.
    fn on_recovered(&mut self, _limit: u32) {}

    fn on_undo(&mut self, before: &Window) {
        self.sync();
        self.exact = self.exact.max(before.cwnd);
        self.window.ssthresh = self.window.ssthresh.max(before.ssthresh);
        self.show(self.shown.max(before.cwnd));
    }

    /// Linux spares controls that set the window by themselves, of which Prague is one.
    fn on_idle(&mut self, rule: IdleRestart, _timeouts: u32) {
        if rule != IdleRestart::InitialWindow {
            return;
        }
        self.sync();
        self.exact = self.exact.min(f64::from(self.window.initial()));
        self.show(self.shown.min(self.exact.max(LEAST_SHOWN * self.window.mss)));
    }

    fn pacing_rate(&self, srtt: Duration) -> f64 {
        let room = if self.exact < self.window.ssthresh / 2.0 { 2.0 } else { 1.0 };
        (room * self.exact / srtt.as_secs_f64()).max(LEAST_RATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::settings::Profile;

    const MSS: f64 = 1448.0;

    /// Prague on a path that marks every packet with probability `share`, evenly spread, and delivers each one a round-trip time
    /// after its transmission.
    struct Path {
        control: Prague,
        rtt: Duration,
        share: f64,
        now: Time,
        sent: u32,
        /// Parts of packets to send, and to mark.
        due: f64,
        owed: f64,
    }

    impl Path {
        fn new(rtt_ms: u64, share: f64) -> Path {
            let mut control = Prague::new(&Profile::Linux.settings());
            control.window.ssthresh = control.exact;
            let rtt = Duration::from_millis(rtt_ms);
            Path { control, rtt, share, now: Time::ZERO, sent: 0, due: 0.0, owed: 0.0 }
        }

        /// One round: the packets of a window are acknowledged one by one. Returns the exact window in segments.
        fn round(&mut self) -> f64 {
            self.due += self.control.exact / MSS;
            let packets = self.due.max(1.0) as u32;
            self.due -= f64::from(packets);
            let max = SeqNum(self.sent) + packets;
            let mut is_answered = false;
            for n in 1..=packets {
                self.now += Duration::from_nanos(self.rtt.as_nanos() / u64::from(packets));
                let una = SeqNum(self.sent) + n;
                self.control.on_rtt(&RttInfo { now: self.now, rtt: self.rtt, una, max });
                self.owed += self.share;
                let marked = u32::from(self.owed >= 1.0);
                self.owed -= f64::from(marked);
                self.control.on_feedback(&Feedback { now: self.now, delivered: 1, marked, una, max });
                if marked > 0 && !is_answered {
                    is_answered = true;
                    self.control.on_mark(&self.loss(), None);
                }
                let in_flight = self.control.exact as u64;
                let sample = RateSample {
                    now: self.now,
                    newly_delivered: MSS as u64,
                    prior_in_flight: in_flight,
                    ..RateSample::default()
                };
                self.control.on_sample(&sample);
            }
            self.sent += packets;
            self.control.exact / MSS
        }

        fn loss(&self) -> Loss {
            Loss { now: self.now, flight: 0, rwnd: u32::MAX, again: false, max: SeqNum(self.sent) }
        }

        /// The mean window in segments over 2,000 rounds, after 5,000 in which short round-trip times become the reference.
        fn mean(&mut self) -> f64 {
            (0..5000).for_each(|_| _ = self.round());
            (0..2000).map(|_| self.round()).sum::<f64>() / 2000.0
        }
    }

    /// Growth of one segment by the unmarked packets of a round, against a reduction by half the share of marked ones: the mean
    /// window is 2 (1 - p) / p segments, so that the rate is about (1 / p - 1) Mb/s at 25 ms, as its authors state.
    #[test]
    fn the_window_is_inverse_to_the_share_of_marks() {
        for share in [0.02, 0.05, 0.1, 0.3] {
            let (found, expected) = (Path::new(25, share).mean(), 2.0 * (1.0 - share) / share);
            assert!((found / expected - 1.0).abs() < 0.05, "{share}: {found} segments, not {expected}");
            let rate = found * MSS * 8.0 / 0.025;
            assert!((rate / ((1.0 / share - 1.0) * 1e6) - 1.0).abs() < 0.1, "{share}: {rate} b/s");
        }
    }

    /// After 500 rounds connections of 5 and 10 ms have the same rate at the same share of marks, and that of 25 ms but for the wait
    /// for the first mark after the reference; one of 100 ms has half the rate of one of 50 ms.
    #[test]
    fn short_round_trips_count_as_the_reference() {
        let rate = |rtt_ms: u64| Path::new(rtt_ms, 0.02).mean() / rtt_ms as f64;
        let [shortest, short, reference, long, longest] = [5, 10, 25, 50, 100].map(rate);
        let ratios = [shortest / short, short / reference, longest / long];
        for (ratio, expected) in ratios.into_iter().zip([0.95..1.05, 1.0..1.3, 0.45..0.55]) {
            assert!(expected.contains(&ratio), "{ratios:?}");
        }
    }

    /// The first mark ends slow start with half of the window, since the share begins with 1.
    #[test]
    fn the_first_mark_ends_slow_start() {
        let mut path = Path::new(50, 0.0);
        path.control.window.ssthresh = f64::INFINITY;
        assert_eq!([path.round(), path.round(), path.round()], [20.0, 40.0, 80.0]);
        path.share = 1.0;
        let window = path.round();
        assert!((40.0..41.0).contains(&window) && !path.control.in_slow_start(), "{window} segments");
    }

    /// Below two segments the window for sending stays, and pacing follows the exact window, down to 100 kb/s.
    #[test]
    fn pacing_goes_below_two_segments() {
        let mut path = Path::new(20, 0.9);
        path.mean();
        // A packet without a mark opens it for some rounds.
        let is_closed = |control: &Prague| control.exact < MSS && control.window.cwnd <= 2.0 * MSS;
        assert!((0..100).any(|_| path.round() < 1.0 && is_closed(&path.control)));
        let control = &path.control;
        assert_eq!(control.window.cwnd, 2.0 * MSS);
        let rate = control.pacing_rate(path.rtt);
        assert!((rate - control.exact / 0.02).abs() < 1e-6 && rate >= LEAST_RATE, "{rate} B/s");
        path.control.exact = 1.0;
        assert_eq!(path.control.pacing_rate(path.rtt), LEAST_RATE);
    }

    /// With the fall-back, a path whose round-trip time varies by milliseconds while it marks takes nearly a third of the window for a
    /// mark, however few there are, and one that varies by less takes half the share.
    #[test]
    fn a_classic_queue_is_answered_like_one() {
        for (high_ms, classic) in [(62, true), (51, false)] {
            let settings = Settings { ecn_fallback: true, ..Profile::Linux.settings() };
            let mut path = Path { control: Prague::new(&settings), ..Path::new(50, 0.0) };
            path.control.window.ssthresh = path.control.exact;
            path.share = 0.001;
            for round in 0..600 {
                path.rtt = Duration::from_millis(if round % 2 == 0 { 50 } else { high_ms });
                path.round();
            }
            path.control.exact = 100.0 * MSS;
            let alpha = path.control.share.expect("it was marked").alpha();
            assert!(alpha < 0.1, "{alpha}");
            path.control.on_mark(&path.loss(), None);
            let left = path.control.exact / MSS;
            let expected = 100.0 - if classic { 31.25 } else { 50.0 * alpha };
            assert!((left - expected).abs() < 0.01, "{high_ms} ms: {left} segments, not {expected}");
        }
    }

    /// A loss halves the window. What a mark took less than a round-trip time ago counts towards it.
    #[test]
    fn a_loss_halves_the_window_once() {
        for (after_ms, expected) in [(10, 50.0), (60, 25.0)] {
            let mut path = Path::new(50, 0.0);
            path.round();
            path.control.exact = 100.0 * MSS;
            path.control.share = Some(MarkedShare::new(1.0, SeqNum(0)));
            path.control.on_mark(&path.loss(), None);
            assert_eq!(path.control.exact, 50.0 * MSS);
            path.now += Duration::from_millis(after_ms);
            path.control.on_loss(&path.loss(), None);
            assert_eq!(path.control.exact, expected * MSS, "after {after_ms} ms");
        }
    }

    /// What a mark took does not come back after a timeout.
    #[test]
    fn a_loss_never_widens_the_window() {
        let mut path = Path::new(50, 0.0);
        path.round();
        path.control.exact = 100.0 * MSS;
        path.control.share = Some(MarkedShare::new(1.0, SeqNum(0)));
        path.control.on_mark(&path.loss(), None);
        path.control.on_timeout(&path.loss(), None);
        path.control.on_loss(&path.loss(), None);
        assert_eq!(path.control.exact, MSS);
    }

    /// Without accurate feedback a mark is answered like a loss, and the window grows by one segment per round.
    #[test]
    fn without_feedback_it_is_reno() {
        let mut path = Path::new(50, 0.0);
        path.control.exact = 100.0 * MSS;
        path.control.window.ssthresh = 50.0 * MSS;
        let window = path.round();
        assert!((window - 101.0).abs() < 0.01, "{window} segments");
        path.control.on_mark(&path.loss(), None);
        assert!((path.control.exact / MSS - 50.5).abs() < 0.01);
    }

    /// Of what is delivered, the part up to the threshold doubles the window, and the rest adds a segment a round.
    #[test]
    fn slow_start_ends_at_its_threshold() {
        let mut control = Prague::new(&Profile::Linux.settings());
        let threshold = control.exact + MSS / 2.0;
        control.window.ssthresh = threshold;
        control.grow(2.0 * MSS);
        let beyond = 1.5 * MSS * MSS / threshold;
        assert!((control.exact - threshold - beyond).abs() < 1e-6, "{}", control.exact);
    }
}
