//! Radio link protocol: frames cut from the bytes of packets, with selective reject and checkpoints.
//!
//! *What it does.* The bytes of packets form a stream, which is cut into frames: a frame may have the end of
//! one packet and the start of the next. A frame that the stream does not fill is sent at once, padded.
//! Frames are sent in order, as long as no more than a window of them is unacknowledged. The receiving end
//! acknowledges every frame that arrives, and with it rejects those missing before it; they are retransmitted
//! before new ones. If no acknowledgement arrives for a time, the sending end polls the receiving end (a
//! checkpoint). Packets are delivered in order.
//!
//! When the last permitted attempt of a frame has failed ([`Failure`]), the link is *reset*: both ends forget
//! their buffers, and all packets that have started are lost. Or only the packets with bytes in the frame are
//! *discarded*, and the receiving end skips them.
//!
//! The size of frames [adapts](super::frame_size) to their losses. Each frame carries its size and the
//! position of its bytes, so both ends need not agree beforehand. A lost frame that is longer than those sent
//! now is cut: its first bytes are retransmitted as the frame, the others follow in new frames.
//!
//! *Source.* GSM 04.22 (3GPP TS 24.022): frames of 240 bits, of which 6 bytes are header, check sequence and
//! the status octet of the layer above; selective reject; a window of up to 61 frames; `T1` = 480 ms; `N2` =
//! 6; a reset after that. These are the defaults but for `N2`, since the papers argue for attempts without a
//! limit: Ludwig, Konrad, Joseph and Katz, "Optimizing the end-to-end performance of reliable flows over
//! wireless links", MobiCom 1999 and Wireless Networks 8, 2002; Ludwig, Rathonyi, Konrad, Oden and Joseph,
//! "Multi-layer tracing of TCP over a reliable wireless link", SIGMETRICS 1999. Read were the contents and
//! summaries of the standard, its defaults in manuals of GSM modems, and the abstracts of the papers.
//!
//! *Parameters.* See [`Params`].
//!
//! *Differences from GSM.* Acknowledgements and polls have a constant delay, are never lost, and use no air
//! time. The window counts unacknowledged frames; the span of their numbers is not limited. Frames start when
//! there is something to send, not every 20 ms. A reset takes no time.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use lasthop_base::{Bytes, Duration, Invalid, Stream, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::frame_size::FrameSize;
use super::status_window::{self, Reports, StatusWindow};
use super::{Arq, Attempt, EndedFrame, Form, Next, Protocol, Retransmissions, Share, Statuses, Verdict};
use crate::component::{FrameSizes, LinkOutcome};

/// The radio link protocol cuts the bytes of packets into frames, and one frame may carry bytes of several
/// packets. Lost frames are retransmitted before new ones. Frames are multiples of `frame`, and their size
/// adapts to the losses: it is the one with the greatest expected goodput. The frames replace `mtu` and
/// `unit`, which must not be set with this table. A frame is coded, by `fec`, as the packet of its first
/// byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "RadioLinkProtocol")]
pub struct Params {
    /// Size of the smallest frame, overhead included; frames have this size at first.
    pub frame: Bytes,
    /// Size of the largest frame, a multiple of `frame`; equal to `frame` for a fixed size, as in GSM.
    pub largest: Bytes,
    /// Bytes of each frame that are not data: header and check sequence.
    pub overhead: Bytes,
    /// Number of recent frames whose outcomes determine the size.
    pub memory: u32,
    /// Maximum number of unacknowledged frames.
    pub window: u32,
    /// Maximum number of retransmissions of a frame; 6 in GSM.
    pub retransmissions: Retransmissions,
    /// After the last permitted attempt: `reset` loses all packets in transmission, `discard` those with
    /// bytes in the frame.
    pub failure: Failure,
    /// Delay of an acknowledgement or poll. Neither is lost or uses air time.
    pub report_delay: Duration,
    /// Time without acknowledgements after which the sending end polls.
    pub timeout: Duration,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            frame: Bytes(30),
            largest: Bytes(1500),
            overhead: Bytes(6),
            memory: 100,
            window: 61,
            retransmissions: Retransmissions::Unlimited,
            failure: Failure::Reset,
            report_delay: Duration::from_millis(20),
            timeout: Duration::from_millis(480),
        }
    }
}

