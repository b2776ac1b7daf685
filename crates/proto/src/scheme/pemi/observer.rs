//! What the times of opaque packets and replies tell: flowlets, round-trip times, and losses.
//!
//! ```text
//! packets  ●●●●●     ●●●        ●●●●        a gap of twice the usual interval ends a flowlet
//! replies       ○ ○ ○     ○ ○        ○      each belongs to the flowlet that was sent a round trip ago
//! ```
//!
//! A reply to a later flowlet, or its absence for long enough, completes a flowlet. If it has fewer replies than packets, the replies are
//! matched to packets in order such that the round-trip times differ least from the expected one. A packet without a reply is lost,
//! unless its neighbour in the same burst has one, or a receiver that acknowledges every other packet need not have replied.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use lasthop_base::{Bytes, Duration, Time};

use super::Pemi;
use crate::packet::Packet;
use crate::scheme::connections::ConnectionState;

/// Packets closer than this may share a reply.
const CLOSE: Duration = Duration::from_micros(100);
/// The weights of a new interval and of a new round-trip time.
const SMOOTHING: f64 = 1.0 / 8.0;
/// The interval before the first one is known.
const FIRST_INTERVAL: Duration = Duration::from_millis(1);
/// So many packets are seen between two estimates of how many of them a reply acknowledges, which is one if there are more replies
/// than this share of the packets, and else two.
const PACKETS_PER_ESTIMATE: u64 = 50;
const SHARE_OF_SINGLE: f64 = 0.6;
/// If the replies last less than this share of the packets' time, the first or last packets are lost.
const FULL_SHARE: f64 = 0.8;
/// The shortest time over which the bytes of both directions are compared: replies come a round trip of both ends after what they
/// answer, and between two windows of data are nothing but replies.
const DIRECTION_TIME: Duration = Duration::from_millis(100);
/// The maximum number of packets kept.
const MOST_PACKETS: usize = 1000;

/// A packet that was sent; `None` for a copy, which is not sent again.
#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    packet: Option<Packet>,
}

/// Packets without a large gap between them, and the times of the replies to them.
#[derive(Debug, Default)]
struct Flowlet {
    packets: Vec<Sent>,
    replies: Vec<Time>,
    is_complete: bool,
}

impl Flowlet {
    fn begin(&self) -> Time {
        self.packets[0].at
    }

    fn end(&self) -> Time {
        self.packets[self.packets.len() - 1].at
    }

    /// For each packet its reply, of which there are at most as many: the matching that keeps the order of both and whose
    /// round-trip times differ least from `rtt`.
    fn matching(&self, rtt: Duration) -> Vec<Option<Time>> {
        let (rows, columns) = (self.packets.len() + 1, self.replies.len() + 1);
        let begin = self.begin();
        let since = |time: Time| time.since(begin).as_secs_f64();
        let error = |row: usize, column: usize| {
            (since(self.replies[column]) - since(self.packets[row].at) - rtt.as_secs_f64()).abs()
        };
        // The least error of the first packets and the first replies, of which none is left out.
        let mut least = vec![f64::INFINITY; rows * columns];
        let mut is_matched = vec![false; rows * columns];
        least[0] = 0.0;
        for row in 1..rows {
            least[row * columns] = 0.0;
            for column in 1..columns.min(row + 1) {
                let (place, above) = (row * columns + column, (row - 1) * columns + column);
                let matched = least[above - 1] + error(row - 1, column - 1);
                is_matched[place] = least[above] >= matched;
                least[place] = least[above].min(matched);
            }
        }
        let (mut column, mut found) = (columns - 1, vec![None; rows - 1]);
        for row in (1..rows).rev() {
            if is_matched[row * columns + column] {
                column -= 1;
                found[row - 1] = Some(self.replies[column]);
            }
        }
        found
    }

    /// Which packets have no reply, given the matching.
    fn lost(&self, matching: &[Option<Time>], per_reply: usize) -> Vec<bool> {
        let mut lost: Vec<bool> = matching.iter().map(Option::is_none).collect();
        let is_close = |one: usize| self.packets[one + 1].at.since(self.packets[one].at) < CLOSE;
        // A burst has arrived if one of it has: in both directions from a packet with a reply.
        for last in 1..lost.len() {
            lost[last] &= lost[last - 1] || !is_close(last - 1);
        }
        for first in (1..lost.len()).rev() {
            lost[first - 1] &= lost[first] || !is_close(first - 1);
        }
        let mut first = 0;
        while first < lost.len() {
            let run = lost[first..].iter().take_while(|lost| **lost).count();
            // What follows the last packet with a reply would have been acknowledged after a while.
            if first + run < lost.len() && run < per_reply {
                lost[first..first + run].fill(false);
            }
            first += run + 1;
        }
        lost
    }
}

