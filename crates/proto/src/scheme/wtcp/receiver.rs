//! The receiver of WTCP: computes the rate of the source.

use lasthop_base::{Duration, Time};

use super::{Wtcp, with_rate};
use crate::tcp::{AckResponse, Flags, Receiver, ReceiverReaction, Segment, SeqNum};

/// Departures of a packet pair are at most this far apart.
const BACK_TO_BACK: Duration = Duration::from_millis(1);

/// Number of arrivals after which the first rate is known even without a packet pair.
const FIRST_ARRIVALS: u32 = 4;

/// Gain of the mean number of losses, and of its deviation: those of round-trip times (RFC 6298).
const MEAN_GAIN: f64 = 1.0 / 8.0;
const DEVIATION_GAIN: f64 = 1.0 / 4.0;

/// The least delay is that of so many epochs to twice as many, so that it follows the path.
const LONG_TERM: u32 = 32;

/// The rate never falls below this share of the first one.
const LEAST_SHARE: f64 = 1.0 / 64.0;

/// Rate control.
#[derive(Debug)]
pub(super) struct RateControl {
    params: Wtcp,
    /// Arrival and timestamp of the packet that departed last.
    last: Option<(Time, u32)>,
    /// End of the data that departed so far.
    highest: Option<SeqNum>,
    start: Start,
    /// In bytes of payload per second, as is the first rate.
    rate: f64,
    first_rate: f64,
    epoch: Epoch,
    usual: Losses,
    /// Delay of the last packet relative to the first, in nanoseconds: the sum of arrival spacings minus departure spacings.
    delay: i64,
    least: LeastDelay,
}

/// The least delay in the last epochs, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct LeastDelay {
    epochs: u32,
    /// In the current period of epochs, and in the one before.
    current: i64,
    before: i64,
}

impl LeastDelay {
    /// The least delay, given that of another epoch.
    fn update(&mut self, delay: i64) -> i64 {
        if self.epochs == LONG_TERM {
            *self = LeastDelay { epochs: 0, current: delay, before: self.current };
        }
        self.epochs += 1;
        self.current = self.current.min(delay);
        self.current.min(self.before)
    }
}

/// The search for the first rate.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// After some arrivals, with the highest rate between two of them.
    Searching { arrivals: u32, fastest: f64 },
    /// The rate is known.
    Over,
}

/// Packets since the last decision.
#[derive(Clone, Copy, Debug, Default)]
struct Epoch {
    packets: u32,
    bytes: u64,
    losses: u32,
    /// Time between the first and the last departure, and between their arrivals.
    sent: Duration,
    received: Duration,
    /// The least delay of a packet; `None` without packets.
    delay: Option<i64>,
}

/// The number of losses in an epoch without congestion.
#[derive(Clone, Copy, Debug, Default)]
struct Losses {
    mean: f64,
    deviation: f64,
}

impl Losses {
    /// The number of losses above which they are not random.
    fn most(&self, deviations: f64) -> f64 {
        self.mean + deviations * self.deviation + 1.0
    }

    fn learn(&mut self, losses: u32) {
        let error = f64::from(losses) - self.mean;
        self.mean += MEAN_GAIN * error;
        self.deviation += DEVIATION_GAIN * (error.abs() - self.deviation);
    }
}

impl RateControl {
    pub(super) fn new(params: Wtcp) -> RateControl {
        RateControl {
            params,
            last: None,
            highest: None,
            start: Start::Searching { arrivals: 0, fastest: 0.0 },
            rate: 0.0,
            first_rate: 0.0,
            epoch: Epoch::default(),
            usual: Losses::default(),
            delay: 0,
            least: LeastDelay::default(),
        }
    }

    /// Counts the segments missing before `segment`, which arrives for the first time or again.
    fn count_losses(&mut self, segment: &Segment, mss: u32) {
        let end = segment.seq + segment.len;
        match self.highest {
            Some(highest) if end <= highest => {}
            Some(highest) => {
                let missing = if segment.seq > highest { (segment.seq - highest).div_ceil(mss) } else { 0 };
                // The numbers are from the wire: at most as many losses count as an epoch has packets.
                self.epoch.losses = self.epoch.losses.saturating_add(missing).min(self.params.epoch);
                self.highest = Some(end);
            }
            None => self.highest = Some(end),
        }
    }

