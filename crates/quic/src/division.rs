//! Congestion control divided at an agent on the way, whose reports tell before the peer does which packets have arrived there and
//! which are missing (Yuan and others, NSDI 2024).
//!
//! quinn tells a controller of acknowledgements and losses, and takes neither from anyone. But it asks the controller for the window:
//! what a report acknowledges is added to that until quinn hears of it. A packet that a report shows missing is sent again below
//! quinn, and a sign of congestion at once; that quinn declares it lost later is none.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::near_share::NearShare;

use super::proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use super::proto::{self, RttEstimator};

/// With less, a window would hardly change by a loss.
const LEAST_SHARE: f64 = 0.01;

/// Instants of departures that are remembered until reports repeat them: more than a scheme keeps packets.
const MOST: usize = 1 << 16;

/// What an end and the controller of its connection share.
#[derive(Default)]
pub(crate) struct Division {
    pub(crate) near_share: Arc<NearShare>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What controls, once there is a connection.
    inner: Option<Box<dyn Controller>>,
    /// As of the last acknowledgement by the peer.
    rtt: Option<RttEstimator>,
    /// The shortest round trip to the peer.
    whole: Option<Duration>,
    app_limited: bool,
    /// Whether what was sent since has filled the window, so that the application is not what limits. Whether quinn's pacer limits is
    /// known only from acknowledgements by the peer.
    is_full: bool,
    /// The size of the largest packets.
    mtu: u64,
    /// As quinn counts it.
    in_flight: u64,
    /// The shortest time from a packet's departure to the report of its arrival, as a round trip to the agent.
    near: Option<Duration>,
    /// Bytes that reports have acknowledged and the peer has not, by their departures.
    quacked: Ledger,
    /// Bytes that the peer has acknowledged before a report, by their departures.
    acked: Ledger,
    /// What left, until quinn has heard of all of it.
    batches: VecDeque<Batch>,
    /// The latest departure of what quinn has declared lost: whatever left earlier, it has declared lost or acknowledged.
    declared: Option<Instant>,
}

/// Bytes that left at one instant.
struct Batch {
    sent: Instant,
    bytes: u64,
    /// By the peer.
    acked: u64,
    /// Reported, and not yet declared lost.
    missing: u64,
}

/// Bytes by the instants at which they left, in order, and their sum.
#[derive(Default)]
struct Ledger {
    entries: VecDeque<(Instant, u64)>,
    total: u64,
}

impl Ledger {
    /// Adds `bytes` that left at `sent`.
    fn add(&mut self, sent: Instant, bytes: u64) {
        self.total += bytes;
        match self.entries.binary_search_by_key(&sent, |each| each.0) {
            Ok(place) => self.entries[place].1 += bytes,
            Err(place) => self.entries.insert(place, (sent, bytes)),
        }
        if self.entries.len() > MOST
            && let Some((_, oldest)) = self.entries.pop_front()
        {
            self.total -= oldest;
        }
    }

    /// Takes `bytes` that left at `sent`; whether there were so many.
    fn take(&mut self, sent: Instant, bytes: u64) -> bool {
        let Ok(place) = self.entries.binary_search_by_key(&sent, |each| each.0) else { return false };
        let left = &mut self.entries[place].1;
        let is_there = *left >= bytes;
        if is_there {
            *left -= bytes;
            self.total -= bytes;
            if *left == 0 {
                self.entries.remove(place);
            }
        }
        is_there
    }

    /// Removes up to `bytes` of what left until `sent`, the oldest first.
    fn remove(&mut self, sent: Instant, mut bytes: u64) {
        while bytes > 0
            && let Some((_, left)) = self.entries.front_mut().filter(|(departure, _)| *departure <= sent)
        {
            let removed = bytes.min(*left);
            *left -= removed;
            bytes -= removed;
            self.total -= removed;
            if *left == 0 {
                self.entries.pop_front();
            }
        }
    }
}

impl State {
    fn batch(&self, sent: Instant) -> Option<usize> {
        self.batches.binary_search_by_key(&sent, |batch| batch.sent).ok()
    }

    /// The peer acknowledges `bytes` that left at `sent`. Which of one instant, quinn does not tell.
    fn settle(&mut self, sent: Instant, bytes: u64) {
        let Some(index) = self.batch(sent) else { return };
        let batch = &mut self.batches[index];
        batch.acked += bytes;
        // The rest was repaired in time.
        batch.missing = batch.missing.min(batch.bytes.saturating_sub(batch.acked));
        if batch.acked >= batch.bytes {
            self.batches.remove(index);
        }
    }

