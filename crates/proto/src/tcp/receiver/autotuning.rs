//! Auto-tuning of the receive window, as in Linux 6.18: dynamic right-sizing (Fisk and Feng 2001), behind a slow
//! start of the window.
//!
//! The window begins with 64 KiB. Each segment that arrives opens it by two segments, up to the *room*: the
//! payload for which the receive buffer has memory. Once in a round trip, the room is adjusted to twice the bytes
//! that the application has read since the last adjustment, and to more while they increase.
//!
//! Linux counts memory, of which a segment takes more than its payload. Here all is payload, converted by one
//! ratio for segments of the largest size seen: that of segments which a driver copies into buffers of their own.
//! Other simplifications: the application reads a segment before its acknowledgement leaves, windows are not
//! rounded to the window scale, and memory never runs short.

use alloc::boxed::Box;

use lasthop_base::{Duration, Time};

use super::super::paws::timestamp;
use super::super::settings::{FIRST_WINDOW, Settings};
use crate::packet::{Segment, SeqNum};

/// The ratio of payload to memory before the first segment, in 256ths.
const FIRST_RATIO: u32 = 128;
/// Segments that the application is expected to read in the first round trip.
const FIRST_ROUND: u32 = 10;
/// The largest segment before the first one arrives.
const LEAST_MSS: u32 = 536;
/// Shorter segments in order do not open the window.
const LEAST_SEGMENT: u32 = 128;
/// Bytes beyond the payload in the buffer of a segment: headers, reserved space, and Linux's `skb_shared_info`.
const OVERHEAD: u32 = 418;
/// Size of a buffer's descriptor (Linux: `sk_buff`).
const DESCRIPTOR: u32 = 256;
/// Unit of the timestamps that the round-trip time is taken from, in microseconds.
const CLOCK_TICK: u32 = 1_000;
/// An eighth of a microsecond in nanoseconds.
const EIGHTH_US_NS: u64 = 125;

/// State of the auto-tuning of one window.
#[derive(Clone, Debug)]
pub(super) struct Autotuning {
    /// The largest window.
    most: u32,
    mss: u32,
    /// The window to advertise if nothing is held (Linux: `rcv_ssthresh`).
    window: u32,
    /// Payload for which the buffer has memory (Linux: `window_clamp`).
    room: u32,
    /// Payload of the largest segment (Linux: `rcv_mss`), and the ratio of its payload to its memory in 256ths.
    largest: u32,
    ratio: u32,
    /// Bytes that the application read in the fastest round trip.
    per_round: u32,
    /// When the current round trip began and ends, and the next byte to be read when it began.
    round_began: Time,
    round_ends: Time,
    round_from: SeqNum,
    /// Estimate of the round-trip time, in eighths of a microsecond; zero if unknown.
    rtt: u64,
    last_echo: u32,
    /// Whether timestamps have given a round-trip time, which takes a tick of their clock.
    has_echoes: bool,
    /// Whether full segments in order do not open the window.
    is_settled: bool,
    /// A window of data takes at least a round trip: when and where the current one began and ends.
    flight_began: Time,
    flight_ends: Option<SeqNum>,
}

impl Autotuning {
    /// The auto-tuning of a receiver with these settings, if it is on and the buffer may exceed 64 KiB.
    pub(super) fn of(settings: &Settings) -> Option<Box<Autotuning>> {
        let (most, mss) = (settings.window_payload(), settings.mss());
        let window = settings.first_window();
        settings.is_autotuned().then(|| {
            Box::new(Autotuning {
                most,
                mss,
                window,
                room: FIRST_WINDOW,
                largest: LEAST_MSS.min(mss),
                ratio: FIRST_RATIO,
                per_round: window.min(FIRST_ROUND * mss),
                round_began: Time::ZERO,
                round_ends: Time::NEVER,
                round_from: SeqNum(settings.iss),
                rtt: 0,
                last_echo: 0,
                has_echoes: false,
                is_settled: false,
                flight_began: Time::ZERO,
                flight_ends: None,
            })
        })
    }

    /// Called when the connection is established.
    pub(super) fn begin(&mut self, now: Time, rcv_nxt: SeqNum) {
        (self.round_began, self.round_from) = (now, rcv_nxt);
    }

    pub(super) fn window(&self) -> u32 {
        self.window
    }

    /// Whether a segment in order, without gaps, changes nothing but the estimate of the round-trip time.
    pub(super) fn is_settled(&self, now: Time) -> bool {
        self.is_settled && now < self.round_ends
    }

    /// Processes a segment that has advanced `rcv_nxt`; returns whether the window opens. `unread` bytes in order
    /// wait for the application, and `gaps` has out-of-order data, if any.
    pub(super) fn on_data(
        &mut self,
        now: Time,
        segment: &Segment,
        rcv_nxt: SeqNum,
        unread: u32,
        gaps: OutOfOrder,
    ) -> bool {
        if !self.has_echoes {
            self.measure_flight(now, rcv_nxt);
        }
        self.measure_segment(segment.len);
        // The segment itself takes room until it is read.
        let held = unread.max(self.payload(memory(segment.len))) + gaps.bytes;
        let opens = segment.len >= LEAST_SEGMENT && self.open(segment.len, held);
        if now >= self.round_ends {
            self.end_round(now, rcv_nxt, unread, gaps.span);
        }
        // Otherwise, each segment may end a window of data.
        self.is_settled =
            self.has_echoes && held == self.payload(memory(self.largest)) && self.window + held >= self.room;
        opens
    }