impl Protocol for Params {
    /// # Errors
    /// If frames have no data or the largest is not a multiple of the smallest, or if the window or the memory is zero.
    fn validate(&self) -> Result<(), Invalid> {
        let invalid = |field, problem| Err(Invalid { field, problem });
        if self.frame <= self.overhead {
            return invalid("frame", "found no more bytes than the overhead has, expected more");
        }
        if self.largest.0 > MAX_FRAME {
            return invalid("largest", "found more than 65535 B, expected at most as much");
        }
        if self.largest < self.frame || !self.largest.0.is_multiple_of(self.frame.0) {
            return invalid("largest", "found a size that is not a multiple of `frame`, expected one");
        }
        match (self.window, self.memory) {
            (0, _) => invalid("window", "found 0 frames, expected at least 1"),
            (_, 0) => invalid("memory", "found 0 frames, expected at least 1"),
            _ => Ok(()),
        }
    }

    fn build(&self, _backoff: Stream) -> Box<dyn Arq> {
        Box::new(Rlp::new(*self))
    }

    fn retries(&self) -> (Retransmissions, Duration) {
        (self.retransmissions, self.report_delay)
    }

    fn frame(&self) -> Option<Bytes> {
        Some(self.frame)
    }
}

/// Largest size of a frame in bytes, whose length field has 16 bits.
const MAX_FRAME: u64 = 65_535;

/// The action after the last permitted attempt of a frame has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// All packets that have started are lost.
    Reset,
    /// The packets with bytes in the frame are lost.
    Discard,
}

/// The sending end: the stream of bytes, and the frames cut from it.
#[derive(Clone, Debug)]
pub struct Rlp {
    params: Params,
    size: FrameSize,
    /// When frames are sent and retransmitted. To it, each frame is a packet of one unit.
    window: StatusWindow,
    /// Position of the first byte of the first packet that has not ended.
    base: u64,
    /// The packets that have started, from the first that has not ended on.
    packets: VecDeque<Started>,
    /// Position of the first byte that was never in a frame.
    sent: u64,
    /// Bytes of frames that were cut, to be sent before new ones.
    again: VecDeque<Range<u64>>,
    /// Number of the first frame in `frames`.
    first_frame: u64,
    frames: VecDeque<Frame>,
    /// The attempt on the air, in the numbers of `window`.
    on_air: Attempt,
    size_on_air: Bytes,
    shares: Vec<Share>,
}

/// A packet that has started.
#[derive(Clone, Copy, Debug)]
struct Started {
    number: u64,
    /// Position after its last byte.
    end: u64,
    /// Bytes that have not arrived; zero if it is given up.
    missing: u32,
}

/// A frame, until the sending end knows that it has arrived.
#[derive(Clone, Debug)]
struct Frame {
    /// Its bytes in the stream, none of a packet that is given up.
    bytes: Range<u64>,
    size: Bytes,
    is_over: bool,
}

impl Rlp {
    /// Nothing to send.
    ///
    /// # Panics
    /// If the parameters are not [valid](Params::validate).
    pub fn new(params: Params) -> Rlp {
        if let Err(invalid) = params.validate() {
            panic!("{invalid}");
        }
        let Params {
            frame, largest, overhead, memory, window, retransmissions, report_delay, timeout, ..
        } = params;
        let reports = Reports::Every(1);
        let window = status_window::Params { retransmissions, window, reports, report_delay, timeout };
        Rlp {
            params,
            size: FrameSize::new(frame, largest, overhead, memory),
            window: StatusWindow::new(window).with_checkpoints(),
            base: 0,
            packets: VecDeque::new(),
            sent: 0,
            again: VecDeque::new(),
            first_frame: 0,
            frames: VecDeque::new(),
            on_air: Attempt { packet: 0, unit: 0, number: 0 },
            size_on_air: frame,
            shares: Vec::new(),
        }
    }

    /// Position after the last byte of the stream.
    fn end(&self) -> u64 {
        self.packets.back().map_or(self.base, |packet| packet.end)
    }

    /// Data in a full frame.
    fn payload(&self) -> u64 {
        (self.size.current() - self.params.overhead).0
    }

