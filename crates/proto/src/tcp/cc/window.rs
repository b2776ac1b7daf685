//! The congestion window, in bytes and, as in Linux, in segments.

use crate::tcp::settings::{IdleRestart, InitialThreshold, Settings};

/// The congestion window and the slow-start threshold, in bytes. Fractions matter: congestion avoidance adds less
/// than a byte at a time to a large window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Bytes of payload in a full segment.
    pub(super) mss: f64,
    /// The initial window, also used for the restart after an idle period.
    initial: u32,
}

impl Window {
    /// The initial window of a connection with these settings. Without congestion control, it is the
    /// receiver's window.
    pub fn new(settings: &Settings) -> Window {
        let rwnd = settings.window_payload();
        let mss = settings.mss();
        let initial = if settings.is_controlled() { settings.initial_window.bytes(mss) } else { rwnd };
        let ssthresh = match settings.initial_ssthresh {
            InitialThreshold::Unlimited => f64::INFINITY,
            InitialThreshold::Window => f64::from(rwnd),
            InitialThreshold::Segments(n) => f64::from(n) * f64::from(mss),
        };
        Window { cwnd: f64::from(initial), ssthresh, mss: f64::from(mss), initial }
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold, bytes.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Bytes of payload in a full segment.
    pub fn mss(&self) -> f64 {
        self.mss
    }

    /// The initial window, bytes.
    pub fn initial(&self) -> u32 {
        self.initial
    }

    /// Whether the window is below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Sets the window to `bytes`; the threshold stays.
    pub(in crate::tcp) fn set_cwnd(&mut self, bytes: f64) {
        self.cwnd = bytes;
    }

    /// Subtracts `bytes` from the window, down to `least`.
    pub(in crate::tcp) fn deflate(&mut self, bytes: u32, least: u32) {
        self.cwnd = (self.cwnd - f64::from(bytes)).max(f64::from(least));
    }

    /// The same window in segments of `mss` bytes: as in Linux, whose windows count packets, it shrinks with their size.
    pub(in crate::tcp) fn in_segments_of(&self, mss: f64) -> Window {
        if self.mss == mss {
            return *self;
        }
        // Divided first, since whole segments stay exact.
        let scaled = |bytes: f64| bytes / self.mss * mss;
        let initial = libm::round(scaled(f64::from(self.initial))) as u32;
        Window { cwnd: scaled(self.cwnd), ssthresh: scaled(self.ssthresh), mss, initial }
    }

    /// Reduces the window by `rule` after an idle period of `timeouts` whole timeouts.
    pub(super) fn restart(&mut self, rule: IdleRestart, timeouts: u32) {
        let least = self.cwnd.min(f64::from(self.initial));
        match rule {
            IdleRestart::Never => {}
            IdleRestart::InitialWindow => self.cwnd = least,
            IdleRestart::Halving => {
                let segments = (self.cwnd / self.mss) as u32;
                let three_quarters = segments / 2 + segments / 4;
                self.ssthresh = self.ssthresh.max(f64::from(three_quarters) * self.mss);
                let halved = segments.checked_shr(timeouts).unwrap_or(0);
                self.cwnd = (f64::from(halved) * self.mss).max(least);
            }
        }
    }

    /// Sets the initial window for later restarts to `bytes`.
    pub(in crate::tcp) fn set_initial(&mut self, bytes: u32) {
        self.initial = bytes;
    }
}

/// A window that moves in whole segments, as in Linux: acknowledged segments are counted until they are
/// enough for the next increase (RFC 3465 without a limit per acknowledgement).
#[derive(Clone, Copy, Debug)]
pub struct SegmentWindow {
    bytes: Window,
    /// Acknowledged bytes of an incomplete segment.
    rest: u32,
    /// Acknowledged segments not yet used for an increase.
    credit: u32,
}

impl SegmentWindow {
    /// The window at the beginning of a connection with these settings.
    pub fn new(settings: &Settings) -> SegmentWindow {
        SegmentWindow { bytes: Window::new(settings), rest: 0, credit: 0 }
    }

    /// The window in bytes.
    pub fn bytes(&self) -> &Window {
        &self.bytes
    }

    /// The window in bytes.
    pub fn bytes_mut(&mut self) -> &mut Window {
        &mut self.bytes
    }

    /// Bytes of payload in a full segment.
    pub fn mss(&self) -> f64 {
        self.bytes.mss
    }

    /// The window in whole segments, at least one.
    pub fn cwnd(&self) -> u32 {
        ((self.bytes.cwnd / self.bytes.mss) as u32).max(1)
    }

    /// The threshold in whole segments. The cast saturates for an unlimited threshold.
    pub fn ssthresh(&self) -> u32 {
        (self.bytes.ssthresh / self.bytes.mss) as u32
    }

    /// Whether the window is below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.bytes.in_slow_start()
    }

    /// Sets the window to `segments`.
    pub fn set_cwnd(&mut self, segments: u32) {
        self.bytes.cwnd = f64::from(segments) * self.bytes.mss;
    }

    /// Sets the threshold to `segments`, at least two.
    pub fn set_ssthresh(&mut self, segments: u32) {
        self.bytes.ssthresh = f64::from(segments.max(2)) * self.bytes.mss;
    }

    /// Converts `bytes` to whole segments; the remainder carries over to the next call.
    pub fn acked_segments(&mut self, bytes: u32) -> u32 {
        let all = self.rest.saturating_add(bytes);
        let mss = self.bytes.mss as u32;
        self.rest = all % mss;
        all / mss
    }

    /// Slow start: grows by one segment for each of `acked`, up to the threshold. Returns the number left
    /// over.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let from = self.cwnd();
        let to = from.saturating_add(acked).min(self.ssthresh()).max(from);
        self.set_cwnd(to);
        acked - (to - from)
    }

    /// Congestion avoidance: grows by one segment for every `per` acknowledged segments.
    pub fn avoid(&mut self, per: u32, acked: u32) {
        let mut segments = self.cwnd();
        // Credit from a larger `per` is worth at most one segment.
        if self.credit >= per {
            self.credit = 0;
            segments += 1;
        }
        self.credit += acked;
        if self.credit >= per {
            segments += self.credit / per;
            self.credit %= per;
        }
        self.set_cwnd(segments);
    }

    /// Adds `acked` segments to the credit; returns whether it is enough for an increase, and then resets it.
    pub fn is_due(&mut self, per: u32, acked: u32) -> bool {
        self.credit += acked;
        let due = self.credit >= per;
        if due {
            self.credit = 0;
        }
        due
    }

    /// Resets the credit.
    pub fn reset(&mut self) {
        self.credit = 0;
    }
}
