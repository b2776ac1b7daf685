//! Round-trip times, which quinn's connections only smooth: measured where they tell their congestion controllers of
//! acknowledgements.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use super::proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use super::proto::{self, RttEstimator};
use lasthop_base::Duration;

/// The round-trip times of an end: one for each acknowledgement of a packet that elicits them, which includes its delay.
#[derive(Debug, Default)]
pub(crate) struct RoundTrips {
    samples: AtomicU64,
    /// The sum of all, in nanoseconds.
    sum: AtomicU64,
}

impl RoundTrips {
    /// The number of round-trip times.
    pub(crate) fn samples(&self) -> u64 {
        self.samples.load(Relaxed)
    }

    /// The sum of all.
    pub(crate) fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum.load(Relaxed))
    }

    fn add(&self, time: std::time::Duration) {
        self.samples.fetch_add(1, Relaxed);
        self.sum.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }
}

/// Makes controllers that measure round-trip times.
pub(crate) struct Metering {
    /// Makes what controls.
    pub(crate) control: Arc<dyn ControllerFactory + Send + Sync>,
    /// Where they are counted.
    pub(crate) round_trips: Arc<RoundTrips>,
}

impl ControllerFactory for Metering {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.control).build(now, current_mtu);
        Box::new(Metered { inner, latest: None, round_trips: Arc::clone(&self.round_trips) })
    }
}

/// A controller that counts, and passes everything on to the one that controls.
struct Metered {
    inner: Box<dyn Controller>,
    /// When the latest of the packets was sent that an acknowledgement covers.
    latest: Option<Instant>,
    round_trips: Arc<RoundTrips>,
}

impl Controller for Metered {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.latest = self.latest.max(Some(sent));
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        if let Some(sent) = self.latest.take() {
            self.round_trips.add(now.saturating_duration_since(sent));
        }
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.inner.on_congestion_event(now, sent, is_persistent, lost_bytes);
    }

    proto::on_spurious_loss!(self => self.inner.on_spurious_loss());

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let round_trips = Arc::clone(&self.round_trips);
        Box::new(Metered { inner: self.inner.clone_box(), latest: self.latest, round_trips })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
