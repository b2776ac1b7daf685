//! Block Ack agreements: the MPDUs of one direction and category between the access point and a station.

use std::collections::VecDeque;

use lasthop_base::{Bytes, Duration, Stream, Time};
use lasthop_link::queue::{Discipline, Queue, QueueLimit};
use lasthop_link::wifi::{MPDU_OVERHEAD, WifiConfig};
use lasthop_proto::{Out, Packet};

/// How long after its last packet an agreement still pays for air time: 100 ms, as in Linux.
const ACTIVITY: Duration = Duration::from_millis(100);

/// A packet that has been sent at least once, or is about to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mpdu {
    pub(super) packet: Packet,
    /// Its number among all packets that entered the BSS.
    pub(super) order: u64,
    pub(super) attempts: u32,
    /// The receiver has it.
    pub(super) has_arrived: bool,
    /// The sender has its acknowledgement, or has given it up.
    pub(super) is_done: bool,
}

/// The packets that wait for their first transmission.
enum Waiting {
    DropTail(VecDeque<(u64, Packet)>),
    Managed(Box<dyn Discipline>),
}

/// One direction and category between the access point and a station.
pub(super) struct Agreement {
    waiting: Waiting,
    /// A packet that left its discipline and did not fit into the last A-MPDU.
    next: Option<Packet>,
    /// Sequence number of the first MPDU of `window`.
    first: u64,
    /// The MPDUs from the oldest that is not done on.
    window: VecDeque<Mpdu>,
    /// Packets not done, and their bytes; without those of a discipline.
    held: (usize, Bytes),
    receiver: Reorder,
    /// Whether a BlockAckReq is due.
    pub(super) requests: bool,
    /// Whether it is in the list of its EDCA function.
    pub(super) is_ready: bool,
    /// The air time that it may use before the next turn of the others, in nanoseconds.
    pub(super) deficit: i64,
    /// Arrival of the last packet; `None` before the first.
    filled: Option<Time>,
}

impl Agreement {
    /// The agreement for the frames of a station (`up`), or of the access point.
    pub(super) fn new(config: &WifiConfig, up: bool, random: Stream) -> Agreement {
        let waiting = match if up { &config.station_queue } else { &config.queue } {
            Queue::DropTail(_) => Waiting::DropTail(VecDeque::new()),
            // A station has no fixed rate.
            Queue::Managed(management) => Waiting::Managed(management.build(|_| Duration::ZERO, random)),
        };
        Agreement {
            waiting,
            next: None,
            first: 0,
            window: VecDeque::new(),
            held: (0, Bytes::ZERO),
            receiver: Reorder::new(config),
            requests: false,
            is_ready: false,
            deficit: 0,
            filled: None,
        }
    }

    /// Enqueues a packet unless the queue is full; `held` counts what the drop-tail limit applies to.
    pub(super) fn push(
        &mut self,
        now: Time,
        (order, packet): (u64, &Packet),
        (limit, (packets, bytes)): (QueueLimit, (usize, Bytes)),
        out: &mut Out,
    ) -> bool {
        self.filled = Some(now);
        match &mut self.waiting {
            Waiting::Managed(discipline) => {
                discipline.enqueue(now, *packet, false, out);
                true
            }
            Waiting::DropTail(queue) => {
                let fits = limit.admits(packets, bytes, packet.size);
                if fits {
                    queue.push_back((order, *packet));
                    self.hold(packet);
                }
                fits
            }
        }
    }

    fn hold(&mut self, packet: &Packet) {
        self.held = (self.held.0 + 1, self.held.1 + packet.size);
    }

    /// Packets that are not done, and their bytes; without those in the queue of a discipline.
    pub(super) fn held(&self) -> (usize, Bytes) {
        self.held
    }

    /// Packets in the queue of a discipline, and their bytes.
    pub(super) fn managed(&self) -> (usize, Bytes) {
        match &self.waiting {
            Waiting::DropTail(_) => (0, Bytes::ZERO),
            Waiting::Managed(discipline) => discipline.queued(),
        }
    }

    /// Packets marked by its discipline.
    pub(super) fn marked(&self) -> u64 {
        match &self.waiting {
            Waiting::DropTail(_) => 0,
            Waiting::Managed(discipline) => discipline.stats().marked,
        }
    }