/// What became of a flowlet.
#[derive(Debug, Default)]
struct Verdict {
    round_trips: Vec<Duration>,
    lost: Vec<Packet>,
}

/// A connection, as seen between its ends.
#[derive(Debug)]
pub(super) struct Observer {
    flowlets: VecDeque<Flowlet>,
    last: Option<Time>,
    /// The smoothed interval of packets.
    interval: Duration,
    /// The smoothed time from a packet to its reply.
    rtt: Option<Duration>,
    packets: u64,
    replies: u64,
    /// How many packets a reply acknowledges.
    per_reply: usize,
    /// Bytes beyond the smallest packet in each direction since `direction_since`, towards the mobile host first.
    bytes: [u64; 2],
    smallest: Bytes,
    direction_since: Time,
    is_download: bool,
}

impl ConnectionState for Observer {
    type Read = ();

    fn new(now: Time, (): &()) -> Observer {
        Observer {
            flowlets: VecDeque::new(),
            last: None,
            interval: FIRST_INTERVAL,
            rtt: None,
            packets: 0,
            replies: 0,
            per_reply: 1,
            bytes: [0; 2],
            smallest: Bytes(u64::MAX),
            direction_since: now,
            is_download: false,
        }
    }

    fn is_outdated(&self, (): &()) -> bool {
        false
    }

    fn cached(&self) -> usize {
        self.flowlets.iter().map(|flowlet| flowlet.packets.len()).sum()
    }
}

fn smooth(value: Duration, sample: Duration) -> Duration {
    Duration::from_secs_f64((1.0 - SMOOTHING) * value.as_secs_f64() + SMOOTHING * sample.as_secs_f64())
}

impl Observer {
    /// Calls `visit` with each packet that is kept.
    pub(super) fn visit(&self, visit: &mut dyn FnMut(&Packet)) {
        let packets = self.flowlets.iter().flat_map(|flowlet| &flowlet.packets);
        packets.filter_map(|sent| sent.packet.as_ref()).for_each(visit);
    }

    /// The gap that ends a flowlet.
    fn gap(&self, scheme: &Pemi) -> Duration {
        Duration::from_secs_f64(scheme.gap * self.interval.as_secs_f64())
    }

    /// How much later than expected a reply may come.
    fn patience(&self, scheme: &Pemi) -> Duration {
        Duration::from_secs_f64(scheme.patience * self.gap(scheme).as_secs_f64())
    }

    /// When the first flowlet is complete at the latest.
    pub(super) fn deadline(&self, scheme: &Pemi) -> Time {
        match (self.flowlets.front(), self.rtt) {
            (Some(first), Some(rtt)) => first.end() + rtt + self.patience(scheme),
            _ => Time::NEVER,
        }
    }

    /// Counts a packet to tell in which direction the data go: that with more than twice the bytes.
    fn count(&mut self, now: Time, size: Bytes, is_reply: bool) {
        self.smallest = self.smallest.min(size);
        self.bytes[usize::from(is_reply)] += (size - self.smallest).0;
        if self.rtt.is_some_and(|rtt| now.since(self.direction_since) >= rtt.max(DIRECTION_TIME)) {
            let [down, up] = self.bytes;
            if down != up {
                self.is_download = if self.is_download { up <= 2 * down } else { down > 2 * up };
            }
            (self.bytes, self.direction_since) = ([0; 2], now);
        }
    }

