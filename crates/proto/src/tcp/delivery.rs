//! Delivery rate samples (draft-cheng-iccrg-delivery-rate-estimation; draft-ietf-ccwg-bbr section 4.1).

use lasthop_base::{Duration, Time};

use crate::packet::SeqNum;

/// The delivery state at the transmission of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    delivered: u64,
    delivered_at: Time,
    /// Transmission time of the first segment of the measured flight.
    flight_began: Time,
    pub(super) application_limited: bool,
    /// Segments in flight, including this one.
    pub(super) in_flight: u32,
    /// Number of losses so far.
    pub(super) lost: u32,
}

/// The delivery rate sample of one acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSample {
    /// Arrival time of the acknowledgement.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub newly_delivered: u64,
    /// Bytes newly marked lost.
    pub newly_lost: u64,
    /// Bytes delivered so far on this connection.
    pub delivered: u64,
    /// Bytes delivered when the newest acknowledged segment was sent.
    pub prior_delivered: u64,
    /// Delivery rate since then in bytes per second; `None` if the interval is too short.
    pub delivery_rate: Option<f64>,
    /// The measurement interval of the rate.
    pub interval: Duration,
    /// Whether the application, not the network, limited sending in that interval.
    pub application_limited: bool,
    /// The round-trip sample, if any.
    pub rtt: Option<Duration>,
    /// Whether the receiver may have delayed the acknowledgement.
    pub ack_delayed: bool,
    /// Bytes in flight before the acknowledgement arrived.
    pub prior_in_flight: u64,
    /// Bytes in flight now.
    pub in_flight: u64,
    /// Bytes in flight when the newest acknowledged segment was sent, including that segment.
    pub in_flight_at_sending: u64,
    /// Bytes marked lost since then.
    pub lost_since: u64,
    /// Whether the sender is repairing losses revealed by acknowledgements.
    pub in_recovery: bool,
    /// Whether the sender is recovering from a timeout.
    pub in_loss: bool,
}

/// A segment marked lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LostSegment {
    /// When the loss was found.
    pub now: Time,
    /// First sequence number.
    pub start: SeqNum,
    /// One past the last sequence number.
    pub end: SeqNum,
    /// Bytes in flight when the segment was last sent, including the segment.
    pub in_flight_at_sending: u64,
    /// Bytes marked lost since then, including the segment.
    pub lost_since: u64,
    /// Whether the application, not the network, limited sending at that time.
    pub application_limited: bool,
    /// Bytes delivered so far on this connection.
    pub delivered: u64,
}

/// The delivery rate estimator of one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DeliveryRate {
    delivered: u64,
    delivered_at: Time,
    flight_began: Time,
    /// Segments sent before this many bytes are delivered give application-limited samples; zero if none do.
    limited_until: u64,
    /// Transmission time and snapshot of the newest segment that the current acknowledgement covers.
    newest: Option<(Time, Snapshot)>,
    newly_delivered: u64,
}

impl DeliveryRate {
    /// Bytes delivered so far.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes delivered when the newest segment of this acknowledgement was sent.
    pub(super) fn prior_delivered(&self) -> u64 {
        self.newest.map_or(0, |(_, snapshot)| snapshot.delivered)
    }

    /// Whether sending is currently limited by the application.
    pub(super) fn is_application_limited(&self) -> bool {
        self.limited_until > 0
    }

    /// Starts a new flight; call when nothing is in flight.
    pub(super) fn restart(&mut self, now: Time) {
        (self.flight_began, self.delivered_at) = (now, now);
    }

    /// The snapshot for a segment sent now, with `in_flight` segments in flight including it and `lost`
    /// losses so far.
    pub(super) fn snapshot(&self, in_flight: u32, lost: u32) -> Snapshot {
        Snapshot {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            flight_began: self.flight_began,
            application_limited: self.limited_until > 0,
            in_flight,
            lost,
        }
    }

