//! One who contends for the medium: the access point, or a station.

use lasthop_base::{Duration, Stream, Time};
use lasthop_proto::Packet;

use super::config::Cw;

/// A packet that a MAC has taken from its queue.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) packet: Packet,
    /// Whom it is for, among those who contend.
    pub(super) to: usize,
    /// Air time of the data frame.
    pub(super) data: Duration,
    /// Air time of the frame that an attempt begins with: RTS or data.
    pub(super) first: Duration,
    /// Whether that is an RTS.
    pub(super) rts: bool,
    /// How often it was sent, or an RTS for it.
    pub(super) attempts: u32,
    /// Failures that count towards the short retry limit.
    pub(super) short: u32,
    /// Failures that count towards the long retry limit.
    pub(super) long: u32,
}

/// What one MAC knows: its backoff, and when the medium is idle for it.
pub(super) struct Contender {
    /// The packet that it wants to send.
    pub(super) head: Option<Frame>,
    /// When it would begin to send if nobody else does; never, without a packet.
    pub(super) start: Time,
    /// When the packet became the head.
    came: Time,
    /// The medium is busy for it until then, by carrier or NAV.
    busy_until: Time,
    /// Until when it waits for an answer to what it has sent. Its backoff is that which follows.
    answer: Time,
    /// When backoff slots begin: after the medium was idle for DIFS or EIFS.
    slots_from: Time,
    /// Backoff slots left, as of `slots_from`.
    slots: u32,
    window: u32,
    cw: Cw,
    backoff: Stream,
}

impl Contender {
    /// One for whom the medium has been idle for long.
    pub(super) fn new(cw: Cw, backoff: Stream) -> Contender {
        Contender {
            head: None,
            start: Time::NEVER,
            came: Time::ZERO,
            busy_until: Time::ZERO,
            answer: Time::ZERO,
            slots_from: Time::ZERO,
            slots: 0,
            window: cw.min,
            cw,
            backoff,
        }
    }

    /// The contention window.
    pub(super) fn window(&self) -> u32 {
        self.window
    }

    fn draw(&mut self) {
        self.slots = self.backoff.below(u64::from(self.window) + 1) as u32;
    }

    /// Takes a packet, having none. One that finds the medium busy needs a backoff, unless there is one
    /// that is not over. `during` says that a frame is on the air.
    pub(super) fn take(&mut self, now: Time, frame: Frame, during: bool) {
        self.head = Some(frame);
        self.came = now;
        let waits = now < self.answer;
        if (during || now < self.busy_until) && self.slots == 0 && !waits {
            self.draw();
        }
    }

    /// Takes the next packet behind one that is over, whose post-backoff is the next one's.
    pub(super) fn follow(&mut self, now: Time, frame: Frame) {
        self.head = Some(frame);
        self.came = now;
    }

    /// Computes when it would begin: its backoff must have run out, and there must be a packet. If the
    /// backoff ran out before the packet came, there is no wait: that is the immediate access.
    pub(super) fn plan(&mut self, slot: Duration) {
        self.start = match self.head {
            Some(_) => self.came.max(self.slots_from + slot * u64::from(self.slots)),
            None => Time::NEVER,
        };
    }

    /// Notices, at `noticed`, that another has begun, when so many slots have ended as `slots_ended` says of
    /// when they began. A packet that waits needs a backoff then, "unless the backoff timer already contains
    /// a nonzero value" (IEEE 802.11-1999 section 9.2.5.1), or is set when the wait for an answer is over.
    pub(super) fn defer(&mut self, noticed: Time, slots_ended: impl FnOnce(Time) -> u32) {
        self.slots = self.slots.saturating_sub(slots_ended(self.slots_from));
        let waits = noticed <= self.answer;
        if self.head.is_some() && self.slots == 0 && !waits {
            self.draw();
        }
    }

    /// The medium is busy until `busy_until`, and slots begin at `slots_from`. If it still waits
    /// for an answer to what it sent before, that is over by then.
    pub(super) fn set_busy(&mut self, busy_until: Time, slots_from: Time) {
        self.busy_until = busy_until;
        self.slots_from = slots_from;
    }

    /// Has sent, and waits for an answer until `answer`; slots begin at `slots_from`.
    pub(super) fn wait(&mut self, answer: Time, slots_from: Time) {
        self.answer = answer;
        self.slots_from = slots_from;
    }

    /// Its attempt has succeeded, or its packet is given up.
    pub(super) fn begin_anew(&mut self) {
        self.head = None;
        self.window = self.cw.min;
        self.draw();
    }

    /// Its attempt has failed, and there will be another.
    pub(super) fn try_again(&mut self) {
        self.window = self.cw.after_failure(self.window);
        self.draw();
    }
}