    /// A packet is sent to the mobile host.
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet, scheme: &Pemi, abandoned: &mut u64) {
        self.count(now, packet.size, false);
        if let Some(last) = self.last.replace(now) {
            self.interval = smooth(self.interval, now.since(last));
        }
        self.add(now, Some(*packet), scheme, abandoned);
    }

    /// A packet that was lost is sent again.
    fn on_repair(&mut self, now: Time, scheme: &Pemi, abandoned: &mut u64) {
        self.add(now, None, scheme, abandoned);
    }

    fn add(&mut self, now: Time, packet: Option<Packet>, scheme: &Pemi, abandoned: &mut u64) {
        self.packets += 1;
        if self.packets.is_multiple_of(PACKETS_PER_ESTIMATE) {
            let is_single = self.replies as f64 >= SHARE_OF_SINGLE * self.packets as f64;
            self.per_reply = if is_single { 1 } else { 2 };
        }
        let gap = self.gap(scheme);
        if self.flowlets.back().is_none_or(|last| now.since(last.end()) > gap) {
            self.flowlets.push_back(Flowlet::default());
        }
        if let Some(last) = self.flowlets.back_mut() {
            last.packets.push(Sent { at: now, packet });
        }
        while self.cached() > MOST_PACKETS && self.flowlets.pop_front().is_some() {
            *abandoned += 1;
        }
    }

    /// The mobile host has sent something. Returns the packets that are lost.
    pub(super) fn on_reply(
        &mut self,
        now: Time,
        size: Bytes,
        scheme: &Pemi,
        abandoned: &mut u64,
    ) -> Vec<Packet> {
        self.count(now, size, true);
        self.replies += 1;
        let Some(first) = self.flowlets.front() else { return Vec::new() };
        let rtt = *self.rtt.get_or_insert(now.since(first.begin()));
        let patience = self.patience(scheme);
        let is_early = now + patience < first.begin() + rtt && first.replies.is_empty();
        let is_late = self.flowlets.back().is_some_and(|last| now > last.end() + rtt + patience);
        if is_early || is_late {
            return Vec::new();
        }
        // The flowlet that was sent a round trip ago, or the nearest to that.
        let distance = |flowlet: &Flowlet| {
            let (begin, end) = (flowlet.begin() + rtt, flowlet.end() + rtt);
            if now > end { now.since(end) } else { begin.max(now).since(now) }
        };
        let nearest =
            (0..self.flowlets.len()).min_by_key(|&place| distance(&self.flowlets[place])).unwrap_or(0);
        self.flowlets[nearest].replies.push(now);
        self.flowlets.iter_mut().take(nearest).for_each(|flowlet| flowlet.is_complete = true);
        self.settle(now, scheme, abandoned)
    }

    /// A deadline may have passed. Returns the packets that are lost.
    pub(super) fn on_time(&mut self, now: Time, scheme: &Pemi, abandoned: &mut u64) -> Vec<Packet> {
        let mut lost = Vec::new();
        while self.deadline(scheme) <= now {
            self.flowlets[0].is_complete = true;
            lost.extend(self.settle(now, scheme, abandoned));
        }
        lost
    }

    /// Judges the complete flowlets. What is lost is sent again now.
    fn settle(&mut self, now: Time, scheme: &Pemi, abandoned: &mut u64) -> Vec<Packet> {
        let mut lost = Vec::new();
        while let Some(flowlet) = self.flowlets.pop_front_if(|first| first.is_complete) {
            let Verdict { round_trips, lost: of_flowlet } = self.judge(&flowlet, scheme, abandoned);
            for sample in round_trips {
                self.rtt = self.rtt.map(|rtt| smooth(rtt, sample));
            }
            if self.is_download {
                lost.extend(of_flowlet);
            }
        }
        lost.iter().for_each(|_| self.on_repair(now, scheme, abandoned));
        lost
    }

    fn judge(&self, flowlet: &Flowlet, scheme: &Pemi, abandoned: &mut u64) -> Verdict {
        let Flowlet { packets, replies, .. } = flowlet;
        let Some(rtt) = self.rtt.filter(|_| packets.len() <= scheme.packets as usize) else {
            *abandoned += 1;
            return Verdict::default();
        };
        let Some((first, last)) = replies.first().zip(replies.last()) else {
            let lost = packets.iter().filter_map(|sent| sent.packet).collect();
            return Verdict { round_trips: Vec::new(), lost };
        };
        if replies.len() > packets.len() {
            return Verdict::default();
        }
        let duration = FULL_SHARE * flowlet.end().since(flowlet.begin()).as_secs_f64();
        let is_full = last.since(*first).as_secs_f64() >= duration && *last >= flowlet.end();
        let matching = flowlet.matching(if is_full { last.since(flowlet.end()) } else { rtt });
        let lost = flowlet.lost(&matching, self.per_reply);
        let both = packets.iter().zip(matching);
        // A reply that is earlier than its packet is one to another packet.
        let replied =
            both.filter_map(|(sent, reply)| Some((sent.at, reply.filter(|reply| *reply >= sent.at)?)));
        let round_trips = replied.map(|(sent, reply)| reply.since(sent)).collect();
        let lost = packets.iter().zip(lost).filter(|(_, lost)| *lost).filter_map(|(sent, _)| sent.packet);
        Verdict { round_trips, lost: lost.collect() }
    }
}