    /// Marks samples as application-limited until the `in_flight` bytes are delivered: the windows allow more
    /// than the application supplies.
    pub(super) fn note_application_limited(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// Records the delivery of a segment of `bytes`, last sent at `sent_at`.
    pub(super) fn on_delivered(&mut self, now: Time, bytes: u32, sent_at: Time, snapshot: &Snapshot) {
        self.delivered += u64::from(bytes);
        self.newly_delivered += u64::from(bytes);
        self.delivered_at = now;
        if self.newest.is_none_or(|(at, newest)| (sent_at, snapshot.delivered) >= (at, newest.delivered)) {
            self.newest = Some((sent_at, *snapshot));
        }
    }

    /// Ends the processing of an acknowledgement; returns the transmission time and the snapshot of the newest segment
    /// that it covers.
    pub(super) fn end_acknowledgement(&mut self) -> Option<(Time, Snapshot)> {
        if self.delivered > self.limited_until {
            self.limited_until = 0;
        }
        self.newly_delivered = 0;
        let newest = self.newest.take();
        if let Some((sent_at, _)) = newest {
            self.flight_began = sent_at;
        }
        newest
    }

    /// Completes the sample of the current acknowledgement, without the data in flight and lost; returns the snapshot of
    /// the newest segment that it covers. An interval shorter than `least`, the minimum round-trip time, gives no rate.
    // The sample is completed in place, since every acknowledgement has one.
    #[inline]
    pub(super) fn complete(&mut self, sample: &mut RateSample, least: Duration) -> Option<Snapshot> {
        (sample.newly_delivered, sample.delivered) = (self.newly_delivered, self.delivered);
        let (sent_at, prior) = self.end_acknowledgement()?;
        // The longer of the send interval and the ACK interval.
        let interval = sent_at.since(prior.flight_began).max(sample.now.since(prior.delivered_at));
        let bytes = self.delivered - prior.delivered;
        let measurable = !interval.is_zero() && interval >= least;
        sample.prior_delivered = prior.delivered;
        sample.delivery_rate = measurable.then(|| bytes as f64 / interval.as_secs_f64());
        sample.interval = interval;
        sample.application_limited = prior.application_limited;
        Some(prior)
    }
}

#[cfg(test)]
mod tests {
    use super::super::sent::Records;
    use super::*;
    use crate::packet::SeqNum;

    fn ms(milliseconds: u64) -> Time {
        Time::ZERO + Duration::from_millis(milliseconds)
    }

    /// The sample of an acknowledgement at `now`.
    fn sample(rate: &mut DeliveryRate, now: Time, least: Duration) -> RateSample {
        let mut sample = RateSample { now, ..RateSample::default() };
        rate.complete(&mut sample, least);
        sample
    }

    /// A segment of 1000 bytes every 10 ms, acknowledged 100 ms later, gives 100 kB/s, even if
    /// acknowledgements are aggregated.
    #[test]
    fn the_rate_is_the_lower_of_send_rate_and_ack_rate() {
        let mut sent = Records::default();
        let mut una = SeqNum(0);
        let ack = |sent: &mut Records, now: Time, upto: SeqNum| {
            let mut acked = alloc::vec::Vec::new();
            sent.segments.acknowledge(upto, |segment| acked.push(*segment));
            for segment in &acked {
                sent.rate.on_delivered(now, segment.len(), segment.sent_at, &segment.snapshot);
            }
            sample(&mut sent.rate, now, Duration::from_millis(50))
        };
        for n in 0..30_u32 {
            let now = ms(u64::from(n) * 10);
            if (10..25).contains(&n) {
                una = SeqNum((n - 9) * 1000);
                let sample = ack(&mut sent, now, una);
                assert_eq!(sample.newly_delivered, 1000);
                // The first flight waits for its first acknowledgement.
                if n > 20 {
                    let rate = sample.delivery_rate.expect("a full interval");
                    assert!((rate - 100_000.0).abs() < 1e-6, "{rate} at {n}");
                }
            }
            sent.on_sent(now, SeqNum(n * 1000), SeqNum((n + 1) * 1000));
        }
        // One acknowledgement for five segments: the rate does not exceed the sending rate.
        let sample = ack(&mut sent, ms(300), una + 5000);
        assert_eq!((sample.newly_delivered, sample.prior_delivered), (5000, 10_000));
        assert!(sample.delivery_rate.expect("a full interval") <= 100_000.0 + 1e-6);
    }

    /// An early acknowledgement does not raise the rate above the sending rate.
    #[test]
    fn the_rate_is_at_most_the_send_rate() {
        let mut rate = DeliveryRate::default();
        rate.restart(ms(0));
        let first = rate.snapshot(1, 0);
        rate.on_delivered(ms(100), 1000, ms(0), &first);
        sample(&mut rate, ms(100), Duration::ZERO);
        let second = rate.snapshot(1, 0);
        rate.on_delivered(ms(105), 1000, ms(100), &second);
        let sample = sample(&mut rate, ms(105), Duration::ZERO);
        assert_eq!((sample.delivery_rate, sample.interval), (Some(10_000.0), Duration::from_millis(100)));
    }

    #[test]
    fn samples_after_an_idle_application_are_application_limited() {
        let mut rate = DeliveryRate::default();
        rate.restart(ms(0));
        rate.note_application_limited(2000);
        let limited = rate.snapshot(2, 0);
        rate.on_delivered(ms(100), 2000, ms(0), &limited);
        assert!(sample(&mut rate, ms(100), Duration::ZERO).application_limited);
        rate.on_delivered(ms(110), 1000, ms(10), &limited);
        assert!(sample(&mut rate, ms(110), Duration::ZERO).application_limited);
        assert!(!rate.snapshot(1, 0).application_limited, "all that was in flight has arrived");
    }
}
