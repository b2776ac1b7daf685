//! Invariants of every run under any losses. A tap keeps its own state and compares.

use std::collections::BTreeMap;

use lasthop_base::Time;
use lasthop_proto::tcp::{Receiver, Segment, Sender, SeqNum, Settings};
use lasthop_proto::{ComponentId, DropReason, Packet};
use lasthop_sim::{Node, Tap, Wire};

use crate::account::Account;

/// Checks the invariants of a connection during a run. Panics, with the time, on a violation.
pub struct Invariants {
    receiver: ComponentId,
    first_byte: SeqNum,
    now: Time,
    /// Received ranges of the stream, as offsets from its start.
    arrived: BTreeMap<u64, u64>,
    /// The segment that is about to be taken or rejected.
    arriving: Option<Segment>,
    /// Segments that were rejected for their timestamps, and the latest timestamp of one that was not.
    outdated: u64,
    stamp: Option<u32>,
    /// The highest sequence number sent at the last check.
    snd_max: SeqNum,
    /// Bytes beyond the congestion window that limited transmit may send.
    slack: u32,
    /// The books of a connection whose two ends exchange segments without a proxy between them.
    account: Option<Account>,
    /// Number of lost packets.
    pub drops: u64,
    /// Number of events handled.
    pub handled: u64,
}

impl Invariants {
    /// Invariants of the connection to `receiver` whose stream starts at `first_byte`. The sender may exceed
    /// its window by `slack` bytes.
    pub fn new(receiver: ComponentId, first_byte: SeqNum, slack: u32) -> Invariants {
        Invariants {
            receiver,
            first_byte,
            now: Time::ZERO,
            arrived: BTreeMap::new(),
            arriving: None,
            outdated: 0,
            stamp: None,
            snd_max: first_byte,
            slack,
            account: None,
            drops: 0,
            handled: 0,
        }
    }

    /// Both ends have these `settings`, and no proxy stands between them: their segments and counters are checked as
    /// well. The sender has a scheme's reaction or none.
    pub fn end_to_end(mut self, settings: &Settings, reacting: bool) -> Invariants {
        self.account = Some(Account::new(settings, self.slack, reacting));
        self
    }

    /// Whether all of `start..end` has arrived. Both lie within 2 GiB of what is in order.
    fn has_arrived(&self, start: SeqNum, end: SeqNum) -> bool {
        let in_order = self.in_order();
        let base = self.first_byte + in_order as u32;
        let offset = |seq: SeqNum| in_order as i64 + i64::from(seq.0.wrapping_sub(base.0) as i32);
        let (start, end) = (offset(start).max(0) as u64, offset(end).max(0) as u64);
        self.arrived.range(..=start).next_back().is_some_and(|(_, &to)| end <= to)
    }

    /// Length of the prefix of the stream that was received without a gap.
    fn in_order(&self) -> u64 {
        self.arrived.get(&0).copied().unwrap_or(0)
    }

    /// The segment that has arrived counts unless it was rejected, and that it is only if it is older than another.
    fn take_or_reject(&mut self, receiver: &Receiver) {
        let Some(segment) = self.arriving.take() else { return };
        let value = segment.timestamps.map(|ts| ts.value);
        if receiver.stats().outdated_segments > self.outdated {
            self.outdated += 1;
            let age = self.stamp.zip(value).map(|(latest, value)| latest.wrapping_sub(value) as i32);
            assert!(age.is_some_and(|age| age > 0), "{}: {segment:?} is rejected", self.now);
        } else {
            let newest = |latest: &u32| value.is_none_or(|value| latest.wrapping_sub(value) as i32 >= 0);
            self.stamp = self.stamp.filter(newest).or(value);
            self.note_arrival(&segment);
        }
    }