    /// The index of the packet at a position of the stream.
    fn index_at(&self, position: u64) -> usize {
        self.packets.partition_point(|packet| packet.end <= position)
    }

    /// Position of the first byte of a packet.
    fn start_of(&self, index: usize) -> u64 {
        index.checked_sub(1).map_or(self.base, |before| self.packets[before].end)
    }

    /// The number of the first packet in a range of the stream.
    fn packet_of(&self, bytes: &Range<u64>) -> u64 {
        self.packets[self.index_at(bytes.start)].number
    }

    /// The bytes of the next new frame.
    fn fresh(&self) -> Range<u64> {
        let waiting = self.again.front().cloned().unwrap_or(self.sent..self.end());
        waiting.start..waiting.end.min(waiting.start + self.payload())
    }

    fn frame_mut(&mut self, number: u64) -> &mut Frame {
        &mut self.frames[(number - self.first_frame) as usize]
    }

    /// Starts a new frame.
    fn cut(&mut self) -> Attempt {
        let bytes = self.fresh();
        match self.again.front_mut() {
            Some(again) if again.end > bytes.end => again.start = bytes.end,
            Some(_) => _ = self.again.pop_front(),
            None => self.sent = bytes.end,
        }
        let number = self.first_frame + self.frames.len() as u64;
        let size = self.size.fitting(bytes.end - bytes.start);
        self.frames.push_back(Frame { bytes, size, is_over: false });
        self.window.begin(number, 1);
        Attempt { packet: number, unit: 0, number: 1 }
    }

    /// Shortens a frame that is to be retransmitted to the current size.
    fn shorten(&mut self, number: u64) {
        let (full, payload) = (self.size.current(), self.payload());
        let frame = self.frame_mut(number);
        if frame.size > full {
            let kept = frame.bytes.start + payload;
            if kept < frame.bytes.end {
                let rest = kept..core::mem::replace(&mut frame.bytes.end, kept);
                self.again.push_front(rest);
            }
            self.frame_mut(number).size = full;
        }
    }

    /// Sets the shares of the packets in a frame that arrived, or did not.
    fn share_out(&mut self, bytes: &Range<u64>, arrived: bool) {
        self.shares.clear();
        let outcome = if arrived { LinkOutcome::Delivered } else { LinkOutcome::AttemptFailed };
        for index in self.index_at(bytes.start)..=self.index_at(bytes.end - 1) {
            let start = self.start_of(index);
            let Started { number, end, missing } = &mut self.packets[index];
            let units = ((*end).min(bytes.end) - start.max(bytes.start)) as u32;
            *missing -= if arrived { units } else { 0 };
            self.shares.push(Share { packet: *number, units, outcome });
        }
    }

    /// Gives up the packets of a frame or, in a reset, all.
    fn fail(&mut self, bytes: &Range<u64>) {
        let lost = match self.params.failure {
            Failure::Reset => 0..self.packets.len(),
            Failure::Discard => self.index_at(bytes.start)..self.index_at(bytes.end - 1) + 1,
        };
        let dead = self.start_of(lost.start)..self.start_of(lost.end);
        for index in lost {
            let packet = &mut self.packets[index];
            packet.missing = 0;
            self.shares.push(Share { packet: packet.number, units: 0, outcome: LinkOutcome::Discarded });
        }
        if dead.contains(&self.sent) {
            self.sent = dead.end;
        }
        self.again.iter_mut().for_each(|bytes| *bytes = without(bytes, &dead));
        self.again.retain(|bytes| !bytes.is_empty());
        for (number, frame) in (self.first_frame..).zip(&mut self.frames) {
            frame.bytes = without(&frame.bytes, &dead);
            if frame.bytes.is_empty() && !frame.is_over {
                frame.is_over = true;
                self.window.give_up(number);
            }
        }
    }

    /// Learns the outcomes that are known by `now`.
    fn learn(&mut self, now: Time) {
        let Rlp { window, frames, first_frame, size, .. } = self;
        window.learn(now, |sent, arrived| {
            let frame = &mut frames[(sent.packet - *first_frame) as usize];
            size.learn(frame.size, arrived);
            frame.is_over |= arrived;
        });
    }