    /// Packets that the receiver has and cannot release yet, which are done for the sender or will be.
    pub(super) fn packets(&self) -> usize {
        let lacking = self.window.iter().filter(|mpdu| !mpdu.has_arrived && !mpdu.is_done).count();
        let waiting = match &self.waiting {
            Waiting::DropTail(queue) => queue.len(),
            Waiting::Managed(discipline) => discipline.queued().0,
        };
        waiting + usize::from(self.next.is_some()) + lacking + self.receiver.packets()
    }

    /// Whether there is anything to send.
    pub(super) fn has_frames(&self) -> bool {
        self.requests
            || !self.window.is_empty()
            || self.next.is_some()
            || match &self.waiting {
                Waiting::DropTail(queue) => !queue.is_empty(),
                Waiting::Managed(discipline) => discipline.queued().0 > 0,
            }
    }

    /// Whether it has frames, or got a packet lately.
    pub(super) fn is_active(&self, now: Time) -> bool {
        self.is_ready || self.filled.is_some_and(|filled| now <= filled + ACTIVITY)
    }

    /// The order of its oldest packet.
    pub(super) fn oldest(&self) -> u64 {
        let of_queue = || match &self.waiting {
            Waiting::DropTail(queue) => queue.front().map(|(order, _)| *order),
            Waiting::Managed(_) => None,
        };
        let of_window = self.window.front().map(|mpdu| mpdu.order);
        of_window.or_else(of_queue).unwrap_or(u64::MAX)
    }

    /// MPDU number `index` of the window, from the oldest on: `None` behind its end. A new packet extends the window as
    /// far as `window` MPDUs; only if it is not longer than `longest` unless it is the first.
    pub(super) fn window(&self) -> &VecDeque<Mpdu> {
        &self.window
    }

    /// The size of the MPDU of the next new packet, which then waits for [`extend`](Agreement::extend); `None` if there is
    /// none, or the window of `most` MPDUs has no room.
    pub(super) fn peek(&mut self, most: u16, now: Time, out: &mut Out) -> Option<Bytes> {
        if self.window.len() >= usize::from(most) {
            return None;
        }
        let size = match &mut self.waiting {
            Waiting::DropTail(queue) => queue.front().map(|(_, packet)| packet.size),
            Waiting::Managed(discipline) => {
                if self.next.is_none() {
                    self.next = discipline.dequeue(now, out);
                    if let Some(packet) = &self.next {
                        self.held = (self.held.0 + 1, self.held.1 + packet.size);
                    }
                }
                self.next.map(|packet| packet.size)
            }
        };
        size.map(|size| size + MPDU_OVERHEAD)
    }

    /// The packet that [`peek`](Agreement::peek) found, with its order.
    fn take(&mut self) -> (u64, Packet) {
        let found = match &mut self.waiting {
            Waiting::DropTail(queue) => queue.pop_front(),
            Waiting::Managed(_) => self.next.take().map(|packet| (0, packet)),
        };
        found.expect("a packet was found")
    }

    /// Moves the packet that [`peek`](Agreement::peek) found into the window.
    pub(super) fn extend(&mut self) {
        let (order, packet) = self.take();
        self.window.push_back(Mpdu { packet, order, attempts: 0, has_arrived: false, is_done: false });
    }

    pub(super) fn mpdu_mut(&mut self, index: usize) -> &mut Mpdu {
        &mut self.window[index]
    }

    /// MPDU number `index` of the window reaches the receiver, which releases packets in order. Returned if the receiver no
    /// longer waits for it.
    pub(super) fn arrive(&mut self, index: usize, now: Time, release: &mut Vec<Packet>) -> Option<Packet> {
        let mpdu = &mut self.window[index];
        mpdu.has_arrived = true;
        let is_late = !self.receiver.put(self.first + index as u64, Some((&mpdu.packet, now)), release);
        is_late.then_some(mpdu.packet)
    }

    /// When the receiver next goes on without a missing MPDU.
    pub(super) fn held_until(&self) -> Time {
        self.receiver.held_until()
    }

    /// The receiver goes on without MPDUs behind which others have waited for its time-out.
    pub(super) fn expire(&mut self, now: Time, release: &mut Vec<Packet>) {
        self.receiver.expire(now, release);
    }

    /// MPDU number `index` of the window is acknowledged.
    pub(super) fn acknowledge(&mut self, index: usize) {
        self.finish(index);
    }

    /// MPDU number `index` of the window is given up; the receiver waits for it no longer, unless it has to find out by itself.
    pub(super) fn give_up(&mut self, index: usize, release: &mut Vec<Packet>) {
        if self.receiver.timeout.is_none() {
            self.receiver.put(self.first + index as u64, None, release);
        }
        self.finish(index);
    }

