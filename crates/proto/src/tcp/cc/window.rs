//! The congestion window, in bytes and as Linux counts it in segments.

use crate::tcp::settings::{InitialThreshold, Settings};

/// The congestion window and the slow-start threshold, in bytes. Fractions matter: congestion avoidance adds less
/// than a byte at a time to a large window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// The window that a connection begins with, and begins again with after an idle time.
    initial: u32,
}

impl Window {
    /// The window at the beginning of a connection with these settings. Without congestion control it is the
    /// receiver's.
    pub fn new(settings: &Settings) -> Window {
        let rwnd = settings.window_payload();
        let mss = settings.mss();
        let initial = if settings.is_controlled() { settings.initial_window.bytes(mss) } else { rwnd };
        let ssthresh = match settings.initial_ssthresh {
            InitialThreshold::Unlimited => f64::INFINITY,
            InitialThreshold::Window => f64::from(rwnd),
            InitialThreshold::Segments(n) => f64::from(n) * f64::from(mss),
        };
        Window { cwnd: f64::from(initial), ssthresh, initial }
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold, bytes.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// The window at the beginning of the connection, bytes.
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

    /// Takes `bytes` out of the window, as far as `least` remain.
    pub(in crate::tcp) fn deflate(&mut self, bytes: u32, least: u32) {
        self.cwnd = (self.cwnd - f64::from(bytes)).max(f64::from(least));
    }

    /// Sets the initial window to `bytes`, for restarts to come.
    pub(in crate::tcp) fn set_initial(&mut self, bytes: u32) {
        self.initial = bytes;
    }
}

/// A window that moves in whole segments, as in Linux: acknowledged segments are counted until they suffice for
/// the next increase (RFC 3465 without a limit per acknowledgement).
#[derive(Clone, Copy, Debug)]
pub struct SegmentWindow {
    bytes: Window,
    mss: f64,
    /// Acknowledged bytes that are not a whole segment yet.
    rest: u32,
    /// Acknowledged segments that do not suffice for an increase yet.
    credit: u32,
}

impl SegmentWindow {
    /// The window at the beginning of a connection with these settings.
    pub fn new(settings: &Settings) -> SegmentWindow {
        SegmentWindow { bytes: Window::new(settings), mss: f64::from(settings.mss()), rest: 0, credit: 0 }
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
        self.mss
    }

    /// The window in whole segments, at least one.
    pub fn cwnd(&self) -> u32 {
        ((self.bytes.cwnd / self.mss) as u32).max(1)
    }

    /// The threshold in whole segments. A cast to an integer saturates, so an unlimited one is fine.
    pub fn ssthresh(&self) -> u32 {
        (self.bytes.ssthresh / self.mss) as u32
    }

    /// Whether the window is below the threshold.
    pub fn in_slow_start(&self) -> bool {
        self.bytes.in_slow_start()
    }

    /// Sets the window to so many segments.
    pub fn set_cwnd(&mut self, segments: u32) {
        self.bytes.cwnd = f64::from(segments) * self.mss;
    }

    /// Sets the threshold to so many segments, but no fewer than two.
    pub fn set_ssthresh(&mut self, segments: u32) {
        self.bytes.ssthresh = f64::from(segments.max(2)) * self.mss;
    }

    /// How many segments `bytes` are, with what earlier calls have left over.
    pub fn acked_segments(&mut self, bytes: u32) -> u32 {
        let all = self.rest.saturating_add(bytes);
        let mss = self.mss as u32;
        self.rest = all % mss;
        all / mss
    }

    /// Slow start: a segment for each of `acked`, up to the threshold. Returns how many are left over.
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let from = self.cwnd();
        let to = from.saturating_add(acked).min(self.ssthresh()).max(from);
        self.set_cwnd(to);
        acked - (to - from)
    }

    /// Congestion avoidance: one segment more for every `per` of those acknowledged.
    pub fn avoid(&mut self, per: u32, acked: u32) {
        let mut segments = self.cwnd();
        // What was counted towards a larger number is worth one segment at most.
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

    /// Counts `acked` segments; whether they suffice for an increase, for which they are then spent.
    pub fn is_due(&mut self, per: u32, acked: u32) -> bool {
        self.credit += acked;
        let due = self.credit >= per;
        if due {
            self.credit = 0;
        }
        due
    }

    /// Begins to count towards an increase anew.
    pub fn reset(&mut self) {
        self.credit = 0;
    }
}
