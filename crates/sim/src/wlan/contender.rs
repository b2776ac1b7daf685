//! Contention state of a MAC: that of the access point or of a station.

use lasthop_base::{Duration, Stream, Time};
use lasthop_proto::Packet;

use lasthop_link::wlan::Cw;

/// A packet that the MAC has taken from its queue.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) packet: Packet,
    /// Index of the receiver.
    pub(super) to: usize,
    /// Air time of the data frame.
    pub(super) data: Duration,
    /// Air time of the first frame of the exchange: RTS or data.
    pub(super) first: Duration,
    /// Whether the exchange starts with RTS.
    pub(super) rts: bool,
    /// Number of attempts.
    pub(super) attempts: u32,
    /// Failures counted by the short retry limit.
    pub(super) short: u32,
    /// Failures counted by the long retry limit.
    pub(super) long: u32,
}

/// The medium as every MAC sees it that took no part in the last frame exchange.
#[derive(Clone, Copy)]
pub(super) struct Medium {
    /// Until when the medium is busy, by carrier sense or NAV.
    busy_until: Time,
    /// Start of the backoff slots.
    slots_from: Time,
    /// Backoff slots that have ended in all idle periods before the current one.
    slots_ended: u64,
}

impl Medium {
    /// A medium that has been idle for a long time.
    pub(super) fn new() -> Medium {
        Medium { busy_until: Time::ZERO, slots_from: Time::ZERO, slots_ended: 0 }
    }

    /// A transmission is detected; `slots_ended` counts the slots that have ended since a given start.
    pub(super) fn defer(&mut self, slots_ended: impl FnOnce(Time) -> u32) {
        self.slots_ended += u64::from(slots_ended(self.slots_from));
    }

    /// The medium is busy until `busy_until`, and slots start at `slots_from`.
    pub(super) fn set_busy(&mut self, busy_until: Time, slots_from: Time) {
        self.busy_until = busy_until;
        self.slots_from = slots_from;
    }
}

/// Backoff and view of the medium of one MAC.
///
/// A MAC without a packet that sees the medium as all others do can be parked. Its backoff is then behind,
/// and is brought up to date when it has a packet again, so that it costs nothing meanwhile.
pub(super) struct Contender {
    /// The packet to send.
    pub(super) head: Option<Frame>,
    /// Start of transmission unless another station sends first; never without a packet.
    pub(super) start: Time,
    /// When the packet became the head.
    head_since: Time,
    /// While parked: the slots that had ended on the medium when it was parked.
    parked_at: Option<u64>,
    /// Until when the medium is busy, by carrier sense or NAV.
    busy_until: Time,
    /// Until when it waits for a response. The backoff was drawn for after that.
    answer: Time,
    /// Start of the backoff slots: after the medium has been idle for DIFS or EIFS.
    slots_from: Time,
    /// Remaining backoff slots at `slots_from`.
    slots: u32,
    window: u32,
    cw: Cw,
    backoff: Stream,
}

impl Contender {
    /// A parked MAC, for which the medium has been idle for a long time.
    pub(super) fn new(cw: Cw, backoff: Stream) -> Contender {
        Contender {
            head: None,
            start: Time::NEVER,
            head_since: Time::ZERO,
            parked_at: Some(0),
            busy_until: Time::ZERO,
            answer: Time::ZERO,
            slots_from: Time::ZERO,
            slots: 0,
            window: cw.min,
            cw,
            backoff,
        }
    }

    /// Whether the backoff and the view of the medium are behind.
    pub(super) fn is_parked(&self) -> bool {
        self.parked_at.is_some()
    }

    /// Parks the MAC. It has no packet, and sees the medium as all others do.
    pub(super) fn park(&mut self, medium: &Medium) {
        self.parked_at = Some(medium.slots_ended);
    }

    /// Brings a parked MAC up to date.
    pub(super) fn unpark(&mut self, medium: &Medium) {
        let Some(parked_at) = self.parked_at.take() else { return };
        let ended = u32::try_from(medium.slots_ended - parked_at).unwrap_or(u32::MAX);
        self.slots = self.slots.saturating_sub(ended);
        self.set_busy(medium.busy_until, medium.slots_from);
    }

    /// The contention window.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    fn draw(&mut self) {
        self.slots = self.backoff.below(u64::from(self.window) + 1) as u32;
    }

    /// Takes a packet into the empty MAC. If the medium is busy, or a frame is on the air (`during`), the
    /// packet needs a backoff, unless one is in progress.
    pub(super) fn take(&mut self, now: Time, frame: Frame, during: bool) {
        self.head = Some(frame);
        self.head_since = now;
        let waits = now < self.answer;
        if (during || now < self.busy_until) && self.slots == 0 && !waits {
            self.draw();
        }
    }

    /// Takes the next packet after a completed one; the post-backoff applies to it.
    pub(super) fn take_next(&mut self, now: Time, frame: Frame) {
        self.head = Some(frame);
        self.head_since = now;
    }

    /// Computes the start of transmission: when the backoff has expired and a packet is present. If the
    /// backoff expired before the packet arrived, transmission is immediate.
    pub(super) fn schedule(&mut self, slot: Duration) {
        self.start = match self.head {
            Some(_) => self.head_since.max(self.slots_from + slot * u64::from(self.slots)),
            None => Time::NEVER,
        };
    }

    /// Another station's transmission is detected at `noticed`; `slots_ended` counts the slots that have
    /// ended since a given start. A waiting packet then needs a backoff, "unless the backoff timer already
    /// contains a nonzero value" (IEEE 802.11-1999 section 9.2.5.1) or one is set at the end of the wait for
    /// a response.
    pub(super) fn defer(&mut self, noticed: Time, slots_ended: impl FnOnce(Time) -> u32) {
        self.slots = self.slots.saturating_sub(slots_ended(self.slots_from));
        let waits = noticed <= self.answer;
        if self.head.is_some() && self.slots == 0 && !waits {
            self.draw();
        }
    }

    /// The medium is busy until `busy_until`, and slots start at `slots_from`. A pending wait for a response
    /// ends before that.
    pub(super) fn set_busy(&mut self, busy_until: Time, slots_from: Time) {
        self.busy_until = busy_until;
        self.slots_from = slots_from;
    }

    /// Waits for a response until `answer`; slots start at `slots_from`.
    pub(super) fn wait(&mut self, answer: Time, slots_from: Time) {
        self.answer = answer;
        self.slots_from = slots_from;
    }

    /// The attempt has succeeded, or the packet is discarded.
    pub(super) fn finish_packet(&mut self) {
        self.head = None;
        self.window = self.cw.min;
        self.draw();
    }

    /// The attempt has failed and will be repeated.
    pub(super) fn retry(&mut self) {
        self.window = self.cw.after_failure(self.window);
        self.draw();
    }
}