    /// How many of the `lost` bytes that quinn declares lost, the latest of which left at `sent`, were missing at the agent. It will not
    /// declare them again, nor anything that left earlier.
    fn explain(&mut self, sent: Instant, lost: u64) -> u64 {
        self.declared = self.declared.max(Some(sent));
        let mut left = lost;
        while let Some(first) = self.batches.front_mut().filter(|first| first.sent <= sent) {
            let explained = first.missing.min(left);
            left -= explained;
            if first.sent == sent {
                first.missing -= explained;
                break;
            }
            self.batches.pop_front();
        }
        lost - left
    }
}

impl Division {
    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A report came back after this time.
    pub(crate) fn on_report_delay(&self, delay: lasthop_base::Duration) {
        let delay = Duration::from_nanos(delay.as_nanos());
        let near = &mut self.state().near;
        *near = Some(near.map_or(delay, |near| near.min(delay)));
    }

    /// Reports come from another agent, which has a round trip of its own.
    pub(crate) fn forget_report_delay(&self) {
        self.state().near = None;
    }

    /// quinn sends a packet that the peer will acknowledge.
    pub(crate) fn on_sent(&self, now: Instant, bytes: u64) {
        let state = &mut *self.state();
        state.in_flight += bytes;
        if let Some(inner) = &state.inner {
            // quinn sends nothing when a packet of the largest size would reach the window.
            state.is_full = state.in_flight + state.mtu >= inner.window().saturating_add(state.quacked.total);
        }
        match state.batches.back_mut().filter(|last| last.sent == now) {
            Some(last) => last.bytes += bytes,
            None => state.batches.push_back(Batch { sent: now, bytes, acked: 0, missing: 0 }),
        }
        if state.batches.len() > MOST {
            state.batches.pop_front();
        }
    }

    /// A report tells that a packet which quinn has sent at `sent` has arrived: its bytes count as acknowledged.
    pub(crate) fn on_arrived(&self, now: Instant, sent: Instant, bytes: u64) {
        let mut state = self.state();
        // What quinn said with the last acknowledgement may be long ago.
        let app_limited = state.app_limited && !state.is_full;
        let State { inner, rtt, in_flight, quacked, acked, .. } = &mut *state;
        let (Some(inner), Some(rtt)) = (inner, rtt.filter(|_| bytes > 0)) else { return };
        if acked.take(sent, bytes) {
            return;
        }
        quacked.add(sent, bytes);
        let in_flight = in_flight.saturating_sub(quacked.total);
        inner.on_ack(now, sent, bytes, app_limited, &rtt);
        inner.on_end_acks(now, in_flight, app_limited, None);
    }

    /// A report shows a packet missing that quinn has sent at `sent`: it was lost before the agent. If quinn has declared it lost
    /// before, or has had it acknowledged, that is no news.
    pub(crate) fn on_missing(&self, now: Instant, sent: Instant, bytes: u64) {
        let mut state = self.state();
        let Some(index) = state.batch(sent).filter(|_| bytes > 0 && state.declared < Some(sent)) else {
            return;
        };
        let State { inner, whole, near, batches, .. } = &mut *state;
        let (Some(inner), batch) = (inner, &mut batches[index]) else { return };
        if batch.acked + batch.missing + bytes > batch.bytes {
            return;
        }
        batch.missing += bytes;
        let share = near.zip(*whole).map_or(1.0, |(near, whole)| near.as_secs_f64() / whole.as_secs_f64());
        self.near_share.set(share.clamp(LEAST_SHARE, 1.0));
        inner.on_congestion_event(now, sent, false, bytes);
        self.near_share.set(1.0);
    }
}

/// Makes the controller of a connection.
pub(crate) struct Dividing {
    /// Makes what controls.
    pub(crate) control: Arc<dyn ControllerFactory + Send + Sync>,
    pub(crate) division: Arc<Division>,
}

impl ControllerFactory for Dividing {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.control).build(now, current_mtu);
        let near = self.division.state().near;
        *self.division.state() =
            State { inner: Some(inner), near, mtu: current_mtu.into(), ..State::default() };
        Box::new(Divided(Arc::clone(&self.division)))
    }
}

/// The controller, as quinn sees it.
struct Divided(Arc<Division>);

impl Divided {
    fn change(&self, change: impl FnOnce(&mut dyn Controller)) {
        if let Some(inner) = &mut self.0.state().inner {
            change(&mut **inner);
        }
    }

    fn see<T>(&self, see: impl FnOnce(&dyn Controller, u64) -> T, none: T) -> T {
        let state = self.0.state();
        state.inner.as_ref().map_or(none, |inner| see(&**inner, state.quacked.total))
    }
}