    /// Forgets packets and frames that have ended.
    fn release(&mut self) {
        while self.packets.front().is_some_and(|packet| packet.missing == 0) {
            self.base = self.packets.pop_front().expect("a packet").end;
        }
        while self.frames.front().is_some_and(|frame| frame.is_over) {
            self.frames.pop_front();
            self.first_frame += 1;
        }
    }
}

/// `bytes` without `dead`, which covers one of its ends, all of it, or nothing.
fn without(bytes: &Range<u64>, dead: &Range<u64>) -> Range<u64> {
    if bytes.start < dead.start {
        bytes.start..bytes.end.min(dead.start)
    } else {
        bytes.start.max(dead.end).min(bytes.end)..bytes.end
    }
}

impl Arq for Rlp {
    fn begin(&mut self, packet: u64, units: u32) {
        let end = self.end() + u64::from(units);
        self.packets.push_back(Started { number: packet, end, missing: units });
    }

    fn next(&self, now: Time, backlog: bool) -> Next {
        match self.window.next(now, true) {
            Next::Send(sent) => {
                let frame = &self.frames[(sent.packet - self.first_frame) as usize];
                Next::Send(Attempt { packet: self.packet_of(&frame.bytes), ..sent })
            }
            Next::Begin => {
                let fresh = self.fresh();
                let is_filled = !self.again.is_empty() || fresh.end - fresh.start == self.payload();
                if !is_filled && backlog {
                    Next::Begin
                } else if fresh.is_empty() {
                    self.window.next(now, false)
                } else {
                    Next::Send(Attempt { packet: self.packet_of(&fresh), unit: 0, number: 1 })
                }
            }
            wait @ Next::Wait(_) => wait,
        }
    }

    fn ended(&mut self, now: Time, _attempt: Attempt, arrived: bool) -> Verdict {
        let verdict = self.window.ended(now, self.on_air, arrived);
        let bytes = self.frame_mut(self.on_air.packet).bytes.clone();
        self.share_out(&bytes, arrived);
        if verdict == Verdict::GiveUp {
            self.size.learn(self.size_on_air, false);
            self.frame_mut(self.on_air.packet).is_over = true;
            self.fail(&bytes);
        }
        self.release();
        verdict
    }

    fn give_up_all(&mut self) {
        self.base = self.end();
        self.sent = self.base;
        self.packets.clear();
        self.again.clear();
        self.first_frame += self.frames.len() as u64;
        self.frames.clear();
        self.window.give_up_all();
    }

    fn statuses(&mut self) -> Option<&mut dyn Statuses> {
        Some(self)
    }
}

impl Statuses for Rlp {
    fn start(&mut self, now: Time) -> Form {
        self.window.poll(now);
        self.on_air = match self.window.next(now, true) {
            Next::Send(sent) => {
                self.learn(now);
                self.shorten(sent.packet);
                sent
            }
            _ => {
                // As large as `next` has assumed when it took packets from the queue.
                let sent = self.cut();
                self.learn(now);
                sent
            }
        };
        self.size_on_air = self.frame_mut(self.on_air.packet).size;
        Form { is_coded: self.window.is_lossy(), frame: Some(self.size_on_air) }
    }

    fn ended_frame(&self) -> Option<EndedFrame<'_>> {
        let sizes = FrameSizes { this: self.size_on_air, full: self.size.current() };
        Some(EndedFrame { sizes, shares: &self.shares })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    /// Frames of 10 to 40 B with 2 B of overhead, a window of 4, and acknowledgements after 20 ms.
    fn rlp(failure: Failure) -> Rlp {
        Rlp::new(Params {
            frame: Bytes(10),
            largest: Bytes(40),
            overhead: Bytes(2),
            window: 4,
            retransmissions: Retransmissions::AtMost(1),
            failure,
            timeout: Duration::from_millis(100),
            ..Params::default()
        })
    }

    /// The packets in the queue of a link: the number of the first, and their bytes.
    struct Waiting {
        first: u64,
        sizes: VecDeque<u32>,
    }

    impl Waiting {
        fn of(sizes: &[u32]) -> Waiting {
            Waiting { first: 0, sizes: sizes.iter().copied().collect() }
        }
    }