    fn note_arrival(&mut self, segment: &Segment) {
        if segment.len == 0 {
            return;
        }
        // Streams may exceed the sequence space: offsets are unwrapped near the data received in order.
        let base = self.first_byte + self.in_order() as u32;
        let behind = i64::from(segment.seq.0.wrapping_sub(base.0) as i32);
        let mut start = (self.in_order() as i64 + behind).max(0) as u64;
        let mut end = (self.in_order() as i64 + behind + i64::from(segment.len)).max(0) as u64;
        while let Some((&from, &to)) = self.arrived.range(..=end).next_back().filter(|&(_, &to)| to >= start)
        {
            self.arrived.remove(&from);
            (start, end) = (start.min(from), end.max(to));
        }
        self.arrived.insert(start, end);
    }

    fn check_receiver(&self, receiver: &Receiver) {
        let delivered = receiver.stats().delivered.0;
        assert_eq!(delivered, self.in_order(), "{}: delivered is not what arrived in order", self.now);
    }

    /// All ranges that the sender holds as reported by SACK have arrived.
    fn check_reports(&self, sender: &Sender) {
        for block in sender.reported() {
            assert!(self.has_arrived(block.start, block.end), "{}: {block:?} has not arrived", self.now);
        }
    }

    /// The receiver acknowledges and reports only data that have arrived.
    fn check_answer(&self, answer: &Segment) {
        // SYN and FIN take a sequence number.
        let edge = self.first_byte + self.in_order() as u32 + 1;
        assert!(answer.ack <= edge, "{}: {} is acknowledged, {edge} expected", self.now, answer.ack);
        // An empty block reports nothing: a scheme may use it for numbers of its own.
        for block in answer.sack.iter().filter(|block| block.start != block.end) {
            assert!(self.has_arrived(block.start, block.end), "{}: {block:?} is reported", self.now);
        }
    }

    fn check_sender(&mut self, sender: &Sender) {
        assert!(
            sender.flight_size() == 0 || sender.timer_runs(),
            "{}: data outstanding and no timer",
            self.now
        );
        if sender.snd_max() <= self.snd_max {
            return;
        }
        self.snd_max = sender.snd_max();
        // FIN occupies a sequence number but no buffer space; so does a window probe.
        let (flight, pipe, rwnd) = (sender.flight_size(), sender.pipe(), sender.rwnd());
        assert!(flight <= rwnd + 1, "{}: {flight} bytes in flight, window of the receiver {rwnd}", self.now);
        // The account is more exact.
        let limit = sender.usable_window() + self.slack + 1;
        let kept = self.account.is_some() || pipe <= limit;
        assert!(kept, "{}: {pipe} bytes in the network, window {limit}", self.now);
    }

    /// Checks the end of a run: the stream is complete and nothing was delivered twice.
    pub fn check_end(&self, sender: &Sender, receiver: &Receiver, bytes: u64) {
        assert_eq!(receiver.stats().delivered.0, bytes, "the stream is incomplete");
        assert_eq!(self.in_order(), bytes);
        assert!(sender.stats().payload_sent.0 >= bytes);
        assert!(sender.stats().completed.is_some());
        if let Some(account) = &self.account {
            account.check_end(sender, receiver, bytes);
        }
    }
}

impl Tap for Invariants {
    fn cross(&mut self, now: Time, wire: Wire, packet: &Packet) {
        assert!(now >= self.now, "time ran backwards");
        self.now = now;
        let Some(segment) = packet.segment() else { return };
        if wire.to.0 == self.receiver {
            self.arriving = Some(*segment);
        }
        if let Some(account) = &mut self.account {
            account.note_segment(now, wire.from.0, packet, segment);
            if wire.from.0 == self.receiver {
                account.note_answer();
                self.check_answer(segment);
            }
        }
    }

    fn drop(&mut self, _now: Time, _at: ComponentId, _packet: &Packet, _reason: DropReason) {
        self.drops += 1;
    }

    fn handled(&mut self, now: Time, id: ComponentId, component: &Node) {
        self.handled += 1;
        match component {
            Node::Sender(sender) => {
                if let Some(account) = &mut self.account {
                    account.check_sender(now, id, sender);
                    self.check_reports(sender);
                }
                self.check_sender(sender);
            }
            Node::Receiver(receiver) => {
                self.take_or_reject(receiver);
                self.check_receiver(receiver);
            }
            _ => {}
        }
    }
}