impl Controller for Divided {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.change(|inner| inner.on_sent(now, bytes, last_packet_number));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let mut state = self.0.state();
        (state.rtt, state.whole) = (Some(*rtt), Some(rtt.min()));
        state.settle(sent, bytes);
        if state.quacked.take(sent, bytes) {
            return;
        }
        state.acked.add(sent, bytes);
        if let Some(inner) = &mut state.inner {
            inner.on_ack(now, sent, bytes, app_limited, rtt);
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let mut state = self.0.state();
        (state.in_flight, state.app_limited) = (in_flight, app_limited);
        // The window was full, and the application has had nothing more to send since.
        state.is_full &= !app_limited;
        let excess = state.quacked.total.saturating_sub(in_flight);
        state.quacked.remove(now, excess);
        let left = in_flight - state.quacked.total;
        if let Some(inner) = &mut state.inner {
            inner.on_end_acks(now, left, app_limited, largest);
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let mut state = self.0.state();
        let is_mark = lost_bytes == 0;
        state.in_flight = state.in_flight.saturating_sub(lost_bytes);
        let unheard = if is_mark { 0 } else { lost_bytes - state.explain(sent, lost_bytes) };
        // What had arrived at the agent was lost behind it.
        state.quacked.remove(sent, unheard);
        if let Some(inner) = state.inner.as_mut().filter(|_| is_mark || is_persistent || unheard > 0) {
            // Without bytes, it would be a mark.
            let told = if unheard > 0 { unheard } else { lost_bytes };
            inner.on_congestion_event(now, sent, is_persistent, told);
        }
    }

    // Once there are reports, what was lost before the agent and arrived after all was sent again.
    proto::on_spurious_loss!(self => if self.0.state().near.is_none() {
        self.change(|inner| inner.on_spurious_loss());
    });

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.state().mtu = new_mtu.into();
        self.change(|inner| inner.on_mtu_update(new_mtu));
    }

    fn window(&self) -> u64 {
        self.see(|inner, quacked| inner.window().saturating_add(quacked), 0)
    }

    /// Without what reports have acknowledged.
    fn metrics(&self) -> ControllerMetrics {
        self.see(|inner, _| inner.metrics(), ControllerMetrics::default())
    }