    /// Takes packets until a frame starts at `start`, which ends 10 ms later. Returns packet, number and size of the frame, and
    /// the shares.
    fn send(rlp: &mut Rlp, start: u64, waiting: &mut Waiting, arrived: bool) -> (u64, u32, u64, Vec<Share>) {
        loop {
            match rlp.next(at(start), !waiting.sizes.is_empty()) {
                Next::Begin => {
                    rlp.begin(waiting.first, waiting.sizes.pop_front().expect("a packet waits"));
                    waiting.first += 1;
                }
                Next::Send(attempt) => {
                    let size = rlp.start(at(start)).frame.expect("it cuts frames").0;
                    rlp.ended(at(start + 10), attempt, arrived);
                    let shares = rlp.ended_frame().expect("a frame has ended").shares.to_vec();
                    return (attempt.packet, attempt.number, size, shares);
                }
                Next::Wait(until) => panic!("it waits until {until} at {start} ms"),
            }
        }
    }

    fn share(packet: u64, units: u32, outcome: LinkOutcome) -> Share {
        Share { packet, units, outcome }
    }

    use LinkOutcome::{AttemptFailed, Delivered, Discarded};

    #[test]
    fn frames_have_bytes_of_several_packets() {
        let (mut rlp, mut waiting) = (rlp(Failure::Reset), Waiting::of(&[5, 1, 10]));
        let shares = vec![share(0, 5, Delivered), share(1, 1, Delivered), share(2, 2, Delivered)];
        assert_eq!(send(&mut rlp, 0, &mut waiting, true), (0, 1, 10, shares));
        assert_eq!(send(&mut rlp, 10, &mut waiting, true), (2, 1, 10, vec![share(2, 8, Delivered)]));
        assert_eq!(rlp.next(at(20), false), Next::Wait(Time::NEVER));
    }

    /// The frame after a lost one reveals the loss, one report later; a lost last one is found by a poll.
    #[test]
    fn what_is_missing_is_rejected_or_polled_for() {
        let (mut rlp, mut waiting) = (rlp(Failure::Reset), Waiting::of(&[24]));
        assert_eq!(send(&mut rlp, 0, &mut waiting, false).3, [share(0, 8, AttemptFailed)]);
        send(&mut rlp, 10, &mut waiting, true);
        send(&mut rlp, 20, &mut waiting, false);
        // Known at 40 ms, since the second frame arrives at 20 ms.
        assert_eq!(rlp.next(at(30), false), Next::Wait(at(40)));
        assert_eq!(send(&mut rlp, 40, &mut waiting, true).1, 2);
        // The retransmission arrives at 50 ms and reveals the third, which is known at 70 ms.
        assert_eq!(rlp.next(at(50), false), Next::Wait(at(70)));
        let mut alone = super::tests::rlp(Failure::Reset);
        send(&mut alone, 0, &mut Waiting::of(&[8]), false);
        // 100 ms after its end, and a poll and its response later.
        assert_eq!(alone.next(at(10), false), Next::Wait(at(150)));
    }

    /// Without acknowledgements, the sending end polls 100 ms after the end of the first lost frame, although it has more to
    /// send.
    #[test]
    fn a_busy_sender_polls_if_nothing_is_acknowledged() {
        let mut rlp = Rlp::new(Params {
            frame: Bytes(10),
            largest: Bytes(10),
            overhead: Bytes(2),
            timeout: Duration::from_millis(100),
            ..Params::default()
        });
        let waiting = &mut Waiting::of(&[1_000]);
        let numbers: Vec<_> = (0..18).map(|index| send(&mut rlp, 10 * index, waiting, false).1).collect();
        // The first frame ends at 10 ms; the answer to the poll at 110 ms arrives at 150 ms.
        assert_eq!(numbers[..15], [1; 15]);
        assert_eq!(numbers[15..], [2; 3]);
    }