    /// Gives up all packets, which are returned with whether they were sent before. The receiver releases what it has. A
    /// discipline may drop some by itself.
    pub(super) fn abandon(
        &mut self,
        now: Time,
        release: &mut Vec<Packet>,
        out: &mut Out,
    ) -> Vec<(Packet, bool)> {
        let mut given_up = Vec::new();
        for index in 0..self.window.len() {
            let Mpdu { packet, attempts, is_done, .. } = self.window[index];
            if !is_done {
                self.give_up(index, release);
                given_up.push((packet, attempts > 0));
            }
        }
        self.advance();
        self.receiver.skip((self.first - self.receiver.expected) as usize, release);
        self.requests = false;
        while self.peek(u16::MAX, now, out).is_some() {
            let (_, packet) = self.take();
            self.held = (self.held.0 - 1, self.held.1 - packet.size);
            given_up.push((packet, false));
        }
        given_up
    }

    fn finish(&mut self, index: usize) {
        let mpdu = &mut self.window[index];
        mpdu.is_done = true;
        self.held = (self.held.0 - 1, self.held.1 - mpdu.packet.size);
    }

    /// Moves the window to the oldest MPDU that is not done.
    pub(super) fn advance(&mut self) {
        while self.window.front().is_some_and(|mpdu| mpdu.is_done) {
            self.window.pop_front();
            self.first += 1;
        }
    }
}

/// The receiver's buffer: releases packets in order.
struct Reorder {
    /// The next sequence number to release.
    expected: u64,
    buffer: VecDeque<Slot>,
    /// MPDUs that a sender may have under way.
    window: usize,
    timeout: Option<Duration>,
}

#[derive(Clone, Copy)]
enum Slot {
    Missing,
    /// It has arrived, at this time.
    Here(Packet, Time),
    GivenUp,
}

impl Reorder {
    fn new(config: &WifiConfig) -> Reorder {
        let window = usize::from(config.window);
        Reorder { expected: 0, buffer: VecDeque::new(), window, timeout: config.reorder_timeout }
    }

    /// A packet arrives at a time, or is given up (`None`); false if it is no longer waited for.
    fn put(&mut self, number: u64, packet: Option<(&Packet, Time)>, release: &mut Vec<Packet>) -> bool {
        // Most arrive in order.
        if number == self.expected && self.buffer.is_empty() {
            self.expected += 1;
            release.extend(packet.map(|(packet, _)| *packet));
            return true;
        }
        let Some(mut index) = number.checked_sub(self.expected).map(|index| index as usize) else {
            return false;
        };
        if index >= self.window {
            // The sender has moved its window, so it has given up what lies before.
            self.skip(index + 1 - self.window, release);
            index = (number - self.expected) as usize;
        }
        if self.buffer.len() <= index {
            self.buffer.resize(index + 1, Slot::Missing);
        }
        self.buffer[index] = packet.map_or(Slot::GivenUp, |(packet, now)| Slot::Here(*packet, now));
        self.release(release);
        true
    }

    /// Releases what is in order.
    fn release(&mut self, release: &mut Vec<Packet>) {
        while !matches!(self.buffer.front(), None | Some(Slot::Missing)) {
            self.skip_one(release);
        }
    }

    fn skip_one(&mut self, release: &mut Vec<Packet>) {
        if let Some(Slot::Here(packet, _)) = self.buffer.pop_front() {
            release.push(packet);
        }
        self.expected += 1;
    }

    /// Goes on to the packet after the next `count`.
    fn skip(&mut self, count: usize, release: &mut Vec<Packet>) {
        (0..count).for_each(|_| self.skip_one(release));
        self.release(release);
    }

    /// The place of the first packet behind a missing one, and until when it is held.
    fn first_held(&self) -> Option<(usize, Time)> {
        let timeout = self.timeout?;
        self.buffer.iter().enumerate().find_map(|(place, slot)| match slot {
            Slot::Here(_, since) => Some((place, *since + timeout)),
            _ => None,
        })
    }

    fn held_until(&self) -> Time {
        self.first_held().map_or(Time::NEVER, |(_, until)| until)
    }

    fn expire(&mut self, now: Time, release: &mut Vec<Packet>) {
        while let Some((place, _)) = self.first_held().filter(|(_, until)| *until <= now) {
            self.skip(place, release);
        }
    }

    fn packets(&self) -> usize {
        self.buffer.iter().filter(|slot| matches!(slot, Slot::Here(..))).count()
    }
}
