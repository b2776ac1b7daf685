//! Congestion control divided at an agent on the way, whose reports tell before the peer does which packets have arrived there and
//! which are missing (Yuan and others, NSDI 2024).
//!
//! quinn tells a controller of acknowledgements and losses, and takes neither from anyone. But it asks the controller for the window:
//! what a report acknowledges is added to that until quinn hears of it. A packet that a report shows missing is sent again below
//! quinn, and a sign of congestion at once; that quinn declares it lost later is none.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// The share of a round trip that is before the agent, while a controller handles a loss there; 1 otherwise. As bits, atomic since
/// controllers are shared by threads.
#[derive(Debug)]
pub(crate) struct NearShare(AtomicU64);

impl Default for NearShare {
    fn default() -> NearShare {
        NearShare(AtomicU64::new(1.0_f64.to_bits()))
    }
}

impl NearShare {
    pub(crate) fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Relaxed))
    }

    pub(crate) fn set(&self, share: f64) {
        self.0.store(share.to_bits(), Relaxed);
    }
}

/// With less, a window would hardly change by a loss.
const LEAST_SHARE: f64 = 0.01;

/// Acknowledgements by the peer that are remembered until a report repeats them.
const MOST_ACKED: usize = 4096;

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
    in_flight: u64,
    /// The shortest time from a packet's departure to the report of its arrival, as a round trip to the agent.
    near: Option<Duration>,
    /// Bytes that reports have acknowledged and the peer has not, by their departures.
    quacked: VecDeque<(Instant, u64)>,
    /// Bytes that the peer has acknowledged before a report, by their departures.
    acked: VecDeque<(Instant, u64)>,
    /// Bytes of packets that were missing, by their departures, of which quinn has not heard.
    missing: VecDeque<(Instant, u64)>,
}

fn total(bytes: &VecDeque<(Instant, u64)>) -> u64 {
    bytes.iter().map(|(_, bytes)| bytes).sum()
}

/// Adds `bytes` that left at `sent`.
fn add(to: &mut VecDeque<(Instant, u64)>, sent: Instant, bytes: u64) {
    match to.binary_search_by_key(&sent, |each| each.0) {
        Ok(place) => to[place].1 += bytes,
        Err(place) => to.insert(place, (sent, bytes)),
    }
}

/// Takes `bytes` that left at `sent`; whether there were so many.
fn take(from: &mut VecDeque<(Instant, u64)>, sent: Instant, bytes: u64) -> bool {
    let Ok(place) = from.binary_search_by_key(&sent, |each| each.0) else { return false };
    let left = &mut from[place].1;
    let is_there = *left >= bytes;
    if is_there {
        *left -= bytes;
        if *left == 0 {
            from.remove(place);
        }
    }
    is_there
}

/// Removes up to `bytes` of what left until `sent`, the oldest first.
fn remove(from: &mut VecDeque<(Instant, u64)>, sent: Instant, mut bytes: u64) {
    while bytes > 0
        && let Some((_, left)) = from.front_mut().filter(|(departure, _)| *departure <= sent)
    {
        let removed = bytes.min(*left);
        (*left, bytes) = (*left - removed, bytes - removed);
        if *left == 0 {
            from.pop_front();
        }
    }
}