    /// Shares what controls: only a connection that changes its path copies it, which no host does.
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Divided(Arc::clone(&self.0)))
    }

    fn initial_window(&self) -> u64 {
        self.see(|inner, _| inner.initial_window(), 0)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::pacubic::PacubicConfig;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    use super::*;

    /// A window of ten packets, and 2 of 52 ms before the agent.
    fn divided() -> (Arc<Division>, Box<dyn Controller>, impl Fn(u64) -> Instant) {
        let division = Arc::<Division>::default();
        let near_share = Arc::clone(&division.near_share);
        let control: Arc<dyn ControllerFactory + Send + Sync> = Arc::new(PacubicConfig { near_share });
        let begin = Instant::now();
        let controller = Arc::new(Dividing { control, division: Arc::clone(&division) }).build(begin, 1_000);
        assert_eq!(controller.window(), 10_000);
        let round_trips = [2, 52].map(|ms| Some(Duration::from_millis(ms)));
        [division.state().near, division.state().whole] = round_trips;
        (division, controller, move |ms| begin + Duration::from_millis(ms))
    }

    /// Counts the bytes of losses.
    #[derive(Clone)]
    struct Losses(Arc<AtomicU64>);

    impl ControllerFactory for Losses {
        fn build(self: Arc<Self>, _now: Instant, _current_mtu: u16) -> Box<dyn Controller> {
            self.clone_box()
        }
    }

    impl Controller for Losses {
        fn on_congestion_event(&mut self, _now: Instant, _sent: Instant, _persistent: bool, lost: u64) {
            self.0.fetch_add(lost, Relaxed);
        }

        fn on_mtu_update(&mut self, _new_mtu: u16) {}

        fn window(&self) -> u64 {
            10_000
        }

        fn clone_box(&self) -> Box<dyn Controller> {
            Box::new(self.clone())
        }

        fn initial_window(&self) -> u64 {
            10_000
        }

        fn into_any(self: Box<Self>) -> Box<dyn Any> {
            self
        }
    }

    /// Of a control that counts losses, also within a round trip, as BBR does.
    #[test]
    fn a_control_hears_of_each_loss_once() {
        let (division, lost) = (Arc::<Division>::default(), Arc::<AtomicU64>::default());
        let control: Arc<dyn ControllerFactory + Send + Sync> = Arc::new(Losses(Arc::clone(&lost)));
        let begin = Instant::now();
        let mut controller =
            Arc::new(Dividing { control, division: Arc::clone(&division) }).build(begin, 1_000);
        let at = |ms| begin + Duration::from_millis(ms);
        let heard = || lost.load(Relaxed);
        let missing = |sent| {
            let state = division.state();
            state.batches[state.batch(at(sent)).expect("it is not settled")].missing
        };
        for (sent, packets) in [(98, 1), (99, 1), (105, 1), (110, 4), (120, 2), (130, 2), (140, 1)] {
            (0..packets).for_each(|_| division.on_sent(at(sent), 1_000));
        }
        // In any order.
        division.on_missing(at(100), at(99), 1_000);
        division.on_missing(at(100), at(98), 1_000);
        controller.on_congestion_event(at(150), at(99), false, 2_000);
        assert_eq!(heard(), 2_000, "they were reported");
        controller.on_congestion_event(at(160), at(105), false, 1_000);
        assert_eq!(heard(), 3_000, "it was not");
        division.on_missing(at(161), at(105), 1_000);
        assert_eq!(heard(), 3_000, "quinn was faster");
        // Of one instant: one packet arrives, and two are missing until another two are acknowledged.
        division.on_missing(at(162), at(110), 1_000);
        division.on_missing(at(162), at(110), 1_000);
        division.state().settle(at(110), 1_000);
        assert_eq!((heard(), missing(110)), (5_000, 2_000));
        (0..2).for_each(|_| division.state().settle(at(110), 1_000));
        assert_eq!(missing(110), 1_000, "one was repaired");
        // Of three, one was reported.
        controller.on_congestion_event(at(170), at(120), false, 3_000);
        assert_eq!(heard(), 7_000);
        // The late report does not hide the next loss.
        division.on_missing(at(171), at(120), 1_000);
        controller.on_congestion_event(at(180), at(130), false, 2_000);
        assert_eq!((heard(), division.state().in_flight), (9_000, 12_000 - 8_000));
        controller.on_congestion_event(at(190), at(140), true, 1_000);
        assert_eq!(heard(), 10_000);
    }

    /// A loss before the agent counts once, when it is reported, and for 1/26; behind the agent, as without it.
    #[test]
    fn a_reported_loss_counts_once() {
        let (division, mut controller, at) = divided();
        [98, 160, 298, 305].into_iter().for_each(|sent| division.on_sent(at(sent), 1_000));
        division.on_missing(at(100), at(98), 1_000);
        let once = 10_000.0 * (1.0 - 0.3 / 26.0);
        assert_eq!(controller.window(), once as u64);
        controller.on_congestion_event(at(150), at(98), false, 1_000);
        assert_eq!(controller.window(), once as u64, "it was reported");
        controller.on_congestion_event(at(200), at(160), false, 1_000);
        assert_eq!(controller.window(), (0.7 * once) as u64);
        // Of two that are lost, one was reported.
        division.on_missing(at(300), at(298), 1_000);
        let before = controller.window();
        controller.on_congestion_event(at(350), at(305), false, 2_000);
        assert!(controller.window() < before * 3 / 4, "{} of {before}", controller.window());
    }

    /// The window is full when a whole packet would reach it, and until quinn says that the application limits.
    #[test]
    fn the_application_does_not_limit_while_the_window_is_full() {
        let (division, mut controller, at) = divided();
        let is_full = || division.state().is_full;
        (0..8).for_each(|sent| division.on_sent(at(sent), 1_000));
        assert!(!is_full());
        division.on_sent(at(8), 999);
        assert!(!is_full());
        division.on_sent(at(9), 100);
        assert!(is_full(), "another 1000 bytes would reach it");
        controller.on_end_acks(at(60), 9_000, false, None);
        assert!(is_full());
        controller.on_end_acks(at(61), 9_000, true, None);
        assert!(!is_full());
        controller.on_mtu_update(1_200);
        let room = controller.window() - 1_200;
        controller.on_end_acks(at(62), room - 100, true, None);
        division.on_sent(at(62), 100);
        assert!(is_full(), "another 1200 bytes would reach it");
    }

    /// What reports acknowledge makes room until quinn hears of it, or of its loss, and no longer than it is in flight.
    #[test]
    fn reports_make_room_in_the_window() {
        let (_, mut controller, at) = divided();
        let state = |controller: &mut Box<dyn Controller>, change: &dyn Fn(&mut State)| {
            let any = controller.clone_box().into_any().downcast::<Divided>().expect("it is one");
            change(&mut any.0.state());
        };
        state(&mut controller, &|state| {
            for (sent, bytes) in [(1, 3_000), (2, 2_000), (3, 1_000)] {
                state.quacked.add(at(sent), bytes);
            }
        });
        assert_eq!(controller.window(), 16_000);
        state(&mut controller, &|state| {
            assert!(state.quacked.take(at(1), 3_000) && state.quacked.take(at(2), 500));
            assert!(!state.quacked.take(at(1), 1_000) && !state.quacked.take(at(2), 2_000));
        });
        assert_eq!(controller.window(), 12_500);
        controller.on_end_acks(at(50), 2_000, false, None);
        assert_eq!(controller.window(), 12_000);
        controller.on_congestion_event(at(60), at(2), false, 1_500);
        assert_eq!(controller.window(), 7_000 + 1_000);
    }
}
