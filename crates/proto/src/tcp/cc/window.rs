//! The congestion window, and what controllers that count segments share.

/// The congestion window and where slow start ends, in bytes. Fractions matter: congestion avoidance
/// adds less than a byte at a time to a large window. Only controllers and the verbs here write it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
}

impl Window {
    pub(in crate::tcp) fn new(cwnd: u32, ssthresh: f64) -> Window {
        Window { cwnd: f64::from(cwnd), ssthresh }
    }

    /// Congestion window, bytes.
    pub fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Slow-start threshold, bytes.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Begins with a window of `bytes`; the threshold stays.
    pub(in crate::tcp) fn begin_with(&mut self, bytes: u32) {
        self.cwnd = f64::from(bytes);
    }

    /// Recovery limits the window to `bytes` for a while; the threshold stays.
    pub(in crate::tcp) fn reduce_to(&mut self, bytes: f64) {
        self.cwnd = bytes;
    }

    /// Takes `bytes` out of the window, as far as `least` remain, until recovery ends.
    pub(in crate::tcp) fn deflate(&mut self, bytes: u32, least: u32) {
        self.cwnd = (self.cwnd - f64::from(bytes)).max(f64::from(least));
    }

    /// Whether the window is below the threshold.
    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// Growth in whole segments as Linux counts it: acknowledged segments are saved up until they suffice for
/// the next one (RFC 3465 with no limit but what was acknowledged).
#[derive(Clone, Copy, Debug)]
pub struct Increase {
    mss: f64,
    /// Acknowledged bytes that do not make up a segment yet.
    rest: u32,
    /// Acknowledged segments that do not make up an increase yet.
    credit: u32,
}

impl Increase {
    /// For segments of `mss` bytes.
    pub fn new(mss: u32) -> Increase {
        Increase { mss: f64::from(mss), rest: 0, credit: 0 }
    }

    /// Bytes of payload in a full segment.
    pub fn mss(&self) -> f64 {
        self.mss
    }

    /// The window in whole segments, at least one.
    pub fn segments(&self, window: &Window) -> u32 {
        ((window.cwnd / self.mss) as u32).max(1)
    }

    /// Sets the window to so many segments.
    pub fn set_segments(&self, window: &mut Window, segments: u32) {
        window.cwnd = f64::from(segments) * self.mss;
    }

    /// Sets the threshold to so many segments, but no fewer than two.
    pub fn set_threshold(&self, window: &mut Window, segments: u32) {
        window.ssthresh = f64::from(segments.max(2)) * self.mss;
    }

    /// How many segments `bytes` make up, with what earlier calls have left over.
    pub fn acked_segments(&mut self, bytes: u32) -> u32 {
        let all = self.rest.saturating_add(bytes);
        let mss = self.mss as u32;
        self.rest = all % mss;
        all / mss
    }

    /// Slow start: a segment for each of `acked`, up to the threshold. Returns how many are left over.
    pub fn slow_start(&self, window: &mut Window, acked: u32) -> u32 {
        let from = self.segments(window);
        // A cast to an integer saturates, so an unlimited threshold is fine.
        let to = from.saturating_add(acked).min((window.ssthresh / self.mss) as u32).max(from);
        self.set_segments(window, to);
        acked - (to - from)
    }

    /// Congestion avoidance: one segment more for every `per` of those acknowledged.
    pub fn avoid(&mut self, window: &mut Window, per: u32, acked: u32) {
        let mut segments = self.segments(window);
        // What was saved up towards a larger number is worth one segment at most.
        if self.credit >= per {
            self.credit = 0;
            segments += 1;
        }
        self.credit += acked;
        if self.credit >= per {
            segments += self.credit / per;
            self.credit %= per;
        }
        self.set_segments(window, segments);
    }

    /// Saves up `acked` segments; whether they suffice for an increase, which they are then spent on.
    pub fn is_due(&mut self, per: u32, acked: u32) -> bool {
        self.credit += acked;
        let due = self.credit >= per;
        if due {
            self.credit = 0;
        }
        due
    }

    /// Forgets what was saved up.
    pub fn reset(&mut self) {
        self.credit = 0;
    }
}