    /// Processes a segment beyond a gap.
    pub(super) fn on_gap(&mut self, segment: &Segment, unread: u32, gaps: OutOfOrder) {
        self.open(segment.len, unread + gaps.bytes);
        self.grow(self.per_round, gaps.span);
        self.is_settled = false;
    }

    /// Takes a round-trip time from the first full segment with an echoed timestamp. Called for each segment before all
    /// else.
    #[inline]
    pub(super) fn measure_echo(&mut self, now: Time, echo: u32, len: u32) {
        if echo != self.last_echo {
            self.last_echo = echo;
            let ticks = (timestamp(now) / CLOCK_TICK).wrapping_sub(echo / CLOCK_TICK) as i32;
            if ticks > 0 && echo != 0 && len >= self.largest {
                self.has_echoes = true;
                let sample = ticks as u64 * u64::from(CLOCK_TICK);
                let higher = self.rtt - self.rtt / 8 + sample;
                self.set_rtt(if self.rtt == 0 { 8 * sample } else { higher.min(8 * sample) });
            }
        }
    }

    fn set_rtt(&mut self, rtt: u64) {
        self.rtt = rtt;
        self.round_ends = self.round_began + Duration::from_nanos(EIGHTH_US_NS * rtt);
    }

    /// Takes over the size of larger segments, and the ratio of their payload to their memory.
    fn measure_segment(&mut self, len: u32) {
        if len <= self.largest {
            return;
        }
        self.largest = len.min(self.mss);
        let ratio = (256 * len / memory(len)).max(1);
        let room = u64::from(self.room) * u64::from(ratio) / u64::from(self.ratio);
        self.room = room.min(u64::from(self.most)) as u32;
        self.ratio = ratio;
    }

    /// Without echoes, the round-trip time is at most the shortest time in which a full window has arrived.
    fn measure_flight(&mut self, now: Time, rcv_nxt: SeqNum) {
        if self.flight_ends.is_some_and(|end| rcv_nxt < end) {
            return;
        }
        if self.flight_ends.is_some() {
            let sample = 8 * (now.since(self.flight_began).as_nanos() / 1_000).max(1);
            self.set_rtt(if self.rtt == 0 { sample } else { self.rtt.min(sample) });
        }
        (self.flight_began, self.flight_ends) = (now, Some(rcv_nxt + self.window));
    }

    /// Opens the window for a segment of `len` bytes while `held` bytes take room; returns whether it opens.
    fn open(&mut self, len: u32, held: u32) -> bool {
        if self.window + held >= self.room {
            return false;
        }
        let step = self.step(len);
        if step > 0 {
            self.window += step.max(2 * len).min(self.room - held - self.window);
        }
        step > 0
    }

    /// By how much a segment of `len` bytes opens the window: by two segments, if the buffer holds a window of segments
    /// with its share of payload, now or, for a small window, compressed.
    fn step(&self, len: u32) -> u32 {
        let mut taken = self.payload(memory(len));
        let mut window = self.most;
        if taken <= len {
            return 2 * self.mss;
        }
        loop {
            (taken, window) = (taken / 2, window / 2);
            if self.window > window {
                return 0;
            }
            if taken <= len {
                return 2 * self.largest;
            }
        }
    }

    /// Ends the current round trip. The application has read everything before `rcv_nxt` except `unread` bytes.
    fn end_round(&mut self, now: Time, rcv_nxt: SeqNum, unread: u32, span: u32) {
        let read = SeqNum(rcv_nxt.0.wrapping_sub(unread));
        let bytes = read.0.wrapping_sub(self.round_from.0).saturating_sub(unread);
        if bytes > self.per_round {
            self.grow(bytes, span);
        }
        (self.round_began, self.round_from) = (now, read);
        self.set_rtt(self.rtt);
    }

    /// The payload for which `memory` suffices.
    fn payload(&self, memory: u32) -> u32 {
        memory * self.ratio / 256
    }

    /// Grows the room for `per_round` bytes read per round trip, and out-of-order data up to `span` beyond the edge.
    /// The sender may double its rate in each round trip, and is heard a round trip late.
    fn grow(&mut self, per_round: u32, span: u32) {
        let before = core::mem::replace(&mut self.per_round, per_round);
        let twice = 2 * u64::from(per_round);
        let faster = u64::from(per_round.saturating_sub(before));
        let increase = (2 * twice).saturating_mul(faster) / u64::from(before.max(1));
        let room = increase.saturating_add(twice + u64::from(span)).min(u64::from(self.most)) as u32;
        self.room = self.room.max(room);
    }
}

/// Out-of-order data beyond the edge.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OutOfOrder {
    /// Bytes received.
    pub(super) bytes: u32,
    /// Distance of the last one from the edge.
    pub(super) span: u32,
}

/// The memory that a segment with `len` bytes of payload takes (Linux: `truesize`): a buffer of a power of two, and its
/// descriptor.
fn memory(len: u32) -> u32 {
    (len + OVERHEAD).next_power_of_two() + DESCRIPTOR
}