    /// A packet with `bytes` of payload has arrived `received` after the one before it, and was sent `sent` after it.
    fn on_spacing(&mut self, bytes: u32, sent: Duration, received: Duration) {
        if let Start::Searching { arrivals, fastest } = self.start {
            let rate = if received.is_zero() { 0.0 } else { f64::from(bytes) / received.as_secs_f64() };
            let (arrivals, fastest) = (arrivals + 1, fastest.max(rate));
            let is_pair = sent <= BACK_TO_BACK && rate > 0.0;
            self.start = Start::Searching { arrivals, fastest };
            if is_pair || (arrivals >= FIRST_ARRIVALS && fastest > 0.0) {
                self.first_rate = if is_pair { rate } else { fastest };
                (self.rate, self.start) = (self.first_rate, Start::Over);
            }
            return;
        }
        self.delay += received.as_nanos() as i64 - sent.as_nanos() as i64;
        let epoch = &mut self.epoch;
        epoch.packets += 1;
        epoch.delay = Some(epoch.delay.map_or(self.delay, |least| least.min(self.delay)));
        epoch.bytes += u64::from(bytes);
        epoch.sent += sent;
        epoch.received += received;
        if epoch.packets >= self.params.epoch {
            self.decide();
        }
    }

    /// Ends an epoch: changes the rate.
    fn decide(&mut self) {
        let Wtcp { congested, increase, decrease, deviations, .. } = self.params;
        let Epoch { bytes, losses, sent, received, delay, .. } = core::mem::take(&mut self.epoch);
        let delay = delay.expect("an epoch has packets");
        let queue = (delay - self.least.update(delay)) as f64 / 1e9;
        let (sent, received) = (sent.as_secs_f64(), received.as_secs_f64());
        let ratio = if sent > 0.0 { received / sent } else { 1.0 };
        let is_queued = queue > (congested - 1.0) * sent;
        if ratio > congested || (is_queued && ratio >= 1.0) {
            self.rate *= decrease / ratio.max(1.0);
        } else if is_queued {
            // The queue drains.
        } else if f64::from(losses) > self.usual.most(deviations) {
            self.rate *= decrease;
        } else {
            self.usual.learn(losses);
            if bytes as f64 >= self.rate / 2.0 * sent {
                self.rate += increase * self.first_rate;
            }
        }
        self.rate = self.rate.max(LEAST_SHARE * self.first_rate);
    }
}

impl ReceiverReaction for RateControl {
    fn on_segment(&mut self, now: Time, segment: &Segment, receiver: &mut Receiver) {
        let Some(stamp) = segment.timestamps.filter(|_| segment.len > 0) else { return };
        self.count_losses(segment, receiver.settings().mss());
        let Some((arrival, before)) = self.last else {
            self.last = Some((now, stamp.value));
            return;
        };
        let micros = stamp.value.wrapping_sub(before);
        if micros > u32::MAX / 2 {
            // It was overtaken.
            return;
        }
        self.last = Some((now, stamp.value));
        self.on_spacing(segment.len, Duration::from_nanos(u64::from(micros) * 1_000), now.since(arrival));
    }

