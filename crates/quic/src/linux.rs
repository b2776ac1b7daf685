//! The congestion controls of this workspace's TCP as quinn's controllers, so that a control can be compared over two transports.
//!
//! quinn tells a controller of each packet acknowledged when it was sent, but not its number, of losses how many bytes, and of
//! marks that there was one. Losses follow the acknowledgement that reveals them: the next sample of the delivery rate counts them.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use super::proto::RttEstimator;
use super::proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use lasthop_base::Duration;
use lasthop_proto::FlowId;
use lasthop_proto::tcp::{Congestion, PacketControl, Sign};

use crate::clock;

/// Makes the controllers of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linux {
    /// The control.
    pub(crate) congestion: Congestion,
    /// Seeds its random numbers.
    pub(crate) flow: FlowId,
}

impl Linux {
    fn controller(self, packet: u16) -> LinuxController {
        let control = PacketControl::new(self.congestion, packet, self.flow);
        LinuxController { made_by: self, packet, control, srtt: Duration::ZERO }
    }
}

impl ControllerFactory for Linux {
    fn build(self: Arc<Self>, _now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.controller(current_mtu))
    }
}

struct LinuxController {
    made_by: Linux,
    packet: u16,
    control: PacketControl,
    srtt: Duration,
}

impl Controller for LinuxController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.control.on_sent(clock::time(now), bytes);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _app_limited: bool, rtt: &RttEstimator) {
        self.srtt = Duration::from_nanos(u64::try_from(rtt.get().as_nanos()).unwrap_or(u64::MAX));
        self.control.on_acked(clock::time(now), clock::time(sent), bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        self.control.on_acknowledged(clock::time(now), in_flight, self.srtt, app_limited);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        let sign = if lost_bytes == 0 { Sign::Mark } else { Sign::Lost(lost_bytes) };
        self.control.on_congestion(clock::time(now), clock::time(sent), sign, is_persistent);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.packet = new_mtu;
        self.control.set_packet_size(new_mtu);
    }

    /// quinn sends a packet if it leaves less than the window in flight, Linux also if it fills the window.
    fn window(&self) -> u64 {
        self.control.window().cwnd() as u64 + 1
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window() - 1;
        let threshold = self.control.window().ssthresh();
        metrics.ssthresh = threshold.is_finite().then_some(threshold as u64);
        metrics.pacing_rate = self.control.pacing_rate().map(|rate| (8.0 * rate) as u64);
        metrics
    }

    /// A controller that begins anew: only a connection that changes its path copies it, which no host does.
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.made_by.controller(self.packet))
    }

    fn initial_window(&self) -> u64 {
        self.control.window().initial().into()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
