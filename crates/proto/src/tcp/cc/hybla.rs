//! Hybla (Caini and Firrincieli 2004), as in Linux: the window on a long path grows as fast as on a path with
//! a round-trip time of 25 ms.

use lasthop_base::Duration;

use super::reno::Reno;
use super::{AckInfo, Chosen, Control, Controller, Loss, RttInfo, Window};
use crate::tcp::settings::Settings;

pub(super) const CONTROL: Control = Control {
    linux: Some("hybla"),
    ..Control::new("hybla", "Hybla", "Hybla (Caini and Firrincieli 2004, as in Linux)", |settings, _| {
        Chosen::other(Hybla::new(settings))
    })
};

/// The reference round-trip time.
const REFERENCE: Duration = Duration::from_millis(25);
/// 2 to the power of each eighth, in parts of [`UNIT`].
const POWERS: [u32; 8] = [128, 139, 152, 165, 181, 197, 215, 234];
const UNIT: u32 = 128;
/// Maximum ρ in slow start.
const MOST: u32 = 16;

/// Reno whose growth is scaled by ρ = RTT / 25 ms, at least one.
#[derive(Clone, Debug)]
pub(super) struct Hybla {
    reno: Reno,
    srtt: Option<u64>,
    least_srtt: Option<u64>,
    /// ρ in eighths.
    rho: u32,
    /// Fractional segments of growth carried over, in parts of [`UNIT`].
    rest: u32,
}

impl Hybla {
    /// A controller for a connection with these settings.
    pub(super) fn new(settings: &Settings) -> Hybla {
        Hybla { reno: Reno::new(settings), srtt: None, least_srtt: None, rho: 8, rest: 0 }
    }

    /// Updates ρ while the smoothed round-trip time decreases.
    fn update_rho(&mut self, rtt: Duration) {
        let rtt = rtt.as_nanos();
        let srtt = self.srtt.map_or(rtt, |srtt| (7 * srtt + rtt) / 8);
        self.srtt = Some(srtt);
        if self.least_srtt.is_none_or(|least| srtt < least) {
            self.least_srtt = Some(srtt);
            self.rho = u32::try_from(8 * srtt / REFERENCE.as_nanos()).unwrap_or(u32::MAX >> 8).max(8);
        }
    }

    /// Growth per acknowledgement, in parts of [`UNIT`]: 2^ρ - 1 segments in slow start, ρ² segments per
    /// window after it.
    fn growth(&self, cwnd: u32) -> u32 {
        if self.reno.window.in_slow_start() {
            (POWERS[(self.rho % 8) as usize] << (self.rho / 8).min(MOST)) - UNIT
        } else {
            (2 * u64::from(self.rho) * u64::from(self.rho) / u64::from(cwnd)) as u32
        }
    }
}

impl Controller for Hybla {
    fn window(&self) -> &Window {
        self.reno.window()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.reno.window_mut()
    }

    /// As in Linux: growth per acknowledgement, regardless of the bytes acknowledged; Reno outside of the
    /// Open state.
    fn on_ack(&mut self, ack: &AckInfo) {
        if !ack.undisturbed {
            return self.reno.on_ack(ack);
        }
        let slow_start = self.reno.window.in_slow_start();
        let cwnd = self.reno.window.cwnd();
        self.rest += self.growth(cwnd);
        let mut grown = cwnd.saturating_add(self.rest / UNIT);
        self.rest %= UNIT;
        if slow_start {
            grown = grown.min(self.reno.window.ssthresh()).max(cwnd);
        }
        self.reno.window.set_cwnd(grown);
    }

    /// The first window is ρ.
    fn on_established(&mut self, info: &RttInfo) {
        self.update_rho(info.rtt);
        self.reno.window.set_cwnd(self.rho / 8);
    }

    fn on_rtt(&mut self, info: &RttInfo) -> bool {
        self.update_rho(info.rtt);
        true
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.reno.on_loss(loss, factor);
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.reno.on_timeout(loss, factor);
    }
}

#[cfg(test)]
mod tests {
    use lasthop_base::{Bytes, Time};

    use super::*;
    use crate::packet::SeqNum;

    /// A path of 60 ms: ρ is 2 3/8 in the eighths of Linux and the initial window two segments. Each
    /// acknowledgement adds 2^ρ - 1 segments, 533/128 - 1 in the table of Linux; above the threshold a window
    /// adds ρ² segments.
    #[test]
    fn the_window_grows_as_in_linux() {
        let packet_size = Settings::default().header + Bytes(1000);
        let mut hybla = Hybla::new(&Settings { packet_size, ..Settings::default() });
        let rtt = Duration::from_millis(60);
        let (una, max) = (SeqNum(0), SeqNum(0));
        hybla.on_established(&RttInfo { now: Time::ZERO, rtt, una, max });
        let ack = AckInfo { now: Time::ZERO, acked: 1000, una, max, undisturbed: true };
        let mut windows = [0; 4];
        for window in &mut windows {
            hybla.on_ack(&ack);
            *window = hybla.reno.window.cwnd();
        }
        // 4 * 165 - 128 = 532 parts of 128 each time.
        assert_eq!(windows, [6, 10, 14, 18]);
        hybla.reno.window.set_ssthresh(18);
        // 2 * 19 * 19 / 18 = 40 parts each time, with 80 carried over: the second acknowledgement completes a segment.
        for window in &mut windows {
            hybla.on_ack(&ack);
            *window = hybla.reno.window.cwnd();
        }
        assert_eq!(windows, [18, 19, 19, 19]);
        // With out-of-order data, Reno applies.
        for _ in 0..10 {
            hybla.on_ack(&AckInfo { undisturbed: false, ..ack });
        }
        assert_eq!(hybla.reno.window.cwnd(), 19);
    }
}