    fn on_ack(&mut self, _now: Time, ack: &mut Segment, _receiver: &mut Receiver) -> AckResponse {
        if self.rate > 0.0 && ack.flags & (Flags::SYN | Flags::RST) == Flags::default() {
            ack.sack = with_rate(&ack.sack, (libm::round(self.rate) as u32).max(1));
        }
        AckResponse::Send
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A receiver with a rate of 1,000 B/s, that of a packet pair.
    fn started() -> RateControl {
        let mut control = RateControl::new(Wtcp { epoch: 4, ..Wtcp::default() });
        control.on_spacing(500, Duration::ZERO, ms(500));
        assert_eq!((control.rate, control.first_rate), (1_000.0, 1_000.0));
        control
    }

    /// An epoch of packets of 500 B.
    fn epoch(control: &mut RateControl, sent: u64, received: u64, losses: u32) -> f64 {
        control.epoch.losses = losses;
        (0..4).for_each(|_| control.on_spacing(500, ms(sent), ms(received)));
        control.rate
    }

    #[test]
    fn the_first_rate_is_that_of_a_packet_pair_or_of_the_fastest_arrivals() {
        let mut control = RateControl::new(Wtcp::default());
        for (sent, received) in [(100, 400), (100, 0), (100, 250)] {
            control.on_spacing(500, ms(sent), ms(received));
            assert_eq!(control.rate, 0.0);
        }
        control.on_spacing(500, ms(100), ms(300));
        assert_eq!(control.rate, 2_000.0, "500 B in 250 ms");
        let mut pair = RateControl::new(Wtcp::default());
        pair.on_spacing(500, ms(1), ms(400));
        assert_eq!(pair.rate, 1_250.0);
    }

    #[test]
    fn the_rate_grows_by_a_constant_until_packets_spread() {
        let mut control = started();
        assert_eq!(epoch(&mut control, 500, 500, 0), 1_050.0);
        // A ratio of 1.1 is not above the threshold.
        assert_eq!(epoch(&mut control, 500, 550, 0), 1_100.0);
        // 600 ms instead of 480: 1.25.
        assert_eq!(epoch(&mut control, 480, 600, 0), 1_100.0 * 0.75 / 1.25);
        // The queue drains, at first not below the threshold: 680 - 240 ms are left, of which 304 ms would be little.
        assert_eq!(epoch(&mut control, 760, 700, 0), 660.0);
        assert_eq!(epoch(&mut control, 760, 700, 0), 710.0);
    }

    /// Each epoch adds 60 ms, which is little for its 2 s: after four of them, the least delay of an epoch is 195 ms; after
    /// five, 255 ms.
    #[test]
    fn a_queue_that_grows_slowly_counts() {
        let mut control = started();
        for rate in [1_050.0, 1_100.0, 1_150.0, 1_200.0] {
            assert_eq!(epoch(&mut control, 500, 515, 0), rate);
        }
        assert_eq!(epoch(&mut control, 500, 515, 0), 1_200.0 * (0.75 / 1.03));
        // A longer path: the rate falls until its delay is the least of the last 64 epochs, and grows again.
        let rates: alloc::vec::Vec<f64> = (0..80).map(|_| epoch(&mut control, 500, 500, 0)).collect();
        assert!(rates[0] > rates[1] && rates[20] == 1_000.0 / 64.0, "{rates:?}");
        assert!(rates[64..].is_sorted() && rates[79] > 700.0, "{rates:?}");
    }

    /// A source without enough data shows nothing about the path.
    #[test]
    fn an_idle_source_does_not_raise_the_rate() {
        let mut control = started();
        assert_eq!(epoch(&mut control, 1_001, 1_001, 0), 1_000.0);
        assert_eq!(epoch(&mut control, 1_000, 1_000, 0), 1_050.0);
    }

    #[test]
    fn losses_count_only_if_they_are_more_than_usual() {
        let mut control = started();
        // One loss is never congestion.
        assert_eq!(epoch(&mut control, 500, 500, 1), 1_050.0);
        // Mean 1/8, deviation 1/4: more than 1.625 losses are.
        assert_eq!(epoch(&mut control, 500, 500, 2), 1_050.0 * 0.75);
        // Congestion is not learned.
        assert_eq!((control.usual.mean, control.usual.deviation), (0.125, 0.25));
        assert_eq!(epoch(&mut control, 500, 500, 1), 787.5 + 50.0);
        assert_eq!((control.usual.mean, control.usual.deviation), (0.234375, 0.40625));
        assert_eq!(control.usual.most(2.0), 2.046875);
        assert_eq!(epoch(&mut control, 500, 500, 2), 887.5);
    }

    #[test]
    fn the_rate_has_a_lower_bound() {
        let mut control = started();
        (0..100).for_each(|_| _ = epoch(&mut control, 500, 5_000, 0));
        assert_eq!(control.rate, 1_000.0 / 64.0);
    }
}