impl State {
    /// Whether all of the bytes that quinn declares lost were missing at the agent. It will not do so again.
    fn explains(&mut self, sent: Instant, lost: u64) -> bool {
        let missing = self.missing.iter().take_while(|(departure, _)| *departure <= sent);
        let explains = missing.map(|(_, bytes)| bytes).sum::<u64>() >= lost;
        remove(&mut self.missing, sent, lost);
        explains
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

    /// A report tells that a packet which quinn has sent at `sent` has arrived: its bytes count as acknowledged.
    pub(crate) fn on_arrived(&self, now: Instant, sent: Instant, bytes: u64) {
        let mut state = self.state();
        let State { inner, rtt, app_limited, in_flight, quacked, acked, .. } = &mut *state;
        let (Some(inner), Some(rtt)) = (inner, rtt.filter(|_| bytes > 0)) else { return };
        if take(acked, sent, bytes) {
            return;
        }
        add(quacked, sent, bytes);
        let in_flight = in_flight.saturating_sub(total(quacked));
        inner.on_ack(now, sent, bytes, *app_limited, &rtt);
        inner.on_end_acks(now, in_flight, *app_limited, None);
    }

    /// A report shows a packet missing that quinn has sent at `sent`: it was lost before the agent.
    pub(crate) fn on_missing(&self, now: Instant, sent: Instant, bytes: u64) {
        let mut state = self.state();
        let State { inner, whole, near, missing, .. } = &mut *state;
        let (Some(inner), true) = (inner, bytes > 0) else { return };
        missing.push_back((sent, bytes));
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
        *self.division.state() = State { inner: Some(inner), near, ..State::default() };
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
        state.inner.as_ref().map_or(none, |inner| see(&**inner, total(&state.quacked)))
    }
}

impl Controller for Divided {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.change(|inner| inner.on_sent(now, bytes, last_packet_number));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let mut state = self.0.state();
        (state.rtt, state.whole) = (Some(*rtt), Some(rtt.min()));
        // Repaired in time.
        state.missing.retain(|(departure, _)| *departure != sent);
        if take(&mut state.quacked, sent, bytes) {
            return;
        }
        add(&mut state.acked, sent, bytes);
        if state.acked.len() > MOST_ACKED {
            state.acked.pop_front();
        }
        if let Some(inner) = &mut state.inner {
            inner.on_ack(now, sent, bytes, app_limited, rtt);
        }
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        let mut state = self.0.state();
        (state.in_flight, state.app_limited) = (in_flight, app_limited);
        let excess = total(&state.quacked).saturating_sub(in_flight);
        remove(&mut state.quacked, now, excess);
        let left = in_flight - total(&state.quacked);
        if let Some(inner) = &mut state.inner {
            inner.on_end_acks(now, left, app_limited, largest);
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let mut state = self.0.state();
        if lost_bytes > 0 && state.explains(sent, lost_bytes) && !is_persistent {
            return;
        }
        // What had arrived at the agent was lost behind it.
        remove(&mut state.quacked, sent, lost_bytes);
        if let Some(inner) = &mut state.inner {
            inner.on_congestion_event(now, sent, is_persistent, lost_bytes);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
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
    use super::*;
    use crate::pacubic::PacubicConfig;

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
        division.on_missing(at(100), at(98), 1_000);
        division.on_missing(at(100), at(99), 1_000);
        controller.on_congestion_event(at(150), at(99), false, 2_000);
        assert_eq!(lost.load(Relaxed), 2_000, "they were reported");
        controller.on_congestion_event(at(160), at(105), false, 1_000);
        assert_eq!(lost.load(Relaxed), 3_000, "it was not");
    }

    /// A loss before the agent counts once, when it is reported, and for 1/26; behind the agent, as without it.
    #[test]
    fn a_reported_loss_counts_once() {
        let (division, mut controller, at) = divided();
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

    /// What reports acknowledge makes room until quinn hears of it, or of its loss, and no longer than it is in flight.
    #[test]
    fn reports_make_room_in_the_window() {
        let (_, mut controller, at) = divided();
        let state = |controller: &mut Box<dyn Controller>, change: &dyn Fn(&mut State)| {
            let any = controller.clone_box().into_any().downcast::<Divided>().expect("it is one");
            change(&mut any.0.state());
        };
        state(&mut controller, &|state| {
            state.quacked.extend([(at(1), 3_000), (at(2), 2_000), (at(3), 1_000)])
        });
        assert_eq!(controller.window(), 16_000);
        state(&mut controller, &|state| {
            assert!(take(&mut state.quacked, at(1), 3_000) && take(&mut state.quacked, at(2), 500));
            assert!(!take(&mut state.quacked, at(1), 1_000) && !take(&mut state.quacked, at(2), 2_000));
        });
        assert_eq!(controller.window(), 12_500);
        controller.on_end_acks(at(50), 2_000, false, None);
        assert_eq!(controller.window(), 12_000);
        controller.on_congestion_event(at(60), at(2), false, 1_500);
        assert_eq!(controller.window(), 7_000 + 1_000);
    }
}
