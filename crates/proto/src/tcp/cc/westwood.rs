//! Westwood+ (Mascolo, Grieco et al. 2004), as in Linux: after a loss the window is set to the estimated
//! bandwidth times the minimum round-trip time.

use lasthop_base::{Duration, Time};

use super::reno::Reno;
use super::{AckInfo, Chosen, Control, Controller, Demand, Loss, RttInfo, Window};
use crate::tcp::settings::Settings;

pub(super) const CONTROL: Control = Control {
    needs_samples: true,
    linux: Some("westwood"),
    ..Control::new("westwood", "Westwood+", "Westwood+ (Mascolo et al. 2004, as in Linux)", |settings, _| {
        Chosen::other(Westwood::new(settings))
    })
};

/// Minimum interval of a bandwidth sample; otherwise a round-trip time.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);

/// Reno whose ssthresh is the bandwidth times the minimum round-trip time. Times are in clock ticks:
/// round-trip times are rounded up, so that ssthresh is above the bandwidth-delay product.
#[derive(Clone, Debug)]
pub(super) struct Westwood {
    reno: Reno,
    tick: Duration,
    /// Bytes per tick, filtered once and twice.
    once: u64,
    twice: u64,
    /// Start of the current interval in ticks, and the bytes acknowledged in it.
    began: u64,
    acked: u64,
    /// Round-trip times in ticks.
    rtt: u64,
    min_rtt: Option<u64>,
    /// Whether a scheme determined the reduction at the last loss.
    scaled: bool,
}

/// Exponentially weighted average with a weight of 7/8 for the previous value.
fn filtered(past: u64, sample: u64) -> u64 {
    (7 * past + sample) >> 3
}

impl Westwood {
    /// A controller for a connection with these settings.
    pub(super) fn new(settings: &Settings) -> Westwood {
        Westwood {
            reno: Reno::new(settings),
            tick: settings.tick,
            once: 0,
            twice: 0,
            began: 0,
            acked: 0,
            rtt: 0,
            min_rtt: None,
            scaled: false,
        }
    }

    fn count(&mut self, now: Time, acked: u64) {
        let tick = self.tick.as_nanos();
        let now = now.as_nanos() / tick;
        let elapsed = now - self.began;
        if self.rtt > 0 && elapsed > self.rtt.max(LEAST_INTERVAL.as_nanos() / tick) {
            let sample = self.acked / elapsed;
            if (self.once, self.twice) == (0, 0) {
                (self.once, self.twice) = (sample, sample);
            } else {
                self.once = filtered(self.once, sample);
                self.twice = filtered(self.twice, self.once);
            }
            (self.began, self.acked) = (now, 0);
        }
        self.acked += acked;
    }

    fn set_threshold(&mut self) {
        let bytes = self.twice * self.min_rtt.unwrap_or_default();
        let window = &mut self.reno.window;
        window.set_ssthresh((bytes as f64 / window.mss()) as u32);
    }
}

impl Controller for Westwood {
    fn window(&self) -> &Window {
        self.reno.window()
    }

    fn window_mut(&mut self) -> &mut Window {
        self.reno.window_mut()
    }

    fn on_ack(&mut self, ack: &AckInfo) {
        self.reno.on_ack(ack);
    }

    fn on_rtt(&mut self, info: &RttInfo) -> bool {
        self.rtt = info.rtt.as_nanos().div_ceil(self.tick.as_nanos());
        self.min_rtt = Some(self.min_rtt.map_or(self.rtt, |least| least.min(self.rtt)));
        true
    }

    fn on_sample(&mut self, sample: &super::RateSample) -> Demand {
        self.count(sample.now, sample.newly_delivered);
        Demand::Full
    }

    fn on_loss(&mut self, loss: &Loss, factor: Option<f64>) {
        self.scaled = factor.is_some();
        self.reno.on_loss(loss, factor);
    }

    /// As in Linux, half the window until recovery ends, and then the bandwidth-delay product.
    fn on_recovered(&mut self, limit: u32) {
        if !self.scaled {
            self.set_threshold();
        }
        let window = self.reno.window_mut();
        window.cwnd = window.ssthresh.min(f64::from(if self.scaled { limit } else { u32::MAX }));
    }

    fn on_timeout(&mut self, loss: &Loss, factor: Option<f64>) {
        self.reno.on_timeout(loss, factor);
        if factor.is_none() {
            self.set_threshold();
        }
        // The path may have changed, so the minimum round-trip time is reset.
        self.min_rtt = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SeqNum;
    use crate::tcp::cc::RateSample;

    /// 6100 bytes per round trip of 61 ms are 100 bytes per millisecond. With ticks of 4 ms the round trip is
    /// rounded up to 16 ticks, for which Linux computes 6400 bytes.
    #[test]
    fn time_counts_in_ticks() {
        let header = Settings::default().header;
        let packet_size = header + lasthop_base::Bytes(100);
        let tick = Duration::from_millis(4);
        let mut westwood = Westwood::new(&Settings { packet_size, tick, ..Settings::default() });
        let rtt = Duration::from_millis(61);
        let info = RttInfo { now: Time::ZERO, rtt, una: SeqNum(0), max: SeqNum(0) };
        westwood.on_rtt(&info);
        for millisecond in 0..1000 {
            let now = Time::ZERO + Duration::from_millis(millisecond);
            westwood.on_sample(&RateSample { now, newly_delivered: 100, ..RateSample::default() });
        }
        westwood.on_recovered(u32::MAX);
        assert!((westwood.window().cwnd() - 6400.0).abs() < 0.1, "{}", westwood.window().cwnd());
    }
}