    /// Two attempts of the frame with the end of packet 0 and the start of packet 1 fail.
    #[test]
    fn a_reset_loses_all_packets_that_have_started_and_a_discard_those_in_the_frame() {
        for (failure, lost, rest) in
            [(Failure::Reset, vec![0, 1, 2], None), (Failure::Discard, vec![0, 1], Some(2))]
        {
            let (mut rlp, mut waiting) = (rlp(failure), Waiting::of(&[12, 10, 12]));
            send(&mut rlp, 0, &mut waiting, true);
            send(&mut rlp, 10, &mut waiting, false);
            // 6 bytes of packet 1, and 2 of packet 2.
            assert_eq!(
                send(&mut rlp, 20, &mut waiting, false).3,
                [share(1, 6, AttemptFailed), share(2, 2, AttemptFailed)]
            );
            send(&mut rlp, 30, &mut waiting, true);
            let (packet, number, _, shares) = send(&mut rlp, 60, &mut waiting, false);
            assert_eq!((packet, number), (0, 2));
            let failed = [share(0, 4, AttemptFailed), share(1, 4, AttemptFailed)];
            let given_up: Vec<_> = lost.iter().map(|&packet| share(packet, 0, Discarded)).collect();
            assert_eq!(shares, [&failed[..], &given_up].concat());
            match rest {
                // Of the third frame, only the bytes of packet 2 are retransmitted.
                Some(packet) => {
                    let again = send(&mut rlp, 70, &mut waiting, true);
                    assert_eq!((again.0, again.1, again.3), (packet, 2, vec![share(2, 2, Delivered)]));
                    send(&mut rlp, 80, &mut waiting, true);
                }
                None => assert_eq!(rlp.next(at(70), false), Next::Wait(Time::NEVER)),
            }
            waiting.sizes.push_back(3);
            assert_eq!(send(&mut rlp, 200, &mut waiting, true).3, [share(3, 3, Delivered)]);
            assert!(rlp.packets.is_empty() && rlp.frames.len() <= 2);
        }
    }

    /// A frame of 40 B is lost, and frames have 10 B when it is retransmitted: the rest follows in new frames.
    #[test]
    fn a_long_frame_is_cut_when_frames_have_become_short() {
        let (mut rlp, mut waiting) = (rlp(Failure::Reset), Waiting::of(&[38, 8]));
        rlp.size = FrameSize::new(Bytes(40), Bytes(40), Bytes(2), 100);
        assert_eq!(send(&mut rlp, 0, &mut waiting, false).2, 40);
        rlp.size = FrameSize::new(Bytes(10), Bytes(40), Bytes(2), 100);
        assert_eq!(send(&mut rlp, 10, &mut waiting, true).3, [share(1, 8, Delivered)]);
        for (start, number, units) in [(40, 2, 8), (50, 1, 8), (60, 1, 8), (70, 1, 8), (80, 1, 6)] {
            let shares = vec![share(0, units, Delivered)];
            assert_eq!(send(&mut rlp, start, &mut waiting, true), (0, number, 10, shares), "at {start} ms");
        }
        assert!(rlp.packets.is_empty());
    }

    #[test]
    fn a_link_that_gives_up_starts_afresh() {
        let (mut rlp, mut waiting) = (rlp(Failure::Reset), Waiting::of(&[30]));
        send(&mut rlp, 0, &mut waiting, false);
        rlp.give_up_all();
        assert_eq!(rlp.next(at(500), false), Next::Wait(Time::NEVER));
        waiting.sizes.push_back(3);
        assert_eq!(send(&mut rlp, 500, &mut waiting, true), (1, 1, 10, vec![share(1, 3, Delivered)]));
    }

    #[test]
    fn parameters_that_cannot_work_are_refused() {
        let field = |change: fn(&mut Params)| {
            let mut params = Params::default();
            change(&mut params);
            params.validate().err().map(|invalid| invalid.field)
        };
        assert_eq!(field(|_| ()), None);
        assert_eq!(field(|it| it.frame = Bytes(6)), Some("frame"));
        assert_eq!(field(|it| it.frame = Bytes(0)), Some("frame"));
        assert_eq!(field(|it| it.largest = Bytes(29)), Some("largest"));
        assert_eq!(field(|it| it.largest = Bytes(31)), Some("largest"));
        assert_eq!(field(|it| it.largest = Bytes(u64::MAX)), Some("largest"));
        assert_eq!(field(|it| it.window = 0), Some("window"));
        assert_eq!(field(|it| it.memory = 0), Some("memory"));
    }
}
