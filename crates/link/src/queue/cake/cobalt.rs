//! COBALT: CoDel and BLUE for one queue.

use lasthop_base::{Duration, Stream, Time};
use lasthop_proto::Packet;

use crate::queue::QueueStats;

/// By how much BLUE's probability rises when the queue is full, of 2³²: one in 256.
const RISE: u32 = 1 << 24;
/// By how much it falls when the queue is empty: one in 4096.
const FALL: u32 = 1 << 20;

/// What all queues of a tin share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Acceptable standing delay.
    pub(super) target: Duration,
    /// How long the delay may exceed the target.
    pub(super) interval: Duration,
    /// Time that the tin's rate takes for a packet of full size; four of them are always acceptable.
    pub(super) mtu_time: Duration,
}

impl Limits {
    fn next(&self, from: Time, count: u32) -> Time {
        let wait = self.interval.as_nanos() as f64 / f64::from(count.max(1)).sqrt();
        from + Duration::from_nanos(wait as u64)
    }
}

/// The state of one queue, with the names of Linux.
#[derive(Clone, Debug, Default)]
pub(super) struct Cobalt {
    count: u32,
    /// Whether the count has changed. Until then Linux takes the interval over the root of it for zero, so that the first signal
    /// comes as soon as the delay is above the target.
    has_counted: bool,
    dropping: bool,
    drop_next: Time,
    /// BLUE's probability, of 2³², and when it has changed.
    p_drop: u32,
    blue_timer: Option<Time>,
}

impl Cobalt {
    /// Whether nothing is left of earlier congestion.
    pub(super) fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    fn is_blue_due(&self, limits: &Limits, now: Time) -> bool {
        self.blue_timer.is_none_or(|last| now.since(last) > limits.target)
    }

    /// A packet was dropped since the queues are full.
    pub(super) fn on_full(&mut self, limits: &Limits, now: Time) {
        if self.is_blue_due(limits, now) {
            self.p_drop = self.p_drop.saturating_add(RISE);
            self.blue_timer = Some(now);
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue was found empty.
    pub(super) fn on_empty(&mut self, limits: &Limits, now: Time) {
        if self.p_drop > 0 && self.is_blue_due(limits, now) {
            self.p_drop = self.p_drop.saturating_sub(FALL);
            self.blue_timer = Some(now);
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.has_counted = true;
            self.drop_next = limits.next(self.drop_next, self.count);
        }
    }

    /// Whether a packet that leaves the queue after `waited` has to be dropped; it may be marked instead.
    pub(super) fn drops(
        &mut self,
        limits: &Limits,
        now: Time,
        waited: Duration,
        packet: &mut Packet,
        stats: &mut QueueStats,
        random: &mut Stream,
    ) -> bool {
        let mut is_due = self.count > 0 && now >= self.drop_next;
        let mut is_late = now > self.drop_next;
        let mut drop = false;
        if waited > limits.target && waited > limits.mtu_time * 4 {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = if self.has_counted { limits.next(now, self.count) } else { now };
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if is_due && self.dropping {
            drop = !stats.mark(packet, true);
            self.count = self.count.saturating_add(1);
            self.has_counted = true;
            self.drop_next = limits.next(self.drop_next, self.count);
            is_late = now > self.drop_next;
        } else {
            while is_due {
                self.count -= 1;
                self.has_counted = true;
                self.drop_next = limits.next(self.drop_next, self.count);
                is_late = now > self.drop_next;
                is_due = self.count > 0 && now >= self.drop_next;
            }
        }
        // BLUE drops ECN-capable packets, too: their sender does not respond.
        if self.p_drop > 0 {
            drop |= random.below(1 << 32) < u64::from(self.p_drop);
        }
        if self.count == 0 {
            self.drop_next = now + limits.interval;
        } else if is_late && !drop {
            self.drop_next = now;
        }
        drop
    }
}
